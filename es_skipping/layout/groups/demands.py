"""A workload's demands on a design: for each query, the columns that it reads and the features that subsume it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from es_skipping.layout.features.helping import Help, Helping
from es_skipping.workload.mining import Feature
from es_skipping.workload.queries import Query

__all__ = ["Demand", "demands_of", "helped_share", "related_columns", "units_of", "weights_of"]


@dataclass(frozen=True, slots=True)
class Demand:
    """Queries that are equal for a design.

    Parameters
    ----------
    columns
        The columns that they read.
    usable
        Numbers of the features that subsume them.
    count
        The number of queries.
    lists
        Sets of features such that each of the queries' rows satisfies one: a block without any feature of a set is
        skipped.
    """

    columns: frozenset[str]
    usable: frozenset[int]
    count: int = 1
    lists: frozenset[frozenset[int]] = frozenset()

    @property
    def features(self) -> frozenset[int]:
        """All features in it."""
        return self.usable.union(*self.lists)

    def helped_by(self, features: Collection[int]) -> bool:
        """Whether each of its rows satisfies one of these features."""
        return not self.usable.isdisjoint(features) or any(some.issubset(features) for some in self.lists)

    def within(self, features: Collection[int]) -> Demand:
        """The same demand restricted to these features."""
        kept = frozenset(some for some in self.lists if some.issubset(features))
        return replace(self, usable=self.usable.intersection(features), lists=kept)


def demands_of(queries: Iterable[Query], features: Sequence[Feature], columns: Sequence[str]) -> tuple[Demand, ...]:
    """The demands of a workload, in order of first occurrence.

    Parameters
    ----------
    features
        The global features; demands refer to them by number.
    columns
        All columns of the table; a query with unknown columns counts as reading all.

    Examples
    --------
    >>> from es_skipping.predicates.tree import ALWAYS
    >>> demands_of([Query(ALWAYS), Query(ALWAYS)], [], ["a"])
    (Demand(columns=frozenset({'a'}), usable=frozenset(), count=2, lists=frozenset()),)
    """
    known, helping = set(columns), Helping(features)
    counted: Counter[tuple[frozenset[str], Help]] = Counter()
    for query in queries:
        reads = known if query.columns is None else known.intersection(query.columns)
        counted[frozenset(reads), helping.help(query)] += 1
    return tuple(Demand(reads, help.usable, count, help.lists) for (reads, help), count in counted.items())


def helped_share(demands: Iterable[Demand]) -> float:
    """The share of the queries that a feature helps, or a list of features."""
    counted = [(demand.count, bool(demand.features)) for demand in demands]
    total = sum(count for count, _ in counted)
    return sum(count for count, helped in counted if helped) / total if total else 0.0


def weights_of(demands: Iterable[Demand], columns: Collection[str]) -> dict[int, int]:
    """Each feature's weight in a group of these columns: the queries that read one of them and that it subsumes, or has
    in a list. For a list this overestimates if a block has several of its features; it is exact for the first.

    Examples
    --------
    >>> weights_of([Demand(frozenset("ab"), frozenset({0}), 3), Demand(frozenset("b"), frozenset({0, 1}))], "a")
    {0: 3}
    """
    weights: Counter[int] = Counter()
    for demand in demands:
        if not demand.columns.isdisjoint(columns):
            for feature in demand.features:
                weights[feature] += demand.count
    return dict(sorted(weights.items()))


def related_columns(demands: Iterable[Demand]) -> dict[int, frozenset[str]]:
    """rel-cols of the dissertation (5.3.1): by feature, all columns of the queries that it helps."""
    found: dict[int, frozenset[str]] = {}
    for demand in demands:
        for feature in demand.features:
            found[feature] = found.get(feature, frozenset()) | demand.columns
    return found


def units_of(demands: Iterable[Demand]) -> tuple[frozenset[int], ...]:
    """The features that help queries, grouped if they are useful only together: values of the same lists, which help
    more queries in a list than alone.

    Examples
    --------
    >>> lists = frozenset({frozenset({1, 2})}), frozenset({frozenset({2, 4})})
    >>> demands = [Demand(frozenset("a"), frozenset({0}), lists=some) for some in lists]
    >>> [sorted(unit) for unit in units_of(demands)]
    [[0], [1, 2, 4]]
    """
    alone: Counter[int] = Counter()
    listed: Counter[int] = Counter()
    families: list[frozenset[int]] = []
    for demand in demands:
        alone.update(dict.fromkeys(demand.usable, demand.count))
        listed.update(dict.fromkeys(frozenset().union(*demand.lists), demand.count))
        for some in demand.lists:
            met = [family for family in families if not family.isdisjoint(some)]
            families = [family for family in families if family.isdisjoint(some)] + [some.union(*met)]
    bound = [frozenset(one for one in family if listed[one] > alone[one]) for family in families]
    single = alone.keys() | listed.keys()
    single -= frozenset().union(*bound)
    return tuple(sorted([frozenset({one}) for one in single] + [one for one in bound if one], key=min))
