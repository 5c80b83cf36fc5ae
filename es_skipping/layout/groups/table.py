"""Tables in column groups (Sun, *Skipping-oriented Data Design for Large-Scale Analytics*, sections 4.2 and 4.5).

Rows are numbered once, within coarse partitions, and kept aside so; then each group is written from there in blocks of
its own order, each block with the tuple ids of its rows. The manifest comes last: without it nothing can be read.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

from es_skipping.errors import DatasetError
from es_skipping.indexes.features import WORD_BITS, Features, feature_words
from es_skipping.layout.cuts import PART_BITS
from es_skipping.layout.features.conditions import condition_of
from es_skipping.layout.groups.group import ColumnGroup
from es_skipping.layout.groups.manifest import MANIFEST, Block, GroupManifest, Partition, StoredGroup
from es_skipping.layout.groups.stored import blocks_of, manifest_at
from es_skipping.layout.passes import PLACE, coarse, histogram, placed, places
from es_skipping.layout.target import delete_tree, free_place, names, require_empty
from es_skipping.predicates.show import quoted_name, show

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import DataType

    from es_skipping.spark.source import Source

__all__ = ["FORMAT", "WrittenGroups", "index_groups", "write_groups"]

FORMAT: Final = "es_skipping_groups"
"""The name of the data source: ``spark.read.format(FORMAT).load(path)``."""
_TUPLE: Final = "__es_skipping_tuple"
_PARTITION: Final = "__es_skipping_partition"
_ROWS: Final = "es_skipping_rows"
_DIRECTORY: Final = "es_skipping_group_"
_LEFT_BEHIND: Final = re.compile(rf"{_ROWS}|{_DIRECTORY}\d+")
"""What a write that did not finish may leave."""
_ONE_ROW_GROUP: Final = 1 << 30
_PLAIN: Final = (
    "boolean", "byte", "short", "integer", "long", "float", "double", "decimal", "string", "char", "varchar", "binary",
    "date", "timestamp", "timestamp_ntz",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class WrittenGroups:
    """A table in column groups that was written.

    Parameters
    ----------
    place
        The path.
    rows, partitions
        How many rows, in how many coarse partitions.
    blocks
        How many blocks each group has.
    refused
        ``(feature, why)`` of the features that Spark or an index cannot evaluate: nothing is clustered by them.
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
) -> WrittenGroups:
    """Write a DataFrame in column groups, and index their blocks in the session's store.

    The rows of each group lie in blocks by the features of that group. A query that reads the table
    (``spark.read.format("es_skipping_groups").load(path)``, a view of it, or a table made by ``USING
    es_skipping_groups``) opens the groups that store its columns, and of all their blocks those that may hold a row for
    its whole filter.

    Parameters
    ----------
    df
        Of a classic session. It is computed twice, and needs not give its rows in the same order.
    groups
        Disjoint, and together all columns. Or layouts (GSOP-R): if any has masters, each column is the master of one of
        them, and a layout has, of its other columns, the rows that satisfy one of its features. Queries take each
        column from where they read least.
    path
        A place that is not there, or empty.
    min_rows
        Rows of a block: at least so many.
    within
        SQL expressions; rows with different values never share a coarse partition.
    partition_rows
        About so many rows are put together by one task, which holds the columns of all groups that a query needs but
        one in memory. Where a coarse partition has more, it is cut.
    helped
        Of the queries that the groups were designed for, the share that a feature helps: `es_skipping.layout.status`
        compares newer queries with it.

    Raises
    ------
    DatasetError
        The groups are not the columns, a type cannot be stored, there is something at the place, or Spark cannot write
        there. Nothing that can be read is there then.

    Examples
    --------
    >>> groups = (ColumnGroup(("day", "city"), cities), ColumnGroup(("price",), prices))    # doctest: +SKIP
    >>> write_groups(spark.table("sales"), groups, "/lake/sales_in_groups")                  # doctest: +SKIP
    >>> spark.read.format("es_skipping_groups").load("/lake/sales_in_groups")                # doctest: +SKIP
    """
    from pyspark.errors import PySparkException

    from es_skipping.spark.hadoop_files import files_of
    from es_skipping.spark.source import Reading, Source

    if min_rows < 1 or not 1 <= partition_rows <= 1 << 24:
        raise ValueError(f"min_rows is {min_rows} and partition_rows {partition_rows}; give at least 1, at most 2^24")
    _check(df, groups)
    replicated = any(group.masters for group in groups)
    spark = df.sparkSession
    root = free_place(spark, path, _read_by(df))
    found = names(spark, root)
    left_behind = {name for name in found if MANIFEST not in found and _LEFT_BEHIND.fullmatch(name)}
    require_empty(path, found - left_behind)
    for name in left_behind:
        delete_tree(spark, f"{root}/{name}")
    try:
        numbered = _numbered(df, within, partition_rows)
        numbered.write.parquet(f"{root}/{_ROWS}")
        source = Source.open(spark, Reading((f"{root}/{_ROWS}",), schema=numbered.schema))
        refused: list[tuple[str, str]] = []
        conditions = [_conditions(source, group, refused) for group in groups]
        everything = tuple(dict.fromkeys(text for own in conditions for text, _ in own))
        stored, by_partition = [], []
        for at, (group, own) in enumerate(zip(groups, conditions, strict=True)):
            masters = group.masters if replicated else group.columns
            stored.append(StoredGroup(f"{_DIRECTORY}{at}", group.columns, masters, tuple(text for text, _ in own)))
            writer = _GroupWriter(source, root, stored[-1], [weight for _, weight in own], everything, min_rows)
            by_partition.append(writer.write())
    except PySparkException as error:
        reason = str(error).strip().splitlines()[0]
        raise DatasetError(f"the column groups could not be written to {path}: {reason}") from error
    fields = [field for field in source.schema["fields"] if field["name"] not in (_TUPLE, _PARTITION)]
    manifest = GroupManifest(
        {**source.schema, "fields": fields}, _TUPLE, everything, tuple(stored), _partitions(path, by_partition), helped
    )
    delete_tree(spark, f"{root}/{_ROWS}")
    files_of(root).write(MANIFEST, manifest.to_json())
    index_groups(spark, path)
    blocks = tuple(sum(map(len, own.values())) for own in by_partition)
    return WrittenGroups(path, manifest.rows, len(manifest.partitions), blocks, tuple(refused))


