"""Iceberg tables whose schema changes after files were written and indexed, and files that lack a column."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import es_skipping as esk
from tests.connectors.test_iceberg import FILES, NO_STATISTICS, ROWS, Maker, first_snapshot, maker, name_of, opened

__all__ = ["maker"]

_numbers = itertools.count()


def test_a_column_added_after_files_were_indexed(iceberg: SparkSession, maker: Maker) -> None:
    """Each row of an old file has null there, whether or not an index knows it."""
    table = maker(**NO_STATISTICS)
    dataset = esk.Dataset(iceberg, table=table)
    dataset.create_indexes(esk.ValueList("name"))
    iceberg.sql(f"ALTER TABLE {table} ADD COLUMN added STRING")
    iceberg.sql(f"ALTER TABLE {table} ADD COLUMN s.added BIGINT")
    where = f"SELECT * FROM {table} WHERE"
    assert opened(iceberg, f"{where} name = '{name_of(205)}' AND added IS NULL AND s.added IS NULL", 1) == 1
    assert opened(iceberg, f"{where} added IS NULL AND s.added IS NULL", ROWS) == FILES
    dataset.create_indexes(esk.ValueList("added"), esk.MinMax("s.added"))
    for column in ("added", "s.added"):
        assert opened(iceberg, f"{where} {column} IS NULL", ROWS) == FILES
        assert opened(iceberg, f"{where} {column} <=> NULL AND name = '{name_of(205)}'", 1) == 1
        assert opened(iceberg, f"{where} {column} = '7'", 0) == 0
    iceberg.sql(
        f"INSERT INTO {table} SELECT id + 500, name, place, agent, lat, lon, "
        f"named_struct('a', s.a, 'b', s.b, 'added', 7L), '7' FROM {table} WHERE id = 205"
    )
    for new_file in (1, 0):
        for column in ("added", "s.added"):
            assert opened(iceberg, f"{where} {column} = '7'", 1) == 1
            assert opened(iceberg, f"{where} {column} IS NULL", ROWS) == FILES + new_file
        assert dataset.refresh().added == new_file


def add_with_default(spark: SparkSession, table: str, default: int) -> None:
    """Add a column ``d``, and ``s.d`` within a struct; Spark's own statements refuse defaults of Iceberg tables."""
    iceberg: Any = spark._jvm.org.apache.iceberg  # type: ignore[union-attr]
    update = iceberg.spark.Spark3Util.loadIcebergTable(spark._jsparkSession, table).updateSchema()
    type, value = iceberg.types.Types.IntegerType.get(), iceberg.expressions.Expressions.lit(default)
    update.addColumn("d", type, "", value).addColumn("s", "d", type, "", value).commit()
    spark.sql(f"REFRESH TABLE {table}")


def test_a_column_with_a_default(iceberg: SparkSession, maker: Maker) -> None:
    """Each row of an old file has the default there, though a filter of Iceberg 1.10 itself finds none of them."""
    table = maker(**{"format-version": "3", **NO_STATISTICS})
    dataset = esk.Dataset(iceberg, table=table)
    dataset.create_indexes(esk.ValueList("name"))
    add_with_default(iceberg, table, 5)
    where = f"SELECT * FROM {table} WHERE"
    assert opened(iceberg, f"{where} name = '{name_of(205)}' AND d = 5 AND s.d = 5", 1) == 1
    for known in (False, True):
        if known:
            dataset.create_indexes(esk.ValueList("d"), esk.MinMax("s.d"))
        for column in ("d", "s.d"):
            assert opened(iceberg, f"{where} {column} = 5", ROWS) == FILES
            assert opened(iceberg, f"{where} {column} IS NULL OR {column} = 6", 0) == (0 if known else FILES)
    iceberg.sql(
        f"INSERT INTO {table} SELECT id + 500, name, place, agent, lat, lon, "
        f"named_struct('a', s.a, 'b', s.b, 'd', 6), 6 FROM {table} WHERE id = 205"
    )
    dataset.refresh()
    for column in ("d", "s.d"):
        assert opened(iceberg, f"{where} {column} = 5", ROWS) == FILES
        assert opened(iceberg, f"{where} {column} = 6", 1) == 1
        iceberg.sql(f"ALTER TABLE {table} DROP COLUMN {column}")
    add_with_default(iceberg, table, 8)  # another column of the same name: the metadata of the first knows no 8
    for column in ("d", "s.d"):
        assert opened(iceberg, f"{where} {column} = 8", ROWS + 1) == FILES + 1
        assert opened(iceberg, f"{where} {column} < 8", 0) == FILES + 1


