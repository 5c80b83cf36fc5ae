"""The benchmarks of layouts at a toy's scale: they run, and what they count is what rows and blocks say."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import es_skipping as esk
from benchmarks import layout_log, layout_pages
from benchmarks.layout_blocks import blocks_of, z_order
from benchmarks.tpch_workload import CHAPTER_5, filters, skewed
from es_skipping.build.filter_texts import predicates_of_filters
from es_skipping.workload.queries import Query
from tests.spark.building import spark

__all__ = ["spark"]


def test_workloads_are_the_same_each_time() -> None:
    assert layout_log.queries() == layout_log.queries()
    assert len(layout_log.queries()) == layout_log.TRAIN + layout_log.TEST
    for draw in (skewed,):
        assert filters(2, 1, draw, CHAPTER_5) == filters(2, 1, draw, CHAPTER_5)
        assert filters(2, 1, draw, CHAPTER_5) != filters(2, 2, draw, CHAPTER_5)


def test_a_query_scans_no_fewer_rows_than_match(spark: SparkSession, tmp_path: Path) -> None:
    spark.range(0, 500, 1, 2).selectExpr(
        "id % 7 AS x", "id * 31 % 97 AS y", "date_add(DATE'2024-01-01', cast(id % 9 AS int)) AS d"
    ).write.parquet(str(tmp_path / "t"))
    df = spark.read.parquet(str(tmp_path / "t"))
    dice = random.Random(1)
    texts = [
        f"x = {dice.randrange(9)} AND y < {dice.randrange(99)} AND d > DATE'2024-01-0{dice.randrange(1, 10)}'"
        for _ in range(20)
    ]
    curved = z_order(df, ["y", "d"], F.col("x"), 4)
    blocks = blocks_of(curved, [F.col("x"), F.col("block")], ["x", "y", "d"], ["x = 3"])
    assert (blocks.rows.sum(), len(blocks.rows)) == (500, 28)
    assert blocks.unions is not None
    assert blocks.unions.sum() == 4
    scanned = [blocks.scanned(Query(predicate)) for predicate in predicates_of_filters(df, texts)]
    counted = df.agg(*(F.sum(F.expr(text).cast("int")).alias(str(at)) for at, text in enumerate(texts))).first()
    assert counted is not None
    assert all(share >= matching / 500 for share, matching in zip(scanned, counted, strict=True))
    assert 0 < np.mean(scanned) < 0.2


@pytest.mark.long
def test_the_log_at_a_small_scale(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout_log, "TRAIN", 60)
    monkeypatch.setattr(layout_log, "TEST", 10)
    result = layout_log.count(spark, tmp_path, 700, 3, blocks_a_day=5)
    assert (result["rows"], result["columns"], result["test queries"]) == (700, 104, 10)
    shares = {name: one["share"] for name, one in result["scanned"].items()}
    assert shares["actual"] <= min(shares.values())
    assert max(shares.values()) == shares["fullscan"] == 1
    assert all(one["blocks"] <= 35 for name, one in result["scanned"].items() if name not in ("fullscan", "actual"))
    assert [one["distinct vectors"] for one in result["features"].values()] == sorted(
        one["distinct vectors"] for one in result["features"].values()
    )


@pytest.mark.long
def test_the_log_timed_at_a_small_scale(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout_log, "MIN_ROWS", 100)
    esk.enable(spark)
    timed = layout_log.time_all(spark, tmp_path, 2_100, 3)["timed"]
    assert list(timed) == ["fullscan", "range", "sop"]
    equal = {name: one["queries where Spark read the objects counted"] for name, one in timed.items()}
    assert equal == dict.fromkeys(timed, "16 of 16")
    assert timed["range"]["objects read a query"] < timed["fullscan"]["objects read a query"]


@pytest.mark.long
def test_the_interactive_pages_at_a_small_scale(spark: SparkSession, tmp_path: Path) -> None:
    made = layout_pages.pages(spark, tmp_path, 0.001, 700, each=3)
    assert list(made) == ["tpch", "log"]
    assert "l_discount" in made["tpch"]
    assert "customer = " in made["log"]
    assert all('type="range"' in page for page in made.values())
