"""The query log in Elasticsearch: dated indices, each with its mapping, removed when their time is over."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import datetime, timezone

import pytest
from elasticsearch import Elasticsearch

from es_skipping.errors import StoreError
from es_skipping.stores.elasticsearch.store import ElasticsearchStore
from es_skipping.stores.query_log import LoggedQuery
from tests.stores.contract.queries import MONTH, logged
from tests.stores.elasticsearch.conftest import remove_query_log


@pytest.fixture
def store(elasticsearch_store: ElasticsearchStore, client: Elasticsearch) -> Iterator[ElasticsearchStore]:
    yield elasticsearch_store
    remove_query_log(client, elasticsearch_store._cluster.names.prefix)


def read(store: ElasticsearchStore, client: Elasticsearch, **wanted: object) -> list[LoggedQuery]:
    client.indices.refresh(index=f"{store._cluster.names.queries}-*")
    return list(store.logged_queries(**wanted))  # type: ignore[arg-type]


def test_an_entry_is_found_in_kibana(store: ElasticsearchStore, client: Elasticsearch) -> None:
    store.log_queries([logged(scan="8")], MONTH)
    assert len(read(store, client)) == 1
    source = client.search(index=store._cluster.names.queries, query={"term": {"scan": "8"}})["hits"]["hits"][0]
    assert source["_source"]["share_skipped"] == 0.75
    assert source["_index"].endswith(datetime.now(timezone.utc).strftime("-%Y.%m.%d"))


def test_a_log_that_was_deleted_is_begun_again(store: ElasticsearchStore, client: Elasticsearch, prefix: str) -> None:
    store.log_queries([logged(scan="1")], MONTH)
    remove_query_log(client, prefix)
    store.log_queries([logged(scan="2")], MONTH)
    assert [entry.scan for entry in read(store, client)] == ["2"]


def test_a_damaged_entry_is_an_error(store: ElasticsearchStore, client: Elasticsearch) -> None:
    store.log_queries([logged()], MONTH)
    client.index(
        index=store._cluster.names.queries + datetime.now(timezone.utc).strftime("-%Y.%m.%d"),
        document={"time": int(time.time() * 1000), "scan": "1", "trees": "{"},
        refresh=True,
    )
    with pytest.raises(StoreError, match="damaged"):
        list(store.logged_queries())
