"""Look-ups of large datasets, against a point in time whose documents are known.

A view is a point in time. When it is opened, the ordinals of all its documents are read once: they are the table of
identities that answers of this view refer to. A document that the view lacks (a lagging copy, a lost one) is not in the
table, so it is kept, whichever way an answer is put. Since nothing changes in a view, an answer stays right, and what
was answered is remembered.

The server tells many documents by words: each document has a power of two, by which it differs from the others of its
word, and their sum tells which of them match. It counts by blocks first, because where documents match wholly or not at
all no word needs to be asked for.
"""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
from elasticsearch import ApiError, Elasticsearch

from es_skipping.errors import StoreError
from es_skipping.stores.base import KEY_BYTES
from es_skipping.stores.elasticsearch.answers import PAGE, Deadline, histogram, whole
from es_skipping.stores.elasticsearch.blocks import Blocks, Flags, Page, block_size
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
from es_skipping.stores.elasticsearch.documents import WORD
from es_skipping.stores.elasticsearch.fields import span_of
from es_skipping.stores.elasticsearch.query import PROVING, exists, witnesses_of
from es_skipping.stores.selection import KeyTable, Selection

if TYPE_CHECKING:
    from es_skipping.stores.elasticsearch.state import State

__all__ = ["KEEP_ALIVE", "View"]

KEEP_ALIVE: Final = "5m"
_REMEMBERED_BYTES: Final = 32 << 20
_AT_ONCE: Final = 2
_MAX_ORDINALS_PER_REPLY: Final = 16_384
"""Fewer documents are told by their ordinals, others by words."""


class _NotWhole(StoreError):
    """Sums tell fewer ordinals than documents."""


