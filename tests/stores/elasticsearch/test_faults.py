"""A server that is down, slow, partial, refusing or lying: an error, or fewer objects skipped; never a wrong answer."""

from __future__ import annotations

import json
import socket
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from elasticsearch import Elasticsearch

from es_skipping.catalog import DatasetEntry, ObjectId, ObjectMetadata
from es_skipping.clauses.clause import Ask, Clause
from es_skipping.clauses.metadata import Values
from es_skipping.clauses.questions import AnyOf, Overlaps, Range
from es_skipping.errors import SettingError, StoreConflict, StoreError, StoreUnavailable
from es_skipping.settings import Settings
from es_skipping.stores.base import MetadataStore
from es_skipping.stores.elasticsearch import bulk
from es_skipping.stores.elasticsearch.store import ElasticsearchStore
from es_skipping.stores.registry import open_store
from es_skipping.stores.reindex import reindex
from tests.stores.contract import (
    LIST,
    MINMAX,
    between,
    dataset_definition,
    minmax,
    object_id,
    object_metadata,
    skipped,
    stored,
    write,
)
from tests.stores.elasticsearch.conftest import make_store
from tests.stores.elasticsearch.proxy import Exchange, Proxy, proxy

NOTHING = between(1000, 2000)


@pytest.fixture
def faulty(elasticsearch_url: str) -> Iterator[Proxy]:
    with proxy(elasticsearch_url) as made:
        yield made


@pytest.fixture
def entry(elasticsearch_store: ElasticsearchStore) -> DatasetEntry:
    """Five objects, all of which `NOTHING` skips."""
    return write(
        elasticsearch_store, dataset_definition(MINMAX), [object_metadata(n, minmax=minmax(n, n)) for n in range(5)]
    )


@pytest.fixture
def reader(faulty: Proxy, prefix: str) -> ElasticsearchStore:
    return make_store(faulty.url, prefix)


def searches(exchange: Exchange) -> bool:
    return "/_search" in exchange.path


# --- answers that are not whole -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        {"_shards": {"total": 2, "successful": 1, "skipped": 0, "failed": 1}},
        {"_shards": {"total": 2, "successful": 1, "skipped": 0, "failed": 0}},
        {"timed_out": True},
        {"terminated_early": True},
        {"hits": {"total": {"value": 6, "relation": "eq"}}},
        {"aggregations": {}},
        {"_shards": {}},
    ],
    ids=lambda change: next(iter(change)),
)
def test_an_answer_that_is_not_whole_is_an_error(
    faulty: Proxy, reader: ElasticsearchStore, entry: DatasetEntry, change: dict[str, object]
) -> None:
    assert len(skipped(reader, entry, NOTHING)) == 5

    def after(exchange: Exchange) -> None:
        if searches(exchange):
            exchange.reply |= change

    faulty.after = after
    with pytest.raises(StoreError):
        reader.lookup(entry, NOTHING)


def test_partial_answers_are_forbidden_in_every_search(
    faulty: Proxy, reader: ElasticsearchStore, entry: DatasetEntry
) -> None:
    reader.lookup(entry, NOTHING)
    asked = [exchange for exchange in faulty.seen if searches(exchange)]
    assert asked and all("allow_partial_search_results=false" in exchange.path for exchange in asked)


@pytest.mark.parametrize("reply", [b"<html>hello</html>", b"", b"[]", b'{"_shards": 1}'])
def test_garbage_is_an_error(faulty: Proxy, reader: ElasticsearchStore, entry: DatasetEntry, reply: bytes) -> None:
    reader.lookup(entry, NOTHING)

    def before(exchange: Exchange) -> None:
        exchange.status, exchange.reply = 200, reply

    faulty.before = before
    with pytest.raises(StoreError):
        reader.lookup(entry, NOTHING)
    with pytest.raises(StoreError):
        reader.dataset("events")


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_a_busy_server_is_unavailable(
    faulty: Proxy, reader: ElasticsearchStore, entry: DatasetEntry, status: int
) -> None:
    def before(exchange: Exchange) -> None:
        exchange.status, exchange.reply = status, {"error": {"reason": "busy"}, "status": status}

    faulty.before = before
    with pytest.raises(StoreUnavailable, match=str(status)):
        reader.lookup(entry, NOTHING)


