"""Parquet files of Spark 2.4 hold local times of an unnamed zone: what they mean depends on the JVM that reads them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import es_skipping as esk
from tests.spark.skipping_on_off import age, reading

NEW_YEAR_1800 = -5_364_662_400_000_000
HOUR = 3_600_000_000


@pytest.fixture
def zone(base: SparkSession) -> Iterator[object]:
    """The JVM's default zone, for the test to set; the old one comes back."""
    zones = base.sparkContext._jvm.java.util.TimeZone
    before = zones.getDefault()
    yield lambda name: zones.setDefault(zones.getTimeZone(name))
    zones.setDefault(before)


def test_an_index_is_of_the_jvm_zone_it_was_built_in(spark: SparkSession, tmp_path: Path, zone) -> None:  # type: ignore[no-untyped-def]
    folder = tmp_path / "old"
    folder.mkdir()
    for number in range(4):
        moments = [NEW_YEAR_1800 + (5 * number + i) * HOUR for i in range(5)]
        table = pa.table({"ts": pa.array(moments, pa.timestamp("us", "UTC")), "id": range(number * 5, number * 5 + 5)})
        pq.write_table(
            table.replace_schema_metadata({"org.apache.spark.version": "2.4.8"}), folder / f"{number}.parquet"
        )
    age(folder)
    zone("UTC")
    esk.Dataset(spark, str(folder)).create_indexes(esk.MinMax("ts"), esk.ValueList("id"))
    esk.enable(spark)
    least = _least(spark, folder)
    where = f"SELECT id FROM parquet.`{folder}` WHERE ts = timestamp_micros(%d)"
    assert reading(spark, where % least) == 1
    zone("Asia/Tokyo")
    moved = _least(spark, folder)
    assert moved < least, "or this test shows nothing"
    assert reading(spark, where % moved) == 4, "the row that the index of the other zone does not know of"
    assert reading(spark, f"SELECT ts FROM parquet.`{folder}` WHERE id = 7") == 1, "a number is what it was"
    zone("UTC")
    assert reading(spark, where % least) == 1


def _least(spark: SparkSession, folder: Path) -> int:
    return int(spark.sql(f"SELECT unix_micros(min(ts)) AS ts FROM parquet.`{folder}`").collect()[0].ts)
