"""Which features to take: those that save most rows, on a sample of the data.

The dissertation ranks features by the queries that each helps and no stricter one does. That knows nothing of the data:
it takes five regions with an equality of nations, each for twenty queries, before the equality alone, which is nearly
as strict and helps all hundred. Here each feature is worth what it saves: the share of the rows that do not satisfy it,
for each query that it subsumes, over the best feature which that query has already. The sum is submodular, so taking
the best again and again is within 1 - 1/e of the best choice (Nemhauser, Wolsey, Fisher 1978).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from es_skipping.indexes.features import feature_words
from es_skipping.layout.features.mining import Feature
from es_skipping.layout.histogram import unpacked

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["by_savings", "satisfied_shares"]

_SAMPLE: Final = 100_000
_LEAST: Final = 0.1
"""A feature that saves less than a tenth of a scan over the whole workload is not worth its bit."""


def by_savings(
    candidates: Sequence[Feature],
    satisfied: Sequence[float],
    queries: int,
    count: int,
    accept: Callable[[Feature], bool] = lambda feature: True,
) -> Iterator[Feature]:
    """Features in the order of what each adds.

    Parameters
    ----------
    candidates
        Frequent sets of predicates.
    satisfied
        The share of the rows that satisfies each.
    queries
        How many the workload has.
    count
        At most how many features.
    accept
        Asked of each before it is taken; one that is refused is passed over.

    Yields
    ------
    Feature
        With ``saved``: scans of all rows that it saves in one run of the workload, beyond the features before it.

    Examples
    --------
    >>> strict, loose = Feature((), 1, 1, queries=(0,)), Feature((), 2, 2, queries=(0, 1))
    >>> [one.saved for one in by_savings([strict, loose], [0.0, 0.25], 2, 5)]
    [1.5, 0.25]
    """
    helps = np.zeros((len(candidates), queries))
    for at, feature in enumerate(candidates):
        helps[at, list(feature.queries)] = 1.0 - satisfied[at]
    best = np.zeros(queries)
    taken = 0
    while taken < count and len(candidates):
        gains = np.maximum(helps - best, 0.0).sum(axis=1)
        at = int(gains.argmax())
        if gains[at] < _LEAST:
            return
        if accept(candidates[at]):
            yield replace(candidates[at], saved=float(gains[at]))
            best = np.maximum(best, helps[at])
            taken += 1
        helps[at] = 0.0


def satisfied_shares(df: DataFrame, conditions: Sequence[str]) -> list[float]:
    """The share of the rows that satisfies each condition, on a sample that is the same each time."""
    from pyspark.sql import functions as F

    total = df.count()
    if not total:
        return [0.0] * len(conditions)
    sample = df if total <= 2 * _SAMPLE else df.sample(fraction=_SAMPLE / total, seed=1)
    words = [word.alias(f"w{at}") for at, word in enumerate(feature_words([F.expr(text) for text in conditions]))]
    found = sample.select(*words).toArrow()
    rows = np.array([found[f"w{at}"].to_numpy() for at in range(len(words))], np.int64).T
    return (
        [float(share) for share in unpacked(rows, len(conditions)).mean(axis=0)]
        if len(rows)
        else [0.0] * len(conditions)
    )
