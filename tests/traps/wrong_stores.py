"""Wrong variants for the traps of filters and stores; see `tests.traps.wrong` for those that any trap may use."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any
from unittest import mock

from es_skipping.build import footers
from es_skipping.catalog import DatasetEntry, ObjectId
from es_skipping.clauses.clause import KEEP, Ask, Clause, Disjunction
from es_skipping.clauses.evaluate import answer, holds
from es_skipping.clauses.merge import Trace, merge_traced
from es_skipping.clauses.metadata import Intervals, Metadata
from es_skipping.clauses.questions import AnyOf, Overlaps, Question, Range
from es_skipping.indexes import minmax
from es_skipping.indexes.labels import value_clause
from es_skipping.indexes.minmax import Extent
from es_skipping.lookup import lookup, verdict
from es_skipping.predicates.tree import And, Column, Predicate
from es_skipping.stores.base import KEY_BYTES, Answer
from es_skipping.stores.elasticsearch import bulk, change, codecs, fields, point_in_time, query
from es_skipping.stores.elasticsearch.answers import Answers
from es_skipping.stores.elasticsearch.bools import EVERY, none_of
from es_skipping.stores.elasticsearch.client import BUSY
from es_skipping.stores.elasticsearch.cluster import Cluster
from es_skipping.stores.elasticsearch.state import State
from es_skipping.stores.parquet.change import ParquetChange
from es_skipping.stores.parquet.store import ParquetStore
from tests.traps.wrong import RIGHT

__all__ = [
    "a_retry_hides_the_first_reply",
    "absent_in_the_footer_is_null",
    "all_or_nothing",
    "an_allow_list",
    "as_if_in_utc",
    "by_function_name",
    "documents_without_bounds",
    "first_filter_serves_all_scans",
    "in_as_a_hull",
    "keys",
    "literals_as_text",
    "narrower_with_strict_bounds",
    "never_refreshed",
    "no_statistic_is_no_match",
    "nulls_as_bounds",
    "old_metadata_stays",
    "one_is_two",
    "ordinals_without_compare_and_set",
    "pages_without_a_point_in_time",
    "put_if_absent_by_path",
    "survivors_are_all_there_is",
]


def keys(packed: bytes) -> set[bytes]:
    """The keys of an answer."""
    return {packed[at : at + KEY_BYTES] for at in range(0, len(packed), KEY_BYTES)}


# --- filters --------------------------------------------------------------------------------------------------------


def by_function_name(node: dict[str, Any]) -> dict[str, Any]:
    """The function ``plain`` is taken for what it computed when the index was built: its argument."""
    return node["ch"][0] if node["c"].endswith("UDF") and node["a"]["name"] == "plain" else node


def as_if_in_utc(node: dict[str, Any]) -> dict[str, Any]:
    """Expressions look alike whatever the session's time zone."""
    changed = {**node, "zone": "UTC"} if "zone" in node else dict(node)
    if "timeZoneId" in changed.get("a", {}):
        changed["a"] = {**changed["a"], "timeZoneId": "UTC"}
    return changed


def nulls_as_bounds(node: dict[str, Any]) -> dict[str, Any]:
    """A list with a NULL in it is reduced to a range, whose bound is then the NULL: true of no row."""
    listed = node["ch"][1:] if node["c"] == "In" else []
    if any(child["c"] == "Literal" and child["v"] is None for child in listed) or None in node.get("hset", []):
        return {"c": "Literal", "t": "boolean", "v": False}
    return node


@contextmanager
def first_filter_serves_all_scans() -> Iterator[None]:
    """The filter is captured once, before Spark decides which scan serves which part of the query."""
    captured: list[Any] = []

    def left_of_or(node: Mapping[str, Any]) -> dict[str, Any]:
        if node["c"] == "Or":
            return left_of_or(node["ch"][0])
        return {**node, "ch": [left_of_or(child) for child in node["ch"]]} if "ch" in node else dict(node)

    def read(trees: Any, declared: Any) -> Predicate:
        if not captured:
            captured.append([left_of_or(tree) for tree in trees])
        return verdict.read_filters(captured[0])

    with mock.patch.object(lookup, "read_filters", read):
        yield


# --- clauses --------------------------------------------------------------------------------------------------------


@contextmanager
def in_as_a_hull() -> Iterator[None]:
    """IN is asked as one range from its least to its greatest value."""

    def hull(clause: Clause) -> Clause:
        if isinstance(clause, Disjunction):
            return Disjunction(tuple(map(hull, clause.clauses)))
        if isinstance(clause, Ask) and isinstance(clause.question, AnyOf):
            values = sorted(clause.question.values)
            return Ask(clause.index, Overlaps((Range(values[0], values[-1]),)))
        return clause

    def wrong_clause(leaf: Any, target: Any) -> Clause | None:
        clause = value_clause(leaf, target)
        return None if clause is None else hull(clause)

    with mock.patch.object(minmax, "value_clause", wrong_clause):
        yield


