"""Layouts of GSOP-R and their transformations (*Skipping-oriented Data Design*, sections 5.4.1 and 5.5).

A layout holds every row of its master columns, and of its other columns the rows that satisfy at least one of its
features. So a query that one of the features subsumes finds all its rows there, and any query finds each column
somewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from es_skipping.layout.groups.demands import Demand
from es_skipping.layout.groups.retrieval import Offer

__all__ = ["Layout", "merged", "merged_and_replicated", "replicated", "storage", "tidied"]

Satisfying = Callable[[frozenset[int]], int]
"""Returns the number of rows that satisfy at least one of these features."""
Related = Mapping[int, frozenset[str]]
"""By feature, all columns of the queries that it helps."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Some columns in their own order of rows.

    Parameters
    ----------
    columns
        The columns that it stores.
    features
        Numbers of its local features.
    masters
        The columns that it holds every row of.
    """

    columns: frozenset[str]
    features: frozenset[int]
    masters: frozenset[str] = frozenset()

    def offer(self, demand: Demand, rows: float) -> Offer:
        """Its offer to a query (5.6.1) that reads this number of its rows."""
        serves = self.columns if demand.helped_by(self.features) else self.masters
        return Offer(demand.columns & serves, rows)


def storage(layouts: Iterable[Layout], rows: int, columns: int, satisfying: Satisfying) -> float:
    """s-cost (5.2): the cells that layouts store, relative to the table's; 1 without replication.

    Examples
    --------
    Figure 5.4(b): three columns of four rows; and one of four and one of two, whose master is in the first layout.

    >>> first = Layout(frozenset("abc"), frozenset([1]), masters=frozenset("abc"))
    >>> second = Layout(frozenset("cd"), frozenset([2]), masters=frozenset("d"))
    >>> storage([first, second], 4, 4, lambda features: 2)
    1.125
    """
    cells = 0
    for layout in layouts:
        replicas = len(layout.columns) - len(layout.masters)
        cells += rows * len(layout.masters) + (satisfying(layout.features) * replicas if replicas else 0)
    return cells / max(1, rows * columns)


def tidied(layouts: Iterable[Layout], satisfying: Satisfying) -> tuple[Layout, ...]:
    """With layouts of the same features as one (5.5.2), and masters chosen anew (5.5.3).

    A column's master is the layout that holds most of its rows. A layout without features keeps only its masters; one
    without columns is removed.
    """
    columns: dict[frozenset[int], frozenset[str]] = {}
    for layout in layouts:
        columns[layout.features] = columns.get(layout.features, frozenset()) | layout.columns
    rows = {features: satisfying(features) for features in columns}
    # Among equals take the first, in an order that does not depend on the search's way.
    ranked = sorted(columns, key=lambda features: (-rows[features], -len(features), sorted(features)))
    masters: dict[frozenset[int], set[str]] = {features: set() for features in columns}
    taken: set[str] = set()
    for features in ranked:
        masters[features] = set(columns[features] - taken)
        taken |= columns[features]
    found = []
    for features in ranked:
        mine = frozenset(masters[features])
        kept = columns[features] if features else mine
        if kept:
            found.append(Layout(kept, features, mine))
    return tuple(found)


def replicated(layouts: Sequence[Layout], at: int, features: frozenset[int], related: Related) -> list[Layout]:
    """repl: move one of a layout's features, or a family's, to a replica of the columns that their queries read."""
    old = layouts[at]
    columns = frozenset().union(*(related[feature] for feature in features))
    replica = Layout(columns & old.columns, features)
    return [*_without(layouts, at), replace(old, features=old.features - features), *_some(replica)]


def merged(layouts: Sequence[Layout], one: int, other: int) -> list[Layout]:
    """merge: two layouts become one."""
    a, b = layouts[one], layouts[other]
    return [*_without(layouts, one, other), Layout(a.columns | b.columns, a.features | b.features)]


def merged_and_replicated(layouts: Sequence[Layout], one: int, other: int, related: Related) -> list[Layout]:
    """merge-repl: two layouts become one for the features that both have, and a replica for those of each alone."""
    a, b = layouts[one], layouts[other]
    made = [*_without(layouts, one, other), Layout(a.columns | b.columns, a.features & b.features)]
    for old, own in ((a, a.features - b.features), (b, b.features - a.features)):
        if own:
            columns = frozenset().union(*(related[feature] for feature in own))
            made += _some(Layout(old.columns & columns, own))
    return made


def _without(layouts: Sequence[Layout], *gone: int) -> list[Layout]:
    return [layout for at, layout in enumerate(layouts) if at not in gone]


def _some(layout: Layout) -> list[Layout]:
    return [layout] if layout.columns else []
