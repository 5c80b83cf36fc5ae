"""Measures what a query reads, by Spark's own metrics."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession

__all__ = ["Run", "run"]


@dataclass(frozen=True, slots=True)
class Run:
    """One execution of one query.

    Parameters
    ----------
    rows
        The multiset of rows it returned.
    objects, bytes
        Sums of the metrics ``numFiles`` and ``filesSize`` over the executed plan's file scans.
    seconds
        From the SQL text to the last row.
    """

    rows: Counter[Row]
    objects: int
    bytes: int
    seconds: float


def run(spark: SparkSession, sql: str) -> Run:
    """Run a query and read Spark's own metrics from the plan that was executed."""
    begun = time.perf_counter()
    frame = spark.sql(sql)
    rows = frame.collect()
    seconds = time.perf_counter() - begun
    scans = list(_file_scans(frame._jdf.queryExecution().executedPlan()))
    objects = sum(_metric(scan, "numFiles") for scan in scans)
    size = sum(_metric(scan, "filesSize") for scan in scans)
    return Run(Counter(rows), objects, size, seconds)


def _file_scans(plan: Any) -> Iterator[Any]:
    """The file scans of a physical plan, also inside adaptive execution and subqueries."""
    kind = plan.getClass().getSimpleName()
    if kind == "FileSourceScanExec":
        yield plan
    elif kind == "AdaptiveSparkPlanExec":
        yield from _file_scans(plan.executedPlan())
    elif kind.endswith("QueryStageExec"):
        yield from _file_scans(plan.plan())
    if not kind.startswith("Reused"):
        for child in _each(plan.children()):
            yield from _file_scans(child)
        for subquery in _each(plan.subqueries()):
            yield from _file_scans(subquery)


def _each(sequence: Any) -> Iterator[Any]:
    for position in range(sequence.size()):
        yield sequence.apply(position)


def _metric(scan: Any, name: str) -> int:
    metric = scan.metrics().get(name)
    return int(metric.get().value()) if metric.isDefined() else 0
