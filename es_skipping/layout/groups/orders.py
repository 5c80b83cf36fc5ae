"""Orders of rows: from a table's distinct vectors to a group's blocks, without Spark.

Groups with the same features have the same order, whatever their columns are. An order clusters its local bits of the
global vectors, and assigns each local vector's rows to blocks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from es_skipping.indexes.features import WORD_BITS
from es_skipping.layout.clustering import Counts, cluster
from es_skipping.layout.histogram import Words, unpacked

__all__ = ["Bundle", "Order", "PlannedBlocks", "Vectors", "planned"]

Rows = Literal["all", "some", "none"]


@dataclass(frozen=True, slots=True)
class Vectors:
    """The distinct global vectors of a coarse partition.

    Parameters
    ----------
    partition
        Its number.
    words
        A row per vector, a column per `es_skipping.indexes.features.feature_words`.
    counts
        Number of rows of each vector.
    """

    partition: int
    words: Words
    counts: Counts


@dataclass(frozen=True, slots=True)
class Order:
    """The features that cluster rows.

    Parameters
    ----------
    features
        Positions among all features of the table.
    weights
        The features' weights.
    rows
        Which rows it contains: all, those that satisfy some of its features, or those that satisfy none.
    """

    features: tuple[int, ...]
    weights: tuple[int, ...]
    rows: Rows = "all"

    def masks(self, words: int) -> Words:
        """The bits of its features in each word.

        Examples
        --------
        >>> Order((0, 63), (1, 1)).masks(2)
        array([1, 2])
        """
        masks = np.zeros(words, np.int64)
        for feature in self.features:
            masks[feature // WORD_BITS] |= 1 << feature % WORD_BITS
        return masks


@dataclass(frozen=True, slots=True)
class Bundle:
    """Local vectors whose rows together fill several blocks.

    Parameters
    ----------
    first, pieces
        Their blocks are ``first`` .. ``first + pieces - 1``.
    rows
        Their number of rows; the blocks differ by at most one row, the longer ones come first.
    """

    first: int
    pieces: int
    rows: int


@dataclass(frozen=True, slots=True)
class PlannedBlocks:
    """The blocks of an order.

    Parameters
    ----------
    order
        The order that made them.
    partitions, vectors
        Per local vector, its coarse partition and its words.
    first
        Per local vector, the number of its block, or of its bundle's first block.
    bundles
        The bundles to cut.
    block_partitions, rows, unions
        Per block: its coarse partition, its number of rows, and the OR of its rows' global words. A bundle's unions
        depend on the rows: they are 0 until `es_skipping.layout.groups.cut_bundles` fills them in.
    begins
        By bundle number, the first tuple ids of all its blocks except the first; also filled in there.
    """

    order: Order
    partitions: Counts
    vectors: Words
    first: Counts
    bundles: tuple[Bundle, ...]
    block_partitions: Counts
    rows: Counts
    unions: Words
    begins: Mapping[int, tuple[int, ...]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.rows)


def planned(vectors: Iterable[Vectors], order: Order, minimum: int, words: int) -> PlannedBlocks:
    """The blocks of an order, one coarse partition after another.

    Parameters
    ----------
    minimum
        Fewest rows of a block.
    words
        Number of words in a global vector.

    Examples
    --------
    >>> some = Vectors(0, np.array([[1], [2], [3]]), np.array([5, 5, 10]))
    >>> made = planned([some], Order((1,), (1,)), 5, 1)
    >>> made.vectors.tolist(), made.first.tolist(), made.bundles, made.rows.tolist(), made.unions.tolist()
    ([[0], [2]], [0, 1], (Bundle(first=1, pieces=3, rows=15),), [5, 5, 5, 5], [[1], [0], [0], [0]])
    """
    masks, parts, done = order.masks(words), [_no_blocks(words)], 0
    for one in vectors:
        part = _of_partition(one, order, masks, minimum, done)
        parts.append(part)
        done += len(part[4])
    local, numbers, first, places, rows, unions = (np.concatenate(some) for some in zip(*(part[:6] for part in parts)))
    bundles = tuple(bundle for part in parts for bundle in part[6])
    return PlannedBlocks(
        order=order,
        partitions=numbers,
        vectors=local,
        first=first,
        bundles=bundles,
        block_partitions=places,
        rows=rows,
        unions=unions,
    )


_Part = tuple[Words, Counts, Counts, Counts, Counts, Words, Sequence[Bundle]]


def _no_blocks(words: int) -> _Part:
    none, no_words = np.zeros(0, np.int64), np.zeros((0, words), np.int64)
    return no_words, none, none, none, none, no_words, ()


def _of_partition(one: Vectors, order: Order, masks: Words, minimum: int, done: int) -> _Part:
    masked = one.words & masks
    kept = np.ones(len(masked), bool)
    if order.rows != "all":
        kept = masked.any(axis=1) == (order.rows == "some")
    masked, own, counts = masked[kept], one.words[kept], one.counts[kept]
    if not len(counts):
        return _no_blocks(len(masks))
    local, where = np.unique(masked, axis=0, return_inverse=True)
    where = where.ravel()
    held = np.bincount(where, counts, len(local)).astype(np.int64)
    features = order.features if order.rows != "none" else ()
    bits = unpacked(local, len(masks) * WORD_BITS)[:, list(features)]
    made = cluster(bits, held, np.asarray(order.weights[: len(features)], np.float64), minimum)
    unions = np.zeros((len(made.rows), len(masks)), np.int64)
    np.bitwise_or.at(unions, made.first[where], own)
    filled = np.bincount(made.first, held, len(made.rows)).astype(np.int64)
    bundles = []
    for first, pieces in sorted({(int(at), int(many)) for at, many in zip(made.first, made.pieces) if many > 1}):
        unions[first] = 0
        bundles.append(Bundle(done + first, pieces, int(filled[first])))
    numbers = np.full(len(local), one.partition, np.int64)
    places = np.full(len(made.rows), one.partition, np.int64)
    return local, numbers, made.first + done, places, made.rows, unions, bundles
