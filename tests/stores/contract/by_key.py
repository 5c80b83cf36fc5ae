"""A store returns one index's metadata of every object, for conditions that joins imply."""

from __future__ import annotations

from dataclasses import replace

import pytest

from es_skipping.clauses.metadata import Kind, Metadata
from es_skipping.predicates.types import DataType
from es_skipping.stores.base import MAX_METADATA_BY_KEY, MetadataStore
from tests.stores import strategies
from tests.stores.contract.base import StoreTests
from tests.stores.contract.examples import (
    LIST,
    MINMAX,
    dataset_definition,
    entry_of,
    minmax,
    object_id,
    object_metadata,
    write,
)
from tests.stores.contract.samples import sample_metadata

__all__ = ["ByKey"]


class ByKey(StoreTests):
    """`MetadataStore.metadata_by_key` names exactly the objects of the snapshot, and covers their values."""

    def test_every_object_is_there(self, store: MetadataStore) -> None:
        objects = [object_metadata(n, minmax=minmax(10 * n, 10 * n + 9)) for n in range(30)]
        write(store, dataset_definition(MINMAX), [*objects, object_metadata(40), object_metadata(41)])
        rewritten = object_metadata(41, 1, minmax=minmax(3, 4))
        entry = write(store, dataset_definition(MINMAX), [rewritten], remove=[object_id(7)])
        found = store.metadata_by_key(entry, MINMAX.id)
        kept = [one for one in objects if one.id != object_id(7)]
        expected: dict[bytes, Metadata | None] = {one.id.key: one.metadata[MINMAX.id] for one in kept}
        expected |= {object_id(40).key: None, object_id(41, 1).key: minmax(3, 4)}
        assert found == expected

    @pytest.mark.parametrize("type", strategies.TYPES, ids=str)
    @pytest.mark.parametrize("kind", ["intervals", "values"])
    def test_values_of_every_type_are_read_as_all_metadata_is(
        self, store: MetadataStore, kind: Kind, type: DataType
    ) -> None:
        index = strategies.index(kind, type)
        samples = sample_metadata(kind, type)
        objects = [replace(object_metadata(n), metadata={index.id: one}) for n, one in enumerate(samples)]
        entry = write(store, dataset_definition(index), objects)
        expected = {one.id.key: one.metadata.get(index.id) for one in store.metadata("events")}
        assert len(expected) == len(objects)
        assert store.metadata_by_key(entry, index.id) == expected

    def test_another_index_of_that_name_is_unknown(self, store: MetadataStore) -> None:
        before = write(store, dataset_definition(MINMAX), [object_metadata(1, minmax=minmax(1, 2))])
        other = replace(MINMAX, built_with={"zone": "elsewhere"})
        write(store, dataset_definition(other, LIST), [object_metadata(1, minmax=minmax(8, 9))], fresh=True)
        assert store.metadata_by_key(before, MINMAX.id).get(object_id(1).key) in (None, minmax(1, 2))
        assert store.metadata_by_key(entry_of(store), MINMAX.id) == {object_id(1).key: minmax(8, 9)}
        assert store.metadata_by_key(entry_of(store), "minmax(other)") == {}

    def test_too_many_objects_are_not_read(self, store: MetadataStore) -> None:
        objects = [object_metadata(n, minmax=minmax(n, n)) for n in range(MAX_METADATA_BY_KEY)]
        entry = write(store, dataset_definition(MINMAX), objects)
        assert len(store.metadata_by_key(entry, MINMAX.id, timeout=60)) == MAX_METADATA_BY_KEY
        entry = write(store, dataset_definition(MINMAX), [object_metadata(MAX_METADATA_BY_KEY)])
        assert store.metadata_by_key(entry, MINMAX.id, timeout=60) == {}
