"""Turns a boolean operand into a predicate, and a predicate into SQL that Spark reads.

An index over a boolean expression (a feature of a layout) remembers it as an operand, as every index remembers what it
is on; filters arrive as predicates. `predicate_of` turns the first into the second, and `sql_of` writes SQL text.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Final

from es_skipping.predicates import reasons
from es_skipping.predicates.codec import value_to_data
from es_skipping.predicates.normal import normalise
from es_skipping.predicates.show import sql_name
from es_skipping.predicates.tree import (
    And,
    Call,
    Cast,
    Column,
    Comparator,
    Comparison,
    Constant,
    Element,
    Holds,
    IsIn,
    Literal,
    Matches,
    Not,
    NullTest,
    Opaque,
    Operand,
    Or,
    Predicate,
    TextTest,
)
from es_skipping.predicates.types import DataType, Value

__all__ = ["predicate_of", "sql_of", "sql_of_operand"]

_COMPARATORS: Final[dict[str, Comparator]] = {
    "equalto": "=",
    "equalnullsafe": "<=>",
    "lessthan": "<",
    "lessthanorequal": "<=",
    "greaterthan": ">",
    "greaterthanorequal": ">=",
}
_TESTS: Final[dict[str, TextTest]] = {
    "startswith": "starts",
    "endswith": "ends",
    "contains": "contains",
    "like": "like",
    "rlike": "rlike",
}
_BOOLEAN: Final = DataType("boolean")


def predicate_of(operand: Operand) -> Predicate:
    """The normal predicate that is true of the rows for which a boolean operand is true.

    Parameters
    ----------
    operand
        Of type boolean, as `es_skipping.predicates.operands.read_operand` reads it.

    Examples
    --------
    >>> x = Column(("x",), DataType("int"))
    >>> predicate_of(Call("lessthan", (x, Literal(3, x.type)), DataType("boolean"))).comparator
    '<'
    """
    return normalise(_predicate(operand))


def _predicate(operand: Operand) -> Predicate:
    if isinstance(operand, Opaque):
        return operand
    if operand.type != _BOOLEAN:
        return Opaque(reasons.NO_CONDITION.of(type=operand.type), operand.type)
    if not isinstance(operand, Call):
        return Comparison("=", operand, Literal(True, _BOOLEAN))
    name, arguments = operand.name, operand.arguments
    if name in ("and", "or"):
        parts = tuple(map(_predicate, arguments))
        return And(parts) if name == "and" else Or(parts)
    if name == "not":
        return Not(_predicate(arguments[0]))
    return _leaf(operand, name, arguments)


def _leaf(operand: Call, name: str, arguments: tuple[Operand, ...]) -> Predicate:
    first = arguments[0] if arguments else None
    if name in _COMPARATORS:
        return Comparison(_COMPARATORS[name], arguments[0], arguments[1])
    if name in ("isnull", "isnotnull") and first is not None:
        return NullTest(first, negated=name == "isnotnull")
    if name == "in" and first is not None:
        return _listed(first, arguments[1:])
    if name in _TESTS and isinstance(arguments[1], Literal) and isinstance(arguments[1].value, str):
        escape = dict(operand.parameters).get("escapeChar", "\\")
        return Matches(_TESTS[name], arguments[0], arguments[1].value, escape)
    return Holds(operand)


def _listed(operand: Operand, items: tuple[Operand, ...]) -> Predicate:
    if all(isinstance(item, Literal) and (item.value is None or item.type == operand.type) for item in items):
        values = [item.value for item in items if isinstance(item, Literal)]
        return IsIn(operand, tuple(value for value in values if value is not None), has_null=None in values)
    return Or(tuple(Comparison("=", operand, item) for item in items))


# --- as SQL -------------------------------------------------------------------------------------------------------

_LIST: Final = 10
"""Spark turns a longer IN into a set that does not show its values."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=timezone.utc)
_SIGNS: Final = {
    "add": "+", "subtract": "-", "multiply": "*", "divide": "/", "remainder": "%", "integraldivide": "DIV",
    "bitwiseand": "&", "bitwiseor": "|", "bitwisexor": "^",
}  # fmt: skip
_OTHER_NAMES: Final = {
    "bitwisecount": "bit_count", "dateformatclass": "date_format", "dayofmonth": "day",
    "gettimestamp": "to_timestamp", "lengthofjsonarray": "json_array_length", "log": "ln", "logarithm": "log",
    "microstotimestamp": "timestamp_micros", "millistotimestamp": "timestamp_millis", "murmur3hash": "hash",
    "roundceil": "ceil", "roundfloor": "floor", "secondstotimestamp": "timestamp_seconds", "stringinstr": "instr",
    "stringlocate": "locate", "stringlpad": "lpad", "stringrepeat": "repeat", "stringreplace": "replace",
    "stringrpad": "rpad", "stringspace": "space", "stringsplit": "split", "stringtranslate": "translate",
    "stringtrim": "trim", "stringtrimleft": "ltrim", "stringtrimright": "rtrim", "todegrees": "degrees",
    "toradians": "radians", "truncdate": "trunc", "trunctimestamp": "date_trunc",
}  # fmt: skip
_NAMES_WITH_UNDERSCORES: Final = (
    "add_months", "array_contains", "array_max", "array_min", "array_position", "arrays_overlap", "bit_length",
    "concat_ws", "date_add", "date_from_unix_date", "date_sub", "element_at", "find_in_set", "format_number",
    "format_string", "from_unixtime", "from_utc_timestamp", "get_json_object", "last_day", "make_date",
    "make_timestamp", "map_keys", "map_values", "months_between", "next_day", "octet_length", "parse_url",
    "regexp_extract", "regexp_instr", "regexp_replace", "substring_index", "to_unix_timestamp", "to_utc_timestamp",
    "unix_date", "unix_micros", "unix_millis", "unix_seconds", "unix_timestamp", "width_bucket",
)  # fmt: skip
_TRIMS: Final = ("stringtrim", "stringtrimleft", "stringtrimright")
_NAMES: Final = {**_OTHER_NAMES, **{name.replace("_", ""): name for name in _NAMES_WITH_UNDERSCORES}}
"""Functions whose SQL name differs from the name of their class. A name is a proposal: Spark's reading of it counts."""


