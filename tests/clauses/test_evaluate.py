"""What each question means of each kind of metadata: a table to read, and the laws behind it."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from es_skipping.clauses.clause import KEEP, SKIP, Ask, Conjunction, Disjunction, conjunction, disjunction
from es_skipping.clauses.evaluate import all_hold, answer, any_holds, holds
from es_skipping.clauses.metadata import Boxes, Fingerprints, Intervals, Metadata, Values
from es_skipping.clauses.questions import (
    AnyOf,
    HasNaN,
    HasNotNull,
    HasNull,
    Meets,
    OtherThan,
    Overlaps,
    Question,
    Range,
    TextMatch,
)
from tests.stores.strategies import fingerprints

INF = math.inf
ONE_TO_FIVE = Intervals(((1, 5),), nulls=0)
GAPPED = Intervals(((1, 2), (8, 9)), nulls=3)
ONLY_FIVE = Intervals(((5, 5),), nulls=0)
NO_VALUES = Intervals((), nulls=4)
UNKNOWN_VALUES = Intervals(None, nulls=0)
UNKNOWN_COUNTS = Intervals(((1.0, 5.0),), nulls=None, nans=None)
ALL_NAN = Intervals((), nulls=0, nans=2)
FIVE_AND_SEVEN = Values(frozenset({5, 7}), nulls=0)
NOTHING = Values(frozenset(), nulls=1)
WORDS = Values(frozenset({"apple", "pear"}), nulls=None)
EMOJI = Values(frozenset({"\U0001f600x"}), nulls=0)
FEW_PRINTS = fingerprints(["a", "b"], 6400, 0, 1)
NO_PRINTS = Fingerprints(6400, 0, b"", None, None)
UNIT = Boxes((((0.0, 1.0), (0.0, 1.0)), ((5.0, INF), (5.0, 6.0))))

TABLE: list[tuple[Metadata | None, Question, bool | None]] = [
    (None, AnyOf((5,)), None),
    # intervals: a value may be held where an interval covers it
    (ONE_TO_FIVE, AnyOf((5,)), True),
    (ONE_TO_FIVE, AnyOf((6, 7)), False),
    (ONE_TO_FIVE, AnyOf(()), False),
    (GAPPED, AnyOf((5,)), False),
    (GAPPED, AnyOf((5, 8)), True),
    (NO_VALUES, AnyOf((5,)), False),
    (UNKNOWN_VALUES, AnyOf((5,)), None),
    (ONE_TO_FIVE, OtherThan((5,)), True),
    (ONE_TO_FIVE, OtherThan((1,)), True),
    (ONE_TO_FIVE, OtherThan((1, 5)), True),
    (ONLY_FIVE, OtherThan((5,)), False),
    (ONLY_FIVE, OtherThan((4, 5)), False),
    (ONLY_FIVE, OtherThan((4,)), True),
    (Intervals(((4, 4), (5, 5)), nulls=0), OtherThan((4, 5)), False),
    (NO_VALUES, OtherThan((5,)), False),
    (UNKNOWN_VALUES, OtherThan((5,)), None),
    (ONE_TO_FIVE, Overlaps((Range(5, None),)), True),
    (ONE_TO_FIVE, Overlaps((Range(5, None, low_open=True),)), False),
    (ONE_TO_FIVE, Overlaps((Range(None, 1),)), True),
    (ONE_TO_FIVE, Overlaps((Range(None, 1, high_open=True),)), False),
    (GAPPED, Overlaps((Range(3, 7),)), False),
    (GAPPED, Overlaps((Range(3, 7), Range(9, None))), True),
    (GAPPED, Overlaps(()), False),
    (ONE_TO_FIVE, Overlaps((Range(),)), True),
    (NO_VALUES, Overlaps((Range(),)), False),
    (ONE_TO_FIVE, Overlaps((Range(3, 2),)), False),
    (ONE_TO_FIVE, Overlaps((Range(3, 3, low_open=True),)), False),
    (UNKNOWN_VALUES, Overlaps((Range(),)), None),
    (Intervals(((-INF, 1.0),), nulls=0), Overlaps((Range(None, -1e300),)), True),
    (Intervals(((0.0, 0.0),), nulls=0), AnyOf((-0.0,)), True),
    (Intervals(((Decimal("0.1"), Decimal("0.1")),), nulls=0), AnyOf((Decimal("0.10"),)), True),
    (Intervals((("\uff01", "\U0001f600"),), nulls=0), AnyOf(("\uff02",)), True),
    # counts
    (ONE_TO_FIVE, HasNull(), False),
    (GAPPED, HasNull(), True),
    (UNKNOWN_COUNTS, HasNull(), None),
    (ONE_TO_FIVE, HasNaN(), False),
    (ALL_NAN, HasNaN(), True),
    (UNKNOWN_COUNTS, HasNaN(), None),
    (UNKNOWN_COUNTS, HasNotNull(), True),
    (NO_VALUES, HasNotNull(), False),
    (ALL_NAN, HasNotNull(), True),
    (UNKNOWN_VALUES, HasNotNull(), None),
    (Intervals(None, nulls=0, nans=1), HasNotNull(), True),
    (Intervals((), nulls=0, nans=None), HasNotNull(), None),
    # values
    (FIVE_AND_SEVEN, AnyOf((6, 7)), True),
    (FIVE_AND_SEVEN, AnyOf((6,)), False),
    (FIVE_AND_SEVEN, OtherThan((5,)), True),
    (FIVE_AND_SEVEN, OtherThan((5, 7, 9)), False),
    (FIVE_AND_SEVEN, Overlaps((Range(6, 6),)), False),
    (FIVE_AND_SEVEN, Overlaps((Range(6, 6), Range(7, None))), True),
    (FIVE_AND_SEVEN, Overlaps((Range(7, None, low_open=True),)), False),
    (NOTHING, OtherThan(()), False),
    (NOTHING, HasNotNull(), False),
    (NOTHING, HasNull(), True),
    (WORDS, HasNull(), None),
    (WORDS, HasNotNull(), True),
    (Values(frozenset(), nulls=0, nans=1), HasNotNull(), True),
    (WORDS, TextMatch("starts", "pe"), True),
    (WORDS, TextMatch("starts", "x"), False),
    (WORDS, TextMatch("contains", "p", negated=True), False),
    (WORDS, TextMatch("starts", "a", negated=True), True),
    (WORDS, TextMatch("like", "a_ple"), True),
    (WORDS, TextMatch("like", "wrong\\"), None),
    (WORDS, TextMatch("like", "wrong\\", negated=True), None),
    (EMOJI, TextMatch("like", "\U0001f600_"), None),
    (NOTHING, TextMatch("like", "a"), False),
    (Values(frozenset({"ab", "a\n"}), nulls=0), TextMatch("rlike", "b$"), True),
    (Values(frozenset({"ac", "a\n"}), nulls=0), TextMatch("rlike", "b$"), None),
    # boxes
    (UNIT, Meets((Range(1.0, 2.0), Range(0.5, 0.5))), True),
    (UNIT, Meets((Range(1.5, 2.0), Range(0.5, 0.5))), False),
    (UNIT, Meets((Range(1.5, None), Range(0.5, None))), True),
    (UNIT, Meets((Range(None, None), Range(6.5, None))), False),
    (UNIT, Meets((Range(0.0, 1.0),)), None),
    (Boxes(()), Meets((Range(), Range())), False),
    (UNIT, HasNotNull(), True),
    (Boxes(()), HasNotNull(), False),
    # what a kind does not answer, it does not know
    (ONE_TO_FIVE, TextMatch("starts", "a"), None),
    (ONE_TO_FIVE, Meets(()), None),
    (FIVE_AND_SEVEN, Meets(()), None),
    (FIVE_AND_SEVEN, TextMatch("starts", "a"), None),
    (UNIT, AnyOf((0.5,)), None),
    (UNIT, HasNull(), None),
    # values of another type, or NaN, are compared with nothing
    (ONE_TO_FIVE, AnyOf((True,)), None),
    (ONE_TO_FIVE, Overlaps((Range("a"),)), None),
    (FIVE_AND_SEVEN, AnyOf((5.0,)), None),
    (FIVE_AND_SEVEN, OtherThan((Decimal(5),)), None),
    (Values(frozenset({1.5}), nulls=0), AnyOf((math.nan,)), None),
    (UNKNOWN_COUNTS, Overlaps((Range(math.nan),)), None),
    (ONE_TO_FIVE, OtherThan((True,)), None),
    (ONE_TO_FIVE, OtherThan((1, "a")), None),
    (NO_VALUES, OtherThan((1, "a")), None),
    (Intervals(((1, 1),), nulls=0), OtherThan((1.0,)), None),
    (Intervals((("a", "a"),), nulls=0), OtherThan((1,)), None),
    (NO_VALUES, AnyOf((1, "a")), None),
    (Intervals(((1, 1),), nulls=0), AnyOf((1.0,)), None),
    (NO_VALUES, Overlaps((Range(1, "a"),)), None),
    (NO_VALUES, Overlaps((Range(1, None), Range(None, 2.5))), None),
    (Intervals(((math.nan, math.nan),), nulls=0), Overlaps((Range(),)), None),
    (NOTHING, AnyOf((5, "a")), None),
    (NOTHING, OtherThan((5, "a")), None),
    (NOTHING, Overlaps((Range(5, "a"),)), None),
    (FIVE_AND_SEVEN, Overlaps((Range("a"),)), None),
    (Values(frozenset({math.nan}), nulls=0), OtherThan((1.0,)), None),
    (UNIT, Meets((Range(0, 1), Range(0, 1))), None),
    (UNIT, Meets((Range("a"), Range())), None),
    (UNIT, Meets((Range(), Range(), Range())), None),
    (UNIT, OtherThan((0.5,)), None),
    # fingerprints: whatever is not among the values of a question may be held
    (FEW_PRINTS, HasNull(), False),
    (FEW_PRINTS, HasNaN(), True),
    (FEW_PRINTS, HasNotNull(), True),
    (FEW_PRINTS, AnyOf(("a",)), True),
    (FEW_PRINTS, AnyOf(("nowhere", "a")), True),
    (FEW_PRINTS, AnyOf(("nowhere",)), False),
    (FEW_PRINTS, AnyOf(()), False),
    (FEW_PRINTS, AnyOf(("\ud800",)), None),
    (FEW_PRINTS, OtherThan(("a",)), None),
    (FEW_PRINTS, Overlaps((Range("x"),)), None),
    (FEW_PRINTS, TextMatch("starts", "x"), None),
    (NO_PRINTS, AnyOf(("a",)), False),
    (NO_PRINTS, OtherThan(("a",)), False),
    (NO_PRINTS, HasNotNull(), None),
    (NO_PRINTS, HasNull(), None),
    (Fingerprints(6400, 0, b"", 0, 0), HasNotNull(), False),
    (Fingerprints(6400, 0, b"", 0, 1), HasNotNull(), True),
]


@pytest.mark.parametrize(("metadata", "question", "expected"), TABLE)
def test_answers(metadata: Metadata | None, question: Question, expected: bool | None) -> None:
    assert answer(question, metadata) is expected


KLEENE = st.sampled_from([True, False, None])


@given(st.lists(KLEENE))
def test_kleene(truths: list[bool | None]) -> None:
    assert all_hold(truths) is (False if False in truths else None if None in truths else True)
    negated = [None if truth is None else not truth for truth in truths]
    contrary = all_hold(negated)
    assert any_holds(truths) is (None if contrary is None else not contrary)


QUESTIONS: dict[str, Question] = {"yes": HasNull(), "no": HasNaN(), "unknown": HasNotNull()}
METADATA: dict[str, Metadata] = {"one": Intervals(None, nulls=1, nans=0)}
LEAVES = st.sampled_from(
    [KEEP, SKIP, *(Ask("one", question) for question in QUESTIONS.values()), Ask("two", HasNull())]
)
CLAUSES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda parts: Conjunction(tuple(parts)))
        | st.lists(inner, max_size=3).map(lambda parts: Disjunction(tuple(parts)))
    ),
)


@given(CLAUSES, CLAUSES)
def test_clauses_combine_and_simplify_soundly(first: Any, second: Any) -> None:
    one, two = holds(first, METADATA), holds(second, METADATA)
    assert holds(Conjunction((first, second)), METADATA) is all_hold([one, two])
    assert holds(Disjunction((first, second)), METADATA) is any_holds([one, two])
    assert holds(conjunction([first, second]), METADATA) is all_hold([one, two])
    assert holds(disjunction([first, second]), METADATA) is any_holds([one, two])


def test_an_index_without_metadata_is_unknown() -> None:
    assert holds(Ask("minmax(x)", AnyOf((5,))), {}) is None
    assert holds(Conjunction((Ask("minmax(x)", AnyOf((5,))), SKIP)), {}) is False
    assert holds(Disjunction((Ask("minmax(x)", AnyOf((5,))), SKIP)), {}) is None


ROWS = st.lists(st.integers(-5, 5), min_size=1, max_size=6)
BOUNDS = st.none() | st.integers(-6, 6)
RANGES = st.builds(Range, BOUNDS, BOUNDS, st.booleans(), st.booleans())


@given(ROWS, st.lists(RANGES, max_size=3), st.lists(st.integers(-6, 6), max_size=3))
def test_answers_of_exact_metadata_are_those_of_the_rows(
    rows: list[int], ranges: list[Range], wanted: list[int]
) -> None:
    def inside(row: int, one: Range) -> bool:
        above = one.low is None or (row > one.low if one.low_open else row >= one.low)  # type: ignore[operator]
        below = one.high is None or (row < one.high if one.high_open else row <= one.high)  # type: ignore[operator]
        return above and below

    exact = Values(frozenset(rows), nulls=0)
    hull = Intervals(((min(rows), max(rows)),), nulls=0)
    points = Intervals(tuple((row, row) for row in sorted(set(rows))), nulls=0)
    truths: dict[Question, bool] = {
        AnyOf(tuple(wanted)): any(row in wanted for row in rows),
        OtherThan(tuple(wanted)): any(row not in wanted for row in rows),
        Overlaps(tuple(ranges)): any(inside(row, one) for row in rows for one in ranges),
    }
    for question, truth in truths.items():
        assert answer(question, exact) is truth
        assert answer(question, points) is truth
        assert answer(question, hull) is True or not truth