GONE_MEANWHILE = {
    "root_cause": [
        {
            "type": "no_shard_available_action_exception",
            "reason": "[node][127.0.0.1:9300][indices:data/read/search[phase/query]]",
            "caused_by": {"type": "index_closed_exception", "reason": "closed"},
        }
    ],
    "reason": "all shards failed",
}
"""What Elasticsearch answers to a search of an index that is deleted while its shard is asked."""


def test_a_generation_that_is_deleted_while_it_is_asked(
    faulty: Proxy, reader: ElasticsearchStore, elasticsearch_store: ElasticsearchStore, entry: DatasetEntry
) -> None:
    assert len(skipped(reader, entry, NOTHING)) == 5
    changed: list[DatasetEntry] = []

    def before(exchange: Exchange) -> None:
        if searches(exchange) and not changed:
            objects = [object_metadata(n, minmax=minmax(n, n)) for n in range(7)]
            changed.append(write(elasticsearch_store, dataset_definition(MINMAX), objects, fresh=True))
            exchange.status, exchange.reply = 503, {"error": GONE_MEANWHILE, "status": 503}

    faulty.before = before
    assert len(skipped(reader, entry, NOTHING)) == 7, "the new generation is asked"
    assert changed


def test_a_reason_names_what_caused_it(faulty: Proxy, reader: ElasticsearchStore, entry: DatasetEntry) -> None:
    def before(exchange: Exchange) -> None:
        if searches(exchange):
            exchange.status, exchange.reply = 503, {"error": GONE_MEANWHILE, "status": 503}

    faulty.before = before
    told = r"answered 503: no_shard_available_action_exception: \[node\].*: index_closed_exception: closed"
    with pytest.raises(StoreUnavailable, match=told):
        reader.lookup(entry, NOTHING)
    assert reader.guarantors(entry, NOTHING, 1) == (), "a promise less is no error"


@pytest.mark.parametrize(("status", "words"), [(401, "credentials"), (403, "may not do this")])
def test_credentials_are_named_as_the_cause(
    faulty: Proxy, reader: ElasticsearchStore, entry: DatasetEntry, status: int, words: str
) -> None:
    def before(exchange: Exchange) -> None:
        exchange.status, exchange.reply = status, {"error": {"reason": "no"}, "status": status}

    faulty.before = before
    with pytest.raises(StoreError, match=words):
        reader.lookup(entry, NOTHING)


def test_a_store_that_is_down(prefix: str) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        store = make_store(f"http://127.0.0.1:{unused.getsockname()[1]}", prefix)
        for ask in (store.datasets, lambda: store.dataset("events"), lambda: store.drop("events")):
            with pytest.raises(StoreUnavailable, match="cannot be reached"):
                ask()


def test_an_https_url_of_a_server_that_speaks_http(elasticsearch_url: str, prefix: str) -> None:
    plain = urlsplit(elasticsearch_url)
    store = make_store(f"https://{plain.hostname}:{plain.port}", prefix)
    told = f"listing datasets: {store.url} says https, but the server answers without TLS"
    with pytest.raises(StoreUnavailable, match=f"{told}.*http://{plain.hostname}:{plain.port}") as raised:
        store.datasets()
    assert "caCerts" not in str(raised.value)


def test_a_store_that_never_answers_costs_the_timeout_and_no_more(entry: DatasetEntry, prefix: str) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        store = make_store(f"http://127.0.0.1:{silent.getsockname()[1]}", prefix)
        began = time.monotonic()
        with pytest.raises(StoreUnavailable, match="in time"):
            store.lookup(entry, NOTHING, timeout=0.4)
        assert time.monotonic() - began < 3


def slow(prefix: str, faulty: Proxy, **limits: str) -> ElasticsearchStore:
    """A store whose server takes its time."""
    faulty.before = lambda exchange: time.sleep(0.4)
    settings = Settings({f"spark.es_skipping.store.{name}": text for name, text in limits.items()})
    return ElasticsearchStore(faulty.url, settings, prefix=prefix)


