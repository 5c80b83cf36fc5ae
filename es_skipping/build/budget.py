"""A build's metadata budget: the bytes left for each object, and the indexes that were reduced."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from es_skipping.catalog import DatasetEntry, ObjectMetadata
from es_skipping.indexes.registry import readable_id
from es_skipping.indexes.toolkit.budget import within

__all__ = ["Budget"]

_log = logging.getLogger(__name__)


class Budget:
    """Keeps each object's metadata within its bytes, and counts the reductions.

    Parameters
    ----------
    whole
        Bytes for an object that gets all indexes.
    left
        Bytes for an object that only gets additional indexes.
    """

    def __init__(self, whole: float, left: float) -> None:
        self._whole = whole
        self._left = left
        self._degraded: Counter[tuple[str, str]] = Counter()
        self._resumed: list[Budget] = []

    @classmethod
    def of_build(cls, limit: int | None, entry: DatasetEntry | None, *, adds: bool) -> Budget | None:
        """The budget of each object's metadata, or none if there is no limit.

        Parameters
        ----------
        limit
            Bytes for one object, all its indexes together.
        entry
            What the store has of the dataset.
        adds
            Whether objects that have metadata get more indexes. These get what the existing ones leave on average.
        """
        if limit is None:
            return None
        used = sum(entry.metadata_bytes.values()) / max(1, entry.objects) if entry is not None and adds else 0.0
        return cls(limit, max(0.0, limit - used))

    def kept(self, found: Iterator[ObjectMetadata], indexes: int, *, added: bool) -> Iterator[ObjectMetadata]:
        """Reduce metadata to the budget. If an object's indexes arrive in several parts, each part has a share."""
        bytes = self._left if added else self._whole
        for one in found:
            kept = within(one.metadata, bytes * len(one.metadata) / indexes)
            self._degraded.update(kept.degraded.items())
            yield replace(one, metadata=kept.metadata)

    def resume(self, earlier: Budget) -> None:
        """Add the reductions of an earlier attempt, once."""
        if earlier not in self._resumed:
            self._resumed.append(earlier)
            self._degraded.update(earlier._degraded)

    def reported(self) -> tuple[tuple[str, str, int], ...]:
        """The reductions, as in `RefreshResult.degraded`; also written to the log."""
        reported = tuple((id, form, count) for (id, form), count in sorted(self._degraded.items()))
        for id, form, count in reported:
            _log.warning(
                "metadata.budget is used up: index %s of %d objects is reduced to %s", readable_id(id), count, form
            )
        return reported
