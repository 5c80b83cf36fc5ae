"""The Parquet store where lakes really live: on HDFS through Spark's client, on S3 by pyarrow and through Spark's."""

from __future__ import annotations

import os
import random

import pytest
from pyspark.sql import SparkSession

from es_skipping.spark.hadoop_files import HadoopFiles
from es_skipping.stores.parquet.store import ParquetStore
from tests.hdfs_cluster import Cluster
from tests.s3_server import Server
from tests.stores.life import Life


@pytest.fixture(params=["hdfs", "s3", "s3 by pyarrow"])
def store(request: pytest.FixtureRequest) -> ParquetStore:
    if request.param == "s3 by pyarrow":
        server: Server = request.getfixturevalue("s3")
        patch: pytest.MonkeyPatch = request.getfixturevalue("monkeypatch")
        for name, value in server.environment.items():
            patch.setenv(name, value)
        return ParquetStore(server.bucket("store", scheme="s3") + "/metadata")
    spark: SparkSession = request.getfixturevalue("base")
    if request.param == "s3":
        server = request.getfixturevalue("s3")
        server.attach(spark)
        url = f"{server.bucket('store')}/metadata store"
    else:
        cluster: Cluster = request.getfixturevalue("hdfs")
        url = f"{cluster.folder('store')}/metadata store"
    return ParquetStore(url, HadoopFiles(spark.sparkContext, url))


def _reopen(store: ParquetStore) -> ParquetStore:
    return ParquetStore(store.url, store._files)


def test_the_life_of_a_dataset(store: ParquetStore) -> None:
    """``ES_SKIPPING_STEPS`` says how many steps, as of the other stores."""
    steps, seed = int(os.environ.get("ES_SKIPPING_STEPS", "25")), int(os.environ.get("ES_SKIPPING_SEED", "4"))
    rng = random.Random(seed)
    done = lookups = skipped = conflicts = 0
    while done < steps:
        life = Life(store, _reopen, rng)
        life.run(min(100, steps - done))
        store.drop("life")
        done, lookups = done + life.steps, lookups + life.lookups
        skipped, conflicts = skipped + life.skipped, conflicts + life.conflicts
    summary = f"{done} steps, {lookups} look-ups, {skipped} skipped, {conflicts} conflicts"
    print(f"\n{summary}, {store.url}, seed {seed}")  # noqa: T201 - for a record run, with -s
    assert lookups
