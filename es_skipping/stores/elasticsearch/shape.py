"""Clauses brought into a shape that one query can hold: fewer questions, fewer levels."""

from __future__ import annotations

from es_skipping.clauses.clause import KEEP, Ask, Clause, Conjunction, Decided, Disjunction
from es_skipping.clauses.questions import AnyOf, Overlaps, Range
from es_skipping.predicates.types import Value

__all__ = ["count", "cut", "height", "joined", "restricted"]


def restricted(clause: Clause, index: str) -> Clause:
    """What a clause says by one index alone: every other question is answered "maybe"."""
    if isinstance(clause, Ask):
        return clause if clause.index == index else KEEP
    if isinstance(clause, Decided):
        return clause
    return type(clause)(tuple(restricted(part, index) for part in clause.clauses))


def count(clause: Clause) -> int:
    """How many questions a clause asks."""
    if isinstance(clause, (Conjunction, Disjunction)):
        return sum(map(count, clause.clauses))
    return int(isinstance(clause, Ask))


def height(clause: Clause) -> int:
    """How many levels of connectives a clause has."""
    if isinstance(clause, (Conjunction, Disjunction)):
        return 1 + max(map(height, clause.clauses), default=0)
    return 0


def cut(clause: Clause, depth: int) -> Clause:
    """The clause, with "maybe" for what lies deeper."""
    if not isinstance(clause, (Conjunction, Disjunction)):
        return clause
    if depth <= 0:
        return KEEP
    return type(clause)(tuple(cut(part, depth - 1) for part in clause.clauses))


def joined(clause: Clause) -> Clause:
    """The clause with questions of a disjunction that can be asked as one asked as one."""
    if not isinstance(clause, (Conjunction, Disjunction)):
        return clause
    parts = [joined(part) for part in clause.clauses]
    if isinstance(clause, Conjunction):
        return Conjunction(tuple(parts))
    kept: list[Clause] = []
    values: dict[str, dict[Value, None]] = {}
    ranges: dict[str, dict[Range, None]] = {}
    for part in parts:
        match part:
            case Ask(index, AnyOf(listed)):
                values.setdefault(index, {}).update(dict.fromkeys(listed))
            case Ask(index, Overlaps(listed)):
                ranges.setdefault(index, {}).update(dict.fromkeys(listed))
            case _:
                kept.append(part)
    kept += [Ask(index, AnyOf(tuple(listed))) for index, listed in values.items()]
    kept += [Ask(index, Overlaps(tuple(listed))) for index, listed in ranges.items()]
    return Disjunction(tuple(kept))
