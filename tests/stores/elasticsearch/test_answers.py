"""Answers and views without a server: what they make of its replies, read from documents by the model of a server."""

from __future__ import annotations

import base64
import json
import threading
import tracemalloc
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, cast

import pytest
from elasticsearch import ApiError, Elasticsearch

from es_skipping.clauses.clause import Ask
from es_skipping.clauses.metadata import Boxes, Intervals, Values
from es_skipping.clauses.questions import AnyOf, HasNull, Meets, Overlaps, Range
from es_skipping.errors import StoreError, StoreUnavailable
from es_skipping.predicates.types import parse_type
from es_skipping.stores.base import NO_KEY
from es_skipping.stores.elasticsearch import answers as answers_module
from es_skipping.stores.elasticsearch import blocks as blocks_module
from es_skipping.stores.elasticsearch import open_views
from es_skipping.stores.elasticsearch import views as views_module
from es_skipping.stores.elasticsearch.answers import Answers, Deadline, KeysMissing, request_body, whole
from es_skipping.stores.elasticsearch.bools import EVERY, Query
from es_skipping.stores.elasticsearch.documents import PROVING_FORMAT, WORD
from es_skipping.stores.elasticsearch.names import Names
from es_skipping.stores.elasticsearch.open_views import OpenView, Views
from es_skipping.stores.elasticsearch.state import Segment, State
from es_skipping.stores.elasticsearch.views import View
from es_skipping.stores.selection import Selection
from tests.stores import strategies
from tests.stores.elasticsearch.conftest import wait_for_views
from tests.stores.elasticsearch.test_query import Server

NUMBERS = strategies.index("intervals", parse_type("int"))
LISTED = strategies.index("values", parse_type("int"))
PLACES = strategies.index("boxes", parse_type("double"))
SOON = Deadline(86_400)
"""From the import of this module on, which other tests may come between."""


def key(ordinal: int) -> bytes:
    return (ordinal + 1).to_bytes(16, "big")


