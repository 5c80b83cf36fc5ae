"""Sorted, disjoint, closed stretches of numbers. Closing the narrowest gaps makes them fewer.

Numbers are held so that the width of a gap is plain arithmetic: integers, dates and timestamps as int64, float and
double as float64, decimals as their unscaled whole numbers, which past 18 digits are Python's own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from es_skipping.predicates.types import DataType, Value

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

__all__ = ["AskedRanges", "Stretches", "points", "union", "values_of"]

_INT64_DIGITS: Final = 18
_MAX_DECIMAL_DIGITS: Final = 38


class AskedRanges(NamedTuple):
    """Closed ranges that queries ask for, in any order: number i reaches from ``low[i]`` to ``high[i]``."""

    low: npt.NDArray[Any]
    high: npt.NDArray[Any]
    weight: npt.NDArray[np.float64]

    @classmethod
    def of(cls, ranges: Sequence[tuple[Any, Any, float]], type: DataType) -> AskedRanges:
        """Ranges of values of a type; decimals may be texts."""
        import numpy as np

        dtype = np.float64 if type.is_float else object if _is_wide(type) else np.int64
        low, high = (np.array([_held(one[side], type) for one in ranges], dtype) for side in (0, 1))
        return cls(low, high, np.array([weight for _, _, weight in ranges], np.float64))


class Stretches(NamedTuple):
    """Stretches in ascending order: number i reaches from ``low[i]`` to ``high[i]``."""

    low: npt.NDArray[Any]
    high: npt.NDArray[Any]

    def with_gaps(self, most: int, asked: AskedRanges | None = None) -> Stretches:
        """Stretches that cover these and leave at most this many gaps, the widest ones.

        Parameters
        ----------
        asked
            The gaps that hold most of these ranges are left before wider ones. A range lies in one gap at most, so no
            other choice of gaps holds more of them.

        Examples
        --------
        >>> import numpy as np
        >>> ends = np.array([1, 2, 7, 9])
        >>> [part.tolist() for part in Stretches(ends, ends).with_gaps(1)]
        [[1, 7], [2, 9]]
        """
        import numpy as np

        if len(self.low) <= 1:
            return self
        widths = _widths(self)
        # Between a whole number and the next there is no gap.
        gaps = np.flatnonzero(widths > (0 if widths.dtype == np.float64 else 1))
        if len(gaps) > most:
            if asked is not None:
                worth = _worth(self, asked)
                kept = np.array(sorted(gaps.tolist(), key=lambda gap: (worth[gap], widths[gap]))[-most:])
            elif widths.dtype == object:
                kept = gaps[np.argsort(widths[gaps], kind="stable")[len(gaps) - most :]]
            else:
                kept = gaps[np.argpartition(widths[gaps], len(gaps) - most)[len(gaps) - most :]]
            gaps = np.sort(kept)
        return Stretches(self.low[np.concatenate([[0], gaps + 1])], self.high[np.append(gaps, len(self.high) - 1)])


def _widths(stretches: Stretches) -> np.ndarray:
    """The distance of each stretch from the next."""
    import numpy as np

    before, after = stretches.high[:-1], stretches.low[1:]
    if before.dtype == np.int64:
        # The difference of two signed 64-bit numbers may overflow, but it fits an unsigned one.
        unsigned: np.ndarray = after.view(np.uint64) - before.view(np.uint64)
        return unsigned
    with np.errstate(over="ignore"):
        return np.asarray(after - before)


def _worth(stretches: Stretches, asked: AskedRanges) -> np.ndarray:
    """For the gap behind each stretch but the last, the weight of the ranges that lie in it."""
    import numpy as np

    before = np.searchsorted(stretches.high, asked.low, "left") - 1
    behind = np.clip(before + 1, 0, len(stretches.low) - 1)
    inside = (before >= 0) & (before < len(stretches.low) - 1) & (stretches.low[behind] > asked.high)
    return np.bincount(before[inside], asked.weight[inside], minlength=len(stretches.low) - 1)


def _is_wide(type: DataType) -> bool:
    return type.name == "decimal" and type.precision > _INT64_DIGITS


def _held(value: Any, type: DataType) -> int | float:
    """A value as stretches hold it; one that does not fit becomes the nearest that does."""
    if type.is_float:
        return float(value)
    whole: int = math.floor(Fraction(value) * 10**type.scale)
    return whole if _is_wide(type) else max(-(2**63), min(2**63 - 1, whole))


def points(array: pa.Array, type: DataType) -> Stretches:
    """The distinct values of a column, each a stretch of its own.

    Parameters
    ----------
    array
        Without nulls and NaNs, as `es_skipping.indexes.toolkit.summaries.plain` leaves it.
    type
        Numeric, date or timestamp.
    """
    import numpy as np
    import pyarrow.compute as pc

    distinct = pc.unique(array)
    if type.name == "decimal":
        numbers = _unscaled(distinct, type)
    else:
        numbers = distinct.to_numpy(zero_copy_only=False).astype(np.float64 if type.is_float else np.int64)
    numbers.sort()
    return Stretches(numbers, numbers)


def _unscaled(array: pa.Array, type: DataType) -> np.ndarray:
    """Decimals as whole numbers, from Arrow's own: 16 bytes each, the lowest first."""
    import numpy as np
    import pyarrow as pa

    array = array.cast(pa.decimal128(_MAX_DECIMAL_DIGITS, type.scale))
    raw = array.buffers()[1] if len(array) else b""
    if type.precision <= _INT64_DIGITS:
        return np.frombuffer(raw, "<i8")[2 * array.offset : 2 * (array.offset + len(array)) : 2].astype(np.int64)
    data = bytes(raw)[16 * array.offset :]
    whole = [int.from_bytes(data[at : at + 16], "little", signed=True) for at in range(0, 16 * len(array), 16)]
    return np.array(whole, object)


def union(first: Stretches, second: Stretches) -> Stretches:
    """The union of two sets of stretches."""
    import numpy as np

    low, high = (np.concatenate(ends) for ends in zip(first, second, strict=True))
    if len(low) <= 1:
        return Stretches(low, high)
    order = np.argsort(low, kind="stable")
    low, reached = low[order], np.maximum.accumulate(high[order])
    starts = np.flatnonzero(low[1:] > reached[:-1]) + 1
    return Stretches(low[np.concatenate([[0], starts])], reached[np.append(starts - 1, len(low) - 1)])


def values_of(ends: np.ndarray, type: DataType) -> list[Value]:
    """Ends of stretches as values of `es_skipping.predicates.types`."""
    if type.name != "decimal":
        values: list[Value] = ends.tolist()
        return values
    return [Decimal((int(end < 0), tuple(map(int, str(abs(end)))), -type.scale)) for end in ends.tolist()]
