"""Predicates and operands as one line of text that reads like SQL: for people, never parsed."""

from __future__ import annotations

import math
import re
from datetime import datetime, timedelta, timezone
from typing import Final

from es_skipping.predicates.tree import (
    And,
    Call,
    Cast,
    Column,
    Comparison,
    Constant,
    Element,
    HasElement,
    Holds,
    Implying,
    IsIn,
    Literal,
    Matches,
    Not,
    NullTest,
    Opaque,
    Operand,
    Or,
    Predicate,
    unknown_node,
)
from es_skipping.predicates.types import DataType, Value

__all__ = ["quoted_name", "show", "show_value", "sql_name"]

_MAX_LENGTH: Final = 2_000
_MAX_VALUES: Final = 10
_MAX_CHILDREN: Final = 100
_MAX_TEXT: Final = 200
_MAX_LEVELS: Final = 60
_PLAIN_NAME: Final = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=timezone.utc)


def show(node: Predicate | Operand) -> str:
    """One line of text for a predicate or an operand; long lists and texts are cut.

    Examples
    --------
    >>> x = Column(("a", "b c"), DataType("date"))
    >>> show(And((Comparison(">=", x, Literal(19723, x.type)), NullTest(x, negated=True))))
    "a.`b c` >= DATE '2024-01-01' AND a.`b c` IS NOT NULL"
    """
    text = _show(node, 0)
    return text if len(text) <= _MAX_LENGTH else text[: _MAX_LENGTH - 4] + " ..."


def _show(node: Predicate | Operand, level: int) -> str:  # one line per kind of node
    if level > _MAX_LEVELS:
        return "..."
    deeper = level + 1
    match node:
        case Column(path):
            return ".".join(map(_name, path))
        case Element(array, _, path):
            return ".".join([f"{_show(array, deeper)}[]", *map(_name, path)])
        case Literal(value, type):
            return "NULL" if value is None else show_value(value, type)
        case Cast(child, type, mode):
            return f"{'TRY_CAST' if mode == 'TRY' else 'CAST'}({_show(child, deeper)} AS {str(type).upper()})"
        case Call(name, arguments):
            return f"{_plain(name)}({', '.join(_show(argument, deeper) for argument in arguments)})"
        case Opaque(reason):
            return f"<{_plain(reason)}>"
        case Constant(value):
            return "TRUE" if value else "FALSE"
        case Comparison(comparator, left, right):
            return f"{_show(left, deeper)} {comparator} {_show(right, deeper)}"
        case IsIn():
            return _is_in(node, deeper)
        case NullTest(operand, negated):
            return f"{_show(operand, deeper)} IS {'NOT ' if negated else ''}NULL"
        case Matches():
            return _matches(node, deeper)
        case Holds(call, negated):
            return ("NOT " if negated else "") + _show(call, deeper)
        case HasElement(array, condition):
            return f"ANY {_show(array, deeper)}[] ({_show(condition, deeper)})"
        case Implying(exact):
            return _show(exact, deeper)
        case Not(child):
            return f"NOT ({_show(child, deeper)})"
        case And() | Or():
            return _connective(node, deeper)
        case _:
            return _show(unknown_node(node), level)


def _connective(node: And | Or, level: int) -> str:
    parts = [
        f"({_show(child, level)})" if isinstance(child, And | Or) else _show(child, level)
        for child in node.children[:_MAX_CHILDREN]
    ]
    if len(node.children) > _MAX_CHILDREN:
        parts.append(f"... {len(node.children) - _MAX_CHILDREN} more")
    return (" AND " if isinstance(node, And) else " OR ").join(parts)


def _is_in(node: IsIn, level: int) -> str:
    values = [show_value(value, node.operand.type) for value in node.values[:_MAX_VALUES]]
    if len(node.values) > _MAX_VALUES:
        values.append(f"... {len(node.values) - _MAX_VALUES} more")
    if node.has_null:
        values.append("NULL")
    return f"{_show(node.operand, level)} {'NOT ' if node.negated else ''}IN ({', '.join(values)})"


def _matches(node: Matches, level: int) -> str:
    operand, pattern = _show(node.operand, level), _quoted(node.pattern)
    contrary = "NOT " if node.negated else ""
    if node.test in {"like", "rlike"}:
        escape = f" ESCAPE {_quoted(node.escape)}" if node.test == "like" and node.escape != "\\" else ""
        return f"{operand} {contrary}{node.test.upper()} {pattern}{escape}"
    function = {"starts": "startswith", "ends": "endswith", "contains": "contains"}[node.test]
    return f"{contrary}{function}({operand}, {pattern})"


def show_value(value: Value, type: DataType) -> str:
    """A value as a SQL literal.

    Examples
    --------
    >>> show_value(1704067200000000, DataType("timestamp"))
    "TIMESTAMP '2024-01-01 00:00:00Z'"
    """
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, bytes):
        return f"X'{value[:_MAX_TEXT].hex()}{'...' if len(value) > _MAX_TEXT else ''}'"
    if isinstance(value, float) and (math.isnan(value) or math.isinf(value)):
        return f"{type.name.upper()} '{'NaN' if math.isnan(value) else '-Infinity' if value < 0 else 'Infinity'}'"
    if isinstance(value, int) and type.name in {"date", "timestamp", "timestamp_ntz"}:
        return _moment(value, type.name)
    return str(value)


def _moment(value: int, name: str) -> str:
    keyword = name.upper()
    try:
        moment = _EPOCH + (timedelta(days=value) if name == "date" else timedelta(microseconds=value))
    except OverflowError:  # outside the years 1 to 9999
        return f"{keyword} {value}"
    if name == "date":
        return f"DATE '{moment.date().isoformat()}'"
    text = moment.replace(tzinfo=None).isoformat(sep=" ")
    return f"{keyword} '{text}{'Z' if name == 'timestamp' else ''}'"


def _name(name: str) -> str:
    return sql_name(_plain(name))


def sql_name(name: str) -> str:
    """A name as SQL takes it, quoted if it needs quotes.

    Examples
    --------
    >>> sql_name("city"), sql_name("a city")
    ('city', '`a city`')
    """
    return name if _PLAIN_NAME.fullmatch(name) else quoted_name(name)


def quoted_name(name: str) -> str:
    """A name as SQL takes any name.

    Examples
    --------
    >>> quoted_name("a`b")
    '`a``b`'
    """
    return "`" + name.replace("`", "``") + "`"


def _quoted(text: str) -> str:
    cut = text if len(text) <= _MAX_TEXT else text[:_MAX_TEXT] + "..."
    return "'" + _plain(cut.replace("\\", "\\\\").replace("'", "\\'")) + "'"


def _plain(text: str) -> str:
    """Without line breaks and other characters that do not print."""
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode("ascii")
        for character in text
    )
