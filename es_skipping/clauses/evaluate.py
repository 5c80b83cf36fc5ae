"""Evaluates clauses over metadata in memory, one object at a time.

True, false or unknown (None), combined by Kleene's rules; only *false* allows an object to be skipped. Every store's
answer must agree with this one. It says what the questions mean, so it is written to be read, not to be fast.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from es_skipping.clauses.clause import Ask, Clause, Conjunction, Decided
from es_skipping.clauses.fingerprints import cell_of, cells_of, hash_of
from es_skipping.clauses.metadata import Boxes, Fingerprints, Intervals, Metadata, Values
from es_skipping.clauses.questions import (
    AnyOf,
    HasNaN,
    HasNotNull,
    HasNull,
    Meets,
    OtherThan,
    Overlaps,
    Question,
    Range,
    TextMatch,
)
from es_skipping.predicates.text import passes
from es_skipping.predicates.types import Value

__all__ = ["all_hold", "answer", "any_holds", "holds"]


def holds(clause: Clause, metadata: Mapping[str, Metadata]) -> bool | None:
    """Whether a clause is true of an object; None if unknown.

    Parameters
    ----------
    clause
        As `es_skipping.clauses.merge.merge_clause` makes it.
    metadata
        The object's metadata, by index id. A missing index is unknown.

    Examples
    --------
    >>> clause = Ask("minmax(x)", Overlaps((Range(5, None),)))
    >>> holds(clause, {"minmax(x)": Intervals(((1, 4),), nulls=0)})
    False
    >>> holds(clause, {}) is None
    True
    """
    if isinstance(clause, Decided):
        return clause.value
    if isinstance(clause, Ask):
        return answer(clause.question, metadata.get(clause.index))
    parts = (holds(part, metadata) for part in clause.clauses)
    return all_hold(parts) if isinstance(clause, Conjunction) else any_holds(parts)


def all_hold(truths: Iterable[bool | None]) -> bool | None:
    """Kleene's conjunction: false if any is false, else unknown if any is unknown."""
    found = set(truths)
    return False if False in found else None if None in found else True


def any_holds(truths: Iterable[bool | None]) -> bool | None:
    """Kleene's disjunction: true if any is true, else unknown if any is unknown."""
    found = set(truths)
    return True if True in found else None if None in found else False


def answer(question: Question, metadata: Metadata | None) -> bool | None:
    """The answer of one index's metadata of one object; None if it cannot tell.

    Examples
    --------
    >>> answer(OtherThan((5,)), Values(frozenset({5}), nulls=2))
    False
    """
    if isinstance(metadata, Intervals):
        return _of_intervals(question, metadata)
    if isinstance(metadata, Values):
        return _of_values(question, metadata)
    if isinstance(metadata, Fingerprints):
        return _of_fingerprints(question, metadata)
    if isinstance(metadata, Boxes):
        return _of_boxes(question, metadata)
    return None


# --- intervals ----------------------------------------------------------------------------------------------------


def _of_intervals(question: Question, metadata: Intervals) -> bool | None:
    if isinstance(question, HasNull | HasNaN):
        return _counted(question, metadata.nulls, metadata.nans)
    intervals = metadata.ranges
    if isinstance(question, HasNotNull):
        values = None if intervals is None else bool(intervals)
        return any_holds([values, _some(metadata.nans)])
    if intervals is None:
        return None
    bounds = [bound for interval in intervals for bound in interval]
    if isinstance(question, AnyOf):
        if not _comparable([*bounds, *question.values]):
            return None
        return any(_within(value, Range(*interval)) for value in question.values for interval in intervals)
    if isinstance(question, OtherThan):
        if not _comparable([*bounds, *question.values]):
            return None
        return any(low != high or low not in question.values for low, high in intervals)
    if isinstance(question, Overlaps):
        if not _comparable([*bounds, *_bounds(question.ranges)]):
            return None
        return any(_meet(Range(*interval), wanted) for wanted in question.ranges for interval in intervals)
    return None


