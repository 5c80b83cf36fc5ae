"""A layout whose driver is killed: the dataset is as it was, and the next write makes the layout whole."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from es_skipping import layout
from es_skipping.errors import DatasetError
from tests.spark.building import spark

__all__ = ["spark"]

ROWS = 2_000

_DRIVER = """
import sys
from pathlib import Path
from es_skipping import layout
from tests.spark.building import new_session
from tests.spark.test_layout_crash import fitted
folder = Path(sys.argv[1])
fitted(new_session(folder), folder).write(str(folder / "laid_out"))
"""


def lake(spark: SparkSession, folder: Path) -> list[tuple[int, int]]:
    spark.range(0, ROWS, 1, 3).selectExpr("id", "id * 31 % 101 AS x").write.parquet(str(folder / "lake"))
    return rows(spark, folder / "lake")


def rows(spark: SparkSession, path: Path) -> list[tuple[int, int]]:
    return sorted((row.id, row.x) for row in spark.read.parquet(str(path)).collect())


def fitted(spark: SparkSession, folder: Path) -> layout.SOP:
    sop = layout.SOP(spark, str(folder / "lake"), min_rows=50)
    sop.fit(["x < 3", "x < 3", "x > 90", "x > 90"])
    return sop


def test_a_killed_driver(spark: SparkSession, tmp_path: Path) -> None:
    before = lake(spark, tmp_path)
    files = {file: file.read_bytes() for file in (tmp_path / "lake").rglob("*") if file.is_file()}
    target = tmp_path / "laid_out"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    driver = subprocess.Popen(
        [sys.executable, "-c", _DRIVER, str(tmp_path)],
        env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        start_new_session=True,
    )  # fmt: skip
    try:
        deadline = time.monotonic() + 300
        while len(list(target.rglob("part-*.parquet"))) < 10:
            assert driver.poll() is None, "it ended before it was killed"
            assert time.monotonic() < deadline
            time.sleep(0.005)
    finally:
        os.killpg(driver.pid, signal.SIGKILL)  # Python and its JVM
        driver.wait()
    assert {file: file.read_bytes() for file in (tmp_path / "lake").rglob("*") if file.is_file()} == files
    assert not (target / "_es_skipping_layout.json").exists()
    with pytest.raises(DatasetError):
        layout.status(spark, str(target))
    sop = fitted(spark, tmp_path)
    sop.write(str(target))
    assert rows(spark, target) == before
    assert len(list(target.rglob("*.parquet"))) == sop.plan.blocks
    assert not sop.status().run_again


def test_a_driver_that_died_while_it_committed(spark: SparkSession, tmp_path: Path) -> None:
    """Some objects are in their place, as the committer moves one after the other; nobody else's files are removed."""
    before = lake(spark, tmp_path)
    target = tmp_path / "laid_out"
    sop = fitted(spark, tmp_path)
    sop.write(str(target))
    whole = len(list(target.glob("*.parquet")))
    for file in sorted(target.glob("*.parquet"))[: whole // 2]:
        file.unlink()
    (target / "_SUCCESS").unlink()
    (target / "_es_skipping_layout.json").unlink()
    with pytest.raises(DatasetError, match="is not empty"):
        sop.write(str(target))
    (target / "_es_skipping_unfinished").touch()
    (target / "mine.txt").touch()
    with pytest.raises(DatasetError, match=r"is not empty, it holds mine\.txt"):
        sop.write(str(target))
    (target / "mine.txt").unlink()
    sop.write(str(target))
    assert rows(spark, target) == before
    assert sorted(file.name for file in target.iterdir() if file.name.startswith("_")) == [
        "_SUCCESS",
        "_es_skipping_layout.json",
    ]
