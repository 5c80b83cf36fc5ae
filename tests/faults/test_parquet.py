"""A Parquet store that is torn, incomplete, read-only: rows, warnings, counters, and the next refresh."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from es_skipping.spark.services import store_of
from es_skipping.stores.parquet.files import LocalFiles
from tests.faults.lake import Lake
from tests.services import forget_datasets, forget_look_ups, forget_stores
from tests.stores.parquet.doubles import ReadOnlyFiles


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> Iterator[Lake]:
    caplog.set_level(logging.WARNING, "es_skipping")
    forget_look_ups()
    yield Lake(spark, tmp_path, (tmp_path / "store").as_uri(), caplog)
    forget_datasets()


def another_process() -> None:
    """What this process remembers of the store is forgotten, as by one that begins now."""
    forget_stores()


def files(folder: Path, pattern: str) -> list[Path]:
    return sorted((folder / "store").rglob(pattern))


@pytest.mark.parametrize("length", [0, 100])
def test_a_manifest_that_is_cut_off(lake: Lake, tmp_path: Path, length: int) -> None:
    """Its publication never ended: the snapshot before is used, and the next refresh goes on from there."""
    lake.create()
    lake.skips()
    lake.add()
    lake.refreshed()
    manifest = files(tmp_path, "manifests/*.json")[-1]
    manifest.write_bytes(manifest.read_bytes()[:length])
    another_process()
    lake.skips_as_before()
    lake.refreshed()
    assert not manifest.exists()


def test_a_manifest_that_is_altered(lake: Lake, tmp_path: Path) -> None:
    lake.create()
    lake.skips()
    manifest = files(tmp_path, "manifests/*.json")[-1]
    manifest.write_bytes(manifest.read_bytes().replace(b'"number"', b'"numbex"', 1))
    another_process()
    lake.reads_all(r"StoreError: .*\.json is damaged")
    lake.add()
    lake.fails(lake.dataset.refresh, r"\.json is damaged")
    lake.dataset.drop_indexes(all=True)
    lake.create()
    lake.skips()
    lake.add()
    lake.refreshed()


def test_a_segment_that_is_missing(lake: Lake, tmp_path: Path) -> None:
    lake.create()
    lake.skips()
    for segment in files(tmp_path, "segments/*"):
        segment.unlink()
    another_process()
    lake.reads_all("StoreError: .*FileNotFoundError")
    lake.dataset.drop_indexes(all=True)
    lake.create()
    lake.skips()
    lake.add()
    lake.refreshed()


def test_a_read_only_file_system(lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake.create()
    lake.skips()
    lake.add()
    another_process()
    with monkeypatch.context() as patched:
        read_only = ReadOnlyFiles(LocalFiles(tmp_path))
        for name in ("write", "delete", "create_if_absent"):
            patched.setattr(LocalFiles, name, lambda self, *given, name=name: getattr(read_only, name)(*given))
        lake.skips(2)
        lake.fails(lake.dataset.refresh, r"not permitted .*set spark\.es_skipping\.store\.url")
        lake.skips(2)
    lake.refreshed()


def test_a_store_that_is_gone(lake: Lake, tmp_path: Path) -> None:
    """An empty folder is a store without datasets: nothing is skipped, and nothing is wrong."""
    lake.create()
    (tmp_path / "store").rename(tmp_path / "elsewhere")
    another_process()
    lake.reads_all(None)
    lake.create()
    lake.skips()
    assert store_of(lake.spark).dataset(lake.dataset.id) is not None
