"""Each scan gets the keys of its own joins, wherever the joins stand: twice in a query, cached, below a command."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import es_skipping as esk
from tests.spark.objects_read import num_files, scans
from tests.spark.star import FILES, asking, configured, ran, same, star

__all__ = ["star"]

pytestmark = pytest.mark.in_turn("spark")

MAY = "(SELECT * FROM dates WHERE d_year = 2020 AND d_month = 5)"
HOLIDAYS = "(SELECT * FROM dates WHERE d_holiday AND d_year = 2021)"


@pytest.fixture(scope="module")
def store(base: SparkSession, star: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    url = tmp_path_factory.mktemp("store").as_uri()
    esk.Dataset(configured(base, url), str(star / "fact")).create_indexes(esk.MinMax("date_key"))
    return url


@pytest.fixture(params=["true", "false"], ids=["adaptive", "fixed"])
def spark(base: SparkSession, store: str, star: Path, request: pytest.FixtureRequest) -> Iterator[SparkSession]:
    yield from asking(base, store, star, request.param)


def reused(spark: SparkSession, sql: str) -> int:
    """How many exchanges of a query's final plan are another's."""
    df = spark.sql(sql)
    df.collect()
    return str(df._jdf.queryExecution().executedPlan().toString()).split("Initial Plan")[0].count("ReusedExchange")


def test_one_fact_under_two_filters(spark: SparkSession) -> None:
    sql = f"""SELECT a.s, b.s FROM
              (SELECT store_key, sum(qty) AS s FROM fact JOIN {MAY} ON date_key = d_key GROUP BY 1) a
              FULL JOIN (SELECT store_key, sum(qty) AS s FROM fact JOIN {HOLIDAYS} ON date_key = d_key GROUP BY 1) b
              ON a.store_key = b.store_key"""
    assert same(spark, sql).files == [3, 4]


def test_the_parts_of_a_union(spark: SparkSession) -> None:
    """With a plan that is not adaptive, Spark 4.3 lists the files of both parts before it waits for the broadcasts."""
    sql = f"""SELECT date_key, qty FROM fact JOIN {MAY} ON date_key = d_key
              UNION ALL SELECT date_key, qty FROM fact JOIN {HOLIDAYS} ON date_key = d_key"""
    files = same(spark, sql).files
    if spark.conf.get("spark.sql.adaptive.enabled") == "true":
        assert files == [3, 4]
    else:  # a part whose broadcast ended in time skips
        assert set(files) <= {3, 4, FILES}


def test_one_exchange_for_two_joins_still_serves_both(spark: SparkSession) -> None:
    """The exchange is below both joins, so neither's keys may pass it."""
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "10k")
    fact = "(SELECT /*+ REPARTITION(2, date_key) */ date_key, qty FROM fact)"
    sql = f"""SELECT /*+ BROADCAST(m) */ a.qty FROM {fact} a JOIN {MAY} m ON a.date_key = m.d_key
              UNION ALL SELECT /*+ BROADCAST(h) */ b.qty FROM {fact} b JOIN {HOLIDAYS} h ON b.date_key = h.d_key"""
    done = same(spark, sql)
    assert done.files in ([FILES], [FILES, FILES])
    esk.disable(spark)
    shared = reused(spark, sql)
    esk.enable(spark)
    assert reused(spark, sql) == shared >= 1


def test_equal_joins_still_share_their_exchange(spark: SparkSession) -> None:
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "10k")
    part = f"SELECT /*+ BROADCAST(m) */ date_key, sum(qty) AS s FROM fact JOIN {MAY} m ON date_key = d_key GROUP BY 1"
    sql = f"SELECT /*+ MERGE(a, b) */ a.s, b.s FROM ({part}) a JOIN ({part}) b ON a.date_key = b.date_key"
    assert set(same(spark, sql).files) == {4}
    esk.disable(spark)
    shared = reused(spark, sql)
    esk.enable(spark)
    assert reused(spark, sql) == shared >= 1


def test_filters_in_another_order_share_an_exchange(spark: SparkSession) -> None:
    """TPC-DS's q78 names a year of `date_dim` three times, and the optimiser writes its filter in two orders."""
    one, other = "d_year = 2020 AND d_month = 5", "d_month = 5 AND d_year = 2020"
    part = """SELECT /*+ BROADCAST(d) */ date_key, qty FROM fact
              JOIN (SELECT d_key FROM dates WHERE {0}) d ON date_key = d_key WHERE qty = {1}"""
    sql = f"{part.format(one, 1)} UNION ALL {part.format(other, 2)}"
    same(spark, sql)
    esk.disable(spark)
    shared = reused(spark, sql)
    esk.enable(spark)
    assert reused(spark, sql) == shared >= 1


