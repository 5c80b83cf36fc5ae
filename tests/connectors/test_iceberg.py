"""Iceberg tables (a DSv2 source) pass through untouched."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import es_skipping as esk
from es_skipping.build import update as build
from tests.connectors.equal import rows_on_and_off, skipping_scans


@pytest.fixture(scope="module")
def table(iceberg: SparkSession) -> str:
    """An Iceberg table of ten files, whose data somebody indexed as plain Parquet when that was not refused yet."""
    iceberg.sql("CREATE TABLE lake.db.t (id BIGINT, name STRING) USING iceberg")
    iceberg.range(0, 1000, 1, 10).selectExpr("id", "concat('n', id % 7) AS name").writeTo("lake.db.t").append()
    location = iceberg.conf.get("spark.sql.catalog.lake.warehouse") + "/db/t/data"
    with pytest.raises(esk.DatasetError, match=r"is an Iceberg table: .*/db/t holds metadata"):
        esk.Dataset(iceberg, location).create_indexes(esk.MinMax("id"))
    with pytest.MonkeyPatch.context() as before:
        before.setattr(build, "refuse_table_formats", lambda *given: None)
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


def test_a_merge_from_an_indexed_source(iceberg: SparkSession, tmp_path: Path) -> None:
    """Conditions of a MERGE say of which rows an action is, not which rows of the source there are."""
    path = str(tmp_path / "source")
    iceberg.range(0, 1000, 1, 10).selectExpr("id", "concat('new', id) AS name").write.parquet(path)
    esk.Dataset(iceberg, path).create_indexes(esk.MinMax("id"), esk.ValueList("name"))
    iceberg.read.parquet(path).createOrReplaceTempView("merged")
    merges = {
        "matched": "USING merged s ON t.id = s.id AND s.id > 150 WHEN MATCHED THEN UPDATE SET name = s.name",
        "all": "USING (SELECT * FROM merged WHERE id BETWEEN 100 AND 249) s ON t.id = s.id AND s.id > 150 "
        "WHEN MATCHED AND s.name <> 'new200' THEN UPDATE SET name = s.name "
        "WHEN NOT MATCHED AND s.id < 180 THEN INSERT * WHEN NOT MATCHED BY SOURCE AND t.id < 50 THEN DELETE",
    }
    for name, merge in merges.items():
        found = []
        for on in (False, True):
            into = f"lake.db.merge_{name}_{str(on).lower()}"
            iceberg.sql(f"CREATE TABLE {into} (id BIGINT, name STRING) USING iceberg")
            iceberg.range(0, 2000, 7, 4).selectExpr("id", "'old' AS name").writeTo(into).append()
            (esk.enable if on else esk.disable)(iceberg)
            try:
                with esk.observe(iceberg) as report:
                    iceberg.sql(f"MERGE INTO {into} t {merge}")
            finally:
                esk.enable(iceberg)
            if on:
                assert sum(scan.objects_skipped for scan in report.scans) >= 1, report
            found.append(sorted(tuple(row) for row in iceberg.table(into).collect()))
        assert found[0] == found[1] and any("new" in row[1] for row in found[0])
