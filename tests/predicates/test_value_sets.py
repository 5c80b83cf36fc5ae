"""What a predicate allows of one column, against each value of a small world: never less than it must be, or more."""

from __future__ import annotations

import itertools
import math
from typing import Any

import pytest

from es_skipping.predicates.text import successor
from es_skipping.predicates.tree import (
    ALWAYS,
    NEVER,
    And,
    Column,
    Comparison,
    IsIn,
    Literal,
    Matches,
    NullTest,
    Opaque,
    Or,
    Predicate,
)
from es_skipping.predicates.types import DataType
from es_skipping.predicates.value_sets import ValueSet, at_least, at_most, common
from es_skipping.testing.rows import truth

INT, DOUBLE, STRING = map(DataType, ("int", "double", "string"))
X, D, S, OTHER = Column(("x",), INT), Column(("d",), DOUBLE), Column(("s",), STRING), Column(("o",), DOUBLE)

NUMBERS = (1.0, 2.0, 3.0)
POINTS: tuple[Any, ...] = (0.5, *NUMBERS, 1.5, 2.5, 3.5, math.nan, None)


def compare(column: Column, comparator: Any, value: Any) -> Comparison:
    return Comparison(comparator, column, Literal(value, column.type))


LEAVES: list[Predicate] = [
    *(compare(D, sign, n) for sign in ("=", "<>", "<", "<=", ">", ">=") for n in NUMBERS),
    NullTest(D),
    NullTest(D, negated=True),
    IsIn(D, (1.0, 3.0)),
    IsIn(D, (1.0, math.nan)),
    IsIn(D, (1.0, 3.0), negated=True),
    IsIn(D, (2.0, math.nan), negated=True),
    ALWAYS,
    NEVER,
]


def has(found: ValueSet, value: Any) -> bool:
    """Whether a set has a value, by its definition."""
    if value is None:
        return found.null
    if value != value:
        return found.nan
    return any(
        (one.low is None or value > one.low or (value == one.low and not one.low_open))
        and (one.high is None or value < one.high or (value == one.high and not one.high_open))
        for one in found.stretches
    )


def members(found: ValueSet) -> list[bool]:
    return [has(found, value) for value in POINTS]


def satisfying(predicate: Predicate) -> list[bool]:
    return [truth(predicate, {D: value}) is True for value in POINTS]


PAIRS = [(kind, pair) for pair in itertools.product(LEAVES, repeat=2) for kind in (And, Or)]


def test_leaves_are_exact() -> None:
    for leaf in LEAVES:
        assert members(at_most(leaf, D)) == members(at_least(leaf, D)) == satisfying(leaf), leaf


def test_connectives_are_exact_too() -> None:
    for kind, pair in PAIRS:
        predicate = kind(pair)
        assert members(at_most(predicate, D)) == members(at_least(predicate, D)) == satisfying(predicate), predicate


def test_sets_are_disjoint_sorted_and_without_needless_gaps() -> None:
    for kind, pair in PAIRS:
        stretches = at_most(kind(pair), D).stretches
        for before, after in itertools.pairwise(stretches):
            assert before.high is not None and after.low is not None
            assert before.high < after.low or (before.high == after.low and before.high_open and after.low_open)


def test_subsets() -> None:
    """By the members at and between the ends, of which these sets have no others."""
    sets = [at_most(leaf, D) for leaf in LEAVES] + [at_most(kind(pair), D) for kind, pair in PAIRS[::7]]
    for one, other in itertools.product(sets, repeat=2):
        expected = all(b for a, b in zip(members(one), members(other), strict=True) if a)
        assert (one <= other) is expected, (one, other)


def test_three_ways_in_one_conjunction() -> None:
    between = And((compare(D, ">", 1.0), compare(D, "<=", 3.0), compare(D, "<>", 2.0)))
    assert members(at_most(between, D)) == satisfying(between)
    outside = Or((compare(D, "<", 1.0), compare(D, "=", 2.0), compare(D, ">=", 3.0)))
    assert members(at_least(outside, D)) == satisfying(outside)


