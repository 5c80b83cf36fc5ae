"""What a comparison of a function of time implies for the time itself: ``year(ts) = 2024`` puts ``ts`` into one year.

Rows that satisfy the comparison satisfy the implied condition, not the other way round. So the comparison stays beside
it (an index on that very expression answers it better). If a time zone matters, the only assumption is that local time
differs from UTC by at most 18 hours, as in Java. Zones change, and two programs may have different tables.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple, TypeAlias

from es_skipping.predicates.casts import UTC
from es_skipping.predicates.tree import NEVER, And, Call, Cast, Comparison, Literal, Operand, Or, Predicate
from es_skipping.predicates.types import Value

__all__ = ["dates_of", "said_of_argument"]

_HOUR: Final = 3_600_000_000
_DAY: Final = 24 * _HOUR
_OFFSET: Final = 18 * _HOUR
_MAX_VALUE: Final = {"date": (1 << 31) - 1, "timestamp": (1 << 63) - 1, "timestamp_ntz": (1 << 63) - 1}

_UNIT_DAYS: Final = {
    **dict.fromkeys(("year", "yyyy", "yy"), 366),
    "quarter": 92,
    **dict.fromkeys(("month", "mon", "mm"), 31),
    "week": 7,
}
"""The most days in each unit to which a date is cut."""
_UNITS: Final = {
    **{unit: days * _DAY for unit, days in _UNIT_DAYS.items()},
    **dict.fromkeys(("day", "dd"), _DAY),
    "hour": _HOUR,
    "minute": _HOUR // 60,
    "second": 1_000_000,
    "millisecond": 1_000,
    "microsecond": 1,
}
_UNIX: Final = {"unixseconds": 1_000_000, "unixtimestamp": 1_000_000, "tounixtimestamp": 1_000_000, "unixmillis": 1_000}

_MOVED: Final = frozenset({"timestampaddinterval", "timeadd"})

Span: TypeAlias = Callable[[int], tuple[int, int]]
"""The least and the greatest argument that can have a result; neither falls as the result grows."""


class _Function(NamedTuple):
    argument: Operand
    span: Span
    wraps: int = 0
    """Within this distance of either end of the argument's type the function may overflow."""


def said_of_argument(comparator: str, operand: Operand, value: Value) -> Predicate | None:
    """What ``operand comparator value`` implies for the date or timestamp that the operand is a function of.

    Parameters
    ----------
    comparator
        ``=``, ``<>``, ``<``, ``<=``, ``>`` or ``>=``.
    operand
        A call or a cast.
    value
        Of the operand's type.

    Returns
    -------
    Predicate or None
        True for every row for which the comparison is true; not in normal form, as the argument may be a function
        itself. None where nothing is known of the function, or nothing follows.

    Examples
    --------
    >>> from es_skipping.predicates.show import show
    >>> from es_skipping.predicates.tree import Column
    >>> from es_skipping.predicates.types import DataType
    >>> year = Call("year", (Column(("day",), DataType("date")),), DataType("int"))
    >>> show(said_of_argument("=", year, 2024))
    "day >= DATE '2024-01-01' AND day <= DATE '2024-12-31'"
    """
    function = _function(operand)
    if function is None or comparator == "<>" or not isinstance(value, int) or isinstance(value, bool):
        return None
    first, last = function.span(value + (comparator == ">") - (comparator == "<"))  # all results are whole numbers
    most = _MAX_VALUE[function.argument.type.name]
    least, parts = -most - 1, list[Predicate]()
    if comparator in ("=", ">", ">=") and first > least:
        parts.append(_compared(">=", function.argument, first) if first <= most else NEVER)
    if comparator in ("=", "<", "<=") and last < most:
        parts.append(_compared("<=", function.argument, last) if last >= least else NEVER)
    if not parts:
        return None
    said = And(tuple(parts)) if len(parts) > 1 else parts[0]
    if not function.wraps:
        return said
    ends = ("<=", least + function.wraps), (">=", most - function.wraps)
    return Or((said, *(_compared(side, function.argument, end) for side, end in ends)))


