"""One dataset with its store for all clients, and what PySpark reads of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.clients.applications import Lake
from tests.processes import run_python

_BUILD = """
import sys
from pyspark.sql import SparkSession
import es_skipping as esk
from tests.spark.skipping_on_off import age

data, store = sys.argv[1:]
spark = (
    esk.configure(SparkSession.builder.master("local[2]"))
    .config("spark.ui.enabled", "false")
    .config("spark.es_skipping.store.url", store)
    .getOrCreate()
)
spark.range(0, 2000, 1, 20).selectExpr("id", "concat('w', id % 100) AS word", "id * 0.5 AS half").write.parquet(data)
age(data)
dataset = esk.Dataset(spark, data)
dataset.create_indexes(esk.MinMax("id"), esk.ValueList("word"), esk.BloomFilter("half"))
"""


def build(folder: Path) -> tuple[str, str]:
    """Make a dataset of 20 files and its store; their paths."""
    data, store = str(folder / "data"), (folder / "store").as_uri()
    run_python(_BUILD, folder, data, store, seconds=300)
    return data, store


@pytest.fixture(scope="session")
def indexed(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """The paths of a dataset and of its store."""
    return build(tmp_path_factory.mktemp("indexed"))


@pytest.fixture
def lake(indexed: tuple[str, str], tmp_path: Path) -> Lake:
    return Lake(*indexed, tmp_path)
