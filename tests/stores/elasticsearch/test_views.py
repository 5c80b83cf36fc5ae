"""Look-ups in a view that is kept open, as large datasets are asked: the same answers, whichever way they are put."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
from elasticsearch import Elasticsearch
from hypothesis import given
from hypothesis import strategies as st

from es_skipping.catalog import DatasetEntry, ObjectMetadata
from es_skipping.clauses.clause import Ask, Clause, Conjunction, Disjunction
from es_skipping.clauses.evaluate import holds
from es_skipping.clauses.metadata import Intervals, Values
from es_skipping.clauses.questions import AnyOf, HasNull, Overlaps, Range
from es_skipping.errors import StoreError, StoreUnavailable
from es_skipping.lookup.reply import body
from es_skipping.settings import Settings
from es_skipping.stores.base import Answer, MetadataStore
from es_skipping.stores.elasticsearch import change as change_module
from es_skipping.stores.elasticsearch import cluster as cluster_module
from es_skipping.stores.elasticsearch import store as store_module
from es_skipping.stores.elasticsearch import templates as templates_module
from es_skipping.stores.elasticsearch import views
from es_skipping.stores.elasticsearch.bools import EVERY, NOTHING, Query, all_of, any_of, complement, none_of
from es_skipping.stores.elasticsearch.documents import new_document
from es_skipping.stores.elasticsearch.open_views import OpenView
from es_skipping.stores.elasticsearch.store import ElasticsearchStore
from es_skipping.stores.elasticsearch.templates import load
from es_skipping.stores.selection import Selection, Selections
from tests.stores.contract import (
    LIST,
    MINMAX,
    StoreContract,
    between,
    dataset_definition,
    entry_of,
    keys,
    minmax,
    object_id,
    object_metadata,
    skipped,
    write,
)
from tests.stores.elasticsearch.conftest import make_store, wait_for_views
from tests.stores.elasticsearch.proxy import Exchange, Proxy, proxy
from tests.stores.elasticsearch.test_contract import TestElasticsearchStore as _Contract

DEFINITION = dataset_definition(MINMAX, LIST)


@pytest.fixture(autouse=True)
def always_in_views(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "LARGE", 0)


@pytest.fixture
def store(elasticsearch_store: ElasticsearchStore) -> ElasticsearchStore:
    return elasticsearch_store


class TestQuestions:
    """The contract's differential tests."""

    examples = 15
    exact = _Contract.exact
    reopen = _Contract.reopen
    same_metadata = StoreContract.same_metadata
    check = StoreContract.check
    test_unknown_keeps = StoreContract.test_unknown_keeps
    test_boxes = StoreContract.test_boxes
    test_random_metadata_and_clauses = StoreContract.test_random_metadata_and_clauses
    test_deep_and_wide_clauses = StoreContract.test_deep_and_wide_clauses
    test_a_stale_entry_is_answered_rightly = StoreContract.test_a_stale_entry_is_answered_rightly
    test_a_stale_entry_of_a_dropped_dataset = StoreContract.test_a_stale_entry_of_a_dropped_dataset
    test_detail_counts_by_index = StoreContract.test_detail_counts_by_index
    test_keys = StoreContract.test_keys


def objects(count: int) -> list[ObjectMetadata]:
    """Object n holds n; each ninth is of unknown values, each seventh without the list."""
    made = []
    for n in range(count):
        known = {"minmax": Intervals(None, 0) if n % 9 == 8 else minmax(n, n)}
        if n % 7:
            known["list"] = Values(frozenset({f"v{n % 10}"}), 0)  # type: ignore[assignment]
        made.append(object_metadata(n, **known))
    return made


def check(store: MetadataStore, entry: DatasetEntry, listed: list[ObjectMetadata], clause: Clause) -> Selection:
    """Exactly what the oracle would skip."""
    answer = store.lookup(entry, clause)
    compare_answer(answer, listed, clause)
    assert isinstance(answer.found, Selection)
    return answer.found


