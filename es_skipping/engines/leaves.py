"""One comparison of a filter, as a tree that holds for every row that some engine returns.

The trees have the form in which Spark sends its filters (``docs/decisions/0001-bridge-protocol.md``), so that the same
look-up reads them. Where engines differ, the tree has the rows of all of them:

- ``NOT (x > 5)`` holds for NaN in pyarrow, and not in Spark, DuckDB and Polars;
- ``NOT (s LIKE 'a%')`` holds for ``a`` with a line break in Polars, whose wildcards stop at the end of a line;
- a timestamp outside of 1677 to 2262 in an INT96 file is another moment in pyarrow; dates before the Gregorian calendar
  and timestamps before 1900 in files of old writers are shifted by Spark alone.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from typing import Any, Final

from es_skipping.engines.literals import Refused, Span, check_together, date_span, moment_span, number_span
from es_skipping.predicates.codec import value_to_data
from es_skipping.predicates.tree import Comparator
from es_skipping.predicates.types import DataType, Value

__all__ = ["Tree", "among", "both", "compared", "constant", "either", "column_tree", "not_null", "opaque", "text_test"]

Tree = Mapping[str, Any]

_NEGATED: Final[Mapping[Comparator, Comparator]] = {"=": "<>", "<>": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}
_CLASSES: Final[Mapping[Comparator, str]] = {
    "=": "EqualTo",
    "<": "LessThan",
    "<=": "LessThanOrEqual",
    ">": "GreaterThan",
    ">=": "GreaterThanOrEqual",
}
_WILDCARDS: Final = frozenset("%_")
_EPOCH: Final = datetime.date(1970, 1, 1)
_DAY_US: Final = 86_400_000_000


def _micros(year: int, month: int, day: int) -> int:
    return (datetime.date(year, month, day) - _EPOCH).days * _DAY_US


_REBASED: Final[Mapping[str, tuple[Value, Value | None]]] = {
    "date": ((datetime.date(1582, 10, 16) - _EPOCH).days, None),
    "timestamp": (_micros(1900, 1, 3), _micros(2262, 4, 10)),
    "timestamp_ntz": (_micros(1900, 1, 3), _micros(2262, 4, 10)),
}
"""Engines agree about values from the first on and up to the second."""


def opaque(why: str) -> Tree:
    """The tree that rules nothing out."""
    return {"c": "Opaque", "t": "boolean", "why": why}


def constant(value: bool | None) -> Tree:
    """TRUE, FALSE or NULL."""
    return {"c": "Literal", "t": "boolean", "v": value}


def column_tree(path: tuple[str, ...], type: DataType) -> Tree:
    """A column, or a field of a struct."""
    tree: Tree = {"c": "AttributeReference", "t": str(type) if len(path) == 1 else "struct", "name": path[0]}
    for at, name in enumerate(path[1:], 2):
        tree = {"c": "GetStructField", "t": str(type) if at == len(path) else "struct", "field": name, "ch": [tree]}
    return tree


def both(trees: list[Tree]) -> Tree:
    """AND."""
    return {"c": "And", "t": "boolean", "ch": trees} if len(trees) > 1 else trees[0]


def either(trees: list[Tree]) -> Tree:
    """OR."""
    return {"c": "Or", "t": "boolean", "ch": trees} if len(trees) > 1 else trees[0]


def not_null(column: Tree) -> Tree:
    """IS NOT NULL."""
    return {"c": "IsNotNull", "t": "boolean", "ch": [column]}


def text_test(name: str, column: Tree, pattern: str, negated: bool) -> Tree:
    """``Like`` or ``StartsWith``, or its negation."""
    tree = _text_tree(name, column, pattern)
    if name == "Like":
        tree = {**tree, "a": {"escapeChar": "\\"}}
    if not negated:
        return tree
    tree = {"c": "Not", "t": "boolean", "ch": [tree]}
    if name == "Like" and _WILDCARDS.isdisjoint(pattern):
        return tree
    return either([tree, _text_tree("Contains", column, "\n")])


def _text_tree(name: str, column: Tree, text: str) -> Tree:
    return {"c": name, "t": "boolean", "ch": [column, {"c": "Literal", "t": "string", "v": text}]}


def compared(
    comparator: Comparator, column: Tree, type: DataType, literal: tuple[str, str, bool], negated: bool
) -> Tree:
    """``column comparator literal``, or its negation.

    Parameters
    ----------
    literal
        What it is (``"number"``, ``"text"``, ``"date"``, ``"timestamp"``, ``"timestamp_ntz"`` or ``"boolean"``), its
        text, and whether a minus stands before it.

    Raises
    ------
    Refused
        Engines differ in what it means.
    """
    span = _span(literal, type)
    tree = _within(_NEGATED[comparator] if negated else comparator, column, type, span)
    if negated and type.is_float and comparator in (">", ">="):
        return either([tree, {"c": "IsNaN", "t": "boolean", "ch": [column]}])
    return tree


def among(column: Tree, type: DataType, literals: Sequence[tuple[str, str, bool]]) -> Tree:
    """``column IN (literals)``.

    Raises
    ------
    Refused
        Engines differ in what one of them means.
    """
    check_together(text for kind, text, _ in literals if kind == "number")
    spans = [_span(literal, type) for literal in literals]
    if type.is_float or type.name in _REBASED or any(span.low != span.high for span in spans):
        return either([_within("=", column, type, span) for span in spans])
    values = [{"c": "Literal", "t": str(type), "v": value_to_data(span.low, type)} for span in spans]
    return {"c": "In", "t": "boolean", "ch": [column, *values]}


def _span(literal: tuple[str, str, bool], type: DataType) -> Span:
    kind, text, negative = literal
    if kind == "number":
        return number_span(text, negative, type)
    if kind == "boolean" and type.name == "boolean":
        return Span(text == "true", text == "true", True)
    if kind == "text" and type.name == "string":
        return Span(text, text, True)
    if kind in ("text", "date") and type.name == "date":
        return date_span(text)
    if kind == "timestamp" and type.name == "timestamp_ntz":
        raise Refused("a TIMESTAMP beside a column without a zone; write TIMESTAMP_NTZ '...' or only the text")
    if kind == "date":
        date_span(text)  # engines cut the time of a DATE '2026-11-20 12:30:00', which is refused
    if kind in ("text", "date", "timestamp", "timestamp_ntz") and type.name in ("timestamp", "timestamp_ntz"):
        return moment_span(text, type)
    raise Refused(f"a {kind} beside {type}: engines convert them in different ways")


def _within(comparator: Comparator, column: Tree, type: DataType, span: Span) -> Tree:
    def side(comparator: Comparator, value: Value) -> Tree:
        literal = {"c": "Literal", "t": str(type), "v": value_to_data(value, type)}
        return {"c": _CLASSES[comparator], "t": "boolean", "ch": [column, literal]}

    if comparator == "<>":
        if not span.exact:
            return not_null(column)
        tree: Tree = {"c": "Not", "t": "boolean", "ch": [side("=", span.low)]}
    elif comparator == "=":
        same = span.low == span.high
        tree = side("=", span.low) if same else both([side(">=", span.low), side("<=", span.high)])
    elif comparator in ("<", "<="):
        tree = side(comparator if span.exact else "<=", span.high)
    else:
        tree = side(comparator if span.exact else ">=", span.low)
    since, until = _REBASED.get(type.name, (None, None))
    doubtful = [] if since is None else [side("<", since)]
    if until is not None:
        doubtful.append(side(">", until))
    return either([tree, *doubtful])
