"""`GSOP` through Spark: from whole queries to column groups that they skip by."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import es_skipping as esk
from es_skipping import layout
from es_skipping.errors import DatasetError
from tests.spark.building import spark
from tests.spark.objects_read import blocks_read

__all__ = ["spark"]

QUERIES = [
    query
    for at in range(12)
    for query in (
        f"SELECT sum(a1), max(a2) FROM t WHERE a1 = {at % 3}",
        f"SELECT b2 FROM t WHERE b1 = {at % 2} AND b2 > 3",
    )
]
"""Two kinds that have neither a column nor a condition in common."""


def write_both_kinds(spark: SparkSession, lake: Path) -> None:
    columns = ("id", "id * 7919 % 10 AS a1", "id % 100 AS a2", "id * 104729 % 11 AS b1", "id % 97 AS b2", "id % 2 AS p")
    spark.range(0, 1_200, 1, 2).selectExpr(*columns).write.partitionBy("p").parquet(str(lake))


def test_from_queries_to_groups(spark: SparkSession, tmp_path: Path) -> None:
    write_both_kinds(spark, tmp_path / "lake")
    gsop = layout.GSOP(esk.Dataset(spark, str(tmp_path / "lake")), min_rows=50, opening=0)
    with pytest.raises(DatasetError, match="call fit"):
        gsop.write(str(tmp_path / "groups"))
    gsop.df.createOrReplaceTempView("t")
    log = layout.QueryLog.from_sql(gsop.df, QUERIES)
    assert {query.columns for query in log} == {("a1", "a2"), ("b1", "b2")}
    plan = gsop.fit(log)
    by_column = {name: number for number, group in enumerate(plan.groups) for name in group.columns}
    assert by_column["a1"] == by_column["a2"] != by_column["b1"] == by_column["b2"]
    assert plan.read["these groups"] < plan.read["one group for all (SOP)"]
    assert "one group for all" in gsop.explain()
    done = gsop.write(str(tmp_path / "groups"))
    assert (done.rows, done.refused) == (1_200, ())
    spark.read.parquet(str(tmp_path / "lake")).createOrReplaceTempView("plain")
    spark.read.format("es_skipping_groups").load(str(tmp_path / "groups")).createOrReplaceTempView("t")
    esk.enable(spark)
    assert sorted(map(repr, spark.table("t").collect())) == sorted(map(repr, spark.table("plain").collect()))
    for query in QUERIES[:2]:
        df = spark.sql(query)
        expected = spark.sql(query.replace("FROM t", "FROM plain"))
        assert sorted(map(repr, df.collect())) == sorted(map(repr, expected.collect()))
        (opened,) = blocks_read(df)
        assert opened < 0.6 * done.blocks[by_column["a1" if "a1" in query else "b1"]]
    # Now t is the table in groups: whole queries of it are a workload too.
    place = str(tmp_path / "groups")
    spark.sql(f"CREATE TABLE of_gsop USING es_skipping_groups LOCATION '{place}'")
    try:
        frames = [spark.read.format("es_skipping_groups").load(place), spark.table("t"), spark.table("of_gsop")]
        for df in frames:
            newer = layout.QueryLog.from_sql(df, [*QUERIES[:4], "a1 = 2 AND b2 > 3"])
            assert [query.columns for query in newer] == [*(query.columns for query in log[:4]), None]
            assert list(newer[:4]) == list(log[:4])
            assert str(newer[4].predicate) == str(layout.QueryLog.from_sql(gsop.df, [newer[4].text])[0].predicate)
        status = gsop.status(place, newer[:4])
        assert (status.helped, status.run_again) == (1, False)
        assert status.read is not None
        assert 0 < status.read < 0.6
        assert layout.status(spark, table="of_gsop", log=newer[:4]) == status
        with pytest.raises(DatasetError, match="has the format es_skipping_groups"):
            esk.Dataset(spark, table="of_gsop").create_indexes(esk.MinMax("a1"))
    finally:
        spark.sql("DROP TABLE of_gsop")


def test_blocks_that_are_joined_cost_a_reader_each(spark: SparkSession, tmp_path: Path) -> None:
    """By cells alone, queries that need both kinds' columns do not change the groups."""
    write_both_kinds(spark, tmp_path / "lake")
    dataset = esk.Dataset(spark, str(tmp_path / "lake"))
    free, usual = layout.GSOP(dataset, min_rows=50, opening=0), layout.GSOP(dataset, min_rows=50)
    free.df.createOrReplaceTempView("t")
    both = ["SELECT a2, b2 FROM t WHERE a1 = 3", "SELECT a2, b2 FROM t WHERE b1 = 5"]
    log = layout.QueryLog.from_sql(free.df, [*QUERIES, *both * 8])
    assert [len(maker.fit(log).groups) for maker in (free, usual)] == [2, 1]


