"""One Spark for the Spark-facing tests, running before es_skipping comes; a session of its own for each test."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from pyspark.sql import SparkSession

from es_skipping.catalog import ObjectId
from es_skipping.spark import bridge, relations
from tests.jvm import PRELOADED
from tests.spark.row_oracle import Honest

ENABLED = "spark.es_skipping.enabled"


@pytest.fixture(scope="session")
def base(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The first session of the process."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = (
        SparkSession.builder.master("local[2]")
        .appName("es_skipping tests")
        .config("spark.driver.memory", "2g")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse")))
        .config(map=PRELOADED)
    )
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    yield spark
    spark.stop()


@pytest.fixture
def session(base: SparkSession) -> SparkSession:
    """A session that no other test has touched; skipping is not enabled in it."""
    return base.newSession()


@pytest.fixture
def honest() -> Honest:
    """Answers look-ups rightly, from the rows themselves; tell it of a dataset by `know`."""
    return Honest()


@pytest.fixture
def on(session: SparkSession, honest: Honest) -> SparkSession:
    """`session` with skipping on, answered by `honest`."""
    bridge.install(session, honest)
    session.conf.set(ENABLED, "true")
    return session


def decoded(uri: str) -> str:
    """A path of ``_metadata.file_path`` as Hadoop prints it."""
    return unquote(uri).replace("file:///", "file:/")


@pytest.fixture
def know(base: SparkSession) -> Callable[..., None]:
    """``know(honest, path or table, columns, format, **options)``: tell it every file's rows; skipping is off."""

    def know(honest: Honest, path: Path | str, columns: str = "*", format: str = "parquet", **options: Any) -> None:
        reader = base.newSession().read.format(format).options(**options)
        df = reader.table(str(path)) if "/" not in str(path) else reader.load(str(path))
        objects = {o[0]: ObjectId(*o) for o in relations.list_objects(df)}
        honest.rows |= {object_id: [] for object_id in objects.values()}
        selected = df.columns if columns == "*" else columns.split(",")
        for row in df.select(*selected, "_metadata.file_path").collect():
            values = row.asDict(recursive=True)
            honest.rows[objects[decoded(values.pop("file_path"))]].append(values)

    return know
