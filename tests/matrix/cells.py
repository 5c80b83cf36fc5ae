"""Which circumstances are tried together: a covering array, in which every pair of values meets in some cell."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, TypeAlias

__all__ = ["FACTORS", "Cell", "array", "few", "name", "pairs_of", "possible"]

FACTORS: Final[dict[str, tuple[str, ...]]] = {
    "spark": ("oldest", "newest"),
    "client": ("classic", "connect"),
    "format": ("parquet", "orc", "csv", "json", "text"),
    "files": ("flat", "partitioned", "two levels", "roots", "glob"),
    "read as": ("path", "table", "view"),
    "data on": ("disk", "hdfs", "s3"),
    "store": ("parquet", "parquet on hdfs", "parquet on s3", "elasticsearch"),
    "adaptive": ("on", "off"),
    "codegen": ("on", "off"),
    "vectorized": ("on", "off"),
    "ansi": ("on", "off"),
    "case": ("ignored", "told apart"),
}

Cell: TypeAlias = Mapping[str, str]
"""A value of each factor."""

_Pair: TypeAlias = tuple[tuple[str, str], tuple[str, str]]


def possible(cell: Mapping[str, str]) -> bool:
    """Whether these values can meet; some factors may be missing yet. A table has one place."""
    return not (cell.get("read as") == "table" and cell.get("files") in ("roots", "glob"))


def pairs_of(cell: Cell) -> set[_Pair]:
    """Which values meet in a cell."""
    return set(itertools.combinations(((factor, cell[factor]) for factor in FACTORS), 2))


def _all_pairs() -> set[_Pair]:
    found = set()
    for one, other in itertools.combinations(FACTORS, 2):
        for first, second in itertools.product(FACTORS[one], FACTORS[other]):
            if possible({one: first, other: second}):
                found.add(((one, first), (other, second)))
    return found


def array() -> list[dict[str, str]]:
    """The cells, always the same: each next one begins with a pair that is missing and takes most of the others along.

    The greedy way of Cohen, Dalal, Fredman and Patton, *The AETG System* (IEEE Transactions on Software Engineering
    23(7), 1997), section 5, without its random restarts; of values that are as good the one is taken that was taken
    least, so that each comes about as often.
    """
    missing = _all_pairs()
    cells: list[dict[str, str]] = []
    taken: Counter[tuple[str, str]] = Counter()
    while missing:
        cell = dict(min(missing, key=lambda pair: (sum(taken[one] for one in pair), pair)))
        while len(cell) < len(FACTORS):
            cell |= max(
                _next_values(cell),
                key=lambda one: (_gain(cell | one, missing), -sum(taken[value] for value in one.items())),
            )
        cell = {factor: cell[factor] for factor in FACTORS}
        missing -= pairs_of(cell)
        taken.update(cell.items())
        cells.append(cell)
    return cells


def _next_values(cell: Mapping[str, str]) -> Iterator[dict[str, str]]:
    for factor in FACTORS:
        if factor in cell:
            continue
        for value in FACTORS[factor]:
            if possible({**cell, factor: value}):
                yield {factor: value}


def _gain(cell: Mapping[str, str], missing: set[_Pair]) -> int:
    known = [(factor, cell[factor]) for factor in FACTORS if factor in cell]
    return len(missing.intersection(itertools.combinations(known, 2)))


def few(cells: Sequence[Cell], number: int) -> list[Cell]:
    """So many of them in which most pairs meet, as many of one Spark as of the other, and one of Spark Connect."""
    found: list[Cell] = []
    met: set[_Pair] = set()
    share = {"oldest": number // 2, "newest": number - number // 2}
    while len(found) < number:
        open_ = [
            cell
            for cell in cells
            if cell not in found
            and share[cell["spark"]]
            and (cell["client"] == "connect") == (not found)  # a client of its own is a server of its own
        ]
        best = max(open_, key=lambda cell: (len(pairs_of(cell) - met), name(cell)))
        share[best["spark"]] -= 1
        met |= pairs_of(best)
        found.append(best)
    return found


def name(cell: Cell) -> str:
    """A cell in a line."""
    return ", ".join(cell[factor] if factor in _PLAIN else f"{factor} {cell[factor]}" for factor in FACTORS)


_PLAIN: Final = {"spark", "client", "format", "files", "store"}
"""Factors whose values say enough."""
