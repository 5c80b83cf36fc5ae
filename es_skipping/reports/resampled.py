"""How sure a saving is: intervals by resampling queries and objects with replacement (the bootstrap)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from es_skipping.workload.proofs import Asked

__all__ = ["Interval", "interval_of"]

_RESAMPLES: Final = 200
_TAIL: Final = 2.5
"""Percent of the resamples on each side of an interval."""


class Interval(NamedTuple):
    """A share of all bytes: measured, and the interval that holds 95 % of the resamples."""

    share: float
    low: float
    high: float


def interval_of(
    queries: Sequence[Asked], sizes: Sequence[float], indexes: int, without: int = 0, *, queries_vary: bool = True
) -> Interval:
    """The share of all bytes that a set of indexes saves.

    Parameters
    ----------
    queries
        Each query as often as it was asked.
    sizes
        The bytes that each object stands for.
    without
        What this set saves does not count.
    queries_vary
        Whether the queries are a sample too, and not the whole workload.

    Examples
    --------
    >>> from es_skipping.workload.proofs import Proofs
    >>> interval_of([Asked(Proofs(((0, 0b1),)))], [50.0, 50.0], 0b1).share
    0.5
    """
    whole = sum(query.weight for query in queries) * sum(sizes)
    if not whole:
        return Interval(0.0, 0.0, 0.0)
    saved = [query.proofs.skipped(indexes) & ~query.proofs.skipped(without) for query in queries]
    bits = _matrix(saved, len(sizes))
    weights, bytes = np.array([query.weight for query in queries]), np.array(sizes)
    dice = np.random.default_rng(len(queries))
    one, other = len(queries), len(sizes)
    times = np.ones((_RESAMPLES, one))
    if queries_vary:
        times = dice.multinomial(one, np.full(one, 1 / one), _RESAMPLES).astype(float)
    drawn = dice.multinomial(other, np.full(other, 1 / other), _RESAMPLES).astype(float)
    asked, there = times * weights, drawn * bytes
    total = np.maximum(asked.sum(axis=1) * there.sum(axis=1), 1e-300)
    shares = ((asked @ bits) * there).sum(axis=1) / total
    low, high = np.percentile(shares, [_TAIL, 100 - _TAIL])
    return Interval(float(weights @ bits @ bytes) / whole, float(low), float(high))


def _matrix(rows: Sequence[int], width: int) -> npt.NDArray[np.float64]:
    count = (width + 7) // 8
    packed = np.frombuffer(b"".join(row.to_bytes(count, "little") for row in rows), np.uint8).reshape(len(rows), count)
    return np.unpackbits(packed, axis=1, bitorder="little", count=width).astype(np.float64)
