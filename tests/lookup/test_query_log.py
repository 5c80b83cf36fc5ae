"""The query log through Spark: opt-in, what happened, the filter as it came; and never a query that suffers."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from elasticsearch import Elasticsearch
from pyspark.sql import DataFrame, SparkSession

import es_skipping as esk
from es_skipping.errors import DatasetError
from es_skipping.layout import QueryLog as WorkloadLog
from es_skipping.lookup.details import ScanDetail
from es_skipping.lookup.query_log import QueryLog
from es_skipping.lookup.request import ScanRequest
from es_skipping.lookup.verdict import read_filters
from es_skipping.predicates.show import show
from es_skipping.spark.bridge import all_records
from es_skipping.spark.services import service_of
from es_skipping.stores.base import MetadataStore
from es_skipping.stores.elasticsearch.names import DEFAULT_PREFIX, Names
from es_skipping.stores.elasticsearch.store import ElasticsearchStore
from es_skipping.stores.query_log import LoggedQuery
from es_skipping.stores.registry import open_store
from tests.spark.skipping_on_off import age
from tests.stores.elasticsearch.conftest import remove_query_log


@pytest.fixture
def log(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> QueryLog:
    """One that writes only when it is told."""
    service = service_of(spark)
    log = QueryLog(all_records, service.store, lambda: spark.sparkContext.applicationId)
    monkeypatch.setattr(log, "_thread", object())
    monkeypatch.setattr(service, "query_log", log)
    return log


@pytest.fixture
def on(spark: SparkSession, elasticsearch_url: str, tmp_path: Path) -> Iterator[SparkSession]:
    spark.conf.set("spark.es_skipping.store.url", elasticsearch_url)
    spark.range(0, 100, 1, 5).write.parquet(str(tmp_path / "d"))
    age(tmp_path / "d")
    dataset = esk.Dataset(spark, str(tmp_path / "d"))
    dataset.create_indexes(esk.MinMax("id"))
    esk.enable(spark)
    yield spark
    dataset.drop_indexes(all=True)
    with Elasticsearch(elasticsearch_url) as client:
        remove_query_log(client, DEFAULT_PREFIX)


def entries(url: str, path: Path) -> list[LoggedQuery]:
    with Elasticsearch(url) as client:
        client.indices.refresh(index=f"{Names().queries}-*", ignore_unavailable=True)
    return [entry for entry in ElasticsearchStore(url).logged_queries() if any(str(path) in r for r in entry.roots)]


def test_look_ups_are_logged_with_what_came_of_them(
    on: SparkSession, log: QueryLog, elasticsearch_url: str, tmp_path: Path
) -> None:
    path = str(tmp_path / "d")
    on.read.parquet(path).where("id = 3").collect()
    assert log.write() == 0
    assert entries(elasticsearch_url, tmp_path) == [], "nothing is logged unless it is asked for"

    on.conf.set("spark.es_skipping.queryLog.enabled", "true")
    on.read.parquet(path).where("id = 33").collect()
    on.read.parquet(path).where("id % 7 = 3").collect()
    assert log.write() == 0
    skipped, kept = entries(elasticsearch_url, tmp_path)
    assert (skipped.status, skipped.objects, skipped.objects_skipped, skipped.reason) == ("skipped", 5, 4, None)
    assert skipped.bytes is not None and skipped.bytes_skipped is not None and 0 < skipped.bytes_skipped < skipped.bytes
    assert skipped.indexes == ("minmax(id)",)
    assert skipped.application == on.sparkContext.applicationId
    assert skipped.lookup_seconds is not None and skipped.lookup_seconds > 0
    assert skipped.trees is not None
    assert [show(read_filters(trees)) for trees in skipped.trees] == [skipped.filter]
    assert "id = 33" in skipped.filter
    assert (kept.status, kept.objects_skipped) == ("nothing", 0)
    assert kept.reason


def test_what_is_logged_is_a_workload(on: SparkSession, log: QueryLog, tmp_path: Path) -> None:
    """Of an indexed dataset and of one that is not, with what lies below it; others do not count."""
    other = str(tmp_path / "other")
    on.range(0, 40, 1, 2).selectExpr("id", "id % 2 AS p").write.partitionBy("p").parquet(other)
    indexed, plain = on.read.parquet(str(tmp_path / "d")), on.read.parquet(other)
    with pytest.raises(DatasetError, match=r"the query log of .* has no query on"):
        WorkloadLog.from_query_log(plain)
    began = datetime.now(timezone.utc)
    on.conf.set("spark.es_skipping.queryLog.enabled", "true")
    indexed.where("id = 3 AND id % 7 = 3").collect()
    for bound in (5, 6):
        plain.where(f"id > {bound} AND p = 1").collect()
        on.read.parquet(other + "/p=1").where(f"id < {bound}").collect()
    assert log.write() == 0
    with Elasticsearch(on.conf.get("spark.es_skipping.store.url")) as client:
        client.indices.refresh(index=f"{Names().queries}-*")

    def items(df: DataFrame, **options: Any) -> list[set[str]]:
        found = WorkloadLog.from_query_log(df, **options)
        return [{show(item) for item in query.items} - {"id IS NOT NULL"} for query in found]

    assert items(plain) == [{"id > 5"}, {"id < 5"}, {"id > 6"}, {"id < 6"}]
    (one,) = items(indexed, since=began)
    assert "id = 3" in one
    with pytest.raises(DatasetError, match=r"the query log of .* has no query on"):
        items(indexed, since=datetime.now(timezone.utc) + timedelta(hours=1))


def test_a_log_that_cannot_be_written_costs_one_warning_and_no_query(
    spark: SparkSession, log: QueryLog, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The store in memory keeps no query log."""
    spark.conf.set("spark.es_skipping.store.url", f"memory://{tmp_path.name}")
    spark.range(0, 100, 1, 5).write.parquet(str(tmp_path / "d"))
    age(tmp_path / "d")
    esk.Dataset(spark, str(tmp_path / "d")).create_indexes(esk.MinMax("id"))
    esk.enable(spark)
    spark.conf.set("spark.es_skipping.queryLog.enabled", "true")
    caplog.set_level(logging.WARNING, "es_skipping")
    for _ in range(2):
        with esk.observe(spark) as report:
            assert spark.read.parquet(str(tmp_path / "d")).where("id = 3").count() == 1
        assert (report.objects_skipped, report.failed) == (4, False)
        assert log.write() == 0
    assert log.lost == 2
    (warning,) = [record.message for record in caplog.records if "query log" in record.message]
    assert "keeps no query log" in warning


