"""`MinMax`: the least and the greatest value of each object, and its numbers of nulls and NaNs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from es_skipping.clauses.clause import Clause
from es_skipping.clauses.metadata import Intervals, Kind
from es_skipping.clauses.questions import Range
from es_skipping.indexes.base import Collector, Target
from es_skipping.indexes.labels import NotNull, Text, Within, common_values, leaf_of, text_prefix, value_clause
from es_skipping.indexes.toolkit.column import ColumnIndex, only
from es_skipping.indexes.toolkit.summaries import lower_bound, plain, python_bound, upper_bound
from es_skipping.predicates.text import successor
from es_skipping.predicates.tree import Predicate
from es_skipping.predicates.types import DataType

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["MinMax"]


@dataclass(frozen=True)
class MinMax(ColumnIndex):
    """The least and the greatest value of each object, and its numbers of nulls and NaNs.

    Small, cheap to build, and effective if the rows are roughly in the column's order: time stamps of a log, keys of a
    sorted or clustered table. A build can often read Parquet footers instead of the data.

    Parameters
    ----------
    column
        Name, SQL expression or Spark ``Column`` of any supported type.

    Examples
    --------
    >>> MinMax("ts")
    MinMax(column='ts')
    """

    kind: ClassVar[Kind] = "intervals"
    bounds_values: ClassVar[bool] = True

    def collector(self, types: Sequence[DataType]) -> Collector[Extent]:
        return _MinMaxCollector(only(types))

    def label(self, node: Predicate, target: Target) -> Clause | None:
        operand, type = only(target.operands), only(target.types)
        leaf = common_values(node, operand, type, of_one_stretch=True) or leaf_of(node, operand, type)
        if isinstance(leaf, Text):
            leaf = _within(leaf)
        return None if leaf is None else value_clause(leaf, target)


def _within(leaf: Text) -> Within | NotNull:
    """The range of strings that a string test implies: strings that begin with p form one range."""
    prefix = text_prefix(leaf)
    if not prefix:
        return NotNull()
    above = successor(prefix)  # None: no string is greater than all strings that begin with it
    if not leaf.negated:
        return Within((Range(prefix, above, high_open=True),))
    if leaf.test != "starts":
        return NotNull()  # a string that begins with the prefix may fail the rest of the pattern
    before = Range(None, prefix, high_open=True)
    return Within((before,) if above is None else (before, Range(above, None)))


class Extent(NamedTuple):
    """The bounds of some rows. ``low`` and ``high`` are None without values; ``known`` is False if there are values
    with unknown bounds."""

    low: Any
    high: Any
    nulls: int
    nans: int
    known: bool = True


class _MinMaxCollector(Collector[Extent]):
    repeats_matter = False

    def __init__(self, type: DataType) -> None:
        self._type = type

    def partial(self, columns: Sequence[pa.Array]) -> Extent:
        import pyarrow.compute as pc

        array, nulls, nans = plain(only(columns), self._type)
        bounds = pc.min_max(array)
        low, high = bounds["min"].as_py(), bounds["max"].as_py()
        if isinstance(low, bytes) and isinstance(high, bytes):
            text = self._type.name == "string"
            low = lower_bound(low, text=text)
            try:
                high = upper_bound(high, text=text)
            except UnicodeDecodeError:
                high = None
            if high is None:
                return Extent(None, None, nulls, nans, known=False)
        return Extent(low, high, nulls, nans)

    def merge(self, first: Extent, second: Extent) -> Extent:
        nulls, nans = first.nulls + second.nulls, first.nans + second.nans
        if not (first.known and second.known):
            return Extent(None, None, nulls, nans, known=False)
        bounds = [extent for extent in (first, second) if extent.low is not None]
        if not bounds:
            return Extent(None, None, nulls, nans)
        return Extent(min(e.low for e in bounds), max(e.high for e in bounds), nulls, nans)

    def finish(self, partial: Extent) -> Intervals:
        nulls, nans = partial.nulls, partial.nans
        if not partial.known:
            return Intervals(None, nulls, nans)
        if partial.low is None:
            return Intervals((), nulls, nans)
        try:
            bounds = python_bound(partial.low, self._type), python_bound(partial.high, self._type)
        except UnicodeDecodeError:
            return Intervals(None, nulls, nans)
        return Intervals((bounds,), nulls, nans)