def sql_of(predicate: Predicate) -> str | None:
    """SQL text that Spark reads as the predicate; None if no such text is known.

    The text is a proposal: callers resolve it and compare the result with the predicate.

    Examples
    --------
    >>> sql_of(Comparison(">", Column(("a", "b c"), DataType("int")), Literal(3, DataType("int"))))
    'a.`b c` > 3'
    """
    try:
        return _sql(predicate)
    except _Unsayable:
        return None


def sql_of_operand(operand: Operand) -> str | None:
    """SQL text that Spark reads as the operand; None if no such text is known.

    Examples
    --------
    >>> sql_of_operand(Call("udf:family", (Column(("agent",), DataType("string")),), DataType("string")))
    'family(agent)'
    """
    try:
        return _operand(operand)
    except _Unsayable:
        return None


class _Unsayable(Exception):
    pass


def _sql(node: Predicate) -> str:
    match node:
        case Constant(value):
            return "true" if value else "false"
        case And(children) | Or(children):
            word = " AND " if isinstance(node, And) else " OR "
            return word.join(f"({_sql(part)})" if _needs_brackets(part) else _sql(part) for part in children)
        case Comparison(comparator, left, right) if comparator != "<=>":
            return f"{_operand(left)} {comparator} {_operand(right)}"
        case NullTest(operand, negated):
            return f"{_operand(operand)} IS {'NOT ' if negated else ''}NULL"
        case IsIn(has_null=False):
            return _in(node)
        case Matches():
            return _matches(node)
        case Holds(call, negated):
            return f"{'NOT ' if negated else ''}{_operand(call)}"
        case _:
            raise _Unsayable


