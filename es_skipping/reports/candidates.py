"""The indexes that could help a filter: for each of its parts the index types that may understand it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Final

from es_skipping.indexes.base import Index
from es_skipping.indexes.bloomfilter import BloomFilter
from es_skipping.indexes.gaplist import GapList
from es_skipping.indexes.geobox import GeoBox
from es_skipping.indexes.geometrybox import GeometryBox
from es_skipping.indexes.hybrid import Hybrid
from es_skipping.indexes.labels import Within, leaf_of
from es_skipping.indexes.minmax import MinMax
from es_skipping.indexes.prefix import Prefix
from es_skipping.indexes.suffix import Suffix
from es_skipping.indexes.toolkit.sedona import coordinates_of, function_of
from es_skipping.indexes.valuelist import ValueList
from es_skipping.predicates.show import show
from es_skipping.predicates.tree import (
    Call,
    Cast,
    Column,
    Comparison,
    Holds,
    IsIn,
    Matches,
    NullTest,
    Operand,
    Predicate,
    leaves_of,
)
from es_skipping.predicates.truth import sql_of_operand
from es_skipping.reports.asked_queries import AskedQuery
from es_skipping.reports.asked_ranges import Ranges, asked_ranges
from es_skipping.reports.thresholds import hybrid_threshold, value_bytes

__all__ = ["ALL", "PLAIN", "Grid", "for_dataset", "index_candidates"]

_PAIRS: Final = 3
"""Pairs of bounded columns that are tried as coordinates."""
_HYBRID_FPP: Final = 0.01
_NUMBERS: Final = frozenset({"tinyint", "smallint", "int", "bigint", "float", "double", "decimal"})


@dataclass(frozen=True, slots=True)
class Grid:
    """The parameters to try.

    Parameters
    ----------
    lengths
        Characters of a prefix or suffix.
    boxes
        Boxes of an object.
    gaps
        Gaps of a `GapList`.
    rates
        False positives of a `BloomFilter`.
    hybrid
        The threshold of a `Hybrid` of an operand; None to try none.
    asked
        The ranges that queries ask of an operand, for `GapList`.
    """

    lengths: tuple[int, ...]
    boxes: tuple[int, ...]
    gaps: tuple[int, ...] = ()
    rates: tuple[float, ...] = ()
    hybrid: Callable[[Operand], int] | None = None
    asked: Callable[[Operand], Ranges] = lambda operand: ()


# The paper found prefixes of 15 characters near optimal, at a tenth of a value list's size.
PLAIN: Final = Grid(lengths=(15,), boxes=(4,))
"""One index of each type, for a quick answer about one query."""
ALL: Final = Grid(lengths=(4, 8, 15, 30), boxes=(1, 4, 8), gaps=(1, 4, 16), rates=(0.01, 0.001))
"""A small grid, for a choice under a budget; a `Hybrid` needs a threshold for the dataset."""


def for_dataset(
    grid: Grid,
    object_bytes: float,
    queries: Sequence[AskedQuery],
    *,
    plain: Callable[[Operand], bool] = lambda operand: True,
) -> Grid:
    """A grid with the thresholds and gaps that suit a dataset's objects and its queries.

    Parameters
    ----------
    plain
        Whether the definition of an index of an operand may hold the queries' values.
    """
    filters = list(dict.fromkeys(one.predicate for one in queries))

    @cache
    def threshold(operand: Operand) -> int:
        return hybrid_threshold(object_bytes, value_bytes(operand, filters), _HYBRID_FPP)

    @cache
    def asked(operand: Operand) -> Ranges:
        return asked_ranges(operand, queries) if plain(operand) else ()

    return replace(grid, hybrid=threshold, asked=asked)


def index_candidates(predicate: Predicate, grid: Grid = PLAIN) -> Iterator[Index]:
    """The indexes that may understand a part of a predicate.

    Parameters
    ----------
    predicate
        In normal form.
    grid
        Parameters to try.

    Examples
    --------
    >>> from es_skipping.predicates.tree import Literal
    >>> from es_skipping.predicates.types import DataType
    >>> x = Column(("x",), DataType("int"))
    >>> list(map(str, index_candidates(Comparison("=", x, Literal(3, x.type)))))
    ['MinMax(x)', 'ValueList(x)']
    """
    bounded: dict[Operand, None] = {}
    for leaf in leaves_of(predicate):
        for operand in _operands(leaf):
            yield from _of_operand(operand, leaf, grid)
            if operand.type.name in _NUMBERS and isinstance(leaf_of(leaf, operand, operand.type), Within):
                bounded[operand] = None
    pairs = [(one, other) for at, one in enumerate(bounded) for other in list(bounded)[at + 1 :]]
    for one, other in pairs[:_PAIRS]:
        for boxes in grid.boxes:
            yield GeoBox(show(one), show(other), boxes=boxes)


def _of_operand(operand: Operand, leaf: Predicate, grid: Grid) -> Iterator[Index]:
    if function_of(operand) is not None:
        point = coordinates_of(operand)
        if point is not None:
            x, y = (part.child if isinstance(part, Cast) else part for part in point)
            for boxes in grid.boxes:
                yield GeoBox(show(y), show(x), boxes=boxes)
        return
    text = sql_of_operand(operand) or show(operand)
    if isinstance(leaf, Holds):
        for boxes in grid.boxes:
            yield GeometryBox(text, boxes=boxes)
        return
    if not operand.type.supported:
        return
    yield MinMax(text)
    yield ValueList(text)
    if operand.type.name == "string":
        for length in grid.lengths:
            yield Prefix(text, length)
            yield Suffix(text, length)
    if operand.type.name in GapList.wanted_types:
        for gaps in grid.gaps:
            yield GapList(text, gaps, grid.asked(operand))
    for rate in grid.rates:
        yield BloomFilter(text, rate)
    if grid.hybrid is not None:
        yield Hybrid(text, grid.hybrid(operand), _HYBRID_FPP)


def _operands(leaf: Predicate) -> Iterator[Operand]:
    match leaf:
        case Comparison(_, left, right):
            for side in (left, right):
                if isinstance(side, Call) and function_of(side) is not None:
                    yield from (part for part in side.arguments if isinstance(part, Column | Call))
                elif isinstance(side, Column | Cast | Call):
                    yield side
        case IsIn(operand) | Matches(_, operand):
            yield operand
        case NullTest(operand, negated=False):
            yield operand
        case Holds(call) if function_of(call) is not None:
            yield from (part for part in call.arguments if isinstance(part, Column | Call))
