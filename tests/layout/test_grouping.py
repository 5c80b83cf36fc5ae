"""Column groups: the dissertation's worked cases, local features, the search, and the groupings it is compared with."""

from __future__ import annotations

from itertools import combinations, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.vertical import hill_climbing, primary_partitions
from es_skipping.layout.groups.demands import Demand, demands_of, related_columns, weights_of
from es_skipping.layout.groups.grouping import Designer
from es_skipping.layout.groups.grouping_search import best_grouping, grouping_of, read_alike
from es_skipping.layout.groups.local_features import local_features
from es_skipping.layout.groups.vectors import GlobalVectors
from es_skipping.layout.groups.vertical import one_for_all, one_per_column
from es_skipping.layout.histogram import Histogram
from es_skipping.workload.mining import Feature
from es_skipping.workload.queries import Query
from tests.examples import examples
from tests.layout.designs import NAMES, histogram_of, histograms, workloads
from tests.layout.shop import LOG, SHOES_OR_SHIRTS, above


def demand(columns: str, *usable: int, count: int = 1) -> Demand:
    return Demand(frozenset(columns), frozenset(usable), count)


def test_queries_that_are_alike_are_one_demand() -> None:
    features = [Feature((SHOES_OR_SHIRTS,)), Feature((above(21),))]
    log = [*(Query(query.predicate, columns=("product", "price", "gone")) for query in LOG), Query(above(50))]
    assert demands_of(log, features, ["product", "price", "revenue"]) == (
        Demand(frozenset({"product", "price"}), frozenset({0})),
        Demand(frozenset({"product", "price"}), frozenset({0, 1}), 2),
        Demand(frozenset({"product", "price", "revenue"}), frozenset({1})),
    )


def test_a_feature_weighs_what_it_weighs_for_the_readers_of_a_group() -> None:
    log = [demand("ab", 0, count=3), demand("bc", 0, 1), demand("c", 2)]
    assert weights_of(log, "a") == {0: 3}
    assert weights_of(log, "b") == {0: 4, 1: 1}
    assert weights_of(log, "abc") == {0: 4, 1: 1, 2: 1}
    assert related_columns(log) == {0: frozenset("abc"), 1: frozenset("bc"), 2: frozenset("c")}


def test_local_features_are_the_heaviest_within_the_target() -> None:
    weights = {feature: 100 - feature for feature in range(20)}
    asked = []

    def distinct(some: object) -> int:
        asked.append(len(some))  # type: ignore[arg-type]
        return 2 ** asked[-1]

    assert local_features(weights, distinct, target=3_000) == tuple(range(11))
    assert len(asked) <= 6, "it is a binary search"
    assert local_features(weights, distinct, target=1) == (0,)
    assert local_features(weights, lambda some: 7, target=3_000) == tuple(range(20))
    assert local_features({}, distinct) == ()


def test_a_query_over_two_groups_reads_cells_and_ids_of_both() -> None:
    """Section 5.2's example: c1's blocks know nothing of the query's feature, of c2's two blocks one is skipped."""
    from es_skipping.layout.groups.grouping import Grouping, PlannedGroup

    histogram = histogram_of([{0: 2, 1: 2}], 1)
    vectors = GlobalVectors(histogram, 2)
    groups = (
        PlannedGroup(frozenset({"c1"}), (), vectors.clustered((), ())),
        PlannedGroup(frozenset({"c2"}), (1,), vectors.clustered((0,), (1.0,))),
    )
    query = [Demand(frozenset({"c1", "c2"}), frozenset({0}))]
    cost = Grouping(groups).cost(query, assembly=0.5)
    assert (cost.cells, cost.ids, cost.read) == (4 + 2, 4 + 2, 12)
    assert cost.assembly == 0.5 * (4 * 2 + 2 * 1)
    assert cost.total == 17
    alone = Grouping(groups).cost([Demand(frozenset({"c2"}), frozenset({0}), 10)])
    assert (alone.cells, alone.ids, alone.assembly) == (20, 0, 0)


def test_a_query_pays_for_its_readers() -> None:
    """One group: a reader for each file. Several: a reader for each block."""
    from es_skipping.layout.groups.grouping import Grouping, PlannedGroup

    vectors = GlobalVectors(histogram_of([{0: 2, 1: 2}, {0: 2, 1: 2}], 1), 2)
    groups = (
        PlannedGroup(frozenset({"c1"}), (), vectors.clustered((), ())),
        PlannedGroup(frozenset({"c2"}), (1,), vectors.clustered((0,), (1.0,))),
    )
    assert [(len(group.blocks.rows), group.blocks.files) for group in groups] == [(4, 2), (4, 2)]
    for columns, wanted, readers in (
        ("c1", {0}, 2),
        ("c2", {0}, 2),
        ("c2", (), 2),
        ("c1 c2", (), 4 + 4),
        ("c1 c2", {0}, 4 + 2),
    ):
        query = [Demand(frozenset(columns.split()), frozenset(wanted), 10)]
        cost = Grouping(groups).cost(query, opening=1_000)
        assert cost.openings == 10 * readers * 1_000
        assert cost.total == Grouping(groups).cost(query).total + cost.openings


