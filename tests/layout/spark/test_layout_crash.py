"""A layout whose driver is killed: the dataset is as it was, and the next write makes the layout whole."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import es_skipping as esk
from es_skipping import layout
from es_skipping.errors import DatasetError
from tests.spark.building import spark

__all__ = ["spark"]

ROWS = 800

_DRIVER = """
import os, signal, sys, threading, time
from pathlib import Path
from tests.spark.building import new_session
from tests.layout.spark.test_layout_crash import fitted

folder = Path(sys.argv[1])

def die():
    os.killpg(0, signal.SIGKILL)  # Python and its JVM

def watch():
    while not list((folder / "laid_out").rglob("part-*.parquet")):
        time.sleep(0.005)
    die()

def progress(done, total, phase):
    if phase == "write":
        threading.Thread(target=watch, daemon=True).start()
    else:  # it was faster than its watcher: not indexed yet
        die()

fitted(new_session(folder), folder).write(str(folder / "laid_out"), progress=progress)
"""


def lake(spark: SparkSession, folder: Path) -> list[tuple[int, int]]:
    spark.range(0, ROWS, 1, 3).selectExpr("id", "id * 31 % 101 AS x").write.parquet(str(folder / "lake"))
    return rows(spark, folder / "lake")


def rows(spark: SparkSession, path: Path) -> list[tuple[int, int]]:
    return sorted((row.id, row.x) for row in spark.read.parquet(str(path)).collect())


def fitted(spark: SparkSession, folder: Path) -> layout.SOP:
    sop = layout.SOP(esk.Dataset(spark, str(folder / "lake")), min_rows=50)
    sop.fit(["x < 3", "x < 3", "x > 90", "x > 90"])
    return sop


def test_a_killed_driver(spark: SparkSession, tmp_path: Path) -> None:
    before = lake(spark, tmp_path)
    files = {file: file.read_bytes() for file in (tmp_path / "lake").rglob("*") if file.is_file()}
    target = tmp_path / "laid_out"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    command = [sys.executable, "-c", _DRIVER, str(tmp_path)]
    done = subprocess.run(
        command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, check=False, start_new_session=True
    )
    assert done.returncode == -signal.SIGKILL, done.stderr[-2000:]
    assert list(target.rglob("part-*.parquet"))
    assert {file: file.read_bytes() for file in (tmp_path / "lake").rglob("*") if file.is_file()} == files
    assert not (target / "_es_skipping_layout.json").exists()
    with pytest.raises(DatasetError):
        layout.status(spark, str(target))
    sop = fitted(spark, tmp_path)
    sop.write(str(target))
    assert rows(spark, target) == before
    assert len(list(target.rglob("*.parquet"))) == sop.plan.blocks
    assert not sop.status().run_again

    # Had it died while Spark committed, some objects were in their place already, as they are moved one by one.
    for file in sorted(target.glob("*.parquet"))[: sop.plan.blocks // 2]:
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
    marks = sorted(file.name for file in target.iterdir() if file.name.startswith("_"))
    assert marks == ["_SUCCESS", "_es_skipping_layout.json"]
