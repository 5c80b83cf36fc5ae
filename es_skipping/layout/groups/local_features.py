"""Chooses the features of a column group (*Skipping-oriented Data Design*, section 4.5).

They need not mention a column of the group: a selected column must be clustered by the features of the query's filter,
or it is read completely. So the features of all queries that read the group are candidates, ranked by the queries that
each helps. The first ones are taken until their distinct vectors reach the number that the clustering can handle.
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
    """The heaviest features within the target.

    Parameters
    ----------
    weights
        The number of the group's queries that each feature helps.
    distinct
        Returns the number of distinct vectors over only these features.
    target
        Most distinct vectors, unless the first feature alone has more.
    together
        Disjoint sets of features that are taken together or not at all; they rank by their mean weight.

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
    # Another feature never reduces the number of vectors.
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
