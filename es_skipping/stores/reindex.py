"""Copies a dataset's metadata from any store to any store, the same one included, without reading data.

The copy is a new generation: readers of the target see the old one until the copy is complete, verified and
published in one step. It goes through the client, by reading and bulk writing, so it needs no reindexing by the server.
"""

from __future__ import annotations

import hashlib
import heapq
import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from es_skipping.catalog import DatasetEntry, ObjectMetadata
from es_skipping.errors import DatasetError, StoreConflict, StoreError
from es_skipping.stores.base import MetadataStore
from es_skipping.stores.codec import definition_to_data
from es_skipping.stores.covering import covers

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from es_skipping.catalog import DatasetDefinition
    from es_skipping.stores.base import Change

__all__ = ["Progress", "Reindexed", "reindex"]

Progress: TypeAlias = Callable[[int, int, str], None]
"""Called with ``(done, total, phase)`` from time to time."""

TELL_EVERY: Final = 1_000


@dataclass(frozen=True, slots=True)
class Reindexed:
    """What `reindex` did, or for a dry run would do.

    Parameters
    ----------
    dataset
        Its id in the target.
    format, snapshot
        Its format, such as ``delta``, and for a table with a log the version that the metadata covers, from which the
        next refresh goes on. None for plain files, or where unknown.
    objects
        How many the source has.
    copied, resumed
        How many were written now, and how many an unfinished run had written before.
    sampled
        How many were read back and compared.
    forgotten
        By index, the number of sampled objects whose metadata the target could not keep completely. Queries keep
        these objects, like all that is unknown.
    replaced
        The snapshot that the target had before.
    superseded
        What the target keeps though no reader uses it any more: `MetadataStore.drop_superseded` removes it.
    """

    dataset: str
    format: str
    snapshot: str | None
    objects: int
    copied: int = 0
    resumed: int = 0
    sampled: int = 0
    forgotten: Mapping[str, int] = field(default_factory=dict)
    replaced: str | None = None
    superseded: tuple[str, ...] = ()
    seconds: float = 0.0


def reindex(
    source: MetadataStore,
    target: MetadataStore,
    dataset: str,
    *,
    into: str | None = None,
    index_settings: Mapping[str, Any] | None = None,
    throttle: float | None = None,
    sample: int = 1_000,
    progress: Progress | None = None,
    dry_run: bool = False,
) -> Reindexed:
    """Copy one dataset's metadata.

    A run that was killed, or that failed, is continued by the next one with the same arguments.

    Parameters
    ----------
    source, target
        Stores; one and the same for a new mapping or another number of shards.
    dataset
        Its id in the source.
    into
        Its id in the target; the same where left out.
    index_settings
        Settings of the new index, if the target is Elasticsearch: ``{"number_of_shards": 4}``.
    throttle
        Objects per second, at most.
    sample
        How many objects are read back and compared before the copy is published.
    dry_run
        Only check whether both stores answer, what they hold, and what would be replaced.

    Raises
    ------
    DatasetError
        The source has no such dataset.
    StoreConflict
        The source was changed meanwhile, or the target by another writer. Nothing was published.
    StoreFormatError
        A store was written by a newer version of this package.
    StoreError
        A store failed, or the copy differs from the source. Nothing was published.

    Examples
    --------
    >>> import tempfile
    >>> from es_skipping.stores.registry import open_store
    >>> reindex(open_store(tempfile.mkdtemp()), open_store(tempfile.mkdtemp()), "events")
    Traceback (most recent call last):
        ...
    es_skipping.errors.DatasetError: there is no dataset 'events' in ...
    """
    begun = time.monotonic()
    entry = source.dataset(dataset)
    if entry is None:
        raise DatasetError(f"there is no dataset {dataset!r} in {source.url}")
    definition = replace(entry.definition, id=into or dataset)
    before = target.dataset(definition.id)
    planned = Reindexed(
        definition.id,
        definition.format,
        definition.snapshot,
        entry.objects,
        replaced=None if before is None else before.snapshot,
    )
    run = _Run(source, entry, sample, throttle, progress)
    change = _change(target, definition, run.name(definition, before, index_settings), index_settings)
    if dry_run:
        next(iter(source.metadata(dataset)), None)
        return planned
    with change as open_change:
        copied, resumed = run.copy(open_change)
        forgotten = run.verify(open_change)
        run.tell(0, 0, "publish")
        open_change.publish(entry.failed)
    return replace(
        planned,
        objects=run.objects,
        copied=copied,
        resumed=resumed,
        sampled=len(run.sampled),
        forgotten=forgotten,
        superseded=tuple(target.superseded(definition.id)),
        seconds=time.monotonic() - begun,
    )


