"""The embedded metadata store: Parquet files below a directory, no server.

::

    <url>/<dataset id>/manifests/000000000007.json     one per snapshot; the highest number is in use
    <url>/<dataset id>/segments/s<time>-<random>.parquet
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final, TypeVar

import numpy as np

from es_skipping.catalog import DatasetDefinition, DatasetEntry, IndexDefinition, ObjectId, ObjectMetadata
from es_skipping.clauses.clause import KEEP, Ask, Clause, indexes_of
from es_skipping.clauses.metadata import Metadata
from es_skipping.errors import StoreConflict, StoreError, StoreUnavailable
from es_skipping.stores.base import Answer, MetadataStore, StoreQuery, check_change, check_understood
from es_skipping.stores.files import Files
from es_skipping.stores.guarantors import Guarantor, Ordering, first_rows
from es_skipping.stores.object_list import as_keys, is_among
from es_skipping.stores.parquet.answers import LoadedColumn
from es_skipping.stores.parquet.by_key import by_key
from es_skipping.stores.parquet.cache import ByteCache
from es_skipping.stores.parquet.change import ParquetChange, now_ms
from es_skipping.stores.parquet.compact import compacted, to_compact
from es_skipping.stores.parquet.evaluate import only, refuted
from es_skipping.stores.parquet.explain import sql
from es_skipping.stores.parquet.files import arrow_files
from es_skipping.stores.parquet.guarantors import SortedSegment, merged
from es_skipping.stores.parquet.manifest import ComparedDefinitions, Manifest, Segment, segment_path, segments_directory
from es_skipping.stores.parquet.query_log import QueryFiles
from es_skipping.stores.parquet.segment import IDENTITY, read_columns, rows_under, segment_age, write_segment
from es_skipping.stores.parquet.sets import load
from es_skipping.stores.parquet.snapshots import Snapshots, store_errors
from es_skipping.stores.parquet.tables import Layout, objects_of
from es_skipping.stores.query_log import LoggedQuery
from es_skipping.stores.selection import KeyTable, Selection

__all__ = ["ParquetStore"]

_T = TypeVar("_T")
_MANIFEST_CACHE: Final = 64 << 20
_OPTIMIZE_TRIES: Final = 3
LARGE: Final = 16_384
"""From this many rows on, an answer consists of ordinals in a table that the reader keeps, not of keys."""


class ParquetStore(MetadataStore):
    """A metadata store in a directory.

    Parameters
    ----------
    url
        The store's URL in messages.
    files
        The store's files; None uses `pyarrow.fs`.
    cache_bytes
        Memory for segments between look-ups.
    grace
        Seconds for which files of an earlier snapshot stay for readers that still use it.

    Examples
    --------
    >>> import tempfile
    >>> ParquetStore(tempfile.mkdtemp()).datasets()
    []
    """

    def __init__(
        self, url: str, files: Files | None = None, *, cache_bytes: int = 512 << 20, grace: float = 3600.0
    ) -> None:
        self._url = url
        self.files = self._files = arrow_files(url) if files is None else files
        self._snapshots = Snapshots(self._files, url, grace)
        self._queries = QueryFiles(self._files, url)
        self._manifests: ByteCache[Manifest] = ByteCache(_MANIFEST_CACHE)
        self._loaded: ByteCache[Any] = ByteCache(cache_bytes)
        self._compared = ComparedDefinitions()

    def __repr__(self) -> str:
        return f"ParquetStore({self._url!r})"

    @property
    def url(self) -> str:
        return self._url

    # --- datasets and changes --------------------------------------------------------------------------------------

    def datasets(self, *, timeout: float | None = None) -> list[DatasetEntry]:
        entries = (self.dataset(id) for id in self._snapshots.datasets())
        return [entry for entry in entries if entry is not None]

    def dataset(self, id: str) -> DatasetEntry | None:
        manifest = self._latest(id)
        return None if manifest is None else manifest.entry()

    @contextmanager
    def change(
        self, definition: DatasetDefinition, *, fresh: bool = False, name: str | None = None
    ) -> Iterator[ParquetChange]:
        check_change(fresh, name)
        base = self._base(definition.id, despite_damage=fresh)
        check_understood(definition, None if fresh or base is None else base.definition)
        change = ParquetChange(self._snapshots, definition, base, fresh, name)
        try:
            yield change
        finally:
            change.discard()

    def log_queries(self, queries: Sequence[LoggedQuery], retention: float) -> None:
        self._queries.write(queries, retention)

    def logged_queries(self, dataset: str | None = None, since: int = 0) -> Iterator[LoggedQuery]:
        return self._queries.read(dataset, since)

    def superseded(self, id: str) -> list[str]:
        """Segments that no snapshot names; those of replaced snapshots expire by themselves."""
        base = self._latest(id)
        used = set() if base is None else {one.file for one in base.segments}
        used |= set() if base is None else {file for retired in base.retired for file in retired.files}
        with store_errors(f"listing {self._snapshots.where(segments_directory(id))}"):
            found = self._snapshots.files.list(segments_directory(id))
        return [file for file in found if segment_age(file) is not None and file not in used]

    def drop_superseded(self, id: str) -> list[str]:
        dropped = self.superseded(id)
        for file in dropped:
            with store_errors(f"deleting {self._snapshots.where(segment_path(id, file))}"):
                self._files.delete(segment_path(id, file))
        return dropped

    def drop(self, id: str) -> None:
        for _ in range(_OPTIMIZE_TRIES):
            base = self._base(id, despite_damage=True)
            if base is None or (base.definition is None and base.token):
                return
            gone = Manifest(base.number + 1, uuid.uuid4().hex[:12], max(now_ms(), base.published + 1), None)
            try:
                gone = self._snapshots.publish(id, gone, base)
            except StoreConflict:
                continue
            self._snapshots.clean(id, gone, base, gone.published)
            return
        raise StoreConflict(f"dataset {id!r} in {self._url} was not dropped, because other writers keep changing it")

    def _base(self, id: str, despite_damage: bool) -> Manifest | None:
        """The base of a change; if the latest manifest is damaged, only its number, if that suffices."""
        try:
            return self._latest(id)
        except StoreConflict:
            raise
        except StoreError as error:
            numbers = self._snapshots.numbers(id) if despite_damage and type(error) is StoreError else []
            if not numbers:
                raise
            return Manifest(numbers[-1], "", 0, None)

    def optimize(self, id: str) -> None:
        for _ in range(_OPTIMIZE_TRIES):
            base = self._latest(id)
            if base is None or base.definition is None:
                return
            check_understood(base.definition)
            try:
                self._optimize(base, base.definition)
            except StoreConflict:
                continue
            return
        raise StoreConflict(f"dataset {id!r} in {self._url} was not compacted, because other writers keep changing it")

    def _optimize(self, base: Manifest, definition: DatasetDefinition) -> None:
        id = definition.id
        layout = Layout(definition, base.columns)
        chosen = to_compact(base.segments, thoroughly=True)
        if not chosen:
            self._snapshots.clean(id, base, None, now_ms())
            return
        made = max(now_ms(), base.published + 1)
        with store_errors(f"compacting dataset {id!r} in {self._url}"):
            written = compacted(
                chosen,
                layout,
                lambda segment, columns: self._read(id, segment, columns),
                lambda table: write_segment(self._files, id, table, made, layout.labels),
            )
        kept = tuple(segment for segment in base.segments if segment not in chosen)
        manifest = replace(
            base,
            number=base.number + 1,
            token=uuid.uuid4().hex[:12],
            published=max(now_ms(), made),
            segments=(*kept, *written),
        )
        manifest = self._snapshots.publish(id, manifest, base)
        self._snapshots.clean(id, manifest, base, manifest.published)

    # --- reading ---------------------------------------------------------------------------------------------------

    def keys(self, id: str) -> bytes:
        parts = [self._keys(id, segment)[~segment.dead_rows()] for segment, _ in self._segments(id)]
        return b"".join(part.tobytes() for part in parts)

    def objects(
        self, id: str, *, under: Collection[str] | None = None, keys: bytes | None = None
    ) -> Iterator[tuple[ObjectId, frozenset[str]]]:
        wanted = None if keys is None else np.sort(as_keys(keys))
        for segment, layout in self._segments(id):
            chosen = None
            if wanted is not None:
                chosen = is_among(as_keys(self._keys(id, segment)[~segment.dead_rows()].tobytes()), wanted)
            if under is not None:
                below = rows_under(self._live(id, segment, ["path"])["path"], under)
                chosen = below if chosen is None else chosen & below
            if chosen is not None and not chosen.any():
                continue
            table = self._live(id, segment, ["path", "length", "mtime", *layout.readable(segment)])
            table = table if chosen is None else table.take(np.flatnonzero(chosen))
            known = {layout.indexes[name].id: table[name].is_valid().to_pylist() for name in layout.readable(segment)}
            rows = zip(*(table[name].to_pylist() for name in ("path", "length", "mtime")), strict=True)
            for n, row in enumerate(rows):
                yield ObjectId(*row), frozenset(index for index, truths in known.items() if truths[n])

    def metadata(self, id: str) -> Iterator[ObjectMetadata]:
        for segment, layout in self._segments(id):
            names = layout.readable(segment)
            table = self._live(id, segment, ["path", "length", "mtime", "rows", *names])
            yield from objects_of(table, {name: layout.indexes[name] for name in names})

    def _segments(self, id: str) -> Iterator[tuple[Segment, Layout]]:
        manifest = self._latest(id)
        if manifest is not None and manifest.definition is not None:
            layout = Layout(manifest.definition, manifest.columns)
            for segment in manifest.segments:
                yield segment, layout

    def _live(self, id: str, segment: Segment, columns: list[str]) -> Any:
        table = self._read(id, segment, columns)
        return table.take(np.flatnonzero(~segment.dead_rows())) if segment.dead else table

    def _read(self, id: str, segment: Segment, columns: list[str]) -> Any:
        with store_errors(f"reading {self._snapshots.where(segment_path(id, segment.file))}"):
            return read_columns(self._files, id, segment, columns)

    def _latest(self, id: str) -> Manifest | None:
        manifest = self._snapshots.latest(id)
        if manifest is not None:
            self._remember(id, manifest)
        return manifest

    def _remember(self, id: str, manifest: Manifest) -> None:
        self._manifests.get((id, manifest.snapshot), lambda: (manifest, 2048 + 2048 * len(manifest.segments)))

    # --- look-ups --------------------------------------------------------------------------------------------------

    def lookup(
        self, entry: DatasetEntry, clause: Clause, *, timeout: float | None = None, detail: bool = False
    ) -> Answer:
        deadline = None if timeout is None else time.monotonic() + timeout
        return self._asked(entry, lambda one: self._answer(one, entry, clause, deadline, detail)) or Answer(b"", 0)

    def _asked(self, entry: DatasetEntry, ask: Callable[[Manifest], _T]) -> _T | None:
        """What the entry's snapshot answers, or if its files are gone the latest; None if there is none."""
        manifest = self._pinned(entry)
        if manifest is None:
            return None
        try:
            return ask(manifest)
        except StoreUnavailable:
            raise
        except StoreError:
            latest = self._latest(entry.definition.id)
            if latest is None or latest.snapshot == manifest.snapshot:
                raise
            return ask(latest)

    def _answer(
        self, manifest: Manifest, entry: DatasetEntry, clause: Clause, deadline: float | None, detail: bool
    ) -> Answer:
        usable = self._compared.usable(manifest, entry.definition)
        asked = only(clause, usable)
        single = {id: only(asked, {id}) for id in indexes_of(clause)} if detail else {}
        by_index = dict.fromkeys(single, 0)
        masks: list[np.ndarray] = []
        for segment in manifest.segments if asked != KEEP else ():
            self._in_time(deadline)
            masks.append(self._refuted(entry.definition.id, segment, usable, asked))
            for id, alone in single.items():
                if alone != KEEP:
                    by_index[id] += int(self._refuted(entry.definition.id, segment, usable, alone).sum())
        return Answer(self._found(entry.definition.id, manifest, masks), manifest.objects, by_index)

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
        deadline = None if timeout is None else time.monotonic() + timeout
        id = entry.definition.id

        def answer(manifest: Manifest) -> tuple[Guarantor, ...]:
            if manifest.definition is None or manifest.definition.facts != entry.definition.facts:
                return ()
            usable = self._compared.usable(manifest, entry.definition)
            asked = only(clause, usable)
            if asked == KEEP or (ordering is not None and ordering.index not in usable):
                return ()
            found: list[Iterator[Guarantor]] = []
            for segment in manifest.segments:
                self._in_time(deadline)
                chosen = self._refuted(id, segment, usable, asked)
                known = ordering is None or usable[ordering.index][1] in segment.columns
                if known and chosen.any():
                    found.append(self._guarantors(id, segment, usable, ordering).among(chosen, under))
            return first_rows(merged(found, ordering), k)

        return self._asked(entry, answer) or ()

    def metadata_by_key(
        self, entry: DatasetEntry, index: str, *, timeout: float | None = None
    ) -> Mapping[bytes, Metadata | None]:
        deadline = None if timeout is None else time.monotonic() + timeout
        id = entry.definition.id

        def keys(segment: Segment) -> Any:
            self._in_time(deadline)
            return self._keys(id, segment)[~segment.dead_rows()]

        def answer(manifest: Manifest) -> Mapping[bytes, Metadata | None]:
            usable = self._compared.usable(manifest, entry.definition).get(index)
            if usable is None:
                return {}
            return by_key(manifest, usable, keys, lambda one: self._live(id, one, [usable[1]]))

        return self._asked(entry, answer) or {}

    def _in_time(self, deadline: float | None) -> None:
        if deadline is not None and time.monotonic() > deadline:
            raise StoreUnavailable(f"the look-up in {self._url} exceeded spark.es_skipping.store.timeout")

    def _guarantors(
        self,
        id: str,
        segment: Segment,
        usable: Mapping[str, tuple[IndexDefinition, str]],
        ordering: Ordering | None,
    ) -> SortedSegment:
        index = None if ordering is None else usable[ordering.index]

        def read() -> tuple[SortedSegment, int]:
            table = self._read(id, segment, ["path", "rows", *([] if index is None else [index[1]])])
            made = SortedSegment(self._keys(id, segment), table, index, ordering)
            return made, made.nbytes

        column = None if index is None else index[1]
        made: SortedSegment = self._loaded.get((id, segment.file, "guarantors", column, ordering), read)
        return made

    def _found(self, id: str, manifest: Manifest, masks: list[np.ndarray]) -> bytes | Selection:
        """The keys of the true rows, or if there may be many, their ordinals in the snapshot's table."""
        if sum(map(len, masks)) >= LARGE:
            return Selection.of(self._table(id, manifest), np.concatenate(masks))
        marked = zip(manifest.segments, masks, strict=False)  # without a question there is no mask
        return b"".join(self._keys(id, segment)[mask].tobytes() for segment, mask in marked if mask.any())

    def _table(self, id: str, manifest: Manifest) -> KeyTable:
        def read() -> tuple[KeyTable, int]:
            keys = b"".join(self._keys(id, segment).tobytes() for segment in manifest.segments)
            live = np.concatenate([~segment.dead_rows() for segment in manifest.segments])
            table = KeyTable(keys, live)
            return table, table.nbytes

        table: KeyTable = self._loaded.get((id, manifest.snapshot, "table"), read)
        return table

    def explain(self, entry: DatasetEntry, clause: Clause) -> StoreQuery:
        manifest = self._pinned(entry)
        if manifest is None:
            return StoreQuery("-- the dataset is not in the store", ("nothing is skipped",))
        usable = self._compared.usable(manifest, entry.definition)
        paths = [self._snapshots.where(segment_path(entry.definition.id, one.file)) for one in manifest.segments]
        return sql(clause, usable, paths, manifest)

    def _pinned(self, entry: DatasetEntry) -> Manifest | None:
        """The entry's snapshot, or if that is gone the latest; None if there is none."""
        id = entry.definition.id
        key = (id, entry.snapshot)
        try:
            return self._manifests.get(key, lambda: self._exactly(entry))
        except _Gone:
            return self._latest(id)

    def _exactly(self, entry: DatasetEntry) -> tuple[Manifest, int]:
        number = entry.snapshot.partition("-")[0]
        manifest = self._snapshots.read(entry.definition.id, int(number)) if number.isdigit() else None
        if manifest is None or manifest.snapshot != entry.snapshot:
            raise _Gone
        return manifest, 2048 + 2048 * len(manifest.segments)

    def _refuted(
        self, id: str, segment: Segment, usable: Mapping[str, tuple[IndexDefinition, str]], clause: Clause
    ) -> np.ndarray:
        """Live rows of a segment for which the clause is proved false."""

        def answer(ask: Ask) -> np.ndarray:
            index, name = usable[ask.index]
            if name not in segment.columns:
                return np.zeros(segment.rows, np.bool_)
            return self._column(id, segment, index, name).refuted(ask.question)

        proved = refuted(clause, answer, segment.rows)
        return proved & ~segment.dead_rows() if segment.dead else proved

    def _column(self, id: str, segment: Segment, index: IndexDefinition, name: str) -> LoadedColumn:
        def read() -> tuple[LoadedColumn, int]:
            column = load(index, self._read(id, segment, [name])[name].combine_chunks())
            return column, column.nbytes

        loaded: LoadedColumn = self._loaded.get((id, segment.file, name), read)
        return loaded

    def _keys(self, id: str, segment: Segment) -> np.ndarray:
        def read() -> tuple[np.ndarray, int]:
            column = self._read(id, segment, ["key"])["key"].combine_chunks()
            width = IDENTITY.field("key").type.byte_width
            keys = np.frombuffer(column.buffers()[1], np.dtype((np.void, width)), len(column), column.offset * width)
            return keys, keys.nbytes

        keys: np.ndarray = self._loaded.get((id, segment.file, "key"), read)
        return keys

    def close(self) -> None:
        self._loaded.clear()
        self._manifests.clear()
        self._compared.clear()


class _Gone(Exception):
    """The snapshot was cleaned up."""
