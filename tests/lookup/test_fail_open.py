"""Whatever is wrong with the store or an index: right rows, one warning, a report that counts it."""

from __future__ import annotations

import http.server
import json
import logging
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import es_skipping as esk
from es_skipping.lookup import guard
from es_skipping.lookup import lookup as one_lookup
from tests.services import forget_datasets, forget_look_ups, forget_stores
from tests.spark.objects_read import num_files
from tests.spark.skipping_on_off import age, warned

FILES = 5


@pytest.fixture(scope="module")
def path(base: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("open") / "d"
    base.range(0, 100, 1, FILES).selectExpr("id", "concat('w', id) AS word").write.parquet(str(path))
    age(path)
    return str(path)


@pytest.fixture(autouse=True)
def nothing_learnt(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """As in a process that did no look-up yet."""
    forget_look_ups()
    caplog.set_level(logging.WARNING, "es_skipping")
    yield
    forget_datasets()


def use(spark: SparkSession, url: str, timeout: str = "5s", **settings: str) -> None:
    spark.conf.set("spark.es_skipping.store.url", url)
    spark.conf.set("spark.es_skipping.store.timeout", timeout)
    for name, value in settings.items():
        spark.conf.set(f"spark.es_skipping.{name.replace('_', '.')}", value)
    esk.enable(spark)


def fails_open(spark: SparkSession, path: str, caplog: Any, *reasons: str) -> str:
    """Three queries: right rows of all files; one warning; each counted; strict raises. Returns the warning."""
    caplog.clear()
    for _ in range(2):
        with esk.observe(spark) as report:
            df = spark.read.parquet(path).where("id < 5")
            assert sorted(row.id for row in df.collect()) == [0, 1, 2, 3, 4]
        assert num_files(df) == [FILES]
        (scan,) = report.scans
        assert (scan.failed, scan.objects_skipped, scan.objects_total) == (True, 0, FILES)
        assert any(reason in (scan.reason or "") for reason in reasons), scan.reason
        assert report.failed
        assert esk.last_query(spark).scans[0].failed
    warnings = warned(caplog)
    assert len(warnings) == 1, warnings
    assert any(reason in warnings[0] for reason in reasons), warnings
    spark.conf.set("spark.es_skipping.strict", "true")
    with pytest.raises(Exception, match="(?s)" + "|".join(map(_quoted, reasons))):
        spark.read.parquet(path).where("id < 5").collect()
    spark.conf.set("spark.es_skipping.strict", "false")
    assert spark.read.parquet(path).where("id < 5").count() == 5
    return warnings[0]


def _quoted(text: str) -> str:
    import re

    return re.escape(text)


@contextmanager
def server(answer: Callable[[http.server.BaseHTTPRequestHandler], None]) -> Iterator[str]:
    """An HTTP server in this process."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: Any) -> None:
            pass

        def do_GET(self) -> None:
            length = int(self.headers.get("content-length") or 0)
            self.rfile.read(length)
            answer(self)

        do_POST = do_PUT = do_HEAD = do_DELETE = do_GET

    made = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=made.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{made.server_port}"
    finally:
        made.shutdown()
        made.server_close()
        thread.join()


def reply(
    status: int, body: bytes, kind: str = "application/json"
) -> Callable[[http.server.BaseHTTPRequestHandler], None]:
    def answer(handler: http.server.BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        handler.send_header("X-Elastic-Product", "Elasticsearch")
        handler.send_header("content-type", kind)
        handler.send_header("content-length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    return answer


def test_a_store_that_is_down(spark: SparkSession, path: str, caplog: Any) -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))  # bound and not listening: refused
        port = held.getsockname()[1]
        use(spark, f"http://127.0.0.1:{port}")
        warning = fails_open(spark, path, caplog, "StoreUnavailable", str(port))
    assert str(port) in warning


@contextmanager
def silent() -> Iterator[tuple[str, list[float]]]:
    """A server that takes connections and never says a word; with the moments at which somebody connected."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        seen: list[float] = []
        held: list[socket.socket] = []

        def accept() -> None:
            while True:
                try:
                    held.append(listening.accept()[0])
                except OSError:
                    return
                seen.append(time.monotonic())

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}", seen
        listening.shutdown(socket.SHUT_RDWR)
        for connection in held:
            connection.close()
        thread.join(5)


def test_a_store_that_never_answers_costs_one_wait(spark: SparkSession, path: str, caplog: Any) -> None:
    with silent() as (url, seen):
        use(spark, url, "700ms", breaker_failures="1", breaker_pause="60s")
        with esk.observe(spark) as report:
            df = spark.read.parquet(path).where("id < 5")
            union = df.union(spark.read.parquet(path).where("id >= 95")).union(
                spark.read.parquet(path).where("id = 50")
            )
            assert union.count() == 11
        scans = report.scans
        assert [scan.failed for scan in scans] == [True] * 3
        waits = [scan.store_seconds for scan in scans]
        assert 0.5 < max(waits) < 3, waits
        assert sorted(waits)[1] < 0.2, waits  # the breaker is open: nobody waits any more
        assert sum("the next try is in" in (scan.reason or "") for scan in scans) == 2
        connections = len(seen)
        for _ in range(3):
            assert df.count() == 5
        assert len(seen) == connections
    assert 1 <= len(warned(caplog)) <= 2  # the wait, and that it is the next try is in


def test_the_budget_of_one_query(spark: SparkSession, path: str) -> None:
    with silent() as (url, _):
        use(spark, url, "400ms", breaker_failures="1000", query_budget="500ms")
        with esk.observe(spark) as report:
            parts = [spark.read.parquet(path).where(f"id = {i}") for i in range(6)]
            union = parts[0]
            for part in parts[1:]:
                union = union.union(part)
            assert union.count() == 6
        assert [scan.failed for scan in report.scans] == [True] * 6
        assert sum(scan.store_seconds for scan in report.scans) < 3
        assert sum("budget" in (scan.reason or "") for scan in report.scans) >= 3


GARBAGE = {
    "html": reply(200, b"<html>hello</html>", "text/html"),
    "half of a JSON": reply(200, b'{"took": 3, "hits": {"hits": [{"_id": "a"'),
    "another JSON": reply(200, b'[1, 2, "three"]'),
    "nothing": reply(200, b""),
    "partial": reply(
        200,
        json.dumps(
            {"took": 1, "timed_out": True, "_shards": {"total": 2, "successful": 1, "failed": 1}, "hits": {"hits": []}}
        ).encode(),
    ),
    "error": reply(500, b'{"error": {"type": "boom", "reason": "all shards failed"}, "status": 500}'),
}


@pytest.mark.parametrize("name", GARBAGE)
def test_a_store_that_answers_garbage(spark: SparkSession, path: str, caplog: Any, name: str) -> None:
    with server(GARBAGE[name]) as url:
        use(spark, url, breaker_failures="1000")
        fails_open(spark, path, caplog, "Store", "unusable")


SECRET = "hunter2-never-shown"


def test_wrong_credentials_and_no_secret_anywhere(spark: SparkSession, path: str, caplog: Any, capfd: Any) -> None:
    asked: list[str] = []
    refuse = reply(401, b'{"error": {"type": "security_exception", "reason": "unable to authenticate"}, "status": 401}')

    def answer(handler: http.server.BaseHTTPRequestHandler) -> None:
        asked.append(handler.headers.get("authorization", ""))
        refuse(handler)

    with server(answer) as url:
        use(spark, url, store_user="ann", store_password=SECRET, breaker_failures="1000")
        warning = fails_open(spark, path, caplog, "401", "credential", "authenticate")
        assert any(value.startswith("Basic ") for value in asked)
        df = spark.read.parquet(path).where("id < 5")
        df.explain("formatted")
        df.collect()
        spark.conf.set("spark.es_skipping.store.token", SECRET)
        said = [
            warning,
            caplog.text,
            str(spark.sql("SET").collect()),
            str(spark.sql("SET -v").collect()),
            str(spark.sql("SET spark.es_skipping.store.password").collect()),
            str(spark.sql("SET spark.es_skipping.store.token").collect()),
            repr(esk.last_query(spark)),
            str(esk.last_query(spark)),
            esk.last_query(spark)._repr_html_(),
            str(esk.queries(spark).collect()),
            df._jdf.queryExecution().toString(),
            repr(esk.Dataset(spark, path)),
        ]
        for attempt in (
            lambda: str(esk.explain(df)),
            lambda: str(esk.Dataset(spark, path).create_indexes(esk.MinMax("id"))),
        ):
            try:
                said.append(attempt())
            except esk.EsSkippingError as error:
                said.append(str(error) + repr(error))
    out = capfd.readouterr()
    assert SECRET not in "\n".join([*said, out.out, out.err])


def test_python_raises(spark: SparkSession, path: str, caplog: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    esk.Dataset(spark, path).create_indexes(esk.MinMax("id"))

    def raising(*_: Any, **__: Any) -> Any:
        raise RuntimeError("a bug in the look-up")

    esk.enable(spark)
    with monkeypatch.context() as patch:
        patch.setattr(one_lookup, "clause_for", raising)
        spark.conf.set("spark.es_skipping.breaker.failures", "1000")
        fails_open(spark, path, caplog, "RuntimeError: a bug in the look-up")
    df = spark.read.parquet(path).where("id < 5")
    df.collect()
    assert num_files(df) == [1]  # and it works again


def test_a_store_that_was_damaged(spark: SparkSession, path: str, caplog: Any, tmp_path: Path) -> None:
    esk.Dataset(spark, path).create_indexes(esk.MinMax("id"))
    files = [file for file in (tmp_path / "store").rglob("*") if file.is_file()]
    assert files
    for file in files:
        file.write_bytes(b"garbage" + file.read_bytes()[:10])
    forget_look_ups()
    forget_stores()
    spark.conf.set("spark.es_skipping.breaker.failures", "1000")
    esk.enable(spark)
    fails_open(spark, path, caplog, "Store", "manifest", "segment")


def test_a_setting_that_cannot_be_used(spark: SparkSession, path: str, caplog: Any) -> None:
    use(spark, "http://user:hunter2@example:9200")
    warning = fails_open(spark, path, caplog, "SettingError")
    assert "hunter2" not in warning


def test_a_breaker_half_opens(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(guard.time, "monotonic", lambda: now[0])
    breaker = guard.Breaker()
    for _ in range(2):
        with pytest.raises(KeyError), breaker.attempt(2, 30):
            raise KeyError
    with pytest.raises(esk.StoreUnavailable, match="the next try is in 30 s"), breaker.attempt(2, 30):
        raise AssertionError("it is open")
    now[0] += 31
    with breaker.attempt(2, 30):
        with pytest.raises(esk.StoreUnavailable), breaker.attempt(2, 30):
            raise AssertionError("one tries, the others do not")
    with breaker.attempt(2, 30):
        pass


READS: dict[str, tuple[dict[str, str], str, dict[str, str]]] = {
    "another schema": ({}, "id STRING, word STRING", {}),
    "other reader options": ({"nullValue": "3"}, "id INT, word STRING", {}),
    "another setting": ({}, "id INT, word STRING", {"spark.sql.columnNameOfCorruptRecord": "word"}),
}


@pytest.mark.parametrize("name", READS)
def test_an_index_that_was_built_otherwise(spark: SparkSession, tmp_path: Path, caplog: Any, name: str) -> None:
    path = str(tmp_path / "csv")
    spark.range(0, 100, 1, FILES).selectExpr("id", "concat('w', id) AS word").write.csv(path)
    age(path)
    dataset = esk.Dataset(spark, path, format="csv", schema="id INT, word STRING")
    dataset.create_indexes(esk.MinMax("id"))
    options, schema, settings = READS[name]
    esk.enable(spark)
    plain = spark.read.schema("id INT, word STRING").csv(path).where("id < 5")
    assert plain.count() == 5
    plain.collect()
    assert num_files(plain) == [1]
    for key, value in settings.items():
        spark.conf.set(key, value)
    caplog.clear()
    for _ in range(2):
        df = spark.read.schema(schema).options(**options).csv(path).where("id < 5")
        assert len(df.collect()) == (4 if options else 5)
        assert num_files(df) == [FILES]
        (scan,) = esk.last_query(spark).scans
        assert (scan.objects_skipped, scan.objects_total) == (0, FILES)
        assert scan.unusable
        assert scan.unusable[0][1] in (scan.reason or "")
    warnings = warned(caplog)
    assert len(warnings) == 1, warnings
    assert scan.unusable[0][1] in warnings[0]
