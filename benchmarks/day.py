"""A day of queries in some minutes: does anything grow?

Run it with a server that may be written to; ``--page`` puts the figures into docs/benchmarks/million.md::

    python -m benchmarks.day --store http://localhost:9200 --objects 1000000 --writers 4 --page

Four sessions, each in a thread of its own, plan 10,000 queries of a dataset whose store knows that many objects: each
is one look-up at the file index (shim, request, store, reply; the listing itself is of one file, which must be kept if
and only if the query could want it). Nine of ten are survived by 1 to 1,000 objects, the tenth by up to a twentieth of
all. Meanwhile 300 queries of a dataset of 1,000 objects are executed, whose rows are counted, and memory, threads and
open search contexts are sampled. Each writer adds a few objects to the large dataset every few seconds, and at times
removes what it added. At the end one more change is published. The command fails if the store then holds more than what
that one names, or if the median of the last quarter's samples is more than 5 % above that of the second quarter's.

Whatever is bounded is made to reach its bound in the first quarter: what Spark itself remembers of executions, jobs,
stages and listed files (its defaults are 1,000 executions and 250 MB of files) is set lower, and the records of 4,096
scans are filled by look-ups of the small dataset before the first sample.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from elasticsearch import Elasticsearch
from pyspark import InheritableThread
from pyspark.sql import DataFrame, SparkSession

import es_skipping as esk
from benchmarks.pages import fill, recorded
from benchmarks.refresh import ORIGINALS, ROWS, known, linked, originals, session
from es_skipping.catalog import ObjectId, ObjectMetadata
from es_skipping.clauses.metadata import Intervals
from es_skipping.errors import StoreConflict
from es_skipping.spark import bridge
from es_skipping.spark.services import store_of
from es_skipping.stores.base import MetadataStore
from es_skipping.stores.elasticsearch.store import ElasticsearchStore
from es_skipping.stores.protection.store import unprotected

SESSIONS: Final = 4
SMALL: Final = 1_000
SCHEMA: Final = "id bigint, ts bigint, day int"
MOST: Final = 1.05
REMEMBERED: Final = 4_096
SPARK_REMEMBERS: Final = {
    "spark.sql.ui.retainedExecutions": "20",
    "spark.ui.retainedJobs": "20",
    "spark.ui.retainedStages": "20",
    "spark.ui.retainedTasks": "1000",
    "spark.ui.dagGraph.retainedRootRDDs": "20",
    "spark.sql.hive.filesourcePartitionFileCacheSize": "4000000",
    # The whole heap from the beginning: what grows in resident memory then lies outside of it.
    "spark.driver.extraJavaOptions": "-Xms1g -XX:+AlwaysPreTouch",
}
POOLS: Final = "block-manager-"
"""Threads of two pools of Spark's, of up to 128 each, which end a minute after their last work: told, not judged."""
WIDTHS: Final = (1, 10, 100, 1_000)
WIDE: Final = 20
ADDED: Final = 20
"""Objects of one of a writer's changes."""
KEPT: Final = 10
"""A writer removes what it added when it has made so many changes."""


def resident(pid: int | str) -> float:
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return next(int(text.split()[1]) / 1024 for text in status.splitlines() if text.startswith("VmRSS"))


def server_now(server: Elasticsearch) -> tuple[float, float]:
    """Its open search contexts, and megabytes of heap."""
    stats = list(server.nodes.stats(metric="indices,jvm", index_metric="search")["nodes"].values())
    contexts = sum(one["indices"]["search"]["open_contexts"] for one in stats)
    return contexts, sum(one["jvm"]["mem"]["heap_used_in_bytes"] for one in stats) / 2**20


def sample(spark: SparkSession, of_server: list[tuple[float, float]]) -> dict[str, float]:
    jvm: Any = spark._jvm
    beans = jvm.java.lang.management.ManagementFactory
    names = [thread.getName() for thread in jvm.java.lang.Thread.getAllStackTraces().keySet()]
    for _ in range(2):  # what one collection finds unreachable may hold on to more, through finalizers and cleaners
        jvm.java.lang.System.gc()
    found = {
        "Python RSS, MB": resident("self"),
        "Python threads": threading.active_count(),
        "JVM RSS, MB": resident(jvm.java.lang.ProcessHandle.current().pid()),
        "JVM heap after a collection, MB": beans.getMemoryMXBean().getHeapMemoryUsage().getUsed() / 2**20,
        "JVM threads": sum(not name.startswith(POOLS) for name in names),
        "JVM threads of Spark's pools (not judged)": sum(name.startswith(POOLS) for name in names),
    }
    if of_server:
        found["open search contexts"] = statistics.median(contexts for contexts, _ in of_server)
        # It cannot be told to collect. Between two collections a heap is full of what nobody needs: its least counts.
        found["server heap, least, MB"] = min(heap for _, heap in of_server)
    return found


