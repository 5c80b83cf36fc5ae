"""The rows that a filter drops: those for which it is false or null, judged row by row."""

from __future__ import annotations

from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from es_skipping.predicates.certainty import not_true
from es_skipping.predicates.normal import normalise
from es_skipping.predicates.show import show
from es_skipping.predicates.tree import (
    ALWAYS,
    NEVER,
    And,
    Column,
    Comparison,
    IsIn,
    Literal,
    Not,
    Opaque,
    Or,
    leaves_of,
    map_leaves,
)
from es_skipping.predicates.types import DataType
from tests.examples import examples
from tests.predicates.rows import predicates, rows, truth

INT = DataType("int")
X, Y = (Column((name,), INT) for name in "xy")


@examples(600)
@given(predicates(), st.lists(rows(), min_size=1, max_size=4))
@example(Not(And((Comparison("<", Column(("c_int",), INT), Literal(5, INT)), NEVER))), [])
def test_not_true_of_the_rows_that_a_filter_drops(predicate: Any, table: list[Any]) -> None:
    dropped = normalise(not_true(predicate))
    exact = not any(isinstance(leaf, Opaque) for leaf in leaves_of(dropped))
    widest = map_leaves(dropped, lambda leaf: ALWAYS if isinstance(leaf, Opaque) else leaf)
    for row in table:
        kept, is_dropped = truth(predicate, row) is True, truth(widest, row) is True
        assert kept or is_dropped, show(dropped)
        assert not (exact and kept and is_dropped), show(dropped)


def test_connectives_are_taken_apart() -> None:
    less, more = Comparison("<", X, Literal(5, INT)), Comparison(">", Y, Literal(7, INT))
    assert show(normalise(not_true(And((less, more))))) == "x >= 5 OR x IS NULL OR y <= 7 OR y IS NULL"
    assert show(normalise(not_true(Or((less, more))))) == "(x >= 5 OR x IS NULL) AND (y <= 7 OR y IS NULL)"
    assert normalise(not_true(Not(Or((less, more))))) == normalise(not_true(And((Not(less), Not(more)))))


def test_what_is_always_true_drops_nothing() -> None:
    assert normalise(not_true(ALWAYS)) == NEVER == normalise(not_true(And(())))


def test_what_is_not_understood_may_drop_any_row() -> None:
    dropped = normalise(not_true(And((Comparison("<", X, Literal(5, INT)), Opaque("?")))))
    assert any(isinstance(leaf, Opaque) for leaf in leaves_of(dropped))
    assert any(isinstance(leaf, Opaque) for leaf in leaves_of(normalise(not_true(IsIn(X, (1,), has_null=True)))))
