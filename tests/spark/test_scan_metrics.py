"""What the SQL tab of Spark's UI shows of a scan, and that the plan is otherwise as it was."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import es_skipping as esk
from tests.spark.building import ROOT_SETTING, spark
from tests.spark.skipping_on_off import age

__all__ = ["ROOT_SETTING", "spark"]


@pytest.fixture
def path(spark: SparkSession, tmp_path: Path) -> str:
    path = tmp_path / "data"
    spark.range(0, 1000, 1, 10).write.parquet(str(path))
    age(path)
    esk.Dataset(spark, str(path)).create_indexes(esk.MinMax("id"))
    esk.enable(spark)
    return str(path)


def shown(spark: SparkSession, sql: str) -> tuple[dict[str, str], str]:
    """The metrics of the last execution's only scan, as the UI writes them, and the text of its node."""
    spark.sql(sql).collect()
    (execution,) = esk.last_query(spark).executions
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()  # type: ignore[attr-defined]
    store: Any = spark._jsparkSession.sharedState().statusStore()
    values = store.executionMetrics(int(execution))
    (node,) = [node for node in every(store.planGraph(int(execution)).allNodes()) if node.name().startswith("Scan ")]
    metrics = {metric.name(): metric.accumulatorId() for metric in every(node.metrics())}
    return {name: values.get(id).get() for name, id in metrics.items() if values.contains(id)}, node.desc()


def every(sequence: Any) -> Iterator[Any]:
    for at in range(sequence.size()):
        yield sequence.apply(at)


@pytest.mark.parametrize("adaptive", ["true", "false"])
def test_the_scan_shows_what_it_skipped(spark: SparkSession, path: str, adaptive: str) -> None:
    spark.conf.set("spark.sql.adaptive.enabled", adaptive)
    metrics, text = shown(spark, f"SELECT id % 3, count(*) FROM parquet.`{path}` WHERE id < 250 GROUP BY 1")
    assert (metrics["number of files read"], metrics["number of files skipped"]) == ("3", "7")
    assert metrics["size of files skipped"].endswith("KiB")
    if adaptive == "true":  # else Spark sends the plan's text only once, before the files are listed
        assert "Skipping: 7 of 10 files" in text
    metrics, text = shown(spark, f"SELECT count(*) FROM parquet.`{path}` WHERE id % 7 = 3")
    assert (metrics["number of files read"], metrics["number of files skipped"]) == ("10", "0")
    assert metrics["number of output rows"] == "1,000"
    if adaptive == "true":
        assert "Skipping: 0 of 10 files, no object could be ruled out" in text
    esk.disable(spark)
    metrics, text = shown(spark, f"SELECT count(*) FROM parquet.`{path}` WHERE id < 250")
    assert "number of files skipped" not in metrics
    assert "Skipping" not in text


def test_the_text_of_an_executed_plan_says_it(spark: SparkSession, path: str) -> None:
    df = spark.read.parquet(path).where("id < 250")
    before = df._jdf.queryExecution().executedPlan().toString()
    assert "Skipping:" not in before
    df.collect()
    after = df._jdf.queryExecution().executedPlan().toString()
    assert "Skipping: 7 of 10 files" in after
    assert after.replace(", Skipping: 7 of 10 files", "") == before