class Cluster:
    """The few calls that answers and views make, of the documents of one model."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.documents = [
            {"_id": f"number {at}", "ordinal": at, "bit": 1 << at % WORD, **one}
            for at, one in enumerate(server.documents)
        ]
        self.keys: dict[str, bytes] = {}
        self.searches: list[Mapping[str, Any]] = []
        self.read: list[str] = []
        self.opened: list[str] = []
        self.closed: list[str] = []
        self.shards = {"total": 1, "successful": 1, "failed": 0}

    def options(self, **_: Any) -> Cluster:
        return self

    def mget(self, *, index: str, ids: Sequence[str]) -> Mapping[str, Any]:
        self.read += ids
        packed = {id: base64.b64encode(self.keys[id]).decode() for id in ids if id in self.keys}
        found = {id: {"found": True, "_source": {"keys": keys}} for id, keys in packed.items()}
        return {"docs": [{"_id": id, **found.get(id, {"found": False})} for id in ids]}

    def open_point_in_time(self, *, index: str, **_: Any) -> Mapping[str, Any]:
        self.opened.append(index)
        return {"id": f"pit of {index}"}

    def close_point_in_time(self, *, id: str) -> None:
        self.closed.append(id)

    def search(self, *, aggs: Mapping[str, Any], query: Query = EVERY, **more: Any) -> Any:
        found = [one for one in self.documents if self._matches(query, one)]
        most = more.get("terminate_after")
        made = {name: self._aggregated(asked, found) for name, asked in aggs.items()}
        sent = {name: len(reply["buckets"]) for name, reply in made.items() if "buckets" in reply}
        self.searches.append({"query": query, **more, **sent})
        body = {
            "timed_out": False,
            "_shards": self.shards,
            "hits": {
                "total": {"value": len(found)},
                "hits": [
                    {"_id": one["_id"], "fields": {"ordinal": [one["ordinal"]]}} for one in found[: more.get("size", 0)]
                ],
            },
            "aggregations": made,
            **({} if most is None else {"terminated_early": len(found) >= most}),
        }
        return type("Reply", (), {"body": body})

    def _matches(self, query: Query, document: Mapping[str, Any]) -> bool:
        return self.server.matches(query, document)

    def _aggregated(self, asked: Mapping[str, Any], found: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
        kind = next(iter(asked))
        what = asked[kind]
        if kind == "histogram":
            words: dict[int, list[int]] = {}
            for one in (one for one in found if one["ordinal"] is not None):
                words.setdefault(one["ordinal"] // what["interval"] * what["interval"], []).append(one.get("bit", 0))
            return {
                "buckets": [
                    {"key": float(at), "doc_count": len(bits), "bits": {"value": float(sum(bits))}}
                    for at, bits in sorted(words.items())
                ]
            }
        if kind == "filters":
            named = what["filters"].items()
            counts = {name: sum(self._matches(query, one) for one in found) for name, query in named}
            return {"buckets": {name: {"doc_count": count} for name, count in counts.items()}}
        if kind == "filter":
            return {
                "first": {"value": min((one["ordinal"] for one in found if self._matches(what, one)), default=None)}
            }
        assert kind == "terms"
        values = sorted({value for one in found for value in one["g"]["values"]})
        listed = [{"key": value} for value in values[: what["size"]]]
        return {"buckets": listed, "sum_other_doc_count": len(values) - len(listed)}


def state_of(cluster: Cluster, size: int | None = None, generation: str = "made", version: int = 1) -> State:
    """All of the documents published, in one segment."""
    server = cluster.server
    size = len(cluster.documents) if size is None else size
    state = State(
        entry=cast("Any", None),
        generation=generation,
        version=version,
        next_ordinal=size,
        groups={server.index.id: server.group},
        segments=(Segment(0, size),),
    )
    cluster.keys[state.segments[0].id(generation)] = b"".join(map(key, range(size)))
    return state


def numbers(*held: int) -> Cluster:
    return Cluster(Server(NUMBERS, [Intervals(((n, n),), 0) for n in held]))


def answers_of(cluster: Cluster) -> Answers:
    return Answers(cast("Elasticsearch", cluster), Names("es-skipping"))


def proof(cluster: Cluster, question: Any) -> Query:
    return cast("Query", cluster.server.query(Ask(cluster.server.index.id, question)))


# --- answers --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({}, None),
        ({"terminated_early": False}, None),
        ({"error": "no"}, StoreError),
        ({"timed_out": True}, StoreUnavailable),
        ({"timed_out": None}, StoreUnavailable),
        ({"terminated_early": True}, StoreUnavailable),
        ({"_shards": {"total": 2, "successful": 1, "failed": 1}}, StoreUnavailable),
        ({"_shards": {"total": 2, "successful": 1, "failed": 0}}, StoreUnavailable),
        ({"_shards": {"total": 2, "successful": 2, "failed": 1}}, StoreUnavailable),
    ],
)
def test_a_reply_is_whole_or_an_error(change: Mapping[str, Any], error: type[Exception] | None) -> None:
    reply = {"timed_out": False, "_shards": {"total": 2, "successful": 2, "failed": 0}, **change}
    if error is None:
        assert whole(reply) is reply
    else:
        with pytest.raises(error):
            whole(reply)


def test_keys_of_what_is_not_published_are_nobodys() -> None:
    """Another writer's documents are there before they are published; and their ordinals may lie beyond the keys."""
    cluster = numbers(0, 1, 2, 3, 4)
    state = state_of(cluster, 4)
    cluster.keys[state.segments[0].id("made")] = key(0) + key(1) + NO_KEY + key(3)
    beyond = State(**{**{name: getattr(state, name) for name in State.__slots__}, "next_ordinal": 5})
    assert answers_of(cluster).skipped(beyond, EVERY, SOON) == key(0) + key(1) + key(3)


def test_damaged_keys_are_an_error() -> None:
    cluster = numbers(0, 1, 2)
    state = state_of(cluster)
    for damaged in (key(0) + key(1), b"".join(map(key, range(4)))):
        cluster.keys[state.segments[0].id("made")] = damaged
        with pytest.raises(StoreError, match="damaged"):
            answers_of(cluster).keys(state, SOON)


