"""`last_query` and `queries`: whose the last execution was, whether or not a scan asked."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import pytest
from pyspark.sql import SparkSession

import es_skipping as esk
from es_skipping.errors import StoreUnavailable
from tests.reports.conftest import OBJECTS, ROWS
from tests.reports.memory_store import FailingStore

FIRST = "SELECT * FROM events WHERE id < 50"
T = TypeVar("T")


def in_a_new_thread(work: Callable[[], T]) -> T:
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(work).result()


def test_the_last_query_is_the_one_that_just_ran(spark: SparkSession) -> None:
    spark.sql(FIRST).collect()
    report = esk.last_query(spark)
    assert (report.objects_total, report.objects_skipped) == (OBJECTS, OBJECTS - 1)
    assert [scan.execution for scan in report.scans] == list(report.executions)
    spark.sql("SELECT * FROM events WHERE id BETWEEN 40 AND 60").collect()
    assert esk.last_query(spark).objects_read == 2


def test_a_query_without_a_scan_is_the_last_query_too(spark: SparkSession) -> None:
    spark.sql(FIRST).collect()
    first = esk.last_query(spark)
    spark.sql("SELECT 1").collect()
    report = esk.last_query(spark)
    assert report.scans == ()
    assert len(report.executions) == 1
    assert report.executions != first.executions
    assert report.note


def test_a_data_frame_collected_again_does_not_show_its_first_scan(spark: SparkSession) -> None:
    df = spark.sql(FIRST)
    df.collect()
    first = esk.last_query(spark)
    df.collect()
    again = esk.last_query(spark)
    assert again.executions != first.executions
    assert (len(first.scans), len(again.scans)) == (1, 0)


def test_a_thread_that_never_asked_before_finds_its_last_query(spark: SparkSession) -> None:
    def work() -> esk.reports.QueryReport:
        spark.sql("SELECT * FROM events WHERE id BETWEEN 40 AND 60").collect()
        return esk.last_query(spark)

    spark.sql(FIRST).collect()
    assert in_a_new_thread(work).objects_read == 2
    assert esk.last_query(spark).objects_read == 1


def test_threads_at_once_each_find_their_own(spark: SparkSession) -> None:
    threads = 6
    together = threading.Barrier(threads)

    def work(number: int) -> list[tuple[str, ...]]:
        found = []
        for _ in range(3):
            together.wait()
            low = number * ROWS
            spark.sql(f"SELECT * FROM events WHERE id BETWEEN {low} AND {low + ROWS - 1}").collect()
            together.wait()  # every thread's query is over before any looks back
            report = esk.last_query(spark)
            assert f">= {low} " in report.scans[0].filter
            assert report.objects_read == 1
            found.append(report.executions)
        return found

    with ThreadPoolExecutor(threads) as pool:
        found = [executions for each in pool.map(work, range(threads)) for executions in each]
    assert len(set(found)) == 3 * threads


def test_a_thread_that_ran_nothing_is_told_so(spark: SparkSession) -> None:
    spark.sql(FIRST).collect()
    report = in_a_new_thread(lambda: esk.last_query(spark))
    assert (report.executions, report.scans) == ((), ())
    assert "has not started a query" in str(report)


def test_another_session_of_the_thread_does_not_count(spark: SparkSession) -> None:
    spark.sql(FIRST).collect()
    last = esk.last_query(spark)
    other = spark.newSession()
    other.sql("SELECT 1").collect()
    assert esk.last_query(spark).executions == last.executions
    assert esk.last_query(other).executions != last.executions


def test_collecting_through_arrow_counts_as_the_calling_thread(spark: SparkSession) -> None:
    spark.conf.set("spark.sql.execution.arrow.pyspark.enabled", "true")
    spark.sql("SELECT 1").collect()
    spark.sql(FIRST).toArrow()
    assert esk.last_query(spark).objects_read == 1


def test_what_runs_inside_a_command_belongs_to_it(spark: SparkSession) -> None:
    spark.sql("DROP TABLE IF EXISTS copied")
    spark.sql("CREATE TABLE copied USING parquet AS SELECT * FROM events WHERE id < 50")
    report = esk.last_query(spark)
    spark.sql("DROP TABLE copied")
    assert report.objects_skipped == OBJECTS - 1


def test_a_failed_look_up_is_in_the_last_query(spark: SparkSession, store: FailingStore) -> None:
    store.error = StoreUnavailable("it is on holiday")
    spark.sql(FIRST).collect()
    report = esk.last_query(spark)
    assert report.failed
    assert "failed: StoreUnavailable: it is on holiday" in str(report)


def test_a_disabled_session_has_no_scans(spark: SparkSession) -> None:
    esk.disable(spark)
    spark.sql(FIRST).collect()
    report = esk.last_query(spark)
    assert len(report.executions) == 1
    assert report.scans == ()
    assert "not enabled" in str(report.note)


# --- queries ------------------------------------------------------------------------------------------------------


def test_queries_has_a_row_per_scan_of_this_session(spark: SparkSession) -> None:
    other = spark.newSession()
    other.read.parquet(spark.table("events").inputFiles()[0]).where("id = 1").collect()
    spark.sql(FIRST).collect()
    first = esk.last_query(spark)
    spark.sql("SELECT count(*) FROM events a JOIN events b USING (id) WHERE id < 100").collect()
    second = esk.last_query(spark)
    rows = [row for row in esk.queries(spark).collect() if row.execution >= int(first.executions[0])]
    assert [str(row.execution) for row in rows] == [*first.executions, *second.executions * 2]
    assert [row.objects_total - row.objects_skipped for row in rows] == [1, 2, 2]
    assert rows[0].indexes == ["minmax(id)"]
    asked = esk.explain(spark.sql(FIRST)).scans[0].datasets[0]
    assert (rows[0].filter, rows[0].clause) == (asked.filter, asked.clause)
    assert rows[0].clause == first.scans[0].clause
    assert "MinMax(id): a value" in rows[0].clause
    assert rows[0].time <= rows[1].time
    assert rows[0].dataset == first.scans[0].dataset


def test_queries_is_a_data_frame_with_types_even_without_rows(spark: SparkSession) -> None:
    df = esk.queries(spark.newSession())
    assert df.count() == 0
    assert dict(df.dtypes)["objects_skipped"] == "bigint"
    assert dict(df.dtypes)["time"] == "timestamp"


def test_looking_back_is_not_itself_a_scan(spark: SparkSession) -> None:
    spark.sql(FIRST).collect()
    with esk.observe(spark) as report:
        esk.queries(spark).collect()
        esk.last_query(spark)
    assert report.scans == ()


@pytest.mark.parametrize("kept", ["1", "2"])
def test_only_so_many_are_kept(spark: SparkSession, kept: str) -> None:
    for _ in range(3):
        spark.sql(FIRST).collect()
    spark.conf.set("spark.es_skipping.reports.kept", kept)
    assert esk.queries(spark).count() == int(kept)
