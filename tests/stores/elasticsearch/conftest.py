"""A store under names of its own on the shared node."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Iterator

import pytest
from elasticsearch import Elasticsearch

from es_skipping.settings import Settings
from es_skipping.stores.elasticsearch.store import ElasticsearchStore

SETTINGS = Settings({"spark.es_skipping.store.timeout": "30s"})


def make_store(url: str, prefix: str) -> ElasticsearchStore:
    """A store with a timeout that a busy test machine keeps."""
    return ElasticsearchStore(url, SETTINGS, prefix=prefix)


def wait_for_views() -> None:
    """Wait until each view that is to be opened or closed is: threads do that, and may start another."""
    while working := [thread for thread in threading.enumerate() if thread.name == "es-skipping-view"]:
        for thread in working:
            thread.join(60)


def remove_all(client: Elasticsearch, prefix: str) -> None:
    """Remove every index and template under a prefix."""
    names = client.indices.get(index=f"{prefix}-*", expand_wildcards="all", ignore_unavailable=True).body
    if names:
        client.indices.delete(index=",".join(names))
    quiet = client.options(ignore_status=404)
    for name in ("objects", "datasets", "keys", "queries"):
        quiet.indices.delete_index_template(name=f"{prefix}-{name}")
    for name in ("settings", "objects-mappings"):
        quiet.cluster.delete_component_template(name=f"{prefix}-{name}")


def remove_query_log(client: Elasticsearch, prefix: str) -> None:
    """Remove the query log's indices under a prefix; by name, since a server refuses wildcards in a deletion."""
    names = client.indices.get(index=f"{prefix}-queries-*").body
    if names:
        client.indices.delete(index=",".join(names))


def empty(store: ElasticsearchStore) -> None:
    """Forget every dataset, whatever state a test left it in."""
    cluster = store._cluster
    client = cluster.builder
    if client.indices.exists_alias(name=cluster.names.datasets):
        client.indices.refresh(index=cluster.names.datasets)
        for hit in cluster.scan(cluster.names.datasets, None, "dataset", fields=["dataset"]):
            cluster.drop(hit["_id"])


@pytest.fixture(scope="session")
def client(elasticsearch_url: str) -> Iterator[Elasticsearch]:
    """A plain client of the shared node."""
    with Elasticsearch(elasticsearch_url, request_timeout=60) as client:
        yield client


@pytest.fixture(scope="session")
def prefix(client: Elasticsearch) -> Iterator[str]:
    """Names of this test run: nobody else's are touched, on a given server too."""
    prefix = f"es-skipping-test-{secrets.token_hex(4)}"
    yield prefix
    remove_all(client, prefix)


@pytest.fixture
def elasticsearch_store(elasticsearch_url: str, prefix: str) -> Iterator[ElasticsearchStore]:
    """An empty store."""
    store = make_store(elasticsearch_url, prefix)
    yield store
    empty(store)
    store.close()
