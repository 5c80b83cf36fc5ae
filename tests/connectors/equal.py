"""The same query with skipping on and off, and what its scans stand on."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

import es_skipping as esk
from tests.spark.objects_read import file_indexes

__all__ = ["rows_on_and_off", "run_on_and_off", "skipping_scans"]

Rows = list[tuple[object, ...]]


def run_on_and_off(spark: SparkSession, sql: str) -> tuple[Rows, DataFrame]:
    """The rows of a query, which are the same with skipping on and off, and the frame that ran with it on."""
    frame = spark.sql(sql)
    on = sorted(tuple(row) for row in frame.collect())
    esk.disable(spark)
    try:
        off = sorted(tuple(row) for row in spark.sql(sql).collect())
    finally:
        esk.enable(spark)
    assert on == off, sql
    return on, frame


def rows_on_and_off(spark: SparkSession, sql: str) -> Rows:
    """The rows of a query, which are the same with skipping on and off."""
    return run_on_and_off(spark, sql)[0]


def skipping_scans(spark: SparkSession, sql: str) -> int:
    """How many of a query's scans read through the shim's file index."""
    frame = spark.sql(sql)
    frame.collect()
    return sum("Skipping" in name for name in file_indexes(frame))
