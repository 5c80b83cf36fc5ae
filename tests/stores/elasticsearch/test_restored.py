"""An operator restores indices from a snapshot: what was published in between is forgotten, and nothing is mixed up."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from elasticsearch import Elasticsearch

from es_skipping.catalog import ObjectMetadata
from es_skipping.stores.elasticsearch.store import ElasticsearchStore
from tests.elasticsearch_node import Node, start_node
from tests.stores.contract import (
    MINMAX,
    between,
    dataset_definition,
    entry_of,
    minmax,
    object_metadata,
    skipped,
    write,
)
from tests.stores.elasticsearch.conftest import empty, make_store
from tests.stores.elasticsearch.snapshots import Snapshots, repository_folder

PREFIX = "es-skipping-test-restored"
DEFINITION = dataset_definition(MINMAX)
OBJECTS = [object_metadata(n, minmax=minmax(n, n)) for n in range(3)]
LOST = object_metadata(50, minmax=minmax(50, 50))
"""Indexed after the snapshot, and still in the data."""
NEXT = object_metadata(60, minmax=minmax(60, 60))
"""Indexed after the restore, alone."""


@pytest.fixture(scope="module")
def folder() -> Iterator[str]:
    with repository_folder() as folder:
        yield folder


@pytest.fixture(scope="module")
def node(folder: str) -> Iterator[Node]:
    node = start_node({"path.repo": folder})
    yield node
    node.stop()


@pytest.fixture
def client(node: Node) -> Iterator[Elasticsearch]:
    with Elasticsearch(node.url, request_timeout=60) as client:
        yield client


@pytest.fixture
def store(node: Node) -> Iterator[ElasticsearchStore]:
    store = make_store(node.url, PREFIX)
    yield store
    empty(store)
    store.close()


@pytest.fixture
def snapshots(client: Elasticsearch, folder: str) -> Snapshots:
    return Snapshots(client, folder, PREFIX)


def add(store: ElasticsearchStore, *objects: ObjectMetadata) -> None:
    with store.change(entry_of(store).definition) as change:
        change.put(objects)
        change.publish()


@pytest.mark.parametrize(
    "parts",
    [("datasets", "keys", "objects"), ("datasets", "keys"), ("datasets",), ("objects",)],
    ids=lambda parts: " and ".join(parts),
)
def test_ordinals_that_are_given_out_again(
    node: Node,
    store: ElasticsearchStore,
    snapshots: Snapshots,
    parts: tuple[str, ...],
) -> None:
    """The first object after a restore would get the ordinal of an object that the restored state does not know."""
    write(store, DEFINITION, OBJECTS)
    taken = snapshots.take()
    add(store, LOST)
    busy, idle, late = (make_store(node.url, PREFIX) for _ in range(3))
    for reader in (store, busy, idle):
        assert skipped(reader, entry_of(reader), between(0, 0)) == {one.id.key for one in (*OBJECTS[1:], LOST)}
    snapshots.restore(taken, parts)
    assert LOST.id.key not in skipped(busy, entry_of(busy), between(50, 50))
    add(store, NEXT)
    for reader in (store, busy, idle, late):
        for value, holds in ((50, LOST), (60, NEXT), (1, OBJECTS[1])):
            assert holds.id.key not in skipped(reader, entry_of(reader), between(value, value))
        assert NEXT.id.key in skipped(reader, entry_of(reader), between(0, 0))
    for reader in (busy, idle, late):
        reader.close()
