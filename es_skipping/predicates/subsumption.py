"""When one predicate subsumes another: the first is true for every row for which the second is true.

False is always a right answer. The test decides whether a feature of a layout helps a query
(Sun, *Skipping-oriented Data Design for Large-Scale Analytics*, section 3.3.1, where the rules are left open).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from es_skipping.predicates.codec import are_certain
from es_skipping.predicates.text import passes
from es_skipping.predicates.tree import (
    ALWAYS,
    FLIPPED,
    NEVER,
    And,
    Comparison,
    Constant,
    HasElement,
    Implying,
    Matches,
    Not,
    Opaque,
    Or,
    Predicate,
    operands_of,
    why_opaque,
)
from es_skipping.predicates.types import Value
from es_skipping.predicates.value_sets import at_least, at_most

__all__ = ["is_certain", "subsumes"]

_MAX_COMPARISONS: Final = 20_000
"""Predicates that take more comparisons than this count as not subsumed."""

_LOOSER: Final = {"=": ("=", "<=", ">="), "<": ("<", "<=", "<>"), ">": (">", ">=", "<>"), "<>": ("<>",)}


@lru_cache(maxsize=1 << 16)
def subsumes(looser: Predicate, stricter: Predicate) -> bool:
    """Whether every row that satisfies ``stricter`` is sure to satisfy ``looser``.

    Parameters
    ----------
    looser, stricter
        In normal form (`es_skipping.predicates.normal.normalise`).

    Returns
    -------
    bool
        True only where it is proved.

    Examples
    --------
    >>> from es_skipping.predicates.tree import Column, Literal
    >>> from es_skipping.predicates.types import DataType
    >>> x = Column(("x",), DataType("int"))
    >>> above = lambda least: Comparison(">", x, Literal(least, x.type))
    >>> subsumes(above(21), above(32)), subsumes(above(32), above(21))
    (True, False)
    """
    return _subsumes(looser, stricter, [_MAX_COMPARISONS])


def is_certain(predicate: Predicate) -> bool:
    """Whether nothing in a predicate is opaque or a function that may be another one under the same name: only then do
    two that look alike mean the same."""
    if isinstance(predicate, Not | Implying) or why_opaque(predicate) is not None:
        return False
    if isinstance(predicate, HasElement) and not is_certain(predicate.condition):
        return False
    if isinstance(predicate, And | Or):
        return all(map(is_certain, predicate.children))
    return are_certain(operands_of(predicate))


def _subsumes(looser: Predicate, stricter: Predicate, steps: list[int]) -> bool:
    steps[0] -= 1
    if steps[0] < 0:
        return False
    if looser == ALWAYS or stricter == NEVER:
        return True
    if isinstance(looser, Opaque | Not | Implying | Constant) or stricter == ALWAYS:
        return False
    if looser == stricter and is_certain(looser):
        return True
    if isinstance(looser, HasElement) and isinstance(stricter, HasElement):
        return (
            looser.array == stricter.array
            and is_certain(looser)
            and _subsumes(looser.condition, stricter.condition, steps)
        )
    if isinstance(stricter, Or):
        return all(_subsumes(looser, child, steps) for child in stricter.children)
    if isinstance(looser, And):
        return all(_subsumes(child, stricter, steps) for child in looser.children)
    if isinstance(looser, Or) and any(_subsumes(child, stricter, steps) for child in looser.children):
        return True
    if isinstance(stricter, And) and any(_subsumes(looser, child, steps) for child in stricter.children):
        return True
    return is_certain(looser) and _of_values(looser, stricter)


def _of_values(looser: Predicate, stricter: Predicate) -> bool:
    """By the values that one operand may have."""
    for operand in operands_of(looser):
        possible = at_most(stricter, operand)
        if possible <= at_least(looser, operand):
            return True
        if isinstance(looser, Matches) and _all_pass(looser, possible.points):
            return True
    if isinstance(looser, Matches) and isinstance(stricter, Matches):
        return _of_text(looser, stricter)
    if isinstance(looser, Comparison) and isinstance(stricter, Comparison):
        return _of_two_operands(looser, stricter)
    return False


def _all_pass(wanted: Matches, values: tuple[Value, ...] | None) -> bool:
    return values is not None and all(passes(wanted, value) for value in values)


def _of_text(looser: Matches, stricter: Matches) -> bool:
    """Tests of one string for a fixed text; of their negations the other way round."""
    if looser.operand != stricter.operand or looser.negated != stricter.negated:
        return False
    if looser.negated:
        looser, stricter = stricter, looser
    wide, narrow = looser.pattern, stricter.pattern
    if looser.test == "contains":
        return stricter.test in ("contains", "starts", "ends") and wide in narrow
    if looser.test != stricter.test:
        return False
    return (looser.test == "starts" and narrow.startswith(wide)) or (looser.test == "ends" and narrow.endswith(wide))


def _of_two_operands(looser: Comparison, stricter: Comparison) -> bool:
    """``a <= b`` subsumes ``a < b`` and ``b > a``: Spark's order is total, NaN included."""
    wide, narrow = looser.comparator, stricter.comparator
    if (looser.left, looser.right) == (stricter.right, stricter.left):
        narrow = FLIPPED[narrow]
    elif (looser.left, looser.right) != (stricter.left, stricter.right):
        return False
    return wide == narrow or wide in _LOOSER.get(narrow, ())
