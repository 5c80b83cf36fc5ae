"""From queries and vectors to column groups and layouts, on the small synthetic workload of the benchmark."""

from __future__ import annotations

import pytest

from benchmarks.gsop_search import COLUMNS, Setting, histogram, table, workload
from es_skipping.layout import mine_features
from es_skipping.layout.design import design_groups, design_layouts
from es_skipping.layout.histogram import Group, Histogram

SETTING = Setting(seed=2, selectivity=0.05, selected=1, skew=0.0, templates=6)
TRAIN, TEST = workload(SETTING, 100, 1), workload(SETTING, 40, 2)
FEATURES = mine_features(TRAIN, 20)
VECTORS = histogram(table(SETTING, 20_000), FEATURES)


def test_groups_read_less_than_either_end_and_the_explanation_says_so() -> None:
    design = design_groups(COLUMNS, FEATURES, TRAIN, TEST, VECTORS, 200)
    assert sorted(name for group in design.groups for name in group.columns) == sorted(COLUMNS)
    assert len(design.groups) > 1
    assert design.storage == 1
    for read in (design.trained, design.tested):
        assert read["GSOP"] < min(read["SOP"], read["one group per column"]) < 1
    text = str(design)
    assert f"{len(design.groups)} column groups, 100% of the table's cells stored" in text
    assert "queries held out: GSOP " in text
    assert text.count(" queries  ") == sum(len(group.features) for group in design.groups)
    assert design.chart().startswith("<svg")
    assert "one group per column" in design.chart()


def test_layouts_spend_storage_within_the_budget_on_reading_less() -> None:
    read = {}
    for budget in (1.0, 1.3):
        design = design_layouts(COLUMNS, FEATURES, TRAIN, TEST, VECTORS, 200, storage_budget=budget)
        assert sorted(name for group in design.groups for name in group.masters) == sorted(COLUMNS)
        assert 1 <= design.storage <= budget + 1e-6
        assert design.trained["GSOP-R"] <= design.trained["GSOP"]
        read[budget] = design.trained["GSOP-R"]
    assert read[1.3] < read[1.0]
    assert "layouts" in str(design)
    assert f"{design.groups[0].masters[0]}*" in str(design)


def test_a_search_looks_at_some_of_many_partitions() -> None:
    (group,) = VECTORS.groups
    many = Histogram(tuple(Group(at, group.keys, group.vectors, group.counts) for at in range(400)), VECTORS.features)
    design = design_groups(COLUMNS, FEATURES, TRAIN, TEST, many, 200)
    looked, there = design.partitions
    assert 1 <= looked < there == 400
    assert design.groups == design_groups(COLUMNS, FEATURES, TRAIN, TEST, VECTORS, 200).groups
    assert design.tested["SOP"] == pytest.approx(
        design_groups(COLUMNS, FEATURES, TRAIN, TEST, VECTORS, 200).tested["SOP"]
    )


def test_without_queries_held_out_nothing_is_told_of_them() -> None:
    design = design_groups(COLUMNS, FEATURES, TRAIN, [], VECTORS, 200)
    assert design.tested == {}
    assert "held out" not in str(design)