def compare(store: ElasticsearchStore, entry: DatasetEntry, listed: list[ObjectMetadata], clause: Clause) -> None:
    """The same, also where a view was extended."""
    compare_answer(store.lookup(entry, clause), listed, clause)


def compare_answer(answer: Answer, listed: list[ObjectMetadata], clause: Clause) -> None:
    assert keys(answer.skip) == {one.id.key for one in listed if holds(clause, one.metadata) is False}
    assert answer.skipped == len(answer.skip) // 16


def test_the_smaller_side_is_named(store: ElasticsearchStore) -> None:
    listed = [object_metadata(n, minmax=minmax(n, n)) for n in range(200)]
    entry = write(store, DEFINITION, listed)
    few = check(store, entry, listed, between(5, 9))
    assert (few.keep, len(few.ordinals), few.skipped) == (True, 5, 195)
    most = check(store, entry, listed, between(5, 190))
    assert (most.keep, len(most.ordinals)) == (False, 14)
    none = check(store, entry, listed, between(1000, 1000))
    assert (none.keep, len(none.ordinals), none.skipped) == (True, 0, 200)
    assert check(store, entry, listed, between(0, 1000)).skipped == 0


@pytest.fixture(params=[(5, 150), (60_000, 20)], ids=["pages", "few buckets"])
def small_pages(
    client: Elasticsearch, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Iterator[None]:
    """As if millions of objects were asked: more words than one reply has, or than an operator allows."""
    page, most = request.param
    monkeypatch.setattr(views, "PAGE", page)
    monkeypatch.setattr(views, "_MAX_ORDINALS_PER_REPLY", 100)
    client.cluster.put_settings(transient={"search.max_buckets": most})
    yield
    client.cluster.put_settings(transient={"search.max_buckets": None})


@pytest.mark.usefixtures("small_pages")
@pytest.mark.parametrize("whose", ["ours", "an earlier version's"])
def test_pages_and_holes(
    store: ElasticsearchStore, client: Elasticsearch, prefix: str, monkeypatch: pytest.MonkeyPatch, whose: str
) -> None:
    if whose != "ours":
        write_as_before(monkeypatch, client, prefix)
    listed = objects(1000)
    write(store, DEFINITION, listed)
    # Holes in the ordinals, and words that are whole: some objects change, some go, many come.
    changed = [object_metadata(n, mtime=5, minmax=minmax(n, n + 1)) for n in range(100, 130, 3)]
    gone = [one.id for one in listed[300:460:2]]
    entry = write(store, DEFINITION, [*changed, *objects(1300)[1000:]], remove=gone)
    left = {one.id.path: one for one in [*objects(1300), *changed] if one.id not in gone}
    now = list(left.values())
    for low, high in ((5, 5), (0, 600), (0, 1290), (100, 480), (-5, -1)):
        check(store, entry, now, between(low, high))
    odd: Clause = Ask(LIST.id, AnyOf(("v1", "v3")))
    check(store, entry, now, odd)
    check(store, entry, now, Conjunction((odd, between(90, 900))))
    check(store, entry, now, Disjunction((Ask(LIST.id, AnyOf(("v2",))), between(400, 410))))
    check(store, entry, now, Ask(MINMAX.id, HasNull()))


def write_as_before(monkeypatch: pytest.MonkeyPatch, client: Elasticsearch, prefix: str) -> None:
    """Documents have no powers of two, and neither index nor template a field for them."""

    def without_bit(*given: Any) -> dict[str, Any]:
        document = new_document(*given)
        del document["bit"]
        return document

    def without_field(*name: str) -> dict[str, Any]:
        found = load(*name)
        if name[0] == "objects-mappings":
            del found["template"]["mappings"]["properties"]["bit"]
        if name[0] == "objects":
            found["_meta"]["revision"] = 0
        return found

    client.options(ignore_status=404).indices.delete_index_template(name=f"{prefix}-objects")
    monkeypatch.setattr(change_module, "new_document", without_bit)
    for module in (cluster_module, templates_module):
        monkeypatch.setattr(module, "load", without_field)


def is_mapped(client: Elasticsearch, store: ElasticsearchStore) -> bool:
    """Whether every generation has the field for powers of two."""
    found = client.indices.get_mapping(index=f"{store._cluster.names.prefix}-objects-events*").body
    return all("bit" in one["mappings"]["properties"] for one in found.values())


def test_documents_of_an_earlier_version(store: ElasticsearchStore, client: Elasticsearch, prefix: str) -> None:
    """They are asked by their ordinals, as long as one of them is there."""
    listed = objects(300)
    with pytest.MonkeyPatch.context() as patch:
        write_as_before(patch, client, prefix)
        entry = write(store, DEFINITION, listed[:200])
        assert not is_mapped(client, store)
        check(store, entry, listed[:200], between(5, 150))
    entry = write(store, DEFINITION, listed[200:])
    assert is_mapped(client, store)
    reader = make_store(store.url, prefix)
    for low, high in ((5, 5), (5, 150), (100, 290)):
        check(reader, entry, listed, between(low, high))
    reader.close()


def test_a_copy_that_an_earlier_version_began(store: ElasticsearchStore, client: Elasticsearch, prefix: str) -> None:
    listed = objects(100)
    with pytest.MonkeyPatch.context() as patch:
        write_as_before(patch, client, prefix)
        write(store, DEFINITION, listed)
        with store.change(DEFINITION, fresh=True, name="copy") as change:
            change.put(listed[:40])
            assert list(change.written())
        assert not is_mapped(client, store)
    with store.change(DEFINITION, fresh=True, name="copy") as change:
        change.put(listed[40:])
        entry = change.publish()
    check(store, entry, listed, between(5, 60))


@pytest.mark.parametrize("bit", [1, 1 << 6, (1 << 8) + (1 << 9), 1 << 50, None])
def test_a_word_that_tells_too_few_is_not_believed(
    store: ElasticsearchStore, client: Elasticsearch, monkeypatch: pytest.MonkeyPatch, bit: int | None
) -> None:
    """Document 7 has another power of two than its own, that of another document or none."""
    monkeypatch.setattr(views, "_MAX_ORDINALS_PER_REPLY", 2)
    listed = [object_metadata(n, minmax=minmax(n, n)) for n in range(50)]
    entry = write(store, DEFINITION, listed)
    index = entry.snapshot.rpartition("@")[0]
    hit = client.search(index=index, query={"term": {"ordinal": 7}})["hits"]["hits"][0]
    client.index(index=index, id=hit["_id"], document={**hit["_source"], "bit": bit}, refresh=True)
    for clause in (between(7, 7), between(4, 9), between(0, 40), between(1000, 1000)):
        check(store, entry, listed, clause)


def test_a_document_that_is_not_seen_is_kept(store: ElasticsearchStore, client: Elasticsearch) -> None:
    """As on a copy that lags behind: its object must be in no answer, though the keys are known."""
    listed = [object_metadata(n, minmax=minmax(n, n)) for n in range(50)]
    entry = write(store, DEFINITION, listed)
    index = entry.snapshot.rpartition("@")[0]
    hit = client.search(index=index, query={"term": {"ordinal": 7}})["hits"]["hits"][0]
    client.delete(index=index, id=hit["_id"], refresh=True)
    seen = [one for one in listed if one.id.path != hit["_source"]["path"]]
    for clause in (between(1000, 1000), between(3, 4), between(0, 40)):
        check(store, entry, seen, clause)


def test_what_others_write_meanwhile_is_nobody(store: ElasticsearchStore, client: Elasticsearch) -> None:
    listed = [object_metadata(n, minmax=minmax(n, n)) for n in range(20)]
    entry = write(store, DEFINITION, listed)
    with make_store(store.url, store._cluster.names.prefix).change(DEFINITION) as change:
        change.put([object_metadata(n, mtime=9, minmax=minmax(5, 5)) for n in range(10, 40)])
        assert list(change.written())
        check(store, entry, listed, between(5, 5))
        check(store, entry, listed, between(1000, 1000))
    check(store, entry, listed, between(5, 5))


def test_an_object_that_came_back_is_named_once(store: ElasticsearchStore) -> None:
    one = object_metadata(1, minmax=minmax(1, 1))
    write(store, DEFINITION, [one, object_metadata(2, minmax=minmax(2, 2))])
    write(store, DEFINITION, remove=[one.id])
    entry = write(store, DEFINITION, [one])
    assert skipped(store, entry, between(9, 9)) == {one.id.key, object_id(2).key}


def open_contexts(client: Elasticsearch) -> int:
    nodes = client.nodes.stats(metric="indices", index_metric="search")["nodes"]
    return sum(node["indices"]["search"]["open_contexts"] for node in nodes.values())


def eventually(check: Callable[[], bool], seconds: float = 10) -> None:
    end = time.monotonic() + seconds
    while not check():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.05)


