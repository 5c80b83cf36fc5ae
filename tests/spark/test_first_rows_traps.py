"""Where the first rows could be lost: nulls, NaN, ties, changed files, partitions, formats; and at random."""

from __future__ import annotations

import math
import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

import es_skipping as esk
from tests.examples import scaled
from tests.spark.objects_read import num_files
from tests.spark.skipping_on_off import age
from tests.spark.star import configured

pytestmark = pytest.mark.in_turn("spark")

SEED = int(os.environ.get("ES_SKIPPING_SEED", "11"))
QUERIES = int(os.environ.get("ES_SKIPPING_FIRST_ROWS", scaled(24)))
_ROWS = 20
_FILES = 24


@pytest.fixture(params=["true", "false"], ids=["adaptive", "fixed"])
def spark(base: SparkSession, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[SparkSession]:
    session = configured(base, (tmp_path / "store").as_uri(), request.param)
    yield session
    esk.disable(session)


Write = Callable[..., Path]


def written(folder: Path, files: dict[str, dict[str, Any]]) -> Path:
    """Write a Parquet file of each name."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, columns in files.items():
        pq.write_table(pa.table(columns), folder / f"{name}.parquet")
    age(folder)
    return folder


def keys(df: DataFrame) -> list[str]:
    """The first column, with one zero. Which of several rows with the same key come back may differ."""
    found = [row[0] for row in df.collect()]
    return [repr(one + 0.0 if isinstance(one, float) else one) for one in found]


def opened(spark: SparkSession, folder: Path, sql: str, **options: Any) -> int:
    """How many files a query of the view ``t`` opened; the keys of its rows are those with skipping off."""
    reader = spark.read.options(**options) if options else spark.read
    esk.disable(spark)
    reader.parquet(str(folder)).createOrReplaceTempView("t")
    expected = keys(spark.sql(sql))
    esk.enable(spark)
    reader.parquet(str(folder)).createOrReplaceTempView("t")
    df = spark.sql(sql)
    assert keys(df) == expected, sql
    return sum(num_files(df))


NULLS = {
    "a": {"x": pa.array([1, 2, 3, 4])},
    "b": {"x": pa.array([5, None, None, None])},
    "c": {"x": pa.array([7, 8, 9, 10])},
    "d": {"x": pa.array([None, None], pa.int64())},
    "e": {"x": pa.array([11, 12, None, 13])},
}


@pytest.mark.parametrize(
    ("order", "limit", "files"),
    [
        ("x DESC", 3, 1),  # e
        ("x DESC", 4, 2),  # e and c
        ("x DESC NULLS FIRST", 4, 3),  # b, d, e: each may hold a null
        ("x", 4, 4),  # the nulls of b, d, e come first, and a guarantees four rows
        ("x NULLS LAST", 4, 1),  # a
        ("x NULLS LAST", 5, 2),  # a and b
    ],
)
def test_nulls(spark: SparkSession, tmp_path: Path, order: str, limit: int, files: int) -> None:
    folder = written(tmp_path / "t", NULLS)
    esk.Dataset(spark, str(folder)).create_indexes(esk.MinMax("x"))
    assert opened(spark, folder, f"SELECT x FROM t ORDER BY {order} LIMIT {limit}") == files


NANS = {
    "a": {"x": pa.array([1.0, 2.0, -0.0, 0.0])},
    "b": {"x": pa.array([3.0, math.nan, math.nan, math.nan])},
    "c": {"x": pa.array([7.0, 8.0, math.inf, 9.0])},
    "d": {"x": pa.array([-1.0, 0.0, -0.0, -math.inf])},
}


@pytest.mark.parametrize(
    ("order", "limit", "files"),
    [
        ("x DESC", 3, 2),  # b, for its NaN, and c
        ("x DESC", 5, 2),
        ("x", 4, 2),  # the zero of d ties with those of a
        ("x NULLS LAST", 9, 3),
        ("x NULLS LAST", 10, 4),  # the three NaN of b come last, so one of c is among the first ten
    ],
)
def test_nan_and_zeros(spark: SparkSession, tmp_path: Path, order: str, limit: int, files: int) -> None:
    folder = written(tmp_path / "t", NANS)
    esk.Dataset(spark, str(folder)).create_indexes(esk.MinMax("x"), esk.ValueList("x"))
    assert opened(spark, folder, f"SELECT x FROM t ORDER BY {order} LIMIT {limit}") == files


def test_ties_stay(spark: SparkSession, tmp_path: Path) -> None:
    """Three files end with the same key; a second key decides which rows are the first."""
    files = {name: {"x": [1, 5, 9], "y": [n, n, n]} for n, name in enumerate("abc")}
    folder = written(tmp_path / "t", {**files, "d": {"x": [1, 5, 8], "y": [7, 7, 7]}})
    written(folder, {"e": {"x": [9, 9], "y": [1, 8]}})
    esk.Dataset(spark, str(folder)).create_indexes(esk.MinMax("x"))
    assert opened(spark, folder, "SELECT struct(x, y) FROM t ORDER BY x DESC, y DESC LIMIT 2") == 4


@pytest.mark.parametrize("condition", ["x >= 0", "x IN (0, 7)", "x = 0 OR x > 5", "NOT x < 0"])
def test_rows_that_the_reader_misses(spark: SparkSession, tmp_path: Path, condition: str) -> None:
    """Spark may miss the rows of a file whose zeros are all -0.0, so that file guarantees none."""
    zeros = {f"z{n}": {"ts": list(range(100 + 10 * n, 110 + 10 * n)), "x": [-0.0] * 10} for n in range(3)}
    folder = written(tmp_path / "t", {**zeros, "a": {"ts": list(range(10)), "x": [7.0] * 10}})
    esk.Dataset(spark, str(folder)).create_indexes(esk.MinMax("ts"), esk.MinMax("x"), esk.ValueList("x"))
    opened(spark, folder, f"SELECT ts FROM t WHERE {condition} ORDER BY ts DESC LIMIT 5")
    assert opened(spark, folder, "SELECT ts FROM t WHERE x > -1 ORDER BY ts DESC LIMIT 5") == 1


def _days(n: int = 10) -> dict[str, dict[str, Any]]:
    return {f"day{day}": {"ts": list(range(10 * day, 10 * day + 10)), "v": [day] * 10} for day in range(n)}


LATEST = "SELECT ts FROM t ORDER BY ts DESC LIMIT 5"


def test_a_guarantor_that_is_gone_or_was_rewritten(spark: SparkSession, tmp_path: Path) -> None:
    folder = written(tmp_path / "t", _days())
    dataset = esk.Dataset(spark, str(folder))
    dataset.create_indexes(esk.MinMax("ts"))
    assert opened(spark, folder, LATEST) == 1
    pq.write_table(pa.table({"ts": [90], "v": [9]}), folder / "day9.parquet")
    assert opened(spark, folder, LATEST) == 10
    assert opened(spark, folder, "SELECT ts FROM t LIMIT 100") == 10
    (folder / "day9.parquet").unlink()
    assert opened(spark, folder, LATEST) == 9
    assert opened(spark, folder, "SELECT ts FROM t ORDER BY ts LIMIT 5") == 1
    dataset.refresh()
    assert opened(spark, folder, LATEST) == 1


def test_a_file_that_is_not_indexed_is_read(spark: SparkSession, tmp_path: Path) -> None:
    folder = written(tmp_path / "t", _days())
    esk.Dataset(spark, str(folder)).create_indexes(esk.MinMax("ts"))
    pq.write_table(pa.table({"ts": [1000, 1001], "v": [1, 1]}), folder / "new.parquet")
    assert opened(spark, folder, LATEST) == 2


def test_a_file_that_is_read_twice(spark: SparkSession, tmp_path: Path) -> None:
    folder = written(tmp_path / "t", _days())
    esk.Dataset(spark, str(folder)).create_indexes(esk.MinMax("ts"))
    twice = [str(folder / f"day{day}.parquet") for day in (1, 9, 9)]
    results = []
    for switch in (esk.disable, esk.enable):
        switch(spark)
        df = spark.read.parquet(*twice).orderBy("ts").limit(12).select("ts")
        results.append(keys(df))
    assert results[0] == results[1]


def test_a_filter_whose_part_is_null(spark: SparkSession, tmp_path: Path) -> None:
    """A row for which the filter is null is no row of the query."""
    files = {f"f{n}": {"ts": list(range(10 * n, 10 * n + 10)), "v": [1] * 9 + [None]} for n in range(10)}
    files["f9"]["v"] = [None] * 9 + [1]
    folder = written(tmp_path / "t", files)
    esk.Dataset(spark, str(folder)).create_indexes(esk.MinMax("ts"), esk.MinMax("v"))
    assert opened(spark, folder, "SELECT ts FROM t WHERE v > 0 ORDER BY ts DESC LIMIT 5") == 10
    assert opened(spark, folder, "SELECT ts FROM t WHERE v > 0 OR v < -5 ORDER BY ts DESC LIMIT 5") == 10
    assert opened(spark, folder, "SELECT ts FROM t WHERE v > 0 OR ts >= 0 ORDER BY ts DESC LIMIT 5") == 1
    assert opened(spark, folder, "SELECT ts FROM t WHERE v <=> 1 ORDER BY ts DESC LIMIT 5") == 10


def test_partitions(spark: SparkSession, tmp_path: Path) -> None:
    for part in range(3):
        files = {f"f{n}": {"ts": [100 * part + 10 * n + i for i in range(10)]} for n in range(4)}
        written(tmp_path / "t" / f"p={part}", files)
    folder = tmp_path / "t"
    esk.Dataset(spark, str(folder)).create_indexes(esk.MinMax("ts"))
    assert opened(spark, folder, LATEST) == 1
    assert opened(spark, folder, "SELECT ts FROM t WHERE p = 2 ORDER BY ts DESC LIMIT 5") == 1
    assert opened(spark, folder, "SELECT ts FROM t WHERE p = 1 ORDER BY ts DESC LIMIT 5") == 1
    assert opened(spark, folder / "p=0", LATEST) == 1
    assert opened(spark, folder, "SELECT p FROM t ORDER BY p DESC LIMIT 5") == 12
    one = "SELECT ts FROM t WHERE p < 2 AND (p = 0 OR ts < 115) ORDER BY ts DESC LIMIT 12"
    assert opened(spark, folder, one) == 6  # two residuals: the filter alone
    assert opened(spark, folder, "SELECT count(*) FROM (SELECT ts FROM t WHERE p = 1 LIMIT 15)") == 2


def test_a_bucketed_table(spark: SparkSession, base: SparkSession) -> None:
    esk.disable(spark)
    frame = spark.range(400).selectExpr("id AS ts", "id % 40 AS k").repartition(4)
    frame.write.mode("overwrite").bucketBy(4, "k").saveAsTable("bucketed_rows")
    try:
        esk.Dataset(spark, table="bucketed_rows").ensure_indexes(esk.MinMax("ts"), esk.MinMax("k"))
        sql = "SELECT ts FROM bucketed_rows WHERE k = 3 ORDER BY ts DESC LIMIT 5"
        expected = keys(spark.sql(sql))
        esk.enable(spark)
        assert keys(spark.sql(sql)) == expected
    finally:
        base.sql("DROP TABLE IF EXISTS bucketed_rows")


@pytest.mark.parametrize(("format", "files"), [("orc", 1), ("json", 5), ("csv", 5)])
def test_formats(spark: SparkSession, tmp_path: Path, format: str, files: int) -> None:
    """A record of a text format depends on the columns that a query reads."""
    folder = tmp_path / "t"
    for n in range(5):
        rows = spark.range(10 * n, 10 * n + 10).withColumnRenamed("id", "ts").coalesce(1)
        rows.write.format(format).mode("append").save(str(folder))
    age(folder)
    esk.Dataset(spark, str(folder), format=format, schema="ts BIGINT").create_indexes(esk.MinMax("ts"))
    results = []
    for switch in (esk.disable, esk.enable):
        switch(spark)
        df = spark.read.format(format).schema("ts BIGINT").load(str(folder)).orderBy("ts").limit(5)
        results.append(keys(df))
    assert results[0] == results[1] == [repr(n) for n in range(5)]
    assert num_files(df) == [files]


# --- at random ----------------------------------------------------------------------------------------------------


def _column(draw: random.Random, kind: str, file: int) -> Any:
    def value() -> Any:
        place = file * 3 + draw.randrange(6)
        if kind == "int":
            return place
        if kind == "double":
            return draw.choice([place / 2, place / 2, place / 2, 0.0, -0.0])
        return f"{'k' * (1500 if file % 7 == 0 else 2)}{place:03d}"

    sparse = draw.random()
    made = [None if draw.random() < (0.0, 0.3, 1.0)[int(sparse * 2.1)] else value() for _ in range(_ROWS)]
    if kind == "double" and draw.random() < 0.3:
        made[draw.randrange(_ROWS)] = math.nan
    if kind == "double" and draw.random() < 0.1:
        made[draw.randrange(_ROWS)] = draw.choice([math.inf, -math.inf])
    return pa.array(made, {"int": pa.int32(), "double": pa.float64(), "string": pa.string()}[kind])


def _condition(draw: random.Random, depth: int = 2) -> str:
    if depth and draw.random() < 0.5:
        word = draw.choice([" AND ", " OR "])
        text = word.join(f"({_condition(draw, depth - 1)})" for _ in range(2))
        return f"NOT ({text})" if draw.random() < 0.3 else text
    place = draw.randrange(3 * _FILES)
    return draw.choice(
        [
            f"i {draw.choice(['<', '<=', '>', '>=', '<>', '<=>'])} {place}",
            f"d {draw.choice(['<', '<=', '>', '>='])} {place / 2}D",
            f"NOT (i BETWEEN {place} AND {place + 9})",
            f"i IN ({place}, {place + 1}, {place + 2})",
            f"i {draw.choice(['IS NULL', 'IS NOT NULL'])}",
            f"d {draw.choice(['IS NULL', 'IS NOT NULL'])}",
            f"s >= 'kk{place:03d}'",
            "isnan(d)",
            "true",
        ]
    )


def test_at_random(base: SparkSession, tmp_path: Path) -> None:
    draw = random.Random(SEED)
    kinds = {"i": "int", "d": "double", "s": "string", "j": "int"}
    files = {
        f"f{n:02d}": {
            name: _column(draw, kind, n if name != "j" else draw.randrange(_FILES)) for name, kind in kinds.items()
        }
        for n in range(_FILES)
    }
    folder = written(tmp_path / "t", files)
    spark = configured(base, (tmp_path / "store").as_uri())
    esk.Dataset(spark, str(folder)).create_indexes(*map(esk.MinMax, "ids"), esk.GapList("j", gaps=2))
    fewer = 0
    for _ in range(QUERIES):
        spark.conf.set("spark.sql.adaptive.enabled", draw.choice(["true", "false"]))
        key, offset = draw.choice("iidsj"), draw.choice(["", "", f" OFFSET {draw.randrange(1, 30)}"])
        order = f"{key} {draw.choice(['ASC', 'DESC'])} {draw.choice(['', 'NULLS FIRST', 'NULLS LAST'])}"
        where = draw.choice(["", f"WHERE {_condition(draw)} ", f"WHERE {_condition(draw)} "])
        limit = draw.choice([1, 3, 17, 60, 200])
        fewer += opened(spark, folder, f"SELECT {key} FROM t {where}ORDER BY {order} LIMIT {limit}{offset}") < _FILES
        sql = f"SELECT count(*) FROM (SELECT {key} FROM t {where}LIMIT {limit}{offset})"
        opened(spark, folder, sql)
    assert fewer > QUERIES // 4
    esk.disable(spark)
