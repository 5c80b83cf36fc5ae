"""Features by what they save on the data."""

from __future__ import annotations

import pytest

from es_skipping.layout.features.ranking import by_savings
from es_skipping.workload.mining import Feature, frequent_sets
from tests.layout.shop import LOG, SHOES_OR_SHIRTS, above, product

EQUAL = Feature((above(0),), 100, 0, tuple(range(100)))
REGIONS = [Feature((above(0), product(f"r{at}")), 20, 0, tuple(range(20 * at, 20 * at + 20))) for at in range(5)]


def test_one_feature_that_is_nearly_as_strict_comes_before_five() -> None:
    first, second, *_ = by_savings([*REGIONS, EQUAL], [0.008] * 5 + [0.04], 100, 6)
    assert first.predicates == EQUAL.predicates
    assert first.saved == pytest.approx(96)
    assert second.predicates == REGIONS[0].predicates
    assert second.saved == pytest.approx(20 * 0.032)


def test_what_is_refused_is_passed_over_and_what_saves_nothing_is_left() -> None:
    taken = list(by_savings([EQUAL, *REGIONS], [0.04, 0.04, *[0.5] * 4], 100, 3, lambda one: one is not EQUAL))
    assert [one.predicates for one in taken] == [one.predicates for one in REGIONS[:3]]
    assert list(by_savings([EQUAL], [1.0], 100, 3)) == []
    assert list(by_savings([], [], 100, 3)) == []
    assert [one.saved for one in by_savings([EQUAL, EQUAL], [0.5, 0.5], 100, 3)] == [50]


def test_frequent_sets_are_counted_before_elimination() -> None:
    found = frequent_sets(LOG, 10, min_support=2)
    assert [(set(one.predicates), one.weight) for one in found] == [
        ({SHOES_OR_SHIRTS}, 3),
        ({SHOES_OR_SHIRTS, above(21)}, 2),
    ]
    assert len(frequent_sets(LOG, 1, min_support=2)) == 1
