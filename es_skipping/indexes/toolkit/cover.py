"""Covers points by a few boxes.

A query's box meets a cover's box by bad luck the more often the larger that box is: for queries of size q x r placed
at random the chance is proportional to (width + q) * (height + r). `small_cover` looks for boxes that make the sum of
these small. Finding the best cover is NP-hard, so it goes about it greedily, from above and from below:

1. split: again and again the box is split whose best cut gains most; the best cut is found by a sweep along each axis,
   with the bounds of both sides at hand for each position (the split of R-trees and bounding volume hierarchies:
   Beckmann et al., *The R*-tree*, 1990; Goldsmith and Salmon, *Automatic creation of object hierarchies for ray
   tracing*, 1987);
2. split on past the wanted number, then merge the pair that costs least until it is reached: that undoes early cuts
   which later turned out bad;
3. take the better of the two.

Before that, `compact` keeps the number of boxes bounded while points stream in. Boxes are rows ``(x low, x high, y low,
y high)`` of an array of doubles, and infinite coordinates are allowed.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Cells = NDArray[np.float64]

__all__ = ["compact", "small_cover"]

_QUERY_SIZE: Final = 0.02
"""Size of the imagined query, as a share of the extent of most of the points."""

_GRID: Final = 16

_PIECES: Final = 96
"""At most this many pieces are made before they are merged."""


def compact(cells: Cells, most: int) -> Cells:
    """At most ``most`` boxes that cover all of these.

    All boxes are halved at once, each in the middle of its longer side and shrunk to what it holds, until there are
    enough. Shrinking finds empty space, however unevenly the points lie.

    Examples
    --------
    >>> import numpy as np
    >>> compact(np.array([[0.0, 0, 0, 0], [1, 1, 1, 1], [9, 9, 9, 9]]), 2).tolist()
    [[0.0, 1.0, 0.0, 1.0], [9.0, 9.0, 9.0, 9.0]]
    """
    import numpy as np

    if not len(cells):
        return cells
    view = _finite(cells)
    centers = np.stack([(view[:, 0] + view[:, 1]) / 2, (view[:, 2] + view[:, 3]) / 2])
    scale = np.ptp(centers, axis=1)
    scale[scale == 0] = 1
    # A grid does the first halvings in one step, and sorting small integers is fast.
    side = _GRID if most >= 2 * _GRID**2 else 1
    across = np.minimum((centers - centers.min(axis=1)[:, None]) / scale[:, None] * side, side - 1).astype(np.uint8)
    cell = across[0].astype(np.uint16) * side + across[1]
    order = np.argsort(cell, kind="stable")
    cells, centers = cells[order], centers[:, order]
    starts, group = _runs(cell[order])
    while True:
        low = np.minimum.reduceat(centers, starts, axis=1)
        extent = np.maximum.reduceat(centers, starts, axis=1) - low
        share = extent / scale[:, None]
        split = share.max(axis=0) > 0
        room = most - len(starts)
        if not split.any() or room <= 0:
            break
        if split.sum() > room:
            largest = np.argsort(share.sum(axis=0), kind="stable")[::-1][:room]
            chosen = np.zeros_like(split)
            chosen[largest] = True
            split &= chosen
        axis = share.argmax(axis=0)
        which = np.arange(len(starts))
        middle = low[axis, which] + extent[axis, which] / 2
        above = split[group] & (centers[axis[group], np.arange(len(group))] > middle[group])
        halves = 2 * group + above
        order = np.argsort(halves, kind="stable")
        cells, centers = cells[order], centers[:, order]
        before = len(starts)
        starts, group = _runs(halves[order])
        if len(starts) == before:
            break  # rounding: the middle of two neighbouring numbers is one of them
    return np.stack(
        [reduce.reduceat(cells[:, column], starts) for column, reduce in enumerate(2 * (np.minimum, np.maximum))],
        axis=1,
    )


def _runs(keys: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where runs of equal keys start, and each place's run."""
    import numpy as np

    changes = np.diff(keys) != 0
    return np.concatenate([[0], np.flatnonzero(changes) + 1]), np.concatenate([[0], np.cumsum(changes)])


def small_cover(cells: Cells, count: int) -> Cells:
    """At most ``count`` boxes that cover all of these and that few queries meet in vain.

    Examples
    --------
    >>> import numpy as np
    >>> points = np.array([[0.0, 0.0], [1.0, 1.0], [50.0, 50.0], [51.0, 50.0]])
    >>> small_cover(points.repeat(2, axis=1), 2).tolist()
    [[0.0, 1.0, 0.0, 1.0], [50.0, 51.0, 50.0, 50.0]]
    """
    import numpy as np

    cells = np.unique(cells, axis=0)
    if len(cells) <= 1:
        return cells
    if count == 1:
        return _bounds(cells)[None, :]
    view = _scaled(cells)
    pieces = _split(view, max(count, min(4 * count, _PIECES)))
    groups = min(
        (
            _first(pieces, count),
            _merge(view, [p.members for p in pieces.leaves], count),
        ),
        key=lambda g: _cost_of(view, g),
    )
    boxes = np.stack([_bounds(cells[members]) for members in groups])
    return boxes[np.lexsort(boxes.T[::-1])]


# --- from above ---------------------------------------------------------------------------------------------------


