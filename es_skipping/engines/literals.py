"""Literals of a filter's SQL text, as values with the span of values that some engine may take them for.

Engines bring a column and a literal to one type in different ways: DuckDB and Polars round 0.1 to a FLOAT column's
precision, Spark widens the column instead; pyarrow converts a decimal to a double with an error in the last bits. A
`Span` has the nearest values of the column's type on both sides of what any of them compares with.
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from fractions import Fraction
from typing import Final

import numpy as np

from es_skipping.predicates.codec import float32
from es_skipping.predicates.types import DataType, Value

__all__ = ["Refused", "Span", "check_together", "date_span", "moment_span", "number_span"]

_DIGITS: Final = 15
"""Decimals of at most this many digits stay apart as doubles, by more than any engine's conversion errs."""
_MAX_POWER: Final = 22
"""Powers of ten up to this one are exact doubles."""
_MOST_WHOLE: Final = 1 << 53
"""Whole numbers below it stay apart as doubles, which DuckDB and Polars compare with where one number has a fraction or
an exponent."""
_ULPS: Final = 4
"""Bound of the error of an engine's conversion of such a decimal to a double, in units of the last place."""
_NUMBER: Final = re.compile(r"(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_DATE: Final = re.compile(r"(\d{4})-(\d\d)-(\d\d)", re.ASCII)
_MOMENT: Final = re.compile(
    r"(\d{4}-\d\d-\d\d)(?:[ T](\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,6}))?)?)?(Z|[+-]\d\d:\d\d)?", re.ASCII
)
_ZONES_US: Final = 18 * 3_600_000_000
"""Zones are at most this far from UTC."""
_EPOCH: Final = datetime.date(1970, 1, 1)


class Refused(Exception):
    """Why a part of a filter is not understood."""


@dataclass(frozen=True, slots=True)
class Span:
    """The values of a column's type between which an engine may place a literal.

    Parameters
    ----------
    low, high
        The ends; equal if the literal is a value of the type.
    exact
        Whether every engine compares with exactly this value, so that ``<`` need not be read as ``<=``.
    """

    low: Value
    high: Value
    exact: bool


def number_span(text: str, negative: bool, type: DataType) -> Span:
    """Read a number beside a column of a numeric type.

    Raises
    ------
    Refused
        It is beyond what all engines keep apart, or the type is not numeric.

    Examples
    --------
    >>> number_span("2.5", False, DataType("int"))
    Span(low=2, high=3, exact=False)
    >>> number_span("7", True, DataType("int"))
    Span(low=-7, high=-7, exact=True)
    """
    if not _NUMBER.fullmatch(text):
        raise Refused(f"the number {text[:50]}")
    value = Decimal(text)
    if negative:
        value = value.copy_negate()
    whole = text.isdigit()  # a decimal such as 7.0 is 70 * 0.1 to pyarrow, which is not 7 as a double
    _, digits, exponent = value.normalize().as_tuple()
    assert isinstance(exponent, int)
    few = len(digits) <= _DIGITS and abs(exponent) <= _MAX_POWER
    if type.is_integer:
        if not -(1 << (type.bits - 1)) <= value < 1 << (type.bits - 1):
            raise Refused(f"{text} is beyond {type}")
        if whole:
            return Span(int(value), int(value), True)
        if not few or abs(value) >= _MOST_WHOLE:
            raise Refused(f"{text} beside {type} has more digits than a double")
        return Span(math.floor(value), math.ceil(value), False)
    if not few:
        raise Refused(f"{text} has more digits than a double")
    if type.name == "decimal":
        return _decimal_span(value, text, type)
    if type.is_float:
        return _float_span(value, whole, type)
    raise Refused(f"a number beside {type}")


def check_together(numbers: Iterable[str]) -> None:
    """Refuse numbers of one IN or BETWEEN that an engine compares as doubles, and that doubles do not keep apart.

    Parameters
    ----------
    numbers
        Without their signs.

    Raises
    ------
    Refused
        One has a fraction or an exponent, and another one is too large.
    """
    texts = [text for text in numbers if _NUMBER.fullmatch(text)]
    large = next((text for text in texts if Decimal(text) >= _MOST_WHOLE), None)
    if large is not None and not all(text.isdigit() for text in texts):
        raise Refused(f"{large} beside a number with a fraction has more digits than a double")


def _decimal_span(value: Decimal, text: str, type: DataType) -> Span:
    if abs(value) >= Decimal(10) ** min(_DIGITS - type.scale, type.precision - type.scale):
        raise Refused(f"{text} beside {type} has more digits than a double")
    grid = Decimal(1).scaleb(-type.scale)
    low, high = value.quantize(grid, ROUND_FLOOR), value.quantize(grid, ROUND_CEILING)
    return Span(low, high, False)


def _float_span(value: Decimal, whole: bool, type: DataType) -> Span:
    double = float(value) + 0.0  # no negative zero
    if type.name == "double":
        if whole:
            return Span(double, double, True)
        low = high = double
        for _ in range(_ULPS):
            low, high = math.nextafter(low, -math.inf), math.nextafter(high, math.inf)
        return Span(low, high, False)
    if abs(double) > 1e38:
        raise Refused(f"{value} is beyond float")
    near = float32(double)
    if Fraction(near) == Fraction(value):
        return Span(near, near, whole)
    below, above = (float(np.nextafter(np.float32(near), np.float32(end))) + 0.0 for end in (-math.inf, math.inf))
    return Span(near if near < value else below, near if near > value else above, False)


def date_span(text: str) -> Span:
    """Read a date beside a column of dates.

    Raises
    ------
    Refused
        It is not written as ``YYYY-MM-DD``.

    Examples
    --------
    >>> date_span("1970-01-03")
    Span(low=2, high=2, exact=True)
    """
    days = _days(text) if _DATE.fullmatch(text) else None
    if days is None:
        raise Refused(f"{text[:50]!r} beside a date, which is written as '2026-11-20'")
    return Span(days, days, True)


def moment_span(text: str, type: DataType) -> Span:
    """Read a date or a time beside a column of timestamps.

    A time without a zone means another moment in each session. DuckDB and pyarrow read the timestamps of INT96 files as
    if they had no zone, so a time with a zone is spread in the same way.

    Raises
    ------
    Refused
        It is not written as ``YYYY-MM-DD hh:mm:ss.ffffff``, or has a zone that the column lacks.

    Examples
    --------
    >>> moment_span("1970-01-01 00:00:01", DataType("timestamp_ntz"))
    Span(low=1000000, high=1000000, exact=True)
    """
    match = _MOMENT.fullmatch(text)
    days = _days(match[1]) if match else None
    if match is None or days is None:
        raise Refused(f"{text[:50]!r} beside a timestamp, which is written as '2026-11-20 12:30:00'")
    hours, minutes, seconds = (int(match[at] or 0) for at in (2, 3, 4))
    if hours > 23 or minutes > 59 or seconds > 59:
        raise Refused(f"{text!r} is not a time")
    micros = ((days * 24 + hours) * 60 + minutes) * 60 + seconds
    micros = micros * 1_000_000 + int((match[5] or "").ljust(6, "0"))
    zone = match[6]
    if type.name == "timestamp_ntz":
        if zone is not None:
            raise Refused(f"{text!r} has a zone, and the column has none")
        return Span(micros, micros, True)
    if zone is not None and zone != "Z":
        east = (int(zone[1:3]) * 60 + int(zone[4:6])) * 60_000_000
        micros -= east if zone[0] == "+" else -east
    return Span(micros - _ZONES_US, micros + _ZONES_US, False)


def _days(text: str) -> int | None:
    try:
        return (datetime.date.fromisoformat(text) - _EPOCH).days
    except ValueError:
        return None
