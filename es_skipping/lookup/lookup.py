"""One look-up, from a request to the stores' answers. Queries and `esk.explain` share it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from es_skipping.clauses.clause import KEEP, Clause, indexes_of
from es_skipping.errors import StoreError, StoreUnavailable
from es_skipping.indexes.registry import readable_id
from es_skipping.lookup.first_rows import Guarantee, guarantee
from es_skipping.lookup.functions import DeclaredFunctions
from es_skipping.lookup.key_ranges import Implied
from es_skipping.lookup.registry import IndexedDataset
from es_skipping.lookup.renames import as_indexed
from es_skipping.lookup.request import ScanRequest
from es_skipping.lookup.verdict import Verdict, clause_for, read_filters
from es_skipping.lookup.withheld import Rename, Withheld, is_protected
from es_skipping.predicates.normal import all_of
from es_skipping.predicates.show import show
from es_skipping.predicates.tree import Element, HasElement, Predicate, leaves_of
from es_skipping.stores.base import Answer, StoreQuery

__all__ = ["Lookup", "Part", "look_up"]


_NOTHING: Final = Withheld()


@dataclass(frozen=True, slots=True)
class Part:
    """One dataset's answer to one conjunction of the request's filters.

    Parameters
    ----------
    dataset
        Its id.
    withheld
        What reports leave out of the filter here.
    answer
        The store's answer; None if no index understands any of the predicate, so that there is nothing to ask.
    query
        The store's query, for people; None unless the look-up is traced.
    unpaid
        Why the store is not asked although an index understands the predicate: it would not pay. Of a traced look-up,
        which asks, why a query's would not be made.
    """

    dataset: IndexedDataset
    predicate: Predicate
    verdict: Verdict
    withheld: Withheld = _NOTHING
    answer: Answer | None = None
    query: StoreQuery | None = None
    unpaid: str | None = None

    @property
    def unusable(self) -> tuple[tuple[str, str], ...]:
        """``(index id, reason)`` of the indexes that this read must not use, or whose metadata is hidden."""
        hidden = self.answer.unusable if self.answer is not None else ()
        return tuple(dict.fromkeys([*self.verdict.unusable, *hidden]))

    @property
    def shown_unusable(self) -> tuple[tuple[str, str], ...]:
        """The same as reports write it."""
        return self.withheld.unusable(self.unusable)

    @property
    def asked(self) -> str:
        """The clause as `explain` writes it."""
        if self.verdict.clause == KEEP:
            return "nothing"
        return self.withheld.clause(self.verdict.clause, self.dataset)

    @property
    def filter(self) -> str:
        """The filter as reports write it."""
        return self.withheld.filter(self.predicate)


@dataclass(frozen=True, slots=True)
class Lookup:
    """All parts of a look-up.

    Parameters
    ----------
    datasets
        The indexed datasets that the scan reads; empty if nothing it reads is indexed.
    parts
        For each entry of the request's filters, one part per dataset.
    guarantee
        Objects that hold the rows that suffice; None if there are none, or if the query needs all rows.
    row_groups
        For each entry of the request's filters, the answers about row groups of the datasets that have them. Empty if
        the scan cannot leave out row groups.
    implied_by
        What the metadata of joined relations gave conditions on their keys, for people.
    """

    datasets: tuple[IndexedDataset, ...]
    parts: tuple[tuple[Part, ...], ...] = field(default=())
    guarantee: Guarantee | None = None
    row_groups: tuple[tuple[Answer, ...], ...] = ()
    implied_by: tuple[str, ...] = ()

    @property
    def flat(self) -> list[Part]:
        """All parts in order."""
        return [part for parts in self.parts for part in parts]

    @property
    def answers(self) -> list[list[Answer]]:
        """For each entry of the request's filters, the answers that rule an object out."""
        return [[part.answer for part in parts if part.answer and part.answer.skipped] for parts in self.parts]

    @property
    def rules_out(self) -> bool:
        """Whether any answer rules an object out, or a row group."""
        return any(self.answers) or self.rules_out_row_groups

    @property
    def rules_out_row_groups(self) -> bool:
        """Whether any answer rules a row group out."""
        return any(answer.skipped for answers in self.row_groups for answer in answers)

    @property
    def has_unused_row_groups(self) -> bool:
        """Whether row groups are known and the scan cannot leave them out; the reply says so, for later scans."""
        return not self.row_groups and any(one.row_groups is not None for one in self.datasets)

    @property
    def known_row_groups(self) -> int:
        """How many row groups the stores know of the datasets."""
        asked = self.datasets if self.row_groups else ()
        return sum(one.row_groups.entry.objects for one in asked if one.row_groups is not None)

    @property
    def indexes(self) -> tuple[str, ...]:
        """The ids of the indexes that the store was asked about."""
        asked = (part for part in self.flat if part.answer is not None)
        return tuple(dict.fromkeys(id for part in asked for id in indexes_of(part.verdict.clause)))

    @property
    def unpaid(self) -> str | None:
        """Why a part of the look-up is left out, or would be if a query made it; None if it is not."""
        return next((part.unpaid for part in self.flat if part.unpaid is not None), None)

    @property
    def elements(self) -> tuple[str, ...]:
        """The arrays whose elements the filter restricts and an index describes, for people."""
        return tuple(dict.fromkeys(text for part in self.flat for text in _elements(part)))

    @property
    def unusable(self) -> tuple[tuple[str, str], ...]:
        """``(index id, reason)`` of the indexes that are not used, without duplicates, as reports write it."""
        return tuple(dict.fromkeys(pair for part in self.flat for pair in part.shown_unusable))

    @property
    def reason(self) -> str | None:
        """Why nothing is ruled out; None if something is. Others can read it in logs."""
        if not self.datasets:
            return "not indexed"
        if self.rules_out or self.guarantee is not None:
            return None
        if self.unpaid is not None:
            return self.unpaid
        if any(part.answer.unusable for part in self.flat if part.answer is not None):
            return self._told(part.unusable for part in self.flat)
        if any(part.verdict.clause != KEEP for part in self.flat):
            return "no object could be ruled out"
        return self._told(part.unusable for part in self.flat) or "no index understands the filter"

    @property
    def why_unfit(self) -> str:
        """A sentence that says why this read must not use some indexes, for a log; empty if it may use all."""
        return self._told(part.verdict.unusable for part in self.flat)

    def from_log(self, dataset: IndexedDataset, rename: Rename | None = None) -> Withheld:
        """What logs leave out of the scan's filter, as far as it is about one of the datasets."""
        return Withheld.from_log(dataset.entry.definition, (one.entry.definition for one in self.datasets), rename)

    def _told(self, unusable: Iterable[tuple[tuple[str, str], ...]]) -> str:
        """Why indexes are not used, as a log gets it."""
        return _sentence(
            pair
            for part, found in zip(self.flat, unusable, strict=True)
            for pair in (self.from_log(part.dataset).unusable(found) if found else ())
        )


