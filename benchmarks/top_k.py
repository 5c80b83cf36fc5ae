"""How long a store takes to find the objects that guarantee the first rows of an order, or rows of a filter.

Run: ``python -m benchmarks.top_k --store http://localhost:9200`` (a server that may be written to) or
``--store file:///tmp/top-k``; about two minutes for a million objects. Decision 0019 has the figures.

Each object has about a thousand rows, an interval of ``ts``, which ascends with the paths, and one of ``price``, which
is scattered. The filters are true for all rows of half of the objects, on average.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

from benchmarks.lookup import INDEXES
from es_skipping.catalog import DatasetDefinition, ObjectId, ObjectMetadata
from es_skipping.clauses.clause import SKIP, Ask, Clause
from es_skipping.clauses.metadata import Intervals
from es_skipping.clauses.questions import Overlaps, Range
from es_skipping.settings import Settings
from es_skipping.stores.guarantors import Ordering
from es_skipping.stores.registry import open_store

ROOT: Final = "s3a://lake/warehouse/top_k"
BEGIN, STEP = 1_760_000_000_000_000, 1_000_000
TS, PRICE = (next(one for one in INDEXES if one.id == f"minmax({name})") for name in ("ts", "price"))
REQUESTS: Final = 60
_Kind: TypeAlias = tuple[Callable[[], Clause], int, Callable[[], Ordering | None]]


def objects(count: int) -> Iterator[ObjectMetadata]:
    scattered = list(range(count))
    random.Random(1).shuffle(scattered)
    for at, mixed in enumerate(scattered):
        ts, price = BEGIN + at * STEP, 1000.0 * mixed / count
        known = {TS.id: Intervals(((ts, ts + 2 * STEP),), 0), PRICE.id: Intervals(((price, price + 0.5),), 0)}
        yield ObjectMetadata(ObjectId(f"{ROOT}/part-{at:07}.parquet", 100_000_000 + mixed, at), 1000 + mixed % 7, known)


def kinds(
    count: int, dice: random.Random
) -> dict[str, tuple[Callable[[], Clause], int, Callable[[], Ordering | None]]]:
    """By name the clause that is proved false, the rows, and the order."""

    def late() -> Clause:
        return Ask(TS.id, Overlaps((Range(BEGIN + dice.randrange(count) * STEP, 2 * BEGIN),)))

    def dear() -> Clause:
        return Ask(PRICE.id, Overlaps((Range(dice.uniform(0, 1000), 2000.0),)))

    def either(index: str) -> Callable[[], Ordering]:
        return lambda: Ordering(index, dice.random() < 0.5, nulls_first=False)

    return {
        "ORDER BY ts LIMIT 10": (lambda: SKIP, 10, either(TS.id)),
        "ORDER BY price LIMIT 10": (lambda: SKIP, 10, either(PRICE.id)),
        "ORDER BY ts LIMIT 50000": (lambda: SKIP, 50_000, either(TS.id)),
        "WHERE ts < ... ORDER BY ts LIMIT 10": (late, 10, either(TS.id)),
        "WHERE price < ... ORDER BY ts LIMIT 10": (dear, 10, either(TS.id)),
        "WHERE ts < ... LIMIT 5000": (late, 5_000, lambda: None),
    }


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--store", required=True)
    options.add_argument("--objects", type=int, default=1_000_000)
    given = options.parse_args()
    store = open_store(given.store, Settings({"spark.es_skipping.store.url": given.store}))
    with store.change(DatasetDefinition("top-k", (ROOT,), "parquet", (TS, PRICE)), fresh=True) as change:
        change.put(objects(given.objects))
        entry = change.publish()
    print("| query | first (ms) | p50 | longest |\n|---|--:|--:|--:|")
    for name, (clause, rows, order) in kinds(given.objects, random.Random(3)).items():
        took = []
        for _ in range(1 + REQUESTS):
            asked, ordering = clause(), order()
            begun = time.perf_counter()
            store.guarantors(entry, asked, rows, ordering, timeout=60)
            took.append(1e3 * (time.perf_counter() - begun))
        print(f"| {name} | {took[0]:.1f} | {statistics.median(took[1:]):.1f} | {max(took[1:]):.1f} |", flush=True)
    store.drop("top-k")


if __name__ == "__main__":
    main()
