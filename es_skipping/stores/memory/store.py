"""The metadata store in memory: the whole contract in its plainest form, judged object by object.

It keeps one immutable snapshot a dataset; a change works on a copy and is published by replacing the snapshot it began
from. Handles of one URL share what is stored, as processes share a server.
"""

from __future__ import annotations

import json
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from es_skipping.catalog import DatasetDefinition, DatasetEntry, ObjectId, ObjectMetadata
from es_skipping.clauses.clause import Clause, indexes_of
from es_skipping.clauses.evaluate import holds
from es_skipping.clauses.metadata import Metadata
from es_skipping.errors import StoreConflict, StoreError
from es_skipping.stores.base import (
    MAX_METADATA_BY_KEY,
    Answer,
    Change,
    MetadataStore,
    StoreQuery,
    check_change,
    check_understood,
    is_under,
)
from es_skipping.stores.codec import metadata_to_data
from es_skipping.stores.guarantors import Guarantor, Ordering, first_rows, guarantor, in_order
from es_skipping.stores.memory.files import MemoryFiles
from es_skipping.stores.selection import split_keys

__all__ = ["MemoryStore"]

Objects = Mapping[str, ObjectMetadata]
"""By path."""


@dataclass(frozen=True, slots=True)
class _Snapshot:
    entry: DatasetEntry
    objects: Objects


@dataclass(slots=True)
class _Shelf:
    """What all handles of one URL share."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    snapshots: dict[str, _Snapshot] = field(default_factory=dict)
    unfinished: dict[tuple[str, str], dict[str, ObjectMetadata]] = field(default_factory=dict)
    files: MemoryFiles = field(default_factory=MemoryFiles)
    published: int = 0


_shelves: Final[defaultdict[str, _Shelf]] = defaultdict(_Shelf)


class MemoryStore(MetadataStore):
    """Metadata of this process alone; nothing outlives it.

    Parameters
    ----------
    url
        ``memory://NAME``; handles of one name share what is stored.

    Examples
    --------
    >>> MemoryStore("memory://scratch").datasets()
    []
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._shelf = _shelves[url]
        self.files = self._shelf.files

    @property
    def url(self) -> str:
        return self._url

    # --- datasets --------------------------------------------------------------------------------------------------

    def datasets(self, *, timeout: float | None = None) -> list[DatasetEntry]:
        return [snapshot.entry for snapshot in list(self._shelf.snapshots.values())]

    def dataset(self, id: str) -> DatasetEntry | None:
        snapshot = self._shelf.snapshots.get(id)
        return None if snapshot is None else snapshot.entry

    @contextmanager
    def change(
        self, definition: DatasetDefinition, *, fresh: bool = False, name: str | None = None
    ) -> Iterator[Change]:
        check_change(fresh, name)
        check_understood(definition)
        change = _MemoryChange(self._shelf, definition, fresh, name)
        try:
            yield change
        finally:
            change.close()

    def drop(self, id: str) -> None:
        with self._shelf.lock:
            self._shelf.snapshots.pop(id, None)

    def superseded(self, id: str) -> list[str]:
        return [name for dataset, name in self._shelf.unfinished if dataset == id]

    def drop_superseded(self, id: str) -> list[str]:
        dropped = self.superseded(id)
        for name in dropped:
            self._shelf.unfinished.pop((id, name), None)
        return dropped

    # --- what is stored --------------------------------------------------------------------------------------------

    def _objects(self, id: str) -> list[ObjectMetadata]:
        snapshot = self._shelf.snapshots.get(id)
        return [] if snapshot is None else list(snapshot.objects.values())

    def keys(self, id: str) -> bytes:
        return b"".join(one.id.key for one in self._objects(id))

    def objects(
        self, id: str, *, under: Collection[str] | None = None, keys: bytes | None = None
    ) -> Iterator[tuple[ObjectId, frozenset[str]]]:
        wanted = None if keys is None else split_keys(keys)
        for one in self._objects(id):
            if is_under(one.id.path, under) and (wanted is None or one.id.key in wanted):
                yield one.id, frozenset(one.metadata)

    def metadata(self, id: str) -> Iterator[ObjectMetadata]:
        yield from self._objects(id)

    # --- look-ups --------------------------------------------------------------------------------------------------

    def lookup(
        self, entry: DatasetEntry, clause: Clause, *, timeout: float | None = None, detail: bool = False
    ) -> Answer:
        snapshot = self._shelf.snapshots.get(entry.definition.id)
        if snapshot is None:
            return Answer(b"", 0)
        same = _same_indexes(snapshot.entry, entry)
        defined = {index.id for one in (snapshot.entry, entry) for index in one.definition.indexes}
        if set(indexes_of(clause)) & defined - same:
            return Answer(b"", 0)
        skip: list[bytes] = []
        alone: Counter[str] = Counter(dict.fromkeys(indexes_of(clause), 0) if detail else {})
        for one in snapshot.objects.values():
            known = {id: metadata for id, metadata in one.metadata.items() if id in same}
            if holds(clause, known) is False:
                skip.append(one.id.key)
            for id in alone:
                alone[id] += holds(clause, {id: known[id]} if id in known else {}) is False
        return Answer(b"".join(skip), len(snapshot.objects), dict(alone))

    def guarantors(
        self,
        entry: DatasetEntry,
        clause: Clause,
        k: int,
        ordering: Ordering | None = None,
        *,
        under: Collection[str] | None = None,
        timeout: float | None = None,
    ) -> tuple[Guarantor, ...]:
        snapshot = self._shelf.snapshots.get(entry.definition.id)
        if snapshot is None or snapshot.entry.definition.facts != entry.definition.facts:
            return ()
        same = _same_indexes(snapshot.entry, entry)
        candidates: list[Guarantor] = []
        for one in snapshot.objects.values():
            known = {id: metadata for id, metadata in one.metadata.items() if id in same}
            if is_under(one.id.path, under) and holds(clause, known) is False:
                order = None if ordering is None else known.get(ordering.index)
                candidate = guarantor(one.id.key, one.rows, order, ordering)
                if candidate is not None:
                    candidates.append(candidate)
        return first_rows(in_order(candidates, ordering), k)

    def metadata_by_key(
        self, entry: DatasetEntry, index: str, *, timeout: float | None = None
    ) -> Mapping[bytes, Metadata | None]:
        snapshot = self._shelf.snapshots.get(entry.definition.id)
        if snapshot is None or len(snapshot.objects) > MAX_METADATA_BY_KEY:
            return {}
        if index not in _same_indexes(snapshot.entry, entry):
            return {}
        return {one.id.key: one.metadata.get(index) for one in snapshot.objects.values()}

    def explain(self, entry: DatasetEntry, clause: Clause) -> StoreQuery:
        text = f"the objects of {entry.definition.id} for which this is false:\n{clause}"
        return StoreQuery(text, ("each object is judged by itself, in this process",))