def test_what_no_query_waits_for_may_take_longer_than_a_look_up(
    faulty: Proxy, entry: DatasetEntry, prefix: str, tmp_path: Path
) -> None:
    store = slow(prefix, faulty, timeout="300ms", buildTimeout="30s")
    assert store.datasets() == [entry]
    assert store.dataset("events") == entry
    assert reindex(store, open_store(str(tmp_path)), "events", dry_run=True).objects == 5
    told = f"listing datasets: Elasticsearch at {faulty.url} did not answer in time.*"
    with pytest.raises(StoreUnavailable, match=told + r"spark\.es_skipping\.store\.timeout.*query\.budget"):
        store.datasets(timeout=0.3)
    told = f"looking up dataset 'events': Elasticsearch at {faulty.url} did not answer in time.*"
    with pytest.raises(StoreUnavailable, match=told + r"spark\.es_skipping\.store\.timeout"):
        store.lookup(entry, NOTHING)
    with pytest.raises(StoreUnavailable, match=told + r"spark\.es_skipping\.store\.timeout"):
        store.lookup(entry, NOTHING, timeout=0.0)  # over before a request is sent


def test_an_operation_of_a_build_names_the_setting_that_limits_it(
    faulty: Proxy, entry: DatasetEntry, prefix: str
) -> None:
    store = slow(prefix, faulty, timeout="30s", buildTimeout="300ms")
    for ask in (store.datasets, lambda: store.dataset("events"), lambda: list(store.objects("events"))):
        with pytest.raises(StoreUnavailable, match=r"in time \(the limit is spark\.es_skipping\.store\.buildTimeout\)"):
            ask()


def test_the_timeout_is_of_the_whole_look_up(faulty: Proxy, reader: ElasticsearchStore, entry: DatasetEntry) -> None:
    faulty.before = lambda exchange: time.sleep(0.4)
    with pytest.raises(StoreUnavailable):
        reader.lookup(entry, NOTHING, timeout=0.6)  # the dataset's document, its keys and the search take 1.2 s


# --- the ordinals of others ---------------------------------------------------------------------------------------


def test_an_ordinal_that_nobody_published_is_nobody(
    elasticsearch_store: ElasticsearchStore, entry: DatasetEntry, client: Elasticsearch
) -> None:
    """Documents of a crashed writer lie in the index, and mean nothing."""
    index = entry.snapshot.rpartition("@")[0]
    stray = {
        "path": "file:/stray",
        "size": 1,
        "modified": 1,
        "ordinal": 77,
        "known": ["minmax_c_intervals_0"],
    }
    client.index(index=index, document=stray, refresh=True)
    answer = elasticsearch_store.lookup(entry, NOTHING)
    assert answer.skipped == answer.known == 5
    assert "file:/stray" not in {id.path for id, _ in elasticsearch_store.objects("events")}


