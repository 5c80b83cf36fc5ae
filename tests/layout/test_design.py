"""From queries and vectors to column groups and layouts, on the small synthetic workload of the benchmark."""

from __future__ import annotations

import time
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.gsop_search import COLUMNS, Setting, histogram, table, workload
from es_skipping.layout import mine_features
from es_skipping.layout.groups.demands import Demand, demands_of
from es_skipping.layout.groups.design import design_groups, design_layouts, layouts_by_budget, layouts_within
from es_skipping.layout.groups.grouping import Designer
from es_skipping.layout.groups.grouping_search import best_grouping
from es_skipping.layout.groups.replication import Replicas
from es_skipping.layout.groups.vectors import GlobalVectors
from es_skipping.layout.histogram import Group, Histogram
from tests.examples import examples
from tests.layout.designs import NAMES, histograms, workloads

SETTING = Setting(seed=2, selectivity=0.05, selected=1, skew=0.0, templates=6)
TRAIN, TEST = workload(SETTING, 100, 1), workload(SETTING, 40, 2)
FEATURES = mine_features(TRAIN, 20)
VECTORS = histogram(table(SETTING, 20_000), FEATURES)


def test_groups_read_less_than_either_end() -> None:
    design = design_groups(COLUMNS, FEATURES, TRAIN, TEST, VECTORS, 200)
    assert sorted(name for group in design.groups for name in group.columns) == sorted(COLUMNS)
    assert len(design.groups) > 1
    assert design.storage == 1
    mine, *ends = design.read.values()
    assert mine == design.read["these groups"] < min(ends) < 1


def test_layouts_spend_storage_within_the_budget_on_reading_less() -> None:
    read = {}
    for budget in (1.0, 1.3):
        design = design_layouts(COLUMNS, FEATURES, TRAIN, TRAIN, VECTORS, 200, storage_budget=budget)
        assert sorted(name for group in design.groups for name in group.masters) == sorted(COLUMNS)
        assert 1 <= design.storage <= budget + 1e-6
        assert design.read["these groups"] <= design.read["GSOP's groups"]
        read[budget] = design.read["these groups"]
    assert read[1.3] < read[1.0]


MISLED = Setting(seed=51, selectivity=0.05, selected=3, skew=0.5, templates=8)
"""With a budget of 1.5, no search by itself finds what costs less and fits into 1.2."""


def budgeted(
    columns: Sequence[str], demands: Sequence[Demand], counted: Histogram, min_rows: int, budgets: Sequence[float]
) -> list[float]:
    """What the workload reads of the layouts for each budget; a budget alone is given what it is given among others."""
    vectors = GlobalVectors(counted, min_rows, apart=True)
    replicas = Replicas(columns, demands, vectors)
    grouping = best_grouping(Designer(columns, demands, vectors)).grouping
    costs = []
    for budget, found in layouts_by_budget(replicas, grouping, budgets):
        assert sorted(name for one in found.layouts for name in one.masters) == sorted(columns)
        assert replicas.storage(found.layouts) <= budget + 1e-6
        assert found.cost == pytest.approx(replicas.cost(found.layouts, demands))
        costs.append(found.cost)
    assert layouts_within(replicas, grouping, budgets[-1]).cost == pytest.approx(costs[-1])
    return costs


def test_more_storage_does_not_mislead_the_search() -> None:
    names = tuple(f"c{at}" for at in range(14))
    queries = workload(MISLED, 100, MISLED.seed, names)
    mined = mine_features(queries, 16)
    demands = demands_of(queries, mined, names)
    costs = budgeted(names, demands, histogram(table(MISLED, 4_000, names), mined), 40, (1.1, 1.2, 1.5, 2.0))
    assert costs == sorted(costs, reverse=True)
    assert costs[-1] < costs[0]


@examples(15)
@given(histograms(), workloads(), st.integers(1, 40))
def test_a_larger_budget_never_costs_more(counted: Histogram, log: list[Demand], minimum: int) -> None:
    costs = budgeted(NAMES, log, counted, minimum, (1.1, 1.2, 1.5, 2.0))
    assert costs == sorted(costs, reverse=True)


def test_a_search_looks_at_some_of_many_partitions() -> None:
    (group,) = VECTORS.groups
    many = Histogram(tuple(Group(at, group.keys, group.vectors, group.counts) for at in range(400)), VECTORS.features)
    before = time.process_time()
    one = design_groups(COLUMNS, FEATURES, TRAIN, TEST, VECTORS, 200)
    alone = time.process_time() - before
    design = design_groups(COLUMNS, FEATURES, TRAIN, TEST, many, 200)
    assert time.process_time() - before < 100 * alone
    assert design.groups == one.groups
    assert design.read == pytest.approx(one.read)


def test_without_test_queries_nothing_is_read() -> None:
    assert set(design_groups(COLUMNS, FEATURES, TRAIN, [], VECTORS, 200).read.values()) == {0.0}