def _same_indexes(stored: DatasetEntry, read: DatasetEntry) -> set[str]:
    """The ids of the indexes that are still as the reader knows them.

    The reader's clause is about its own definition: an index that is another by now, or of files that were read in
    another way, is unknown.
    """
    if stored.definition.facts != read.definition.facts:
        return set()
    return {index.id for index in stored.definition.indexes if index in read.definition.indexes}


class _MemoryChange(Change):
    """A change of one dataset; `publish` puts its copy in use, unless the snapshot it began from is gone."""

    def __init__(self, shelf: _Shelf, definition: DatasetDefinition, fresh: bool, name: str | None) -> None:
        self._shelf = shelf
        self._definition = definition
        self._name = name
        self._base = shelf.snapshots.get(definition.id)
        self._objects = dict(shelf.unfinished.get((definition.id, name), {})) if name is not None else {}
        self._put = set(self._objects)
        self._open = True
        if self._base is not None and not fresh:
            before = {index.id: index for index in self._base.entry.definition.indexes}
            kept = {index.id for index in definition.indexes if before.get(index.id) == index}
            self._objects = {path: _with_only(one, kept) for path, one in self._base.objects.items()}

    def put(self, objects: Iterable[ObjectMetadata]) -> None:
        self._check_open()
        defined = {index.id for index in self._definition.indexes}
        for one in objects:
            before = self._objects.get(one.id.path)
            if before is not None and before.id == one.id:
                rows = before.rows if one.rows is None else one.rows
                one = ObjectMetadata(one.id, rows, {**before.metadata, **one.metadata})
            self._objects[one.id.path] = _with_only(one, defined)
            self._put.add(one.id.path)

    def remove(self, objects: Iterable[ObjectId]) -> None:
        self._check_open()
        for id in objects:
            known = self._objects.get(id.path)
            if known is not None and known.id == id:
                del self._objects[id.path]
                self._put.discard(id.path)

    def publish(self, failed: Iterable[tuple[str, str]] = ()) -> DatasetEntry:
        self._check_open()
        id, shelf = self._definition.id, self._shelf
        with shelf.lock:
            if shelf.snapshots.get(id) is not self._base:
                raise StoreConflict(f"another writer changed dataset {id!r} at the same time: run it again")
            shelf.published += 1
            entry = DatasetEntry(
                definition=self._definition,
                snapshot=str(shelf.published),
                objects=len(self._objects),
                bytes=sum(one.id.length for one in self._objects.values()),
                refreshed=time.time_ns() // 1_000_000,
                failed=tuple(failed),
                metadata_bytes=self._sizes(),
            )
            shelf.snapshots[id] = _Snapshot(entry, self._objects)
            if self._name is not None:
                shelf.unfinished.pop((id, self._name), None)
        self._open = False
        return entry

    def written(self) -> Iterator[ObjectId]:
        yield from [self._objects[path].id for path in self._put]

    def read(self, objects: Iterable[ObjectId]) -> Iterator[ObjectMetadata]:
        for id in objects:
            known = self._objects.get(id.path)
            if known is not None and known.id == id and id.path in self._put:
                yield known

    def close(self) -> None:
        """Keep what a change with a name wrote; all else of an unpublished change is gone."""
        if self._open and self._name is not None:
            self._shelf.unfinished[self._definition.id, self._name] = self._objects
        self._open = False

    def _check_open(self) -> None:
        if not self._open:
            raise StoreError(f"this change of dataset {self._definition.id!r} is finished: begin another")

    def _sizes(self) -> dict[str, int]:
        """By index, the length of its metadata as JSON: what another store might take."""
        sizes = {index.id: 0 for index in self._definition.indexes}
        types = {index.id: index.value_type for index in self._definition.indexes}
        for one in self._objects.values():
            for id, metadata in one.metadata.items():
                sizes[id] += len(json.dumps(metadata_to_data(metadata, types[id])))
        return sizes


def _with_only(one: ObjectMetadata, indexes: Collection[str]) -> ObjectMetadata:
    if one.metadata.keys() <= set(indexes):
        return one
    return ObjectMetadata(one.id, one.rows, {id: known for id, known in one.metadata.items() if id in indexes})
