"""Limits the cost of a slow or dead store: a budget per query and a breaker per store."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager

from es_skipping.errors import StoreUnavailable

__all__ = ["Breaker", "Budgets"]


class Breaker:
    """Opens after repeated failures; after a pause lets one look-up try, and closes if that succeeds."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._failures = 0
        self._retry_at = 0.0
        self._trying = False

    @contextmanager
    def attempt(self, failures: int, pause: float) -> Iterator[None]:
        """Run the body as one look-up.

        Raises
        ------
        StoreUnavailable
            The breaker is open: the body does not run.
        """
        with self._lock:
            if self._failures >= failures:
                wait = self._retry_at - time.monotonic()
                if wait > 0 or self._trying:
                    raise StoreUnavailable(
                        f"the store failed {self._failures} times in a row; the next try is in {max(wait, 0):.0f} s"
                    )
                self._trying = True
        try:
            yield
        except Exception:
            with self._lock:
                self._failures += 1
                self._retry_at = time.monotonic() + pause
                self._trying = False
            raise
        with self._lock:
            self._failures = 0
            self._trying = False


class Budgets:
    """The time that each query's look-ups have taken so far."""

    _REMEMBERED = 1024

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._spent: OrderedDict[tuple[str, str], float] = OrderedDict()

    @contextmanager
    def spend(self, query: tuple[str, str] | None, budget: float) -> Iterator[float]:
        """Yield the seconds left, and charge the body's time to the query (None: a query of its own).

        Raises
        ------
        StoreUnavailable
            The budget is spent: the body does not run.
        """
        spent = 0.0
        if query is not None:
            with self._lock:
                spent = self._spent.get(query, 0.0)
        if spent >= budget:
            raise StoreUnavailable(f"this query's look-ups took {spent:.1f} s, its budget is {budget:g} s")
        start = time.monotonic()
        try:
            yield budget - spent
        finally:
            if query is not None:
                with self._lock:
                    self._spent[query] = self._spent.get(query, 0.0) + time.monotonic() - start
                    self._spent.move_to_end(query)
                    while len(self._spent) > self._REMEMBERED:
                        self._spent.popitem(last=False)
