"""The workload of an advice: the filters of a dataset's queries with their weights, a fifth held out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from es_skipping.build.filter_texts import predicates_of_filters
from es_skipping.errors import DatasetError
from es_skipping.spark.services import service_of
from es_skipping.workload.logged import logged
from es_skipping.workload.queries import Query

if TYPE_CHECKING:
    from es_skipping.build.dataset import Dataset
    from es_skipping.build.source import Source
    from es_skipping.predicates.tree import Predicate

__all__ = ["AskedQueries", "AskedQuery", "asked_queries", "weighted"]

_MAX_QUERIES: Final = 10_000
"""Queries that count; the newest."""
_MAX_FILTERS: Final = 1_000
"""Different filters that count; those with the greatest weight."""
_FEWEST_TO_HOLD_OUT: Final = 20
_HELD_OUT: Final = 5
"""One query in this many is held out."""
_HALVED_AFTER_MS: Final = 30 * 86_400_000


@dataclass(frozen=True, slots=True)
class AskedQuery:
    """A query: its filter, and how much it counts."""

    predicate: Predicate
    weight: float


@dataclass(frozen=True)
class AskedQueries:
    """A workload.

    Parameters
    ----------
    training, held_out
        To choose by, and to judge by; with few queries none is held out.
    distinct
        Their different filters, each with the weight of its queries.
    """

    training: tuple[AskedQuery, ...]
    held_out: tuple[AskedQuery, ...]
    distinct: dict[Predicate, float] = field(default_factory=dict)


def weighted(queries: Sequence[AskedQuery], *, by_time: bool) -> AskedQueries:
    """Split queries, and add up the weights of equal filters.

    Parameters
    ----------
    by_time
        Whether they are in the order in which they were asked: then the newest are held out, otherwise every fifth.

    Examples
    --------
    >>> from es_skipping.predicates.tree import ALWAYS
    >>> workload = weighted([AskedQuery(ALWAYS, 1.0)] * 100, by_time=True)
    >>> len(workload.training), len(workload.held_out), list(workload.distinct.values())
    (80, 20, [100.0])
    """
    queries = queries[-_MAX_QUERIES:]
    weights: dict[Predicate, float] = {}
    for one in queries:
        weights[one.predicate] = weights.get(one.predicate, 0.0) + one.weight
    heaviest = dict(sorted(weights.items(), key=lambda item: -item[1])[:_MAX_FILTERS])
    kept = [one for one in queries if one.predicate in heaviest]
    if len(kept) < _FEWEST_TO_HOLD_OUT:
        return AskedQueries(tuple(kept), (), heaviest)
    first = len(kept) - len(kept) // _HELD_OUT
    held = [at >= first if by_time else at % _HELD_OUT == _HELD_OUT - 1 for at in range(len(kept))]
    training = tuple(one for one, out in zip(kept, held, strict=True) if not out)
    return AskedQueries(training, tuple(one for one, out in zip(kept, held, strict=True) if out), heaviest)


def asked_queries(dataset: Dataset, source: Source, log: Iterable[Query | str] | None) -> AskedQueries:
    """The queries of the log, or of the query log of the dataset's store.

    Raises
    ------
    DatasetError
        There is no query, or a filter cannot be read.
    """
    if log is not None:
        given = [log] if isinstance(log, str) else list(log)
        texts = list(dict.fromkeys(one for one in given if isinstance(one, str)))
        read = dict(zip(texts, predicates_of_filters(source.df, texts), strict=True)) if texts else {}
        queries = [AskedQuery(one.predicate if isinstance(one, Query) else read[one], 1.0) for one in given]
        if not queries:
            raise DatasetError("the log has no query: pass filters, such as log=[\"city = 'Ulm'\"]")
        return weighted(queries, by_time=False)
    store = dataset._store()
    service_of(dataset._spark).query_log.write()
    found = list(logged(store, source.roots))
    if not found:
        raise DatasetError(
            f"the query log of {store.url} has no query on {', '.join(source.roots)}: set "
            "spark.es_skipping.queryLog.enabled in the sessions that query it, or pass log=[...]"
        )
    newest = max(one.time for one in found)
    whole = max(1, sum(one.length for one in source.objects()))
    queries = [
        AskedQuery(
            one.query.predicate,
            (one.bytes or whole) / whole * 0.5 ** ((newest - one.time) / _HALVED_AFTER_MS),
        )
        for one in sorted(found, key=lambda one: one.time)
    ]
    return weighted(queries, by_time=True)
