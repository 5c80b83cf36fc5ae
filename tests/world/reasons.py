"""Why an object is kept although its metadata could rule it out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from es_skipping.clauses.clause import Ask, Clause, Decided
from es_skipping.clauses.merge import merge_clause
from es_skipping.clauses.metadata import Fingerprints
from es_skipping.clauses.questions import AnyOf, HasNaN, HasNotNull, HasNull
from es_skipping.predicates.tree import (
    And,
    Call,
    Cast,
    Comparison,
    Constant,
    Holds,
    IsIn,
    Literal,
    Matches,
    NullTest,
    Opaque,
    Or,
    Predicate,
)
from tests.world.objects import Indexed
from tests.world.world import Asked, World

__all__ = ["EMPTY", "REMEDIES", "reason"]

EMPTY: Final = "the object is empty"
_NO_ROW: Final = "no row can ever satisfy the filter"
_OPAQUE: Final = "es_skipping does not understand a part of the filter"
_COMPARED: Final = "the filter compares two columns"
_FUNCTION: Final = "the filter compares a function of the column"
_NOT_ASKED: Final = "the index does not answer {form}"
_ONE_BY_ONE: Final = "each part of an AND may hold for some row, but no row satisfies all parts"
_APART: Final = "only two indexes together could rule the object out"
_ROUNDED: Final = "the answer is rounded towards keeping"
_FORMS: Final = {
    "equal": "`=` or `IN`",
    "other": "`<>` or `NOT IN`",
    "order": "`<`, `<=`, `>` or `>=`",
    "null": "`IS NULL` or `IS NOT NULL`",
    "text": "tests of strings",
}

_OF_OTHERS: Final = "Nothing helps: the index summarises a function or conditions instead of the column."
REMEDIES: Final = {
    _OPAQUE: "Understand `IS UNKNOWN` and `IS [NOT] TRUE` on several conditions, which Spark does not rewrite.",
    _NO_ROW: "Prove contradictions between tests of strings, functions and several columns. Those between comparisons "
    "of one column are proved already.",
    _ONE_BY_ONE: "Merge tests of strings into one question, as comparisons of one column are merged already.",
    _APART: "Ask two indexes one question, which no store can do: stores combine answers, not metadata.",
    _ROUNDED: "Tell metadata of single values from metadata of intervals, and know for whole-number types that nothing "
    "lies between two neighbours.",
    _COMPARED: "Compare two columns of one object in the store. `Features` does this for conditions that are known "
    "beforehand.",
    _FUNCTION: 'Index the function itself: `MinMax("abs(x)")`, `Formatted`.',
    EMPTY: "Ask in each question whether the object has a row. Reading an empty file costs one open.",
    _NOT_ASKED.format(form=_FORMS["equal"]): _OF_OTHERS,
    _NOT_ASKED.format(form=_FORMS["other"]): "Nothing helps: the index does not keep whole values.",
    _NOT_ASKED.format(form=_FORMS["order"]): "Add `MinMax`: this index does not keep the order.",
    _NOT_ASKED.format(form=_FORMS["null"]): _OF_OTHERS,
    _NOT_ASKED.format(
        form=_FORMS["text"]
    ): "Add `ValueList` if objects hold few strings: this index does not keep whole strings.",
}
"""By reason, what these skips would need."""


def reason(world: World, asked: Asked, kind: str) -> str:
    """Why a kind of metadata misses a skip of a predicate: the first that applies.

    Parameters
    ----------
    kind
        Of the world's.
    """
    parts = list(_parts(asked.predicate))
    if any(isinstance(part, Opaque) for part in parts):
        return _OPAQUE
    if not asked.truth.any():
        return _NO_ROW
    leaves = [part for part in parts if not isinstance(part, And | Or | Constant)]
    # Spark adds tests for NULL of its own; what the user wrote tells more.
    for leaf in sorted(leaves, key=lambda leaf: isinstance(leaf, NullTest)):
        if all(_says_little(leaf, indexed) for indexed in world.kinds[kind]):
            form = _form(leaf)
            return form if form not in _FORMS else _NOT_ASKED.format(form=_FORMS[form])
    if len(world.kinds[kind]) > 1:
        return _APART
    return _ONE_BY_ONE if any(isinstance(part, And) for part in parts) else _ROUNDED


def _parts(predicate: Predicate) -> Iterator[Predicate]:
    yield predicate
    if isinstance(predicate, And | Or):
        for child in predicate.children:
            yield from _parts(child)


def _says_little(leaf: Predicate, indexed: Indexed) -> bool:
    """Whether an index makes no clause of a leaf, or one that asks only whether there is a value."""
    clause = merge_clause(leaf, [indexed.labeller])
    if isinstance(leaf, NullTest):
        return isinstance(clause, Decided)
    asks = list(_asks(clause))
    plain = all(isinstance(ask.question, HasNotNull | HasNull) for ask in asks)
    if any(isinstance(one, Fingerprints) for one in indexed.of_object):
        plain = not any(isinstance(ask.question, AnyOf) for ask in asks) and not _of_nan_alone(asks)
    return plain and clause != Decided(False)


def _of_nan_alone(asks: list[Ask]) -> bool:
    return [ask.question for ask in asks] == [HasNaN()]


def _asks(clause: Clause) -> Iterator[Ask]:
    if isinstance(clause, Ask):
        yield clause
    elif not isinstance(clause, Decided):
        for part in clause.clauses:
            yield from _asks(part)


def _form(leaf: Predicate) -> str:
    """The form of a leaf: a key of `_FORMS`, or a reason."""
    match leaf:
        case Comparison(_, _, right) if not isinstance(right, Literal):
            return _COMPARED
        case (
            Holds()
            | NullTest(Call() | Cast())
            | Comparison(_, Call() | Cast(), _)
            | IsIn(Call() | Cast())
            | Matches(_, Call() | Cast())
        ):
            return _FUNCTION
        case Comparison("=", _, _) | IsIn(negated=False):
            return "equal"
        case Comparison("<>", _, _) | IsIn():
            return "other"
        case Comparison():
            return "order"
        case NullTest():
            return "null"
        case Matches():
            return "text"
    return _OPAQUE
