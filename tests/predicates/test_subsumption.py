"""One predicate subsumes another only if it is true of all its rows."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from es_skipping.predicates import subsumption
from es_skipping.predicates.normal import normalise
from es_skipping.predicates.subsumption import is_certain, subsumes
from es_skipping.predicates.tree import (
    ALWAYS,
    NEVER,
    And,
    Call,
    Column,
    Comparison,
    Holds,
    IsIn,
    Literal,
    Matches,
    Not,
    NullTest,
    Opaque,
    Or,
    Predicate,
    operands_of,
)
from es_skipping.predicates.types import DataType, parse_type
from tests.examples import examples
from tests.predicates.rows import COLUMNS, EDGES, Row, predicates, rows, truth, values

X = Column(("x",), DataType("int"))
Y = Column(("y",), DataType("int"))
F = Column(("f",), DataType("double"))
S = Column(("s",), DataType("string"))
D = Column(("d",), parse_type("decimal(5,2)"))


def compare(comparator: Any, column: Column, value: Any) -> Predicate:
    return normalise(Comparison(comparator, column, Literal(value, column.type)))


def text(test: Any, pattern: str, negated: bool = False) -> Predicate:
    return normalise(Matches(test, S, pattern, negated=negated))


def listed(column: Column, *items: Any, negated: bool = False) -> Predicate:
    return normalise(IsIn(column, items, negated))


def both(*parts: Predicate) -> Predicate:
    return normalise(And(parts))


def either(*parts: Predicate) -> Predicate:
    return normalise(Or(parts))


# --- the law ------------------------------------------------------------------------------------------------------


@examples(150)
@given(predicates(), predicates(), st.lists(rows(), min_size=1, max_size=6))
def test_no_row_of_the_stricter_is_missing_in_the_looser(first: Predicate, second: Predicate, some: list[Row]) -> None:
    check(first, second, some)
    check(second, first, some)


@st.composite
def _close(draw: st.DrawFn) -> tuple[Predicate, Predicate, list[Row]]:
    """Two predicates over one column, made of a few values that meet: where subsumption is often true."""
    name = draw(st.sampled_from(sorted(EDGES)))
    column = COLUMNS[name]
    pool = draw(st.lists(values(name), min_size=1, max_size=4))
    value = st.sampled_from(pool)
    literal = value.map(lambda v: Literal(v, column.type))
    leaves: st.SearchStrategy[Predicate] = (
        st.builds(Comparison, st.sampled_from(("=", "<>", "<", "<=", ">", ">=", "<=>")), st.just(column), literal)
        | st.builds(IsIn, st.just(column), st.lists(value, min_size=1).map(tuple), st.booleans())
        | st.builds(NullTest, st.just(column), st.booleans())
    )
    if name == "string":
        tests = st.sampled_from(("starts", "ends", "contains", "like"))
        leaves |= st.builds(Matches, tests, st.just(column), value, negated=st.booleans())
    trees = st.recursive(
        leaves,
        lambda inner: (
            st.builds(And, st.lists(inner, min_size=1, max_size=3).map(tuple))
            | st.builds(Or, st.lists(inner, min_size=1, max_size=3).map(tuple))
        ),
        max_leaves=5,
    )
    # All values of the pool, their neighbours, null and NaN: every place where two such predicates can differ.
    cells = [None, *pool, *EDGES[name], *draw(st.lists(values(name), max_size=6))]
    if name in ("tinyint", "int", "bigint", "date"):
        cells += [v + step for v in pool for step in (-1, 1)]
    empty = {f"c_{other}": None for other in EDGES}
    return draw(trees), draw(trees), [{**empty, f"c_{name}": cell} for cell in cells]


@examples(400)
@given(_close())
def test_of_one_column_no_row_is_missing_either(case: tuple[Predicate, Predicate, list[Row]]) -> None:
    first, second, some = case
    check(first, second, some)
    check(first, And((first, second)), some)
    assert subsumes(normalise(first), normalise(And((first, second))))
    assert subsumes(normalise(Or((first, second))), normalise(second))


def check(looser: Predicate, stricter: Predicate, some: list[Row]) -> None:
    if subsumes(normalise(looser), normalise(stricter)):
        lost = [row for row in some if truth(stricter, row) and not truth(looser, row)]
        assert not lost, (looser, stricter, lost)


# --- what must be seen --------------------------------------------------------------------------------------------

SEEN: list[tuple[Predicate, Predicate]] = [
    (compare(">", X, 21), compare(">", X, 32)),
    (compare(">", X, 4), compare(">=", X, 5)),
    (compare(">=", X, 5), compare(">", X, 4)),
    (compare("<", X, 5), compare("=", X, 4)),
    (compare("<=", D, Decimal("0.07")), compare("<", D, Decimal("0.07"))),
    (listed(X, 1, 2, 3), compare("=", X, 2)),
    (listed(X, 1, 2, 3), listed(X, 1, 3)),
    (listed(X, 1, 2, 3), both(compare(">", X, 0), compare("<", X, 4))),
    (compare("<>", X, 9), listed(X, 1, 2)),
    (listed(X, 1, negated=True), listed(X, 1, 2, negated=True)),
    (either(compare("<", X, 3), compare(">", X, 7)), either(compare("=", X, 1), compare("=", X, 9))),
    (either(compare("<", X, 3), compare(">", X, 7)), compare("=", X, 9)),
    (both(compare(">=", X, 1), compare("<=", X, 9)), both(compare(">=", X, 2), compare("<=", X, 8))),
    (compare(">", X, 1), both(compare(">", X, 5), compare("=", Y, 3))),
    (NullTest(X, negated=True), compare("<>", X, 3)),
    (NullTest(X, negated=True), Comparison("<", X, Y)),
    (NullTest(S, negated=True), text("like", "a_b%c")),
    (compare(">", F, 1.0), compare("=", F, math.nan)),
    (text("like", "a%"), text("like", "ab%")),
    (text("contains", "b"), text("like", "ab%")),
    (text("like", "%b%"), text("like", "%ab")),
    (text("like", "a_c%"), compare("=", S, "abcd")),
    (text("like", "a%", negated=True), listed(S, "b", "c")),
    (text("like", "ab%", negated=True), text("like", "a%", negated=True)),
    (compare(">=", S, "a"), text("like", "ab%x")),
    (Comparison("<=", X, Y), Comparison(">", Y, X)),
    (Comparison("<>", X, Y), Comparison("<", X, Y)),
    (Or((compare("<", X, 5), compare(">", X, 6))), IsIn(X, (5, 6), negated=True)),
    (ALWAYS, compare("=", X, 1)),
    (compare("=", X, 1), NEVER),
    (Holds(Call("f", (X,), DataType("boolean"))), Holds(Call("f", (X,), DataType("boolean")))),
]


@pytest.mark.parametrize(("looser", "stricter"), SEEN, ids=str)
def test_it_is_seen(looser: Predicate, stricter: Predicate) -> None:
    assert subsumes(looser, stricter)
    assert looser == stricter or not subsumes(stricter, looser) or at_most_the_same(looser, stricter)


def at_most_the_same(first: Predicate, second: Predicate) -> bool:
    """Two ways to write one set: ``x > 4`` and ``x >= 5``, or a list and a stretch of whole numbers."""
    return operands_of(first) == operands_of(second) == (X,)


NOT_SEEN: list[tuple[Predicate, Predicate]] = [
    (compare(">", X, 32), compare(">", X, 21)),
    (compare("<", F, 1.0), compare("<>", F, 5.0)),
    (compare("<>", F, 1.0), NullTest(F, negated=True)),
    (compare("<=", F, math.inf), NullTest(F, negated=True)),  # NaN is above it
    (compare("<>", X, 1), NullTest(X)),
    (text("like", "a%"), text("like", "%a")),
    (text("like", "a%"), both(compare(">=", S, "a"), compare("<", S, "b"))),  # of strings that are no UTF-8
    (compare("=", X, 1), compare("=", Y, 1)),
    (Opaque("?"), Opaque("?")),
    (Holds(Call("udf:f", (X,), DataType("boolean"))), Holds(Call("udf:f", (X,), DataType("boolean")))),
    (compare("=", X, 1), ALWAYS),
    (NEVER, compare("=", X, 1)),
]


@pytest.mark.parametrize(("looser", "stricter"), NOT_SEEN, ids=str)
def test_it_is_not(looser: Predicate, stricter: Predicate) -> None:
    assert not subsumes(looser, stricter)


A, C = Column(("a",), DataType("int")), Column(("c",), DataType("int"))
SIGNS = ("=", "<>", "<", "<=", ">", ">=")


@pytest.mark.parametrize("wide", SIGNS)
@pytest.mark.parametrize("narrow", SIGNS)
def test_two_columns(wide: Any, narrow: Any) -> None:
    """Against all three ways in which two values of a total order can lie."""

    def passing(comparator: str, swapped: bool) -> set[int]:
        signs = {"=": {0}, "<>": {-1, 1}, "<": {-1}, "<=": {-1, 0}, ">": {1}, ">=": {0, 1}}[comparator]
        return {-sign for sign in signs} if swapped else signs

    looser = Comparison(wide, A, C)
    assert subsumes(looser, Comparison(narrow, A, C)) is (passing(narrow, False) <= passing(wide, False))
    assert subsumes(looser, Comparison(narrow, C, A)) is (passing(narrow, True) <= passing(wide, False))
    assert not subsumes(looser, Comparison(narrow, A, X))
    assert not subsumes(looser, Comparison(narrow, X, C))


TESTS = ("starts", "ends", "contains")


@pytest.mark.parametrize("negated", [False, True])
@pytest.mark.parametrize("stricter", TESTS)
@pytest.mark.parametrize("looser", TESTS)
def test_texts_within_texts(looser: Any, stricter: Any, negated: bool) -> None:
    def asked(test: Any, pattern: str) -> Predicate:
        return Matches(test, S, pattern, negated=negated)

    # A text within the other at its beginning, its end, in its middle, and nowhere.
    for part, whole in (("ab", "abc"), ("bc", "abc"), ("b", "abc"), ("x", "abc"), ("abc", "abc")):
        at = {"starts": whole.startswith(part), "ends": whole.endswith(part)}
        expected = part in whole if looser == "contains" else looser == stricter and at[looser]
        found = (
            subsumes(asked(stricter, whole), asked(looser, part))
            if negated
            else subsumes(asked(looser, part), asked(stricter, whole))
        )
        assert found is expected, (part, whole)
    other = Matches(stricter, Column(("t",), S.type), "abc", negated=negated)
    assert not subsumes(asked(looser, "b"), other)
    assert not subsumes(asked(looser, "b"), Matches(stricter, S, "abc", negated=not negated))


def test_connectives_of_what_is_certain() -> None:
    odd = Holds(Call("udf:f", (X,), DataType("boolean")))
    sure = Holds(Call("udf:f", (X,), DataType("boolean"), (("version", "1"),)))
    opaque = NullTest(Opaque("?", DataType("int")))
    for one in (sure, And((sure, compare("=", X, 1))), Or((sure, NullTest(X)))):
        assert is_certain(one) and subsumes(one, one)
    for one in (odd, opaque, Not(sure), And((sure, odd)), Or((opaque, sure)), Opaque("?")):
        assert not is_certain(one)
        assert not subsumes(one, one)
    assert subsumes(sure, And((odd, sure)))
    assert subsumes(Or((odd, sure)), sure)
    assert not subsumes(And((odd, sure)), sure)
    assert not subsumes(sure, Or((odd, sure)))
    assert subsumes(Or((odd, ALWAYS)), odd) or subsumes(ALWAYS, odd)
    assert subsumes(odd, NEVER)
    assert not subsumes(odd, ALWAYS)


def test_what_a_predicate_tests() -> None:
    call = Call("is_odd", (X,), DataType("boolean"))
    leaves = And(
        (Comparison("<", X, Y), Not(Or((NullTest(S), Holds(call)))), IsIn(D, (Decimal(1),)), compare("=", X, 1))
    )
    assert operands_of(leaves) == (X, Y, S, call, D)
    assert operands_of(Matches("starts", S, "a")) == (S,)
    assert operands_of(Comparison("=", Literal(1, X.type), X)) == (X,)


def test_it_gives_up_after_many_comparisons() -> None:
    def disjuncts(count: int, step: int) -> Predicate:
        return Or(tuple(And((compare("=", X, n * step), compare("=", Y, n * step))) for n in range(count)))

    assert subsumes(disjuncts(30, 1), disjuncts(29, 1))
    assert not subsumes(Or((*disjuncts(200, 1).children, NullTest(X))), disjuncts(199, 1))  # type: ignore[union-attr]


def test_what_takes_too_many_comparisons_is_not_subsumed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two disjunctions whose parts are compared one with one. It is given up long before the part that fails."""
    monkeypatch.setattr(subsumption, "_MAX_COMPARISONS", 3_000)
    wide = [both(compare("=", X, n), compare("=", Y, n)) for n in range(100)]
    odd = both(compare("=", X, -1), compare("=", Y, -2))
    assert not subsumes(either(*wide), either(*wide, odd))
    assert subsumes(either(*wide[:20]), either(*reversed(wide[:20])))
    assert not subsumes(either(*wide[:20]), either(*wide[:20], odd))


def test_without_a_comparison_left_nothing_is_subsumed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subsumption, "_MAX_COMPARISONS", 5)
    looser = either(*(compare("=", D, Decimal(n)) for n in range(9)))
    assert not subsumes(looser, either(*(compare("=", X, n) for n in range(9))))
