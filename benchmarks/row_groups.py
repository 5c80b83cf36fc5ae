"""Bytes and CPU of scans with metadata per file, with metadata per row group, and with Spark's own row group filter.

Run: ``python -m benchmarks.row_groups [--rows 2000000] [--store URL]`` (some minutes on two cores). Writes the table of
``docs/benchmarks/row-groups.md``.

Eight files of 16 row groups of made-up events, in random order and sorted inside each file. Every variant lists all
files; only the third has metadata. CPU is that of the whole JVM, planning included, the least of several runs; bytes
are what Hadoop's file system counted in the tasks.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

import es_skipping as esk
from benchmarks.pages import FOLDER, fill

FILES, GROUPS, RUNS = 8, 16, 5
INDEXES = (esk.MinMax("id"), esk.BloomFilter("key"), esk.Prefix("path", length=4), esk.GeoBox("lat", "lon", boxes=4))
QUERIES = {
    "point": "key = {key}",
    "IN": "key IN ({key}, {key} + 1, {key} + 2)",
    "LIKE prefix": "path LIKE '/a07/%'",
    "box": "lat BETWEEN 10 AND 10.5 AND lon BETWEEN 20 AND 20.5",
    "nothing skipped": "length(path) >= 0",
}


def write(folder: Path, rows: int, *, ordered: bool) -> None:
    folder.mkdir()
    rng = np.random.default_rng(23)
    each = rows // FILES
    for file in range(FILES):
        places = rng.integers(0, 200, each)
        if ordered:
            places.sort()
        table = pa.table(
            {
                "id": pa.array(np.arange(file * each, (file + 1) * each)),
                "key": pa.array(rng.integers(0, rows * 4, each) * 1_000 + places),
                "path": pa.array([f"/a{place:02}/{n}" for n, place in enumerate(places)]),
                "lat": pa.array(places * 0.5 + rng.random(each) * 0.4),
                "lon": pa.array(places * 1.0 + rng.random(each) * 0.4),
                "payload": pa.array(rng.random(each)),
            }
        )
        path = folder / f"f{file}.parquet"
        pq.write_table(table, path, row_group_size=-(-each // GROUPS))
        os.utime(path, (1_000_000_000, 1_000_000_000))


class Meter:
    """CPU seconds of a session's JVM, and bytes that its tasks read."""

    def __init__(self, spark: SparkSession) -> None:
        self._context = spark.sparkContext._jsc.sc()
        self._pid = spark._jvm.java.lang.ProcessHandle.current().pid()  # type: ignore[union-attr]

    def cpu(self) -> float:
        fields = Path(f"/proc/{self._pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def read(self) -> int:
        time.sleep(0.3)  # the listener that counts runs behind
        executors = self._context.statusStore().executorList(False)
        return sum(int(executors.apply(at).totalInputBytes()) for at in range(executors.size()))


def measured(spark: SparkSession, meter: Meter, path: Path, condition: str) -> tuple[float, int]:
    """The least CPU seconds of a query, and the bytes that it read."""
    seconds, read = [], 0
    for _ in range(RUNS):
        read, cpu = -meter.read(), meter.cpu()
        spark.read.parquet(str(path)).where(condition).selectExpr("sum(payload)", "count(*)").collect()
        seconds.append(meter.cpu() - cpu)
        read += meter.read()
    return min(seconds), read


def variants(spark: SparkSession, folder: Path, rows: int, ordered: bool) -> Iterator[tuple[str, str, float, int]]:
    path, meter = folder / ("sorted" if ordered else "random"), Meter(spark)
    write(path, rows, ordered=ordered)
    key = pq.ParquetFile(path / "f3.parquet").read_row_group(5, columns=["key"])["key"][7].as_py()
    dataset = esk.Dataset(spark, str(path))
    for variant, granularity in (("Spark alone", None), ("per file", "file"), ("per row group", "rowGroup")):
        if granularity is not None:
            spark.conf.set("spark.es_skipping.granularity", granularity)
            dataset.ensure_indexes(*INDEXES)
            esk.enable(spark)
        else:
            esk.disable(spark)
        for name, condition in QUERIES.items():
            yield (name, variant, *measured(spark, meter, path, condition.format(key=key)))


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--rows", type=int, default=2_000_000)
    arguments.add_argument("--store")
    args = arguments.parse_args()
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        spark = (
            esk.configure(SparkSession.builder.master("local[2]"))
            .config("spark.ui.enabled", "false")
            .config("spark.driver.memory", "2g")
            .getOrCreate()
        )
        spark.conf.set("spark.es_skipping.store.url", args.store or (Path(folder) / "store").as_uri())
        for ordered in (False, True):
            found = {}
            for name, variant, seconds, read in variants(spark, Path(folder), args.rows, ordered):
                found[name, variant] = f"{read / 1e6:.1f} MB, {seconds * 1000:.0f} ms"
            for name in QUERIES:
                cells = [found[name, variant] for variant in ("Spark alone", "per file", "per row group")]
                lines.append(f"| {'sorted' if ordered else 'random'} | {name} | {' | '.join(cells)} |")
        spark.stop()
    head = "| order | query | Spark alone | metadata per file | metadata per row group |\n|--|--|--:|--:|--:|"
    fill("row_groups", "\n".join([head, *lines]), FOLDER / "row-groups.md")


if __name__ == "__main__":
    main()
