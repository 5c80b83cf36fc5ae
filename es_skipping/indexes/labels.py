"""Recognises leaves: the conditions that a node of a normal predicate puts on one indexed operand.

Every index needs the same facts about a node: its column, its values, its treatment of NULL and NaN. This module states
them once, as one of a few *leaf* forms. An index then only defines the meaning of each form for its metadata.

NaN follows Spark: equal to itself and greater than every number. NULL makes every comparison null, which is not true,
so only `IsNull` ever speaks of null rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, TypeAlias

from es_skipping.clauses.clause import Clause, disjunction
from es_skipping.clauses.questions import (
    AnyOf,
    HasNaN,
    HasNotNull,
    HasNull,
    OtherThan,
    Overlaps,
    Question,
    Range,
)
from es_skipping.indexes.base import Target
from es_skipping.predicates.text import like_prefix, like_suffix, like_tokens, rlike_endings, rlike_prefix
from es_skipping.predicates.times import dates_of
from es_skipping.predicates.tree import (
    And,
    Comparison,
    Holds,
    IsIn,
    Literal,
    Matches,
    NullTest,
    Operand,
    Predicate,
    TextTest,
)
from es_skipping.predicates.types import DataType, Value, is_value_of
from es_skipping.predicates.value_sets import ValueSet, at_most, common

__all__ = [
    "IsNull",
    "IsOneOf",
    "Leaf",
    "NotNull",
    "Text",
    "Within",
    "common_values",
    "leaf_of",
    "constraint_on",
    "text_parts",
    "text_prefix",
    "text_endings",
    "value_clause",
]


_MAX_RANGES: Final = 64
"""Most common ranges of several parts of a filter; with more, each part is asked separately."""


@dataclass(frozen=True, slots=True)
class IsOneOf:
    """True of the rows whose value is one of these (NaN too, with ``nan``); ``negated``: of the other non-null rows."""

    values: tuple[Value, ...]
    nan: bool = False
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Within:
    """True of no row but those whose value lies in one of these ranges, and with ``nan`` of NaN rows."""

    ranges: tuple[Range, ...]
    nan: bool = False


@dataclass(frozen=True, slots=True)
class IsNull:
    """True of the null rows."""


@dataclass(frozen=True, slots=True)
class NotNull:
    """True for no null row; unknown for the others, or true for all of them."""


@dataclass(frozen=True, slots=True)
class Text:
    """True of the strings for which the test holds, or with ``negated`` of the strings for which it does not.

    In normal form a ``like`` is one that no plainer test could say.
    """

    test: TextTest
    pattern: str
    escape: str = "\\"
    negated: bool = False


Leaf: TypeAlias = IsOneOf | Within | IsNull | NotNull | Text


def leaf_of(node: Predicate, operand: Operand, type: DataType) -> Leaf | None:
    """The condition that a node of a normal predicate puts on an operand; None if it is not a leaf about it.

    Parameters
    ----------
    node
        Any node; `And` and `Or` are no leaves.
    operand, type
        The indexed operand and its type.

    Examples
    --------
    >>> from es_skipping.predicates.tree import Column
    >>> x = Column(("x",), DataType("double"))
    >>> leaf_of(Comparison(">", x, Literal(float("nan"), x.type)), x, x.type)
    Within(ranges=(), nan=False)
    """
    match node:
        case Comparison(comparator, left, right) if comparator != "<=>":
            if left == operand and isinstance(right, Literal):
                return _compared(comparator, right.value, type)
            if isinstance(right, Literal) and right.value is not None:
                dates = dates_of(comparator, operand, left, right.value)
                if dates is not None:
                    return Within((Range(*dates),))
            # Two columns: which rows it is true of is not known here, save that neither side is null in them.
            return NotNull() if operand in (left, right) else None
        case IsIn(left, values, negated) if left == operand:
            return _listed(values, type, negated=negated) if all(is_value_of(v, type) for v in values) else NotNull()
        case NullTest(left, negated) if left == operand:
            return NotNull() if negated else IsNull()
        case Matches(test, left, pattern, escape, negated) if left == operand:
            return Text(test, pattern, escape, negated) if type.name == "string" else NotNull()
        case Holds(call, negated) if call == operand:
            return IsOneOf((not negated,)) if type.name == "boolean" else NotNull()
    return None


def constraint_on(node: Predicate, target: Target) -> Leaf | None:
    """What a node says of the one operand of a target: as a leaf, or as a conjunction that leaves it a common set of
    values.

    For indexes that remember more than one stretch or value.
    """
    (operand,), (type,) = target.operands, target.types
    return common_values(node, operand, type) or leaf_of(node, operand, type)


def common_values(node: Predicate, operand: Operand, type: DataType, *, of_one_stretch: bool = False) -> Leaf | None:
    """Where the values of an operand lie in the rows that satisfy several parts of a conjunction; None where one part
    says as much, or less than two say anything.

    An object may reach above 5 and below 9 and hold nothing in between, which the two questions one by one do not tell.

    Parameters
    ----------
    of_one_stretch
        For indexes that remember no more: three stretches, the object's and those of two parts, have a value in common
        if each two of them do. So only parts that leave several stretches, or differ in NaN or null, say more together.

    Examples
    --------
    >>> from es_skipping.predicates.tree import Column
    >>> x = Column(("x",), DataType("int"))
    >>> both = And((Comparison(">", x, Literal(5, x.type)), Comparison("<", x, Literal(9, x.type))))
    >>> common_values(both, x, x.type).ranges
    (Range(low=6, high=8, low_open=False, high_open=False),)
    >>> common_values(both, x, x.type, of_one_stretch=True)
    """
    if not isinstance(node, And):
        return None
    informative = [values for child in node.children if not (values := _allowed(child, operand, type)).everything]
    if of_one_stretch:
        kinds = {(len(values.stretches), values.nan, values.null) for values in informative}
        if len(kinds) == 1 and all(len(values.stretches) == 1 for values in informative):
            return None
    both = common(informative)
    return None if both in informative else _as_leaf(both)


def _allowed(node: Predicate, operand: Operand, type: DataType) -> ValueSet:
    values = at_most(node, operand)
    if values.everything:
        leaf = leaf_of(node, operand, type)
        if isinstance(leaf, Within):  # of dates it knows more
            ends = [(one.low, one.low_open, one.high, one.high_open) for one in leaf.ranges]
            return ValueSet.of_ranges(ends, leaf.nan)
    return values


def _as_leaf(values: ValueSet) -> Leaf | None:
    """The leaf that is true of these values; None where there is none of such a form, or it has too many ranges."""
    if values.null:
        return None if values.stretches or values.nan else IsNull()
    if values.stretches and all(low is not None and low == high for low, _, high, _ in values.stretches):
        return IsOneOf(tuple(one.low for one in values.stretches), values.nan)
    if len(values.stretches) > _MAX_RANGES:
        return None
    ranges = [
        Range(low, high, low is not None and low_open, high is not None and high_open)
        for low, low_open, high, high_open in values.stretches
    ]
    return Within(tuple(ranges), values.nan)


def _compared(comparator: str, value: Value | None, type: DataType) -> Leaf:
    if not is_value_of(value, type):
        return NotNull()
    assert value is not None
    if comparator in ("=", "<>"):
        return _listed((value,), type, negated=comparator == "<>")
    if _is_nan(value):
        everything = (Range(),)
        of_nan: dict[str, Leaf] = {
            "<": Within(everything),
            "<=": NotNull(),
            ">": Within(()),
            ">=": Within((), nan=True),
        }
        return of_nan[comparator]
    value = _plain_zero(value)
    if comparator in ("<", "<="):
        return Within((Range(None, value, high_open=comparator == "<"),))
    return Within((Range(value, None, low_open=comparator == ">"),), nan=type.is_float)


def _listed(values: Iterable[Value], type: DataType, *, negated: bool) -> IsOneOf:
    distinct = dict.fromkeys(_plain_zero(v) for v in values if not _is_nan(v))
    return IsOneOf(tuple(distinct), any(map(_is_nan, values)), negated)


def text_prefix(leaf: Text) -> str:
    """What every string that passes the test (were it not negated) begins with; empty where nothing is certain."""
    match leaf.test:
        case "starts":
            return leaf.pattern
        case "like":
            return like_prefix(leaf.pattern, leaf.escape)
        case "rlike":
            return rlike_prefix(leaf.pattern)
    return ""


def text_endings(leaf: Text) -> tuple[str, ...]:
    """The endings that strings passing the test (without its negation) can have; empty if nothing is certain.

    Examples
    --------
    >>> text_endings(Text("like", "%.csv")), text_endings(Text("contains", "csv"))
    (('.csv',), ())
    """
    match leaf.test:
        case "ends":
            return (leaf.pattern,)
        case "like":
            return tuple(filter(None, (like_suffix(leaf.pattern, leaf.escape),)))
        case "rlike":
            return rlike_endings(leaf.pattern)
    return ()


def text_parts(leaf: Text) -> tuple[str, ...]:
    """What every string that passes the test (were it not negated) contains, all of it; empty where nothing is certain.

    Examples
    --------
    >>> text_parts(Text("like", "%disk_full%node-7"))
    ('disk', 'full', 'node-7')
    """
    if leaf.test == "rlike":
        # What stands before a line break at the end is the first of the endings.
        return tuple(dict.fromkeys(filter(None, (rlike_prefix(leaf.pattern), *rlike_endings(leaf.pattern)[:1]))))
    if leaf.test != "like":
        return (leaf.pattern,)
    runs: list[str] = [""]
    for token in like_tokens(leaf.pattern, leaf.escape) or ():
        if isinstance(token, str):
            runs[-1] += token
        else:
            runs.append("")
    return tuple(filter(None, runs))


def _is_nan(value: Value) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _plain_zero(value: Value) -> Value:
    """0.0 for -0.0, which Spark holds to be equal; stores may not."""
    return value + 0.0 if isinstance(value, float) else value


def value_clause(leaf: Leaf, target: Target) -> Clause | None:
    """The clause of a leaf for an index whose metadata speaks of the values themselves; None for `Text`.

    =====================  ===================================================
    leaf                   clause
    =====================  ===================================================
    ``= v``, ``IN``        `AnyOf`, or `HasNaN` where NaN is among them
    ``<> v``, ``NOT IN``   `OtherThan`, or `HasNaN` where NaN is not among them
    ``<  <=  >  >=``       `Overlaps`, or `HasNaN` where NaN satisfies it
    ``IS NULL``            `HasNull`
    ``IS NOT NULL``        `HasNotNull`
    =====================  ===================================================
    """
    match leaf:
        case IsOneOf(values, nan, negated):
            questions: list[Question] = []
            if negated:
                questions.append(OtherThan(values))
                nan = target.types[0].is_float and not nan
            elif values:
                questions.append(AnyOf(values))
        case Within(ranges, nan):
            questions = [Overlaps(ranges)] if ranges else []
        case IsNull():
            return target.ask(HasNull())
        case NotNull():
            return target.ask(HasNotNull())
        case Text():
            return None
    if nan:
        questions.append(HasNaN())
    return disjunction(target.ask(question) for question in questions)
