"""Look-ups of large datasets, against a point in time whose documents are known.

A view is a point in time. When it is opened, the ordinals of all its documents are read once: they are the table of
identities that answers of this view refer to. A document that the view lacks (a lagging copy, a lost one) is not in the
table, so it is kept, whichever way an answer is put. Since nothing changes in a view, an answer stays right, and what
was answered is remembered.
"""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
from elasticsearch import ApiError, Elasticsearch

from es_skipping.errors import StoreError
from es_skipping.stores.base import KEY_BYTES
from es_skipping.stores.elasticsearch.answers import PAGE, Deadline, whole
from es_skipping.stores.elasticsearch.bools import (
    EVERY,
    NOTHING,
    Query,
    all_of,
    any_of,
    complement,
    none_of,
    seen_fields,
)
from es_skipping.stores.elasticsearch.fields import span_of
from es_skipping.stores.elasticsearch.query import PROVING, exists, witnesses_of
from es_skipping.stores.selection import KeyTable, Selection

if TYPE_CHECKING:
    from es_skipping.stores.elasticsearch.state import State

__all__ = ["KEEP_ALIVE", "View"]

KEEP_ALIVE: Final = "5m"
_BLOCK: Final = 256
_MAX_BLOCKS: Final = 16_384
_MAX_STRETCHES_PER_QUERY: Final = 500
_REMEMBERED_BYTES: Final = 32 << 20
_AT_ONCE: Final = 2
_TOO_MANY: Final = "too_many_buckets_exception"
_MAX_ORDINALS_PER_REPLY: Final = 16_384
"""From this many ordinals on, they are counted by block first, and fetched in pages, two at a time."""

Flags = npt.NDArray[np.bool_]


