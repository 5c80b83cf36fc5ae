"""Conditions of queries that an index can store: Spark reads their SQL back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from es_skipping.build.columns import resolve
from es_skipping.errors import ColumnError
from es_skipping.lookup.built_with import columns_of
from es_skipping.predicates.normal import normalise
from es_skipping.predicates.subsumption import subsumes
from es_skipping.predicates.tree import (
    Call,
    Cast,
    Column,
    Element,
    HasElement,
    Literal,
    Operand,
    Predicate,
    leaves_of,
    operands_in,
    operands_of,
)
from es_skipping.predicates.truth import predicate_of, sql_of
from es_skipping.predicates.types import DataType
from es_skipping.workload.mining import never_by_time

if TYPE_CHECKING:
    from es_skipping.build.source import Source

__all__ = ["Condition", "condition_of", "has_a_value", "is_usable", "never_fails"]

_TOTAL: Final = frozenset({
    "lower", "upper", "initcap", "length", "octetlength", "bitlength", "substring", "stringtrim", "stringtrimleft",
    "stringtrimright", "stringreplace", "stringtranslate", "stringinstr", "stringlocate", "concat", "coalesce",
    "greatest", "least", "lastday", "year", "quarter", "month", "weekofyear", "dayofyear", "dayofmonth", "dayofweek",
    "hour", "minute", "second", "unixdate", "unixseconds", "unixmillis", "unixmicros",
})  # fmt: skip
"""Functions that have a value, or null, for all arguments of their types, in ANSI mode too.

Not among them: ``trunc`` and ``date_trunc``, which overflow for the least dates and times; ``get_json_object``, whose
path may hold a number that overflows; ``substring_index``, which fails for the least count; ``reverse``, which in Spark
4.0 reads beyond a text that ends inside a character.
"""


class Condition(NamedTuple):
    """SQL, and the predicate that Spark reads in it: the one that was meant, or a looser one."""

    text: str
    predicate: Predicate


def condition_of(source: Source, predicate: Predicate) -> Condition | str:
    """A predicate as a condition on the source's files; otherwise why it cannot be one."""
    text = sql_of(predicate)
    if text is None:
        return "it cannot be written as SQL"
    try:
        read = predicate_of(resolve(source, text).operand)
    except ColumnError as error:
        return str(error)
    whole = normalise(predicate)  # with what follows from it, such as a range of dates from `year(day) = 2024`
    return Condition(text, read) if subsumes(read, whole) else "Spark reads its SQL as another predicate"


def is_usable(source: Source, predicate: Predicate) -> bool:
    """Whether a predicate is about what the files hold, and does not drift with time."""
    columns = columns_of(operands_of(predicate))
    return never_by_time(predicate) and not any(column.path[0] in source.partition_columns for column in columns)


def never_fails(predicate: Predicate) -> bool:
    """Whether Spark can evaluate a predicate for every row, in ANSI mode too.

    A query may guard a part that can fail, as in ``y <> 0 AND x / y > 2``. A stored condition has no guard: a refresh
    evaluates it for all rows of all files.

    Examples
    --------
    >>> from es_skipping.predicates.tree import Comparison
    >>> x, y = (Column((name,), DataType("int")) for name in "xy")
    >>> never_fails(Comparison("=", x, y))
    True
    >>> never_fails(Comparison("=", Call("divide", (x, y), DataType("double")), x))
    False
    """
    for leaf in leaves_of(predicate):
        if isinstance(leaf, HasElement):
            if not (has_a_value(leaf.array) and never_fails(leaf.condition)):
                return False
        elif not all(map(has_a_value, operands_in(leaf))):
            return False
    return True


def has_a_value(operand: Operand) -> bool:
    """Whether Spark can evaluate an operand for every row, to a value or to null, in ANSI mode too.

    Examples
    --------
    >>> text = Column(("text",), DataType("string"))
    >>> has_a_value(Call("upper", (text,), DataType("string"))), has_a_value(Cast(text, DataType("int"), "ANSI"))
    (True, False)
    """
    match operand:
        case Column() | Literal():
            return True
        case Element(array):
            return has_a_value(array)
        case Cast(child, type, mode):
            if child.type.name == "date" and type.name in ("timestamp", "timestamp_ntz"):
                return False  # a date after the year 294247 overflows, in every mode
            return (mode != "ANSI" or _widens(child.type, type)) and has_a_value(child)
        case Call("remainder", (dividend, Literal(divisor))):
            return bool(divisor) and has_a_value(dividend)
        case Call(name, arguments, type):
            total = name in _TOTAL or (type.is_float and name in ("add", "subtract", "multiply"))
            return total and all(map(has_a_value, arguments))
    return False


def _widens(from_: DataType, to: DataType) -> bool:
    """Whether each value of a type has a value of the other."""
    if from_.is_integer and to.is_integer:
        return from_.bits <= to.bits
    return to.name == "string" or (from_.name, to.name) == ("float", "double")
