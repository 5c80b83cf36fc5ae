"""Counts rows by feature vector in each coarse partition, which is all that the clustering needs of the data."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from es_skipping.indexes.features import WORD_BITS
from es_skipping.layout.clustering import Bits, Blocks, Counts, cluster

__all__ = ["Group", "GroupBlocks", "Histogram", "Words", "predicted_share", "unpacked"]

Words = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Group:
    """The rows of one coarse partition; blocks never cross partitions.

    Parameters
    ----------
    number
        Identifies the partition.
    keys
        Per distinct vector, the number that links rows to it.
    vectors, counts
        The distinct vectors, a column per feature, and the number of rows of each.
    """

    number: int
    keys: Words
    vectors: Bits
    counts: Counts

    @property
    def rows(self) -> int:
        return int(self.counts.sum())


@dataclass(frozen=True, slots=True)
class GroupBlocks:
    """The blocks of one coarse partition."""

    group: Group
    blocks: Blocks


@dataclass(frozen=True, slots=True)
class Histogram:
    """The distinct vectors of a dataset."""

    groups: tuple[Group, ...]
    features: int

    @classmethod
    def of(cls, rows: Iterable[tuple[int, int, tuple[int, ...], int]], features: int) -> Histogram:
        """Make it from ``(partition, key, words, count)`` of each distinct vector."""
        by_group: dict[int, list[tuple[tuple[int, ...], int, int]]] = {}
        for number, key, words, count in rows:
            by_group.setdefault(number, []).append((words, key, count))
        groups = []
        for number in sorted(by_group):
            found = sorted(by_group[number])
            rows_of_words = np.array([one[0] for one in found], np.int64)
            groups.append(
                Group(
                    number,
                    np.array([one[1] for one in found], np.int64),
                    unpacked(rows_of_words, features),
                    np.array([one[2] for one in found], np.int64),
                )
            )
        return cls(tuple(groups), features)

    @property
    def rows(self) -> int:
        return sum(group.rows for group in self.groups)

    @property
    def distinct(self) -> int:
        """The largest number of distinct vectors in a coarse partition."""
        return max((len(group.counts) for group in self.groups), default=0)

    def satisfied(self, features: Sequence[int]) -> float:
        """The share of the rows that satisfy at least one of some features."""
        held = sum(int(group.counts[group.vectors[:, list(features)].any(axis=1)].sum()) for group in self.groups)
        return held / max(1, self.rows)

    def only(self, features: Sequence[int]) -> Histogram:
        """Restrict it to some features. The keys are lost, so it cannot lay rows out."""
        return Histogram(tuple(_narrowed(group, features) for group in self.groups), len(features))

    def cluster(self, weights: Sequence[float], minimum: int) -> list[GroupBlocks]:
        """Blocks for each coarse partition."""
        as_array = np.asarray(weights, np.float64)
        return [GroupBlocks(group, cluster(group.vectors, group.counts, as_array, minimum)) for group in self.groups]


def unpacked(words: Words, features: int) -> Bits:
    """The bits of words as columns.

    Examples
    --------
    >>> unpacked(np.array([[5]]), 3)
    array([[ True, False,  True]])
    """
    columns = [(words[:, at // WORD_BITS] >> (at % WORD_BITS)) & 1 for at in range(features)]
    bits: Bits = np.array(columns, bool).T.reshape(len(words), features)
    return bits


def predicted_share(
    clustered: Sequence[GroupBlocks],
    usable: Sequence[int],
    lists: Iterable[Collection[int]] = (),
    within: Sequence[Bits] | None = None,
) -> float:
    """The share of all rows in blocks that a query must read, by its features, and by what else is known of blocks.

    Parameters
    ----------
    usable
        The features that subsume the query: a block is read if all of their bits are set.
    lists
        Sets of features: a block is read if one bit of each of them is set.
    within
        Per coarse partition, the blocks that are not skipped for another reason.
    """
    total = sum(int(one.blocks.rows.sum()) for one in clustered)
    if not total:
        return 0.0
    read = 0
    for at, one in enumerate(clustered):
        unions = one.blocks.unions
        kept = unions[:, list(usable)].all(axis=1)
        if within is not None:
            kept = kept & within[at]
        for some in lists:
            kept = kept & unions[:, list(some)].any(axis=1)
        read += int(one.blocks.rows[kept].sum())
    return read / total


def _narrowed(group: Group, features: Sequence[int]) -> Group:
    vectors, place = np.unique(group.vectors[:, list(features)], axis=0, return_inverse=True)
    counts = np.bincount(place.ravel(), group.counts, len(vectors)).astype(np.int64)
    return Group(group.number, np.zeros(0, np.int64), vectors, counts)
