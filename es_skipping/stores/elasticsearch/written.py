"""The objects that a change has written so far: some 50 bytes each, however long the path and rich the metadata."""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from es_skipping.catalog import ObjectId, ObjectMetadata
from es_skipping.stores.base import KEY_BYTES
from es_skipping.stores.elasticsearch.state import Segment

__all__ = ["RUN", "Written", "noted", "path_number", "runs", "without_repeats"]

RUN: Final = 65_536
"""Keys in one segment, at most."""
_NONE: Final = -1


def path_number(path: str) -> int:
    """A 64-bit hash of a path. If two paths have the same hash, the first one put becomes unknown, and is kept."""
    data = path.encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "big")


class Written:
    """Objects in the order they were written, found again by path.

    Paths' numbers lie in sorted runs, each at least twice as long as the next, so that finding and adding cost a
    logarithm, and no Python object is held for an object of the dataset.

    Examples
    --------
    >>> written = Written()
    >>> written.add([(7, ObjectId("file:/a", 10, 1))])
    >>> [written.ordinal(place) for place in written.find(["file:/a", "file:/b"]) if place is not None]
    [7]
    """

    def __init__(self) -> None:
        self._ordinals = array("q")
        self._lengths = array("q")
        self._keys = bytearray()
        self._runs: list[tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]] = []
        self.objects = 0
        self.bytes = 0
        self.top = 0
        """One more than the highest ordinal."""

    def add(self, objects: Sequence[tuple[int, ObjectId]]) -> None:
        """Objects with their ordinals; no path among them twice, nor one that is there and was not `forget`-ed."""
        first = len(self._ordinals)
        for ordinal, id in objects:
            self._ordinals.append(ordinal)
            self._lengths.append(id.length)
            self._keys += id.key
            self.bytes += id.length
            self.top = max(self.top, ordinal + 1)
        self.objects += len(objects)
        numbers = np.array([path_number(id.path) for _, id in objects], np.uint64)
        places = np.arange(first, first + len(objects), dtype=np.int64)
        while self._runs and len(self._runs[-1][0]) < 2 * len(numbers):
            more, where = self._runs.pop()
            numbers, places = np.concatenate([more, numbers]), np.concatenate([where, places])
        order = np.argsort(numbers, kind="stable")
        self._runs.append((numbers[order], places[order]))

    def find(self, paths: Sequence[str]) -> list[int | None]:
        """Where each of these paths was written last; None if it was not written, or is forgotten."""
        numbers = np.array([path_number(path) for path in paths], np.uint64)
        found: list[int | None] = [None] * len(paths)
        for sorted_numbers, places in self._runs:
            last = np.searchsorted(sorted_numbers, numbers, "right") - 1
            same = (last >= 0) & (sorted_numbers[np.maximum(last, 0)] == numbers)
            for at in np.flatnonzero(same).tolist():
                place = int(places[last[at]])
                before = found[at]
                if self._ordinals[place] != _NONE and (before is None or before < place):
                    found[at] = place
        return found

    def ordinal(self, place: int) -> int:
        return self._ordinals[place]

    def key(self, place: int) -> bytes:
        return bytes(self._keys[place * KEY_BYTES : (place + 1) * KEY_BYTES])

    def forget(self, place: int) -> None:
        """Its ordinal is not to be published; a second call does nothing."""
        if self._ordinals[place] == _NONE:
            return
        self._ordinals[place] = _NONE
        self.objects -= 1
        self.bytes -= self._lengths[place]

    def alive(self) -> npt.NDArray[np.bool_]:
        """By ordinal, whether it is to be published."""
        found = np.zeros(max(self.top, 1), np.bool_)
        ordinals = np.array(self._ordinals, np.int64)
        found[ordinals[ordinals != _NONE]] = True
        return found

    def by_ordinal(self) -> Iterator[tuple[int, bytes]]:
        """Ordinals and keys of all that is to be published, ascending."""
        if not self._ordinals:
            return
        for place in np.argsort(np.array(self._ordinals), kind="stable").tolist():
            if self._ordinals[place] != _NONE:
                yield self._ordinals[place], self.key(place)


def runs(keys: Iterable[tuple[int, bytes]], token: str) -> Iterator[tuple[Segment, bytes]]:
    """Keys in the order of their ordinals, packed, in segments of the change that has this token; small holes are
    filled with zeros, which are no key."""
    first, run = 0, bytearray()
    for ordinal, key in keys:
        ahead = (ordinal - first) * KEY_BYTES
        if run and (ordinal - first >= RUN or ahead > 2 * len(run) + 1024):
            yield Segment(first, len(run) // KEY_BYTES, token), bytes(run)
            run.clear()
        if not run:
            first, ahead = ordinal, 0
        run.extend(bytes(ahead - len(run)))
        run += key
    if run:
        yield Segment(first, len(run) // KEY_BYTES, token), bytes(run)


def noted(found: Iterable[tuple[Segment, bytes]], made: list[Segment]) -> Iterator[tuple[Segment, bytes]]:
    """The same runs; their segments are added to ``made`` as they pass."""
    for segment, run in found:
        made.append(segment)
        yield segment, run


def without_repeats(batch: list[ObjectMetadata]) -> Iterator[list[ObjectMetadata]]:
    """The batch in parts in which no path comes twice."""
    part: list[ObjectMetadata] = []
    seen: set[str] = set()
    for one in batch:
        if one.id.path in seen:
            yield part
            part, seen = [], set()
        part.append(one)
        seen.add(one.id.path)
    yield part
