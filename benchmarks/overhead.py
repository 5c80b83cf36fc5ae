"""What skipping costs a query: time from ``queryExecution`` to the end of ``listFiles``, nothing executed.

Run: ``python -m benchmarks.overhead [--store URL] [--page]``

Pairs of the same query are planned in turn in a session with skipping and in one without the extension; reported is the
median of the paired differences, in milliseconds, for each number of objects (``--objects 100 20000``):

``not indexed``      a dataset nobody indexed, and a real store: what a user without an index pays
``answers at once``  an indexed dataset whose store's answer is ready: what shim, wire and Python cost
``nothing skipped``  an indexed dataset, a real store, and a filter that every object may match
``one left``         the same, and a filter that one object may match

Then 200 objects of 30,000 numbers with a ``BloomFilter``, and a number that one object holds.
"""

from __future__ import annotations

import argparse
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
from benchmarks.build import ids
from benchmarks.pages import FOLDER, fill, stamp
from es_skipping.catalog import DatasetEntry
from es_skipping.spark.services import service_of
from es_skipping.stores.base import Answer

PAIRS, WARM_UPS = 200, 50
BLOOM_OBJECTS, BLOOM_ROWS = 200, 30_000
PAGE = FOLDER / "overhead.md"


def write_objects(folder: Path, objects: int) -> Path:
    folder.mkdir()
    for i in range(objects):
        table = pa.table({"id": range(i * 10, i * 10 + 10), "name": [f"n{i}-{j}" for j in range(10)]})
        pq.write_table(table, folder / f"part-{i:05}.parquet")
    return folder


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
    entry = store.datasets()[0]
    objects = [oid.key for oid, _ in store.objects(entry.definition.id)]
    ready = Answer(b"".join(objects[: len(objects) * 9 // 10]), len(objects))

    def lookup(entry: DatasetEntry, clause: Any, **_: Any) -> Answer:
        return ready

    return lookup


def compared(on: SparkSession, off: SparkSession, folder: Path, where: Callable[[int], str]) -> dict[str, float]:
    """A query planned in both sessions."""
    name = folder.name.replace("-", "_")
    for session in (on, off):
        if not session.catalog.tableExists(name):
            session.read.parquet(str(folder)).createOrReplaceTempView(name)

    def planned(session: SparkSession) -> Callable[[int], float]:
        return lambda i: list_files(session, f"SELECT * FROM {name} WHERE {where(i)}")

    return paired_difference(planned(on), planned(off))


def measured(on: SparkSession, off: SparkSession, root: Path, objects: int) -> dict[str, dict[str, float]]:
    """The cases over so many objects."""
    plain, indexed = (write_objects(root / f"{name}-{objects}", objects) for name in ("plain", "indexed"))
    dataset = esk.Dataset(on, str(indexed))
    dataset.create_indexes(esk.MinMax("id"))
    try:
        results = {
            "not indexed": compared(on, off, plain, lambda i: f"id > {i}"),
            "nothing skipped": compared(on, off, indexed, lambda i: f"id >= {-i}"),
            "one left": compared(on, off, indexed, lambda i: f"id = {i}"),
        }
        store = service_of(on).store({"spark.es_skipping.store.url": on.conf.get("spark.es_skipping.store.url")})
        store.lookup = _answer_at_once(store)  # type: ignore[method-assign]
        try:
            results["answers at once"] = compared(on, off, indexed, lambda i: f"id > {i}")
        finally:
            del store.lookup
    finally:
        dataset.drop_indexes(all=True)
    return results


def of_bloom_filters(on: SparkSession, off: SparkSession, root: Path) -> dict[str, float]:
    """An unclustered number sought by a Bloom filter."""
    folder = ids(root, BLOOM_OBJECTS, BLOOM_ROWS)
    sought = pq.read_table(folder / "part-00100.parquet", columns=["id"]).column("id").to_pylist()
    dataset = esk.Dataset(on, str(folder))
    dataset.create_indexes(esk.BloomFilter("id"))
    try:
        return compared(on, off, folder, lambda i: f"id = {sought[i]}")
    finally:
        dataset.drop_indexes(all=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", help="URL of the store; default: a Parquet store in a temporary folder")
    parser.add_argument("--objects", type=int, nargs="+", default=[100, 20_000])
    parser.add_argument("--page", action="store_true", help="write the figures to docs/benchmarks/overhead.md")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch)
        builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
        off = builder.config("spark.sql.adaptive.enabled", "false").config("spark.driver.memory", "2g").getOrCreate()
        off.sparkContext.setLogLevel("ERROR")
        on = off.newSession()
        on.conf.set("spark.es_skipping.store.url", given.store or (root / "store").as_uri())
        on.conf.set("spark.sql.adaptive.enabled", "false")
        esk.enable(on)
        cases = [
            (f"{objects:,}", name, figures)
            for objects in given.objects
            for name, figures in measured(on, off, root, objects).items()
        ]
        cases.append((str(BLOOM_OBJECTS), "a Bloom filter, one left", of_bloom_filters(on, off, root)))
    text = "| objects | case | more, ms | quartiles | planning on : off, ms | ratio |\n|--:|---|--:|---|--:|--:|\n"
    for objects, name, found in cases:
        text += (
            f"| {objects} | {name} | {found['median difference ms']:.1f} | {found['lower quartile ms']:.1f} to "
            f"{found['upper quartile ms']:.1f} | {found['median on ms']:.1f} : {found['median off ms']:.1f} | "
            f"{found['median on ms'] / found['median off ms']:.2f} |\n"
        )
    print(text)
    if given.page:
        kind = "Elasticsearch" if given.store else "Parquet"
        fill(f"overhead on {kind}", text, PAGE)


if __name__ == "__main__":
    main()
    print(stamp())