def dates_of(comparator: str, operand: Operand, time: Operand, value: Value) -> tuple[int | None, int | None] | None:
    """The range of dates of an operand that is the date of a time, given ``time comparator value``.

    The reverse case: Spark may write ``to_date(ts) = d`` as a range of ``ts``, and an index may be on ``to_date(ts)``.

    Parameters
    ----------
    comparator
        ``=``, ``<>``, ``<``, ``<=``, ``>`` or ``>=``.
    operand
        Of type date.
    time, value
        What is compared, and with what.

    Returns
    -------
    tuple or None
        The first and the last date, either None where it has no bound. None where the operand is not the date of this
        time, or nothing follows.

    Examples
    --------
    >>> from es_skipping.predicates.tree import Column
    >>> from es_skipping.predicates.types import DataType
    >>> ts = Column(("ts",), DataType("timestamp"))
    >>> dates_of("<", Cast(ts, DataType("date"), zone="UTC"), ts, 2 * _DAY)
    (None, 1)
    """
    if not isinstance(operand, Cast) or operand.child != time or operand.type.name != "date":
        return None
    if time.type.name not in ("timestamp", "timestamp_ntz") or comparator == "<>":
        return None
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    slack = 0 if operand.zone in UTC else _OFFSET
    at = value + (comparator == ">") - (comparator == "<")
    first = (at - slack) // _DAY if comparator in ("=", ">", ">=") else None
    last = (at + slack) // _DAY if comparator in ("=", "<", "<=") else None
    return first, last


def _compared(comparator: str, operand: Operand, value: int) -> Predicate:
    return Comparison(comparator, operand, Literal(value, operand.type))  # type: ignore[arg-type]


def _function(operand: Operand) -> _Function | None:
    if isinstance(operand, Cast):
        span = _of_cast(operand.child.type.name, operand.type.name, 0 if operand.zone in UTC else _OFFSET)
        return None if span is None else _Function(operand.child, span)
    if not isinstance(operand, Call) or not operand.arguments:
        return None
    first, second = operand.arguments[0], operand.arguments[-1]
    if first.type.name == "date":
        of_date = _of_date(operand.name, second)
        return None if of_date is None else _Function(first, *of_date)
    if operand.name in _MOVED and first.type == operand.type:
        return _moved(operand, first)
    if operand.name == "trunctimestamp" and second.type.name == "timestamp":
        width = _UNITS.get(_text(first))
        # Twice an offset: the zone's may be another at the cut than at the time that was cut.
        slack = 0 if dict(operand.parameters).get("timeZoneId") in UTC else 2 * _OFFSET
        if width is not None:
            return _Function(second, lambda v: (v - slack, v + width + slack), wraps=width + 2 * _DAY)
    if first.type.name == "timestamp":
        if operand.name == "unixmicros":
            return _Function(first, lambda v: (v, v))
        scale = _UNIX.get(operand.name)
        if scale is not None:  # rounded down, or towards zero
            return _Function(first, lambda v: ((v - 1) * scale, (v + 1) * scale))
    return None


def _moved(call: Call, time: Operand) -> _Function | None:
    """A time plus an interval. Whole days are days of the zone's calendar, what is left is added to the moment."""
    parameters = dict(call.parameters)
    by = int(parameters.get("microseconds", "0"))
    if not by or time.type.name not in ("timestamp", "timestamp_ntz"):
        return None
    fixed = time.type.name == "timestamp_ntz" or abs(by) < _DAY or parameters.get("timeZoneId") in UTC
    slack = 0 if fixed else 2 * _OFFSET
    return _Function(time, lambda v: (v - by - slack, v - by + slack))


def _of_cast(source: str, target: str, slack: int) -> Span | None:
    if source in ("timestamp", "timestamp_ntz") and target == "date":
        return lambda v: (v * _DAY - slack, (v + 1) * _DAY - 1 + slack)
    if source == "date" and target in ("timestamp", "timestamp_ntz"):
        return lambda v: ((v - slack) // _DAY, -((-v - slack) // _DAY))
    if {source, target} == {"timestamp", "timestamp_ntz"}:
        return lambda v: (v - slack, v + slack)
    return None


def _of_date(name: str, unit: Operand) -> tuple[Span, int] | None:
    """The range of the argument, and how near to the ends of the type a day of another month or year wraps around."""
    match name:
        case "year":
            return lambda v: (_new_year(v), _new_year(v + 1) - 1), 0
        case "lastday":
            return lambda v: (v - 30, v), 31
        case "unixdate":
            return lambda v: (v, v), 0
        case "truncdate" if _text(unit) in _UNIT_DAYS:
            width = _UNIT_DAYS[_text(unit)]
            return lambda v: (v, v + width - 1), width
    return None


def _text(operand: Operand) -> str:
    return operand.value.lower() if isinstance(operand, Literal) and isinstance(operand.value, str) else ""


def _new_year(year: int) -> int:
    """The first of January in days since the epoch, in the proleptic Gregorian calendar of any year."""
    past = year - 1
    return 365 * past + past // 4 - past // 100 + past // 400 - 719_162
