"""Functions of time skip by indexes of the time itself, in any zone; rows are those without skipping."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import es_skipping as esk
from tests.spark.objects_read import num_files_by_branch
from tests.spark.skipping_on_off import age, readings

MONTHS = 36
LOCAL = "CAST(ts AS DATE) AS d", "CAST(ts AS TIMESTAMP_NTZ) AS n"
EXTREMES = 2
"""Objects of times 146,000 years away, before and after."""


@pytest.fixture(scope="module")
def sessions(
    base: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[SparkSession, SparkSession]]:
    """One that skips and one that does not; a month's every eleventh hour in each object of view ``t``."""
    hours = "explode(sequence(m, m + INTERVAL 1 MONTH - INTERVAL 11 HOURS, INTERVAL 11 HOURS))"
    months = "sequence(TIMESTAMP'2022-01-01 00:00:00Z', TIMESTAMP'2024-12-01 00:00:00Z', INTERVAL 1 MONTH)"
    rows = base.sql(f"SELECT m, {hours} AS ts FROM (SELECT explode({months}) AS m)")
    folder = tmp_path_factory.mktemp("times")
    path = str(folder / "t")
    for month in rows.select("m").distinct().sort("m").collect():
        of_month = rows.where(rows.m == month.m).selectExpr(
            "ts", "CAST(ts AS DATE) AS d", "CAST(ts AS TIMESTAMP_NTZ) AS n"
        )
        of_month.coalesce(1).write.mode("append").parquet(path)
    for end in (-(2**62), 2**62):
        at = f"timestamp_micros({end}L) AS ts"
        extreme = base.sql(f"SELECT {at}, CAST(NULL AS DATE) AS d, CAST(NULL AS TIMESTAMP_NTZ) AS n")
        extreme.write.mode("append").parquet(path)
    on, off = base.newSession(), base.newSession()
    on.conf.set("spark.es_skipping.store.url", (folder / "store").as_uri())
    for session in (on, off):
        session.read.parquet(path).createOrReplaceTempView("t")
    esk.enable(on)
    esk.Dataset(on, path).create_indexes(esk.MinMax("ts"), esk.MinMax("d"), esk.MinMax("n"))
    yield on, off
    esk.disable(on)


# The condition, and how many of the months' objects may be read in UTC and in another zone.
CONDITIONS = [
    ("year(ts) = 2023", 12, 14),
    ("year(d) = 2023", 12, 12),
    ("year(n) = 2023", 12, 12),
    ("extract(YEAR FROM ts) IN (2022, 2024)", 24, 26),
    ("year(ts) > 2023", 12, 13),
    ("NOT (year(d) <> 2022)", 12, 12),
    ("to_date(ts) = DATE'2023-05-17'", 1, 1),
    ("CAST(ts AS DATE) BETWEEN DATE'2023-05-17' AND DATE'2023-06-17'", 2, 2),
    ("CAST(n AS TIMESTAMP) < TIMESTAMP'2022-02-15 00:00:00Z'", 2, 2),
    ("CAST(d AS TIMESTAMP) >= TIMESTAMP'2024-11-15 00:00:00Z'", 2, 2),
    ("date_trunc('MONTH', ts) = date_trunc('MONTH', TIMESTAMP'2023-05-17 00:00:00')", 2, 3),
    ("date_trunc('day', n) = TIMESTAMP'2023-05-17 00:00:00'", 1, 1),
    ("trunc(d, 'MM') = DATE'2023-05-01'", 1, 1),
    ("trunc(d, 'quarter') IN (DATE'2023-01-01', DATE'2023-04-01')", 7, 7),
    ("last_day(d) = DATE'2023-02-28'", 2, 2),
    ("unix_timestamp(ts) BETWEEN 1684281600 AND 1684368000", 1, 1),
    ("unix_seconds(ts) >= unix_seconds(TIMESTAMP'2024-12-02 00:00:00Z')", 1, 1),
    ("unix_date(d) = unix_date(DATE'2023-05-17')", 1, 1),
    ("hour(ts) = 3", MONTHS, MONTHS),
]


@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Pacific/Apia"])
def test_objects_read(sessions: tuple[SparkSession, SparkSession], zone: str) -> None:
    on, off = sessions
    for session in sessions:
        session.conf.set("spark.sql.session.timeZone", zone)
        session.conf.set("spark.sql.ansi.enabled", "false")
    each = (
        f"SELECT {at} AS condition, unix_micros(ts) AS u FROM t WHERE {condition}"
        for at, (condition, *_) in enumerate(CONDITIONS)
    )
    together = " UNION ALL ".join(each)
    found = on.sql(together)
    rows = sorted(found.collect())
    assert rows == sorted(off.sql(together).collect())
    assert {row.condition for row in rows} == set(range(len(CONDITIONS)))
    opened = num_files_by_branch(found)
    assert len(opened) == len(CONDITIONS)
    for files, (condition, in_utc, elsewhere) in zip(opened, CONDITIONS, strict=True):
        assert files <= (in_utc if zone == "UTC" else elsewhere) + EXTREMES, condition


def test_the_ends_of_dates(spark: SparkSession, tmp_path: Path) -> None:
    """Spark computes the first and the last day of a month in 32 bits, beyond which they wrap around."""
    path = tmp_path / "d"
    path.mkdir()
    for number, days in enumerate(([2**31 - 1, 2**31 - 8], [-(2**31), 8 - 2**31], [0], [19_000])):
        pq.write_table(pa.table({"d": pa.array(days, pa.int32()).cast(pa.date32())}), path / f"{number}.parquet")
    age(path)
    esk.Dataset(spark, str(path)).create_indexes(esk.MinMax("d"))
    most = {
        "last_day(d) < DATE'1960-01-01'": 2,
        "last_day(d) > DATE'2020-01-01'": 3,
        "last_day(d) = DATE'1970-01-31'": 3,
        "trunc(d, 'YEAR') > DATE'2030-01-01'": 2,
        "trunc(d, 'MM') > DATE'2030-01-01'": 2,
        "trunc(d, 'WEEK') < DATE'1960-01-01'": 2,
        "try_cast(d AS TIMESTAMP) IS NULL": 4,
        "try_cast(d AS TIMESTAMP_NTZ) <=> NULL": 4,
        "coalesce(try_cast(d AS TIMESTAMP_NTZ) < TIMESTAMP_NTZ'1960-01-01', true)": 4,
        "try_cast(d AS TIMESTAMP) IS NOT NULL": 4,
        "try_cast(d AS TIMESTAMP) > TIMESTAMP'2020-01-01'": 2,
        "year(d) < 0": 1,
        "unix_date(d) > 20000": 1,
    }
    opened = readings(spark, lambda session: session.read.parquet(str(path)), most, "unix_date(d) AS u")
    assert [condition for condition, files in opened.items() if files > most[condition]] == []
