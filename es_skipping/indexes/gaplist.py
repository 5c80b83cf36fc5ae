"""`GapList`: each object's value ranges between its largest gaps."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeAlias

from es_skipping.clauses.clause import Clause
from es_skipping.clauses.metadata import Intervals, Kind
from es_skipping.errors import IndexDefinitionError
from es_skipping.indexes.base import Collector, Target
from es_skipping.indexes.labels import constraint_on, value_clause
from es_skipping.indexes.toolkit.arguments import require_positive
from es_skipping.indexes.toolkit.column import ColumnIndex, only
from es_skipping.indexes.toolkit.stretches import AskedRanges, Stretches, points, union, values_of
from es_skipping.indexes.toolkit.summaries import plain
from es_skipping.predicates.tree import Predicate
from es_skipping.predicates.types import DataType

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["GapList"]

_STRETCHES: Final = 2048
"""Fewest ranges kept while an object is read: up to this number the largest gaps are exact."""


@dataclass(frozen=True)
class GapList(ColumnIndex):
    """The ranges of each object's values between its largest gaps.

    For columns whose values form clusters with gaps in between, such as hours of a nightly job, ids of several
    generators, or readings of sensors that were off for weeks. `MinMax` has one range from the least to the greatest
    value, and keeps the object for every value in between.

    Parameters
    ----------
    column
        Name, SQL expression or Spark ``Column`` of a numeric, date or timestamp type.
    gaps
        Most gaps to store: the widest ones.
    asked
        Ranges that queries ask for, as `advise` finds them: ``(low, high)`` or ``(low, high, weight)``, dates as days
        and timestamps as microseconds since 1970. The gaps that hold most of them are stored before wider ones.

    References
    ----------
    *Extensible Data Skipping* (Ta-Shma, Khazma, Lushi, Feder), section IV-C and Table I.

    Examples
    --------
    >>> GapList("order_id", gaps=7)
    GapList(column='order_id', gaps=7, asked=())
    """

    gaps: int
    asked: Any = ()

    kind: ClassVar[Kind] = "intervals"
    bounds_values: ClassVar[bool] = True
    wanted: ClassVar[str] = "a number, date or timestamp"
    wanted_types: ClassVar[tuple[str, ...]] = (
        *("tinyint", "smallint", "int", "bigint", "float", "double", "decimal"),
        *("date", "timestamp", "timestamp_ntz"),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive(self, "gaps", self.gaps)
        object.__setattr__(self, "asked", _ranges(self.asked))
        if self.asked and self.protect not in (None, "plain"):
            raise _in_clear(self.protect)

    def protected(self, protect: str | None, key: str | None) -> GapList:
        if self.asked and protect not in (None, "plain"):
            raise _in_clear(protect)
        return super().protected(protect, key)

    @property
    def parameters(self) -> dict[str, int | float | str]:
        asked = {"asked": json.dumps(self.asked, separators=(",", ":"))} if self.asked else {}
        return {"gaps": self.gaps, **asked}

    @property
    def naming(self) -> Mapping[str, int | float | str]:
        return {"gaps": self.gaps}

    @property
    def changing(self) -> frozenset[str]:
        return frozenset({"asked"})

    def __str__(self) -> str:
        if not self.asked:
            return super().__str__()
        ranges = ((low, high) if weight == 1 else (low, high, weight) for low, high, weight in self.asked)
        return f"GapList({self.column}, gaps={self.gaps}, asked=[{', '.join(map(str, ranges))}])"

    def collector(self, types: Sequence[DataType]) -> Collector[Covered]:
        type = only(types)
        return _GapCollector(type, self.gaps, AskedRanges.of(self.asked, type) if self.asked else None)

    def label(self, node: Predicate, target: Target) -> Clause | None:
        leaf = constraint_on(node, target)
        return None if leaf is None else value_clause(leaf, target)


def _ranges(given: Any) -> tuple[tuple[int | float | str, int | float | str, float], ...]:
    """Ranges as they are stored: decimals as texts, each with a weight."""
    try:
        read = json.loads(given) if isinstance(given, str) else given
        found = tuple((_end(low), _end(high), float(weight[0]) if weight else 1.0) for low, high, *weight in read)
    except (TypeError, ValueError, ArithmeticError):
        found = None
    if found is None or any(weight <= 0 or not math.isfinite(weight) for _, _, weight in found):
        raise IndexDefinitionError(
            f"GapList: asked is {given!r}; give (low, high) or (low, high, weight) of finite numbers"
        )
    return found


def _end(value: Any) -> int | float | str:
    if not Decimal(value).is_finite():
        raise ValueError
    return value if isinstance(value, int | float | str) else str(value)


def _in_clear(protect: str | None) -> IndexDefinitionError:
    return IndexDefinitionError(
        f"GapList: an index with asked ranges cannot be {protect}: its definition holds them in clear; leave asked out"
    )


Covered: TypeAlias = tuple[Stretches, int, int]
"""Stretches that cover the values of some rows, and how many rows are null and NaN."""


class _GapCollector(Collector[Covered]):
    """Values as stretches of one value each, the narrowest gaps closed where they become many.

    Whatever is closed early stays covered, so the result covers every value; a gap among the widest is missed only
    where more than `_STRETCHES` gaps, all wider, were seen before the values that fill them.
    """

    repeats_matter = False

    def __init__(self, type: DataType, gaps: int, asked: AskedRanges | None) -> None:
        self._type = type
        self._gaps = gaps
        self._asked = asked
        self._most = max(_STRETCHES, 4 * gaps)

    def partial(self, columns: Sequence[pa.Array]) -> Covered:
        array, nulls, nans = plain(only(columns), self._type)
        return points(array, self._type).with_gaps(self._most, self._asked), nulls, nans

    def merge(self, first: Covered, second: Covered) -> Covered:
        both = union(first[0], second[0])
        # Closing gaps sorts them, so its cost is shared by the batches in between.
        both = both if len(both.low) <= 2 * self._most else both.with_gaps(self._most, self._asked)
        return both, first[1] + second[1], first[2] + second[2]

    def finish(self, partial: Covered) -> Intervals:
        stretches = partial[0].with_gaps(self._gaps, self._asked)
        low, high = (values_of(ends, self._type) for ends in stretches)
        return Intervals(tuple(zip(low, high, strict=True)), partial[1], partial[2])
