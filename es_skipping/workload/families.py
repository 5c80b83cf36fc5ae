"""Families: a feature for each value of an operand that the workload's lists draw from.

A list with new values in each query, such as eight of fifty sizes, never repeats: no feature subsumes many of these
queries. But each of their rows has one of the list's values. With a feature for each value, a query skips the blocks
that have none of the list's features. A list is helped only if all its values are features, so they are proposed
together, and all are taken or none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from es_skipping.predicates.implied import one_by_one
from es_skipping.predicates.subsumption import subsumes
from es_skipping.predicates.tree import IsIn, Operand, Predicate
from es_skipping.workload.mining import Feature
from es_skipping.workload.queries import Query, conjuncts

__all__ = ["Family", "families_of"]


@dataclass(frozen=True, slots=True)
class Family:
    """A feature for each value of an operand.

    Parameters
    ----------
    features
        One per value in the lists; its weight is the number of lists that contain the value.
    lists
        For each helped query, by its position in the workload, the positions of its list's features.
    """

    features: tuple[Feature, ...]
    lists: Mapping[int, frozenset[int]] = field(repr=False)

    @property
    def gain(self) -> float:
        """Number of helped queries per feature."""
        return len(self.lists) / len(self.features)


def families_of(
    log: Sequence[Query], known: Iterable[Feature], least: int, usable: Callable[[Predicate], bool]
) -> list[Family]:
    """The families that help a workload.

    Values become features if, on average, each is in at least ``least`` lists, and a list has at most half of them.
    Lists that a known feature expresses, because they repeat, do not count. So there is no family if lists repeat, or
    if there are too many values for any to repeat.

    Parameters
    ----------
    known
        Features that each subsume several queries.
    least
        Fewest queries that a feature must help.
    usable
        Decides which predicates may be part of a feature.
    """
    said: dict[int, list[Predicate]] = {}
    for feature in known:
        for number in feature.queries:
            said.setdefault(number, []).append(feature.predicate)
    lists: dict[Operand, dict[int, IsIn]] = {}
    for number, query in enumerate(log):
        for item in query.items:
            if (
                isinstance(item, IsIn)
                and not item.negated
                and usable(item)
                and not any(subsumes(item, one) for one in said.get(number, ()))
            ):
                lists.setdefault(item.operand, {})[number] = item
    return [family for some in lists.values() if (family := _family(some, least)) is not None]


def _family(lists: Mapping[int, IsIn], least: int) -> Family | None:
    asked = {number: tuple(map(conjuncts, one_by_one(item))) for number, item in lists.items()}
    used = Counter(value for values in asked.values() for value in values)
    total = sum(used.values())
    if len(lists) < least or total < least * len(used) or 2 * total > len(lists) * len(used) or () in used:
        return None
    ranked = sorted(used, key=repr)
    place = {value: at for at, value in enumerate(ranked)}
    queries: dict[tuple[Predicate, ...], list[int]] = {}
    for number, values in asked.items():
        for value in values:
            queries.setdefault(value, []).append(number)
    features = tuple(Feature(value, used[value], 0, tuple(queries[value])) for value in ranked)
    return Family(features, {number: frozenset(map(place.__getitem__, some)) for number, some in asked.items()})
