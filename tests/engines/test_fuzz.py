"""A slice of the random comparison of survivors with all files; ``make engine-fuzz`` looks for longer."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.engines.fuzz import hunt
from tests.engines.lake import PARTITIONS, indexed, write_lake

pytestmark = pytest.mark.in_turn("store")


@pytest.mark.parametrize(
    ("int96", "partitions"),
    [(False, ()), (True, ()), (False, PARTITIONS[:3]), (True, PARTITIONS)],
    ids=["int64", "int96", "partitions", "unclear partitions"],
)
def test_no_engine_loses_a_row(
    spark: SparkSession, store: dict[str, str], tmp_path: Path, int96: bool, partitions: tuple[str, ...]
) -> None:
    seed = int(os.environ.get("ES_SKIPPING_SEED", "22"))
    write_lake(tmp_path / "lake", 12, seed, int96, partitions)
    indexed(spark, tmp_path / "lake", ranges_only=int96)
    records = hunt(tmp_path / "lake", store, seed, seconds=6, int96=int96, partitions=partitions)
    for name, record in records.items():
        assert record.lost == [], name
        assert record.filters >= 5
        assert record.skipping * 3 > record.filters, f"{name}: hardly a filter skips: {record}"
        assert record.refused * 4 < record.filters, f"{name}: too much is refused: {record}"
