"""Unpacks the packed cells of many objects at once."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

__all__ = ["unpacked"]

_CHUNK_BYTES = 1 << 16
"""Bytes to expand into bits at a time: the result, about sixty times as large, should fit in a CPU cache."""


def unpacked(
    column: pa.BinaryArray, spaces: npt.NDArray[np.int64], counts: npt.NDArray[np.int64]
) -> npt.NDArray[np.uint32] | npt.NDArray[np.uint64] | None:
    """The cells of all rows, one row after the other; None if `pack` did not make the bytes.

    Parameters
    ----------
    column
        Rows packed by `es_skipping.clauses.fingerprints.pack`; null for rows without cells.
    spaces, counts
        The space and the number of cells of each row.

    Examples
    --------
    >>> from es_skipping.clauses.fingerprints import pack
    >>> column = pa.array([pack([3, 70, 99], 100), None, pack([5], 100)], pa.binary())
    >>> unpacked(column, np.array([100, 0, 100]), np.array([3, 0, 1])).tolist()
    [3, 70, 99, 5]
    """
    wide = np.uint32 if spaces.max(initial=0) <= 1 << 32 else np.uint64
    if (counts < 0).any() or (counts[column.is_null().to_numpy(zero_copy_only=False)] > 0).any():
        return None
    parts = [np.zeros(0, wide)]
    ends = np.frombuffer(column.buffers()[1], np.int32)[column.offset :][: len(column) + 1].astype(np.int64)
    data = column.buffers()[2]
    for first, last in _pieces(ends):
        raw = np.frombuffer(data, np.uint8)[ends[first] : ends[last]] if data is not None else np.zeros(0, np.uint8)
        part = _unpacked(raw, ends[first : last + 1] - ends[first], spaces[first:last], counts[first:last])
        if part is None:
            return None
        parts.append(part.astype(wide))
    return np.concatenate(parts)


def _pieces(ends: npt.NDArray[np.int64]) -> list[tuple[int, int]]:
    """Runs of rows with a limited number of bytes."""
    found, first = [], 0
    while first < len(ends) - 1:
        last = max(first + 1, int(np.searchsorted(ends, ends[first] + _CHUNK_BYTES, side="right")) - 1)
        found.append((first, last))
        first = last
    return found


def _unpacked(
    raw: npt.NDArray[np.uint8],
    ends: npt.NDArray[np.int64],
    spaces: npt.NDArray[np.int64],
    counts: npt.NDArray[np.int64],
) -> npt.NDArray[np.uint64] | None:
    ratio = np.maximum(spaces // np.maximum(counts, 1), 1)
    widths = np.frexp(ratio.astype(np.float64))[1].astype(np.int64) - 1  # exact below 2^53
    splits = ends[:-1] + ((counts * widths + 7) >> 3)
    if (splits > ends[1:]).any():
        return None
    steps = np.zeros(len(raw) + 1, np.int8)
    np.add.at(steps, ends[:-1], 1)
    np.add.at(steps, splits, -1)
    is_low = np.cumsum(steps[:-1], dtype=np.int64) > 0
    ones = np.flatnonzero(np.unpackbits(np.where(is_low, np.uint8(0), raw), bitorder="little"))
    row = np.repeat(np.arange(len(counts)), counts)
    if len(ones) != len(row) or not np.array_equal(np.searchsorted(ends[1:], ones >> 3, side="right"), row):
        return None
    rank = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)
    high = ones - 8 * splits[row] - rank
    width = widths[row]
    start = rank * width
    padded = np.concatenate([raw, np.zeros(8, np.uint8)])
    window = np.zeros(len(row), np.uint64)
    at = ends[row] + (start >> 3)
    for byte in range((int(widths.max(initial=0)) + 14) >> 3):
        window |= padded[np.minimum(at + byte, len(padded) - 1)].astype(np.uint64) << np.uint64(8 * byte)
    width = width.astype(np.uint64)
    low = (window >> (start & 7).astype(np.uint64)) & ((np.uint64(1) << width) - np.uint64(1))
    cells: npt.NDArray[np.uint64] = (high.astype(np.uint64) << width) | low
    return cells
