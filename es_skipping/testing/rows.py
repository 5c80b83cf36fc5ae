"""Rows as plain Python, Spark's three-valued truth of a predicate about one row, and random predicates about such rows.

It is independent of the package's own code on purpose, so that the tests compare two implementations.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import pyarrow as pa
from hypothesis import strategies as st

from es_skipping.predicates.tree import (
    And,
    Column,
    Comparison,
    Constant,
    IsIn,
    Literal,
    Matches,
    Not,
    NullTest,
    Or,
    Predicate,
    TextTest,
)
from es_skipping.predicates.types import DataType, Value
from es_skipping.testing.values import values

__all__ = ["Row", "Truth", "arrow_array", "arrow_type", "cells", "predicates", "truth"]

Row: TypeAlias = Mapping[Column, Any]
"""A row's values by column, held as `es_skipping.predicates.types` says; None for NULL."""

Truth: TypeAlias = Callable[[Predicate, Row], "bool | None"]


# --- truth --------------------------------------------------------------------------------------------------------


def truth(predicate: Predicate, row: Row, other: Truth | None = None) -> bool | None:
    """True, false or null, as Spark decides.

    Parameters
    ----------
    predicate, row
        The question, and the row it is about.
    other
        Decides the nodes that this function does not, such as calls of functions.
    """
    if other is not None and _is_of_a_call(predicate):
        return other(predicate, row)
    match predicate:
        case Constant(value):
            return value
        case Not(child):
            inner = truth(child, row, other)
            return None if inner is None else not inner
        case And(children):
            found = {truth(child, row, other) for child in children}
            return False if False in found else None if None in found else True
        case Or(children):
            found = {truth(child, row, other) for child in children}
            return True if True in found else None if None in found else False
        case NullTest(operand, negated):
            return (_value(operand, row) is None) != negated
        case Comparison("<=>", left, right):
            one, other = _value(left, row), _value(right, row)
            return one is other if one is None or other is None else _order(one, other) == 0
        case Comparison(comparator, left, right):
            one, other = _value(left, row), _value(right, row)
            return None if one is None or other is None else _COMPARATORS[comparator](_order(one, other))
        case IsIn(operand, listed, negated, has_null):
            value = _value(operand, row)
            if value is None:
                return None
            if any(_order(value, one) == 0 for one in listed):
                return not negated
            return None if has_null else negated
        case Matches(test, operand, pattern, escape, negated):
            value = _value(operand, row)
            return None if value is None else _matches(test, value, pattern, escape) != negated
    if other is None:
        raise AssertionError(f"nothing says when {predicate} is true; override IndexContract.truth")
    return other(predicate, row)


def _is_of_a_call(predicate: Predicate) -> bool:
    match predicate:
        case Comparison(_, left, right):
            return not (isinstance(left, Column | Literal) and isinstance(right, Column | Literal))
        case IsIn(operand) | NullTest(operand) | Matches(_, operand):
            return not isinstance(operand, Column)
    return False


_COMPARATORS: dict[str, Callable[[int], bool]] = {
    "=": lambda order: order == 0,
    "<>": lambda order: order != 0,
    "<": lambda order: order < 0,
    "<=": lambda order: order <= 0,
    ">": lambda order: order > 0,
    ">=": lambda order: order >= 0,
}


def _value(operand: Any, row: Row) -> Any:
    return operand.value if isinstance(operand, Literal) else row[operand]


def _order(one: Any, other: Any) -> int:
    if isinstance(one, float):
        one, other = ((math.isnan(v), 0.0 if math.isnan(v) else v) for v in (one, other))
    elif isinstance(one, str):
        one, other = one.encode(), other.encode()
    return int(one > other) - int(one < other)


def _matches(test: str, value: str, pattern: str, escape: str) -> bool:
    if test == "rlike":
        return re.search(pattern, value) is not None
    if test != "like":
        return {
            "starts": value.startswith,
            "ends": value.endswith,
            "contains": value.__contains__,
        }[test](pattern)
    out, at = "", 0
    while at < len(pattern):
        if pattern[at] == escape:
            at += 1
            out += re.escape(pattern[at])
        else:
            out += {"%": ".*", "_": "."}.get(pattern[at], re.escape(pattern[at]))
        at += 1
    return re.fullmatch(out, value, re.DOTALL) is not None


# --- rows as Arrow ------------------------------------------------------------------------------------------------


def arrow_type(type: DataType) -> pa.DataType:
    """What Spark sends for a type."""
    if type.name == "decimal":
        return pa.decimal128(type.precision, type.scale)
    return {
        "tinyint": pa.int8(),
        "smallint": pa.int16(),
        "int": pa.int32(),
        "bigint": pa.int64(),
        "float": pa.float32(),
        "double": pa.float64(),
        "string": pa.string(),
        "binary": pa.binary(),
        "boolean": pa.bool_(),
        "date": pa.date32(),
        "timestamp": pa.timestamp("us", tz="Europe/Berlin"),
        "timestamp_ntz": pa.timestamp("us"),
    }[type.name]


