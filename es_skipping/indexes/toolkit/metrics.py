"""Metrics: how a distance is written in SQL, measured in Python, and read from a tree."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from es_skipping.predicates.functions import USER, Declarations
from es_skipping.predicates.tree import Call, Cast, Literal, Operand

__all__ = ["METRICS", "Metric", "called_sql", "declared_points", "points_of"]

_RADIUS: Final = 6371.0088
"""Kilometres: the mean radius of the earth (IUGG)."""


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric; it obeys the triangle inequality.

    Parameters
    ----------
    axes
        The number of coordinates; None for any number.
    sql
        The distance of columns from a point.
    measure
        The distance of two points.
    point
        The point from the numbers in the expression, in the order of `points_of`; None if they do not make a point.
    """

    axes: int | None
    sql: Callable[[Sequence[str], Sequence[float]], str]
    measure: Callable[[Sequence[float], Sequence[float]], float]
    point: Callable[[Sequence[float]], tuple[float, ...] | None]


def points_of(asked: Operand, indexed: Operand) -> list[tuple[float, float]] | None:
    """The numbers of two expressions that differ in nothing else, in pairs; None if they differ otherwise.

    Examples
    --------
    >>> from es_skipping.predicates.tree import Column
    >>> from es_skipping.predicates.types import DataType
    >>> double = DataType("double")
    >>> one, other = (Call("subtract", (Column(("x",), double), Literal(v, double)), double) for v in (3.0, 5.0))
    >>> points_of(one, other)
    [(3.0, 5.0)]
    """
    found: list[tuple[float, float]] = []
    pending = [(asked, indexed)]
    while pending:
        one, other = pending.pop()
        match one, other:
            case Literal(float() as mine), Literal(float() as theirs) if one.type == other.type:
                if not (math.isfinite(mine) and math.isfinite(theirs)):
                    return None
                found.append((mine, theirs))
            case Call(), Call():
                same = (one.name, one.type, one.parameters) == (other.name, other.type, other.parameters)
                if not same or len(one.arguments) != len(other.arguments):
                    return None
                pending += zip(reversed(one.arguments), reversed(other.arguments), strict=True)
            case Cast(), Cast():
                if (one.type, one.mode, one.zone) != (other.type, other.mode, other.zone):
                    return None
                pending.append((one.child, other.child))
            case _:
                if one != other:
                    return None
    return found


# --- euclidean ----------------------------------------------------------------------------------------------------


def _euclidean_sql(columns: Sequence[str], point: Sequence[float]) -> str:
    squares = (f"power(CAST({column} AS DOUBLE) - {at!r}D, 2)" for column, at in zip(columns, point, strict=True))
    return f"sqrt({' + '.join(squares)})"


def _euclidean(one: Sequence[float], other: Sequence[float]) -> float:
    return math.sqrt(sum((a - b) ** 2 for a, b in zip(one, other, strict=True)))


def _euclidean_point(numbers: Sequence[float]) -> tuple[float, ...] | None:
    """Each coordinate is followed by the exponent."""
    return tuple(numbers[::2]) if len(numbers) % 2 == 0 and set(numbers[1::2]) == {2.0} else None


# --- haversine ----------------------------------------------------------------------------------------------------


def _haversine_sql(columns: Sequence[str], point: Sequence[float]) -> str:
    (lat, lon), (lat_0, lon_0) = (f"CAST({column} AS DOUBLE)" for column in columns), point
    north = f"power(sin(radians({lat} - {lat_0!r}D) / 2.0D), 2)"
    east = f"power(sin(radians({lon} - {lon_0!r}D) / 2.0D), 2)"
    narrowed = f"{math.cos(math.radians(lat_0))!r}D * cos(radians({lat})) * {east}"
    return f"{2 * _RADIUS!r}D * asin(sqrt(least(1.0D, {north} + {narrowed})))"


def _haversine(one: Sequence[float], other: Sequence[float]) -> float:
    (lat_1, lon_1), (lat_2, lon_2) = one, other
    north, east = math.sin(math.radians(lat_1 - lat_2) / 2), math.sin(math.radians(lon_1 - lon_2) / 2)
    half = north**2 + math.cos(math.radians(lat_1)) * math.cos(math.radians(lat_2)) * east**2
    return 2 * _RADIUS * math.asin(math.sqrt(min(1.0, half)))


def _haversine_point(numbers: Sequence[float]) -> tuple[float, ...] | None:
    if len(numbers) != 9:
        return None
    diameter, one, lat, half, square, cosine, lon, *again = numbers
    if (diameter, one, half, square, *again) != (2 * _RADIUS, 1.0, 2.0, 2.0, 2.0, 2.0):
        return None
    if not (abs(lat) <= 90 and abs(cosine - math.cos(math.radians(lat))) < 1e-12):
        return None
    return (lat, lon)


# --- declared by a session ----------------------------------------------------------------------------------------


def called_sql(name: str, columns: Sequence[str], point: Sequence[float]) -> str:
    """A call of a declared function: the distance of columns from a point.

    Examples
    --------
    >>> called_sql("taxi", ["x", "y"], [3, 4.5])
    'taxi(x, y, 3.0D, 4.5D)'
    """
    return f"{name}({', '.join([*columns, *(f'{float(at)!r}D' for at in point)])})"


def declared_points(
    asked: Operand, indexed: Operand, functions: Declarations | None
) -> tuple[tuple[float, ...], tuple[float, ...], Callable[..., Any]] | None:
    """The point that a distance is asked from, the origin, and the function, where both are calls of the same function
    on the same columns and the session declared it to be a metric, in the version that was indexed."""
    if functions is None or not (isinstance(asked, Call) and isinstance(indexed, Call)):
        return None
    version = dict(indexed.parameters).get("version")
    same = (asked.name, asked.type, asked.parameters) == (indexed.name, indexed.type, indexed.parameters)
    if not same or version is None or not indexed.name.startswith(USER):
        return None
    declared = functions(indexed.name.removeprefix(USER))
    if declared is None or declared.metric is None or declared.version != version:
        return None
    half = len(indexed.arguments) // 2
    columns, origin = indexed.arguments[:half], _numbers(indexed.arguments[half:])
    first, second = asked.arguments[:half], asked.arguments[half:]
    point = _numbers(second if first == columns else first)
    if columns not in (first, second) or point is None or origin is None or len(point) != len(origin):
        return None
    return (point, origin, declared.metric) if _is_careful(declared.metric, point) else None


def _numbers(operands: Sequence[Operand]) -> tuple[float, ...] | None:
    """Constants as finite numbers."""
    found = []
    for operand in operands:
        value = operand.value if isinstance(operand, Literal) else None
        if isinstance(value, bool) or not isinstance(value, int | float | Decimal) or not math.isfinite(value):
            return None
        found.append(float(value))
    return tuple(found)


def _is_careful(metric: Callable[..., Any], point: Sequence[float]) -> bool:
    """Whether a function has no result for a point that lacks a coordinate: null for null, NaN for NaN, or it fails.
    If it fails, so does every query that meets such a point."""
    for at in range(len(point)):
        for odd in (None, math.nan):
            try:
                found = metric(*point[:at], odd, *point[at + 1 :], *point)
            except Exception:
                continue
            if found is not None and not (odd is not None and found != found):
                return False
    return True


METRICS: Final = {
    "euclidean": Metric(None, _euclidean_sql, _euclidean, _euclidean_point),
    "haversine": Metric(2, _haversine_sql, _haversine, _haversine_point),
}
