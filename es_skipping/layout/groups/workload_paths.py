"""Retrieval paths of all queries of a workload at once, which a search for layouts needs thousands of times.

The costs are those of `es_skipping.layout.groups.retrieval`, computed with tables: a row per layout, a column per pair
of a query and a column that it reads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from es_skipping.layout.clustering import Counts, Reals
from es_skipping.layout.groups.demands import Demand
from es_skipping.layout.groups.layouts import Layout
from es_skipping.layout.groups.query_bits import QueryBits

__all__ = ["Served", "WorkloadPaths"]


@dataclass(frozen=True, slots=True)
class Served:
    """One layout's offers to each demand of a workload.

    Parameters
    ----------
    rows
        Per demand, the number of rows that it reads from the layout.
    rank
        Per pair of a demand and a column, the layout's rank for this column: the least wins. Infinite if the layout
        cannot provide the column.
    whole
        Per demand, the rows if the layout can provide all its columns, else infinite.
    """

    rows: Reals
    rank: Reals
    whole: Reals


class WorkloadPaths:
    """Computes what a workload's demands read on layouts.

    Parameters
    ----------
    demands
        The workload.
    asked
        The demands' bit tables over all features.
    """

    def __init__(self, demands: Sequence[Demand], asked: QueryBits) -> None:
        pairs = [(at, name) for at, demand in enumerate(demands) for name in sorted(demand.columns)]
        self._asked = asked
        self._demand: Counts = np.array([at for at, _ in pairs], np.int64)
        self._wanted = np.array([len(demand.columns) for demand in demands], np.float64)
        self._most = self._wanted.max(initial=0) + 1
        places: dict[str, list[int]] = {}
        for place, (_, name) in enumerate(pairs):
            places.setdefault(name, []).append(place)
        self._places: dict[str, npt.NDArray[np.int64]] = {name: np.array(some) for name, some in places.items()}

    def served(self, layout: Layout, rows: Reals) -> Served:
        """A layout's offers (5.6.1), if demands read these numbers of its rows."""
        serves = np.zeros(len(self._demand), bool)
        helped = self._asked.helped_by(layout.features)
        for name in layout.columns:
            if name in self._places:
                place = self._places[name]
                serves[place] = True if name in layout.masters else helped[self._demand[place]]
        offered = np.bincount(self._demand[serves], minlength=len(rows))
        # Rows are whole numbers: among layouts with equal rows, the one that offers more columns ranks first.
        rank = (rows * self._most + (self._wanted - offered))[self._demand]
        rank[~serves] = np.inf
        return Served(rows, rank, np.where(offered == self._wanted, rows, np.inf))

    def costs(self, layouts: Sequence[Served]) -> Reals:
        """Per demand, the cells and ids that one of its queries reads.

        Raises
        ------
        ValueError
            No layout can provide a column.
        """
        ranks = np.array([one.rank for one in layouts])
        rows = np.array([one.rows for one in layouts])
        chosen = ranks.argmin(axis=0)
        if not np.isfinite(ranks[chosen, np.arange(len(chosen))]).all():
            raise ValueError("no layout offers one of the columns that the workload reads")
        cells = np.bincount(self._demand, rows[chosen, self._demand], len(self._wanted))
        taken = np.zeros(rows.shape)
        taken[chosen, self._demand] = 1
        several = taken.sum(axis=0) > 1
        path = cells + np.where(several, (taken * rows).sum(axis=0), 0)
        single = np.array([one.whole for one in layouts]).min(axis=0)
        found: Reals = np.where(several, np.minimum(path, single * np.maximum(self._wanted, 1)), path)
        return found