def index_groups(spark: SparkSession, path: str) -> int:
    """Publish the union vectors of the blocks of a table in column groups to the session's store.

    `write_groups` does it; again it is needed where the store has lost them, or the session has another one. They are
    in the manifest, so no data is read.

    Returns
    -------
    int
        How many blocks were indexed.

    Raises
    ------
    DatasetError
        There is no such table.
    StoreError
        The store cannot be reached, or refused. The table can be read, without skipping.
    """
    from es_skipping.clauses.metadata import Values
    from es_skipping.spark.build import defined
    from es_skipping.spark.built_with import dataset_facts
    from es_skipping.spark.dataset import Dataset
    from es_skipping.spark.registry import registry
    from es_skipping.stores.base import DatasetDefinition, ObjectMetadata

    root, manifest = manifest_at(spark, path)
    dataset = Dataset(spark, path)
    store = dataset._store()
    if not manifest.conditions:
        return 0
    source = blocks_of(spark, root, manifest)
    index, _ = defined(source, Features(*manifest.conditions))
    definition = DatasetDefinition(
        id=dataset.id,
        roots=(root,),
        format=FORMAT,
        indexes=(index,),
        schema=json.dumps(manifest.schema, ensure_ascii=False, separators=(",", ":")),
        built_with=dataset_facts(FORMAT, {}, manifest.schema),
    )
    blocks = manifest.blocks
    found = {object: blocks.get(object.path[len(root) + 1 :]) for object in source.objects()}
    try:
        with store.change(definition, fresh=True) as change:
            change.put(
                ObjectMetadata(object, block.rows, {index.id: Values(frozenset(block.features), nulls=0)})
                for object, block in found.items()
                if block is not None
            )
            change.publish(())
    finally:
        registry.forget()
    return sum(block is not None for block in found.values())


