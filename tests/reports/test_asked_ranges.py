"""The ranges that queries ask of a column, as `GapList` takes them."""

from __future__ import annotations

import math

import pytest

from es_skipping.indexes.gaplist import GapList
from es_skipping.predicates.tree import And, Column, Comparison, IsIn, Literal, Operand, Or, Predicate
from es_skipping.predicates.types import DataType, Value
from es_skipping.reports.asked_queries import AskedQuery
from es_skipping.reports.asked_ranges import asked_ranges
from es_skipping.reports.candidates import ALL, for_dataset, index_candidates

INT, DOUBLE, STAMP = DataType("int"), DataType("double"), DataType("timestamp")
N, D, T = Column(("n",), INT), Column(("d",), DOUBLE), Column(("t",), STAMP)


def between(column: Column, low: Value, high: Value) -> Predicate:
    """From a value, and below another."""
    ends = Literal(low, column.type), Literal(high, column.type)
    return And((Comparison(">=", column, ends[0]), Comparison("<", column, ends[1])))


@pytest.mark.parametrize(
    ("column", "predicate", "ranges"),
    [
        (N, Comparison("=", N, Literal(3, INT)), ((3, 3, 1.0),)),
        (N, between(N, 3, 7), ((3, 6, 1.0),)),
        (T, between(T, 0, 3_600_000_000), ((0, 3_599_999_999, 1.0),)),
        (D, between(D, 1.0, 2.0), ((1.0, math.nextafter(2.0, 0.0), 1.0),)),
        (N, IsIn(N, (3, 9)), ((3, 3, 0.5), (9, 9, 0.5))),
        (N, Or((between(N, 3, 7), Comparison(">", N, Literal(20, INT)))), ((3, 6, 0.5),)),
        (N, And((between(N, 3, 7), Comparison("=", D, Literal(1.0, DOUBLE)))), ((3, 6, 1.0),)),
        (N, Or((between(N, 3, 7), Comparison("=", D, Literal(1.0, DOUBLE)))), ()),
        (N, Comparison(">", N, Literal(20, INT)), ()),
        (N, between(N, 7, 3), ()),
    ],
)
def test_what_a_query_asks(column: Column, predicate: Predicate, ranges: object) -> None:
    assert asked_ranges(column, [AskedQuery(predicate, 1.0)]) == ranges


def test_the_heaviest_come_first_and_count_together() -> None:
    queries = [AskedQuery(Comparison("=", N, Literal(at % 100, INT)), 1.0 + (at % 100)) for at in range(200)]
    found = asked_ranges(N, queries)
    assert len(found) == 64 and found[0] == (99, 99, 200.0)


def test_candidates_have_the_workloads_gaps_unless_they_are_protected() -> None:
    predicate = between(N, 3, 7)
    for plain, asked in (({N}, ((3, 6, 2.0),)), (set[Operand](), ())):
        grid = for_dataset(ALL, 1e6, [AskedQuery(predicate, 2.0)], plain=plain.__contains__)
        assert {one for one in index_candidates(predicate, grid) if isinstance(one, GapList)} == {
            GapList("n", gaps, asked) for gaps in (1, 4, 16)
        }