def _change(
    target: MetadataStore, definition: DatasetDefinition, name: str, index_settings: Mapping[str, Any] | None
) -> AbstractContextManager[Change]:
    if not index_settings:
        return target.change(definition, fresh=True, name=name)
    return target.change_with(definition, name, index_settings)


class _Run:
    """One copy under way."""

    def __init__(
        self,
        source: MetadataStore,
        entry: DatasetEntry,
        sample: int,
        throttle: float | None,
        progress: Progress | None,
    ) -> None:
        self._source = source
        self._entry = entry
        self._sample = sample
        self._throttle = throttle
        self._progress = progress
        self._heap: list[tuple[int, int, ObjectMetadata]] = []
        self.objects = 0

    def name(
        self, definition: DatasetDefinition, before: DatasetEntry | None, settings: Mapping[str, Any] | None
    ) -> str:
        """The same for every attempt at the same copy."""
        what = [
            self._source.url,
            self._entry.definition.id,
            definition_to_data(definition),
            None if before is None else before.snapshot,
            dict(settings or {}),
        ]
        return "r" + hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()[:20]

    def tell(self, done: int, total: int, phase: str) -> None:
        if self._progress is not None:
            self._progress(done, total, phase)

    def copy(self, change: Change) -> tuple[int, int]:
        """Put missing objects; returns how many were put, and how many were there."""
        self.tell(0, 0, "resume")
        there = {id.key for id in change.written()}
        gone = set(there)
        copied = 0

        def missing() -> Iterator[ObjectMetadata]:
            nonlocal copied
            for one in self._read():
                key = one.id.key
                gone.discard(key)
                if key not in there:
                    copied += 1
                    yield one

        change.put(self._throttled(missing()))
        if gone:  # of objects that were refreshed or removed since the last attempt
            change.remove([id for id in change.written() if id.key in gone])
        now = self._source.dataset(self._entry.definition.id)
        if now is None or now.snapshot != self._entry.snapshot:
            raise StoreConflict(
                f"dataset {self._entry.definition.id!r} in {self._source.url} was changed while it was copied; nothing "
                "was published. Run it again: what was copied is kept"
            )
        return copied, len(there) - len(gone)

    def _read(self) -> Iterator[ObjectMetadata]:
        total = self._entry.objects
        for one in self._source.metadata(self._entry.definition.id):
            self.objects += 1
            self._consider(one)
            if self.objects % TELL_EVERY == 0:
                self.tell(self.objects, total, "copy")
            yield one

    def _consider(self, one: ObjectMetadata) -> None:
        """Keep the objects with the least keys: effectively random, and the same in every attempt."""
        rank = -int.from_bytes(one.id.key, "big")
        if len(self._heap) < self._sample:
            heapq.heappush(self._heap, (rank, self.objects, one))
        elif self._heap and rank > self._heap[0][0]:
            heapq.heapreplace(self._heap, (rank, self.objects, one))

    def _throttled(self, objects: Iterable[ObjectMetadata]) -> Iterator[ObjectMetadata]:
        if self._throttle is None:
            yield from objects
            return
        begun = time.monotonic()
        for done, one in enumerate(objects):
            ahead = done / self._throttle - (time.monotonic() - begun)
            if ahead > 0.05:
                time.sleep(ahead)
            yield one

    @property
    def sampled(self) -> list[ObjectMetadata]:
        return [one for _, _, one in self._heap]

    def verify(self, change: Change) -> dict[str, int]:
        """Count the written objects and compare a sample; returns what the target forgot, by index.

        Raises
        ------
        StoreError
            Objects are missing or too many, or metadata would skip what the source's keeps.
        """
        self.tell(0, 0, "verify")
        written = sum(1 for _ in change.written())
        if written != self.objects:
            raise StoreError(f"the copy has {written} objects, its source {self.objects}: nothing was published")
        forgotten: dict[str, int] = {}
        sampled = iter(self.sampled)
        while batch := {one.id: one for one in islice(sampled, 500)}:
            found = {one.id: one for one in change.read(batch)}
            for id, original in batch.items():
                copy = found.get(id)
                if copy is None:
                    raise StoreError(f"{id.path} is missing in the copy: nothing was published")
                for index, known in original.metadata.items():
                    again = copy.metadata.get(index)
                    if again is None or again != known:
                        forgotten[index] = forgotten.get(index, 0) + 1
                    if again is not None and not covers(again, known):
                        raise StoreError(
                            f"{index} of {id.path} came out narrower than it went in ({known} became {again}): nothing "
                            "was published; please report this"
                        )
                if copy.metadata.keys() - original.metadata.keys():
                    raise StoreError(
                        f"{id.path} has more metadata in the copy than in its source: nothing was published"
                    )
        return forgotten
