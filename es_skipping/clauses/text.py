"""Clauses as text for people: the question to each index."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from es_skipping.clauses.clause import Ask, Clause, Conjunction, Decided
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
from es_skipping.predicates.show import show_value
from es_skipping.predicates.types import DataType, Value

__all__ = ["clause_text"]

_VALUES: Final = 10
_LEVELS: Final = 60
_UNKNOWN: Final = DataType("unknown")
_TESTS: Final = {
    "starts": "starting with",
    "ends": "ending with",
    "contains": "containing",
    "like": "LIKE",
    "rlike": "RLIKE",
}


def clause_text(clause: Clause, types: Mapping[str, DataType] | None = None, name: Callable[[str], str] = str) -> str:
    """One line for a clause.

    Parameters
    ----------
    clause
        Of a look-up.
    types
        The type of each index's values, so that dates read as dates.
    name
        Turns an index id into the name that people read.

    Examples
    --------
    >>> from es_skipping.clauses.questions import Range
    >>> clause = Ask("minmax(day)", Overlaps((Range(19723, None, low_open=True),)))
    >>> clause_text(clause, {"minmax(day)": DataType("date")})
    "minmax(day): a value > DATE '2024-01-01'"
    """
    return _show(clause, types or {}, name, 0)


def _show(clause: Clause, types: Mapping[str, DataType], name: Callable[[str], str], level: int) -> str:
    if level > _LEVELS:
        return "..."
    if isinstance(clause, Decided):
        return "every object is kept" if clause.value else "no object is kept"
    if isinstance(clause, Ask):
        question = clause.about or _question(clause.question, types.get(clause.index, _UNKNOWN))
        return f"{name(clause.index)}: {question}"
    word = " AND " if isinstance(clause, Conjunction) else " OR "
    parts = [_show(part, types, name, level + 1) for part in clause.clauses]
    return word.join(
        part if isinstance(inner, Ask | Decided) else f"({part})"
        for part, inner in zip(parts, clause.clauses, strict=True)
    )


def _question(question: Question, type: DataType) -> str:
    if isinstance(question, AnyOf):
        return f"a value IN ({_values(question.values, type)})"
    if isinstance(question, OtherThan):
        return f"a value NOT IN ({_values(question.values, type)})"
    if isinstance(question, Overlaps):
        ranges = [_range(part, type) for part in question.ranges[:_VALUES]]
        if len(question.ranges) > _VALUES:
            ranges.append(f"{len(question.ranges) - _VALUES} more ranges")
        return f"a value {' or '.join(ranges)}"
    if isinstance(question, TextMatch):
        return (
            f"a value {'not ' if question.negated else ''}{_TESTS[question.test]} {show_value(question.pattern, type)}"
        )
    if isinstance(question, Meets):
        return (
            f"a point with {' and '.join(f'axis {i + 1} {_range(axis, type)}' for i, axis in enumerate(question.box))}"
        )
    fixed = {HasNull: "a null", HasNotNull: "a value that is not null", HasNaN: "a NaN"}
    return fixed.get(question.__class__, str(question))


def _values(values: tuple[Value, ...], type: DataType) -> str:
    shown = [show_value(value, type) for value in values[:_VALUES]]
    if len(values) > _VALUES:
        shown.append(f"... {len(values) - _VALUES} more")
    return ", ".join(shown)


def _range(range: Range, type: DataType) -> str:
    low, high = range.low, range.high
    if low is not None and low == high:
        return f"= {show_value(low, type)}"
    sides = []
    if low is not None:
        sides.append(f"{'>' if range.low_open else '>='} {show_value(low, type)}")
    if high is not None:
        sides.append(f"{'<' if range.high_open else '<='} {show_value(high, type)}")
    return " and ".join(sides) or "at all"
