"""ORDER BY ... LIMIT and LIMIT open the files that hold enough rows; rows, jobs and failed tasks stay as without."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.functions import udf

import es_skipping as esk
from tests.spark.objects_read import num_files
from tests.spark.skipping_on_off import age
from tests.spark.star import FILES, configured, ran, same, spark, star, views

__all__ = ["spark", "star"]

pytestmark = pytest.mark.in_turn("spark", "adaptive")


def indexed(base: SparkSession, star: Path, url: str) -> str:
    """The URL of a store that holds the fact's indexes."""
    dataset = esk.Dataset(configured(base, url), str(star / "fact"))
    dataset.ensure_indexes(*(esk.MinMax(column) for column in ("ts", "date_key", "store_key", "price")))
    return url


@pytest.fixture(scope="module")
def store(base: SparkSession, star: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    return indexed(base, star, tmp_path_factory.mktemp("store").as_uri())


ORDERED = {
    "the latest": ("SELECT * FROM fact ORDER BY ts DESC LIMIT 10", 1),
    "the first": ("SELECT ts, qty FROM fact ORDER BY ts LIMIT 10", 1),
    "more than a file": ("SELECT ts FROM fact ORDER BY ts DESC LIMIT 150", 3),
    "a file exactly": ("SELECT ts FROM fact ORDER BY ts DESC LIMIT 60", 1),
    "one row more than a file": ("SELECT ts FROM fact ORDER BY ts DESC LIMIT 61", 2),
    "an offset": ("SELECT ts FROM fact ORDER BY ts DESC LIMIT 10 OFFSET 55", 2),
    "a filter": ("SELECT * FROM fact WHERE date_key < 1200 ORDER BY ts DESC LIMIT 10", 1),
    "two conditions": (
        "SELECT * FROM fact WHERE store_key >= 0 AND date_key BETWEEN 100 AND 700 ORDER BY ts DESC LIMIT 10",
        2,
    ),
    "a disjunction": ("SELECT * FROM fact WHERE date_key < 24 OR store_key < 50 ORDER BY ts LIMIT 70", 2),
    "ties": ("SELECT date_key, ts FROM fact ORDER BY date_key, ts DESC LIMIT 5", 1),
    "a renamed key": ("SELECT t FROM (SELECT ts AS t, qty AS q FROM fact) ORDER BY t DESC LIMIT 10", 1),
    "further keys": ("SELECT ts FROM fact ORDER BY ts DESC, qty, price DESC LIMIT 10", 1),
    "a random key": ("SELECT ts FROM fact ORDER BY ts DESC, rand() LIMIT 10", FILES),
    "below an aggregate": ("SELECT sum(qty) FROM (SELECT * FROM fact ORDER BY ts DESC LIMIT 10)", 1),
    "below a join": (
        "SELECT count(*) FROM (SELECT * FROM fact ORDER BY ts LIMIT 10) JOIN dates ON date_key = d_key WHERE d_day = 3",
        1,
    ),
    "no index on the filter": ("SELECT * FROM fact WHERE qty > 48 ORDER BY ts DESC LIMIT 10", FILES),
    "no index on the key": ("SELECT qty FROM fact ORDER BY qty DESC LIMIT 10", FILES),
    "a key in no order": ("SELECT price FROM fact ORDER BY price DESC LIMIT 10", FILES),
    "more rows than there are": ("SELECT ts FROM fact ORDER BY ts LIMIT 20000", FILES),
}


@pytest.mark.every(3)
@pytest.mark.parametrize("name", ORDERED)
def test_ordered(spark: SparkSession, name: str) -> None:
    sql, files = ORDERED[name]
    assert same(spark, sql).files == [files]


@pytest.mark.parametrize("adaptive", ["true", "false"])
def test_ordered_with_elasticsearch(
    base: SparkSession, star: Path, elasticsearch_url: str, every: Callable[[str], set[str]], adaptive: str
) -> None:
    spark = configured(base, indexed(base, star, elasticsearch_url), adaptive)
    views(spark, star)
    for name in ("the latest", "the first", "more than a file", "a filter", "two conditions", "a key in no order"):
        sql, files = ORDERED[name]
        assert same(spark, sql).files == [files], name
    for name in ("any rows", "any rows of a filter"):
        sql, rows, files = ANY[name]
        assert limited(spark, sql, every) == (rows, [files]), name


ANY = {
    "any rows": ("SELECT * FROM fact LIMIT 10", 10, 1),
    "any rows of a filter": ("SELECT * FROM fact WHERE date_key >= 1200 LIMIT 100", 100, 2),
    "more than a file": ("SELECT * FROM fact LIMIT 150", 150, 3),
    "an offset": ("SELECT * FROM fact LIMIT 10 OFFSET 55", 10, 2),
    "within a query": ("SELECT qty, count(*) OVER () FROM (SELECT * FROM fact LIMIT 61)", 61, 2),
    "no index on the filter": ("SELECT * FROM fact WHERE qty > 48 LIMIT 100", 100, FILES),
    "more rows than there are": ("SELECT * FROM fact WHERE date_key < 24 LIMIT 500", 120, 2),
}


@pytest.fixture(scope="module")
def every(base: SparkSession, star: Path) -> Callable[[str], set[str]]:
    """All rows of a query without its limit, which no session changes."""
    session = base.newSession()
    views(session, star)
    return functools.cache(lambda sql: set(map(str, session.sql(sql).collect())))


def limited(spark: SparkSession, sql: str, every: Callable[[str], set[str]]) -> tuple[int, list[int]]:
    """How many rows a query returned and how many files it opened with skipping on, all of them among its rows."""
    done = ran(spark, sql, skipping=True)
    if "OVER" not in sql:
        assert every(sql.partition(" LIMIT")[0].removesuffix(")")).issuperset(done.rows)
    assert done.failed_tasks == 0
    return len(done.rows), done.files


@pytest.mark.parametrize("name", ANY)
def test_any_rows(spark: SparkSession, every: Callable[[str], set[str]], name: str) -> None:
    sql, rows, files = ANY[name]
    assert limited(spark, sql, every) == (rows, [files])


REFUSED = {
    "a union": (
        "SELECT * FROM (SELECT ts FROM fact WHERE qty < 9 UNION ALL SELECT ts FROM dates JOIN fact ON d_key = -1) "
        "ORDER BY ts LIMIT 10"
    ),
    "an aggregate": "SELECT date_key, sum(qty) FROM fact GROUP BY 1 ORDER BY date_key LIMIT 10",
    "distinct rows": "SELECT DISTINCT date_key FROM fact ORDER BY date_key LIMIT 30",
    "a window": "SELECT ts, lead(qty) OVER (ORDER BY ts DESC) AS l FROM fact ORDER BY ts LIMIT 10",
    "a sample": "SELECT ts FROM fact TABLESAMPLE (50 PERCENT) REPEATABLE (7) ORDER BY ts LIMIT 10",
    "a semi join": "SELECT ts FROM fact WHERE qty IN (SELECT d_day FROM dates WHERE d_day > 30) ORDER BY ts LIMIT 10",
    "generated rows": "SELECT ts, explode(filter(array(qty), q -> q = 3)) FROM fact ORDER BY 1 LIMIT 9",
    "an expression": "SELECT ts FROM fact ORDER BY -date_key LIMIT 10",
    "a computed column": "SELECT k FROM (SELECT date_key % 7 AS k FROM fact) ORDER BY k LIMIT 10",
    "a random filter": "SELECT ts FROM fact WHERE rand(3) < 0.01 ORDER BY ts LIMIT 10",
    "a condition that cannot be sent": "SELECT ts FROM fact WHERE shifted(qty) = 2 ORDER BY ts LIMIT 10",
    "a subquery": "SELECT ts FROM fact WHERE qty > (SELECT max(d_day) FROM dates) + 10 ORDER BY ts LIMIT 10",
}


@pytest.mark.parametrize("name", REFUSED)
def test_rows_of_files_may_not_reach_the_limit(spark: SparkSession, name: str) -> None:
    spark.udf.register("shifted", udf(lambda x: x + 1, "int"))
    files = same(spark, REFUSED[name]).files
    assert FILES in files


def test_a_join_opens_the_files_of_its_keys_alone(spark: SparkSession) -> None:
    sql = "SELECT ts, s_city FROM fact JOIN stores ON store_key = s_key AND s_city < 'city5' ORDER BY ts LIMIT 10"
    assert same(spark, sql).files == [90]


def test_a_second_scan_opens_every_file(spark: SparkSession) -> None:
    sql = """SELECT count(*), max(l.ts) FROM (SELECT ts FROM fact ORDER BY ts DESC LIMIT 10) l
             JOIN (SELECT ts FROM fact WHERE qty < 40) r ON l.ts >= r.ts"""
    assert same(spark, sql).files == [1, FILES]


def test_equal_scans_under_two_limits(spark: SparkSession) -> None:
    part = "SELECT /*+ REPARTITION(2) */ * FROM (SELECT ts, qty FROM fact ORDER BY ts DESC LIMIT {k})"
    sql = f"{part.format(k=10)} UNION ALL {part.format(k=100)}"
    assert same(spark, sql).files == [1, 2]


def test_a_limit_over_a_cached_frame(spark: SparkSession) -> None:
    esk.enable(spark)
    df = spark.sql("SELECT ts, qty FROM fact WHERE date_key >= 0").cache()
    try:
        assert len(df.orderBy("ts").limit(10).collect()) == 10
        assert df.count() == FILES * 60
    finally:
        df.unpersist()


def test_a_frame_that_runs_twice(spark: SparkSession) -> None:
    esk.enable(spark)
    df = spark.sql("SELECT ts FROM fact ORDER BY ts DESC LIMIT 10")
    first = df.collect()
    assert num_files(df) == [1]
    assert df.collect() == first
    assert len(df.union(spark.sql("SELECT ts FROM fact")).collect()) == FILES * 60 + 10


@pytest.mark.parametrize("setting", ["ignoreCorruptFiles", "ignoreMissingFiles"])
def test_files_that_may_lose_rows_guarantee_nothing(spark: SparkSession, star: Path, setting: str) -> None:
    sql = "SELECT ts FROM fact ORDER BY ts DESC LIMIT 10"
    spark.conf.set(f"spark.sql.files.{setting}", "true")
    try:
        assert same(spark, sql).files == [FILES]
    finally:
        spark.conf.unset(f"spark.sql.files.{setting}")
    spark.read.option(setting.upper(), "true").parquet(str(star / "fact")).createOrReplaceTempView("tolerant")
    assert same(spark, sql.replace("fact", "tolerant")).files == [FILES]


def test_a_dsv2_scan_opens_every_file(spark: SparkSession, star: Path) -> None:
    spark.conf.set("spark.sql.sources.useV1SourceList", "")
    try:
        df: Any = spark.read.parquet(str(star / "fact")).orderBy("ts").limit(10)
        esk.enable(spark)
        assert len(df.collect()) == 10
        assert esk.last_query(spark).scans[0].objects_skipped == 0
    finally:
        spark.conf.unset("spark.sql.sources.useV1SourceList")


def test_reports_name_the_limit(spark: SparkSession) -> None:
    esk.enable(spark)
    named = {
        "SELECT * FROM fact ORDER BY ts DESC LIMIT 10": ("ORDER BY ts DESC NULLS LAST LIMIT 10", FILES - 1),
        "SELECT * FROM fact WHERE date_key >= 1200 LIMIT 10 OFFSET 55": ("LIMIT 65", FILES - 2),
    }
    for sql, (limit, skipped) in named.items():
        df = spark.sql(sql)
        (explained,) = esk.explain(df).scans
        assert (explained.induced_by, explained.objects_skipped, explained.reason) == ((limit,), skipped, None)
        df.collect()
        (scan,) = esk.last_query(spark).scans
        assert (scan.induced_by, scan.objects_skipped) == ((limit,), skipped)
    df = spark.sql(ORDERED["no index on the filter"][0])
    df.collect()
    assert [scan.induced_by for scan in esk.last_query(spark).scans] == [()], "no object guarantees a row"


def test_a_field_of_a_struct_as_sort_key(base: SparkSession, tmp_path: Path) -> None:
    """Null structs have null fields, which come first or last as others do."""
    path = tmp_path / "fact"
    base.range(0, 100, 1, 10).selectExpr(
        "CASE WHEN id % 10 < 3 AND id < 30 THEN NULL "
        "ELSE named_struct('a', id, 'b', named_struct('c', CASE WHEN id = 77 THEN NULL ELSE 1000 - id END)) END AS n",
        "id AS k",
    ).write.parquet(str(path))
    age(path)
    spark = configured(base, (tmp_path / "store").as_uri())
    esk.Dataset(spark, str(path)).create_indexes(esk.MinMax("n.a"), esk.MinMax("n.b.c"), esk.MinMax("k"))
    spark.read.parquet(str(path)).createOrReplaceTempView("fact")
    opened = {
        "SELECT k FROM fact ORDER BY n.a DESC LIMIT 5": 1,
        "SELECT n.b.c AS c FROM fact ORDER BY c NULLS LAST LIMIT 5": 1,
        "SELECT n.b.c AS c FROM fact ORDER BY c LIMIT 5": 5,  # four files with nulls, and one with the least
        "SELECT k FROM fact ORDER BY n.b.c NULLS FIRST, k LIMIT 10": 5,
        "SELECT k FROM fact ORDER BY n.b.c DESC NULLS LAST LIMIT 8": 2,
        "SELECT m.c FROM (SELECT n.b AS m, k FROM fact WHERE k < 50) ORDER BY m.c LIMIT 1 OFFSET 10": 5,
        "SELECT k FROM fact ORDER BY n LIMIT 5": 10,
        "SELECT k FROM fact ORDER BY named_struct('c', k).c DESC LIMIT 5": 1,
        "SELECT k FROM fact ORDER BY n.a + 1 LIMIT 5": 10,
    }
    found = {sql: same(spark, sql).files for sql in opened}
    assert found == {sql: [files] for sql, files in opened.items()}
