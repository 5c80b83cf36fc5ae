"""Orders of rows: from the distinct vectors of a table to the blocks of a group, without Spark.

Groups with the same features have the same order, whatever their columns are. An order looks at its own, local bits of
the global vectors, clusters what is left of them, and says of each local vector in which blocks its rows lie.
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
        How many rows have each.
    """

    partition: int
    words: Words
    counts: Counts


@dataclass(frozen=True, slots=True)
class Order:
    """What rows are clustered by.

    Parameters
    ----------
    features
        Places among all features of the table.
    weights
        Of each.
    rows
        Which rows it has: all, those that satisfy some of its features, or those that satisfy none.
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
    """Local vectors whose rows fill several blocks together.

    Parameters
    ----------
    first, pieces
        Their blocks are ``first`` .. ``first + pieces - 1``.
    rows
        Of all of them; the blocks differ by one row at most, the longer ones come first.
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
        What they were made by.
    partitions, vectors
        Per local vector, the coarse partition that it is of, and its words.
    first
        Per local vector the number of its block, or of the first of its bundle's.
    bundles
        Those that are cut.
    block_partitions, rows, unions
        Per block: its coarse partition, its number of rows, and the OR of its rows' global words. Of a bundle's blocks
        only the rows decide the last: it is 0 until `es_skipping.layout.groups.cut_bundles` looks.
    begins
        By the number of a bundle, the first tuple ids of all its blocks but the first; also filled in there.
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
    """The blocks of an order: those of one coarse partition after another.

    Parameters
    ----------
    minimum
        Rows of a block: at least so many.
    words
        How many words global vectors have.

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
