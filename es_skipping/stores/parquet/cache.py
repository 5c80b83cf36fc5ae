"""A cache for immutable files, limited in bytes, which evicts the least recently used first."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

__all__ = ["ByteCache"]

V = TypeVar("V")


class ByteCache(Generic[V]):
    """A bounded cache. Safe to use from several threads; if two miss at once, both load and one result stays.

    Parameters
    ----------
    limit
        Limit in bytes; a larger value is not kept.

    Examples
    --------
    >>> cache: ByteCache[str] = ByteCache(10)
    >>> cache.get("a", lambda: ("loaded", 6))
    'loaded'
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._held: OrderedDict[Hashable, tuple[V, int]] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def get(self, key: Hashable, load: Callable[[], tuple[V, int]]) -> V:
        """The value of a key; if it is missing, ``load`` returns it with its size in bytes."""
        with self._lock:
            held = self._held.get(key)
            if held is not None:
                self._held.move_to_end(key)
                return held[0]
        value, size = load()
        with self._lock:
            if key not in self._held and size <= self._limit:
                self._held[key] = (value, size)
                self._bytes += size
                while self._bytes > self._limit:
                    _, (_, freed) = self._held.popitem(last=False)
                    self._bytes -= freed
        return value

    def clear(self) -> None:
        with self._lock:
            self._held.clear()
            self._bytes = 0

    @property
    def nbytes(self) -> int:
        return self._bytes
