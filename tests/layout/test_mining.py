"""Features of a workload: the dissertation's example, and laws that hold of any workload."""

from __future__ import annotations

import random

import pytest

from es_skipping.predicates.subsumption import subsumes
from es_skipping.predicates.tree import And, Column, Comparison, IsIn, Literal, NullTest, Opaque, Or, Predicate
from es_skipping.predicates.types import DataType
from es_skipping.workload.choosing import mine_features
from es_skipping.workload.mining import Feature, candidates_of, never_by_time, subsuming
from es_skipping.workload.queries import Query
from tests.layout.shop import LOG, REVENUE, SHOES_OR_SHIRTS, above, product

DAY = Column(("day",), DataType("date"))


def test_the_example_of_the_dissertation() -> None:
    """With T = 2 only {in(shoes, shirts), > 21} stays: it covers two queries, and what is looser adds one at most."""
    (only,) = mine_features(LOG, min_support=2)
    assert set(only.predicates) == {SHOES_OR_SHIRTS, above(21)}
    assert (only.gain, only.weight, only.queries) == (2, 2, (1, 2))


def test_with_a_support_of_one_the_looser_sets_add_what_is_left() -> None:
    found = mine_features(LOG, min_support=1)
    assert sum(feature.gain for feature in found) == len(LOG)
    assert {feature.gain for feature in found} == {1}


def test_support_counts_the_queries_that_a_set_subsumes_not_those_that_contain_it() -> None:
    """in(shoes, shirts) is in one query only, and subsumes all three."""
    everything = Feature((SHOES_OR_SHIRTS,))
    assert all(everything.subsumes(query) for query in LOG)
    (found,) = mine_features([LOG[0], LOG[2], Query(SHOES_OR_SHIRTS)], min_support=3)
    assert found.predicates == (SHOES_OR_SHIRTS,)
    assert found.weight == 3


def random_item(dice: random.Random) -> Predicate:
    column = Column((dice.choice("abc"),), DataType("int"))
    value = dice.randrange(5)
    if dice.random() < 0.3:
        return IsIn(column, tuple(sorted(dice.sample(range(5), 2))))
    return Comparison(dice.choice(("=", "<", ">=")), column, Literal(value, column.type))


def random_log(seed: int, queries: int = 60) -> list[Query]:
    dice = random.Random(seed)
    return [Query(And(tuple(random_item(dice) for _ in range(dice.randint(1, 4))))) for _ in range(queries)]


@pytest.mark.parametrize("seed", range(5))
def test_what_it_says_of_each_feature_is_so(seed: int) -> None:
    log = random_log(seed)
    found = candidates_of(log, min_support=4)
    assert found
    for feature in found:
        subsumed = tuple(at for at, query in enumerate(log) if feature.subsumes(query))
        assert set(feature.queries) <= set(subsumed)
        assert feature.weight == len(feature.queries) >= feature.gain >= 4
        for one in feature.predicates:
            assert not any(subsumes(one, other) for other in feature.predicates if other != one)
    gains = [feature.gain for feature in found]
    assert gains == sorted(gains, reverse=True)
    assert sum(gains) <= len(log)


@pytest.mark.parametrize("seed", range(3))
def test_the_order_of_the_workload_is_all_that_it_depends_on(seed: int) -> None:
    log = random_log(seed)
    assert mine_features(log, 10) == mine_features(log, 10)
    shuffled = [log[at] for at in random.Random(seed).sample(range(len(log)), len(log))]
    assert [f.predicates for f in mine_features(shuffled, 10)] == [f.predicates for f in mine_features(log, 10)]


def test_a_stricter_set_comes_before_a_looser_one_with_the_same_queries() -> None:
    log = [Query(And((product("shoes"), above(5)))) for _ in range(4)] + [Query(above(3))]
    (found,) = mine_features(log, min_support=2)
    assert set(found.predicates) == {product("shoes"), above(5)}


def test_dates_opaque_parts_and_tests_for_null_are_left_out() -> None:
    since = Comparison(">=", DAY, Literal(19_000, DAY.type))
    log = [Query(And((since, product("shoes"), Opaque("a function"), NullTest(REVENUE, negated=True))))] * 3
    (found,) = mine_features(log, min_support=2)
    assert found.predicates == (product("shoes"),)
    assert not never_by_time(IsIn(DAY, (1, 2)))
    assert not never_by_time(Or((since, product("shoes"))))
    (dated,) = mine_features(log, min_support=2, usable=lambda predicate: True)
    assert since in dated.predicates


def test_a_query_without_a_filter_has_no_feature() -> None:
    from es_skipping.predicates.tree import ALWAYS

    assert mine_features([Query(ALWAYS)] * 5) == []
    assert mine_features([]) == []


def test_which_features_help_a_query() -> None:
    features = [Feature((SHOES_OR_SHIRTS,)), Feature((above(21),)), Feature((product("hats"),))]
    assert [subsuming(features, query) for query in LOG] == [(0,), (0, 1), (0, 1)]


def test_many_predicates_a_query_do_not_explode() -> None:
    columns = [Column((f"c{at}",), DataType("int")) for at in range(24)]
    wide = Query(And(tuple(Comparison("=", column, Literal(1, column.type)) for column in columns)))
    narrow = Query(Comparison("=", columns[0], Literal(1, columns[0].type)))
    found = mine_features([wide] * 5 + [narrow] * 20, 3)
    assert [(len(feature.predicates), feature.weight, feature.gain) for feature in found] == [(1, 25, 20), (24, 5, 5)]


@pytest.mark.parametrize("wrong", [{"count": 0}, {"min_support": 0}])
def test_counts_below_one_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        mine_features(LOG, **wrong)  # type: ignore[arg-type]


def test_what_excludes_little_does_not_hide_what_excludes_much() -> None:
    """Each equality implies 24 inequalities: were these features too, their sets would be too many to look at."""
    brand = Column(("brand",), DataType("string"))
    names = [f"Brand#{at}" for at in range(25)]
    log = [
        Query(Comparison(comparator, brand, Literal(name, brand.type)))
        for name in names
        for comparator in ("=", "<>")
        for _ in range(4)
    ]
    log += [Query(IsIn(brand, (one, other), negated=True)) for one in names[:5] for other in names[5:] if one < other]
    found = mine_features(log, 30, min_support=4)
    assert [feature.predicates[0] for feature in found] == sorted(
        (Comparison("=", brand, Literal(name, brand.type)) for name in names), key=repr
    )
