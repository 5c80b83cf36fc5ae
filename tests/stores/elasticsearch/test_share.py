"""Shares of a change, written by others: run again, run twice, late, lost."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from elasticsearch import Elasticsearch

from es_skipping.catalog import DatasetEntry, ObjectMetadata
from es_skipping.clauses.metadata import Boxes, Values
from es_skipping.errors import SettingError, StoreError
from es_skipping.settings import Settings
from es_skipping.stores.elasticsearch.share import ElasticsearchShare
from es_skipping.stores.elasticsearch.store import ElasticsearchStore
from es_skipping.stores.share import Outcome, Share
from tests.stores.contract import (
    BOX,
    LIST,
    MINMAX,
    between,
    dataset_definition,
    minmax,
    object_id,
    object_metadata,
    skipped,
    stored,
    write,
)

DEFINITION = dataset_definition(MINMAX, LIST, BOX)
COUNT = 40


def object_of(n: int, value: int | None = None, boxes: int = 1) -> ObjectMetadata:
    value = n if value is None else value
    return object_metadata(
        n,
        minmax=minmax(value, value),
        list=Values(frozenset({f"common-{value}"}), 0),
        box=Boxes((((float(n), n + 0.5), (0.0, 1.0)),) * boxes),
    )


LEARNT = [object_of(n) for n in range(COUNT, COUNT + 3)]
OBJECTS = [object_of(n) for n in range(COUNT)]


def sent(share: Share | None) -> Share:
    """As a task gets it."""
    assert share is not None
    received = pickle.loads(pickle.dumps(share))
    assert isinstance(received, Share)
    return received


def given(objects: Iterable[ObjectMetadata]) -> list[tuple[int, ObjectMetadata]]:
    return list(enumerate(objects))


def documents(client: Elasticsearch, entry: DatasetEntry) -> int:
    index = entry.snapshot.rpartition("@")[0]
    client.indices.refresh(index=index)
    return int(client.count(index=index)["count"])


@pytest.mark.parametrize("fresh", [True, False], ids=["fresh", "added"])
def test_written_again_twice_at_once_and_late(
    elasticsearch_store: ElasticsearchStore, client: Elasticsearch, fresh: bool
) -> None:
    before = [object_of(n, 99) for n in range(0, COUNT, 2)]  # of some of the very objects something is known
    write(elasticsearch_store, DEFINITION, before)
    with elasticsearch_store.change(DEFINITION, fresh=fresh) as change:
        change.put(LEARNT)
        share = sent(change.share([one.id for one in OBJECTS]))
        for _ in zip(share.put(given(OBJECTS)), range(5), strict=False):
            pass  # an attempt whose receipts nobody sees
        with ThreadPoolExecutor(2) as pool:  # and two at a time, one of which saw other contents
            others = pool.submit(lambda: list(share.put(given(object_of(n, 7) for n in range(COUNT)))))
            outcomes = list(share.put(given(OBJECTS)))
            others.result()
        assert [one.refused for one in outcomes] == [""] * COUNT
        change.receive(share, outcomes)
        entry = change.publish()
    expected = [*OBJECTS, *LEARNT]
    assert entry.objects == len(expected)
    assert stored(elasticsearch_store) == {one.id: one for one in expected}
    list(share.put(given(object_of(n, 7) for n in range(COUNT))))  # an attempt that was given up, and comes late
    assert stored(elasticsearch_store) == {one.id: one for one in expected}
    assert documents(client, entry) == len(expected)
    assert skipped(elasticsearch_store, entry, between(7, 7)) == {
        one.id.key for one in expected if one.id != object_id(7)
    }


def test_only_what_was_received_is_published(elasticsearch_store: ElasticsearchStore, client: Elasticsearch) -> None:
    write(elasticsearch_store, DEFINITION, LEARNT)
    with elasticsearch_store.change(DEFINITION) as change:
        share = sent(change.share([one.id for one in OBJECTS]))
        outcomes = list(share.put(given(OBJECTS)))
        change.receive(share, outcomes[:10])
        change.put(object_of(n, 7) for n in range(10, 15))  # here instead
        change.remove([object_id(3)])
        entry = change.publish()
    expected = [*LEARNT, *(object_of(n) for n in range(10) if n != 3), *(object_of(n, 7) for n in range(10, 15))]
    assert stored(elasticsearch_store) == {one.id: one for one in expected}
    assert entry.objects == documents(client, entry) == len(expected)
    list(share.put(given(OBJECTS)))  # late: of most there is no document any more
    assert stored(elasticsearch_store) == {one.id: one for one in expected}
    assert skipped(elasticsearch_store, entry, between(7, 7)) == {
        one.id.key for one in expected if one.id not in [object_id(n) for n in (7, *range(10, 15))]
    }


def test_refused(elasticsearch_store: ElasticsearchStore) -> None:
    def refused(outcomes: Sequence[Outcome]) -> list[int]:
        return [one.place for one in outcomes if one.refused]

    objects = [object_of(0), object_of(1, boxes=3), object_of(2)]
    with elasticsearch_store.change(DEFINITION) as change:
        share = sent(change.share([one.id for one in objects]))
        assert refused(list(share.put(given(objects)))) == [0, 1, 2], "no prefix is known, nor room for a box"
        change.put(LEARNT)
        assert change.share([LEARNT[0].id]) is None, "it is written already"
        share = sent(change.share([one.id for one in objects]))
        outcomes = list(share.put(given(objects)))
        assert refused(outcomes) == [1], "there is room for one box"
        change.receive(share, outcomes)
        change.put(objects[1:2])
        change.publish()
    assert stored(elasticsearch_store) == {one.id: one for one in [*LEARNT, *objects]}


def test_reach(elasticsearch_store: ElasticsearchStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRIVERS_SECRET", "hunter2")
    conf = {"spark.es_skipping.store.user": "u", "spark.es_skipping.store.password": "env:DRIVERS_SECRET"}
    with elasticsearch_store.change(DEFINITION) as change:
        share = sent(change.share(()))
        assert isinstance(share, ElasticsearchShare)
        share.reach()
        with pytest.raises(StoreError, match="has no index no-such"):
            replace(share, index="no-such").reach()
        with pytest.raises(StoreError, match="cannot be reached"):
            replace(share, url="http://127.0.0.1:9").reach()
        secret = replace(share, settings=Settings(conf))
        assert "hunter2" not in repr(secret) + str(pickle.dumps(secret)), "a reference is resolved where it is used"
        secret.reach()
        monkeypatch.delenv("DRIVERS_SECRET")
        with pytest.raises(SettingError, match="environment variable DRIVERS_SECRET, which is not set"):
            sent(secret).reach()
