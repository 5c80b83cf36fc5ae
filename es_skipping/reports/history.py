"""Past queries: the last one of this thread, and all that the session keeps."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import TYPE_CHECKING, Final

from es_skipping.reports.driver import NOT_ENABLED, Driver
from es_skipping.reports.query import QueryReport
from es_skipping.reports.records import scan_report, scan_reports
from es_skipping.settings import PREFIX, SETTINGS, Settings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["last_query", "queries"]

_SCHEMA: Final = (
    "execution bigint, time timestamp, description string, dataset string, table string, roots array<string>, "
    "objects_total bigint, objects_skipped bigint, bytes_total bigint, bytes_skipped bigint, indexes array<string>, "
    "reason string, failed boolean, filter string, clause string, seconds double, table_format string, "
    "snapshot string, induced_by array<string>"
)
_KEPT: Final = PREFIX + "reports.kept"
_NO_EXECUTION: Final = "files listed outside of an execution, such as by inputFiles() or indicators"
_NOT_WATCHED: Final = "es_skipping records executions from now on; it did not record earlier ones"
_NO_SCAN: Final = "it reads no files that could be skipped, or an earlier execution of the same plan listed them"


def last_query(spark: SparkSession) -> QueryReport:
    """The last execution that this thread started in this session.

    Executions are recorded from `es_skipping.enable` on, or from the first call of a report. If none of an execution's
    scans did a look-up, ``scans`` is empty. A query that runs inside another, such as the insert of a ``CREATE TABLE
    AS``, belongs to the outer one.

    Parameters
    ----------
    spark
        The session.

    Returns
    -------
    QueryReport
        Empty if this thread has not started a query; its ``note`` says so.

    Notes
    -----
    PySpark pins each Python thread to a JVM thread, which identifies it. With ``PYSPARK_PIN_THREAD=false`` the result
    belongs to whichever JVM thread the call happens to use.

    Examples
    --------
    >>> spark.sql("SELECT 1").collect()                                # doctest: +SKIP
    >>> esk.last_query(spark).scans                                    # doctest: +SKIP
    ()
    """
    from es_skipping.spark.session import is_enabled

    driver = Driver(spark)
    if not driver.watching:
        driver.watch()
        return QueryReport.of((), (), _NOT_WATCHED)
    last = driver.last()
    if last is None:
        return QueryReport.of((), (), "this thread has not started a query in this session")
    inside = [execution.id for execution in driver.executions(root=last)]
    scans = scan_reports(driver.records()[1], [last, *inside], driver.details)
    if scans:
        return QueryReport.of((last,), scans)
    return QueryReport.of((last,), (), _NO_SCAN if is_enabled(spark) else NOT_ENABLED)


def queries(spark: SparkSession) -> DataFrame:
    """The scans of this session, one row each.

    Parameters
    ----------
    spark
        The session. ``spark.es_skipping.reports.kept`` limits the number of scans.

    Returns
    -------
    DataFrame
        One row per scan, oldest first: ``execution`` (Spark's id, as on the SQL page of its UI; null for a listing
        outside an execution), ``time`` (its start), ``description``, ``dataset``, ``table``, ``roots``,
        ``objects_total``, ``objects_skipped``, ``bytes_total``, ``bytes_skipped``, ``indexes``, ``reason``, ``failed``,
        ``filter``, ``clause``, ``seconds``; of a Delta or Iceberg table also ``table_format`` and ``snapshot``;
        ``induced_by``, as of `ScanReport`.

    Examples
    --------
    >>> esk.queries(spark).where("failed").select("time", "reason").show()   # doctest: +SKIP
    """
    from es_skipping.spark.classic import local_frame

    driver = Driver(spark)
    driver.watch()
    executions = {execution.id: execution for execution in driver.executions()}
    session = driver.session
    latest = {str(r["scan"]): r for r in driver.records()[1] if r.get("session") in (session, None)}
    kept = Settings({_KEPT: spark.conf.get(_KEPT, None) or SETTINGS["reports.kept"].default or ""})["reports.kept"]
    rows = []
    for record in list(latest.values())[-kept:]:
        scan = scan_report(record, driver.details)
        execution = executions.get(scan.execution or "")
        begun = execution.time if execution else record.get("time")
        rows.append(
            (
                int(scan.execution) if scan.execution else None,
                None if begun is None else datetime.fromtimestamp(int(begun) / 1000, timezone.utc),
                execution.description if execution else None if scan.execution else _NO_EXECUTION,
                scan.dataset,
                scan.table,
                list(scan.roots),
                scan.objects_total,
                scan.objects_skipped,
                scan.bytes_total,
                scan.bytes_skipped,
                list(scan.indexes),
                scan.reason,
                scan.failed,
                scan.filter,
                scan.clause,
                scan.seconds,
                scan.table_format,
                scan.snapshot,
                list(scan.induced_by),
            )
        )
    return local_frame(spark, rows, _SCHEMA)
