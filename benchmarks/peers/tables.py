"""The figures of a run as the tables of its page and of the README."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from benchmarks.peers.systems import Answer

__all__ = ["BASE", "Found", "files_table", "geometric_mean", "planning_table", "summary_table", "time_table"]

BASE: Final = "plain Spark"
"""What the ratios relate to."""

Found = Mapping[str, Mapping[str, Sequence[Answer]]]
"""By query and by system, the answers of all rounds."""


def time_table(found: Found) -> str:
    """Seconds of plain Spark, and each system's time as the median of the rounds' ratios to it."""
    return _ratios(found, _systems(found), lambda answer: answer.seconds)


def planning_table(found: Found) -> str:
    """The same of the time until Spark knows its files, for the systems on Spark."""
    first = next(iter(found.values()))
    on_spark = [name for name in first if first[name][0].planning is not None]
    return _ratios(found, on_spark, _planning)


def files_table(found: Found) -> str:
    """Files opened."""
    names = _systems(found)
    rows = [[query, *(f"{of[name][-1].files:,}" for name in names)] for query, of in found.items()]
    return _table(["query", *names], rows)


def summary_table(found: Found) -> str:
    """A column for each system: files and bytes of all queries, and the geometric means of the ratios."""
    names = _systems(found)
    files = [f"{sum(of[name][-1].files for of in found.values()):,}" for name in names]
    size = [f"{sum(of[name][-1].bytes for of in found.values()) / 1e6:,.0f}" for name in names]
    times = [f"{_mean(found, name, lambda answer: answer.seconds):.2f}" for name in names]
    first = next(iter(found.values()))
    planning = ["" if first[name][0].planning is None else f"{_mean(found, name, _planning):.2f}" for name in names]
    rows = [["files", *files], ["MB", *size], ["time", *times], ["planning", *planning]]
    return _table(["", *names], rows)


def geometric_mean(values: Sequence[float]) -> float:
    """
    Examples
    --------
    >>> geometric_mean([0.5, 2.0])
    1.0
    """
    return math.exp(statistics.fmean(map(math.log, values)))


def _planning(answer: Answer) -> float:
    assert answer.planning is not None
    return max(answer.planning, 0.001)  # Spark counts whole milliseconds


def _systems(found: Found) -> list[str]:
    return list(next(iter(found.values())))


def _ratio(of: Mapping[str, Sequence[Answer]], name: str, figure: Callable[[Answer], float]) -> float:
    """The median of the rounds' ratios."""
    return statistics.median(figure(one) / figure(base) for one, base in zip(of[name], of[BASE], strict=True))


def _mean(found: Found, name: str, figure: Callable[[Answer], float]) -> float:
    return geometric_mean([_ratio(of, name, figure) for of in found.values()])


def _ratios(found: Found, names: Sequence[str], figure: Callable[[Answer], float]) -> str:
    others = [name for name in names if name != BASE]
    rows = [
        [
            query,
            f"{statistics.median(map(figure, of[BASE])):.3f} s",
            *(f"{_ratio(of, name, figure):.2f}" for name in others),
        ]
        for query, of in found.items()
    ]
    means = [f"{_mean(found, name, figure):.2f}" for name in others]
    return _table(["query", BASE, *others], [*rows, ["geometric mean", "1", *means]])


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---", *["--:"] * (len(head) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
