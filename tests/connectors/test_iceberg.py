"""Iceberg tables (a DSv2 source) pass through untouched."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import es_skipping as esk
from tests.connectors.equal import rows_on_and_off, skipping_scans


@pytest.fixture(scope="module")
def table(iceberg: SparkSession) -> str:
    """An Iceberg table of ten files, whose data directory somebody indexed as plain Parquet."""
    iceberg.sql("CREATE TABLE lake.db.t (id BIGINT, name STRING) USING iceberg")
    iceberg.range(0, 1000, 1, 10).selectExpr("id", "concat('n', id % 7) AS name").writeTo("lake.db.t").append()
    location = iceberg.conf.get("spark.sql.catalog.lake.warehouse") + "/db/t/data"
    esk.Dataset(iceberg, location).create_indexes(esk.MinMax("id"), esk.ValueList("name"))
    return "lake.db.t"


def test_plain_reads(iceberg: SparkSession, table: str) -> None:
    assert rows_on_and_off(iceberg, f"SELECT * FROM {table} WHERE id = 77") == [(77, "n0")]
    assert skipping_scans(iceberg, f"SELECT * FROM {table} WHERE id = 77") == 0


def test_delete_update_and_time_travel(iceberg: SparkSession, table: str) -> None:
    first = iceberg.sql(f"SELECT snapshot_id FROM {table}.snapshots").head()[0]
    iceberg.sql(f"DELETE FROM {table} WHERE id BETWEEN 100 AND 149")
    iceberg.sql(f"UPDATE {table} SET name = 'changed' WHERE id = 500")
    assert rows_on_and_off(iceberg, f"SELECT count(*) FROM {table}") == [(950,)]
    assert rows_on_and_off(iceberg, f"SELECT * FROM {table} WHERE id IN (120, 500)") == [(500, "changed")]
    assert rows_on_and_off(iceberg, f"SELECT count(*) FROM {table} VERSION AS OF {first} WHERE id < 150") == [(150,)]


def test_plain_parquet_beside_it_skips(iceberg: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "plain")
    iceberg.range(0, 1000, 1, 10).write.parquet(path)
    esk.Dataset(iceberg, path).create_indexes(esk.MinMax("id"))
    iceberg.read.parquet(path).createOrReplaceTempView("plain")
    assert rows_on_and_off(iceberg, "SELECT * FROM plain WHERE id = 77") == [(77,)]
    assert skipping_scans(iceberg, "SELECT * FROM plain WHERE id = 77") == 1