def test_keys_are_read_once_and_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers_module, "_CACHED_GENERATIONS", 2)
    cluster = numbers(0, 1)
    answers = answers_of(cluster)
    one, two, three = (state_of(cluster, generation=name) for name in ("one", "two", "three"))
    for state in (one, two, one, two):
        assert answers.keys(state, SOON) == key(0) + key(1)
        assert answers.keys(state, SOON) is answers.keys(state, SOON), "no copy for each look-up"
    assert cluster.read == ["one@0+2", "two@0+2"]
    for state in (three, two, three):
        answers.keys(state, SOON)
    assert cluster.read[2:] == ["three@0+2"], "the oldest makes room, and no other"
    answers.keys(one, SOON)
    assert cluster.read[3:] == ["one@0+2"]


def test_keys_that_are_gone_are_an_error_of_their_own() -> None:
    """The dataset was removed meanwhile: whoever looks it up again finds out."""
    cluster = numbers(0, 1)
    state = state_of(cluster)
    cluster.keys.clear()
    with pytest.raises(KeysMissing, match=r"made@0\+2"):
        answers_of(cluster).keys(state, SOON)


def test_keys_of_an_older_publication_are_its_own() -> None:
    cluster = numbers(0, 1, 2)
    older, later = state_of(cluster, 2), state_of(cluster, 2, version=2)
    later = replace(later, next_ordinal=3, segments=(Segment(0, 2), Segment(2, 1)))
    cluster.keys["made@2+1"] = key(2)
    answers = answers_of(cluster)
    assert answers.keys(later, SOON) == key(0) + key(1) + key(2)
    assert answers.keys(older, SOON) == key(0) + key(1), "the third is not published there"
    assert answers.keys(later, SOON) == key(0) + key(1) + key(2)
    assert cluster.read == ["made@0+2", "made@2+1", "made@0+2", "made@2+1"], "what is there already is not read again"


def test_a_search_sends_no_documents_along() -> None:
    assert request_body(EVERY, 0, 10)["size"] == 0
    page, _ = request_body(EVERY, 20, 10)["query"]["bool"]["filter"]
    assert page == {"range": {"ordinal": {"gte": 20, "lt": 30}}}


def test_a_deadline_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(answers_module.time, "monotonic", lambda: now)
    deadline = Deadline(5.0)
    assert deadline.left() == 5.0
    now = 104.0
    assert deadline.left() == 1.0
    now = 105.0
    with pytest.raises(StoreUnavailable):
        deadline.left()


def test_keys_of_a_dataset_without_objects() -> None:
    cluster = numbers()
    empty = State(cast("Any", None), "made", 1, 0)
    assert answers_of(cluster).keys(empty, SOON) == b""


def test_a_vocabulary_is_read_once_for_a_publication(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers_module, "MAX_VOCABULARY", 3)
    cluster = Cluster(Server(LISTED, [Values(frozenset({n, n + 1}), 0) for n in range(2)]))
    group, answers = cluster.server.group, answers_of(cluster)
    first, later = state_of(cluster), state_of(cluster, version=2)
    other = state_of(cluster, generation="other")

    def searches(state: State, expected: set[int] | None = frozenset({0, 1, 2})) -> int:  # type: ignore[assignment]
        before = len(cluster.searches)
        assert answers.vocabulary(state, group, SOON) == expected
        return len(cluster.searches) - before

    assert [searches(state) for state in (first, other, first, other)] == [1, 1, 0, 0]
    assert cluster.searches[0]["size"] == 0, "no documents are sent along"
    answers.forget("made")
    assert [searches(state) for state in (other, first)] == [0, 1]
    assert [searches(state) for state in (later, first)] == [1, 1], "of one generation the last read publication stays"
    answers.forget("made")
    cluster.documents[0]["g"] = {"values": [5, 6]}
    assert searches(first, None) == 1, "there are more than three"


def test_vocabularies_of_two_indexes_are_remembered_beside_each_other() -> None:
    cluster = Cluster(Server(LISTED, [Values(frozenset({1}), 0)]))
    answers, state, group = answers_of(cluster), state_of(cluster), cluster.server.group
    for one in (group, replace(group, name="h"), group, replace(group, name="h")):
        assert answers.vocabulary(state, one, SOON) == {1}
    assert len(cluster.searches) == 2


# --- views ----------------------------------------------------------------------------------------------------------


def view_of(cluster: Cluster, state: State, first: int = 0) -> View:
    keys = answers_of(cluster).keys(state, SOON)
    return View(cast("Elasticsearch", cluster), "pit", state, keys, SOON, first)


