"""The clustering: the dissertation's worked case, and the laws of its result."""

from __future__ import annotations

import time
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from es_skipping.layout.clustering import Bits, Blocks, Counts, Reals, cluster, skipped
from tests.examples import examples

FIGURE = np.array([[0, 1, 0], [0, 0, 1], [0, 0, 0], [1, 1, 0], [0, 1, 1], [1, 0, 0]], bool)
WEIGHTS = np.array([50.0, 20.0, 10.0])
ONES = np.ones(6, np.int64)


def of_rows(*blocks: list[int]) -> float:
    """C of a partitioning of the figure's rows, counted from 1."""
    unions = np.array([FIGURE[[row - 1 for row in block]].any(axis=0) for block in blocks])
    return skipped(np.array([len(block) for block in blocks]), unions, WEIGHTS)


def test_the_objective_on_figure_3_1() -> None:
    assert of_rows([1, 4]) == 20
    assert of_rows([1, 4], [2, 5], [3, 6]) == 180
    assert of_rows([1, 5], [2, 3], [4, 6]) == 260
    assert of_rows([1, 5, 2, 3], [4, 6]) == 220


def test_figure_3_1_is_clustered_as_well_as_can_be() -> None:
    blocks = cluster(FIGURE, ONES, WEIGHTS, minimum=2)
    assert skipped(blocks.rows, blocks.unions, WEIGHTS) == 260
    assert blocks.rows.tolist() == [2, 2, 2]
    together = [{row + 1 for row in range(6) if blocks.first[row] == block} for block in range(3)]
    assert sorted(map(sorted, together)) == [[1, 5], [2, 3], [4, 6]]


@st.composite
def histograms(draw: st.DrawFn) -> tuple[Bits, Counts, Reals, int]:
    features = draw(st.integers(1, 5))
    numbers = draw(st.lists(st.integers(0, 2**features - 1), min_size=1, max_size=14, unique=True))
    vectors = np.array([[number >> bit & 1 for bit in range(features)] for number in numbers], bool)
    counts = np.array(draw(st.lists(st.integers(1, 30), min_size=len(numbers), max_size=len(numbers))), np.int64)
    weights = np.array(draw(st.lists(st.integers(0, 9), min_size=features, max_size=features)), np.float64)
    return vectors, counts, weights, draw(st.integers(1, 20))


@examples(300)
@given(histograms())
def test_every_block_has_its_rows(case: tuple[Bits, Counts, Reals, int]) -> None:
    """[minimum, 2 * minimum) rows in each block (heavy vectors are the dissertation's own pitfall), none lost, and a
    union vector that holds every vector of the block."""
    vectors, counts, weights, minimum = case
    blocks = cluster(vectors, counts, weights, minimum)
    assert blocks.rows.sum() == counts.sum()
    if counts.sum() >= minimum:
        assert blocks.rows.min() >= minimum
        assert blocks.rows.max() < 2 * minimum or minimum == 1
    else:
        assert len(blocks.rows) == 1
    for vector, first, pieces in zip(vectors, blocks.first, blocks.pieces):
        assert pieces >= 1
        for block in range(first, first + pieces):
            assert not (vector & ~blocks.unions[block]).any()
    filled = np.zeros(len(blocks.rows))
    for count, first, pieces in zip(counts, blocks.first, blocks.pieces):
        filled[first : first + pieces] += count / pieces
    assert np.abs(filled - blocks.rows).max() < 1


@examples(200)
@given(histograms())
def test_it_merges_as_the_plain_algorithm_does(case: tuple[Bits, Counts, Reals, int]) -> None:
    vectors, counts, weights, minimum = case
    light = counts < minimum
    vectors, counts = vectors[light], counts[light]
    if not len(counts):
        return
    assert groups(cluster(vectors, counts, weights, minimum)) == plain(vectors, counts, weights, minimum)


def groups(blocks: Blocks) -> list[list[int]]:
    return sorted([int(at) for at in np.flatnonzero(blocks.first == first)] for first in np.unique(blocks.first))


def plain(vectors: Bits, counts: Counts, weights: Reals, minimum: int) -> list[list[int]]:
    """Straight from the text: all pairs, each time."""
    pool = [([at], vector.copy(), int(count)) for at, (vector, count) in enumerate(zip(vectors, counts))]
    done = []

    def cost(a: tuple[list[int], Bits, int], b: tuple[list[int], Bits, int]) -> float:
        return float(a[2] * weights[b[1] & ~a[1]].sum() + b[2] * weights[a[1] & ~b[1]].sum())

    while len(pool) > 1:
        one, other = min(combinations(range(len(pool)), 2), key=lambda pair: (cost(pool[pair[0]], pool[pair[1]]), pair))
        merged = (pool[one][0] + pool[other][0], pool[one][1] | pool[other][1], pool[one][2] + pool[other][2])
        pool[one] = merged
        del pool[other]
        if merged[2] >= minimum:
            done.append(pool.pop(one))
    if pool:
        left = pool[0]
        if not done:
            done.append(left)
        else:
            at = min(range(len(done)), key=lambda at: (cost(done[at], left), at))
            done[at] = (done[at][0] + left[0], done[at][1] | left[1], done[at][2] + left[2])
    return sorted(sorted(members) for members, _, _ in done)


def test_heavy_vectors_stay_alone_and_are_cut() -> None:
    vectors = np.array([[1, 0], [0, 1], [1, 1]], bool)
    blocks = cluster(vectors, np.array([35, 4, 8]), np.array([1.0, 1.0]), minimum=10)
    assert blocks.pieces.tolist() == [3, 1, 1]
    assert sorted(blocks.rows.tolist()) == [11, 12, 12, 12]
    assert blocks.unions[blocks.first[0]].tolist() == [True, False]


def test_ten_thousand_vectors_take_seconds() -> None:
    dice = np.random.default_rng(1)
    vectors = np.unique(dice.random((20_000, 40)) < dice.random(40) * 0.4, axis=0)[:10_000]
    counts = dice.zipf(1.5, len(vectors)).clip(max=2_000).astype(np.int64)
    before = time.process_time()
    blocks = cluster(vectors, counts, dice.integers(1, 100, 40).astype(float), 1_000)
    assert time.process_time() - before < 60
    assert blocks.rows.min() >= 1_000


@pytest.mark.parametrize("minimum", [1, 5, 100])
def test_nothing_and_one_vector(minimum: int) -> None:
    nothing = cluster(np.zeros((0, 3), bool), np.zeros(0, np.int64), WEIGHTS, minimum)
    assert len(nothing.rows) == 0
    assert cluster(FIGURE[:1], np.array([3]), WEIGHTS, minimum).rows.sum() == 3
