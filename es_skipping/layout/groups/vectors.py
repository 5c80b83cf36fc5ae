"""Global feature vectors seen through a group's local features: its blocks, and how many rows they make a query read.

*Skipping-oriented Data Design for Large-Scale Analytics*, section 4.4.3. Exactly: project the vectors on the local
features, cluster, and count the rows of the blocks that the query cannot skip. The *block-based estimate* leaves the
clustering out: it counts on nothing but the vectors that fill a block of their own. The dissertation credits these with
their full blocks; here with all their rows, since the clustering lets no other row in. So the estimate is never below
the exact number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from es_skipping.layout.clustering import Bits, Counts, Reals, cluster
from es_skipping.layout.groups.demands import Demand
from es_skipping.layout.histogram import Histogram

__all__ = ["GlobalVectors", "LocalBlocks"]

_WORD = 62
"""So many bits are packed into an integer."""


@dataclass(frozen=True)
class LocalBlocks:
    """Blocks of rows that were clustered by some of the features.

    Parameters
    ----------
    features
        Numbers of the local features: the columns of ``unions``.
    rows, unions
        Per block: how many rows, and the OR of their local vectors.
    """

    features: tuple[int, ...]
    rows: Counts
    unions: Bits

    @cached_property
    def total(self) -> int:
        """All rows."""
        return int(self.rows.sum())

    def read(self, demands: Sequence[Demand]) -> Reals:
        """How many rows each demand must read: those of the blocks that no feature lets it skip.

        Examples
        --------
        >>> blocks = LocalBlocks((7,), np.array([30, 10]), np.array([[False], [True]]))
        >>> blocks.read([Demand(frozenset("a"), frozenset({7})), Demand(frozenset("a"), frozenset({8}))])
        array([10., 40.])
        """
        place = {feature: at for at, feature in enumerate(self.features)}
        wanted = [frozenset(place[feature] for feature in demand.usable if feature in place) for demand in demands]
        distinct = {some: at for at, some in enumerate(dict.fromkeys(wanted))}
        masks = np.zeros((len(self.features), len(distinct)), np.float32)
        for some, at in distinct.items():
            masks[list(some), at] = 1
        lacking = (~self.unions).astype(np.float32) @ masks > 0
        read: Reals = self.total - self.rows.astype(np.float64) @ lacking
        return read[[distinct[some] for some in wanted]] if wanted else np.zeros(0)


class GlobalVectors:
    """The distinct vectors of a dataset over all features, ready to be projected on some.

    Parameters
    ----------
    histogram
        The rows by their global vector, in coarse partitions; a sample is enough for a design.
    minimum
        Rows of a block.
    apart
        Whether rows that satisfy none of the local features stay apart from the others, as GSOP-R has them.
    """

    def __init__(self, histogram: Histogram, minimum: int, *, apart: bool = False) -> None:
        self._groups = histogram.groups
        self._minimum, self.apart = max(1, minimum), apart
        self.rows = histogram.rows
        self._exact: dict[tuple[tuple[int, ...], tuple[float, ...]], LocalBlocks] = {}
        self._estimates: dict[tuple[tuple[int, ...], tuple[float, ...]], LocalBlocks] = {}
        self._distinct: dict[frozenset[int], int] = {}
        self._most = max(self._groups, key=lambda group: len(group.counts), default=None)

    def distinct(self, features: Sequence[int]) -> int:
        """How many distinct vectors are left of the partition that has most, when only these features count."""
        if self._most is None:
            return 0
        known = frozenset(features)
        if known not in self._distinct:
            self._distinct[known] = len(_reduced(self._most.vectors, self._most.counts, features)[1])
        return self._distinct[known]

    def satisfying(self, features: Sequence[int]) -> int:
        """How many rows satisfy at least one of the features."""
        return sum(int(group.counts[group.vectors[:, list(features)].any(axis=1)].sum()) for group in self._groups)

    def clustered(self, features: tuple[int, ...], weights: tuple[float, ...]) -> LocalBlocks:
        """The blocks of a group with these local features, as `es_skipping.layout.clustering.cluster` makes them."""
        key = features, weights
        if key not in self._exact:
            self._exact[key] = self._blocks(features, weights, estimate=False)
        return self._exact[key]

    def estimated(self, features: tuple[int, ...], weights: tuple[float, ...]) -> LocalBlocks:
        """The blocks that the estimate counts on: what fills none alone is one block with every bit set."""
        key = features, weights
        if key not in self._estimates:
            self._estimates[key] = self._blocks(features, weights, estimate=True)
        return self._estimates[key]

    def _blocks(self, features: tuple[int, ...], weights: tuple[float, ...], estimate: bool) -> LocalBlocks:
        as_array = np.asarray(weights, np.float64)
        rows: list[Counts] = []
        unions: list[Bits] = []
        for group in self._groups:
            vectors, counts = _reduced(group.vectors, group.counts, features)
            if self.apart:
                none: Bits = ~np.asarray(vectors.any(axis=1), bool)
                rows.append(counts[none])
                unions.append(vectors[none])
                vectors, counts = vectors[~none], counts[~none]
            if not len(counts):
                continue
            if estimate:
                light = counts < self._minimum
                few = int(counts[light].sum())
                if few:
                    # Too few for a block, and nothing to merge them with: then the clustering is already known.
                    whole = few >= self._minimum
                    known = np.array([vectors[light].any(axis=0) | whole], bool)
                    vectors = np.concatenate([vectors[~light], known])
                    counts = np.append(counts[~light], few)
                if not 0 < few < self._minimum:
                    rows.append(counts)
                    unions.append(vectors)
                    continue
            made = cluster(vectors, counts, as_array, self._minimum)
            rows.append(made.rows)
            unions.append(made.unions)
        if not rows:
            return LocalBlocks(features, np.zeros(0, np.int64), np.zeros((0, len(features)), bool))
        return LocalBlocks(features, np.concatenate(rows), np.concatenate(unions))


def _reduced(vectors: Bits, counts: Counts, features: Sequence[int]) -> tuple[Bits, Counts]:
    """The distinct vectors over some features, and how many rows have each."""
    some = vectors[:, list(features)]
    if not len(some):
        return some, counts
    label = np.zeros(len(some), np.int64)
    for start in range(0, some.shape[1], _WORD):
        part = some[:, start : start + _WORD].astype(np.int64)
        word = part @ (1 << np.arange(part.shape[1], dtype=np.int64))
        if start == 0:
            label = word
            continue
        before = np.unique(label, return_inverse=True)[1]
        values, after = np.unique(word, return_inverse=True)
        label = before.ravel() * len(values) + after.ravel()
    _, first, place = np.unique(label, return_index=True, return_inverse=True)
    return some[first], np.bincount(place.ravel(), counts, len(first)).astype(np.int64)
