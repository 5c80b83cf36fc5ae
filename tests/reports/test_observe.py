"""`observe`: what ran inside, all of it, and nothing else."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from pyspark import InheritableThread
from pyspark.sql import SparkSession

import es_skipping as esk
from es_skipping.errors import StoreUnavailable
from tests.reports.conftest import OBJECTS, ROWS
from tests.reports.memory_store import FailingStore

FIRST = "SELECT * FROM events WHERE id < 50"


def test_a_query_inside_is_reported(spark: SparkSession) -> None:
    with esk.observe(spark) as report:
        assert len(spark.sql(FIRST).collect()) == ROWS
    (scan,) = report.scans
    assert (scan.objects_total, scan.objects_skipped, scan.objects_read) == (OBJECTS, OBJECTS - 1, 1)
    assert 0 < scan.bytes_read < scan.bytes_total / 10
    assert scan.indexes == ("minmax(id)",)
    assert "id < 50" in scan.filter
    assert scan.reason is None
    assert not scan.failed
    assert scan.roots[0].endswith("/events")
    assert report.executions == (scan.execution,)
    assert scan.seconds > 0


def test_queries_before_and_after_are_not(spark: SparkSession) -> None:
    spark.sql(FIRST).collect()
    with esk.observe(spark) as report:
        pass
    spark.sql(FIRST).collect()
    assert report.executions == ()
    assert report.scans == ()


def test_a_session_that_does_not_skip_is_told(spark: SparkSession) -> None:
    esk.disable(spark)
    try:
        with esk.observe(spark) as report:
            spark.sql(FIRST).collect()
        assert report.note == "skipping is not enabled in this session; call es_skipping.enable(spark)"
        assert str(report).endswith(f"no scan did a look-up; {report.note}")
    finally:
        esk.enable(spark)


def test_a_report_is_current_inside_and_fixed_afterwards(spark: SparkSession) -> None:
    with esk.observe(spark) as report:
        assert report.scans == ()
        spark.sql(FIRST).collect()
        assert len(report.scans) == 1
        spark.sql("SELECT count(*) FROM events WHERE id >= 990").collect()
        assert len(report.scans) == 2
    assert len(report.executions) == 2
    assert report.objects_skipped == 2 * (OBJECTS - 1)


def test_values_are_there_when_an_exception_ended_the_block(spark: SparkSession) -> None:
    def block() -> None:
        nonlocal report
        with esk.observe(spark) as report:
            spark.sql(FIRST).collect()
            raise ZeroDivisionError

    report = esk.last_query(spark)
    with pytest.raises(ZeroDivisionError):
        block()
    assert report.objects_skipped == OBJECTS - 1
    with esk.observe(spark) as after:
        pass
    assert after.scans == ()


def test_a_query_that_fails_is_reported(spark: SparkSession) -> None:
    with pytest.raises(Exception, match="no such luck"), esk.observe(spark) as report:
        spark.sql("SELECT raise_error('no such luck') FROM events WHERE id < 50").collect()
    assert report.objects_skipped == OBJECTS - 1


def test_blocks_may_be_nested(spark: SparkSession) -> None:
    with esk.observe(spark) as outer:
        spark.sql(FIRST).collect()
        with esk.observe(spark) as inner:
            spark.sql(FIRST).collect()
        spark.sql(FIRST).collect()
    assert (len(outer.scans), len(inner.scans)) == (3, 1)


def test_every_scan_of_a_query_counts_once(spark: SparkSession) -> None:
    sql = """SELECT count(*) FROM events a JOIN events b ON a.id = b.id + 900
             WHERE b.id < 10 AND a.word IN (SELECT word FROM events WHERE id BETWEEN 100 AND 149)"""
    with esk.observe(spark) as report:
        spark.sql(sql).collect()
    assert len(report.scans) == 3
    assert len({scan.scan for scan in report.scans}) == 3
    assert sorted(scan.objects_read for scan in report.scans)[:2] == [1, 1]


def test_a_write_is_reported_with_what_it_read(spark: SparkSession, tmp_path: object) -> None:
    with esk.observe(spark) as report:
        spark.sql(FIRST).write.parquet(f"{tmp_path}/out")
    assert report.objects_skipped == OBJECTS - 1


def test_a_scan_of_something_else_says_that_it_is_not_indexed(spark: SparkSession, tmp_path: object) -> None:
    spark.range(10).write.parquet(f"{tmp_path}/plain")
    with esk.observe(spark) as report:
        spark.read.parquet(f"{tmp_path}/plain").where("id = 3").collect()
    (scan,) = report.scans
    assert (scan.dataset, scan.reason, scan.failed) == (None, "not indexed", False)


def test_a_failed_look_up_is_reported_with_its_reason(spark: SparkSession, store: FailingStore) -> None:
    store.error = StoreUnavailable("it is on holiday")
    with esk.observe(spark) as report:
        assert len(spark.sql(FIRST).collect()) == ROWS
    (scan,) = report.scans
    assert scan.failed
    assert report.failed
    assert "on holiday" in str(scan.reason)
    assert (scan.objects_total, scan.objects_skipped) == (OBJECTS, 0)


def test_nothing_skipped_has_a_reason(spark: SparkSession) -> None:
    with esk.observe(spark) as report:
        spark.sql("SELECT * FROM events WHERE word = 'w3'").collect()
        spark.sql("SELECT * FROM events WHERE id >= 0").collect()
    assert all(scan.reason and not scan.failed for scan in report.scans)
    assert len(report.scans) == 2


def test_the_report_tells_what_spark_opened(spark: SparkSession, events: str) -> None:
    df = spark.read.parquet(events).where("id BETWEEN 40 AND 60").select("_metadata.file_path")
    with esk.observe(spark) as report:
        files = {row.file_path for row in df.collect()}
    assert report.objects_read == len(files) == 2


# --- threads ------------------------------------------------------------------------------------------------------


def test_threads_that_observe_at_once_see_only_their_own(spark: SparkSession) -> None:
    threads, rounds = 6, 3
    together = threading.Barrier(threads)

    def work(number: int) -> list[tuple[int, int, str]]:
        seen = []
        for _ in range(rounds):
            together.wait()
            with esk.observe(spark) as report:
                for query in range(number % 3 + 1):
                    low = (number * 3 + query) * ROWS
                    spark.sql(f"SELECT * FROM events WHERE id BETWEEN {low} AND {low + ROWS - 1}").collect()
            assert all(f">= {(number * 3 + q) * ROWS} " in s.filter for q, s in enumerate(report.scans))
            seen.append(
                (len(report.executions), len(report.scans), ",".join(str(s.objects_read) for s in report.scans))
            )
        return seen

    with ThreadPoolExecutor(threads) as pool:
        found = list(pool.map(work, range(threads)))
    for number, seen in enumerate(found):
        ran = number % 3 + 1
        assert seen == [(ran, ran, ",".join(["1"] * ran))] * rounds


def test_another_thread_inside_the_block_is_not_reported(spark: SparkSession) -> None:
    with esk.observe(spark) as report:
        other = threading.Thread(target=lambda: spark.sql(FIRST).collect())
        other.start()
        other.join()
    assert report.scans == ()


def test_a_child_thread_is_reported(spark: SparkSession) -> None:
    with esk.observe(spark) as report:
        child = InheritableThread(target=lambda: spark.sql(FIRST).collect())
        child.start()
        child.join()
    assert len(report.scans) == 1


def test_a_child_that_outlives_the_block_changes_nothing_any_more(spark: SparkSession) -> None:
    go = threading.Event()
    with esk.observe(spark) as report:
        child = InheritableThread(target=lambda: go.wait() and spark.sql(FIRST).collect())
        child.start()
    go.set()
    child.join()
    assert report.scans == ()


def test_collecting_through_arrow_is_reported(spark: SparkSession) -> None:
    spark.conf.set("spark.sql.execution.arrow.pyspark.enabled", "true")
    with esk.observe(spark) as report:
        assert spark.sql(FIRST).toArrow().num_rows == ROWS
        assert len(list(spark.sql(FIRST).toLocalIterator())) == ROWS
    assert [scan.objects_read for scan in report.scans] == [1, 1]


def test_reading_outside_an_execution_is_reported(spark: SparkSession) -> None:
    with esk.observe(spark) as report:
        assert spark.sql(FIRST).rdd.count() == ROWS
    assert [scan.objects_read for scan in report.scans] == [1]


def test_without_pinned_threads_it_says_so_at_once(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_PIN_THREAD", "false")
    with pytest.raises(esk.EsSkippingError, match="PYSPARK_PIN_THREAD"), esk.observe(spark):
        pass


# --- what else must not go wrong ----------------------------------------------------------------------------------


def test_listeners_of_others_may_come_and_go(spark: SparkSession) -> None:
    context = spark.sparkContext._jsc.sc()
    listener = spark._jvm.org.apache.spark.scheduler.StatsReportListener()  # type: ignore[union-attr]
    context.addSparkListener(listener)
    context.removeSparkListener(listener)
    with esk.observe(spark) as report:
        spark.sql(FIRST).collect()
    assert len(report.scans) == 1
    context.listenerBus().waitUntilEmpty()


def test_no_report_shows_a_secret(spark: SparkSession) -> None:
    spark.conf.set("spark.es_skipping.store.password", "hunter-two")
    df = spark.sql(FIRST)
    explanation = esk.explain(df)
    with esk.observe(spark) as report:
        df.collect()
    shown = [repr(report), str(report), report._repr_html_(), repr(report.scans), str(explanation)]
    shown += [explanation._repr_html_(), repr(explanation.scans), str(esk.queries(spark).collect())]
    assert report.objects_skipped == OBJECTS - 1
    assert not any("hunter-two" in text for text in shown)


def test_scans_that_were_forgotten_are_counted(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    from es_skipping.reports.driver import Driver

    real = Driver.records
    monkeypatch.setattr(Driver, "records", lambda self, since=0: (real(self, since)[0], real(self, since)[1][1:]))
    with esk.observe(spark) as report:
        spark.sql(FIRST).collect()
        spark.sql(FIRST).collect()
    assert len(report.scans) == 1
    assert "dropped 1 scans of all threads since the block began" in str(report)