class _Witness(NamedTuple):
    """A document that showed a field when the view was opened: its ordinal in the view, and its id."""

    ordinal: int
    id: str


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
        self._width, self._words_a_page = WORD, PAGE
        seen = self._matching(self._all, deadline, full_too=True)
        published = np.zeros(self._size, np.bool_)
        image = bytes(keys[first * KEY_BYTES : (first + self._size) * KEY_BYTES])
        packed = np.frombuffer(image, np.uint64).reshape(-1, 2)
        published[: len(packed)] = (packed != 0).any(axis=1)
        image = image.ljust(self._size * KEY_BYTES, b"\x00")
        self.table = KeyTable(image, seen & published)
        self._known, self._of_all, self._shown = self._said_by_all(state, seen, deadline)
        self._lock = threading.Lock()
        self._answers: OrderedDict[str, Selection] = OrderedDict()
        self._remembered = 0

    # --- what the view holds

    def _search(
        self, query: Query, deadline: Deadline, most: int | None = None, size: int = 0, **body: Any
    ) -> Mapping[str, Any]:
        """A complete reply; with ``most``, a reply with at least this many documents may be incomplete and say so."""
        left = deadline.left()
        if most is not None:
            body["terminate_after"] = most
        reply = self._client.options(request_timeout=left).search(
            size=size,
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

    def _within(self, query: Query) -> Query:
        return _between(query, self._first, self._first + self._size)

    @property
    def _all(self) -> Query:
        """Every document of the view, and none if ordinals are not seen: only for what is known when it is opened."""
        return {"range": {"ordinal": {"gte": self._first}}} if self._first else EVERY

    def _matching(self, query: Query, deadline: Deadline, full_too: bool = False) -> Flags:
        """Which documents match, by ordinal.

        A view is opened with a look at full blocks too: it shows that no two documents of a word have the same power.
        Look-ups rely on that.
        """
        while True:
            width, count = self._width, self._words_a_page  # other threads lower them too
            try:
                return self._in_words(query, width, count, deadline, full_too)
            except _NotWhole:  # an earlier version wrote documents without a power of two, or this user does not see it
                self._width = 1
            except ApiError as error:
                if not _asked_too_many(error) or count == 1:
                    raise
                self._words_a_page = min(self._words_a_page, count // 2)

    def _in_words(self, query: Query, width: int, count: int, deadline: Deadline, full_too: bool) -> Flags:
        """Which documents match, by words of this width, in pages of at most this number of words."""
        end = self._first + self._size
        size = block_size(self._first, end, count)
        reply = self._search(_between(query, self._first, end), deadline, aggs={"blocks": histogram(size)})
        buckets = _buckets(reply, "blocks")
        counts = np.fromiter((bucket["doc_count"] for bucket in buckets), np.int64, len(buckets))
        blocks = Blocks(self._first, end, size, _starts(buckets), counts)
        if blocks.matching != reply["hits"]["total"]["value"]:
            raise StoreError("the answer of Elasticsearch is not whole: documents without an ordinal")
        flags = blocks.flags()

        def read(page: Page) -> None:
            flags[page.low - self._first : page.high - self._first] = self._page(query, page, deadline)

        pages = blocks.pages(width, count, full_too)
        if len(pages) < 2:
            for page in pages:
                read(page)
        else:  # while one page is decoded here, the server makes the next
            with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="es-skipping-page") as pool:
                list(pool.map(read, pages))
        if not blocks.agree(flags):
            raise StoreError("the answers of Elasticsearch differ: what this user sees changed meanwhile")
        return flags

    def _page(self, query: Query, page: Page, deadline: Deadline) -> Flags:
        """Which documents of a page match.

        A sum of n powers of two has n bits where they are different, and fewer where they are not.
        """
        low, high, width = page
        words = histogram(width)
        if width > 1:
            words["aggs"] = {"bits": {"sum": {"field": "bit"}}}
        # A range of ordinals is safe here, unlike in `_between`: where ordinals have become hidden it finds fewer
        # documents than were counted, and the answer is refused.
        within = all_of([query, {"range": {"ordinal": {"gte": low, "lt": high}}}])
        reply = self._search(within, deadline, aggs={"words": words})
        buckets = _buckets(reply, "words")
        sums = np.ones(len(buckets))
        if width > 1:
            sums = np.fromiter((bucket["bits"]["value"] for bucket in buckets), np.float64, len(buckets))
        packed = sums.astype("<u8").view(np.uint8).reshape(-1, 8)
        begin = low - low % width  # the first word may begin before the view
        told = np.zeros((-(-(high - begin) // width), width), np.bool_)
        told[(_starts(buckets) - begin) // width] = np.unpackbits(packed, axis=1, count=width, bitorder="little")
        flags = told.ravel()[low - begin : high - begin]
        if np.count_nonzero(flags) != reply["hits"]["total"]["value"]:
            error = _NotWhole if width > 1 else StoreError
            raise error("the answer of Elasticsearch is not whole: fewer ordinals than documents")
        return flags

    def _ordinals_of_few(self, query: Query, deadline: Deadline) -> npt.NDArray[np.int64] | None:
        """The ordinals of the documents that match; None where they are many, which the server need not find out."""
        try:
            reply = self._search(query, deadline, most=_MAX_ORDINALS_PER_REPLY, aggs={"ordinals": histogram(1)})
        except ApiError as error:
            if not _asked_too_many(error):
                raise
            return None
        if reply.get("terminated_early") or reply["hits"]["total"]["value"] >= _MAX_ORDINALS_PER_REPLY:
            return None
        found = _starts(_buckets(reply, "ordinals"))
        if len(found) != reply["hits"]["total"]["value"]:  # each is one document's
            raise StoreError("the answer of Elasticsearch is not whole: other ordinals than documents")
        return found - self._first

    def _said_by_all(
        self, state: State, seen: Flags, deadline: Deadline
    ) -> tuple[frozenset[str], tuple[Query, ...], dict[str, _Witness]]:
        """The groups that every document lists in ``known``, and what else every document matches; and the fields that
        need not be asked for of every document, each with one document that shows it."""
        groups = [one for group in state.groups.values() for one in (group, span_of(group))[: 1 + group.spans]]
        settled = {field: (group.name, query) for group in groups for field, query in witnesses_of(group).items()}
        filters: dict[str, Query] = {_PROVING: PROVING}
        filters |= {group.name: {"term": {"known": group.name}} for group in groups}
        filters |= {f"{_SHOWN}{field}": exists(field) for field in settled}
        total, found = self._counts(filters, seen, deadline)
        counts = found["known"]["buckets"]
        said = {name for name, bucket in counts.items() if bucket["doc_count"] == total}
        known = frozenset(group.name for group in groups if group.name in said)
        of_all = (PROVING,) if _PROVING in said else ()
        some = [
            field
            for field, (name, _) in settled.items()
            if counts[name]["doc_count"] and counts[f"{_SHOWN}{field}"]["doc_count"]
        ]
        # Most often every document shows it: then any that is seen will do. Else it takes a slower search to find one.
        ordinals = {field: int(seen.argmax()) for field in some if f"{_SHOWN}{field}" in said}
        some = [field for field in some if field not in ordinals]
        if some:
            ordinals |= self._some_show({field: settled[field][1] for field in some}, seen, deadline)
        return known, of_all, self._witnesses(ordinals, deadline)

    def _some_show(self, settled: Mapping[str, Query], seen: Flags, deadline: Deadline) -> dict[str, int]:
        """Of fields that some documents do not show and that make no difference to those: a document that does."""
        first = {"first": {"min": {"field": "ordinal"}}}
        shown = {f"{_SHOWN}{at}": {"filter": exists(field), "aggs": first} for at, field in enumerate(settled)}
        total, found = self._counts(settled, seen, deadline, shown)
        ordinals = {field: found[f"{_SHOWN}{at}"]["first"]["value"] for at, field in enumerate(settled)}
        return {
            field: int(ordinal) - self._first
            for field, ordinal in ordinals.items()
            if ordinal is not None and found["known"]["buckets"][field]["doc_count"] == total
        }

    def _counts(
        self, filters: Mapping[str, Query], seen: Flags, deadline: Deadline, more: Mapping[str, Any] | None = None
    ) -> tuple[int, Mapping[str, Any]]:
        """How many documents there are, and the reply's aggregations: how many each filter finds, and others.

        All documents are asked, because the server counts these at once, and those of the view one by one.
        """
        view = {"range": {"ordinal": {"gte": self._first, "lt": self._first + self._size}}}
        aggs = {"known": {"filters": {"filters": {_VIEW: view, **filters}}}, **(more or {})}
        reply = self._search(self._all, deadline, aggs=aggs)
        found = reply["aggregations"]
        if found["known"]["buckets"][_VIEW]["doc_count"] != np.count_nonzero(seen):
            raise StoreError("the answers of Elasticsearch differ: what this user sees changed meanwhile")
        return reply["hits"]["total"]["value"], found

    def _witnesses(self, ordinals: Mapping[str, int], deadline: Deadline) -> dict[str, _Witness]:
        """By field, the document with its ordinal: found by its id later, because no role hides ids."""
        wanted = sorted({self._first + ordinal for ordinal in ordinals.values()})
        if not wanted:
            return {}
        query: Query = {"terms": {"ordinal": wanted}}
        reply = self._search(query, deadline, size=len(wanted), docvalue_fields=["ordinal"], aggs={})
        ids = {hit["fields"]["ordinal"][0] - self._first: hit["_id"] for hit in reply["hits"].get("hits", [])}
        return {field: _Witness(ordinal, ids[ordinal]) for field, ordinal in ordinals.items() if ordinal in ids}

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
            return Selection.keeping(self.table, few)
        return Selection.of(self.table, ~self._matching(complement(proof, self._known, self._of_all), deadline))

    def _few_kept(self, proof: Query, deadline: Deadline) -> npt.NDArray[np.int64] | None:
        """The ordinals to keep, if they are few.

        Documents do not change in a view, only what of them is seen. Where each was seen to show a field, or is kept or
        skipped whatever the field holds (`witnesses_of`), one witness is asked in the place of all whether the field is
        still seen. It is found where it is not, or where it is to be kept: then all documents are asked.
        """
        shown = [field for field in seen_fields(proof) if field in self._shown]
        if shown:
            quick = complement(proof, self._known, (*self._of_all, *map(exists, shown)))
            witnesses: dict[_Witness, list[Query]] = {}
            for field in shown:
                witnesses.setdefault(self._shown[field], []).append(exists(field))
            # By id: if its ordinal is hidden as well, a document is found without an ordinal, and the answer refused.
            gone = [
                all_of([{"ids": {"values": [witness.id]}}, none_of([all_of(fields)])])
                for witness, fields in witnesses.items()
            ]
            asked = any_of(gone if quick == NOTHING else [quick, *gone])
            few = self._ordinals_of_few(self._within(asked), deadline)
            if few is None or not any((few == witness.ordinal).any() for witness in witnesses):
                return few
        keep = complement(proof, self._known, self._of_all)
        return np.empty(0, np.int64) if keep == NOTHING else self._ordinals_of_few(self._within(keep), deadline)


def _between(query: Query, first: int, end: int) -> Query:
    # Not "from the first on": where ordinals are not seen any more, nothing would be, and nothing be kept.
    beyond: list[Query] = [{"range": {"ordinal": {"gte": end}}}, {"range": {"ordinal": {"lt": first}}}]
    return all_of([query, none_of(beyond)])


def _asked_too_many(error: ApiError) -> bool:
    """Whether an operator has lowered ``search.max_buckets`` below what was asked."""
    return "too_many_buckets_exception" in str(error.body)


def _buckets(reply: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    return reply.get("aggregations", {}).get(name, {}).get("buckets", [])  # type: ignore[no-any-return]


def _starts(buckets: Sequence[Mapping[str, Any]]) -> npt.NDArray[np.int64]:
    """The first ordinal of each bucket."""
    return np.fromiter((bucket["key"] for bucket in buckets), np.int64, len(buckets))


_PROVING: Final = "proving"
"""Never the name of a group: those have an underscore."""
_VIEW: Final = "view"
"""Nor this."""
_SHOWN: Final = "shown "
"""Begins the names of what is asked about a field; no group has a space in its name."""
_WANTED: Final = [
    "error",
    "timed_out",
    "terminated_early",
    "pit_id",
    "_shards.total",
    "_shards.successful",
    "_shards.failed",
    "hits.total.value",
    "hits.hits._id",
    "hits.hits.fields.ordinal",
    "aggregations.blocks.buckets",
    "aggregations.ordinals.buckets.key",  # and not how many documents each has: one
    "aggregations.words.buckets.key",
    "aggregations.words.buckets.bits.value",
    "aggregations.known.buckets",
    "aggregations.shown*.first.value",
]
