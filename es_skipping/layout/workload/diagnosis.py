"""Diagnoses whether a workload is worth a layout. Filter skew and filter stability (*Skipping-oriented Data Design*,
section 3.2.1)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from es_skipping.layout.chart import line_chart
from es_skipping.workload.queries import Query

__all__ = ["Diagnosis", "diagnose"]

_WINDOWS: Final = 5
_STEPS: Final = 20
_SEEN: Final = 0.3
_PAYS: Final = 0.6
_MAY_PAY: Final = 0.45
_MIN_QUERIES: Final = 20

Curve = tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """How much the filters of a workload repeat.

    Parameters
    ----------
    queries, filters
        Number of queries, and of distinct predicates in them.
    skew
        ``(x, y)``: a share y of the queries uses the most frequent share x of the predicates.
    stability
        ``(x, y)``: a share y of all queries uses predicates of the first share x of the queries; the mean over five
        parts of the workload. ``y = x`` means a workload without repetition.
    """

    queries: int
    filters: int
    skew: Curve
    stability: Curve

    @property
    def recurrence(self) -> float:
        """The share of the queries that use a predicate of the first 30 percent; 0.8 in the dissertation's log."""
        return at(self.stability, _SEEN)

    @property
    def concentration(self) -> float:
        """The share of the queries that use one of the most frequent tenth; 0.9 in the dissertation's log."""
        return at(self.skew, 0.1)

    @property
    def advice(self) -> str:
        """The advice, in a sentence."""
        described = (
            f"the filters of the first {_SEEN:.0%} of the queries are used by {self.recurrence:.0%} of them, the most "
            f"frequent tenth by {self.concentration:.0%}"
        )
        if self.queries < _MIN_QUERIES:
            return f"Too few queries for a diagnosis: {self.queries}. Pass at least {_MIN_QUERIES}."
        if not self.filters:
            return "No query has a filter that es_skipping understands: a layout cannot help."
        if self.recurrence >= _PAYS:
            return f"A layout will pay: {described}."
        if self.recurrence >= _MAY_PAY:
            return f"A layout may pay; look at the dry run: {described}."
        return f"A layout will hardly pay, because most filters are new: {described}."

    def chart(self) -> str:
        """Both curves as an SVG picture."""
        return line_chart(
            {"filter skew": self.skew, "filter stability": self.stability, "nothing comes twice": ((0, 0), (1, 1))},
            title="How much the workload repeats",
            x_label="share of the filters (skew), of the queries so far (stability)",
            y_label="share of the queries that use them",
            percent=True,
            percent_x=True,
            roles={"nothing comes twice": "reference"},
        )

    def __str__(self) -> str:
        return f"{self.queries} queries, {self.filters} different filters. {self.advice}"


def diagnose(queries: Sequence[Query]) -> Diagnosis:
    """The curves of a workload, oldest query first.

    Examples
    --------
    >>> diagnose([]).advice
    'Too few queries for a diagnosis: 0. Pass at least 20.'
    """
    items = [frozenset(query.items) for query in queries]
    filters = {item for some in items for item in some}
    return Diagnosis(len(items), len(filters), _skew(items), _stability(items))


def at(curve: Curve, x: float) -> float:
    """The curve's value at x, by linear interpolation.

    Examples
    --------
    >>> at(((0.0, 0.0), (0.5, 1.0)), 0.25)
    0.5
    """
    for (x0, y0), (x1, y1) in pairwise(curve):
        if x0 <= x <= x1:
            return y0 + (y1 - y0) * (x - x0) / (x1 - x0) if x1 > x0 else y1
    return curve[-1][1] if curve else 0.0


def _skew(items: Sequence[frozenset[object]]) -> Curve:
    frequency = Counter(item for some in items for item in some)
    ranked = [item for item, _ in frequency.most_common()]
    if not ranked:
        return ((0.0, 0.0), (1.0, 0.0))
    rank = {item: number for number, item in enumerate(ranked, 1)}
    first = [min((rank[item] for item in some), default=None) for some in items]
    points = sorted({round(step / _STEPS * len(ranked)) for step in range(_STEPS + 1)} | {max(1, len(ranked) // 10)})
    return tuple(
        (count / len(ranked), sum(one is not None and one <= count for one in first) / len(items)) for count in points
    )


def _stability(items: Sequence[frozenset[object]]) -> Curve:
    windows = [window for window in _windows(items) if window]
    if not windows:
        return ((0.0, 0.0), (1.0, 0.0))
    shares = [step / _STEPS for step in range(_STEPS + 1)]
    return tuple((share, sum(_reused(window, share) for window in windows) / len(windows)) for share in shares)


def _windows(items: Sequence[frozenset[object]]) -> list[Sequence[frozenset[object]]]:
    edges = [round(number * len(items) / _WINDOWS) for number in range(_WINDOWS + 1)]
    return [items[start:stop] for start, stop in pairwise(edges)]


def _reused(window: Sequence[frozenset[object]], share: float) -> float:
    cut = round(share * len(window))
    seen = {item for some in window[:cut] for item in some}
    return sum(not seen.isdisjoint(some) for some in window) / len(window)
