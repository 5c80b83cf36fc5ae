"""Families: a feature for each value of an operand that the workload's lists draw from.

A list whose values are drawn anew for each query, such as eight of fifty sizes, never comes back: no feature follows
from many of these queries. But each of their rows has one of the list's values, so with a feature for each value a
query skips the blocks that have none of them. One value more or less is worth nothing: a list is helped only if all its
values are features. So they are proposed together, and taken all or none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from es_skipping.layout.features.mining import Feature
from es_skipping.layout.workload.queries import Query, conjuncts
from es_skipping.predicates.implied import one_by_one
from es_skipping.predicates.subsumption import subsumes
from es_skipping.predicates.tree import IsIn, Operand, Predicate

__all__ = ["Family", "families_of"]


@dataclass(frozen=True, slots=True)
class Family:
    """A feature for each value of an operand.

    Parameters
    ----------
    features
        Of the values that lists ask for; the weight of each is the number of lists that it is in.
    lists
        By the place of each query in the workload that it helps, the places of the features that the query's list asks
        for.
    """

    features: tuple[Feature, ...]
    lists: Mapping[int, frozenset[int]] = field(repr=False)

    @property
    def gain(self) -> float:
        """How many queries it helps, for each feature."""
        return len(self.lists) / len(self.features)


def families_of(
    log: Sequence[Query], known: Iterable[Feature], least: int, usable: Callable[[Predicate], bool]
) -> list[Family]:
    """The families that would help a workload.

    Values are worth a feature each where, on average, each is in ``least`` lists or more, and a list has half of them
    or fewer; lists that one of the known features says already, because they come back, do not count. So there is no
    family where lists come back, or where their values are too many ever to come back.

    Parameters
    ----------
    known
        Features that each subsume several queries.
    least
        How many queries a feature must help.
    usable
        Which predicates may be part of a feature.
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
