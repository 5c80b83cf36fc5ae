"""The count of objects, while one writer still removes what it replaced and another begins."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from es_skipping.stores.elasticsearch.change import ElasticsearchChange
from es_skipping.stores.elasticsearch.cluster import Cluster
from es_skipping.stores.elasticsearch.state import State
from es_skipping.stores.elasticsearch.store import ElasticsearchStore
from tests.stores.contract import MINMAX, dataset_definition, entry_of, minmax, object_metadata, stored, write
from tests.stores.elasticsearch.conftest import make_store

DEFINITION = dataset_definition(MINMAX)
OBJECTS = [object_metadata(n, minmax=minmax(n, n)) for n in range(6)]


@contextmanager
def removing(store: ElasticsearchStore, prefix: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], None]]:
    """A writer that removed half of the objects and is about to delete their documents, until it is told to go on."""
    slow = make_store(store.url, prefix)
    reached, goes_on = threading.Event(), threading.Event()
    original = Cluster._delete

    def delete(cluster: Cluster, index: str, ids: list[str]) -> None:
        if cluster is slow._cluster:
            reached.set()
            assert goes_on.wait(60)
        original(cluster, index, ids)

    monkeypatch.setattr(Cluster, "_delete", delete)
    thread = threading.Thread(target=write, args=(slow, DEFINITION), kwargs={"remove": [one.id for one in OBJECTS[:3]]})
    thread.start()
    assert reached.wait(60)

    def finish() -> None:
        goes_on.set()
        thread.join(60)

    yield finish
    finish()
    slow.close()


@pytest.mark.parametrize("moment", ["before publishing", "afterwards"])
def test_a_writer_that_begins_while_another_removes(
    elasticsearch_store: ElasticsearchStore, prefix: str, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    store = elasticsearch_store
    write(store, DEFINITION, OBJECTS)
    with removing(store, prefix, monkeypatch) as finish:
        with store.change(DEFINITION) as change:
            if moment == "before publishing":
                finish()
            change.put([OBJECTS[0], object_metadata(7, minmax=minmax(7, 7))])
            change.publish()
        finish()
    after = write(store, DEFINITION, [object_metadata(8, minmax=minmax(8, 8))])
    assert after.objects == len(stored(store)) == 6  # three that were left, one that came back, two new ones
    assert entry_of(store).objects == 6
    assert after.bytes == sum(id.length for id in stored(store))


@pytest.mark.parametrize("ends", [True, False])
def test_a_change_of_many_objects_waits_for_a_writer_that_still_removes(
    elasticsearch_store: ElasticsearchStore, prefix: str, monkeypatch: pytest.MonkeyPatch, ends: bool
) -> None:
    """It counts all objects anew only if that writer does not end soon: it may have died."""
    monkeypatch.setattr("es_skipping.stores.elasticsearch.cluster._FEW", 2)
    seconds = 60.0 if ends else 0.3
    monkeypatch.setattr("es_skipping.stores.elasticsearch.cluster._SWEEP_SECONDS", seconds)
    counted, store = list[str](), elasticsearch_store
    original = ElasticsearchChange._recounted

    def recounted(change: ElasticsearchChange, base: State) -> State:
        counted.append(base.snapshot)
        return original(change, base)

    monkeypatch.setattr(ElasticsearchChange, "_recounted", recounted)
    write(store, DEFINITION, OBJECTS)
    with removing(store, prefix, monkeypatch) as finish:
        timer = threading.Timer(0.5, finish)
        if ends:
            timer.start()
        with store.change(DEFINITION) as change:
            change.put([object_metadata(7, minmax=minmax(7, 7))])
            entry = change.publish()
        assert bool(counted) != ends
        assert entry.objects == (4 if ends else 7), "what is not removed yet counts"
        if ends:
            timer.join()
    after = write(store, DEFINITION, [object_metadata(8, minmax=minmax(8, 8))])
    assert after.objects == len(stored(store)) == 5
