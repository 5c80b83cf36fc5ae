"""The budget of bytes in one build: what is left for each object, and what was given up."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from es_skipping.catalog import ObjectMetadata
from es_skipping.indexes.toolkit.budget import within

__all__ = ["Budget"]

_log = logging.getLogger(__name__)


class Budget:
    """Keeps the metadata of each object within its bytes, and counts what that cost.

    Parameters
    ----------
    whole
        Bytes of an object of which all is collected.
    left
        Bytes of one that only gets further indexes.
    """

    def __init__(self, whole: float, left: float) -> None:
        self._whole = whole
        self._left = left
        self._degraded: Counter[tuple[str, str]] = Counter()
        self._resumed: list[Budget] = []

    def kept(self, found: Iterator[ObjectMetadata], indexes: int, *, added: bool) -> Iterator[ObjectMetadata]:
        """What of it is within the budget. An object that comes in several parts, each of some of the indexes, has for
        each part a share."""
        bytes = self._left if added else self._whole
        for one in found:
            kept = within(one.metadata, bytes * len(one.metadata) / indexes)
            self._degraded.update(kept.degraded.items())
            yield replace(one, metadata=kept.metadata)

    def resume(self, earlier: Budget) -> None:
        """Count also what an earlier attempt gave up, once."""
        if earlier not in self._resumed:
            self._resumed.append(earlier)
            self._degraded.update(earlier._degraded)

    def told(self) -> tuple[tuple[str, str, int], ...]:
        """As `RefreshResult.degraded`; the log is told as well."""
        told = tuple((id, form, count) for (id, form), count in sorted(self._degraded.items()))
        for id, form, count in told:
            _log.warning("index %s remembers %d objects only as %s: metadata.budget is used up", id, count, form)
        return told
