"""What a peer remembers of an object's column, and how it decides from that: the sound way.

`Peer` is the zone map that most systems have: bounds, a count of nulls, a count of NaNs. It is sound, so it finds
nothing to skip wrongly. An animal of the zoo changes one method of it, as a real system had that method.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol, TypeAlias

from es_skipping.predicates.normal import normalise
from es_skipping.predicates.tree import (
    And,
    Cast,
    Column,
    Comparison,
    Constant,
    IsIn,
    Literal,
    Matches,
    NullTest,
    Or,
    Predicate,
)
from es_skipping.predicates.types import DataType

__all__ = ["Evaluator", "Object", "Peer", "Stats", "is_nan", "key"]

Object: TypeAlias = Sequence[Mapping[Column, Any]]
"""The rows of one object, each with its values by column; None for NULL."""


class Evaluator(Protocol):
    """Whatever decides which objects are skipped."""

    def skipped(self, objects: Sequence[Object], predicate: Predicate) -> Sequence[bool]:
        """For each object of a dataset, whether it is skipped."""
        ...


@dataclass(frozen=True)
class Stats:
    """What is remembered of one column of one object.

    Parameters
    ----------
    rows
        Their number.
    nulls, nans
        How many rows are null, how many NaN; None where nobody counted.
    low, high
        Bounds of the values that are neither null nor NaN; None where there are none, or none are known.
    hashes
        Of a Bloom filter: what stands for each value.
    """

    rows: int
    nulls: int | None
    nans: int | None = 0
    low: Any = None
    high: Any = None
    hashes: frozenset[bytes] | None = None


def is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


_normal = lru_cache(maxsize=8)(normalise)
"""Many evaluators are asked the same."""


def key(value: Any) -> Any:
    """What Spark compares: the bytes of a string."""
    return value.encode(errors="surrogateescape") if isinstance(value, str) else value


class Peer:
    """A sound zone map: an object is kept unless its statistics rule a matching row out."""

    def skipped(self, objects: Sequence[Object], predicate: Predicate) -> Sequence[bool]:
        normal = _normal(predicate)
        return [not self.may(normal, rows) for rows in objects]

    # --- what is written ------------------------------------------------------------------------------------------

    def remember(self, values: Sequence[Any], type: DataType) -> Stats:
        """The statistics of a column."""
        numbers = [value for value in values if value is not None and not is_nan(value)]
        nulls, nans = sum(value is None for value in values), sum(map(is_nan, values))
        low, high = (min(numbers, key=key), max(numbers, key=key)) if numbers else (None, None)
        return Stats(len(values), nulls, nans, low, high)

    # --- what is read ---------------------------------------------------------------------------------------------

    def may(self, node: Predicate, rows: Object) -> bool:
        """Whether a row may satisfy a normal predicate."""
        match node:
            case Constant(value):
                return value
            case And(children):
                return all(self.may(child, rows) for child in children)
            case Or(children):
                return any(self.may(child, rows) for child in children)
            case Comparison(_, left, Literal()) | IsIn(left) | NullTest(left) | Matches(_, left):
                if isinstance(left, Column):
                    return self.leaf(node, self._stats(left, rows))
                if isinstance(left, Cast) and isinstance(left.child, Column):
                    return self.of_cast(node, left, self._stats(left.child, rows))
        return True

    def _stats(self, column: Column, rows: Object) -> Stats:
        return self.remember([row[column] for row in rows], column.type)

    def of_cast(self, node: Predicate, cast: Cast, stats: Stats) -> bool:
        """A leaf about a cast that does not keep the order; the others are gone from a normal predicate."""
        return True

    def leaf(self, node: Predicate, stats: Stats) -> bool:
        """A leaf about a column."""
        if isinstance(node, NullTest):
            return self.not_null(stats) if node.negated else self.null(stats)
        if stats.nulls == stats.rows:
            return False
        if _true_of_nan(node) and self.nan(stats):
            return True
        if stats.low is None:
            return not (stats.nulls is not None and stats.nans is not None and stats.nulls + stats.nans == stats.rows)
        match node:
            case Comparison("=", _, Literal(value)):
                return self.equal(value, stats)
            case Comparison("<>", _, Literal(value)):
                return self.other_than((value,), stats)
            case Comparison(comparator, _, Literal(value)):
                return self.beside(comparator, value, stats)
            case IsIn(_, values, negated):
                return self.other_than(values, stats) if negated else any(self.equal(v, stats) for v in values)
            case Matches("starts", _, prefix, _, negated):
                return self.not_starts(prefix, stats) if negated else self.starts(prefix, stats)
        return True

    def null(self, stats: Stats) -> bool:
        return stats.nulls is None or stats.nulls > 0

    def not_null(self, stats: Stats) -> bool:
        return stats.nulls is None or stats.nulls < stats.rows

    def nan(self, stats: Stats) -> bool:
        return stats.nans is None or stats.nans > 0

    def equal(self, value: Any, stats: Stats) -> bool:
        return not is_nan(value) and key(stats.low) <= key(value) <= key(stats.high)

    def other_than(self, values: Sequence[Any], stats: Stats) -> bool:
        return not (stats.low == stats.high and stats.low in values)

    def beside(self, comparator: str, value: Any, stats: Stats) -> bool:
        low, high, bound = key(stats.low), key(stats.high), key(value)
        return bool({"<": low < bound, "<=": low <= bound, ">": high > bound, ">=": high >= bound}[comparator])

    def starts(self, prefix: str, stats: Stats) -> bool:
        low, high = stats.low, stats.high
        return bool(key(high) >= key(prefix) and (key(low) < key(prefix) or low.startswith(prefix)))

    def not_starts(self, prefix: str, stats: Stats) -> bool:
        return not (stats.low.startswith(prefix) and stats.high.startswith(prefix))


def _true_of_nan(node: Predicate) -> bool:
    """Whether NaN, the greatest value and equal to itself, satisfies a leaf."""
    match node:
        case Comparison(comparator, _, Literal(value)):
            return comparator in ("=", "<=", ">=") if is_nan(value) else comparator in ("<>", ">", ">=")
        case IsIn(_, values, negated):
            return any(map(is_nan, values)) != negated
    return False
