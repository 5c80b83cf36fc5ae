"""SQL statements on skipping indexes where no Python driver runs: a process carries each out, and ends."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.clients.applications import Lake, files_read
from tests.clients.test_spark_sql import spark_sql


@pytest.fixture
def fresh(lake: Lake, tmp_path: Path) -> Lake:
    """The lake's data, and a store of its own that is empty."""
    return Lake(lake.data, (tmp_path / "fresh-store").as_uri(), tmp_path)


def test_a_round_trip_in_spark_sql(fresh: Lake) -> None:
    table = f"parquet.`{fresh.data}`"
    scan = f"SELECT count(*) FROM {table} WHERE id = 5"
    done = spark_sql(
        fresh,
        scan,  # the helper learns that nothing is indexed
        f"CREATE SKIPPING INDEX ON {table} (minmax(id), bloom_filter(half, fpp => 0.001))",
        scan,
        f"SHOW SKIPPING INDEX ON {table}",
        f"EXPLAIN SKIPPING {scan}",
        f"CREATE TEMPORARY VIEW mine AS SELECT * FROM {table}",
        "EXPLAIN SKIPPING SELECT * FROM mine WHERE half = 4.5",
        f"REFRESH SKIPPING INDEX ON {table}",
        f"DROP SKIPPING INDEX ON {table}",
        scan,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    lines = done.stdout.splitlines()
    assert [line for line in lines if line.isdigit()] == ["1", "1", "1"]
    assert [line for line in lines if "\t" in line] == ["20\t0\t0\t0\t0", "0\t0\t0\t20\t0"]
    assert sorted(line for line in lines if line.endswith(")") and "(" in line and " " not in line) == [
        "BloomFilter(half)",
        "MinMax(id)",
    ]
    assert sum("19 of 20 objects would be skipped" in line for line in lines) == 2
    assert files_read(fresh.folder / "event-logs") == [20, 20, 1, 20]  # the second is the build's
