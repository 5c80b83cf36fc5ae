"""Whatever goes wrong on the way, a query reads all its objects and is right; under the strict setting it says why."""

from __future__ import annotations

import json
import os
import struct
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from es_skipping.lookup.reply import unindexed
from es_skipping.spark import bridge
from es_skipping.stores.selection import KeyTable
from tests.spark.conftest import ENABLED
from tests.spark.objects_read import num_files
from tests.spark.row_oracle import Honest, skip_reply


@pytest.fixture(scope="module")
def path(base: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("failures") / "d"
    base.range(0, 100, 1, 5).write.parquet(str(path))
    return str(path)


def last_record(spark: SparkSession) -> dict[str, Any]:
    return bridge.all_records()[1][-1]


def raising(request: str) -> bytes:
    raise RuntimeError("the store is on fire")


def keys_cut_off(request: str) -> bytes:
    return skip_reply([[b"k" * 16]])[:-1]


def table_reply(id: str, file: bytes, size: int, ordinals: list[int], kind: int = 2) -> bytes:
    named = struct.pack(">BH", kind, len(id)) + id.encode() + struct.pack(">H", len(file)) + file
    listed = struct.pack(f">II{len(ordinals)}I", size, len(ordinals), *ordinals)
    return b"\x02\x01" + struct.pack(">I", 1) + named + listed


TABLE = KeyTable(b"k" * 32 + bytes(16) + b"l" * 16, np.array([True, False, False, True]))


def unknown_ordinal(request: str) -> bytes:
    """Of the second, which is nobody's any more."""
    return table_reply(TABLE.id, os.fsencode(TABLE.file()), 4, [0, 1])


REPLIES: dict[str, tuple[Callable[[str], Any], str]] = {
    "raises": (raising, "the store is on fire"),
    "empty": (lambda _: b"", "empty"),
    "no bytes": (lambda _: None, "empty"),
    "text": (lambda _: "oops", "ClassCastException"),
    "version": (lambda _: b"\x01\x00", "version 1"),
    "kind": (lambda _: b"\x02\x09", "unknown kind 9"),
    "cut off": (keys_cut_off, "cut off"),
    "no entry": (lambda _: b"\x02\x01", "cut off"),
    "too long": (lambda _: skip_reply([[], []]), "longer"),
    "huge count": (lambda _: b"\x02\x01\x00\x00\x00\x01\x00\xff\xff\xff\xff", "cut off"),
    "huge parts": (lambda _: b"\x02\x01\xff\xff\xff\xff", "cut off"),
    "half of the guarantors": (lambda _: b"\x02\x05\x00\x00\x00\x02" + b"k" * 16, "cut off"),
    "nothing beyond": (lambda _: b"\x02\x05\x00\x00\x00\x01" + b"k" * 16 + bytes(4), "cut off"),
    "more than beyond": (lambda _: b"\x02\x05" + bytes(13), "longer"),
    "no file of guarantors": (lambda _: b"\x02\x06/nowhere/at/all", "cannot be read"),
    "half a time": (lambda _: b"\x02\x04\x00\x00", "cut off, or longer"),
    "kind of part": (lambda _: b"\x02\x01\x00\x00\x00\x01\x07", "unknown kind 7"),
    "no table": (lambda _: table_reply("nowhere", b"/nowhere/at/all", 5, []), "table of identities cannot be read"),
    "another table": (lambda _: table_reply("other", os.fsencode(__file__), 5, []), "table of identities has"),
    "no such ordinal": (unknown_ordinal, "that is not in its table"),
    "no file": (lambda _: b"\x02\x02/nowhere/at/all", "cannot be read"),
    "failed": (lambda _: b"\x02\x03wrong credentials", "wrong credentials"),
}


@pytest.mark.every(2)
@pytest.mark.parametrize("name", REPLIES)
def test_a_bad_answer_keeps_all_objects(session: SparkSession, path: str, name: str) -> None:
    answer, reason = REPLIES[name]
    bridge.install(session, answer)
    session.conf.set(ENABLED, "true")
    df = session.read.parquet(path).where("id < 5")
    assert len(df.collect()) == 5
    assert num_files(df) == [5]
    record = last_record(session)
    assert (record["status"], record["skippedObjects"], record["objects"]) == ("failed", 0, 5)
    assert reason in record["reason"]


@pytest.mark.every(3)
@pytest.mark.parametrize("name", REPLIES)
def test_strict_raises(session: SparkSession, path: str, name: str) -> None:
    answer, reason = REPLIES[name]
    bridge.install(session, answer)
    session.conf.set(ENABLED, "true")
    session.conf.set("spark.es_skipping.strict", "true")
    with pytest.raises(Exception, match=reason):
        session.read.parquet(path).where("id < 5").collect()
    assert last_record(session)["status"] == "failed"
    session.conf.set("spark.es_skipping.strict", "false")
    assert session.read.parquet(path).where("id < 5").count() == 5


def test_an_answer_that_comes_too_late(session: SparkSession, path: str, tmp_path: Path) -> None:
    """All is read; and what the answer names on the disk does not stay there."""
    release, answered = threading.Event(), threading.Event()
    file = tmp_path / "keys"

    def hang(request: str) -> bytes:
        release.wait(30)
        file.write_bytes(bytes(8))
        answered.set()
        return b"\x02\x02" + str(file).encode()

    bridge.install(session, hang)
    session.conf.set(ENABLED, "true")
    session.conf.set("spark.es_skipping.store.timeout", "100ms")
    try:
        start = time.monotonic()
        assert session.read.parquet(path).where("id < 5").count() == 5
        assert time.monotonic() - start < 15
        assert "did not answer within 1100 ms" in last_record(session)["reason"]
        assert not file.exists()
    finally:
        release.set()
    assert answered.wait(30)
    deadline = time.monotonic() + 30
    while file.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not file.exists()


def test_a_reply_by_file_is_used_and_the_file_removed(
    session: SparkSession, path: str, honest: Honest, know: Callable[..., None], tmp_path: Path
) -> None:
    know(honest, path)
    file = tmp_path / "keys"

    def by_file(request: str) -> bytes:
        file.write_bytes(honest(request)[2:])
        return b"\x02\x02" + str(file).encode()

    bridge.install(session, by_file)
    session.conf.set(ENABLED, "true")
    df = session.read.parquet(path).where("id < 5")
    assert len(df.collect()) == 5
    assert num_files(df) == [1]
    assert not file.exists()
    assert last_record(session)["status"] == "skipped"


@pytest.mark.parametrize("keep", [False, True])
def test_a_reply_by_ordinals_in_a_table(
    session: SparkSession, path: str, honest: Honest, know: Callable[..., None], keep: bool
) -> None:
    """What is not in the table is read, also where the reply says what to keep."""
    know(honest, path)
    objects = sorted(honest.rows, key=lambda one: one.path)
    live = np.array([True, True, False, True, True])  # the third is nobody's
    table = KeyTable(b"".join(one.key for one in objects), live)
    ordinals = [1, 4] if keep else [0, 3]
    expected = {objects[n].path for n in (1, 2, 4)}

    def answer(request: str) -> bytes:
        return table_reply(table.id, os.fsencode(table.file()), 5, ordinals, 2 if keep else 1)

    bridge.install(session, answer)
    session.conf.set(ENABLED, "true")
    for _ in range(2):  # the second time the table is not read again
        df = session.read.parquet(path).where("id >= 0").select("_metadata.file_path")
        assert {row.file_path.replace("file:///", "file:/") for row in df.distinct().collect()} == expected
        assert last_record(session)["skippedObjects"] == 2
        Path(table.file()).unlink(missing_ok=True)


def test_nothing_to_skip_is_no_failure(session: SparkSession, path: str) -> None:
    bridge.install(session, lambda _: b"\x02\x00not indexed")
    session.conf.set(ENABLED, "true")
    assert session.read.parquet(path).where("id < 5").count() == 5
    assert (last_record(session)["status"], last_record(session)["reason"]) == ("nothing", "not indexed")


def test_one_warning_for_each_reason(session: SparkSession, path: str, tmp_path: Path) -> None:
    """Read from the log file of Spark itself, by way of an appender of its own."""
    jvm = session._jvm
    assert jvm is not None
    log4j = jvm.org.apache.logging.log4j
    context = log4j.LogManager.getContext(False)
    logger = context.getLogger("io.esskipping.scan.Bridge")
    file = tmp_path / "log"
    appender = (
        log4j.core.appender.FileAppender.newBuilder()
        .withFileName(str(file))
        .setName("test")
        .setImmediateFlush(True)
        .build()
    )
    appender.start()
    before = logger.getLevel()
    logger.addAppender(appender)
    logger.setLevel(log4j.Level.WARN)
    try:
        bridge.jvm_api(session).forgetWarnings()
        session.conf.set(ENABLED, "true")
        for attempt in range(4):
            bridge.install(session, lambda _, n=attempt: bytes((5 + n, 0)))
            assert session.read.parquet(path).where("id < 5").count() == 5
        bridge.install(session, lambda _: b"")
        assert session.read.parquet(path).where("id < 5").count() == 5
        bridge.install(session, lambda _: b"\x02\x03this one has warned itself")
        assert session.read.parquet(path).where("id < 5").count() == 5
    finally:
        logger.removeAppender(appender)
        logger.setLevel(before)
        appender.stop()
    lines = [line for line in file.read_text().splitlines() if "reads all its files" in line]
    assert len(lines) == 2
    assert "the reply has version 5" in lines[0]
    assert "the reply is empty" in lines[1]


def test_queries_at_once_keep_to_themselves(
    session: SparkSession, path: str, honest: Honest, know: Callable[..., None]
) -> None:
    know(honest, path)
    bridge.install(session, honest)
    session.conf.set(ENABLED, "true")
    wrong: list[str] = []
    since = bridge.all_records()[0]

    def run(worker: int) -> None:
        low = worker * 4
        df = session.read.parquet(path).where(f"id >= {low} AND id < {low + 4}")
        rows = sorted(row.id for row in df.collect())
        if rows != list(range(low, low + 4)) or num_files(df) != [1]:
            wrong.append(f"{worker}: {rows} {num_files(df)}")

    threads = [threading.Thread(target=run, args=(worker,)) for worker in range(24)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    records = [r for r in bridge.all_records(since)[1] if r["session"] == session._jsparkSession.sessionUUID()]
    assert len(records) == 24
    assert len({record["execution"] for record in records}) == 24
    assert {record["skippedObjects"] for record in records} == {4}


def test_deep_trees(session: SparkSession, path: str, honest: Honest, know: Callable[..., None]) -> None:
    know(honest, path)
    bridge.install(session, honest)
    session.conf.set(ENABLED, "true")
    deep = F.col("id")
    for _ in range(120):
        deep = F.abs(F.negative(deep))
    df = session.read.parquet(path).where((F.col("id") < 5) & (deep < 1000))
    assert len(df.collect()) == 5
    assert num_files(df) == [1]
    text = json.dumps(honest.requests[-1])
    assert "deeper than 200" in text
    chain = F.col("id") < 0
    for value in range(150):
        chain = chain | ((F.col("id") == value % 7) & (F.col("id") != value + 1000))
    df = session.read.parquet(path).where(chain)
    assert len(df.collect()) == 7
    assert num_files(df) == [1]


def test_a_tree_of_ten_thousand_levels_is_opaque(session: SparkSession, path: str) -> None:
    """Built on the driver's own classes: Spark's parser and optimizer would give up long before."""
    api = bridge.jvm_api(session)
    jvm = session._jvm
    assert jvm is not None
    expressions = jvm.org.apache.spark.sql.catalyst.expressions
    node = expressions.Literal.create(True, jvm.org.apache.spark.sql.types.DataTypes.BooleanType)
    for _ in range(10_000):
        node = expressions.Not(node)
    loader = api.getClass().getClassLoader()
    trees = loader.loadClass("io.esskipping.scan.ExpressionTrees")
    method = next(m for m in trees.getDeclaredMethods() if m.getName() == "write")
    method.setAccessible(True)
    arguments = session.sparkContext._gateway.new_array(jvm.java.lang.Object, 2)
    arguments[0] = node
    tree = json.loads(method.invoke(None, arguments))
    depth = 0
    while tree["c"] == "Not":
        tree, depth = tree["ch"][0], depth + 1
    assert tree["c"] == "Opaque"
    assert depth <= 200


def test_settings_are_the_sessions_own(base: SparkSession, path: str, honest: Honest) -> None:
    seen: list[dict[str, Any]] = []

    def answer(request: str) -> bytes:
        seen.append(json.loads(request))
        return b"\x02\x00"

    one, two = base.newSession(), base.newSession()
    for number, session in enumerate((one, two)):
        bridge.install(session, answer, ["spark.sql.session.timeZone", "spark.sql.no.such.setting"])
        session.conf.set(ENABLED, "true")
        session.conf.set("spark.es_skipping.store.url", f"http://host{number}:9200")
        session.conf.set("spark.sql.session.timeZone", ("Asia/Tokyo", "Europe/Berlin")[number])
    for session in (one, two):
        session.read.parquet(path).where("id < 5").count()
    assert [r["settings"]["spark.es_skipping.store.url"] for r in seen] == ["http://host0:9200", "http://host1:9200"]
    assert [r["settings"]["spark.sql.session.timeZone"] for r in seen] == ["Asia/Tokyo", "Europe/Berlin"]
    assert seen[0]["session"] != seen[1]["session"]
    assert "spark.sql.no.such.setting" not in seen[0]["settings"]
    assert seen[0]["roots"] == [f"file:{path}"]
    assert (seen[0]["v"], seen[0]["format"], seen[0]["objects"], seen[0]["table"]) == (2, "parquet", 5, None)
    assert [f["name"] for f in seen[0]["dataSchema"]["fields"]] == ["id"]


def test_what_is_not_indexed_is_not_asked_again_for_a_while(session: SparkSession, path: str) -> None:
    asked: list[str] = []
    seconds = 60.0

    def answer(request: str) -> bytes:
        asked.append(request)
        if len(asked) == 3:
            bridge.forget_unindexed()  # an index is built while this answer is on its way
        return unindexed(seconds)

    def scan() -> int:
        before = len(asked)
        assert session.read.parquet(path).where("id < 5").count() == 5
        assert (last_record(session)["status"], last_record(session)["reason"]) == ("nothing", "not indexed")
        return len(asked) - before

    bridge.install(session, answer)
    session.conf.set(ENABLED, "true")
    assert [scan(), scan(), scan()] == [1, 0, 0]
    bridge.forget_unindexed()
    assert [scan(), scan()] == [1, 0]
    session.conf.set("spark.es_skipping.store.url", "/another")
    assert [scan(), scan(), scan()] == [1, 1, 0], "what was forgotten meanwhile is not believed"
    seconds = 0.0
    session.conf.set("spark.es_skipping.store.url", "/a-third")
    assert [scan(), scan()] == [1, 1]
