"""An operator restores indices from a snapshot: what was published in between is forgotten, and nothing is mixed up."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import product

import pytest
from elasticsearch import Elasticsearch

from es_skipping.catalog import DatasetEntry, ObjectMetadata
from es_skipping.errors import StoreError
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
DEAD = object_metadata(70, minmax=minmax(70, 70))
"""Written after the others, and never published."""
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


@pytest.fixture(params=[1, 0], ids=["small", "views"])
def small_and_in_views(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Datasets are asked as they are, and as large ones."""
    monkeypatch.setattr("es_skipping.stores.elasticsearch.store.LARGE", request.param * LARGE)


def with_losses(store: ElasticsearchStore, snapshots: Snapshots) -> str:
    """A snapshot of the objects, and after it those that a restore loses."""
    write(store, DEFINITION, OBJECTS)
    taken = snapshots.take()
    for one in LOST:
        add(store, one)
    return taken


def add(store: ElasticsearchStore, *objects: ObjectMetadata) -> None:
    with store.change(entry_of(store).definition) as change:
        change.put(objects)
        change.publish()


@pytest.mark.usefixtures("small_and_in_views")
@pytest.mark.parametrize("parts", [("datasets", "keys"), ("datasets",)], ids=lambda parts: " and ".join(parts))
def test_what_was_not_restored_goes_on(
    node: Node,
    store: ElasticsearchStore,
    snapshots: Snapshots,
    parts: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The first objects after a restore would get the ordinals of objects that the restored state does not know."""
    taken = with_losses(store, snapshots)
    with store.change(DEFINITION) as change:
        change.put([DEAD])
        monkeypatch.setattr(change, "discard", change._writer.flush)  # type: ignore[attr-defined]
    before = entry_of(store)
    with readers_of(node, before) as readers:
        snapshots.restore(taken, parts)
        add(store, *NEXT)
        judge([store, *readers], [None, before], (*OBJECTS, *LOST, *NEXT, DEAD))
        knows_next([store, *readers])


@pytest.mark.usefixtures("small_and_in_views")
def test_ordinals_of_documents_that_are_gone(node: Node, store: ElasticsearchStore, snapshots: Snapshots) -> None:
    """They are given out again, under other names: the lost state had removed its objects."""
    taken = with_losses(store, snapshots)
    with readers_of(node, entry_of(store)) as readers:
        write(store, DEFINITION, [], remove=[one.id for one in LOST])
        snapshots.restore(taken, ("datasets", "keys"))
        for one in NEXT:
            add(store, one)
        judge([store, *readers], [None], (*OBJECTS, *NEXT))
        knows_next([store, *readers])


@pytest.mark.usefixtures("small_and_in_views")
@pytest.mark.parametrize(
    "parts", [("datasets", "keys", "objects"), ("objects",), ("keys",)], ids=lambda parts: " and ".join(parts)
)
def test_nothing_is_added_to_what_was_restored(
    node: Node, store: ElasticsearchStore, snapshots: Snapshots, parts: tuple[str, ...]
) -> None:
    """A refresh of the whole dataset builds it anew; whoever remembers what is lost finds the old index gone."""
    taken = with_losses(store, snapshots)
    before, later = entry_of(store), snapshots.take()
    everything = (*OBJECTS, *LOST, *NEXT)
    with readers_of(node, before) as readers:
        assert not store.must_rebuild(before, DEFINITION)
        snapshots.restore(taken, parts)
        judge([store, *readers], [before], everything)
        if parts == ("objects",):
            assert {one.id.key for one in OBJECTS[1:]} <= skipped(readers[0], before, between(0, 0))
        assert store.must_rebuild(entry_of(store), DEFINITION)
        with pytest.raises(StoreError, match="were restored from a snapshot"):
            add(store, *NEXT)
        with store.change(DEFINITION, fresh=True) as change:
            change.put((*OBJECTS, *NEXT))
            change.publish()
        assert not store.must_rebuild(entry_of(store), DEFINITION)
        judge([store, *readers], [None, before], everything)
        knows_next([store, *readers])
        for again in (("objects",), ("datasets", "keys"), ("datasets", "keys", "objects")):
            snapshots.restore(later, again)
            judge([store, *readers], [None, before], everything)


@contextmanager
def readers_of(node: Node, entry: DatasetEntry) -> Iterator[list[ElasticsearchStore]]:
    """One that has asked, and one that has not."""
    busy, late = make_store(node.url, PREFIX), make_store(node.url, PREFIX)
    assert skipped(busy, entry, between(0, 0)) == {one.id.key for one in (*OBJECTS[1:], *LOST)}
    yield [busy, late]
    for reader in (busy, late):
        reader.close()


def judge(
    readers: Sequence[ElasticsearchStore], entries: Sequence[DatasetEntry | None], objects: Sequence[ObjectMetadata]
) -> None:
    """No object is skipped whose value is asked, whether the reader knows of the newest publication or not (None)."""
    for reader, entry, one in product(readers, entries, objects):
        value = one.rows
        assert value is not None
        try:
            seen = reader.dataset("events") if entry is None else entry
            found = set() if seen is None else skipped(reader, seen, between(value, value))
        except StoreError:
            continue  # then nothing is skipped
        assert one.id.key not in found, (entry, value)


def knows_next(readers: Sequence[ElasticsearchStore]) -> None:
    """What was indexed after the restore is skipped by all of them."""
    for reader in readers:
        assert {one.id.key for one in NEXT} <= skipped(reader, entry_of(reader), between(0, 0))


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
