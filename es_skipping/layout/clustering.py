"""Bottom-up clustering of feature vectors into blocks (*Skipping-oriented Data Design*, section 3.4).

A cluster is the OR of its vectors and a number of rows. Each distinct vector starts as a cluster. Each step merges the
two clusters with the cheapest merger; a cluster with the minimum of rows leaves. A merger costs the additional rows
that one run of the workload must read:

    |a| * weight(bits of b that a lacks) + |b| * weight(bits of a that b lacks)

Two departures from the text keep blocks within [minimum, 2 * minimum) rows. A vector with the minimum of rows leaves
before the first merger; with twice the minimum or more it is cut into equal blocks. The leftover joins the cluster that
it harms least, which is cut in two if it becomes too large. If possible the leftover does not join a vector that left
alone, so that queries surely skip this vector's rows by its missing features. GSOP's estimate relies on this
(`es_skipping.layout.groups.vectors`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

__all__ = ["Blocks", "cluster", "skipped"]

Bits: TypeAlias = npt.NDArray[np.bool_]
Counts: TypeAlias = npt.NDArray[np.int64]
Reals: TypeAlias = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Blocks:
    """The block of each vector's rows.

    Parameters
    ----------
    first, pieces
        Per vector: its rows fill the blocks ``first`` .. ``first + pieces - 1``, together with other vectors with the
        same ``first``.
    rows, unions
        Per block: its number of rows, and the OR of their vectors.
    """

    first: Counts
    pieces: Counts
    rows: Counts
    unions: Bits


def skipped(rows: Counts, unions: Bits, weights: Reals) -> float:
    """C(P) of the dissertation (3.2): the rows skipped if as many queries ask for each feature as its weight says.

    Examples
    --------
    >>> skipped(np.array([2]), np.array([[True, True, False]]), np.array([50.0, 20.0, 10.0]))
    20.0
    """
    return float(rows @ (~unions @ weights))


def cluster(vectors: Bits, counts: Counts, weights: Reals, minimum: int) -> Blocks:
    """Put vectors into blocks.

    Parameters
    ----------
    vectors
        A row per distinct vector, a column per feature. Equal input gives equal output.
    counts
        Number of rows of each vector.
    weights
        Number of queries that each feature subsumes.
    minimum
        Fewest rows of a block, unless there are fewer in total.

    Examples
    --------
    >>> vectors = np.array([[0, 1], [1, 0], [0, 1]], bool)
    >>> cluster(vectors, np.array([1, 2, 1]), np.array([1.0, 1.0]), minimum=2).first
    array([1, 0, 1])
    """
    return _Clustering(np.asarray(vectors, bool), np.asarray(counts, np.int64), weights, max(1, minimum)).run()


@dataclass
class _Pool:
    """The clusters that are still too small, each with its best known partner.

    If a cluster's partner is gone, ``partner`` is -1 and ``cost`` is a lower bound: a merger removes two clusters, and
    the new one is compared with all others. The partner is searched again when the cluster's turn comes.
    """

    unions: Bits
    rows: Reals
    weights: Reals
    cost: Reals = field(init=False)
    partner: Counts = field(init=False)

    def __post_init__(self) -> None:
        # The weights of exact counts are whole numbers, so sums are exact and ties are real.
        self.bits = self.unions.astype(np.float64)
        self.total = self.bits @ self.weights
        self.gone = np.zeros(len(self.rows))
        self.cost = np.full(len(self.rows), np.inf)
        self.partner = np.full(len(self.rows), -1, np.int64)
        step = max(1, (1 << 22) // max(1, len(self.rows)))
        for start in range(0, len(self.rows), step):
            some = np.arange(start, min(start + step, len(self.rows)))
            costs = self._costs(some)
            self.partner[some] = costs.argmin(axis=1)
            self.cost[some] = costs[np.arange(len(some)), self.partner[some]]

    def _costs(self, some: Counts) -> Reals:
        """The cost of merging each of these clusters with each cluster."""
        with np.errstate(invalid="ignore"):  # as in `share_a_bit`: kernels of BLAS warn of memory beside the matrices
            common = (self.bits[some] * self.weights) @ self.bits.T
        costs: Reals = self.rows[some, None] * (self.total[None, :] - common)
        costs += self.rows[None, :] * (self.total[some, None] - common)
        costs[np.arange(len(some)), some] = np.inf
        return costs

    def best(self) -> tuple[int, int]:
        """The pair with the cheapest merger; among equals the pair whose members come first."""
        while True:
            one = int(self.cost.argmin())
            if self.partner[one] >= 0:
                return one, int(self.partner[one])
            self.refresh(one)

    def _costs_of(self, one: int) -> Reals:
        """Like `_costs` for a single cluster: the innermost loop."""
        common = self.bits @ (self.bits[one] * self.weights)
        costs: Reals = self.total - common
        costs *= self.rows[one]
        common -= self.total[one]
        common *= self.rows
        costs -= common
        costs += self.gone
        costs[one] = np.inf
        return costs

    def refresh(self, one: int) -> None:
        costs = self._costs_of(one)
        self.partner[one] = int(costs.argmin())
        self.cost[one] = costs[self.partner[one]]

    def remove(self, one: int) -> None:
        self.gone[one] = np.inf
        self.cost[one] = np.inf
        self.partner[self.partner == one] = -1

    def merge(self, one: int, other: int) -> None:
        """Merge the second cluster into the first."""
        self.remove(other)
        self.partner[self.partner == one] = -1
        self.unions[one] |= self.unions[other]
        self.rows[one] += self.rows[other]
        self.bits[one] = self.unions[one]
        self.total[one] = self.bits[one] @ self.weights

    def rejoin(self, one: int) -> None:
        """Compare a merged cluster with all others."""
        costs = self._costs_of(one)
        self.partner[one] = int(costs.argmin())
        self.cost[one] = costs[self.partner[one]]
        better = (costs < self.cost) | ((costs == self.cost) & (self.partner > one))
        better[one] = False
        self.cost[better] = costs[better]
        self.partner[better] = one

    def compact(self) -> Counts:
        """Remove clusters that are gone; return the old positions of the others."""
        kept = np.flatnonzero(self.gone == 0)
        place = np.full(len(self.gone), -1, np.int64)
        place[kept] = np.arange(len(kept))
        partner = self.partner[kept]
        self.partner = np.where(partner >= 0, place[partner], -1)
        for name in ("unions", "rows", "bits", "total", "gone", "cost"):
            setattr(self, name, getattr(self, name)[kept])
        return kept


class _Clustering:
    def __init__(self, vectors: Bits, counts: Counts, weights: Reals, minimum: int) -> None:
        self._vectors, self._counts, self._minimum = vectors, counts, minimum
        self._weights = np.asarray(weights, np.float64)
        self._groups: list[list[int]] = []
        """Vectors of each finished cluster."""

    def run(self) -> Blocks:
        heavy = self._counts >= self._minimum
        self._groups = [[int(at)] for at in np.flatnonzero(heavy)]
        light = np.flatnonzero(~heavy)
        left = self._merge(light) if len(light) else None
        if left is not None:
            self._fold(left)
        return self._blocks()

    def _merge(self, light: Counts) -> list[int] | None:
        """Merge the light vectors; return the cluster that stays too small, if any."""
        pool = _Pool(self._vectors[light], self._counts[light].astype(np.float64), self._weights)
        members = [[int(at)] for at in light]
        alive = len(members)
        while alive > 1:
            one, other = pool.best()
            pool.merge(one, other)
            members[one] += members[other]
            alive -= 1
            if pool.rows[one] >= self._minimum:
                self._groups.append(sorted(members[one]))
                pool.remove(one)
                alive -= 1
            else:
                pool.rejoin(one)
            if alive and len(members) > 64 and alive < 0.8 * len(members):
                kept = pool.compact()
                members = [members[at] for at in kept]
        return members[int(np.flatnonzero(pool.gone == 0)[0])] if alive else None

    def _fold(self, left: list[int]) -> None:
        """Put the leftover into the block with the least cost."""
        if not self._groups:
            self._groups.append(sorted(left))
            return
        unions = np.array([self._vectors[group].any(axis=0) for group in self._groups])
        rows = np.array([self._counts[group].sum() for group in self._groups])
        union, size = self._vectors[left].any(axis=0), self._counts[left].sum()
        new = union & ~unions
        cost = rows * (new @ self._weights) + size * ((unions & ~union) @ self._weights)
        harmless = np.array([len(group) > 1 for group in self._groups]) | ~new.any(axis=1)
        if harmless.any():
            cost[~harmless] = np.inf
        at = int(cost.argmin())
        self._groups[at] = sorted(self._groups[at] + left)

    def _blocks(self) -> Blocks:
        first = np.zeros(len(self._counts), np.int64)
        pieces = np.ones(len(self._counts), np.int64)
        rows: list[int] = []
        unions: list[Bits] = []
        for group in self._groups:
            size = int(self._counts[group].sum())
            number = max(1, size // self._minimum)
            first[group], pieces[group] = len(rows), number
            rows += [size // number + (at < size % number) for at in range(number)]
            union: Bits = np.asarray(self._vectors[group].any(axis=0))
            unions += [union] * number
        shape = (len(rows), self._vectors.shape[1])
        return Blocks(first, pieces, np.array(rows, np.int64), np.array(unions, bool).reshape(shape))
