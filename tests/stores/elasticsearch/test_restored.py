"""An operator restores indices from a snapshot: what was published in between is forgotten, and nothing is mixed up."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from elasticsearch import Elasticsearch

from es_skipping.catalog import ObjectMetadata
from es_skipping.stores.elasticsearch.store import LARGE, ElasticsearchStore
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
LOST = [object_metadata(n, minmax=minmax(n, n)) for n in (50, 51)]
"""Indexed after the snapshot, one after the other, and still in the data."""
NEXT = [object_metadata(n, minmax=minmax(n, n)) for n in (60, 61)]
"""Indexed after the restore, without the others."""


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
    ("at_once", "large"), [(True, 1), (False, 1), (False, 0)], ids=["at once", "one by one", "views"]
)
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
    at_once: bool,
    large: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The first objects after a restore would get the ordinals of objects that the restored state does not know."""
    monkeypatch.setattr("es_skipping.stores.elasticsearch.store.LARGE", large * LARGE)
    write(store, DEFINITION, OBJECTS)
    taken = snapshots.take()
    for one in LOST:
        add(store, one)
    busy, idle, late = (make_store(node.url, PREFIX) for _ in range(3))
    for reader in (store, busy, idle):
        assert skipped(reader, entry_of(reader), between(0, 0)) == {one.id.key for one in (*OBJECTS[1:], *LOST)}
    snapshots.restore(taken, parts)
    for one in LOST:
        assert one.id.key not in skipped(busy, entry_of(busy), between(one.rows or 0, one.rows or 0))
    for some in [NEXT] if at_once else [[one] for one in NEXT]:
        add(store, *some)
    for reader in (store, busy, idle, late):
        for one in (*OBJECTS, *LOST, *NEXT):
            value = one.rows
            assert value is not None
            assert one.id.key not in skipped(reader, entry_of(reader), between(value, value))
        assert {one.id.key for one in NEXT} <= skipped(reader, entry_of(reader), between(0, 0))
    for reader in (busy, idle, late):
        reader.close()


def test_a_copy_that_goes_on_after_a_restore(store: ElasticsearchStore, snapshots: Snapshots) -> None:
    """The blocks of ordinals that it claimed are forgotten, its documents are not."""
    write(store, DEFINITION, OBJECTS[:1])
    taken = snapshots.take()
    with store.change(DEFINITION, fresh=True, name="copy") as change:
        change.put(OBJECTS)
    snapshots.restore(taken, ("keys",))
    with store.change(DEFINITION, fresh=True, name="copy") as change:
        change.put(NEXT)
        change.publish()
    for one in (*OBJECTS, *NEXT):
        others = {other.id.key for other in (*OBJECTS, *NEXT) if other != one}
        assert skipped(store, entry_of(store), between(one.rows or 0, one.rows or 0)) == others
