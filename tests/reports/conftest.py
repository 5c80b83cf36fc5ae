"""One session with skipping on, one dataset of 20 objects, a store in memory."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import es_skipping as esk
from tests.reports.memory_store import STORE, FailingStore
from tests.services import forget_datasets

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
def memory(base: SparkSession, events: str) -> Iterator[FailingStore]:
    """The store of every session here; it knows ``events`` by the minimum and maximum of ``id``."""
    forget_datasets()
    dataset = esk.Dataset(_session(base), events)
    dataset.create_indexes(esk.MinMax("id"))
    yield STORE
    dataset.drop_indexes(all=True)


@pytest.fixture
def store(memory: FailingStore) -> Iterator[FailingStore]:
    yield memory
    memory.error = None


@pytest.fixture
def spark(base: SparkSession, store: FailingStore, events: str) -> Iterator[SparkSession]:
    """A session of the test's own, in which ``events`` is a view of the indexed dataset."""
    session = _session(base)
    esk.enable(session)
    session.read.parquet(events).createOrReplaceTempView("events")
    yield session
    esk.disable(session)


def _session(base: SparkSession) -> SparkSession:
    session = base.newSession()
    session.conf.set("spark.es_skipping.store.url", STORE.url)
    session.conf.set("spark.es_skipping.breaker.failures", "1000000")
    return session
