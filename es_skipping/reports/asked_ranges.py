"""The ranges of a column that queries ask for: a `GapList` stores the gaps that hold most of them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from decimal import Decimal
from typing import Any, Final, TypeAlias

from es_skipping.predicates.tree import Operand
from es_skipping.predicates.types import DataType
from es_skipping.predicates.value_sets import at_most
from es_skipping.reports.asked_queries import AskedQuery

__all__ = ["Ranges", "asked_ranges"]

_MAX_RANGES: Final = 64

Ranges: TypeAlias = tuple[tuple[Any, Any, float], ...]


def asked_ranges(operand: Operand, queries: Iterable[AskedQuery]) -> Ranges:
    """``(low, high, weight)`` of the ranges between two values that queries ask of an operand, the heaviest ones.

    A query of several ranges skips an object if each lies in a gap of it, or outside. The best gaps for such queries
    are hard to find, as the paper shows; here each range counts for its share of the query.

    References
    ----------
    *Extensible Data Skipping* (Ta-Shma, Khazma, Lushi, Feder), section IV-C.

    Examples
    --------
    >>> from es_skipping.predicates.tree import Column, IsIn
    >>> x = Column(("x",), DataType("int"))
    >>> asked_ranges(x, [AskedQuery(IsIn(x, (3, 7)), 1.0), AskedQuery(IsIn(x, (7,)), 1.0)])
    ((7, 7, 1.5), (3, 3, 0.5))
    """
    weights: dict[tuple[Any, Any], float] = {}
    for one in queries:
        stretches = at_most(one.predicate, operand).stretches
        for low, low_open, high, high_open in stretches:
            if low is None or high is None:
                continue
            ends = _closed(low, 1 if low_open else 0, operand.type), _closed(high, -1 if high_open else 0, operand.type)
            weights[ends] = weights.get(ends, 0.0) + one.weight / len(stretches)
    heaviest = sorted(weights.items(), key=lambda item: -item[1])[:_MAX_RANGES]
    return tuple((low, high, weight) for (low, high), weight in heaviest if _is_range(low, high) and weight > 0)


def _closed(end: Any, step: int, type: DataType) -> Any:
    """The next value inside of an end that does not belong to its range."""
    if not step or isinstance(end, Decimal):
        return end
    return math.nextafter(end, step * math.inf) if type.is_float else end + step


def _is_range(low: Any, high: Any) -> bool:
    return math.isfinite(low) and math.isfinite(high) and low <= high
