"""Where a condition is null, where it is certainly true, and where it is not true: false or null.

A row leaves a query where the filter is false and where it is null. The three conditions made here are never null, so
each may stand under any number of NOTs.
"""

from __future__ import annotations

from es_skipping.predicates import reasons
from es_skipping.predicates.tree import (
    NEVER,
    And,
    Comparison,
    Constant,
    Holds,
    Implying,
    IsIn,
    Matches,
    Not,
    NullTest,
    Opaque,
    Or,
    Predicate,
)

__all__ = ["certain", "not_true", "null_of"]


def null_of(condition: Predicate) -> Predicate:
    """The rows for which a condition is null; opaque if that is unclear."""
    while isinstance(condition, Not | Implying):
        condition = condition.child if isinstance(condition, Not) else condition.exact
    if isinstance(condition, Constant | NullTest):
        return NEVER
    if isinstance(condition, Comparison):
        if condition.comparator == "<=>":
            return NEVER
        return Or((NullTest(condition.left), NullTest(condition.right)))
    if isinstance(condition, Matches) or (isinstance(condition, IsIn) and not condition.has_null):
        return NullTest(condition.operand)
    if isinstance(condition, Holds):
        return NullTest(condition.call)
    return Opaque(reasons.COMPOUND_NULL.text)


def certain(condition: Predicate) -> Predicate:
    """``condition <=> true``: false where the condition is null."""
    return And((condition, Not(null_of(condition))))


def not_true(condition: Predicate) -> Predicate:
    """The rows for which a condition is false or null: those that a filter drops.

    If it has no such row, an object matches a filter as a whole. And and Or are taken apart: a conjunction is not true
    where one of its parts is not, a disjunction where none of them is.

    Parameters
    ----------
    condition
        As `es_skipping.predicates.read.read_predicate` reads it, not in normal form: that does not keep false and null
        apart.

    Examples
    --------
    >>> from es_skipping.predicates.normal import normalise
    >>> from es_skipping.predicates.show import show
    >>> from es_skipping.predicates.tree import Column, Literal
    >>> from es_skipping.predicates.types import DataType
    >>> x = Column(("x",), DataType("int"))
    >>> show(normalise(not_true(Comparison("<", x, Literal(3, x.type)))))
    'x >= 3 OR x IS NULL'
    """
    try:
        return _not_true(condition, False)
    except RecursionError:
        return Opaque(reasons.TOO_DEEP.text)


def _not_true(condition: Predicate, negated: bool) -> Predicate:
    while isinstance(condition, Not):
        condition, negated = condition.child, not negated
    if isinstance(condition, And | Or):
        parts = tuple(_not_true(child, negated) for child in condition.children)
        return Or(parts) if isinstance(condition, And) != negated else And(parts)
    return Or((condition if negated else Not(condition), null_of(condition)))
