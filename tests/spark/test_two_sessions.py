"""Two sessions of one process are independent: switch, store, functions, failures, and what they ask at one time."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

import es_skipping as esk
from tests.spark.objects_read import num_files
from tests.spark.skipping_on_off import age


@pytest.fixture
def path(base: SparkSession, tmp_path: Path) -> str:
    """Four objects of fifty numbers each."""
    place = str(tmp_path / "d")
    base.range(0, 200, 1, 4).write.parquet(place)
    age(place)
    return place


@pytest.fixture
def two(base: SparkSession, tmp_path: Path) -> Iterator[tuple[SparkSession, SparkSession]]:
    """Two sessions, each with a store of its own."""
    sessions = base.newSession(), base.newSession()
    for name, session in zip(("one", "other"), sessions, strict=True):
        session.conf.set("spark.es_skipping.store.url", (tmp_path / name).as_uri())
        session.conf.set("spark.es_skipping.store.timeout", "30s")
        session.conf.set("spark.es_skipping.query.budget", "60s")
    yield sessions
    for session in sessions:
        esk.disable(session)


def read(session: SparkSession, path: str, where: str) -> int:
    """How many files a query opens."""
    df: DataFrame = session.read.parquet(path).where(where)
    df.collect()
    return sum(num_files(df))


def test_the_switch_and_the_store_are_a_sessions_own(two: tuple[SparkSession, SparkSession], path: str) -> None:
    one, other = two
    esk.Dataset(one, path).create_indexes(esk.MinMax("id"))
    esk.enable(one)
    assert (read(one, path, "id = 7"), read(other, path, "id = 7")) == (1, 4), "only one of them skips"
    esk.enable(other)
    assert read(other, path, "id = 7") == 4, "its store knows nothing of the dataset"
    assert esk.list_indexes(other).count() == 0
    esk.Dataset(other, path).create_indexes(esk.ValueList("id"))
    assert read(other, path, "id <> 7 AND id = 60") == 1
    assert [row["type"] for row in esk.list_indexes(one).select("type").collect()] == ["MinMax"]
    esk.disable(one)
    assert (read(one, path, "id = 7"), read(other, path, "id = 7")) == (4, 1)


def test_a_dataset_that_is_dropped_in_one_is_there_in_the_other(
    two: tuple[SparkSession, SparkSession], path: str
) -> None:
    one, other = two
    for session in two:
        esk.Dataset(session, path).create_indexes(esk.MinMax("id"))
        esk.enable(session)
    esk.Dataset(one, path).drop_indexes(all=True)
    assert (read(one, path, "id = 7"), read(other, path, "id = 7")) == (4, 1)


def test_a_function_is_declared_in_one_session_alone(two: tuple[SparkSession, SparkSession], path: str) -> None:
    one, other = two
    esk.declare_function("tens", lambda number: number // 10, version="1", returns="bigint", spark=one)
    other.udf.register("tens", lambda number: number // 10, "bigint")
    store = one.conf.get("spark.es_skipping.store.url")
    other.conf.set("spark.es_skipping.store.url", store)
    esk.Dataset(one, path).create_indexes(esk.ValueList("tens(id)"))
    for session in two:
        esk.enable(session)
    assert (read(one, path, "tens(id) = 3"), read(other, path, "tens(id) = 3")) == (1, 4)


def test_a_store_that_fails_in_one_fails_in_it_alone(
    two: tuple[SparkSession, SparkSession], path: str, tmp_path: Path
) -> None:
    one, other = two
    esk.Dataset(other, path).create_indexes(esk.MinMax("id"))
    one.conf.set("spark.es_skipping.breaker.failures", "1")
    one.conf.set("spark.es_skipping.store.url", "http://127.0.0.1:9")
    for session in two:
        esk.enable(session)
    assert read(one, path, "id = 7") == 4
    assert read(one, path, "id = 7") == 4, "its breaker is open now"
    assert read(other, path, "id = 7") == 1, "and the other's is not"


def test_they_ask_at_the_same_time(two: tuple[SparkSession, SparkSession], path: str) -> None:
    one, _other = two
    esk.Dataset(one, path).create_indexes(esk.MinMax("id"))
    for session in two:
        esk.enable(session)
    with ThreadPoolExecutor(4) as pool:
        asked = [(session, n) for n in range(0, 200, 20) for session in two]
        found = list(pool.map(lambda pair: read(pair[0], path, f"id = {pair[1]}"), asked))
    assert found == [1, 4] * 10
