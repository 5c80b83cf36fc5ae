"""Groupings to compare with GSOP's: the two extremes, and those of vertical partitioning without skipping.

The latter two only consider which columns are read together: a query pays for all columns of each needed group, as in a
row store within groups, and for an id of each. `hill_climbing` merges as HillClimb does (Hankins and Patel, *Data
Morphing*, VLDB 2003), `primary_partitions` in the manner of Hyrise (Grund et al., PVLDB 4, 2010).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from es_skipping.layout.groups.demands import Demand
from es_skipping.layout.groups.grouping_search import read_alike

__all__ = ["hill_climbing", "one_for_all", "one_per_column", "primary_partitions"]

Groups = list[frozenset[str]]


def one_per_column(columns: Sequence[str]) -> Groups:
    """GSOP-single: the least conflict, the most ids."""
    return [frozenset([name]) for name in columns]


def one_for_all(columns: Sequence[str]) -> Groups:
    """SOP: no ids, the most conflict."""
    return [frozenset(columns)]


def hill_climbing(columns: Sequence[str], demands: Sequence[Demand]) -> Groups:
    """Start with one group per column, and do the merger that saves most, as long as one saves.

    Examples
    --------
    >>> [sorted(some) for some in hill_climbing("abc", [Demand(frozenset("ab"), frozenset(), 9)])]
    [['a', 'b'], ['c']]
    """
    groups = one_per_column(columns)
    known: dict[tuple[frozenset[str], frozenset[str]], float] = {}

    def gain(pair: tuple[frozenset[str], frozenset[str]]) -> float:
        if pair not in known:
            known[pair] = _cost(pair, demands) - _cost([pair[0] | pair[1]], demands)
        return known[pair]

    while len(groups) > 1:
        one, other = max(combinations(groups, 2), key=gain)
        if gain((one, other)) <= 0:
            break
        groups = [one | other if group == one else group for group in groups if group != other]
    return groups


def primary_partitions(columns: Sequence[str], demands: Sequence[Demand]) -> Groups:
    """Merge two or three sets of columns that the same queries read into candidates if that saves, and choose disjoint
    candidates that save most.

    Examples
    --------
    >>> two = [Demand(frozenset("ab"), frozenset(), 9), Demand(frozenset("abc"), frozenset())]
    >>> [sorted(some) for some in primary_partitions("abc", two)]
    [['a', 'b'], ['c']]
    """
    primary = read_alike(columns, demands)
    saved: list[tuple[float, Groups]] = []
    for size in (2, 3):
        for some in combinations(primary, size):
            gain = _cost(some, demands) - _cost([frozenset().union(*some)], demands)
            if gain > 0:
                saved.append((gain, list(some)))
    saved.sort(key=lambda one: (-one[0], len(one[1]), [sorted(part) for part in one[1]]))
    left = list(primary)
    for _, parts in saved:
        if all(part in left for part in parts):
            left = [part for part in left if part not in parts] + [frozenset().union(*parts)]
    return left


def _cost(groups: Sequence[frozenset[str]], demands: Sequence[Demand]) -> float:
    """Columns read and ids, for each row."""
    cost = 0.0
    for demand in demands:
        needed = [group for group in groups if demand.columns & group]
        cost += demand.count * (sum(map(len, needed)) + len(needed))
    return cost
