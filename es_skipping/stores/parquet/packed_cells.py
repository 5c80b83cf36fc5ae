"""Searches the packed cells of many objects, without unpacking them.

`es_skipping.clauses.fingerprints.pack` writes the high parts of a row's ascending cells in unary: each cell adds a one
bit, each step to the next high part a zero bit. So the cells with one high part are the run of ones after the zero of
that number. A binary search over the counts of zeros finds the zero, and only the cells of that run are compared.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

__all__ = ["PackedCells"]

_Ints = npt.NDArray[np.int64]
_Bytes = npt.NDArray[np.uint8]
_BITS: Final[_Bytes] = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1, bitorder="little")
_ONES: Final[_Bytes] = _BITS.sum(axis=1, dtype=np.uint8)
_ZERO_AT: Final[_Bytes] = np.argsort(_BITS, axis=1, kind="stable").astype(np.uint8)
"""By byte and n, the place of its zero number n."""


class PackedCells:
    """The cells of many rows, one row after the other.

    Parameters
    ----------
    column
        Rows packed by `es_skipping.clauses.fingerprints.pack`; null for rows without cells.
    spaces, counts
        The space and the number of cells of each row.

    Raises
    ------
    ValueError
        `pack` did not make the bytes.

    Examples
    --------
    >>> from es_skipping.clauses.fingerprints import pack
    >>> column = pa.array([pack([3, 70, 99], 100), None, pack([5], 100)], pa.binary())
    >>> cells = PackedCells(column, np.array([100, 0, 100]), np.array([3, 0, 1]))
    >>> cells.hold(np.array([0, 2]), np.array([70, 70], np.uint64)).tolist()
    [True, False]
    """

    def __init__(self, column: pa.BinaryArray, spaces: _Ints, counts: _Ints) -> None:
        if (counts < 0).any() or (counts[column.is_null().to_numpy(zero_copy_only=False)] > 0).any():
            raise ValueError("a row has cells, or a number of them, where the other is missing")
        ends = np.frombuffer(column.buffers()[1], np.int32)[column.offset :][: len(column) + 1].astype(np.int64)
        data = column.buffers()[2]
        self._packed: _Bytes = np.frombuffer(data, np.uint8) if data is not None else np.zeros(0, np.uint8)
        ratio = np.maximum(spaces // np.maximum(counts, 1), 1)
        self._widths = np.frexp(ratio.astype(np.float64))[1].astype(np.int64) - 1  # exact below 2^53
        self._lows, splits = ends[:-1], ends[:-1] + ((counts * self._widths + 7) >> 3)
        lengths = ends[1:] - splits
        if (lengths < 0).any():
            raise ValueError("a row is shorter than the low bits of its cells")
        self._starts = np.concatenate([[0], np.cumsum(lengths)])
        self._highs = self._packed[np.arange(self._starts[-1]) + np.repeat(splits - self._starts[:-1], lengths)]
        narrow = np.int32 if counts.sum() < 1 << 31 else np.int64
        self._ones: npt.NDArray[Any] = np.zeros(len(self._highs) + 1, narrow)
        np.cumsum(_ONES[self._highs], out=self._ones[1:])
        if not np.array_equal(np.diff(self._ones[self._starts]), counts):
            raise ValueError("a row has another number of cells than it says")

    @property
    def nbytes(self) -> int:
        parts = (self._packed, self._widths, self._lows, self._starts, self._highs, self._ones)
        return sum(part.nbytes for part in parts)

    def hold(self, rows: _Ints, cells: npt.NDArray[np.uint64]) -> npt.NDArray[np.bool_]:
        """For each pair of a row and a cell, whether the row has the cell."""
        widths = self._widths[rows]
        low = cells & ((np.uint64(1) << widths.astype(np.uint64)) - np.uint64(1))
        high = (cells >> widths.astype(np.uint64)).astype(np.int64)
        place = self._run(rows, high)
        end = 8 * self._starts[rows + 1]
        number = place - 8 * self._starts[rows] - high  # of the cell among its row's
        held = np.zeros(len(rows), np.bool_)
        left = np.flatnonzero(place < end)
        while len(left):
            at = place[left]
            left = left[(self._highs[at >> 3] >> (at & 7).astype(np.uint8)) & 1 == 1]
            held[left] = self._low(rows[left], number[left]) == low[left]
            left = left[~held[left]]
            place[left] += 1
            number[left] += 1
            left = left[place[left] < end[left]]
        return held

    def _run(self, rows: _Ints, high: _Ints) -> _Ints:
        """The first bit of the run of each row's cells with this high part; behind the row's last bit if none has."""
        first, last = self._starts[rows], self._starts[rows + 1]
        before = 8 * first - self._ones[first]  # zeros in the rows before
        wanted = before + high
        low, above = first, last + 1
        for _ in range(int((last - first).max(initial=0) + 1).bit_length()):  # the last byte with fewer zeros before it
            middle = (low + above) >> 1
            fewer = 8 * middle - self._ones[middle] < wanted
            low, above = np.where(fewer, middle, low), np.where(fewer, above, middle)
        place = np.where(high > 0, 8 * last, 8 * first)
        inside = (high > 0) & (low < last)
        at = low[inside]
        nth = wanted[inside] - (8 * at - self._ones[at]) - 1
        place[inside] = 8 * at + _ZERO_AT[self._highs[at], nth] + 1
        return place

    def _low(self, rows: _Ints, number: _Ints) -> npt.NDArray[np.uint64]:
        """The low bits of a row's cell of that number."""
        widths = self._widths[rows]
        start = number * widths
        at, shift = self._lows[rows] + (start >> 3), (start & 7).astype(np.uint64)
        window = np.zeros(len(rows), np.uint64)
        for byte in range((int(widths.max(initial=0)) + 14) >> 3):
            part = self._packed[np.minimum(at + byte, len(self._packed) - 1)].astype(np.uint64)
            window |= part << (np.uint64(8 * byte) - shift) if byte else part >> shift
        low: npt.NDArray[np.uint64] = window & ((np.uint64(1) << widths.astype(np.uint64)) - np.uint64(1))
        return low
