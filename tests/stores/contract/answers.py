"""A look-up skips an object exactly where the clause is false of it, for every question and type."""

from __future__ import annotations

import dataclasses
import itertools

import pytest

from es_skipping.catalog import ObjectMetadata
from es_skipping.clauses.clause import KEEP, SKIP, Ask, Clause, Conjunction, Disjunction, disjunction
from es_skipping.clauses.metadata import Boxes, Intervals, Kind, Values
from es_skipping.clauses.questions import AnyOf, HasNotNull, Meets, OtherThan, Range
from es_skipping.predicates.types import DataType, Value
from es_skipping.stores.base import MetadataStore
from tests.stores import strategies
from tests.stores.contract.base import StoreTests
from tests.stores.contract.examples import (
    DOUBLE,
    LIST,
    MINMAX,
    STRING,
    between,
    dataset_definition,
    keys,
    minmax,
    object_id,
    object_metadata,
    skipped,
    stored,
    write,
)
from tests.stores.contract.samples import KINDS_AND_TYPES, sample_metadata, sample_questions

__all__ = ["Answers"]


class Answers(StoreTests):
    """A look-up skips an object exactly where the clause is false of it, for every question and type."""

    def test_detail_counts_by_index(self, store: MetadataStore) -> None:
        objects = [object_metadata(n, minmax=minmax(n, n), list=Values(frozenset({f"v{n % 2}"}), 0)) for n in range(10)]
        entry = write(store, dataset_definition(MINMAX, LIST), objects)
        clause = Conjunction((between(0, 3), Ask(LIST.id, AnyOf(("v1",)))))
        plain, detailed = store.lookup(entry, clause), store.lookup(entry, clause, detail=True)
        assert (
            keys(plain.skip)
            == keys(detailed.skip)
            == {object_id(n).key for n in range(10)} - {object_id(1).key, object_id(3).key}
        )
        assert plain.by_index == {}
        assert detailed.by_index == {MINMAX.id: 6, LIST.id: 5}
        assert detailed.skipped == 8

    def test_explain_is_readable(self, store: MetadataStore) -> None:
        entry = write(store, dataset_definition(MINMAX, LIST), [object_metadata(1, minmax=minmax(1, 1))])
        query = store.explain(entry, Conjunction((between(12345, 12399), Ask(LIST.id, AnyOf(('odd "value"',))))))
        assert "12345" in query.text
        assert "odd" in query.text
        for decided in (KEEP, SKIP):
            assert store.explain(entry, decided).text

    @pytest.mark.parametrize(("kind", "type"), KINDS_AND_TYPES)
    def test_every_question_of_every_type(self, store: MetadataStore, kind: Kind, type: DataType) -> None:
        index = strategies.index(kind, type)
        objects = [
            ObjectMetadata(object_id(n), 1, {index.id: one}) for n, one in enumerate(sample_metadata(kind, type))
        ]
        objects.append(ObjectMetadata(object_id(99_999), 1, {}))
        entry = write(store, dataset_definition(index), objects)
        found = stored(store)
        for one in objects:
            read = found[one.id].metadata
            assert read.keys() == one.metadata.keys()
            assert all(self.same_metadata(index, one.metadata[id], read[id]) for id in read), (one, read)
        total = sum(
            self.check(store, entry, objects, Ask(index.id, question)) for question in sample_questions(kind, type)
        )
        assert total > 0, "nothing was ever skipped"

    @pytest.mark.parametrize("axes", [1, 2, 3])
    def test_boxes(self, store: MetadataStore, axes: int) -> None:
        index = strategies.index("boxes", DOUBLE, axes)
        inf = float("inf")
        sides = [(-inf, inf), (-inf, -1.5), (-0.0, 0.0), (0.0, 1e-300), (1.0, 2.0), (2.0, inf), (inf, inf)]
        cells = [tuple(side) for side in itertools.product(sides, repeat=axes)][:60]
        some = [Boxes((cell,)) for cell in cells] + [Boxes(()), Boxes(tuple(cells[1:4])), Boxes(tuple(cells[3:6]))]
        objects = [ObjectMetadata(object_id(n), 1, {index.id: one}) for n, one in enumerate(some)]
        objects.append(ObjectMetadata(object_id(99_999), 1, {}))
        entry = write(store, dataset_definition(index), objects)
        assert all(
            self.same_metadata(index, one.metadata[index.id], stored(store)[one.id].metadata[index.id])
            for one in objects[:-1]
        )
        total = self.check(store, entry, objects, Ask(index.id, HasNotNull()))
        asked = [Range(*side) for side in sides] + [
            Range(None, 0.5),
            Range(0.5, None),
            Range(None, None),
            Range(-0.0, -0.0),
        ]
        for question in [*itertools.product(asked, repeat=axes)][:: max(1, len(asked) ** axes // 120)]:
            total += self.check(store, entry, objects, Ask(index.id, Meets(question)))
        assert total > 0

    def test_a_long_value_list_in_a_question(self, store: MetadataStore) -> None:
        objects = [
            object_metadata(n, minmax=minmax(10 * n, 10 * n + 1), list=Values(frozenset({f"v{n}", f"w{n}"}), 0))
            for n in range(200)
        ]
        entry = write(store, dataset_definition(MINMAX, LIST), objects)
        numbers: tuple[Value, ...] = tuple(range(5, 100_000, 200))
        assert self.check(store, entry, objects, Ask(MINMAX.id, AnyOf(numbers))) == 200
        assert self.check(store, entry, objects, Ask(MINMAX.id, AnyOf((*numbers, 50)))) == 199
        words = tuple(f"w{n}" for n in range(100, 1200))
        assert self.check(store, entry, objects, Ask(LIST.id, AnyOf(words))) == 100
        assert self.check(store, entry, objects, Ask(LIST.id, OtherThan((*words, "v150")))) == 1

    def test_a_value_that_a_question_lists_twice(self, store: MetadataStore) -> None:
        """The same value, and -0.0 beside 0.0: a store that counts what matches must count it once."""
        doubles = strategies.index("values", DOUBLE), strategies.index("intervals", DOUBLE)
        some = [
            object_metadata(1, list=Values(frozenset({"a", "b"}), 0)),
            ObjectMetadata(object_id(2), 1, {doubles[0].id: Values(frozenset({0.0, 7.0}), 0)}),
            ObjectMetadata(object_id(3), 1, {doubles[1].id: Intervals(((0.0, 0.0), (7.0, 7.0)), 0)}),
        ]
        entry = write(store, dataset_definition(LIST, *doubles), some)
        assert self.check(store, entry, some, Ask(LIST.id, OtherThan(("a", "a")))) == 0
        assert self.check(store, entry, some, Ask(LIST.id, OtherThan(("a", "a", "b")))) == 1
        for index in doubles:
            assert self.check(store, entry, some, Ask(index.id, OtherThan((0.0, -0.0)))) == 0
            assert self.check(store, entry, some, Ask(index.id, OtherThan((0.0, -0.0, 7.0)))) == 1
            assert self.check(store, entry, some, Ask(index.id, AnyOf((-0.0, -0.0)))) == 0

    def test_fingerprints_outlive_what_is_added(self, store: MetadataStore) -> None:
        bloom = strategies.index("fingerprints", STRING)
        objects = [
            ObjectMetadata(object_id(n), n, {bloom.id: strategies.fingerprints([f"v{n}"], 100 if n % 3 else 6400)})
            for n in range(12)
        ]
        write(store, dataset_definition(bloom), objects)
        added = [object_metadata(n, minmax=minmax(n, n)) for n in range(12)]
        entry = write(store, dataset_definition(bloom, MINMAX), added)
        both = [
            dataclasses.replace(one, metadata={**one.metadata, **more.metadata})
            for one, more in zip(objects, added, strict=True)
        ]
        assert stored(store) == {one.id: one for one in both}
        for value in ("v3", "v7", "nowhere"):
            assert self.check(store, entry, both, Ask(bloom.id, AnyOf((value,)))) >= 10
        more = [ObjectMetadata(object_id(20), 1, {bloom.id: strategies.fingerprints(["v20"], 645)})]
        entry = write(store, dataset_definition(bloom, MINMAX), more)
        assert self.check(store, entry, [*both, *more], Ask(bloom.id, AnyOf(("v20",)))) >= 10

    def test_deep_and_wide_clauses(self, store: MetadataStore) -> None:
        objects = [object_metadata(n, minmax=minmax(n, n)) for n in range(30)]
        entry = write(store, dataset_definition(MINMAX), objects)
        wide = disjunction(between(n, n) for n in range(0, 3000, 2))
        assert skipped(store, entry, wide) <= {object_id(n).key for n in range(1, 30, 2)}, "too much to ask may keep"
        deep: Clause = between(3, 4)
        for n in range(15):
            deep = Conjunction((Disjunction((deep, between(n, n))), between(0, 20)))
        self.check(store, entry, objects, deep)
