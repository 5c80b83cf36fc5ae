"""What lies between: a proxy that refuses, cuts off and reorders; many writers and readers; clocks that disagree."""

from __future__ import annotations

import logging
import os
import random
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from es_skipping.catalog import ObjectId, ObjectMetadata
from es_skipping.clauses.clause import Ask
from es_skipping.clauses.metadata import Intervals
from es_skipping.clauses.questions import Overlaps, Range
from es_skipping.errors import StoreConflict, StoreError, StoreUnavailable
from es_skipping.stores.base import KEY_BYTES, MetadataStore
from es_skipping.stores.elasticsearch import bulk
from es_skipping.stores.elasticsearch import store as store_module
from es_skipping.stores.parquet import change as parquet_change
from es_skipping.stores.parquet.store import ParquetStore
from tests.faults.lake import Lake
from tests.services import forget_datasets, forget_look_ups
from tests.stores.contract import MINMAX, dataset_definition, entry_of, minmax, object_metadata, stored, write
from tests.stores.elasticsearch.conftest import client, make_store, prefix
from tests.stores.elasticsearch.proxy import Exchange, Proxy, proxy

__all__ = ["client", "prefix"]

MINUTES = float(os.environ.get("MINUTES", "2"))
WRITERS, READERS, OBJECTS = 2, 10, 60


@pytest.fixture
def faulty(elasticsearch_url: str) -> Iterator[Proxy]:
    with proxy(elasticsearch_url) as made:
        yield made


@pytest.fixture
def lake(
    faulty: Proxy,
    spark: SparkSession,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Lake]:
    monkeypatch.setattr(bulk, "_FIRST_PAUSE", 0.01)
    caplog.set_level(logging.WARNING, "es_skipping")
    forget_look_ups()
    lake = Lake(spark, tmp_path, faulty.url, caplog)
    yield lake
    faulty.before = faulty.after = lambda exchange: None
    lake.dataset.drop_indexes(all=True)
    forget_datasets()


def burst(status: int, count: int, of: Callable[[Exchange], bool]) -> Callable[[Exchange], None]:
    """So many requests of a kind are refused."""
    left = [count]

    def before(exchange: Exchange) -> None:
        if of(exchange) and left[0] > 0:
            left[0] -= 1
            exchange.status, exchange.reply = status, {"error": {"reason": "too busy"}, "status": status}

    return before


def searches(exchange: Exchange) -> bool:
    return "/_search" in exchange.path and "datasets" not in exchange.path


def writes(exchange: Exchange) -> bool:
    return exchange.is_bulk


@pytest.mark.parametrize("status", [429, 503])
def test_bursts(faulty: Proxy, lake: Lake, status: int) -> None:
    faulty.before = burst(status, 4, writes)
    lake.create()
    assert sum(map(writes, faulty.seen)) > 4
    lake.skips()
    faulty.before = burst(status, 1, searches)
    lake.reads_all(f"StoreUnavailable: .* answered {status}: too busy")
    lake.skips()
    lake.add()
    faulty.before = burst(status, 1000, writes)
    lake.fails(lake.dataset.refresh, f"did not take .* documents in 8 attempts: {status}")
    lake.skips(2)
    faulty.before = lambda exchange: None
    lake.refreshed()


def test_answers_that_are_cut_off(faulty: Proxy, lake: Lake) -> None:
    lake.create()

    def before(exchange: Exchange) -> None:
        exchange.cut = searches(exchange)

    faulty.before = before
    lake.reads_all("Store(Unavailable|Error): ")
    lake.add()
    turns = [3]

    def cut_writes(exchange: Exchange) -> None:
        if writes(exchange) and turns[0]:  # the server has written; that it did is not known
            turns[0] -= 1
            exchange.cut = True

    faulty.before = cut_writes
    lake.refreshed()
    assert turns == [0]


