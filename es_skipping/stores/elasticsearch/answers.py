"""From a query to the keys of the objects that match it: one aggregation gives ordinals, a cache gives keys."""

from __future__ import annotations

import base64
import json
import threading
import time
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from elasticsearch import ApiError, Elasticsearch

from es_skipping.errors import StoreError, StoreUnavailable
from es_skipping.predicates.types import Value
from es_skipping.stores.base import KEY_BYTES, NO_KEY, StoreQuery
from es_skipping.stores.elasticsearch.bools import Query
from es_skipping.stores.elasticsearch.client import OutOfTime
from es_skipping.stores.elasticsearch.fields import Group
from es_skipping.stores.elasticsearch.names import Names
from es_skipping.stores.elasticsearch.state import State

__all__ = ["Answers", "Deadline", "KeysMissing", "explained", "histogram", "may_be_gone", "request_body", "whole"]

PAGE: Final = 60_000
"""Buckets of one aggregation; ``search.max_buckets`` is 65,536 unless raised."""
MAX_VOCABULARY: Final = 10_000
_SEGMENTS_AT_ONCE: Final = 16
_CACHED_GENERATIONS: Final = 64


class KeysMissing(StoreError):
    """A dataset's document names keys that are missing: the dataset was removed meanwhile, or is damaged."""


def may_be_gone(error: ApiError | KeysMissing) -> bool:
    """Whether the index that was asked may be deleted: 404 before the request, 503 while its shard answers."""
    return isinstance(error, KeysMissing) or error.status_code in (404, 503)


