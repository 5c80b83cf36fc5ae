"""Tables in column groups (Sun, *Skipping-oriented Data Design for Large-Scale Analytics*, sections 4.2 and 4.5).

The writer numbers the rows once, within coarse partitions, and keeps them in temporary files. From these it writes each
group's blocks in the group's order, with the tuple ids of their rows. It writes the manifest last: without it nothing
can be read.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

from es_skipping.build.conditions import condition_of
from es_skipping.errors import DatasetError
from es_skipping.layout.groups.blocks import GroupWriter
from es_skipping.layout.groups.group import ColumnGroup
from es_skipping.layout.groups.indexing import evaluation, index_blocks, index_groups
from es_skipping.layout.groups.manifest import MANIFEST, GroupManifest, Partition, StoredGroup, add_partitions
from es_skipping.layout.groups.numbered_rows import OWN, TUPLE, numbered, with_words
from es_skipping.layout.groups.packing import packed_partitions
from es_skipping.layout.groups.stored import manifest_at
from es_skipping.layout.target import delete_tree, free_place, names, require_empty
from es_skipping.predicates.show import quoted_name, show
from es_skipping.spark.failures import first_line

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType

    from es_skipping.build.source import Source

__all__ = ["WrittenGroups", "append_groups", "write_groups"]

_ROWS: Final = "es_skipping_rows"
_DIRECTORY: Final = "es_skipping_group_"
_LEFT_BEHIND: Final = re.compile(rf"{_ROWS}|{_DIRECTORY}\d+")
"""Names that an unfinished write may leave."""
_LOSSLESS: Final = {
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInWrite": "CORRECTED",
}
"""Parquet options that keep all values: only this package reads the files, so no old reader needs less."""
_PLAIN: Final = (
    "boolean", "byte", "short", "integer", "long", "float", "double", "decimal", "string", "char", "varchar", "binary",
    "date", "timestamp", "timestamp_ntz",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class WrittenGroups:
    """The result of writing a table in column groups.

    Parameters
    ----------
    place
        The path.
    rows, partitions
        Number of rows, and of coarse partitions.
    blocks
        Number of blocks of each group.
    refused
        ``(feature, why)`` of features that Spark or an index cannot evaluate, and that cluster nothing.
    """

    place: str
    rows: int
    partitions: int
    blocks: tuple[int, ...]
    refused: tuple[tuple[str, str], ...] = ()


def write_groups(
    df: DataFrame,
    groups: Sequence[ColumnGroup],
    path: str,
    *,
    min_rows: int = 50_000,
    within: Sequence[str] = (),
    partition_rows: int = 1_000_000,
    helped: float | None = None,
    packed: bool = True,
) -> WrittenGroups:
    """Write a DataFrame in column groups, and index their blocks in the session's store.

    Each group's features put its rows into blocks. A query of the table (``spark.read.format("es_skipping_groups")
    .load(path)``, a view of it, or a table made by ``USING es_skipping_groups``) opens the groups that store its
    columns, and in them only blocks that may hold a row for its whole filter.

    Parameters
    ----------
    df
        A DataFrame of a classic session. It is computed twice, and its rows may come in different orders.
    groups
        Disjoint groups that together hold all columns, or layouts (GSOP-R). If any layout has masters, each column is
        the master of one layout. A layout holds, for its other columns, the rows that satisfy one of its features.
        Queries take each column from the layout where they read least.
    path
        A new or empty directory.
    min_rows
        Fewest rows of a block.
    within
        SQL expressions; rows with different values never share a coarse partition.
    partition_rows
        Approximate number of rows that one task joins. The task holds the columns of all needed groups but one in
        memory. A larger coarse partition is cut.
    helped
        The share of the design's queries that a feature helps; `es_skipping.layout.status` compares newer queries with
        it.
    packed
        Whether the blocks of each group and coarse partition share a file, which makes them faster to read. False makes
        each block a file, which earlier versions of this package can read too. Encrypted blocks are files always.

    Raises
    ------
    DatasetError
        The groups do not match the columns, a type cannot be stored, the path is not empty, or Spark cannot write
        there. The path then holds nothing readable.

    Examples
    --------
    >>> groups = (ColumnGroup(("day", "city"), cities), ColumnGroup(("price",), prices))    # doctest: +SKIP
    >>> write_groups(spark.table("sales"), groups, "/lake/sales_in_groups")                  # doctest: +SKIP
    >>> spark.read.format("es_skipping_groups").load("/lake/sales_in_groups")                # doctest: +SKIP
    """
    from pyspark.errors import PySparkException

    from es_skipping.build.source import Reading, Source, cloned_session, moved
    from es_skipping.spark.hadoop_files import files_of
    from es_skipping.spark.relations import delete_files

    if min_rows < 1 or not 1 <= partition_rows <= 1 << 24:
        raise ValueError(f"min_rows is {min_rows} and partition_rows {partition_rows}; both must be between 1 and 2^24")
    _check(df, groups)
    read_by, df = _read_by(df), moved(df, cloned_session(df.sparkSession, _LOSSLESS))
    replicated = any(group.masters for group in groups)
    spark = df.sparkSession
    root = free_place(spark, path, read_by)
    found = names(spark, root)
    left_behind = {name for name in found if MANIFEST not in found and _LEFT_BEHIND.fullmatch(name)}
    require_empty(path, found - left_behind)
    for name in left_behind:
        delete_tree(spark, f"{root}/{name}")
    try:
        df.limit(0).write.parquet(f"{root}/{_ROWS}")  # evaluate the features on the values that files will hold
        source = Source.open(spark, Reading((f"{root}/{_ROWS}",), schema=df.schema))
        conditions, refused = _conditions(source, groups)
        everything = tuple(dict.fromkeys(text for own in conditions for text in own))
        stored = tuple(
            StoredGroup(
                f"{_DIRECTORY}{at}",
                group.columns,
                group.masters if replicated else group.columns,
                tuple(own),
                tuple(own.values()),
            )
            for at, (group, own) in enumerate(zip(groups, conditions, strict=True))
        )
        rows = _kept(numbered(df, within, partition_rows), everything, f"{root}/{_ROWS}")
        built_with = evaluation(source, everything)
        written = GroupWriter(rows, root, stored, everything, min_rows).write()
        if packed:
            packs = packed_partitions(spark, root, stored, written)
            written, packed = packs.partitions, not packs.encrypted
            delete_files(spark, packs.replaced)
    except PySparkException as error:
        raise _not_written(path, error) from error
    partitions = tuple(replace(one, built_with=built_with) for one in written)
    manifest = GroupManifest(
        schema=source.schema,
        tuple_column=TUPLE,
        conditions=everything,
        groups=stored,
        partitions=partitions,
        helped=helped,
        min_rows=min_rows,
        within=tuple(within),
        partition_rows=partition_rows,
        packed=packed,
    )
    delete_tree(spark, f"{root}/{_ROWS}")
    files_of(root).write(MANIFEST, manifest.to_json())
    index_groups(spark, path)
    return _written(path, stored, partitions, refused)


def append_groups(df: DataFrame, path: str) -> WrittenGroups:
    """Append rows to a table in column groups as new coarse partitions, with the table's groups and features.

    Existing rows stay untouched, and a query sees all new rows or none. Two appends at once both succeed; an unfinished
    append stays invisible.

    Parameters
    ----------
    df
        A DataFrame of a classic session, with the table's columns in any order. It is computed twice.
    path
        The target of `write_groups`, `GSOP.write` or `GSOPR.write`.

    Returns
    -------
    WrittenGroups
        Describes the new rows.

    Raises
    ------
    DatasetError
        There is no such table, its columns or types differ, or Spark cannot write there.
    StoreError
        The store cannot be reached, or refused. Nothing was appended.

    Examples
    --------
    >>> today = spark.table("sales").where("day = current_date()")              # doctest: +SKIP
    >>> layout.append_groups(today, "/lake/sales_in_groups")                    # doctest: +SKIP
    """
    from pyspark.errors import PySparkException
    from pyspark.sql.types import StructType

    from es_skipping.build.source import Reading, Source, cloned_session, moved
    from es_skipping.spark.hadoop_files import files_of
    from es_skipping.spark.relations import delete_files

    _check_session(df)
    df = moved(df, cloned_session(df.sparkSession, _LOSSLESS))
    spark = df.sparkSession
    root, manifest = manifest_at(spark, path)
    schema = StructType.fromJson(dict(manifest.schema))
    # Compare types as text, which ignores the nullability of nested types.
    own = {field.name: field.dataType.simpleString() for field in schema.fields}
    given = {field.name: field.dataType.simpleString() for field in df.schema.fields}
    other = [name for name in sorted(own.keys() | given.keys()) if own.get(name) != given.get(name)]
    other += [name for name in given if df.columns.count(name) > 1]
    if other:
        there, now = own.get(other[0], "no column"), given.get(other[0], "no column")
        raise DatasetError(
            f"the rows do not fit {path}: {other[0]} is {there} there and {now} here; pass each of its columns once"
        )
    mark = f"added-{uuid.uuid4().hex[:12]}"
    kept = f"{root}/{_ROWS}_{mark}"
    try:
        rows = numbered(df.select(*map(quoted_name, own)), manifest.within, manifest.partition_rows)
        rows = _kept(rows, manifest.conditions, kept)
        built_with = evaluation(Source.open(spark, Reading((kept,), schema=schema)), manifest.conditions)
        writer = GroupWriter(rows, root, manifest.groups, manifest.conditions, manifest.min_rows, f"{mark}/")
        written = writer.write()
        if manifest.packed:
            packs = packed_partitions(spark, root, manifest.groups, written)
            written = packs.partitions
            delete_files(spark, packs.replaced)
        partitions = tuple(replace(one, built_with=built_with) for one in written)
    except PySparkException as error:
        raise _not_written(path, error) from error
    finally:
        delete_tree(spark, kept)
    # Publish first: if the store refuses, nothing was appended, and a second try appends the rows once.
    index_blocks(spark, path, root, replace(manifest, partitions=partitions))
    add_partitions(files_of(root), manifest, partitions)
    return _written(path, manifest.groups, partitions)


def _kept(rows: DataFrame, conditions: Sequence[str], place: str) -> DataFrame:
    """The numbered rows with their features' words, read from the temporary files."""
    from es_skipping.build.source import build_session

    rows = with_words(rows, conditions)
    rows.write.mode("append").parquet(place)
    return build_session(rows.sparkSession).read.schema(rows.schema).parquet(place)