def test_two_writers_never_get_one_ordinal(elasticsearch_store: ElasticsearchStore, entry: DatasetEntry) -> None:
    other = make_store(elasticsearch_store.url, elasticsearch_store._cluster.names.prefix)
    claimed: list[int] = []

    def claim(store: ElasticsearchStore) -> None:
        state = store._cluster.state("events")
        assert state is not None
        for _ in range(10):
            first = store._cluster.claim(state, 3)
            claimed.extend(range(first, first + 3))

    threads = [threading.Thread(target=claim, args=(store,)) for store in (elasticsearch_store, other)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(set(claimed)) == len(claimed) == 60
    assert min(claimed) == 5, "the published ones are not handed out again"


def test_a_crash_before_publishing_is_swept_by_the_next_change(
    elasticsearch_store: ElasticsearchStore, entry: DatasetEntry, client: Elasticsearch
) -> None:
    crashed = elasticsearch_store.change(dataset_definition(MINMAX))
    change = crashed.__enter__()
    change.put([object_metadata(n, minmax=minmax(50, 50)) for n in range(3, 9)])
    change._writer.flush()  # type: ignore[attr-defined]
    index = entry.snapshot.rpartition("@")[0]
    client.indices.refresh(index=index)
    assert client.count(index=index)["count"] == 11
    assert skipped(elasticsearch_store, entry, between(50, 50)) == {object_id(n).key for n in range(5)}
    write(elasticsearch_store, dataset_definition(MINMAX), [object_metadata(n, minmax=minmax(50, 50)) for n in (3, 9)])
    assert client.count(index=index)["count"] == 6, "five objects and a new one, no trace of the crashed writer"
    with pytest.raises(StoreConflict):
        change.publish()
    crashed.__exit__(None, None, None)
    assert set(stored(elasticsearch_store)) == {object_id(n) for n in (0, 1, 2, 3, 4, 9)}


# --- bulk ---------------------------------------------------------------------------------------------------------


def bulk_items(exchange: Exchange) -> int:
    return exchange.request.count(b'{"index":{"_id"') + exchange.request.count(b'{"index": {"_id"')


def test_items_that_are_busy_are_sent_again_and_no_outcome_is_lost(
    faulty: Proxy, reader: ElasticsearchStore, elasticsearch_store: ElasticsearchStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Trap 31: one item 429, another 400; the retry's clean reply must not hide the first failure."""
    monkeypatch.setattr(bulk, "_FIRST_PAUSE", 0.01)
    turns = iter(range(100))

    def after(exchange: Exchange) -> None:
        if exchange.is_bulk and "objects" in exchange.path and next(turns) == 0:
            for at, status in ((0, 429), (1, 400)):
                item = exchange.reply["items"][at]["index"]
                item |= {"status": status, "error": {"type": "x", "reason": "refused"}}

    faulty.after = after
    entry = write(reader, dataset_definition(MINMAX), [object_metadata(n, minmax=minmax(n, n)) for n in range(4)])
    found = stored(elasticsearch_store)
    assert len(found) == entry.objects == 4
    assert found[object_id(0)].metadata, "sent again, whole"
    assert not found[object_id(1)].metadata, "refused, so without the metadata that was refused: unknown"
    assert skipped(elasticsearch_store, entry, NOTHING) == {object_id(n).key for n in (0, 2, 3)}


def test_a_request_that_is_too_large_is_split(
    faulty: Proxy, reader: ElasticsearchStore, elasticsearch_store: ElasticsearchStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk, "_FIRST_PAUSE", 0.01)

    def before(exchange: Exchange) -> None:
        if exchange.is_bulk and len(exchange.request) > 4000:
            exchange.status, exchange.reply = 413, {"error": {"reason": "too large"}, "status": 413}

    faulty.before = before
    long = Values(frozenset(f"a rather long value, number {n}" for n in range(300)), 0)
    objects = [object_metadata(n, minmax=minmax(n, n)) for n in range(40)]
    objects.append(object_metadata(99, minmax=minmax(99, 99), list=long))
    write(reader, dataset_definition(MINMAX, LIST), objects)
    found = stored(elasticsearch_store)
    assert len(found) == 41
    assert found[object_id(99)].metadata == {MINMAX.id: minmax(99, 99)}, "only what was too large is forgotten"


def test_a_value_longer_than_a_term_makes_one_index_unknown(elasticsearch_store: ElasticsearchStore) -> None:
    objects = [
        object_metadata(1, minmax=minmax(1, 1), list=Values(frozenset({"x" * 32_767}), 0)),
        object_metadata(2, minmax=minmax(2, 2), list=Values(frozenset({"x" * 32_766}), 0)),
        object_metadata(3, minmax=minmax(3, 3), list=Values(frozenset({"half \ud800"}), 0)),
    ]
    entry = write(elasticsearch_store, dataset_definition(MINMAX, LIST), objects)
    assert dict(elasticsearch_store.objects("events")) == {
        object_id(1): frozenset({MINMAX.id}),
        object_id(2): frozenset({MINMAX.id, LIST.id}),
        object_id(3): frozenset({MINMAX.id}),
    }
    assert skipped(elasticsearch_store, entry, Ask(LIST.id, AnyOf(("y",)))) == {object_id(2).key}


def test_a_server_that_stays_busy_fails_the_build_and_publishes_nothing(
    faulty: Proxy, reader: ElasticsearchStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk, "_FIRST_PAUSE", 0.001)

    def before(exchange: Exchange) -> None:
        if exchange.is_bulk:
            exchange.status, exchange.reply = 429, {"error": {"reason": "busy"}, "status": 429}

    faulty.before = before
    with pytest.raises(StoreUnavailable):
        write(reader, dataset_definition(MINMAX), [object_metadata(1, minmax=minmax(1, 1))])
    faulty.before = lambda exchange: None
    assert reader.dataset("events") is None


# --- limits of the server -----------------------------------------------------------------------------------------


def test_the_server_s_limit_of_clauses_is_learnt(
    faulty: Proxy, reader: ElasticsearchStore, entry: DatasetEntry
) -> None:
    def before(exchange: Exchange) -> None:
        if searches(exchange) and exchange.request.count(b'"range"') > 1024:
            reason = "failed to create query: maxClauseCount is set to 1024"
            exchange.status, exchange.reply = 400, {"error": {"root_cause": [{"reason": reason}]}, "status": 400}

    faulty.before = before
    many: Clause = Ask(MINMAX.id, Overlaps(tuple(Range(n, n) for n in range(100, 10_000, 2))))
    assert len(skipped(reader, entry, many)) == 5


# --- secrets ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "settings",
    [
        {"store.token": "se cret token"},
        {"store.user": "me"},
        {"store.password": "secret"},
        {"store.user": "me", "store.password": "secret", "store.token": "aWQ6c2VjcmV0"},
        {"store.sslFingerprint": "12:34"},
        {"store.caCerts": "/nowhere/ca.pem"},
    ],
    ids=lambda settings: "+".join(settings),
)
def test_settings_that_cannot_be_used(settings: dict[str, str]) -> None:
    conf = {f"spark.es_skipping.{name}": value for name, value in settings.items()}
    with pytest.raises(SettingError) as raised:
        ElasticsearchStore("https://es:9200", Settings(conf))
    assert "secret" not in str(raised.value) and "se cret" not in str(raised.value)


def test_a_url_with_a_password_is_refused() -> None:
    with pytest.raises(SettingError) as raised:
        ElasticsearchStore("https://me:secret@es:9200")
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize(
    ("settings", "header"),
    [
        ({"store.user": "me", "store.password": "secret"}, "Basic bWU6c2VjcmV0"),
        ({"store.token": "id:secret"}, "ApiKey aWQ6c2VjcmV0"),
        ({"store.token": "aWQ6c2VjcmV0"}, "ApiKey aWQ6c2VjcmV0"),
        ({"store.token": "Bearer secret"}, "Bearer secret"),
    ],
)
def test_credentials_are_sent_and_never_shown(
    faulty: Proxy, prefix: str, settings: dict[str, str], header: str
) -> None:
    conf = {f"spark.es_skipping.{name}": value for name, value in settings.items()}
    store: MetadataStore = ElasticsearchStore(faulty.url, Settings(conf), prefix=prefix)
    store.dataset("events")
    (exchange,) = faulty.seen
    headers = {name.lower(): value for name, value in exchange.headers.items()}
    assert headers["authorization"] == header
    assert headers["x-opaque-id"].startswith("es_skipping")
    assert "es-skipping" in headers["user-agent"]

    def before(exchange: Exchange) -> None:
        exchange.status, exchange.reply = 500, {"error": {"reason": "boom"}, "status": 500}

    faulty.before = before
    with pytest.raises(StoreError) as raised:
        store.dataset("events")
    for text in (repr(store), store.url, str(raised.value), json.dumps(repr(raised.value))):
        assert "secret" not in text and "aWQ6c2VjcmV0" not in text


def test_objects_of_one_dataset_are_told_apart_by_identity_alone(elasticsearch_store: ElasticsearchStore) -> None:
    twins = [ObjectMetadata(ObjectId("file:/x", 1, mtime), 1, {MINMAX.id: minmax(1, 1)}) for mtime in (1, 2)]
    entry = write(elasticsearch_store, dataset_definition(MINMAX), twins)
    assert skipped(elasticsearch_store, entry, NOTHING) == {twins[1].id.key}


# --- a publication whose answer is lost ------------------------------------------------------------------------------


def publishes(exchange: Exchange) -> bool:
    return exchange.method == "PUT" and "-datasets/_doc/" in exchange.path and "refresh=true" in exchange.path


@pytest.fixture(params=["refresh", "fresh", "first"])
def writing(
    request: pytest.FixtureRequest, reader: ElasticsearchStore, elasticsearch_store: ElasticsearchStore
) -> Callable[[], DatasetEntry]:
    """Writes objects 3 to 8 through the proxy: into what is there, in place of it, or as the first to write."""
    elasticsearch_store.drop("events")
    elasticsearch_store.drop_superseded("events")
    if request.param != "first":
        write(
            elasticsearch_store, dataset_definition(MINMAX), [object_metadata(n, minmax=minmax(n, n)) for n in range(5)]
        )
    new = [object_metadata(n, minmax=minmax(n, n)) for n in range(3, 9)]
    return lambda: write(reader, dataset_definition(MINMAX), new, fresh=request.param == "fresh")


def numbers(store: MetadataStore) -> set[int]:
    found = stored(store)
    return {n for n in range(20) if object_id(n) in found}


def test_a_lost_answer_to_a_publication(
    faulty: Proxy, elasticsearch_store: ElasticsearchStore, writing: Callable[[], DatasetEntry]
) -> None:
    before = numbers(elasticsearch_store)

    def cut(exchange: Exchange) -> None:
        exchange.cut = publishes(exchange)

    faulty.before = cut
    entry = writing()
    found = numbers(elasticsearch_store)
    assert found >= set(range(3, 9)) and found <= before | set(range(3, 9))
    assert entry.objects == len(found)
    assert elasticsearch_store.dataset("events") == entry
    assert len(skipped(elasticsearch_store, entry, NOTHING)) == len(found)
    assert elasticsearch_store.superseded("events") == []


def test_no_answer_after_a_publication(
    faulty: Proxy, elasticsearch_store: ElasticsearchStore, writing: Callable[[], DatasetEntry]
) -> None:
    """The server publishes, and then is not there to be asked: what may be in use is not removed."""
    gone: list[bool] = []

    def cut(exchange: Exchange) -> None:
        exchange.cut = publishes(exchange)
        if gone:
            exchange.status, exchange.reply = 503, {"error": {"reason": "no more"}, "status": 503}
        if exchange.cut:
            gone.append(True)

    faulty.before = cut
    with pytest.raises(StoreError):
        writing()
    found = numbers(elasticsearch_store)
    assert found >= set(range(3, 9)), "it is published"
    entry = elasticsearch_store.dataset("events")
    assert entry is not None
    assert len(skipped(elasticsearch_store, entry, NOTHING)) == len(found)
    faulty.before = lambda exchange: None
    assert writing().objects == len(found) == len(numbers(elasticsearch_store))


def test_a_publication_that_arrives_late(
    faulty: Proxy,
    elasticsearch_store: ElasticsearchStore,
    elasticsearch_url: str,
    writing: Callable[[], DatasetEntry],
) -> None:
    """No answer came, nothing was published, and what was written is gone: then the request reaches the server."""
    before = numbers(elasticsearch_store)
    held: list[Exchange] = []

    def hold(exchange: Exchange) -> None:
        if publishes(exchange) and not held:
            held.append(exchange)
            exchange.status, exchange.reply = 504, {"error": {"reason": "waited for too long"}, "status": 504}

    faulty.before = hold
    with pytest.raises(StoreUnavailable):
        writing()
    (late,) = held
    kept = elasticsearch_store.superseded("events")
    assert numbers(elasticsearch_store) == before
    assert len(kept) == (0 if before else 1), "only a first publication cannot be retracted"
    request = urllib.request.Request(
        elasticsearch_url + late.path, late.request, {"content-type": "application/json"}, method="PUT"
    )
    try:
        urllib.request.urlopen(request).close()
    except urllib.error.HTTPError as error:
        assert (error.code, bool(before)) == (409, True)
    assert numbers(elasticsearch_store) == (before or set(range(3, 9)))
    faulty.before = lambda exchange: None
    entry = writing()
    assert entry.objects == len(numbers(elasticsearch_store)) >= 6
    assert elasticsearch_store.dataset("events") == entry
    assert len(skipped(elasticsearch_store, entry, NOTHING)) == entry.objects
