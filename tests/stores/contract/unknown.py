"""What is not known keeps an object: missing metadata, questions of another kind, entries that have aged."""

from __future__ import annotations

import dataclasses

import pytest

from es_skipping.catalog import ObjectMetadata
from es_skipping.clauses.clause import SKIP, Ask, Conjunction, Decided, Disjunction
from es_skipping.clauses.evaluate import holds
from es_skipping.clauses.metadata import Boxes, Intervals, Values
from es_skipping.clauses.questions import AnyOf, HasNotNull, HasNull, Meets, OtherThan, Overlaps, Range, TextMatch
from es_skipping.errors import StoreError
from es_skipping.predicates.types import parse_type
from es_skipping.stores.base import MetadataStore
from es_skipping.stores.guarantors import Ordering
from tests.stores import strategies
from tests.stores.contract.base import StoreTests
from tests.stores.contract.examples import (
    BOX,
    LIST,
    MINMAX,
    between,
    dataset_definition,
    minmax,
    object_id,
    object_metadata,
    skipped,
    write,
)

__all__ = ["Unknown"]


class Unknown(StoreTests):
    """What is not known keeps an object: missing metadata, questions of another kind, entries that have aged."""

    def test_unknown_keeps(self, store: MetadataStore) -> None:
        objects = [
            object_metadata(0),
            object_metadata(1, list=Values(frozenset(), 0)),
            object_metadata(2, minmax=Intervals(None, None, None)),
            object_metadata(3, minmax=Intervals((), None)),
            object_metadata(4, minmax=Intervals((), 0)),
        ]
        entry = write(store, dataset_definition(MINMAX, LIST, BOX), objects)
        assert skipped(store, entry, between(0, 1)) == {object_id(3).key, object_id(4).key}
        assert skipped(store, entry, Ask(MINMAX.id, HasNull())) == {object_id(4).key}
        assert skipped(store, entry, Ask(BOX.id, HasNotNull())) == set()
        assert skipped(store, entry, Ask("never heard of", HasNull())) == set()
        assert skipped(store, entry, Conjunction((Ask("never heard of", HasNull()), SKIP))) == {
            o.id.key for o in objects
        }
        assert skipped(store, entry, Disjunction((Ask("never heard of", HasNull()), between(0, 1)))) == set()

    def test_a_question_that_the_kind_does_not_answer_keeps(self, store: MetadataStore) -> None:
        objects = [
            object_metadata(
                1, minmax=minmax(1, 1), list=Values(frozenset("x"), 0), box=Boxes((((0.0, 1.0), (0.0, 1.0)),))
            )
        ]
        entry = write(store, dataset_definition(MINMAX, LIST, BOX), objects)
        for clause in (
            Ask(MINMAX.id, TextMatch("starts", "z")),
            Ask(MINMAX.id, Meets((Range(5.0, 6.0),))),
            Ask(BOX.id, AnyOf((7.0,))),
            Ask(BOX.id, HasNull()),
            Ask(BOX.id, Meets((Range(5.0, 6.0),))),
        ):
            assert skipped(store, entry, clause) == set(), clause

    def test_a_stale_entry_is_answered_rightly(self, store: MetadataStore) -> None:
        old = write(store, dataset_definition(MINMAX), [object_metadata(n, minmax=minmax(n, n)) for n in range(5)])
        other = self.reopen(store)
        write(
            other,
            dataset_definition(MINMAX),
            [object_metadata(1, mtime=5, minmax=minmax(100, 100))],
            remove=[object_id(2)],
        )
        write(other, dataset_definition(MINMAX), [object_metadata(n, minmax=minmax(100, 100)) for n in (7, 8)])
        listed_now = {object_id(0), object_id(1, 5), object_id(3), object_id(4), object_id(7), object_id(8)}
        for handle in (store, other, self.reopen(store)):
            skip = skipped(handle, old, between(100, 100))
            assert not skip & {object_id(1, 5).key, object_id(7).key, object_id(8).key}
            assert {one.key for one in listed_now} & skip <= {object_id(n).key for n in (0, 3, 4)}

    def test_a_stale_entry_of_another_definition(self, store: MetadataStore) -> None:
        old = write(store, dataset_definition(MINMAX), [object_metadata(n, minmax=minmax(n, n)) for n in range(3)])
        changed = dataclasses.replace(MINMAX, built_with={"zone": "other"}, columns=("another",))
        other = self.reopen(store)
        write(
            other,
            dataset_definition(changed),
            [object_metadata(n, minmax=minmax(50, 50)) for n in range(3)],
            fresh=True,
        )
        for handle in (store, self.reopen(store)):
            assert object_id(1).key not in skipped(handle, old, between(1, 1)), "judged by an index of another column"

    @pytest.mark.parametrize("dropped", [False, True])
    def test_a_stale_entry_of_files_that_were_read_in_another_way(self, store: MetadataStore, dropped: bool) -> None:
        definition = dataset_definition(MINMAX)
        old = write(store, definition, [object_metadata(n, minmax=minmax(n, n)) for n in range(3)])
        now = dataclasses.replace(definition, built_with={"spark.sql.session.timeZone": "Asia/Tokyo"})
        other = self.reopen(store)
        if dropped:
            other.drop("events")
        anew = [object_metadata(n, minmax=minmax(50, 50)) for n in range(3)]
        write(other, now, [dataclasses.replace(one, rows=1000) for one in anew], fresh=True)
        for handle in (store, self.reopen(store)):
            assert object_id(1).key not in skipped(handle, old, between(1, 1)), "judged by values of another zone"
            assert 1000 not in {one.rows for one in handle.guarantors(old, SKIP, 1)}, "counted in another way"

    def test_a_stale_entry_of_a_dropped_dataset(self, store: MetadataStore) -> None:
        old = write(store, dataset_definition(MINMAX), [object_metadata(n, minmax=minmax(n, n)) for n in range(3)])
        other = self.reopen(store)
        other.drop("events")
        for handle in (other, self.reopen(store)):
            try:
                skip = skipped(handle, old, between(1, 1))
            except StoreError:
                continue
            assert skip <= {object_id(0).key, object_id(2).key}

    def test_a_stale_entry_of_a_dataset_that_was_dropped_and_built_again(self, store: MetadataStore) -> None:
        objects = [object_metadata(n, minmax=minmax(n, n)) for n in range(1, 4)]
        old = write(store, dataset_definition(MINMAX), objects)
        assert skipped(store, old, between(1, 1)) == {object_id(2).key, object_id(3).key}
        other = self.reopen(store)
        other.drop("events")
        write(other, dataset_definition(MINMAX), objects[:2])
        ordering = Ordering(MINMAX.id, descending=True, nulls_first=False)
        now = {one.id.key: one.metadata[MINMAX.id] for one in objects[:2]}
        for handle in (store, self.reopen(store)):
            assert {one.key for one in handle.guarantors(old, SKIP, 1, ordering)} <= {object_id(2).key}
            assert handle.metadata_by_key(old, MINMAX.id) in ({}, now)
            assert skipped(handle, old, between(1, 1)) <= {object_id(2).key, object_id(3).key}

    def test_values_of_another_type_than_the_index_never_skip_wrongly(self, store: MetadataStore) -> None:
        """Literals that do not fit the column's type: a question may hold what no row can."""
        index = strategies.index("intervals", parse_type("bigint"))
        listed = strategies.index("values", parse_type("bigint"))
        some = [
            ObjectMetadata(object_id(n), 1, {index.id: minmax(n, n), listed.id: Values(frozenset({n}), 0)})
            for n in range(3)
        ]
        entry = write(store, dataset_definition(index, listed), some)
        for one in (index, listed):
            for big in (2**63, 10**30, -(10**30)):
                self.check(store, entry, some, Ask(one.id, OtherThan((big,))))
                self.check(store, entry, some, Ask(one.id, AnyOf((big, 1))))
                self.check(store, entry, some, Ask(one.id, Overlaps((Range(None, big),))))
                self.check(store, entry, some, Ask(one.id, Overlaps((Range(big, None),))))

    def test_the_oracle_tells_the_three_apart(self) -> None:
        one = object_metadata(1, minmax=minmax(1, 5)).metadata
        assert holds(between(5, 6), one) is True
        assert holds(between(6, 7), one) is False
        assert holds(Ask(LIST.id, HasNull()), one) is None
        assert holds(Decided(False), one) is False