@contextmanager
def all_or_nothing() -> Iterator[None]:
    """A conjunction is only used when there is a clause for each of its parts."""

    def merge(predicate: Predicate, labellers: Any) -> Trace:
        trace = merge_traced(predicate, labellers)
        unsupported = isinstance(predicate, And) and any(child.clause == KEEP for child in trace.children)
        return replace(trace, clause=KEEP) if unsupported else trace

    with mock.patch.object(verdict, "merge_traced", merge):
        yield


# --- values ---------------------------------------------------------------------------------------------------------


def _narrow(value: Any) -> Any:
    """A decimal as a double, microseconds as milliseconds."""
    return float(value) if isinstance(value, Decimal) else value // 1000 if isinstance(value, int) else value


def narrower_with_strict_bounds(question: Question, metadata: Metadata | None) -> Any:
    """Bounds are compared in a narrower type, open bounds staying open."""
    if not isinstance(question, Overlaps) or not isinstance(metadata, Intervals) or metadata.ranges is None:
        return RIGHT
    asked = tuple(replace(one, low=_narrow(one.low), high=_narrow(one.high)) for one in question.ranges)
    stored = tuple((_narrow(low), _narrow(high)) for low, high in metadata.ranges)
    return answer(Overlaps(asked), replace(metadata, ranges=stored))


# --- the Parquet store ----------------------------------------------------------------------------------------------


def _now(path: str) -> ObjectId | None:
    """The object that lies at a path now."""
    file = Path(path.removeprefix("file:"))
    if not file.exists():
        return None
    status = file.stat()
    return ObjectId(path, status.st_size, math.floor(status.st_mtime * 1000))


@contextmanager
def an_allow_list() -> Iterator[None]:
    """The store says which objects to read; all others that lie in the dataset are skipped."""
    right = ParquetStore.lookup

    def wrong_lookup(store: ParquetStore, entry: DatasetEntry, clause: Clause, **options: Any) -> Answer:
        skip = keys(right(store, entry, clause, **options).skip)
        read = {one.id.key for one in store.metadata(entry.definition.id)} - skip
        there = [
            _now(f"file:{file}") for file in Path(entry.definition.roots[0].removeprefix("file:")).rglob("*.parquet")
        ]
        return Answer(b"".join({one.key for one in there if one is not None} - read), entry.objects)

    with mock.patch.object(ParquetStore, "lookup", wrong_lookup):
        yield


@contextmanager
def put_if_absent_by_path() -> Iterator[None]:
    """Metadata is kept under the path alone: it is written once and stays, and stands for what lies there now."""
    right_put, right_lookup = ParquetChange.put, ParquetStore.lookup
    known: set[str] = set()

    def put(self: ParquetChange, objects: Any) -> None:
        new = [one for one in objects if one.id.path not in known]
        known.update(one.id.path for one in new)
        right_put(self, new)

    def wrong_lookup(store: ParquetStore, entry: DatasetEntry, clause: Clause, **options: Any) -> Answer:
        skip = keys(right_lookup(store, entry, clause, **options).skip)
        paths = [one.id.path for one in store.metadata(entry.definition.id) if one.id.key in skip]
        now = {one.key for one in map(_now, paths) if one is not None}
        return Answer(b"".join(skip | now), entry.objects)

    with (
        mock.patch.object(ParquetChange, "put", put),
        mock.patch.object(ParquetChange, "remove"),
        mock.patch.object(ParquetStore, "lookup", wrong_lookup),
    ):
        yield


@contextmanager
def old_metadata_stays() -> Iterator[None]:
    """A refresh adds the metadata of what lies at a path now, and leaves that of what lay there before in use."""
    right_put, right_lookup = ParquetChange.put, ParquetStore.lookup
    ever: list[Any] = []

    def put(self: ParquetChange, objects: Any) -> None:
        listed = list(objects)
        ever.extend(listed)
        right_put(self, listed)

    def wrong_lookup(store: ParquetStore, entry: DatasetEntry, clause: Clause, **options: Any) -> Answer:
        skip = keys(right_lookup(store, entry, clause, **options).skip)
        old = {one.id.key for one in ever if holds(clause, one.metadata) is False}
        return Answer(b"".join(skip | old), entry.objects)

    with mock.patch.object(ParquetChange, "put", put), mock.patch.object(ParquetStore, "lookup", wrong_lookup):
        yield


# --- Spark's tables and listings ------------------------------------------------------------------------------------


