"""Indicators and advice, through Spark, on data of which every number is known."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import es_skipping as esk
from es_skipping.reports.advice import Advice
from es_skipping.reports.measure import Indicators, ScanIndicators
from tests.spark.skipping_on_off import age


@pytest.fixture
def path(spark: SparkSession, tmp_path: Path) -> str:
    """Ten objects of 100 rows: ``id`` ascends, ``few`` is in the order of nothing, ``name`` ends as ``id`` does."""
    path = str(tmp_path / "data")
    spark.range(0, 1000, 1, 10).selectExpr(
        "id",
        "id div 100 * 7 % 10 AS few",
        "concat('n', id, '.', id div 200) AS name",
        "double(id) AS lat",
        "double(id * 7 % 1000) AS lon",
    ).write.parquet(path)
    age(path)
    return path


def test_the_factors_of_a_query(spark: SparkSession, path: str) -> None:
    esk.Dataset(spark, path).create_indexes(esk.MinMax("id"), esk.MinMax("few"))
    esk.disable(spark)
    measured = esk.indicators(
        spark,
        [
            f"SELECT count(*) FROM parquet.`{path}` WHERE id >= 150 AND id < 250",
            spark.read.parquet(path).where("name = 'n150.0'"),
            f"SELECT * FROM parquet.`{path}` WHERE id = 50 AND name = 'no such'",
        ],
    )
    first, second, third = measured.scans
    assert (first.rows, first.rows_relevant, first.rows_of_relevant_objects, first.rows_scanned) == (
        1000,
        100,
        200,
        200,
    )
    assert (first.objects, first.objects_relevant, first.objects_opened) == (10, 2, 2)
    assert (first.selectivity, first.layout_factor, first.metadata_factor, first.scanning_factor) == (
        0.1,
        0.5,
        1.0,
        0.2,
    )
    # no index on name: all is read
    assert (second.selectivity, second.layout_factor, second.metadata_factor) == (0.001, 0.01, 0.1)
    assert second.scanning_factor == 1.0
    # nothing is relevant, and yet one object had to be opened
    assert (third.rows_relevant, third.objects_opened, third.layout_factor) == (0, 1, None)
    assert measured.scanning_factor == pytest.approx((0.2 * 1.0) ** 0.5)
    assert measured.scanning_factor == pytest.approx(
        measured.selectivity / (measured.layout_factor * measured.metadata_factor)  # type: ignore[operator]
    )
    assert first.filter == "id IS NOT NULL AND id >= 150 AND id < 250"
    assert second.filter == "name IS NOT NULL AND name = 'n150.0'"
    noted = esk.queries(spark).where("execution IS NULL").collect()  # indicators list files without executing anything
    assert len(noted) == 3
    assert all("outside of an execution" in row.description and row.time is not None for row in noted)
    assert "geometric mean" in str(measured)
    assert measured.queries == measured.scans
    assert "Queries without a relevant row, left out of the means: 1." in str(measured)
    assert measured._repr_html_().count("<tr>") == 5
    assert not esk.is_enabled(spark)


def test_a_filter_by_a_function_of_python(spark: SparkSession, path: str) -> None:
    """Spark moves the function below the filter, so that the filter no longer stands directly on the scan."""
    esk.declare_function("ending", _ending, version="1", returns="string", spark=spark)
    esk.Dataset(spark, path).create_indexes(esk.Formatted("name", "ending"))
    (scan,) = esk.indicators(spark, f"SELECT id FROM parquet.`{path}` WHERE ending(name) = '3' AND id % 2 = 0").scans
    assert (scan.rows, scan.rows_relevant, scan.rows_of_relevant_objects, scan.rows_scanned) == (1000, 100, 200, 200)
    assert "udf:ending(name" in scan.filter


def _ending(name: str) -> str:
    return name.rpartition(".")[2]


def test_joins_partitions_and_scans_without_a_filter(spark: SparkSession, path: str, tmp_path: Path) -> None:
    parts = str(tmp_path / "parts")
    spark.read.parquet(path).selectExpr("*", "id div 500 AS half").repartition(1).write.partitionBy("half").parquet(
        parts
    )
    spark.read.parquet(parts).createOrReplaceTempView("parts")
    measured = esk.indicators(
        spark, [f"SELECT * FROM parts p JOIN parquet.`{path}` d ON p.id = d.id WHERE p.half = 1 AND p.id < 600"]
    )
    by_objects = {scan.objects: scan for scan in measured.scans}
    assert set(by_objects) == {2, 10}
    assert by_objects[2].rows_relevant == 100
    assert by_objects[2].objects_opened == 1  # the other by Spark's own pruning
    (query,) = measured.queries
    assert (query.rows, query.objects, query.objects_opened) == (
        2000,
        12,
        sum(s.objects_opened for s in measured.scans),
    )
    assert measured.scanning_factor == pytest.approx(query.rows_scanned / 2000)
    assert query.scanning_factor == pytest.approx(query.selectivity / (query.layout_factor * query.metadata_factor))  # type: ignore[operator]
    assert "all 2 scans" in str(measured)
    assert esk.indicators(spark, [f"SELECT * FROM parquet.`{path}`", "SELECT 1"]).scans[0].selectivity == 1.0


def test_nothing_to_measure() -> None:
    assert Indicators(()).scanning_factor is None
    assert "no scan of files" in str(Indicators(()))
    assert ScanIndicators("q", "", 0, 0, 0, 0, 0, 0, 0).selectivity is None


def test_why_not_finds_the_index(spark: SparkSession, path: str) -> None:
    esk.Dataset(spark, path).create_indexes(esk.MinMax("id"))
    data = spark.read.parquet(path)
    advice = esk.why_not(data.where("few = 3 AND id > 5"))
    (scan,) = advice.scans
    found = {str(one.index): (one.skipped, one.exists) for one in scan.candidates}
    assert found["MinMax(id)"] == (0, True)
    assert found["MinMax(few)"] == (9, False)
    assert found["ValueList(few)"] == (9, False)
    assert scan.best in (esk.MinMax("few"), esk.ValueList("few"))
    assert (scan.objects, scan.sampled) == (10, 10)
    assert "exists already" in str(advice)
    assert "Judged from 10 of 10 objects." in advice._repr_html_()
    # what is advised does what was said
    esk.Dataset(spark, path).create_indexes(scan.best)
    esk.enable(spark)
    with esk.observe(spark) as report:
        data.where("few = 3").collect()
    assert report.objects_skipped == 9
    assert report.scanning_factor == pytest.approx(report.scans[0].bytes_read / report.scans[0].bytes_total)
    esk.disable(spark)


def test_why_not_of_texts_places_and_expressions(spark: SparkSession, path: str) -> None:
    data = spark.read.parquet(path)
    by_end = esk.why_not(data.where("name LIKE '%.3'"), objects=5).scans[0]
    assert isinstance(by_end.best, esk.Suffix | esk.ValueList)
    assert by_end.sampled == 5
    boxed = esk.why_not(data.where("lat BETWEEN 100 AND 120 AND lon BETWEEN 700 AND 720")).scans[0]
    assert "GeoBox(lat, lon, boxes=4)" in {str(one.index) for one in boxed.candidates if one.skipped >= 9}
    shouted = esk.why_not(data.where("upper(name) = 'N5.0'")).scans[0]
    assert esk.ValueList("upper(name)") in [one.index for one in shouted.candidates if one.skipped == 9]
    esk.declare_function("ending", lambda name: name[-1], version="1", returns="string", spark=spark)
    asked = data.where("ending(name) = '3'")
    assert isinstance(esk.why_not(asked).scans[0].best, esk.MinMax | esk.ValueList)


def test_why_not_counts_the_objects_that_it_chose_from(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "parts")
    spark.range(0, 100, 1, 1).selectExpr("id", "id % 5 AS part").write.partitionBy("part").parquet(path)
    advice = esk.why_not(spark.read.parquet(path).where("part = 3 AND id = 33"))  # Spark's own pruning leaves one file
    (scan,) = advice.scans
    assert (scan.objects, scan.sampled) == (5, 5)
    assert str(advice).endswith("Judged from 5 of 5 objects.")


def test_why_not_says_why_nothing_helps(spark: SparkSession, path: str) -> None:
    data = spark.read.parquet(path)
    assert esk.why_not(data).scans[0].reason == "the scan has no filter"
    assert "no index type understands" in str(
        esk.why_not(data.where("array_contains(array(id, few), 3)")).scans[0].reason
    )
    assert str(esk.why_not(spark.range(5))) == "The plan scans no files."
    assert repr(Advice(())) == "Advice(no scan of files)"