# --- values -------------------------------------------------------------------------------------------------------


def _of_values(question: Question, metadata: Values) -> bool | None:
    if isinstance(question, HasNull | HasNaN):
        return _counted(question, metadata.nulls, metadata.nans)
    values = metadata.values
    if isinstance(question, HasNotNull):
        return any_holds([bool(values), _some(metadata.nans)])
    if isinstance(question, AnyOf):
        return any(value in question.values for value in values) if _comparable([*values, *question.values]) else None
    if isinstance(question, OtherThan):
        return (
            any(value not in question.values for value in values) if _comparable([*values, *question.values]) else None
        )
    if isinstance(question, Overlaps):
        if not _comparable([*values, *_bounds(question.ranges)]):
            return None
        return any(_within(value, wanted) for value in values for wanted in question.ranges)
    if isinstance(question, TextMatch):
        return any_holds(passes(question, value) for value in values)
    return None


# --- fingerprints -------------------------------------------------------------------------------------------------


def _of_fingerprints(question: Question, metadata: Fingerprints) -> bool | None:
    if isinstance(question, HasNull | HasNaN):
        return _counted(question, metadata.nulls, metadata.nans)
    if isinstance(question, HasNotNull):
        return any_holds([metadata.count > 0, _some(metadata.nans)])
    if not metadata.count:
        return False
    if not isinstance(question, AnyOf):
        return None  # the cells do not tell which values it holds
    try:
        asked = {cell_of(hash_of(value), metadata.space) for value in question.values}
    except ValueError:
        return None
    return not asked.isdisjoint(cells_of(metadata.packed, metadata.space, metadata.count))


# --- boxes --------------------------------------------------------------------------------------------------------


def _of_boxes(question: Question, metadata: Boxes) -> bool | None:
    if isinstance(question, HasNotNull):
        return bool(metadata.boxes)
    if not isinstance(question, Meets):
        return None
    if any(len(box) != len(question.box) for box in metadata.boxes):
        return None
    if not _comparable([*_bounds(question.box), *(bound for box in metadata.boxes for axis in box for bound in axis)]):
        return None
    return any(
        all(_meet(Range(*axis), wanted) for axis, wanted in zip(box, question.box, strict=True))
        for box in metadata.boxes
    )


# --- counts, ranges and types -------------------------------------------------------------------------------------


def _some(count: int | None) -> bool | None:
    return None if count is None else count > 0


def _counted(question: HasNull | HasNaN, nulls: int | None, nans: int | None) -> bool | None:
    return _some(nulls if isinstance(question, HasNull) else nans)


def _bounds(ranges: Iterable[Range]) -> list[Value]:
    return [bound for one in ranges for bound in (one.low, one.high) if bound is not None]


def _comparable(values: Iterable[Value]) -> bool:
    """Whether Python compares all of these as Spark would: values of one type, none of them NaN."""
    kinds: set[type] = set()
    for value in values:
        if isinstance(value, float) and math.isnan(value):
            return False
        kinds.add(type(value))  # so bool is not an int, and Decimal is not compared with float
    return len(kinds) <= 1


def _within(value: Value, wanted: Range) -> bool:
    return _meet(Range(value, value), wanted)


def _meet(held: Range, wanted: Range) -> bool:
    """Whether a closed interval reaches into a range. Nothing reaches into an empty range."""
    return _in_order(wanted, wanted) and _in_order(wanted, held) and _in_order(held, wanted)


def _in_order(lower: Range, upper: Range) -> bool:
    """Whether the low end of one range leaves room for the high end of the other."""
    low, high = lower.low, upper.high
    if low is None or high is None:
        return True
    if lower.low_open or upper.high_open:
        return bool(low < high)  # type: ignore[operator]
    return bool(low <= high)  # type: ignore[operator]
