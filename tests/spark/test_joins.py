"""A join skips files of its probe side by the keys that were broadcast; rows, jobs and failed tasks stay as without."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import es_skipping as esk
from tests.spark.star import FILES, configured, same, spark, star, views

__all__ = ["spark", "star"]

pytestmark = pytest.mark.in_turn("spark", "adaptive")

MAY_2020 = "d_year = 2020 AND d_month = 5"


def indexed(base: SparkSession, star: Path, url: str) -> str:
    """The URL of a store that holds the fact's indexes."""
    dataset = esk.Dataset(configured(base, url), str(star / "fact"))
    dataset.ensure_indexes(esk.MinMax("date_key"), esk.ValueList("store_key"), esk.MinMax("day"))
    return url


@pytest.fixture(scope="module")
def store(base: SparkSession, star: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    return indexed(base, star, tmp_path_factory.mktemp("store").as_uri())


SKIPPING = {
    "twenty keys": (
        f"SELECT d_day, sum(qty) FROM fact JOIN dates ON date_key = d_key WHERE {MAY_2020} AND d_day <= 20 GROUP BY 1",
        [3],
    ),
    "scattered keys": (
        "SELECT d_date, sum(qty) FROM fact JOIN dates ON date_key = d_key WHERE d_holiday GROUP BY 1",
        [17],
    ),
    "two dimensions": (
        """SELECT d_day, s_city, sum(qty) FROM fact JOIN dates ON date_key = d_key JOIN stores ON store_key = s_key
           WHERE d_year = 2020 AND d_month <= 6 AND s_city = 'city7' GROUP BY 1, 2""",
        [1],
    ),
    "IN": (f"SELECT sum(qty) FROM fact WHERE date_key IN (SELECT d_key FROM dates WHERE {MAY_2020})", [4]),
    "EXISTS": (
        """SELECT sum(qty) FROM fact
           WHERE EXISTS (SELECT 1 FROM dates WHERE d_key = date_key AND d_holiday AND d_year = 2021)""",
        [3],
    ),
    "int against bigint": (f"SELECT sum(qty) FROM fact JOIN dates ON date_key = d_long WHERE {MAY_2020}", [4]),
    "a date": (f"SELECT sum(qty) FROM fact JOIN dates ON day = d_date WHERE {MAY_2020}", [4]),
    "a renamed key": (
        f"""SELECT sum(q) FROM (SELECT k AS l, q FROM (SELECT date_key AS k, qty AS q FROM fact WHERE qty > 1))
            JOIN dates ON l = d_key WHERE {MAY_2020}""",
        [4],
    ),
    "the key of an outer join's preserved side": (
        f"""SELECT sum(qty), count(s_city) FROM fact
            LEFT JOIN (SELECT * FROM stores WHERE s_city = 'city7') ON store_key = s_key
            JOIN dates ON date_key = d_key WHERE {MAY_2020}""",
        [4],
    ),
    "below an anti join": (
        f"""SELECT sum(qty) FROM fact JOIN dates ON date_key = d_key WHERE {MAY_2020}
            AND NOT EXISTS (SELECT 1 FROM stores WHERE s_key = store_key AND s_city = 'city7')""",
        [4],
    ),
}


@pytest.mark.every(3)
@pytest.mark.parametrize("name", SKIPPING)
def test_a_join_opens_the_files_of_its_keys(spark: SparkSession, name: str) -> None:
    sql, files = SKIPPING[name]
    assert same(spark, sql).files == files


@pytest.mark.parametrize("adaptive", ["true", "false"])
def test_a_join_skips_with_elasticsearch(base: SparkSession, star: Path, elasticsearch_url: str, adaptive: str) -> None:
    spark = configured(base, indexed(base, star, elasticsearch_url), adaptive)
    views(spark, star)
    for name in ("twenty keys", "scattered keys", "two dimensions", "IN", "EXISTS"):
        sql, files = SKIPPING[name]
        assert same(spark, sql).files == files, name


WHOLE = {
    "NOT IN": f"SELECT sum(qty) FROM fact WHERE date_key NOT IN (SELECT d_key FROM dates WHERE {MAY_2020})",
    "NOT EXISTS": f"SELECT sum(qty) FROM fact ANTI JOIN (SELECT * FROM dates WHERE {MAY_2020}) ON date_key = d_key",
    "a left outer join from the fact": (
        f"SELECT sum(qty), count(d_day) FROM fact LEFT JOIN (SELECT * FROM dates WHERE {MAY_2020}) ON date_key = d_key"
    ),
    "a right outer join to the fact": (
        f"SELECT sum(qty), count(d_day) FROM (SELECT * FROM dates WHERE {MAY_2020}) RIGHT JOIN fact ON date_key = d_key"
    ),
    "EXISTS in an OR": (
        f"""SELECT sum(qty) FROM fact
            WHERE qty = 7 OR EXISTS (SELECT 1 FROM dates WHERE d_key = date_key AND {MAY_2020})"""
    ),
    "a limit below": (
        f"SELECT sum(qty) FROM (SELECT * FROM fact LIMIT 20000) JOIN dates ON date_key = d_key WHERE {MAY_2020}"
    ),
    "an aggregate below": (
        f"""SELECT sum(q) FROM (SELECT date_key AS k, max(store_key) AS q FROM fact GROUP BY 1)
            JOIN dates ON k = d_key WHERE {MAY_2020}"""
    ),
    "a window below": (
        f"""SELECT sum(r) FROM (SELECT date_key, rank() OVER (ORDER BY date_key) AS r FROM fact)
            JOIN dates ON date_key = d_key WHERE {MAY_2020}"""
    ),
    "an exchange below": (
        f"""SELECT sum(qty) FROM (SELECT /*+ REPARTITION(2) */ * FROM fact)
            JOIN dates ON date_key = d_key WHERE {MAY_2020}"""
    ),
    "a random number below": (
        f"""SELECT sum(qty) FROM (SELECT *, rand(1) AS r FROM fact)
            JOIN dates ON date_key = d_key AND r >= 0 WHERE {MAY_2020}"""
    ),
    "a shuffled join": (
        f"SELECT /*+ MERGE(dates) */ sum(qty) FROM fact JOIN dates ON date_key = d_key WHERE {MAY_2020}"
    ),
    "a double": f"SELECT sum(qty) FROM fact JOIN dates ON double(date_key) = d_double WHERE {MAY_2020}",
    "a condition without an equality": (f"SELECT sum(qty) FROM fact JOIN dates ON date_key < d_key WHERE {MAY_2020}"),
}


@pytest.mark.every(3)
@pytest.mark.parametrize("name", WHOLE)
def test_a_join_that_proves_nothing_opens_every_file(spark: SparkSession, name: str) -> None:
    assert same(spark, WHOLE[name]).files == [FILES]


def test_a_union_opens_every_file(spark: SparkSession) -> None:
    sql = f"""SELECT sum(qty) FROM (SELECT * FROM fact WHERE qty < 9 UNION ALL SELECT * FROM fact WHERE qty >= 9)
              JOIN dates ON date_key = d_key WHERE {MAY_2020}"""
    assert same(spark, sql).files == [FILES, FILES]


def test_a_join_with_nothing_opens_no_file(spark: SparkSession) -> None:
    """Adaptive execution leaves out the scan too."""
    sql = "SELECT qty FROM fact JOIN dates ON date_key = d_key WHERE d_month = 5 AND d_month + 1 = 7"
    assert sum(same(spark, sql).files) == 0


SCALARS = {
    "date_key >= (SELECT max(d_key) - 30 FROM dates WHERE d_year = 2023)": 20,
    "date_key = (SELECT min(d_key) FROM dates WHERE d_holiday) AND qty > 0": 1,
    "day > (SELECT max(d_date) FROM dates)": 0,
    "date_key > (SELECT max(d_key) FROM dates WHERE d_year = 1)": 0,
    "date_key < (SELECT max(d_key) FROM dates WHERE d_year = 2018) - 360 OR store_key = 999999": 1,
}


@pytest.mark.parametrize("condition", SCALARS)
def test_the_result_of_a_scalar_subquery(spark: SparkSession, condition: str) -> None:
    assert sum(same(spark, f"SELECT date_key, qty FROM fact WHERE {condition}").files) == SCALARS[condition]


def test_one_subquery_for_two_scans(spark: SparkSession) -> None:
    """Spark runs it once. The plan that the rule saw is not the one that gets the result."""
    condition = "date_key >= (SELECT max(d_key) - 30 FROM dates WHERE d_year = 2023)"
    parts = [f"SELECT date_key, {column} FROM fact WHERE {condition}" for column in ("qty", "int(store_key)")]
    assert same(spark, " UNION ALL ".join(parts)).files == [20, 20]


def test_reports_name_the_joins(spark: SparkSession) -> None:
    esk.enable(spark)
    df = spark.sql(SKIPPING["two dimensions"][0])
    joins = ("INNER JOIN ON store_key = s_key", "INNER JOIN ON date_key = d_key")
    fact = next(scan for scan in esk.explain(df).scans if scan.objects_total == FILES)
    assert sorted(fact.induced_by) == sorted(joins), "their keys are not known yet"
    assert f"induced by {joins[0]}" in str(esk.explain(df))
    df.collect()
    (fact,) = [scan for scan in esk.last_query(spark).scans if scan.objects_total == FILES]
    assert sorted(fact.induced_by) == sorted([f"{joins[0]}: 10 keys", f"{joins[1]}: 182 keys"])
    assert f"induced by {fact.induced_by[0]}; " in repr(fact)
    spark.sql("SELECT sum(qty) FROM fact WHERE day >= (SELECT max(d_date) FROM dates WHERE d_year = 2020)").collect()
    (fact,) = [scan for scan in esk.last_query(spark).scans if scan.objects_total == FILES]
    assert fact.induced_by == ("scalar subquery, compared with day",)
    assert fact.objects_skipped
    spark.sql(WHOLE["NOT IN"]).collect()
    (fact,) = [scan for scan in esk.last_query(spark).scans if scan.objects_total == FILES]
    assert fact.induced_by == ()
