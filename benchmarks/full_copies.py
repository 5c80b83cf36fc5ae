"""*Full copies* (GSOP-FC), to compare GSOP-R with (*Skipping-oriented Data Design*, section 5.3).

The whole table is there several times, each copy in column groups for some of the features.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations

import numpy as np

from es_skipping.layout.clustering import Reals
from es_skipping.layout.groups.demands import Demand, units_of, weights_of
from es_skipping.layout.groups.grouping import Designer, counts_of
from es_skipping.layout.groups.grouping_search import best_grouping
from es_skipping.layout.groups.layouts import Layout
from es_skipping.layout.groups.local_features import DISTINCT
from es_skipping.layout.groups.query_bits import QueryBits
from es_skipping.layout.groups.replication_baselines import whole_layouts
from es_skipping.layout.groups.vectors import GlobalVectors

__all__ = ["clusters_of_features", "full_copies"]


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
    """Features in so many clusters, each of little conflict: of all pairs the one is merged after which queries, each
    at the cluster where it reads least, read fewest cells; again and again."""
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
    """Tells how many rows each demand reads of the whole table clustered by some features, by the estimate."""
    asked = QueryBits.of(demands, range(vectors.features))
    weights = weights_of(demands, frozenset().union(*(demand.columns for demand in demands)))

    def read(cluster: frozenset[int]) -> Reals:
        features = tuple(sorted(cluster, key=lambda feature: (-weights.get(feature, 0), feature)))
        return vectors.estimated(features, tuple(float(weights.get(one, 0)) for one in features)).read_of(asked)

    return read
