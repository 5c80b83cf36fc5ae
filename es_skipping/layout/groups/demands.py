"""What a workload asks of a design: each query as the columns that it reads and the features that subsume it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from es_skipping.layout.features.mining import Feature, subsuming
from es_skipping.layout.workload.queries import Query

__all__ = ["Demand", "demands_of", "related_columns", "weights_of"]


@dataclass(frozen=True, slots=True)
class Demand:
    """Queries that are alike for a design.

    Parameters
    ----------
    columns
        That they read.
    usable
        Numbers of the features that subsume them.
    count
        How many they are.
    """

    columns: frozenset[str]
    usable: frozenset[int]
    count: int = 1


def demands_of(queries: Iterable[Query], features: Sequence[Feature], columns: Sequence[str]) -> tuple[Demand, ...]:
    """The demands of a workload, in the order in which they first come.

    Parameters
    ----------
    features
        The global features, which demands name by their numbers.
    columns
        All columns of the table: what a query reads of which that is not known.

    Examples
    --------
    >>> from es_skipping.predicates.tree import ALWAYS
    >>> demands_of([Query(ALWAYS), Query(ALWAYS)], [], ["a"])
    (Demand(columns=frozenset({'a'}), usable=frozenset(), count=2),)
    """
    known = set(columns)
    counted: Counter[tuple[frozenset[str], frozenset[int]]] = Counter()
    for query in queries:
        reads = known if query.columns is None else known.intersection(query.columns)
        counted[frozenset(reads), frozenset(subsuming(features, query))] += 1
    return tuple(Demand(reads, usable, count) for (reads, usable), count in counted.items())


def weights_of(demands: Iterable[Demand], columns: Collection[str]) -> dict[int, int]:
    """By feature, how many of the queries that read one of the columns it subsumes: its weight in their group.

    Examples
    --------
    >>> weights_of([Demand(frozenset("ab"), frozenset({0}), 3), Demand(frozenset("b"), frozenset({0, 1}))], "a")
    {0: 3}
    """
    weights: Counter[int] = Counter()
    for demand in demands:
        if not demand.columns.isdisjoint(columns):
            for feature in demand.usable:
                weights[feature] += demand.count
    return dict(sorted(weights.items()))


def related_columns(demands: Iterable[Demand]) -> dict[int, frozenset[str]]:
    """rel-cols of the dissertation (5.3.1): by feature, all columns of the queries that it subsumes."""
    found: dict[int, frozenset[str]] = {}
    for demand in demands:
        for feature in demand.usable:
            found[feature] = found.get(feature, frozenset()) | demand.columns
    return found
