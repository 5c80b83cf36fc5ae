"""The benchmark behind an object store's latency, at a toy's size."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import shapely

from benchmarks.object_store import DOLLARS_A_MILLION_REQUESTS, MODES, MONTHS, other_months, polygon, price
from es_skipping.catalog import ObjectId, ObjectMetadata

ROOT = Path(__file__).resolve().parent.parent.parent


def test_the_polygon_lies_inside_one_cell() -> None:
    (west, south, east, north), text = polygon(9)
    shape = shapely.from_wkt(text)
    assert shape.is_valid
    assert shape.bounds == (west, south, east, north)
    assert -60 < west < east < 60, "the middle of three columns"
    assert -30 < south < north < 30


def test_the_metadata_of_a_month_serves_all_months() -> None:
    one = ObjectMetadata(ObjectId("slow:/d/month=0/part-0.parquet", 7, 8), 9, {})
    found = list(other_months([one]))
    assert [each.id.path for each in found] == [f"slow:/d/month={month}/part-0.parquet" for month in range(MONTHS)]
    assert found[0] == one


def test_requests_and_bytes_have_prices() -> None:
    assert price({"requests": 1_000_000, "bytes": 0}) == DOLLARS_A_MILLION_REQUESTS
    assert price({"requests": 0, "bytes": 10**12}) == 5


@pytest.mark.long
def test_requests_and_bytes_of_both_sides_are_counted(tmp_path: Path) -> None:
    """In a process of its own, because the file system must be on the class path from the beginning."""
    command = [sys.executable, "-m", "benchmarks.object_store", "--objects", "9", "--rows", "8", "--wait", "1"]
    done = subprocess.run(
        [*command, "--windows", "2", "--without-sedona"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    line = next(line for line in done.stdout.splitlines() if line.startswith("2 {"))
    by_mode = json.loads(line.removeprefix("2 ").replace("'", '"'))
    assert by_mode.keys() == set(MODES)
    none, rewritten, cold, warm = (by_mode[mode] for mode in MODES)
    assert (warm["opened"], warm["of"]) == (cold["opened"], cold["of"]) == (2, 18)
    assert none["requests"] >= rewritten["requests"] > cold["requests"] > warm["requests"] >= 2 * 2
    assert none["bytes"] >= rewritten["bytes"] > cold["bytes"] > warm["bytes"] > 0
    assert none["rows"] > 0
