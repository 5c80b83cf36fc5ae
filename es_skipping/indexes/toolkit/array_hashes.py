"""Hashes whole arrays: `es_skipping.clauses.fingerprints.hash_of` of each value, computed with NumPy.

MurmurHash3 (x64, 128 bits) takes 16 bytes a step, and mixes the rest, filled up with zeros, in a last step. So one
array operation does a step of all values that take equally many. Arrays without such a form are hashed by mmh3, value
by value.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import mmh3
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from es_skipping.clauses.fingerprints import hash_of

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["hashes_of_array"]

_Words = npt.NDArray[np.uint64]

_C1, _C2 = np.uint64(0x87C37B91114253D5), np.uint64(0x4CF5AD432745937F)
_F1, _F2 = np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53)
_FIVE, _N1, _N2 = np.uint64(5), np.uint64(0x52DCE729), np.uint64(0x38495AB5)
_STEP_BYTES: Final = 16
_MIN_VALUES_PER_STEP: Final = 16
"""Fewer values with equally many steps are hashed by mmh3."""
_MAX_STEPS: Final = 64
"""Longer values are hashed by mmh3, which is the faster the longer they are."""
_VALUES_AT_ONCE: Final = 1 << 13
"""Values to hash at a time, so that what is computed stays in a CPU cache."""
_MAX_DIGITS_OF_INT64: Final = 18


def hashes_of_array(array: pa.Array) -> _Words:
    """The hash of each value of an array without nulls.

    Examples
    --------
    >>> hashes_of_array(pa.array(["a", "bc"])).tolist() == [hash_of("a"), hash_of("bc")]
    True
    """
    kind = array.type
    if not len(array):
        return np.zeros(0, np.uint64)
    if pa.types.is_integer(kind) and not pa.types.is_uint64(kind):
        return _of_integers(array.cast(pa.int64()).to_numpy(zero_copy_only=False))
    if pa.types.is_boolean(kind):
        return _of_integers(array.cast(pa.int8()).cast(pa.int64()).to_numpy(zero_copy_only=False))
    if pa.types.is_floating(kind):
        doubles = array.cast(pa.float64()).to_numpy(zero_copy_only=False) + 0.0
        return _of_words(doubles.view(np.uint64))
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return _of_bytes(array, np.int32)
    if pa.types.is_large_string(kind) or pa.types.is_large_binary(kind):
        return _of_bytes(array, np.int64)
    if pa.types.is_decimal128(kind) and kind.precision <= _MAX_DIGITS_OF_INT64 and kind.scale >= 0:
        return _of_decimals(array)
    return _one_by_one(array.to_pylist())


def _one_by_one(values: list[object]) -> _Words:
    return np.fromiter(map(hash_of, values), np.uint64, len(values))  # type: ignore[arg-type]


def _of_integers(values: npt.NDArray[np.int64]) -> _Words:
    found = _of_words(values.view(np.uint64))
    found[values == np.iinfo(np.int64).min] = hash_of(-(1 << 63))  # it is hashed as nine bytes
    return found


def _of_decimals(array: pa.Array) -> _Words:
    """Of decimals that fit into 64 bits: each is hashed as the text of its reduced fraction."""
    start = array.offset
    unscaled = np.frombuffer(array.buffers()[1], np.int64)[2 * start : 2 * (start + len(array)) : 2]
    scale = 10**array.type.scale
    common = np.gcd(unscaled, scale)
    parts = (pa.array(part).cast(pa.string()) for part in (unscaled // common, scale // common))
    return _of_bytes(pc.binary_join_element_wise(*parts, "/"), np.int32)


# --- MurmurHash3 --------------------------------------------------------------------------------------------------


def _of_words(words: _Words) -> _Words:
    """Of values of eight bytes each."""
    found = np.empty(len(words), np.uint64)
    length = np.uint64(8)
    for part in _parts(len(words)):
        found[part] = _finish(_mixed_1(words[part]), np.zeros(1, np.uint64), length)
    return found


def _of_bytes(array: pa.Array, width: type[np.signedinteger]) -> _Words:
    """Of strings and bytes."""
    ends = np.frombuffer(array.buffers()[1], width)[array.offset :][: len(array) + 1].astype(np.int64)
    first, last = int(ends[0]), int(ends[-1])
    data = array.buffers()[2]
    padded = np.zeros(last - first + _STEP_BYTES, np.uint8)
    if last > first:
        padded[: last - first] = np.frombuffer(data, np.uint8)[first:last]
    # The eight bytes from each byte on, as one number.
    words = np.ndarray((len(padded) - 7,), "<u8", buffer=padded, strides=(1,))
    starts, lengths = ends[:-1] - first, np.diff(ends)
    found = np.empty(len(array), np.uint64)
    steps = lengths >> 4
    if not steps.any():
        for part in _parts(len(array)):
            found[part] = _of_equal_steps(words, starts[part], lengths[part], 0)
        return found
    order = np.argsort(steps, kind="stable")
    bounds = np.flatnonzero(np.diff(steps[order], prepend=-1, append=-1))
    for begin, end in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        count = int(steps[order[begin]])
        if end - begin < _MIN_VALUES_PER_STEP or count > _MAX_STEPS:
            for at in order[begin:end].tolist():
                start = int(starts[at])
                found[at] = mmh3.hash64(padded[start : start + int(lengths[at])].tobytes(), signed=False)[0]
            continue
        for part in _parts(end - begin):
            those = order[begin:end][part]
            found[those] = _of_equal_steps(words, starts[those], lengths[those], count)
    return found


def _of_equal_steps(words: _Words, starts: npt.NDArray[np.int64], lengths: npt.NDArray[np.int64], steps: int) -> _Words:
    h1, h2 = np.zeros(len(starts), np.uint64), np.zeros(len(starts), np.uint64)
    for step in range(steps):
        at = starts + _STEP_BYTES * step
        h1 ^= _mixed_1(words[at])
        h1 = (_rotated(h1, 27) + h2) * _FIVE + _N1
        h2 ^= _mixed_2(words[at + 8])
        h2 = (_rotated(h2, 31) + h1) * _FIVE + _N2
    at, left = starts + _STEP_BYTES * steps, (lengths & (_STEP_BYTES - 1)).astype(np.uint64)
    eight = np.uint64(8)
    h1 ^= _mixed_1(_beginning(words[at], np.minimum(left, eight)))
    beyond = left > eight
    if beyond.any():
        h2[beyond] ^= _mixed_2(_beginning(words[at[beyond] + 8], left[beyond] - eight))
    return _finish(h1, h2, lengths.astype(np.uint64))


def _beginning(words: _Words, bytes: _Words) -> _Words:
    """The first ``bytes`` bytes of each word, at most eight, filled up with zeros."""
    missing = np.uint64(64) - bytes * np.uint64(8)
    kept: _Words = np.where(bytes > 0, words << (missing & np.uint64(63)) >> (missing & np.uint64(63)), np.uint64(0))
    return kept


def _mixed_1(k: _Words) -> _Words:
    mixed: _Words = _rotated(k * _C1, 31) * _C2
    return mixed


def _mixed_2(k: _Words) -> _Words:
    mixed: _Words = _rotated(k * _C2, 33) * _C1
    return mixed


def _rotated(words: _Words, bits: int) -> _Words:
    rotated: _Words = (words << np.uint64(bits)) | (words >> np.uint64(64 - bits))
    return rotated


def _finish(h1: _Words, h2: _Words, length: _Words | np.uint64) -> _Words:
    """The first half of the hash."""
    h1, h2 = h1 ^ length, h2 ^ length
    h1 = h1 + h2
    return _spread(h1) + _spread(h2 + h1)


def _spread(h: _Words) -> _Words:
    h = (h ^ (h >> np.uint64(33))) * _F1
    h = (h ^ (h >> np.uint64(33))) * _F2
    spread: _Words = h ^ (h >> np.uint64(33))
    return spread


def _parts(count: int) -> Iterator[slice]:
    return (slice(at, at + _VALUES_AT_ONCE) for at in range(0, count, _VALUES_AT_ONCE))
