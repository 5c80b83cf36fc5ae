"""Reports on exactly the queries that a block of code runs."""

from __future__ import annotations

import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from es_skipping.errors import EsSkippingError
from es_skipping.reports.driver import NOT_ENABLED, Driver
from es_skipping.reports.query import QueryReport, Seen
from es_skipping.reports.records import scan_report

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["observe"]


@contextmanager
def observe(spark: SparkSession) -> Iterator[QueryReport]:
    """Report on the queries that run inside a block.

    The report contains the queries of the thread that entered the block, and of threads that inherit its local
    properties: Spark's own, and those started by `pyspark.InheritableThread` or `pyspark.inheritable_thread_target`. It
    never contains queries of other threads. Blocks may be nested; each reports on everything inside.

    Parameters
    ----------
    spark
        The session, or any other of the same application.

    Yields
    ------
    QueryReport
        Up to date inside the block; fixed when the block ends, also by an exception.

    Raises
    ------
    EsSkippingError
        Threads cannot be distinguished: ``PYSPARK_PIN_THREAD=false`` is set, or this Spark does not support a listener.

    Examples
    --------
    >>> with esk.observe(spark) as report:                             # doctest: +SKIP
    ...     spark.sql("SELECT count(*) FROM events WHERE ts > '2026-01-01'").collect()
    >>> report.objects_skipped, report.objects_total                   # doctest: +SKIP
    (19, 20)
    """
    driver = Driver(spark)
    if not driver.pinned:
        raise EsSkippingError(
            "PYSPARK_PIN_THREAD is false, so Python threads share JVM threads and their queries cannot be "
            "distinguished; leave it at its default, true"
        )
    driver.watch()
    name = uuid.uuid4().hex
    before, _ = driver.records(sys.maxsize)
    report = QueryReport(lambda: _seen(spark, driver, name, before))
    driver.begin(name)
    try:
        yield report
    finally:
        driver.end(name)
        report.close()


def _seen(spark: SparkSession, driver: Driver, name: str, before: int) -> Seen:
    from es_skipping.spark.session import is_enabled

    executions = {execution.id: execution for execution in driver.executions(observer=name)}
    last, records = driver.records(before)
    lost = last - before - len(records)
    note = f"the session dropped {lost} scans of all threads since the block began" if lost else None
    found = {}
    for record in records:
        if record.get("execution") is None:
            mine = name in str(record.get("observers") or "").split(",")
        else:
            mine = str(record["execution"]) in executions
        if mine:
            found[str(record["scan"])] = scan_report(record, driver.details)
    if executions and not found and note is None and not is_enabled(spark):
        note = NOT_ENABLED
    tops = tuple(execution.id for execution in executions.values() if execution.root == execution.id)
    return tops or tuple(executions), tuple(found.values()), note