def _written(
    path: str, groups: Sequence[StoredGroup], partitions: Sequence[Partition], refused: tuple[tuple[str, str], ...] = ()
) -> WrittenGroups:
    blocks = tuple(sum(len(one.blocks[at]) for one in partitions) for at in range(len(groups)))
    return WrittenGroups(path, sum(one.tuples for one in partitions), len(partitions), blocks, refused)


def _not_written(path: str, error: Exception) -> DatasetError:
    reason = first_line(error)
    return DatasetError(f"the column groups could not be written to {path}: {reason}")


def _check_session(df: DataFrame) -> None:
    if not hasattr(df.sparkSession, "_jsparkSession"):
        raise DatasetError("column groups need a classic session; this DataFrame belongs to Spark Connect")


def _check(df: DataFrame, groups: Sequence[ColumnGroup]) -> None:
    _check_session(df)
    replicated = any(group.masters for group in groups)
    masters = sorted(name for group in groups for name in (group.masters if replicated else group.columns))
    if masters != sorted(df.columns) or len(set(masters)) < len(masters):
        raise DatasetError(
            f"the groups have {'as masters ' if replicated else ''}the columns {', '.join(masters)}; each column of "
            f"{', '.join(sorted(df.columns))} must be in exactly one of them"
        )
    unknown = sorted({name for group in groups for name in group.columns} - set(df.columns))
    if unknown:
        raise DatasetError(f"the groups have the unknown column {unknown[0]}; the columns are {', '.join(df.columns)}")
    for field in df.schema.fields:
        if field.name.lower().startswith(OWN):
            raise DatasetError(f"rename column {field.name}: column groups reserve names like {OWN}*")
        _check_type(field.name, field.dataType)