def _check(df: DataFrame, groups: Sequence[ColumnGroup]) -> None:
    if not hasattr(df.sparkSession, "_jsparkSession"):
        raise DatasetError("column groups are written by a classic session; this DataFrame is of Spark Connect")
    replicated = any(group.masters for group in groups)
    masters = sorted(name for group in groups for name in (group.masters if replicated else group.columns))
    if masters != sorted(df.columns) or len(set(masters)) < len(masters):
        raise DatasetError(
            f"the groups have {'as masters ' if replicated else ''}the columns {', '.join(masters)}; each column of "
            f"{', '.join(sorted(df.columns))} must be in one of them, and in one only"
        )
    unknown = sorted({name for group in groups for name in group.columns} - set(df.columns))
    if unknown:
        raise DatasetError(f"the groups have the column {unknown[0]}, which is none of {', '.join(df.columns)}")
    for field in df.schema.fields:
        if field.name in (_TUPLE, _PARTITION):
            raise DatasetError(f"column {field.name} has the name of one that column groups have themselves")
        _check_type(field.name, field.dataType)


def _read_by(df: DataFrame) -> set[str]:
    """Where the files are that a DataFrame reads."""
    from es_skipping.spark.bridge import relation_facts
    from es_skipping.spark.listing import qualified

    try:
        return {str(root).rstrip("/") for root in relation_facts(df)["roots"]}
    except DatasetError:  # more than one relation of files, or none
        files = {unquote(file).rpartition("/")[0] for file in df.inputFiles()}
        return {qualified(df.sparkSession, directory) for directory in files}


def _check_type(name: str, type: DataType) -> None:
    """Refuse what the vectors of the reader may not hold; types of later Spark versions are not known yet."""
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
        raise DatasetError(f"column {name} is of type {type.simpleString()}, which cannot be stored in column groups")


def _numbered(df: DataFrame, within: Sequence[str], partition_rows: int) -> DataFrame:
    """The rows with the numbers of their coarse partitions, and in these their tuple ids."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    counts = {row["coarse"]: row["count"] for row in df.groupBy(coarse(within).alias("coarse")).count().collect()}
    cut: list[tuple[int, int, int]] = []
    first = 0
    for number in sorted(counts):
        pieces = math.ceil(counts[number] / partition_rows)
        cut.append((number, first, pieces))
        first += pieces
    known = df.sparkSession.createDataFrame(
        cut, "es_skipping_coarse bigint, es_skipping_first int, es_skipping_pieces int"
    )
    every = [F.col(quoted_name(name)) for name in df.columns]
    rows = df.select(F.struct(*every).alias("row"), coarse(within).alias("es_skipping_coarse"))
    rows = rows.withColumn("at", F.monotonically_increasing_id())
    rows = rows.join(F.broadcast(known), "es_skipping_coarse", "left")
    # Rows of a coarse partition that was not there when it was counted have one more.
    piece = F.col("es_skipping_first") + F.pmod(F.xxhash64("at"), F.col("es_skipping_pieces"))
    rows = rows.withColumn(_PARTITION, F.coalesce(piece, F.lit(first)).cast("int"))
    number = F.row_number().over(Window.partitionBy(_PARTITION).orderBy("at")) - 1
    return rows.select("row.*", number.alias(_TUPLE), F.col(_PARTITION))


def _conditions(source: Source, group: ColumnGroup, refused: list[tuple[str, str]]) -> list[tuple[str, int]]:
    """The group's features as SQL, with their weights."""
    found: dict[str, int] = {}
    for feature in group.features:
        text, why = condition_of(source, feature.predicate)
        if text is None:
            refused.append((show(feature.predicate), why))
        else:
            found[text] = found.get(text, 0) + feature.weight
    return list(found.items())


