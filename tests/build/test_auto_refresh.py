"""Queries that list new objects have them indexed in the background, once, and never wait for it."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import es_skipping as esk
from es_skipping.build import auto_refresh
from es_skipping.build.dataset import Dataset
from es_skipping.build.results import RefreshResult
from tests.spark.objects_read import num_files
from tests.spark.skipping_on_off import age

pytestmark = pytest.mark.in_turn("on")

PATIENCE = 60.0


@pytest.fixture(params=["parquet", "elasticsearch"])
def on(request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path) -> Iterator[SparkSession]:
    """An indexed dataset of four files, in a session that refreshes what it uses each second."""
    if request.param == "elasticsearch":
        spark.conf.set("spark.es_skipping.store.url", request.getfixturevalue("elasticsearch_url"))
    folder = tmp_path / "d"
    spark.range(0, 400, 1, 4).write.parquet(str(folder))
    age(folder)
    spark.conf.set("spark.es_skipping.strict", "true")
    spark.conf.set("spark.es_skipping.registry.lifetime", "100ms")
    spark.conf.set("spark.es_skipping.autoRefresh", "true")
    spark.conf.set("spark.es_skipping.autoRefresh.interval", "100ms")
    esk.enable(spark)
    Dataset(spark, str(folder)).create_indexes(esk.MinMax("id"))
    yield spark
    spark.conf.set("spark.es_skipping.autoRefresh", "false")
    Dataset(spark, str(folder)).drop_indexes(all=True)


@pytest.fixture
def refreshes(monkeypatch: pytest.MonkeyPatch) -> list[RefreshResult]:
    """What each background refresh of the process did."""
    done: list[RefreshResult] = []

    class Noted(Dataset):
        def refresh(self, *args: object, **options: object) -> RefreshResult:
            done.append(super().refresh(*args, **options))  # type: ignore[arg-type]
            return done[-1]

    monkeypatch.setattr(auto_refresh, "Dataset", Noted)
    return done


def append(spark: SparkSession, folder: Path) -> None:
    """Four more files, old enough to be indexed."""
    before = set(folder.iterdir())
    spark.range(1_000, 1_400, 1, 4).write.mode("append").parquet(str(folder))
    for file in set(folder.iterdir()) - before:
        os.utime(file, (time.time() - 60, time.time() - 60))


def opened(spark: SparkSession, place: Path | str) -> int:
    """Of a folder, or of a table by its name."""
    rows = spark.table(place) if isinstance(place, str) else spark.read.parquet(str(place))
    found = rows.where("id = 7")
    assert [row.id for row in found.collect()] == [7]
    return sum(num_files(found))


def until_opened(spark: SparkSession, place: Path | str, expected: int) -> None:
    end = time.monotonic() + PATIENCE
    while (now := opened(spark, place)) != expected:
        assert time.monotonic() < end, f"a query still opens {now} files"
        time.sleep(0.2)


def test_a_query_of_new_files_has_them_indexed(on: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "d"
    append(on, folder)
    assert opened(on, folder) == 5, "the new files are not known yet"
    until_opened(on, folder, 1)


def test_what_is_known_is_not_refreshed(on: SparkSession, tmp_path: Path, refreshes: list[RefreshResult]) -> None:
    folder = tmp_path / "d"
    time.sleep(0.3)
    for _ in range(5):
        assert opened(on, folder) == 1
    time.sleep(0.5)
    assert refreshes == []
    append(on, folder)
    until_opened(on, folder, 1)
    assert [each.added for each in refreshes if each.added] == [4]


def test_once_in_an_interval(on: SparkSession, tmp_path: Path, refreshes: list[RefreshResult]) -> None:
    """A dataset that was just refreshed, here or elsewhere, waits."""
    folder = tmp_path / "d"
    on.conf.set("spark.es_skipping.autoRefresh.interval", "10min")
    Dataset(on, str(folder)).refresh()
    append(on, folder)
    for _ in range(3):
        assert opened(on, folder) == 5
        time.sleep(0.3)
    assert refreshes == []


def test_only_where_it_is_turned_on(on: SparkSession, tmp_path: Path, refreshes: list[RefreshResult]) -> None:
    folder = tmp_path / "d"
    on.conf.set("spark.es_skipping.autoRefresh", "false")
    append(on, folder)
    time.sleep(0.3)
    for _ in range(3):
        assert opened(on, folder) == 5
    time.sleep(0.5)
    assert refreshes == []


@pytest.mark.parametrize("reads", ["another time zone", "another schema", "a table in another time zone"])
def test_nothing_is_built_anew_for_another_session(
    on: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture, reads: str
) -> None:
    """Its queries read the dataset otherwise than the build: a refresh would serve it, and no longer the first one."""
    folder = tmp_path / "t"
    table = "zoned_t" if reads.startswith("a table") else None
    wider = "id BIGINT, ts TIMESTAMP" if reads == "another schema" else None

    def write(first: int, last: int, files: int) -> None:
        rows = on.range(first, last, 1, files).selectExpr("CAST(id AS INT) AS id", "timestamp_seconds(id * 1000) AS ts")
        into = rows.write.mode("append").option("path", str(folder))
        into.saveAsTable(table) if table else into.save()
        age(folder)

    write(0, 400, 4)
    dataset = Dataset(on, table=table) if table else Dataset(on, str(folder), schema=wider)
    dataset.create_indexes(esk.MinMax("id"), esk.MinMax("hour(ts)"))
    before = dataset._store().dataset(dataset.id)
    if wider is None:
        on.conf.set("spark.sql.session.timeZone", "Asia/Kathmandu")
    write(1_000, 1_100, 1)
    end = time.monotonic() + PATIENCE
    while not any("is not refreshed in the background" in record.message for record in caplog.records):
        assert time.monotonic() < end
        reader = on.read.schema(wider or "id INT, ts TIMESTAMP")
        (on.table(table) if table else reader.parquet(str(folder))).where("id = 7").collect()
        time.sleep(0.2)
    assert "other settings than when it was indexed: call refresh()" in caplog.text
    assert dataset._store().dataset(dataset.id) == before
    dataset.refresh()
    assert dataset.health().coverage == 1
    dataset.drop_indexes(all=True)
    on.sql("DROP TABLE IF EXISTS zoned_t")


def test_a_table_has_a_column_more(on: SparkSession) -> None:
    """The catalog says a table's schema, so that it is built anew: ORC may find columns by position."""
    on.sql("CREATE TABLE wider_t USING orc AS SELECT /*+ REPARTITION_BY_RANGE(4, id) */ id FROM range(400)")
    try:
        dataset = Dataset(on, table="wider_t")
        time.sleep(0.1)
        dataset.create_indexes(esk.MinMax("id"))
        on.sql("ALTER TABLE wider_t ADD COLUMN name STRING")
        on.sql("INSERT INTO wider_t SELECT id + 1000, 'new' FROM range(100)")
        until_opened(on, "wider_t", 1)
    finally:
        on.sql("DROP TABLE wider_t")


def test_a_dataset_that_is_gone_is_one_warning(
    on: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A query never fails of it, and is never slower than the look-up itself."""

    def refuse(*_: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(auto_refresh, "_refresh", refuse)
    folder = tmp_path / "d"
    append(on, folder)
    for _ in range(4):
        assert opened(on, folder) == 5
        time.sleep(0.3)
    told = [each.getMessage() for each in caplog.records if "in the background" in each.getMessage()]
    assert len(told) == 1 and "OSError: no space left" in told[0]
