"""Mines features from a workload: frequent sets of predicates (*Skipping-oriented Data Design*, sections 3.3.2 and
3.3.3).

1. *Augmentation*: every query is given each predicate, of any query, that is looser than one of its own. Then counting
   the queries that contain a set of predicates counts the queries that the set subsumes.
2. *Frequent sets*, depth first over bit sets of queries. Our own miner makes only the most specific among all sets that
subsume the
   same queries, because elimination could keep no other. There are few of these, whereas augmentation lets the number
   of all sets explode.
3. *Elimination*, from the most specific to the most general: a set stays if it helps enough queries that no
   remaining stricter set helps.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from es_skipping.predicates.normal import all_of
from es_skipping.predicates.show import show
from es_skipping.predicates.subsumption import subsumes
from es_skipping.predicates.tree import (
    And,
    Comparison,
    Constant,
    HasElement,
    Holds,
    Implying,
    IsIn,
    Literal,
    Matches,
    Not,
    NullTest,
    Opaque,
    Operand,
    Or,
    Predicate,
    operands_of,
    unknown_node,
)
from es_skipping.predicates.value_sets import at_most
from es_skipping.workload.queries import Query, conjuncts

__all__ = [
    "Feature",
    "candidates_of",
    "frequent_sets",
    "is_temporal",
    "least_support",
    "never_by_time",
    "subsuming",
]

_MAX_FREQUENT_SETS: Final = 50_000
"""Most frequent sets; with more, the required support is raised."""
_SHARE: Final = 0.01
_TEMPORAL: Final = ("date", "timestamp", "timestamp_ntz")


@dataclass(frozen=True, slots=True)
class Feature:
    """A conjunction of predicates to lay rows out by.

    Parameters
    ----------
    predicates
        The predicates; none implies another.
    weight
        Number of the workload's queries that it subsumes; for a value of a family, the number of lists that contain it.
    gain
        Number of these queries that no stricter feature subsumes.
    queries
        Their positions in the workload.
    saved
        Scans of all rows that it saves in one run of the workload, if measured.

    Examples
    --------
    >>> print(Feature((), 3, 2))
    TRUE  (helps 3 queries, 2 of them more than any stricter feature)
    """

    predicates: tuple[Predicate, ...]
    weight: int = 1
    gain: int = 1
    queries: tuple[int, ...] = field(default=(), repr=False)
    saved: float | None = None

    @property
    def predicate(self) -> Predicate:
        """The conjunction, in normal form."""
        return all_of(self.predicates)

    def subsumes(self, query: Query | Predicate) -> bool:
        """Whether every row that satisfies a query satisfies the feature."""
        return subsumes(self.predicate, query.predicate if isinstance(query, Query) else query)

    def __str__(self) -> str:
        return (
            f"{show(self.predicate)}  (helps {self.weight} queries, {self.gain} of them more than any stricter feature)"
        )


def least_support(log: Sequence[Query], min_support: int | None) -> int:
    """Fewest queries that a feature must help."""
    return _positive("min_support", min_support) if min_support is not None else max(2, math.ceil(_SHARE * len(log)))


def candidates_of(
    queries: Iterable[Query], *, min_support: int | None = None, usable: Callable[[Predicate], bool] | None = None
) -> list[Feature]:
    """All features of a workload, ranked: `es_skipping.layout.mine_features` without limit and families."""
    lattice, found, least = _mined(list(queries), min_support, usable)
    return lattice.ranked(found, least)


def frequent_sets(
    queries: Iterable[Query],
    most: int,
    *,
    min_support: int | None = None,
    usable: Callable[[Predicate], bool] | None = None,
) -> list[Feature]:
    """The sets of predicates that help most queries, before elimination; each is the most specific for its queries."""
    lattice, found, _ = _mined(list(queries), min_support, usable)
    return lattice.by_weight(found)[:most]


def _mined(
    log: Sequence[Query], min_support: int | None, usable: Callable[[Predicate], bool] | None
) -> tuple[_Lattice, list[tuple[int, int]], int]:
    least = least_support(log, min_support)
    lattice = _Lattice(log, usable or never_by_time)
    while True:
        found = lattice.frequent(least)
        if found is not None:
            return lattice, found, least
        least = math.ceil(1.5 * least)


def subsuming(features: Sequence[Feature], query: Query) -> tuple[int, ...]:
    """The features that subsume a query."""
    return tuple(number for number, feature in enumerate(features) if feature.subsumes(query))


def never_by_time(predicate: Predicate) -> bool:
    """Whether a predicate surely does not compare a date or a time with a constant.

    Examples
    --------
    >>> from es_skipping.predicates.tree import Column
    >>> from es_skipping.predicates.types import DataType
    >>> day, due = (Column((name,), DataType("date")) for name in ("day", "due"))
    >>> never_by_time(Comparison("<", day, Literal(0, day.type))), never_by_time(Comparison("<", day, due))
    (False, True)
    """
    match predicate:
        case And(children) | Or(children):
            return all(map(never_by_time, children))
        case Comparison(_, left, right):
            return not (isinstance(right, Literal) and is_temporal(left))
        case IsIn(operand):
            return not is_temporal(operand)
        case Constant() | NullTest() | Matches() | Holds():
            return True
        case Not() | Implying() | HasElement() | Opaque():
            return False  # a condition on elements has no SQL text
        case _:
            return never_by_time(unknown_node(predicate))


def _excludes_little(predicate: Predicate) -> bool:
    """Whether nearly all rows satisfy a predicate: a difference from some values, or a test for null.

    Such a predicate does not help and hurts mining: each equality with another value implies it, so every combination
    of such predicates is a frequent set.
    """
    match predicate:
        case NullTest():
            return True
        case Comparison("<>"):
            return True
        case IsIn(negated=True) | Matches(negated=True):
            return True
    return False


def is_temporal(operand: Operand) -> bool:
    """Whether an operand is a date or a time."""
    return operand.type.name in _TEMPORAL


def _positive(name: str, value: int) -> int:
    if value < 1:
        raise ValueError(f"{name} is {value}, but must be a whole number of at least 1")
    return value


class _Lattice:
    """A workload's predicates, their implications, and the queries that each subsumes. Sets are bits of integers."""

    def __init__(self, log: Sequence[Query], usable: Callable[[Predicate], bool]) -> None:
        own = [tuple(item for item in query.items if usable(item) and not _excludes_little(item)) for query in log]
        distinct = dict.fromkeys(item for items in own for item in items)
        self.items = sorted(distinct, key=_key)
        place = {item: at for at, item in enumerate(self.items)}
        self.looser = self._looser()
        """Per predicate, the predicates that it implies, including itself."""
        self.queries = [0] * len(self.items)
        """Per predicate, the queries that it subsumes: augmentation."""
        for number, items in enumerate(own):
            implied = 0
            for item in items:
                implied |= self.looser[place[item]]
            for at in _bits(implied):
                self.queries[at] |= 1 << number

    def _looser(self) -> list[int]:
        by_operand: dict[Operand, list[int]] = {}
        operands = [operands_of(item) for item in self.items]
        for at, some in enumerate(operands):
            for operand in some:
                by_operand.setdefault(operand, []).append(at)
        # The values that each allows an operand: a looser predicate allows no fewer, which is fast to compare.
        left = [{operand: at_most(item, operand) for operand in some} for item, some in zip(self.items, operands)]
        found = []
        for at, stricter in enumerate(self.items):
            mask = 1 << at
            for other in {other for operand in operands[at] for other in by_operand[operand]} - {at}:
                mine, theirs = left[at], left[other]
                if all(operand in mine and mine[operand] <= values for operand, values in theirs.items()):
                    mask |= subsumes(self.items[other], stricter) << other
            found.append(mask)
        return found

    def frequent(self, least: int) -> list[tuple[int, int]] | None:
        """Each frequent set, with the queries that it subsumes; None if there are too many.

        Among sets that subsume the same queries it makes only the largest. It closes each set under the predicates that
        all its queries imply, so that each is reached only once, by its first predicates (Uno et al., *LCM*, FIMI
        2004).
        """
        frequent = [at for at, queries in enumerate(self.queries) if queries.bit_count() >= least]
        found: list[tuple[int, int]] = []
        pending = [(0, -1, 0)]
        while pending:
            members, queries, start = pending.pop()
            for rank in range(start, len(frequent)):
                at = frequent[rank]
                if members >> at & 1:
                    continue
                common = queries & self.queries[at]
                if common.bit_count() < least:
                    continue
                closed = sum(1 << other for other in frequent if common & ~self.queries[other] == 0)
                if closed & ~members & ((1 << at) - 1):
                    continue  # an earlier predicate makes this set
                found.append((closed, common))
                if len(found) > _MAX_FREQUENT_SETS:
                    return None
                pending.append((closed, common, rank + 1))
        return found

    def ranked(self, found: Sequence[tuple[int, int]], least: int) -> list[Feature]:
        """Eliminate sets that add too little, then sort by what they add."""
        # A set is closed, so one that implies another contains it: the largest are the most specific.
        ordered = sorted(found, key=lambda one: (-one[0].bit_count(), -one[1].bit_count(), tuple(_bits(one[0]))))
        covered = 0
        kept: list[tuple[int, tuple[int, ...], int]] = []
        for members, queries in ordered:
            gain = (queries & ~covered).bit_count()
            if gain >= least:
                covered |= queries
                kept.append((gain, tuple(_bits(members)), queries))
        kept.sort(key=lambda one: (-one[0], -one[2].bit_count(), one[1]))
        return [
            Feature(self._feature(members), queries.bit_count(), gain, tuple(_bits(queries)))
            for gain, members, queries in kept
        ]

    def by_weight(self, found: Sequence[tuple[int, int]]) -> list[Feature]:
        """All sets, most helped queries first; among equals the more specific first."""
        ordered = sorted(found, key=lambda one: (-one[1].bit_count(), -one[0].bit_count(), tuple(_bits(one[0]))))
        return [
            Feature(self._feature(tuple(_bits(members))), queries.bit_count(), 0, tuple(_bits(queries)))
            for members, queries in ordered
        ]

    def _feature(self, members: Sequence[int]) -> tuple[Predicate, ...]:
        return conjuncts(all_of(self.items[at] for at in members))


def _key(predicate: Predicate) -> tuple[str, str]:
    return show(predicate), repr(predicate)


def _bits(mask: int) -> Iterable[int]:
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low
