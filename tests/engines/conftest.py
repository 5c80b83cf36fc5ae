"""Stores, as a Spark session and `esk.files` name them."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

__all__ = ["store"]


@pytest.fixture(params=["parquet", "elasticsearch"])
def store(request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path) -> dict[str, str]:
    """The settings of a store that the session builds into."""
    url = (tmp_path / "store").as_uri()
    if request.param == "elasticsearch":
        url = request.getfixturevalue("elasticsearch_url")
    settings = {"spark.es_skipping.store.url": url, "spark.es_skipping.store.timeout": "30s"}
    for key, value in settings.items():
        spark.conf.set(key, value)
    return settings
