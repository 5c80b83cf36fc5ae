"""One Spark for the whole run, a session of its own for each test, and a real Elasticsearch node on demand."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from pyspark.sql import SparkSession

from tests import jvm, local_files
from tests.elasticsearch_node import elasticsearch_url
from tests.examples import DEFAULT, scaled
from tests.hdfs_cluster import hdfs
from tests.in_turn import mark_long
from tests.s3_server import s3

__all__ = ["elasticsearch_url", "hdfs", "s3"]

# A loaded machine is no defect. Continuous integration repeats the same examples, so that a change is judged by what it
# changed, and fewer of them; everybody else's runs look at new ones, and `make fuzz` at many.
for name, same_examples in (("everywhere", False), ("ci", True)):
    settings.register_profile(
        name,
        max_examples=scaled(DEFAULT),
        deadline=None,
        derandomize=same_examples,
        suppress_health_check=[HealthCheck.too_slow],
        print_blob=True,
    )
settings.load_profile("ci" if os.environ.get("CI") else "everywhere")

jvm.write_fewer_defaults()
os.environ.setdefault("SPARK_SUBMIT_OPTS", jvm.OPTIONS)
local_files.use()


@pytest.hookimpl(tryfirst=True)  # before pytest leaves out what `-m` does not name
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    mark_long(items)


@pytest.fixture(scope="session")
def base(tmp_path_factory: pytest.TempPathFactory) -> SparkSession:
    """The process's Spark. Without the extension and without the jar: `esk.enable` brings both to a session."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.driver.memory", "3g")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.warehouse.dir", tmp_path_factory.mktemp("warehouse").as_uri())
        .config(map=jvm.PRELOADED)
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    return spark


@pytest.fixture
def spark(base: SparkSession, tmp_path: Path) -> Iterator[SparkSession]:
    """A session with a Parquet store of its own; switching skipping on is the test's business."""
    session = base.newSession()
    session.conf.set("spark.es_skipping.store.url", (tmp_path / "store").as_uri())
    session.conf.set("spark.es_skipping.store.timeout", "30s")
    session.conf.set("spark.es_skipping.query.budget", "60s")
    yield session
    if session.conf.get("spark.es_skipping.enabled", "false") == "true":
        session.conf.set("spark.es_skipping.enabled", "false")
