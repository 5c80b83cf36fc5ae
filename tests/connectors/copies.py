"""Copies of a table's metadata from store to store, which the next refresh goes on from by the table's changes."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import SparkSession

import es_skipping as esk
from es_skipping.catalog import CoveredSnapshot
from es_skipping.cli import main
from es_skipping.spark.services import store_of
from tests.connectors.changes import Asked, index_again, registry

__all__ = ["check_copies"]

_URL = "spark.es_skipping.store.url"


def check_copies(
    spark: SparkSession,
    table: str,
    indexes: list[Any],
    append: Callable[[], None],
    asked: Asked,
    elasticsearch_url: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Within a Parquet store, from there to Elasticsearch, and within Elasticsearch, with a refresh after each.

    Parameters
    ----------
    table
        Is indexed in a Parquet store.
    append
        Appends one file.
    """
    dataset = esk.Dataset(spark, table=table)
    parquet = str(spark.conf.get(_URL))

    def covered() -> CoveredSnapshot:
        entry = store_of(spark).dataset(dataset.id)
        assert entry is not None and entry.definition.covered is not None
        return entry.definition.covered

    copies = [(parquet, ()), (elasticsearch_url, ("--to", elasticsearch_url)), (elasticsearch_url, ("--shards", "2"))]
    try:
        for store, arguments in copies:
            before = covered()
            capsys.readouterr()
            assert main(["reindex", dataset.id, "--store", str(spark.conf.get(_URL)), "--json", *arguments]) == 0
            (row,) = json.loads(capsys.readouterr().out)
            health = dataset.health()
            assert (row["format"], row["snapshot"]) == (health.table_format, before.id)
            spark.conf.set(_URL, store)
            assert covered() == before
            append()
            asked.by_changes.clear()
            result = dataset.refresh()
            assert (result.added, result.removed, result.failed, asked.by_changes) == (1, 0, (), [True]), store
            assert covered().id != before.id
        found = registry(spark, table)
    finally:
        spark.conf.set(_URL, elasticsearch_url)
        if dataset.is_indexed():
            dataset.drop_indexes(all=True)
        spark.conf.set(_URL, parquet)
    assert found == index_again(spark, table, indexes)
