"""Rows that the JVM makes fewer before Python sees them stand for exactly the rows that were there."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from es_skipping.build.worker import _distinct, _runs
from es_skipping.spark.bridge import ship_jar
from es_skipping.spark.relations import distinct_rows

VALUES = {
    "low": "id % 7",
    "unique": "id",
    "mostly_null": "if(id % 1000 = 0, id, null)",
    "all_null": "cast(null as int)",
    "real": "case id % 5 when 0 then double('NaN') when 1 then -0.0D when 2 then 0D when 3 then null else id / 3D end",
    "single": "case id % 3 when 0 then float('NaN') when 1 then float('-Infinity') else cast(id % 11 as float) end",
    "flag": "id % 2 = 0",
    "tiny": "cast(id % 100 as tinyint)",
    "small": "cast(id % 300 as smallint)",
    "day": "date_add(date'1969-12-01', cast(id % 60 as int))",
    "moment": "timestamp_micros(id * 1000003 - 50000)",
    "local": "cast(timestamp_micros(id % 13) as timestamp_ntz)",
    "money": "cast((id % 1000) / 8 as decimal(18, 3))",
    "word": "if(id % 9 = 0, null, concat('w', id % 50, repeat('\u00e9', cast(id % 4 as int))))",
    "text": "concat(repeat('x', 200), id)",
    "blob": "cast(concat(char(0), id % 20) as binary)",
}


@pytest.fixture(autouse=True)
def jar(base: SparkSession) -> None:
    ship_jar(base)


def frame(spark: SparkSession, rows: int, objects: int) -> DataFrame:
    """So many rows of so many objects in turn, those of one object together; three tasks, one object in two of them."""
    each = rows // objects
    columns = [f"{expression} AS {name}" for name, expression in VALUES.items()]
    return spark.range(0, rows, 1, 3).selectExpr(f"id div {each} AS object", *columns)


def told(batches: list[pa.RecordBatch], *, distinct: bool, columns: int = len(VALUES)) -> dict[int, Any]:
    """Per object the number of rows, and per column the distinct values, nulls and NaNs."""
    rows: Counter[int] = Counter()
    values: dict[int, dict[int, set[Any]]] = defaultdict(lambda: defaultdict(set))
    nulls: Counter[tuple[int, int]] = Counter()
    nans: Counter[tuple[int, int]] = Counter()
    for batch in batches:
        for number, piece in _runs(batch):
            for count, arrays in _distinct(piece) if distinct else [(piece.num_rows, piece.columns)]:
                rows[number] += count
                for at, column in enumerate(arrays[1:]):
                    for value in column.to_pylist():
                        if value is None:
                            nulls[number, at] += 1
                        elif isinstance(value, float) and math.isnan(value):
                            nans[number, at] += 1
                        else:
                            values[number][at].add(value)
    return {
        number: [count, [(values[number][at], nulls[number, at], nans[number, at]) for at in range(columns)]]
        for number, count in rows.items()
    }


def batches(df: DataFrame) -> list[pa.RecordBatch]:
    return df.toArrow().to_batches(max_chunksize=1000)


def test_every_type_every_count(spark: SparkSession) -> None:
    df = frame(spark, 160_000, 4)
    fewer = distinct_rows(df)
    assert fewer is not None
    assert told(batches(fewer), distinct=True) == told(batches(df), distinct=False)


def test_few_values_make_few_rows(spark: SparkSession) -> None:
    df = frame(spark, 30_000, 3).select("object", "low", "word", "all_null")
    fewer = distinct_rows(df)
    assert fewer is not None
    assert fewer.count() < 30_000 / 20
    assert sum(row.counts[0] for row in fewer.collect() if row.counts is not None) == 30_000


def test_many_nulls_are_told_in_parts(spark: SparkSession) -> None:
    df = spark.range(0, 5_000_000, 1, 1).selectExpr("7L AS object", "cast(null as string) AS s")
    fewer = distinct_rows(df)
    assert fewer is not None
    pieces = [piece for batch in fewer.toArrow().to_batches() for piece in _distinct(batch)]
    assert sum(rows for rows, _ in pieces) == 5_000_000
    assert [columns[1].null_count for _, columns in pieces] == [rows for rows, _ in pieces]
    assert max(rows for rows, _ in pieces) <= 1 << 21


def test_no_rows_and_types_that_cannot_be_told_apart(spark: SparkSession) -> None:
    nothing = distinct_rows(frame(spark, 40_000, 4).where("false"))
    assert nothing is not None
    assert nothing.count() == 0
    assert distinct_rows(spark.range(3).selectExpr("id", "cast(id as decimal(38, 2)) AS d")) is None
    assert distinct_rows(spark.range(3).selectExpr("id", "array(id) AS a")) is None


@pytest.fixture(scope="module")
def files(base: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Four objects of several row groups each; long columns leave their dictionary in the middle."""
    path = str(tmp_path_factory.mktemp("distinct") / "files")
    columns = [f"{expression} AS {name}" for name, expression in VALUES.items()]
    nested = "named_struct('inner', if(id % 3 = 0, null, id % 5)) AS nested"
    frame = base.range(0, 120_000, 1, 4).selectExpr(*columns, nested)
    frame.write.option("parquet.block.size", 400_000).option("parquet.dictionary.page.size", 20_000).parquet(path)
    return path