def _elements(part: Part) -> Iterator[str]:
    indexed = {
        operand.array
        for _, labeller in part.dataset.labellers
        for operand in labeller.target.operands
        if isinstance(operand, Element)
    }
    for leaf in leaves_of(part.predicate) if indexed else ():
        if isinstance(leaf, HasElement) and leaf.array in indexed:
            yield f"elements of {show(leaf.array)}"


def _sentence(unusable: Iterable[tuple[str, str]]) -> str:
    return "; ".join(f"{readable_id(index)} is not used: {reason}" for index, reason in dict.fromkeys(unusable))


def look_up(
    request: ScanRequest,
    datasets: Sequence[IndexedDataset],
    functions: DeclaredFunctions,
    seconds_left: Callable[[], float],
    *,
    traced: bool = False,
    detail: bool = False,
    unpaid: Callable[[IndexedDataset, Clause], str | None] = lambda dataset, clause: None,
    implied: Sequence[Implied] = (),
) -> Lookup:
    """Ask each dataset's store about each conjunction of a request's filters.

    Parameters
    ----------
    seconds_left
        Time limit of the next request to a store.
    traced
        Also keep, for people, each filter node's outcome and the store's query.
    detail
        Also count the objects that each index alone would rule out, which can take several requests.
    unpaid
        Says why it does not pay to ask a dataset's store a clause; None if it does. A traced look-up asks all the same.
    implied
        What the scan's joins imply, beside the filters.

    Raises
    ------
    StoreError
        A store failed, or its answer may be incomplete.
    """
    declared = functions.of(request.session)

    # Row groups and guarantees save what the log does not tell.
    may_leave_out = request.first is None and all(dataset.row_groups is None for dataset in datasets)

    definitions = [dataset.entry.definition for dataset in datasets]
    is_any_protected = any(is_protected(index) for one in definitions for index in one.indexes)

    def withheld_of(dataset: IndexedDataset) -> Withheld:
        if not is_any_protected:
            return _NOTHING
        rename = as_indexed(request, dataset.entry.definition.schema)[1]
        return Withheld.without_keys(dataset.entry.definition, definitions, rename)

    def part(predicate: Predicate, dataset: IndexedDataset) -> Part:
        verdict = clause_for(dataset, predicate, request, declared, traced=traced)
        withheld = withheld_of(dataset)
        if verdict.clause == KEEP:
            return Part(dataset, predicate, verdict, withheld)
        why = unpaid(dataset, verdict.clause) if may_leave_out else None
        if why is not None and not traced:
            return Part(dataset, predicate, verdict, withheld, unpaid=why)
        store, entry = dataset.store, dataset.entry
        query = withheld.query(store, entry, verdict.clause) if traced else None
        answer = store.lookup(entry, verdict.clause, timeout=max(seconds_left(), 0.001), detail=detail)
        return Part(dataset, predicate, verdict, withheld, answer, query, why)

    having = [dataset.row_groups for dataset in datasets if dataset.row_groups is not None]
    beside = [one.predicate for one in implied]
    predicates = [all_of([read_filters(trees, declared), *beside]) for trees in request.filters]
    parts = tuple(tuple(part(predicate, dataset) for dataset in datasets) for predicate in predicates)
    guaranteed = None
    if request.first is not None and len(datasets) == len(predicates) == 1:
        try:
            guaranteed = guarantee(request, datasets[0], predicates[0], declared, seconds_left)
        except StoreUnavailable:
            if parts[0][0].answer is None:
                raise
            # The filter has its answer already; without a guarantee it skips what it would without a limit.
    groups: tuple[tuple[Answer, ...], ...] = ()
    if request.row_groups and guaranteed is None:
        try:
            groups = _row_groups([[part(one, group) for group in having] for one in predicates] if having else [])
        except StoreError:
            if not any(one.answer is not None for found in parts for one in found):
                raise
            # The files have their answer already; without one about row groups the scan reads all of the others.
    return Lookup(tuple(datasets), parts, guaranteed, groups, tuple(one.by for one in implied))


def _row_groups(found: Sequence[Sequence[Part]]) -> tuple[tuple[Answer, ...], ...]:
    return tuple(tuple(part.answer for part in parts if part.answer is not None) for parts in found)
