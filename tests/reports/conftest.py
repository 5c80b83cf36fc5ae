"""One session with skipping on, one dataset of 20 objects, a store in memory."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import es_skipping as esk
from tests.reports.memory_store import MemoryStore

OBJECTS = 20
ROWS = 50


@pytest.fixture(scope="session")
def events(base: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    """``id`` 0 to 999, fifty to each of twenty files; ``word`` repeats in every file; written long enough ago."""
    path = tmp_path_factory.mktemp("data") / "events"
    ids = base.range(0, OBJECTS * ROWS, 1, OBJECTS)
    ids.selectExpr("id", "concat('w', id % 7) AS word").write.parquet(str(path))
    assert len(list(Path(path).glob("*.parquet"))) == OBJECTS
    time.sleep(2.5)
    return f"file:{path}"


@pytest.fixture(scope="module")
def memory(base: SparkSession, events: str) -> Iterator[MemoryStore]:
    """The store of every session here; it knows ``events`` by the minimum and maximum of ``id``."""
    from es_skipping.spark import session_store
    from es_skipping.spark.registry import registry

    kept = MemoryStore()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(session_store, "open_store", lambda *_: kept)
        registry.forget()
        builder = _session(base)
        esk.Dataset(builder, events).create_indexes(esk.MinMax("id"))
        yield kept
        registry.forget()


@pytest.fixture
def store(memory: MemoryStore) -> Iterator[MemoryStore]:
    yield memory
    memory.error = None


@pytest.fixture
def spark(base: SparkSession, store: MemoryStore, events: str) -> Iterator[SparkSession]:
    """A session of the test's own, in which ``events`` is a view of the indexed dataset."""
    session = _session(base)
    esk.enable(session)
    session.read.parquet(events).createOrReplaceTempView("events")
    yield session
    esk.disable(session)


def _session(base: SparkSession) -> SparkSession:
    session = base.newSession()
    session.conf.set("spark.es_skipping.store.url", "http://memory:1")
    session.conf.set("spark.es_skipping.breaker.failures", "1000000")
    return session
