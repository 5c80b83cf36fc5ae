"""Simpler ways to spend storage, to compare GSOP-R with (*Skipping-oriented Data Design*, section 5.3).

*Selective replication* (GSOP-SE) copies, for one feature after another, the rows that satisfy it, of the columns that
its queries read, and the groups of GSOP forget the feature. *Full copies* (GSOP-FC) have the whole table several times,
each copy in column groups for some of the features.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Final

import numpy as np

from es_skipping.layout.clustering import Reals
from es_skipping.layout.groups.demands import Demand, units_of, weights_of
from es_skipping.layout.groups.grouping import Designer, Grouping, counts_of
from es_skipping.layout.groups.grouping_search import best_grouping
from es_skipping.layout.groups.layouts import Layout
from es_skipping.layout.groups.local_features import DISTINCT
from es_skipping.layout.groups.query_bits import QueryBits
from es_skipping.layout.groups.replication import Replicas
from es_skipping.layout.groups.vectors import GlobalVectors

__all__ = ["clusters_of_features", "full_copies", "selective_replication", "whole_layouts"]

_CLUSTERED_CANDIDATES: Final = 3
"""Number of the best-looking features that are clustered before one is chosen."""


def whole_layouts(grouping: Grouping) -> tuple[Layout, ...]:
    """Column groups as layouts that hold every row."""
    return tuple(Layout(group.columns, frozenset(group.features), group.columns) for group in grouping.groups)


def selective_replication(replicas: Replicas, grouping: Grouping, budget: float) -> tuple[Layout, ...]:
    """GSOP-SE: repeatedly replicate the feature (or family) that reduces the workload's reads most, within the
    budget."""
    layouts = whole_layouts(grouping)
    cost = replicas.cost(layouts)
    left = list(replicas.units)
    while left:
        ideas = []
        for at, unit in enumerate(left):
            forgetful = (replace(one, features=one.features - unit) if one.masters else one for one in layouts)
            columns = frozenset().union(*(replicas.related[feature] for feature in unit))
            idea = (*forgetful, Layout(columns, unit))
            if replicas.storage(idea) <= budget:
                rough = frozenset(idea).difference(layouts)
                ideas.append((replicas.total(replicas.costs(idea, rough)), at, idea))
        likely = sorted(ideas, key=lambda one: one[:2])[:_CLUSTERED_CANDIDATES]
        tried = [(replicas.cost(idea), at, idea) for _, at, idea in likely]
        if not tried or min(tried)[0] >= cost:
            break
        cost, at, layouts = min(tried, key=lambda one: one[:2])
        del left[at]
    return layouts


def full_copies(
    columns: Sequence[str], demands: Sequence[Demand], vectors: GlobalVectors, copies: int, *, distinct: int = DISTINCT
) -> tuple[Layout, ...]:
    """GSOP-FC: column groups of each copy, for its own cluster of features and the queries that read least there.

    Queries that no feature subsumes, or several of different clusters, go where fewest rows are read, which the
    dissertation leaves open.
    """
    clusters = clusters_of_features(demands, vectors, copies)
    read = list(map(_reader(demands, vectors), clusters))
    goes = np.argmin(read, axis=0) if read else np.zeros(len(demands), np.int64)
    layouts: list[Layout] = []
    for number, cluster in enumerate(clusters or [frozenset()]):
        own = [demand.within(cluster) for demand, at in zip(demands, goes) if at == number]
        layouts += whole_layouts(best_grouping(Designer(columns, own, vectors, distinct=distinct)).grouping)
    return tuple(layouts)


def clusters_of_features(demands: Sequence[Demand], vectors: GlobalVectors, number: int) -> list[frozenset[int]]:
    """Cluster the features into this many clusters with little conflict. Each step merges the pair after which queries
    read fewest cells, each query in its cheapest cluster."""
    read = _reader(demands, vectors)
    cells = counts_of(demands) * np.array([len(demand.columns) for demand in demands], np.float64)
    clusters = list(units_of(demands))
    known = {cluster: read(cluster) for cluster in clusters}

    def cost(pair: tuple[frozenset[int], frozenset[int]]) -> float:
        both = pair[0] | pair[1]
        if both not in known:
            known[both] = read(both)
        rest = [known[cluster] for cluster in clusters if cluster not in pair]
        return float(cells @ np.min([known[both], *rest], axis=0))

    while len(clusters) > max(1, number):
        one, other = min(combinations(clusters, 2), key=cost)
        clusters = [one | other if cluster == one else cluster for cluster in clusters if cluster != other]
    return clusters


def _reader(demands: Sequence[Demand], vectors: GlobalVectors) -> Callable[[frozenset[int]], Reals]:
    """The estimate of the rows that each demand reads from the whole table, clustered by some features."""
    asked = QueryBits.of(demands, range(vectors.features))
    weights = weights_of(demands, frozenset().union(*(demand.columns for demand in demands)))

    def read(cluster: frozenset[int]) -> Reals:
        features = tuple(sorted(cluster, key=lambda feature: (-weights.get(feature, 0), feature)))
        return vectors.estimated(features, tuple(float(weights.get(one, 0)) for one in features)).read_of(asked)

    return read
