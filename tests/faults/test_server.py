"""A server that is killed, stopped, full, busy, or has lost a part: rows, warnings, counters, and the next refresh."""

from __future__ import annotations

import logging
import os
import shutil
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from elasticsearch import Elasticsearch
from pyspark.sql import SparkSession

import es_skipping as esk
from es_skipping.spark import services
from es_skipping.stores.elasticsearch import bulk, views
from es_skipping.stores.elasticsearch import store as store_module
from es_skipping.stores.elasticsearch.answers import Answers
from es_skipping.stores.elasticsearch.change import ElasticsearchChange
from es_skipping.stores.elasticsearch.cluster import Cluster
from es_skipping.stores.elasticsearch.store import ElasticsearchStore
from es_skipping.stores.protection.store import unprotected
from tests.elasticsearch_node import Node, start_node
from tests.faults.lake import Lake
from tests.faults.points import at
from tests.services import forget_datasets, forget_look_ups

AWAY = "StoreUnavailable: .*(cannot be reached|did not answer in time)"


@pytest.fixture(scope="module")
def node() -> Iterator[Node]:
    """A server of this module's own, which forgets expired points in time within a second."""
    node = start_node({"search.keep_alive_interval": "1s"})
    yield node
    node.stop()


@pytest.fixture
def client(node: Node) -> Iterator[Elasticsearch]:
    with Elasticsearch(node.url, request_timeout=60) as client:
        yield client


