"""Why an object is kept though its metadata could prove that it holds nothing."""

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

EMPTY: Final = "the object has no row"
_NO_ROW: Final = "no row at all can satisfy the filter"
_OPAQUE: Final = "a part of the filter is not understood"
_COMPARED: Final = "two columns are compared"
_FUNCTION: Final = "a function of the column is compared"
_NOT_ASKED: Final = "it answers no {form}"
_ONE_BY_ONE: Final = "each part of an AND may be true of some row, but all of them of none"
_APART: Final = "what one index knows and what another knows is not put together"
_ROUNDED: Final = "the answer is rounded towards keeping"
_FORMS: Final = {
    "equal": "`=` and `IN`",
    "other": "`<>` and `NOT IN`",
    "order": "`<`, `<=`, `>`, `>=`",
    "null": "`IS NULL` and `IS NOT NULL`",
    "text": "test of a string",
}

_OF_OTHERS: Final = "The index is of something else than the column: of a function, or of conditions."
REMEDIES: Final = {
    _OPAQUE: "Understand `IS UNKNOWN` and `IS [NOT] TRUE` of several conditions; Spark sends them as they are.",
    _NO_ROW: "Contradictions between tests of strings, functions and several columns would have to be proved. Those "
    "between comparisons of one column are.",
    _ONE_BY_ONE: "Each part is one question. Comparisons of one column are put together, tests of strings are not.",
    _APART: "A question to two indexes at once, which no store has. The answers are combined, not what is known.",
    _ROUNDED: "Metadata of single values would have to be told from metadata of stretches, and of a type that is "
    "counted it would have to be known that nothing lies between two neighbours.",
    _COMPARED: "Two columns of one object would have to be compared by the store. `Features` does that for conditions "
    "that are known beforehand.",
    _FUNCTION: 'Index the function itself: `MinMax("abs(x)")`, `Formatted`.',
    EMPTY: "Empty files are read; they cost an open. Each question would have to ask whether there is a row at all.",
    _NOT_ASKED.format(form=_FORMS["equal"]): _OF_OTHERS,
    _NOT_ASKED.format(form=_FORMS["other"]): "The index does not remember whole values.",
    _NOT_ASKED.format(form=_FORMS["order"]): "The index remembers no order: use `MinMax` beside it.",
    _NOT_ASKED.format(form=_FORMS["null"]): _OF_OTHERS,
    _NOT_ASKED.format(
        form=_FORMS["text"]
    ): "The index does not remember whole strings: use `ValueList` where an object holds few of them.",
}
"""By reason, what would have to be done for these skips."""


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
