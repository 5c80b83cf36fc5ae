"""The search of GSOP for column groups (*Skipping-oriented Data Design*, section 4.4.4).

From one group per column, the pair whose merger leaves the workload cheapest is merged, again and again until one group
is left; the cheapest scheme on the way is the answer. Mergers are compared by the estimate; a group that was made is
clustered, so that errors do not add up. It never stops at a minimum that is only local, and both ends, one group per
column and one for all (which is SOP), are among the schemes.

Three departures. Columns that the very same queries read start in one group: apart they would have the same features
and blocks, and cost ids besides. And the mergers that look best are clustered before one is chosen, since the estimate
sees nothing of vectors that are too few for a block of their own. Where queries have lists, it searches once more with
groups that have no features for these alone, and takes what is cheaper: more features are more conflict.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final, Literal

import numpy as np

from es_skipping.layout.clustering import Reals
from es_skipping.layout.groups.demands import Demand
from es_skipping.layout.groups.grouping import ASSEMBLY, Cost, Designer, Grouping, GroupTerms, counts_of

__all__ = ["Found", "Step", "best_grouping", "grouping_of", "read_alike"]

_CLUSTERED_CANDIDATES: Final = 3
"""Number of the best-looking mergers that are clustered before one is chosen."""


@dataclass(frozen=True, slots=True)
class Step:
    """A scheme on the search's way."""

    groups: tuple[frozenset[str], ...]
    cost: float


@dataclass(frozen=True, slots=True)
class Found:
    """The best scheme, the way to it, and who planned the groups."""

    grouping: Grouping
    cost: Cost
    steps: tuple[Step, ...]
    planner: Designer


def read_alike(columns: Sequence[str], demands: Iterable[Demand]) -> list[frozenset[str]]:
    """The columns, those together that the very same queries read.

    Examples
    --------
    >>> [sorted(some) for some in read_alike("abcd", [Demand(frozenset("ab"), frozenset())])]
    [['a', 'b'], ['c', 'd']]
    """
    readers: dict[str, list[int]] = {name: [] for name in columns}
    for number, demand in enumerate(demands):
        for name in demand.columns:
            readers[name].append(number)
    alike: dict[tuple[int, ...], list[str]] = {}
    for name in columns:
        alike.setdefault(tuple(readers[name]), []).append(name)
    return [frozenset(some) for some in alike.values()]


def best_grouping(
    designer: Designer,
    *,
    assembly: float = ASSEMBLY,
    opening: float = 0.0,
    rows: Literal["estimate", "exact"] = "estimate",
) -> Found:
    """The cheapest column groups that the search finds.

    Parameters
    ----------
    assembly
        Cost of sorting x rows, in cells per x * log2(x).
    opening
        Cost of a reader of a file or block, in cells.
    rows
        How to compare mergers: ``"exact"`` clusters for each, which takes far longer.
    """
    found = (_Search(planner, designer, assembly, opening, rows == "exact").run() for planner in _planners(designer))
    return min(found, key=lambda one: one.cost.total)


def grouping_of(
    designer: Designer, groups: Collection[Iterable[str]], *, assembly: float = ASSEMBLY, opening: float = 0.0
) -> Grouping:
    """The scheme of these groups, with features that are only in lists or without, whichever costs less."""
    schemes = (planner.grouping(groups) for planner in _planners(designer))
    return min(schemes, key=lambda scheme: scheme.cost(designer.demands, assembly, opening).total)


def _planners(designer: Designer) -> list[Designer]:
    return list(dict.fromkeys([designer, designer.without_families()]))


class _Search:
    """The groups there are, and for each and for each pair the terms of its cost: planned by one designer, and measured
    on the demands of another, or the same."""

    def __init__(self, designer: Designer, measured: Designer, assembly: float, opening: float, exact: bool) -> None:
        self._designer, self._assembly, self._opening = designer, assembly, opening
        self._demands, self._asked = measured.demands, measured.asked
        self._counts = counts_of(self._demands)
        self._exact = exact
        self._groups = read_alike(designer.columns, self._demands)
        self._terms = {group: self._of(group, exact=True) for group in self._groups}
        self._merged: dict[frozenset[str], GroupTerms] = {}

    def run(self) -> Found:
        steps = [self._step()]
        while len(self._groups) > 1:
            one, other = self._cheapest()
            merged = one | other
            self._groups = [merged if group == one else group for group in self._groups if group != other]
            self._terms = {group: self._terms.get(group) or self._of(group, exact=True) for group in self._groups}
            self._merged = {group: terms for group, terms in self._merged.items() if not group & merged}
            steps.append(self._step())
        # Among equals prefer fewer groups.
        best = min(reversed(steps), key=lambda step: step.cost)
        grouping = self._designer.grouping(best.groups)
        return Found(
            grouping, grouping.cost(self._demands, self._assembly, self._opening), tuple(steps), self._designer
        )

    def _of(self, group: frozenset[str], exact: bool) -> GroupTerms:
        blocks = self._designer.planned(group).blocks if exact else self._designer.estimated(group)
        return GroupTerms.of(group, blocks, self._asked, self._demands, self._assembly, self._opening)

    def _step(self) -> Step:
        terms = self._terms.values()
        return Step(tuple(self._groups), self._total(*(sum(some) for some in zip(*map(_parts, terms)))))

    def _total(self, needed: Reals, scan: Reals, overhead: Reals) -> float:
        return float(self._counts @ (scan + (needed > 1) * overhead))

    def _cheapest(self) -> tuple[frozenset[str], frozenset[str]]:
        pairs = list(combinations(self._groups, 2))
        now = [np.asarray(sum(some)) for some in zip(*map(_parts, self._terms.values()))]
        costs = [self._after(now, one, other, self._exact) for one, other in pairs]
        if self._exact:
            return pairs[int(np.argmin(costs))]
        likely = sorted(range(len(pairs)), key=costs.__getitem__)[:_CLUSTERED_CANDIDATES]
        return pairs[min(likely, key=lambda at: self._after(now, *pairs[at], exact=True))]

    def _after(self, now: Sequence[Reals], one: frozenset[str], other: frozenset[str], exact: bool) -> float:
        """The whole cost if these two were merged."""
        merged = one | other
        if exact:
            terms = self._of(merged, exact=True)
        else:
            if merged not in self._merged:
                self._merged[merged] = self._of(merged, exact=False)
            terms = self._merged[merged]
        before = zip(_parts(self._terms[one]), _parts(self._terms[other]))
        changed = [new - a - b for new, (a, b) in zip(_parts(terms), before)]
        return self._total(*(old + change for old, change in zip(now, changed)))


def _parts(terms: GroupTerms) -> tuple[Reals, Reals, Reals]:
    return terms.needed, terms.cells + terms.streamed, terms.ids + terms.assembly + terms.held
