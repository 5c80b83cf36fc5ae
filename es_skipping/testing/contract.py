"""The contract of every index type: subclass `IndexContract` in a module of tests.

    class TestTrigrams(IndexContract):
        setups = [(Trigrams("c0"), (parse_type("string"),))]

The main test builds random objects, collects their metadata in random batches merged in random order, and asks random
predicates: where the clause is false of an object, no row of it may satisfy the predicate.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from functools import reduce
from typing import Any, ClassVar, TypeAlias

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from es_skipping.catalog import IndexDefinition
from es_skipping.clauses.check import why_no_metadata
from es_skipping.clauses.evaluate import holds
from es_skipping.clauses.merge import Labeller, merge_traced
from es_skipping.clauses.metadata import Metadata
from es_skipping.errors import ColumnError
from es_skipping.indexes.base import Collector, Index, Target
from es_skipping.indexes.filters import filters_of
from es_skipping.indexes.registry import from_definition, index_class, index_id
from es_skipping.predicates.normal import normalise
from es_skipping.predicates.tree import Column, NullTest, Predicate
from es_skipping.predicates.types import DataType, parse_type
from es_skipping.testing.rows import Row, arrow_array, cells, predicates, truth

__all__ = ["IndexContract", "Setup"]

Setup: TypeAlias = tuple[Index, tuple[DataType, ...]]
"""An index, and the types of its columns."""


class IndexContract:
    """The tests. The name of a subclass must begin with ``Test``, or pytest does not find it.

    Attributes
    ----------
    setups
        Indexes to test, each with the types of its columns. The columns are named ``c0``, ``c1``, ...
    refused
        Column types that `Index.check` must refuse, besides those without an order.
    leaves
        Further leaves, such as calls of a function that the index understands. They are mixed with comparisons,
        and `truth` must say which rows satisfy them.
    """

    setups: ClassVar[Sequence[Setup]]
    refused: ClassVar[Sequence[tuple[str, ...]]] = ()
    leaves: ClassVar[st.SearchStrategy[Predicate] | None] = None

    def truth(self, predicate: Predicate, row: Row) -> bool | None:
        """Whether a row satisfies one of ``leaves``; None for null. To prove anything, write it apart from `label`."""
        raise NotImplementedError(f"{type(self).__name__}.truth must say when {predicate} is true")

    def cells(self, type: DataType) -> st.SearchStrategy[Any]:
        """Values of a column, with nulls. Override it if random values hardly ever meet the index's cases."""
        return cells(type)

    def select(self, index: Index, columns: Sequence[list[Any]], types: Sequence[DataType]) -> list[pa.Array]:
        """What Spark hands to the collector. Override it if `Index.collected` is more than the columns."""
        return [arrow_array(column, type) for column, type in zip(columns, types, strict=True)]

    # --- helpers ------------------------------------------------------------------------------------------------

    def columns(self, types: Sequence[DataType]) -> tuple[Column, ...]:
        return tuple(Column((f"c{at}",), type) for at, type in enumerate(types))

    def collect(self, setup: Setup, batches: Sequence[Sequence[tuple[Any, ...]]]) -> Metadata | None:
        """The metadata of one object that is read in these batches."""
        index, types = setup
        collector: Collector[Any] = _pickled(index.collector(types))
        partials = []
        for rows in batches:
            arrays = self.select(index, [[row[at] for row in rows] for at in range(len(types))], types)
            partials.append(_pickled(collector.partial(arrays)))
        metadata: Metadata | None = collector.finish(reduce(collector.merge, partials))
        assert metadata is None or why_no_metadata(metadata, index.kind, index.value_type(types)) is None
        return metadata

    def verdict(self, setup: Setup, metadata: Metadata | None, predicate: Predicate) -> bool | None:
        """False where the object may be skipped."""
        index, types = setup
        target = Target("it", self.columns(types), tuple(types))
        trace = merge_traced(normalise(predicate), [Labeller(index, target, filters_of(type(index)))])
        assert not list(trace.failures())
        return holds(trace.clause, {} if metadata is None else {"it": metadata})

    # --- the contract -------------------------------------------------------------------------------------------

    @given(data=st.data())
    @settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
    def test_no_row_is_ever_lost(self, data: st.DataObject) -> None:
        setup = data.draw(st.sampled_from(list(self.setups)))
        _, types = setup
        columns = self.columns(types)
        rows = data.draw(st.lists(st.tuples(*map(self.cells, types)), min_size=1, max_size=12))
        cuts = sorted(data.draw(st.lists(st.integers(0, len(rows)), max_size=3)))
        batches = [rows[a:b] for a, b in zip([0, *cuts], [*cuts, len(rows)], strict=True)]
        metadata = self.collect(setup, data.draw(st.permutations(batches)))
        known: list[Row] = [dict(zip(columns, row, strict=True)) for row in rows]
        for _ in range(8):
            predicate = data.draw(predicates(columns, known, self.leaves))
            if self.verdict(setup, metadata, predicate) is False:
                lost = [row for row in known if truth(predicate, row, self.truth)]
                assert not lost, (predicate, metadata)

    @given(data=st.data())
    @settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
    def test_repeats_matter_or_it_says_so(self, data: st.DataObject) -> None:
        index, types = data.draw(st.sampled_from(list(self.setups)))
        collector: Collector[Any] = index.collector(types)
        if collector.repeats_matter:
            return
        rows = data.draw(st.lists(st.tuples(*map(self.cells, types)), min_size=1, max_size=12))
        columns = self.select(index, [[row[at] for row in rows] for at in range(len(types))], types)
        once = [_once(column) for column in columns]
        assert collector.finish(collector.partial(once)) == collector.finish(collector.partial(columns))

    def test_an_object_without_values_is_skipped_by_a_test_for_one(self) -> None:
        for setup in self.setups:
            index, types = setup
            if index.kind == "boxes":
                continue
            nothing = self.collect(setup, [[(None,) * len(types)] * 3, []])
            (column,) = self.columns(types)
            assert self.verdict(setup, nothing, NullTest(column, negated=True)) is False
            assert self.verdict(setup, nothing, NullTest(column)) is True

    def test_it_is_made_again_from_its_definition(self) -> None:
        for index, types in self.setups:
            definition = IndexDefinition(
                id=index_id(index, [str(column) for column in index.columns]),
                type=index.type,
                columns=tuple(str(column) for column in index.columns),
                kind=index.kind,
                value_type=index.value_type(types),
                parameters=index.parameters,
            )
            assert from_definition(definition) == index
            assert index_class(index.type) is type(index)

    def test_columns_it_cannot_carry_are_refused(self) -> None:
        for index, types in self.setups:
            index.check(types)
        index, types = self.setups[0]
        unsupported = [
            "string collate UTF8_LCASE",
            "array<int>",
            "variant",
            "interval day to second",
            "void",
        ]
        for refused in [(text,) * len(types) for text in unsupported] + list(self.refused):
            with pytest.raises(ColumnError, match=index.type):
                index.check([parse_type(text) for text in refused])


def _pickled(thing: Any) -> Any:
    """As it arrives in another process."""
    return pickle.loads(pickle.dumps(thing))  # noqa: S301 - written in the line itself


def _once(column: pa.Array) -> pa.Array:
    """A column's values, each once and in another order, with as many nulls and NaNs as it has."""
    import pyarrow as pa
    import pyarrow.compute as pc

    values = column.drop_null()
    nans = values.slice(0, 0)
    if pa.types.is_floating(column.type):
        nans = values.filter(pc.is_nan(values))
        values = values.filter(pc.invert(pc.is_nan(values)))
    distinct = pc.unique(values)
    return pa.concat_arrays(
        [
            pa.nulls(column.null_count, column.type),
            nans,
            distinct.take(pa.array(range(len(distinct))[::-1], pa.int64())),
        ]
    )
