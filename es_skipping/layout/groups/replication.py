"""The cost of a workload on layouts that may hold cells twice (*Skipping-oriented Data Design*, section 5.4.3)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from es_skipping.layout.clustering import Reals
from es_skipping.layout.groups.demands import Demand, related_columns, units_of, weights_of
from es_skipping.layout.groups.group import ColumnGroup
from es_skipping.layout.groups.grouping import counts_of
from es_skipping.layout.groups.layouts import Layout, storage, tidied
from es_skipping.layout.groups.local_features import DISTINCT, local_features
from es_skipping.layout.groups.openings import openings
from es_skipping.layout.groups.query_bits import QueryBits
from es_skipping.layout.groups.vectors import GlobalVectors, LocalBlocks
from es_skipping.layout.groups.workload_paths import Served, WorkloadPaths
from es_skipping.workload.mining import Feature

__all__ = ["Replicas"]


class Replicas:
    """Computes the costs of layouts for a workload on the data.

    Parameters
    ----------
    columns
        All columns of the table.
    demands
        The workload.
    vectors
        The data; rows that satisfy none of a layout's features stay apart.
    distinct
        Most distinct local vectors in a coarse partition of a layout.
    opening
        Cost of a reader of a file or block, in cells.
    """

    def __init__(
        self,
        columns: Sequence[str],
        demands: Sequence[Demand],
        vectors: GlobalVectors,
        *,
        distinct: int = DISTINCT,
        opening: float = 0.0,
    ) -> None:
        if not vectors.apart:
            raise ValueError("layouts keep rows without a feature apart: pass GlobalVectors(..., apart=True)")
        self.columns, self.demands, self.vectors = tuple(columns), tuple(demands), vectors
        self.related = related_columns(self.demands)
        self.units = units_of(self.demands)
        self._distinct, self._opening = distinct, opening
        self._counts = counts_of(self.demands)
        self._asked = QueryBits.of(self.demands, range(vectors.features))
        self._paths = WorkloadPaths(self.demands, self._asked)
        self._satisfying: dict[frozenset[int], int] = {}
        self._weights: dict[frozenset[str], dict[int, int]] = {}
        self._ranked: dict[tuple[frozenset[str], frozenset[int]], tuple[tuple[int, ...], tuple[int, ...]]] = {}
        self._kept: dict[tuple[frozenset[str], frozenset[int]], frozenset[int]] = {}
        self._rows: dict[tuple[tuple[int, ...], tuple[int, ...], bool], Reals] = {}
        self._served: dict[tuple[Layout, bool], Served] = {}

    def satisfying(self, features: frozenset[int]) -> int:
        """Number of rows that satisfy at least one of the features."""
        if features not in self._satisfying:
            self._satisfying[features] = self.vectors.satisfying(sorted(features))
        return self._satisfying[features]

    def storage(self, layouts: Iterable[Layout]) -> float:
        """Cells stored, relative to the table's (5.2)."""
        return storage(layouts, self.vectors.rows, len(self.columns), self.satisfying)

    def tidied(self, layouts: Iterable[Layout]) -> tuple[Layout, ...]:
        """Limit the distinct vectors, merge layouts with equal features, and choose masters."""
        return tidied([self._limited(layout) for layout in layouts], self.satisfying)

    def _limited(self, layout: Layout) -> Layout:
        key = layout.columns, layout.features
        if key not in self._kept:
            numbers, weights = self._weighted(layout)
            kept = local_features(dict(zip(numbers, weights)), self.vectors.distinct, self._distinct, self.units)
            self._kept[key] = frozenset(kept)
        return replace(layout, features=self._kept[key])

    def initial(self) -> tuple[Layout, ...]:
        """One layout per column, with the features of the queries that read it (5.5)."""
        single = (
            Layout(frozenset({name}), frozenset(at for at, columns in self.related.items() if name in columns))
            for name in self.columns
        )
        return self.tidied(single)

    def blocks(self, layout: Layout, *, exact: bool = True) -> LocalBlocks:
        """The blocks of a layout, or those of the estimate."""
        features, weights = self._weighted(layout)
        as_reals = tuple(map(float, weights))
        return (self.vectors.clustered if exact else self.vectors.estimated)(features, as_reals)

    def _weighted(self, layout: Layout) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The features, the heaviest first, and their weights."""
        key = layout.columns, layout.features
        if key not in self._ranked:
            if layout.columns not in self._weights:
                self._weights[layout.columns] = weights_of(self.demands, layout.columns)
            weights = self._weights[layout.columns]
            ranked = sorted(layout.features, key=lambda feature: (-weights.get(feature, 0), feature))
            self._ranked[key] = tuple(ranked), tuple(weights.get(feature, 0) for feature in ranked)
        return self._ranked[key]

    def rows(self, layout: Layout, *, exact: bool = True) -> Reals:
        """rr: the number of rows that each demand of the workload reads from a layout."""
        key = *self._weighted(layout), exact
        if key not in self._rows:
            self._rows[key] = self.blocks(layout, exact=exact).read_of(self._asked)
        return self._rows[key]

    def costs(self, layouts: Sequence[Layout], rough: Collection[Layout] = ()) -> Reals:
        """Per demand, what a query reads on its retrieval path (5.1): cells and ids, and the cost of its readers.

        Parameters
        ----------
        rough
            Layouts for which the estimate suffices.
        """
        return self._paths.costs([self._serving(layout, layout not in rough) for layout in layouts])

    def _serving(self, layout: Layout, exact: bool) -> Served:
        key = layout, exact
        if key not in self._served:
            self._served[key] = self._paths.served(
                layout, self.rows(layout, exact=exact), self._readers(layout, exact=exact)
            )
        return self._served[key]

    def _readers(self, layout: Layout, *, exact: bool) -> tuple[Reals, Reals] | None:
        return openings(self.blocks(layout, exact=exact), self._asked, self._opening) if self._opening else None

    def total(self, costs: Reals) -> float:
        """The cells and ids of one run of the workload, and what its readers cost."""
        return float(self._counts @ costs)

    def cost(self, layouts: Sequence[Layout], demands: Sequence[Demand] | None = None) -> float:
        """The cells and ids that a workload reads: that of the design, whose readers count too, or another."""
        if demands is None:
            return self.total(self.costs(layouts))
        asked = QueryBits.of(demands, range(self.vectors.features))
        paths = WorkloadPaths(demands, asked)
        costs = paths.costs([paths.served(layout, self.blocks(layout).read_of(asked)) for layout in layouts])
        return float(counts_of(demands) @ costs)

    def column_groups(self, layouts: Iterable[Layout], features: Sequence[Feature]) -> tuple[ColumnGroup, ...]:
        """The layout to write: columns in the table's order, features with their weights in the layout."""
        place = {name: at for at, name in enumerate(self.columns)}
        made = []
        for layout in layouts:
            numbers, weights = self._weighted(layout)
            made.append(
                ColumnGroup(
                    tuple(sorted(layout.columns, key=place.__getitem__)),
                    tuple(replace(features[at], weight=weight) for at, weight in zip(numbers, weights)),
                    tuple(sorted(layout.masters, key=place.__getitem__)),
                )
            )
        return tuple(made)
