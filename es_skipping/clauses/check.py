"""Checks clauses and metadata that index types make, before anything relies on them: users write index types too.

A mistake found here costs only its own index at that node or object, and is named. Found later, in the middle of a
store's query or a build, it would cost the whole of it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final, get_args

from es_skipping.clauses.clause import Ask, Conjunction, Decided, Disjunction
from es_skipping.clauses.fingerprints import last_cell
from es_skipping.clauses.metadata import Boxes, Fingerprints, Intervals, Kind, Metadata, Values
from es_skipping.clauses.questions import AnyOf, Meets, OtherThan, Overlaps, Question, Range, TextMatch
from es_skipping.predicates.types import DataType, Value, is_value_of

__all__ = ["why_no_clause", "why_no_metadata"]

_DOUBLE: Final = DataType("double")
_QUESTIONS: Final = get_args(Question)
_SETS: Final = (Values, Fingerprints, Intervals)
_KINDS: Final[dict[str, tuple[type, ...]]] = {
    "intervals": (Intervals,),
    "values": _SETS,
    "fingerprints": _SETS,
    "boxes": (Boxes,),
}


def why_no_clause(found: object, value_type: DataType) -> str | None:
    """Why something is not a clause about metadata with values of that type; None if it is one.

    Examples
    --------
    >>> why_no_clause(Ask("it", AnyOf((1, "one"))), DataType("int"))
    "it asks for 'one', which is not a value of type int"
    """
    if isinstance(found, Decided):
        return None
    if isinstance(found, Conjunction | Disjunction):
        return next(filter(None, (why_no_clause(part, value_type) for part in found.clauses)), None)
    if not isinstance(found, Ask):
        return f"{str(found)[:100]!r} is not a clause"
    if not isinstance(found.question, _QUESTIONS):
        return f"{str(found.question)[:100]!r} is not a question"
    for value in _asked(found.question):
        if not is_value_of(value, _DOUBLE if isinstance(found.question, Meets) else value_type):
            return f"it asks for {str(value)[:100]!r}, which is not a value of type {value_type}"
    return None


def _asked(question: Question) -> Iterable[Value]:
    if isinstance(question, AnyOf | OtherThan):
        return question.values
    if isinstance(question, Overlaps):
        return _bounds(question.ranges)
    if isinstance(question, Meets):
        return _bounds(question.box)
    return (question.pattern,) if isinstance(question, TextMatch) else ()


def _bounds(ranges: Iterable[Range]) -> list[Value]:
    return [bound for one in ranges for bound in (one.low, one.high) if bound is not None]


def why_no_metadata(found: object, kind: Kind, value_type: DataType) -> str | None:
    """Why something is not metadata of that kind with values of that type; None if it is.

    Examples
    --------
    >>> why_no_metadata(Intervals(((5, 3),), nulls=0), "intervals", DataType("int"))
    'its intervals are not in order: ((5, 3),)'
    """
    wanted = _KINDS.get(kind)
    if wanted is None or isinstance(found, wanted):
        return _fault(found, value_type) if isinstance(found, (*_SETS, Boxes)) else None
    return f"{str(found)[:100]!r} is not metadata of kind {kind}"


def _fault(found: Metadata, value_type: DataType) -> str | None:
    if isinstance(found, Boxes):
        bounds = [bound for box in found.boxes for axis in box for bound in axis]
        wrong = _stranger(bounds, _DOUBLE)
        if wrong is None and any(low > high for box in found.boxes for low, high in box):
            return f"a side of a box ends before it begins: {str(found.boxes)[:200]}"
        return wrong
    for counted in (found.nulls, found.nans):
        if counted is not None and not (type(counted) is int and counted >= 0):
            return f"{str(counted)[:100]!r} is not a count of rows"
    if isinstance(found, Fingerprints):
        return _no_cells(found)
    if isinstance(found, Values):
        if not isinstance(found.values, frozenset):
            return f"its values are a {type(found.values).__name__}, not a frozenset"
        return _stranger(found.values, value_type)
    ends = [end for low, high in found.ranges or () for end in (low, high)]
    wrong = _stranger(ends, value_type)
    if wrong is None and ends != sorted(ends):
        return f"its intervals are not in order: {str(found.ranges)[:200]}"
    return wrong


def _no_cells(found: Fingerprints) -> str | None:
    try:
        fits = last_cell(found.packed, found.space, found.count) < found.space
    except (ValueError, TypeError, ArithmeticError):
        fits = False
    if not fits:
        return f"its {str(found.count)[:20]} cells of {str(found.space)[:20]} are not packed as they must be"
    return None


def _stranger(values: Iterable[Value], type: DataType) -> str | None:
    for value in values:
        if not is_value_of(value, type):
            return f"{str(value)[:100]!r} is not a value of type {type}"
        if isinstance(value, float) and math.isnan(value):
            return "NaN is not a value: it is counted"
    return None
