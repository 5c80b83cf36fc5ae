"""Expressions that are said to have a value for every row have one, for the least and greatest values of every type."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from es_skipping.build.conditions import has_a_value
from es_skipping.build.filter_texts import predicates_of_filters
from es_skipping.predicates.tree import Call, Comparison
from es_skipping.spark.classic import functions as F
from tests.spark.building import spark

__all__ = ["spark"]

ROWS = """
    SELECT date_from_unix_date(least) AS d, timestamp_micros(least_long) AS ts, least AS n, text, array(least) AS a
    FROM VALUES (CAST(-2147483648 AS INT), -9223372036854775807L - 1, 'a,b'), (2147483647, 9223372036854775807L, NULL),
                (0, 0L, CAST(X'E2' AS STRING)), (NULL, NULL, CAST(X'61F0' AS STRING))
    AS extremes(least, least_long, text)
"""
DATES = ("year(d)", "quarter(d)", "month(d)", "weekofyear(d)", "dayofyear(d)", "day(d)", "dayofweek(d)", "unix_date(d)")
TOTAL = (
    *DATES, "last_day(d)", "hour(ts)", "minute(ts)", "second(ts)", "unix_seconds(ts)", "unix_millis(ts)",
    "unix_micros(ts)", "lower(text)", "upper(text)", "initcap(text)", "length(text)", "octet_length(text)",
    "bit_length(text)", "substring(text, n, n)", "trim(text)", "ltrim('a', text)", "rtrim(text, 'a')",
    "replace(text, 'a', text)", "translate(text, text, 'x')", "instr(text, text)", "locate(text, 'abc', n)",
    "concat(text, text)", "coalesce(text, lower(text))", "greatest(text, lower(text))", "least(n, 3)", "n % 3",
    "CAST(n AS BIGINT)", "CAST(d AS STRING)", "CAST(ts AS STRING)",
)  # fmt: skip
FAIL = (
    "CAST(d AS TIMESTAMP)", "hour(CAST(d AS TIMESTAMP))", "CAST(d AS TIMESTAMP_NTZ)", "trunc(d, 'QUARTER')",
    "date_trunc('DAY', ts)", "a[n]", "n + 1", "CAST(text AS INT)", "3 % n",
)  # fmt: skip
MAY_FAIL = ("get_json_object(text, text)", "substring_index(text, ',', n)", "reverse(text)")


@pytest.mark.parametrize("zone", ["UTC", "America/Los_Angeles"])
def test_what_never_fails(spark: SparkSession, tmp_path: Path, zone: str) -> None:
    spark.conf.set("spark.sql.ansi.enabled", "true")
    spark.conf.set("spark.sql.session.timeZone", zone)
    spark.sql(ROWS).write.parquet(str(tmp_path / "extremes"))
    df = spark.read.parquet(str(tmp_path / "extremes"))
    texts = (*TOTAL, *FAIL, *MAY_FAIL)
    assert {text for text in texts if never_fails(df, text)} == set(TOTAL)
    df.agg(*(F.max(F.xxhash64(F.expr(text))) for text in TOTAL)).collect()
    for text in FAIL:
        with pytest.raises(Exception, match=r"(?i)overflow|cast_invalid|invalid_array_index|by_zero"):
            df.agg(F.max(F.xxhash64(F.expr(text)))).collect()
    spark.conf.set("spark.sql.ansi.enabled", "false")
    df = spark.read.parquet(str(tmp_path / "extremes"))
    assert not never_fails(df, "CAST(d AS TIMESTAMP)")
    with pytest.raises(Exception, match="overflow"):
        df.agg(F.max(F.xxhash64(F.expr("CAST(d AS TIMESTAMP)")))).collect()


def never_fails(df: DataFrame, text: str) -> bool:
    (predicate,) = predicates_of_filters(df, [f"xxhash64({text}) = 7"])
    assert isinstance(predicate, Comparison), text
    assert isinstance(predicate.left, Call), text
    return has_a_value(predicate.left.arguments[0])
