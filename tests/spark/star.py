"""A star for tests of joins: a fact of 200 files, 12 days each, and its dimensions; and what a query of it did."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import es_skipping as esk
from tests.spark.objects_read import scans
from tests.spark.skipping_on_off import age

__all__ = ["FILES", "Ran", "asking", "configured", "ran", "same", "star", "views"]

FILES: Final = 200
_DAYS_PER_FILE: Final = 12
_ROWS_PER_FILE: Final = 60
_FIRST_DAY: Final = datetime.date(2018, 1, 1)
_FIRST_MOMENT: Final = datetime.datetime(2018, 1, 1, tzinfo=datetime.timezone.utc)
_MINUTE: Final = datetime.timedelta(minutes=1)
_HOLIDAYS: Final = {(12, 25), (7, 4), (1, 1)}


@pytest.fixture(scope="module")
def star(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of the tables."""
    root = tmp_path_factory.mktemp("star")
    _write(root)
    age(root)
    return root


def _write(root: Path) -> None:
    """Write the tables ``fact``, ``dates`` and ``stores`` below a directory."""
    for name in ("fact", "dates", "stores"):
        (root / name).mkdir(parents=True)
    for file in range(FILES):
        keys = [file * _DAYS_PER_FILE + row % _DAYS_PER_FILE for row in range(_ROWS_PER_FILE)]
        columns = {
            "date_key": pa.array(keys, pa.int32()),
            "store_key": pa.array([file % 20 * 50 + row % 50 for row in range(_ROWS_PER_FILE)], pa.int64()),
            "qty": pa.array([row % 49 + 1 for row in range(_ROWS_PER_FILE)], pa.int32()),
            "day": pa.array([_FIRST_DAY + datetime.timedelta(key) for key in keys]),
            "ts": pa.array([_FIRST_MOMENT + (file * _ROWS_PER_FILE + row) * _MINUTE for row in range(_ROWS_PER_FILE)]),
            "price": pa.array([row * 37 % _ROWS_PER_FILE * 1.5 for row in range(_ROWS_PER_FILE)]),
        }
        pq.write_table(pa.table(columns), root / "fact" / f"part-{file:05d}.parquet")
    days = [_FIRST_DAY + datetime.timedelta(key) for key in range(FILES * _DAYS_PER_FILE)]
    dates = {
        "d_key": pa.array(range(len(days)), pa.int32()),
        "d_long": pa.array(range(len(days)), pa.int64()),
        "d_double": pa.array(range(len(days)), pa.float64()),
        "d_date": days,
        "d_year": [day.year for day in days],
        "d_month": [day.month for day in days],
        "d_day": [day.day for day in days],
        "d_holiday": [(day.month, day.day) in _HOLIDAYS for day in days],
    }
    pq.write_table(pa.table(dates), root / "dates" / "d.parquet")
    stores = {"s_key": pa.array(range(1000), pa.int64()), "s_city": [f"city{key // 10}" for key in range(1000)]}
    pq.write_table(pa.table(stores), root / "stores" / "s.parquet")


def configured(base: SparkSession, url: str, adaptive: str = "true") -> SparkSession:
    """A session with a store, in which any failed look-up is an error."""
    session = base.newSession()
    session.conf.set("spark.es_skipping.store.url", url)
    session.conf.set("spark.es_skipping.store.timeout", "30s")
    session.conf.set("spark.es_skipping.query.budget", "60s")
    session.conf.set("spark.es_skipping.strict", "true")
    session.conf.set("spark.sql.adaptive.enabled", adaptive)
    return session


def asking(base: SparkSession, url: str, root: Path, adaptive: str) -> Iterator[SparkSession]:
    """For a fixture: a session that calls the tables by their names."""
    session = configured(base, url, adaptive)
    views(session, root)
    yield session
    esk.disable(session)


@pytest.fixture(scope="module", params=["true", "false"], ids=["adaptive", "fixed"])
def spark(base: SparkSession, store: str, star: Path, request: pytest.FixtureRequest) -> Iterator[SparkSession]:
    """For a module whose fixture ``store`` is the URL of a store."""
    yield from asking(base, store, star, request.param)


def views(spark: SparkSession, root: Path) -> None:
    """Let the session call the tables by their names."""
    for table in root.iterdir():
        spark.read.parquet(str(table)).createOrReplaceTempView(table.name)


@dataclass(frozen=True)
class Ran:
    """What one run of a query did.

    Parameters
    ----------
    rows
        Sorted.
    files
        How many files each scan of the fact opened, fewest first, by Spark's own metric.
    jobs, failed_tasks
        As Spark counts them.
    """

    rows: list[str]
    files: list[int]
    jobs: int
    failed_tasks: int


def ran(spark: SparkSession, sql: str, *, skipping: bool, fact: str = "fact") -> Ran:
    """Run a query."""
    (esk.enable if skipping else esk.disable)(spark)
    context: Any = spark.sparkContext._jsc.sc()  # type: ignore[attr-defined]
    first = int(context.dagScheduler().numTotalJobs())
    df = spark.sql(sql)
    rows = sorted(map(str, df.collect()))
    context.listenerBus().waitUntilEmpty()
    jobs = int(context.dagScheduler().numTotalJobs()) - first
    status = context.statusStore()
    failed = sum(int(status.job(first + at).numFailedTasks()) for at in range(jobs))
    files = sorted(
        int(scan.metrics().apply("numFiles").value())
        for scan in scans(df)
        if str(scan.relation().location().rootPaths().head().toString()).endswith(f"/{fact}")
    )
    return Ran(rows, files, jobs, failed)


def same(spark: SparkSession, sql: str, fact: str = "fact") -> Ran:
    """What a query did with skipping on; its rows, jobs and failed tasks are those with skipping off."""
    off, on = ran(spark, sql, skipping=False, fact=fact), ran(spark, sql, skipping=True, fact=fact)
    assert on.rows == off.rows
    assert (on.jobs, on.failed_tasks) == (off.jobs, 0)
    return on