def _needs_brackets(node: Predicate) -> bool:
    return isinstance(node, And | Or) or (isinstance(node, IsIn) and len(node.values) > _LIST)


def _in(node: IsIn) -> str:
    operand = _operand(node.operand)
    values = [_value(value, node.operand.type) for value in node.values]
    lists = [", ".join(values[at : at + _LIST]) for at in range(0, len(values), _LIST)]
    word, joint = ("NOT IN", " AND ") if node.negated else ("IN", " OR ")
    return joint.join(f"{operand} {word} ({one})" for one in lists)


def _matches(node: Matches) -> str:
    operand, pattern = _operand(node.operand), _quoted(node.pattern)
    contrary = "NOT " if node.negated else ""
    if node.test == "like":
        escape = "" if node.escape == "\\" else f" ESCAPE {_quoted(node.escape)}"
        return f"{operand} {contrary}LIKE {pattern}{escape}"
    if node.test == "rlike":
        return f"{operand} {contrary}RLIKE {pattern}"
    function = {"starts": "startswith", "ends": "endswith", "contains": "contains"}[node.test]
    return f"{contrary}{function}({operand}, {pattern})"


def _operand(operand: Operand) -> str:
    if isinstance(operand, Column):
        return ".".join(map(sql_name, operand.path))
    if isinstance(operand, Element):
        return ".".join([f"{_operand(operand.array)}[]", *map(sql_name, operand.path)])
    if isinstance(operand, Literal):
        return f"CAST(NULL AS {operand.type})" if operand.value is None else _value(operand.value, operand.type)
    if isinstance(operand, Cast):
        if operand.mode not in ("ANSI", "LEGACY", "TRY"):
            raise _Unsayable
        return f"{'TRY_CAST' if operand.mode == 'TRY' else 'CAST'}({_operand(operand.child)} AS {operand.type})"
    if isinstance(operand, Call):
        return _call(operand)
    raise _Unsayable


def _call(call: Call) -> str:
    arguments = [_operand(argument) for argument in call.arguments]
    if call.name in _SIGNS and len(arguments) == 2:
        return f"({arguments[0]} {_SIGNS[call.name]} {arguments[1]})"
    if call.name == "unaryminus" and len(arguments) == 1:
        return f"(- {arguments[0]})"
    if call.name in _COMPARATORS and len(arguments) == 2:
        return f"({arguments[0]} {_COMPARATORS[call.name]} {arguments[1]})"
    if call.name in ("getarrayitem", "getmapvalue") and len(arguments) == 2:
        return f"{arguments[0]}[{arguments[1]}]"
    if call.name in _TRIMS and len(arguments) == 2:
        arguments.reverse()  # SQL names the characters first, Spark's plan the text
    package, _, simple = call.name.rpartition(".")
    user = package.startswith("udf:")
    name = _NAMES.get(call.name, call.name if user else simple).removeprefix("udf:")
    if sql_name(name) != name:
        raise _Unsayable
    return f"{name}({', '.join(arguments)})"


def _value(value: Value, type: DataType) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, bytes):
        return f"X'{value.hex()}'"
    if isinstance(value, float | Decimal):
        return f"CAST('{value_to_data(value, type)}' AS {type})"
    if type.name == "date":
        return f"DATE '{_calendar(lambda: (date(1970, 1, 1) + timedelta(days=value)).isoformat())}'"
    if type.name in ("timestamp", "timestamp_ntz"):
        moment = _calendar(lambda: (_EPOCH + timedelta(microseconds=value)).replace(tzinfo=None).isoformat(sep=" "))
        return f"{type.name.upper()} '{moment}{'Z' if type.name == 'timestamp' else ''}'"
    return str(value) if type.name == "int" else f"CAST({value} AS {type})"


def _calendar(text: Callable[[], str]) -> str:
    try:
        return text()
    except OverflowError:  # outside the years 1 to 9999
        raise _Unsayable from None


def _quoted(text: str) -> str:
    if not text.isprintable():
        raise _Unsayable
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