def _read_by(df: DataFrame) -> set[str]:
    """The roots of the files that a DataFrame reads."""
    from es_skipping.build.listing import qualified
    from es_skipping.spark.relations import relation_facts

    try:
        return {str(root).rstrip("/") for root in relation_facts(df)["roots"]}
    except DatasetError:  # several file relations, or none
        files = {unquote(file).rpartition("/")[0] for file in df.inputFiles()}
        return {qualified(df.sparkSession, directory) for directory in files}


def _check_type(name: str, type: DataType) -> None:
    """Refuse types that the reader's vectors may not hold, such as unknown types of later Spark versions."""
    from pyspark.sql.types import ArrayType, MapType, StructType

    if isinstance(type, StructType):
        for field in type.fields:
            _check_type(name, field.dataType)
    elif isinstance(type, ArrayType):
        _check_type(name, type.elementType)
    elif isinstance(type, MapType):
        _check_type(name, type.keyType)
        _check_type(name, type.valueType)
    elif type.typeName() not in _PLAIN:
        raise DatasetError(f"column {name} has type {type.simpleString()}, which column groups cannot store")


def _conditions(
    source: Source, groups: Sequence[ColumnGroup]
) -> tuple[list[dict[str, int]], tuple[tuple[str, str], ...]]:
    """Each group's features as SQL, with their weights; and ``(feature, why)`` of those without SQL."""
    predicates = dict.fromkeys(feature.predicate for group in groups for feature in group.features)
    written = replace(source, format="parquet")  # the index describes the files to be written
    conditions = {predicate: condition_of(written, predicate) for predicate in predicates}
    found: list[dict[str, int]] = []
    for group in groups:
        own: dict[str, int] = {}
        for feature in group.features:
            condition = conditions[feature.predicate]
            if not isinstance(condition, str):
                own[condition.text] = own.get(condition.text, 0) + feature.weight
        found.append(own)
    refused = tuple((show(predicate), why) for predicate, why in conditions.items() if isinstance(why, str))
    return found, refused
