"""A cluster in trouble, on the real server: what readers get meanwhile, and what the next refresh makes of it."""

from __future__ import annotations

import pytest
from elasticsearch import Elasticsearch

from es_skipping.catalog import DatasetEntry
from es_skipping.errors import StoreError
from es_skipping.stores.elasticsearch import bulk
from es_skipping.stores.elasticsearch import store as store_module
from es_skipping.stores.elasticsearch.store import ElasticsearchStore
from tests.stores.contract import (
    MINMAX,
    between,
    dataset_definition,
    entry_of,
    minmax,
    object_id,
    object_metadata,
    skipped,
    stored,
    write,
)
from tests.stores.elasticsearch.conftest import make_store

DEFINITION = dataset_definition(MINMAX)
OBJECTS = [object_metadata(n, minmax=minmax(n, n)) for n in range(6)]


@pytest.fixture
def entry(elasticsearch_store: ElasticsearchStore) -> DatasetEntry:
    return write(elasticsearch_store, DEFINITION, OBJECTS)


def index_of(entry: DatasetEntry) -> str:
    return entry.snapshot.rpartition("@")[0]


def test_a_disk_that_is_full_stops_builds_and_no_query(
    elasticsearch_store: ElasticsearchStore,
    entry: DatasetEntry,
    client: Elasticsearch,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The server puts this block on indices when the disk's flood stage is passed."""
    monkeypatch.setattr(bulk, "_FIRST_PAUSE", 0.001)
    block = {"index.blocks.read_only_allow_delete": True}
    client.indices.put_settings(index=index_of(entry), settings=block)
    try:
        with pytest.raises(StoreError, match=r"(?i)read-only|flood"):
            write(elasticsearch_store, DEFINITION, [object_metadata(9, minmax=minmax(9, 9))])
        assert entry_of(elasticsearch_store).snapshot == entry.snapshot
        assert skipped(elasticsearch_store, entry, between(2, 2)) == {object_id(n).key for n in (0, 1, 3, 4, 5)}
    finally:
        client.indices.put_settings(index=index_of(entry), settings={"index.blocks.read_only_allow_delete": None})
    write(elasticsearch_store, DEFINITION, [object_metadata(9, minmax=minmax(9, 9))])
    assert set(stored(elasticsearch_store)) == {object_id(n) for n in (0, 1, 2, 3, 4, 5, 9)}


@pytest.mark.parametrize("large", [False, True])
def test_an_index_that_is_gone_skips_nothing_and_is_built_again(
    elasticsearch_store: ElasticsearchStore,
    entry: DatasetEntry,
    client: Elasticsearch,
    prefix: str,
    monkeypatch: pytest.MonkeyPatch,
    large: bool,
) -> None:
    if large:
        monkeypatch.setattr(store_module, "LARGE", 0)
        assert len(skipped(elasticsearch_store, entry, between(2, 2))) == 5
    client.indices.delete(index=index_of(entry))
    for store in (elasticsearch_store, make_store(elasticsearch_store.url, prefix)):
        with pytest.raises(StoreError):
            store.lookup(entry, between(3, 3))
    again = write(elasticsearch_store, DEFINITION, OBJECTS, fresh=True)
    assert len(skipped(elasticsearch_store, again, between(3, 3))) == 5


def test_an_alias_is_for_people_only(
    elasticsearch_store: ElasticsearchStore, entry: DatasetEntry, client: Elasticsearch, prefix: str
) -> None:
    client.indices.delete_alias(index=index_of(entry), name=f"{prefix}-objects-events")
    assert len(skipped(elasticsearch_store, entry, between(2, 2))) == 5
    write(elasticsearch_store, DEFINITION, OBJECTS[:1])
    assert list(client.indices.get_alias(name=f"{prefix}-objects-events").body) == [index_of(entry)]


@pytest.mark.parametrize(
    "change",
    [{"known": []}, {"ordinal": 1_000_000}, {"ordinal": -1}, {"path": "file:/elsewhere"}],
    ids=["unknown", "beyond", "before", "another path"],
)
@pytest.mark.parametrize("large", [False, True])
def test_a_document_that_was_tampered_with_skips_nothing_it_should_not(
    elasticsearch_store: ElasticsearchStore,
    entry: DatasetEntry,
    client: Elasticsearch,
    monkeypatch: pytest.MonkeyPatch,
    change: dict[str, object],
    large: bool,
) -> None:
    monkeypatch.setattr(store_module, "LARGE", 0 if large else 1 << 30)
    index = index_of(entry)
    hit = client.search(index=index, query={"term": {"path": OBJECTS[2].id.path}})["hits"]["hits"][0]
    client.index(index=index, id=hit["_id"], document={**hit["_source"], **change}, refresh=True)
    right = {one.id.key for n, one in enumerate(OBJECTS) if n != 4}
    assert skipped(elasticsearch_store, entry, between(4, 4)) in (right, right - {OBJECTS[2].id.key})
    assert OBJECTS[2].id.key not in skipped(elasticsearch_store, entry, between(2, 2))
    write(elasticsearch_store, DEFINITION, OBJECTS, fresh=True)
    assert skipped(elasticsearch_store, entry_of(elasticsearch_store), between(4, 4)) == right
