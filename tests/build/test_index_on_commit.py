"""A write that succeeded is indexed: before it returns where footers suffice, otherwise soon; failed writes are not."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import es_skipping as esk
from es_skipping.build import auto_refresh
from es_skipping.build.dataset import Dataset
from es_skipping.errors import StoreUnavailable
from es_skipping.spark.services import service_of
from tests.spark.objects_read import num_files
from tests.spark.skipping_on_off import age, warned

PATIENCE = 60.0


@pytest.fixture
def on(spark: SparkSession) -> SparkSession:
    spark.conf.set("spark.es_skipping.strict", "true")
    spark.conf.set("spark.es_skipping.indexOnCommit", "true")
    esk.enable(spark)
    return spark


def made(spark: SparkSession, folder: Path, *indexes: Any, by: tuple[str, ...] = ()) -> Dataset:
    frame = spark.range(0, 400, 1, 4).selectExpr("id", "id DIV 100 AS p", "'w' || id AS word")
    frame.write.partitionBy(*by).parquet(str(folder))
    age(folder)
    dataset = Dataset(spark, str(folder))
    dataset.create_indexes(*(indexes or (esk.MinMax("id"),)))
    return dataset


def opened(spark: SparkSession, path: Path, condition: str) -> tuple[list[int], int]:
    found = spark.read.parquet(str(path)).where(condition)
    return sorted(row.id for row in found.collect()), sum(num_files(found))


def rows(spark: SparkSession, low: int, high: int) -> Any:
    return spark.range(low, high, 1, 2).selectExpr("id", "id DIV 100 AS p", "'w' || id AS word")


def test_an_append_is_indexed_before_it_returns(on: SparkSession, tmp_path: Path) -> None:
    made(on, tmp_path / "d")
    rows(on, 1_000, 1_200).write.mode("append").parquet(str(tmp_path / "d"))
    assert opened(on, tmp_path / "d", "id = 7") == ([7], 1)
    assert opened(on, tmp_path / "d", "id = 1007") == ([1007], 1)
    rows(on, 50, 60).write.mode("overwrite").parquet(str(tmp_path / "d"))
    assert opened(on, tmp_path / "d", "id = 52") == ([52], 1)
    assert opened(on, tmp_path / "d", "id = 7") == ([], 0)


def test_other_indexes_follow_in_the_background(
    on: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[str] = []
    whole = auto_refresh._refresh
    monkeypatch.setattr(auto_refresh, "_refresh", lambda *args: (begun.append("now"), whole(*args)))
    dataset = made(on, tmp_path / "d", esk.MinMax("id"), esk.ValueList("word"))
    rows(on, 1_000, 1_200).write.mode("append").parquet(str(tmp_path / "d"))
    until(lambda: dataset.health().coverage == 1)
    assert begun == ["now"]
    until(lambda: opened(on, tmp_path / "d", "word = 'w1007'") == ([1007], 1))


def until(reached: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not reached():
        assert time.monotonic() < end
        time.sleep(0.1)


def test_partitions_that_are_overwritten(on: SparkSession, tmp_path: Path) -> None:
    """Dynamically, and by writing into the directory of one."""
    folder = tmp_path / "d"
    dataset = made(on, folder, by=("p",))
    on.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    rows(on, 200, 210).write.mode("overwrite").partitionBy("p").parquet(str(folder))
    assert opened(on, folder, "p = 2 AND id >= 0")[0] == list(range(200, 210))
    assert opened(on, folder, "id = 7") == ([7], 1)
    assert dataset.health().coverage == 1
    rows(on, 300, 305).drop("p").write.mode("overwrite").parquet(str(folder / "p=3"))
    assert (dataset.health().coverage, dataset.health().gone) == (1, 0)
    assert opened(on, folder, "id = 301")[0] == [301]


def test_tables_and_buckets(on: SparkSession) -> None:
    rows(on, 0, 200).write.bucketBy(2, "id").sortBy("id").saveAsTable("committed_t")
    try:
        dataset = Dataset(on, table="committed_t")
        time.sleep(0.1)
        dataset.create_indexes(esk.MinMax("id"))
        on.sql("INSERT INTO committed_t SELECT id + 1000, p, word FROM committed_t")
        assert dataset.health().coverage == 1
        found = on.table("committed_t").where("id = 1007")
        assert [row.id for row in found.collect()] == [1007]
    finally:
        on.sql("DROP TABLE committed_t")


def test_tables_that_are_created_again(on: SparkSession, caplog: pytest.LogCaptureFixture) -> None:
    """Spark writes the files of a new table before it is in the catalog."""
    rows(on, 0, 200).write.saveAsTable("created_t")
    try:
        dataset = Dataset(on, table="created_t")
        time.sleep(0.1)
        dataset.create_indexes(esk.MinMax("id"))
        rows(on, 1_000, 1_200).write.mode("overwrite").saveAsTable("created_t")
        assert dataset.health().coverage == 1
        rows(on, 2_000, 2_200).write.mode("append").saveAsTable("created_t")
        assert dataset.health().coverage == 1
        for id, found in ((7, []), (1_007, [1_007]), (2_007, [2_007])):
            query = on.table("created_t").where(f"id = {id}")
            assert ([row.id for row in query.collect()], sum(num_files(query))) == (found, len(found))
        on.sql("DROP TABLE created_t")
        on.sql("CREATE TABLE created_t USING parquet AS SELECT id + 3000 AS id FROM range(100)")
        assert dataset.health().coverage == 1
        assert not warned(caplog)
    finally:
        on.sql("DROP TABLE IF EXISTS created_t")


def test_columns_keep_their_order(on: SparkSession, tmp_path: Path) -> None:
    """Though Spark puts a partition column that files store too elsewhere when it reads one partition."""
    folder = tmp_path / "d"
    for part in (0, 1):
        rows(on, 100 * part, 100 * part + 100).write.parquet(str(folder / f"p={part}"))
    age(folder)
    dataset = Dataset(on, str(folder))
    dataset.create_indexes(esk.MinMax("id"))
    before = esk.read(on, dataset).columns
    rows(on, 100, 110).write.mode("overwrite").parquet(str(folder / "p=1"))
    assert dataset.health().coverage == 1
    assert esk.read(on, dataset).columns == before == on.read.parquet(str(folder)).columns
    assert [row.id for row in esk.read(on, dataset).where("id = 107").collect()] == [107]


def test_a_failed_write_publishes_nothing(
    on: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    dataset = made(on, tmp_path / "d")
    before = dataset._store().dataset(dataset.id)
    broken = rows(on, 1_000, 1_200).selectExpr("IF(id < 1150, id, raise_error('no')) AS id", "p", "word")
    with pytest.raises(Exception, match="no"):
        broken.write.mode("append").parquet(str(tmp_path / "d"))
    assert dataset._store().dataset(dataset.id) == before
    monkeypatch.setattr(Dataset, "refresh", lambda *args, **options: 1 / 0)
    rows(on, 1_000, 1_200).write.mode("append").parquet(str(tmp_path / "d"))
    assert warned(caplog) == [
        f"what was written to file:{tmp_path}/d is not indexed: ZeroDivisionError: division by zero"
    ]
    assert opened(on, tmp_path / "d", "id = 1007") == ([1007], 2), "a write that is not indexed is read"


def test_only_where_it_is_turned_on(on: SparkSession, tmp_path: Path) -> None:
    dataset = made(on, tmp_path / "d")
    on.conf.set("spark.es_skipping.indexOnCommit", "false")
    rows(on, 1_000, 1_200).write.mode("append").parquet(str(tmp_path / "d"))
    assert dataset.health().coverage < 1


def test_conditions_are_remembered_after_the_write(
    on: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are collected from the rows, of all files; footers still answer before the write returns."""
    folder, whole, returned = tmp_path / "d", auto_refresh._refresh, threading.Event()
    monkeypatch.setattr(auto_refresh, "_refresh", lambda *args: (returned.wait(PATIENCE), whole(*args)))
    dataset = made(on, folder)
    on.conf.set("spark.es_skipping.remember", "true")
    for _ in range(2):
        on.read.parquet(str(folder)).where("word LIKE '%77'").collect()
    assert service_of(on).query_log.write(wait=False) == 0
    rows(on, 1_000, 1_200).write.mode("append").parquet(str(folder))
    assert [row.type for row in dataset.describe().collect()] == ["MinMax"]
    assert dataset.health().coverage == 1
    returned.set()
    until(lambda: {row.type for row in dataset.describe().collect()} == {"MinMax", "Remembered"})