def test_dear_readers_make_fewer_groups() -> None:
    """Apart, the columns of two groups are read for fewer rows; in one group, a query of all needs one reader."""
    log = [demand("ab", 0, count=50), demand("cd", 1, count=50), demand("abcd")]
    designer = Designer("abcd", log, GlobalVectors(CONFLICT, 200))
    assert len(best_grouping(designer).grouping.groups) == 2
    assert len(best_grouping(designer, opening=1_000_000).grouping.groups) == 1
    assert grouping_of(designer, ["ab", "cd"], opening=1e6).cost(log, opening=1e6).openings > 1e6


CONFLICT = histogram_of([{0b00: 400, 0b01: 200, 0b10: 200, 0b11: 1}], 2)


def test_columns_that_are_read_together_share_a_group_and_others_their_own_order() -> None:
    """Half of the queries want feature 0 of a and b, half feature 1 of c and d: in one group they would conflict."""
    log = [demand("ab", 0, count=5), demand("cd", 1, count=5)]
    found = best_grouping(Designer("abcde", log, GlobalVectors(CONFLICT, 200)))
    groups = {group.columns: group.features for group in found.grouping.groups}
    assert {columns - {"e"} for columns in groups} - {frozenset()} == {frozenset("ab"), frozenset("cd")}
    assert groups[next(columns for columns in groups if "a" in columns)] == (0,)
    assert found.cost.ids == 0


def test_column_groups_have_the_tables_order_and_local_weights() -> None:
    log = [demand("ac", 0, 1, count=5), demand("b", 1)]
    features = [Feature((SHOES_OR_SHIRTS,), 50), Feature((above(21),), 60)]
    designer = Designer("abc", log, GlobalVectors(CONFLICT, 200))
    one, two = designer.grouping([["b"], ["c", "a"]]).column_groups("abc", features)
    assert (one.columns, two.columns) == (("a", "c"), ("b",))
    assert [(feature.predicates, feature.weight) for feature in one.features] == [
        ((SHOES_OR_SHIRTS,), 5),
        ((above(21),), 5),
    ]
    assert [feature.weight for feature in two.features] == [1]
    assert one.masters == ()


@pytest.mark.parametrize("wrong", [[["a"]], [["a", "b"], ["b", "c"]], [["a", "b", "c", "d"]]])
def test_groups_must_be_disjoint_and_complete(wrong: list[list[str]]) -> None:
    with pytest.raises(ValueError, match="each of the columns"):
        Designer("abc", [demand("a")], GlobalVectors(CONFLICT, 200)).grouping(wrong)


@examples(60)
@given(histograms(), workloads(), st.integers(1, 40), st.sampled_from(["estimate", "exact"]))
def test_the_scheme_found_is_the_cheapest_on_the_way_and_no_worse_than_either_end(
    histogram: Histogram, log: list[Demand], minimum: int, rows: str
) -> None:
    designer = Designer(NAMES, log, GlobalVectors(histogram, minimum))
    found = best_grouping(designer, rows=rows)  # type: ignore[arg-type]
    assert sorted(name for group in found.grouping.groups for name in group.columns) == sorted(NAMES)
    for step in found.steps:
        assert found.planner.grouping(step.groups).cost(log).total == pytest.approx(step.cost)
    assert found.cost.total == pytest.approx(min(step.cost for step in found.steps))
    assert len(found.steps[-1].groups) == 1
    for end in (one_per_column(NAMES), one_for_all(NAMES)):
        assert found.cost.total <= grouping_of(designer, end).cost(log).total * (1 + 1e-9)


@examples(40)
@given(histograms(), workloads(columns="abcd"), st.integers(1, 40))
def test_one_step_is_the_cheapest_merger(histogram: Histogram, log: list[Demand], minimum: int) -> None:
    """With exact numbers, cached terms give what computing the whole cost afresh gives."""
    designer = Designer("abcd", log, GlobalVectors(histogram, minimum))
    found = best_grouping(designer, rows="exact")
    for before, after in pairwise(found.steps):
        others = []
        for one, other in combinations(before.groups, 2):
            merged = [group for group in before.groups if group not in (one, other)] + [one | other]
            others.append(found.planner.grouping(merged).cost(log).total)
        assert after.cost == pytest.approx(min(others))


@examples(100)
@given(workloads())
def test_what_vertical_partitioning_chooses_is_a_grouping(log: list[Demand]) -> None:
    for groups in (hill_climbing(NAMES, log), primary_partitions(NAMES, log), read_alike(NAMES, log)):
        assert sorted(name for group in groups for name in group) == sorted(NAMES)
    for alike in read_alike(NAMES, log):
        assert any(alike <= group for group in primary_partitions(NAMES, log))


def test_vertical_partitioning_looks_at_co_access_only() -> None:
    """a and b are read together, so they are merged, whatever their features say."""
    log = [demand("ab", 0, count=9), demand("cd", 1, count=9), demand("a", 1)]
    for groups in (hill_climbing("abcd", log), primary_partitions("abcd", log)):
        assert sorted(map(sorted, groups)) == [["a", "b"], ["c", "d"]]
    rarely = [demand("ab", count=1), demand("a", count=9)]
    assert hill_climbing("ab", rarely) == primary_partitions("ab", rarely) == [frozenset("a"), frozenset("b")]
