"""How long building takes, against reading the same columns and doing nothing with them.

Run: ``python -m benchmarks.build`` (needs ``tpchgen-cli``; about ten minutes on two cores). Writes
``docs/benchmarks/build.json`` and prints a table.

Measured, each as the median of alternated runs in one local session of two threads:

``scan``
    lineitem at scale 1 in 24 objects: MinMax(l_shipdate), ValueList(l_shipmode) and Prefix(l_comment, 8), collected in
    one pass, against a ``noop`` write of the same three columns.
``footers``
    MinMax(l_shipdate) from Parquet footers, against the same ``noop`` write; both are told the schema, as a table of
    the catalog tells it.
``footers, schema inferred``
    The same, where Spark first looks for the schema: a job of its own.
``footers, 11 columns``
    MinMax of each column that is no string, against a ``noop`` write of these; the schema is told.
``small objects``
    1,000 objects of 6,000 rows: the three indexes as above.
``two Bloom filters``
    200 objects of 30,000 rows with as many distinct numbers and texts: BloomFilter of both columns, against a ``noop``
    write of the same two.
``two MinMax``
    MinMax of the same two columns, which reads the text and not only footers, against the same ``noop`` write.

With ``--store URL`` nothing of this, but builds of many small objects (links to a few of ten rows; ValueList, MinMax)
into Elasticsearch, written by the driver and by the executors (``build.executorWriters``) in turn.

``build`` is all of ``create_indexes``: opening the dataset, listing twice, the pass, and publishing in the Parquet
store; like the ``noop`` write it begins with a path. Dropping what the run before built is not measured.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import es_skipping as esk
from benchmarks.pages import stamp
from es_skipping.build.dataset import Dataset

OUTPUT = Path(__file__).resolve().parent.parent / "docs" / "benchmarks" / "build.json"

NO_STRINGS = (
    *("l_orderkey", "l_partkey", "l_suppkey", "l_linenumber", "l_quantity", "l_extendedprice", "l_discount", "l_tax"),
    *("l_shipdate", "l_commitdate", "l_receiptdate"),
)


def lineitem(directory: Path, scale: float, parts: int) -> Path:
    """TPC-H's lineitem as so many Parquet files; made once."""
    target = directory / f"lineitem-{scale:g}-{parts}"
    if not target.exists():
        program = Path(sys.executable).with_name("tpchgen-cli")
        made = directory / "tpchgen"
        command = [
            str(program),
            "parquet",
            "--scale-factor",
            f"{scale:g}",
            "--tables",
            "lineitem",
            "--parts",
            str(parts),
        ]
        subprocess.run([*command, "--output-dir", str(made), "--no-progress"], check=True, stdout=subprocess.DEVNULL)
        (made / "lineitem").rename(target)
        shutil.rmtree(made)
    return target


def small_objects(spark: Any, source: Path, directory: Path, count: int, rows: int) -> Path:
    """So many objects of so many rows each, of the same data."""
    target = directory / f"lineitem-{count}x{rows}"
    if not target.exists():
        frame = spark.read.parquet(str(source)).select("l_orderkey", "l_shipdate", "l_shipmode", "l_comment")
        frame = frame.limit(count * rows).repartition(count)
        frame.write.option("maxRecordsPerFile", rows).parquet(str(target))
    return target


def ids(directory: Path, count: int, rows: int) -> Path:
    """So many objects of so many rows, each with a number and a text that no other row has."""
    target = directory / f"ids-{count}x{rows}"
    if not target.exists():
        made = directory / f"ids-{count}x{rows}.part"
        made.mkdir()
        for n in range(count):
            numbers = (np.arange(n * rows, (n + 1) * rows, dtype=np.int64) * 2_654_435_761) % (1 << 40)
            texts = [f"{number:x}@example.org" for number in numbers.tolist()]
            pq.write_table(pa.table({"id": numbers, "address": texts}), made / f"part-{n:05}.parquet")
        made.rename(target)
    return target


def alternated(runs: int, *, warm: int = 5, **works: Callable[[], float]) -> dict[str, list[float]]:
    """The seconds of works in turn, so that what else the machine does meets all of them, after a warm-up."""
    found: dict[str, list[float]] = {name: [] for name in works}
    for round in range(-warm, runs):
        for name, work in works.items():
            seconds = work()
            if round >= 0:
                found[name].append(seconds)
    return found


def build(spark: Any, path: Path, *indexes: Any, schema: Any = None) -> float:
    Dataset(spark, str(path)).drop_indexes(all=True)
    start = time.perf_counter()
    result = Dataset(spark, str(path), schema=schema).create_indexes(*indexes)
    seconds = time.perf_counter() - start
    assert not result.failed, result.failed
    return seconds


def noop(spark: Any, path: Path, *columns: str, schema: Any = None) -> float:
    start = time.perf_counter()
    reader = spark.read if schema is None else spark.read.schema(schema)
    reader.parquet(str(path)).select(*columns).write.format("noop").mode("overwrite").save()
    return time.perf_counter() - start


