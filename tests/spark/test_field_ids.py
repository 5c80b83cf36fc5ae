"""Parquet fields found by their ids, which Spark reads if a setting says so; Delta turns it on for its session."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import LongType, StructField, StructType

import es_skipping as esk
from tests.spark.skipping_on_off import age, reading

SETTING = "spark.sql.parquet.fieldId.read.enabled"


@pytest.fixture
def path(tmp_path: Path) -> str:
    """Four files whose column ``a`` has the id 1 and ascends, and ``b`` the id 2 and descends."""
    schema = pa.schema(
        [
            pa.field("a", pa.int64(), metadata={"PARQUET:field_id": "1"}),
            pa.field("b", pa.int64(), metadata={"PARQUET:field_id": "2"}),
        ]
    )
    folder = tmp_path / "data"
    folder.mkdir()
    for number in range(4):
        values = list(range(number * 10, number * 10 + 10))
        table = pa.table([values, [100 - value for value in values]], schema=schema)
        pq.write_table(table, folder / f"part-{number}.parquet")
    age(folder)
    return str(folder)


@pytest.mark.parametrize("built", ["true", "false"])
def test_an_index_serves_sessions_with_and_without_the_setting(spark: SparkSession, path: str, built: str) -> None:
    spark.conf.set(SETTING, built)
    esk.Dataset(spark, path).create_indexes(esk.MinMax("a"), esk.BloomFilter("b"))
    for now in ("true", "false"):
        spark.conf.set(SETTING, now)
        assert reading(spark, lambda session: session.read.parquet(path).where("a = 25")) == 1
        assert reading(spark, lambda session: session.read.parquet(path).where("b = 85")) == 1
    store = spark.conf.get("spark.es_skipping.store.url")
    assert len(esk.files(path, "a = 25", store=store)) == 1


def test_a_name_that_reads_another_field(spark: SparkSession, path: str) -> None:
    """By its id, ``a`` is the file's ``b``: the index on the file's ``a`` says nothing of it.

    Spark pushes the filter down by name, and loses the row without this package.
    """
    spark.conf.set("spark.sql.parquet.filterPushdown", "false")
    esk.Dataset(spark, path).create_indexes(esk.MinMax("a"), esk.MinMax("b"))
    crossed = StructType([StructField("a", LongType(), metadata={"parquet.field.id": 2})])
    for now in ("false", "true"):
        spark.conf.set(SETTING, now)
        assert reading(spark, lambda session: session.read.schema(crossed).parquet(path).where("a = 85")) == 4
    assert spark.read.schema(crossed).parquet(path).where("a = 85").count() == 1
