"""Rows in the order of a space-filling curve over some columns: Z-order, and the Hilbert curve."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from es_skipping.layout.clustering import Counts

__all__ = ["hilbert", "z_order"]


def z_order(quantiles: Sequence[Counts], bits: int) -> Counts:
    """The place of each row on the Z-curve.

    Parameters
    ----------
    quantiles
        For each column, a number of this many bits for each row.

    Examples
    --------
    >>> z_order([np.array([0, 1, 1]), np.array([1, 0, 1])], 1).tolist()
    [1, 2, 3]
    """
    place = np.zeros(len(quantiles[0]), np.int64)
    for bit in reversed(range(bits)):
        for column in quantiles:
            place = place << 1 | column >> bit & 1
    return place


def hilbert(quantiles: Sequence[Counts], bits: int) -> Counts:
    """The place of each row on the Hilbert curve (Skilling, *Programming the Hilbert curve*, 2004).

    Neighbours on the curve are neighbours in the grid:

    >>> grid = np.indices((4, 4)).reshape(2, -1)
    >>> order = np.argsort(hilbert(list(grid), 2))
    >>> np.abs(np.diff(grid[:, order], axis=1)).sum(axis=0).tolist() == [1] * 15
    True
    """
    axes = [column.astype(np.int64) for column in quantiles]
    for bit in reversed(range(1, bits)):
        below = (1 << bit) - 1
        for at, axis in enumerate(axes):
            upper = (axis >> bit & 1).astype(bool)
            exchanged = np.where(upper, 0, (axes[0] ^ axis) & below)
            axes[0] = np.where(upper, axes[0] ^ below, axes[0] ^ exchanged)
            if at:
                axes[at] = axis ^ exchanged
    for at in range(1, len(axes)):
        axes[at] ^= axes[at - 1]
    turned = np.zeros(len(axes[0]), np.int64)
    for bit in reversed(range(1, bits)):
        turned = np.where(axes[-1] >> bit & 1, turned ^ ((1 << bit) - 1), turned)
    return z_order([axis ^ turned for axis in axes], bits)
