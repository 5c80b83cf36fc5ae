"""Which objects a query opened, as Spark tells: the ``numFiles`` metric, and ``_metadata.file_path`` of the rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import unquote

from pyspark.sql import DataFrame, SparkSession

__all__ = [
    "batch_scans",
    "blocks_read",
    "cells_read",
    "file_indexes",
    "files_of_batches",
    "files_of_rows",
    "nodes_executed",
    "num_files",
    "num_files_by_branch",
    "readers_opened",
    "scans",
    "splits_read",
]


def num_files(df: DataFrame) -> list[int]:
    """``numFiles`` of each file scan in a DataFrame's executed plan, subqueries included; run its action first.

    A scan that adaptive execution replaced by an empty relation is not in the plan, and not in the list.
    """
    return [_files_of(scan) for scan in scans(df)]


def num_files_by_branch(df: DataFrame) -> list[int]:
    """The same in sum for each branch of a frame that is a union; of another frame, for all of it."""
    plan = df._jdf.queryExecution().executedPlan()
    while plan.getClass().getSimpleName() != "UnionExec":
        if plan.getClass().getSimpleName() == "AdaptiveSparkPlanExec":
            plan = plan.executedPlan()
        elif plan.children().size() == 1:
            plan = plan.children().head()
        else:
            return [sum(num_files(df))]
    return [sum(map(_files_of, _of_class(branch, "FileSourceScanExec"))) for branch in _each(plan.children())]


def _files_of(scan: Any) -> int:
    return int(scan.metrics().apply("numFiles").value())


def splits_read(df: DataFrame) -> int:
    """How many splits the tasks of an executed frame read, as Iceberg's own metric tells."""
    return sum(int(scan.metrics().apply("numSplits").value()) for scan in batch_scans(df))


def file_indexes(df: DataFrame) -> list[str]:
    """The class of the file index of each file scan in the executed plan."""
    return [str(scan.relation().location().getClass().getSimpleName()) for scan in scans(df)]


def blocks_read(df: DataFrame) -> list[int]:
    """How many blocks the tasks of each scan of column groups opened, smallest first; run the frame's action first."""
    return _of_groups(df, "blocksRead")


def readers_opened(df: DataFrame) -> list[int]:
    """The same of Parquet readers, each of which reads one block or several of a packed file."""
    return _of_groups(df, "readersOpened")


def cells_read(df: DataFrame) -> list[int]:
    """The same of the opened blocks' cells, those of row ids included where several groups are joined."""
    return _of_groups(df, "cellsRead")


def _of_groups(df: DataFrame, metric: str) -> list[int]:
    found: dict[int, int] = {}
    for node in batch_scans(df):
        if "es_skipping_groups" in str(node.toString()):
            found[int(node.id())] = int(node.metrics().apply(metric).value())
    return sorted(found.values())


def scans(df: DataFrame) -> list[Any]:
    """The file scans of the executed plan, each once; those of the final plan where it is adaptive."""
    return _of_class(df._jdf.queryExecution().executedPlan(), "FileSourceScanExec")


def batch_scans(df: DataFrame) -> list[Any]:
    """The same of scans that a table format brings."""
    return _of_class(df._jdf.queryExecution().executedPlan(), "BatchScanExec")


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


def _of_class(plan: Any, name: str) -> list[Any]:
    return list({int(node.id()): node for node in _leaves(plan) if node.getClass().getSimpleName() == name}.values())


def _leaves(plan: Any) -> Iterator[Any]:
    """Those of a plan and of its subqueries: each call into the JVM takes time, and a plan has few leaves."""
    for leaf in _each(plan.collectLeaves()):
        name = leaf.getClass().getSimpleName()
        if name == "AdaptiveSparkPlanExec":
            yield from _leaves(leaf.executedPlan())
        elif name.endswith("QueryStageExec"):
            yield from _leaves(leaf.plan())
        elif name == "InMemoryTableScanExec":
            yield from _leaves(leaf.relation().cacheBuilder().cachedPlan())
        else:
            yield leaf
    for subquery in _each(plan.subqueriesAll()):
        yield from _leaves(subquery)


def _each(sequence: Any) -> Iterator[Any]:
    for at in range(sequence.size()):
        yield sequence.apply(at)


def files_of_rows(df: DataFrame) -> set[str]:
    """Names of the files that a DataFrame's rows come from; it must still be a plain read (filters are fine)."""
    rows = df.select("_metadata.file_path").distinct().collect()
    return {unquote(row.file_path).rpartition("/")[2] for row in rows}


def nodes_executed(
    spark: SparkSession, statement: str, wanted: Callable[[str], bool], metric: str
) -> Iterator[tuple[Any, Any, int]]:
    """Run a statement, such as a MERGE of several queries; then some nodes of the plans that were executed for it.

    Parameters
    ----------
    wanted
        Of which names.

    Yields
    ------
    execution, node, count
        As Spark's page of SQL has them, and the sum of that metric.
    """
    store: Any = spark._jsparkSession.sharedState().statusStore()
    bus = spark._jsc.sc().listenerBus()  # type: ignore[union-attr]
    bus.waitUntilEmpty()
    known = store.executionsList()  # the last is the newest
    newest = known.last().executionId() if known.nonEmpty() else -1
    spark.sql(statement).collect()
    bus.waitUntilEmpty()
    for execution in [one for one in _each(store.executionsList()) if one.executionId() > newest]:
        values = store.executionMetrics(execution.executionId())
        for node in _each(store.planGraph(execution.executionId()).allNodes()):
            if wanted(node.name()):
                ids = [one.accumulatorId() for one in _each(node.metrics()) if one.name() == metric]
                texts = [values.apply(id) for id in ids if values.contains(id)]
                yield execution, node, sum(int(text.replace(",", "")) for text in texts)
