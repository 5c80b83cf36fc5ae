from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import pyarrow as pa
import pytest

from es_skipping.clauses.metadata import Values
from es_skipping.errors import IndexDefinitionError
from es_skipping.indexes.valuelist import LIMIT_BYTES, ValueList
from es_skipping.predicates.tree import (
    Column,
    Comparison,
    IsIn,
    Literal,
    Matches,
    Predicate,
)
from es_skipping.predicates.types import parse_type
from es_skipping.testing import IndexContract, Setup
from es_skipping.testing.values import TYPES
from tests.indexes.test_minmax import not_utf8

STRING, INT, DOUBLE = map(parse_type, ("string", "int", "double"))
CITY, N, D = Column(("c0",), STRING), Column(("c0",), INT), Column(("c0",), DOUBLE)


class TestContract(IndexContract):
    setups: ClassVar[Sequence[Setup]] = [
        *((ValueList("c0"), (type,)) for type in TYPES),
        *((ValueList("c0", limit=2), (type,)) for type in TYPES),
    ]


def collect(index: ValueList, type: Any, *batches: list[Any]) -> Any:
    return TestContract().collect((index, (type,)), [[(value,) for value in batch] for batch in batches])


def city(test: Any, pattern: str, *, negated: bool = False) -> Predicate:
    return Matches(test, CITY, pattern, negated=negated)


@pytest.mark.parametrize(
    ("values", "predicate", "kept"),
    [
        (["Rome", "Oslo"], Comparison("=", CITY, Literal("Paris", STRING)), False),
        (["Rome", "Oslo"], Comparison("<>", CITY, Literal("Rome", STRING)), True),
        (["Rome", None], Comparison("<>", CITY, Literal("Rome", STRING)), False),
        (["Rome", "Oslo"], IsIn(CITY, ("Rome", "Oslo", "Bern"), negated=True), False),
        (["Rome", "Oslo"], IsIn(CITY, ("Rome", "Bern"), negated=True), True),
        (["Rome", "Oslo"], city("starts", "Ro"), True),
        (["Rome", "Oslo"], city("starts", "P"), False),
        (["Rome", "Oslo"], city("ends", "lo"), True),
        (["Rome", "Oslo"], city("ends", "ris"), False),
        (["Rome", "Oslo"], city("contains", "sl"), True),
        (["Rome", "Oslo"], city("contains", "xx"), False),
        (["Rome", "Oslo"], city("like", "R_m%"), True),
        (["Rome", "Oslo"], city("like", "R_n%"), False),
        (["Rome", "Remus"], city("like", "R%", negated=True), False),
        (["Rome", "Oslo"], city("like", "R%", negated=True), True),
        (["Rome", "Oslo"], city("contains", "o", negated=True), False),
        (["Rome", "Oslo"], city("rlike", "^[A-M]"), False),
        (
            ["Rome", "Oslo"],
            city("rlike", "(?<=P)a"),
            True,
        ),  # not a pattern that Python and Java are known to share
        (
            ["Rome", "Oslo"],
            city("rlike", "^P(?<=P)a"),
            False,
        ),  # but its beginning is plain
        ([1, 100], Comparison("<", N, Literal(1, INT)), False),
        ([1, 100], IsIn(N, (50, 60)), False),
        ([-0.0], Comparison("=", D, Literal(0.0, DOUBLE)), True),
        ([1.0, math.nan], Comparison(">", D, Literal(5.0, DOUBLE)), True),
        ([1.0, 2.0], Comparison(">", D, Literal(5.0, DOUBLE)), False),
        ([1.0, 2.0], Comparison("=", D, Literal(math.nan, DOUBLE)), False),
    ],
)
def test_what_is_kept(values: list[Any], predicate: Predicate, kept: bool) -> None:
    type = (predicate.left if isinstance(predicate, Comparison) else predicate.operand).type  # type: ignore[union-attr]
    metadata = collect(ValueList("c0"), type, values)
    assert (TestContract().verdict((ValueList("c0"), (type,)), metadata, predicate) is not False) is kept


def test_what_is_remembered() -> None:
    assert collect(ValueList("x"), STRING, ["b", None, "a"], ["a"]) == Values(frozenset({"a", "b"}), 1)
    zeros = collect(ValueList("x"), DOUBLE, [-0.0, math.nan], [0.0, None])
    assert zeros == Values(frozenset({0.0}), 1, 1)
    assert math.copysign(1, next(iter(zeros.values))) == 1
    assert collect(ValueList("x"), INT, []) == Values(frozenset(), 0)


def test_an_object_over_the_limit_is_unknown() -> None:
    index = ValueList("x", limit=3)
    assert collect(index, INT, [1, 2, 3], [3, 2, 1, None]) == Values(frozenset({1, 2, 3}), 1)
    assert collect(index, INT, [1, 2], [3, 4]) is None
    assert collect(index, INT, [1, 2, 3, 4]) is None
    assert collect(index, INT, [1, 2, 3, 4], [1], [None]) is None, "merging does not make it known"


def test_an_object_over_the_byte_bound_is_unknown() -> None:
    half = "x" * (LIMIT_BYTES // 2)
    assert collect(ValueList("x"), STRING, [half]) is not None
    assert collect(ValueList("x"), STRING, [half + "a"], [half + "b"], [half + "c"]) is None


@pytest.mark.parametrize("limit", [10, 1000])
def test_partials_stay_small(limit: int) -> None:
    collector = ValueList("x", limit=limit).collector([INT])
    partial = collector.partial([pa.array([0], pa.int32())])
    for start in range(0, 50_000, limit // 2):
        batch = pa.array([v % limit for v in range(start, start + limit // 2)], pa.int32())
        partial = collector.merge(partial, collector.partial([batch]))
        assert sum(map(len, partial.chunks)) <= 3 * limit
    metadata = collector.finish(partial)
    assert metadata == Values(frozenset(range(limit)), 0)


def test_bytes_that_are_no_utf8_are_unknown() -> None:
    collector = ValueList("x").collector([STRING])
    assert collector.finish(collector.partial([not_utf8(b"a", b"b\xff", b"c")])) is None


@pytest.mark.parametrize("limit", [0, -1, 2.5, "7", True, None])
def test_the_limit_is_a_positive_number(limit: Any) -> None:
    with pytest.raises(IndexDefinitionError, match=r"^ValueList: limit is "):
        ValueList("x", limit=limit)


@pytest.mark.parametrize("column", ["", None, 5])
def test_a_list_without_a_column_is_none(column: Any) -> None:
    with pytest.raises(IndexDefinitionError, match=r"^ValueList: column is "):
        ValueList(column)


def test_a_collector_says_of_how_many_values_it_says_nothing() -> None:
    collector = ValueList("c", limit=3).collector((parse_type("int"),))
    assert collector.distinct_limit == 3
    assert collector.finish(collector.partial([pa.array([1, 2, 3], pa.int32())])) is not None
    assert collector.finish(collector.partial([pa.array([1, 2, 3, 4], pa.int32())])) is None