def skipped(found: Selection) -> set[bytes]:
    keys = found.keys()
    return {keys[at : at + 16] for at in range(0, len(keys), 16)}


def test_what_is_not_seen_is_not_in_the_table() -> None:
    for size in (12, 13, 15, 16):
        cluster = numbers(*range(size))
        state = state_of(cluster)
        gone = {2, 8, 9, 10, 11, size - 1}
        cluster.documents = [one for one in cluster.documents if one["ordinal"] not in gone]
        assert view_of(cluster, state).table.live.tolist() == [at not in gone for at in range(size)]


@pytest.mark.parametrize(
    ("last", "searches", "shown"),
    [
        (Intervals(((9, 9),), 0), 1, {"g.range": 1}),
        (Intervals((), 10), 2, {"g.range": 1}),  # it says that it has nothing to show
        (Intervals(None, 0), 2, {"g.range": 1}),  # nothing is proved of it
    ],
)
def test_which_document_shows_a_field(last: Intervals, searches: int, shown: Mapping[str, int]) -> None:
    """If each does, the first that is seen; if not, it takes another search to find one."""
    cluster = Cluster(Server(NUMBERS, [*(Intervals(((n, n),), 0) for n in range(4)), last]))
    state = state_of(cluster)
    del cluster.documents[0]
    assert {field: witness.ordinal for field, witness in view_of(cluster, state)._shown.items()} == shown
    assert len([one for one in cluster.searches if "known" in one]) == searches


def test_a_last_part_that_is_not_seen_is_kept() -> None:
    cluster = numbers(*range(8))
    state = state_of(cluster)
    del cluster.documents[4:]
    view = view_of(cluster, state)
    assert view.table.live.tolist() == [True] * 4 + [False] * 4
    nothing_matches = proof(cluster, AnyOf((99,)))
    assert skipped(view.select(nothing_matches, SOON)) == set(map(key, range(4)))


def test_what_is_seen_and_not_published_is_nobodys() -> None:
    cluster = numbers(*range(6))
    state = state_of(cluster)
    cluster.keys[state.segments[0].id("made")] = key(0) + NO_KEY + b"".join(map(key, range(2, 6)))
    assert view_of(cluster, state).table.live.tolist() == [True, False, True, True, True, True]


