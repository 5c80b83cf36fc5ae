"""The benchmark of TPC-H at a toy's scale: queries return the same rows, start as many jobs, and skip files."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from benchmarks.tpc import LARGE, Run, generate, index, lay_out, measure, queries_of, table
from tests.spark.building import spark

__all__ = ["spark"]

FILES = 12
SOME = ("q1", "q4", "q6", "q12", "q15", "q20")


@pytest.mark.long
def test_some_queries_of_tpch(spark: SparkSession, tmp_path: Path) -> None:
    generate("tpch", 0.002, tmp_path / "raw")
    lay_out(spark, "tpch", tmp_path / "raw", tmp_path / "tables", FILES)
    spark.conf.set("spark.es_skipping.store.url", (tmp_path / "store").as_uri())
    spark.conf.set("spark.es_skipping.strict", "true")
    index(spark, "tpch", tmp_path / "tables")
    wanted = queries_of("tpch") if "ES_SKIPPING_TPC" in os.environ else SOME
    runs = {name: measure(spark, "tpch", name, queries_of("tpch")[name]) for name in wanted}
    assert [(run.query, run.note) for run in runs.values() if not run.equal] == []
    assert runs["q1"].opened == {"lineitem": FILES}
    assert runs["q6"].opened["lineitem"] <= FILES / 4, "a year of seven"
    assert runs["q4"].opened["orders"] <= 2, "three months"
    assert all(run.opened[name] <= run.files[name] for run in runs.values() for name in run.files)
    assert table("tpch", runs.values()).count("\n") == len(runs) + 1


def test_a_star_opens_fewer_files_than_its_filters(spark: SparkSession, tmp_path: Path) -> None:
    """As TPC-DS does: the filter stands on ``date_dim``, which knows the keys of the days."""
    days = list(range(120))
    tables = {
        "date_dim": pa.table({"d_date_sk": pa.array(days, pa.int32()), "d_moy": [day // 30 for day in days]}),
        "store_sales": pa.table({"ss_sold_date_sk": pa.array(days * 5, pa.int32()), "ss_price": list(range(600))}),
    }
    (tmp_path / "raw").mkdir()
    for name, rows in tables.items():
        pq.write_table(rows, tmp_path / "raw" / f"{name}.parquet")
    lay_out(spark, "tpcds", tmp_path / "raw", tmp_path / "tables", FILES)
    spark.conf.set("spark.es_skipping.store.url", (tmp_path / "store").as_uri())
    index(spark, "tpcds", tmp_path / "tables")
    sql = "SELECT sum(ss_price) FROM store_sales, date_dim WHERE ss_sold_date_sk = d_date_sk AND d_moy = 2"
    run = measure(spark, "tpcds", "star", sql)
    assert run.equal, run.note
    assert (run.files, run.alone) == ({"store_sales": FILES}, {"store_sales": FILES})
    assert run.opened["store_sales"] <= FILES / 3
    assert LARGE["tpcds"]["store_sales"] == "ss_sold_date_sk"
    assert "| star | 12 | 12 |" in table("tpcds", [run, Run("other", True, {}, {}, {}, 0, 0)])
