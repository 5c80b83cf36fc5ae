"""Files that lack a column, have it in another type, are empty, or were written by old rules."""

from __future__ import annotations

import datetime
import itertools
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

import es_skipping as esk
from tests.spark.skipping_on_off import age, objects_by_predicate


@pytest.fixture(autouse=True)
def no_push_down(spark: SparkSession) -> None:
    """Spark's own push-down into files loses rows of its own (NaN, broken records), behind which ours could hide."""
    spark.conf.set("spark.sql.parquet.filterPushdown", "false")
    spark.conf.set("spark.sql.json.filterPushdown.enabled", "false")
    spark.conf.set("spark.sql.csv.filterPushdown.enabled", "false")


def parquet(path: Path, *tables: pa.Table, **options: object) -> str:
    """One file for each table, oldest name first."""
    path.mkdir(parents=True, exist_ok=True)
    for number, table in enumerate(tables):
        pq.write_table(table, path / f"part-{number:02}.parquet", **options)
    age(path)
    return str(path)


def reader(path: str, schema: str | None = None, **options: str) -> Callable[[SparkSession], DataFrame]:
    def read(spark: SparkSession) -> DataFrame:
        made = spark.read.options(**options)
        return (made.schema(schema) if schema else made).parquet(path)

    return read


NUMBERS = (
    "v = 5",
    "v <> 5",
    "v > 5",
    "v < 5",
    "v IS NULL",
    "v IS NOT NULL",
    "v IN (5, 6)",
    "v NOT IN (5)",
    "v <=> NULL",
)


def test_columns_that_some_files_lack(spark: SparkSession, tmp_path: Path) -> None:
    both, only, nulls = (
        pa.table({"id": pa.array([1, 2]), "v": pa.array([5, 5])}),
        pa.table({"id": pa.array([3, 4])}),
        pa.table({"id": pa.array([5]), "v": pa.array([None], pa.int64())}),
    )
    path = parquet(tmp_path / "d", both, only, nulls, pa.table({"id": pa.array([6]), "v": pa.array([9])}))
    for number, (columns, options) in enumerate(
        itertools.product(("id BIGINT, v BIGINT", None), ({}, {"mergeSchema": "true"}))
    ):
        spark.conf.set("spark.es_skipping.store.url", (tmp_path / f"store{number}").as_uri())
        esk.Dataset(spark, path, schema=columns, options=options).create_indexes(esk.MinMax("v"), esk.ValueList("v"))
        found = objects_by_predicate(spark, reader(path, columns, **options), NUMBERS)
        assert found["v = 5"] <= 2
        assert found["v IS NULL"] >= 2
        # by another way to the same columns
        objects_by_predicate(spark, reader(path, "v BIGINT, id BIGINT"), NUMBERS[:5])


def test_a_column_that_was_widened(spark: SparkSession, tmp_path: Path) -> None:
    path = parquet(
        tmp_path / "d",
        pa.table({"v": pa.array([1, 5], pa.int32())}),
        pa.table({"v": pa.array([5, 3_000_000_000], pa.int64())}),
        pa.table({"v": pa.array([-7, 4], pa.int32())}),
    )
    for schema in ("v BIGINT", "v BIGINT, gone STRING"):
        dataset = esk.Dataset(spark, path, schema=schema)
        dataset.ensure_indexes(esk.MinMax("v"))
        found = objects_by_predicate(spark, reader(path, "v BIGINT"), (*NUMBERS, "v > 2000000000", "v < 0"))
        assert (found["v > 2000000000"], found["v < 0"]) == (1, 1)
    doubles = parquet(
        tmp_path / "f", pa.table({"v": pa.array([0.1, 5.0], pa.float32())}), pa.table({"v": pa.array([0.1, 5.5])})
    )
    esk.Dataset(spark, doubles, schema="v DOUBLE").create_indexes(esk.MinMax("v"))
    predicates = (*NUMBERS, "v = 0.1D", "v < 0.1000000001D", "v > 0.1D", "v = cast(0.1f AS DOUBLE)")
    objects_by_predicate(spark, reader(doubles, "v DOUBLE"), predicates)
    # an index of another type than the read's is not used
    esk.Dataset(spark, path, schema="v BIGINT").refresh()
    objects_by_predicate(spark, reader(path, "v DECIMAL(20,0)"), NUMBERS)


