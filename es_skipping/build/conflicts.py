"""Tries a change again after another writer's."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Final, TypeVar

from es_skipping.errors import StoreConflict

__all__ = ["retry_conflicts"]

_ATTEMPTS: Final = 6
"""Attempts at a change while other writers publish."""
_WAIT_SECONDS: Final = 0.2
"""Longest wait in seconds after the first conflict; each further conflict doubles it."""

_T = TypeVar("_T")


def retry_conflicts(change: Callable[[], _T]) -> _T:
    """Make a change, from the start again if another writer published meanwhile; what it returns.

    The waits are random and grow with each attempt, so that two writers separate.

    Raises
    ------
    StoreConflict
        The last attempt failed too.
    """
    for longest in (_WAIT_SECONDS * 2.0**attempt for attempt in range(_ATTEMPTS - 1)):
        try:
            return change()
        except StoreConflict:
            time.sleep(random.uniform(0, longest))  # noqa: S311 - not a secret
    return change()
