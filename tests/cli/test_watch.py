"""``es-skipping index refresh --watch`` indexes what comes until it is stopped."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import es_skipping as esk
from tests.cli.running import SMALL

PATIENCE = 120.0


def write(folder: Path, name: str, first: int) -> None:
    """A file that is old enough to be indexed."""
    pq.write_table(pa.table({"id": range(first, first + 10)}), folder / name)
    os.utime(folder / name, (time.time() - 60, time.time() - 60))


def test_files_that_come_are_indexed_and_an_interrupt_ends_it(tmp_path: Path) -> None:
    data, store = tmp_path / "data", (tmp_path / "store").as_uri()
    data.mkdir()
    write(data, "a.parquet", 0)
    esk.index_files(str(data), esk.MinMax("id"), store=store)
    options = [text for key, value in SMALL.items() for text in ("--conf", f"{key}={value}")]
    arguments = ["index", "refresh", str(data), "--watch", "500ms", "--store", store, "--output", "json", *options]
    process = subprocess.Popen(
        [sys.executable, "-m", "es_skipping.cli", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=tmp_path,
    )
    try:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["unchanged"] == 1
        write(data, "b.parquet", 10)
        assert json.loads(process.stdout.readline())["added"] == 1, "the time in which nothing came is not told"
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) == 130
    finally:
        process.kill()
        process.communicate()
    assert esk.files(str(data), "id = 12", store=store) == [str(data / "b.parquet")]
