"""From queries and vectors to column groups and layouts, on the small synthetic workload of the benchmark."""

from __future__ import annotations

import time

import pytest

from benchmarks.gsop_search import COLUMNS, Setting, histogram, table, workload
from es_skipping.layout import mine_features
from es_skipping.layout.groups.design import design_groups, design_layouts
from es_skipping.layout.histogram import Group, Histogram

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
