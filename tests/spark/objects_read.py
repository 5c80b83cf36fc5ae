"""Which objects a query opened, as Spark tells: the ``numFiles`` metric, and ``_metadata.file_path`` of the rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

from pyspark.sql import DataFrame

__all__ = [
    "batch_scans",
    "blocks_read",
    "file_indexes",
    "files_of_batches",
    "files_of_rows",
    "num_files",
    "readers_opened",
    "scans",
]


def num_files(df: DataFrame) -> list[int]:
    """``numFiles`` of each file scan in a DataFrame's executed plan, subqueries included; run its action first.

    A scan that adaptive execution replaced by an empty relation is not in the plan, and not in the list.
    """
    return [int(scan.metrics().apply("numFiles").value()) for scan in scans(df)]


def file_indexes(df: DataFrame) -> list[str]:
    """The class of the file index of each file scan in the executed plan."""
    return [str(scan.relation().location().getClass().getSimpleName()) for scan in scans(df)]


def blocks_read(df: DataFrame) -> list[int]:
    """How many blocks the tasks of each scan of column groups opened, smallest first; run the frame's action first."""
    return _of_groups(df, "blocksRead")


def readers_opened(df: DataFrame) -> list[int]:
    """The same of Parquet readers, each of which reads one block or several of a packed file."""
    return _of_groups(df, "readersOpened")


def _of_groups(df: DataFrame, metric: str) -> list[int]:
    found: dict[int, int] = {}
    for node in batch_scans(df):
        if "es_skipping_groups" in str(node.toString()):
            found[int(node.id())] = int(node.metrics().apply(metric).value())
    return sorted(found.values())


def scans(df: DataFrame) -> list[Any]:
    """The file scans of the executed plan, each once; those of the final plan where it is adaptive."""
    return _of_class(df, "FileSourceScanExec")


def batch_scans(df: DataFrame) -> list[Any]:
    """The same of scans that a table format brings."""
    return _of_class(df, "BatchScanExec")


def files_of_batches(df: DataFrame) -> list[set[str]]:
    """The names of the files in the input partitions of each DSv2 scan, which its tasks open; fewest first.

    Spark has no metric of them.
    """
    found = []
    for scan in batch_scans(df):
        names: set[str] = set()
        partitions = scan.inputPartitions()
        for i in range(partitions.size()):
            names |= {str(file.toPath().getName()) for file in partitions.apply(i).files()}
        found.append(names)
    return sorted(found, key=len)


def _of_class(df: DataFrame, name: str) -> list[Any]:
    found: dict[int, Any] = {}
    for node in _nodes(df._jdf.queryExecution().executedPlan()):
        if node.getClass().getSimpleName() == name:
            found[int(node.id())] = node
    return list(found.values())


def _nodes(node: Any) -> Iterator[Any]:
    name = node.getClass().getSimpleName()
    if name == "AdaptiveSparkPlanExec":
        yield from _nodes(node.executedPlan())
        return
    if name.endswith("QueryStageExec"):
        yield from _nodes(node.plan())
        return
    if name == "InMemoryTableScanExec":
        yield from _nodes(node.relation().cacheBuilder().cachedPlan())
        return
    yield node
    for children in (node.children(), node.subqueries()):
        for i in range(children.size()):
            yield from _nodes(children.apply(i))


def files_of_rows(df: DataFrame) -> set[str]:
    """Names of the files that a DataFrame's rows come from; it must still be a plain read (filters are fine)."""
    rows = df.select("_metadata.file_path").distinct().collect()
    return {unquote(row.file_path).rpartition("/")[2] for row in rows}
