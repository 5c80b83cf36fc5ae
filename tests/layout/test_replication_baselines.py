"""GSOP-SE and GSOP-FC."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.full_copies import clusters_of_features, full_copies
from es_skipping.layout.groups.demands import Demand
from es_skipping.layout.groups.grouping import Designer
from es_skipping.layout.groups.grouping_search import best_grouping
from es_skipping.layout.groups.replication import Replicas
from es_skipping.layout.groups.replication_baselines import selective_replication, whole_layouts
from es_skipping.layout.groups.vectors import GlobalVectors
from es_skipping.layout.histogram import Histogram
from tests.examples import examples
from tests.layout.designs import NAMES, histogram_of, histograms, workloads

CONFLICT = histogram_of([{0b00: 400, 0b01: 200, 0b10: 200, 0b11: 1}], 2)
HOT = [Demand(frozenset("ab"), frozenset({0}), 5), Demand(frozenset("ac"), frozenset({1}), 5)]


def test_full_copies_keep_features_in_conflict_apart() -> None:
    vectors = GlobalVectors(CONFLICT, 300, apart=True)
    layouts = full_copies("abc", HOT, vectors, 2)
    costs = Replicas("abc", HOT, vectors)
    assert costs.storage(layouts) == 2
    assert costs.cost(layouts) == 10 * 2 * 201
    single = full_copies("abc", HOT, vectors, 1)
    assert costs.storage(single) == 1
    assert costs.cost(single) > costs.cost(layouts)


def test_features_of_the_same_rows_are_in_one_cluster() -> None:
    """Features 0 and 1 are satisfied by nearly the same rows, 2 by others."""
    histogram = histogram_of([{0b011: 300, 0b001: 20, 0b100: 300, 0b000: 300}], 3)
    log = [Demand(frozenset("a"), frozenset({feature})) for feature in range(3)]
    found = clusters_of_features(log, GlobalVectors(histogram, 350, apart=True), 2)
    assert sorted(map(sorted, found)) == [[0, 1], [2]]


def test_selective_replication_stores_a_feature_apart_and_the_groups_forget_it() -> None:
    vectors = GlobalVectors(CONFLICT, 300, apart=True)
    costs = Replicas("abc", HOT, vectors)
    grouping = Designer("abc", HOT, vectors).grouping(["abc"])
    layouts = selective_replication(costs, grouping, 1.2)
    replica = next(one for one in layouts if not one.masters)
    (feature,) = replica.features
    assert replica.columns == costs.related[feature]
    assert all(feature not in one.features for one in layouts if one.masters)
    assert costs.cost(layouts) == 10 * 2 * 201
    assert selective_replication(costs, grouping, 1.05) == selective_replication(costs, grouping, 1.0)


@examples(25)
@given(histograms(), workloads(), st.integers(1, 40), st.sampled_from([1.0, 1.3, 2.0]))
def test_baselines_keep_every_cell_and_the_budget(
    histogram: Histogram, log: list[Demand], minimum: int, budget: float
) -> None:
    vectors = GlobalVectors(histogram, minimum, apart=True)
    costs = Replicas(NAMES, log, vectors)
    grouping = best_grouping(Designer(NAMES, log, vectors)).grouping
    selective = selective_replication(costs, grouping, budget)
    assert costs.storage(selective) <= budget
    assert sorted(name for one in selective for name in one.masters) == sorted(NAMES)
    copies = int(budget)
    full = full_copies(NAMES, log, vectors, copies)
    assert costs.storage(full) == pytest.approx(len(full) and sum(len(one.columns) for one in full) / len(NAMES))
    assert costs.storage(full) <= copies
    assert frozenset().union(*(one.masters for one in full)) == frozenset(NAMES)
    assert costs.cost(selective) <= costs.cost(whole_layouts(grouping))
    if copies == 1:
        assert costs.cost(full) == pytest.approx(costs.cost(whole_layouts(grouping)))
