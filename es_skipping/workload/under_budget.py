"""Chooses indexes under a budget of bytes.

The parts of an AND overlap, and a greedy choice is good; the parts of an OR complete each other, and one alone is worth
nothing. So single indexes and bundles are both units of the choice. Greedy choices by gain, and by gain per byte, are
improved by removals and exchanges until none helps.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from es_skipping.workload.proofs import Workload, members

__all__ = ["best_indexes"]

_MAX_BUNDLES: Final = 200
_MAX_ROUNDS: Final = 8
_WORTHWHILE: Final = 1e-9
"""Share of all bytes that a step must save to count."""


def best_indexes(
    workload: Workload,
    costs: Sequence[float],
    budget: float,
    *,
    banned: int = 0,
    there: int = 0,
    bundles: Iterable[int] | None = None,
    thorough: bool = True,
) -> int:
    """The set of indexes that saves most bytes within a budget, as far as greedy choices and exchanges find it.

    Parameters
    ----------
    workload
        What each set saves.
    costs
        The bytes that each index takes.
    budget
        Most bytes together.
    banned
        Indexes that must not be chosen.
    there
        Indexes that exist. The choice is never worse than they are, if the budget has room for them, and prefers them
        to others that save the same.
    bundles
        Sets of indexes to try as one; by default those that the workload's filters need.
    thorough
        Whether to improve the greedy choices by removals and exchanges, which takes longer.

    Examples
    --------
    >>> from es_skipping.workload.proofs import Asked, Proofs
    >>> either = Proofs(children=(Proofs(((0, 0b01),)), Proofs(((1, 0b11),))), every=True)
    >>> workload = Workload([Asked(either)], [100.0, 50.0])
    >>> best_indexes(workload, [10, 10], 20), best_indexes(workload, [10, 10], 19)
    (3, 0)
    """
    return _Choice(workload, costs, budget, banned, there, bundles).best(thorough=thorough)


class _Choice:
    def __init__(
        self,
        workload: Workload,
        costs: Sequence[float],
        budget: float,
        banned: int,
        there: int,
        bundles: Iterable[int] | None,
    ) -> None:
        self._workload = workload
        self._costs = costs
        self._budget = budget
        self._there = there
        self._least = _WORTHWHILE * max(workload.total, 1e-300)
        banned |= workload.dominated(costs, kept=there, banned=banned)
        known = workload.bundles(costs, _MAX_BUNDLES, banned) if bundles is None else bundles
        units = [*(1 << at for at in range(len(costs))), *known]
        self._units = [unit for unit in dict.fromkeys(units) if not unit & banned and self._cost(unit) <= budget]

    def best(self, *, thorough: bool) -> int:
        alone = max(self._units, key=self._workload.saved, default=0)
        found = 0
        starts = [self._filled(0, by_byte=True), self._filled(0, by_byte=False), self._filled(alone)]
        if self._there and self._cost(self._there) <= self._budget:
            starts.append(self._filled(self._there))
        for start in dict.fromkeys(starts):
            found = self._better(self._improved(start) if thorough else start, found)
        return self._with_existing(self._needed(found))

    def _cost(self, indexes: int) -> float:
        return sum(self._costs[one] for one in members(indexes))

    def _is_better(self, one: int, other: int) -> bool:
        difference = self._workload.saved(one) - self._workload.saved(other)
        if abs(difference) > self._least:
            return difference > 0
        return self._cost(one) < self._cost(other)

    def _filled(self, indexes: int, *, by_byte: bool = True, banned: int = 0) -> int:
        """Add the unit with the greatest gain, again and again, as long as one fits."""
        gains: dict[int, float] = {}
        left = [unit for unit in self._units if not unit & banned and unit & ~indexes]
        while left:
            room = self._budget - self._cost(indexes)
            left = [unit for unit in left if unit & ~indexes and self._cost(unit & ~indexes) <= room]
            best, most = 0, 0.0
            for unit in left:
                gain = gains.get(unit)
                if gain is None:
                    gain = gains[unit] = self._workload.gain(indexes, unit)
                if gain <= self._least:
                    continue
                rank = gain / max(1.0, self._cost(unit & ~indexes)) if by_byte else gain
                if rank > most:
                    best, most = unit, rank
            if not best:
                break
            indexes |= best
            # The gain of a unit changes only if it shares a query with what was added.
            near = self._workload.near(best)
            gains = {unit: gain for unit, gain in gains.items() if not unit & near}
        return indexes

    def _needed(self, indexes: int) -> int:
        """Without the indexes that add nothing to the others; the dearest go first."""
        for one in sorted(members(indexes), key=lambda one: -self._costs[one]):
            rest = indexes & ~(1 << one)
            if self._workload.gain(rest, 1 << one) <= self._least:
                indexes = rest
        return indexes

    def _with_existing(self, indexes: int) -> int:
        """Exchange new indexes for existing ones where that loses nothing: these need not be built."""
        for old in members(self._there & ~indexes):
            for new in members(indexes & ~self._there):
                other = indexes & ~(1 << new) | 1 << old
                worse = self._workload.saved(indexes) - self._workload.saved(other)
                if worse <= self._least and self._cost(other) <= self._budget:
                    indexes = other
                    break
        return indexes

    def _improved(self, indexes: int) -> int:
        indexes = self._filled(self._needed(indexes))
        for _ in range(_MAX_ROUNDS):
            before = indexes
            for one in list(members(indexes)):
                if indexes >> one & 1:
                    rest = indexes & ~(1 << one)
                    indexes = self._better(self._filled(rest, banned=1 << one), indexes)
            for unit in self._units:
                if unit & ~indexes:
                    indexes = self._better(self._with(indexes, unit), indexes)
            if indexes == before:
                break
        return indexes

    def _better(self, one: int, other: int) -> int:
        return one if self._is_better(one, other) else other

    def _with(self, indexes: int, unit: int) -> int:
        """Put a unit in, remove what then saves least for its bytes until all fits, and fill the rest."""
        both = indexes | unit
        while self._cost(both) > self._budget:
            others = list(members(both & ~unit))
            least = min(
                others,
                key=lambda one: self._workload.gain(both & ~(1 << one), 1 << one) / max(1.0, self._costs[one]),
            )
            both &= ~(1 << least)
        return self._filled(both)
