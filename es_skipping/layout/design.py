"""From a workload and the vectors of the data to column groups: what `fit` of GSOP and GSOP-R does, without Spark."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from es_skipping.layout.chart import bar_chart
from es_skipping.layout.demands import Demand, demands_of
from es_skipping.layout.grouping import Designer
from es_skipping.layout.grouping_search import best_grouping
from es_skipping.layout.groups import ColumnGroup
from es_skipping.layout.histogram import Histogram
from es_skipping.layout.layouts import Layout
from es_skipping.layout.local_features import DISTINCT
from es_skipping.layout.mining import Feature
from es_skipping.layout.queries import Query
from es_skipping.layout.replication import Replicas
from es_skipping.layout.replication_search import best_layouts
from es_skipping.layout.vectors import GlobalVectors
from es_skipping.layout.vertical import one_for_all, one_per_column
from es_skipping.predicates.show import show

__all__ = ["GroupDesign", "design_groups", "design_layouts"]

_VECTORS: Final = 8_000
"""The search looks at so many distinct vectors at most: at some of the coarse partitions, where they have more."""


@dataclass(frozen=True)
class GroupDesign:
    """Column groups that could be written.

    Parameters
    ----------
    groups
        What `es_skipping.layout.group_table.write_groups` takes, or will for groups with masters.
    storage
        Cells stored, relative to the table's: 1 where none is stored twice.
    trained, tested
        By scheme, the cells and ids that queries read, relative to reading their columns of all rows: those the groups
        were made from, and others. Empty where there are none.
    partitions
        How many of how many coarse partitions the search looked at.
    seconds
        Of the search.
    """

    groups: tuple[ColumnGroup, ...]
    storage: float
    trained: Mapping[str, float]
    tested: Mapping[str, float]
    partitions: tuple[int, int]
    seconds: float = field(compare=False)

    def chart(self) -> str:
        """Cells and ids read by scheme, on the queries held out where there are some; as SVG."""
        return bar_chart(
            dict(self.tested or self.trained), title="Cells and ids read, of all rows' cells", percent=True
        )

    def __str__(self) -> str:
        what = "layouts" if any(group.masters for group in self.groups) else "column groups"
        lines = [f"{len(self.groups)} {what}, {self.storage:.0%} of the table's cells stored"]
        looked, there = self.partitions
        lines.append(f"found in {self.seconds:.1f} s on {looked:,} of {there:,} partitions")
        for name, read in (("held out", self.tested), ("it was made from", self.trained)):
            if read:
                told = ", ".join(f"{scheme} {share:.1%}" for scheme, share in read.items())
                lines.append(f"cells and ids read on the queries {name}: {told}")
        for number, group in enumerate(self.groups, 1):
            lines += ["", f"{number}: {', '.join(_named(group))}"]
            lines += [f"    {feature.weight:>6} queries  {show(feature.predicate)}" for feature in group.features]
        return "\n".join(lines)


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
    before = time.perf_counter()
    sampled = _sampled(histogram)
    vectors = GlobalVectors(sampled, min_rows)
    demands, others = (demands_of(queries, features, columns) for queries in (train, test))
    designer = Designer(columns, demands, vectors, distinct=distinct)
    found = best_grouping(designer).grouping
    schemes = {
        "GSOP": found,
        "SOP": designer.grouping(one_for_all(columns)),
        "one group per column": designer.grouping(one_per_column(columns)),
    }
    trained, tested = (
        {name: scheme.cost(some).read / _everything(some, vectors.rows) for name, scheme in schemes.items()}
        if _everything(some, vectors.rows)
        else {}
        for some in (demands, others)
    )
    return GroupDesign(
        found.column_groups(columns, features),
        1.0,
        trained,
        tested,
        (len(sampled.groups), len(histogram.groups)),
        time.perf_counter() - before,
    )


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
    """Layouts by GSOP-R: the best of two searches, from one layout per column and from the groups of GSOP.

    Parameters
    ----------
    columns, features, train, test, histogram, min_rows, distinct
        As for `design_groups`.
    storage_budget
        Cells stored at most, relative to the table's.
    """
    before = time.perf_counter()
    sampled = _sampled(histogram)
    vectors = GlobalVectors(sampled, min_rows, apart=True)
    demands, others = (demands_of(queries, features, columns) for queries in (train, test))
    replicas = Replicas(columns, demands, vectors, distinct=distinct)
    designer = Designer(columns, demands, vectors, distinct=distinct)
    grouping = best_grouping(designer).grouping
    groups = replicas.tidied(Layout(group.columns, frozenset(group.features)) for group in grouping.groups)
    found = min((best_layouts(replicas, storage_budget, start) for start in (None, groups)), key=lambda one: one.cost)
    schemes = {"GSOP-R": found.layouts, "GSOP": groups}
    trained, tested = (
        {name: replicas.cost(scheme, some) / _everything(some, vectors.rows) for name, scheme in schemes.items()}
        if _everything(some, vectors.rows)
        else {}
        for some in (demands, others)
    )
    return GroupDesign(
        replicas.column_groups(found.layouts, features),
        found.storage,
        trained,
        tested,
        (len(sampled.groups), len(histogram.groups)),
        time.perf_counter() - before,
    )


def _named(group: ColumnGroup) -> list[str]:
    """Its columns; of layouts, those with a star have every row."""
    return [f"{name}*" if name in group.masters else name for name in group.columns]


def _everything(demands: Sequence[Demand], rows: int) -> int:
    """The cells that queries read where nothing is skipped and no group is in the way."""
    return rows * sum(demand.count * len(demand.columns) for demand in demands)


def _sampled(histogram: Histogram) -> Histogram:
    """Some coarse partitions, evenly from all, that together have few enough vectors; one at least."""
    total = sum(len(group.counts) for group in histogram.groups)
    if total <= _VECTORS or len(histogram.groups) < 2:
        return histogram
    count = max(1, len(histogram.groups) * _VECTORS // total)
    step = len(histogram.groups) / count
    return Histogram(tuple(histogram.groups[int((at + 0.5) * step)] for at in range(count)), histogram.features)
