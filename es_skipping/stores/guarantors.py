"""Objects that together hold a number of rows which a query keeps, whatever their other rows are.

A query that needs no more than the first k rows of an order needs no row beyond the k-th. If some objects hold k rows
that the filter keeps, and none of these rows comes after a bound, then no row after that bound is among the first k.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Final

from es_skipping.clauses.metadata import Intervals, Metadata
from es_skipping.predicates.types import Value

__all__ = [
    "MAX_GUARANTORS",
    "Guarantor",
    "Ordering",
    "first_rows",
    "greatest_first",
    "guarantor",
    "in_order",
    "rank",
    "threshold",
]

MAX_GUARANTORS: Final = 10_000
"""A query that needs more objects than this opens all that its filter leaves."""


@dataclass(frozen=True, slots=True)
class Ordering:
    """The first sort key of a query.

    Parameters
    ----------
    index
        Id of an index whose intervals bound the values of the key.
    descending, nulls_first
        The order. NaN is the greatest value.
    """

    index: str
    descending: bool
    nulls_first: bool


@dataclass(frozen=True, slots=True)
class Guarantor:
    """One object, and what it guarantees.

    Parameters
    ----------
    key
        The object's identity (`es_skipping.catalog.ObjectId.key`).
    rows
        How many of its rows do not come after the bound.
    bound
        A value of the sort key; None without an order.
    """

    key: bytes
    rows: int
    bound: Value | None = None


def guarantor(key: bytes, rows: int | None, metadata: Metadata | None, ordering: Ordering | None) -> Guarantor | None:
    """What an object guarantees if all of its rows pass the filter; None if that is nothing.

    An unknown count or bound guarantees nothing. Bounds may be rounded outward: no row of the object is beyond them.

    Examples
    --------
    >>> ordering = Ordering("minmax(x)", descending=True, nulls_first=False)
    >>> guarantor(bytes(16), 10, Intervals(((3, 8),), nulls=4), ordering).rows
    6
    """
    if rows is None:
        return None
    if ordering is None:
        return Guarantor(key, rows) if rows > 0 else None
    if not isinstance(metadata, Intervals) or not metadata.ranges:
        return None
    if metadata.nulls is None or metadata.nans is None:
        return None
    if not ordering.nulls_first:
        rows -= metadata.nulls
    if not ordering.descending:
        rows -= metadata.nans
    bound = metadata.ranges[0][0] if ordering.descending else metadata.ranges[-1][1]
    return Guarantor(key, rows, bound) if rows > 0 else None


def in_order(candidates: Iterable[Guarantor], ordering: Ordering | None) -> list[Guarantor]:
    """The candidates with the most useful first: those with the best bounds, or without an order the largest."""
    return sorted(candidates, key=rank(ordering), reverse=greatest_first(ordering))


def rank(ordering: Ordering | None) -> Callable[[Guarantor], Any]:
    """The key by which candidates are sorted."""
    return attrgetter("rows" if ordering is None else "bound")


def greatest_first(ordering: Ordering | None) -> bool:
    """Whether the greatest key comes first."""
    return ordering is None or ordering.descending


def first_rows(candidates: Iterable[Guarantor], k: int) -> tuple[Guarantor, ...]:
    """As many of the candidates, in their order, as hold k rows together; empty if all of them do not.

    Parameters
    ----------
    candidates
        Consumed no further than needed. An object that comes twice counts once.
    """
    found: dict[bytes, Guarantor] = {}
    left = k
    for one in candidates:
        if one.key in found:
            continue
        if len(found) == MAX_GUARANTORS:
            return ()
        found[one.key] = one
        left -= one.rows
        if left <= 0:
            return tuple(found.values())
    return ()


def threshold(guarantors: Iterable[Guarantor], ordering: Ordering) -> Value:
    """The bound that none of the guaranteed rows comes after."""
    bounds: Any = [one.bound for one in guarantors]
    found: Value = min(bounds) if ordering.descending else max(bounds)
    return found
