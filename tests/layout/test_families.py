"""Features of single values, for lists that differ from query to query."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from es_skipping.layout import mine_features
from es_skipping.layout.features.helping import Helping
from es_skipping.layout.features.ranking import by_savings
from es_skipping.layout.groups.demands import Demand, demands_of
from es_skipping.layout.groups.design import design_groups
from es_skipping.layout.groups.grouping import Designer
from es_skipping.layout.groups.grouping_search import best_grouping
from es_skipping.layout.groups.local_features import local_features
from es_skipping.layout.groups.vectors import GlobalVectors
from es_skipping.layout.histogram import Histogram
from es_skipping.predicates.tree import And, Call, Column, Comparison, IsIn, Literal, Or, Predicate
from es_skipping.predicates.types import DataType
from es_skipping.workload.families import families_of
from es_skipping.workload.mining import Feature, candidates_of, never_by_time
from es_skipping.workload.queries import Query
from tests.examples import examples
from tests.layout.designs import NAMES, histogram_of, histograms, workloads

INT, STRING, DATE = map(DataType, ("int", "string", "date"))
SIZE, BRAND, PHONE, DAY = (
    Column(("size",), INT),
    Column(("brand",), STRING),
    Column(("phone",), STRING),
    Column(("day",), DATE),
)
CODE = Call("substring", (PHONE, Literal(1, INT), Literal(2, INT)), STRING)


def equal(operand: Any, value: Any) -> Predicate:
    return Comparison("=", operand, Literal(value, operand.type))


def lists(operand: Any, values: Sequence[Any], length: int, count: int, seed: int = 1) -> list[Query]:
    dice = random.Random(seed)
    return [Query(IsIn(operand, tuple(dice.sample(values, length))), columns=("size",)) for _ in range(count)]


def mined(log: Sequence[Query], most: int = 100, **options: Any) -> list[tuple[Predicate, ...]]:
    return [feature.predicates for feature in mine_features(log, most, families=True, **options)]


SIZES = lists(SIZE, range(20), 4, 60)
BRANDS = [Query(equal(BRAND, f"b{at % 5}"), columns=("brand",)) for at in range(60)]


def test_lists_that_differ_get_a_feature_for_each_value() -> None:
    found = mined([*BRANDS, *SIZES])
    assert found[:5] == [(equal(BRAND, f"b{at}"),) for at in range(5)], "they help more queries each"
    assert set(found[5:]) == {(equal(SIZE, value),) for value in range(20)}
    assert len(mine_features([*BRANDS, *SIZES], 100)) == 5, "only where it was asked for"


def test_all_values_or_none() -> None:
    assert mined([*BRANDS, *SIZES], 25) == mined([*BRANDS, *SIZES])
    assert mined([*BRANDS, *SIZES], 24) == mined(BRANDS, 24)
    assert mined([*BRANDS, *SIZES], 4) == mined(BRANDS, 4)


def test_a_family_comes_before_what_helps_fewer() -> None:
    rare = [Query(equal(BRAND, "rare"))] * 2
    assert mined([*rare, *SIZES], 20) == mined(SIZES)
    assert mined([*rare, *SIZES], 21)[-1] == (equal(BRAND, "rare"),)


@pytest.mark.parametrize(
    "log",
    [
        [Query(IsIn(SIZE, pair)) for pair in ((1, 2), (3, 4), (5, 6), (7, 8)) for _ in range(10)],
        lists(SIZE, range(1_000), 4, 60),
        lists(SIZE, range(20), 11, 60),
        lists(SIZE, range(20), 4, 1),
        lists(DAY, range(20), 4, 60),
        [Query(IsIn(SIZE, query.predicate.values, negated=True)) for query in SIZES],  # type: ignore[union-attr]
        [Query(Or((query.predicate, equal(BRAND, "b1")))) for query in SIZES],
        BRANDS,
    ],
    ids=["come back", "never come back", "hardly choose", "one query", "dates", "negated", "in an or", "no lists"],
)
def test_there_is_none_where_it_would_not_pay(log: list[Query]) -> None:
    assert families_of(log, candidates_of(log), 2, never_by_time) == []
    assert mined(log) == [feature.predicates for feature in mine_features(log, 100)]


def test_values_of_a_function_are_evaluated_as_spark_reads_them() -> None:
    codes = [str(code) for code in range(10, 30)]
    log = lists(CODE, codes, 5, 50)
    found = mine_features(log, 100, families=True)
    assert {show for feature in found for show in map(str, feature.predicates) if "'='" in show} >= {
        str(equal(CODE, code)) for code in codes
    }
    helping = Helping(found)
    assert all(len(next(iter(helping.help(query).lists))) == 5 for query in log)


def test_what_helps_a_query() -> None:
    features = [Feature((equal(SIZE, value),)) for value in range(4)] + [Feature((equal(BRAND, "b1"),))]
    helping = Helping(features)
    listed = IsIn(SIZE, (1, 3))
    assert helping.help(Query(listed)).lists == {frozenset({1, 3})}
    assert not helping.help(Query(IsIn(SIZE, (1, 4))))
    both = helping.help(Query(And((listed, equal(BRAND, "b1")))))
    assert (both.usable, both.lists) == ({4}, {frozenset({1, 3})})
    either = helping.help(Query(Or((And((equal(SIZE, 1), equal(BRAND, "b2"))), And((listed, equal(BRAND, "b1")))))))
    assert (either.usable, len(either.lists)) == (frozenset(), 1)
    assert helping.help(Query(And((listed, IsIn(SIZE, (1, 2)))))).usable == {1}


def test_savings_of_a_family_are_those_of_its_lists() -> None:
    log = [*BRANDS[:5], *SIZES]
    (family,) = families_of(log, [], 2, never_by_time)
    single = Feature((equal(BRAND, "b0"),), 1, 1, (0,))
    shares = [0.25, *[0.05] * 20]
    *some, last = by_savings([single], shares, len(log), 30, families=[family])
    assert [one.predicates for one in some] == [one.predicates for one in family.features]
    assert some[0].saved == pytest.approx(60 * 0.8 / 20)
    assert (last.predicates, last.saved) == (single.predicates, 0.75)
    assert [one.predicates for one in by_savings([single], shares, len(log), 20, families=[family])] == [
        one.predicates for one in family.features
    ]
    for most, refused in ((19, None), (30, family.features[7])):
        kept = list(by_savings([single], shares, len(log), most, lambda one, no=refused: one is not no, [family]))
        assert [one.predicates for one in kept] == [single.predicates], "all or none"


def test_a_group_takes_all_of_a_family_or_none() -> None:
    weights = {0: 9, 1: 4, 2: 4, 3: 4, 4: 3}
    distinct = len
    assert local_features(weights, distinct, 4, [{1, 2, 3}]) == (0, 1, 2, 3)
    assert local_features(weights, distinct, 3, [{1, 2, 3}]) == (0,)
    assert local_features(weights, distinct, 3) == (0, 1, 2)
    assert local_features({1: 4, 4: 3}, distinct, 1, [{1, 2, 3}]) == (1,)


def rows() -> Histogram:
    """Two thousand rows, each of one size and one brand."""
    dice = random.Random(3)
    counted: dict[int, int] = {}
    for _ in range(2_000):
        bits = 1 << dice.randrange(5) | 1 << (5 + dice.randrange(20))
        counted[bits] = counted.get(bits, 0) + 1
    return histogram_of([counted], 25)


def test_groups_read_less_with_a_family_and_never_more_than_without() -> None:
    log, names = [*BRANDS, *SIZES], ("brand", "size", "other")
    features = [Feature((equal(BRAND, f"b{at}"),)) for at in range(5)]
    family = [Feature((equal(SIZE, value),)) for value in range(20)]
    counted = rows()
    plain = Histogram(tuple(counted.only(range(5)).groups), 5)
    read, alone = (
        design_groups(names, some, log, log, data, 50).read["these groups"]
        for some, data in (([*features, *family], counted), (features, plain))
    )
    assert read < 0.5 * alone
    assert demands_of(SIZES[:1], [*features, *family], names)[0].usable == frozenset()


@examples(60)
@given(histograms(), workloads(features=2), workloads(), st.integers(1, 40))
def test_a_search_with_families_costs_no_more_than_without(
    histogram: Histogram, log: list[Demand], more: list[Demand], minimum: int
) -> None:
    """On the queries that it is made for, where lists are of the last two features, which help nobody alone."""
    plain = [replace(demand, lists=frozenset()) for demand in log]
    plain += [Demand(demand.columns, frozenset(), demand.count) for demand in more]
    listed = [
        replace(demand, lists=frozenset({frozenset({2, 3})})) if at % 2 else demand for at, demand in enumerate(plain)
    ]
    vectors = GlobalVectors(histogram, minimum)
    without, found = (best_grouping(Designer(NAMES, some, vectors)) for some in (plain, listed))
    assert found.cost.total <= without.cost.total * (1 + 1e-9)


def test_a_demand_without_some_features_keeps_the_lists_that_are_whole() -> None:
    demand = Demand(frozenset("a"), frozenset({1}), 2, frozenset({frozenset({2, 3}), frozenset({3, 4})}))
    assert demand.within({1, 2, 3}) == Demand(frozenset("a"), frozenset({1}), 2, frozenset({frozenset({2, 3})}))
    assert demand.features == {1, 2, 3, 4}
    assert (demand.helped_by({1}), demand.helped_by({3, 4}), demand.helped_by({2, 4})) == (True, True, False)