@pytest.mark.parametrize(("low", "high"), [(0, 0), (0, 47), (3, 60), (47, 48), (48, 143), (96, 149), (0, 149)])
def test_many_are_told_by_words(monkeypatch: pytest.MonkeyPatch, low: int, high: int) -> None:
    monkeypatch.setattr(views_module, "_MAX_ORDINALS_PER_REPLY", 1)
    cluster = numbers(*range(150))
    view = view_of(cluster, state_of(cluster))
    cluster.searches.clear()
    found = view.select(proof(cluster, Overlaps((Range(low, high),))), SOON)
    assert skipped(found) == {key(at) for at in range(150) if not low <= at <= high}
    words = [one["words"] for one in cluster.searches if "words" in one]
    all_match = (low, high) == (0, 149)  # this was counted
    few = high - low < 4  # of the view's four words
    expected = [] if all_match else [high - low + 1] if few else [high // 48 - low // 48 + 1]
    assert words == expected, "one bucket for the documents of a word"


@pytest.mark.parametrize(
    ("kept", "told"),
    [
        (range(960), []),  # all
        (range(100, 800), [15]),  # in two blocks some match, and the full ones between them are asked along
        ([*range(96), *range(200, 290), *range(860, 960)], [4]),  # neither the empty ones nor those at the ends
        ([5, 300, 600, 900], [4]),  # few: by ordinals
        (range(0, 960, 2), [20]),  # many: by words
        ([*range(0, 192, 2), *range(192, 960)], [4]),
    ],
    ids=["all", "neighbours", "three groups", "few", "every second", "every second of the first"],
)
def test_only_blocks_that_match_in_part_are_asked_for(
    monkeypatch: pytest.MonkeyPatch, kept: Sequence[int], told: list[int]
) -> None:
    monkeypatch.setattr(views_module, "_MAX_ORDINALS_PER_REPLY", 1)
    monkeypatch.setattr(blocks_module, "_LEAST", 96)
    cluster = numbers(*(int(at in set(kept)) for at in range(960)))
    view = view_of(cluster, state_of(cluster))
    cluster.searches.clear()
    found = view.select(proof(cluster, AnyOf((1,))), SOON)
    assert skipped(found) == {key(at) for at in range(960)} - set(map(key, kept))
    assert [one["words"] for one in cluster.searches if "words" in one] == told


@pytest.mark.parametrize("hidden", [["g"], ["ordinal"], ["g", "ordinal"], ["bit", "g", "known", "ordinal"]])
def test_fields_that_are_hidden_while_a_view_is_open(hidden: Sequence[str]) -> None:
    """The document that showed the field is found by its id, also where its ordinal is hidden."""
    cluster = numbers(*range(8))
    view = view_of(cluster, state_of(cluster))
    values: Mapping[str, Any] = {"ordinal": None, "g": {}, "known": [], "bit": 0}
    cluster.documents = [{**one, **{name: values[name] for name in hidden}} for one in cluster.documents]
    try:
        found = skipped(view.select(proof(cluster, AnyOf((5,))), SOON))
    except StoreError:
        assert "ordinal" in hidden
    else:
        assert "ordinal" not in hidden
        assert key(5) not in found


@pytest.mark.parametrize("first", [0, 2])
def test_a_document_that_is_hidden_while_a_view_is_being_opened(monkeypatch: pytest.MonkeyPatch, first: int) -> None:
    """What all others say is not what all documents say."""
    cluster = numbers(*range(8))

    def hide(body: Mapping[str, Any]) -> None:
        if "known" in body["aggs"]:
            cluster.documents = cluster.documents[:7]

    before_each_search(monkeypatch, cluster, hide)
    with pytest.raises(StoreError, match="changed meanwhile"):
        view_of(cluster, state_of(cluster), first)


@pytest.mark.parametrize("first", [0, 2])
def test_ordinals_that_are_hidden_while_a_view_is_being_opened(monkeypatch: pytest.MonkeyPatch, first: int) -> None:
    """Fewer documents are counted than were seen."""
    cluster = numbers(*range(8))

    def hide(body: Mapping[str, Any]) -> None:
        if "known" in body["aggs"]:
            cluster.documents = [{**one, "ordinal": None} for one in cluster.documents]

    before_each_search(monkeypatch, cluster, hide)
    with pytest.raises(StoreError, match="changed meanwhile"):
        view_of(cluster, state_of(cluster), first)


@pytest.mark.parametrize("since", ["blocks", "words"])
def test_ordinals_that_are_hidden_while_a_view_is_open(monkeypatch: pytest.MonkeyPatch, since: str) -> None:
    """Documents match that have no ordinal any more: no answer may leave them out."""
    monkeypatch.setattr(views_module, "_MAX_ORDINALS_PER_REPLY", 1)
    cluster = numbers(*(at % 2 for at in range(150)))
    view = view_of(cluster, state_of(cluster))

    def hide(body: Mapping[str, Any]) -> None:
        if since in body["aggs"]:
            cluster.documents = [{**one, "ordinal": None} for one in cluster.documents]

    before_each_search(monkeypatch, cluster, hide)
    with pytest.raises(StoreError, match="not whole" if since == "blocks" else "changed meanwhile"):
        view.select(proof(cluster, AnyOf((1,))), SOON)
    assert view._width == WORD, "the powers of two were not to blame"


def before_each_search(
    monkeypatch: pytest.MonkeyPatch, cluster: Cluster, call: Callable[[Mapping[str, Any]], None]
) -> None:
    search = cluster.search

    def called(**body: Any) -> Any:
        call(body)
        return search(**body)

    monkeypatch.setattr(cluster, "search", called)


def test_a_page_that_tells_too_many_does_not_hide_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """A role changes between count and words. By ordinals 94 documents too many are told, by sums 94 too few."""
    monkeypatch.setattr(views_module, "_MAX_ORDINALS_PER_REPLY", 1)
    monkeypatch.setattr(views_module, "PAGE", 2)
    monkeypatch.setattr(blocks_module, "_LEAST", 96)
    kept = {0, 50, *range(96, 190)}
    cluster = numbers(*(int(at in kept) for at in range(192)))
    view = view_of(cluster, state_of(cluster))

    def hide(body: Mapping[str, Any]) -> None:
        if "words" in body["aggs"]:
            cluster.documents = [
                {**{name: held for name, held in one.items() if name != "bit"}, "g": {}} for one in cluster.documents
            ]

    before_each_search(monkeypatch, cluster, hide)
    assert skipped(view.select(proof(cluster, AnyOf((1,))), SOON)) == set()


def test_wrong_powers_of_two_in_two_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """In one a document has two powers, in the other two documents have the same, and two documents are lost."""
    monkeypatch.setattr(views_module, "_MAX_ORDINALS_PER_REPLY", 1)
    monkeypatch.setattr(views_module, "PAGE", 2)
    monkeypatch.setattr(blocks_module, "_LEAST", 96)
    cluster = numbers(*range(192))
    state = state_of(cluster)
    cluster.documents[5]["bit"] = (1 << 5) | (1 << 7)
    cluster.documents[99]["bit"] = cluster.documents[101]["bit"]
    cluster.documents = [one for one in cluster.documents if one["ordinal"] not in (7, 102)]
    view = view_of(cluster, state)
    assert view.table.live.tolist() == [at not in (7, 102) for at in range(192)]


def test_no_page_is_larger_than_servers_allow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(views_module, "_MAX_ORDINALS_PER_REPLY", 1)
    monkeypatch.setattr(views_module, "PAGE", 2)
    cluster = numbers(*(at % 3 for at in range(250)))
    view = view_of(cluster, state_of(cluster))
    cluster.searches.clear()
    found = skipped(view.select(proof(cluster, AnyOf((1, 2))), SOON))
    assert found == {key(at) for at in range(0, 250, 3)}
    assert sorted(one["words"] for one in cluster.searches if "words" in one) == [2, 2, 2]


@pytest.mark.parametrize("lacking", [{7}, set(range(150))])
@pytest.mark.parametrize("when", ["before it is opened", "once it is open"])
def test_documents_without_a_power_of_two(monkeypatch: pytest.MonkeyPatch, lacking: set[int], when: str) -> None:
    """They are told by their ordinals, also to several look-ups that find out at once."""
    monkeypatch.setattr(views_module, "_MAX_ORDINALS_PER_REPLY", 1)
    monkeypatch.setattr(views_module, "PAGE", 60)
    cluster = numbers(*range(150))
    view = view_of(cluster, state_of(cluster)) if when == "once it is open" else None
    for at in lacking:
        del cluster.documents[at]["bit"]
    view = view or view_of(cluster, state_of(cluster))
    asked = [(low, low + 100) for low in range(0, 49, 7)]
    proofs = [proof(cluster, Overlaps((Range(*bounds),))) for bounds in asked]
    together, in_words = threading.Barrier(len(asked), timeout=30), view._in_words

    def at_once(query: Query, width: int, *rest: Any) -> Any:
        if width > 1:
            together.wait()
        return in_words(query, width, *rest)

    monkeypatch.setattr(view, "_in_words", at_once)
    with ThreadPoolExecutor(len(asked)) as pool:
        for (low, high), found in zip(asked, pool.map(lambda one: view.select(one, SOON), proofs), strict=True):
            assert skipped(found) == {key(at) for at in range(150) if not low <= at <= high}


def test_several_look_ups_that_are_refused_lower_the_page_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """An operator lowers ``search.max_buckets`` while a view is open."""
    monkeypatch.setattr(views_module, "_MAX_ORDINALS_PER_REPLY", 1)
    cluster = numbers(*range(150))
    view = view_of(cluster, state_of(cluster))
    together, in_words = threading.Barrier(4, timeout=30), view._in_words

    def refused(query: Query, width: int, count: int, *rest: Any) -> Any:
        if count == views_module.PAGE:
            together.wait()
            raise ApiError("no", cast("Any", None), {"error": {"type": "too_many_buckets_exception"}})
        return in_words(query, width, count, *rest)

    monkeypatch.setattr(view, "_in_words", refused)
    proofs = [proof(cluster, Overlaps((Range(low, 149),))) for low in range(4)]
    with ThreadPoolExecutor(4) as pool:
        for low, found in enumerate(pool.map(lambda one: view.select(one, SOON), proofs)):
            assert skipped(found) == set(map(key, range(low)))
    assert view._words_a_page == views_module.PAGE // 2


@pytest.mark.parametrize("first", [1, 4, 6, 9])
def test_a_view_of_what_was_added(first: int) -> None:
    """Its ordinals count from the first one on; of those before it names none."""
    cluster = numbers(*range(10))
    view = view_of(cluster, state_of(cluster), first)
    assert len(view.table) == 10 - first
    for asked in (AnyOf((9,)), AnyOf((0,)), Overlaps((Range(first, 9),))):
        kept = {9} if asked == AnyOf((9,)) else set() if asked == AnyOf((0,)) else set(range(first, 10))
        assert skipped(view.select(proof(cluster, asked), SOON)) == {
            key(at) for at in range(first, 10) if at not in kept
        }
    for document in cluster.documents:
        del document["g"]["range"]
    assert skipped(view.select(proof(cluster, AnyOf((3,))), SOON)) == set(), "a witness is among what was added"


def test_few_that_are_kept_take_one_search() -> None:
    cluster = numbers(*range(18))
    view = view_of(cluster, state_of(cluster))
    cluster.searches.clear()
    for at in (7, 8, 7, 8):
        assert skipped(view.select(proof(cluster, AnyOf((at,))), SOON)) == {key(n) for n in range(18) if n != at}
    assert len(cluster.searches) == 2, "one each, and what was answered is remembered"


def test_documents_of_another_format_are_kept_by_a_view() -> None:
    """They prove nothing, whatever they hold; a view that has some asks for them, and no other does."""
    for older in ((), (3,), (0, 9), range(10)):
        cluster = numbers(*range(10))
        for at in older:
            cluster.documents[at]["format"] = PROVING_FORMAT - 1
        view = view_of(cluster, state_of(cluster))
        cluster.searches.clear()
        found = view.select(proof(cluster, AnyOf((5,))), SOON)
        assert skipped(found) == {key(at) for at in range(10) if at != 5 and at not in older}
        asked = any('"format"' in str(one).replace("'", '"') for one in cluster.searches)
        assert asked == bool(older), "what all documents say is not asked again"


@pytest.mark.parametrize("hidden", [{4}, {0, 4}, set(range(10))])
@pytest.mark.parametrize("when", ["before it is opened", "once it is open"])
def test_a_field_that_is_not_seen_keeps(hidden: set[int], when: str) -> None:
    """Of some documents it is hidden for good; of all of them, if a role changes while the view is open."""
    cluster = numbers(*range(10))
    view = view_of(cluster, state_of(cluster)) if when == "once it is open" else None
    hidden = set(range(10)) if view is not None else hidden
    for at in hidden:
        del cluster.documents[at]["g"]["range"]
    view = view or view_of(cluster, state_of(cluster))
    found = view.select(proof(cluster, AnyOf((5,))), SOON)
    assert skipped(found) == {key(at) for at in range(10) if at != 5 and at not in hidden}


def test_one_of_several_fields_that_is_not_seen_any_more_keeps() -> None:
    """Each field has a witness of its own: the second box's is another document than the first box's."""
    near, far = ((0.0, 1.0), (0.0, 1.0)), ((8.0, 9.0), (8.0, 9.0))
    cluster = Cluster(Server(PLACES, [Boxes((near,)), *[Boxes((near, far))] * 9]))
    view = view_of(cluster, state_of(cluster))
    everything = {key(at) for at in range(10)}
    assert skipped(view.select(proof(cluster, Meets((Range(2.0, 3.0), Range(0.0, 9.0)))), SOON)) == everything
    for document in cluster.documents[1:]:
        del document["g"]["box_1"]
    found = view.select(proof(cluster, Meets((Range(8.5, 8.6), Range(8.5, 8.6)))), SOON)
    assert skipped(found) == {key(0)}


def test_objects_without_a_value_need_no_witness() -> None:
    cluster = Cluster(Server(NUMBERS, [Intervals((), 3), None, Intervals((), 0)]))
    view = view_of(cluster, state_of(cluster))
    assert skipped(view.select(proof(cluster, AnyOf((5,))), SOON)) == {key(0), key(2)}
    assert skipped(view.select(proof(cluster, HasNull()), SOON)) == {key(2)}
    assert skipped(view.select(EVERY, SOON)) == {key(0), key(1), key(2)}


def test_the_answer_that_was_asked_longest_ago_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = numbers(*range(10))
    view = view_of(cluster, state_of(cluster))

    def searches(value: int) -> int:
        before = len(cluster.searches)
        assert skipped(view.select(proof(cluster, AnyOf((value,))), SOON)) == {
            key(at) for at in range(10) if at != value
        }
        return len(cluster.searches) - before

    size = len(json.dumps(proof(cluster, AnyOf((1,))))) + view.select(proof(cluster, AnyOf((1,))), SOON).nbytes
    monkeypatch.setattr(views_module, "_REMEMBERED_BYTES", 2 * size)
    assert [searches(value) for value in (1, 2, 1, 2)] == [0, 1, 0, 0]
    assert [searches(value) for value in (1, 3, 1)] == [0, 1, 0], "of 1 and 2 the latter was asked longer ago"
    assert searches(2) == 1
    monkeypatch.setattr(views_module, "_REMEMBERED_BYTES", 1)
    assert [searches(value) for value in (4, 4, 5)] == [1, 0, 1], "the last one stays however large it is"


def test_a_view_of_nothing() -> None:
    cluster = numbers()
    view = view_of(cluster, State(cast("Any", None), "made", 1, 0))
    assert view.table.objects == 0
    assert skipped(view.select(proof(cluster, AnyOf((1,))), SOON)) == set()


def test_a_view_of_many_ordinals_takes_little_room() -> None:
    """Most of them belonged to objects that are gone; what is told is told by words."""
    cluster = numbers(*range(3))
    state = replace(state_of(cluster), next_ordinal=1 << 21)
    tracemalloc.start()
    view = view_of(cluster, state)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert view.table.objects == 3
    assert most < 40 * state.next_ordinal, "the keys of 16 bytes, twice, and a few flags"


def test_a_table_leaves_no_view_open() -> None:
    cluster = numbers(0, 1)
    views = Views(cast("Elasticsearch", cluster), answers_of(cluster), 60.0)
    assert views.table(state_of(cluster), SOON).objects == 2
    assert (cluster.opened, cluster.closed) == (["made"], ["pit of made"])


def test_the_view_that_was_asked_longest_ago_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_views, "_MAX_OPEN_VIEWS", 2)
    cluster = numbers(0, 1)
    views = Views(cast("Elasticsearch", cluster), answers_of(cluster), 60.0)
    one, two, three = (state_of(cluster, generation=name) for name in ("one", "two", "three"))
    for state in (one, two, one, three, one):
        with views.view(state, SOON):
            pass
    assert cluster.opened == ["one", "two", "three"]
    wait_for_views()
    assert cluster.closed == ["pit of two"]
    views.forget("three")
    views.forget("two")
    wait_for_views()
    assert cluster.closed == ["pit of two", "pit of three"]
    views.close()
    assert cluster.closed == ["pit of two", "pit of three", "pit of one"]


def test_both_parts_of_an_extended_view_are_closed() -> None:
    cluster = numbers(0, 1, 2)
    state = state_of(cluster)
    old, new = view_of(cluster, state), view_of(cluster, state)
    new.pit = "pit of what was added"
    views = Views(cast("Elasticsearch", cluster), answers_of(cluster), 60.0)
    views._keep(OpenView(state.snapshot, state, old, new), state.generation)
    views.close()
    assert cluster.closed == ["pit", "pit of what was added"]


def test_a_view_that_cannot_be_opened_is_closed() -> None:
    cluster = numbers(0, 1)
    views = Views(cast("Elasticsearch", cluster), answers_of(cluster), 60.0)
    cluster.shards = {"total": 2, "successful": 1, "failed": 1}
    with pytest.raises(StoreUnavailable, match="1 of 2 shards"), views.view(state_of(cluster), SOON):
        pass
    assert cluster.closed == ["pit of made"]
    cluster.shards = {"total": 1, "successful": 1, "failed": 0}
    with views.view(state_of(cluster), SOON) as view:
        assert view.old.table.objects == 2
