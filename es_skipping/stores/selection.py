"""An answer over a table of identities: tens of bytes, or four for each object of the smaller side.

A look-up over a million objects need not name each of them. If reader and store share a table of the
identities, an answer is a set of ordinals in it: those to skip or, where they are fewer, those to keep. The table holds
exactly the objects whose metadata the store has *seen* in the view that answers, so "all in the table but these" is as
sound as naming them. An object that is not in the table is kept.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import threading
import time
import uuid
import weakref
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

__all__ = ["KEY_BYTES", "NO_KEY", "KeyTable", "Selection", "Selections", "split_keys"]

KEY_BYTES: Final = 16
NO_KEY: Final = bytes(KEY_BYTES)
"""Stands for an ordinal that no object has."""
_UNREAD_SECONDS: Final = 60.0
"""How long a table's file outlives the table: a reply that names it may be on its way to its reader."""


def split_keys(keys: bytes) -> frozenset[bytes]:
    """The keys that follow one another in some bytes."""
    return frozenset(keys[at : at + KEY_BYTES] for at in range(0, len(keys), KEY_BYTES))


class KeyTable:
    """Identities by ordinal.

    Parameters
    ----------
    keys
        16 bytes for each ordinal.
    live
        Which ordinals belong to an object. If two have the same key, the last counts.
    """

    def __init__(self, keys: bytes | bytearray, live: npt.NDArray[np.bool_]) -> None:
        count = len(live)
        packed = np.frombuffer(bytes(keys[: count * KEY_BYTES]), np.dtype((np.void, KEY_BYTES)))
        self.live = live & ~_twins(packed, live)
        self.objects = int(np.count_nonzero(self.live))
        self._keys = packed
        self.id = uuid.uuid4().hex
        self._lock = threading.Lock()
        self._file: _File | None = None

    def __len__(self) -> int:
        return len(self._keys)

    @property
    def nbytes(self) -> int:
        return int(self._keys.nbytes + self.live.nbytes)

    def keys(self, chosen: npt.NDArray[np.bool_]) -> bytes:
        """The keys of these ordinals, concatenated."""
        return self._keys[chosen].tobytes()

    def file(self) -> str:
        """A local file with all of it, 16 bytes for each ordinal and zeros for nobody; written once.

        It outlives the table by a minute at least, and is gone when another table's is written later, or with the
        process.
        """
        with self._lock:
            if self._file is None:
                image = self._keys.copy()
                image[~self.live] = NO_KEY
                self._file = _File(image.tobytes())
                weakref.finalize(self, _outlive, self._file).atexit = False
                _remove_outlived()
            return self._file.path


class _File:
    """A local file, gone when nobody refers to it."""

    def __init__(self, content: bytes) -> None:
        descriptor, self.path = tempfile.mkstemp(prefix="es-skipping-", suffix=".table")
        weakref.finalize(self, Path(self.path).unlink, missing_ok=True)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)


_OUTLIVING: Final = list[tuple[float, _File]]()
"""The files of tables that are gone, and since when."""


def _outlive(file: _File) -> None:
    _OUTLIVING.append((time.monotonic(), file))


def _remove_outlived() -> None:
    due = time.monotonic() - _UNREAD_SECONDS
    for one in _OUTLIVING.copy():
        if one[0] < due:
            with contextlib.suppress(ValueError):  # another thread was faster
                _OUTLIVING.remove(one)


def _twins(packed: npt.NDArray[np.void], live: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Live ordinals whose key a later ordinal also has: an object was removed and came back unchanged."""
    found = np.zeros(len(packed), np.bool_)
    places = np.flatnonzero(live)
    if not len(places):
        return found
    halves = np.frombuffer(packed.tobytes(), np.uint64).reshape(-1, 2)[places]
    first = halves[:, 0]
    ordered = np.sort(first)
    twice = ordered[1:][ordered[1:] == ordered[:-1]]
    # Keys are digests: nearly always this is enough, and `sort` takes a tenth of the time of `argsort`.
    if not len(twice):
        return found
    some = np.flatnonzero(np.isin(first, twice))
    places, halves = places[some], halves[some]
    order = np.lexsort((places, halves[:, 1], halves[:, 0]))
    ordered = halves[order]
    same = np.flatnonzero((ordered[1:] == ordered[:-1]).all(axis=1))
    found[places[order[same]]] = True
    return found


@dataclass(frozen=True, eq=False)
class Selection:
    """Objects of a table that may be skipped.

    Parameters
    ----------
    table
        The table that the ordinals refer to.
    ordinals
        Ascending, all of them live in the table.
    keep
        Whether these are to be kept and all others of the table skipped.
    """

    table: KeyTable
    ordinals: npt.NDArray[np.uint32]
    keep: bool

    @classmethod
    def of(cls, table: KeyTable, skip: npt.NDArray[np.bool_]) -> Selection:
        """The smaller way to skip those of these ordinals that are live."""
        skip = skip & table.live
        keep = 2 * int(np.count_nonzero(skip)) > table.objects
        return cls(table, np.flatnonzero(table.live & ~skip if keep else skip).astype(np.uint32), keep)

    @classmethod
    def keeping(cls, table: KeyTable, ordinals: npt.NDArray[np.int64]) -> Selection:
        """The smaller way to skip all live ordinals but these, which ascend; of few, without a look at all."""
        kept = ordinals[table.live[ordinals]]
        if 2 * len(kept) < table.objects:
            return cls(table, kept.astype(np.uint32), True)
        skip = np.ones(len(table), np.bool_)
        skip[kept] = False
        return cls.of(table, skip)

    @property
    def skipped(self) -> int:
        return self.table.objects - len(self.ordinals) if self.keep else len(self.ordinals)

    @property
    def nbytes(self) -> int:
        return int(self.ordinals.nbytes)

    def keys(self) -> bytes:
        """The keys of the objects to skip, concatenated."""
        chosen = np.zeros(len(self.table), np.bool_)
        chosen[self.ordinals] = True
        return self.table.keys(self.table.live & ~chosen if self.keep else chosen)


@dataclass(frozen=True, eq=False)
class Selections:
    """Objects of several tables that may be skipped; no object is in two of them."""

    parts: tuple[Selection, ...]

    @property
    def skipped(self) -> int:
        return sum(part.skipped for part in self.parts)

    def keys(self) -> bytes:
        """The keys of the objects to skip, concatenated."""
        return b"".join(part.keys() for part in self.parts)