def by_driver_and_executors(url: str, count: int, folder: Path) -> None:
    """Builds into Elasticsearch of so many small objects, written by the driver and by the executors in turn."""
    from benchmarks.refresh import linked, originals, session

    with tempfile.TemporaryDirectory(prefix="es-skipping-build-", dir=folder) as made:
        root = Path(made) / "data"
        root.mkdir()
        linked(root, originals(Path(made) / "originals", 0), iter(range(count)), count)
        spark = session(Path(made), url, memory="2g")
        for writers in (None, 2, None, 2):
            key = "spark.es_skipping.build.executorWriters"
            spark.conf.unset(key) if writers is None else spark.conf.set(key, str(writers))
            seconds = build(spark, root, esk.ValueList("id"), esk.MinMax("ts"))
            told = "the driver writes" if writers is None else f"{writers} tasks on the executors write"
            print(f"{told}: {seconds:.1f} s, {count / seconds:,.0f} objects a second", flush=True)
        Dataset(spark, str(root)).drop_indexes(all=True)
        spark.stop()


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--data", type=Path, default=Path(tempfile.gettempdir()) / "es-skipping-benchmarks")
    arguments.add_argument("--scale", type=float, default=1.0)
    arguments.add_argument("--runs", type=int, default=5)
    arguments.add_argument("--small", type=int, default=1000, help="objects of the third measurement; 0 leaves it out")
    arguments.add_argument("--ids", type=int, default=200, help="objects of the Bloom filters; 0 leaves them out")
    arguments.add_argument("--output", type=Path, default=OUTPUT)
    arguments.add_argument("--store", help="URL of an Elasticsearch: compare who writes there, and nothing else")
    arguments.add_argument("--objects", type=int, default=100_000, help="so many small ones, with --store")
    given = arguments.parse_args()
    given.data.mkdir(parents=True, exist_ok=True)
    if given.store:
        by_driver_and_executors(given.store, given.objects, given.data)
        return

    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    store = tempfile.mkdtemp(prefix="es-skipping-store-")
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.driver.memory", "2g")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.es_skipping.store.url", f"file://{store}")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    try:
        path = lineitem(given.data, given.scale, 24)
        schema = spark.read.parquet(str(path)).schema
        shipped = esk.MinMax("l_shipdate")
        three = (shipped, esk.ValueList("l_shipmode"), esk.Prefix("l_comment", length=8))
        names = ("l_shipdate", "l_shipmode", "l_comment")
        measured = {
            "scan": alternated(
                given.runs, noop=lambda: noop(spark, path, *names), build=lambda: build(spark, path, *three)
            ),
            "footers": alternated(
                given.runs,
                noop=lambda: noop(spark, path, *names, schema=schema),
                build=lambda: build(spark, path, shipped, schema=schema),
            ),
            "footers, schema inferred": alternated(
                given.runs, noop=lambda: noop(spark, path, *names), build=lambda: build(spark, path, shipped)
            ),
            "footers, 11 columns": alternated(
                given.runs,
                noop=lambda: noop(spark, path, *NO_STRINGS, schema=schema),
                build=lambda: build(spark, path, *map(esk.MinMax, NO_STRINGS), schema=schema),
            ),
        }
        if given.small:
            small = small_objects(spark, path, given.data, given.small, 6000)
            measured["small objects"] = alternated(
                given.runs, warm=1, noop=lambda: noop(spark, small, *names), build=lambda: build(spark, small, *three)
            )
        if given.ids:
            path = ids(given.data, given.ids, 30_000)
            for name, type in (("two Bloom filters", esk.BloomFilter), ("two MinMax", esk.MinMax)):
                both = type("id"), type("address")
                measured[name] = alternated(
                    given.runs,
                    warm=1,
                    noop=lambda: noop(spark, path, "id", "address"),
                    build=lambda both=both: build(spark, path, *both),
                )
    finally:
        spark.stop()
        shutil.rmtree(store, ignore_errors=True)

    rows = []
    for name, runs in measured.items():
        base, ours = statistics.median(runs["noop"]), statistics.median(runs["build"])
        rows.append(
            {
                "what": name,
                "noop": round(base, 3),
                "build": round(ours, 3),
                "ratio": round(ours / base, 2),
                "runs": runs,
            }
        )
    print(f"{'':26}{'noop':>9}{'build':>9}{'ratio':>8}")
    for row in rows:
        print(f"{row['what']:26}{row['noop']:8.2f}s{row['build']:8.2f}s{row['ratio']:8.2f}")
    facts = {
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "runs": given.runs,
    }
    given.output.parent.mkdir(parents=True, exist_ok=True)
    given.output.write_text(json.dumps({"facts": {**facts, "scale": given.scale}, "results": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
    print(stamp())
