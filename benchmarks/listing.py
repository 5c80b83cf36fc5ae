"""From a query to its pruned list of files, where a million are listed: Spark's listing, the look-up, the applying.

Run it with a server that may be written to; ``--page`` puts the figures into docs/benchmarks/million.md::

    python -m benchmarks.listing --store http://localhost:9200 --objects 1000000 --folder /dev/shm --page

The hard links of benchmarks/refresh.py. *Listed* is Spark's own, when the DataFrame is made; *asked* is from the
request to the decoded reply, *applied* the dropping of files; nothing is executed. The first query hashes the identity
of every listed object, later ones of the same DataFrame find the hashes kept. `esk.read` takes the store's list of
files instead of Spark's: its rows also say how many files were found in directories meanwhile, and the processor time
of the JVM and Python.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession

import es_skipping as esk
from benchmarks.refresh import ORIGINALS, ROWS, measured_at_sizes, originals, prepared
from benchmarks.scan_cost import processor_seconds
from es_skipping.spark import bridge

HEAD: Final = "| objects | query | skipped | planned ms | asked ms | applied ms |\n|--:|---|--:|--:|--:|--:|"


def pruned(spark: SparkSession, frame: DataFrame) -> dict[str, Any]:
    """Plan a query and let its scan list its files."""
    last, _ = bridge.all_records()
    begun = time.perf_counter()
    scan = frame._jdf.queryExecution().executedPlan().collectLeaves().apply(0)
    scan.relation().location().listFiles(scan.partitionFilters(), scan.dataFilters())
    seconds = time.perf_counter() - begun
    _, records = bridge.all_records(last)
    record = records[-1]
    return {
        "skipped": record["skippedObjects"],
        "planned": round(1000 * seconds, 1),
        "asked": round(record["askMs"], 1),
        "applied": round(record["applyMs"], 1),
    }


def measured(spark: SparkSession, scratch: Path, count: int) -> Iterator[dict[str, Any]]:
    root = scratch / f"events-{count}"
    root.mkdir()
    dataset = prepared(spark, root, originals(scratch / f"old-{count}", 0), count)
    spark.conf.set("spark.sql.adaptive.enabled", "false")
    begun = time.perf_counter()
    frame = spark.read.schema("id bigint, ts bigint, day int").parquet(str(root))
    yield {"objects": count, "query": "Spark's listing", "planned": round(1000 * (time.perf_counter() - begun))}
    half, few = ORIGINALS * ROWS // 2, ROWS
    for name, condition in (
        ("one in forty survives, the first query", f"id < {few}"),
        ("one in forty survives", f"id >= {few} AND id < {2 * few}"),
        ("the same again", f"id >= {few} AND id < {2 * few}"),
        ("half survives", f"id < {half}"),
        ("half survives, the same again", f"id < {half}"),
        ("none survives", "id < 0"),
    ):
        yield {"objects": count, "query": name, **pruned(spark, frame.where(condition))}
    yield from by_the_store(spark, dataset, count, f"id >= {2 * few} AND id < {3 * few}")
    dataset.drop_indexes(all=True)
    shutil.rmtree(root)


def by_the_store(spark: SparkSession, dataset: esk.Dataset, count: int, condition: str) -> Iterator[dict[str, Any]]:
    """From the DataFrame's making to the pruned list of files, by `esk.read` and by `spark.read`."""
    path = dataset._as_given.paths[0]
    readers: dict[str, Callable[[], DataFrame]] = {
        "esk.read, the first time": lambda: esk.read(spark, dataset),
        "esk.read": lambda: esk.read(spark, dataset),
        "spark.read": lambda: spark.read.parquet(path),
    }
    jvm: Any = spark._jvm
    found = jvm.org.apache.spark.metrics.source.HiveCatalogMetrics.METRIC_FILES_DISCOVERED()
    for name, reader in readers.items():
        before, work, begun = found.getCount(), processor_seconds(spark), time.perf_counter()
        row = pruned(spark, reader().where(condition))
        row["planned"] = round(1000 * (time.perf_counter() - begun), 1)
        listed = found.getCount() - before
        did = f"{name}: {listed:,} files listed, {1000 * (processor_seconds(spark) - work):,.0f} ms of CPU"
        yield {"objects": count, "query": did, **row}


def line(row: dict[str, Any]) -> str:
    if "asked" not in row:
        return f"| {row['objects']:,} | {row['query']} | | {row['planned']:,} | | |"
    return (
        f"| {row['objects']:,} | {row['query']} | {row['skipped']:,} | {row['planned']:,} | {row['asked']:,} "
        f"| {row['applied']:,} |"
    )


def main() -> None:
    measured_at_sizes("listing", __doc__, "100000", measured, HEAD, line)


if __name__ == "__main__":
    main()
