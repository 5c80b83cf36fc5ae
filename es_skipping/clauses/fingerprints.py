"""Fingerprints: values as cells of a space. A value that is absent rarely shares a cell with one that is present.

A value's 64-bit hash (MurmurHash3) picks one of ``space`` cells; the metadata of an object is the cells of its values.
With n values in a space of n/f cells, a value that the object does not hold meets a cell of it with a probability of
about f. A set of cells is packed as Elias and Fano do: the low bits of each as they are, the high bits as a run of ones
and zeros, together 2 + log2(space / count) bits a cell or less (Elias, *Efficient Storage and Retrieval by Content and
Address of Static Files*, JACM 1974; Vigna, *Quasi-succinct Indices*, WSDM 2013, section 3).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Final

import mmh3

from es_skipping.predicates.types import Value

__all__ = ["canonical", "cell_of", "cells_of", "hash_of", "last_cell", "low_bits", "pack", "space_for"]

_HASH_BITS: Final = 64
_MAX_HASH: Final = (1 << _HASH_BITS) - 1


def canonical(value: Value) -> bytes:
    """A value as bytes; equal values of one type have equal bytes.

    Examples
    --------
    >>> canonical(Decimal("1.50")) == canonical(Decimal("1.5")), canonical(0.0) == canonical(-0.0)
    (True, True)

    Raises
    ------
    ValueError
        Text with half a surrogate pair, which no file can hold.
    """
    if isinstance(value, str):
        return value.encode("utf-8")
    if isinstance(value, bytes):
        return value
    if isinstance(value, float):
        return struct.pack("<d", value + 0.0)
    if isinstance(value, Decimal):
        return b"%d/%d" % value.as_integer_ratio()
    return int(value).to_bytes(max(8, value.bit_length() // 8 + 1), "little", signed=True)


def hash_of(value: Value) -> int:
    """A 64-bit hash of a value; equal values of one type have equal hashes.

    Raises
    ------
    ValueError
        As of `canonical`.
    """
    found: int = mmh3.hash64(canonical(value))[0]
    return found & _MAX_HASH


def cell_of(hash: int, space: int) -> int:
    """The cell of a hash: its place in the space, as it lies among all hashes."""
    return hash * space >> _HASH_BITS


def space_for(count: int, fpp: float) -> int:
    """The space for this many values: that of the next power of two, so that objects of similar size share a space.

    Examples
    --------
    >>> space_for(1000, 0.01), space_for(1024, 0.01)
    (102400, 102400)
    """
    return max(1, round((1 << max(count - 1, 0).bit_length()) / fpp))


def low_bits(space: int, count: int) -> int:
    """The number of low bits that each of ``count`` cells keeps as they are."""
    return max(space // max(count, 1), 1).bit_length() - 1


def pack(cells: Sequence[int], space: int) -> bytes:
    """Cells in ascending order, each once, as bytes.

    Examples
    --------
    >>> packed = pack([3, 70, 99], 100)
    >>> len(packed), list(cells_of(packed, 100, 3))
    (3, [3, 70, 99])
    """
    width = low_bits(space, len(cells))
    mask = (1 << width) - 1
    lows = bytearray()
    pending = bits = 0
    highs = bytearray((len(cells) + (space >> width) + 8) >> 3)
    for at, cell in enumerate(cells):
        pending |= (cell & mask) << bits
        bits += width
        while bits >= 8:
            lows.append(pending & 0xFF)
            pending >>= 8
            bits -= 8
        place = (cell >> width) + at
        highs[place >> 3] |= 1 << (place & 7)
    if bits:
        lows.append(pending)
    return bytes(lows) + bytes(highs).rstrip(b"\0")


def cells_of(packed: bytes, space: int, count: int) -> Iterator[int]:
    """The cells that `pack` was given, one after the other.

    Raises
    ------
    ValueError
        These bytes were not made by `pack`, for such a space and count.
    """
    width = low_bits(space, count)
    split = (count * width + 7) >> 3
    lows, highs = packed[:split] + bytes(8), packed[split:]
    if sum(byte.bit_count() for byte in highs) != count:
        raise ValueError(f"these are not {count} packed cells")
    mask = (1 << width) - 1
    at = 0
    for number, byte in enumerate(highs):
        while byte:
            place = 8 * number + (byte & -byte).bit_length() - 1
            byte &= byte - 1
            start = at * width
            window = int.from_bytes(lows[start >> 3 : (start >> 3) + 9], "little") >> (start & 7)
            yield ((place - at) << width) | (window & mask)
            at += 1


def last_cell(packed: bytes, space: int, count: int) -> int:
    """The largest of the cells that `pack` was given, without unpacking the others.

    Examples
    --------
    >>> last_cell(pack([3, 70, 99], 100), 100, 3)
    99

    Raises
    ------
    ValueError
        These bytes were not made by `pack`, for such a space and count, or there is no cell.
    """
    width = low_bits(space, count)
    split = (count * width + 7) >> 3
    highs = int.from_bytes(packed[split:], "little")
    if count < 1 or highs.bit_count() != count:
        raise ValueError(f"these are not {count} packed cells")
    start = (count - 1) * width
    low = int.from_bytes(packed[start >> 3 : split], "little") >> (start & 7)
    return ((highs.bit_length() - count) << width) | low
