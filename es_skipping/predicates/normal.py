"""Normal form: the shape of predicates that the filters of all indexes rely on.

A normal predicate stands for the rows for which the original is *true*. In it

- ``NOT`` is gone: it was pushed to the leaves under three-valued logic, and each negated leaf has its own form;
- ``<=>`` is resolved, and nothing is compared with NULL;
- a compared literal is on the right, of the left side's type, and never -0.0; NaN occurs only after ``=`` and ``<>``,
  TRUE and FALSE only after ``=``, and an `IsIn` has at least two values, none of them NaN;
- order-preserving casts are undone (`es_skipping.predicates.casts`); others stay where they are;
- `And` and `Or` are flat, hold no constants and nothing twice, and an `And` leaves some value to each of its columns;
- whatever is not understood is `Opaque`, which keeps.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from decimal import Decimal
from itertools import chain, islice
from typing import Final

from es_skipping.predicates import reasons
from es_skipping.predicates.arithmetic import said_of_arguments
from es_skipping.predicates.casts import compare_image, less, may_be_null, monotone, same_family
from es_skipping.predicates.elements import implied_by_access
from es_skipping.predicates.text import match_form
from es_skipping.predicates.times import said_of_argument
from es_skipping.predicates.tree import (
    ALWAYS,
    FLIPPED,
    NEVER,
    And,
    Call,
    Cast,
    Column,
    Comparator,
    Comparison,
    Constant,
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
    leaves_of,
    operands_in,
    unknown_node,
)
from es_skipping.predicates.types import DataType, Value
from es_skipping.predicates.value_sets import at_most

__all__ = ["MAX_DEPTH", "all_of", "any_of", "normalise"]

MAX_DEPTH: Final = 100
"""How deep And and Or may alternate, and casts may nest; deeper parts are opaque."""

_MAX_CAST_VALUES: Final = 1_000
_MAX_COMBINED: Final = 1_000
"""Limit of columns of a conjunction times leaves of its disjunctions; beyond it no search for contradictions."""
_CONTRARY: Final[dict[Comparator, Comparator]] = {
    "=": "<>",
    "<>": "=",
    "<": ">=",
    "<=": ">",
    ">": "<=",
    ">=": "<",
}
_HELD_AS: Final[dict[str, type]] = {"double": float, "float": float, "string": str, "binary": bytes, "boolean": bool}


def normalise(predicate: Predicate) -> Predicate:
    """The normal form of a predicate: true of exactly the same rows, save where it became opaque.

    Examples
    --------
    >>> from es_skipping.predicates.tree import Column
    >>> x = Column(("x",), DataType("int"))
    >>> normalise(Not(Comparison("<", Literal(5, x.type), x))).comparator
    '<='
    """
    try:
        return _normal(predicate, False, 0)
    except RecursionError:  # operands built by hand can nest deeper than any that is read
        return Opaque(reasons.TOO_DEEP.text)


def all_of(parts: Iterable[Predicate]) -> Predicate:
    """The conjunction of normal predicates, in normal form."""
    flat: dict[Predicate, None] = {}
    for part in parts:
        flat.update(dict.fromkeys(part.children if isinstance(part, And) else (part,)))
    flat.pop(ALWAYS, None)
    if NEVER in flat:
        return NEVER
    if len(flat) <= 1:
        return next(iter(flat), ALWAYS)
    return NEVER if _contradictory(tuple(flat)) else And(tuple(flat))


def _contradictory(parts: tuple[Predicate, ...]) -> bool:
    """Whether the parts of a conjunction leave no value to one of their columns. Spark plans such filters all the same.

    Only columns count: two calls that look alike may call different functions.
    """
    about: dict[Column, list[Predicate]] = {}
    for part in parts:
        for operand in () if isinstance(part, Or) else operands_in(part):
            if isinstance(operand, Column):
                about.setdefault(operand, []).append(part)
    mixed = [part for part in parts if isinstance(part, Or)]
    if len(about) * _size(mixed) > _MAX_COMBINED:
        mixed = []
    return any(
        at_most(And((*leaves, *mixed)), column).empty
        for column, leaves in about.items()
        if len(leaves) + len(mixed) > 1
    )


def _size(parts: Iterable[Predicate]) -> int:
    """How many leaves there are, or more than can be combined."""
    return sum(1 for _ in islice(chain.from_iterable(map(leaves_of, parts)), _MAX_COMBINED + 1))


def any_of(parts: Iterable[Predicate]) -> Predicate:
    """The disjunction of normal predicates, in normal form."""
    flat: dict[Predicate, None] = {}
    for part in parts:
        flat.update(dict.fromkeys(part.children if isinstance(part, Or) else (part,)))
    flat.pop(NEVER, None)
    if ALWAYS in flat:
        return ALWAYS
    if len(flat) <= 1:
        return next(iter(flat), NEVER)
    return Or(tuple(flat))


def _strip(predicate: Predicate, negated: bool) -> tuple[Predicate, bool]:
    """Take off NOT, and choose what an `Implying` says."""
    while isinstance(predicate, Not | Implying):
        if isinstance(predicate, Not):
            predicate, negated = predicate.child, not negated
        elif (implied := predicate.if_false if negated else predicate.if_true) == ALWAYS:
            predicate = predicate.exact
        else:
            exact = Not(predicate.exact) if negated else predicate.exact
            return And((exact, implied)), False
    return predicate, negated


def _normal(predicate: Predicate, negated: bool, depth: int) -> Predicate:
    """The rows for which the predicate is true; with ``negated``, for which it is false. Null is neither."""
    predicate, negated = _strip(predicate, negated)
    if not isinstance(predicate, And | Or):
        return _with_elements(_leaf(predicate, negated, depth), depth)
    if depth > MAX_DEPTH:
        return Opaque(reasons.TOO_DEEP.text)
    conjunctive = isinstance(predicate, And) != negated  # De Morgan
    parts: list[Predicate] = []
    pending: list[tuple[Predicate, bool]] = [(predicate, negated)]
    while pending:  # a chain of one connective is one level, however long and however it was nested
        part, contrary = _strip(*pending.pop())
        if isinstance(part, And | Or) and (isinstance(part, And) != contrary) == conjunctive:
            pending.extend((child, contrary) for child in reversed(part.children))
        else:
            parts.append(_normal(part, contrary, depth + 1))
    return all_of(parts) if conjunctive else any_of(parts)


def _too_deep(operand: Operand) -> bool:
    """Whether an operand nests deeper than any that is read: comparing and hashing it would overflow."""
    level: list[Operand] = [operand]
    for _ in range(MAX_DEPTH + 2):
        level = [part for parent in level for part in operands_in(parent)]
        if not level:
            return False
    return True


def _leaf(leaf: Predicate, negated: bool, depth: int) -> Predicate:
    if any(map(_too_deep, operands_in(leaf))):
        return Opaque(reasons.TOO_DEEP.text)
    match leaf:
        case Constant(value):
            return NEVER if value == negated else ALWAYS
        case Comparison(comparator, left, right):
            return _comparison(comparator, left, right, negated, depth)
        case IsIn():
            return _is_in(leaf, leaf.negated != negated, depth)
        case NullTest(operand, contrary):
            return _null_test(operand, contrary != negated)
        case Matches():
            return match_form(leaf, leaf.negated != negated)
        case Holds(call, contrary):
            return Holds(call, contrary != negated)
        case HasElement(array, condition):
            return _has_element(array, condition, negated, depth)
        case Opaque():
            return leaf
        case And() | Or() | Not() | Implying():  # they are no leaves
            return _normal(leaf, negated, depth)
        case _:
            return unknown_node(leaf)


# --- elements -----------------------------------------------------------------------------------------------------


def _has_element(array: Operand, condition: Predicate, negated: bool, depth: int) -> Predicate:
    if negated:  # no element satisfies it: true of an empty array too, and so of no element
        return Opaque(reasons.NO_ELEMENT.text)
    if depth > MAX_DEPTH:
        return Opaque(reasons.TOO_DEEP.text)
    inner = _normal(condition, False, depth + 1)
    return inner if inner == NEVER or isinstance(inner, Opaque) else HasElement(array, inner)


def _with_elements(leaf: Predicate, depth: int) -> Predicate:
    implied = [_has_element(one.array, one.condition, False, depth) for one in implied_by_access(leaf)]
    return all_of([leaf, *implied]) if implied else leaf


# --- IS NULL ------------------------------------------------------------------------------------------------------


def _null_test(operand: Operand, negated: bool) -> Predicate:
    while isinstance(operand, Cast) and monotone(operand.child.type, operand.type, operand.zone):
        if not negated and may_be_null(operand):
            break
        operand = operand.child  # null where the child is, and nowhere else
    if isinstance(operand, Literal):
        return ALWAYS if (operand.value is None) != negated else NEVER
    if isinstance(operand, Opaque):
        return operand
    return NullTest(operand, negated)


def _not_null(operand: Operand) -> Predicate:
    return _null_test(operand, negated=True)


# --- comparisons --------------------------------------------------------------------------------------------------


def _is_null(operand: Operand) -> bool:
    return isinstance(operand, Literal) and operand.value is None


def _comparison(comparator: Comparator, left: Operand, right: Operand, negated: bool, depth: int) -> Predicate:
    if comparator == "<=>":
        return _null_safe(left, right, negated, depth)
    if _is_null(left) or _is_null(right):
        return NEVER  # null, and so is its negation
    if negated:
        comparator = _CONTRARY[comparator]  # sound under NaN too: Spark's order is total
    if isinstance(left, Literal) and not isinstance(right, Literal):
        left, right, comparator = right, left, FLIPPED[comparator]
    if isinstance(left, Opaque):
        return left
    if isinstance(right, Opaque):
        return right
    for operand in (left, right):
        if not operand.type.supported:
            return Opaque(reasons.UNCOMPARED.of(type=operand.type))
    if not isinstance(right, Literal):
        return Comparison(comparator, left, right)
    literal = _clean(right)
    if literal is None:
        return Opaque(reasons.NOT_OF_ITS_TYPE.of(value=repr(right.value), type=right.type))
    if isinstance(left, Literal):
        return _fold(comparator, left, literal)
    return _with_literal(comparator, left, literal, depth)


def _null_safe(left: Operand, right: Operand, negated: bool, depth: int) -> Predicate:
    """``<=>`` is never null: true where both sides are null, or both are not and equal."""
    if _is_null(right):
        return _null_test(left, negated)
    if _is_null(left):
        return _null_test(right, negated)
    equal = _comparison("=", left, right, negated, depth)
    if not negated:
        return any_of([equal, all_of([_null_test(left, False), _null_test(right, False)])])
    return any_of(
        [
            equal,
            all_of([_null_test(left, False), _not_null(right)]),
            all_of([_not_null(left), _null_test(right, False)]),
        ]
    )


def _clean(literal: Literal) -> Literal | None:
    """The literal as the values of its type are held: no -0.0 and one NaN; None where it is of another type."""
    value, type_ = literal.value, literal.type
    if not _is_held(value, type_):
        return None
    if isinstance(value, float):
        return Literal(math.nan if math.isnan(value) else value + 0.0, type_)
    return literal


def _is_held(value: object, type_: DataType) -> bool:
    if type_.name == "decimal":
        return type(value) is Decimal
    return type(value) is _HELD_AS.get(type_.name, int)


def _fold(comparator: Comparator, left: Literal, right: Literal) -> Predicate:
    cleaned = _clean(left)
    if cleaned is None or left.type != right.type:
        return Opaque(reasons.DIFFERENT_TYPES.of(left=left.type, right=right.type))
    below, above = less(cleaned.value, right.value), less(right.value, cleaned.value)
    truth = {
        "=": not below and not above,
        "<>": below or above,
        "<": below,
        "<=": not above,
        ">": above,
        ">=": not below,
    }[comparator]
    return ALWAYS if truth else NEVER


def _with_literal(comparator: Comparator, left: Operand, right: Literal, depth: int) -> Predicate:
    """A comparison with a clean literal that is not NULL."""
    value = right.value
    if value is None:  # folded before; for the type checker
        return NEVER
    if left.type != right.type:
        if not same_family(left.type, right.type):
            return Opaque(reasons.DIFFERENT_TYPES.of(left=left.type, right=right.type))
        if left.type.name == "double":
            right = Literal(value, left.type)  # a float's value is exact in double
        else:
            resolved = compare_image(comparator, left, None, value)
            return (
                _again(resolved, depth)
                if resolved
                else Opaque(reasons.DIFFERENT_TYPES.of(left=left.type, right=right.type))
            )
    if isinstance(left, Cast) and depth <= MAX_DEPTH:
        image = monotone(left.child.type, left.type, left.zone)
        resolved = compare_image(comparator, left.child, image, value) if image else None
        if resolved is not None:
            return _again(resolved, depth)
    if isinstance(value, bool):
        return _with_boolean(comparator, left, value)
    if isinstance(value, float) and math.isnan(value):
        return _with_nan(comparator, left, right)
    return all_of([Comparison(comparator, left, right), _said_of_argument(comparator, left, value, depth)])


def _said_of_argument(comparator: Comparator, operand: Operand, value: Value, depth: int) -> Predicate:
    if depth > MAX_DEPTH:
        return ALWAYS
    said = said_of_argument(comparator, operand, value) or said_of_arguments(comparator, operand, value)
    return ALWAYS if said is None else _again(said, depth)


def _again(resolved: Predicate, depth: int) -> Predicate:
    """Normalise what a cast became: its child may be a cast itself."""
    return _normal(resolved, False, depth + 1)


def _with_boolean(comparator: Comparator, left: Operand, value: bool) -> Predicate:
    """The values of FALSE < TRUE that pass: none, one or both."""
    passing = [
        candidate
        for candidate in (False, True)
        if _fold(comparator, Literal(candidate, left.type), Literal(value, left.type)) == ALWAYS
    ]
    if len(passing) == 1:
        return Comparison("=", left, Literal(passing[0], left.type))
    return _not_null(left) if passing else NEVER


def _with_nan(comparator: Comparator, left: Operand, right: Literal) -> Predicate:
    """NaN is the greatest value and equal to itself."""
    if comparator == ">":
        return NEVER
    if comparator == "<=":
        return _not_null(left)
    return Comparison("<>" if comparator in {"<", "<>"} else "=", left, right)


# --- IN -----------------------------------------------------------------------------------------------------------


def _is_in(leaf: IsIn, negated: bool, depth: int) -> Predicate:
    operand = leaf.operand
    if negated and leaf.has_null:
        return NEVER  # false or null of every row: a NULL might be the value
    if _is_null(operand):
        return NEVER if leaf.values or leaf.has_null else _constant(negated)
    if isinstance(operand, Opaque):
        return operand
    if not operand.type.supported:
        return Opaque(reasons.UNCOMPARED.of(type=operand.type))
    if not all(_is_held(value, operand.type) for value in leaf.values):
        return Opaque(reasons.NOT_OF_ITS_TYPE.of(value="one of IN", type=operand.type))
    comparator: Comparator = "<>" if negated else "="
    combined = all_of if negated else any_of
    plain: dict[Operand, dict[Value, None]] = {}
    others: list[Predicate] = []
    simple = not isinstance(operand, Cast | Literal) and operand.type.name != "boolean"
    if isinstance(operand, Cast) and len(leaf.values) > _MAX_CAST_VALUES:
        simple = True  # each value would cost a search of its own, so the cast stays
    for value in leaf.values:
        if simple and value == value:  # not NaN
            plain.setdefault(operand, {})[value + 0.0 if isinstance(value, float) else value] = None
            continue
        part = _comparison(comparator, operand, Literal(value, operand.type), False, depth)
        single = _plain_value(part, comparator)
        if isinstance(part, Comparison) and single is not None:
            plain.setdefault(part.left, {})[single] = None
        else:
            others.append(part)
    lists = [_list(comparator, operand, tuple(values)) for operand, values in plain.items()]
    if negated or not isinstance(operand, Call) or len(leaf.values) > _MAX_CAST_VALUES:
        return combined([*lists, *others])
    said = any_of(_said_of_argument("=", operand, value, depth) for value in leaf.values)
    return all_of([combined([*lists, *others]), said])


def _constant(truth: bool) -> Predicate:
    return ALWAYS if truth else NEVER


def _plain_value(part: Predicate, comparator: Comparator) -> Value | None:
    """The literal of a comparison that an `IsIn` may take in."""
    if not isinstance(part, Comparison) or part.comparator != comparator or not isinstance(part.right, Literal):
        return None
    value = part.right.value
    if isinstance(value, bool) or (isinstance(value, float) and math.isnan(value)):
        return None
    return value


def _list(comparator: Comparator, operand: Operand, values: tuple[Value, ...]) -> Predicate:
    if len(values) == 1:
        (value,) = values
        return Comparison(comparator, operand, Literal(value, operand.type))
    return IsIn(operand, values, negated=comparator == "<>")
