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
    streamed, held
        Per demand, the cost of the layout's readers as in `es_skipping.layout.groups.openings`.
    """

    rows: Reals
    rank: Reals
    whole: Reals
    streamed: Reals
    held: Reals


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

    def served(self, layout: Layout, rows: Reals, readers: tuple[Reals, Reals] | None = None) -> Served:
        """A layout's offers (5.6.1), if demands read these numbers of its rows, with readers of this cost."""
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
        streamed, held = readers or (np.zeros(len(rows)), np.zeros(len(rows)))
        return Served(rows, rank, np.where(offered == self._wanted, rows, np.inf), streamed, held)

    def costs(self, layouts: Sequence[Served]) -> Reals:
        """Per demand, the cells and ids that one of its queries reads, and what its readers cost.

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
        whole = np.array([one.whole for one in layouts])
        single = whole.min(axis=0) * np.maximum(self._wanted, 1)
        alone = several & (single < path)  # the reader's rule, which knows nothing of what readers cost
        taken[:, alone] = 0
        taken[whole.argmin(axis=0)[alone], alone] = 1
        streamed, held = (np.array([getattr(one, name) for one in layouts]) for name in ("streamed", "held"))
        readers = (taken * streamed).sum(axis=0) + np.where(several & ~alone, (taken * held).sum(axis=0), 0)
        found: Reals = np.where(alone, single, path) + readers
        return found
