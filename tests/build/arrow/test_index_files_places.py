"""`index_files` on S3 and under a metadata budget: Spark builds the same there, and skips by it."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import es_skipping as esk
from es_skipping.settings import Settings
from es_skipping.stores.registry import open_store
from tests.build.arrow.test_index_files import built, old, zone_of
from tests.s3_server import Server
from tests.spark.objects_read import num_files


def rows(file: int) -> pa.Table:
    """Values of which only some fit into a small budget."""
    ids = range(100 * file, 100 * file + 100)
    return pa.table({"id": ids, "city": [f"city number {id}" for id in ids], "day": [f"d{file}"] * 100})


@pytest.mark.parametrize("budget", ["800b", "150b", "20b"])
def test_a_budget_reduces_what_it_reduces_in_spark(spark: SparkSession, tmp_path: Path, budget: str) -> None:
    folder = tmp_path / "lake"
    folder.mkdir()
    for file in range(3):
        pq.write_table(rows(file), folder / f"{file}.parquet")
    old(folder)
    first, later = esk.ValueList("city"), (esk.ValueList("id"), esk.MinMax("day"))
    settings = {"spark.es_skipping.metadata.budget": budget, "spark.es_skipping.store.timeout": "30s"}
    for key, value in settings.items():
        spark.conf.set(key, value)
    spark.conf.set("spark.es_skipping.store.url", (tmp_path / "of spark").as_uri())
    dataset = esk.Dataset(spark, str(folder))
    by_spark = [dataset.create_indexes(first), dataset.create_indexes(*later)]
    url = (tmp_path / "of arrow").as_uri()
    by_arrow = [
        esk.index_files(folder, *indexes, store=url, settings=settings, zone=zone_of(spark))
        for indexes in ((first,), later)
    ]
    assert [result.degraded for result in by_arrow] == [result.degraded for result in by_spark]
    assert by_arrow[0].degraded
    of_arrow = built(open_store(url, Settings(settings)), folder)
    assert of_arrow == built(dataset._store(), folder)
    spark.conf.set("spark.es_skipping.store.url", url)
    esk.enable(spark)
    for where in ("city = 'city number 205'", "id = 205", "day = 'd1' AND id > 150"):
        esk.disable(spark)
        wanted = spark.read.parquet(str(folder)).where(where).count()
        esk.enable(spark)
        assert spark.read.parquet(str(folder)).where(where).count() == wanted > 0


@pytest.mark.every(2)
@pytest.mark.parametrize("place", ["disk", "bucket"])
def test_files_on_s3(
    spark: SparkSession, s3: Server, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both find the same files there: a refresh by Spark has nothing to do, and one by pyarrow neither."""
    s3.attach(spark)
    for name, value in s3.environment.items():
        monkeypatch.setenv(name, value)
    bucket = s3.bucket("arrow")
    store = f"{bucket}/metadata" if place == "bucket" else (tmp_path / "store").as_uri()
    spark.conf.set("spark.es_skipping.store.url", store)
    spark.conf.set("spark.es_skipping.registry.lifetime", "1ms")  # else Spark skips by what it read up to 30 s ago
    path = f"{bucket}/a lake"
    names = [f"{path.removeprefix('s3a://')}/k={file % 2}/part {file}%20ü.parquet" for file in range(4)]
    for file, name in enumerate(names):
        pq.write_table(rows(file), name, filesystem=s3.files())

    def index(*indexes: esk.Index) -> tuple[int, int, int, int]:
        done = esk.index_files(path, *indexes, store=store, zone=zone_of(spark))
        assert done.failed == ()
        return done.added, done.updated, done.removed, done.unchanged

    def opened(where: str) -> tuple[int, int]:
        frame = spark.read.parquet(path).where(where)
        return len(frame.collect()), sum(num_files(frame))

    assert index(esk.MinMax("id"), esk.ValueList("city")) == (4, 0, 0, 0)
    esk.enable(spark)
    assert opened("id = 205") == (1, 1)
    assert opened("city = 'city number 105' AND k = 1") == (1, 1)
    assert esk.Dataset(spark, path).refresh().unchanged == 4
    pq.write_table(rows(7), names[1], filesystem=s3.files())  # overwritten
    s3.files().delete_file(names[2])
    assert opened("id = 105")[0] == 0
    assert opened("id = 705") == (1, 1)  # not indexed yet, so it is read
    assert index() == (0, 1, 1, 2)
    assert opened("id = 705") == (1, 1)
    assert opened("id = 5") == (1, 1)
    assert index() == (0, 0, 0, 3)
    assert esk.Dataset(spark, path).refresh().unchanged == 3
