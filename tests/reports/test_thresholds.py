"""The threshold of a `Hybrid`, by the paper's inequality."""

from __future__ import annotations

import math

import pytest

from es_skipping.predicates.tree import And, Column, Comparison, IsIn, Literal
from es_skipping.predicates.types import DataType
from es_skipping.reports.asked_queries import AskedQuery
from es_skipping.reports.candidates import ALL, for_dataset, index_candidates
from es_skipping.reports.thresholds import hybrid_threshold, value_bytes

TEXT = Column(("s",), DataType("string"))
NUMBER = Column(("n",), DataType("int"))


def scanned(objects: float, values: int, width: float, rate: float) -> tuple[float, float]:
    """Bits that a query scans on average with a list of values, and with a Bloom filter."""
    read = 0.01 * objects
    bloom = -values * math.log(rate) / math.log(2) ** 2 + read + 0.99 * rate * objects
    return values * width + read, bloom


@pytest.mark.parametrize(("bytes", "width"), [(64_000_000, 64), (1_000_000, 8), (200_000, 30)])
def test_a_list_costs_less_up_to_the_threshold(bytes: int, width: int) -> None:
    threshold = hybrid_threshold(bytes, width, 0.01)
    for values, better in ((threshold, True), (threshold + 1, False)):
        listed, bloom = scanned(8 * bytes, values, 8 * width, 0.01)
        assert (listed < bloom) is better


def test_small_values_are_always_listed() -> None:
    assert hybrid_threshold(10, 1, 0.01) == 1_000_000
    assert hybrid_threshold(10, 64, 0.01) == 1


def test_the_width_of_a_value() -> None:
    short, long = Literal("ab", TEXT.type), ("abcd", "äöü")
    filters = [And((Comparison("=", TEXT, short), Comparison("=", NUMBER, Literal(3, NUMBER.type)))), IsIn(TEXT, long)]
    assert value_bytes(TEXT, filters) == pytest.approx((2 + 4 + 6) / 3)
    assert value_bytes(TEXT, filters[2:]) == 16
    assert value_bytes(NUMBER, filters) == 4


def test_candidates_have_the_datasets_threshold() -> None:
    predicate = Comparison("=", NUMBER, Literal(3, NUMBER.type))
    grid = for_dataset(ALL, 1_000_000, [AskedQuery(predicate, 1.0)])
    expected = f"Hybrid(n, threshold={hybrid_threshold(1_000_000, 4, 0.01)})"
    assert expected in [str(index) for index in index_candidates(predicate, grid)]
