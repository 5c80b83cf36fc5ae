"""The comparison with other systems at a toy's size: every system has the same rows, and its tables hold."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from benchmarks.peers import __main__ as peers
from benchmarks.peers.data import make
from benchmarks.peers.queries import queries
from benchmarks.peers.tables import files_table, planning_table, summary_table, time_table
from tests.spark.building import spark

__all__ = ["spark"]


@pytest.mark.long
def test_systems_side_by_side(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers, "WARM_UPS", 0)
    data = make(tmp_path, scale=0.01, files=8, place_files=10)
    url = (tmp_path / "in place of a server").as_uri()
    systems = peers.all_systems(spark, data, tmp_path, url, formats=())
    found = peers.answers(systems, queries(data), rounds=1)  # asserts that the rows are equal

    def files(query: str) -> dict[str, int]:
        return {name: given[0].files for name, given in found[query].items()}

    key = files("a key that nothing clusters")
    assert key["plain Spark"] == key["DuckDB"] == key["Polars"] == 8
    assert key["es_skipping, Parquet"] == key["es_skipping, Elasticsearch"] == key["DuckDB, our files"] < 8
    assert key["Polars, our files"] == key["DuckDB, our files"]
    again = files("a filter that comes back")
    assert again["es_skipping, Parquet"] == again["es_skipping, Elasticsearch"] < 8
    assert again["es_skipping, laid out"] <= len(list((tmp_path / "laid_out").glob("*.parquet"))) * 0.6
    assert files("nothing can be skipped")["es_skipping, Parquet"] == 8
    assert files("end of a name")["DuckDB, our files"] < 10

    assert "| plain Spark |" in time_table(found)
    assert "DuckDB" not in planning_table(found)
    assert f"| a key that nothing clusters | 8 | {key['es_skipping, Parquet']} |" in files_table(found)
    assert summary_table(found).splitlines()[4].startswith("| time | 1.00 |")
