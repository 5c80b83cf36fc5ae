"""The objects that a store names as guarantors hold the rows that they are said to hold."""

from __future__ import annotations

import itertools

import pytest

from es_skipping.catalog import ObjectMetadata
from es_skipping.clauses.clause import KEEP, SKIP, Ask, Clause
from es_skipping.clauses.evaluate import holds
from es_skipping.clauses.metadata import Intervals, Values
from es_skipping.clauses.questions import AnyOf, HasNull
from es_skipping.predicates.types import DataType
from es_skipping.stores.base import MetadataStore
from es_skipping.stores.guarantors import Guarantor, Ordering, first_rows, guarantor, in_order, threshold
from tests.stores import strategies
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
    write,
)
from tests.stores.contract.samples import sample_metadata

__all__ = ["Guarantors"]

LATEST = Ordering(MINMAX.id, descending=True, nulls_first=False)
FIRST = Ordering(MINMAX.id, descending=False, nulls_first=True)


def _named(found: tuple[Guarantor, ...]) -> list[int]:
    by_key = {object_id(n).key: n for n in range(1000)}
    return [by_key[one.key] for one in found]


class Guarantors(StoreTests):
    """The objects that a store names as guarantors hold the rows that they are said to hold."""

    def test_the_best_bounds_come_first(self, store: MetadataStore) -> None:
        objects = [object_metadata(n, minmax=minmax(10 * n, 10 * n + 9)) for n in range(40)]  # object n has n rows
        entry = write(store, dataset_definition(MINMAX), objects)
        assert _named(store.guarantors(entry, SKIP, 100, LATEST)) == [39, 38, 37]
        assert _named(store.guarantors(entry, SKIP, 39, LATEST)) == [39]
        assert _named(store.guarantors(entry, SKIP, 6, FIRST)) == [1, 2, 3], "object 0 has no row"
        assert _named(store.guarantors(entry, SKIP, 40, None)) == [39, 38]
        assert _named(store.guarantors(entry, between(200, 10_000), 20, LATEST)) == [19, 18]
        assert _named(store.guarantors(entry, SKIP, 1, LATEST, under={"file:/data/events"})) == [39]
        assert store.guarantors(entry, SKIP, 1, LATEST, under={"file:/data/event", "file:/data/events/part"}) == ()
        assert store.guarantors(entry, SKIP, 10_000, LATEST) == ()
        assert store.guarantors(entry, KEEP, 1, LATEST) == ()
        assert store.guarantors(entry, between(0, 10_000), 1, None) == ()

    @pytest.mark.parametrize("type", strategies.TYPES, ids=str)
    def test_rows_of_every_type(self, store: MetadataStore, type: DataType) -> None:
        index = strategies.index("intervals", type)
        samples = sample_metadata("intervals", type)
        samples *= 1 + 150 // len(samples)  # more than a store reads at once
        objects = [ObjectMetadata(object_id(n), 8 if n % 5 else None, {index.id: one}) for n, one in enumerate(samples)]
        objects.append(ObjectMetadata(object_id(999), 1000, {}))
        entry = write(store, dataset_definition(index), objects)
        by_key = {one.id.key: one for one in objects}
        clauses: list[Clause] = [SKIP, Ask(index.id, HasNull())]
        found_any = False
        for clause, descending, nulls_first in itertools.product(clauses, (False, True), (False, True)):
            ordering = Ordering(index.id, descending, nulls_first)
            proved = [one for one in objects if holds(clause, one.metadata) is False]
            made = [guarantor(one.id.key, one.rows, one.metadata.get(index.id), ordering) for one in proved]
            expected = in_order((one for one in made if one is not None), ordering)
            held = {one.key: one for one in expected}
            for k in (1, 9, sum(one.rows for one in expected)):
                found = store.guarantors(entry, clause, k, ordering)
                found_any |= bool(found)
                assert len({one.key for one in found}) == len(found)
                for one in found:
                    assert one.key in held, f"guarantees nothing: {by_key[one.key]}"
                    assert one.rows == held[one.key].rows
                    bounds = threshold([one], ordering), threshold([held[one.key]], ordering)
                    assert bounds[0] == bounds[1] or self.rounds(index.value_type)
                assert not found or sum(one.rows for one in found) >= k
                best = first_rows(expected, k)
                if best and not self.rounds(index.value_type):
                    assert threshold(found, ordering) == threshold(best, ordering)
        assert found_any

    def rounds(self, type: DataType) -> bool:
        """Whether this store rounds the bounds of a type, or sorts by a rounded one."""
        return False

    def test_what_is_unknown_guarantees_nothing(self, store: MetadataStore) -> None:
        objects = [
            ObjectMetadata(object_id(1), None, {MINMAX.id: minmax(1, 1)}),
            ObjectMetadata(object_id(2), 5, {MINMAX.id: minmax(2, 2, nulls=None)}),
            ObjectMetadata(object_id(3), 5, {MINMAX.id: Intervals(None, 0)}),
            ObjectMetadata(object_id(4), 5, {MINMAX.id: Intervals((), 5)}),
            ObjectMetadata(object_id(5), 5, {LIST.id: Values(frozenset({"a"}), 0)}),
            ObjectMetadata(object_id(6), 5, {MINMAX.id: minmax(6, 6, nulls=5)}),
            ObjectMetadata(object_id(7), 5, {MINMAX.id: minmax(7, 7, nulls=4)}),
        ]
        entry = write(store, dataset_definition(MINMAX, LIST), objects)
        assert _named(store.guarantors(entry, SKIP, 1, LATEST)) == [7]
        assert store.guarantors(entry, SKIP, 2, LATEST) == ()
        assert sorted(_named(store.guarantors(entry, SKIP, 10, FIRST))) == [6, 7]
        assert _named(store.guarantors(entry, Ask(LIST.id, AnyOf(("b",))), 1, None)) == [5]
        assert store.guarantors(entry, Ask("minmax(gone)", HasNull()), 1, None) == ()
        assert store.guarantors(entry, SKIP, 1, Ordering("minmax(gone)", True, True)) == ()

    def test_removed_and_replaced_objects_guarantee_nothing(self, store: MetadataStore) -> None:
        definition = dataset_definition(MINMAX)
        write(store, definition, [object_metadata(n, minmax=minmax(n, n)) for n in range(1, 6)])
        newer = object_metadata(4, 1_800_000_000_000, minmax=minmax(0, 0))
        entry = write(store, definition, [newer], remove=[object_id(5)])
        found = store.guarantors(entry, SKIP, 3, LATEST)
        assert _named(found) == [3]
        assert {one.key for one in store.guarantors(entry, SKIP, 10, LATEST)} == {
            newer.id.key,
            *(object_id(n).key for n in (1, 2, 3)),
        }

    def test_another_definition_guarantees_nothing(self, store: MetadataStore) -> None:
        write(store, dataset_definition(MINMAX), [object_metadata(3, minmax=minmax(3, 3))])
        before = entry_of(store)
        write(store, dataset_definition(LIST), [object_metadata(3, list=Values(frozenset({"a"}), 0))])
        # A store may still answer from the snapshot that the reader knows; its facts are those of the same object.
        found = self.reopen(store).guarantors(before, SKIP, 1, LATEST)
        assert found in ((), (Guarantor(object_id(3).key, 3, 3),))
