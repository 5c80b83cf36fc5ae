"""``verify=stat``: an object that was overwritten after Spark listed it is not skipped by what it was."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

import es_skipping as esk
from tests.spark.objects_read import num_files


def _lake(spark: SparkSession, folder: Path) -> None:
    folder.mkdir()
    for i in range(4):
        pq.write_table(pa.table({"id": [i * 10, i * 10 + 1]}), folder / f"part-{i}.parquet")
    esk.enable(spark)
    esk.Dataset(spark, str(folder)).create_indexes(esk.MinMax("id"))
    spark.read.parquet(str(folder)).createOrReplaceTempView("lake")  # which caches its listing


def _overwrite(path: Path) -> None:
    pq.write_table(pa.table({"id": [11, 12]}), path)
    os.utime(path, (2_000_000_000, 2_000_000_000))


def test_what_changed_since_the_listing_is_read(spark: SparkSession, tmp_path: Path) -> None:
    _lake(spark, tmp_path / "lake")
    _overwrite(tmp_path / "lake" / "part-3.parquet")
    query = "SELECT id FROM lake WHERE id BETWEEN 10 AND 12"
    trusting = spark.sql(query)
    assert len(trusting.collect()) == 2  # the promise is relative to the listing that Spark uses
    assert num_files(trusting) == [1]
    spark.conf.set("spark.es_skipping.verify", "stat")
    checked = spark.sql(query)
    assert sorted(row.id for row in checked.collect()) == [10, 11, 11, 12]
    assert num_files(checked) == [2]


def test_row_groups_of_what_changed_are_read(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "lake"
    path.mkdir()
    pq.write_table(pa.table({"id": range(20)}), path / "part.parquet", row_group_size=10)
    spark.conf.set("spark.es_skipping.granularity", "rowGroup")
    spark.conf.set("spark.es_skipping.verify", "stat")
    esk.enable(spark)
    esk.Dataset(spark, str(path)).create_indexes(esk.MinMax("id"))
    spark.read.parquet(str(path)).createOrReplaceTempView("lake")
    query = "SELECT id FROM lake WHERE id IN (15, 16)"
    with esk.observe(spark) as report:
        assert len(spark.sql(query).collect()) == 2
    assert report.scans[0].row_groups_skipped == 1
    pq.write_table(pa.table({"id": [*range(10, 20), *range(10)]}), path / "part.parquet", row_group_size=10)
    os.utime(path / "part.parquet", (2_000_000_000, 2_000_000_000))
    assert sorted(row.id for row in spark.sql(query).collect()) == [15, 16]


def test_above_the_limit_nothing_is_asked(spark: SparkSession, tmp_path: Path) -> None:
    _lake(spark, tmp_path / "lake")
    _overwrite(tmp_path / "lake" / "part-3.parquet")
    spark.conf.set("spark.es_skipping.verify", "stat")
    spark.conf.set("spark.es_skipping.verify.limit", "2")
    frame = spark.sql("SELECT id FROM lake WHERE id BETWEEN 10 AND 12")
    frame.collect()
    assert num_files(frame) == [1]


def test_a_rewrite_that_keeps_path_length_and_time_is_outside_the_promise(spark: SparkSession, tmp_path: Path) -> None:
    """Stated, not wanted: nothing that a listing tells distinguishes such a file from the one that was indexed."""
    _lake(spark, tmp_path / "lake")
    path = tmp_path / "lake" / "part-3.parquet"
    before = path.stat()
    pq.write_table(pa.table({"id": [12, 13]}), path)
    assert path.stat().st_size == before.st_size
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    frame = spark.read.parquet(str(tmp_path / "lake")).where("id = 12")
    assert frame.collect() == []
    esk.Dataset(spark, str(tmp_path / "lake")).drop_indexes(all=True)
    assert spark.read.parquet(str(tmp_path / "lake")).where("id = 12").count() == 1