def of_objects(df: DataFrame, *columns: str) -> DataFrame:
    path = df.metadataColumn("_metadata")["file_path"]
    return df.select(F.xxhash64(path).alias("object"), *(F.expr(column) for column in columns))


def batches_made_rows(df: DataFrame) -> int:
    """How many batches of a frame's scan became rows."""
    plan: Any = df._jdf.queryExecution().executedPlan()
    while plan.nodeName() != "ColumnarToRow":
        plan = plan.children().head()
    return int(plan.metrics().apply("numInputBatches").value())


@pytest.mark.parametrize("format", ["parquet", "orc"])
def test_files_are_read_by_column(spark: SparkSession, files: str, format: str, tmp_path: Any) -> None:
    if format == "orc":
        spark.read.parquet(files).limit(30_000).write.orc(str(tmp_path / "orc"))
        files = str(tmp_path / "orc")
    computed = ("substring(text, 150, 100)", "nested.inner", "low + 1", "low")
    df = of_objects(spark.read.format(format).load(files), *VALUES, *computed)
    fewer = distinct_rows(df)
    assert fewer is not None
    found = told(batches(fewer), distinct=True, columns=len(VALUES) + len(computed))
    assert batches_made_rows(df) == 0
    assert found == told(batches(df), distinct=False, columns=len(VALUES) + len(computed))


def test_some_of_the_files(spark: SparkSession, files: str) -> None:
    df = spark.read.parquet(files)
    path = df.metadataColumn("_metadata")["file_path"]
    one, two, *_ = sorted(row.p for row in df.select(path.alias("p")).distinct().collect())
    some = of_objects(df.where(path.isin([one, two])), "word", "real")
    fewer = distinct_rows(some)
    assert fewer is not None
    found = told(batches(fewer), distinct=True, columns=2)
    assert len(found) == 2
    assert batches_made_rows(some) == 0
    assert found == told(batches(some), distinct=False, columns=2)


def test_a_condition_on_rows_is_kept(spark: SparkSession, files: str) -> None:
    few = of_objects(spark.read.parquet(files).where("low = 3 AND text > 'x'"), "low", "unique")
    fewer = distinct_rows(few)
    assert fewer is not None
    assert told(batches(fewer), distinct=True, columns=2) == told(batches(few), distinct=False, columns=2)


@pytest.mark.parametrize("by", ["column", "row"])
def test_no_more_values_than_matter(spark: SparkSession, files: str, by: str) -> None:
    """Of a column with a limit more values come than that where there are more, and all of them where there are not."""
    columns = ("low", "unique", "word", "substring(text, 150, 100)", "real", "nested.inner")
    limits = (7, 500, 30, 1000, 2, None)
    path = spark.read.parquet(files)
    df = of_objects(path if by == "column" else path.where("tiny >= 0"), *columns)
    fewer = distinct_rows(df, limits)
    assert fewer is not None
    found = told(batches(fewer), distinct=True, columns=len(columns))
    whole = told(batches(df), distinct=False, columns=len(columns))
    assert found.keys() == whole.keys()
    for number, (rows, told_of) in found.items():
        assert rows == whole[number][0]
        for limit, some, every in zip(limits, told_of, whole[number][1], strict=True):
            if limit is None or len(every[0]) <= limit:
                assert some == every
            else:
                assert some[0] <= every[0]
                assert limit < len(some[0])
        assert len(told_of[3][0]) < 10_000, "of 30,000 values most were left out"
