"""A metadata store that keeps everything in this process, so that a report's test fails for the report's sake alone."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from es_skipping.clauses.clause import Ask, Clause
from es_skipping.clauses.evaluate import holds
from es_skipping.spark.verdict import indexes_of
from es_skipping.stores.base import (
    KEY_BYTES,
    Answer,
    Change,
    DatasetDefinition,
    DatasetEntry,
    MetadataStore,
    ObjectId,
    ObjectMetadata,
    StoreQuery,
    is_under,
)

__all__ = ["MemoryStore"]


class MemoryStore(MetadataStore):
    """Objects by dataset and identity; ``error`` is raised by the next look-ups while it is set."""

    url = "http://memory:1"  # type: ignore[assignment]

    def __init__(self) -> None:
        self.entries: dict[str, DatasetEntry] = {}
        self.kept: dict[str, dict[ObjectId, ObjectMetadata]] = {}
        self.error: Exception | None = None
        self.lookups = 0

    def datasets(self) -> list[DatasetEntry]:
        return list(self.entries.values())

    def dataset(self, id: str) -> DatasetEntry | None:
        return self.entries.get(id)

    @contextmanager
    def change(
        self, definition: DatasetDefinition, *, fresh: bool = False, name: str | None = None
    ) -> Iterator[Change]:
        yield _MemoryChange(self, definition, {} if fresh else dict(self.kept.get(definition.id, {})))

    def drop(self, id: str) -> None:
        self.entries.pop(id, None)
        self.kept.pop(id, None)

    def keys(self, id: str) -> bytes:
        return b"".join(known.key for known in self.kept.get(id, {}))

    def objects(
        self, id: str, *, under: Sequence[str] | None = None, keys: bytes | None = None
    ) -> Iterator[tuple[ObjectId, frozenset[str]]]:
        asked = None if keys is None else {keys[at : at + KEY_BYTES] for at in range(0, len(keys), KEY_BYTES)}
        for known in self.kept.get(id, {}).values():
            if is_under(known.id.path, under) and (asked is None or known.id.key in asked):
                yield known.id, frozenset(known.metadata)

    def metadata(self, id: str) -> Iterator[ObjectMetadata]:
        yield from self.kept.get(id, {}).values()

    def lookup(
        self, entry: DatasetEntry, clause: Clause, *, timeout: float | None = None, detail: bool = False
    ) -> Answer:
        self.lookups += 1
        if self.error is not None:
            raise self.error
        known = self.kept[entry.definition.id].values()
        skip = [one.id.key for one in known if holds(clause, one.metadata) is False]
        alone = {}
        if detail:
            for index in indexes_of(clause):
                kept = [{index: one.metadata[index]} for one in known if index in one.metadata]
                alone[index] = sum(holds(clause, metadata) is False for metadata in kept)
        return Answer(b"".join(skip), len(known), alone)

    def explain(self, entry: DatasetEntry, clause: Clause) -> StoreQuery:
        text = f'GET /{entry.definition.id}\n{{"indexes": {len(indexes_of(clause))}}}'
        return StoreQuery(text, ("asked in memory",) if isinstance(clause, Ask) else ())


class _MemoryChange(Change):
    def __init__(self, store: MemoryStore, definition: DatasetDefinition, kept: dict[ObjectId, ObjectMetadata]) -> None:
        self._store, self._definition, self._kept = store, definition, kept

    def put(self, objects: Iterable[ObjectMetadata]) -> None:
        for new in objects:
            old = self._kept.get(new.id)
            self._kept = {id: one for id, one in self._kept.items() if id.path != new.id.path}
            self._kept[new.id] = replace(new, metadata={**(old.metadata if old else {}), **new.metadata})

    def remove(self, objects: Iterable[ObjectId]) -> None:
        for id in objects:
            self._kept.pop(id, None)

    def written(self) -> Iterator[ObjectId]:
        yield from self._kept

    def read(self, objects: Iterable[ObjectId]) -> Iterator[ObjectMetadata]:
        yield from (self._kept[id] for id in objects if id in self._kept)

    def publish(self, failed: Iterable[tuple[str, str]] = ()) -> DatasetEntry:
        size = sum(id.length for id in self._kept)
        now = time.time_ns()
        entry = DatasetEntry(self._definition, str(now), len(self._kept), size, now // 10**6, tuple(failed))
        self._store.entries[self._definition.id] = entry
        self._store.kept[self._definition.id] = self._kept
        return entry