def test_views_follow_publications_and_are_closed(
    store: ElasticsearchStore, client: Elasticsearch, prefix: str
) -> None:
    before = open_contexts(client)
    reader = make_store(store.url, prefix)
    listed = [object_metadata(n, minmax=minmax(n, n)) for n in range(10)]
    for n in range(3):
        listed[n] = object_metadata(n, mtime=n, minmax=minmax(100, 100))
        write(store, DEFINITION, listed)
        entry = entry_of(reader)
        check(reader, entry, listed, between(100, 100))
        check(reader, entry, listed, between(5, 6))
        eventually(lambda: open_contexts(client) <= before + 1)  # closing and counting take a moment
    reader.close()
    assert open_contexts(client) <= before  # views of earlier tests may end meanwhile


def test_a_view_that_expired_is_opened_again(store: ElasticsearchStore, client: Elasticsearch) -> None:
    listed = [object_metadata(n, minmax=minmax(n, n)) for n in range(10)]
    entry = write(store, DEFINITION, listed)
    check(store, entry, listed, between(5, 6))
    client.close_point_in_time(id=store._views._views[entry.snapshot.rpartition("@")[0]].old.pit)
    check(store, entry, listed, between(5, 7))


def the_view(store: ElasticsearchStore, entry: DatasetEntry) -> OpenView:
    return store._views._views[entry.snapshot.rpartition("@")[0]]