def test_requests_that_overtake_each_other(faulty: Proxy, lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first of two bulk requests arrives after the second."""
    monkeypatch.setattr(bulk, "_MAX_WRITES", 4)
    second = threading.Event()
    turns = iter(range(1000))
    order: list[int] = []

    def before(exchange: Exchange) -> None:
        if writes(exchange) and "-objects-" in exchange.path:
            turn = next(turns)
            if turn == 0:
                second.wait(10)
            order.append(turn)

    def after(exchange: Exchange) -> None:
        if writes(exchange) and "-objects-" in exchange.path and order == [1]:
            second.set()

    faulty.before, faulty.after = before, after
    lake.create()
    assert order[:2] == [1, 0]
    lake.skips()
    lake.add()
    lake.refreshed()


# --- many at once ---------------------------------------------------------------------------------------------------


def value(id: ObjectId) -> int:
    """The metadata of an object follows from its identity, so that every answer can be judged, whenever it comes."""
    return (hash(id.path) ^ id.mtime * 2_654_435_761) % 1000


def some(n: int, version: int) -> ObjectMetadata:
    id = ObjectId(f"file:/d/part-{n:03}", 10, version)
    return ObjectMetadata(id, 1, {MINMAX.id: Intervals(((value(id), value(id)),), 0)})


def writing(store: MetadataStore, clock: Iterator[int], until: float, dice: random.Random, done: list[str]) -> None:
    while time.monotonic() < until:
        chosen = [some(n, next(clock)) for n in dice.sample(range(OBJECTS), dice.randint(1, OBJECTS))]
        try:
            with store.change(dataset_definition(MINMAX), fresh=dice.random() < 0.1) as change:
                change.put(chosen)
                change.remove(one.id for one in chosen[: len(chosen) // 8])
                change.publish()
            done.append("published")
        except (StoreConflict, StoreUnavailable) as error:  # the latter while the server removes what it writes into
            done.append(type(error).__name__)
        if dice.random() < 0.05:
            store.optimize("events")


@pytest.mark.parametrize("kind", ["elasticsearch", "elasticsearch, in views", "parquet"])
def test_two_writers_and_ten_readers(
    kind: str, elasticsearch_url: str, prefix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_module, "LARGE", 0 if "views" in kind else 1 << 30)

    def handle() -> MetadataStore:
        return ParquetStore(str(tmp_path)) if kind == "parquet" else make_store(elasticsearch_url, prefix)

    first = handle()
    write(first, dataset_definition(MINMAX), [some(n, 0) for n in range(OBJECTS)])
    until = time.monotonic() + 60 * MINUTES / 3
    keys: dict[bytes, ObjectId] = {}
    lock = threading.Lock()
    failures: list[BaseException] = []
    done: dict[str, list[str]] = {"write": [], "read": []}
    versions = [0]

    def clock() -> Iterator[int]:
        while True:
            with lock:
                versions[0] += 1
                now = versions[0]
                for n in range(OBJECTS):
                    id = ObjectId(f"file:/d/part-{n:03}", 10, now)
                    keys[id.key] = id
            yield now

    def read(store: MetadataStore, dice: random.Random) -> None:
        entry = entry_of(store)
        while time.monotonic() < until:
            if dice.random() < 0.3:
                found = store.dataset("events")
                entry = entry if found is None else found
            low = dice.randrange(1000)
            high = low + dice.randrange(200)
            try:
                answer = store.lookup(entry, Ask(MINMAX.id, Overlaps((Range(low, high),))), timeout=30)
            except StoreError as error:
                done["read"].append(type(error).__name__)
                continue
            skip = answer.skip
            for at in range(0, len(skip), KEY_BYTES):
                id = keys.get(skip[at : at + KEY_BYTES])
                assert id is None or not low <= value(id) <= high, f"{id} was skipped, and holds {value(id)}"
            done["read"].append("skipped" if skip else "nothing")

    def guarded(work: Callable[[], None]) -> Callable[[], None]:
        def run() -> None:
            try:
                work()
            except BaseException as error:
                failures.append(error)

        return run

    for n in range(OBJECTS):
        id = some(n, 0).id
        keys[id.key] = id
    threads = [
        threading.Thread(
            target=guarded(lambda n=n: writing(handle(), clock(), until, random.Random(n), done["write"]))  # type: ignore[misc]
        )
        for n in range(WRITERS)
    ]
    threads += [
        threading.Thread(target=guarded(lambda n=n: read(handle(), random.Random(100 + n))))  # type: ignore[misc]
        for n in range(READERS)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60 * MINUTES + 120)
    assert failures == []
    counted = {what: {one: seen.count(one) for one in sorted(set(seen))} for what, seen in done.items()}
    logging.getLogger(__name__).info("%s: %s", kind, counted)
    assert counted["write"]["published"] >= 2 + MINUTES
    assert counted["read"]["skipped"] > 50
    last = [some(n, versions[0] + 1) for n in range(OBJECTS)]
    entry = write(first, dataset_definition(MINMAX), last)
    assert set(stored(first)) == {one.id for one in last}
    assert entry.objects == OBJECTS
    assert first.superseded("events") == [], "who loses or is replaced leaves no generation behind"


# --- clocks ---------------------------------------------------------------------------------------------------------


def test_writers_whose_clocks_disagree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Segments are named and cleaned up by the time: an hour behind or days ahead costs space, no object."""
    hour = 3_600_000
    store = ParquetStore(str(tmp_path))
    expected = {}
    for turn, skew in enumerate([0, -hour, 48 * hour, -hour, 0, 48 * hour, 0]):
        monkeypatch.setattr(parquet_change, "now_ms", lambda skew=skew: int(time.time() * 1000) + skew)
        one = object_metadata(turn, minmax=minmax(turn, turn))
        expected[one.id] = one
        write(ParquetStore(str(tmp_path)), dataset_definition(MINMAX), [one])
        assert set(stored(ParquetStore(str(tmp_path)))) == set(expected)
    store.optimize("events")
    assert set(stored(store)) == set(expected)
