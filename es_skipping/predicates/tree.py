"""Typed expression trees: the filters that Spark sends.

Two families live here. *Operands* are what is compared: columns, literals, casts and function calls. *Predicates* are
true or false of a row. After `es_skipping.predicates.normal.normalise` a predicate consists of `And`, `Or`, the
constants `ALWAYS` and `NEVER`, and leaves that carry their own negation: a `Not` is never met by an index (promise 2 of
the design: NOT is never the complement of a clause).

A normal predicate stands for the rows for which it is *true*; false and null no longer differ.

Each node has ``operands``, those directly in it (for And, Or, Not and Implying those of their leaves), and
``map_operands``, which makes the same node of changed ones. Walks use `leaves_of`, `map_leaves`, `operands_of` and
`parts_of`, or name every class and end in `unknown_node`, so that a type checker finds where a new class is missing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Final, NoReturn, TypeAlias, TypeVar, cast
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
    "Element",
    "HasElement",
    "Holds",
    "Implying",
    "IsIn",
    "Literal",
    "Matches",
    "Not",
    "NullTest",
    "Opaque",
    "Operand",
    "Or",
    "Predicate",
    "leaves_of",
    "map_leaves",
    "map_operands",
    "operands_in",
    "operands_of",
    "parts_of",
    "unknown_node",
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


_Node = TypeVar("_Node")


class _WithoutOperands:
    """A node with no operand in it."""

    __slots__ = ()

    @property
    def operands(self) -> tuple[Operand, ...]:
        return ()

    def map_operands(self: _Node, change: Callable[[Operand], Operand]) -> _Node:
        return self


class _Connective:
    """And, Or, Not, Implying: the operands are those of the leaves below."""

    __slots__ = ()

    @property
    def operands(self) -> tuple[Operand, ...]:
        return tuple(operand for leaf in leaves_of(cast("Predicate", self)) for operand in operands_in(leaf))

    def map_operands(self, change: Callable[[Operand], Operand]) -> Predicate:
        return map_operands(cast("Predicate", self), change)


# --- operands -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Column(_WithoutOperands):
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
class Literal(_WithoutOperands):
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

    @property
    def operands(self) -> tuple[Operand, ...]:
        return (self.child,)

    def map_operands(self, change: Callable[[Operand], Operand]) -> Cast:
        return replace(self, child=change(self.child))


@dataclass(frozen=True, slots=True)
class Call:
    """A function by name. Only code that recognises the name knows what it computes.

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

    @property
    def operands(self) -> tuple[Operand, ...]:
        return self.arguments

    def map_operands(self, change: Callable[[Operand], Operand]) -> Call:
        return replace(self, arguments=tuple(map(change, self.arguments)))


@dataclass(frozen=True, slots=True)
class Element:
    """An element of an array, or a field of an element that is a struct; `elements.element_of` makes it.

    It means something only in the condition of a `HasElement` about the same array.
    """

    array: Operand
    type: DataType
    path: tuple[str, ...] = ()

    @property
    def operands(self) -> tuple[Operand, ...]:
        return (self.array,)

    def map_operands(self, change: Callable[[Operand], Operand]) -> Element:
        return replace(self, array=change(self.array))


# --- predicates ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Opaque(_WithoutOperands):
    """An operand or a predicate that is not understood. It can only keep objects."""

    reason: str = "unknown expression"
    type: DataType = field(default=DataType("unknown"))


@dataclass(frozen=True, slots=True)
class Constant(_WithoutOperands):
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

    @property
    def operands(self) -> tuple[Operand, ...]:
        return (self.left, self.right)

    def map_operands(self, change: Callable[[Operand], Operand]) -> Comparison:
        return replace(self, left=change(self.left), right=change(self.right))


@dataclass(frozen=True, slots=True)
class IsIn:
    """``operand [NOT] IN (values)``. Once normal there is no NULL among the values, and there is at least one."""

    operand: Operand
    values: tuple[Value, ...]
    negated: bool = False
    has_null: bool = False

    @property
    def operands(self) -> tuple[Operand, ...]:
        return (self.operand,)

    def map_operands(self, change: Callable[[Operand], Operand]) -> IsIn:
        return replace(self, operand=change(self.operand))


@dataclass(frozen=True, slots=True)
class NullTest:
    """``operand IS NULL``, or with ``negated`` ``operand IS NOT NULL``."""

    operand: Operand
    negated: bool = False

    @property
    def operands(self) -> tuple[Operand, ...]:
        return (self.operand,)

    def map_operands(self, change: Callable[[Operand], Operand]) -> NullTest:
        return replace(self, operand=change(self.operand))


@dataclass(frozen=True, slots=True)
class Matches:
    """A test of a string: ``test`` says which, ``pattern`` is a literal; ``escape`` belongs to ``like`` alone."""

    test: TextTest
    operand: Operand
    pattern: str
    escape: str = "\\"
    negated: bool = False

    @property
    def operands(self) -> tuple[Operand, ...]:
        return (self.operand,)

    def map_operands(self, change: Callable[[Operand], Operand]) -> Matches:
        return replace(self, operand=change(self.operand))


