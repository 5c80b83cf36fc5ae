"""What Spark asked: typed expression trees.

Two families live here. *Operands* are what is compared: columns, literals, casts and function calls. *Predicates* are
what is true of a row or not. After `es_skipping.predicates.normal.normalise` a predicate consists of `And`, `Or`, the
constants `ALWAYS` and `NEVER`, and leaves that carry their own negation: a `Not` is never met by an index (promise 2 of
the design: NOT is never the complement of a clause).

A normal predicate stands for the rows for which it is *true*; false and null need not be distinguished any more.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, TypeAlias
from typing import Literal as OneOf

from es_skipping.predicates.types import DataType, Value

__all__ = [
    "ALWAYS",
    "FLIPPED",
    "NEVER",
    "And",
    "Call",
    "Cast",
    "Column",
    "Comparison",
    "Constant",
    "Holds",
    "IsIn",
    "Literal",
    "Matches",
    "Not",
    "NullTest",
    "Opaque",
    "Operand",
    "Or",
    "Predicate",
    "parts_of",
    "why_opaque",
]

Comparator: TypeAlias = OneOf["=", "<>", "<", "<=", ">", ">=", "<=>"]
TextTest: TypeAlias = OneOf["starts", "ends", "contains", "like", "rlike"]

FLIPPED: Final[dict[Comparator, Comparator]] = {
    "=": "=",
    "<>": "<>",
    "<=>": "<=>",
    "<": ">",
    "<=": ">=",
    ">": "<",
    ">=": "<=",
}
"""The comparator that says the same with its sides exchanged."""


# --- operands -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the relation, or a field of a struct column.

    Parameters
    ----------
    path
        Names from the top: ``("a", "b")`` is field ``b`` of ``a``; ``("a.b",)`` is a column whose name has a dot. In
        the relation's own spelling, whatever case the query was typed in.
    """

    path: tuple[str, ...]
    type: DataType


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant; ``value`` is None for NULL. See `es_skipping.predicates.types` for how values are held."""

    value: Value | None
    type: DataType


@dataclass(frozen=True, slots=True)
class Cast:
    """A cast of an operand, as the session would evaluate it.

    ``mode`` is Spark's: ``"LEGACY"`` (null on overflow), ``"ANSI"`` (raise) or ``"TRY"``; ``zone`` the time zone.
    """

    child: Operand
    type: DataType
    mode: str = "LEGACY"
    zone: str | None = None


@dataclass(frozen=True, slots=True)
class Call:
    """A function by name: what it computes is known to those who recognise it, and to nobody else.

    Parameters
    ----------
    name
        For Spark's own functions the Catalyst class in lower case (``"lower"``, ``"substring"``, ``"year"``); for those
        of other libraries the same after their package (``"com.example.year"``), so that they are never taken for
        Spark's; for user functions ``"udf:NAME"``.
    parameters
        Scalar settings of the expression that are no arguments, such as a time zone, as sorted (name, text) pairs.
    """

    name: str
    arguments: tuple[Operand, ...]
    type: DataType
    parameters: tuple[tuple[str, str], ...] = ()


# --- predicates ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Opaque:
    """Something that nothing is known of, as operand or as predicate. Its presence can only keep objects."""

    reason: str = "unknown expression"
    type: DataType = field(default=DataType("unknown"))


@dataclass(frozen=True, slots=True)
class Constant:
    """A predicate that is true of every row, or of none."""

    value: bool


ALWAYS: Final = Constant(True)
NEVER: Final = Constant(False)


@dataclass(frozen=True, slots=True)
class Comparison:
    """``operand comparator value``; once normal, ``right`` is a `Literal` that is not NULL, of the left side's type
    (or any operand, when two columns are compared) and the comparator is not ``<=>``."""

    comparator: Comparator
    left: Operand
    right: Operand


@dataclass(frozen=True, slots=True)
class IsIn:
    """``operand [NOT] IN (values)``. Once normal there is no NULL among the values, and there is at least one."""

    operand: Operand
    values: tuple[Value, ...]
    negated: bool = False
    has_null: bool = False


@dataclass(frozen=True, slots=True)
class NullTest:
    """``operand IS NULL``, or with ``negated`` ``operand IS NOT NULL``."""

    operand: Operand
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Matches:
    """A test of a string: ``test`` says which, ``pattern`` is a literal; ``escape`` belongs to ``like`` alone."""

    test: TextTest
    operand: Operand
    pattern: str
    escape: str = "\\"
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Holds:
    """A boolean function call used as a predicate: ``st_contains(...)``, ``my_udf(x)``."""

    call: Call
    negated: bool = False


@dataclass(frozen=True, slots=True)
class And:
    children: tuple[Predicate, ...]


@dataclass(frozen=True, slots=True)
class Or:
    children: tuple[Predicate, ...]


@dataclass(frozen=True, slots=True)
class Not:
    """Only between reading and normalising."""

    child: Predicate


Operand: TypeAlias = Column | Literal | Cast | Call | Opaque
Predicate: TypeAlias = Constant | Comparison | IsIn | NullTest | Matches | Holds | And | Or | Not | Opaque


def why_opaque(node: Predicate | Operand) -> str | None:
    """Why nothing is known of a node: it is `Opaque`, or of a class that this version does not know. None otherwise.

    Every walk asks this before it concludes anything: a node that a walk passes over keeps every object.

    Examples
    --------
    >>> why_opaque(Opaque("too deep")), why_opaque(ALWAYS)
    ('too deep', None)
    """
    if isinstance(node, Opaque):
        return node.reason
    known = isinstance(node, Column | Literal | Cast | Call | Constant | Comparison | IsIn | NullTest | Matches | Holds)
    return None if known or isinstance(node, And | Or | Not) else f"unknown node {type(node).__name__}"


def parts_of(operand: Operand) -> Iterator[Operand]:
    """An operand and all that is in it, each before what is in itself, from left to right.

    Examples
    --------
    >>> x = Column(("x",), DataType("int"))
    >>> [type(part).__name__ for part in parts_of(Call("abs", (Cast(x, DataType("double")),), DataType("double")))]
    ['Call', 'Cast', 'Column']
    """
    pending = [operand]
    while pending:
        part = pending.pop()
        yield part
        if isinstance(part, Cast):
            pending.append(part.child)
        elif isinstance(part, Call):
            pending.extend(reversed(part.arguments))
