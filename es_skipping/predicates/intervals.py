"""Intervals of exact numbers, and where an argument lies if the result of a function lies in one."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Final, NamedTuple, TypeAlias

__all__ = ["INFINITY", "UNDONE", "Interval", "Number", "times"]

INFINITY: Final = math.inf

Number: TypeAlias = Fraction | float
"""A fraction, or an infinity as a float: no finite number is ever a float here."""


class Interval(NamedTuple):
    """Closed; an infinite end is open."""

    low: Number = -INFINITY
    high: Number = INFINITY


_ALL: Final = Interval()


Undo: TypeAlias = Callable[[int, Interval, Sequence[Interval]], Sequence[Interval]]
"""Where the argument at a position lies: from the exact result's interval and those of the other arguments."""


def times(x: Interval, y: Interval) -> Interval:
    """All products.

    Examples
    --------
    >>> times(Interval(Fraction(-1), Fraction(2)), Interval(Fraction(3), INFINITY)).low
    -inf
    """
    ends = [_product(one, other) for one in x for other in y]
    return Interval(min(ends), max(ends))


def _product(one: Number, other: Number) -> Number:
    return Fraction(0) if one == 0 or other == 0 else one * other


def _over(x: Interval, y: Interval) -> Interval:
    """Where q lies if q * y = x, for some y of an interval."""
    if y.low < 0 < y.high or y.low == y.high == 0:
        return _ALL
    if y.high == 0:
        return _over(Interval(-x.high, -x.low), Interval(-y.high, -y.low))
    if y.low == 0:
        if x.low > 0:
            return Interval(_ratio(x.low, y.high), INFINITY)
        return Interval(-INFINITY, _ratio(x.high, y.high)) if x.high < 0 else _ALL
    ends = [_ratio(one, other) for one in x for other in y]
    return Interval(min(ends), max(ends))


def _ratio(one: Number, other: Number) -> Number:
    if isinstance(other, float):
        return Fraction(0)
    return math.copysign(INFINITY, one) * (1 if other > 0 else -1) if isinstance(one, float) else one / other


def _undo_add(at: int, result: Interval, others: Sequence[Interval]) -> Sequence[Interval]:
    (other,) = others
    return (Interval(result.low - other.high, result.high - other.low),)


def _undo_subtract(at: int, result: Interval, others: Sequence[Interval]) -> Sequence[Interval]:
    (other,) = others
    if at == 0:
        return (Interval(result.low + other.low, result.high + other.high),)
    return (Interval(other.low - result.high, other.high - result.low),)


def _undo_multiply(at: int, result: Interval, others: Sequence[Interval]) -> Sequence[Interval]:
    (other,) = others
    return (_over(result, other),)


def _undo_divide(at: int, result: Interval, others: Sequence[Interval]) -> Sequence[Interval]:
    (other,) = others
    return (times(result, other) if at == 0 else _over(other, result),)


def _undo_integral_divide(at: int, result: Interval, others: Sequence[Interval]) -> Sequence[Interval]:
    if at != 0:
        return (_ALL,)
    low = result.low if result.low > 0 else result.low - 1  # the quotient was cut towards 0
    high = result.high if result.high < 0 else result.high + 1
    return (times(Interval(low, high), others[0]),)


def _undo_unary_minus(at: int, result: Interval, others: Sequence[Interval]) -> Sequence[Interval]:
    return (Interval(-result.high, -result.low),)


def _undo_abs(at: int, result: Interval, others: Sequence[Interval]) -> Sequence[Interval]:
    if result.low <= 0:
        return (Interval(-result.high, result.high),)
    return (Interval(-result.high, -result.low), result)


def _undo_floor(at: int, result: Interval, others: Sequence[Interval]) -> Sequence[Interval]:
    return (_saturated(Interval(result.low, result.high + 1)),)


def _undo_ceil(at: int, result: Interval, others: Sequence[Interval]) -> Sequence[Interval]:
    return (_saturated(Interval(result.low - 1, result.high)),)


def _saturated(argument: Interval) -> Interval:
    """A floating-point number beyond a bigint's becomes the last one."""
    last = 2**63 - 2
    return Interval(
        argument.low if argument.low > -last else -INFINITY, argument.high if argument.high < last else INFINITY
    )


UNDONE: Final[dict[str, Undo]] = {
    "add": _undo_add,
    "dateadd": _undo_add,
    "subtract": _undo_subtract,
    "datesub": _undo_subtract,
    "datediff": _undo_subtract,
    "multiply": _undo_multiply,
    "divide": _undo_divide,
    "integraldivide": _undo_integral_divide,
    "unaryminus": _undo_unary_minus,
    "abs": _undo_abs,
    "floor": _undo_floor,
    "ceil": _undo_ceil,
}