class View:
    """One point in time of one published generation.

    Parameters
    ----------
    client
        With the deadline of a look-up.
    pit
        Id of the point in time.
    state
        The published state when it was opened.
    keys
        By ordinal, 16 bytes; zeros where nobody has it.
    first
        The view holds the documents from this ordinal on. Inside, ordinals count from here.
    """

    def __init__(
        self, client: Elasticsearch, pit: str, state: State, keys: bytearray, deadline: Deadline, first: int = 0
    ) -> None:
        self._client = client
        self.pit = pit
        self._first = first
        self._size = max(1, state.next_ordinal - first)
        self._block = _BLOCK
        while self._size // self._block >= _MAX_BLOCKS:
            self._block *= 2
        self._seen = self._ordinals_seen(deadline)
        published = np.zeros(self._size, np.bool_)
        image = bytes(keys[first * KEY_BYTES : (first + self._size) * KEY_BYTES])
        packed = np.frombuffer(image, np.uint64).reshape(-1, 2)
        published[: len(packed)] = (packed != 0).any(axis=1)
        image = image.ljust(self._size * KEY_BYTES, b"\x00")
        self.table = KeyTable(image, self._seen & published)
        self._known, self._of_all, self._shown = self._said_by_all(state, deadline)
        self._lock = threading.Lock()
        self._answers: OrderedDict[str, Selection] = OrderedDict()
        self._remembered = 0

    # --- what the view holds

    def _search(self, query: Query, deadline: Deadline, most: int | None = None, **body: Any) -> Mapping[str, Any]:
        """A complete reply; with ``most``, a reply with at least this many documents may be incomplete and say so."""
        left = deadline.left()
        if most is not None:
            body["terminate_after"] = most
        reply = self._client.options(request_timeout=left).search(
            size=0,
            track_total_hits=True,
            query={"bool": {"filter": [query]}},
            pit={"id": self.pit, "keep_alive": KEEP_ALIVE},
            timeout=f"{max(1, int(left * 1000))}ms",
            allow_partial_search_results=False,
            filter_path=_WANTED,
            **body,
        )
        found = whole(reply.body if most is None else {**reply.body, "terminated_early": False})
        self.pit = found.get("pit_id", self.pit)
        return found if most is None else reply.body

    def _counts(self, query: Query, deadline: Deadline) -> npt.NDArray[np.int64]:
        """The number of matching documents by block of ordinals."""
        offset = self._first % self._block
        histogram = {"field": "ordinal", "interval": self._block, "offset": offset, "min_doc_count": 1}
        reply = self._search(self._within(query), deadline, aggs={"blocks": {"histogram": histogram}})
        counts = np.zeros(-(-self._size // self._block), np.int64)
        for bucket in reply["aggregations"]["blocks"]["buckets"]:
            counts[(int(bucket["key"]) - self._first) // self._block] = bucket["doc_count"]
        if int(counts.sum()) != reply["hits"]["total"]["value"]:
            raise StoreError("the answer of Elasticsearch is not whole: fewer ordinals than documents")
        return counts

    def _within(self, query: Query) -> Query:
        # Not "from the first on": where ordinals are not seen any more, nothing would be, and nothing be kept.
        end = self._first + self._size
        beyond: list[Query] = [{"range": {"ordinal": {"gte": end}}}, {"range": {"ordinal": {"lt": self._first}}}]
        return all_of([query, none_of(beyond)])

    @property
    def _all(self) -> Query:
        """Every document of the view, and none if ordinals are not seen: only for what is known when it is opened."""
        return {"range": {"ordinal": {"gte": self._first}}} if self._first else EVERY

    def _ordinals_seen(self, deadline: Deadline) -> Flags:
        counts = self._counts(self._all, deadline)
        full = np.full(len(counts), self._block, np.int64)
        full[-1] = self._size - (len(counts) - 1) * self._block
        self._counts_seen = counts
        # An ordinal is one document's for ever, so a block with as many documents as ordinals has all of them.
        seen: Flags = np.repeat(counts == full, self._block)[: self._size]
        partial = np.flatnonzero((counts != full) & (counts > 0))
        seen[self._exactly(self._all, partial, counts, deadline)] = True
        return seen

    def _exactly(
        self, query: Query, blocks: npt.NDArray[np.int64], counts: npt.NDArray[np.int64], deadline: Deadline
    ) -> npt.NDArray[np.int64]:
        """The ordinals of the documents in these blocks that match."""
        pages: list[Query] = []
        at = 0
        while at < len(blocks):
            total, stretches, first = 0, list[tuple[int, int]](), at
            while at < len(blocks) and (at == first or total + counts[blocks[at]] <= PAGE):
                block = int(blocks[at])
                if stretches and stretches[-1][1] == block:
                    stretches[-1] = (stretches[-1][0], block + 1)
                elif len(stretches) == _MAX_STRETCHES_PER_QUERY:
                    break
                else:
                    stretches.append((block, block + 1))
                total += int(counts[block])
                at += 1
            ranges: list[Query] = [
                {
                    "range": {
                        "ordinal": {
                            "gte": self._first + low * self._block,
                            "lt": self._first + min(high * self._block, self._size),
                        }
                    }
                }
                for low, high in stretches
            ]
            pages.append(all_of([any_of(ranges), query]))
        if len(pages) <= 1:
            found = [self._ordinals(page, deadline) for page in pages]
        else:  # while one page is decoded here, the server makes the next
            with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="es-skipping-page") as pool:
                found = list(pool.map(lambda page: self._ordinals(page, deadline), pages))
        ordinals = np.concatenate(found) if found else np.empty(0, np.int64)
        if len(ordinals) != int(counts[blocks].sum()):
            raise StoreError("the answer of Elasticsearch is not whole: fewer documents than it counted before")
        return ordinals

    def _ordinals(self, query: Query, deadline: Deadline) -> npt.NDArray[np.int64]:
        return _keys_of(self._search(query, deadline, aggs=_ORDINALS)) - self._first

    def _ordinals_of_few(self, query: Query, deadline: Deadline) -> npt.NDArray[np.int64] | None:
        """The ordinals of the documents that match; None where they are many, which the server need not find out."""
        try:
            reply = self._search(query, deadline, most=_MAX_ORDINALS_PER_REPLY, aggs=_ORDINALS)
        except ApiError as error:  # an operator may have lowered search.max_buckets
            if _TOO_MANY not in str(error.body):
                raise
            return None
        if reply.get("terminated_early") or reply["hits"]["total"]["value"] >= _MAX_ORDINALS_PER_REPLY:
            return None
        return _keys_of(reply) - self._first

    def _said_by_all(
        self, state: State, deadline: Deadline
    ) -> tuple[frozenset[str], tuple[Query, ...], dict[str, int]]:
        """The groups that every document lists in ``known``, and what else every document matches; and the fields that
        need not be asked for of every document, each with the ordinal of one document that shows it."""
        groups = [one for group in state.groups.values() for one in (group, span_of(group))[: 1 + group.spans]]
        settled = [(group.name, field, query) for group in groups for field, query in witnesses_of(group).items()]
        filters: dict[str, Query] = {_PROVING: PROVING}
        filters |= {group.name: {"term": {"known": group.name}} for group in groups}
        filters |= {f"{_SETTLED}{field}": query for _, field, query in settled}
        first = {"first": {"min": {"field": "ordinal"}}}
        shown = {f"{_SHOWN}{at}": {"filter": exists(field), "aggs": first} for at, (_, field, _) in enumerate(settled)}
        reply = self._search(self._all, deadline, aggs={"known": {"filters": {"filters": filters}}, **shown})
        total, found = reply["hits"]["total"]["value"], reply["aggregations"]
        counts = {name: bucket["doc_count"] for name, bucket in found["known"]["buckets"].items()}
        witnesses = {}
        for at, (name, field, _) in enumerate(settled):
            ordinal = found[f"{_SHOWN}{at}"]["first"]["value"]
            if counts[name] and counts[f"{_SETTLED}{field}"] == total and ordinal is not None:
                witnesses[field] = int(ordinal) - self._first
        known = frozenset(group.name for group in groups if counts[group.name] == total)
        return known, (PROVING,) if counts[_PROVING] == total else (), witnesses

    # --- answers

    def select(self, proof: Query, deadline: Deadline) -> Selection:
        """The objects for which this query proves that no row matches."""
        name = json.dumps(proof)
        with self._lock:
            known = self._answers.get(name)
            if known is not None:
                self._answers.move_to_end(name)
                return known
        found = self._select(proof, deadline)
        with self._lock:
            if name not in self._answers:
                self._answers[name] = found
                self._remembered += found.nbytes + len(name)
            while self._remembered > _REMEMBERED_BYTES and len(self._answers) > 1:
                text, oldest = self._answers.popitem(last=False)
                self._remembered -= oldest.nbytes + len(text)
        return found

    def _select(self, proof: Query, deadline: Deadline) -> Selection:
        few = self._few_kept(proof, deadline)  # most often few are kept: then one request is all
        if few is not None:
            return self._kept(few)
        keep = complement(proof, self._known, self._of_all)
        kept = self._counts(keep, deadline)
        partial = np.flatnonzero((kept > 0) & (kept < self._counts_seen))
        skipped = self._counts_seen - kept
        fewer_kept = int(kept[partial].sum()) <= int(skipped[partial].sum())
        skip: Flags = np.repeat(kept == 0, self._block)[: self._size]
        if fewer_kept:
            skip |= np.repeat((kept > 0) & (kept < self._counts_seen), self._block)[: self._size]
            skip[self._exactly(keep, partial, kept, deadline)] = False
        else:
            skip[self._exactly(proof, partial, skipped, deadline)] = True
        return Selection.of(self.table, skip)

    def _few_kept(self, proof: Query, deadline: Deadline) -> npt.NDArray[np.int64] | None:
        """The ordinals to keep, if they are few.

        Documents do not change in a view, only what of them is seen. Where each was seen to show a field, or is kept or
        skipped whatever the field holds (`witnesses_of`), one witness is asked in the place of all whether the field is
        still seen. It is found where it is not, or where it is to be kept: then all documents are asked.
        """
        shown = [field for field in seen_fields(proof) if field in self._shown]
        if shown:
            quick = complement(proof, self._known, (*self._of_all, *map(exists, shown)))
            witnesses: dict[int, list[Query]] = {}
            for field in shown:
                witnesses.setdefault(self._shown[field], []).append(exists(field))
            gone = [
                all_of([{"term": {"ordinal": self._first + at}}, none_of([all_of(fields)])])
                for at, fields in witnesses.items()
            ]
            asked = any_of(gone if quick == NOTHING else [quick, *gone])
            few = self._ordinals_of_few(self._within(asked), deadline)
            if few is None or not any((few == at).any() for at in witnesses):
                return few
        keep = complement(proof, self._known, self._of_all)
        return np.empty(0, np.int64) if keep == NOTHING else self._ordinals_of_few(self._within(keep), deadline)

    def _kept(self, ordinals: npt.NDArray[np.int64]) -> Selection:
        skip = np.ones(self._size, np.bool_)
        skip[ordinals] = False
        return Selection.of(self.table, skip)


def _keys_of(reply: Mapping[str, Any]) -> npt.NDArray[np.int64]:
    """The ordinals of a reply. Each is one document's, so there are as many as documents."""
    buckets = reply.get("aggregations", {}).get("ordinals", {}).get("buckets", [])
    if len(buckets) != reply["hits"]["total"]["value"]:
        raise StoreError("the answer of Elasticsearch is not whole: other ordinals than documents")
    return np.fromiter((bucket["key"] for bucket in buckets), np.int64, len(buckets))


_PROVING: Final = "proving"
"""Never the name of a group: those have an underscore."""
_SETTLED: Final = "settled "
_SHOWN: Final = "shown "
_ORDINALS: Final = {"ordinals": {"histogram": {"field": "ordinal", "interval": 1, "min_doc_count": 1}}}
_WANTED: Final = [
    "error",
    "timed_out",
    "terminated_early",
    "pit_id",
    "_shards.total",
    "_shards.successful",
    "_shards.failed",
    "hits.total.value",
    "aggregations.ordinals.buckets.key",  # and not how many documents each has: one
    "aggregations.blocks.buckets",
    "aggregations.known.buckets",
    "aggregations.shown*.first.value",
]
