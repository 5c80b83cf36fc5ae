"""Fair turns: sessions that share a process get its look-up slots in rotation."""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["Turns"]


class Turns:
    """A limit of what runs at once. Free slots go to the waiting owners in rotation, not to the loudest.

    Parameters
    ----------
    at_once
        Number of slots.

    Examples
    --------
    >>> turns = Turns(1)
    >>> with turns.turn("session 1", seconds=1):
    ...     "looking up"
    'looking up'
    """

    def __init__(self, at_once: int) -> None:
        self._free = at_once
        self._lock = threading.Lock()
        self._waiting: OrderedDict[str, deque[threading.Event]] = OrderedDict()

    @contextmanager
    def turn(self, owner: str, seconds: float) -> Iterator[None]:
        """Hold a slot.

        Parameters
        ----------
        owner
            Who asks: within an owner, the first to ask is the first served.
        seconds
            Limit of the wait.

        Raises
        ------
        TimeoutError
            No slot became free in time.
        """
        self._take(owner, seconds)
        try:
            yield
        finally:
            self._give()

    def _take(self, owner: str, seconds: float) -> None:
        with self._lock:
            if self._free:
                self._free -= 1
                return
            given = threading.Event()
            self._waiting.setdefault(owner, deque()).append(given)
        if given.wait(seconds):
            return
        with self._lock:
            if given.is_set():  # at the last moment
                return
            queue = self._waiting[owner]
            queue.remove(given)
            if not queue:
                del self._waiting[owner]
        raise TimeoutError(f"look-ups of {len(self._waiting) + 1} sessions wait for their turn")

    def _give(self) -> None:
        with self._lock:
            if not self._waiting:
                self._free += 1
                return
            owner, queue = self._waiting.popitem(last=False)
            queue.popleft().set()
            if queue:
                self._waiting[owner] = queue  # at the end
