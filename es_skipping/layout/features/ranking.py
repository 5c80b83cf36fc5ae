"""Chooses the features that save most rows, on a sample of the data.

The dissertation ranks features by the queries that each helps and no stricter one helps. That ignores the data: it
prefers five regions with an equality of nations, each for twenty queries, to the equality alone, which is nearly as
strict and helps all hundred. Here a feature is worth its savings: the share of the rows that do not satisfy it, for
each query that it subsumes, beyond the query's best feature so far. The sum is submodular, so the greedy choice is
within 1 - 1/e of the best (Nemhauser, Wolsey, Fisher 1978).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from es_skipping.layout.histogram import unpacked
from es_skipping.layout.passes import words_of
from es_skipping.predicates.tree import Predicate
from es_skipping.workload.families import Family
from es_skipping.workload.mining import Feature

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["by_savings", "satisfied_shares"]

_SAMPLE_ROWS: Final = 100_000
_MIN_SAVED_SCANS: Final = 0.1
"""Least savings of a feature over the whole workload, in scans; below this it is not worth its bit."""


def by_savings(
    candidates: Sequence[Feature],
    satisfied: Sequence[float],
    queries: int,
    count: int,
    accept: Callable[[Feature], bool] = lambda feature: True,
    families: Sequence[Family] = (),
) -> Iterator[Feature]:
    """Features in order of their added savings; a family's features are adjacent and rank by their average.

    Parameters
    ----------
    candidates
        Frequent sets of predicates.
    satisfied
        The share of the rows that satisfies each candidate, followed by those of each family's features.
    queries
        Number of queries in the workload.
    count
        Most features to take.
    accept
        Decides about each feature; a refused one is passed over, with its family.
    families
        Features that are useful only together.

    Yields
    ------
    Feature
        With ``saved``: scans of all rows that it saves in one run of the workload, beyond the features before it.

    Examples
    --------
    >>> from es_skipping.predicates.tree import ALWAYS, NEVER
    >>> strict, loose = Feature((NEVER,), 1, 1, queries=(0,)), Feature((ALWAYS,), 2, 2, queries=(0, 1))
    >>> [one.saved for one in by_savings([strict, loose], [0.0, 0.25], 2, 5)]
    [1.5, 0.25]
    """
    units = [(feature,) for feature in candidates] + [family.features for family in families]
    helps = np.zeros((len(units), queries))
    for at, feature in enumerate(candidates):
        helps[at, list(feature.queries)] = 1.0 - satisfied[at]
    behind = len(candidates)
    for at, family in enumerate(families, len(candidates)):
        shares = np.array(satisfied[behind : behind + len(family.features)])
        behind += len(family.features)
        for query, some in family.lists.items():
            helps[at, query] = max(0.0, 1.0 - shares[sorted(some)].sum())
    best = np.zeros(queries)
    taken: set[tuple[Predicate, ...]] = set()
    while len(taken) < count and units:
        new = [[feature for feature in unit if feature.predicates not in taken] for unit in units]
        sizes = np.array([max(1, len(some)) for some in new])
        gains = np.maximum(helps - best, 0.0).sum(axis=1) / sizes
        gains[len(taken) + sizes > count] = 0.0
        at = int(gains.argmax())
        if gains[at] < _MIN_SAVED_SCANS:
            return
        if all(map(accept, new[at])):
            yield from (replace(feature, saved=float(gains[at])) for feature in new[at])
            taken.update(feature.predicates for feature in new[at])
            best = np.maximum(best, helps[at])
        helps[at] = 0.0


def satisfied_shares(df: DataFrame, conditions: Sequence[str]) -> list[float]:
    """The share of the rows that satisfies each condition, on a repeatable sample."""
    total = df.count()
    if not total:
        return [0.0] * len(conditions)
    sample = df if total <= 2 * _SAMPLE_ROWS else df.sample(fraction=_SAMPLE_ROWS / total, seed=1)
    words = [word.alias(f"w{at}") for at, word in enumerate(words_of(conditions))]
    found = sample.select(*words).toArrow()
    rows = np.array([found[f"w{at}"].to_numpy() for at in range(len(words))], np.int64).T
    return (
        [float(share) for share in unpacked(rows, len(conditions)).mean(axis=0)]
        if len(rows)
        else [0.0] * len(conditions)
    )
