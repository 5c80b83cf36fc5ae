"""One writer's pending change of one dataset: new segments, and rows of older ones that publishing deletes."""

from __future__ import annotations

import contextlib
import logging
import re
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from es_skipping.catalog import DatasetDefinition, DatasetEntry, ObjectId, ObjectMetadata
from es_skipping.errors import StoreConflict, StoreError
from es_skipping.stores.base import Change
from es_skipping.stores.object_list import as_keys, is_among
from es_skipping.stores.parquet.compact import MAX_BYTES, MAX_ROWS, compacted, to_compact
from es_skipping.stores.parquet.manifest import Manifest, Segment, segment_path, segments_directory
from es_skipping.stores.parquet.segment import (
    IDENTITY,
    adopt_segment,
    path_hash,
    read_columns,
    segment_age,
    segment_builder,
    write_segment,
)
from es_skipping.stores.parquet.snapshots import Snapshots, UnclearConflict, conflict, store_errors
from es_skipping.stores.parquet.tables import Layout, fitting, objects_of

__all__ = ["ParquetChange", "column_names", "now_ms"]

_log = logging.getLogger(__name__)
_MAX_OBJECT_BYTES: Final = MAX_BYTES // 2
_ON_DISK: Final = 4
"""Approximate ratio of a segment's size in memory to its size on disk."""


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def column_names(definition: DatasetDefinition, base: Manifest | None) -> dict[str, str]:
    """The segments' column of each index: the base's if the index is unchanged in every respect, else a new one.

    So old metadata of a changed index that kept its id is not mistaken for the new index's.
    """
    names: dict[str, str] = {}
    known = {} if base is None or base.definition is None else {one.id: one for one in base.definition.indexes}
    taken = set(IDENTITY.names) | (set() if base is None else set(base.columns.values()))
    for index in definition.indexes:
        if base is not None and known.get(index.id) == index:
            names[index.id] = base.columns[index.id]
            continue
        stem = re.sub("[^a-z0-9]+", "_", index.id.lower()).strip("_")[:60] or "index"
        name, n = stem, 1
        while name in taken:
            n += 1
            name = f"{stem}_{n}"
        taken.add(name)
        names[index.id] = name
    return names


