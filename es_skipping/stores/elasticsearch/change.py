"""One writer's change of one dataset.

A document, once written, never changes: metadata given again makes a *new* document with a new ordinal, and the old one
is deleted after publication. A document takes part from the moment that the dataset's document names the segment of
keys its ordinal lies in, and the dataset's document is replaced by compare-and-set. So a crash at any point leaves
what was published before, and what a crashed writer left behind belongs to nobody.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from es_skipping.clauses.metadata import Metadata
from es_skipping.stores.base import KEY_BYTES, Change, DatasetDefinition, DatasetEntry, ObjectId, ObjectMetadata
from es_skipping.stores.elasticsearch.bulk import BulkWriter, Write
from es_skipping.stores.elasticsearch.fields import Group, encode, mapping, needs_prefix, with_prefix, with_room_for
from es_skipping.stores.elasticsearch.names import group_name
from es_skipping.stores.elasticsearch.state import Segment, State, facts

if TYPE_CHECKING:
    from es_skipping.stores.elasticsearch.cluster import Cluster

__all__ = ["ElasticsearchChange", "object_id"]

_BATCH: Final = 500
_SEGMENT: Final = 65_536
_MANY_SEGMENTS: Final = 48
_FIELDS_PER_INDEX: Final = 12
_OWN_FIELDS: Final = 9


@dataclass(slots=True)
class _Mine:
    """A document that this change has written."""

    id: ObjectId
    ordinal: int
    weights: dict[str, int] = field(default_factory=dict)


class ElasticsearchChange(Change):
    """See the module. Made by `ElasticsearchStore.change`."""

    def __init__(self, cluster: Cluster, definition: DatasetDefinition, base: State | None, *, fresh: bool) -> None:
        self._cluster = cluster
        self._definition = definition
        self._before = base
        """What was published when this change began; None where nothing was."""
        self._base = None if fresh else base
        """What this change adds to; None where it starts from nothing."""
        self._token = secrets.token_hex(6)
        self._groups, self._used = _groups(definition, self._base)
        self._next = 0
        if self._base is None:
            self._generation = cluster.names.new_generation(definition.id)
        else:
            self._generation = self._base.generation
        self._mine: dict[str, _Mine] = {}
        self._keys: dict[int, bytes] = {}
        self._dead: dict[str, int] = {}
        self._bytes_gone = 0
        self._paths_gone: set[str] = set()
        self.published: State | None = None
        self._writer = BulkWriter(cluster.builder, self._generation, cluster.url)

    def begin(self) -> None:
        """Make room: the index of a new generation, or the new groups' mapping in the one there is."""
        properties = {group.name: mapping(group) for group in self._groups.values()}
        with self._cluster.translated(f"preparing dataset {self._definition.id!r}"):
            if self._base is None:
                self._cluster.create_generation(self._generation, properties, self._limit())
            elif properties:
                self._cluster.builder.indices.put_settings(
                    index=self._generation, settings={"index.mapping.total_fields.limit": self._limit()}
                )
                self._cluster.builder.indices.put_mapping(index=self._generation, properties=properties)

    def _limit(self) -> int:
        boxes = sum(group.boxes * (group.axes + 1) for group in self._groups.values())
        # Groups that were dropped keep their fields until the next generation.
        return max(1000, _OWN_FIELDS + _FIELDS_PER_INDEX * (len(self._used) + 1) + 2 * boxes)

    # --- putting

    def put(self, objects: Iterable[ObjectMetadata]) -> None:
        listed = iter(objects)
        with self._cluster.translated(f"writing dataset {self._definition.id!r}"):
            while batch := list(islice(listed, _BATCH)):
                last = {one.id.path: at for at, one in enumerate(batch)}
                for part in _without_repeats(batch) if len(last) < len(batch) else [batch]:
                    self._put(part)

    def _put(self, batch: list[ObjectMetadata]) -> None:
        self._learn(batch)
        stored = self._stored([one.id.path for one in batch])
        again = {path: mine for path in (one.id.path for one in batch) if (mine := self._mine.get(path)) is not None}
        if again:
            self._writer.flush()
            stored |= self._own(again)
        first = self._claim(len(batch))
        writes = []
        for ordinal, one in enumerate(batch, first):
            before = stored.get(one.id.path, [])
            same = max(
                (document for document in before if object_id(document) == one.id),
                key=lambda document: int(document["ordinal"]),
                default=None,
            )
            document = self._document(one, ordinal, same)
            id = f"{one.id.key.hex()}.{self._token}"
            mine = self._mine.get(one.id.path)
            if mine is not None:
                self._keys.pop(mine.ordinal, None)
                if mine.id != one.id:
                    self._dead[f"{mine.id.key.hex()}.{self._token}"] = 0
            self._dead.pop(id, None)
            weights = {name: len(json.dumps(document[name])) for name in document["indexed"]}
            self._mine[one.id.path] = _Mine(one.id, ordinal, weights)
            self._keys[ordinal] = one.id.key
            writes.append(Write(id, document, _shrinker(document, weights)))
        self._writer.write(writes)

    def _learn(self, batch: list[ObjectMetadata]) -> None:
        """Prefixes from the first values, and room for boxes; then the mapping, before documents that need it."""
        grown: dict[str, Any] = {}
        for id, group in self._groups.items():
            metadata = [one.metadata[id] for one in batch if id in one.metadata]
            learned = with_prefix(group, metadata) if needs_prefix(group) else group
            for one in metadata:
                learned = with_room_for(learned, one)
            if learned != group:
                self._groups[id] = learned
                if (learned.boxes, learned.axes) != (group.boxes, group.axes):
                    grown[learned.name] = mapping(learned)
        if grown:
            indices = self._cluster.builder.indices
            indices.put_settings(index=self._generation, settings={"index.mapping.total_fields.limit": self._limit()})
            indices.put_mapping(index=self._generation, properties=grown)

    def _document(self, one: ObjectMetadata, ordinal: int, same: Mapping[str, Any] | None) -> dict[str, Any]:
        version = 1 if self._base is None else self._base.version + 1
        document: dict[str, Any] = {
            "path": one.id.path,
            "size": one.id.length,
            "modified": one.id.mtime,
            "ordinal": ordinal,
            "indexed": [],
            "known": [],
            "change": self._token,
            "version": version,
        }
        rows = one.rows if one.rows is not None or same is None else same.get("rows")
        if rows is not None:
            document["rows"] = rows
        for id, group in self._groups.items():
            made = _group_fields(group, one.metadata.get(id))
            if made is None and id not in one.metadata and same is not None and group.name in same["indexed"]:
                made = same[group.name], group.name in same["known"]
            if made is not None:
                document[group.name] = made[0]
                document["indexed"].append(group.name)
                if made[1]:
                    document["known"].append(group.name)
        return document

    def _stored(self, paths: list[str]) -> dict[str, list[Mapping[str, Any]]]:
        """Published documents of these paths; from now on they count as replaced."""
        found: dict[str, list[Mapping[str, Any]]] = {}
        if self._base is None:
            return found
        for hit in self._published(paths, None):
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

    def _own(self, again: Mapping[str, _Mine]) -> dict[str, list[Mapping[str, Any]]]:
        ids = [f"{mine.id.key.hex()}.{self._token}" for mine in again.values()]
        reply = self._cluster.builder.mget(index=self._generation, ids=ids)
        return {one["_source"]["path"]: [one["_source"]] for one in reply["docs"] if one.get("found")}

    def _claim(self, count: int) -> int:
        """The first of so many ordinals that no other writer gets."""
        if self._base is None:
            self._next += count
            return self._next - count
        return self._cluster.claim(self._base, count)

    # --- removing

    def remove(self, objects: Iterable[ObjectId]) -> None:
        gone = iter(objects)
        with self._cluster.translated(f"removing objects from dataset {self._definition.id!r}"):
            while batch := list(islice(gone, _BATCH)):
                wanted = set(batch)
                if any(id.path in self._mine for id in batch):
                    self._writer.flush()  # nothing under way may overtake what is written under this id later
                for id in batch:
                    mine = self._mine.get(id.path)
                    if mine is not None and mine.id == id:
                        self._keys.pop(mine.ordinal)
                        self._dead[f"{id.key.hex()}.{self._token}"] = 0
                        del self._mine[id.path]
                for hit in self._published([id.path for id in batch], ["path", "size", "modified"]):
                    if object_id(hit["_source"]) in wanted:
                        self._kill(hit)

    # --- publishing

    def publish(self, failed: Iterable[tuple[str, str]] = ()) -> DatasetEntry:
        cluster, base = self._cluster, self._base
        with cluster.translated(f"publishing dataset {self._definition.id!r}"):
            self._writer.flush()
            cluster.refresh(self._generation)
            state = self._state(tuple((path, reason) for path, reason in failed))
            cluster.publish(state, self._before)
            self.published = state
            if base is None:
                cluster.swap(state, self._before)
            else:
                cluster.sweep(state, self._token, self._dead)
        return state.entry

    def discard(self) -> None:
        """Remove what this change wrote. What cannot be removed now is removed by a later change."""
        self._writer.close()
        if self._base is None:
            self._cluster.drop_generation(self._generation)
        else:
            self._cluster.drop_change(self._generation, self._token)

    def _state(self, failed: tuple[tuple[str, str], ...]) -> State:
        base = self._base
        objects = len(self._mine) + (base.entry.objects - len(self._paths_gone) if base else 0)
        total = sum(mine.id.length for mine in self._mine.values())
        total += base.entry.bytes - self._bytes_gone if base else 0
        version = 1 if self._before is None else self._before.version + 1
        segments, next_ordinal = self._segments()
        entry = DatasetEntry(
            definition=self._definition,
            snapshot=f"{self._generation}@{version}",
            objects=objects,
            bytes=total,
            refreshed=time.time_ns() // 1_000_000,
            failed=failed,
            metadata_bytes=self._metadata_bytes(),
        )
        return State(entry, self._generation, version, next_ordinal, dict(self._groups), self._used, segments)

    def _metadata_bytes(self) -> dict[str, int]:
        """New documents by count, those that stay by their share of what was."""
        base = self._base
        left = 0.0 if base is None else 1 - len(self._paths_gone) / max(1, base.entry.objects)
        sizes: dict[str, int] = {}
        for id, group in self._groups.items():
            kept = 0
            if base is not None and base.groups.get(id) is not None and base.groups[id].name == group.name:
                kept = int(base.entry.metadata_bytes.get(id, 0) * left)
            sizes[id] = kept + sum(mine.weights.get(group.name, 0) for mine in self._mine.values())
        return sizes

    def _segments(self) -> tuple[tuple[Segment, ...], int]:
        """Write the keys; returns which segments are published and the next ordinal."""
        old = () if self._base is None else self._base.segments
        keys, top = self._keys, 0 if self._base is None else self._base.next_ordinal
        if len(old) >= _MANY_SEGMENTS:
            packed = self._cluster.answers.keys(self._base, self._cluster.build_deadline())  # type: ignore[arg-type]
            views = ((at // KEY_BYTES, bytes(packed[at : at + KEY_BYTES])) for at in range(0, len(packed), KEY_BYTES))
            keys, old = {ordinal: key for ordinal, key in views if any(key)} | keys, ()
        new: list[tuple[Segment, bytes]] = []
        for first, run in _runs(keys):
            new.append((Segment(first, len(run) // KEY_BYTES), run))
        self._cluster.write_segments(self._generation, new)
        segments = (*old, *(segment for segment, _ in new))
        return segments, max([top, self._next, *(segment.first + segment.count for segment in segments)])


# --- pieces -------------------------------------------------------------------------------------------------------


def object_id(source: Mapping[str, Any]) -> ObjectId:
    """The identity that a document was made from."""
    return ObjectId(source["path"], source["size"], source["modified"])


def _groups(definition: DatasetDefinition, base: State | None) -> tuple[dict[str, Group], frozenset[str]]:
    """Fields for each index: those it has where its definition is the same, else fields nobody had before."""
    used = set() if base is None else set(base.used)
    groups: dict[str, Group] = {}
    for index in definition.indexes:
        kept = None if base is None else base.groups.get(index.id)
        if kept is None or base is None or kept.index != index or facts(definition) != facts(base.definition):
            kept = Group(group_name(index.type, index.columns, used), index)
            used.add(kept.name)
        groups[index.id] = replace(kept, index=index)
    return groups, frozenset(used)


def _group_fields(group: Group, metadata: Metadata | None) -> tuple[dict[str, Any], bool] | None:
    return None if metadata is None else encode(group, metadata)


def _without_repeats(batch: list[ObjectMetadata]) -> Iterator[list[ObjectMetadata]]:
    """The batch in parts in which no path comes twice."""
    part: list[ObjectMetadata] = []
    seen: set[str] = set()
    for one in batch:
        if one.id.path in seen:
            yield part
            part, seen = [], set()
        part.append(one)
        seen.add(one.id.path)
    yield part


def _shrinker(document: dict[str, Any], weights: dict[str, int]) -> Any:
    """What to do when a document is too large: forget the largest metadata, which makes it unknown."""

    def shrink() -> bool:
        if not weights:
            return False
        largest = max(weights, key=lambda name: weights[name])
        del weights[largest], document[largest]
        for name in ("indexed", "known"):
            document[name] = [group for group in document[name] if group != largest]
        return True

    return shrink


def _runs(keys: Mapping[int, bytes]) -> Iterator[tuple[int, bytes]]:
    """Keys by ordinal, packed; small holes are filled with zeros, which are no key."""
    ordered = sorted(keys)
    at = 0
    while at < len(ordered):
        first = ordered[at]
        run = bytearray()
        while (
            at < len(ordered)
            and ordered[at] - first < _SEGMENT
            and (ordered[at] - first) * KEY_BYTES <= 2 * len(run) + 1024
        ):
            run.extend(bytes((ordered[at] - first) * KEY_BYTES - len(run)))
            run += keys[ordered[at]]
            at += 1
        yield first, bytes(run)
