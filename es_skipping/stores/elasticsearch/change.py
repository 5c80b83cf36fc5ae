"""One writer's change of one dataset.

A document, once written, never changes: metadata given again makes a *new* document with a new ordinal, and the old one
is deleted after publication. A document takes part from the moment that the dataset's document names the segment of
keys its ordinal lies in, and compare-and-set replaces the dataset's document. So a crash at any point leaves
what was published before, and nobody uses what a crashed writer left behind.
"""

from __future__ import annotations

import contextlib
import heapq
import secrets
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from es_skipping.catalog import DatasetDefinition, DatasetEntry, ObjectId, ObjectMetadata
from es_skipping.errors import StoreError
from es_skipping.stores.base import KEY_BYTES, Change
from es_skipping.stores.elasticsearch.bulk import BulkWriter, Write
from es_skipping.stores.elasticsearch.documents import (
    PROVING_FORMAT,
    document_id,
    new_document,
    object_id,
    object_metadata,
    shrunk,
    weights,
)
from es_skipping.stores.elasticsearch.fields import Group, mapping, needs_prefix
from es_skipping.stores.elasticsearch.restored import first_free, identity_of, require_as_made
from es_skipping.stores.elasticsearch.retract import retract
from es_skipping.stores.elasticsearch.share import ElasticsearchShare, learned
from es_skipping.stores.elasticsearch.state import (
    Segment,
    State,
    groups_for,
    snapshot_of,
    unfinished_groups,
    unfinished_meta,
)
from es_skipping.stores.elasticsearch.visibility import own_properties, require_visible
from es_skipping.stores.elasticsearch.written import RUN, Written, noted, runs, without_repeats
from es_skipping.stores.share import Outcome, Share

if TYPE_CHECKING:
    from es_skipping.stores.elasticsearch.cluster import Cluster

__all__ = ["ElasticsearchChange"]

_BATCH: Final = 500
_MANY_SEGMENTS: Final = 48
_FIELDS_PER_INDEX: Final = 24


