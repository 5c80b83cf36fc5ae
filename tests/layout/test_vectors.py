"""How many rows a group's blocks make a query read: exactly, and by the estimate."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from es_skipping.layout.clustering import cluster
from es_skipping.layout.groups.demands import Demand
from es_skipping.layout.groups.query_bits import QueryBits
from es_skipping.layout.groups.vectors import GlobalVectors, LocalBlocks
from es_skipping.layout.histogram import Histogram
from tests.examples import examples
from tests.layout.designs import histogram_of, histograms, satisfying

SETS = [frozenset(bit for bit in range(4) if mask >> bit & 1) for mask in range(16)]
EVERY = [Demand(frozenset("a"), usable) for usable in SETS]
EVERY += [Demand(frozenset("a"), frozenset(), lists=frozenset({some})) for some in SETS if len(some) > 1]
EVERY += [Demand(frozenset("a"), frozenset({3}), lists=frozenset({SETS[3], SETS[6]}))]
FEATURES = st.lists(st.integers(0, 3), unique=True).map(tuple)


@examples(400)
@given(histograms(), FEATURES, st.lists(st.integers(1, 9), min_size=4, max_size=4), st.integers(1, 50), st.booleans())
def test_the_estimate_is_never_below_the_exact_number(
    histogram: Histogram, features: tuple[int, ...], weights: list[int], minimum: int, apart: bool
) -> None:
    vectors = GlobalVectors(histogram, minimum, apart=apart)
    local = tuple(float(weights[feature]) for feature in features)
    exact, estimate = vectors.clustered(features, local), vectors.estimated(features, local)
    assert exact.total == estimate.total == histogram.rows
    assert (exact.read(EVERY) <= estimate.read(EVERY)).all()
    # No block may drop the rows that have all local features of a demand and one of each local list.
    wanted = np.array([satisfying(histogram, demand.within(features)) for demand in EVERY])
    assert (wanted <= exact.read(EVERY)).all(), "a row that the query wants is not read"
    known = QueryBits.of(EVERY, range(4))
    assert exact.read_of(known).tolist() == exact.read(EVERY).tolist()
    helped = [demand.helped_by(features) for demand in EVERY]
    assert known.helped_by(features).tolist() == helped


def test_a_list_is_helped_only_where_all_its_features_are_local() -> None:
    """Of three blocks one has a value of the list, one another value, one none at all."""
    query = [Demand(frozenset("a"), frozenset(), lists=frozenset({frozenset({1, 2})}))]
    blocks = [[True, False, False], [False, False, True], [False, False, False]]
    assert LocalBlocks((1, 2, 3), np.array([10, 20, 30]), np.array(blocks)).read(query).tolist() == [10]
    assert LocalBlocks((1, 3), np.array([10, 20, 30]), np.array(blocks)[:, [0, 2]]).read(query).tolist() == [60]


def test_the_estimate_counts_on_vectors_that_fill_a_block_only() -> None:
    """Of 100 rows 55 lack the feature in one vector and 8 in another: with blocks of 20 rows, 55 are surely skipped."""
    vectors = GlobalVectors(histogram_of([{0b00: 55, 0b10: 8, 0b01: 37}], 2), 20)
    query = [Demand(frozenset("a"), frozenset({0})), Demand(frozenset("a"), frozenset())]
    # The eight are too few for a block, so it is known that they join one: here the one that they cost least.
    assert vectors.estimated((0, 1), (1.0, 1.0)).read(query).tolist() == [45, 100]
    assert vectors.clustered((0, 1), (1.0, 1.0)).read(query).tolist() == [45, 100]
    assert vectors.clustered((0,), (1.0,)).read(query).tolist() == [37, 100]
    assert vectors.clustered((), ()).read(query).tolist() == [100, 100]


def test_what_is_left_over_spoils_no_vector_that_fills_blocks() -> None:
    """It would cost least with the 30 rows; but these would then be read for every feature of the leftover."""
    bits = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], bool)
    blocks = cluster(bits, np.array([30, 7, 7, 2]), np.array([9.0, 9.0, 1.0]), 10)
    assert not blocks.unions[blocks.first[0]].any()
    assert blocks.first[1] == blocks.first[2] == blocks.first[3]


def test_rows_without_a_feature_stay_apart_if_they_must() -> None:
    histogram = histogram_of([{0b00: 3, 0b10: 8, 0b01: 9}], 2)
    query = [Demand(frozenset("a"), frozenset({0}))]
    assert GlobalVectors(histogram, 50).clustered((0, 1), (1.0, 1.0)).read(query).tolist() == [20]
    assert GlobalVectors(histogram, 50, apart=True).clustered((0, 1), (1.0, 1.0)).read(query).tolist() == [17]


@examples(100)
@given(histograms(), FEATURES)
def test_counts_of_vectors_and_rows(histogram: Histogram, features: tuple[int, ...]) -> None:
    vectors = GlobalVectors(histogram, 5)
    most = max(histogram.groups, key=lambda group: len(group.counts))
    assert vectors.distinct(features) == len({tuple(vector[list(features)]) for vector in most.vectors})
    rows = sum(
        int(count)
        for group in histogram.groups
        for vector, count in zip(group.vectors, group.counts)
        if vector[list(features)].any()
    )
    assert vectors.satisfying(features) == rows


def test_more_features_than_an_integer_has_bits() -> None:
    """Vectors that differ in the last of 130 features only."""
    dice = np.random.default_rng(3)
    counted = {int(number) | (at & 1) << 129: 1 for at, number in enumerate(dice.integers(0, 2**60, 50))}
    everything = GlobalVectors(histogram_of([counted | {0: 1, 1 << 129: 1}], 130), 5)
    assert everything.distinct(range(130)) == len(set(counted) | {0, 1 << 129})
    assert everything.distinct([129]) == 2


def test_no_rows_at_all() -> None:
    nothing = GlobalVectors(Histogram((), 2), 5)
    assert nothing.distinct([0]) == nothing.satisfying([0]) == nothing.clustered((0,), (1.0,)).total == 0
    assert LocalBlocks((0,), np.array([4]), np.array([[True]])).read([]).tolist() == []
