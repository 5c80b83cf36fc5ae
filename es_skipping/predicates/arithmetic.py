"""What a comparison of arithmetic implies for its arguments: ``abs(x - 5) < 2`` puts ``x`` above 3 and below 7.

Interval arithmetic, run backward: the comparison puts the result into an interval; an argument lies where the result
can lie in it, while the other arguments take any value that they can have. One function is undone at a time, and the
condition on its argument is normalised again, which undoes the next.

Every step widens. What Spark rounds (floating point, decimals of fewer digits) is widened by more than a rounding; what
may wrap around (integers, unless ANSI mode or a ``try_`` function refuses) lies in one of several intervals. Rows that
satisfy the comparison satisfy the implied condition, not the other way round, so the comparison stays beside it.

Source of the idea: the backward step of HC4 in Benhamou, Goualard, Granvilliers and Puget, *Revising hull and box
consistency* (ICLP 1999).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Final

from es_skipping.predicates.casts import ends_of, monotone
from es_skipping.predicates.intervals import INFINITY, UNDONE, Interval, Number, times
from es_skipping.predicates.tree import (
    NEVER,
    And,
    Call,
    Cast,
    Comparator,
    Comparison,
    Literal,
    NullTest,
    Operand,
    Or,
    Predicate,
    operands_in,
)
from es_skipping.predicates.types import DataType, Value

__all__ = ["said_of_arguments"]

_MAX_HEIGHT: Final = 8
"""Expressions that nest deeper say nothing: where numbers wrap around, each level may double what is said."""
_MAX_TURNS: Final = 4
"""A result that may have wrapped around more often says nothing of its arguments."""


def said_of_arguments(comparator: Comparator, operand: Operand, value: Value) -> Predicate | None:
    """What ``operand comparator value`` implies for the arguments of an arithmetic function.

    Parameters
    ----------
    comparator
        ``=``, ``<>``, ``<``, ``<=``, ``>`` or ``>=``.
    operand
        A call.
    value
        Of the operand's type, and not NaN.

    Returns
    -------
    Predicate or None
        True for every row for which the comparison is true; not in normal form, as the arguments may be functions
        themselves. None where nothing is known of the function, or nothing follows.

    Examples
    --------
    >>> from es_skipping.predicates.normal import normalise
    >>> from es_skipping.predicates.show import show
    >>> from es_skipping.predicates.tree import Column
    >>> x = Column(("x",), DataType("int"))
    >>> twice = Call("multiply", (x, Literal(2, x.type)), x.type, (("evalMode", "ANSI"),))
    >>> show(normalise(said_of_arguments(">", twice, 7)))
    'x >= 4'
    """
    if not isinstance(operand, Call) or not operand.arguments:
        return None
    if operand.name in ("greatest", "least"):
        return _of_extreme(comparator, operand, value)
    if operand.name == "coalesce":
        return _of_first(comparator, operand, value)
    exact, undo = _exact(value), UNDONE.get(operand.name)
    if comparator == "<>" or exact is None or undo is None or _height(operand) > _MAX_HEIGHT:
        return None
    if not _is_numeric(operand.type) or _divides_fractions(operand):
        return None
    step = 0 if operand.type.is_float or operand.type.name == "decimal" else 1  # of whole numbers the next is known
    asked = Interval(
        exact + step * (comparator == ">") if comparator in ("=", ">", ">=") else -INFINITY,
        exact - step * (comparator == "<") if comparator in ("=", "<", "<=") else INFINITY,
    )
    nan = operand.type.is_float and comparator in (">", ">=")  # NaN is greater than every number
    parts = list[Predicate]()
    known = [_hull(argument) for argument in operand.arguments]
    results = _before_wrapping(operand, _before_rounding(operand.type, asked), known)
    for at, argument in enumerate(operand.arguments):
        others = _all_known(known[:at] + known[at + 1 :])
        if others is None or isinstance(argument, Literal) or not _is_numeric(argument.type):
            continue
        if nan and operand.name == "multiply" and any(one.low <= 0 <= one.high for one in others):
            continue  # an infinity times 0 is NaN
        found = [one for result in results for one in undo(at, result, others)]
        if any(_covers(one, known[at]) for one in found):
            continue
        said = _within(argument, found, nan=nan or _hides_nan(operand, asked))
        parts.extend([] if said is None else [said])
    if not parts:
        return None
    return And(tuple(parts)) if len(parts) > 1 else parts[0]


# --- functions that return one of their arguments -----------------------------------------------------------------


def _of_extreme(comparator: Comparator, call: Call, value: Value) -> Predicate | None:
    """Nulls are passed over. The greatest is below a value if all are, and above if one is."""
    outward = (">", ">=") if call.name == "greatest" else ("<", "<=")
    inward: Comparator = "<=" if call.name == "greatest" else ">="
    literal = Literal(value, call.type)
    if comparator == "<>" or any(argument.type != call.type for argument in call.arguments):
        return None
    some = Or(tuple(Comparison(comparator, argument, literal) for argument in call.arguments))
    if comparator in outward:
        return some
    side = inward if comparator == "=" else comparator
    every = tuple(Or((NullTest(argument), Comparison(side, argument, literal))) for argument in call.arguments)
    return And((*every, some))


def _of_first(comparator: Comparator, call: Call, value: Value) -> Predicate | None:
    """The first that is not null: of any argument, those before it are null."""
    if any(argument.type != call.type for argument in call.arguments):
        return None
    literal = Literal(value, call.type)
    cases = list[Predicate]()
    for at, argument in enumerate(call.arguments):
        nulls = [NullTest(before) for before in call.arguments[:at]]
        cases.append(And((*nulls, Comparison(comparator, argument, literal))))
    return Or(tuple(cases))


# --- from the result to what was rounded or wrapped around --------------------------------------------------------


def _exact(value: Value | None) -> Fraction | None:
    """A finite number; None for any other value."""
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal) or not math.isfinite(value):
        return None
    return Fraction(value)


def _divides_fractions(call: Call) -> bool:
    """Whether an integral quotient may be larger than what is divided."""
    return call.name == "integraldivide" and not all(argument.type.is_integer for argument in call.arguments)


def _is_numeric(type: DataType) -> bool:
    return type.is_integer or type.is_float or type.name in ("decimal", "date")


def _height(operand: Operand) -> int:
    height, level = 0, [operand]
    while level and height <= _MAX_HEIGHT:
        height += 1
        level = [part for parent in level for part in operands_in(parent)]
    return height


def _before_rounding(type: DataType, result: Interval) -> Interval:
    """Where the exact result of that type lies."""
    low, high = result
    if type.name == "decimal":
        unit = 2 * Fraction(1, 10**type.scale)  # a quotient is rounded twice
        return Interval(low - unit, high + unit)
    if type.name == "double":
        return Interval(_next(low, -INFINITY), _next(high, INFINITY))
    if type.name == "float":
        return Interval(low - _half_unit(low), high + _half_unit(high))
    return result


def _half_unit(end: Number) -> Number:
    """More than half the distance of the nearest single-precision numbers."""
    return Fraction(0) if isinstance(end, float) else abs(end) / 2**22 + Fraction(1, 2**148)


def _next(end: Number, towards: float) -> Number:
    if isinstance(end, float):
        return end
    try:
        beyond = math.nextafter(float(end), towards)
    except OverflowError:
        return INFINITY if end > 0 else -INFINITY
    return beyond if math.isinf(beyond) else Fraction(beyond)


def _before_wrapping(call: Call, result: Interval, known: Sequence[Interval | None]) -> list[Interval]:
    """Where the result may lie before it wrapped around; ``[]`` if it may have done so too often to tell."""
    ends = _ends(call.type)
    if call.type.name == "decimal" or ends is None or _refuses(call):
        return [result]
    least, most = ends
    inside = Interval(max(result.low, least), min(result.high, most))
    arguments = _all_known(known)
    whole = None if arguments is None else _image(call, arguments)
    if whole is None:
        return []
    size = most - least + 1
    first, last = math.ceil((whole.low - most) / size), math.floor((whole.high - least) / size)
    if last - first > _MAX_TURNS:
        return []
    return [Interval(inside.low + turn * size, inside.high + turn * size) for turn in range(first, last + 1)]


def _refuses(call: Call) -> bool:
    """Whether a result beyond its type is an error or null, or the last one of the type."""
    parameters = dict(call.parameters)
    return (
        parameters.get("evalMode") in ("ANSI", "TRY")
        or parameters.get("failOnError") == "true"
        or call.name in ("floor", "ceil")
    )


def _hides_nan(call: Call, result: Interval) -> bool:
    """Whether NaN may become a number that was asked for: as a whole number it is 0."""
    return call.name in ("floor", "ceil") and result.low <= 0 <= result.high


# --- what an operand can be ---------------------------------------------------------------------------------------

_NATURAL: Final = {
    "month": (1, 12),
    "quarter": (1, 4),
    "dayofmonth": (1, 31),
    "dayofyear": (1, 366),
    "dayofweek": (1, 7),
    "weekday": (0, 6),
    "weekofyear": (1, 53),
    "hour": (0, 23),
    "minute": (0, 59),
    "second": (0, 59),
    "year": (-6_000_000, 6_000_000),  # 2^31 days to either side of 1970
}


def _hull(operand: Operand, height: int = 0) -> Interval | None:
    """All that a number can be; None if it has no bounds, may be infinite or NaN, or is none."""
    if isinstance(operand, Literal):
        exact = _exact(operand.value)
        return None if exact is None else Interval(exact, exact)
    type = operand.type
    if isinstance(operand, Cast) and height < _MAX_HEIGHT and "date" not in (type.name, operand.child.type.name):
        inner = _hull(operand.child, height + 1)
        if inner is not None and _is_numeric(type) and monotone(operand.child.type, type, operand.zone) is not None:
            return _before_rounding(type, inner)
    ends = _ends(type)
    if isinstance(operand, Call):
        if operand.name in _NATURAL and type.is_integer:
            return Interval(*map(Fraction, _NATURAL[operand.name]))
        known = [_hull(argument, height + 1) for argument in operand.arguments] if height < _MAX_HEIGHT else [None]
        arguments = _all_known(known)
        image = None if arguments is None else _image(operand, arguments)
        if image is not None:
            rounded = _before_rounding(type, image)
            if ends is None:
                return None if isinstance(rounded.low, float) or isinstance(rounded.high, float) else rounded
            if _covers(ends, rounded):
                return rounded
            if _refuses(operand):
                return Interval(max(ends.low, rounded.low), min(ends.high, rounded.high))
    return ends


def _ends(type: DataType) -> Interval | None:
    """The least and the greatest number of a type; None for floating point, which has infinities and NaN."""
    ends = ends_of(type) if type.is_integer or type.name in ("decimal", "date") else None
    return Interval(*map(Fraction, ends)) if ends else None  # type: ignore[arg-type]


def _all_known(intervals: Sequence[Interval | None]) -> list[Interval] | None:
    known = [one for one in intervals if one is not None]
    return known if len(known) == len(intervals) else None


def _covers(one: Interval, known: Interval | None) -> bool:
    return known is not None and one.low <= known.low and known.high <= one.high


def _image(call: Call, known: Sequence[Interval]) -> Interval | None:
    """All exact results for arguments in these intervals; None where the function is not known, or has no bounds."""
    match call.name, known:
        case (("add" | "dateadd"), [x, y]):
            return Interval(x.low + y.low, x.high + y.high)
        case (("subtract" | "datesub" | "datediff"), [x, y]):
            return Interval(x.low - y.high, x.high - y.low)
        case "multiply", [x, y]:
            return times(x, y)
        case "unaryminus", [x]:
            return Interval(-x.high, -x.low)
        case "abs", [x]:
            return Interval(Fraction(0), _size(x))
        case "integraldivide", [x, _] if not _divides_fractions(call):
            return Interval(-_size(x), _size(x))
        case (("remainder" | "pmod"), [_, y]):
            return Interval(-_size(y), _size(y))
        case (("floor" | "ceil"), [x]):
            return Interval(x.low - 1, x.high + 1)
    return None


def _size(interval: Interval) -> Number:
    return -interval.low if -interval.low > interval.high else interval.high


# --- as conditions ------------------------------------------------------------------------------------------------


def _within(argument: Operand, intervals: Sequence[Interval], *, nan: bool) -> Predicate | None:
    """The argument lies in one of these intervals, or with ``nan`` is NaN; None where that says nothing."""
    cases = [_between(argument, one) for one in intervals]
    if not cases or None in cases:
        return None
    found = [case for case in cases if case is not None and case != NEVER]
    if nan and argument.type.is_float and all(one.high < INFINITY for one in intervals):
        found.append(Comparison("=", argument, Literal(math.nan, argument.type)))
    if not found:
        return NEVER
    return Or(tuple(found)) if len(found) > 1 else found[0]


def _between(argument: Operand, interval: Interval) -> Predicate | None:
    type = argument.type
    if type.name == "float":  # compared as a double, whose thresholds normal form brings back to the float's own
        argument, type = Cast(argument, DataType("double")), DataType("double")
    ends = ends_of(type)
    parts = list[Comparison]()
    for comparator, end in (("<=", interval.high), (">=", interval.low)):
        if isinstance(end, float):
            continue
        bound = _bound(end, type, above=comparator == "<=")
        if bound is None:
            continue
        if ends is not None:
            if (bound > ends[1]) if comparator == ">=" else (bound < ends[0]):  # type: ignore[operator]
                return NEVER
            if (bound <= ends[0]) if comparator == ">=" else (bound >= ends[1]):  # type: ignore[operator]
                continue
        parts.append(Comparison(comparator, argument, Literal(bound, type)))  # type: ignore[arg-type]
    if not parts:
        return None
    if len(parts) == 2 and parts[0].right == parts[1].right:
        return Comparison("=", argument, parts[0].right)
    return And(tuple(parts)) if len(parts) > 1 else parts[0]


def _bound(end: Number, type: DataType, *, above: bool) -> Value | None:
    """The end as a value of a type, rounded outward; None where there is none beyond it."""
    if type.name == "double":
        try:
            nearest = float(end)
        except OverflowError:
            return None
        if (nearest < end) if above else (nearest > end):
            nearest = math.nextafter(nearest, INFINITY if above else -INFINITY)
        return None if math.isinf(nearest) else nearest + 0.0
    if type.name == "decimal":
        scaled = end * 10**type.scale
        digits = math.floor(scaled) if above else math.ceil(scaled)
        return Decimal((int(digits < 0), tuple(map(int, str(abs(digits)))), -type.scale))
    return math.floor(end) if above else math.ceil(end)