class ElasticsearchChange(Change):
    """See the module. Made by `ElasticsearchStore.change`."""

    def __init__(
        self,
        cluster: Cluster,
        definition: DatasetDefinition,
        base: State | None,
        *,
        fresh: bool,
        name: str | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        self._cluster = cluster
        self._definition = definition
        self._before = base
        """The published state when this change began; None if there was none."""
        self._base = None if fresh else base
        """The state that this change adds to; None if it starts from nothing."""
        self._named = name is not None
        self._settings = dict(settings or {})
        self._publication = secrets.token_hex(6)
        """The token of what this change publishes."""
        self._token = name or self._publication
        """The token of its documents: those of a named change are the same for every attempt."""
        self._groups, self._used = groups_for(definition, self._base)
        self._next = self._free = 0
        self._index = ""
        if self._base is not None:
            self._generation = self._base.generation
        elif name is not None:
            self._generation = cluster.names.named_generation(definition.id, name)
        else:
            self._generation = cluster.names.new_generation(definition.id)
        self._mine = Written()
        self._end = 0
        self._is_continued = False
        self._weights: dict[str, int] = {}
        self._weighed = 0
        self._dead: dict[str, int] = {}
        self._bytes_gone = 0
        self._paths_gone: set[str] = set()
        self._outdated_gone = 0
        self._offered: State | None = None
        """The state that was sent for publication, whether or not that succeeded."""
        self.published: State | None = None
        self._writer = BulkWriter(cluster.builder, self._generation, cluster.url)

    def begin(self) -> None:
        """Make the index of a new generation, or add the new groups' mapping to the existing one."""
        with self._cluster.translated(f"preparing dataset {self._definition.id!r}"):
            properties = {group.name: mapping(group) for group in self._groups.values()}
            if self._base is not None:
                kept = [group for id, group in self._base.groups.items() if self._groups.get(id) == group]
                self._require_visible(kept, outdated=self._base.outdated > 0)
                self._index = require_as_made(self._cluster, self._base)
                self._free = first_free(self._cluster, self._generation)
                if not self._base.swept:
                    self._base = self._recounted(self._base)
                indices, limit = self._cluster.builder.indices, {"index.mapping.total_fields.limit": self._limit()}
                indices.put_settings(index=self._generation, settings=limit)
                indices.put_mapping(index=self._generation, properties=own_properties() | properties)
            elif not (self._named and self._continued()):
                meta = unfinished_meta(self._definition, self._groups) if self._named else None
                self._cluster.create_generation(self._generation, properties, self._limit(), self._settings, meta)
            self._index = self._index or identity_of(self._cluster.builder, self._generation)
            self._require_visible(self._groups.values())

    def _require_visible(self, groups: Iterable[Group], *, outdated: bool = False) -> None:
        """Documents are read back, and written anew: refuse to lose what this user may not see of them."""
        found = self._cluster.mappings(self._generation)
        require_visible(found, groups, f"changing dataset {self._definition.id!r}", outdated=outdated)

    def _recounted(self, base: State) -> State:
        """With the objects and bytes that are there: its writer has not removed yet what it does not count, or died."""
        objects = size = 0
        before: str | None = None
        for hit in self._cluster.published(base, None, ["path", "size"], sort="path"):
            if hit["_source"]["path"] != before:
                before = hit["_source"]["path"]
                objects, size = objects + 1, size + hit["_source"]["size"]
        return replace(base, entry=replace(base.entry, objects=objects, bytes=size))

    def _continued(self) -> bool:
        """Whether an unfinished change of this name exists; then this change takes over what it wrote."""
        if self._before is not None and self._before.generation == self._generation:
            raise StoreError(f"the change {self._token!r} of dataset {self._definition.id!r} is published already")
        meta = self._cluster.generation_meta(self._generation)
        if meta is None:
            return False
        self._groups = unfinished_groups(meta, self._definition)
        # An earlier version may have begun it, which had fewer fields.
        self._cluster.builder.indices.put_mapping(index=self._generation, properties=own_properties())
        self._free = first_free(self._cluster, self._generation)
        fields = ["path", "size", "modified"]
        scan = self._cluster.scan(self._generation, None, "ordinal", fields=[*fields, "ordinal"])
        while batch := [hit["_source"] for hit in islice(scan, RUN)]:
            for place in self._mine.find([source["path"] for source in batch]):
                if place is not None:
                    self._mine.forget(place)
            last = {source["path"]: source for source in batch}
            self._mine.add([(source["ordinal"], object_id(source)) for source in last.values()])
        self._is_continued = True
        return True

    def _limit(self) -> int:
        boxes = sum(group.boxes * (group.axes + 1) for group in self._groups.values())
        # Groups that were dropped keep their fields until the next generation.
        return max(1000, len(own_properties()) + _FIELDS_PER_INDEX * (len(self._used) + 1) + 2 * boxes)

    # --- putting

    def put(self, objects: Iterable[ObjectMetadata]) -> None:
        listed = iter(objects)
        with self._cluster.translated(f"writing dataset {self._definition.id!r}"):
            while batch := list(islice(listed, _BATCH)):
                last = {one.id.path: at for at, one in enumerate(batch)}
                for part in without_repeats(batch) if len(last) < len(batch) else [batch]:
                    self._put(part)

    def _put(self, batch: list[ObjectMetadata]) -> None:
        self._learn(batch)
        stored = self._stored([one.id.path for one in batch])
        again = self._mine.find([one.id.path for one in batch])
        if any(place is not None for place in again):
            self._writer.flush()
            stored |= self._own(again)
        first = self._claim(len(batch))
        self._writer.write(self._writes(batch, first, stored, again))
        self._mine.add([(ordinal, one.id) for ordinal, one in enumerate(batch, first)])

    def _writes(
        self,
        batch: list[ObjectMetadata],
        first: int,
        stored: Mapping[str, list[Mapping[str, Any]]],
        again: list[int | None],
    ) -> Iterator[Write]:
        """One document at a time, so that none is held longer than needed."""
        for ordinal, (one, mine) in enumerate(zip(batch, again, strict=True), first):
            before = stored.get(one.id.path, [])
            same = [document for document in before if object_id(document) == one.id]
            newest = max(same, key=lambda document: int(document["ordinal"]), default=None)
            document = new_document(one, ordinal, self._groups, self._token, self._version, newest)
            id = self._id(one.id.key)
            if mine is not None:
                if not self._is_continued:  # what another process wrote was never weighed here
                    for own in (one for one in before if one["change"] == self._token):
                        self._weigh(weights(own), -1)
                if self._mine.key(mine) != one.id.key:
                    self._dead[self._id(self._mine.key(mine))] = 0
                self._mine.forget(mine)
            self._dead.pop(id, None)
            self._weigh(weights(document))
            yield Write.of(id, document, shrunk)

    def _learn(self, batch: list[ObjectMetadata]) -> None:
        """Prefixes from the first values, and room for boxes; then the mapping, before documents that need it."""
        grown: dict[str, Any] = {}
        for id, group in self._groups.items():
            if group.index.kind == "intervals" and not needs_prefix(group):
                continue
            now = learned(group, [one.metadata[id] for one in batch if id in one.metadata])
            if now != group:
                self._groups[id] = now
                if now.room != group.room:
                    grown[now.name] = mapping(now)
                elif self._named:
                    grown.setdefault(now.name, mapping(now))
        if grown:
            indices = self._cluster.builder.indices
            indices.put_settings(index=self._generation, settings={"index.mapping.total_fields.limit": self._limit()})
            meta = unfinished_meta(self._definition, self._groups) if self._named else None
            indices.put_mapping(index=self._generation, properties=grown, meta=meta)

    def _stored(self, paths: list[str], fields: list[str] | None = None) -> dict[str, list[Mapping[str, Any]]]:
        """Published documents of these paths; from now on they count as replaced."""
        found: dict[str, list[Mapping[str, Any]]] = {}
        if self._base is None:
            return found
        for hit in self._published(paths, fields):
            found.setdefault(hit["_source"]["path"], []).append(hit["_source"])
            self._kill(hit)
        return found

    def _published(self, paths: list[str], fields: list[str] | None) -> Iterator[dict[str, Any]]:
        base = self._base
        if base is None:
            return
        for at in range(0, len(paths), _BATCH):
            query = {"terms": {"path": paths[at : at + _BATCH]}}
            yield from self._cluster.published(base, query, fields)

    def _kill(self, hit: Mapping[str, Any]) -> None:
        source = hit["_source"]
        if hit["_id"] not in self._dead:
            self._dead[hit["_id"]] = source["size"]
            if source["path"] not in self._paths_gone:
                self._paths_gone.add(source["path"])
                self._bytes_gone += source["size"]
                self._outdated_gone += source.get("format", 1) < PROVING_FORMAT

    def _own(self, again: Sequence[int | None]) -> dict[str, list[Mapping[str, Any]]]:
        ids = [self._id(self._mine.key(place)) for place in again if place is not None]
        reply = self._cluster.builder.mget(index=self._generation, ids=ids)
        return {one["_source"]["path"]: [one["_source"]] for one in reply["docs"] if one.get("found")}

    def _claim(self, count: int) -> int:
        """Reserve ordinals for this writer; returns the first."""
        if self._base is None:
            if self._named and self._next + count > self._end:
                # The unfinished change may still be running: never hand out ordinals that it may have handed out.
                self._next = self._cluster.claim_block(self._generation, RUN, self._free)
                self._end = self._free = self._next + RUN
            self._next += count
            return self._next - count
        self._free = self._cluster.claim(self._base, count, self._free) + count
        return self._free - count

    def _id(self, key: bytes) -> str:
        return document_id(key, self._token)

    @property
    def _version(self) -> int:
        """Under which this change's documents are written."""
        return 1 if self._base is None else self._base.version + 1

    def _weigh(self, sizes: Mapping[str, int], sign: int = 1) -> None:
        """Count a document, or with -1 no longer, because another takes its place."""
        self._weighed += sign
        for name, size in sizes.items():
            self._weights[name] = self._weights.get(name, 0) + sign * size

    # --- what others put

    def share(self, objects: Sequence[ObjectId]) -> ElasticsearchShare | None:
        if self._named or any(place is not None for place in self._mine.find([id.path for id in objects])):
            return None
        with self._cluster.translated(f"writing dataset {self._definition.id!r}"):
            first = self._claim(len(objects)) if objects else 0
        # Without a receipt, their documents are not in use.
        self._dead.update((self._id(id.key), 0) for id in objects)
        groups, version = dict(self._groups), self._version
        url, settings = self._cluster.url, self._cluster.settings
        return ElasticsearchShare(tuple(objects), first, self._generation, self._token, version, groups, url, settings)

    def receive(self, share: Share, outcomes: Iterable[Outcome]) -> None:
        assert isinstance(share, ElasticsearchShare)
        written = (one for one in outcomes if not one.refused)
        with self._cluster.translated(f"writing dataset {self._definition.id!r}"):
            while batch := list(islice(written, _BATCH)):
                ids = [share.objects[one.place] for one in batch]
                self._stored([id.path for id in ids], ["path", "size", "format"])
                for one, id in zip(batch, ids, strict=True):
                    self._dead.pop(self._id(id.key), None)
                    self._weigh(one.sizes or {})
                self._mine.add([(share.first + one.place, id) for one, id in zip(batch, ids, strict=True)])

    # --- removing

    def remove(self, objects: Iterable[ObjectId]) -> None:
        gone = iter(objects)
        with self._cluster.translated(f"removing objects from dataset {self._definition.id!r}"):
            while batch := list(islice(gone, _BATCH)):
                wanted = set(batch)
                written = self._mine.find([id.path for id in batch])
                if any(place is not None for place in written):
                    self._writer.flush()  # nothing under way may overtake what is written under this id later
                for id, place in zip(batch, written, strict=True):
                    if place is not None and self._mine.key(place) == id.key and self._mine.ordinal(place) >= 0:
                        self._dead[self._id(id.key)] = 0
                        self._mine.forget(place)
                for hit in self._published([id.path for id in batch], ["path", "size", "modified", "format"]):
                    if object_id(hit["_source"]) in wanted:
                        self._kill(hit)

    # --- what was written

    def written(self) -> Iterator[ObjectId]:
        for source in self._read_back(None, ["path", "size", "modified"]):
            yield object_id(source)

    def read(self, objects: Iterable[ObjectId]) -> Iterator[ObjectMetadata]:
        wanted = iter(objects)
        while batch := set(islice(wanted, _BATCH)):
            for source in self._read_back({"terms": {"path": [id.path for id in batch]}}, None):
                if object_id(source) in batch:
                    yield object_metadata(source, self._groups)

    def _read_back(self, query: dict[str, Any] | None, fields: list[str] | None) -> Iterator[dict[str, Any]]:
        with self._cluster.translated(f"reading back dataset {self._definition.id!r}"):
            self._writer.flush()
            self._cluster.refresh(self._generation)
            filters = [{"term": {"change": self._token}}, *([query] if query else [])]
            wanted = None if fields is None else [*fields, "ordinal"]
            scan = self._cluster.scan(self._generation, {"bool": {"filter": filters}}, fields=wanted)
            alive = self._mine.alive()
            for hit in scan:
                ordinal = hit["_source"]["ordinal"]
                if ordinal < len(alive) and alive[ordinal]:
                    yield hit["_source"]

    def _strays(self) -> Iterator[str]:
        """Documents that arrived after this change took over another one's work: they are not in use."""
        if self._is_continued:
            alive = self._mine.alive()
            for hit in self._cluster.scan(self._generation, None, fields=["ordinal"]):
                ordinal = hit["_source"]["ordinal"]
                if ordinal >= len(alive) or not alive[ordinal]:
                    yield hit["_id"]

    # --- publishing

    def publish(self, failed: Iterable[tuple[str, str]] = ()) -> DatasetEntry:
        cluster, base = self._cluster, self._base
        with cluster.translated(f"publishing dataset {self._definition.id!r}"):
            self._writer.flush()
            cluster.refresh(self._generation)
            self._require_visible(self._groups.values())
            state = self._state(tuple((path, reason) for path, reason in failed))
            self._offered = state
            cluster.publish(state, self._before)
            self.published = state
            if base is None:
                cluster.swap(state, self._before, keep=self._named)
                cluster.drop_documents(self._generation, [*self._dead, *self._strays()])
            else:
                # If an earlier writer did not report that it was done, only a new count is right.
                cluster.sweep(state, self._token, self._dead, None if base.swept else self._recounted)
        return state.entry

    def discard(self) -> None:
        """Remove what this change wrote, unless it has a name, or may have been published without anybody knowing."""
        if self._named:
            with contextlib.suppress(StoreError):
                self._writer.flush()
            return
        self._writer.close()
        if self._offered is not None and not retract(self._cluster, self._offered, self._before):
            return
        if self._base is None:
            self._cluster.drop_generation(self._generation)
        else:
            self._cluster.drop_change(self._generation, self._token)

    def _state(self, failed: tuple[tuple[str, str], ...]) -> State:
        base = self._base
        objects = self._mine.objects + (base.entry.objects - len(self._paths_gone) if base else 0)
        total = self._mine.bytes
        total += base.entry.bytes - self._bytes_gone if base else 0
        version = 1 if self._before is None else self._before.version + 1
        segments, next_ordinal = self._segments()
        entry = DatasetEntry(
            definition=self._definition,
            snapshot=snapshot_of(self._generation, version, self._publication),
            objects=objects,
            bytes=total,
            refreshed=time.time_ns() // 1_000_000,
            failed=failed,
            metadata_bytes=self._metadata_bytes(),
        )
        groups, swept = dict(self._groups), base is None or (base.swept and not self._dead)
        outdated = 0 if base is None else max(0, base.outdated - self._outdated_gone)
        counts = (self._generation, version, next_ordinal)
        return State(entry, *counts, groups, self._used, segments, swept, outdated, self._publication, self._index)

    def _metadata_bytes(self) -> dict[str, int]:
        """New documents by count, those that stay by their share of what was."""
        base = self._base
        left = 0.0 if base is None else 1 - len(self._paths_gone) / max(1, base.entry.objects)
        sizes: dict[str, int] = {}
        for id, group in self._groups.items():
            kept = 0
            if base is not None and base.groups.get(id) is not None and base.groups[id].name == group.name:
                kept = int(base.entry.metadata_bytes.get(id, 0) * left)
            sizes[id] = kept + int(self._weights.get(group.name, 0) * self._mine.objects / max(1, self._weighed))
        return sizes

    def _segments(self) -> tuple[tuple[Segment, ...], int]:
        """Write the keys; returns the published segments and the next ordinal."""
        old = () if self._base is None else self._base.segments
        keys, top = self._mine.by_ordinal(), 0 if self._base is None else self._base.next_ordinal
        if len(old) >= _MANY_SEGMENTS:
            packed = self._cluster.answers.keys(self._base, self._cluster.build_deadline())  # type: ignore[arg-type]
            views = ((at // KEY_BYTES, bytes(packed[at : at + KEY_BYTES])) for at in range(0, len(packed), KEY_BYTES))
            keys, old = heapq.merge(((ordinal, key) for ordinal, key in views if any(key)), keys), ()
        new: list[Segment] = []
        self._cluster.write_segments(self._generation, noted(runs(keys, self._publication), new))
        segments = (*old, *new)
        return segments, max([top, self._next, *(segment.first + segment.count for segment in segments)])
