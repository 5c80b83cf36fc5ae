"""The contract of every index type: subclass `IndexContract` in a module of tests.

    class TestTrigrams(IndexContract):
        setups = [(Trigrams("c0"), (parse_type("string"),))]

The main test builds random objects, collects their metadata in random batches merged in random order, and asks random
predicates: where the clause is false of an object, no row of it may satisfy the predicate.
"""

from __future__ import annotations

import pickle
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any, ClassVar, Final, TypeAlias

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
from es_skipping.predicates.show import show
from es_skipping.predicates.tree import (
    Call,
    Column,
    Comparison,
    Holds,
    Literal,
    NullTest,
    Operand,
    Predicate,
    map_operands,
    operands_in,
    parts_of,
)
from es_skipping.predicates.types import DataType, parse_type
from es_skipping.testing.rows import Row, arrow_array, cells, predicates, truth

__all__ = ["IndexContract", "Setup"]

Setup: TypeAlias = tuple[Index, tuple[DataType, ...]]
"""An index, and the types of its columns."""


_MANY: Final = 25_000
"""Values of a large object: more than most index types remember of one."""


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

    def _truth_of_leaf(self, predicate: Predicate, row: Row) -> bool | None:
        """As `truth`, also of a leaf that was moved to the columns that are not indexed."""
        back = _renamed(predicate, "other", "c")
        if back == predicate:
            return self.truth(predicate, row)
        moved = {Column((f"c{at}",), column.type): column for at, column in enumerate(_others_of(row))}
        return self.truth(back, {**row, **{column: row[other] for column, other in moved.items()}})

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
        columns, others = self.columns(types), _not_indexed(types)
        asked = (*columns, *columns, *others)
        leaves = None if self.leaves is None else st.one_of(self.leaves, self.leaves, self.leaves.map(_moved))
        rows = data.draw(st.lists(st.tuples(*map(self.cells, types)), min_size=1, max_size=12))
        cuts = sorted(data.draw(st.lists(st.integers(0, len(rows)), max_size=3)))
        batches = [rows[a:b] for a, b in zip([0, *cuts], [*cuts, len(rows)], strict=True)]
        metadata = self.collect(setup, data.draw(st.permutations(batches)))
        beside = data.draw(st.lists(st.tuples(*map(self.cells, types)), min_size=len(rows), max_size=len(rows)))
        known: list[Row] = [
            dict(zip((*columns, *others), (*row, *other), strict=True)) for row, other in zip(rows, beside, strict=True)
        ]
        for _ in range(8):
            predicate = data.draw(predicates(asked, known, leaves))
            if self.verdict(setup, metadata, predicate) is False:
                lost = [row for row in known if truth(predicate, row, self._truth_of_leaf)]
                assert not lost, _of_lost_row(setup[0], metadata, predicate, lost[0])

    def test_a_large_object_loses_no_row(self) -> None:
        """A collector may give up on many values (None), but must not leave some of them out."""
        for setup in self.setups:
            index, types = setup
            if index.kind == "boxes" or len(types) != 1 or (many := _many(types[0])) is None:
                continue
            metadata = self.collect(setup, [[(value,) for value in many[at::3]] for at in range(3)])
            (column,) = self.columns(types)
            for value in many[:: len(many) // 12]:
                asked = Comparison("=", column, Literal(value, types[0]))
                assert self.verdict(setup, metadata, asked) is not False, (
                    f"{index} skips an object with {len(many)} values for {show(asked)}, and it holds {value!r}: "
                    "`Collector.finish` must return all of its values, or None"
                )

    @given(data=st.data())
    @settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck))
    def test_what_only_resembles_a_leaf_is_not_recognised(self, data: st.DataObject) -> None:
        """The call of another version of a user function, or with a constant of another type, is another call."""
        if self.leaves is None:
            return
        leaf = normalise(data.draw(self.leaves))
        for other in _resembling(leaf):
            for index, types in self.setups:
                target = Target("it", self.columns(types), tuple(types))
                labels = [index.label(other, target), *(one(other, index, target) for one in filters_of(type(index)))]
                assert not any(labels), (
                    f"{index} recognises {other}, which only resembles {leaf}: match the version of the function and "
                    "the type of each constant as well"
                )

    def test_calls_that_it_recognises_are_tried(self) -> None:
        for index, _ in self.setups:
            imported = vars(sys.modules[type(index).__module__]).values()
            assert self.leaves is not None or not any(one in (Call, Holds) for one in imported), (
                f"the module of {index.type} uses Call or Holds, but no random filter of this test has a call: give "
                f"{type(self).__name__} some as `leaves`, and say in `truth` which rows satisfy them"
            )

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


def _not_indexed(types: Sequence[DataType]) -> tuple[Column, ...]:
    """Columns beside the indexed ones, of the same types: what is asked of them says nothing of those."""
    return tuple(Column((f"other{at}",), type) for at, type in enumerate(types))


def _others_of(row: Row) -> list[Column]:
    return [column for column in row if column.path[0].startswith("other")]


def _renamed(node: Predicate, old: str, new: str) -> Predicate:
    """The same predicate of the columns whose names begin otherwise."""

    def change(operand: Operand) -> Operand:
        if isinstance(operand, Column) and operand.path[0].startswith(old):
            return Column((new + operand.path[0].removeprefix(old), *operand.path[1:]), operand.type)
        return operand.map_operands(change)

    return map_operands(node, change)


def _moved(leaf: Predicate) -> Predicate:
    return _renamed(leaf, "c", "other")


def _resembling(leaf: Predicate) -> Iterator[Predicate]:
    """Leaves with another version in a call of a user function, without any, or with constants of another type."""
    day = DataType("date")

    def versions(call: Call) -> Iterator[Call]:
        yield replace(call, parameters=())
        yield replace(call, parameters=(("version", "another version"),))
        retyped = (
            replace(one, type=day) if isinstance(one, Literal) and one.type.name in ("int", "bigint") else one
            for one in call.arguments
        )
        yield replace(call, arguments=tuple(retyped))

    for operand in operands_in(leaf):
        for part in parts_of(operand):
            if isinstance(part, Call) and part.name.startswith("udf:") and dict(part.parameters).get("version"):
                for other in versions(part):
                    if other != part:
                        yield map_operands(leaf, lambda one, part=part, other=other: _replaced(one, part, other))  # type: ignore[misc]


def _replaced(operand: Operand, part: Operand, other: Operand) -> Operand:
    return other if operand == part else operand.map_operands(lambda one: _replaced(one, part, other))


def _many(type: DataType) -> list[Any] | None:
    """Many values of a type; None for a type that has few."""
    if type.name == "string":
        return [f"{number:x}-{number % 7}" + "y" * (number % 90) for number in range(_MANY)]
    if type.name in ("int", "bigint", "date", "timestamp", "timestamp_ntz"):
        return [number * 7919 for number in range(_MANY)]
    return [number * 0.5 for number in range(_MANY)] if type.name == "double" else None


def _of_lost_row(index: Index, metadata: Metadata | None, predicate: Predicate, row: Row) -> str:
    values = ", ".join(f"{show(column)} = {value!r}" for column, value in row.items())
    return (
        f"a row is lost: {show(predicate)} is true of the row {values}, but the clause of {index} is false of its "
        f"object with the metadata {metadata}. Columns named other... are not indexed. The filter as a tree: "
        f"{predicate}"
    )


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
