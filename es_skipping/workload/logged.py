"""The queries on a dataset that the query log has."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from es_skipping.predicates.normal import normalise
from es_skipping.predicates.read import read_predicate
from es_skipping.predicates.tree import And, Or, Predicate
from es_skipping.stores.base import is_under
from es_skipping.workload.queries import Query

if TYPE_CHECKING:
    from es_skipping.stores.base import MetadataStore

__all__ = ["Logged", "logged", "logged_queries", "of_residuals"]


@dataclass(frozen=True, slots=True)
class Logged:
    """A scan of one execution of a query.

    Parameters
    ----------
    query
        Its filter.
    time
        Milliseconds since the epoch.
    bytes
        Of its listing; None where unknown.
    """

    query: Query
    time: int
    bytes: int | None


def logged_queries(store: MetadataStore, roots: Iterable[str], since: int = 0) -> list[Query]:
    """The filters of the scans at or below these paths, oldest first; the dataset need not be indexed.

    A filter counts once for each execution of a query: Spark may plan a scan several times.

    Parameters
    ----------
    since
        Milliseconds since the epoch.

    Raises
    ------
    StoreError
        The store cannot be read.
    """
    return [one.query for one in logged(store, roots, since)]


def logged(store: MetadataStore, roots: Iterable[str], since: int = 0) -> Iterator[Logged]:
    """Like `logged_queries`, with each scan's time and size."""
    above = [root.rstrip("/") for root in roots]
    seen: set[tuple[str | None, str | None, str, Predicate]] = set()
    for entry in store.logged_queries(since=since):
        if not entry.trees or not any(is_under(root.rstrip("/"), above) for root in entry.roots):
            continue
        predicate = of_residuals(entry.trees)
        if predicate is None:
            continue
        execution = (entry.application, entry.session, entry.execution or f"scan {entry.scan}", predicate)
        if execution not in seen:
            seen.add(execution)
            yield Logged(Query(predicate, entry.filter), entry.time, entry.bytes)


def of_residuals(filters: Sequence[Sequence[Any]]) -> Predicate | None:
    """The filter of a scan, from a request's ``filters``; None if there is none.

    Examples
    --------
    >>> of_residuals([[]]) is None
    True
    """
    # If partition values decide a condition, the residuals differ between partitions.
    residuals = [normalise(And(tuple(read_predicate(tree) for tree in trees))) for trees in filters if trees]
    if not residuals:
        return None
    return residuals[0] if len(residuals) == 1 else normalise(Or(tuple(residuals)))
