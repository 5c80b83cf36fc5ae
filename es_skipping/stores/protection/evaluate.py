"""Evaluates a clause whose questions go partly to the store and partly to companions.

The masks of a single store become sets of keys here: what a conjunction skips is the union of what its parts skip, what
a disjunction skips is the intersection.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Final

import numpy as np

from es_skipping.clauses.clause import (
    KEEP,
    Clause,
    Conjunction,
    Disjunction,
    conjunction,
    disjunction,
    indexes_of,
)
from es_skipping.stores.base import Answer
from es_skipping.stores.object_list import Keys, as_keys, is_among
from es_skipping.stores.parquet.evaluate import only

__all__ = ["evaluated"]

_MAX_STORE_QUESTIONS: Final = 16
"""Look-ups of the store for one clause; what would need more keeps its objects."""


def evaluated(
    clause: Clause,
    sealed: Collection[str],
    in_store: Callable[[Clause, bool], Answer],
    in_companion: Callable[[str, Clause], Answer | None],
    known: int,
    *,
    detail: bool = False,
) -> Answer:
    """The objects for which the clause is proved false.

    Parameters
    ----------
    sealed
        The ids of the indexes that have companions; the store answers for all others.
    in_store
        Looks a clause up in the store; the second argument asks for what each index skips alone.
    in_companion
        Looks up a clause about one sealed index; None is unknown.
    known
        How many objects the store knows.
    """
    if clause == KEEP:
        return Answer(b"", known, dict.fromkeys(indexes_of(clause), 0) if detail else {})
    asked = set(indexes_of(clause))
    if not asked & set(sealed):
        return in_store(clause, detail)
    run = _Run(frozenset(sealed), in_store, in_companion, known)
    answer = run.answer(clause)
    by_index: dict[str, int] = {}
    if detail:
        in_clear = only(clause, asked - set(sealed))
        by_index.update(in_store(in_clear, True).by_index if in_clear != KEEP else {})
        for id in asked & set(sealed):
            by_index[id] = run.answer(only(clause, {id})).skipped
    return Answer(answer.found, run.known, by_index, tuple(dict.fromkeys(run.unusable)))


class _Run:
    def __init__(
        self,
        sealed: frozenset[str],
        in_store: Callable[[Clause, bool], Answer],
        in_companion: Callable[[str, Clause], Answer | None],
        known: int,
    ) -> None:
        self._sealed = sealed
        self._in_store = in_store
        self._in_companion = in_companion
        self._questions = 0
        self.known = known
        self.unusable: list[tuple[str, str]] = []

    def answer(self, clause: Clause) -> Answer:
        """The objects to skip, in whatever form one store names them."""
        single = self._single(clause)
        return Answer(self._skipped(clause).tobytes(), self.known) if single is None else single

    def _single(self, clause: Clause) -> Answer | None:
        """The answer of the one store that all of the clause asks; None if there are several."""
        nothing = Answer(b"", self.known)
        if clause == KEEP:
            return nothing
        asked = set(indexes_of(clause))
        if not asked & self._sealed:
            self._questions += 1
            if self._questions > _MAX_STORE_QUESTIONS:
                return nothing
            answer = self._in_store(clause, False)
            self.known = answer.known
            self.unusable.extend(answer.unusable)
            return answer
        if len(asked) == 1:
            return self._in_companion(next(iter(asked)), clause) or nothing
        return None

    def _skipped(self, clause: Clause) -> Keys:
        """The keys of the objects to skip, sorted."""
        single = self._single(clause)
        if single is not None:
            return np.sort(as_keys(single.skip))
        assert isinstance(clause, Conjunction | Disjunction)
        found: Keys | None = None
        for part in _grouped(clause, self._sealed):
            keys = self._skipped(part)
            if found is None:
                found = keys
            elif isinstance(clause, Conjunction):
                found = np.sort(np.concatenate([found, keys[~is_among(keys, found)]]))
            else:
                found = found[is_among(found, keys)]
            if isinstance(clause, Disjunction) and not len(found):
                break
        assert found is not None
        return found


def _grouped(clause: Conjunction | Disjunction, sealed: frozenset[str]) -> list[Clause]:
    """The parts of a clause, those that one store answers together as one: first the sealed ones, which cost least."""
    groups: dict[object, list[Clause]] = {}
    for number, part in enumerate(clause.clauses):
        asked = set(indexes_of(part))
        if not asked & sealed:
            groups.setdefault("store", []).append(part)
        elif len(asked) == 1:
            groups.setdefault(next(iter(asked)), []).append(part)
        else:
            groups[number] = [part]
    merge = conjunction if isinstance(clause, Conjunction) else disjunction
    return [merge(parts) for _, parts in sorted(groups.items(), key=lambda group: group[0] == "store")]
