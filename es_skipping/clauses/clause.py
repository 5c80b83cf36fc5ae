"""Clauses: conditions on metadata that represent expressions.

A clause c *represents* an expression e if, whenever any row of an object satisfies e, c is true of the object
(*Extensible Data Skipping*, section on Merge-Clause). So an object can be skipped if c is false for it, and is kept if
c cannot be decided. Over metadata that may be missing, a clause is true, false or unknown, combined by Kleene's rules;
only *false* skips. There is no negation: a negated leaf has its own clause.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from es_skipping.clauses.questions import Question

__all__ = [
    "KEEP",
    "SKIP",
    "Ask",
    "Clause",
    "Conjunction",
    "Decided",
    "Disjunction",
    "conjunction",
    "disjunction",
    "indexes_of",
    "with_asks",
]


@dataclass(frozen=True, slots=True)
class Decided:
    """A clause that is true of every object (`KEEP`), or false of every object (`SKIP`)."""

    value: bool


KEEP: Final = Decided(True)
SKIP: Final = Decided(False)


@dataclass(frozen=True, slots=True)
class Ask:
    """One question to the metadata of one index, named by its id in the dataset's definition.

    ``about`` tells people what the question asks, if the question alone does not.
    """

    index: str
    question: Question
    about: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Conjunction:
    clauses: tuple[Clause, ...]


@dataclass(frozen=True, slots=True)
class Disjunction:
    clauses: tuple[Clause, ...]


Clause: TypeAlias = Decided | Ask | Conjunction | Disjunction


def conjunction(clauses: Iterable[Clause]) -> Clause:
    """The conjunction, simplified: flat, without `KEEP`, `SKIP` if any is.

    Examples
    --------
    >>> conjunction([KEEP, SKIP])
    Decided(value=False)
    """
    flat: dict[Clause, None] = {}
    for clause in clauses:
        for part in clause.clauses if isinstance(clause, Conjunction) else (clause,):
            flat[part] = None
    flat.pop(KEEP, None)
    if SKIP in flat:
        return SKIP
    if len(flat) <= 1:
        return next(iter(flat), KEEP)
    return Conjunction(tuple(flat))


def disjunction(clauses: Iterable[Clause]) -> Clause:
    """The disjunction, simplified: flat, without `SKIP`, `KEEP` if any is."""
    flat: dict[Clause, None] = {}
    for clause in clauses:
        for part in clause.clauses if isinstance(clause, Disjunction) else (clause,):
            flat[part] = None
    flat.pop(SKIP, None)
    if KEEP in flat:
        return KEEP
    if len(flat) <= 1:
        return next(iter(flat), SKIP)
    return Disjunction(tuple(flat))


def indexes_of(clause: Clause) -> tuple[str, ...]:
    """The ids of the indexes that a clause asks, each once, in order of first appearance.

    Examples
    --------
    >>> from es_skipping.clauses.questions import HasNull
    >>> indexes_of(Conjunction((Ask("minmax(b)", HasNull()), Ask("minmax(a)", HasNull()))))
    ('minmax(b)', 'minmax(a)')
    """
    found: dict[str, None] = {}
    stack: list[Clause] = [clause]
    while stack:
        node = stack.pop()
        if isinstance(node, Ask):
            found[node.index] = None
        elif isinstance(node, (Conjunction, Disjunction)):
            stack.extend(reversed(node.clauses))
    return tuple(found)


def with_asks(clause: Clause, change: Callable[[Ask], Clause]) -> Clause:
    """The clause with each question replaced, and simplified.

    Examples
    --------
    >>> from es_skipping.clauses.questions import HasNull
    >>> either = Disjunction((Ask("a", HasNull()), Ask("b", HasNull())))
    >>> with_asks(either, lambda ask: KEEP if ask.index == "a" else ask)
    Decided(value=True)
    """
    match clause:
        case Ask():
            return change(clause)
        case Conjunction(parts):
            return conjunction(with_asks(part, change) for part in parts)
        case Disjunction(parts):
            return disjunction(with_asks(part, change) for part in parts)
        case _:
            return clause
