"""`explain`: what a query would skip and why, without running it."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType

import es_skipping as esk
from es_skipping.errors import StoreUnavailable
from tests.reports.conftest import OBJECTS
from tests.reports.memory_store import STORE, FailingStore


def test_what_would_be_skipped_is_what_is_skipped(spark: SparkSession) -> None:
    df = spark.sql("SELECT * FROM events WHERE id BETWEEN 40 AND 60")
    explanation = esk.explain(df)
    with esk.observe(spark) as report:
        df.collect()
    assert explanation.objects_total == report.objects_total == OBJECTS
    assert explanation.objects_skipped == report.objects_skipped == OBJECTS - 2
    assert explanation.bytes_skipped == report.bytes_skipped
    assert explanation.scans[0].datasets[0].clause


def test_nothing_is_executed_and_nothing_remembered(spark: SparkSession) -> None:
    df = spark.sql("SELECT * FROM events WHERE id < 50")
    with esk.observe(spark) as report:
        esk.explain(df)
    assert report.executions == ()
    assert report.scans == ()
    with esk.observe(spark) as report:
        df.collect()
    assert len(report.scans) == 1


def test_each_node_says_what_it_became_or_why_not(spark: SparkSession) -> None:
    sql = "SELECT * FROM events WHERE id < 50 AND word <> 'w3' AND (id = 3 OR upper(word) = 'W1')"
    (scan,) = esk.explain(spark.sql(sql)).scans
    nodes = {node.text: node for node in scan.datasets[0].nodes}
    assert nodes["id < 50"].clause == "MinMax(id): a value < 50"
    assert nodes["word <> 'w3'"].reason == "no index on word"
    assert nodes["word <> 'w3'"].clause is None
    assert nodes["OR"].reason == "a part of it has no clause"
    assert nodes["AND"].clause == "the parts below, joined by AND"
    assert {node.depth for node in scan.datasets[0].nodes} == {0, 1, 2}


def test_it_prints_in_a_terminal_and_in_a_notebook(spark: SparkSession) -> None:
    explanation = esk.explain(spark.sql("SELECT * FROM events WHERE id < 50 AND word = '<b>'"))
    text = str(explanation)
    assert f"{OBJECTS - 1} of {OBJECTS} objects would be skipped (95 %)" in text
    assert "MinMax(id): a value < 50" in text
    assert "\n    the objects of events-" in text
    assert "\n    Conjunction(clauses=(Ask(index='minmax(id)'" in text
    assert "&lt;b&gt;" in explanation._repr_html_()
    assert "\n" not in repr(explanation)


def test_with_detail_each_index_is_counted_alone(spark: SparkSession) -> None:
    df = spark.sql("SELECT * FROM events WHERE id < 50")
    assert esk.explain(df).scans[0].datasets[0].by_index == {}
    assert esk.explain(df, detail=True).scans[0].datasets[0].by_index == {"minmax(id)": OBJECTS - 1}


def test_every_scan_is_explained_those_of_subqueries_too(spark: SparkSession) -> None:
    sql = """SELECT count(*) FROM events a JOIN events b ON a.id = b.id + 900
             WHERE b.id < 10 AND a.word = (SELECT max(word) FROM events WHERE id < 150)"""
    for adaptive in ("true", "false"):
        spark.conf.set("spark.sql.adaptive.enabled", adaptive)
        explanation = esk.explain(spark.sql(sql))
        assert sorted(scan.objects_total - scan.objects_skipped for scan in explanation.scans) == [1, 3, OBJECTS]


@pytest.mark.parametrize("adaptive", ["true", "false"])
def test_a_python_function_is_named(spark: SparkSession, adaptive: str) -> None:
    spark.conf.set("spark.sql.adaptive.enabled", adaptive)
    odd = F.udf(lambda x: x % 2 == 1, BooleanType())
    explanation = esk.explain(spark.table("events").where(odd("id")).where("id < 50"))
    (scan,) = explanation.scans
    assert scan.objects_skipped == OBJECTS - 1


def test_partition_values_make_a_filter_each(spark: SparkSession, tmp_path: object) -> None:
    path = f"{tmp_path}/parts"
    spark.range(40).selectExpr("id", "id % 2 AS p").write.partitionBy("p").parquet(path)
    import time

    time.sleep(2.5)
    esk.Dataset(spark, path).create_indexes(esk.MinMax("id"))
    (scan,) = esk.explain(spark.read.parquet(path).where("(p = 0 AND id < -5) OR (p = 1 AND id > 1000)")).scans
    assert len({part.filter for part in scan.datasets}) == 2
    assert scan.objects_skipped == scan.objects_total > 0


def test_a_scan_without_a_filter_says_so(spark: SparkSession) -> None:
    (scan,) = esk.explain(spark.table("events")).scans
    assert scan.reason == "the scan has no filter"
    assert scan.objects_skipped == 0


def test_a_dataset_without_an_index_says_so(spark: SparkSession, tmp_path: object) -> None:
    spark.range(10).write.parquet(f"{tmp_path}/plain")
    (scan,) = esk.explain(spark.read.parquet(f"{tmp_path}/plain").where("id = 3")).scans
    assert (scan.reason, scan.datasets) == ("not indexed", ())


def test_a_plan_without_files_says_so(spark: SparkSession) -> None:
    explanation = esk.explain(spark.range(10).where("id = 3"))
    assert explanation.scans == ()
    assert "scans no files" in str(explanation)


def test_a_store_that_fails_is_the_reason(spark: SparkSession, store: FailingStore) -> None:
    store.error = StoreUnavailable("it is on holiday")
    (scan,) = esk.explain(spark.sql("SELECT * FROM events WHERE id < 50")).scans
    assert scan.reason == "StoreUnavailable: it is on holiday"
    assert scan.objects_total == OBJECTS


def test_an_index_that_may_not_be_used_is_named_with_its_reason(spark: SparkSession, events: str) -> None:
    (scan,) = esk.explain(spark.read.schema("id INT, word STRING").parquet(events).where("id < 50")).scans
    ((index, reason),) = scan.datasets[0].unusable
    assert index == "minmax(id)"
    assert reason
    assert "MinMax(id)" in str(scan.reason)


def test_a_session_that_is_not_enabled_is_explained_and_told(
    spark: SparkSession, base: SparkSession, events: str
) -> None:
    esk.disable(spark)
    explanation = esk.explain(spark.sql("SELECT * FROM events WHERE id < 50"))
    assert explanation.objects_skipped == OBJECTS - 1
    assert "not enabled" in str(explanation)
    never = base.newSession()
    never.conf.set("spark.es_skipping.store.url", STORE.url)
    assert esk.explain(never.read.parquet(events).where("id < 50")).objects_skipped == OBJECTS - 1


def test_objects_that_changed_would_not_be_skipped(spark: SparkSession, tmp_path: object) -> None:
    import os
    import time
    from pathlib import Path

    path = f"{tmp_path}/changing"
    spark.range(0, 40, 1, 4).write.parquet(path)
    time.sleep(2.5)
    esk.Dataset(spark, path).create_indexes(esk.MinMax("id"))
    for file in Path(path).glob("*.parquet"):
        os.utime(file, (1_600_000_000, 1_600_000_000))
    (scan,) = esk.explain(spark.read.parquet(path).where("id < 0")).scans
    assert scan.objects_skipped == 0
    assert "not in Spark's listing" in str(scan.reason)
