"""ORDER BY ... LIMIT k and LIMIT n: objects that hold enough rows, and what need not be opened because of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from es_skipping.clauses.clause import KEEP
from es_skipping.lookup.registry import IndexedDataset
from es_skipping.lookup.request import FirstRows, ScanRequest
from es_skipping.lookup.verdict import bounding_index, clause_for, read_dropped
from es_skipping.predicates.functions import Declarations
from es_skipping.predicates.normal import all_of, normalise
from es_skipping.predicates.operands import read_operand
from es_skipping.predicates.tree import Column, Comparison, IsIn, Literal, NullTest, Or, Predicate, leaves_of
from es_skipping.predicates.types import Value
from es_skipping.stores.base import Answer
from es_skipping.stores.guarantors import Guarantor, Ordering, threshold

__all__ = ["Guarantee", "guarantee"]


@dataclass(frozen=True, slots=True)
class Guarantee:
    """Objects that hold enough rows for a query. It counts only if the scan lists all of them.

    Parameters
    ----------
    guarantors
        The objects.
    predicate
        The filter, and that a row does not come after the guaranteed ones; None if any rows will do, so that the
        guarantors alone suffice.
    answer
        The objects without a row for the predicate.
    """

    guarantors: tuple[Guarantor, ...]
    predicate: Predicate | None = None
    answer: Answer | None = None


def guarantee(
    request: ScanRequest,
    dataset: IndexedDataset,
    filter: Predicate,
    declared: Declarations,
    seconds_left: Callable[[], float],
) -> Guarantee | None:
    """Find objects that hold the rows that suffice for a request; None if the metadata proves of too few that they do.

    Parameters
    ----------
    request
        With `ScanRequest.first`.
    filter
        The one entry of its filters, in normal form.

    Raises
    ------
    StoreError
        The store failed.
    """
    first = request.first
    if request.joins.equal:  # a row that passes the filters may have no match
        return None
    if first is None or len(request.filters) != 1 or dataset.entry.definition.format != request.format:
        return None
    if any(map(_compares_with_zero, leaves_of(filter))):
        return None
    key = _sort_key(first, dataset, request)
    if first.by is not None and key is None:
        return None
    ordering = None if key is None else key[1]
    dropped = clause_for(dataset, read_dropped(request.filters[0], declared), request, declared)
    if dropped.clause == KEEP:
        return None
    store, entry = dataset.store, dataset.entry
    timeout = max(seconds_left(), 0.001)
    found = store.guarantors(entry, dropped.clause, first.k, ordering, under=first.under, timeout=timeout)
    if not found:
        return None
    if key is None:
        return Guarantee(found)
    predicate = all_of([filter, _not_after(key[0], threshold(found, key[1]), first)])
    clause = clause_for(dataset, predicate, request, declared).clause
    if clause == KEEP:
        return None
    return Guarantee(found, predicate, store.lookup(entry, clause, timeout=max(seconds_left(), 0.001)))


def _compares_with_zero(leaf: Predicate) -> bool:
    """Whether a leaf compares floats with zero. Spark's Parquet reader may miss rows of -0.0 then, with skipping off
    too, so no object guarantees that its rows arrive."""
    match leaf:
        case Comparison(_, _, Literal(float() as value)):
            return value == 0.0
        case IsIn(_, values):
            return any(isinstance(value, float) and value == 0.0 for value in values)
    return False


def _sort_key(first: FirstRows, dataset: IndexedDataset, request: ScanRequest) -> tuple[Column, Ordering] | None:
    """The first sort key and how an index orders it; None if no index does."""
    column = None if first.by is None else read_operand(first.by)
    index = bounding_index(dataset, column, request) if isinstance(column, Column) else None
    if not isinstance(column, Column) or index is None:
        return None
    return column, Ordering(index, first.descending, first.nulls_first)


def _not_after(column: Column, bound: Value, first: FirstRows) -> Predicate:
    """The rows that do not come after a value of the first sort key; those that tie with it are among them."""
    within = Comparison(">=" if first.descending else "<=", column, Literal(bound, column.type))
    return normalise(Or((within, NullTest(column))) if first.nulls_first else within)