@pytest.mark.parametrize(
    "column", [X, *(Column((name,), DataType(name)) for name in ("date", "timestamp", "timestamp_ntz"))], ids=str
)
def test_whole_numbers_have_neighbours(column: Column) -> None:
    def at(*leaves: Predicate) -> ValueSet:
        return at_most(Or(leaves), column)

    assert len(at(compare(column, "<=", 3), compare(column, ">", 3)).stretches) == 1
    assert len(at(compare(column, "<=", 3), compare(column, ">=", 4)).stretches) == 1
    assert len(at(compare(column, "<=", 3), compare(column, ">=", 5)).stretches) == 2
    assert len(at(compare(column, "<", 3), compare(column, ">", 3)).stretches) == 2
    assert at(compare(column, "<", 4)) == at(compare(column, "<=", 3))
    assert at(compare(column, ">", 4)) == at(compare(column, ">=", 5))
    assert at_most(And((compare(column, ">", 3), compare(column, "<", 6))), column).points is None
    assert at_most(And((compare(column, ">", 3), compare(column, "<", 5))), column).points == (4,)
    assert at_most(And((compare(column, ">", 3), compare(column, "<", 4))), column).points == ()
    assert at(IsIn(column, (7, 3)), NullTest(column)).points is None
    assert at(IsIn(column, (9, 3))).points == (3, 9)


def test_what_says_nothing_of_the_column() -> None:
    everything, nothing = at_most(ALWAYS, D), ValueSet()
    assert members(everything) == [True] * len(POINTS)
    not_null = at_most(NullTest(D, negated=True), D)
    for odd in (
        Opaque("?", DataType("boolean")),
        NullTest(OTHER),
        IsIn(D, (1.0,), has_null=True),
        compare(OTHER, "=", 1.0),
    ):
        assert at_most(odd, D) == everything
        assert at_least(odd, D) == nothing
    for compared in (
        Comparison("<", D, OTHER),
        Comparison("<", OTHER, D),
        compare(D, "<", None),
        compare(D, "<", math.nan),
    ):
        assert at_most(compared, D) == not_null
        assert at_least(compared, D) == nothing
    foreign = Comparison("=", D, Literal(1, INT))
    assert (at_most(foreign, D), at_least(foreign, D)) == (not_null, nothing)
    beside = And((compare(D, "<", 2.0), NullTest(OTHER)))
    assert members(at_most(beside, D)) == satisfying(compare(D, "<", 2.0))
    assert at_least(beside, D) == nothing
    either = Or((compare(D, "<", 2.0), NullTest(OTHER)))
    assert at_most(either, D) == everything
    assert members(at_least(either, D)) == satisfying(compare(D, "<", 2.0))


def test_texts() -> None:
    starts = at_most(Matches("starts", S, "ab"), S)
    assert [(one.low, one.low_open, one.high, one.high_open) for one in starts.stretches] == [
        ("ab", False, successor("ab"), True)
    ]
    assert not starts.nan and not starts.null
    assert at_most(Matches("like", S, "ab%c"), S) == starts
    assert at_most(Matches("like", S, "ab!%%", "!"), S).stretches[0].low == "ab%"
    not_null = at_most(NullTest(S, negated=True), S)
    for loose in (
        Matches("contains", S, "ab"),
        Matches("ends", S, "ab"),
        Matches("like", S, "%ab"),
        Matches("starts", S, ""),
    ):
        assert at_most(loose, S) == not_null
    assert at_most(Matches("starts", S, "ab", negated=True), S) == not_null
    assert at_most(Matches("starts", Column(("t",), STRING), "ab"), S).null
    assert at_least(Matches("starts", S, "ab"), S) == ValueSet()


def test_nan_and_null_are_members_too() -> None:
    plain, nan, null = ValueSet(), ValueSet(nan=True), ValueSet(null=True)
    assert plain <= nan and not nan <= plain and plain <= null and not null <= plain
    assert not nan <= null and not null <= nan
    assert (nan | null) == ValueSet(nan=True, null=True)
    assert (nan & null) == ValueSet() and (nan & nan) == nan and (null & null) == null
    assert nan.points is None and null.points is None and plain.points == ()


def test_an_end_that_is_not_there_is_open() -> None:
    assert ValueSet.of_ranges([(None, False, 3, False)], nan=False) == ValueSet.of_ranges(
        [(None, True, 3, False)], False
    )
    assert ValueSet.of_ranges([(3, False, None, False)], nan=False) == ValueSet.of_ranges(
        [(3, False, None, True)], False
    )


def test_an_end_that_no_one_names_is_open_too() -> None:
    """So that equal sets look alike, however they came about."""
    assert at_most(NullTest(D, negated=True), D) == ValueSet.of_ranges([(None, True, None, True)], nan=True)
    assert at_most(compare(D, "<", 3.0), D) == ValueSet.of_ranges([(None, True, 3.0, True)], nan=False)
    assert at_most(compare(D, ">", 3.0), D) == ValueSet.of_ranges([(3.0, True, None, True)], nan=True)


def test_no_sets_have_everything_in_common() -> None:
    assert common([]).everything
    assert common([ValueSet(nan=True)]) == ValueSet(nan=True)
