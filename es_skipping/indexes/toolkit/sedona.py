"""Apache Sedona's predicates with one constant geometry: what they say of where the other one lies.

Sedona's functions are classes of Spark expressions in a package of their own, which is what is trusted here: the class
is Sedona's, whatever name it was registered under. What they compute is fixed by the OGC's standard and by JTS, and the
only use made of it is one that every version shares: geometries that are in any of these relations have a point in
common (or are within the distance), and a geometry lies within its own extent.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterator
from typing import Any, Final

from es_skipping.indexes.toolkit.shapes import Rectangle, cap, cover
from es_skipping.predicates.tree import Call, Comparison, Holds, Literal, Operand, Predicate

__all__ = ["PACKAGE", "coordinates_of", "function_of", "region_of", "wkb_of"]

PACKAGE: Final = "org.apache.spark.sql.sedona_sql.expressions"

_RELATIONS: Final = frozenset(
    f"st_{name}"
    for name in (
        *("contains", "containsproperly", "coveredby", "covers", "crosses"),
        *("equals", "intersects", "overlaps", "touches", "within"),
    )
)
"""Relations that are true only for two non-empty geometries with a common point."""

_SPHERE: Final = 6_371_000.0
"""A little less than the radius that `ST_DistanceSphere` uses unless told otherwise."""

_SPHEROID: Final = 6_335_400.0
"""A little less than the least radius of curvature of WGS 84: no geodesic is shorter than its angle on that sphere."""


def function_of(operand: Operand) -> str | None:
    """Which of Sedona's functions an operand calls; None for anything else.

    Examples
    --------
    >>> from es_skipping.predicates.types import DataType
    >>> function_of(Call(PACKAGE + ".st_point", (), DataType("binary")))
    'st_point'
    """
    package, _, name = operand.name.rpartition(".") if isinstance(operand, Call) else ("", "", "")
    return name if package == PACKAGE else None


def region_of(node: Predicate, is_ours: Callable[[Operand], bool]) -> tuple[Rectangle, ...] | None:
    """Boxes that hold a point of the geometry in every row that satisfies the node; None if there are none.

    Parameters
    ----------
    node
        Of a normal predicate.
    is_ours
        Whether an operand is the geometry in question.
    """
    match node:
        case Holds(call, negated=False):
            name = function_of(call)
            if name == "st_dwithin":
                return _within_distance(call, is_ours)
            if name in _RELATIONS and len(call.arguments) == 2:
                wkb = _other(call.arguments, is_ours)
                return None if wkb is None else cover(wkb)
        case Comparison("<" | "<=", Call() as call, Literal(float() as distance)):
            return _distance_below(call, distance, is_ours)
        case Comparison("=", Call() as call, Literal(float() as distance)):
            return _distance_below(call, distance, is_ours)
    return None


def _within_distance(call: Call, is_ours: Callable[[Operand], bool]) -> tuple[Rectangle, ...] | None:
    if len(call.arguments) not in (3, 4):
        return None
    wkb = _other(call.arguments[:2], is_ours)
    match call.arguments[2:]:
        case (Literal(float() as distance),) | (Literal(float() as distance), Literal(False)):
            return None if wkb is None else cover(wkb, distance)
        case (Literal(float() as distance), Literal(True)):
            return _cap(wkb, distance, _SPHEROID)
    return None


def _distance_below(call: Call, distance: float, is_ours: Callable[[Operand], bool]) -> tuple[Rectangle, ...] | None:
    name = function_of(call)
    wkb = None if name is None else _other(call.arguments[:2], is_ours)
    if wkb is None or not distance >= 0:
        return None
    if name == "st_distance" and len(call.arguments) == 2:
        return cover(wkb, distance)
    if name == "st_distancespheroid" and len(call.arguments) == 2:
        return _cap(wkb, distance, _SPHEROID)
    if name == "st_distancesphere":
        match call.arguments[2:]:
            case ():
                return _cap(wkb, distance, _SPHERE)
            case (Literal(float() as radius),) if radius > 0:
                return _cap(wkb, distance, radius)
    return None


def _cap(wkb: bytes | None, distance: float, radius: float) -> tuple[Rectangle, ...] | None:
    """Around a point. For other geometries these distances use the centroid, which is not supported."""
    if wkb is None or len(wkb) != 21 or wkb[1] != 1:
        return None
    longitude, latitude = struct.unpack_from("<dd", wkb, 5)
    return cap(longitude, latitude, distance / radius * (180 / math.pi))


def _other(arguments: tuple[Operand, ...], is_ours: Callable[[Operand], bool]) -> bytes | None:
    """The constant geometry, where the other argument is ours."""
    if len(arguments) == 2:
        for ours, other in (arguments, arguments[::-1]):
            if isinstance(other, Literal) and isinstance(other.value, bytes) and is_ours(_plain(ours)):
                return wkb_of(other.value)
    return None


def _plain(operand: Operand) -> Operand:
    """The operand without calls that do not change where a geometry lies."""
    while isinstance(operand, Call) and function_of(operand) == "st_setsrid":
        operand = operand.arguments[0]
    return operand


def coordinates_of(operand: Operand) -> tuple[Operand, Operand] | None:
    """The x and y of a point made of two numbers."""
    if (
        function_of(operand) not in ("st_point", "st_makepoint")
        or not isinstance(operand, Call)
        or len(operand.arguments) < 2
    ):
        return None
    return operand.arguments[0], operand.arguments[1]


# --- Sedona's own form of a geometry ------------------------------------------------------------------------------

_POINT, _LINE, _POLYGON, _POINTS, _LINES, _POLYGONS = range(1, 7)
_DIMENSIONS: Final = {1: 2, 2: 3, 3: 3, 4: 4}


def wkb_of(data: bytes) -> bytes | None:
    """A geometry of Sedona's as well-known binary in two dimensions; None where it is not understood.

    Its form: a byte of type, coordinate type and a flag for the reference system, three bytes of that, the number of
    coordinates, the coordinates, then for shapes of several parts the number of parts and the length of each, all as
    little-endian 32-bit numbers and doubles.

    Examples
    --------
    >>> wkb_of(bytes.fromhex("1200000001000000000000000000f03f0000000000000040")).hex()
    '0101000000000000000000f03f0000000000000040'
    """
    try:
        return _wkb(data)
    except (struct.error, IndexError, ValueError):
        return None


def _wkb(data: bytes) -> bytes | None:
    kind, dimensions = data[0] >> 4, _DIMENSIONS.get(data[0] >> 1 & 7)
    (count,) = struct.unpack_from("<i", data, 4)
    if dimensions is None or count <= 0:
        return None
    end = 8 + 8 * dimensions * count
    numbers = struct.unpack_from(f"<{dimensions * count}d", data, 8)
    pairs = iter([struct.pack("<dd", *numbers[at : at + 2]) for at in range(0, len(numbers), dimensions)])
    rest = iter(struct.unpack(f"<{(len(data) - end) // 4}i", data[end:]))
    body = _body(kind, count, pairs, rest)
    if body is None or next(pairs, None) is not None or next(rest, None) is not None:
        return None
    return body


def _body(kind: int, count: int, pairs: Iterator[bytes], rest: Iterator[int]) -> bytes | None:
    def sequence(length: int) -> bytes:
        found = [next(pairs, b"") for _ in range(length)]
        if b"" in found:
            raise ValueError("fewer coordinates than announced")
        return b"".join(found)

    def lines() -> list[bytes]:
        return [_numbered(length) + sequence(length) for length in _take(rest, _next(rest))]

    if kind == _POINT and count == 1:
        return _head(_POINT) + sequence(1)
    if kind == _LINE:
        return _head(_LINE) + _numbered(count) + sequence(count)
    if kind == _POINTS:
        return _head(_POINTS) + _numbered(count) + b"".join(_head(_POINT) + sequence(1) for _ in range(count))
    if kind == _POLYGON:
        rings = lines()
        return _head(_POLYGON) + _numbered(len(rings)) + b"".join(rings)
    if kind == _LINES:
        parts = [_head(_LINE) + line for line in lines()]
        return _head(_LINES) + _numbered(len(parts)) + b"".join(parts)
    if kind == _POLYGONS:
        polygons = []
        for _ in range(_next(rest)):
            rings = lines()
            polygons.append(_head(_POLYGON) + _numbered(len(rings)) + b"".join(rings))
        return _head(_POLYGONS) + _numbered(len(polygons)) + b"".join(polygons)
    return None


def _next(rest: Iterator[Any]) -> int:
    found = next(rest, None)
    if not isinstance(found, int) or not 0 <= found < 1 << 24:
        raise ValueError("a length is missing")
    return found


def _take(rest: Iterator[int], count: int) -> list[int]:
    return [_next(rest) for _ in range(count)]


def _head(kind: int) -> bytes:
    return struct.pack("<BI", 1, kind)


def _numbered(count: int) -> bytes:
    return struct.pack("<I", count)