PROMOTIONS = {"f": "DOUBLE", "d": "DECIMAL(18,2)"}
PROMOTED = {
    "{}f = 20.5D": 1,
    "{}f = 20.1D": 0,
    "{}f = CAST(20.1 AS FLOAT)": 1,
    "{}d = 20.10BD": 1,
    "{}d >= 39.9": 1,
}
"""Conditions on a number that is 0.1, 0.2 and so on up to 39.9, each with its rows."""


@pytest.mark.parametrize("within", ["", "s."])
def test_promoted_numbers_are_unknown_until_they_are_built_again(iceberg: SparkSession, within: str) -> None:
    """No float is 20.1: the column is promoted to the double beside it, and so is a value that is sought as a float."""
    table = f"lake.db.promoted{next(_numbers)}"
    columns = "f FLOAT, d DECIMAL(9,2)"
    iceberg.sql(
        f"CREATE TABLE {table} (id BIGINT, {columns}, s STRUCT<{columns}, b INT>) USING iceberg "
        f"TBLPROPERTIES ('write.metadata.metrics.default' = 'none', 'read.split.open-file-cost' = '{128 << 20}')"
    )
    rows = iceberg.range(0, ROWS, 1, FILES).selectExpr("id", f"pmod(id * 7919, {ROWS}) / 10 AS n")
    numbers = rows.selectExpr("id", "CAST(n AS FLOAT) AS f", "CAST(n AS DECIMAL(9,2)) AS d")
    numbers.selectExpr("*", "named_struct('f', f, 'd', d, 'b', int(id)) AS s").writeTo(table).append()
    dataset = esk.Dataset(iceberg, table=table)
    dataset.create_indexes(
        *(index(within + column) for index in (esk.ValueList, esk.MinMax) for column in "fd"), esk.ValueList("s.b")
    )

    def files(of: str = table) -> list[int]:
        return [opened(iceberg, f"SELECT * FROM {of} WHERE {c.format(within)}", n) for c, n in PROMOTED.items()]

    one_each = list(PROMOTED.values())
    assert files() == one_each
    for column, type in PROMOTIONS.items():
        iceberg.sql(f"ALTER TABLE {table} ALTER COLUMN {within}{column} TYPE {type}")
    before = f"{table} VERSION AS OF {first_snapshot(iceberg, table)}"
    assert files() == [FILES] * len(PROMOTED)
    assert files(before) == one_each
    assert opened(iceberg, f"SELECT * FROM {table} WHERE s.b = 205", 1) == 1  # a neighbour of what was promoted
    dataset.refresh()
    assert files() == one_each
    assert files(before) == [n * FILES for n in one_each]
    iceberg.sql(f"DROP TABLE {table}")


def test_a_partition_column_that_files_lack(iceberg: SparkSession, tmp_path: Path) -> None:
    """Files of a partitioned directory that are taken into a table: the partition's value is in its metadata only."""
    table, path = f"lake.db.taken{next(_numbers)}", str(tmp_path / "plain")
    rows = iceberg.range(0, ROWS, 1, 1).selectExpr(
        "id", "concat('n', id) AS name", "concat('d', floor(id / 100)) AS day"
    )
    rows.write.partitionBy("day").parquet(path)
    iceberg.sql(
        f"CREATE TABLE {table} (id BIGINT, name STRING, day STRING) USING iceberg PARTITIONED BY (day) "
        f"TBLPROPERTIES ('write.metadata.metrics.default' = 'none', 'read.split.open-file-cost' = '{128 << 20}')"
    )
    short = table.removeprefix("lake.")
    iceberg.sql(f"CALL lake.system.add_files(table => '{short}', source_table => '`parquet`.`{path}`')")
    result = esk.Dataset(iceberg, table=table).create_indexes(
        esk.ValueList("name"), esk.ValueList("day"), esk.ValueList("concat(day, '/', name)"), esk.MinMax("id")
    )
    assert (result.added, result.failed) == (FILES, ())
    where = f"SELECT * FROM {table} WHERE"
    assert opened(iceberg, f"{where} name = 'n205'", 1) == 1
    assert opened(iceberg, f"{where} day = 'd2'", 100) == 1
    assert opened(iceberg, f"{where} name = 'n205' AND upper(day) = 'D2'", 1) == 1
    assert opened(iceberg, f"{where} name = 'n205' AND day = 'd1'", 0) == 0
    assert opened(iceberg, f"{where} name = 'n205' OR day = 'd1'", 101) == 2
    assert opened(iceberg, f"{where} concat(day, '/', name) = 'd2/n205'", 1) == 1
    assert opened(iceberg, f"{where} day IS NULL OR id = 205", 1) == 1
    iceberg.sql(f"DROP TABLE {table}")
