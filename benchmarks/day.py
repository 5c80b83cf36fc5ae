"""A day of queries in some minutes: does anything grow?

Run it with a server that may be written to; ``--page`` puts the figures into docs/benchmarks/million.md::

    python -m benchmarks.day --store http://localhost:9200 --objects 1000000 --page

Four sessions, each in a thread of its own, plan 10,000 queries of a dataset whose store knows that many objects: each
is one look-up at the file index (shim, request, store, reply; the listing itself is of one file). Meanwhile 300 queries
of a dataset of 1,000 objects are executed, and memory, threads and open search contexts are sampled. The command
fails if the median of the last quarter's samples is more than 5 % above that of the second quarter's.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any, Final

from elasticsearch import Elasticsearch
from pyspark import InheritableThread
from pyspark.sql import SparkSession

import es_skipping as esk
from benchmarks.pages import fill, recorded
from benchmarks.refresh import ORIGINALS, ROWS, known, linked, originals, session
from es_skipping.spark.session_store import session_store, store_conf

SESSIONS: Final = 4
SMALL: Final = 1_000
SCHEMA: Final = "id bigint, ts bigint, day int"
MOST: Final = 1.05


def resident(pid: int | str) -> float:
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return next(int(text.split()[1]) / 1024 for text in status.splitlines() if text.startswith("VmRSS"))


def sample(spark: SparkSession, server: Elasticsearch | None) -> dict[str, float]:
    jvm: Any = spark._jvm
    beans = jvm.java.lang.management.ManagementFactory
    jvm.java.lang.System.gc()
    found = {
        "Python RSS, MB": resident("self"),
        "Python threads": threading.active_count(),
        "JVM RSS, MB": resident(jvm.java.lang.ProcessHandle.current().pid()),
        "JVM heap after a collection, MB": beans.getMemoryMXBean().getHeapMemoryUsage().getUsed() / 2**20,
        "JVM threads": beans.getThreadMXBean().getThreadCount(),
    }
    if server is not None:
        stats = list(server.nodes.stats(metric="indices,jvm", index_metric="search")["nodes"].values())
        found["open search contexts"] = sum(one["indices"]["search"]["open_contexts"] for one in stats)
        # Between two collections a heap is full of what nobody needs: its least is what is held.
        found["server heap, MB"] = sum(one["jvm"]["mem"]["heap_used_in_bytes"] for one in stats) / 2**20
    return found


class Day:
    def __init__(self, spark: SparkSession, large: str, small: str, lookups: int, executed: int) -> None:
        self._spark, self._large, self._small = spark, large, small
        self._lookups, self._every = lookups // SESSIONS, max(1, lookups // max(1, executed))
        self.done = 0
        self.failed = 0
        self.skipped = 0
        self.errors: list[BaseException] = []
        self._lock = threading.Lock()

    def work(self, number: int) -> None:
        try:
            self._work(number)
        except BaseException as error:
            self.errors.append(error)

    def _work(self, number: int) -> None:
        dice, spark = random.Random(number), self._spark.newSession()
        esk.enable(spark)
        spark.conf.set("spark.sql.adaptive.enabled", "false")
        large = spark.read.schema(SCHEMA).parquet(self._large)
        for turn in range(self._lookups):
            low = dice.randrange(ORIGINALS * ROWS)
            condition = f"id BETWEEN {low} AND {low + dice.choice((0, 5, 50, 200))} AND ts > {dice.randrange(10**6)}"
            scan = large.where(condition)._jdf.queryExecution().executedPlan().collectLeaves().apply(0)
            scan.relation().location().listFiles(scan.partitionFilters(), scan.dataFilters())
            if turn % self._every == number:
                with esk.observe(spark) as report:
                    spark.read.schema(SCHEMA).parquet(self._small).where(f"id = {low}").count()
                self.failed += sum(one.failed for one in report.scans)
                self.skipped += sum(one.objects_skipped for one in report.scans)
            with self._lock:
                self.done += 1


def loaded(spark: SparkSession, root: Path, sources: list[Path], links: int, count: int) -> None:
    """So many links, and a store that knows so many objects."""
    root.mkdir()
    linked(root, sources, iter(range(links)), count)
    dataset = esk.Dataset(spark, str(root))
    dataset.create_indexes(esk.MinMax("id"), esk.MinMax("ts"))
    store = session_store(store_conf(spark))
    entry = store.dataset(dataset.id)
    assert entry is not None
    with store.change(entry.definition, fresh=True) as change:
        change.put(known(root, sources, 0, count))
        change.publish()


def quarters(samples: list[dict[str, float]]) -> dict[str, tuple[float, float]]:
    """By what is sampled, the second quarter's median and the last one's."""
    quarter = max(1, len(samples) // 4)
    second, last = samples[quarter : 2 * quarter], samples[-quarter:]
    middle = {name: min if "server heap" in name else statistics.median for name in samples[0]}
    return {
        name: (middle[name](one[name] for one in second), middle[name](one[name] for one in last))  # type: ignore[operator]
        for name in samples[0]
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", help="URL of the store; default: a folder")
    parser.add_argument("--objects", type=int, default=1_000_000)
    parser.add_argument("--lookups", type=int, default=10_000)
    parser.add_argument("--executed", type=int, default=300)
    parser.add_argument("--seconds", type=float, default=60.0, help="between two samples; fewer where the day is short")
    parser.add_argument("--page", action="store_true", help="put the figures into docs/benchmarks/million.md")
    given = parser.parse_args()
    samples: list[dict[str, float]] = []
    with tempfile.TemporaryDirectory(prefix="es-skipping-day-") as folder:
        scratch = Path(folder)
        spark = session(scratch, given.store or (scratch / "store").as_uri(), "1g")  # so that it is full early
        sources = originals(scratch / "originals", 0)
        loaded(spark, scratch / "large", sources, 1, given.objects)
        loaded(spark, scratch / "small", sources, SMALL, SMALL)
        server = Elasticsearch(given.store, request_timeout=60) if given.store else None
        day = Day(spark, str(scratch / "large"), str(scratch / "small"), given.lookups, given.executed)
        threads = [InheritableThread(target=day.work, args=(number,)) for number in range(SESSIONS)]
        begun = time.perf_counter()
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            time.sleep(given.seconds)
            if any(thread.is_alive() for thread in threads):
                samples.append(sample(spark, server))
                print(day.done, {name: round(found) for name, found in samples[-1].items()}, flush=True)
        seconds = time.perf_counter() - begun
        for name in ("large", "small"):
            esk.Dataset(spark, str(scratch / name)).drop_indexes(all=True)
        spark.stop()
    if day.errors or day.failed or len(samples) < 4:
        sys.exit(f"{day.errors}, {day.failed} failed look-ups, {len(samples)} samples")
    found = quarters(samples)
    text = [
        f"{given.lookups:,} look-ups over {given.objects:,} objects, {given.executed} executed queries;",
        f"{seconds:.0f} s in all;",
        f"no look-up failed, executed queries skipped {day.skipped:,} objects; {len(samples)} samples.",
        "",
        "| | second quarter | last quarter | |",
        "|---|--:|--:|--:|",
    ]
    text += [
        f"| {name} | {one:,.0f} | {other:,.0f} | {other / max(one, 1):.2f} |" for name, (one, other) in found.items()
    ]
    print("\n".join(text))
    if given.page:
        recorded("day", "Elasticsearch" if given.store else "Parquet", samples)
        fill("day", "\n".join(text))
    grown = [name for name, (one, other) in found.items() if other > MOST * max(one, 1)]
    if grown:
        sys.exit(f"grown by more than 5 %: {', '.join(grown)}")


if __name__ == "__main__":
    main()
