"""Delta tables pass through untouched: Delta knows which files are live, a directory listing does not."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import es_skipping as esk
from es_skipping.build import update as build
from tests.connectors.equal import rows_on_and_off, skipping_scans


@pytest.fixture(scope="module")
def table(delta: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A Delta table of ten files, whose directory somebody indexed as plain Parquet when that was not refused yet."""
    path = tmp_path_factory.mktemp("table") / "t"
    delta.range(0, 1000, 1, 10).selectExpr("id", "concat('n', id % 7) AS name").write.format("delta").save(str(path))
    with pytest.MonkeyPatch.context() as before:
        before.setattr(build, "refuse_table_formats", lambda *given: None)
        esk.Dataset(delta, str(path)).create_indexes(esk.MinMax("id"), esk.ValueList("name"))
    return f"delta.`{path}`"


def test_its_directory_is_refused_by_name(delta: SparkSession, table: str) -> None:
    path = table.replace("delta.", "").strip("`")
    delta.conf.set("spark.databricks.delta.formatCheck.enabled", "false")
    with pytest.raises(esk.DatasetError, match=r"is a Delta table: .* holds _delta_log"):
        esk.Dataset(delta, path).create_indexes(esk.MinMax("name"))
    delta.conf.unset("spark.databricks.delta.formatCheck.enabled")


def test_plain_reads(delta: SparkSession, table: str) -> None:
    assert rows_on_and_off(delta, f"SELECT * FROM {table} WHERE id = 77") == [(77, "n0")]
    assert rows_on_and_off(delta, f"SELECT count(*) FROM {table} WHERE name = 'n3' OR id > 990")[0][0] == 151
    assert skipping_scans(delta, f"SELECT * FROM {table} WHERE id = 77") == 0


def test_delete_update_merge_and_time_travel(delta: SparkSession, table: str) -> None:
    delta.sql(f"DELETE FROM {table} WHERE id BETWEEN 100 AND 149")
    delta.sql(f"UPDATE {table} SET name = 'changed' WHERE id = 500")
    delta.sql(
        f"MERGE INTO {table} t USING (SELECT 5000L AS id, 'new' AS name) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )
    assert rows_on_and_off(delta, f"SELECT count(*) FROM {table}") == [(951,)]
    assert rows_on_and_off(delta, f"SELECT * FROM {table} WHERE id IN (120, 500, 5000)") == [
        (500, "changed"),
        (5000, "new"),
    ]
    assert rows_on_and_off(delta, f"SELECT count(*) FROM {table} VERSION AS OF 0 WHERE id < 150") == [(150,)]
    assert skipping_scans(delta, f"SELECT count(*) FROM {table} VERSION AS OF 0 WHERE id < 150") == 0


def test_plain_parquet_beside_it_skips(delta: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "plain")
    delta.range(0, 1000, 1, 10).write.parquet(path)
    esk.Dataset(delta, path).create_indexes(esk.MinMax("id"))
    delta.read.parquet(path).createOrReplaceTempView("plain")
    assert skipping_scans(delta, "SELECT * FROM plain WHERE id = 77") == 1
    with esk.observe(delta) as report:
        assert rows_on_and_off(delta, "SELECT * FROM plain WHERE id = 77") == [(77,)]
    assert report.scans[0].objects_skipped == 9


def test_a_directory_listing_of_a_delta_table_is_equal_on_and_off(delta: SparkSession, table: str) -> None:
    path = table.replace("delta.", "").strip("`")
    delta.conf.set("spark.databricks.delta.formatCheck.enabled", "false")
    rows_on_and_off(delta, f"SELECT count(*) FROM parquet.`{path}` WHERE id = 120")
