"""Which features a column group is clustered by (*Skipping-oriented Data Design*, section 4.5).

Not only those that mention a column of the group: a column that a query selects must know the features of the query's
filter, or it is read in full. So the features of all queries that read the group are candidates, by how many of these
queries each helps; as many of the first are taken as leave about so many distinct vectors as the clustering copes with.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Final

__all__ = ["DISTINCT", "local_features"]

DISTINCT: Final = 3_000
"""The dissertation's compromise between skipping and the time and quality of the clustering."""


def local_features(
    weights: Mapping[int, int],
    distinct: Callable[[Sequence[int]], int],
    target: int = DISTINCT,
    together: Iterable[Collection[int]] = (),
) -> tuple[int, ...]:
    """The heaviest features, so many as keep within the target.

    Parameters
    ----------
    weights
        How many of the group's queries each feature helps.
    distinct
        How many distinct vectors are left when only these features count.
    target
        At most so many distinct vectors, unless the first feature alone has more.
    together
        Disjoint sets of features of which all are taken or none; they rank by their mean weight.

    Examples
    --------
    >>> local_features({0: 1, 1: 5, 2: 3}, lambda some: 2 ** len(some), target=4)
    (1, 2)
    >>> local_features({0: 1, 1: 5, 2: 3}, lambda some: 2 ** len(some), target=4, together=[{0, 1}])
    (1, 0)
    """
    units = [own for some in together if len(own := _ranked(weights.keys() & some, weights)) > 1]
    units += [[feature] for feature in weights.keys() - {one for unit in units for one in unit}]
    units.sort(key=lambda unit: (-sum(weights[one] for one in unit) / len(unit), min(unit)))
    ranked = [feature for unit in units for feature in unit]
    if len(units) < 2 or 2 ** len(ranked) <= target or distinct(ranked) <= target:
        return tuple(ranked)
    ends = list(accumulate(map(len, units)))
    # One more feature never leaves fewer vectors.
    enough, many = 1, len(units)
    while many - enough > 1:
        middle = (enough + many) // 2
        if distinct(ranked[: ends[middle - 1]]) <= target:
            enough = middle
        else:
            many = middle
    return tuple(ranked[: ends[enough - 1]])


def _ranked(features: Iterable[int], weights: Mapping[int, int]) -> list[int]:
    return sorted(features, key=lambda feature: (-weights[feature], feature))