def test_after_an_append_a_view_is_extended(store: ElasticsearchStore, client: Elasticsearch, prefix: str) -> None:
    """The earlier view stays, with its answers and its table; one of the new documents stands beside it."""
    before = open_contexts(client)
    reader = make_store(store.url, prefix)
    listed = objects(300)
    compare(reader, write(store, DEFINITION, listed), listed, between(5, 60))
    old = the_view(reader, entry_of(reader)).old
    for n in range(3):
        more = [object_metadata(400 + 5 * n + at, minmax=minmax(5 * at, 5 * at)) for at in range(5)]
        listed += more
        write(store, DEFINITION, more)
        entry = entry_of(reader)
        listing: Clause = Ask(LIST.id, AnyOf(("v1", "v3")))
        for clause in (between(5, 60), between(5, 6), between(0, 0), between(1000, 1000), listing):
            compare(reader, entry, listed, clause)
        view = the_view(reader, entry)
        assert view.old is old and view.new is not None
        assert len(view.new.table) == 5 * (n + 1)
        wait_for_views()
        assert open_contexts(client) <= before + 2
    reader.close()
    assert open_contexts(client) <= before


@contextmanager
def asked_slowly(
    faulty: Proxy, store: ElasticsearchStore, entry: DatasetEntry, clause: Clause
) -> Iterator[Callable[[], Answer]]:
    """A look-up whose search has not reached the server, until its answer is wanted."""
    reached, goes_on = threading.Event(), threading.Event()

    def before(exchange: Exchange) -> None:
        if "/_search" in exchange.path and not reached.is_set():
            reached.set()
            assert goes_on.wait(60)

    faulty.before = before
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(store.lookup, entry, clause, timeout=60)
        assert reached.wait(60)

        def answer() -> Answer:
            goes_on.set()
            return asked.result(60)

        try:
            yield answer
        finally:
            goes_on.set()


def opened(faulty: Proxy) -> int:
    return sum("/_pit" in exchange.path and exchange.method == "POST" for exchange in faulty.seen)


