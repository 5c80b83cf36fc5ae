"""10⁷ objects' metadata in Elasticsearch, for the record: how far a small server comes in an hour.

Run it with a server of its own whose heap is 4 GB (``-Xms4g -Xmx4g``)::

    python -m benchmarks.ten_million --store http://localhost:9200

It looks first whether heap (at most 4 GB) and disk (30 GB free) are as they should be, loads, looks up, and drops what
it loaded. With ``--keep`` it does not drop it, and the next run only looks up: so two versions of the code are compared
on one machine. After 60 minutes it stops, wherever it is, and says how far it came.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Iterator
from typing import Final

from benchmarks.lookup import KINDS, Traffic, clauses, definition, objects, once, timed
from benchmarks.pages import fill, recorded
from es_skipping.catalog import ObjectMetadata
from es_skipping.settings import Settings
from es_skipping.stores.elasticsearch.store import ElasticsearchStore

COUNT: Final = 10_000_000
MOST_HEAP: Final = 4 << 30
LEAST_DISK: Final = 30 * 10**9


class OutOfTime(Exception):
    """The hour is over."""


def checked(store: ElasticsearchStore) -> str:
    """What the server has; exits where that is not what the record is about."""
    stats = list(store._cluster.builder.nodes.stats(metric="jvm,fs")["nodes"].values())
    heap = max(one["jvm"]["mem"]["heap_max_in_bytes"] for one in stats)
    disk = min(one["fs"]["total"]["available_in_bytes"] for one in stats)
    told = f"{len(stats)} node, {heap / 2**30:.1f} GiB of heap, {disk / 1e9:.0f} GB of disk free"
    if heap > MOST_HEAP or disk < LEAST_DISK:
        sys.exit(f"{told}: this is about at most 4 GiB of heap, and takes 30 GB of disk")
    return told


def until(end: float, count: int) -> Iterator[ObjectMetadata]:
    begun = time.monotonic()
    for n, one in enumerate(objects(count)):
        if n % 100_000 == 0:
            if time.monotonic() > end:
                raise OutOfTime(f"{n:,} of {count:,} objects were loaded")
            print(f"{n:,} after {time.monotonic() - begun:.0f} s", flush=True)
        yield one


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", required=True, help="URL of an Elasticsearch of its own")
    parser.add_argument("--objects", type=int, default=COUNT)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--repeat", type=int, default=20, help="look-ups for each kind and share")
    parser.add_argument("--keep", action="store_true", help="leave what was loaded to a later run")
    parser.add_argument("--page", action="store_true", help="put the report into docs/benchmarks/million.md")
    given = parser.parse_args()
    settings = Settings({"spark.es_skipping.store.timeout": "60s"})
    store = ElasticsearchStore(given.store, settings)
    text = [checked(store)]
    print(text[0], flush=True)
    made = definition(given.objects)
    begun, end = time.monotonic(), time.monotonic() + 60 * given.minutes
    try:
        entry = store.dataset(made.id)
        if entry is None or entry.objects != given.objects:
            with store.change(made, fresh=True) as change:
                change.put(until(end, given.objects))
                entry = change.publish()
            spent = time.monotonic() - begun
            text.append(f"{entry.objects:,} objects loaded in {spent:.0f} s: {entry.objects / spent:,.0f} a second.")
        size = store._cluster.builder.indices.stats(index=entry.snapshot.rpartition("@")[0], metric="store")
        text.append(f"The index takes {size['_all']['primaries']['store']['size_in_bytes'] / 1e9:.1f} GB.")
        traffic, dice = Traffic(store), random.Random(7)
        opened, _ = timed(lambda: store.lookup(entry, clauses(KINDS[0], given.objects, 1e-5, dice), timeout=600))
        text.append(f"A view opens in {opened / 1000:.1f} s.")
        text += ["", "| clause | survivors | first ms | p50 ms | p99 ms | client MB |", "|---|--:|--:|--:|--:|--:|"]
        for kind in KINDS:
            for share in (0.00001, 0.0001, 0.01, 0.5):
                if time.monotonic() > end:
                    raise OutOfTime("all objects were loaded, and the look-ups above made")
                row = once(store, traffic, entry, kind, share, given.repeat, dice)
                names = ("first", "p50", "p99", "client_mb")
                text.append(
                    f"| {kind} | {row['survivors']:,} | " + " | ".join(f"{row[name]:,}" for name in names) + " |"
                )
                print(text[-1], flush=True)
    except OutOfTime as over:
        text += ["", f"Stopped after {given.minutes:.0f} minutes: {over}."]
    finally:
        if not given.keep:
            store.drop(made.id)
    print("\n".join(text))
    if given.page:
        recorded("ten_million", "Elasticsearch", text)
        fill("ten_million", "\n".join(text))


if __name__ == "__main__":
    main()
