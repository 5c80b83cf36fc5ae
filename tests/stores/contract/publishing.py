"""Readers see a change whole or not at all; of two writers one publishes and the other gets a conflict."""

from __future__ import annotations

import pytest

from es_skipping.clauses.metadata import Values
from es_skipping.errors import StoreConflict
from es_skipping.stores.base import MetadataStore
from tests.stores.contract.base import StoreTests
from tests.stores.contract.examples import (
    LIST,
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

__all__ = ["Publishing"]


class Publishing(StoreTests):
    """Readers see a change whole or not at all; of two writers one publishes and the other gets a conflict."""

    def test_nothing_is_seen_before_publishing(self, store: MetadataStore) -> None:
        with store.change(dataset_definition(MINMAX)) as change:
            change.put([object_metadata(1, minmax=minmax(1, 1))])
            assert self.reopen(store).datasets() == []
            assert store.dataset("events") is None
        assert store.dataset("events") is None

    def test_leaving_without_publishing_discards(self, store: MetadataStore) -> None:
        before = write(store, dataset_definition(MINMAX), [object_metadata(n, minmax=minmax(n, n)) for n in range(4)])
        with store.change(dataset_definition(MINMAX, LIST)) as change:
            change.put([object_metadata(1, list=Values(frozenset("x"), 0)), object_metadata(9, minmax=minmax(0, 0))])
            change.remove([object_id(2)])
        with pytest.raises(RuntimeError, match="build failed"), store.change(dataset_definition(MINMAX)) as change:  # noqa: PT012
            change.put([object_metadata(10, minmax=minmax(0, 0))])
            raise RuntimeError("build failed")
        for handle in (store, self.reopen(store)):
            assert entry_of(handle) == before
            assert stored(handle) == {object_id(n): object_metadata(n, minmax=minmax(n, n)) for n in range(4)}

    def test_a_fresh_generation_is_unseen_until_published(self, store: MetadataStore) -> None:
        before = write(store, dataset_definition(MINMAX), [object_metadata(n, minmax=minmax(n, n)) for n in range(4)])
        with store.change(dataset_definition(LIST), fresh=True) as change:
            change.put([object_metadata(1, list=Values(frozenset("x"), 0))])
            for handle in (store, self.reopen(store)):
                assert entry_of(handle) == before
                assert len(stored(handle)) == 4
                assert skipped(handle, before, between(0, 0)) == {object_id(n).key for n in (1, 2, 3)}
            after = change.publish()
        assert stored(self.reopen(store)) == {object_id(1): object_metadata(1, list=Values(frozenset("x"), 0))}
        assert after.snapshot != before.snapshot
        assert after.objects == 1

    def test_a_fresh_generation_that_is_discarded(self, store: MetadataStore) -> None:
        before = write(store, dataset_definition(MINMAX), [object_metadata(1, minmax=minmax(1, 1))])
        with store.change(dataset_definition(LIST), fresh=True) as change:
            change.put([object_metadata(2, list=Values(frozenset("x"), 0))])
        assert entry_of(self.reopen(store)) == before
        assert stored(store).keys() == {object_id(1)}

    def test_each_publication_is_another_snapshot(self, store: MetadataStore) -> None:
        seen = {write(store, dataset_definition(MINMAX)).snapshot for _ in range(3)}
        seen.add(write(store, dataset_definition(MINMAX), [object_metadata(1)]).snapshot)
        seen.add(write(store, dataset_definition(MINMAX), fresh=True).snapshot)
        assert len(seen) == 5
        assert entry_of(store).snapshot == entry_of(self.reopen(store)).snapshot

    @pytest.mark.parametrize("fresh", [False, True])
    def test_of_two_writers_one_loses_and_changes_nothing(self, store: MetadataStore, fresh: bool) -> None:
        write(store, dataset_definition(MINMAX), [object_metadata(n, minmax=minmax(n, n)) for n in range(3)])
        other = self.reopen(store)
        with store.change(dataset_definition(MINMAX, LIST), fresh=fresh) as slow:
            slow.put([object_metadata(1, list=Values(frozenset("x"), 0)), object_metadata(8, minmax=minmax(8, 8))])
            won = write(
                other, dataset_definition(MINMAX), [object_metadata(9, minmax=minmax(9, 9))], remove=[object_id(0)]
            )
            with pytest.raises(StoreConflict):
                slow.publish()
        assert entry_of(store) == won == entry_of(other)
        assert set(stored(store)) == {object_id(n) for n in (1, 2, 9)}
        assert stored(store)[object_id(1)] == object_metadata(1, minmax=minmax(1, 1))
        again = write(store, dataset_definition(MINMAX, LIST), [object_metadata(1, list=Values(frozenset("x"), 0))])
        assert again.objects == 3
        assert stored(other)[object_id(1)] == object_metadata(1, minmax=minmax(1, 1), list=Values(frozenset("x"), 0))

    def test_two_writers_create_one_dataset(self, store: MetadataStore) -> None:
        other = self.reopen(store)
        with store.change(dataset_definition(MINMAX)) as slow:
            slow.put([object_metadata(1, minmax=minmax(1, 1))])
            won = write(other, dataset_definition(LIST), [object_metadata(2, list=Values(frozenset("x"), 0))])
            with pytest.raises(StoreConflict):
                slow.publish()
        assert entry_of(store) == won
        assert stored(store) == {object_id(2): object_metadata(2, list=Values(frozenset("x"), 0))}

    def test_writers_of_different_datasets_do_not_disturb_each_other(self, store: MetadataStore) -> None:
        with store.change(dataset_definition(MINMAX, id="a")) as slow:
            slow.put([object_metadata(1, minmax=minmax(1, 1))])
            write(self.reopen(store), dataset_definition(MINMAX, id="b"), [object_metadata(2, minmax=minmax(2, 2))])
            slow.publish()
        assert {entry.definition.id: entry.objects for entry in store.datasets()} == {"a": 1, "b": 1}

    def test_a_drop_meanwhile_is_a_conflict(self, store: MetadataStore) -> None:
        write(store, dataset_definition(MINMAX), [object_metadata(1, minmax=minmax(1, 1))])
        with store.change(dataset_definition(MINMAX)) as slow:
            slow.put([object_metadata(2, minmax=minmax(2, 2))])
            self.reopen(store).drop("events")
            with pytest.raises(StoreConflict):
                slow.publish()
        assert store.dataset("events") is None
