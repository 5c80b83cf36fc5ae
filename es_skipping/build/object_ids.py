"""A number per object that Spark and Python compute alike, cheap to carry in each row.

A path per row would cost more than the data. Each row carries ``xxhash64(_metadata.file_path)`` instead, and the driver
computes the same numbers from the listing.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from typing import Final

__all__ = ["dataset_id", "encoded_path", "path_number", "xxhash64"]

_MASK: Final = (1 << 64) - 1
_P1: Final = 0x9E3779B185EBCA87
_P2: Final = 0xC2B2AE3D27D4EB4F
_P3: Final = 0x165667B19E3779F9
_P4: Final = 0x85EBCA77C2B2AE63
_P5: Final = 0x27D4EB2F165667C5
_SEED: Final = 42
"""Spark's seed for ``xxhash64`` of one column."""

_PLAIN: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.!~*'(),;:$&+=/@")


def dataset_id(name: str, place: str) -> str:
    """A readable and unique name of a dataset in the store.

    Parameters
    ----------
    name
        The readable part.
    place
        The whole location, which makes it unique.

    Examples
    --------
    >>> dataset_id("Events", "s3a://lake/Events")
    'events-652d4f1f872b'
    """
    readable = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")[:40]
    return f"{readable or 'dataset'}-{hashlib.sha256(place.encode('utf-8', 'surrogatepass')).hexdigest()[:12]}"


def encoded_path(path: str) -> str:
    """A path as ``_metadata.file_path`` shows it: Hadoop's ``Path.toUri().toString()``.

    Parameters
    ----------
    path
        Hadoop's decoded text, with scheme.

    Examples
    --------
    >>> encoded_path("file:/data/a b%20é.parquet")
    'file:/data/a%20b%2520é.parquet'
    """
    scheme, colon, rest = path.partition(":")
    if not colon or "/" in scheme:
        scheme, colon, rest = "", "", path
    authority = ""
    if rest.startswith("//"):
        end = rest.find("/", 2)
        authority, rest = (rest, "") if end < 0 else (rest[:end], rest[end:])
    if all(character in _PLAIN for character in rest):
        return path
    return scheme + colon + authority + "".join(map(_quoted, rest))


def _quoted(character: str) -> str:
    """Quote a path as ``java.net.URI`` does: beyond ASCII only spaces and control characters."""
    if character in _PLAIN:
        return character
    if ord(character) >= 0x80 and not ("\x80" <= character <= "\x9f") and unicodedata.category(character)[0] != "Z":
        return character
    return "".join(f"%{byte:02X}" for byte in character.encode("utf-8", "surrogatepass"))


def path_number(path: str) -> int:
    """The value of ``xxhash64(_metadata.file_path)`` in the rows of the object at a path."""
    return xxhash64(encoded_path(path).encode("utf-8", "surrogatepass"))


def xxhash64(data: bytes, seed: int = _SEED) -> int:
    """XXH64 (Yann Collet's specification) as a signed number, like Spark's.

    Examples
    --------
    >>> xxhash64(b"Spark")
    -4294468057691064905
    """
    length = len(data)
    at = 0
    if length >= 32:
        v1, v2, v3, v4 = (seed + _P1 + _P2) & _MASK, (seed + _P2) & _MASK, seed & _MASK, (seed - _P1) & _MASK
        while at + 32 <= length:
            v1 = _round(v1, int.from_bytes(data[at : at + 8], "little"))
            v2 = _round(v2, int.from_bytes(data[at + 8 : at + 16], "little"))
            v3 = _round(v3, int.from_bytes(data[at + 16 : at + 24], "little"))
            v4 = _round(v4, int.from_bytes(data[at + 24 : at + 32], "little"))
            at += 32
        total = (_left(v1, 1) + _left(v2, 7) + _left(v3, 12) + _left(v4, 18)) & _MASK
        for lane in (v1, v2, v3, v4):
            total = ((total ^ _round(0, lane)) * _P1 + _P4) & _MASK
    else:
        total = (seed + _P5) & _MASK
    total = (total + length) & _MASK
    while at + 8 <= length:
        total = (_left(total ^ _round(0, int.from_bytes(data[at : at + 8], "little")), 27) * _P1 + _P4) & _MASK
        at += 8
    if at + 4 <= length:
        total = (_left(total ^ (int.from_bytes(data[at : at + 4], "little") * _P1 & _MASK), 23) * _P2 + _P3) & _MASK
        at += 4
    for byte in data[at:]:
        total = _left(total ^ (byte * _P5 & _MASK), 11) * _P1 & _MASK
    total = (total ^ (total >> 33)) * _P2 & _MASK
    total = (total ^ (total >> 29)) * _P3 & _MASK
    total ^= total >> 32
    return total - (1 << 64) if total >> 63 else total


def _left(value: int, bits: int) -> int:
    return ((value << bits) | (value >> (64 - bits))) & _MASK


def _round(accumulator: int, lane: int) -> int:
    return _left((accumulator + lane * _P2) & _MASK, 31) * _P1 & _MASK