@pytest.fixture
def silent() -> Iterator[str]:
    """The URL of a server that takes requests and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


def test_a_write_does_not_wait_for_a_silent_store(
    on: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture, silent: str
) -> None:
    """It waits as long as a query does, and after some failures no longer."""
    on.conf.set("spark.es_skipping.store.url", silent)
    on.conf.set("spark.es_skipping.store.timeout", "500ms")
    on.conf.set("spark.es_skipping.breaker.failures", "2")
    begun = time.monotonic()
    for _ in range(4):
        rows(on, 0, 10).write.mode("append").parquet(str(tmp_path / "d"))
    assert time.monotonic() - begun < 30
    assert len([text for text in warned(caplog) if "is not indexed: StoreUnavailable" in text]) == 4
    assert len([text for text in warned(caplog) if "the store failed 2 times in a row" in text]) == 2


def test_a_store_that_falls_silent_while_its_list_of_datasets_is_known(
    on: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "d"
    dataset = made(on, folder)
    on.conf.set("spark.es_skipping.store.timeout", "3s")
    assert opened(on, folder, "id = 7") == ([7], 1), "the list is known"
    asked: list[float | None] = []

    def silent(*args: Any, timeout: float | None = None, **options: Any) -> Any:
        asked.append(timeout)
        raise StoreUnavailable("no answer")

    with monkeypatch.context() as broken:
        broken.setattr(type(dataset._store()), "datasets", silent)
        rows(on, 1_000, 1_200).write.mode("append").parquet(str(folder))
    assert asked == [3.0], "a query's patience, and nothing else was asked"
    assert [text.rpartition(" is not indexed: ")[2] for text in warned(caplog)] == ["StoreUnavailable: no answer"]
    assert opened(on, folder, "id = 1007")[0] == [1007]