@dataclass(frozen=True, slots=True)
class Holds:
    """A boolean function call used as a predicate: ``st_contains(...)``, ``my_udf(x)``."""

    call: Call
    negated: bool = False

    @property
    def operands(self) -> tuple[Operand, ...]:
        return (self.call,)

    def map_operands(self, change: Callable[[Operand], Operand]) -> Holds:
        call = change(self.call)
        assert isinstance(call, Call)
        return replace(self, call=call)


@dataclass(frozen=True, slots=True)
class HasElement:
    """Some element of an array, with its row, satisfies the condition. Two of these may speak of two elements."""

    array: Operand
    condition: Predicate

    @property
    def operands(self) -> tuple[Operand, ...]:
        return (self.array, *self.condition.operands)

    def map_operands(self, change: Callable[[Operand], Operand]) -> HasElement:
        return HasElement(change(self.array), map_operands(self.condition, change))


@dataclass(frozen=True, slots=True)
class And(_Connective):
    children: tuple[Predicate, ...]


@dataclass(frozen=True, slots=True)
class Or(_Connective):
    children: tuple[Predicate, ...]


@dataclass(frozen=True, slots=True)
class Not(_Connective):
    """Only between reading and normalising."""

    child: Predicate


@dataclass(frozen=True, slots=True)
class Implying(_Connective):
    """``exact``, and what follows where it is true and where it is false. Only between reading and normalising."""

    exact: Predicate
    if_true: Predicate = ALWAYS
    if_false: Predicate = ALWAYS


Operand: TypeAlias = Column | Element | Literal | Cast | Call | Opaque
Predicate: TypeAlias = (
    Constant | Comparison | IsIn | NullTest | Matches | Holds | HasElement | And | Or | Not | Implying | Opaque
)


def unknown_node(node: NoReturn) -> Opaque:
    """The result of a walk for a node that it does not name: it keeps every object. A type checker refuses the call."""
    return Opaque(f"unknown node {type(node).__name__}")


def why_opaque(node: Predicate | Operand) -> str | None:
    """Why a node is not understood: it is `Opaque`, or of a class that this version does not know. None otherwise.

    Every walk asks this before it concludes anything: a node that a walk passes over keeps every object.

    Examples
    --------
    >>> why_opaque(Opaque("too deep")), why_opaque(ALWAYS)
    ('too deep', None)
    """
    match node:
        case Opaque(reason):
            return reason
        case Column() | Element() | Literal() | Cast() | Call():
            return None
        case Constant() | Comparison() | IsIn() | NullTest() | Matches() | Holds() | HasElement():
            return None
        case And() | Or() | Not() | Implying():
            return None
        case _:
            return unknown_node(node).reason


def operands_in(node: Predicate | Operand) -> tuple[Operand, ...]:
    """The operands directly in a node, from left to right; none if the node's class is unknown.

    Examples
    --------
    >>> x = Column(("x",), DataType("int"))
    >>> operands_in(Comparison("<", x, Literal(3, x.type))) == (x, Literal(3, x.type))
    True
    """
    return () if why_opaque(node) is not None else node.operands


def leaves_of(predicate: Predicate) -> Iterator[Predicate]:
    """The leaves of a predicate from left to right: the nodes other than And, Or, Not and Implying."""
    pending = [predicate]
    while pending:
        node = pending.pop()
        match node:
            case And(children) | Or(children):
                pending.extend(reversed(children))
            case Not(child):
                pending.append(child)
            case Implying(exact, if_true, if_false):
                pending.extend((if_false, if_true, exact))
            case _:
                yield node


def map_leaves(predicate: Predicate, change: Callable[[Predicate], Predicate]) -> Predicate:
    """The predicate with each of its leaves changed."""
    match predicate:
        case And(children):
            return And(tuple(map_leaves(child, change) for child in children))
        case Or(children):
            return Or(tuple(map_leaves(child, change) for child in children))
        case Not(child):
            return Not(map_leaves(child, change))
        case Implying(exact, if_true, if_false):
            return Implying(*(map_leaves(part, change) for part in (exact, if_true, if_false)))
        case _:
            return change(predicate)


def map_operands(predicate: Predicate, change: Callable[[Operand], Operand]) -> Predicate:
    """The predicate with each operand of its leaves changed; leaves that are not known stay as they are."""
    return map_leaves(predicate, lambda leaf: leaf if why_opaque(leaf) is not None else leaf.map_operands(change))


def operands_of(predicate: Predicate) -> tuple[Operand, ...]:
    """The operands that a predicate tests, each once, without literals and opaque leaves.

    Examples
    --------
    >>> operands_of(ALWAYS)
    ()
    """
    return tuple(dict.fromkeys(one for one in operands_in(predicate) if not isinstance(one, Literal)))


def parts_of(operand: Operand) -> Iterator[Operand]:
    """An operand and all operands in it, from left to right, each before its own parts.

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
        pending.extend(reversed(operands_in(part)))
