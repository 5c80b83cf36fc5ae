"""What the JVM says of a DataFrame's one relation: its facts, objects and rows, and expressions over its columns."""

from __future__ import annotations

import copy
import json
import tempfile
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from es_skipping.errors import DatasetError
from es_skipping.spark.bridge import jvm_api

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = [
    "TableSnapshot",
    "delete_files",
    "distinct_rows",
    "existing_files",
    "expression_tree",
    "footer_rows",
    "has_row_groups",
    "list_objects",
    "list_objects_again",
    "pack_files",
    "refuse_all_but_files",
    "relation_facts",
    "same_files",
    "table_snapshot",
]

_UNLIMITED: Final = (1 << 31) - 1


def relation_facts(df: DataFrame, snapshot: TableSnapshot | None = None) -> dict[str, Any]:
    """Facts about the one file relation that a DataFrame reads.

    Parameters
    ----------
    df
        A DataFrame of a classic session that reads one or several paths, or one table whose format Spark reads as
        files.
    snapshot
        Of the table; its schema is the one returned.

    Returns
    -------
    dict
        ``table`` (full name or None), ``roots`` (Hadoop's decoded text), ``format`` (short name), ``options`` (keys in
        lower case, without paths), ``dataSchema`` and ``partitionSchema`` (``StructType`` as parsed JSON), ``location``
        (class of Spark's file index).

    Raises
    ------
    DatasetError
        The DataFrame does not read exactly one file relation.
    """
    facts: dict[str, Any] = json.loads(_ask(df, "facts", _java(snapshot)))
    return facts


def refuse_all_but_files(df: DataFrame) -> None:
    """Raise `DatasetError` for a view, and for a DataFrame that changes the rows or columns of its files."""
    _ask(df, "refuseAllButFiles")


class TableSnapshot:
    """One snapshot of a table whose log lists its files; `table_snapshot` opens it.

    Parameters
    ----------
    df
        A DataFrame of the table, in the session that reads it.
    java
        The JVM's side.
    """

    def __init__(self, df: DataFrame, java: Any) -> None:
        self._spark = df.sparkSession
        self.java = java

    def rows(self, paths: Sequence[str] | None = None) -> DataFrame:
        """All rows that these files hold, those included that the table has deleted; None means all files."""
        from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame

        api = jvm_api(self._spark)
        if paths is None:
            return ClassicDataFrame(api.rows(self.java, None), self._spark)
        with tempfile.NamedTemporaryFile("w", prefix="es-skipping-", encoding="utf-8") as file:
            json.dump(list(paths), file)
            file.flush()
            return ClassicDataFrame(api.rows(self.java, file.name), self._spark)

    @property
    def id(self) -> str:
        """Delta's version or Iceberg's snapshot id."""
        return str(jvm_api(self._spark).snapshotId(self.java))

    @property
    def stamp(self) -> str | None:
        """Tells this snapshot from one with the same id in another table or log; None if nothing does."""
        found = jvm_api(self._spark).snapshotStamp(self.java)
        return None if found is None else str(found)

    def since(self, id: str, stamp: str) -> tuple[TableSnapshot, list[str]] | None:
        """The changes since an earlier snapshot, from the table's commits.

        Returns
        -------
        (TableSnapshot, list of str) or None
            This snapshot with the added files only, and the paths of removed files; None where the commits do not tell.
        """
        api = jvm_api(self._spark)
        found = api.since(self.java, id, stamp)
        if found is None:
            return None
        narrowed = copy.copy(self)
        narrowed.java = found
        return narrowed, json.loads(api.removed(found))

    def close(self) -> None:
        """Release what `rows` made; its frames can no longer be read."""
        jvm_api(self._spark).close(self.java)


def table_snapshot(df: DataFrame) -> TableSnapshot | None:
    """The current snapshot of the table that a DataFrame reads; None for plain files.

    Raises
    ------
    DatasetError
        The DataFrame does not read exactly one relation of files, or it reads a view, a branch or an older snapshot.
    """
    found = _ask(df, "snapshot")
    return None if found is None else TableSnapshot(df, found)


def list_objects(df: DataFrame, snapshot: TableSnapshot | None = None) -> Iterator[tuple[str, int, int]]:
    """Every object that an unfiltered scan of a DataFrame's relation reads, as Spark's own file index lists it.

    Parameters
    ----------
    df
        As for `relation_facts`.
    snapshot
        The table's snapshot to list.

    Returns
    -------
    iterator of (path, length, mtime)
        The path is Hadoop's decoded text, the modification time in milliseconds.

    Raises
    ------
    DatasetError
        The DataFrame does not read exactly one file relation.
    """
    file = _local_file()
    _ask(df, "objects", _java(snapshot), file.name)
    return _objects(file)


def list_objects_again(df: DataFrame) -> Iterator[tuple[str, int, int]] | None:
    """List the objects of `list_objects` again; None if Spark's file index cannot.

    New objects may be missing.
    """
    file = _local_file()
    return _objects(file) if _ask(df, "objectsNow", file.name) else None


