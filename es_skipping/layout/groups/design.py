"""Designs column groups from a workload and the data's vectors, without Spark: the core of `fit` of GSOP and GSOP-R."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

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
from es_skipping.workload.mining import Feature
from es_skipping.workload.queries import Query

__all__ = ["GroupDesign", "design_groups", "design_layouts", "layouts_by_budget", "layouts_within"]

_MAX_SEARCH_VECTORS: Final = 8_000
"""Most distinct vectors that the search uses; with more, it uses some of the coarse partitions."""
_RUNGS: Final = (1.1, 1.2, 1.5, 2.0)
"""Smaller storage budgets, as divisors, whose layouts the search continues from."""


@dataclass(frozen=True, slots=True)
class GroupDesign:
    """Column groups and their predicted costs.

    Parameters
    ----------
    groups
        The groups for `es_skipping.layout.write_groups`.
    storage
        Stored cells, relative to the table's: 1 if none is stored twice.
    read
        For several kinds of column groups, including ``"these groups"``, the cells and ids that the test queries read,
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
    opening: float = 0.0,
) -> GroupDesign:
    """Column groups by GSOP.

    Parameters
    ----------
    columns
        All columns of the table.
    features
        The global features, as in the histogram's vectors.
    train, test
        The queries to design for, and others to predict on.
    histogram
        The rows by global vector.
    min_rows
        Fewest rows of a block.
    distinct
        Most distinct vectors in a coarse partition of a group.
    opening
        Cost of a reader of a file or block, in cells. What is predicted leaves it out.
    """
    vectors = GlobalVectors(_sampled(histogram), min_rows)
    demands, others = (demands_of(queries, features, columns) for queries in (train, test))
    designer = Designer(columns, demands, vectors, distinct=distinct)
    found = best_grouping(designer, opening=opening).grouping
    kinds = {
        "these groups": found,
        "one group for all (SOP)": grouping_of(designer, one_for_all(columns), opening=opening),
        "a group for each column": grouping_of(designer, one_per_column(columns), opening=opening),
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
    opening: float = 0.0,
) -> GroupDesign:
    """Layouts by GSOP-R, as `layouts_within` finds them.

    Parameters
    ----------
    columns, features, train, test, histogram, min_rows, distinct, opening
        As for `design_groups`.
    storage_budget
        Most stored cells, relative to the table's.
    """
    vectors = GlobalVectors(_sampled(histogram), min_rows, apart=True)
    demands, others = (demands_of(queries, features, columns) for queries in (train, test))
    replicas = Replicas(columns, demands, vectors, distinct=distinct, opening=opening)
    designer = Designer(columns, demands, vectors, distinct=distinct)
    grouping = best_grouping(designer, opening=opening).grouping
    groups = whole_layouts(grouping)
    found = layouts_within(replicas, grouping, storage_budget)
    kinds = {"these groups": found.layouts, "GSOP's groups": groups}
    read = {kind: _share(replicas.cost(layouts, others), others, vectors.rows) for kind, layouts in kinds.items()}
    return GroupDesign(replicas.column_groups(found.layouts, features), found.storage, read)


def layouts_within(replicas: Replicas, grouping: Grouping, budget: float) -> FoundLayouts:
    """The best of several searches within a storage budget; see `layouts_by_budget`."""
    return dict(layouts_by_budget(replicas, grouping, [budget]))[budget]


def layouts_by_budget(
    replicas: Replicas, grouping: Grouping, budgets: Iterable[float]
) -> Iterator[tuple[float, FoundLayouts]]:
    """The best layouts for each storage budget, smallest first: a larger budget never costs more.

    Each budget gets the best of several searches: from one layout per column, from selective replication with half of
    the storage and with all of it, and from the results for less storage.

    A search from single columns sees no gain in replicas of a feature until all columns of its queries have one, and
    none in a feature that did not fit a layout. Selective replication takes such steps, and the search continues from
    there. Both are greedy, so more storage may mislead them; therefore some smaller budgets are always searched first.
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
    """The cells that queries read without skipping and without groups."""
    whole = rows * sum(demand.count * len(demand.columns) for demand in demands)
    return cells / whole if whole else 0.0


def _sampled(histogram: Histogram) -> Histogram:
    """A uniform choice of coarse partitions that together have few enough vectors; at least one."""
    total = sum(len(group.counts) for group in histogram.groups)
    if total <= _MAX_SEARCH_VECTORS or len(histogram.groups) < 2:
        return histogram
    count = max(1, len(histogram.groups) * _MAX_SEARCH_VECTORS // total)
    step = len(histogram.groups) / count
    return Histogram(tuple(histogram.groups[int((at + 0.5) * step)] for at in range(count)), histogram.features)
