"""Which listed objects have an identity that can be trusted.

A writer can change an object without a trace while it is younger than twice the file system's time resolution. Git
protects its index by the same rule.
"""

from __future__ import annotations

import time
from typing import Final

from es_skipping.catalog import ObjectId
from es_skipping.stores.object_list import ObjectList

__all__ = ["split_settled", "wait_until_settled"]

_FINE_MS: Final = 10
"""Local file systems report milliseconds or better, from a clock that ticks some hundred times a second."""
_COARSE_MS: Final = 1000


def _unsettled_ms(objects: ObjectList) -> int:
    return 2 * (_FINE_MS if (objects.mtimes % 1000).any() else _COARSE_MS)


def wait_until_settled(objects: ObjectList) -> bool:
    """Wait briefly if objects are so new that they can change within their time stamp; True says to list them again."""
    span = _unsettled_ms(objects)
    wait = int(objects.mtimes.max(initial=0)) + span - time.time() * 1000
    if not 0 < wait <= span:
        return False
    time.sleep(wait / 1000 + 0.001)
    return True


def split_settled(objects: ObjectList) -> tuple[ObjectList, dict[ObjectId, str]]:
    """The objects to index, and those that may still change within their modification time, with the reason."""
    now = time.time() * 1000
    young = objects.mtimes + _unsettled_ms(objects) > now
    return objects.those(~young), {
        object: (
            "modified in the future by this machine's clock"
            if object.mtime > now
            else "modified just before it was listed; the next refresh indexes it"
        )
        for object in objects.those(young)
    }