def test_files_without_rows(spark: SparkSession, tmp_path: Path) -> None:
    schema = pa.schema([("v", pa.int64())])
    path = parquet(
        tmp_path / "d", schema.empty_table(), pa.table({"v": [5]}), pa.table({"v": [7]}), schema.empty_table()
    )
    assert (
        esk.Dataset(spark, path).create_indexes(esk.MinMax("v"), esk.ValueList("v"), esk.MinMax("v + 1")).failed == ()
    )
    found = objects_by_predicate(spark, reader(path), NUMBERS)
    assert found["v = 5"] in (1, 3)
    csv = tmp_path / "csv"
    csv.mkdir()
    (csv / "a.csv").write_text("")
    (csv / "b.csv").write_text("5\n\n6\n")
    (csv / "c.csv").write_text("x\n7\n,\n")
    age(csv)
    dataset = esk.Dataset(spark, str(csv), format="csv", schema="v INT, w STRING")
    dataset.create_indexes(esk.MinMax("v"), esk.ValueList("w"))
    found = objects_by_predicate(
        spark, lambda s: s.read.schema("v INT, w STRING").csv(str(csv)), (*NUMBERS, "w IS NULL")
    )
    assert found["v > 5"] == 2


def test_records_that_cannot_be_parsed(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "json"
    folder.mkdir()
    (folder / "a.json").write_text('{"v": 5}\n{"v": "six"}\n')
    (folder / "b.json").write_text('{"v": 7}\n{"v": 8\n')
    (folder / "c.json").write_text('{"v": 9, "v": 5}\n{"w": 1}\n')
    age(folder)
    for number, mode in enumerate(("PERMISSIVE", "DROPMALFORMED")):
        spark.conf.set("spark.es_skipping.store.url", (tmp_path / f"store{number}").as_uri())
        for schema in ("v INT", "v INT, _corrupt_record STRING", "_corrupt_record STRING, v INT"):
            dataset = esk.Dataset(spark, str(folder), format="json", schema=schema, options={"mode": mode})
            dataset.ensure_indexes(esk.MinMax("v"))
            for other in ("PERMISSIVE", "DROPMALFORMED"):
                objects_by_predicate(
                    spark, lambda s, r=schema, m=other: s.read.schema(r).json(str(folder), mode=m).select("v"), NUMBERS
                )


def test_timestamps_and_the_zone_of_the_session(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "d")
    spark.range(0, 72, 1, 3).selectExpr(
        "timestamp_seconds(1704067200 + id * 3600) AS t",
        "cast(timestamp_seconds(1704067200 + id * 3600) AS timestamp_ntz) AS n",
        "cast(timestamp_seconds(1704067200 + id * 3600) AS string) AS s",
    ).write.parquet(path)
    spark.read.parquet(path).select("s").write.csv(f"{path}.csv")
    age(tmp_path)
    esk.Dataset(spark, path).create_indexes(
        esk.MinMax("t"), esk.MinMax("n"), esk.MinMax("to_date(t)"), esk.MinMax("hour(t)"), esk.ValueList("to_date(t)")
    )
    esk.Dataset(spark, f"{path}.csv", format="csv", schema="t TIMESTAMP").create_indexes(esk.MinMax("t"))
    predicates = (
        "t >= '2024-01-02 20:00:00' AND t < '2024-01-03 01:00:00'",
        "n >= '2024-01-02 20:00:00' AND n < '2024-01-03 01:00:00'",
        "to_date(t) = '2024-01-01'",
        "to_date(t) > '2024-01-03'",
        "cast(t AS DATE) = DATE'2024-01-03'",
        "t < DATE'2024-01-02'",
        "hour(t) = 23",
        "n = t",
        "cast(n AS timestamp) < '2024-01-01 05:00:00'",
        "cast(t AS timestamp_ntz) < timestamp_ntz'2024-01-01 05:00:00'",
        "cast(t AS string) LIKE '2024-01-03%'",
        "t = '2024-01-01'",
    )
    for zone in ("UTC", "Asia/Tokyo", "America/Los_Angeles"):
        spark.conf.set("spark.sql.session.timeZone", zone)
        found = objects_by_predicate(spark, reader(path), predicates)
        if zone == "UTC":
            assert found["t < DATE'2024-01-02'"] == 1
            assert found["to_date(t) = '2024-01-01'"] == 1
        objects_by_predicate(spark, lambda s: s.read.schema("t TIMESTAMP").csv(f"{path}.csv"), predicates[2:6])


@pytest.mark.parametrize("kind", ["INT96", "TIMESTAMP_MICROS"])
def test_dates_of_the_old_calendar(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    spark.conf.set("spark.sql.parquet.outputTimestampType", kind)
    for number, mode in enumerate(("LEGACY", "CORRECTED")):
        spark.conf.set("spark.sql.parquet.datetimeRebaseModeInWrite", mode)
        spark.conf.set("spark.sql.parquet.int96RebaseModeInWrite", mode)
        spark.sql(
            "SELECT date_add(DATE'1500-01-01', cast(id AS int)) AS d, "
            "cast(date_add(DATE'1500-01-01', cast(id AS int)) AS TIMESTAMP) AS t FROM range(0, 40, 1, 4)"
        ).write.parquet(str(tmp_path / "d" / f"x{number}"))
    age(tmp_path)
    path = str(tmp_path / "d")
    options = {"recursiveFileLookup": "true"}
    esk.Dataset(spark, path, options=options).create_indexes(esk.MinMax("d"), esk.MinMax("t"), esk.ValueList("d"))
    predicates = [
        f"{c} {op} {kind}'1500-01-{day}'"
        for c, kind in (("d", "DATE"), ("t", "TIMESTAMP"))
        for op in ("=", "<", ">")
        for day in ("05", "11", "25")
    ]
    for mode in ("CORRECTED", "LEGACY", "EXCEPTION"):
        for key in ("datetime", "int96"):
            spark.conf.set(f"spark.sql.parquet.{key}RebaseModeInRead", mode)
        objects_by_predicate(spark, reader(path, **options), predicates)


def test_statistics_that_others_write(spark: SparkSession, tmp_path: Path) -> None:
    """Without statistics, with those of unsigned numbers, of truncated strings, and of decimals in bytes."""
    tables = [
        pa.table(
            {
                "v": pa.array([low, low + 3, None], pa.int64()),
                "u": pa.array([low, 4_000_000_000 + low, None], pa.uint32()),
                "s": pa.array([f"{'p' * 80}{low}", "é\U0001f600", None]),
                "b": pa.array([b"\x7f", bytes([0x80 + low]), None], pa.binary()),
                "dec": pa.array([low, -low, None], pa.int64()).cast(pa.decimal128(30, 4)),
                "x": pa.array([float("nan") if low == 10 else low, -0.0, None], pa.float64()),
                "day": pa.array([datetime.date(2024, 1, 1 + low), datetime.date(1960, 1, 1), None]),
                "ms": pa.array([low * 1000 + 999, None, None], pa.timestamp("ms", tz="UTC")),
            }
        )
        for low in (0, 5, 10)
    ]
    predicates = (
        *NUMBERS,
        "u > 4000000006",
        "u < 3",
        "u = 4000000005",
        f"s = '{'p' * 80}5'",
        f"s > '{'p' * 80}5'",
        "s LIKE 'é%'",
        "s > 'z'",
        "b > X'7F'",
        "b = X'85'",
        "b >= X'84'",
        "dec > 7",
        "dec < -7.5",
        "dec = 5",
        "x > 5",
        "x = double('NaN')",
        "x = 0.0",
        "x < 0",
        "x > 1e300",
        "x <> 0",
        "day > '2024-01-07'",
        "day IS NULL",
        "ms > timestamp_millis(10998)",
        "ms = timestamp_millis(5999)",
        "ms IS NULL",
    )
    for number, options in enumerate(({}, {"write_statistics": False}, {"row_group_size": 1})):
        path = parquet(tmp_path / f"d{number}", *tables, **options)
        result = esk.Dataset(spark, path).create_indexes(
            *[esk.MinMax(c) for c in ("v", "u", "s", "b", "dec", "x", "day", "ms")]
        )
        assert (result.added, result.failed) == (3, ())
        objects_by_predicate(spark, reader(path), predicates)


@pytest.mark.parametrize("sensitive", ["true", "TRUE", " True "])
def test_a_column_that_a_file_has_in_another_case(spark: SparkSession, tmp_path: Path, sensitive: str) -> None:
    """Where names differ by case, a file with A has no a; Spark takes the setting in any spelling."""
    path = parquet(tmp_path / "d", pa.table({"a": [1, 2]}), pa.table({"A": [5, 6]}))
    spark.conf.set("spark.sql.caseSensitive", sensitive)
    esk.Dataset(spark, path, schema="a BIGINT").create_indexes(esk.MinMax("a"))
    found = objects_by_predicate(spark, reader(path, "a BIGINT"), ("a IS NULL", "a = 5", "a = 1"))
    assert found == {"a IS NULL": 1, "a = 5": 0, "a = 1": 1}