@dataclass(frozen=True)
class _GroupWriter:
    """Writes one group's blocks."""

    source: Source
    root: str
    group: StoredGroup
    weights: Sequence[int]
    everything: Sequence[str]
    min_rows: int

    def write(self) -> dict[int, list[Block]]:
        """The blocks by coarse partition."""
        from pyspark.sql import functions as F

        group, rows = self.group, self.source.df
        if group.columns == group.masters:
            return self._part("", rows, group.columns, group.conditions, self.weights)
        found: dict[int, list[Block]] = {}
        satisfied = F.lit(False)
        for text in group.conditions:
            satisfied = satisfied | F.coalesce(F.expr(text), F.lit(False))
        for number, blocks in (
            *self._part("whole/", rows.where(satisfied), group.columns, group.conditions, self.weights).items(),
            *self._part("masters/", rows.where(~satisfied), group.masters, (), ()).items(),
        ):
            found.setdefault(number, []).extend(blocks)
        return found

    def _part(
        self, part: str, rows: DataFrame, columns: Sequence[str], conditions: Sequence[str], weights: Sequence[int]
    ) -> dict[int, list[Block]]:
        from pyspark.sql import functions as F

        from es_skipping.spark.bridge import list_objects

        within = [quoted_name(_PARTITION)]
        clustered = histogram(rows, conditions, within).cluster(weights, self.min_rows)
        count = sum(len(one.blocks.rows) for one in clustered) + 1
        numbers = [int(number) for number in places(rows, count)]
        # By the tuple's number: what is counted here and what is written must be the same blocks.
        position = F.shiftleft(F.col(_PARTITION).cast("bigint"), PART_BITS) + F.col(_TUPLE)
        assigned = placed(rows, conditions, within, clustered, numbers, position)
        facts = {row[PLACE]: row for row in assigned.groupBy(PLACE).agg(*_facts(self.everything)).collect()}
        blocks = assigned.repartition(count, PLACE).sortWithinPartitions(_TUPLE)
        chosen = blocks.select(*(F.col(quoted_name(name)) for name in (*columns, _TUPLE)))
        directory = f"{self.root}/{self.group.directory}/{part}".rstrip("/")
        writer = chosen.write.option("maxRecordsPerFile", 0).option("parquet.block.size", _ONE_ROW_GROUP)
        writer.parquet(directory)
        written = self.source.df.sparkSession.read.schema(chosen.schema).parquet(directory)
        counted = written.groupBy(F.col("_metadata.file_name").alias("name")).count().collect()
        sizes = {row["name"]: row["count"] for row in counted}
        found: dict[int, list[Block]] = {}
        for path, _, _ in sorted(list_objects(written)):
            name = path.rpartition("/")[2]
            place = re.match(r"part-(\d+)-", name)
            fact = facts.pop(numbers[int(place[1])], None) if place else None
            if sizes.get(name, 0) != (fact["rows"] if fact else 0) or (fact and fact["first"] != fact["last"]):
                raise DatasetError(f"{path} is not the block that was planned; write the column groups again")
            if fact:
                block = Block(part + name, fact["rows"], part != "masters/", _features(fact, self.everything))
                found.setdefault(fact["first"], []).append(block)
        if facts:
            raise DatasetError(f"{len(facts)} blocks of {directory} were not written; write the column groups again")
        return found


def _facts(everything: Sequence[str]) -> list[Column]:
    from pyspark.sql import functions as F

    words = feature_words([F.expr(text) for text in everything])
    return [
        F.count(F.lit(1)).alias("rows"),
        F.min(_PARTITION).alias("first"),
        F.max(_PARTITION).alias("last"),
        *(F.bit_or(word).alias(f"w{at}") for at, word in enumerate(words)),
    ]


def _features(fact: Any, everything: Sequence[str]) -> tuple[int, ...]:
    return tuple(at for at in range(len(everything)) if fact[f"w{at // WORD_BITS}"] >> (at % WORD_BITS) & 1)


def _partitions(path: str, by_partition: Sequence[dict[int, list[Block]]]) -> tuple[Partition, ...]:
    """The coarse partitions; each group must have the same rows in each."""
    found = []
    for number in sorted({number for own in by_partition for number in own}):
        blocks = tuple(tuple(own.get(number, ())) for own in by_partition)
        rows = {sum(block.rows for block in own) for own in blocks}
        if len(rows) > 1:
            raise DatasetError(f"the column groups at {path} do not have the same rows; write them again")
        found.append(Partition(rows.pop(), blocks))
    return tuple(found)
