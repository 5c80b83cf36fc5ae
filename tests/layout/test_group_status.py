"""What a manifest alone says of a table in column groups, and the picture of a plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from xml.etree import ElementTree

import pytest

from es_skipping.layout.chart import group_chart
from es_skipping.layout.groups.demands import Demand
from es_skipping.layout.groups.group import ColumnGroup
from es_skipping.layout.groups.gsop import GroupPlan
from es_skipping.layout.groups.manifest import Block, GroupManifest, Partition, StoredGroup
from es_skipping.layout.groups.status import GroupStatus, read_share, storage
from es_skipping.workload.mining import Feature
from tests.layout.designs import histogram_of
from tests.layout.shop import SHOES_OR_SHIRTS, above

SCHEMA = {"type": "struct", "fields": [{"name": name} for name in "ab"]}
MANIFEST = GroupManifest(
    SCHEMA,
    "t",
    ("x", "y"),
    (StoredGroup("0", ("a", "b"), ("a", "b"), ("x",)), StoredGroup("1", ("b",), (), ("y",))),
    (
        Partition(
            100,
            (
                (Block("p", 40, True, (0, 1)), Block("q", 60, True, (1,))),
                (Block("p", 30, True, (0, 1)), Block("q", 70, False, ())),
            ),
        ),
    ),
)
"""Two columns of a hundred rows; b a second time, for the 30 rows that satisfy y."""


def test_what_queries_read_follows_from_the_manifest() -> None:
    assert storage(MANIFEST) == pytest.approx(1.15)
    assert read_share(MANIFEST, [demand("ab")]) == 1
    assert read_share(MANIFEST, [demand("a", 0)]) == pytest.approx(0.4), "the block with x, one column, no ids"
    assert read_share(MANIFEST, [demand("b", 1)]) == pytest.approx(0.3), "the replica serves it alone"
    assert read_share(MANIFEST, [demand("b")]) == 1, "the replica lacks 70 rows"
    # Both from the first group, of which nothing is skipped by y, costs less than 100 of a, 30 of b, and ids.
    assert read_share(MANIFEST, [demand("ab", 1)]) == pytest.approx(1)
    assert read_share(MANIFEST, [demand("a", 0), demand("")]) == pytest.approx(0.4)
    assert read_share(MANIFEST, [demand("a", 0), replace(demand("b"), count=3)]) == pytest.approx(0.85)
    # Of a list of both, the first group has one in each block; the replica has all its rows, beside the 70 without.
    assert read_share(MANIFEST, [demand("b", lists=[(0, 1)])]) == pytest.approx(0.3)
    assert read_share(MANIFEST, [demand("a", lists=[(0, 1)])]) == 1
    assert read_share(MANIFEST, [demand("a", lists=[(0,)])]) == pytest.approx(0.4)
    assert GroupManifest.from_json(MANIFEST.to_json(), "here").helped is None


def demand(columns: str, *usable: int, lists: Sequence[tuple[int, ...]] = ()) -> Demand:
    return Demand(frozenset(columns), frozenset(usable), lists=frozenset(map(frozenset, lists)))


def test_new_groups_are_due_when_the_workload_moved_on() -> None:
    def told(**more: float) -> GroupStatus:
        return GroupStatus(2, 4, 1, 100, 1.15, 2, 0, **more)

    assert not told().run_again
    assert not told(helped=0.1).run_again, "made by hand: nothing to compare with"
    assert not told(helped=0.7, designed_for=1).run_again
    due = told(helped=0.6, designed_for=1, read=0.5)
    assert due.run_again
    assert "help 60% of the queries (100% when they were made)" in str(due)
    assert "they read 50.0% of the cells" in str(due)


def test_the_picture_shows_each_column_in_each_group() -> None:
    own = (Feature((above(3),), 4),)
    groups = [
        ColumnGroup(("a", "b"), (Feature((SHOES_OR_SHIRTS,), 5), *own), ("a", "b")),
        ColumnGroup(("b", "c"), own, ("c",)),
        ColumnGroup(("a",), own),
    ]
    drawn = group_chart(groups, [0.5, 0.25, 0.25], {"these groups": 0.25}, "Three < groups")
    titles = {one.text for one in ElementTree.fromstring(drawn).iter("{http://www.w3.org/2000/svg}title")}
    assert titles == {
        "Three < groups",
        "a in group 0: every row",
        "b in group 0: every row",
        "b in group 1: 25.0% of the rows",
        "c in group 1: every row",
        "a in group 2: 25.0% of the rows",
    }
    assert "group 1: columns 2, 1 of them for 25.0% of the rows; features 1" in drawn
    assert "25.0% of the cells are read" in drawn


def test_rows_that_satisfy_one_of_some_features() -> None:
    histogram = histogram_of([{0b00: 60, 0b01: 30, 0b11: 10}], 2)
    assert histogram.satisfied([0]) == pytest.approx(0.4)
    assert histogram.satisfied([1]) == pytest.approx(0.1)
    assert histogram.satisfied([0, 1]) == pytest.approx(0.4)
    assert histogram.satisfied([]) == 0


def test_the_text_of_a_plan_has_replicas_in_parentheses() -> None:
    own = (Feature((above(3),), 4),)
    groups = (ColumnGroup(("a", "b"), own, ("a", "b")), ColumnGroup(("b",), own))
    text = str(GroupPlan(groups, own, ("x > 3",), 100, {"these groups": 0.5}, 1.1))
    assert "group 0: a, b\n" in text
    assert "group 1: (b)\n" in text
    alone = str(GroupPlan((ColumnGroup(("a", "b"), own),), own, ("x > 3",), 100, {}))
    assert "group 0: a, b\n" in alone
