"""Column grouping schemes and their cost for a workload (*Skipping-oriented Data Design*, section 4.4.2).

A query reads its columns in each needed group, for the rows that it cannot skip. If it needs more than one group, it
also reads these rows' ids, and joins the rows by them. An opening costs as much as some cells
(`es_skipping.layout.groups.openings`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from es_skipping.layout.clustering import Reals
from es_skipping.layout.groups.demands import Demand, units_of, weights_of
from es_skipping.layout.groups.group import ColumnGroup
from es_skipping.layout.groups.local_features import DISTINCT, local_features
from es_skipping.layout.groups.openings import openings
from es_skipping.layout.groups.query_bits import QueryBits
from es_skipping.layout.groups.vectors import GlobalVectors, LocalBlocks
from es_skipping.workload.mining import Feature

__all__ = ["ASSEMBLY", "Cost", "Designer", "Grouping", "PlannedGroup"]

ASSEMBLY: Final = 0.05
"""Cost of sorting x rows by id, in cells per x * log2(x). The dissertation leaves it open; for a million rows it is
about the cost of reading the ids."""


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of one run of a workload.

    Parameters
    ----------
    cells
        Values read (4.1).
    ids
        Row ids read, which a query within one group does not need (4.2).
    assembly
        The further cost of joining rows, in cells.
    openings
        The cost of opening files and blocks, in cells.
    """

    cells: float
    ids: float
    assembly: float
    openings: float = 0.0

    @property
    def read(self) -> float:
        """Cells and ids."""
        return self.cells + self.ids

    @property
    def total(self) -> float:
        """The objective (4.4), with openings."""
        return self.cells + self.ids + self.assembly + self.openings


@dataclass(frozen=True, slots=True)
class PlannedGroup:
    """Columns with the blocks of their rows."""

    columns: frozenset[str]
    weights: tuple[int, ...]
    blocks: LocalBlocks

    @property
    def features(self) -> tuple[int, ...]:
        """Numbers of the local features, heaviest first."""
        return self.blocks.features


@dataclass(frozen=True, slots=True)
class Grouping:
    """Disjoint column groups that together hold all columns."""

    groups: tuple[PlannedGroup, ...]

    def cost(self, demands: Sequence[Demand], assembly: float = ASSEMBLY, opening: float = 0.0) -> Cost:
        """The cost of these queries, which may be other than those of the design.

        Examples
        --------
        Section 4.2, Example 2: a query of B and D over four rows without skipping.

        >>> query = [Demand(frozenset("BD"), frozenset())]
        >>> four = LocalBlocks((), np.array([4]), np.zeros((1, 0), bool))
        >>> for scheme in (["ABCD"], ["A", "B", "C", "D"], ["AC", "BD"]):
        ...     cost = Grouping(tuple(PlannedGroup(frozenset(some), (), four) for some in scheme)).cost(query)
        ...     print(scheme, cost.cells, cost.ids)
        ['ABCD'] 8.0 0.0
        ['A', 'B', 'C', 'D'] 8.0 8.0
        ['AC', 'BD'] 8.0 0.0
        """
        counts = counts_of(demands)
        asked = QueryBits.of(
            demands, range(1 + max((at for group in self.groups for at in group.features), default=-1))
        )
        parts = [GroupTerms.of(group.columns, group.blocks, asked, demands, assembly, opening) for group in self.groups]
        zero = np.zeros(len(demands))
        many = sum((part.needed for part in parts), zero) > 1
        return Cost(
            float(counts @ sum((part.cells for part in parts), zero)),
            float((counts * many) @ sum((part.ids for part in parts), zero)),
            float((counts * many) @ sum((part.assembly for part in parts), zero)),
            float(counts @ sum((part.streamed + many * part.held for part in parts), zero)),
        )

    def column_groups(self, columns: Sequence[str], features: Sequence[Feature]) -> tuple[ColumnGroup, ...]:
        """The group to write: columns in the table's order, features with their weights in the group."""
        place = {name: at for at, name in enumerate(columns)}
        groups = [
            ColumnGroup(
                tuple(sorted(group.columns, key=place.__getitem__)),
                tuple(replace(features[at], weight=weight) for at, weight in zip(group.features, group.weights)),
            )
            for group in self.groups
        ]
        return tuple(sorted(groups, key=lambda group: place[group.columns[0]]))