@dataclass(slots=True)
class _Held:
    """A segment as the pending change sees it."""

    segment: Segment
    dead: np.ndarray
    mine: bool = False
    changed: bool = False
    identity: pa.Table | None = None
    _order: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))
    _sorted: np.ndarray = field(default_factory=lambda: np.empty(0, np.uint64))

    def load(self, identity: pa.Table) -> None:
        self.identity = identity
        hashes = identity["path_hash"].to_numpy()
        self._order = np.argsort(hashes, kind="stable")
        self._sorted = hashes[self._order]

    def find(self, hashes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The positions in ``hashes`` that this segment holds, with their live rows."""
        start, end = np.searchsorted(self._sorted, hashes, "left"), np.searchsorted(self._sorted, hashes, "right")
        counts = end - start
        positions = np.repeat(np.arange(len(hashes)), counts)
        within = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
        rows = self._order[np.repeat(start, counts) + within]
        live = ~self.dead[rows]
        return positions[live], rows[live]

    def keys(self, rows: np.ndarray) -> list[bytes]:
        assert self.identity is not None
        keys: list[bytes] = self.identity["key"].take(pa.array(rows)).to_pylist()
        return keys

    def kill(self, rows: np.ndarray) -> None:
        if len(rows):
            self.dead[rows] = True
            self.changed = True

    def published(self, columns: Sequence[str]) -> Segment:
        """The segment for the new manifest, without columns that the definition dropped."""
        segment = self.segment
        if self.changed:
            assert self.identity is not None
            segment = segment.with_dead(self.dead, self.identity["length"].to_numpy())
        kept = {name: one for name, one in segment.columns.items() if name in columns or name in IDENTITY.names}
        return Segment(
            file=segment.file,
            size=segment.size,
            rows=segment.rows,
            live=segment.live,
            bytes=segment.bytes,
            footer=segment.footer,
            columns=kept,
            dead=segment.dead,
        )


class ParquetChange(Change):
    """A change of one dataset of a Parquet store.

    Objects wait in memory until they fill a segment, which is then written. No reader sees it before `publish` writes
    the manifest that names it. If other writers meanwhile publish and clean up the base, the change goes on collecting:
    it ends in a conflict, and the next attempt reuses what it collected.
    """

    outlives_conflict = True

    def __init__(
        self,
        snapshots: Snapshots,
        definition: DatasetDefinition,
        base: Manifest | None,
        fresh: bool,
        name: str | None = None,
    ) -> None:
        self._snapshots = snapshots
        self._definition = definition
        self._base = base
        columns = column_names(definition, base)
        self._columns: Mapping[str, str] = columns
        self._layout = Layout(definition, columns)
        inherited = () if base is None or fresh else base.segments
        self._held = [_Held(segment, segment.dead_rows()) for segment in inherited]
        self._waiting: dict[str, tuple[ObjectMetadata, int]] = {}
        self._waiting_bytes = 0
        self._open = True
        self._in_doubt = False
        self._lost = False
        self._overtaken = False
        self._name = name
        if name is not None:
            self._held = list(self._left_unfinished(name))

    def _left_unfinished(self, name: str) -> Iterator[_Held]:
        """Take over what an earlier change of this name wrote; the newest segment with a path has the valid row.

        Takes only segments younger than the base: any writer may delete the others at any time. Deletes nothing,
        because another change of this name may still write.
        """
        id, files = self._definition.id, self._snapshots.files
        published = -1 if self._base is None else self._base.published
        used = set() if self._base is None else {segment.file for segment in self._base.segments}
        with store_errors(f"listing {self._snapshots.where(segments_directory(id))}"):
            names = files.list(segments_directory(id))
        found = [
            (age, file)
            for file in names
            if segment_builder(file) == name and (age := segment_age(file)) is not None and age > published
        ]
        newer = np.empty(0, np.uint64)
        for _, file in sorted(found, reverse=True):
            if file in used:
                continue
            with store_errors(f"reading {self._snapshots.where(segment_path(id, file))}"):
                try:
                    segment = adopt_segment(files, id, file, self._layout.schema, self._layout.labels)
                except FileNotFoundError:  # a change of this name met a conflict and deleted it
                    continue
                if segment is None:
                    continue
            held = _Held(segment, np.zeros(segment.rows, np.bool_), mine=True)
            held.load(self._read(segment, ["key", "path_hash", "length"]))
            assert held.identity is not None
            hashes = held.identity["path_hash"].to_numpy()
            held.kill(np.flatnonzero(np.isin(hashes, newer)))
            newer = np.concatenate([newer, hashes])
            yield held

    # --- the contract ----------------------------------------------------------------------------------------------

    def put(self, objects: Iterable[ObjectMetadata]) -> None:
        self._check_open()
        for one in objects:
            self._put(one)
            if len(self._waiting) >= MAX_ROWS or self._waiting_bytes >= MAX_BYTES:
                self._flush()

    def remove(self, objects: Iterable[ObjectId]) -> None:
        self._check_open()
        batch: list[ObjectId] = []
        for id in objects:
            waiting = self._waiting.get(id.path)
            if waiting is not None and waiting[0].id == id:
                del self._waiting[id.path]
                self._waiting_bytes -= waiting[1]
            batch.append(id)
            if len(batch) >= MAX_ROWS:
                self._remove(batch)
                batch = []
        self._remove(batch)

    def publish(self, failed: Iterable[tuple[str, str]] = ()) -> DatasetEntry:
        self._check_open()
        self._flush()
        if self._overtaken:
            self._lost = True
            raise conflict(self._definition.id, self._snapshots.url)
        self._compact()
        segments = tuple(one.published(list(self._layout.indexes)) for one in self._held if not one.dead.all())
        base = self._base
        manifest = Manifest(
            number=1 if base is None else base.number + 1,
            token=uuid.uuid4().hex[:12],
            published=max(self._made(), *(segment_age(one.segment.file) or 0 for one in self._held if one.mine), 0),
            definition=self._definition,
            columns=self._columns,
            segments=segments,
            failed=tuple((path, reason) for path, reason in failed),
        )
        self._in_doubt = True
        try:
            manifest = self._snapshots.publish(self._definition.id, manifest, base)
        except StoreConflict as error:
            self._in_doubt = isinstance(error, UnclearConflict)
            self._lost = True
            raise
        self._open = False
        self._snapshots.clean(self._definition.id, manifest, base, manifest.published)
        entry = manifest.entry()
        assert entry is not None
        return entry

    def collected(self, keys: bytes) -> Iterator[ObjectMetadata]:
        wanted = as_keys(keys)
        waiting = [one for one, _ in self._waiting.values()]
        chosen = is_among(as_keys(b"".join(one.id.key for one in waiting)), wanted)
        yield from (waiting[place] for place in np.flatnonzero(chosen).tolist())
        for held in [one for one in self._held if one.mine]:
            assert held.identity is not None
            rows = np.flatnonzero(~held.dead & is_among(as_keys(b"".join(held.identity["key"].to_pylist())), wanted))
            if not len(rows):
                continue
            try:
                columns = [*IDENTITY.names, *self._layout.readable(held.segment)]
                table = read_columns(self._snapshots.files, self._definition.id, held.segment, columns)
            except (StoreError, OSError) as error:
                _log.info("metadata of %d objects must be collected again: %s", len(rows), error)
                continue
            yield from objects_of(self._layout_part(table, rows), self._layout.indexes)

    def written(self) -> Iterator[ObjectId]:
        for table in self._live(()):
            for path, length, mtime in zip(*(table[n].to_pylist() for n in ("path", "length", "mtime")), strict=True):
                yield ObjectId(path, length, mtime)

    def read(self, objects: Iterable[ObjectId]) -> Iterator[ObjectMetadata]:
        wanted = pa.array({id.key for id in objects}, IDENTITY.field("key").type)
        for table in self._live(self._layout.indexes):
            found = table.filter(pc.is_in(table["key"], value_set=wanted))
            yield from objects_of(found, self._layout.indexes)

    def _live(self, columns: Iterable[str]) -> Iterator[pa.Table]:
        self._check_open()
        self._flush()
        for held in list(self._held):
            table = self._layout.widened(self._read(held.segment, [*IDENTITY.names, *columns]))
            yield table.filter(pa.array(~held.dead))

    def discard(self) -> None:
        """Delete the written segments, unless the change has a name or was (or after an error may have been)
        published."""
        if not self._open:
            return
        if self._name is not None and not self._in_doubt:
            with contextlib.suppress(StoreError):
                self._flush()
            self._open = False
            return
        self._open = False
        self._waiting.clear()
        if self._in_doubt:
            return
        for one in self._held:
            if one.mine:
                with contextlib.suppress(Exception):  # a later writer cleans up the rest
                    self._snapshots.files.delete(segment_path(self._definition.id, one.segment.file))

    def _check_open(self) -> None:
        if not self._open or self._lost:
            raise StoreError(f"this change of dataset {self._definition.id!r} is finished: begin another")

    # --- inside ----------------------------------------------------------------------------------------------------

    def _put(self, one: ObjectMetadata) -> None:
        try:
            one.id.path.encode("utf-8")
        except UnicodeEncodeError:  # a path that is not valid text: the object stays unknown and is kept
            return
        before, taken = self._waiting.pop(one.id.path, (None, 0))
        self._waiting_bytes -= taken
        if before is not None and before.id == one.id:
            rows = before.rows if one.rows is None else one.rows
            one = ObjectMetadata(one.id, rows, {**before.metadata, **one.metadata})
        one, size = fitting(one, self._definition, _MAX_OBJECT_BYTES)
        self._waiting[one.id.path] = (one, size)
        self._waiting_bytes += size

    def _made(self) -> int:
        """A time for new files that every clean-up after the base considers newer than the base."""
        return max(now_ms(), 0 if self._base is None else self._base.published + 1)

    def _flush(self) -> None:
        objects = [one for one, _ in self._waiting.values()]
        if objects:
            try:
                self._append(objects)
            except StoreConflict:
                self._overtake()
                self._append(objects)
        self._waiting.clear()
        self._waiting_bytes = 0

    def _overtake(self) -> None:
        """Continue without the base, whose segments other writers have cleaned up."""
        if self._overtaken:
            raise conflict(self._definition.id, self._snapshots.url)
        self._overtaken = True
        self._held = [one for one in self._held if one.mine]

    def _find(self, ids: Sequence[ObjectId]) -> list[tuple[_Held, np.ndarray, np.ndarray]]:
        """The segments that hold these paths, with positions in ``ids`` and rows."""
        hashes = np.array([path_hash(id.path) for id in ids], np.uint64)
        found = []
        for held in self._held:
            if held.identity is None:
                held.load(self._read(held.segment, ["key", "path_hash", "length"]))
            positions, rows = held.find(hashes)
            if len(rows):
                found.append((held, positions, rows))
        return found

    def _append(self, objects: Sequence[ObjectMetadata]) -> None:
        """Write objects as a segment, adding metadata from older rows with the same identity."""
        places: list[tuple[_Held, np.ndarray, np.ndarray]] = []
        known = {index.id for index in self._definition.indexes}
        size = 0
        found = self._find([one.id for one in objects])
        for held, positions, rows in found:
            same = [
                key == objects[position].id.key and not (known <= objects[position].metadata.keys())
                for key, position in zip(held.keys(rows), positions.tolist(), strict=True)
            ]
            if any(same):
                places.append((held, positions[same], rows[same]))
                size += _ON_DISK * held.segment.size * sum(same) // max(1, held.segment.rows)
        if size > 2 * MAX_BYTES and len(objects) > 1:
            half = len(objects) // 2
            self._append(objects[:half])
            self._append(objects[half:])
            return
        table = self._layout.table(objects)
        if places:
            old_row = np.full(len(objects), -1, np.int64)
            parts, count = [], 0
            for held, positions, rows in places:
                columns = ["rows", *self._layout.readable(held.segment)]
                parts.append(self._layout_part(self._read(held.segment, columns), rows))
                old_row[positions] = np.arange(count, count + len(rows))
                count += len(rows)
            table = self._layout.merged(table, pa.concat_tables(parts), old_row)
        segment = self._write(table)
        for held, _, rows in found:
            held.kill(rows)
        added = _Held(segment, np.zeros(segment.rows, np.bool_), mine=True)
        added.load(table.select(["key", "path_hash", "length"]))
        self._held.append(added)

    def _layout_part(self, table: pa.Table, rows: np.ndarray) -> pa.Table:
        return self._layout.widened(table.take(pa.array(rows)))

    def _remove(self, ids: Sequence[ObjectId]) -> None:
        if not ids:
            return
        try:
            found = self._find(ids)
        except StoreConflict:
            self._overtake()
            found = self._find(ids)
        for held, positions, rows in found:
            same = [key == ids[n].key for key, n in zip(held.keys(rows), positions.tolist(), strict=True)]
            held.kill(rows[same])

    def _compact(self) -> None:
        columns = list(self._layout.indexes)
        now = {held.segment.file: held.published(columns) for held in self._held if not held.dead.all()}
        chosen = to_compact(list(now.values()), thoroughly=False)
        if not chosen:
            return
        made = compacted(chosen, self._layout, self._read, self._write)
        replaced = {one.file for one in chosen}
        for held in self._held:
            if held.segment.file in replaced:
                held.dead = np.ones(held.segment.rows, np.bool_)
        self._held += [_Held(segment, np.zeros(segment.rows, np.bool_), mine=True) for segment in made]

    def _read(self, segment: Segment, columns: Sequence[str]) -> pa.Table:
        try:
            with store_errors(f"reading {self._snapshots.where(segment_path(self._definition.id, segment.file))}"):
                return read_columns(self._snapshots.files, self._definition.id, segment, columns)
        except StoreError as error:
            if self._base is not None and not self._snapshots.is_latest(self._definition.id, self._base):
                raise conflict(self._definition.id, self._snapshots.url) from error
            raise

    def _write(self, table: pa.Table) -> Segment:
        with store_errors(f"writing metadata to {self._snapshots.where(self._definition.id)}"):
            return write_segment(
                self._snapshots.files, self._definition.id, table, self._made(), self._layout.labels, self._name
            )