def test_a_replaced_view_stays_open_while_it_is_asked(
    elasticsearch_url: str, store: ElasticsearchStore, client: Elasticsearch, prefix: str
) -> None:
    contexts = open_contexts(client)
    listed = [object_metadata(n, minmax=minmax(n, n)) for n in range(20)]
    entry = write(store, DEFINITION, listed)
    with proxy(elasticsearch_url) as faulty:
        reader = make_store(faulty.url, prefix)
        check(reader, entry, listed, between(1, 2))
        with asked_slowly(faulty, reader, entry, between(5, 6)) as answer:
            later = [object_metadata(0, mtime=7, minmax=minmax(5, 5)), *listed[1:]]
            write(store, DEFINITION, later)
            check(reader, entry_of(reader), later, between(5, 7))
            compare_answer(answer(), listed, between(5, 6))
        assert opened(faulty) == 2, "one for each publication"
        wait_for_views()
        eventually(lambda: open_contexts(client) <= contexts + 1)
        reader.close()
    assert open_contexts(client) <= contexts


def test_no_look_up_waits_until_a_view_is_closed(
    elasticsearch_url: str, store: ElasticsearchStore, prefix: str
) -> None:
    listed = [object_metadata(n, minmax=minmax(n, n)) for n in range(20)]
    entry = write(store, DEFINITION, listed)
    closes = threading.Event()
    with proxy(elasticsearch_url) as faulty:
        patient = Settings({"spark.es_skipping.store.timeout": "5m"})
        reader = ElasticsearchStore(faulty.url, patient, prefix=prefix)
        check(reader, entry, listed, between(1, 2))
        with asked_slowly(faulty, reader, entry, between(5, 6)) as answer:
            listed[0] = object_metadata(0, mtime=7, minmax=minmax(5, 5))
            write(store, DEFINITION, listed)
            check(reader, entry_of(reader), listed, between(5, 7))

            def before(exchange: Exchange) -> None:
                if exchange.method == "DELETE":
                    closes.wait(120)

            faulty.before = before
            assert answer().known == 20
        check(reader, entry_of(reader), listed, between(5, 8))
        closes.set()
        wait_for_views()
        reader.close()


def test_a_store_closes_the_views_that_are_asked(
    elasticsearch_url: str, store: ElasticsearchStore, client: Elasticsearch, prefix: str
) -> None:
    contexts = open_contexts(client)
    entry = write(store, DEFINITION, [object_metadata(n, minmax=minmax(n, n)) for n in range(20)])
    with proxy(elasticsearch_url) as faulty:
        reader = make_store(faulty.url, prefix)
        reader.lookup(entry, between(1, 2))
        with asked_slowly(faulty, reader, entry, between(5, 6)):
            reader.close()
            eventually(lambda: open_contexts(client) <= contexts)


def test_only_the_view_that_failed_is_dropped(
    elasticsearch_url: str, store: ElasticsearchStore, client: Elasticsearch, prefix: str
) -> None:
    """Two look-ups find the view gone, one of them long after the other opened it again."""
    listed = [object_metadata(n, minmax=minmax(n, n)) for n in range(20)]
    entry = write(store, DEFINITION, listed)
    with proxy(elasticsearch_url) as faulty:
        reader = make_store(faulty.url, prefix)
        check(reader, entry, listed, between(1, 2))
        client.close_point_in_time(id=the_view(reader, entry).old.pit)
        with asked_slowly(faulty, reader, entry, between(5, 6)) as answer:
            check(reader, entry, listed, between(5, 7))
            compare_answer(answer(), listed, between(5, 6))
        assert opened(faulty) == 2
        reader.close()


def test_a_view_that_cannot_be_opened_leaves_no_point_in_time(
    elasticsearch_url: str, store: ElasticsearchStore, client: Elasticsearch, prefix: str
) -> None:
    contexts = open_contexts(client)
    entry = write(store, DEFINITION, [object_metadata(n, minmax=minmax(n, n)) for n in range(5)])

    def after(exchange: Exchange) -> None:
        if "/_search" in exchange.path:
            exchange.reply |= {"timed_out": True}

    with proxy(elasticsearch_url) as faulty:
        reader = make_store(faulty.url, prefix)
        faulty.after = after
        with pytest.raises(StoreError):
            reader.lookup(entry, between(3, 3))
        assert opened(faulty) >= 1
        eventually(lambda: open_contexts(client) <= contexts)
        reader.close()