def arrow_array(column: Sequence[Any], type: DataType) -> pa.Array:
    """The values in the form in which Spark sends them."""
    wanted = arrow_type(type)
    if type.name == "date":
        return pa.array(column, pa.int32()).view(wanted)
    if type.name.startswith("timestamp"):
        return pa.array(column, pa.int64()).view(wanted)
    return pa.array(column, wanted)


# --- random rows and predicates -----------------------------------------------------------------------------------


def cells(type: DataType) -> st.SearchStrategy[Any]:
    """Values, nulls, and for floats NaN and -0.0."""
    odd: list[Any] = [None, None]
    if type.is_float:
        odd += [math.nan, -0.0]
    return st.one_of(values(type), values(type), st.sampled_from(odd))


@st.composite
def predicates(
    draw: st.DrawFn,
    columns: Sequence[Column],
    rows: Sequence[Row],
    leaves: st.SearchStrategy[Predicate] | None = None,
    depth: int = 3,
) -> Predicate:
    """A predicate about these columns, often about values that are in the rows or next to them.

    Parameters
    ----------
    columns, rows
        The columns, and the rows whose values predicates use.
    leaves
        Further leaves, which take turns with comparisons and the like.
    depth
        How deep And, Or and Not nest at most; 0 draws leaves alone.
    """

    def literal(column: Column) -> Value:
        present = [row[column] for row in rows if row[column] is not None]
        pools = [values(column.type)] + ([st.sampled_from(present)] * 2 if present else [])
        if column.type.is_float:
            pools.append(st.sampled_from([math.nan, -0.0]))
        found: Value = draw(st.one_of(pools))
        return found

    def leaf() -> Predicate:
        if leaves is not None and draw(st.booleans()):
            return draw(leaves)
        column = draw(st.sampled_from(list(columns)))
        form = draw(st.integers(0, 9))
        if form == 0:
            return NullTest(column, draw(st.booleans()))
        if form in (1, 2):
            listed = tuple(literal(column) for _ in range(draw(st.integers(1, 3))))
            return IsIn(column, listed, draw(st.booleans()), draw(st.integers(0, 4)) == 0)
        if column.type.name == "string" and form > 4:
            return _test(draw, column, str(literal(column)))
        if form == 3 and len(columns) > 1:
            other = draw(st.sampled_from(list(columns)))
            if other.type == column.type:
                return Comparison(draw(st.sampled_from([*_COMPARATORS, "<=>"])), column, other)
        value = None if draw(st.integers(0, 15)) == 0 else literal(column)
        sides = (column, Literal(value, column.type))
        return Comparison(
            draw(st.sampled_from([*_COMPARATORS, "<=>"])),
            *(sides if draw(st.booleans()) else sides[::-1]),
        )

    def tree(depth: int) -> Predicate:
        form = draw(st.integers(0, 6 if depth else 0))
        if form < 3:
            return leaf()
        if form == 3:
            return Not(tree(depth - 1))
        children = tuple(tree(depth - 1) for _ in range(draw(st.integers(2, 3))))
        return Or(children) if form == 4 else And(children)

    return tree(draw(st.integers(0, depth)))


_TESTS: Final[tuple[TextTest, ...]] = ("starts", "ends", "contains", "like", "like", "rlike")


def _test(draw: st.DrawFn, column: Column, text: str) -> Predicate:
    start = draw(st.integers(0, len(text)))
    part = text[start : draw(st.integers(start, len(text)))]
    ends = draw(st.sampled_from([text[:start], text[start:], part]))
    test: TextTest = draw(st.sampled_from(_TESTS))
    if test == "rlike":
        ends = (
            "^" + "".join(c for c in ends if c.isascii() and c.isalnum()) + draw(st.sampled_from(["", "?", "+b", "."]))
        )
        if not ends[1:2].isalnum():
            ends = "^a"
    if test == "like":
        ends = ends.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
        ends = draw(st.sampled_from(["{}%", "%{}", "%{}%", "{}", "{}_%", "%_{}", "_{}", "{}%b", "a%{}"])).format(ends)
        if draw(st.booleans()):
            # the same pattern under another escape character
            ends = ends.replace("!", "!!").replace("\\\\", "\\").replace("\\%", "!%").replace("\\_", "!_")
            if "\\" not in ends:
                return Matches("like", column, ends, "!", draw(st.booleans()))
            ends = "a%"
    return Matches(test, column, ends, "\\", draw(st.booleans()))
