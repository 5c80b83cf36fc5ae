"""Global feature vectors restricted to a group's local features: its blocks, and the rows that a query must read.

*Skipping-oriented Data Design for Large-Scale Analytics*, section 4.4.3. Exactly: project the vectors on the local
features, cluster, and count the rows of the blocks that the query cannot skip. The *block-based estimate* does without
clustering: it only considers vectors that fill a block of their own. The dissertation credits these with their full
blocks, this module with all their rows, because the clustering adds no other row. So the estimate is never below the
exact number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from es_skipping.layout.clustering import Bits, Counts, Reals, cluster
from es_skipping.layout.groups.demands import Demand
from es_skipping.layout.groups.query_bits import QueryBits, share_a_bit
from es_skipping.layout.histogram import Histogram

__all__ = ["GlobalVectors", "LocalBlocks"]

_WORD = 62
"""Bits packed into an integer."""
_MIX = np.int64(0x1E3779B97F4A7C15)


@dataclass(frozen=True)
class LocalBlocks:
    """Blocks of rows that were clustered by some of the features.

    Parameters
    ----------
    features
        Numbers of the local features: the columns of ``unions``.
    rows, unions
        Per block: its number of rows, and the OR of their local vectors.
    files
        Number of packed files that hold the blocks.
    """

    features: tuple[int, ...]
    rows: Counts
    unions: Bits
    files: int = 1

    @cached_property
    def total(self) -> int:
        """All rows."""
        return int(self.rows.sum())

    def read(self, demands: Sequence[Demand]) -> Reals:
        """The number of rows that each demand must read: those of the blocks that no feature skips.

        Examples
        --------
        >>> blocks = LocalBlocks((7,), np.array([30, 10]), np.array([[False], [True]]))
        >>> blocks.read([Demand(frozenset("a"), frozenset({7})), Demand(frozenset("a"), frozenset({8}))])
        array([10., 40.])
        """
        return self._read(QueryBits.of(demands, self.features), self.rows)

    def read_of(self, asked: QueryBits) -> Reals:
        """Like `read`, for demands as bit tables over all features."""
        return self._read(asked.of_features(self.features), self.rows)

    def opened_of(self, asked: QueryBits) -> Reals:
        """The number of blocks that each demand must open.

        Examples
        --------
        >>> blocks = LocalBlocks((0,), np.array([30, 10]), np.array([[False], [True]]))
        >>> demands = [Demand(frozenset("a"), frozenset({0})), Demand(frozenset("a"), frozenset())]
        >>> blocks.opened_of(QueryBits.of(demands, range(1)))
        array([1., 2.])
        """
        return self._read(asked.of_features(self.features), np.ones(len(self.rows), np.int64))

    def _read(self, asked: QueryBits, amounts: Counts) -> Reals:
        """The sum of the amounts of the blocks that no feature skips."""
        usable, total = asked.wanted, int(amounts.sum())
        if not usable.size:
            return np.full(len(usable), float(total))
        unions = asked.seen(self.unions)
        # Many demands are equal here: they differ only in columns, or in features that this group lacks.
        packed = np.ascontiguousarray(np.packbits(usable, axis=1))
        alike = packed.view([("", f"V{packed.shape[1]}")]).ravel()
        _, first, which = np.unique(alike, return_index=True, return_inverse=True)
        lacking = share_a_bit(~unions, usable[first])
        read: Reals = total - amounts.astype(np.float64) @ lacking
        return read[which.ravel()]


class GlobalVectors:
    """The distinct vectors of a dataset over all features, ready for projection on some.

    Parameters
    ----------
    histogram
        The rows by their global vector, in coarse partitions; a sample is enough for a design.
    minimum
        Rows of a block.
    apart
        Whether rows that satisfy none of the local features get separate blocks, as in GSOP-R.
    """

    def __init__(self, histogram: Histogram, minimum: int, *, apart: bool = False) -> None:
        self._groups = [_Packed.of(group.vectors, group.counts) for group in histogram.groups]
        self._minimum, self.apart = max(1, minimum), apart
        self.rows, self.features = histogram.rows, histogram.features
        self._exact: dict[tuple[tuple[int, ...], tuple[float, ...]], LocalBlocks] = {}
        self._estimates: dict[tuple[frozenset[int], tuple[float, ...]], LocalBlocks] = {}
        self._distinct: dict[frozenset[int], int] = {}
        self._most = max(self._groups, key=lambda group: len(group.counts), default=None)

    def distinct(self, features: Sequence[int]) -> int:
        """The largest number of distinct vectors in a partition, over only these features."""
        if self._most is None:
            return 0
        known = frozenset(features)
        if known not in self._distinct:
            self._distinct[known] = len(self._most.starts(features)[1])
        return self._distinct[known]

    def satisfying(self, features: Sequence[int]) -> int:
        """Number of rows that satisfy at least one of the features."""
        return sum(group.satisfying(features) for group in self._groups)

    def clustered(self, features: tuple[int, ...], weights: tuple[float, ...]) -> LocalBlocks:
        """The blocks of a group with these local features, as `es_skipping.layout.clustering.cluster` makes them."""
        key = features, weights
        if key not in self._exact:
            self._exact[key] = self._blocks(features, weights)
        return self._exact[key]

    def estimated(self, features: tuple[int, ...], weights: tuple[float, ...]) -> LocalBlocks:
        """The blocks of the estimate: vectors that do not fill a block form one block with every bit set."""
        some = frozenset(features)
        for key in ((some, ()), (some, weights)):
            if key in self._estimates:
                return self._estimates[key]
        found, weighed = self._estimate(features, weights)
        self._estimates[some, weights if weighed else ()] = found
        return found

    def _blocks(self, features: tuple[int, ...], weights: tuple[float, ...]) -> LocalBlocks:
        as_array = np.asarray(weights, np.float64)
        parts = _Parts(features)
        for group in self._groups:
            vectors, counts = self._split(group, features, parts)
            if len(counts):
                made = cluster(vectors, counts, as_array, self._minimum)
                parts.add(made.rows, made.unions)
        return parts.blocks()

    def _estimate(self, features: tuple[int, ...], weights: tuple[float, ...]) -> tuple[LocalBlocks, bool]:
        """The estimate, and whether it depends on the weights."""
        parts, weighed = _Parts(features), False
        for group in self._groups:
            vectors, counts = self._split(group, features, parts)
            light = counts < self._minimum
            few = int(counts[light].sum())
            if few:
                # Too few rows for a block and nothing to merge with: the clustering is already known.
                whole = few >= self._minimum
                known = np.array([vectors[light].any(axis=0) | whole], bool)
                vectors, counts = np.concatenate([vectors[~light], known]), np.append(counts[~light], few)
            if 0 < few < self._minimum:
                made = cluster(vectors, counts, np.asarray(weights, np.float64), self._minimum)
                vectors, counts, weighed = made.unions, made.rows, True
            parts.add(counts, vectors)
        return parts.blocks(), weighed

    def _split(self, group: _Packed, features: Sequence[int], parts: _Parts) -> tuple[Bits, Counts]:
        """The distinct local vectors; those of separate rows go to the parts at once."""
        vectors, counts = group.reduced(features)
        if self.apart:
            none: Bits = ~np.asarray(vectors.any(axis=1), bool)
            parts.add(counts[none], vectors[none])
            vectors, counts = vectors[~none], counts[~none]
        return vectors, counts


@dataclass(frozen=True, slots=True)
class _Parts:
    """Blocks of one coarse partition after another."""

    features: tuple[int, ...]
    rows: list[Counts] = field(default_factory=list)
    unions: list[Bits] = field(default_factory=list)

    def add(self, rows: Counts, unions: Bits) -> None:
        self.rows.append(rows)
        self.unions.append(unions)

    def blocks(self) -> LocalBlocks:
        if not self.rows:
            return LocalBlocks(self.features, np.zeros(0, np.int64), np.zeros((0, len(self.features)), bool))
        files = sum(len(some) > 0 for some in self.rows)
        return LocalBlocks(self.features, np.concatenate(self.rows), np.concatenate(self.unions), files)


@dataclass(frozen=True, slots=True)
class _Packed:
    """The distinct vectors of a coarse partition, also as integers, so that a projection is an AND."""

    vectors: Bits
    counts: Counts
    words: tuple[Counts, ...]

    @classmethod
    def of(cls, vectors: Bits, counts: Counts) -> _Packed:
        words = []
        for start in range(0, vectors.shape[1], _WORD):
            part = vectors[:, start : start + _WORD].astype(np.int64)
            words.append(part @ (1 << np.arange(part.shape[1], dtype=np.int64)))
        return cls(vectors, counts, tuple(words))

    def masked(self, features: Sequence[int]) -> list[Counts]:
        """The words with only these features' bits; words without any of them are left out."""
        masks = [0] * len(self.words)
        for feature in features:
            masks[feature // _WORD] |= 1 << feature % _WORD
        return [word & mask for word, mask in zip(self.words, masks) if mask]

    def satisfying(self, features: Sequence[int]) -> int:
        """Number of rows with one of the features."""
        found = np.zeros(len(self.counts), np.int64)
        for word in self.masked(features):
            found |= word
        return int(self.counts[found != 0].sum())

    def starts(self, features: Sequence[int]) -> tuple[Counts, Counts]:
        """An order that groups vectors equal in these features, and the start of each group in it."""
        words = self.masked(features)
        if not words:
            return np.arange(len(self.counts)), np.arange(min(1, len(self.counts)))
        # Use one number for all words if it separates all groups, which the comparison of the words shows.
        mixed = words[0].copy()
        for word in words[1:]:
            mixed = mixed * _MIX + word
        order = np.argsort(mixed)
        begins = _begins([word[order] for word in words])
        if np.count_nonzero(begins) != np.count_nonzero(_begins([mixed[order]])):
            order = np.lexsort(words)
            begins = _begins([word[order] for word in words])
        return order, np.flatnonzero(begins)

    def reduced(self, features: Sequence[int]) -> tuple[Bits, Counts]:
        """The distinct vectors over some features, and how many rows have each."""
        order, begins = self.starts(features)
        if not len(order):
            return self.vectors[:, list(features)], self.counts
        return self.vectors[order[begins]][:, list(features)], np.add.reduceat(self.counts[order], begins)


def _begins(words: Sequence[Counts]) -> Bits:
    """The positions that differ from the previous one in any word."""
    differs = np.ones(len(words[0]), bool)
    differs[1:] = False
    for word in words:
        differs[1:] |= word[1:] != word[:-1]
    return differs