class _Piece(NamedTuple):
    members: NDArray[np.int64]
    cut: tuple[NDArray[np.int64], NDArray[np.int64]] | None
    gain: float


class _Pieces(NamedTuple):
    leaves: list[_Piece]
    history: list[list[NDArray[np.int64]]]
    """The leaves' members after each split; the n-th entry has n + 1 leaves."""


def _split(view: Cells, count: int) -> _Pieces:
    import numpy as np

    first = _piece(view, np.arange(len(view)))
    heap = [(-first.gain, 0, first)]
    history = [[first.members]]
    number = 0
    whole: list[_Piece] = []
    while heap and len(heap) + len(whole) < count:
        _, _, piece = heapq.heappop(heap)
        if piece.cut is None:
            whole.append(piece)
            continue
        for members in piece.cut:
            number += 1
            part = _piece(view, members)
            heapq.heappush(heap, (-part.gain, number, part))
        history.append([p.members for p in whole] + [p.members for _, _, p in heap])
    return _Pieces(whole + [p for _, _, p in heap], history)


def _first(pieces: _Pieces, count: int) -> list[NDArray[np.int64]]:
    return pieces.history[min(count, len(pieces.history)) - 1]


def _piece(view: Cells, members: NDArray[np.int64]) -> _Piece:
    """A piece with its best cut: the cut with the least total cost of both sides."""
    import numpy as np

    if len(members) < 2:
        return _Piece(members, None, -np.inf)
    best: tuple[float, tuple[NDArray[np.int64], NDArray[np.int64]]] | None = None
    for column in (0, 2):
        order = members[np.argsort(view[members, column] + view[members, column + 1], kind="stable")]
        left = _costs(_running(view[order]))
        right = _costs(_running(view[order[::-1]]))[::-1]
        both = left[:-1] + right[1:]
        at = int(both.argmin())
        if best is None or both[at] < best[0]:
            best = float(both[at]), (order[: at + 1], order[at + 1 :])
    assert best is not None
    whole = float(_costs(_bounds(view[members])[None, :])[0])
    return _Piece(members, best[1], whole - best[0])


def _running(cells: Cells) -> Cells:
    """The bounds of the first box, of the first two, ..."""
    import numpy as np

    bounds = np.empty_like(cells)
    for column, reduce in enumerate(2 * (np.minimum, np.maximum)):
        reduce.accumulate(cells[:, column], out=bounds[:, column])
    return bounds


# --- from below ---------------------------------------------------------------------------------------------------


def _merge(view: Cells, groups: list[NDArray[np.int64]], count: int) -> list[NDArray[np.int64]]:
    """Merge the pair whose union costs least more than the two, until there are ``count``."""
    import numpy as np

    groups = list(groups)
    boxes = np.stack([_bounds(view[members]) for members in groups])
    while len(groups) > count:
        low = np.minimum(boxes[:, None, ::2], boxes[None, :, ::2])
        high = np.maximum(boxes[:, None, 1::2], boxes[None, :, 1::2])
        own = _costs(boxes)
        more = (high - low + _QUERY_SIZE).prod(axis=2) - own[:, None] - own[None, :]
        np.fill_diagonal(more, np.inf)
        one, other = sorted(divmod(int(more.argmin()), len(groups)))
        groups[one] = np.concatenate([groups[one], groups.pop(other)])
        boxes = np.delete(boxes, other, axis=0)
        boxes[one] = _bounds(view[groups[one]])
    return groups


# --- measures -----------------------------------------------------------------------------------------------------


def _bounds(cells: Cells) -> Cells:
    import numpy as np

    low, high = cells.min(axis=0), cells.max(axis=0)
    return np.array([low[0], high[1], low[2], high[3]])


def _costs(boxes: Cells) -> NDArray[np.float64]:
    costs: NDArray[np.float64] = (boxes[:, 1] - boxes[:, 0] + _QUERY_SIZE) * (boxes[:, 3] - boxes[:, 2] + _QUERY_SIZE)
    return costs


def _cost_of(view: Cells, groups: list[NDArray[np.int64]]) -> float:
    import numpy as np

    return float(_costs(np.stack([_bounds(view[members]) for members in groups])).sum())


def _finite(cells: Cells) -> Cells:
    """The boxes in numbers that can be subtracted and multiplied: scaled down by a power of two, and with the
    infinities a little outside of everything else."""
    import numpy as np

    view = cells / 64
    for axis in (0, 2):
        part = view[:, axis : axis + 2]
        inside = part[np.isfinite(part)]
        low, high = (inside.min(), inside.max()) if len(inside) else (0.0, 0.0)
        margin = (high - low) or 1.0
        np.clip(part, low - margin, high + margin, out=part)
    return view


def _scaled(cells: Cells) -> Cells:
    """The boxes in units of where most of them are, so that neither axis nor a few outliers set the measure."""
    import numpy as np

    view = _finite(cells)
    for axis in (0, 2):
        part = view[:, axis : axis + 2]
        unit = float(np.subtract(*np.quantile(part, (0.95, 0.05))) or np.ptp(part) or 1.0)
        # Beyond a million units all boxes are equally bad; the bound keeps the products finite.
        part[:] = np.clip((part - np.median(part)) / max(unit, 1e-300), -1e6, 1e6)
    return view
