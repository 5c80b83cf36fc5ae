"""A clause over a whole segment: which rows is it proved false of?

This is the one place where the default lives: unknown keeps. The masks say *proved false*, so what is unknown is
simply not in them. Because clauses have no negation they combine as Kleene's rules do: a conjunction is false where any
part is, a disjunction where every part is.
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
    conjunction,
    disjunction,
)

__all__ = ["only", "refuted"]


def refuted(clause: Clause, answer: Callable[[Ask], np.ndarray], rows: int) -> np.ndarray:
    """Per row whether the clause is proved false.

    Parameters
    ----------
    answer
        Per row whether one question is proved false. It is not asked where the result is plain already.
    rows
        How many there are.
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
    """The clause with the questions to all other indexes unknown, which keeps.

    Examples
    --------
    >>> from es_skipping.clauses.questions import HasNull
    >>> only(Disjunction((Ask("a", HasNull()), Ask("b", HasNull()))), {"a"})
    Decided(value=True)
    """
    match clause:
        case Ask(index):
            return clause if index in usable else KEEP
        case Conjunction(parts):
            return conjunction(only(part, usable) for part in parts)
        case Disjunction(parts):
            return disjunction(only(part, usable) for part in parts)
        case _:
            return clause
