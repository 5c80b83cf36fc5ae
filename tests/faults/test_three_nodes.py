"""Three nodes: a rolling restart, a node lost, and a snapshot restored, seen by queries of one session."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from elasticsearch import Elasticsearch
from pyspark.sql import SparkSession

from tests.elasticsearch_node import Node, free_ports, start_node
from tests.faults.lake import Lake
from tests.services import forget_datasets, forget_look_ups
from tests.stores.elasticsearch.snapshots import Snapshots, repository_folder

PREFIX = "es-skipping"
CUSTOM = "es-skipping@custom"
AWAY = "StoreUnavailable: "


@pytest.fixture(scope="module")
def folder() -> Iterator[str]:
    with repository_folder() as folder:
        yield folder


@pytest.fixture(scope="module")
def nodes(folder: str) -> Iterator[list[Node]]:
    """The three, all of which may be elected and hold data; queries ask the first."""
    ports = free_ports(3)
    hosts = ",".join(f"127.0.0.1:{port}" for port in ports)

    def start(at: int) -> Node:
        return start_node(
            {
                "cluster.name": "three",
                "node.name": f"node-{at}",
                "discovery.type": "multi-node",
                "discovery.seed_hosts": hosts,
                "cluster.initial_master_nodes": "node-0,node-1,node-2",
                "transport.port": str(ports[at]),
                "path.repo": folder,
            }
        )

    with ThreadPoolExecutor(3) as pool:
        nodes = list(pool.map(start, range(3)))
    yield nodes
    for node in nodes:
        node.stop()


@pytest.fixture
def client(nodes: list[Node]) -> Iterator[Elasticsearch]:
    with Elasticsearch([node.url for node in nodes], request_timeout=60, retry_on_timeout=True) as client:
        yield client


@pytest.fixture
def lake(nodes: list[Node], spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> Iterator[Lake]:
    caplog.set_level(logging.WARNING, "es_skipping")
    forget_look_ups()
    lake = Lake(spark, tmp_path, nodes[0].url, caplog)
    yield lake
    for node in nodes:
        if node.process.poll() is not None:  # the test failed while it was down
            node.start_again()
    lake.dataset.drop_indexes(all=True)
    forget_datasets()


def with_copies(client: Elasticsearch, replicas: int) -> None:
    """The setting that the reference names, for every index of the package that is made from now on."""
    settings = {"index": {"number_of_replicas": replicas}}
    client.cluster.put_component_template(name=CUSTOM, template={"settings": settings})


def healthy(client: Elasticsearch) -> None:
    """All copies of all shards are there."""
    reply = client.cluster.health(wait_for_status="green", wait_for_nodes="3", timeout="60s")
    assert not reply["timed_out"]


def node_of(client: Elasticsearch) -> int:
    """The number of the node that holds the dataset's only shard."""
    (row,) = (row for row in shards(client) if row["prirep"] == "p")
    return int(row["node"].removeprefix("node-"))


def shards(client: Elasticsearch) -> Any:
    return client.cat.shards(index=f"{PREFIX}-objects-*", format="json").body


def test_a_rolling_restart(nodes: list[Node], client: Elasticsearch, lake: Lake) -> None:
    """As for an upgrade, one after the other: with a copy of each shard, queries skip as long as the node that they ask
    is there, and nothing is written anew."""
    with_copies(client, 1)
    lake.create()
    healthy(client)
    lake.skips()
    for node in (*nodes[1:], nodes[0]):
        node.process.terminate()
        node.process.wait(60)
        if node is nodes[0]:
            lake.reads_all(AWAY)
        else:
            lake.skips()
            lake.add()
            lake.refreshed()
        node.start_again()
        healthy(client)
        lake.skips()
    lake.add()
    lake.refreshed()


def test_a_node_is_lost(nodes: list[Node], client: Elasticsearch, lake: Lake) -> None:
    """The one that holds a copy of the dataset: the other copy answers."""
    with_copies(client, 1)
    lake.create()
    healthy(client)
    holding = {int(row["node"].removeprefix("node-")) for row in shards(client)}
    lost = nodes[max(holding)]
    assert lost is not nodes[0]
    lost.kill()
    lake.skips()
    lake.add()
    lake.refreshed()
    lost.start_again()
    healthy(client)
    lake.skips()


def test_a_node_with_the_only_copy_is_lost(nodes: list[Node], client: Elasticsearch, lake: Lake) -> None:
    """Without copies, as is the default: nothing is skipped until the node is there again."""
    with_copies(client, 0)
    lake.create()
    at = node_of(client)
    if at == 0:
        index = shards(client)[0]["index"]
        command = {"move": {"index": index, "shard": 0, "from_node": "node-0", "to_node": "node-1"}}
        client.cluster.reroute(commands=[command])
        client.cluster.health(wait_for_no_relocating_shards=True, timeout="60s")
        at = node_of(client)
    assert at
    lake.skips()
    nodes[at].kill()
    lake.reads_all(AWAY)
    nodes[at].start_again()
    healthy(client)
    lake.skips()
    lake.add()
    lake.refreshed()


def test_metadata_is_restored_from_a_snapshot(
    nodes: list[Node], client: Elasticsearch, lake: Lake, folder: str
) -> None:
    """The session goes on: files that came after the snapshot are read, and known again after a refresh of all."""
    with_copies(client, 1)
    lake.create()
    snapshots = Snapshots(client, folder, PREFIX)
    taken = snapshots.take()
    lake.add()
    lake.refreshed()
    lake.skips_another()
    snapshots.restore(taken)
    healthy(client)
    lake.skips(2)
    lake.add()
    newest = lake.files - 1
    lake.fails(
        lambda: lake.dataset.refresh(paths=[str(lake.folder / f"part-{newest:02}.parquet")]),
        "restored from a snapshot.*call refresh",
    )
    lake.skips(3)
    lake.reads(newest, 2)
    lake.refreshed()
    snapshots.restore(taken, ("datasets", "keys"))
    lake.answers()
    lake.refreshed()
