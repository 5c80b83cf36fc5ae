"""What the tests of building share: a small session, datasets of given objects, and the metadata that came of them."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import es_skipping as esk
from es_skipping.clauses.metadata import Metadata
from es_skipping.spark.services import store_of
from tests.jvm import PRELOADED

__all__ = ["ROOT_SETTING", "metadata", "names", "new_session", "spark", "write", "write_each"]

ROOT_SETTING = "spark.es_skipping.store.url"


@pytest.fixture
def spark(tmp_path: Path) -> SparkSession:
    """A session of its own on the process's one Spark, with a store of its own."""
    return new_session(tmp_path)


def new_session(folder: Path) -> SparkSession:
    """A session on the process's one Spark, with a store of its own in a folder."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    base = (
        SparkSession.builder.master("local[2]")
        .config("spark.driver.memory", "2g")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.warehouse.dir", str(folder.parent / "warehouse"))
        .config(map=PRELOADED)
        .getOrCreate()
    )
    base.sparkContext.setLogLevel("OFF")
    session = base.newSession()
    session.conf.set(ROOT_SETTING, f"file://{folder}/store")
    session.conf.set("spark.sql.session.timeZone", "UTC")
    session.conf.set("spark.sql.shuffle.partitions", "2")
    return session


def write(path: Path, columns: Mapping[str, Any] | pa.Table, **options: Any) -> Path:
    """One Parquet object, by pyarrow."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(columns if isinstance(columns, pa.Table) else pa.table(dict(columns)), path, **options)
    return path


def write_each(directory: Path, objects: Mapping[str, Mapping[str, Any] | pa.Table], **options: Any) -> Path:
    """A Parquet object for each name."""
    for name, columns in objects.items():
        write(directory / f"{name}.parquet", columns, **options)
    return directory


def metadata(dataset: esk.Dataset) -> dict[str, dict[str, Metadata]]:
    """What the store has of a dataset: by the object's name without its suffix, by index id."""
    store = store_of(dataset._spark)
    return {Path(one.id.path).stem: dict(one.metadata) for one in store.metadata(dataset.id)}


def names(failed: tuple[tuple[str, str], ...]) -> list[str]:
    """The names of failed objects."""
    return [Path(path).stem for path, _ in failed]
