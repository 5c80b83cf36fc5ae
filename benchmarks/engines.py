"""DuckDB and Polars alone, and with the files of `esk.files`, in one run.

Run: ``python -m benchmarks.engines 200 1000 20000``; ``--store http://localhost:9200`` for Elasticsearch. Time of
`esk.files` counts, with its listing. Each engine alone lists the files itself, by a glob. Runs of both alternate, each
goes first in half of the pairs, and a line has the medians.
"""

from __future__ import annotations

import argparse
import math
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

import es_skipping as esk
from benchmarks.pages import stamp

STORES = 1_000
"""Different values of ``store_key``; the rows are sorted by it."""
ROWS = 6_000_000
"""Of all files together, or at least 300 a file."""


def write(folder: Path, files: int) -> None:
    """Facts of sales, sorted by store, in this many files."""
    rows = max(300, ROWS // files)
    chance = np.random.default_rng(22)
    total = rows * files
    for file in range(files):
        start = file * rows
        table = pa.table(
            {
                "store_key": (np.arange(start, start + rows) * STORES // total).astype(np.int32),
                "date_key": chance.integers(0, 2_400, rows, np.int32),
                "qty": chance.integers(1, 100, rows, np.int32),
                "price": chance.random(rows) * 1000,
                "note": [f"n{n}" for n in chance.integers(0, 5_000, rows)],
            }
        )
        pq.write_table(table, folder / f"part-{file:05}.parquet")


def questions() -> dict[str, tuple[str, pl.Expr]]:
    """Filters in SQL and for Polars, by the share of files that they need."""
    store = pl.col("store_key")
    return {
        "one store": ("store_key = 377", store == 377),
        "a tenth": ("store_key BETWEEN 300 AND 399", store.is_between(300, 399)),
        "half": ("store_key < 500 AND price > 10", (store < 500) & (pl.col("price") > 10)),
        "all, asked": ("date_key >= 1200", pl.col("date_key") >= 1200),
        "all, not understood": ("qty % 7 = 3", pl.col("qty") % 7 == 3),
    }


def seconds(run: Callable[[], Any]) -> tuple[float, Any]:
    begun = time.perf_counter()
    result = run()
    return time.perf_counter() - begun, result


def compare(folder: Path, store: str, pairs: int) -> None:
    """Print a line for each question and engine."""
    every = f"{folder}/*.parquet"
    settings = {"spark.es_skipping.store.url": store, "spark.es_skipping.store.timeout": "30s"}
    print("| engine | question | files | alone ms | with the list ms | of that the look-up ms | ratio |")
    print("|---|---|---:|---:|---:|---:|---:|")
    ratios: dict[str, list[float]] = {}
    for name, (where, condition) in questions().items():

        def by_duckdb(files: Any, where: str = where) -> Any:
            query = f"SELECT count(*), sum(qty), max(price) FROM read_parquet($files) WHERE {where}"
            return duckdb.execute(query, {"files": files}).fetchall()

        def by_polars(files: Any, condition: pl.Expr = condition) -> Any:
            columns = (pl.len(), pl.col("qty").sum(), pl.col("price").max())
            return pl.scan_parquet(files).filter(condition).select(columns).collect().rows()

        for engine, run in (("DuckDB", by_duckdb), ("Polars", by_polars)):
            alone, listed, looked_up = [], [], []
            for pair in range(pairs):
                for with_list in (False, True) if pair % 2 else (True, False):  # each goes first in half of the pairs
                    if with_list:
                        look_up, found = seconds(lambda where=where: esk.files(folder, where, store=settings))
                        took, got = seconds(lambda run=run, found=found: run(found))
                        looked_up.append(look_up)
                        listed.append(look_up + took)
                    else:
                        took, wanted = seconds(lambda run=run: run(every))
                        alone.append(took)
                assert got == wanted, (engine, where, got, wanted)
            before, after, part = (1000 * statistics.median(times) for times in (alone, listed, looked_up))
            ratios.setdefault(engine, []).append(after / before)
            kept = f"{len(found):,} of {found.report.objects_total:,}"
            print(f"| {engine} | {name} | {kept} | {before:.1f} | {after:.1f} | {part:.1f} | {after / before:.2f} |")
    for engine, some in ratios.items():
        print(f"\n{engine}: geometric mean of the ratios {math.exp(statistics.fmean(map(math.log, some))):.2f}")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("files", nargs="*", type=int, default=[200, 1_000, 20_000])
    parser.add_argument("--store", help="metadata store (default: Parquet files)")
    parser.add_argument("--pairs", type=int, default=15)
    given = parser.parse_args()
    from pyspark.sql import SparkSession

    with tempfile.TemporaryDirectory() as base:
        store = given.store or f"file:{base}/store"
        folders = {files: Path(base) / f"sales-{files}" for files in given.files}
        spark = esk.configure(SparkSession.builder.master("local[2]")).getOrCreate()
        spark.sparkContext.setLogLevel("ERROR")
        spark.conf.set("spark.es_skipping.store.url", store)
        for files, folder in folders.items():
            folder.mkdir()
            write(folder, files)
            esk.Dataset(spark, str(folder)).create_indexes(esk.MinMax("store_key"), esk.MinMax("date_key"))
        spark.stop()  # the engines have the machine to themselves
        for files, folder in folders.items():
            print(f"\n{files:,} files\n")
            compare(folder, store, given.pairs)
    print(stamp())


if __name__ == "__main__":
    main()
