"""What the parts of a conjunction say together of one column: more than each by itself, and never too much."""

from __future__ import annotations

import math
from typing import Any

import pytest

from es_skipping.clauses.evaluate import holds
from es_skipping.clauses.merge import Labeller, merge_clause
from es_skipping.clauses.metadata import Intervals, Metadata, Values
from es_skipping.indexes.base import Index, Target
from es_skipping.indexes.labels import IsNull, IsOneOf, Within, common_values
from es_skipping.indexes.minmax import MinMax
from es_skipping.indexes.valuelist import ValueList
from es_skipping.predicates.normal import normalise
from es_skipping.predicates.tree import And, Column, Comparison, IsIn, Literal, NullTest, Or, Predicate
from es_skipping.predicates.types import DataType

X = Column(("x",), DataType("double"))
NAN = math.nan


def x(comparator: Any, value: float) -> Comparison:
    return Comparison(comparator, X, Literal(value, X.type))


def verdict(index: Index, metadata: Metadata, predicate: Predicate) -> bool | None:
    clause = merge_clause(normalise(predicate), [Labeller(index, Target("it", (X,), (X.type,)))])
    return holds(clause, {"it": metadata})


def of(*values: float, nulls: int = 0, nans: int = 0) -> tuple[tuple[Index, Metadata], ...]:
    """What the two index types remember of these values."""
    ranges = ((min(values), max(values)),) if values else ()
    return (
        (MinMax("x"), Intervals(ranges, nulls, nans)),
        (ValueList("x"), Values(frozenset(values), nulls, nans)),
    )


IN_1_OR_5 = IsIn(X, (1.0, 5.0))
OTHER_THAN_2_OR_NULL = Or((x("<>", 2.0), NullTest(X)))
CASES = [
    (And((IN_1_OR_5, x(">=", 3.0))), of(1.0, 4.0)),
    (And((OTHER_THAN_2_OR_NULL, x(">=", 0.0))), of(2.0, nulls=1)),
    (And((x(">=", 1.0), x("<=", 5.0))), of(0.0, nans=1)),
    (And((x("<>", 3.0), x(">=", 3.0))), of(1.0, 3.0)),
    (And((Or((x("<", 5.0), NullTest(X))), NullTest(X, negated=True))), of(9.0, nulls=1)),
    (And((OTHER_THAN_2_OR_NULL, Or((x("=", 2.0), NullTest(X))))), of(2.0, 3.0)),
]


@pytest.mark.parametrize(("predicate", "objects"), CASES)
def test_together_they_rule_out_what_each_leaves(predicate: And, objects: tuple[tuple[Index, Metadata], ...]) -> None:
    for index, metadata in objects:
        assert verdict(index, metadata, predicate) is False
        assert None not in [verdict(index, metadata, part) for part in predicate.children]
        assert False not in [verdict(index, metadata, part) for part in predicate.children]


KEPT = [
    (And((IN_1_OR_5, x(">=", 3.0))), of(5.0)),
    (And((OTHER_THAN_2_OR_NULL, x(">=", 0.0))), of(3.0)),
    (And((x("<>", 2.0), x(">=", 1.0))), of(2.0, nans=1)),
    (And((IsIn(X, (1.0, NAN)), x("<>", 3.0))), of(3.0, nans=1)),
    (And((OTHER_THAN_2_OR_NULL, Or((x("<>", 3.0), NullTest(X))))), of(2.0, 3.0, nulls=1)),
    (And((OTHER_THAN_2_OR_NULL, Or((x("<>", 3.0), NullTest(X))))), of(4.0)),
    (And((OTHER_THAN_2_OR_NULL, Or((x("=", 2.0), NullTest(X))))), of(nulls=1)),
]


@pytest.mark.parametrize(("predicate", "objects"), KEPT)
def test_an_object_with_a_row_that_satisfies_all_is_kept(
    predicate: And, objects: tuple[tuple[Index, Metadata], ...]
) -> None:
    for index, metadata in objects:
        assert verdict(index, metadata, predicate) is not False


def test_the_form_is_the_plainest() -> None:
    def form(*parts: Predicate) -> Any:
        return common_values(And(parts), X, X.type)

    assert form(IN_1_OR_5, x(">=", 3.0)) == IsOneOf((5.0,))
    assert form(OTHER_THAN_2_OR_NULL, Or((x("=", 2.0), NullTest(X)))) == IsNull()
    assert form(x("<", 1.0), x(">", 5.0)) == Within(())
    assert form(x(">", 1.0), NullTest(X, negated=True)) is None  # the first says it all
    assert form(x(">", 1.0)) is None
    many = IsIn(X, tuple(map(float, range(200))), negated=True)
    assert form(many, x(">", 1.5)) is None  # more ranges than are asked for
