"""Conditions of which every row of a filter satisfies all, or one at least."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from es_skipping.predicates.implied import Conditions
from es_skipping.predicates.normal import normalise
from es_skipping.predicates.tree import (
    And,
    Call,
    Cast,
    Column,
    Comparison,
    IsIn,
    Literal,
    Matches,
    NullTest,
    Or,
    Predicate,
)
from es_skipping.predicates.types import DataType
from tests.examples import examples
from tests.predicates.rows import COLUMNS, EDGES, Row, truth, values

X = Column(("x",), DataType("int"))
Y = Column(("y",), DataType("int"))
F = Column(("f",), DataType("double"))
S = Column(("s",), DataType("string"))


def compare(comparator: Any, operand: Any, value: Any) -> Predicate:
    return normalise(Comparison(comparator, operand, Literal(value, operand.type)))


def listed(operand: Any, *items: Any, negated: bool = False) -> Predicate:
    return normalise(IsIn(operand, items, negated))


def both(*parts: Predicate) -> Predicate:
    return normalise(And(parts))


def either(*parts: Predicate) -> Predicate:
    return normalise(Or(parts))


@st.composite
def _lists(draw: st.DrawFn) -> tuple[list[Predicate], Predicate, list[Row]]:
    """Conditions and a filter of a few values of one column that meet, NaN and both zeros among them."""
    name = draw(st.sampled_from(sorted(EDGES)))
    column = COLUMNS[name]
    pool = draw(st.lists(st.sampled_from(EDGES[name]) | values(name), min_size=1, max_size=4))
    value = st.sampled_from(pool)
    literal = value.map(lambda v: Literal(v, column.type))
    conditions: st.SearchStrategy[Predicate] = (
        st.builds(Comparison, st.just("="), st.just(column), literal)
        | st.builds(Comparison, st.sampled_from(("<>", "<", "<=", ">", ">=", "<=>")), st.just(column), literal)
        | st.builds(IsIn, st.just(column), st.lists(value, min_size=1).map(tuple), st.booleans())
    )
    if name == "string":
        conditions |= st.builds(Matches, st.sampled_from(("starts", "like")), st.just(column), value)
    asked = st.builds(
        IsIn,
        st.just(column),
        st.lists(value, min_size=1).map(tuple),
        st.sampled_from((False, False, True)),
        st.booleans(),
    ) | st.builds(Or, st.lists(conditions, min_size=1, max_size=3).map(tuple))
    cells = [None, *pool, *EDGES[name]]
    empty = {f"c_{other}": None for other in EDGES}
    rows: list[Row] = [{**empty, f"c_{name}": cell} for cell in cells]
    return draw(st.lists(conditions, min_size=1, max_size=6)), draw(asked), rows


@examples(600)
@given(_lists())
def test_no_row_of_a_list_lacks_all_of_its_conditions(case: tuple[list[Predicate], Predicate, list[Row]]) -> None:
    conditions, node, rows = case
    known, normal = Conditions(list(map(normalise, conditions))), normalise(node)
    wanted = [row for row in rows if truth(node, row)]
    for at in known.implied_by(normal):
        assert all(truth(conditions[at], row) for row in wanted), (conditions[at], node)
    some = known.one_of(normal)
    if some is not None:
        lost = [row for row in wanted if not any(truth(conditions[at], row) for at in some)]
        assert not lost, (conditions, some, node, lost)


SIZES = [compare("=", X, value) for value in (3, 5, 7, 9)]
FIRST_TWO = Call("substring", (S, Literal(1, X.type), Literal(2, X.type)), S.type)


@pytest.mark.parametrize(
    ("conditions", "node", "some"),
    [
        (SIZES, listed(X, 5, 9), (1, 3)),
        (SIZES, listed(X, 5, 9, 11), None),
        (SIZES, listed(X, 5, 9, negated=True), None),
        (SIZES, listed(Y, 5, 9), None),
        (SIZES, listed(Cast(X, DataType("bigint")), 5, 9), (1, 3)),
        (SIZES, listed(Cast(X, DataType("string")), "5", "9"), None),
        (SIZES, either(compare("=", X, 5), compare("=", X, 3)), (0, 1)),
        (SIZES, either(compare("=", X, 5), compare("=", Y, 3)), None),
        (SIZES, either(both(compare("=", X, 5), compare("=", Y, 1)), both(listed(X, 3, 7), NullTest(Y))), (0, 1, 2)),
        (SIZES, compare("=", X, 5), None),
        ([*SIZES, compare("<", X, 8)], listed(X, 5, 7), (1, 2)),
        ([compare("<", X, 5), compare(">=", X, 5)], listed(X, 1, 9), (0, 1)),
        ([compare("<", X, 5), compare("<", X, 4), compare(">", X, 4)], listed(X, 1, 9), (1, 2)),
        ([compare("<", X, 4), compare("<", X, 5), compare(">", X, 4)], listed(X, 1, 9), (0, 2)),
        ([listed(X, 1, 2, 3), listed(X, 1, 2), compare("=", X, 9)], listed(X, 2, 9), (1, 2)),
        ([compare(">", X, 0), compare("=", X, 5)], listed(X, 1, 5), None),
        ([compare("=", F, 0.0), compare("=", F, math.nan)], listed(F, -0.0, math.nan), (0, 1)),
        ([compare("=", F, 0.0), NullTest(F)], listed(F, 0.0, math.nan), None),
        ([compare("=", FIRST_TWO, "13"), compare("=", FIRST_TWO, "17")], listed(FIRST_TWO, "17", "13"), (0, 1)),
        ([normalise(Matches("starts", S, "a")), compare("=", S, "b")], listed(S, "ab", "b"), (0, 1)),
    ],
    ids=str,
)  # fmt: skip
def test_which_of_them_a_list_asks_for(
    conditions: list[Predicate], node: Predicate, some: tuple[int, ...] | None
) -> None:
    """The strictest of each value; none where a value has none, or one says it of all values."""
    parts = node.children if isinstance(node, And) else (node,)
    found = [one for part in parts if (one := Conditions(conditions).one_of(part)) is not None]
    assert found == ([] if some is None else [some])


def test_a_function_that_may_be_another_one_is_nobodys_condition() -> None:
    mine = Call("udf:mine", (X,), X.type)
    known = Conditions([compare("=", mine, 1), compare("=", mine, 2)])
    assert known.one_of(listed(mine, 1, 2)) is None
    assert known.implied_by(compare("=", mine, 1)) == ()


def test_a_long_list_is_let_be() -> None:
    known = Conditions([compare("=", X, value) for value in range(1_200)])
    assert known.one_of(listed(X, *range(1_000))) == tuple(range(1_000))
    assert known.one_of(listed(X, *range(1_001))) is None