def _local_file() -> Any:
    """A temporary file for a long answer of the JVM, which runs on this machine; closing it deletes it."""
    return tempfile.NamedTemporaryFile("r", prefix="es-skipping-", encoding="utf-8")


def _objects(file: Any) -> Iterator[tuple[str, int, int]]:
    with file:
        for line in file:
            yield from map(tuple, json.loads(line))


def existing_files(spark: SparkSession, paths: Sequence[str]) -> list[bool]:
    """Whether each of these files exists; true where the file system does not tell."""
    found: list[bool] = json.loads(jvm_api(spark).existingFiles(spark._jsparkSession, json.dumps(list(paths))))
    return found


def footer_rows(spark: SparkSession, paths: Sequence[str]) -> list[list[int] | None]:
    """For each of these Parquet files the number of rows of each row group; None where the footer does not tell."""
    found: list[list[int] | None] = json.loads(jvm_api(spark).footerRows(spark._jsparkSession, json.dumps(list(paths))))
    return found


def pack_files(
    spark: SparkSession, packs: Sequence[tuple[str, Sequence[str]]]
) -> list[tuple[str | None, list[tuple[int, int, int, int]]]]:
    """Copy the row groups of Parquet files into one file for each pack, in a Spark job.

    Parameters
    ----------
    packs
        ``(path without a suffix, files)``.

    Returns
    -------
    list of (path, [(first row group, row groups, rows, bytes)])
        The packed files, and in them each file's row groups. The path is None if the files are encrypted, so that their
        row groups cannot be copied.
    """
    found: list[Any] = json.loads(jvm_api(spark).packFiles(spark._jsparkSession, json.dumps(list(packs))))
    return [(path, list(map(tuple, places))) for path, places in found]


def delete_files(spark: SparkSession, paths: Sequence[str]) -> None:
    """Delete files in a Spark job; a missing one is fine."""
    jvm_api(spark).deleteFiles(spark._jsparkSession, json.dumps(list(paths)))


def has_row_groups(spark: SparkSession, roots: Sequence[str]) -> None:
    """Let scans of these directories leave out row groups; see ``io.esskipping.rowgroups.KnownRowGroups``."""
    jvm_api(spark).hasRowGroups(json.dumps(list(roots)))


def same_files(spark: SparkSession, files: Sequence[tuple[str, int, int]]) -> bool:
    """Whether these files of `list_objects` still exist with the same length and modification time."""
    return bool(jvm_api(spark).sameFiles(spark._jsparkSession, json.dumps(files)))


def expression_tree(projection: DataFrame) -> dict[str, Any]:
    """An expression over a relation's columns, as the optimized tree that a filter would carry.

    Parameters
    ----------
    projection
        The expression as the only selected column of a DataFrame that `relation_facts` accepts.

    Returns
    -------
    dict
        A tree of the protocol; its class is ``"Opaque"`` if the expression cannot be described.

    Raises
    ------
    DatasetError
        The DataFrame is not a plain projection of one file relation.
    """
    tree: dict[str, Any] = json.loads(_ask(projection, "tree"))
    return tree


def distinct_rows(df: DataFrame, limits: Sequence[int | None] | None = None) -> DataFrame | None:
    """Reduce a DataFrame inside the JVM to the distinct values per object and column.

    Parameters
    ----------
    df
        Its first column is the object's number, a ``bigint``; rows of one object are next to each other.
    limits
        For each other column, the largest useful number of distinct values per object. An object with more values
        yields slightly more than the limit, and may lack the rest, including nulls.

    Returns
    -------
    DataFrame or None
        Columns ``object, counts``, then those of ``df`` after its first. The first row of an object's chunk holds the
        chunk's counts: of its rows, and of each column's nulls and NaNs; the other rows hold null. A null among the
        values means nothing, and the values of one row are unrelated. None if a column's type is not supported.
    """
    from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame

    given = [None] * (len(df.columns) - 1) if limits is None else limits
    # The JVM compares values by their bits, so it counts 0.0 and -0.0 as two.
    enough = [_UNLIMITED if limit is None else min(limit + 2, _UNLIMITED) for limit in given]
    found = jvm_api(df.sparkSession).distinctRows(df._jdf, ",".join(map(str, enough)))
    return None if found is None else ClassicDataFrame(found, df.sparkSession)


def _java(snapshot: TableSnapshot | None) -> Any:
    return None if snapshot is None else snapshot.java


def _ask(df: DataFrame, question: str, *more: Any) -> Any:
    api = jvm_api(df.sparkSession)
    try:
        return getattr(api, question)(df._jdf, *more)
    except Exception as error:
        cause = _java_message(error, "IllegalArgumentException")
        if cause is None:
            raise
        raise DatasetError(f"this DataFrame cannot be indexed: {cause}") from None


def _java_message(error: Exception, class_name: str) -> str | None:
    """The message of a Java exception of that class, else None. PySpark translates only some exceptions."""
    if type(error).__name__ == class_name:
        return str(getattr(error, "desc", error)) or str(error)
    java = getattr(error, "java_exception", None)
    if java is not None and java.getClass().getSimpleName() == class_name:
        return str(java.getMessage())
    return None
