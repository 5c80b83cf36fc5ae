"""From a workload and the vectors of the data to column groups: what `fit` of GSOP and GSOP-R does, without Spark."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from es_skipping.layout.features.mining import Feature
from es_skipping.layout.groups.demands import Demand, demands_of
from es_skipping.layout.groups.group import ColumnGroup
from es_skipping.layout.groups.grouping import Designer, Grouping
from es_skipping.layout.groups.grouping_search import best_grouping, grouping_of
from es_skipping.layout.groups.local_features import DISTINCT
from es_skipping.layout.groups.replication import Replicas
from es_skipping.layout.groups.replication_baselines import selective_replication, whole_layouts
from es_skipping.layout.groups.replication_search import FoundLayouts, best_layouts
from es_skipping.layout.groups.vectors import GlobalVectors
from es_skipping.layout.groups.vertical import one_for_all, one_per_column
from es_skipping.layout.histogram import Histogram
from es_skipping.layout.workload.queries import Query

__all__ = ["GroupDesign", "design_groups", "design_layouts", "layouts_by_budget", "layouts_within"]

_VECTORS: Final = 8_000
"""The search looks at so many distinct vectors at most: at some of the coarse partitions, where they have more."""
_RUNGS: Final = (1.1, 1.2, 1.5, 2.0)
"""Storage budgets below the given one whose layouts its search goes on from."""


@dataclass(frozen=True, slots=True)
class GroupDesign:
    """Column groups, and what they promise.

    Parameters
    ----------
    groups
        What `es_skipping.layout.write_groups` takes.
    storage
        Cells stored, relative to the table's: 1 where none is stored twice.
    read
        On column groups of some kinds, ``"these groups"`` among them, the cells and ids that the test queries read,
        as a share of the cells of their columns.
    """

    groups: tuple[ColumnGroup, ...]
    storage: float
    read: Mapping[str, float]


def design_groups(
    columns: Sequence[str],
    features: Sequence[Feature],
    train: Sequence[Query],
    test: Sequence[Query],
    histogram: Histogram,
    min_rows: int,
    *,
    distinct: int = DISTINCT,
) -> GroupDesign:
    """Column groups by GSOP.

    Parameters
    ----------
    columns
        All columns of the table.
    features
        The global features: those of the histogram's vectors.
    train, test
        The queries to make groups for, and others to tell what they would read.
    histogram
        The rows by their global vector.
    min_rows
        Rows of a block.
    distinct
        At most so many distinct vectors in a coarse partition of a group.
    """
    vectors = GlobalVectors(_sampled(histogram), min_rows)
    demands, others = (demands_of(queries, features, columns) for queries in (train, test))
    designer = Designer(columns, demands, vectors, distinct=distinct)
    found = best_grouping(designer).grouping
    kinds = {
        "these groups": found,
        "one group for all (SOP)": grouping_of(designer, one_for_all(columns)),
        "a group for each column": grouping_of(designer, one_per_column(columns)),
    }
    read = {kind: _share(grouping.cost(others).read, others, vectors.rows) for kind, grouping in kinds.items()}
    return GroupDesign(found.column_groups(columns, features), 1.0, read)


def design_layouts(
    columns: Sequence[str],
    features: Sequence[Feature],
    train: Sequence[Query],
    test: Sequence[Query],
    histogram: Histogram,
    min_rows: int,
    *,
    storage_budget: float,
    distinct: int = DISTINCT,
) -> GroupDesign:
    """Layouts by GSOP-R, as `layouts_within` finds them.

    Parameters
    ----------
    columns, features, train, test, histogram, min_rows, distinct
        As for `design_groups`.
    storage_budget
        Cells stored at most, relative to the table's.
    """
    vectors = GlobalVectors(_sampled(histogram), min_rows, apart=True)
    demands, others = (demands_of(queries, features, columns) for queries in (train, test))
    replicas = Replicas(columns, demands, vectors, distinct=distinct)
    designer = Designer(columns, demands, vectors, distinct=distinct)
    grouping = best_grouping(designer).grouping
    groups = whole_layouts(grouping)
    found = layouts_within(replicas, grouping, storage_budget)
    kinds = {"these groups": found.layouts, "GSOP's groups": groups}
    read = {kind: _share(replicas.cost(layouts, others), others, vectors.rows) for kind, layouts in kinds.items()}
    return GroupDesign(replicas.column_groups(found.layouts, features), found.storage, read)


def layouts_within(replicas: Replicas, grouping: Grouping, budget: float) -> FoundLayouts:
    """The best of several searches within a storage budget, as `layouts_by_budget` has them."""
    return dict(layouts_by_budget(replicas, grouping, [budget]))[budget]


def layouts_by_budget(
    replicas: Replicas, grouping: Grouping, budgets: Iterable[float]
) -> Iterator[tuple[float, FoundLayouts]]:
    """The best layouts for each of some storage budgets, the smallest first: a larger one never costs more.

    Of each budget, the best of several searches: from one layout per column, from what selective replication makes of
    the groups with half of the storage and with all of it, and from what was found for less storage.

    The search that begins with columns sees no gain in replicas of a feature before all columns of its queries have
    one, and none of a feature that was too many for a layout. Selective replication takes such steps; the search goes
    on from there. Both are greedy, so that more storage may lead them astray; that is why some smaller budgets are
    gone through first, wanted or not.
    """
    wanted = set(budgets)
    smaller: FoundLayouts | None = None
    for budget in sorted(wanted.union(rung for rung in _RUNGS if rung < max(wanted))):
        some = (selective_replication(replicas, grouping, 1 + (budget - 1) * part) for part in (0.5, 1.0))
        starts = (None, *some) if smaller is None else (None, *some, smaller.layouts)
        smaller = min((best_layouts(replicas, budget, start) for start in starts), key=lambda one: one.cost)
        if budget in wanted:
            yield budget, smaller


def _share(cells: float, demands: Sequence[Demand], rows: int) -> float:
    """Of the cells that queries read where nothing is skipped and no group is in the way."""
    whole = rows * sum(demand.count * len(demand.columns) for demand in demands)
    return cells / whole if whole else 0.0


def _sampled(histogram: Histogram) -> Histogram:
    """Some coarse partitions, evenly from all, that together have few enough vectors; one at least."""
    total = sum(len(group.counts) for group in histogram.groups)
    if total <= _VECTORS or len(histogram.groups) < 2:
        return histogram
    count = max(1, len(histogram.groups) * _VECTORS // total)
    step = len(histogram.groups) / count
    return Histogram(tuple(histogram.groups[int((at + 0.5) * step)] for at in range(count)), histogram.features)
