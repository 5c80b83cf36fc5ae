"""Constant shapes as a few boxes, by their true outline: holes, parts far apart, bays and corners are left out.

A store is asked whether an object's boxes meet a box; a shape is asked for as the boxes of a cover. It is found by
halving: cells that do not meet the shape are dropped, cells that lie within it are left whole, those on its outline
are halved again, until there are some hundreds; then the pairs whose common box adds least are brought together (cover
and refine, as geographic databases do with cells of a grid). Everything is rounded outward by far more than the
arithmetic errs.

Shapes lie in the plane of their coordinates, as Sedona's and every OGC predicate has it: one that reaches beyond 180
degrees does not come back at -180. Distances on the globe do, see `cap`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from es_skipping.clauses.clause import Clause, disjunction
from es_skipping.clauses.questions import Meets, Range
from es_skipping.indexes.base import Target

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Cells = NDArray[np.float64]

__all__ = ["Rectangle", "cap", "cover", "region_clause"]

Rectangle = tuple[float, float, float, float]
"""``(x low, x high, y low, y high)``, closed."""

_BOXES: Final = 32
"""At most this many boxes in a question."""

_CELLS: Final = 256
"""Halving ends at this number of cells, or after `_LEVELS`."""

_LEVELS: Final = 24
_MARGIN: Final = 1e-9
"""Outward rounding as a share of the largest coordinate: some centimetres on the globe."""

_TINY: Final = 1e-150
"""Least outward rounding: the square of a smaller number, and the distance of points that differ by it, may be 0."""

_LARGEST: Final = 1e100
"""Beyond it no conclusion is drawn from coordinates and distances."""


@lru_cache(maxsize=256)
def cover(wkb: bytes, distance: float = 0.0) -> tuple[Rectangle, ...] | None:
    """Boxes that hold every point of a shape, or every point within ``distance`` of it.

    Parameters
    ----------
    wkb
        The shape as well-known binary. One that is not valid counts as its bounding box.
    distance
        In the units of the coordinates.

    Returns
    -------
    tuple or None
        None where nothing can be said: the shape is empty, or not of this world.

    Examples
    --------
    >>> import shapely
    >>> ring = shapely.Point(0, 0).buffer(10).difference(shapely.Point(0, 0).buffer(9))
    >>> boxes = cover(shapely.to_wkb(ring))
    >>> any(x0 <= 0 <= x1 and y0 <= 0 <= y1 for x0, x1, y0, y1 in boxes)       # the middle is left out
    False
    """
    import numpy as np
    import shapely

    shape = shapely.force_2d(shapely.from_wkb(wkb))
    if shape.is_empty or not 0 <= distance <= _LARGEST:
        return None
    west, south, east, north = shape.bounds
    largest = max(map(abs, (west, south, east, north, distance)))
    if not largest <= _LARGEST:
        return None
    margin = _MARGIN * largest + _TINY
    reach = distance * (1 + _MARGIN) + margin
    bounds = np.array([[west - reach, east + reach, south - reach, north + reach]])
    if not shape.is_valid:
        return _rectangles(bounds)
    shapely.prepare(shape)

    def meets(boxes: Any) -> Any:
        return shapely.intersects(shape, boxes) if not distance else shapely.distance(shape, boxes) <= reach

    def holds(boxes: Any) -> Any:
        return shapely.contains_properly(shape, boxes)

    return _rectangles(_merged(_halved(bounds, meets, holds, margin), _BOXES))


def _halved(cells: Cells, meets: Callable[[Any], Any], holds: Callable[[Any], Any], margin: float) -> Cells:
    """The cells that a region meets, halved until there are many."""
    import numpy as np

    within = cells[:0]
    for _ in range(_LEVELS):
        if not len(cells) or len(cells) + len(within) > _CELLS:
            break
        wide = cells[:, 1] - cells[:, 0] >= cells[:, 3] - cells[:, 2]
        first, second = cells.copy(), cells.copy()
        for axis, chosen in ((0, wide), (2, ~wide)):
            middle = cells[chosen, axis] / 2 + cells[chosen, axis + 1] / 2
            first[chosen, axis + 1] = middle
            second[chosen, axis] = middle
        halves = np.concatenate([first, second])
        halves = halves[meets(_boxes(halves, margin))]
        whole = holds(_boxes(halves, margin))
        within = np.concatenate([within, halves[whole]])
        cells = halves[~whole]
    return np.concatenate([within, cells])


def _merged(cells: Cells, most: int) -> Cells:
    """At most this many boxes that cover all cells: repeatedly merges the pair whose common box adds least.

    The cost is the number of small random boxes that meet a box in vain.
    """
    import numpy as np

    size = 0.01 * max(np.ptp(cells[:, :2]), np.ptp(cells[:, 2:]))

    def cost(boxes: Cells) -> NDArray[np.float64]:
        found: NDArray[np.float64] = (boxes[..., 1] - boxes[..., 0] + size) * (boxes[..., 3] - boxes[..., 2] + size)
        return found

    def added(one: Cells, others: Cells) -> NDArray[np.float64]:
        both = np.where([False, True, False, True], np.maximum(one, others), np.minimum(one, others))
        more: NDArray[np.float64] = cost(both) - cost(one) - cost(others)
        return more

    boxes = cells.copy()
    table = added(boxes[:, None], boxes[None])
    np.fill_diagonal(table, np.inf)
    left = len(boxes)
    while left > 1:
        first, second = (int(at) for at in np.unravel_index(table.argmin(), table.shape))
        if left <= most and table[first, second] > 0:
            break
        ends = np.stack([boxes[first], boxes[second]])
        boxes[first] = np.where([False, True, False, True], ends.max(axis=0), ends.min(axis=0))
        table[second] = table[:, second] = np.inf
        alive = np.isfinite(table[first])
        table[first, alive] = table[alive, first] = added(boxes[first], boxes[alive])
        boxes[second] = np.nan
        left -= 1
    merged: Cells = boxes[~np.isnan(boxes[:, 0])]
    return merged


def _boxes(cells: Cells, margin: float) -> Any:
    import shapely

    return shapely.box(cells[:, 0] - margin, cells[:, 2] - margin, cells[:, 1] + margin, cells[:, 3] + margin)


def _rectangles(cells: Cells) -> tuple[Rectangle, ...]:
    return tuple((a, b, c, d) for a, b, c, d in cells.tolist())


# --- on the globe -------------------------------------------------------------------------------------------------

_SLICES: Final = 8
_TURNS: Final = (-720.0, -360.0, 0.0, 360.0, 720.0)
_FARTHEST: Final = 540.0
"""Longitudes beyond it are not normalised; every cap holds them."""


def cap(longitude: float, latitude: float, angle: float) -> tuple[Rectangle, ...] | None:
    """Boxes that hold every point of a globe within an angle of one point, all in degrees.

    Around a pole they go all the way round; across the 180th meridian they go on at the other side, whichever way
    longitudes are counted. What is not a latitude, or far from being a longitude, is inside: nothing is known of it.

    Returns
    -------
    tuple or None
        None where nothing can be said.

    Examples
    --------
    >>> [(west, east) for west, east, *_ in cap(179.5, 0.0, 1.0) if -180 <= west <= 180][0]
    (178.8385409531632, 180.1614590468368)
    """
    if not (abs(longitude) <= 360 and abs(latitude) <= 90 and angle >= 0):
        return None
    angle = angle * (1 + 1e-6) + 1e-6
    south, north = latitude - angle, latitude + angle
    found: list[Rectangle] = [
        (-math.inf, math.inf, 90.0, math.inf),
        (-math.inf, math.inf, -math.inf, -90.0),
        (-math.inf, -_FARTHEST, -90.0, 90.0),
        (_FARTHEST, math.inf, -90.0, 90.0),
    ]
    if south <= -90 or north >= 90 or angle >= 89:
        return (*found, (-math.inf, math.inf, max(south, -90.0), min(north, 90.0)))
    edges = [south + (north - south) * step / _SLICES for step in range(_SLICES)] + [north]
    for low, high in pairwise(edges):
        half = _half_width(latitude, angle, low, high)
        for turn in _TURNS:
            west, east = longitude - half + turn, longitude + half + turn
            if west <= _FARTHEST and east >= -_FARTHEST:
                found.append((west, east, low - 1e-9, high + 1e-9))
    return tuple(found)


def _half_width(latitude: float, angle: float, low: float, high: float) -> float:
    """The greatest difference of longitude from the middle, between two latitudes of a cap without a pole."""
    middle, radius = math.radians(latitude), math.radians(angle)
    widest = math.degrees(math.asin(max(-1.0, min(1.0, math.sin(middle) / math.cos(radius)))))
    if low <= widest <= high:
        ratio = math.sin(radius) / math.cos(middle)
        return math.degrees(math.asin(min(1.0, ratio))) * (1 + 1e-9) + 1e-6
    at = math.radians(low if widest < low else high)
    cosine = (math.cos(radius) - math.sin(middle) * math.sin(at)) / (math.cos(middle) * math.cos(at))
    # near the tip the arc's cosine is nearly 1: add what rounding may lose
    return math.degrees(math.acos(max(-1.0, min(1.0, cosine - 1e-12)))) * (1 + 1e-9) + 1e-6


# --- as a clause --------------------------------------------------------------------------------------------------


def region_clause(target: Target, rectangles: tuple[Rectangle, ...]) -> Clause:
    """Does any box of the object meet any of these? For indexes of kind *boxes* with the axes latitude, longitude.

    A point with a NaN coordinate lies at infinity. Its result in a predicate does not follow from a shape's outline, so
    the question includes it.
    """
    infinite = (math.inf, math.inf)
    everywhere = (-math.inf, math.inf)
    asked = [((south, north), (west, east)) for west, east, south, north in rectangles]
    asked += [(infinite, everywhere), (everywhere, infinite)]
    return disjunction(target.ask(Meets((_range(*y), _range(*x)))) for y, x in asked)


def _range(low: float, high: float) -> Range:
    return Range(None if low == -math.inf else low, None if high == math.inf and low != math.inf else high)
