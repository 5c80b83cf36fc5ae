"""Ways to put a sample's rows into blocks: SOP, a query tree, and curves."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from es_skipping.layout.clustering import Bits, Blocks, Counts, Reals, cluster
from es_skipping.layout.designing.curves import hilbert, z_order
from es_skipping.layout.ranks import Ranks
from es_skipping.layout.tree.effects import Effects
from es_skipping.layout.tree.growing import Tree, grow

__all__ = ["CURVES", "by_curve", "by_features", "by_tree"]

CURVES: dict[str, Callable[[Sequence[Counts], int], Counts]] = {"Z-order": z_order, "Hilbert": hilbert}
_CURVE_BITS = 7


def by_features(bits: Bits, partitions: Counts, weights: Reals, minimum: int) -> Counts:
    """The blocks of `SOP`: rows with similar features lie together."""
    packed = np.packbits(bits, axis=1)
    keys = np.ascontiguousarray(packed).view([("", f"V{packed.shape[1]}")]).ravel()
    found, base = np.empty(len(partitions), np.int64), 0
    for one in np.unique(partitions):
        some = np.flatnonzero(partitions == one)
        _, first, vector, counts = np.unique(keys[some], return_index=True, return_inverse=True, return_counts=True)
        blocks = cluster(bits[some[first]], counts, weights, minimum)
        found[some] = base + _placed(blocks, vector.ravel())
        base += len(blocks.rows)
    return found


def by_tree(bits: Bits, partitions: Counts, effects: Effects, minimum: int) -> tuple[Counts, Tree]:
    """The blocks of `QueryTree`: the leaves of a tree; large leaves are cut."""
    tree = grow(bits, partitions, effects, minimum)
    _, vector, counts = np.unique(tree.leaf_of(bits, partitions), return_inverse=True, return_counts=True)
    pieces = np.maximum(1, counts // minimum)
    first = np.concatenate([[0], np.cumsum(pieces)[:-1]])
    blocks = Blocks(first, pieces, np.zeros(0, np.int64), np.zeros((0, 0), bool))
    return _placed(blocks, vector.ravel()), tree


def by_curve(name: str, columns: Sequence[Ranks], partitions: Counts, minimum: int) -> Counts:
    """Stretches of a curve over some columns."""
    place = CURVES[name]([column.bits(_CURVE_BITS) for column in columns], _CURVE_BITS)
    order = np.lexsort((place, partitions))
    found, base = np.empty(len(partitions), np.int64), 0
    ordered = partitions[order]
    for one in np.unique(partitions):
        some = order[ordered == one]
        number = max(1, len(some) // minimum)
        found[some] = base + np.arange(len(some)) * number // len(some)
        base += number
    return found


def _placed(blocks: Blocks, vector: Counts) -> Counts:
    """The block of each row. Rows of vectors that fill several blocks together lie there in their order."""
    first, pieces = blocks.first[vector], blocks.pieces[vector]
    order = np.argsort(first, kind="stable")
    ordered = first[order]
    starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    sizes = np.diff(np.concatenate([starts, [len(ordered)]]))
    rank = np.arange(len(ordered)) - np.repeat(starts, sizes)
    found = np.empty(len(vector), np.int64)
    found[order] = ordered + rank * pieces[order] // np.repeat(sizes, sizes)
    return found
