"""Grows a query tree greedily (Yang et al., *Qd-tree: Learning Data Layouts for Big Data Analytics*, SIGMOD 2020).

Each node holds rows. The cut that lets the workload skip most rows divides a node, unless one of its sides would have
fewer rows than the minimum. Only queries that still read the node count.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from es_skipping.layout.clustering import Bits, Counts
from es_skipping.layout.tree.effects import Effects

__all__ = ["LEAF", "Tree", "grow"]

LEAF = -1
"""The cut of a node that is not divided."""


@dataclass(frozen=True, slots=True)
class Tree:
    """A forest: a root for each coarse partition.

    Parameters
    ----------
    cuts
        Per node, the number of its cut, or `LEAF`.
    yes, no
        Per node, the node of the rows that satisfy its cut, and of the others; for a leaf, itself.
    roots
        The root of each coarse partition.
    depth
        Most cuts between a root and a leaf.
    """

    cuts: Counts
    yes: Counts
    no: Counts
    roots: Counts
    depth: int

    @property
    def leaves(self) -> int:
        return int((self.cuts == LEAF).sum())

    @property
    def used(self) -> tuple[int, ...]:
        """The cuts in use."""
        return tuple(int(one) for one in np.unique(self.cuts[self.cuts != LEAF]))

    def renumbered(self, numbers: Sequence[int]) -> Tree:
        """The same tree, whose cuts have the positions of their numbers here."""
        place = {number: at for at, number in enumerate(numbers)}
        cuts = np.array([LEAF if cut == LEAF else place[cut] for cut in self.cuts.tolist()], np.int64)
        return Tree(cuts, self.yes, self.no, self.roots, self.depth)

    def leaf_of(self, bits: Bits, partitions: Counts) -> Counts:
        """The leaf of each row.

        Parameters
        ----------
        bits
            A row per row, a column per cut.
        partitions
            The number of each row's coarse partition.
        """
        nodes = self.roots[partitions]
        rows = np.arange(len(nodes))
        for _ in range(self.depth):
            satisfied = bits[rows, np.maximum(self.cuts[nodes], 0)]
            nodes = np.where(satisfied, self.yes[nodes], self.no[nodes])
        return nodes


def grow(bits: Bits, partitions: Counts, effects: Effects, minimum: int) -> Tree:
    """Grow a tree over rows.

    Parameters
    ----------
    bits
        A row per row, a column per cut.
    partitions
        The number of each row's coarse partition, from 0; no leaf has rows of two.
    minimum
        Fewest rows of a leaf, unless its partition has fewer.

    Examples
    --------
    >>> effects = Effects(np.array([[False]]), np.array([[True]]), np.array([1.0]))
    >>> tree = grow(np.array([[True], [False], [False]]), np.zeros(3, np.int64), effects, minimum=1)
    >>> tree.leaves, tree.leaf_of(np.array([[True], [False]]), np.zeros(2, np.int64)).tolist()
    (2, [2, 1])
    """
    return _Growth(bits, partitions, effects, max(1, minimum)).run()


class _Growth:
    def __init__(self, bits: Bits, partitions: Counts, effects: Effects, minimum: int) -> None:
        self._effects, self._minimum = effects, minimum
        order = np.argsort(partitions, kind="stable")
        self._columns = np.ascontiguousarray(bits[order].T)
        self._sizes = np.bincount(partitions)
        self._cuts: list[int] = []
        self._yes: list[int] = []
        self._no: list[int] = []

    def run(self) -> Tree:
        every = np.arange(len(self._columns))
        active = np.ones(len(self._effects.weights), bool)
        roots, pending, start = [], [], 0
        for size in self._sizes.tolist():
            roots.append(self._new())
            pending.append((roots[-1], start, start + size, every, active, 0))
            start += size
        deepest = 0
        while pending:
            node, start, stop, cuts, active, depth = pending.pop()
            deepest = max(deepest, depth)
            held = np.array([np.count_nonzero(self._columns[cut, start:stop]) for cut in cuts.tolist()], np.int64)
            active = self._reading(cuts, held, stop - start, active)
            best = self._best(cuts, held, stop - start, active)
            if best is None:
                continue
            live = cuts[(held > 0) & (held < stop - start)]
            middle = self._divide(best, start, stop, live)
            no, yes = self._new(), self._new()
            self._cuts[node], self._no[node], self._yes[node] = best, no, yes
            live = live[live != best]
            pending.append((no, middle, stop, live, active & ~self._effects.skip_no[best], depth + 1))
            pending.append((yes, start, middle, live, active & ~self._effects.skip_yes[best], depth + 1))
        taken, yes_nodes, no_nodes = (np.array(some, np.int64) for some in (self._cuts, self._yes, self._no))
        return Tree(taken, yes_nodes, no_nodes, np.array(roots, np.int64), deepest)

    def _new(self) -> int:
        node = len(self._cuts)
        self._cuts.append(LEAF)
        self._yes.append(node)
        self._no.append(node)
        return node

    def _reading(self, cuts: Counts, held: Counts, rows: int, active: Bits) -> Bits:
        """The queries that read a node's rows: those that skip none of its constant sides."""
        effects = self._effects
        skipped = effects.skip_no[cuts[held == 0]].any(axis=0) | effects.skip_yes[cuts[held == rows]].any(axis=0)
        found: Bits = active & ~skipped
        return found

    def _best(self, cuts: Counts, held: Counts, rows: int, active: Bits) -> int | None:
        allowed = (held >= self._minimum) & (rows - held >= self._minimum)
        if not allowed.any() or not active.any():
            return None
        some, weights = cuts[allowed], self._effects.weights * active
        gains = held[allowed] * (self._effects.skip_yes[some] @ weights)
        gains += (rows - held[allowed]) * (self._effects.skip_no[some] @ weights)
        at = int(gains.argmax())
        return int(some[at]) if gains[at] > 0 else None

    def _divide(self, best: int, start: int, stop: int, live: Sequence[int] | Counts) -> int:
        """Put the rows that satisfy a cut first; return where the others begin."""
        satisfied = self._columns[best, start:stop].copy()
        middle = start + int(np.count_nonzero(satisfied))
        for cut in live:
            column = self._columns[cut, start:stop]
            first, second = column[satisfied], column[~satisfied]
            self._columns[cut, start:middle], self._columns[cut, middle:stop] = first, second
        return middle
