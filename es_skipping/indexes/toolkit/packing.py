"""Packs the cells of an object with NumPy, as `es_skipping.clauses.fingerprints.pack` does cell by cell."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from es_skipping.clauses.fingerprints import low_bits

__all__ = ["packed"]


def packed(cells: npt.NDArray[np.uint64], space: int) -> bytes:
    """Cells in ascending order, each once, as bytes.

    Examples
    --------
    >>> from es_skipping.clauses.fingerprints import pack
    >>> packed(np.array([3, 70, 99], np.uint64), 100) == pack([3, 70, 99], 100)
    True
    """
    width = low_bits(space, len(cells))
    places = (cells >> np.uint64(width)).astype(np.int64) + np.arange(len(cells))
    highs = np.zeros(int(places[-1]) + 1 if len(places) else 0, np.uint8)
    highs[places] = 1
    return _lows(cells, width) + _bytes(highs)


def _lows(cells: npt.NDArray[np.uint64], width: int) -> bytes:
    if not width:
        return b""
    octets = cells.astype("<u8").view(np.uint8).reshape(-1, 8)[:, : (width + 7) >> 3]
    bits = np.unpackbits(octets, axis=1, bitorder="little")[:, :width]
    return _bytes(bits.reshape(-1))


def _bytes(bits: npt.NDArray[Any]) -> bytes:
    return np.packbits(bits, bitorder="little").tobytes()
