"""Evaluates a clause over a whole segment: finds the rows that it is proved false for.

This is the one place of the default "unknown keeps". The masks mean *proved false*, so they never contain an unknown
row. Clauses have no negation, so masks combine by Kleene's rules: a conjunction is false if any part is, a disjunction
if every part is.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

import numpy as np

from es_skipping.clauses.clause import (
    KEEP,
    Ask,
    Clause,
    Conjunction,
    Decided,
    Disjunction,
    with_asks,
)

__all__ = ["only", "refuted"]


def refuted(clause: Clause, answer: Callable[[Ask], np.ndarray], rows: int) -> np.ndarray:
    """Per row, whether the clause is proved false.

    Parameters
    ----------
    answer
        Returns, per row, whether one question is proved false. It is called only if its result matters.
    rows
        Number of rows.
    """
    match clause:
        case Decided(value):
            return np.full(rows, not value, np.bool_)
        case Ask():
            return answer(clause)
        case Conjunction(parts):
            proved = np.zeros(rows, np.bool_)
            for part in parts:
                proved = proved | refuted(part, answer, rows)
                if proved.all():
                    break
            return proved
        case Disjunction(parts):
            proved = np.ones(rows, np.bool_)
            for part in parts:
                proved = proved & refuted(part, answer, rows)
                if not proved.any():
                    break
            return proved


def only(clause: Clause, usable: Collection[str]) -> Clause:
    """The clause with the questions to all other indexes treated as unknown.

    Examples
    --------
    >>> from es_skipping.clauses.questions import HasNull
    >>> only(Disjunction((Ask("a", HasNull()), Ask("b", HasNull()))), {"a"})
    Decided(value=True)
    """
    return with_asks(clause, lambda ask: ask if ask.index in usable else KEEP)
