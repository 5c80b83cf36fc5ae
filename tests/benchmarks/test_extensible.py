"""The experiments of *Extensible Data Skipping*, each at a toy's size: what their tables say holds."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import es_skipping as esk
from benchmarks import index_columns, index_sizes, indicators, payback
from benchmarks.access_log import AGENT_FUNCTION, Log, declare_family, object_tables, write_log
from benchmarks.weather import write_weather
from tests.spark.building import spark

__all__ = ["spark"]

LOG = Log(20, rows=40, busy_rows=200)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    write_log(LOG, tmp_path / "log")
    return tmp_path / "log"


def test_the_log_is_the_same_at_each_run_and_has_objects_of_both_kinds() -> None:
    first, second = ([table.to_pydict() for table in object_tables(LOG)] for _ in range(2))
    assert first == second
    distinct = [len(set(one["db_name"])) for one in first]
    assert [len(one["ts"]) for one in first] == [200 if LOG.is_busy(number) else 40 for number in range(20)]
    assert min(distinct[9], distinct[19]) > 100 > max(distinct[:9] + distinct[10:19])
    assert LOG.total() == 18 * 40 + 2 * 200


@pytest.mark.long
def test_sizes_of_pairs(spark: SparkSession, tmp_path: Path, log: Path) -> None:
    write_weather(tmp_path / "weather", 9, rows=4)
    data = {False: log, True: tmp_path / "weather"}
    assert len(index_sizes.PAIRS) == 11
    chosen = [pair for pair in index_sizes.PAIRS if pair.name.startswith(("MinMax", "Prefix"))]
    found = index_sizes.measured(spark, chosen, data, None)
    columns = index_sizes.column_bytes(data, chosen)
    assert found.keys() == columns.keys() == {pair.name for pair in chosen}
    assert all(one["bytes"] > 0 for one in found.values())
    assert sum(columns.values()) < sum(file.stat().st_size for folder in data.values() for file in folder.iterdir())


@pytest.mark.long
def test_builds_by_columns(spark: SparkSession, tmp_path: Path, log: Path) -> None:
    write_weather(tmp_path / "weather", 4, rows=4)
    found = {
        "log": index_columns.of_log(spark, log, (1, 2)),
        "footers": index_columns.of_footers(spark, tmp_path / "weather", (1, 30)),
    }
    assert found["log"]["every type"][2]["indexes"] == 12
    assert found["log"]["Hybrid"][2]["bytes"] > found["log"]["Hybrid"][1]["bytes"]
    assert found["log"]["one by one"][2]["build"] > found["log"]["one by one"][1]["build"]
    assert found["footers"][30]["bytes"] > found["footers"][1]["bytes"]
    assert "| 30 | " in index_columns.table(found)


@pytest.mark.long
def test_what_queries_save_pays_a_build(spark: SparkSession, tmp_path: Path) -> None:
    report = payback.run(spark, tmp_path, LOG, 1)
    for question, by_index in report["queries"].items():
        assert len({one["rows"] for one in by_index.values()}) == 1
        for name in payback.INDEXES:
            assert by_index[name]["opened"] < LOG.objects, (question, name)
            assert by_index[name]["data"] < by_index[payback.NOTHING]["data"]
            assert by_index[name]["metadata"] > 0
    assert report["queries"]["Q4"]["ValueList"]["opened"] == 0
    assert report["queries"]["Q1"]["ValueList"]["rows"] > 0
    assert "| ValueList | " in payback.table(report)


def test_an_index_that_saves_nothing_never_pays() -> None:
    same = {"seconds": 1.0, "data": 10, "metadata": 0}
    report = {
        "builds": {"Hybrid": {"seconds": 5.0, "bytes read": 90, "metadata bytes": 10}},
        "queries": {"Q1": {payback.NOTHING: same, "Hybrid": same | {"data": 4, "metadata": 2}}},
    }
    assert payback.payback(report, "Hybrid") == {"time": None, "bytes": 25}


def test_families_are_indexed_by_the_parser(spark: SparkSession, log: Path) -> None:
    declare_family(spark)
    esk.Dataset(spark, str(log)).create_indexes(esk.Formatted("user_agent", AGENT_FUNCTION))
    esk.enable(spark)
    found = spark.read.parquet(str(log)).where(f"{AGENT_FUNCTION}(user_agent) = 'nobody'")
    with esk.observe(spark) as report:
        assert found.count() == 0
    assert report.scans[0].objects_read == 0


def test_the_indicators_of_workloads(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The equation of the paper holds, and the value list opens what holds a match."""
    log = Log(20, 40, 40)
    write_log(log, tmp_path / "log")
    declare_family(spark)
    values = indicators.distinct_values(log, ("db_name", "user_agent"))
    wanted = [workload for workload in indicators.WORKLOADS if workload.column in values and "%x" not in workload.name]
    found = indicators.of_workloads(spark, tmp_path / "log", values, 2, wanted)
    assert len(found) == 2
    for one in found.values():
        assert one["without a row"] == 0
        product = one["layout_factor"] * one["metadata_factor"]
        assert one["scanning_factor"] == pytest.approx(one["selectivity"] / product)
        assert 0 < one["metadata_factor"] <= 1
        assert one["selectivity"] < 1
    monkeypatch.setattr(indicators, "LENGTHS", (2,))
    lengths = indicators.by_length(spark, tmp_path / "log", values["db_name"], queries=2)
    assert lengths["ValueList"]["mean metadata"] == 1 >= lengths["2"]["mean metadata"] > 0
