"""What is not a file source of Spark's own: it is left alone, and what stands beside it skips."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

import es_skipping as esk
from tests.spark.objects_read import num_files
from tests.spark.skipping_on_off import age, same_rows


class _Squares(DataSource):
    """A data source in Python, of rows (id, square)."""

    @classmethod
    def name(cls) -> str:
        return "squares"

    def schema(self) -> str:
        return "id BIGINT, square BIGINT"

    def reader(self, schema: StructType) -> DataSourceReader:
        return _SquaresReader()


class _SquaresReader(DataSourceReader):
    def partitions(self) -> list[InputPartition]:
        return [InputPartition(low) for low in range(0, 40, 10)]

    def read(self, partition: InputPartition) -> Iterator[tuple[int, int]]:
        for id in range(partition.value, partition.value + 10):
            yield id, id * id


def test_a_data_source_in_python(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "lake")
    spark.range(0, 400, 1, 4).write.parquet(path)
    spark.dataSource.register(_Squares)
    esk.enable(spark)
    esk.Dataset(spark, path).create_indexes(esk.MinMax("id"))
    spark.read.format("squares").load().createOrReplaceTempView("squares")
    spark.read.parquet(path).createOrReplaceTempView("lake")
    alone = same_rows(spark, "SELECT * FROM squares WHERE id = 7")
    assert [tuple(row) for row in alone.collect()] == [(7, 49)]
    joined = same_rows(
        spark, "SELECT l.id, s.square FROM lake l JOIN squares s ON l.id = s.square WHERE s.id < 5 AND l.id < 20"
    )
    assert sorted(row.id for row in joined.collect()) == [0, 1, 4, 9, 16]
    assert num_files(joined) == [1]
    with pytest.raises(esk.DatasetError, match="does not read files as Spark's own formats do"):
        esk.Dataset(spark, path, format="squares").create_indexes(esk.MinMax("id"))


@pytest.fixture
def active(spark: SparkSession) -> Iterator[None]:
    """Let the test's session be the active one: of that Spark asks whether it may write such types."""
    sessions: Any = spark._jvm.SparkSession
    sessions.setActiveSession(spark._jsparkSession)
    yield
    sessions.clearActiveSession()


@pytest.mark.parametrize(
    ("setting", "value", "filters", "refused"),
    [
        (
            "spark.sql.timeType.enabled",
            "make_time(cast(id div 10 AS INT), cast(id % 10 AS INT), 0)",
            ("c = TIME'03:04:00'", "c > TIME'08:00:00'"),
            "has type time",
        ),
        (
            "spark.sql.timestampNanosTypes.enabled",
            "CAST(concat('2024-01-0', 1 + id div 20, ' 00:00:00.12345678', id % 10) AS TIMESTAMP_NTZ(9))",
            (
                "c > CAST('2024-01-04 00:00:00.123456785' AS TIMESTAMP_NTZ(9))",
                "c = TIMESTAMP_NTZ'2024-01-01 00:00:00.123456'",
            ),
            "cannot be indexed",
        ),
        (
            "spark.sql.timestampNanosTypes.enabled",
            "CAST(concat('2024-01-0', 1 + id div 20, ' 00:00:00.12345678', id % 10) AS TIMESTAMP_LTZ(9))",
            ("c > CAST('2024-01-04 00:00:00.123456785' AS TIMESTAMP_LTZ(9))",),
            "cannot be indexed",
        ),
    ],
)
def test_times_of_day_and_times_to_the_nanosecond(
    spark: SparkSession, active: None, tmp_path: Path, setting: str, value: str, filters: tuple[str, ...], refused: str
) -> None:
    """They are not indexed, and a filter on one does not keep the others of its query from skipping."""
    spark.conf.set(setting, "true")
    spark.conf.set("spark.es_skipping.strict", "true")
    path = str(tmp_path / "lake")
    spark.range(0, 100, 1, 5).selectExpr("id", f"{value} AS c").write.parquet(path)
    age(path)
    dataset = esk.Dataset(spark, path)
    dataset.create_indexes(esk.MinMax("id"))
    for index in (esk.MinMax("c"), esk.ValueList("c")):
        with pytest.raises(esk.ColumnError, match=refused):
            dataset.create_indexes(index)

    def opened(condition: str) -> int:
        counted = []
        for on in (False, True):
            (esk.enable if on else esk.disable)(spark)
            frame = spark.read.parquet(path).where(condition).selectExpr("id")
            counted.append(sorted(row.id for row in frame.collect()))
        assert counted[0] == counted[1]
        return sum(num_files(frame))

    for condition in filters:
        assert opened(condition) == 5
        assert opened(f"id < 20 AND {condition}") == 1
    assert opened("hour(c) = 3 OR id = 50") == 5