@dataclass(frozen=True, slots=True)
class GroupTerms:
    """A group's contribution to each demand's cost.

    ``streamed`` is the cost of its openings for a query that needs no other group, and ``held`` what a query of several
    groups pays besides.
    """

    needed: Reals
    cells: Reals
    ids: Reals
    assembly: Reals
    streamed: Reals
    held: Reals

    @classmethod
    def of(
        cls,
        columns: frozenset[str],
        blocks: LocalBlocks,
        asked: QueryBits,
        demands: Sequence[Demand],
        assembly: float = ASSEMBLY,
        opening: float = 0.0,
    ) -> GroupTerms:
        read = blocks.read_of(asked)
        wanted = np.array([len(demand.columns & columns) for demand in demands], np.float64)
        needed = (wanted > 0).astype(np.float64)
        ids = needed * read
        assembled = assembly * ids * np.log2(np.maximum(ids, 1.0))
        streamed, held = (needed * cost for cost in openings(blocks, asked, opening))
        return cls(needed, wanted * read, ids, assembled, streamed, held)


def counts_of(demands: Sequence[Demand]) -> Reals:
    return np.array([demand.count for demand in demands], np.float64)


class Designer:
    """Plans a table's groups for a workload: their local features and blocks.

    Parameters
    ----------
    columns
        All columns of the table.
    demands
        The workload.
    vectors
        The data.
    distinct
        Most distinct local vectors in a coarse partition of a group.
    """

    def __init__(
        self,
        columns: Sequence[str],
        demands: Sequence[Demand],
        vectors: GlobalVectors,
        *,
        distinct: int = DISTINCT,
    ) -> None:
        self.columns = tuple(columns)
        self.demands = tuple(demands)
        self.vectors = vectors
        self.asked = QueryBits.of(self.demands, range(vectors.features))
        self._units = units_of(self.demands)
        self._distinct = distinct
        self._known: dict[tuple[tuple[int, int], ...], tuple[int, ...]] = {}

    def without_families(self) -> Designer:
        """A designer without the features that help queries only in lists; the same one if there are none."""
        alone = frozenset().union(*(demand.usable for demand in self.demands))
        if all(demand.features <= alone for demand in self.demands):
            return self
        demands = [demand.within(alone) for demand in self.demands]
        return Designer(self.columns, demands, self.vectors, distinct=self._distinct)

    def features(self, columns: Iterable[str]) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The local features of a group of these columns, and their weights in it."""
        weights = weights_of(self.demands, frozenset(columns))
        key = tuple(weights.items())
        if key not in self._known:
            self._known[key] = local_features(weights, self.vectors.distinct, self._distinct, self._units)
        chosen = self._known[key]
        return chosen, tuple(weights[feature] for feature in chosen)

    def estimated(self, columns: Iterable[str]) -> LocalBlocks:
        """The blocks of the estimate."""
        features, weights = self.features(columns)
        return self.vectors.estimated(features, tuple(map(float, weights)))

    def planned(self, columns: Iterable[str]) -> PlannedGroup:
        """The group with its true blocks."""
        columns = frozenset(columns)
        features, weights = self.features(columns)
        return PlannedGroup(columns, weights, self.vectors.clustered(features, tuple(map(float, weights))))

    def grouping(self, groups: Iterable[Iterable[str]]) -> Grouping:
        """The scheme of these groups.

        Raises
        ------
        ValueError
            The groups overlap, or do not hold all columns.
        """
        parts = [tuple(group) for group in groups]
        if sorted(name for part in parts for name in part) != sorted(self.columns):
            raise ValueError(f"the groups {parts} must hold each of the columns {self.columns} once")
        return Grouping(tuple(self.planned(part) for part in parts))
