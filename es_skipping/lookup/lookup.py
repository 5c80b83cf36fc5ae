"""One look-up, from a request to what each indexed dataset's store answers: that of a query, and of `esk.explain`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from es_skipping.clauses.clause import KEEP, indexes_of
from es_skipping.lookup.functions import DeclaredFunctions
from es_skipping.lookup.registry import IndexedDataset
from es_skipping.lookup.request import ScanRequest
from es_skipping.lookup.verdict import Verdict, clause_for, read_filters
from es_skipping.predicates.tree import Predicate
from es_skipping.stores.base import Answer, StoreQuery

__all__ = ["Lookup", "Part", "look_up"]


@dataclass(frozen=True, slots=True)
class Part:
    """What one dataset makes of one conjunction of the request's filters.

    Parameters
    ----------
    dataset
        Its id.
    answer
        The store's; None where no index understands any of the predicate, so that there is nothing to ask.
    query
        What the store was asked, for people; None unless the look-up is traced.
    """

    dataset: IndexedDataset
    predicate: Predicate
    verdict: Verdict
    answer: Answer | None = None
    query: StoreQuery | None = None

    @property
    def unusable(self) -> tuple[tuple[str, str], ...]:
        """``(index id, reason)`` of indexes that may not be used for this read, or whose metadata cannot be seen."""
        hidden = self.answer.unusable if self.answer is not None else ()
        return tuple(dict.fromkeys([*self.verdict.unusable, *hidden]))


@dataclass(frozen=True, slots=True)
class Lookup:
    """All parts of a look-up.

    Parameters
    ----------
    datasets
        The indexed datasets that the scan reads from; empty where it reads nothing that is indexed.
    parts
        For each entry of the request's filters those of the datasets.
    """

    datasets: tuple[IndexedDataset, ...]
    parts: tuple[tuple[Part, ...], ...] = field(default=())

    @property
    def flat(self) -> list[Part]:
        """The parts, one after the other."""
        return [part for parts in self.parts for part in parts]

    @property
    def answers(self) -> list[list[Answer]]:
        """For each entry of the request's filters the answers that rule an object out."""
        return [[part.answer for part in parts if part.answer and part.answer.skipped] for parts in self.parts]

    @property
    def rules_out(self) -> bool:
        """Whether any object of the store is ruled out."""
        return any(self.answers)

    @property
    def indexes(self) -> tuple[str, ...]:
        """The ids of the indexes that were asked."""
        return tuple(dict.fromkeys(id for part in self.flat for id in indexes_of(part.verdict.clause)))

    @property
    def unusable(self) -> tuple[tuple[str, str], ...]:
        """``(index id, reason)`` of indexes that are not used, each pair once."""
        return tuple(dict.fromkeys(pair for part in self.flat for pair in part.unusable))

    @property
    def reason(self) -> str | None:
        """Why nothing is ruled out; None where something is."""
        if not self.datasets:
            return "not indexed"
        if self.rules_out:
            return None
        if any(part.answer.unusable for part in self.flat if part.answer is not None):
            return _sentence(self.unusable)
        if any(part.verdict.clause != KEEP for part in self.flat):
            return "no object could be ruled out"
        return _sentence(self.unusable) or "no index understands the filter"

    @property
    def why_unfit(self) -> str:
        """Why indexes may not be used for this read, in a sentence; empty where all may."""
        return _sentence(pair for part in self.flat for pair in part.verdict.unusable)


def _sentence(unusable: Iterable[tuple[str, str]]) -> str:
    return "; ".join(f"{index} is not used: {reason}" for index, reason in dict.fromkeys(unusable))


def look_up(
    request: ScanRequest,
    datasets: Sequence[IndexedDataset],
    functions: DeclaredFunctions,
    seconds_left: Callable[[], float],
    *,
    traced: bool = False,
    detail: bool = False,
) -> Lookup:
    """Ask each dataset's store about each conjunction of a request's filters.

    Parameters
    ----------
    seconds_left
        How long the next question to a store may take.
    traced
        Also keep, for people, what became of each node of the filter and what the store is asked.
    detail
        Also count what each index alone would rule out, which can take several questions.

    Raises
    ------
    StoreError
        A store could not be asked, or its answer is not known to be whole.
    """
    declared = functions.of(request.session)

    def part(predicate: Predicate, dataset: IndexedDataset) -> Part:
        verdict = clause_for(dataset, predicate, request, declared, traced=traced)
        if verdict.clause == KEEP:
            return Part(dataset, predicate, verdict)
        store, entry = dataset.store, dataset.entry
        query = store.explain(entry, verdict.clause) if traced else None
        answer = store.lookup(entry, verdict.clause, timeout=max(seconds_left(), 0.001), detail=detail)
        return Part(dataset, predicate, verdict, answer, query)

    predicates = [read_filters(trees, declared) for trees in request.filters]
    return Lookup(
        tuple(datasets), tuple(tuple(part(predicate, dataset) for dataset in datasets) for predicate in predicates)
    )
