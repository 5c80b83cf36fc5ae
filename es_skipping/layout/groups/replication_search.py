"""The search of GSOP-R for layouts within a storage budget (*Skipping-oriented Data Design*, section 5.5, Algorithms 1
and 2).

Each step applies the transformation that leaves the workload cheapest, even if that is dearer than before; the cheapest
scheme on the way is the answer. Departures: the first scheme counts as well, every transformation is held to the budget
(a merger too can add cells, because a replica then has the rows of more features), schemes are not visited twice, and
after some steps without a gain the search ends. Transformations are compared by the estimate of rows read, and the few
that look best by clustering.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

from es_skipping.layout.groups.layouts import Layout, merged, merged_and_replicated, replicated
from es_skipping.layout.groups.replication import Replicas

__all__ = ["FoundLayouts", "ReplicationStep", "best_layouts"]

_CLUSTERED_CANDIDATES: Final = 3
_MAX_STEPS_WITHOUT_GAIN: Final = 12
_SLACK: Final = 1e-9


@dataclass(frozen=True, slots=True)
class ReplicationStep:
    """A scheme on the search's way: its origin, its storage, and the workload's reads."""

    made_by: str
    layouts: int
    storage: float
    cost: float


@dataclass(frozen=True, slots=True)
class FoundLayouts:
    """The best scheme, and the way to it."""

    layouts: tuple[Layout, ...]
    cost: float
    storage: float
    steps: tuple[ReplicationStep, ...]


def best_layouts(
    replicas: Replicas, budget: float, start: Sequence[Layout] | None = None, *, patience: int = _MAX_STEPS_WITHOUT_GAIN
) -> FoundLayouts:
    """The cheapest layouts that the search finds.

    Parameters
    ----------
    budget
        Most stored cells, relative to the table's: 1.2 is a fifth more.
    start
        The first layouts; by default one per column.
    patience
        This many steps without a gain end the search.

    Raises
    ------
    ValueError
        The budget is below 1, or too small for the start.
    """
    if budget < 1:
        raise ValueError(f"the storage budget is {budget}, but must be at least 1, the size of the table itself")
    return _Search(replicas, budget, patience).run(replicas.initial() if start is None else replicas.tidied(start))


class _Search:
    def __init__(self, replicas: Replicas, budget: float, patience: int) -> None:
        self._replicas, self._budget, self._patience = replicas, budget + _SLACK, patience
        self._seen: set[frozenset[Layout]] = set()

    def run(self, start: tuple[Layout, ...]) -> FoundLayouts:
        layouts = start
        stored = self._replicas.storage(layouts)
        if stored > self._budget:
            raise ValueError(f"the start stores {stored:.3f} of the table, more than the budget {self._budget:.3f}")
        best, best_cost, waited = layouts, self._replicas.cost(layouts), 0
        steps = [ReplicationStep("start", len(layouts), stored, best_cost)]
        self._seen.add(frozenset(layouts))
        while waited < self._patience:
            found = self._next(layouts)
            if found is None:
                break
            cost, made_by, layouts = found
            self._seen.add(frozenset(layouts))
            steps.append(ReplicationStep(made_by, len(layouts), self._replicas.storage(layouts), cost))
            waited += 1
            if cost < best_cost * (1 - _SLACK):
                best, best_cost, waited = layouts, cost, 0
        return FoundLayouts(best, best_cost, self._replicas.storage(best), tuple(steps))

    def _next(self, layouts: tuple[Layout, ...]) -> tuple[float, str, tuple[Layout, ...]] | None:
        """The transformation after which the workload reads least, and its reads."""
        replicas, before = self._replicas, set(layouts)
        ideas: list[tuple[float, int, str, tuple[Layout, ...]]] = []
        made: set[frozenset[Layout]] = set()
        for made_by, some in self._transformations(layouts):
            idea = replicas.tidied(some)
            known = frozenset(idea)
            if known in self._seen or known in made or replicas.storage(idea) > self._budget:
                continue
            made.add(known)
            cost = replicas.total(replicas.costs(idea, known - before))
            ideas.append((cost, len(ideas), made_by, idea))
        likely = sorted(ideas, key=lambda one: one[:2])[:_CLUSTERED_CANDIDATES]
        tried = [(replicas.cost(idea), made_by, idea) for _, _, made_by, idea in likely]
        return min(tried, key=lambda one: one[0], default=None)

    def _transformations(self, layouts: tuple[Layout, ...]) -> Iterator[tuple[str, list[Layout]]]:
        related = self._replicas.related
        for at, layout in enumerate(layouts):
            for unit in self._replicas.units:
                if unit < layout.features:
                    yield "repl", replicated(layouts, at, unit, related)
        for one, other in combinations(range(len(layouts)), 2):
            if not layouts[one].features.isdisjoint(layouts[other].features):
                yield "merge", merged(layouts, one, other)
                yield "merge-repl", merged_and_replicated(layouts, one, other, related)