def test_a_join_within_a_broadcast_side_and_within_a_subquery(spark: SparkSession) -> None:
    sql = f"""SELECT s_city, n FROM stores
              JOIN (SELECT store_key, count(*) AS n FROM fact JOIN {MAY} ON date_key = d_key GROUP BY 1)
              ON s_key = store_key"""
    assert same(spark, sql).files == [4]
    sql = (
        f"SELECT s_city FROM stores WHERE s_key = (SELECT max(store_key) FROM fact JOIN {HOLIDAYS} ON date_key = d_key)"
    )
    assert same(spark, sql).files == [3]


def test_a_query_that_runs_again_asks_again(spark: SparkSession, tmp_path: Path) -> None:
    """New files of keys mean new keys for a new query; an old frame keeps its plan, its broadcast and its keys."""
    sql = f"SELECT date_key FROM fact JOIN parquet.`{tmp_path}/picked` ON date_key = k"
    for keys in ((13,), (13, 1400, 2399), ()):
        picked = spark.createDataFrame([(key,) for key in keys], "k int").coalesce(1)
        picked.write.mode("overwrite").parquet(str(tmp_path / "picked"))
        assert sum(same(spark, sql).files) == len(keys)
        df = spark.sql(sql)
        for _ in range(2):
            assert sorted(row.date_key for row in df.collect()) == sorted([*keys] * 5)


def test_a_cached_join(spark: SparkSession) -> None:
    """The cache holds the join's rows, whatever is asked of it later."""
    esk.enable(spark)
    cached = spark.sql(f"SELECT date_key, qty FROM fact JOIN {MAY} ON date_key = d_key").cache()
    cached.createOrReplaceTempView("cached")
    try:
        assert cached.count() == 31 * 5
        assert spark.sql("SELECT * FROM cached WHERE date_key < 0").count() == 0
        assert spark.sql(f"SELECT * FROM cached JOIN {HOLIDAYS} ON date_key = d_key").count() == 0
        assert spark.sql(f"SELECT * FROM cached JOIN {MAY} ON date_key = d_key").count() == 31 * 5
    finally:
        cached.unpersist()
    fact = spark.table("fact").cache()
    try:
        assert ran(spark, f"SELECT qty FROM fact JOIN {MAY} ON date_key = d_key", skipping=True).files == [FILES]
        assert ran(spark, f"SELECT qty FROM fact JOIN {HOLIDAYS} ON date_key = d_key", skipping=True).rows
    finally:
        fact.unpersist()


def test_a_command_writes_the_rows_of_a_join(spark: SparkSession) -> None:
    for skipping in (esk.disable, esk.enable):
        skipping(spark)
        spark.sql("DROP TABLE IF EXISTS of_may")
        spark.sql(f"CREATE TABLE of_may USING parquet AS SELECT qty FROM fact JOIN {MAY} ON date_key = d_key")
        assert spark.table("of_may").count() == 31 * 5
    observed = esk.last_query(spark)
    spark.sql(f"INSERT INTO of_may SELECT qty FROM fact JOIN {HOLIDAYS} ON date_key = d_key")
    assert spark.table("of_may").count() == 34 * 5
    spark.sql("DROP TABLE of_may")
    assert observed is not None


def test_without_generated_code(spark: SparkSession) -> None:
    spark.conf.set("spark.sql.codegen.wholeStage", "false")
    assert same(spark, f"SELECT qty FROM fact JOIN {MAY} ON date_key = d_key").files == [4]


def test_an_explanation_starts_no_job(spark: SparkSession) -> None:
    esk.enable(spark)
    df = spark.sql(f"SELECT qty FROM fact JOIN {MAY} ON date_key = d_key")
    context: Any = spark.sparkContext._jsc.sc()  # type: ignore[attr-defined]
    before = int(context.dagScheduler().numTotalJobs())
    esk.explain(df)
    df._jdf.queryExecution().executedPlan().toString()
    assert int(context.dagScheduler().numTotalJobs()) == before
    df.collect()
    esk.explain(df)
    assert [num for num in num_files(df) if num > 1] == [4]
    assert scans(df)
