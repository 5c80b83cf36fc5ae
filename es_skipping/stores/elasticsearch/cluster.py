"""What the store does to the cluster's documents and indices, one step each."""

from __future__ import annotations

import base64
import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any, Final

from elastic_transport import TransportError
from elasticsearch import ApiError, BadRequestError, ConflictError, Elasticsearch, NotFoundError

from es_skipping.errors import EsSkippingError, StoreConflict, StoreError
from es_skipping.stores.base import KEY_BYTES, NO_KEY
from es_skipping.stores.elasticsearch.answers import Answers, Deadline
from es_skipping.stores.elasticsearch.bulk import BulkWriter, Write
from es_skipping.stores.elasticsearch.client import BUILD_LIMIT, translated
from es_skipping.stores.elasticsearch.names import Names
from es_skipping.stores.elasticsearch.point_in_time import PointInTime
from es_skipping.stores.elasticsearch.state import STATE_FIELDS, Segment, State
from es_skipping.stores.elasticsearch.templates import install, load

__all__ = ["Cluster"]

_log = logging.getLogger("es_skipping.elasticsearch")
_FEW: Final = 10_000
"""Objects that are counted anew at once."""
_SWEEP_SECONDS: Final = 3.0
_PAUSE: Final = 0.1


class Cluster:
    """A cluster under one prefix of names.

    Parameters
    ----------
    reader, builder
        Clients with the deadline of a look-up, and with that of a build.
    settings
        The settings that both were made from.
    """

    def __init__(
        self, reader: Elasticsearch, builder: Elasticsearch, names: Names, url: str, settings: Mapping[str, Any]
    ) -> None:
        self.reader = reader
        self.builder = builder
        self.names = names
        self.url = url
        self.answers = Answers(reader, names)
        self.settings = settings
        self._build_seconds: float = settings["store.buildTimeout"]
        self._prepared = False

    def translated(self, doing: str, limit: str = BUILD_LIMIT) -> AbstractContextManager[None]:
        """Turns the client's errors into this package's; `limit` names the setting of the time-out."""
        return translated(doing, self.url, limit)

    def build_deadline(self) -> Deadline:
        """The time-out of one step of a build."""
        return Deadline(self._build_seconds)

    # --- the registry of datasets

    def state(self, dataset: str, seconds: float | None = None) -> State | None:
        """The published state of a dataset, in real time: no index refresh is needed."""
        found = self.registered(dataset, seconds)
        return None if found is None else State.from_document(found["_source"])

    def settled(self, dataset: str) -> State | None:
        """The published state that a change adds to. While its writer still removes what it replaced, a change has to
        count all objects anew: where they are many, wait some seconds for it. It may have died."""
        until, state = time.monotonic() + _SWEEP_SECONDS, self.state(dataset)
        while state is not None and not state.swept and state.entry.objects > _FEW and time.monotonic() < until:
            time.sleep(_PAUSE)
            state = self.state(dataset)
        return state

    def registered(self, dataset: str, seconds: float | None = None) -> Mapping[str, Any] | None:
        """The document of a dataset, as the server returns it."""
        client = self.builder if seconds is None else self.reader.options(request_timeout=seconds)
        try:
            found: Any = client.get(index=self.names.datasets, id=dataset).body
        except NotFoundError:
            return None
        if not isinstance(found, Mapping) or "_source" not in found:  # an empty reply is not "no such dataset"
            raise StoreError(f"what answers at {self.url} is not Elasticsearch, or only in part")
        return found

    def states(self, seconds: float | None = None) -> list[State]:
        """Every dataset; with a time limit in seconds if a query waits for it."""
        try:
            hits = self.scan(self.names.datasets, None, "dataset", fields=list(STATE_FIELDS), seconds=seconds)
            return [State.from_document(hit["_source"]) for hit in hits]
        except NotFoundError:
            return []

    def prepare(self) -> None:
        """Templates and the two indices that all datasets share, once."""
        if not self._prepared:
            install(self.builder, self.names)
            self._prepared = True

    def claim(self, base: State, count: int, least: int = 0) -> int:
        """Reserve this many ordinals, from ``least`` on, by compare-and-set on the dataset's document: the first.

        Raises
        ------
        StoreConflict
            Another writer has published since ``base``.
        """
        dataset = base.definition.id
        while True:
            found = self._current(dataset, base)
            document = dict(found["_source"])
            first: int = max(document["next_ordinal"], least)
            document["next_ordinal"] = first + count
            if self.replace(dataset, document, found, refresh=False):
                return first

    def claim_block(self, generation: str, count: int, least: int) -> int:
        """Reserve ordinals of an unpublished generation, likewise; returns the first."""
        id = f"{generation}@next"
        while True:
            found: Any = self.builder.options(ignore_status=404).get(index=self.names.keys, id=id).body
            first: int = max(found["_source"]["first"] if found.get("found") else 0, least)
            expected: dict[str, Any] = (
                {"if_seq_no": found["_seq_no"], "if_primary_term": found["_primary_term"]}
                if found.get("found")
                else {"op_type": "create"}
            )
            document = {"generation": generation, "first": first + count, "count": 0}
            try:
                self.builder.index(index=self.names.keys, id=id, document=document, **expected)
            except ConflictError:
                continue
            return first

    def publish(self, state: State, before: State | None) -> None:
        """Replace the dataset's document: the one step by which a change comes into use.

        Raises
        ------
        StoreConflict
            Another writer has published, created or dropped the dataset since ``before``.
        """
        try:
            self._publish(state, before)
        except (ApiError, TransportError, StoreConflict):  # an answer may be lost, or be that to a request sent twice
            found = self.registered(state.definition.id)
            if found is None or State.from_document(found["_source"]).snapshot != state.snapshot:
                raise

    def _publish(self, state: State, before: State | None) -> None:
        dataset, document = state.definition.id, state.to_document()
        if before is None:
            try:
                self.builder.index(
                    index=self.names.datasets,
                    id=dataset,
                    document=document,
                    op_type="create",
                    require_alias=True,
                    refresh=True,
                )
            except ConflictError:
                raise StoreConflict(f"another writer created dataset {dataset!r} at the same time: try again") from None
            return
        while True:
            found = self._current(dataset, before)
            if state.generation == before.generation:  # a writer that failed may have claimed some meanwhile
                document["next_ordinal"] = max(state.next_ordinal, found["_source"]["next_ordinal"])
            if self.replace(dataset, document, found, refresh=True):
                return

    def _current(self, dataset: str, before: State) -> Mapping[str, Any]:
        found = self.registered(dataset)
        if found is None:
            raise StoreConflict(f"another writer dropped dataset {dataset!r} meanwhile")
        if State.from_document(found["_source"]).snapshot != before.snapshot:
            raise StoreConflict(f"another writer published dataset {dataset!r} meanwhile: try again")
        return found

    def replace(self, dataset: str, document: dict[str, Any], found: Mapping[str, Any], *, refresh: bool) -> bool:
        """Replace the dataset's document that was found; False if another one is there by now."""
        try:
            self.builder.index(
                index=self.names.datasets,
                id=dataset,
                document=document,
                if_seq_no=found["_seq_no"],
                if_primary_term=found["_primary_term"],
                require_alias=True,
                refresh=refresh,
            )
        except ConflictError:
            return False
        return True

    # --- generations

    def create_generation(
        self,
        index: str,
        properties: dict[str, Any],
        fields_limit: int,
        settings: Mapping[str, Any] | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> None:
        """An index for a new generation; nobody knows it before it is published."""
        template = load("objects-mappings")["template"]
        own = template["mappings"]  # repeated, so that it holds even if somebody removed the template
        told = own if meta is None else {**own, "_meta": dict(meta)}
        self.builder.indices.create(
            index=index,
            mappings={**told, "properties": {**own["properties"], **properties}},
            settings={
                **template["settings"]["index"],
                "mapping.total_fields.limit": fields_limit,
                **(settings or {}),
            },
        )

    def generation_meta(self, index: str) -> Mapping[str, Any] | None:
        """The ``_meta`` of an index's mapping; None if there is no such index."""
        try:
            reply = self.builder.indices.get_mapping(index=index)
        except NotFoundError:
            return None
        meta: Mapping[str, Any] = reply[index]["mappings"].get("_meta", {})
        return meta

    def mappings(self, index: str) -> Mapping[str, Any]:
        """The mapping of an index as this user sees it: by name, where it is an alias of others."""
        found: Mapping[str, Any] = self.builder.indices.get_mapping(index=index).body
        return found

    def allows_expensive(self) -> bool:
        """Whether this server takes queries such as ``prefix``; asked, because a writer may not see its settings."""
        try:
            self.builder.search(index=self.names.datasets, size=0, query={"prefix": {"dataset": {"value": "a"}}})
        except BadRequestError:
            return False
        return True

    def generations(self, dataset: str) -> list[str]:
        """Every index of a dataset, in use or not."""
        found = self.builder.indices.get(index=self.names.generations(dataset), features=["aliases"])
        return sorted(found.body)

    def refresh(self, index: str) -> None:
        """Make written documents visible to searches, on every copy.

        Raises
        ------
        StoreConflict
            The index is gone.
        """
        try:
            reply = self.builder.indices.refresh(index=index)
        except NotFoundError:
            raise StoreConflict(f"the index {index} is gone: another writer dropped the dataset") from None
        if reply["_shards"]["failed"]:
            raise StoreConflict(f"not every shard of {index} made the change visible: try again")

    def swap(self, state: State, before: State | None, *, keep: bool = False) -> None:
        """Let people's alias show the new generation, and remove the old one unless it is to be kept.

        Readers follow the dataset's document, not the alias.
        """
        alias = self.names.objects(state.definition.id)
        actions: list[dict[str, Any]] = [{"add": {"index": state.generation, "alias": alias}}]
        if before is not None:
            actions.append({"remove": {"index": before.generation, "alias": alias, "must_exist": False}})
        self._tidy("pointing the alias", lambda: self.builder.indices.update_aliases(actions=actions))
        if before is not None and not keep:
            self.drop_generation(before.generation)

    def drop_generation(self, generation: str) -> None:
        """Remove a generation that nobody uses, with its keys."""
        self._tidy("removing an index", lambda: self._delete_index(generation), "the doctor names it from now on")
        self._tidy("removing keys", lambda: self._delete_keys(generation))
        self.answers.forget(generation)

    def _delete_index(self, index: str) -> None:
        self.builder.indices.delete(index=index, ignore_unavailable=True)

    def _delete_keys(self, generation: str) -> None:
        self.builder.indices.refresh(index=self.names.keys)
        hits = self.scan(self.names.keys, {"term": {"generation": generation}}, "first", fields=[])
        self._delete(self.names.keys, [hit["_id"] for hit in hits])

    def drop_change(self, generation: str, token: str) -> None:
        """Remove the documents of a change that was given up. They were never in use."""

        def remove() -> None:
            self.builder.indices.refresh(index=generation)
            hits = self.scan(generation, {"term": {"change": token}}, fields=[])
            self._delete(generation, [hit["_id"] for hit in hits])

        self._tidy("removing a change that was given up", remove)

    def sweep(
        self, state: State, token: str, dead: Iterable[str], recounted: Callable[[State], State] | None = None
    ) -> None:
        """Remove replaced and removed documents, and those of writers that lost to this one.

        Then say so, with the objects counted anew if need be.
        """

        def remove() -> None:
            lost = {
                "bool": {"filter": [{"term": {"version": state.version}}], "must_not": [{"term": {"change": token}}]}
            }
            ids = [*dead, *(hit["_id"] for hit in self.scan(state.generation, lost, fields=[]))]
            if ids:
                self._delete(state.generation, ids)
                self.builder.indices.refresh(index=state.generation)
            if not state.swept:
                self._mark_swept(state, recounted)

        self._tidy("removing replaced documents", remove)
        self._tidy("pointing the alias", lambda: self._ensure_alias(state))

    def _mark_swept(self, state: State, recounted: Callable[[State], State] | None) -> None:
        """Record that nothing is left of what a publication removed.

        A later writer may have counted it while it was there; of what that one published is said that the next change
        has to count.
        """
        dataset = state.definition.id
        while (found := self.registered(dataset)) is not None:
            now = State.from_document(found["_source"])
            is_ours = now.snapshot == state.snapshot
            if now.generation != state.generation or now.swept == is_ours:
                return
            right = recounted(now) if is_ours and recounted is not None else now
            if self.replace(dataset, replace(right, swept=is_ours).to_document(), found, refresh=True):
                return

    def drop_documents(self, generation: str, ids: Iterable[str]) -> None:
        """Remove documents that are in no use."""

        def remove() -> None:
            gone = list(ids)
            if gone:
                self._delete(generation, gone)
                self.builder.indices.refresh(index=generation)

        self._tidy("removing replaced documents", remove)

    def _ensure_alias(self, state: State) -> None:
        """A writer may have died between publishing a generation and pointing the alias to it."""
        alias = self.names.objects(state.definition.id)
        shown = set(self.builder.options(ignore_status=404).indices.get_alias(name=alias).body) - {"error", "status"}
        if shown != {state.generation}:
            old = [{"remove": {"index": index, "alias": alias}} for index in shown - {state.generation}]
            new = {"add": {"index": state.generation, "alias": alias}}
            self.builder.indices.update_aliases(actions=[*old, new])

    def _delete(self, index: str, ids: list[str]) -> None:
        writer = BulkWriter(self.builder, index, self.url)
        writer.write(Write.deletion(id) for id in ids)
        writer.flush()

    def _tidy(self, doing: str, work: Callable[[], object], otherwise: str = "a later change will do it") -> None:
        """Work on which nothing depends."""
        try:
            work()
        except NotFoundError:
            pass
        except (ApiError, TransportError, EsSkippingError, OSError) as error:  # no answer is a TransportError
            _log.warning("%s failed at %s, %s: %s", doing, self.url, otherwise, type(error).__name__)

    def drop(self, dataset: str) -> str | None:
        """Drop a dataset: first its document, so that no reader finds half of it. Returns its generation, if any."""
        found = self.registered(dataset)
        if found is None:
            return None
        self.builder.options(ignore_status=404).delete(index=self.names.datasets, id=dataset, refresh=True)
        generation: str = found["_source"]["generation"]
        self.drop_generation(generation)
        return generation

    # --- keys and documents

    def write_segments(self, generation: str, segments: Iterable[tuple[Segment, bytes]]) -> None:
        """Keys by ordinal. Until a dataset's document names them they mean nothing."""
        writer = BulkWriter(self.builder, self.names.keys, self.url)
        writer.write(
            Write.of(
                segment.id(generation),
                {
                    "generation": generation,
                    "first": segment.first,
                    "count": segment.count,
                    "keys": base64.b64encode(run).decode("ascii"),
                },
            )
            for segment, run in segments
        )
        writer.flush()

    def published(
        self, state: State, query: dict[str, Any] | None, fields: list[str] | None, sort: str | None = None
    ) -> Iterator[dict[str, Any]]:
        """Documents of published objects, as search hits."""
        keys = self.answers.keys(state, self.build_deadline())
        wanted = None if fields is None else [*fields, "ordinal"]
        for hit in self.scan(state.generation, query, sort, fields=wanted):
            at = hit["_source"]["ordinal"] * KEY_BYTES
            if keys[at : at + KEY_BYTES] not in (b"", NO_KEY):
                yield hit

    def scan(
        self,
        index: str,
        query: dict[str, Any] | None,
        sort: str | None = None,
        *,
        fields: list[str] | None = None,
        seconds: float | None = None,
    ) -> Iterator[dict[str, Any]]:
        """All documents of a query, of one point in time.

        Parameters
        ----------
        sort
            A field, or ``path``: of one path the highest ordinal comes first. None is as they lie, the fastest.
        fields
            Of the source; None is all of it.
        seconds
            For all of it; None is the time of a build for each request.
        """
        deadline = None if seconds is None else Deadline(seconds)

        def client() -> Elasticsearch:
            return self.builder if deadline is None else self.reader.options(request_timeout=deadline.left())

        pit = PointInTime(client, index)
        try:
            yield from pit.hits(query, sort, fields)
        finally:
            self._tidy("closing a point in time", pit.close)
