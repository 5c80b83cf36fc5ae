"""Holds the identities of very many objects in little memory."""

from __future__ import annotations

import json
import zlib
from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Final, overload

import numpy as np
import numpy.typing as npt

from es_skipping.catalog import ObjectId
from es_skipping.stores.base import KEY_BYTES

__all__ = ["Keys", "ObjectList", "as_keys", "is_among"]

Keys = npt.NDArray[np.bytes_]
"""Keys of objects, `KEY_BYTES` each."""

_PAGE: Final = 4_096
_KEY: Final = np.dtype(("S", KEY_BYTES))


def as_keys(packed: bytes | bytearray) -> Keys:
    """Concatenated keys as an array."""
    return np.frombuffer(bytes(packed), _KEY)


def is_among(keys: Keys, others: Keys) -> npt.NDArray[np.bool_]:
    """Whether each key is among the others, which are sorted."""
    if not len(others):
        return np.zeros(len(keys), np.bool_)
    at = np.minimum(np.searchsorted(others, keys), len(others) - 1)
    same: npt.NDArray[np.bool_] = others[at] == keys
    return same


class ObjectList(Sequence[ObjectId]):
    """Objects in an order, each with its key; paths are kept compressed, a page of some thousands at a time.

    Some 40 bytes an object, where a list of `ObjectId` takes 300.

    Attributes
    ----------
    keys, mtimes
        In the same order.

    Examples
    --------
    >>> objects = ObjectList([ObjectId("file:/a", 10, 1), ObjectId("file:/b", 20, 2)])
    >>> len(objects), objects[-1].path, len(objects.keys)
    (2, 'file:/b', 2)
    """

    def __init__(self, objects: Iterable[ObjectId] = ()) -> None:
        self._pages: list[bytes] = []
        self._last: tuple[int, list[ObjectId]] = (-1, [])
        packed, mtimes = bytearray(), array("q")
        left = iter(objects)
        while page := list(islice(left, _PAGE)):
            packed += b"".join(one.key for one in page)
            mtimes.extend(one.mtime for one in page)
            rows = json.dumps([(one.path, one.length, one.mtime) for one in page], separators=(",", ":"))
            self._pages.append(zlib.compress(rows.encode("ascii"), 1))
        self.keys = as_keys(packed)
        self.mtimes = np.array(mtimes, np.int64)

    def __len__(self) -> int:
        return len(self.keys)

    def _page(self, number: int) -> list[ObjectId]:
        last, page = self._last  # both at once: threads may read this list together
        if last != number:
            rows = json.loads(zlib.decompress(self._pages[number]))
            page = [ObjectId(path, length, mtime) for path, length, mtime in rows]
            self._last = number, page
        return page

    def __iter__(self) -> Iterator[ObjectId]:
        for number in range(len(self._pages)):
            yield from self._page(number)

    @overload
    def __getitem__(self, at: int) -> ObjectId: ...
    @overload
    def __getitem__(self, at: slice) -> list[ObjectId]: ...
    def __getitem__(self, at: int | slice) -> ObjectId | list[ObjectId]:
        if isinstance(at, slice):
            return [self[place] for place in range(*at.indices(len(self)))]
        place = range(len(self))[at]
        return self._page(place // _PAGE)[place % _PAGE]

    def those(self, chosen: npt.NDArray[np.bool_]) -> ObjectList:
        """The chosen objects, in their order. Choosing all returns this list itself."""
        return self if chosen.all() else ObjectList(self[place] for place in np.flatnonzero(chosen).tolist())