def test_a_reply_has_a_set_of_each_table(store: ElasticsearchStore) -> None:
    compare(store, write(store, DEFINITION, objects(100)), objects(100), between(5, 60))
    entry = write(store, DEFINITION, [object_metadata(400, minmax=minmax(5, 5))])
    answer = store.lookup(entry, between(5, 9))
    assert isinstance(answer.found, Selections)
    assert [part.skipped for part in answer.found.parts] == [85, 0]
    assert body([[answer]])[:9].hex(" ") == "00 00 00 02 00 00 00 00 55", "two parts; the first has 85 keys"


@pytest.mark.parametrize("what", ["many", "removed", "replaced", "another index", "another writer"])
def test_a_view_is_opened_anew_after_other_changes(store: ElasticsearchStore, prefix: str, what: str) -> None:
    reader = make_store(store.url, prefix)
    listed = objects(100)
    compare(reader, write(store, DEFINITION, listed), listed, between(5, 60))
    old = the_view(reader, entry_of(reader)).old
    new = [object_metadata(200 + n, minmax=minmax(n, n)) for n in range(11 if what == "many" else 2)]
    if what == "removed":
        write(store, DEFINITION, new, remove=[listed[7].id])
        listed = listed[:7] + listed[8:]
    elif what == "replaced":
        listed[7] = new[0] = object_metadata(7, mtime=99, minmax=minmax(5, 5))
        write(store, DEFINITION, new)
        new = new[1:]
    elif what == "another index":
        write(store, dataset_definition(MINMAX, LIST, replace(MINMAX, id="other")), new)
    elif what == "another writer":  # claimed ordinals before this view was opened
        with store.change(DEFINITION) as change:
            change.put(new)
            assert list(change.written())
            late = make_store(store.url, prefix)
            more = [object_metadata(300, minmax=minmax(1, 1))]
            listed += more
            compare(late, write(store, DEFINITION, more), listed, between(5, 60))
            late.close()
        write(store, DEFINITION, new)
    else:
        write(store, DEFINITION, new)
    listed += new
    entry = entry_of(reader)
    for clause in (between(5, 60), between(5, 5)):
        compare(reader, entry, listed, clause)
    if what != "another writer":
        assert the_view(reader, entry).old is not old and the_view(reader, entry).new is None
    reader.close()


def test_a_view_that_takes_longer_to_open_than_a_look_up_may_take(
    elasticsearch_url: str, store: ElasticsearchStore, prefix: str
) -> None:
    """Some look-ups are given up, and the opening goes on: once, however many wait for it."""
    with proxy(elasticsearch_url) as faulty:
        listed = [object_metadata(n, minmax=minmax(n, n)) for n in range(10)]
        entry = write(store, DEFINITION, listed)
        reader = make_store(faulty.url, prefix)
        opens = threading.Event()

        def before(exchange: Exchange) -> None:
            if "/_pit" in exchange.path:
                opens.wait(30)

        faulty.before = before
        for _ in range(2):
            with pytest.raises(StoreUnavailable, match="the view of 10 objects is still being opened"):
                reader.lookup(entry, between(5, 6), timeout=0.3)
        opens.set()
        check(reader, entry, listed, between(5, 6))
        assert sum("/_pit" in exchange.path for exchange in faulty.seen) == 1
        check(reader, entry, listed, between(5, 7))

        def cut(exchange: Exchange) -> None:
            exchange.cut = "/_pit" in exchange.path

        faulty.before = cut
        write(store, DEFINITION, [object_metadata(11, minmax=minmax(5, 5))])
        entry = entry_of(reader)
        with pytest.raises(StoreError):
            reader.lookup(entry, between(5, 6))
        faulty.before = lambda exchange: None
        compare(reader, entry, [*listed, object_metadata(11, minmax=minmax(5, 5))], between(5, 6))
        reader.close()


