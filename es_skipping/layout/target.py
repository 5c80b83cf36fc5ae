"""Writes layouts, always to a location without data, so that a failure leaves the old state."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from es_skipping.errors import DatasetError
from es_skipping.layout.records import RECORD
from es_skipping.spark.failures import first_line
from es_skipping.stores.base import is_under

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from es_skipping.build.dataset import Dataset
    from es_skipping.build.source import Source

__all__ = [
    "append_blocks",
    "delete_tree",
    "finished",
    "free_place",
    "names",
    "not_appended",
    "refuse_protected",
    "require_empty",
    "write_blocks",
]

_LEFT_BEHIND: Final = frozenset({"_temporary", "_SUCCESS", RECORD})
"""Names that an unfinished write may leave and that Spark does not read."""
_UNFINISHED: Final = "_es_skipping_unfinished"
"""A marker that exists from before a write's first object until its end. If the driver dies while Spark commits, some
objects remain and look like a dataset."""
_WRITTEN: Final = re.compile(r"_.*|part-.*|[^=]+=.*")
"""Names that such a write may create: Spark's objects, and partition directories."""


def refuse_protected(dataset: Dataset) -> None:
    """Layouts index the conditions of queries, and keep them in a record beside the data, both in clear.

    Raises
    ------
    DatasetError
        The dataset has a protected index.
    """
    from es_skipping.lookup.withheld import Withheld
    from es_skipping.spark.services import store_of

    entry = store_of(dataset._spark).dataset(dataset.id)
    hidden = sorted(Withheld.from_log(entry.definition).columns) if entry is not None else []
    if hidden or dataset._protection[0] not in (None, "plain"):
        of = f" of {', '.join(hidden)}" if hidden else ""
        raise DatasetError(
            f"{dataset._as_given.name} has protected indexes{of}, and a layout would keep "
            "conditions of queries in clear: lay out a dataset without protected indexes, and protect the result"
        )


def write_blocks(source: Source, rows: DataFrame, path: str | None, table: str | None) -> str:
    """Write each partition of a DataFrame as one Parquet object.

    Returns
    -------
    str
        The root of the written objects, as Hadoop prints it.

    Raises
    ------
    DatasetError
        The target exists, lies in or around the dataset, or Spark cannot write it.
    """
    from pyspark.errors import PySparkException

    from es_skipping.layout.zeros import options_for_zeros
    from es_skipping.spark.relations import relation_facts

    # A partition is a block, which must not be cut.
    writer = rows.write.format("parquet").option("maxRecordsPerFile", 0).options(**options_for_zeros(source.df))
    if source.partition_columns:
        writer = writer.partitionBy(*source.partition_columns)
    try:
        if path is not None:
            root = free_place(rows.sparkSession, path, source.roots)
            _begin(rows.sparkSession, root, path)
            writer.mode("append").save(path)
            return root
        assert table is not None
        writer.mode("errorifexists").saveAsTable(table)
        roots: list[str] = relation_facts(rows.sparkSession.read.table(table))["roots"]
        return roots[0]
    except PySparkException as error:
        reason = first_line(error)
        raise DatasetError(f"the layout could not be written to {path or table}: {reason}") from error


def append_blocks(source: Source, rows: DataFrame) -> None:
    """Write each partition of a DataFrame as one more Parquet object of a laid-out dataset.

    Raises
    ------
    DatasetError
        Spark cannot write it.
    """
    from es_skipping.layout.zeros import options_for_zeros

    with not_appended(source):
        writer = rows.write.format("parquet").option("maxRecordsPerFile", 0).options(**options_for_zeros(rows))
        if source.partition_columns:
            writer = writer.partitionBy(*source.partition_columns)
        if source.table is None:
            writer.mode("append").save(source.roots[0])
        else:
            writer.mode("append").saveAsTable(source.table)


@contextmanager
def not_appended(source: Source) -> Iterator[None]:
    """Turns Spark's errors in the body into one that says that nothing was appended.

    Raises
    ------
    DatasetError
        Spark failed.
    """
    from pyspark.errors import PySparkException

    try:
        yield
    except PySparkException as error:
        reason = first_line(error)
        raise DatasetError(f"the rows could not be appended to {source.table or source.roots[0]}: {reason}") from error


def _begin(spark: SparkSession, root: str, path: str) -> None:
    from es_skipping.spark.hadoop_files import files_of

    found = names(spark, root)
    if _UNFINISHED in found:
        require_empty(path, {name for name in found if not _WRITTEN.fullmatch(name)})
        delete_tree(spark, root)
    else:
        require_empty(path, found - _LEFT_BEHIND)
    files_of(root).write(_UNFINISHED, b"")


def finished(root: str) -> None:
    """Mark the result of `write_blocks` as complete and indexed; before that another write may replace it."""
    from es_skipping.spark.hadoop_files import files_of

    files_of(root).delete(_UNFINISHED)


def free_place(spark: SparkSession, path: str, roots: Iterable[str]) -> str:
    """A path as Hadoop prints it.

    Raises
    ------
    DatasetError
        The path is one of the dataset's roots, or lies in or around one.
    """
    from es_skipping.build.listing import qualified

    root = qualified(spark, path)
    for other in roots:
        if is_under(root, [other]) or is_under(other, [root]):
            raise DatasetError(
                f"{path} is the dataset itself, or lies in or around it: choose a path outside, so that the dataset "
                "stays intact"
            )
    return root


def require_empty(path: str, found: set[str]) -> None:
    """Refuse a directory that is not empty.

    Raises
    ------
    DatasetError
        The directory holds names.
    """
    if found:
        raise DatasetError(f"{path} is not empty, it holds {min(found)}: write to a new path")


def names(spark: Any, root: str) -> set[str]:
    """The names in a directory; empty if it does not exist."""
    path = spark._jvm.org.apache.hadoop.fs.Path(root)
    system = path.getFileSystem(spark._jsparkSession.sessionState().newHadoopConf())
    if not system.exists(path):
        return set()
    return {str(status.getPath().getName()) for status in system.listStatus(path)}


def delete_tree(spark: Any, place: str) -> None:
    """Delete a directory with its contents."""
    path = spark._jvm.org.apache.hadoop.fs.Path(place)
    path.getFileSystem(spark._jsparkSession.sessionState().newHadoopConf()).delete(path, True)
