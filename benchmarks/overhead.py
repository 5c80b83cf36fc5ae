"""What skipping costs a query: time from ``queryExecution`` to the end of ``listFiles``, nothing executed.

Run: ``python -m benchmarks.overhead [--store URL]``

Pairs of the same query are planned in turn in a session with skipping and in one without the extension, over 100
objects; reported is the median of the paired differences, in milliseconds. Two cases:

``answers at once``  an indexed dataset whose store's answer is ready: what shim, wire and Python cost. Goal: < 10 ms
``not indexed``      a dataset nobody indexed, and a real store: what a user without an index pays. Goal: < 2 ms
"""

from __future__ import annotations

import argparse
import json
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
from benchmarks.pages import stamp
from es_skipping.catalog import DatasetEntry
from es_skipping.stores.base import Answer

OBJECTS, PAIRS, WARM_UPS = 100, 200, 50


def write_objects(folder: Path) -> None:
    folder.mkdir()
    for i in range(OBJECTS):
        table = pa.table({"id": range(i * 10, i * 10 + 10), "name": [f"n{i}-{j}" for j in range(10)]})
        pq.write_table(table, folder / f"part-{i:03}.parquet")


def list_files(spark: SparkSession, query: str) -> float:
    """Milliseconds from the query's text to Spark's list of files."""
    frame = spark.sql(query)
    start = time.perf_counter()
    scan = frame._jdf.queryExecution().executedPlan().collectLeaves().apply(0)
    scan.relation().location().listFiles(scan.partitionFilters(), scan.dataFilters())
    return (time.perf_counter() - start) * 1000


def paired_difference(measure_on: Callable[[int], float], measure_off: Callable[[int], float]) -> dict[str, float]:
    """Median and quartiles of on - off over alternated pairs, and the medians of both."""
    for i in range(WARM_UPS):
        measure_on(i), measure_off(i)
    on, off = [], []
    for i in range(PAIRS):
        first, second = (measure_on, measure_off) if i % 2 else (measure_off, measure_on)
        one, two = first(WARM_UPS + i), second(WARM_UPS + i)
        on.append(one if i % 2 else two)
        off.append(two if i % 2 else one)
    differences = [a - b for a, b in zip(on, off, strict=True)]
    quartiles = statistics.quantiles(differences, n=4)
    return {
        "median difference ms": statistics.median(differences),
        "lower quartile ms": quartiles[0],
        "upper quartile ms": quartiles[2],
        "median on ms": statistics.median(on),
        "median off ms": statistics.median(off),
    }


def _answer_at_once(store: Any) -> Callable[..., Answer]:
    def lookup(entry: DatasetEntry, clause: Any, **_: Any) -> Answer:
        return ready

    ready = Answer(b"".join(oid.key for oid, _ in list(store.objects(store.datasets()[0].definition.id))[:90]), OBJECTS)
    return lookup


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", help="URL of the store; default: a Parquet store in a temporary folder")
    store_url = parser.parse_args().store
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch)
        write_objects(root / "indexed")
        write_objects(root / "plain")
        url = store_url or (root / "store").as_uri()
        builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
        off = builder.config("spark.sql.adaptive.enabled", "false").config("spark.driver.memory", "2g").getOrCreate()
        off.sparkContext.setLogLevel("ERROR")
        on = off.newSession()
        on.conf.set("spark.es_skipping.store.url", url)
        on.conf.set("spark.sql.adaptive.enabled", "false")
        for name in ("indexed", "plain"):
            for session in (on, off):
                session.read.parquet(str(root / name)).createOrReplaceTempView(name)
        esk.enable(on)
        dataset = esk.Dataset(on, str(root / "indexed"))
        dataset.create_indexes(esk.MinMax("id"))
        results = {}
        try:
            results["not indexed"] = paired_difference(
                lambda i: list_files(on, f"SELECT * FROM plain WHERE id > {i}"),
                lambda i: list_files(off, f"SELECT * FROM plain WHERE id > {i}"),
            )
            from es_skipping.spark.services import service_of

            store = service_of(on).store({"spark.es_skipping.store.url": url})
            store.lookup = _answer_at_once(store)  # type: ignore[method-assign]
            results["answers at once"] = paired_difference(
                lambda i: list_files(on, f"SELECT * FROM indexed WHERE id > {i}"),
                lambda i: list_files(off, f"SELECT * FROM indexed WHERE id > {i}"),
            )
        finally:
            dataset.drop_indexes(all=True)
        print(
            json.dumps(
                {case: {k: round(v, 3) for k, v in figures.items()} for case, figures in results.items()}, indent=2
            )
        )


if __name__ == "__main__":
    main()
    print(stamp())