class Deadline:
    """A time limit and what is left of it."""

    def __init__(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds

    def left(self) -> float:
        """Seconds.

        Raises
        ------
        OutOfTime
            None are left.
        """
        left = self._end - time.monotonic()
        if left <= 0:
            raise OutOfTime("did not answer in time")
        return left


def request_body(query: Query, first: int, count: int) -> dict[str, Any]:
    """The search for the ordinals of the documents that a query matches, among ``count`` from ``first`` on."""
    page = {"range": {"ordinal": {"gte": first, "lt": first + count}}}
    return {
        "size": 0,
        "track_total_hits": True,
        "query": {"bool": {"filter": [page, query]}},
        "aggs": {"ordinals": histogram(1)},
    }


def histogram(width: int) -> dict[str, Any]:
    """The aggregation with a bucket for this number of neighbouring ordinals, where there are any."""
    return {"histogram": {"field": "ordinal", "interval": width, "min_doc_count": 1}}


def explained(
    alias: str, query: Query | None, ordinals: int, notes: Sequence[str], limits: Sequence[str]
) -> StoreQuery:
    """The search for the ordinals below a number that a query matches, for people; None asks nothing."""
    if query is None:
        nothing = f"# nothing is asked of {alias}: no metadata could prove that this is false of an object"
        return StoreQuery(nothing, tuple(notes))
    paths = f"the answer is the ordinals of the objects to skip; paths: GET {alias}/_search with the same query"
    text = json.dumps(request_body(query, 0, max(1, ordinals)), indent=2, ensure_ascii=False)
    return StoreQuery(f"GET {alias}/_search?allow_partial_search_results=false\n{text}", (*notes, paths, *limits))


def whole(reply: Mapping[str, Any]) -> Mapping[str, Any]:
    """A search's reply, if all of it is there.

    Raises
    ------
    StoreUnavailable
        It timed out, or shards are missing. Elasticsearch answers 200 all the same.
    StoreError
        The reply does not say whether it is complete.
    """
    if "error" in reply:
        raise StoreError(f"Elasticsearch refused a search: {reply['error']}")
    shards = reply["_shards"]
    if reply["timed_out"] is not False or reply.get("terminated_early"):
        raise OutOfTime("ran out of time and answered with a part of the objects")
    if shards["failed"] or shards["successful"] != shards["total"]:
        raise StoreUnavailable(f"{shards['total'] - shards['successful']} of {shards['total']} shards did not answer")
    return reply


class Answers:
    """Reads answers of one cluster, and remembers what cannot change: keys by ordinal, and vocabularies."""

    def __init__(self, client: Elasticsearch, names: Names) -> None:
        self._client = client
        self._names = names
        self._lock = threading.Lock()
        self._keys: dict[str, tuple[frozenset[str], bytearray]] = {}
        self._vocabularies: dict[tuple[str, str, str], frozenset[Value] | None] = {}

    def search(self, index: str, body: dict[str, Any], deadline: Deadline) -> Mapping[str, Any]:
        """One search; raises unless its reply is complete."""
        left = deadline.left()
        reply = self._client.options(request_timeout=left).search(
            index=index,
            **body,
            timeout=f"{max(1, int(left * 1000))}ms",
            allow_partial_search_results=False,
        )
        return whole(reply.body)

    def skipped(self, state: State, query: Query, deadline: Deadline) -> bytes:
        """Keys of the published objects that a query matches."""
        keys = self.keys(state, deadline)
        ordinals: list[int] = []
        for first in range(0, state.next_ordinal, PAGE):
            reply = self.search(state.generation, request_body(query, first, PAGE), deadline)
            buckets = reply["aggregations"]["ordinals"]["buckets"]
            if sum(bucket["doc_count"] for bucket in buckets) != reply["hits"]["total"]["value"]:
                raise StoreError("the answer of Elasticsearch is not whole: fewer ordinals than documents")
            ordinals += [int(bucket["key"]) for bucket in buckets]
        packed = [keys[at : at + KEY_BYTES] for at in (KEY_BYTES * ordinal for ordinal in ordinals)]
        return b"".join(dict.fromkeys(bytes(key) for key in packed if len(key) == KEY_BYTES and key != NO_KEY))

    def count(self, state: State, query: Query, deadline: Deadline) -> int:
        """How many published objects a query matches."""
        return len(self.skipped(state, query, deadline)) // KEY_BYTES

    def keys(self, state: State, deadline: Deadline) -> bytearray:
        """Keys by ordinal, 16 bytes each; zeros where an ordinal is not published.

        An ordinal belongs to one object for ever, so the cache stays right for every later snapshot of a generation.
        """
        wanted = {segment.id(state.generation): segment for segment in state.segments}
        with self._lock:
            loaded, keys = self._keys.get(state.generation, (frozenset[str](), bytearray()))
        missing = [id for id in wanted if id not in loaded]
        if not missing and loaded == wanted.keys():
            return keys
        # A copy: readers of an older snapshot may still hold the other one. What is unpublished there stays so.
        keys = bytearray(keys) if loaded <= wanted.keys() else bytearray()
        missing = missing if keys else list(wanted)
        size = max((segment.first + segment.count for segment in wanted.values()), default=0)
        keys.extend(bytes(max(0, size * KEY_BYTES - len(keys))))
        for at in range(0, len(missing), _SEGMENTS_AT_ONCE):
            ids = missing[at : at + _SEGMENTS_AT_ONCE]
            reply = self._client.options(request_timeout=deadline.left()).mget(index=self._names.keys, ids=ids)
            for document in reply["docs"]:
                if not document.get("found"):
                    raise KeysMissing(f"the keys {document['_id']} are missing: build the dataset again")
                packed = base64.b64decode(document["_source"]["keys"])
                segment = wanted[document["_id"]]
                if len(packed) != segment.count * KEY_BYTES:
                    raise StoreError(f"the keys {document['_id']} are damaged: build the dataset again")
                keys[segment.first * KEY_BYTES : (segment.first + segment.count) * KEY_BYTES] = packed
        with self._lock:
            if len(self._keys) >= _CACHED_GENERATIONS:
                self._keys.pop(next(iter(self._keys)))
            self._keys[state.generation] = (frozenset(wanted), keys)
        return keys

    def vocabulary(self, state: State, group: Group, deadline: Deadline) -> Collection[Value] | None:
        """Every value that a value list of the published objects holds, or None if there are too many to
        handle.

        Published documents never change, so a list read for a snapshot stays complete for it.
        """
        name = (state.generation, state.snapshot, group.name)
        with self._lock:
            if name in self._vocabularies:
                return self._vocabularies[name]
        body = {"size": 0, "aggs": {"values": {"terms": {"field": group.equal, "size": MAX_VOCABULARY + 1}}}}
        found = self.search(state.generation, body, deadline)["aggregations"]["values"]
        complete = found["sum_other_doc_count"] == 0 and len(found["buckets"]) <= MAX_VOCABULARY
        codec = group.codec
        values = frozenset(codec.value(bucket["key"]) for bucket in found["buckets"]) if complete else None
        with self._lock:
            for old in [key for key in self._vocabularies if key[0] == name[0] and key[1] != name[1]]:
                del self._vocabularies[old]
            self._vocabularies[name] = values
        return values

    def forget(self, generation: str) -> None:
        """Free the cache of a generation that is gone."""
        with self._lock:
            self._keys.pop(generation, None)
            for key in [key for key in self._vocabularies if key[0] == generation]:
                del self._vocabularies[key]
