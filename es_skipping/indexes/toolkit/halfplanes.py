"""Linear conditions on two coordinates, ``a * lat + b * lon > c``, as the convex region that they leave together.

People write polygons as lists of such inequalities. Each is a half-plane; the region of a conjunction is found by
cutting a square with one after the other, exactly, and is then covered by boxes like any other shape.

Floating-point arithmetic errs. With n operations it errs by at most n roundings of the sum of the absolute values of
all terms (Higham, *Accuracy and Stability of Numerical Algorithms*, section 3.1), which moves each line outward. That
bound needs bounded coordinates: what lies outside of the square is in the region, whatever the conditions say of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import combinations
from typing import Final, NamedTuple, TypeAlias

from es_skipping.indexes.toolkit.shapes import Rectangle, cover
from es_skipping.predicates.tree import Call, Comparator, Comparison, Literal, Operand, Predicate

__all__ = ["HalfPlane", "half_planes", "region"]

_MAX_LINES: Final = 32
"""Of more conditions the first are used: each can only make the region smaller."""
_ROUNDING: Final = Fraction(1, 2**50)
"""Of one operation, eight times what it can be."""
_TINY: Final = Fraction(1, 10**200)
"""More than what is lost near 0, where numbers have fewer digits."""
_LARGEST: Final = 10**30
"""Of a factor or of a constant: larger ones might lead beyond the largest floating-point number."""
_SIDE: Final = 360.0
"""A region may be without end; a square that holds the coordinates of the globe is never too small for those."""
_FARTHEST: Final = 10**12

Point: TypeAlias = tuple[Fraction, Fraction]
Axis: TypeAlias = Callable[[Operand], bool]
"""Whether an operand is the coordinate."""


class HalfPlane(NamedTuple):
    """The points with ``x * a + y * b + c >= 0`` in exact arithmetic, up to an error.

    The error of the arithmetic is at most ``roundings`` times that of one operation on ``|x| * a_sum + ...``.
    """

    a: Fraction
    b: Fraction
    c: Fraction
    a_sum: Fraction
    b_sum: Fraction
    c_sum: Fraction
    roundings: int = 0

    def opposite(self) -> HalfPlane:
        return self._replace(a=-self.a, b=-self.b, c=-self.c)

    def within(self, side: Fraction) -> HalfPlane:
        """The half-plane moved outward by all that the arithmetic may err on points of a square."""
        largest = side * (self.a_sum + self.b_sum) + self.c_sum
        return self._replace(c=self.c + largest * _ROUNDING * (self.roundings + 1) + _TINY)

    def at(self, point: Point) -> Fraction:
        x, y = point
        return self.a * x + self.b * y + self.c


def half_planes(parts: Iterable[Predicate], is_x: Axis, is_y: Axis) -> list[HalfPlane]:
    """The linear conditions of a conjunction as half-planes; none if none of them is on both coordinates.

    Parameters
    ----------
    parts
        In normal form.
    is_x, is_y
        Whether an operand is the first coordinate, or the second, as a double.
    """
    found: list[HalfPlane] = []
    for part in parts:
        if isinstance(part, Comparison) and part.comparator in ("=", "<", "<=", ">", ">="):
            left, right = _linear(part.left, is_x, is_y), _linear(part.right, is_x, is_y)
            if left is not None and right is not None:
                found += _of_comparison(part.comparator, _sum(left, right.opposite(), 0))
    if not any(one.a and one.b for one in found):
        return []
    return [one for one in found if one.a or one.b][:_MAX_LINES]


def _of_comparison(comparator: Comparator, difference: HalfPlane) -> list[HalfPlane]:
    if comparator in (">", ">="):
        return [difference]
    if comparator in ("<", "<="):
        return [difference.opposite()]
    return [difference, difference.opposite()]


def _linear(operand: Operand, is_x: Axis, is_y: Axis) -> HalfPlane | None:
    """An expression as ``x * a + y * b + c``; None if it is not linear, or not of doubles."""
    zero, one = Fraction(0), Fraction(1)
    if operand.type.name != "double":
        return None
    if is_x(operand):
        return HalfPlane(one, zero, zero, one, zero, zero)
    if is_y(operand):
        return HalfPlane(zero, one, zero, zero, one, zero)
    if isinstance(operand, Literal):
        value = operand.value
        if not isinstance(value, float) or not math.isfinite(value) or abs(value) > _LARGEST:
            return None
        exact = Fraction(value)
        return HalfPlane(zero, zero, exact, zero, zero, abs(exact))
    if not isinstance(operand, Call):
        return None
    known = [_linear(argument, is_x, is_y) for argument in operand.arguments]
    match operand.name, known:
        case "unaryminus", [HalfPlane() as x]:
            return x.opposite()
        case "add", [HalfPlane() as x, HalfPlane() as y]:
            return _sum(x, y, 1)
        case "subtract", [HalfPlane() as x, HalfPlane() as y]:
            return _sum(x, y.opposite(), 1)
        case "multiply", [HalfPlane() as x, HalfPlane() as y] if not (y.a_sum or y.b_sum):
            return _scaled(x, y.c, y.roundings)
        case "multiply", [HalfPlane() as x, HalfPlane() as y] if not (x.a_sum or x.b_sum):
            return _scaled(y, x.c, x.roundings)
        case "divide", [HalfPlane() as x, HalfPlane() as y] if not (y.a_sum or y.b_sum) and y.c:
            return _scaled(x, 1 / y.c, y.roundings)
    return None


def _sum(one: HalfPlane, other: HalfPlane, roundings: int) -> HalfPlane:
    ends = [mine + theirs for mine, theirs in zip(one[:6], other[:6], strict=True)]
    return HalfPlane._make([*ends, one.roundings + other.roundings + roundings])


def _scaled(one: HalfPlane, factor: Fraction, roundings: int) -> HalfPlane | None:
    size = abs(factor)
    if max(one.a_sum, one.b_sum, one.c_sum) * size > _LARGEST:
        return None
    ends = [*(end * factor for end in one[:3]), *(end * size for end in one[3:6])]
    return HalfPlane._make([*ends, one.roundings + roundings + 1])


def region(lines: Sequence[HalfPlane], x: tuple[float, float], y: tuple[float, float]) -> tuple[Rectangle, ...] | None:
    """Boxes that hold every point for which all conditions are true.

    Parameters
    ----------
    lines
        At least one.
    x, y
        The range of each coordinate, which may be infinite.

    Returns
    -------
    tuple or None
        None where the lines lead too far away.

    Examples
    --------
    >>> from es_skipping.predicates.types import DataType
    >>> from es_skipping.predicates.tree import Column
    >>> lat, lon = (Column((name,), DataType("double")) for name in ("lat", "lon"))
    >>> below = Comparison("<", Call("add", (lat, lon), lat.type), Literal(1.0, lat.type))
    >>> lines = half_planes([below], lambda one: one == lon, lambda one: one == lat)
    >>> boxes = region(lines, (0.0, 1.0), (0.0, 1.0))
    >>> max(x1 + y1 for _, x1, _, y1 in boxes) < 1.2
    True
    """
    import shapely

    side = _side(lines, x, y)
    if side is None:
        return None
    west, east = (_clipped(end, side) for end in x)
    south, north = (_clipped(end, side) for end in y)
    corners: list[Point] = [(west, south), (east, south), (east, north), (west, north)]
    for line in lines:
        corners = _cut(corners, line.within(side))
    inside: tuple[Rectangle, ...] = ()
    if corners:
        hull = shapely.MultiPoint([(float(one), float(other)) for one, other in corners]).convex_hull
        found = cover(shapely.to_wkb(hull))
        if found is None:
            return None
        inside = found
    return (*inside, *_outside(float(side), x, y))


def _clipped(end: float, side: Fraction) -> Fraction:
    return side if end >= side else -side if end <= -side else Fraction(end)


def _outside(side: float, x: tuple[float, float], y: tuple[float, float]) -> list[Rectangle]:
    """What lies outside of the square, as far as the coordinates reach."""
    pieces = [
        (x[0], min(x[1], -side), *y),
        (max(x[0], side), x[1], *y),
        (*x, y[0], min(y[1], -side)),
        (*x, max(y[0], side), y[1]),
    ]
    return [piece for piece in pieces if piece[0] <= piece[1] and piece[2] <= piece[3]]


def _side(lines: Sequence[HalfPlane], x: tuple[float, float], y: tuple[float, float]) -> Fraction | None:
    """Half a side of a square around the origin that holds all corners of the region, with room to spare.

    Any square is sound. Of a region without end, what lies in a larger one is covered more coarsely, and what lies
    outside of a smaller one is kept.
    """
    bounds = [end for end in (*x, *y) if math.isfinite(end)]
    edges = [(float(line.a), float(line.b), float(line.c)) for line in lines]
    edges += [(sign, 0.0, -sign * end) for sign, end in zip((1.0, -1.0), x, strict=True) if math.isfinite(end)]
    edges += [(0.0, sign, -sign * end) for sign, end in zip((1.0, -1.0), y, strict=True) if math.isfinite(end)]
    known = [abs(end) for corner in _corners(edges) for end in corner] if len(bounds) < 4 else list(map(abs, bounds))
    if not known:
        known = [abs(c / end) for a, b, c in edges for end in (a, b) if end]
    side = 2 * max(*known, _SIDE)
    return Fraction(math.ceil(side)) if side <= _FARTHEST else None


def _corners(edges: Sequence[tuple[float, float, float]]) -> Iterator[tuple[float, float]]:
    """Where two edges cross and no other one cuts the crossing off."""
    for (a, b, c), (d, e, f) in combinations(edges, 2):
        determinant = a * e - b * d
        if not determinant:
            continue
        x, y = (b * f - c * e) / determinant, (c * d - a * f) / determinant
        largest = max(abs(x), abs(y), 1.0)
        if all(k * x + m * y + n >= -1e-9 * (largest * (abs(k) + abs(m)) + abs(n)) for k, m, n in edges):
            yield x, y


def _cut(corners: Sequence[Point], line: HalfPlane) -> list[Point]:
    """What is left of a convex polygon on one side of a line (Sutherland and Hodgman's clipping, for one line)."""
    kept: list[Point] = []
    for at, corner in enumerate(corners):
        before = corners[at - 1]
        here, there = line.at(corner), line.at(before)
        if (here < 0) != (there < 0):
            share = there / (there - here)
            kept.append(tuple(one + share * (other - one) for one, other in zip(before, corner, strict=True)))  # type: ignore[arg-type]
        if here >= 0:
            kept.append(corner)
    return kept