def test_a_parquet_store_keeps_the_log_too(spark: SparkSession, log: QueryLog, tmp_path: Path) -> None:
    path = str(tmp_path / "d")
    spark.range(0, 100, 1, 5).write.parquet(path)
    esk.enable(spark)
    spark.conf.set("spark.es_skipping.queryLog.enabled", "true")
    df = spark.read.parquet(path)
    df.where("id = 3").collect()
    assert log.write() == 0
    (query,) = WorkloadLog.from_query_log(df)
    assert "id = 3" in str(query)


# --- without Spark --------------------------------------------------------------------------------------------------


def request(enabled: str = "true") -> ScanRequest:
    settings = {"spark.es_skipping.queryLog.enabled": enabled, "spark.es_skipping.store.url": "memory://nowhere"}
    return ScanRequest("1", (), "parquet", settings=settings)


def _opened(conf: Mapping[str, str]) -> MetadataStore:
    return open_store(conf["spark.es_skipping.store.url"])


def quiet_log(records: Any = lambda since: (since, [])) -> QueryLog:
    log = QueryLog(records, _opened, lambda: None)
    log._thread = object()  # type: ignore[assignment]
    return log


def test_a_note_costs_little_and_their_number_is_bounded() -> None:
    log = quiet_log()
    began = time.perf_counter()
    for n in range(10_000):
        log.note(request(), ScanDetail(str(n)))
    assert (time.perf_counter() - began) / 10_000 < 0.001
    assert log.lost == 6_000
    assert log.write() == 4_000, "their outcome is not known yet"
    assert log.write(wait=False) == 0


def test_a_jvm_that_is_gone_is_no_error(caplog: pytest.LogCaptureFixture) -> None:
    def gone(since: int) -> Any:
        raise ConnectionRefusedError("no JVM")

    log = quiet_log(gone)
    log.note(request(), ScanDetail("1"))
    log.note(request("perhaps"), ScanDetail("2"))
    assert log.write() == 0
    assert log.lost == 2
    assert len([record for record in caplog.records if "query log" in record.message]) == 1


def test_the_thread_writes_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    from es_skipping.lookup import query_log

    monkeypatch.setattr(query_log, "_SECONDS_BETWEEN_WRITES", 0.01)
    asked: list[int] = []

    def records(since: int) -> tuple[int, list[dict[str, Any]]]:
        asked.append(since)
        return since + 1, [{"scan": "1", "askMs": "1.5", "applyMs": "0.1", "status": "nothing"}] if since else []

    log = QueryLog(records, _opened, lambda: None)
    log.note(request(), ScanDetail("1"))
    deadline = time.monotonic() + 10
    while log.lost == 0 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert log.lost == 1, "written when its outcome came, to a store that keeps no query log"
    assert asked[:2] == [0, 1]


def test_a_write_ends_after_one_that_is_under_way() -> None:
    """Whoever writes in order to read the log finds what the thread had begun to write."""
    begun, go_on = threading.Event(), threading.Event()
    ended: list[str] = []

    def store(settings: Mapping[str, str]) -> MetadataStore:
        begun.set()
        assert go_on.wait(10)
        return _opened(settings)

    def write(name: str) -> None:
        log.write(wait=False)
        ended.append(name)

    log = QueryLog(lambda since: (since, []), store, lambda: None)
    log._thread = threading.current_thread()
    log.note(request(), ScanDetail("1"))
    threads = [threading.Thread(target=write, args=[name]) for name in ("first", "second")]
    threads[0].start()
    assert begun.wait(10)
    threads[1].start()
    threads[1].join(0.2)
    assert ended == []
    go_on.set()
    for thread in threads:
        thread.join(10)
    assert ended == ["first", "second"]
