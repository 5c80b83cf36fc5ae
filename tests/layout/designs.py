"""Random tables and workloads as a design sees them: vectors with counts, and demands."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from es_skipping.layout.groups.demands import Demand
from es_skipping.layout.histogram import Group, Histogram

NAMES = "abcdef"


def histogram_of(partitions: list[dict[int, int]], features: int) -> Histogram:
    """From the counts of each vector, written as a number, in each coarse partition."""
    groups = []
    for number, counted in enumerate(partitions):
        numbers = sorted(counted)
        vectors = np.array([[one >> bit & 1 for bit in range(features)] for one in numbers], bool)
        counts = np.array([counted[one] for one in numbers], np.int64)
        groups.append(Group(number, np.zeros(0, np.int64), vectors.reshape(len(numbers), features), counts))
    return Histogram(tuple(groups), features)


@st.composite
def histograms(draw: st.DrawFn, features: int = 4) -> Histogram:
    partition = st.dictionaries(st.integers(0, 2**features - 1), st.integers(1, 40), min_size=1, max_size=10)
    return histogram_of(draw(st.lists(partition, min_size=1, max_size=3)), features)


def satisfying(histogram: Histogram, demand: Demand) -> int:
    """How many rows have all of a demand's features, and one of each of its lists."""
    found = 0
    for group in histogram.groups:
        kept = group.vectors[:, sorted(demand.usable)].all(axis=1)
        for some in demand.lists:
            kept = kept & group.vectors[:, sorted(some)].any(axis=1)
        found += int(group.counts[kept].sum())
    return found


@st.composite
def workloads(draw: st.DrawFn, features: int = 4, columns: str = NAMES) -> list[Demand]:
    demand = st.builds(
        Demand,
        st.frozensets(st.sampled_from(columns), min_size=1),
        st.frozensets(st.integers(0, features - 1)),
        st.integers(1, 9),
        st.frozensets(st.frozensets(st.integers(0, features - 1), min_size=2), max_size=2),
    )
    return draw(st.lists(demand, min_size=1, max_size=6))