def test_a_budget_buys_replicas(spark: SparkSession, tmp_path: Path) -> None:
    spark.range(0, 1_200, 1, 2).selectExpr(
        "id", "id * 7919 % 10 AS a", "id * 104729 % 11 AS b", "id % 97 AS c"
    ).write.parquet(str(tmp_path / "lake"))
    with pytest.raises(ValueError, match="give 1 or more"):
        layout.GSOPR(esk.Dataset(spark, str(tmp_path / "lake")), storage_budget=0.9)
    gsopr = layout.GSOPR(esk.Dataset(spark, str(tmp_path / "lake")), storage_budget=1.5, min_rows=50, opening=0)
    gsopr.df.createOrReplaceTempView("t")
    queries = [
        text
        for at in range(12)
        for text in (f"SELECT c FROM t WHERE a = {at % 2}", f"SELECT c FROM t WHERE b = {at % 3}")
    ]
    plan = gsopr.fit(queries)
    assert 1 < plan.storage <= 1.5
    assert sum("c" in group.columns for group in plan.groups) > 1
    assert plan.read["these groups"] <= plan.read["GSOP's groups"]
    gsopr.write(str(tmp_path / "groups"))
    spark.read.parquet(str(tmp_path / "lake")).createOrReplaceTempView("plain")
    spark.read.format("es_skipping_groups").load(str(tmp_path / "groups")).createOrReplaceTempView("t")
    esk.enable(spark)
    for query in (*queries[:3], "SELECT * FROM t", "SELECT c, a FROM t WHERE b = 1", "SELECT count(*) FROM t"):
        expected = spark.sql(query.replace("FROM t", "FROM plain"))
        assert sorted(map(repr, spark.sql(query).collect())) == sorted(map(repr, expected.collect())), query


SIZES, BRANDS = 12, 5
DRAWN = random.Random(8)
LISTS = [
    f"SELECT size, cost FROM t WHERE size IN ({', '.join(map(str, DRAWN.sample(range(SIZES), 3)))})" for _ in range(40)
]


@pytest.mark.every(2)
@pytest.mark.parametrize(("maker", "rank"), [(layout.GSOP, "savings"), (layout.GSOPR, "queries")])
def test_lists_that_differ_from_query_to_query(spark: SparkSession, tmp_path: Path, maker: Any, rank: str) -> None:
    """Each value is a feature then, and a query opens the blocks that have one of its values."""
    spark.range(0, 3_000, 1, 2).selectExpr(
        "id",
        f"IF(id % 50 = 0, NULL, cast(pmod(hash(id, 1), {SIZES}) AS int)) AS size",
        "id % 97 AS cost",
        f"concat('b', pmod(hash(id, 2), {BRANDS})) AS brand",
    ).write.parquet(str(tmp_path / "lake"))
    spark.read.parquet(str(tmp_path / "lake")).createOrReplaceTempView("t")
    queries = [*LISTS, *(f"SELECT brand, id FROM t WHERE brand = 'b{at % BRANDS}'" for at in range(20))]
    random.Random(1).shuffle(queries)
    designer = maker(esk.Dataset(spark, str(tmp_path / "lake")), min_rows=100, rank=rank, opening=0)
    plan = designer.fit(queries)
    assert {f"size = {value}" for value in range(SIZES)} <= set(plan.conditions)
    assert plan.helped == 1
    assert plan.read["these groups"] < 0.5
    few: dict[str, Any] = {"min_rows": 100, "features": BRANDS + SIZES - 1, "opening": 0}
    short = maker(esk.Dataset(spark, str(tmp_path / "lake")), **few).fit(queries)
    assert not any("size =" in condition for condition in short.conditions), "all values or none"
    place = str(tmp_path / "groups")
    done = designer.write(place)
    spark.table("t").createOrReplaceTempView("plain")
    spark.read.format("es_skipping_groups").load(place).createOrReplaceTempView("t")
    log = layout.QueryLog.from_sql(spark.table("t"), LISTS[:10])
    status = layout.status(spark, place, log=log)
    assert isinstance(status, layout.GroupStatus)
    assert status.helped == 1
    assert status.read is not None
    assert status.read < 0.5
    esk.enable(spark)
    (group,) = [number for number, group in enumerate(plan.groups) if {"size", "cost"} <= set(group.columns)]
    blocks = done.blocks[group]
    for query in (*LISTS[:3], *(text.replace("IN", "NOT IN") for text in LISTS[:2]), f"{LISTS[0]} OR size IS NULL"):
        df = spark.sql(query)
        expected = spark.sql(query.replace("FROM t", "FROM plain"))
        assert sorted(map(repr, df.collect())) == sorted(map(repr, expected.collect())), query
        (opened,) = blocks_read(df)
        if query in LISTS:
            assert opened < 0.6 * blocks
        else:
            assert opened >= blocks, "nothing is known of other values, nor of null"