class Day:
    def __init__(self, spark: SparkSession, large: Path, small: Path, given: argparse.Namespace) -> None:
        self._spark, self._large, self._small, self._objects = spark, str(large), str(small), given.objects
        self._lookups = given.lookups // SESSIONS
        self._every = max(1, given.lookups // max(1, given.executed))
        self.done = self.executed = self.failed = self.skipped = 0
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
            width = dice.choice(WIDTHS) if turn % 10 else self._objects // WIDE
            first = 0 if dice.random() < 0.1 else dice.randrange(1, max(2, self._objects - width))
            condition = f"id BETWEEN {first * ROWS} AND {(first + width) * ROWS - 1} AND ts > {dice.randrange(10**6)}"
            kept = planned(large.where(condition))
            if kept != (first == 0):
                did = "kept" if kept else "skipped"
                told = [f"{one['status']}: {one.get('reason')}" for one in bridge.all_records()[1][-8:]]
                raise AssertionError(f"turn {turn}: the one file was {did}: {condition}; the latest scans: {told}")
            if turn % self._every == number:
                self._execute(spark, dice.randrange(ORIGINALS * ROWS))
            with self._lock:
                self.done += 1

    def _execute(self, spark: SparkSession, id: int) -> None:
        with esk.observe(spark) as report:
            rows = spark.read.schema(SCHEMA).parquet(self._small).where(f"id = {id}").count()
        if rows != SMALL // ORIGINALS:
            raise AssertionError(f"{rows} rows of {id}")
        with self._lock:
            self.executed += 1
            self.failed += report.failed
            self.skipped += sum(one.objects_skipped for one in report.scans)


class Writer:
    """Adds objects to a dataset until it is told to stop."""

    def __init__(self, store: MetadataStore, id: str, root: Path, number: int, pause: float) -> None:
        self._store, self._id, self._root, self._number, self._pause = store, id, root, number, pause
        self._over = threading.Event()
        self.published = self.conflicts = 0
        self.errors: list[BaseException] = []

    def stop(self) -> None:
        self._over.set()

    def work(self) -> None:
        try:
            mine: list[ObjectMetadata] = []
            while not self._over.wait(self._pause):
                if len(mine) >= KEPT * ADDED:
                    self.change([], mine)
                    mine = []
                added = self._objects()
                self.change(added, [])
                mine += added
        except BaseException as error:
            self.errors.append(error)

    def change(self, added: list[ObjectMetadata], removed: list[ObjectMetadata]) -> None:
        """Publish one change, again if another writer was faster."""
        while True:
            entry = self._store.dataset(self._id)
            assert entry is not None
            try:
                with self._store.change(entry.definition) as change:
                    change.put(added)
                    change.remove(one.id for one in removed)
                    change.publish()
            except StoreConflict:
                self.conflicts += 1
                continue
            self.published += 1
            return

    def _objects(self) -> list[ObjectMetadata]:
        first = self.published * ADDED
        empty = Intervals(((-1, -1),), 0)
        return [
            ObjectMetadata(
                ObjectId(f"file:{self._root}/day=999/writer-{self._number}-{n:07}.parquet", 1_000, 1_700_000_000_000),
                ROWS,
                {"minmax(id)": empty, "minmax(ts)": empty},
            )
            for n in range(first, first + ADDED)
        ]


def told_of(writers: list[Writer]) -> list[str]:
    if not writers:
        return []
    published, conflicts = (sum(getattr(one, name) for one in writers) for name in ("published", "conflicts"))
    told = f"{len(writers)} writers published {published:,} changes, and tried again {conflicts:,} times"
    return [f"{told} because another was faster."]


def left_over(store: MetadataStore, id: str) -> int | None:
    """How many documents and indices a store holds beside those of the published objects; None of files."""
    own = unprotected(store)
    if not isinstance(own, ElasticsearchStore):
        return None
    entry, cluster = own.dataset(id), own._cluster
    assert entry is not None
    (generation, *others) = cluster.generations(id)
    cluster.refresh(generation)
    count: int = cluster.builder.count(index=generation)["count"]
    return count - entry.objects + len(others)


def planned(frame: DataFrame) -> bool:
    """Plan a query and let its scan list its files: whether there are any."""
    scan = frame._jdf.queryExecution().executedPlan().collectLeaves().apply(0)
    listed = scan.relation().location().listFiles(scan.partitionFilters(), scan.dataFilters())
    return any(listed.apply(n).files().size() for n in range(listed.size()))


def scattered(root: Path, sources: list[Path], count: int) -> Iterator[ObjectMetadata]:
    """Objects of which each holds values of its own. The first is the one that is listed."""
    for n, one in enumerate(known(root, sources, 0, count)):
        yield replace(one, metadata={**one.metadata, "minmax(id)": Intervals(((n * ROWS, n * ROWS + ROWS - 1),), 0)})


def loaded(
    spark: SparkSession, root: Path, sources: list[Path], links: int, objects: Iterator[ObjectMetadata], count: int
) -> esk.Dataset:
    """So many links of so many, and a store that knows these objects."""
    root.mkdir()
    linked(root, sources, iter(range(links)), count)
    dataset = esk.Dataset(spark, str(root))
    dataset.create_indexes(esk.MinMax("id"), esk.MinMax("ts"))
    store = store_of(spark)
    entry = store.dataset(dataset.id)
    assert entry is not None
    with store.change(entry.definition, fresh=True) as change:
        change.put(objects)
        change.publish()
    return dataset


def quarters(samples: list[dict[str, float]]) -> dict[str, tuple[float, float]]:
    """By what is sampled, the second quarter's median and the last one's."""
    quarter = max(1, len(samples) // 4)
    second, last = samples[quarter : 2 * quarter], samples[-quarter:]
    found = {}
    for name in samples[0]:
        middle = min if "least" in name else statistics.median
        found[name] = middle([one[name] for one in second]), middle([one[name] for one in last])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", help="URL of the store; default: a folder")
    parser.add_argument("--objects", type=int, default=1_000_000)
    parser.add_argument("--lookups", type=int, default=10_000)
    parser.add_argument("--executed", type=int, default=300)
    parser.add_argument("--seconds", type=float, default=60.0, help="between two samples; fewer where the day is short")
    parser.add_argument("--remembered", type=int, default=REMEMBERED, help="look-ups before the first sample")
    parser.add_argument("--writers", type=int, default=0, help="threads that add objects meanwhile")
    parser.add_argument("--pause", type=float, default=8.0, help="seconds between two changes of a writer")
    parser.add_argument("--page", action="store_true", help="put the figures into docs/benchmarks/million.md")
    given = parser.parse_args()
    samples: list[dict[str, float]] = []
    with tempfile.TemporaryDirectory(prefix="es-skipping-day-") as folder:
        scratch, begun = Path(folder), time.perf_counter()
        spark = session(scratch, given.store or (scratch / "store").as_uri(), "1g", SPARK_REMEMBERS)
        sources = originals(scratch / "originals", 0)
        large, small = scratch / "large", scratch / "small"
        datasets = [
            loaded(spark, large, sources, 1, scattered(large, sources, given.objects), given.objects),
            loaded(spark, small, sources, SMALL, known(small, sources, 0, SMALL), SMALL),
        ]
        spark.conf.set("spark.sql.adaptive.enabled", "false")
        print(f"loaded after {time.perf_counter() - begun:.0f} s", flush=True)
        frame = spark.read.schema(SCHEMA).parquet(str(small / "day=000"))
        for n in range(given.remembered):
            planned(frame.where(f"id < {n}"))
        print(f"the records are full after {time.perf_counter() - begun:.0f} s", flush=True)
        day = Day(spark, large, small, given)
        threads = [InheritableThread(target=day.work, args=(number,)) for number in range(SESSIONS)]
        store = store_of(spark)
        writers = [Writer(store, datasets[0].id, large, number, given.pause) for number in range(given.writers)]
        writing = [threading.Thread(target=writer.work) for writer in writers]
        begun = time.perf_counter()
        for thread in (*threads, *writing):
            thread.start()
        with contextlib.ExitStack() as stack:
            server = stack.enter_context(Elasticsearch(given.store, request_timeout=60)) if given.store else None
            due, of_server = begun + given.seconds, list[tuple[float, float]]()
            while any(thread.is_alive() for thread in threads):
                time.sleep(min(1.0, given.seconds))
                if server is not None:
                    of_server.append(server_now(server))
                if time.perf_counter() >= due and any(thread.is_alive() for thread in threads):
                    samples.append(sample(spark, of_server))
                    print(day.done, {name: round(found) for name, found in samples[-1].items()}, flush=True)
                    due, of_server = time.perf_counter() + given.seconds, []
        seconds = time.perf_counter() - begun
        for writer, thread in zip(writers, writing, strict=True):
            writer.stop()
            thread.join()
            day.errors += writer.errors
        left = None
        if writers:
            writers[0].change([], [])
            left = left_over(store, datasets[0].id)
        for dataset in datasets:
            dataset.drop_indexes(all=True)
        spark.stop()
    if day.errors or day.failed or len(samples) < 8 or left:
        sys.exit(f"{day.errors}, {day.failed} failed look-ups, {len(samples)} samples, {left} documents left over")
    found = quarters(samples)
    text = [
        f"{day.done:,} look-ups over {given.objects:,} objects and {day.executed} executed queries in {seconds:.0f} s.",
        f"No look-up failed, each kept or skipped what it should; executed queries skipped {day.skipped:,} objects.",
        f"{len(samples)} samples.",
        *told_of(writers),
        *["After the last change no document was left over."] * (left is not None),
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
    judged = {name: medians for name, medians in found.items() if "not judged" not in name}
    grown = [name for name, (one, other) in judged.items() if other > MOST * max(one, 1)]
    if grown:
        sys.exit(f"grown by more than 5 %: {', '.join(grown)}")


if __name__ == "__main__":
    main()