def test_a_selective_look_up_is_one_request_and_a_repeated_one_none(elasticsearch_url: str, prefix: str) -> None:
    with proxy(elasticsearch_url) as faulty:
        store = make_store(faulty.url, prefix)
        listed = [object_metadata(n, minmax=minmax(n, n)) for n in range(10)]
        entry = write(store, DEFINITION, listed)
        check(store, entry, listed, between(5, 6))
        faulty.seen.clear()
        check(store, entry, listed, between(5, 7))
        check(store, entry, listed, between(5, 7))
        assert len(faulty.seen) == 1
        store.drop("events")
        store.close()


@pytest.mark.parametrize(
    "change",
    [
        {"_shards": {"total": 2, "successful": 1, "failed": 1}},
        {"timed_out": True},
        {"hits": {"total": {"value": 6}}},
        {"aggregations": {}},
        {"_shards": {}},
    ],
    ids=lambda change: next(iter(change)),
)
@pytest.mark.parametrize("opened", [False, True])
def test_what_is_not_whole_is_an_error(
    elasticsearch_url: str, store: ElasticsearchStore, change: dict[str, object], opened: bool
) -> None:
    listed = [object_metadata(n, minmax=minmax(n, n)) for n in range(5)]
    entry = write(store, DEFINITION, listed)

    def after(exchange: Exchange) -> None:
        if "/_search" in exchange.path:
            exchange.reply |= change

    with proxy(elasticsearch_url) as faulty:
        reader = make_store(faulty.url, store._cluster.names.prefix)
        if opened:
            check(reader, entry, listed, between(1, 2))
        faulty.after = after
        with pytest.raises(StoreError):
            reader.lookup(entry, between(3, 3))
        faulty.after = lambda exchange: None
        check(reader, entry_of(reader), listed, between(3, 3))
        reader.close()


# --- complements ----------------------------------------------------------------------------------------------------

LEAVES: list[Query] = [{"term": {"x": n}} for n in range(3)]
KNOWN: Query = {"term": {"known": "g"}}


def matches(query: Query, true: set[str]) -> bool:
    """What a server makes of a query, leaves taken as given."""
    if query == EVERY:
        return True
    if query == NOTHING:
        return False
    inner = query.get("bool")
    if inner is None:
        return str(query) in true
    should = [matches(part, true) for part in inner.get("should", ())]
    return (
        all(matches(part, true) for part in inner.get("filter", ()))
        and not any(matches(part, true) for part in inner.get("must_not", ()))
        and (any(should) if "should" in inner else True)
    )


QUERIES = st.recursive(
    st.sampled_from([*LEAVES, KNOWN, EVERY]),
    lambda inner: st.builds(
        lambda make, parts: make(parts),
        st.sampled_from([all_of, any_of, none_of]),
        st.lists(inner, min_size=1, max_size=3),
    ),
    max_leaves=8,
)


@given(QUERIES, st.sets(st.sampled_from([str(leaf) for leaf in LEAVES])), st.booleans())
def test_a_complement_matches_exactly_the_others(query: Query, true: set[str], known: bool) -> None:
    if known:
        assert matches(complement(query, {"g"}), true | {str(KNOWN)}) is not matches(query, true | {str(KNOWN)})
    for more in (set(), {str(KNOWN)}):
        assert matches(complement(query, frozenset()), true | more) is not matches(query, true | more)


def test_a_range_of_what_is_known_of_all_is_asked_by_its_index() -> None:
    reached: Query = {"range": {"g.range": {"gte": 1, "lte": 2, "relation": "intersects"}}}
    assert complement(all_of([KNOWN, none_of([reached])]), {"g"}) == reached


def test_ranges(store: ElasticsearchStore) -> None:
    listed = objects(100)
    entry = write(store, DEFINITION, listed)
    two: Clause = Ask(MINMAX.id, Overlaps((Range(None, 3), Range(95, None, low_open=True))))
    check(store, entry, listed, two)
