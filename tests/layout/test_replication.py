"""GSOP-R: layouts and their transformations, what they store and what they cost, and the search within a budget."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from es_skipping.layout.groups.demands import Demand
from es_skipping.layout.groups.grouping import Designer
from es_skipping.layout.groups.grouping_search import best_grouping
from es_skipping.layout.groups.layouts import Layout, merged, merged_and_replicated, replicated, storage, tidied
from es_skipping.layout.groups.replication import Replicas
from es_skipping.layout.groups.replication_search import best_layouts
from es_skipping.layout.groups.vectors import GlobalVectors
from es_skipping.layout.histogram import Histogram
from es_skipping.workload.mining import Feature
from tests.examples import examples
from tests.layout.designs import NAMES, histogram_of, histograms, satisfying, workloads
from tests.layout.shop import SHOES_OR_SHIRTS, above

A, B, C, D = (frozenset({name}) for name in "abcd")
FIRST, SECOND = frozenset({1}), frozenset({2})


def layout(columns: str, *features: int, masters: str = "") -> Layout:
    return Layout(frozenset(columns), frozenset(features), frozenset(masters))


def replicas(
    histogram: Histogram, log: list[Demand], minimum: int = 20, columns: str = NAMES, **options: Any
) -> Replicas:
    return Replicas(columns, log, GlobalVectors(histogram, minimum, apart=True), **options)


def test_the_dissertations_storage_cost() -> None:
    """Figure 5.4(b): four rows of three columns, and of two columns two rows, of one of them four: (12 + 6) / 16."""
    layouts = [layout("abc", 1, masters="abc"), layout("cd", 2, masters="d")]
    assert storage(layouts, 4, 4, lambda features: 2) == 1.125


def test_layouts_of_the_same_features_are_one_and_a_column_has_one_master() -> None:
    rows = {frozenset({1}): 10, frozenset({2}): 50, frozenset(): 0}
    found = tidied([layout("ab", 1), layout("bc", 2), layout("d", 1), layout("ce")], rows.__getitem__)
    assert found == (layout("bc", 2, masters="bc"), layout("abd", 1, masters="ad"), layout("e", masters="e"))


RELATED = {1: frozenset("abx"), 2: frozenset("bc"), 3: frozenset("cd"), 4: frozenset("y")}


def test_repl_moves_a_feature_out_with_the_columns_that_its_queries_read() -> None:
    assert replicated([layout("abc", 1, 2), layout("d", 3)], 0, FIRST, RELATED) == [
        layout("d", 3),
        layout("abc", 2),
        layout("ab", 1),
    ]


def test_merge_takes_all_columns_and_features() -> None:
    assert merged([layout("ab", 1, 2), layout("d", 3), layout("bc", 2, 3)], 0, 2) == [
        layout("d", 3),
        layout("abc", 1, 2, 3),
    ]


def test_merge_repl_keeps_what_both_have_together_and_the_rest_apart() -> None:
    """The features in common are the merged layout's, those of one alone its replica's."""
    made = merged_and_replicated([layout("ab", 1, 2), layout("bcd", 2, 3)], 0, 1, RELATED)
    assert made == [layout("abcd", 2), layout("ab", 1), layout("cd", 3)]
    assert merged_and_replicated([layout("ab", 2), layout("bcd", 2, 3)], 0, 1, RELATED) == [
        layout("abcd", 2),
        layout("cd", 3),
    ]
    assert merged_and_replicated([layout("ab", 2), layout("b", 2, 4)], 0, 1, RELATED) == [layout("ab", 2)]


def test_a_replica_serves_only_queries_that_a_feature_of_its_own_subsumes() -> None:
    mine = layout("abc", 1, 2, masters="a")
    assert mine.offer(Demand(frozenset("abd"), frozenset({2, 3})), 7).columns == {"a", "b"}
    assert mine.offer(Demand(frozenset("abd"), frozenset({3})), 7).columns == {"a"}
    assert mine.offer(Demand(frozenset("bd"), frozenset()), 7).columns == frozenset()


CONFLICT = histogram_of([{0b00: 400, 0b01: 200, 0b10: 200, 0b11: 1}], 2)
"""800 rows and one; each feature is satisfied by 201."""
HOT = [Demand(frozenset("ab"), frozenset({0}), 5), Demand(frozenset("ac"), frozenset({1}), 5)]
"""Column a is wanted by both features."""


def test_initial_layouts_have_the_features_of_the_queries_that_read_the_column() -> None:
    found = replicas(CONFLICT, HOT, 200, "abcd").initial()
    assert set(found) == {
        layout("a", 0, 1, masters="a"),
        layout("b", 0, masters="b"),
        layout("c", 1, masters="c"),
        layout("d", masters="d"),
    }


def test_with_storage_each_feature_gets_a_layout_of_its_own() -> None:
    """Then a query reads one layout: the 201 rows of its feature, two columns, no ids."""
    costs = replicas(CONFLICT, HOT, 200, "abcd")
    found = best_layouts(costs, 1.2)
    assert found.cost == 10 * 201 * 2
    assert found.storage == pytest.approx(1 + 201 / (4 * 801))
    assert {(some.columns, some.features) for some in found.layouts} == {
        (frozenset("ab"), frozenset({0})),
        (frozenset("ac"), frozenset({1})),
        (frozenset("d"), frozenset()),
    }
    without = best_layouts(costs, 1.0)
    assert without.storage == 1
    assert without.cost > found.cost
    assert best_layouts(costs, 1.05).storage == 1, "a replica takes 0.063"


def test_a_merger_that_adds_cells_is_held_to_the_budget() -> None:
    """A replica of one more feature has more rows: that is how a merger can store more."""
    costs = replicas(CONFLICT, HOT, 200, "abc")
    before = costs.tidied([layout("abc", 0, 1), layout("ab", 0)])
    after = costs.tidied([layout("abc", 0, 1), layout("ab", 0, 1)])
    assert costs.storage(before) > 1 == costs.storage(after)
    grown = [layout("abc", masters="abc"), layout("ab", 0, 1)]
    assert storage(grown, 801, 3, costs.satisfying) > storage([grown[0], layout("ab", 0)], 801, 3, costs.satisfying)


@pytest.mark.parametrize("budget", [0.9, 0])
def test_a_budget_below_the_table_is_refused(budget: float) -> None:
    with pytest.raises(ValueError, match="storage budget"):
        best_layouts(replicas(CONFLICT, HOT), budget)


def test_a_start_beyond_the_budget_is_refused() -> None:
    with pytest.raises(ValueError, match="more than the budget"):
        best_layouts(replicas(CONFLICT, HOT, 200, "abc"), 1.0, [layout("abc", 0), layout("abc", 1)])


@examples(60)
@given(histograms(), workloads(), st.integers(1, 40), st.sampled_from([1.0, 1.2, 1.5, 2.0]))
def test_what_the_search_finds(histogram: Histogram, log: list[Demand], minimum: int, budget: float) -> None:
    costs = replicas(histogram, log, minimum)
    start = costs.initial()
    found = best_layouts(costs, budget, patience=4)
    # Every column has one master; the budget holds at each step; what is stored is what the formula says.
    assert sorted(name for some in found.layouts for name in some.masters) == sorted(NAMES)
    assert all(step.storage <= budget + 1e-6 for step in found.steps)
    cells = sum(
        histogram.rows if name in some.masters else costs.satisfying(some.features)
        for some in found.layouts
        for name in some.columns
    )
    assert found.storage == pytest.approx(cells / (histogram.rows * len(NAMES)))
    # Cached terms give what computing afresh gives, and nothing on the way was cheaper.
    afresh = replicas(histogram, log, minimum)
    assert afresh.cost(found.layouts) == pytest.approx(found.cost)
    assert afresh.cost(found.layouts, log) == pytest.approx(found.cost)
    assert found.cost == pytest.approx(min(step.cost for step in found.steps))
    assert found.cost <= costs.cost(start) * (1 + 1e-9)
    assert len({some.features for some in found.layouts}) == len(found.layouts)


@examples(60)
@given(histograms(), workloads(), st.integers(1, 40), st.integers(2, 12))
def test_every_transformation_leaves_every_query_its_rows(
    histogram: Histogram, log: list[Demand], minimum: int, distinct: int
) -> None:
    """What a query reads of any layout that serves it is never less than the rows which satisfy all its features."""
    costs = replicas(histogram, log, minimum, distinct=distinct)
    schemes = [costs.initial()]
    for _ in range(3):
        layouts = schemes[-1]
        ideas = [
            replicated(layouts, at, frozenset({f}), costs.related)
            for at, one in enumerate(layouts)
            for f in one.features
        ][:3]
        for one, other in [(0, at) for at in range(1, len(layouts))][:2]:
            if layouts[one].features & layouts[other].features:
                ideas += [merged(layouts, one, other), merged_and_replicated(layouts, one, other, costs.related)]
        schemes += [costs.tidied(idea) for idea in ideas]
    for layouts in schemes:
        assert sorted(name for some in layouts for name in some.masters) == sorted(NAMES)
        costs.costs(layouts)
        for some in layouts:
            for demand, read in zip(log, costs.rows(some)):
                assert satisfying(histogram, demand.within(some.features)) <= read <= histogram.rows
                if demand.helped_by(some.features):
                    assert read <= costs.satisfying(some.features), "rows that a replica lacks would be missed"


def test_it_can_start_from_the_groups_of_gsop_and_never_costs_more() -> None:
    designer = Designer("abcd", HOT, GlobalVectors(CONFLICT, 200))
    groups = best_grouping(designer).grouping.groups
    start = [Layout(group.columns, frozenset(group.features)) for group in groups]
    costs = replicas(CONFLICT, HOT, 200, "abcd")
    found = best_layouts(costs, 1.0, start)
    assert found.cost <= costs.cost(costs.tidied(start))


def test_column_groups_name_masters_and_local_weights() -> None:
    costs = replicas(CONFLICT, HOT, 200, "abcd")
    features = [Feature((SHOES_OR_SHIRTS,), 50), Feature((above(21),), 60)]
    found = costs.column_groups(best_layouts(costs, 1.2).layouts, features)
    assert sorted((group.columns, group.masters) for group in found) == [
        (("a", "b"), ("a", "b")),
        (("a", "c"), ("c",)),
        (("d",), ("d",)),
    ]
    assert {group.columns: [feature.weight for feature in group.features] for group in found}["a", "b"] == [5]


def test_vectors_must_keep_rows_without_a_feature_apart() -> None:
    with pytest.raises(ValueError, match="apart"):
        Replicas("abc", HOT, GlobalVectors(CONFLICT, 20))
