"""Replies to the shim, as bytes (``docs/decisions/0001-bridge-protocol.md``)."""

from __future__ import annotations

import struct
import tempfile
from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np

from es_skipping.stores.base import KEY_BYTES, Answer
from es_skipping.stores.selection import Selection, Selections

__all__ = ["PROTOCOL", "body", "failed", "nothing", "skip", "skip_beyond", "skip_row_groups", "unindexed"]

PROTOCOL: Final = 2
_NOTHING, _INLINE, _FILE, _FAILED, _UNINDEXED, _BEYOND, _BEYOND_FILE, _GROUPS, _GROUPS_FILE = range(9)
_KEYS, _SKIP, _KEEP, _OTHERS = range(4)
_INLINE_BYTES: Final = 1 << 20
"""Larger content goes through a local file, because py4j would carry it as base64 text."""
_MAX_ROW_GROUPS: Final = 1 << 20
"""At most this many row groups are named in one reply, at 16 bytes each; with more, their files are read whole."""
_MAX_NAMED_OBJECTS: Final = 4_096
"""At most this many objects are named by their keys; more are named by ordinals in a table that the JVM reads."""


def nothing(reason: str) -> bytes:
    """The reply that skips nothing."""
    return _text(_NOTHING, reason)


def unindexed(seconds: float) -> bytes:
    """The reply for a scan that is not indexed; the shim may cache it for the given seconds.

    Examples
    --------
    >>> unindexed(30.0).hex(" ")
    '02 04 00 00 75 30'
    """
    return bytes((PROTOCOL, _UNINDEXED)) + struct.pack(">I", max(0, min(int(seconds * 1000), 0xFFFFFFFF)))


def failed(reason: str) -> bytes:
    """The reply for a look-up that failed."""
    return _text(_FAILED, reason)


def skip(answers: Iterable[Sequence[Answer]]) -> bytes:
    """The reply for the datasets' answers to each entry of the request's filters; one that rules an object out
    suffices."""
    return _sized(_INLINE, _FILE, body(answers))


def skip_beyond(answers: Iterable[Sequence[Answer]], guarantors: Sequence[bytes], answer: Answer | None) -> bytes:
    """The reply that skips more if the scan lists objects that hold enough rows.

    Parameters
    ----------
    answers
        As of `skip`: what may be skipped in any case.
    guarantors
        The keys of the objects that hold the rows.
    answer
        What else may be skipped then; None is every object that is not a guarantor.
    """
    keys = struct.pack(">I", len(guarantors)) + b"".join(guarantors)
    beyond = struct.pack(">IB", 1, _OTHERS) + keys if answer is None else body([[answer]])
    return _sized(_BEYOND, _BEYOND_FILE, keys + body(answers) + beyond)


def skip_row_groups(answers: Iterable[Sequence[Answer]], groups: Sequence[Sequence[Answer]]) -> bytes:
    """The reply that also skips row groups of the files that are read.

    Parameters
    ----------
    answers
        As of `skip`.
    groups
        For each entry of the request's filters, the datasets' answers about their row groups.
    """
    left = _MAX_ROW_GROUPS
    parts: list[bytes] = []
    for entry in groups:
        count = sum(answer.skipped for answer in entry)
        named = b"".join(answer.skip for answer in entry) if count <= left else b""
        keys = np.unique(np.frombuffer(named, np.dtype((np.bytes_, KEY_BYTES))))
        parts += [struct.pack(">I", len(keys)), keys.tobytes()]
        left -= len(keys)
    return _sized(_GROUPS, _GROUPS_FILE, b"".join(parts) + body(answers))


def _sized(inline: int, in_a_file: int, content: bytes) -> bytes:
    if len(content) <= _INLINE_BYTES:
        return bytes((PROTOCOL, inline)) + content
    with tempfile.NamedTemporaryFile(prefix="es-skipping-", suffix=".keys", delete=False) as file:
        file.write(content)
    return _text(in_a_file, file.name)


def body(answers: Iterable[Sequence[Answer]]) -> bytes:
    """The content of a reply that names objects.

    Examples
    --------
    >>> body([[Answer(bytes(16), 1)], []]).hex(" ", 4)
    '00 00000100 00000001 00000000 00000000 00000000 00000000 00000000'
    """
    parts: list[bytes] = []
    for entry in answers:
        found = [one for answer in entry for one in _sets(answer)]
        parts.append(struct.pack(">I", len(found)))
        for one in found:
            parts += _part(one)
    return b"".join(parts)


def _sets(answer: Answer) -> Sequence[bytes | Selection]:
    return answer.found.parts if isinstance(answer.found, Selections) else [answer.found]


def _part(found: bytes | Selection) -> list[bytes]:
    if isinstance(found, bytes) or found.skipped <= _MAX_NAMED_OBJECTS:
        keys = found if isinstance(found, bytes) else found.keys()
        return [struct.pack(">BI", _KEYS, len(keys) // KEY_BYTES), keys]
    table = found.table
    name, path = table.id.encode("ascii"), table.file().encode("utf-8", "surrogateescape")
    return [
        struct.pack(">BH", _KEEP if found.keep else _SKIP, len(name)),
        name,
        struct.pack(">H", len(path)),
        path,
        struct.pack(">II", len(table), len(found.ordinals)),
        found.ordinals.astype(">u4").tobytes(),
    ]


def _text(kind: int, text: str) -> bytes:
    return bytes((PROTOCOL, kind)) + text.encode("utf-8", "replace")
