"""Writers whose clocks are hours apart, at once: who wins, and what is skipped, does not go by the clock."""

from __future__ import annotations

import random
import threading
import time
from typing import Any

import pytest
from elasticsearch import Elasticsearch

from es_skipping.catalog import ObjectMetadata
from es_skipping.errors import StoreConflict
from es_skipping.stores.elasticsearch import change, names
from es_skipping.stores.elasticsearch.store import ElasticsearchStore
from tests.stores.contract import (
    MINMAX,
    between,
    dataset_definition,
    entry_of,
    minmax,
    object_metadata,
    skipped,
    stored,
    write,
)
from tests.stores.elasticsearch.conftest import make_store

DEFINITION = dataset_definition(MINMAX)
HOUR = 3600.0
TURNS = 4


class Clocks:
    """The module `time`, wrong by as much as the thread that asks says."""

    def __init__(self) -> None:
        self.skew = threading.local()

    def __getattr__(self, name: str) -> Any:
        return getattr(time, name)

    def time_ns(self) -> int:
        return time.time_ns() + int(getattr(self.skew, "seconds", 0.0) * 1e9)

    def gmtime(self) -> time.struct_time:
        return time.gmtime(time.time() + getattr(self.skew, "seconds", 0.0))


@pytest.fixture
def clocks(monkeypatch: pytest.MonkeyPatch) -> Clocks:
    clocks = Clocks()
    for module in (change, names):
        monkeypatch.setattr(module, "time", clocks)
    return clocks


def test_writers_whose_clocks_are_hours_apart(
    elasticsearch_store: ElasticsearchStore, prefix: str, client: Elasticsearch, clocks: Clocks
) -> None:
    everything = {n: object_metadata(n, minmax=minmax(n, n)) for n in range(8)}
    write(elasticsearch_store, DEFINITION, everything.values())
    failures: list[BaseException] = []
    conflicts: list[float] = []
    moments: list[float] = []
    last: dict[int, ObjectMetadata] = dict(everything)
    lock = threading.Lock()

    def turns(store: ElasticsearchStore, skew: float, mine: range) -> None:
        clocks.skew.seconds = skew
        dice = random.Random(skew)
        for turn in range(TURNS):
            chosen = {n: object_metadata(n, mtime=10 + turn, minmax=minmax(n, n + 100 * turn)) for n in mine}
            fresh = turn == 1
            while True:
                try:
                    with store.change(DEFINITION, fresh=fresh) as made:
                        made.put(stored(store).values() if fresh else ())  # of now, or there is a conflict
                        made.put(chosen.values())
                        moments.append(made.publish().refreshed / 1000 - time.time())
                        break
                except StoreConflict:
                    conflicts.append(skew)
                    time.sleep(dice.random() / 10)
            with lock:
                last.update(chosen)

    def guarded(store: ElasticsearchStore, skew: float, mine: range) -> None:
        try:
            turns(store, skew, mine)
        except BaseException as error:
            failures.append(error)

    threads = [
        threading.Thread(target=guarded, args=(store, skew, mine))
        for store, skew, mine in (
            (make_store(elasticsearch_store.url, prefix), -7 * HOUR, range(4)),
            (make_store(elasticsearch_store.url, prefix), 5 * HOUR, range(4, 8)),
        )
    ]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        # Whatever is published just now: the object that held 3 at first still holds it, or is not there.
        entry = entry_of(elasticsearch_store)
        assert everything[3].id.key not in skipped(elasticsearch_store, entry, between(3, 3))
        time.sleep(0.05)
    assert failures == []
    assert min(moments) < -6 * HOUR and max(moments) > 4 * HOUR, "the clocks were not wrong"
    assert set(stored(elasticsearch_store)) == {one.id for one in last.values()}
    entry = entry_of(elasticsearch_store)
    assert entry.objects == len(last)
    assert skipped(elasticsearch_store, entry, between(900, 900)) == {one.id.key for one in last.values()}
    index = entry.snapshot.rpartition("@")[0]
    assert list(client.indices.get_alias(name=f"{prefix}-objects-events").body) == [index]
    client.indices.refresh(index=index)
    assert client.count(index=index)["count"] == len(last)
