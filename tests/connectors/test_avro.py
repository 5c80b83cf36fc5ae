"""Avro comes with a package of its own. No index can be made over it, and its queries are left alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import es_skipping as esk
from tests.connectors.equal import rows_on_and_off


def test_avro_is_refused_by_name_and_read_as_ever(avro: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "avro")
    avro.range(0, 100, 1, 5).selectExpr("id", "concat('n', id) AS name").write.format("avro").save(path)
    with pytest.raises(
        esk.DatasetError, match="has the format avro; only csv, delta, iceberg, json, orc, parquet, text can be"
    ):
        esk.Dataset(avro, path, format="avro").create_indexes(esk.MinMax("id"))
    avro.read.format("avro").load(path).createOrReplaceTempView("avro_rows")
    assert rows_on_and_off(avro, "SELECT * FROM avro_rows WHERE id = 77") == [(77, "n77")]
    with esk.observe(avro) as report:
        avro.sql("SELECT * FROM avro_rows WHERE id = 77").collect()
    assert [(scan.objects_total, scan.objects_skipped) for scan in report.scans] == [(5, 0)]


def test_avro_beside_indexed_objects_is_never_skipped(avro: SparkSession, tmp_path: Path) -> None:
    """A dataset may hold files of another format; those that are read as Avro were never indexed."""
    path = str(tmp_path / "mixed")
    avro.range(0, 100, 1, 5).write.parquet(f"{path}/a")
    avro.range(0, 100, 1, 5).write.format("avro").save(f"{path}/b")
    esk.Dataset(avro, f"{path}/a").create_indexes(esk.MinMax("id"))
    avro.read.parquet(f"{path}/a").createOrReplaceTempView("parquet_rows")
    avro.read.format("avro").load(f"{path}/b").createOrReplaceTempView("avro_rows")
    both = "SELECT id FROM parquet_rows WHERE id = 77 UNION ALL SELECT id FROM avro_rows WHERE id = 77"
    assert rows_on_and_off(avro, both) == [(77,), (77,)]
