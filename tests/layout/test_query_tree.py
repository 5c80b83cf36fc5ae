"""The query tree without Spark: its rules of growth, what cuts let queries skip, and bounds."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from es_skipping.layout.bounds import Bounds
from es_skipping.layout.tree.candidates import bound_of, proposed_cuts
from es_skipping.layout.tree.effects import Effects, effects_of
from es_skipping.layout.tree.growing import grow
from es_skipping.predicates.normal import normalise
from es_skipping.predicates.show import show
from es_skipping.predicates.tree import And, Column, Comparison, Constant, IsIn, Literal, Not, NullTest, Or, Predicate
from es_skipping.predicates.types import DataType
from es_skipping.workload.queries import Query
from tests.examples import examples

X, Y = (Column((name,), DataType("int")) for name in "xy")
NAME = Column(("name",), DataType("string"))
SCORE = Column(("score",), DataType("double"))
VALUES = (None, 0, 1, 2, 3)
ROWS = [(x, y) for x in VALUES for y in VALUES]


def compare(comparator: Any, left: Column, value: Any) -> Predicate:
    return Comparison(comparator, left, Literal(value, left.type))


def is_true(predicate: Predicate, row: tuple[int | None, int | None]) -> bool:
    """Whether a row satisfies a normal predicate."""
    held = dict(zip((X, Y), row, strict=True))
    match predicate:
        case Constant(value):
            return value
        case And(children):
            return all(is_true(child, row) for child in children)
        case Or(children):
            return any(is_true(child, row) for child in children)
        case NullTest(operand, negated):
            return (held[operand] is None) is not negated  # type: ignore[index]
        case IsIn(operand, values, negated):
            own = held[operand]  # type: ignore[index]
            return own is not None and (own in values) is not negated
        case Comparison(comparator, left, right):
            one = held[left]  # type: ignore[index]
            other = right.value if isinstance(right, Literal) else held[right]  # type: ignore[index]
            if one is None or other is None:
                return False
            found = {"=": one == other, "<>": one != other, "<": one < other, "<=": one <= other}  # type: ignore[operator]
            found |= {">": one > other, ">=": one >= other}  # type: ignore[operator]
            return found[comparator]
    raise AssertionError(predicate)


columns = st.sampled_from((X, Y))
leaves = st.one_of(
    st.builds(compare, st.sampled_from(("=", "<>", "<", "<=", ">", ">=")), columns, st.integers(0, 3)),
    st.builds(lambda c, v: IsIn(c, tuple(sorted(v))), columns, st.sets(st.integers(0, 3), min_size=2, max_size=3)),
    st.builds(lambda comparator: Comparison(comparator, X, Y), st.sampled_from(("=", "<", ">="))),
    st.builds(NullTest, columns, st.booleans()),
)
predicates = st.recursive(
    leaves,
    lambda some: st.one_of(
        st.builds(lambda a, b: And((a, b)), some, some),
        st.builds(lambda a, b: Or((a, b)), some, some),
        st.builds(Not, some),
    ),
    max_leaves=5,
)


@examples(200)
@given(st.lists(predicates, min_size=1, max_size=4))
def test_queries_skip_only_sides_without_their_rows(log: list[Predicate]) -> None:
    """Of what is said to be skipped no row satisfies the query: nulls lie on the side of no."""
    queries = [Query(one) for one in log]
    cuts = proposed_cuts(queries + queries, [])
    for query in queries:
        effects = effects_of(cuts, [query])
        for at, cut in enumerate(cuts):
            wanted = [is_true(cut, row) for row in ROWS if is_true(query.predicate, row)]
            assert not (effects.skip_yes[at, 0] and any(wanted)), (show(query.predicate), show(cut))
            assert not (effects.skip_no[at, 0] and not all(wanted)), (show(query.predicate), show(cut))


def test_a_query_skips_the_other_side_of_a_bound() -> None:
    log = [Query(And((compare(">=", X, 1), compare("<", X, 3)))), Query(Or((compare("=", X, 9), compare("=", X, 7))))]
    effects = effects_of([normalise(compare("<", X, 1)), normalise(compare("<", X, 3))], log)
    told = {
        (tuple(yes), tuple(no)) for yes, no in zip(effects.skip_yes.T.tolist(), effects.skip_no.T.tolist(), strict=True)
    }
    assert told == {((True, False), (False, True)), ((True, True), (False, False))}


def test_bounds_of_a_leaf_and_of_its_contrary_are_one_cut() -> None:
    log = [Query(one) for one in (compare("<=", X, 4), compare(">", X, 4), compare(">=", X, 5), compare("<", X, 5))]
    assert [show(cut) for cut in proposed_cuts(log, [])] == ["x < 5"]
    names = [Query(compare("=", NAME, "b")), Query(compare("<>", NAME, "b")), Query(compare("=", NAME, "\ue000"))]
    cuts = proposed_cuts(names, [])
    assert [show(cut) for cut in cuts if bound_of(cut) is None] == ["name = 'b'"]
    assert {cut.right.value for cut in cuts if isinstance(cut, Comparison) and bound_of(cut)} == {"b", "\ue000"}  # type: ignore[union-attr]


def test_no_bound_is_nan_and_few_bounds_stand_for_many() -> None:
    log = [Query(compare(">", SCORE, value)) for value in (math.inf, 1.5)]
    assert [show(cut) for cut in proposed_cuts(log, [])] == [show(normalise(compare("<", SCORE, 1.5)))]
    many = proposed_cuts([Query(compare("<", X, value)) for value in range(1_000)], [])
    values = sorted(cut.right.value for cut in many)  # type: ignore[union-attr,misc,type-var]
    assert 40 <= len(values) <= 48
    assert max(np.diff([0, *values, 999])) < 30, "they are spread evenly"  # type: ignore[list-item]


@st.composite
def growths(draw: st.DrawFn) -> tuple[Any, Any, Effects, int]:
    cuts, queries, rows = draw(st.integers(1, 4)), draw(st.integers(1, 4)), draw(st.integers(1, 40))
    dice = np.random.default_rng(draw(st.integers(0, 2**31)))
    skips = dice.integers(0, 3, (cuts, queries))  # a query skips one side of a cut, or none
    effects = Effects(skips == 1, skips == 2, dice.integers(1, 9, queries).astype(float))
    partitions = np.unique(dice.integers(0, draw(st.integers(1, 3)), rows), return_inverse=True)[1]
    return dice.integers(0, 2, (rows, cuts)).astype(bool), partitions, effects, draw(st.integers(1, 12))


@examples(300)
@given(growths())
def test_leaves_have_their_rows_and_lie_in_one_partition(case: tuple[Any, Any, Effects, int]) -> None:
    bits, partitions, effects, minimum = case
    tree = grow(bits, partitions, effects, minimum)
    leaves = tree.leaf_of(bits, partitions)
    sizes, whole = Counter(leaves.tolist()), np.bincount(partitions)
    assert all(tree.yes[leaf] == leaf == tree.no[leaf] for leaf in sizes)
    for leaf, size in sizes.items():
        (partition,) = set(partitions[leaves == leaf].tolist())
        assert size >= min(minimum, whole[partition])
    assert len(sizes) == tree.leaves


def test_the_best_cut_comes_first() -> None:
    bits = np.array([[at < 4, at % 2 == 0] for at in range(8)])
    one, other = np.array([[True, False], [False, False]]), np.array([[False, False], [False, True]])
    for weights, best in (([5.0, 1.0], 0), ([1.0, 5.0], 1)):
        tree = grow(bits, np.zeros(8, np.int64), Effects(one, other, np.array(weights)), minimum=4)
        assert tree.cuts.tolist() == [best, -1, -1]
    # Queries that already skip a node do not count below it.
    both = np.array([[True], [True]])
    tree = grow(bits, np.zeros(8, np.int64), Effects(both, ~both, np.array([1.0])), minimum=2)
    satisfied = tree.leaf_of(bits, np.zeros(8, np.int64))
    assert len({leaf for leaf, row in zip(satisfied, bits[:, tree.cuts[0]], strict=True) if row}) == 1


def test_bounds_of_joined_blocks_and_what_meets_them() -> None:
    def objects(*values: Any) -> Any:
        return np.array([*values, None], object)[:-1]

    bounds = Bounds({SCORE: objects(1.0, -2.0, None)}, {SCORE: objects(5.0, math.nan, None)})
    above, below = normalise(compare(">", SCORE, 7.0)), normalise(compare("<", SCORE, 0.0))
    assert bounds.kept(above, 3).tolist() == [False, True, False]
    assert bounds.kept(below, 3).tolist() == [False, True, False]
    # A greatest value of NaN hides the greatest number.
    assert bounds.kept(normalise(compare("=", SCORE, 7.0)), 3).tolist() == [False, True, False]
    assert bounds.kept(NullTest(SCORE), 3).tolist() == [True, True, True]
    joined = bounds.joined([[0, 2], [2]])
    assert (joined.low[SCORE].tolist(), joined.high[SCORE].tolist()) == ([1.0, None], [5.0, None])


@pytest.mark.parametrize("minimum", [0, -3])
def test_a_minimum_below_one_is_one(minimum: int) -> None:
    effects = Effects(np.array([[True]]), np.array([[False]]), np.array([1.0]))
    assert grow(np.array([[True], [False]]), np.zeros(2, np.int64), effects, minimum).leaves == 2
