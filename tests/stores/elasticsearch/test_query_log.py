"""The query log in Elasticsearch: dated indices, each with its mapping, removed when their time is over."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timezone

import pytest
from elasticsearch import Elasticsearch

from es_skipping.errors import StoreError
from es_skipping.stores.elasticsearch.store import ElasticsearchStore
from es_skipping.stores.parquet.store import ParquetStore
from es_skipping.stores.query_log import LoggedQuery
from tests.stores.elasticsearch.conftest import make_store, remove_query_log

DAY = 86_400
MONTH = 30 * DAY


def logged(age: float = 0, **changes: object) -> LoggedQuery:
    entry = LoggedQuery(
        time=int((time.time() - age) * 1000),
        application="local-1",
        session="5f-uuid",
        execution="12",
        scan="7",
        dataset="events",
        table=None,
        roots=("file:/data/é vents",),
        format="delta",
        snapshot="12",
        status="skipped",
        reason=None,
        filter="price > 10 AND city LIKE 'Pur%'",
        clause="minmax(price) overlaps (10, ...)",
        trees=[[{"c": "GreaterThan", "t": "boolean", "ch": []}]],
        indexes=("minmax(price)",),
        unusable=("minmax(ts): built under another time zone",),
        objects=100,
        objects_skipped=75,
        bytes=1 << 40,
        bytes_skipped=1 << 39,
        lookup_seconds=0.0042,
        apply_seconds=0.001,
    )
    return replace(entry, **changes)  # type: ignore[arg-type]


@pytest.fixture
def store(elasticsearch_store: ElasticsearchStore, client: Elasticsearch) -> Iterator[ElasticsearchStore]:
    yield elasticsearch_store
    remove_query_log(client, elasticsearch_store._cluster.names.prefix)


def read(store: ElasticsearchStore, client: Elasticsearch, **wanted: object) -> list[LoggedQuery]:
    client.indices.refresh(index=f"{store._cluster.names.queries}-*")
    return list(store.logged_queries(**wanted))  # type: ignore[arg-type]


def test_entries_come_back_by_time_and_dataset(store: ElasticsearchStore, client: Elasticsearch) -> None:
    assert list(store.logged_queries()) == []
    old, new = logged(3 * DAY), logged(scan="8")
    other = logged(10, scan="9", dataset="other", status="failed", reason="503", trees=None, objects_skipped=None)
    store.log_queries([new, old, other], MONTH)
    store.log_queries([new], MONTH)  # sent twice, as after a lost reply
    assert read(store, client) == [old, other, new]
    assert read(store, client, dataset="events", since=old.time + 1) == [new]
    source = client.search(index=store._cluster.names.queries, query={"term": {"scan": "8"}})["hits"]["hits"][0]
    assert source["_source"]["share_skipped"] == 0.75
    assert source["_index"].endswith(datetime.now(timezone.utc).strftime("-%Y.%m.%d"))


def test_whole_days_are_deleted_when_they_are_over(
    store: ElasticsearchStore, client: Elasticsearch, prefix: str
) -> None:
    ages = [0, 3, 8, 40]
    store.log_queries([logged(age * DAY, scan=str(age)) for age in ages], MONTH)
    assert [entry.scan for entry in read(store, client)] == ["8", "3", "0"]
    make_store(store.url, prefix).log_queries([logged(scan="x")], 5 * DAY)
    assert [entry.scan for entry in read(store, client)] == ["3", "0", "x"]


def test_a_log_that_was_deleted_is_begun_again(store: ElasticsearchStore, client: Elasticsearch, prefix: str) -> None:
    store.log_queries([logged(scan="1")], MONTH)
    remove_query_log(client, prefix)
    store.log_queries([logged(scan="2")], MONTH)
    assert [entry.scan for entry in read(store, client)] == ["2"]


def test_what_is_too_long_is_cut_or_left_out(store: ElasticsearchStore, client: Elasticsearch) -> None:
    long = logged(filter="x" * 50_000, trees=[[{"c": "y" * 200_000}]], reason="z" * 20_000, status="nothing")
    store.log_queries([long], MONTH)
    (entry,) = read(store, client)
    assert (len(entry.filter), entry.filter[-1], entry.trees) == (8000, "…", None)
    assert entry.reason is not None
    assert len(entry.reason) == 8000


def test_a_damaged_entry_is_an_error(store: ElasticsearchStore, client: Elasticsearch) -> None:
    store.log_queries([logged()], MONTH)
    client.index(
        index=store._cluster.names.queries + datetime.now(timezone.utc).strftime("-%Y.%m.%d"),
        document={"time": int(time.time() * 1000), "scan": "1", "trees": "{"},
        refresh=True,
    )
    with pytest.raises(StoreError, match="damaged"):
        list(store.logged_queries())


def test_a_parquet_store_keeps_none(tmp_path_factory: pytest.TempPathFactory) -> None:
    store = ParquetStore(str(tmp_path_factory.mktemp("store")))
    assert list(store.logged_queries()) == []
    with pytest.raises(StoreError, match="takes Elasticsearch"):
        store.log_queries([logged()], MONTH)
