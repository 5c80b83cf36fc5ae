"""Undoes casts that preserve order: a comparison of a cast column becomes a comparison of the column itself.

Where f is a non-decreasing function on an ordered, discrete type (integers, decimals, dates, timestamps, and the
single-precision numbers), ``f(x) < v`` holds for exactly the x below one threshold, which a binary search finds. That
covers every widening: int to bigint or double, decimal(5,2) to decimal(12,4), float to double, date to timestamp.

A narrowing cast, a cast from or to a string, and a cast that needs a time zone other than UTC are left alone.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from es_skipping.predicates.codec import float32
from es_skipping.predicates.tree import NEVER, And, Cast, Comparison, Literal, NullTest, Operand, Or, Predicate
from es_skipping.predicates.types import DataType, Value

__all__ = ["UTC", "compare_image", "ends_of", "less", "may_be_null", "monotone", "same_family"]

_DAY: Final = 86_400_000_000
UTC: Final = frozenset({"UTC", "Etc/UTC", "Z", "GMT", "Etc/GMT", "+00:00"})
_MAX_FLOAT_BITS: Final = 0x7F800000  # the ordinal of infinity; the next one stands for NaN, which is greater

Function = Callable[[Any], Value]


def less(a: Any, b: Any) -> bool:
    """Spark's order of two values of one type: NaN is equal to itself and greater than every number.

    Examples
    --------
    >>> less(float("inf"), float("nan")), less(float("nan"), float("nan"))
    (True, False)
    """
    if isinstance(a, float) and math.isnan(a):
        return False
    if isinstance(b, float) and math.isnan(b):
        return True
    return bool(a < b)


@dataclass(frozen=True, slots=True)
class _Domain:
    """The values of a discrete ordered type, counted from ``first`` to ``last``."""

    first: int
    last: int
    value: Callable[[int], Value]


def _identity(value: Any) -> Value:
    result: Value = value
    return result


def _float_of(ordinal: int) -> float:
    """The single-precision number of that rank; 0 is the rank of both zeros."""
    size = abs(ordinal)
    if size > _MAX_FLOAT_BITS:
        return math.nan
    number: float = struct.unpack("<f", struct.pack("<I", size))[0]
    return -number if ordinal < 0 else number


def _domain(type: DataType) -> _Domain | None:
    bits = type.bits or {"date": 32, "timestamp": 64, "timestamp_ntz": 64}.get(type.name, 0)
    if bits:
        return _Domain(-(1 << (bits - 1)), (1 << (bits - 1)) - 1, _identity)
    if type.name == "decimal":
        most = 10**type.precision - 1

        def decimal(ordinal: int) -> Decimal:
            digits = tuple(int(digit) for digit in str(abs(ordinal)))
            return Decimal((int(ordinal < 0), digits, -type.scale))  # exact, whatever the decimal context

        return _Domain(-most, most, decimal)
    if type.name == "float":
        return _Domain(-_MAX_FLOAT_BITS, _MAX_FLOAT_BITS + 1, _float_of)
    return None


def ends_of(type: DataType) -> tuple[Value, Value] | None:
    """The least and the greatest value of a discrete type; None for other types.

    Examples
    --------
    >>> ends_of(DataType("tinyint"))
    (-128, 127)
    """
    domain = _domain(type)
    return None if domain is None else (domain.value(domain.first), domain.value(domain.last))


def monotone(source: DataType, target: DataType, zone: str | None = None) -> Function | None:
    """The cast from one type to another as a function, where it is non-decreasing and defined for every value.

    Days that no timestamp can hold count as defined: Spark fails at them, or under TRY has NULL (`may_be_null`).

    Parameters
    ----------
    source, target
        The types cast from and to.
    zone
        The time zone of the cast; only UTC is safe.

    Returns
    -------
    Callable or None
        None where the cast may lose order, overflow or fail.
    """
    if source == target:
        return _identity if source.supported else None
    if source.is_integer:
        if target.is_integer:
            return _identity if target.bits > source.bits else None
        if target.name == "double":
            return float
        if target.name == "float" and source.bits <= 32:  # exact in double, so rounded only once
            return lambda value: float32(float(value))
        if target.name == "decimal":
            enough = target.precision - target.scale >= len(str(1 << (source.bits - 1)))
            return Decimal if enough and target.scale >= 0 else None
    if source.name == "decimal":
        if target.name == "decimal":
            kept = target.scale >= source.scale and (target.precision - target.scale >= source.precision - source.scale)
            return _identity if kept else None
        return float if target.name == "double" else None
    if source.name == "float" and target.name == "double":
        return _identity
    return _temporal(source.name, target.name, zone)


def may_be_null(cast: Cast) -> bool:
    """Whether a monotone cast may turn a value into null: a timestamp cannot hold every day that a date can.

    Examples
    --------
    >>> day = Literal(2**31 - 1, DataType("date"))
    >>> may_be_null(Cast(day, DataType("timestamp"), "TRY", "UTC")), may_be_null(Cast(day, DataType("date"), "TRY"))
    (True, False)
    """
    return cast.mode != "ANSI" and cast.child.type.name == "date" and cast.type.name in ("timestamp", "timestamp_ntz")


def _temporal(source: str, target: str, zone: str | None) -> Function | None:
    if "timestamp" in (source, target) and zone not in UTC:
        return None
    if source == "date" and target in {"timestamp", "timestamp_ntz"}:
        return lambda days: int(days) * _DAY
    if source in {"timestamp", "timestamp_ntz"} and target == "date":
        return lambda micros: int(micros) // _DAY
    if {source, target} == {"timestamp", "timestamp_ntz"}:
        return _identity
    return None


def same_family(a: DataType, b: DataType) -> bool:
    """Whether values of two types are compared by their number alone: two integers, two decimals, two floats."""
    return (a.is_integer and b.is_integer) or (a.is_float and b.is_float) or a.name == b.name == "decimal"


def compare_image(comparator: str, operand: Operand, image: Function | None, value: Value) -> Predicate | None:
    """The exact condition on the operand that ``image(operand) comparator value`` stands for.

    Parameters
    ----------
    comparator
        ``=``, ``<>``, ``<``, ``<=``, ``>`` or ``>=``.
    operand
        Of a discrete type.
    image
        A non-decreasing function of its values; None is the identity.
    value
        Comparable with the function's results.

    Returns
    -------
    Predicate or None
        Comparisons of the operand with literals of its own type; None where its type is not discrete.

    Examples
    --------
    >>> from es_skipping.predicates.tree import Column
    >>> compare_image(">", Column(("x",), DataType("tinyint")), float, 1.5)
    Comparison(comparator='>=', left=Column(path=('x',), type=DataType(name='tinyint', precision=0, scale=0)), \
right=Literal(value=2, type=DataType(name='tinyint', precision=0, scale=0)))
    """
    domain = _domain(operand.type)
    if domain is None:
        return None
    function = image or _identity
    # The ordinals whose image equals the value are start .. stop - 1.
    start = _first(domain, lambda ordinal: not less(function(domain.value(ordinal)), value))
    stop = _first(domain, lambda ordinal: less(value, function(domain.value(ordinal))))
    if stop == start + 1:  # one preimage: the same comparison with it
        return Comparison(comparator, operand, Literal(domain.value(start), operand.type))  # type: ignore[arg-type]
    below, above = (domain.first, start - 1), (stop, domain.last)
    if comparator == "=":
        return _between(operand, domain, start, stop - 1)
    if comparator == "<":
        return _between(operand, domain, *below)
    if comparator == "<=":
        return _between(operand, domain, domain.first, stop - 1)
    if comparator == ">":
        return _between(operand, domain, *above)
    if comparator == ">=":
        return _between(operand, domain, start, domain.last)
    if start == stop:
        return NullTest(operand, negated=True)
    sides = [side for side in (_between(operand, domain, *below), _between(operand, domain, *above)) if side != NEVER]
    return Or(tuple(sides)) if len(sides) > 1 else next(iter(sides), NEVER)


def _first(domain: _Domain, holds: Callable[[int], bool]) -> int:
    """The first ordinal from which on a condition holds; past the last if it never holds."""
    low, high = domain.first, domain.last + 1
    while low < high:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle + 1
    return low


def _between(operand: Operand, domain: _Domain, low: int, high: int) -> Predicate:
    """``operand`` lies among the ordinals low .. high. A side at the end of the domain needs no comparison: nothing
    lies beyond it (NaN is the last ordinal of a float)."""
    if low > high:
        return NEVER
    if low == high:
        return Comparison("=", operand, Literal(domain.value(low), operand.type))
    parts: list[Predicate] = []
    if low > domain.first:
        parts.append(Comparison(">=", operand, Literal(domain.value(low), operand.type)))
    if high < domain.last:
        parts.append(Comparison("<=", operand, Literal(domain.value(high), operand.type)))
    if not parts:
        return NullTest(operand, negated=True)
    return And(tuple(parts)) if len(parts) > 1 else parts[0]
