"""The processor time of a look-up, and of an object and a megabyte that a scan reads.

Run: ``python -m benchmarks.scan_cost [--store URL]``

Both sides count the processor time of Spark's JVM and of the Python driver, not of an Elasticsearch server, so a busy
machine changes little. ``docs/decisions/0040-look-ups-that-do-not-pay.md`` weighs look-ups by these figures.

``look-up``   planning a query over two indexed objects that it both needs, with skipping on less off: the median of
             seven differences
``object``    a scan of 1,000 objects of a row each, less a scan of 10 of them
``megabyte``  a scan of one large object, less a scan of an object of a row
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

import es_skipping as esk

ROUNDS, LOOKUPS, SCANS = 7, 100, 10
OBJECTS, ROWS = 1_000, 4_000_000


def processor_seconds(spark: SparkSession) -> float:
    """Of Spark's JVM and of this process."""
    jvm: Any = spark._jvm
    java = jvm.java.lang.ProcessHandle.current().info().totalCpuDuration().get().toNanos()
    return float(java) / 1e9 + time.process_time()


def each(spark: SparkSession, what: Callable[[], object], times: int) -> float:
    """Processor seconds of one run, after runs to warm up."""
    for _ in range(max(3, times // 5)):
        what()
    start = processor_seconds(spark)
    for _ in range(times):
        what()
    return (processor_seconds(spark) - start) / times


def scan(spark: SparkSession, path: Path) -> Callable[[], object]:
    """Reads all columns of all rows."""
    return lambda: spark.read.schema("id LONG, name STRING").parquet(str(path)).selectExpr("sum(hash(*))").collect()


def plan(spark: SparkSession, path: Path) -> Callable[[], object]:
    """Plans a query and lists its objects; runs nothing."""
    asked = iter(range(10**9))

    def once() -> object:
        frame = spark.read.schema("id LONG, name STRING").parquet(str(path)).where(f"id > {-next(asked)}")
        leaf = frame._jdf.queryExecution().executedPlan().collectLeaves().apply(0)
        return leaf.relation().location().listFiles(leaf.partitionFilters(), leaf.dataFilters())

    return once


def plan_on(spark: SparkSession, path: Path) -> float:
    esk.enable(spark)
    try:
        return each(spark, plan(spark, path), LOOKUPS)
    finally:
        esk.disable(spark)


def write(folder: Path, objects: int, rows: int) -> Path:
    folder.mkdir()
    for at in range(objects):
        ids = range(at * rows, (at + 1) * rows)
        pq.write_table(
            pa.table({"id": ids, "name": [f"name {hash(i)}" for i in ids]}), folder / f"part-{at:04}.parquet"
        )
    for file in folder.iterdir():
        os.utime(file, (0, 0))
    return folder


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--store")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp())
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.ui.showConsoleProgress", "false").config("spark.sql.shuffle.partitions", "1")
    builder = builder.config("spark.sql.warehouse.dir", str(folder / "warehouse"))
    spark = esk.configure(builder).getOrCreate()
    if options.store:
        spark.conf.set("spark.es_skipping.store.url", options.store)
    many, few = write(folder / "many", OBJECTS, 1), write(folder / "few", 10, 1)
    one, large, two = write(folder / "one", 1, 1), write(folder / "large", 1, ROWS), write(folder / "two", 2, 1)
    megabytes = sum(file.stat().st_size for file in large.iterdir()) / 1e6
    dataset = esk.Dataset(spark, str(two))
    dataset.create_indexes(esk.MinMax("id"))
    try:
        lookup = statistics.median(plan_on(spark, two) - each(spark, plan(spark, two), LOOKUPS) for _ in range(ROUNDS))
        per_object = (each(spark, scan(spark, many), SCANS) - each(spark, scan(spark, few), SCANS)) / (OBJECTS - 10)
        per_megabyte = (each(spark, scan(spark, large), SCANS) - each(spark, scan(spark, one), SCANS)) / megabytes
    finally:
        dataset.drop_indexes(all=True)
    figures = {"look-up": lookup, "object": per_object, "megabyte": per_megabyte}
    print(json.dumps({name: f"{1000 * seconds:.2f} ms" for name, seconds in figures.items()}))
    spark.stop()


if __name__ == "__main__":
    main()