@contextmanager
def absent_in_the_footer_is_null() -> Iterator[None]:
    """A column that a file lacks is taken to be null in all its rows."""
    right = footers.read_extent

    def read_extent(footer: footers.Footer, column: Column, **options: Any) -> Extent | None:
        if column.path[0] not in footer.metadata.schema.to_arrow_schema().names:
            return Extent(None, None, footer.metadata.num_rows, 0)
        return right(footer, column, **options)

    with (
        mock.patch.object(footers, "read_extent", read_extent),
        mock.patch.object(footers, "_has_metadata", return_value=False),
    ):
        yield


def one_is_two(node: dict[str, Any]) -> dict[str, Any]:
    """The partition value comes with the file, which was indexed under 2, and not from the partition, which is 1."""
    return {**node, "v": 2} if node["c"] == "Literal" and node["v"] == 1 else node


# --- Elasticsearch --------------------------------------------------------------------------------------------------


@contextmanager
def no_statistic_is_no_match() -> Iterator[None]:
    """``must_not`` alone: what has no statistic does not match, and so is skipped."""
    with (
        mock.patch.object(query, "_known", return_value=EVERY),
        mock.patch.object(query, "_none_in", lambda group, field, reached: none_of(reached)),
    ):
        yield


@contextmanager
def pages_without_a_point_in_time() -> Iterator[None]:
    """Documents are paged by their place in the index, whatever happens to it meanwhile, and are not counted."""

    def scan(
        self: Cluster, index: str, asked: Any, sort: str | None = None, *, fields: list[str] | None = None
    ) -> Iterator[dict[str, Any]]:
        after: list[Any] | None = None
        while True:
            reply = self.builder.search(
                index=index,
                size=point_in_time._PAGE,
                query=asked or {"match_all": {}},
                sort=["_doc"],
                search_after=after,
                source=True,
            )
            hits = reply["hits"]["hits"]
            yield from hits
            if not hits:
                return
            after = hits[-1]["sort"]

    with mock.patch.object(Cluster, "scan", scan):
        yield


@contextmanager
def literals_as_text() -> Iterator[None]:
    """Literals are written into the text of the query as they are; a query that is no JSON then asks nothing."""
    right = query._Translator._holds_none

    def holds_none(self: Any, group: Any, values: Any) -> Any:
        try:
            read = [json.loads(f'"{value}"', strict=False) for value in values]
        except ValueError:
            return None
        return right(self, group, read)

    with mock.patch.object(query._Translator, "_holds_none", holds_none):
        yield


@contextmanager
def a_retry_hides_the_first_reply() -> Iterator[None]:
    """Where some items were busy, these are sent again, and the outcomes of the others are forgotten."""
    right = bulk.BulkWriter._once

    def once(self: bulk.BulkWriter, batch: Any) -> Iterator[Any]:
        seen: list[Any] = []
        send = self._client.bulk

        def noted(**options: Any) -> Any:
            reply = send(**options)
            outcomes = [next(iter(item.values())) for item in reply.body["items"]]
            if any(outcome["status"] in BUSY for outcome in outcomes):
                for outcome in outcomes:
                    outcome["status"] = outcome["status"] if outcome["status"] in BUSY else 200
            seen.append(reply)
            return reply

        with mock.patch.object(self, "_client", mock.Mock(bulk=noted)):
            yield from right(self, batch)

    with mock.patch.object(bulk.BulkWriter, "_once", once):
        yield


@contextmanager
def documents_without_bounds() -> Iterator[None]:
    """Values of any length are terms, and nothing can be left out of a document that is refused."""
    with (
        mock.patch.object(codecs, "_MAX_TERM", 1 << 40),
        mock.patch.object(fields, "_LONGEST_TERM", 1 << 30),  # else the server ignores what is longer
        mock.patch.object(change, "shrunk", return_value=None),
    ):
        yield


@contextmanager
def never_refreshed() -> Iterator[None]:
    """Nobody tells the server to make visible what was written."""
    with mock.patch.object(Cluster, "refresh"):
        yield


@contextmanager
def ordinals_without_compare_and_set() -> Iterator[None]:
    """Each writer counts on from the ordinals it read."""
    with mock.patch.object(Cluster, "claim", lambda self, base, count, least: base.next_ordinal):
        yield


@contextmanager
def survivors_are_all_there_is() -> Iterator[None]:
    """The answer is what to keep: documents that are missing are skipped."""
    right = Answers.skipped

    def skipped(self: Answers, state: State, asked: Any, deadline: Any) -> bytes:
        keep = keys(right(self, state, {"bool": {"must_not": [asked]}}, deadline))
        return b"".join(keys(bytes(self.keys(state, deadline))) - keep)

    with mock.patch.object(Answers, "skipped", skipped):
        yield