@pytest.fixture
def lake(node: Node, spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> Iterator[Lake]:
    caplog.set_level(logging.WARNING, "es_skipping")
    forget_look_ups()
    lake = Lake(spark, tmp_path, node.url, caplog)
    yield lake
    if node.process.poll() is not None:  # the test failed while it was down
        node.start_again()
    lake.dataset.drop_indexes(all=True)
    forget_datasets()


def store_of(lake: Lake) -> ElasticsearchStore:
    store = unprotected(services.store_of(lake.spark))
    assert isinstance(store, ElasticsearchStore)
    return store


def index_of(lake: Lake) -> str:
    entry = store_of(lake).dataset(lake.dataset.id)
    assert entry is not None
    return entry.snapshot.rpartition("@")[0]


@pytest.mark.parametrize(
    ("owner", "name"), [(ElasticsearchChange, "put"), (Cluster, "refresh"), (Cluster, "publish")], ids=lambda v: str(v)
)
def test_killed_in_the_middle_of_a_build(
    node: Node, lake: Lake, monkeypatch: pytest.MonkeyPatch, owner: type, name: str
) -> None:
    monkeypatch.setattr(bulk, "_FIRST_PAUSE", 0.001)
    at(monkeypatch, owner, name, node.kill)
    lake.fails(lake.create, "cannot be reached|did not take")
    lake.reads_all(AWAY)
    node.start_again()
    lake.reads_all(None)
    lake.create()
    lake.skips()


@pytest.mark.parametrize(
    ("name", "after", "published"), [("publish", False, False), ("publish", True, True), ("sweep", False, True)]
)
def test_killed_in_the_middle_of_a_refresh(
    node: Node, lake: Lake, monkeypatch: pytest.MonkeyPatch, name: str, after: bool, published: bool
) -> None:
    monkeypatch.setattr(bulk, "_FIRST_PAUSE", 0.001)
    lake.create()
    lake.add()
    at(monkeypatch, Cluster, name, node.kill, after=after)
    lake.fails(lake.dataset.refresh, "cannot be reached")  # after publishing: it goes on to row groups
    lake.reads_all(AWAY)
    node.start_again()
    lake.skips(1 if published else 2)
    lake.add()
    lake.refreshed()


def test_killed_in_the_middle_of_a_query(node: Node, lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    lake.create()
    lake.skips()

    def stop_and_kill() -> None:
        node.signal(signal.SIGSTOP)  # so that the request is on its way when the server dies
        threading.Timer(0.3, node.kill).start()

    at(monkeypatch, Answers, "search", stop_and_kill)
    lake.reads_all(AWAY)
    node.process.wait(30)
    node.start_again()
    lake.skips()
    lake.add()
    lake.refreshed()


def test_a_server_that_is_restarted(node: Node, lake: Lake) -> None:
    """As for an upgrade: it ends by itself."""
    lake.create()
    lake.skips()
    node.process.terminate()
    node.process.wait(60)
    lake.reads_all(AWAY)
    node.start_again()
    lake.skips()
    lake.add()
    lake.refreshed()


def test_a_server_that_is_restarted_under_an_open_view(node: Node, lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "LARGE", 0)
    lake.create()
    lake.skips()
    node.kill()
    node.start_again()
    lake.skips_another()
    lake.skips()
    lake.add()
    lake.refreshed()


def test_a_server_that_stands_still_costs_its_timeout(node: Node, lake: Lake) -> None:
    lake.create()
    lake.spark.conf.set("spark.es_skipping.store.timeout", "700ms")
    lake.skips()
    node.signal(signal.SIGSTOP)
    try:
        begun = time.monotonic()
        lake.reads_all("did not answer in time|ran out of time")
        assert time.monotonic() - begun < 10
    finally:
        node.signal(signal.SIGCONT)
    lake.spark.conf.set("spark.es_skipping.store.timeout", "5s")
    lake.skips()
    lake.add()
    lake.refreshed()


def test_a_full_disk(lake: Lake, client: Elasticsearch, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk, "_FIRST_PAUSE", 0.001)
    lake.create()
    lake.add()
    client.indices.put_settings(index=index_of(lake), settings={"index.blocks.read_only_allow_delete": True})
    lake.fails(lake.dataset.refresh, r"(?i)read-only|flood")
    lake.skips(2)
    client.indices.put_settings(index=index_of(lake), settings={"index.blocks.read_only_allow_delete": None})
    lake.refreshed()


def test_a_cluster_that_takes_no_more_shards(lake: Lake, client: Elasticsearch) -> None:
    """A dataset too many is not indexed; those that are there stay as they are, and can be refreshed."""
    full = "maximum normal shards open.* drop what is not needed, add a data node, or raise .*max_shards_per_node"

    def room(shards: int | None) -> None:
        client.cluster.put_settings(persistent={"cluster.max_shards_per_node": shards})

    lake.create()
    room(client.cluster.health()["active_shards"])
    try:
        other = esk.Dataset(lake.spark, str(lake.folder / "part-03.parquet"))
        lake.fails(lambda: other.create_indexes(esk.MinMax("id")), full)
        assert not other.is_indexed()
        lake.skips()
        lake.add()
        lake.refreshed()  # writes into the index that is there
        lake.dataset.drop_indexes(all=True)
        room(client.cluster.health()["active_shards"])
        lake.fails(lake.create, full)
        lake.reads_all(None)
    finally:
        room(None)
    lake.create()
    lake.skips()
    lake.add()
    lake.refreshed()


def test_a_shard_that_is_lost(node: Node, lake: Lake, client: Elasticsearch) -> None:
    client.cluster.put_component_template(
        name="es-skipping@custom", template={"settings": {"index.number_of_shards": 2}}
    )
    try:
        lake.create()
    finally:
        client.cluster.delete_component_template(name="es-skipping@custom")
    lake.skips()
    found = client.indices.get_settings(index=index_of(lake), flat_settings=True)[index_of(lake)]["settings"]
    assert found["index.number_of_shards"] == "2"
    node.kill()
    shutil.rmtree(node.folder / "data" / "indices" / found["index.uuid"] / "1")
    node.start_again("red")
    client.cluster.health(index="es-skipping-datasets,es-skipping-keys", wait_for_status="yellow", timeout="60s")
    lake.reads_all("Store(Unavailable|Error): .*(shard|503|no_shard)")
    lake.add()
    lake.fails(lake.dataset.refresh, "shard|503|not answer")
    lake.dataset.drop_indexes(all=True)
    lake.create()
    lake.skips()


def test_an_alias_without_its_index(lake: Lake, client: Elasticsearch) -> None:
    lake.create()
    lake.skips()
    client.indices.delete(index=index_of(lake))
    lake.reads_all("StoreError: .*no such index")
    lake.add()
    lake.refreshed()  # all of it is built anew


@pytest.mark.parametrize(
    "change", [{"known": []}, {"ordinal": 1_000_000}, {"ordinal": -1}], ids=["known", "high", "low"]
)
def test_a_document_that_was_tampered_with(lake: Lake, client: Elasticsearch, change: dict[str, object]) -> None:
    lake.create()
    index = index_of(lake)
    query = {"wildcard": {"path": "*part-05*"}}
    (hit,) = client.search(index=index, query=query)["hits"]["hits"]
    client.index(index=index, id=hit["_id"], document={**hit["_source"], **change}, refresh=True)
    lake.skips(2)  # the one that holds the rows, and the one of which nothing is known any more
    os.utime(lake.folder / "part-05.parquet", (10**9, 10**9))
    lake.refreshed()


def test_a_point_in_time_that_expires(lake: Lake, client: Elasticsearch, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "LARGE", 0)
    monkeypatch.setattr(views, "KEEP_ALIVE", "1s")
    lake.create()
    lake.skips()
    deadline = time.monotonic() + 30
    while client.nodes.stats(metric="indices", index_metric="search")["nodes"].popitem()[1]["indices"]["search"][
        "open_contexts"
    ]:
        assert time.monotonic() < deadline, "it never expired"
        time.sleep(0.2)
    lake.skips_another()
    lake.skips()
    lake.add()
    lake.refreshed()
