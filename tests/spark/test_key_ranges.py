"""Shuffled joins skip objects by the metadata of the other side alone, without a job and without losing a row."""

from __future__ import annotations

import datetime
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import es_skipping as esk
from es_skipping.lookup.service import LookupService
from es_skipping.spark.services import service_of
from tests.spark.objects_read import scans
from tests.spark.skipping_on_off import age
from tests.spark.star import asking, configured, same

FILES = 10
KEYS_PER_FILE = 20
FIRST_DAY = datetime.date(2020, 1, 1)


def fact(file: int) -> pa.Table:
    """The keys of a file, with a null and an orphan."""
    first = file * KEYS_PER_FILE
    keys = [*range(first, first + KEYS_PER_FILE), None]
    columns = {
        "key": pa.array(keys, pa.int64()),
        "text": [None if key is None else f"k{key:04}" for key in keys],
        "qty": pa.array(range(len(keys)), pa.int32()),
    }
    return pa.table(columns)


def orders(file: int) -> pa.Table:
    """Orders of one day; a customer for each ten; a null key."""
    first = file * KEYS_PER_FILE
    keys = [*range(first, first + KEYS_PER_FILE), None]
    columns = {
        "o_key": pa.array(keys, pa.int64()),
        "o_int": pa.array(keys, pa.int32()),
        "o_text": [None if key is None else f"k{key:04}" for key in keys],
        "o_day": [FIRST_DAY + datetime.timedelta(file)] * len(keys),
        "o_cust": pa.array([(key or first) // 10 for key in keys], pa.int32()),
    }
    return pa.table(columns)


def made(root: Path) -> Path:
    for name in ("fact", "orders", "customers", "parted/region=r0", "parted/region=r1"):
        (root / name).mkdir(parents=True)
    for file in range(FILES):
        pq.write_table(orders(file), root / "parted" / f"region=r{file // 5}" / f"part-{file:02}.parquet")
        pq.write_table(fact(file), root / "fact" / f"part-{file:02}.parquet")
        pq.write_table(orders(file), root / "orders" / f"part-{file:02}.parquet")
    for file in range(4):
        customers = range(file * 5, file * 5 + 5)
        columns = {"c_key": pa.array(customers, pa.int32()), "c_segment": [f"segment{file}"] * 5}
        pq.write_table(pa.table(columns), root / "customers" / f"part-{file:02}.parquet")
    age(root, days=2)
    return root


def index(spark: SparkSession, root: Path) -> dict[str, esk.Dataset]:
    wanted = {
        "fact": [esk.MinMax("key"), esk.MinMax("text")],
        "orders": [*map(esk.MinMax, ("o_key", "o_text", "o_day", "o_cust", "o_int"))],
        "customers": [esk.MinMax("c_key"), esk.ValueList("c_segment")],
        "parted": [esk.MinMax("o_key"), esk.MinMax("o_day")],
    }
    datasets = {name: esk.Dataset(spark, str(root / name)) for name in wanted}
    for name, indexes in wanted.items():
        datasets[name].create_indexes(*indexes)
    return datasets


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made(tmp_path_factory.mktemp("key-ranges"))


@pytest.fixture(scope="module", params=["parquet", "elasticsearch"])
def store(
    base: SparkSession, tables: Path, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> str:
    local = request.param == "parquet"
    url: str = tmp_path_factory.mktemp("store").as_uri() if local else request.getfixturevalue("elasticsearch_url")
    index(configured(base, url), tables)
    return url


def shuffled(base: SparkSession, url: str, root: Path, adaptive: str) -> Iterator[SparkSession]:
    """A session whose joins are all shuffled."""
    for session in asking(base, url, root, adaptive):
        session.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
        session.conf.set("spark.sql.adaptive.autoBroadcastJoinThreshold", "-1")
        yield session


@pytest.fixture(scope="module", params=["true", "false"], ids=["adaptive", "fixed"])
def spark(base: SparkSession, store: str, tables: Path, request: pytest.FixtureRequest) -> Iterator[SparkSession]:
    yield from shuffled(base, store, tables, request.param)


SKIPS = {
    "a join": ("SELECT * FROM fact JOIN orders ON key = o_key WHERE o_day < DATE'2020-01-03'", 2),
    "strings": ("SELECT * FROM fact JOIN orders ON text = o_text WHERE o_day = DATE'2020-01-05'", 1),
    "a hash join": (
        "SELECT /*+ SHUFFLE_HASH(orders) */ * FROM fact JOIN orders ON key = o_key WHERE o_day > DATE'2020-01-08'",
        2,
    ),
    "a semi join": (
        "SELECT * FROM fact WHERE key IN (SELECT o_key FROM orders WHERE o_day IN ('2020-01-01', '2020-01-08'))",
        2,
    ),
    "a chain": (
        """SELECT * FROM fact JOIN orders ON key = o_key JOIN customers ON o_cust = c_key
           WHERE c_segment = 'segment1'""",
        3,
    ),
    "the sides swapped": ("SELECT * FROM orders JOIN fact ON key = o_key WHERE o_day < DATE'2020-01-02'", 1),
    "partitions of the other side": ("SELECT * FROM fact JOIN parted ON key = o_key WHERE upper(region) = 'R1'", 5),
    "partitions and a column": (
        "SELECT * FROM fact JOIN parted ON key = o_key WHERE region = 'r0' AND o_day > DATE'2020-01-03'",
        2,
    ),
    "a condition on both": (
        """SELECT * FROM fact JOIN parted ON key = o_key
           WHERE (region = 'r1' OR o_day = DATE'2020-01-02') AND o_day < DATE'2020-01-09'""",
        8,
    ),
    "a semi join with partitions": (
        "SELECT * FROM fact WHERE key IN (SELECT o_key FROM parted WHERE region = 'r0')",
        5,
    ),
    "below an aggregate": (
        "SELECT count(*), sum(qty) FROM fact JOIN orders ON key = o_key WHERE o_day < DATE'2020-01-03'",
        2,
    ),
}


@pytest.mark.every(3)
@pytest.mark.parametrize("name", SKIPS)
def test_a_shuffled_join_skips(spark: SparkSession, name: str) -> None:
    sql, files = SKIPS[name]
    assert same(spark, sql).files == [files]


KEEPS = {
    "partitions that all count": ("SELECT * FROM fact JOIN parted ON key = o_key WHERE region LIKE 'r_'", [10]),
    "another condition for each partition": (
        """SELECT * FROM fact JOIN parted ON key = o_key
           WHERE (region = 'r1' OR o_day = DATE'2020-01-02') AND (region = 'r0' OR o_day < DATE'2020-01-09')""",
        [10],
    ),
    "partitions of one of two": (
        """SELECT * FROM fact JOIN (SELECT * FROM parted WHERE region = 'r0' UNION ALL SELECT * FROM parted)
           ON key = o_key""",
        [10],
    ),
    "no filter on the other side": ("SELECT * FROM fact JOIN orders ON key = o_key", [10]),
    "the fact is preserved": (
        "SELECT * FROM fact LEFT JOIN (SELECT * FROM orders WHERE o_day < DATE'2020-01-03') ON key = o_key",
        [10],
    ),
    "a full join": (
        "SELECT * FROM fact FULL JOIN (SELECT * FROM orders WHERE o_day < DATE'2020-01-03') ON key = o_key",
        [10],
    ),
    "an anti join": (
        "SELECT * FROM fact LEFT ANTI JOIN (SELECT * FROM orders WHERE o_day < DATE'2020-01-03') ON key = o_key",
        [10],
    ),
    "null is equal to null": (
        "SELECT * FROM fact JOIN orders ON key <=> o_key WHERE o_day < DATE'2020-01-03'",
        [10],
    ),
    "keys of two types": ("SELECT * FROM fact JOIN orders ON key = o_int WHERE o_day < DATE'2020-01-03'", [10]),
    "a limit below the join": (
        "SELECT count(*) FROM (SELECT * FROM fact LIMIT 210) JOIN orders ON key = o_key WHERE o_day < DATE'2020-01-03'",
        [10],
    ),
    "a limit on the other side": (
        "SELECT count(*) FROM fact JOIN (SELECT * FROM orders LIMIT 210) ON key = o_key WHERE o_day < DATE'2020-01-03'",
        [10],
    ),
    "the fact twice under two filters": (
        """SELECT * FROM (SELECT key, qty FROM fact JOIN orders ON key = o_key WHERE o_day < DATE'2020-01-03')
           UNION ALL (SELECT key, qty FROM fact JOIN orders ON key = o_key WHERE o_day > DATE'2020-01-08')""",
        None,
    ),
    "the fact twice, one exchange": (
        """SELECT a.key, b.o_day FROM (SELECT key FROM fact JOIN orders ON key = o_key WHERE o_day < DATE'2020-01-03') a
           JOIN (SELECT key, o_day FROM fact JOIN orders ON key = o_key WHERE o_day > DATE'2020-01-01') b
           ON a.key = b.key""",
        None,
    ),
    "the fact in a subquery too": (
        """SELECT * FROM fact JOIN orders ON key = o_key
           WHERE o_day < DATE'2020-01-03' AND qty < (SELECT max(qty) FROM fact)""",
        None,
    ),
}


@pytest.mark.every(3)
@pytest.mark.parametrize("name", KEEPS)
def test_what_does_not_follow_is_not_skipped(spark: SparkSession, name: str) -> None:
    sql, files = KEEPS[name]
    found = same(spark, sql)
    assert set(found.files) == {FILES} if files is None else found.files == files


def test_the_report_names_the_table(spark: SparkSession, tables: Path) -> None:
    esk.enable(spark)
    with esk.observe(spark) as report:
        spark.sql(SKIPS["a join"][0]).collect()
    esk.disable(spark)
    (scan,) = [scan for scan in report.scans if scan.dataset.startswith("fact")]
    (by,) = scan.induced_by
    assert "by MinMax(o_key): " in by and by.endswith("(2 of 10 objects)")


def test_a_changed_table_implies_nothing_until_it_is_refreshed(base: SparkSession, tmp_path: Path) -> None:
    """A file that came, changed or went may hold any key, and a listing from before is the one that counts."""
    root, url = made(tmp_path / "tables"), (tmp_path / "store").as_uri()
    session = configured(base, url)
    datasets = index(session, root)
    sql = SKIPS["a join"][0]
    file = root / "orders" / "part-10.parquet"
    sessions = shuffled(base, url, root, "true")
    spark = next(sessions)
    assert same(spark, sql).files == [2]

    day = pa.array([FIRST_DAY] * (KEYS_PER_FILE + 1))
    pq.write_table(orders(7).set_column(3, "o_day", day), file)
    os.utime(file, (1_700_000_000,) * 2)
    spark.read.parquet(str(root / "orders")).createOrReplaceTempView("orders")
    assert same(spark, sql).files == [FILES], "a new file"
    assert not datasets["orders"].refresh().failed
    assert same(spark, sql).files == [3]

    pq.write_table(orders(5).set_column(3, "o_day", day), file)
    os.utime(file, (1_700_000_001,) * 2)
    spark.read.parquet(str(root / "orders")).createOrReplaceTempView("orders")
    assert same(spark, sql).files == [FILES], "a rewritten file"
    assert not datasets["orders"].refresh().failed
    assert same(spark, sql).files == [3]

    file.unlink()
    spark.read.parquet(str(root / "orders")).createOrReplaceTempView("orders")
    assert same(spark, sql).files == [FILES], "a removed file"
    assert not datasets["orders"].refresh().failed
    assert same(spark, sql).files == [2]
    datasets["orders"].drop_indexes(all=True)
    assert same(spark, sql).files == [FILES]
    assert list(sessions) == []  # skipping is off again


@pytest.mark.parametrize("hidden", ["true", "_metadata.file_size > 0"])  # by a hidden column Spark prunes the listing
@pytest.mark.parametrize("adaptive", ["true", "false"])
def test_partitions_are_listed_as_they_were_when_the_fact_was_skipped(
    base: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, adaptive: str, hidden: str
) -> None:
    """Another query may refresh the other side's listing between the two scans of this one."""
    root, url = made(tmp_path / "tables"), (tmp_path / "store").as_uri()
    index(configured(base, url), root)
    sessions = shuffled(base, url, root, adaptive)
    spark = next(sessions)
    parted = spark.read.parquet(str(root / "parted"))
    location = parted._jdf.queryExecution().analyzed().collectLeaves().head().relation().location()

    def joined() -> DataFrame:
        other = parted.where(f"region = 'r1' AND {hidden}")
        return spark.table("fact").join(other, F.expr("key = o_key")).select("key", "o_day")

    expected = sorted(map(str, joined().collect()))
    assert len(expected) == 5 * KEYS_PER_FILE
    esk.enable(spark)
    refreshed = []

    def refresh(*_: Any) -> None:
        for region, file in (("r1", 0), ("r2", 1)):
            folder = root / "parted" / f"region={region}"
            folder.mkdir(exist_ok=True)
            pq.write_table(orders(file), folder / "new.parquet")
        age(root / "parted", days=1)
        refreshed.append(location.refresh())

    service: LookupService = service_of(spark)
    monkeypatch.setattr(service, "on_use", refresh)
    again = joined()
    assert sorted(map(str, again.collect())) == expected
    assert refreshed
    assert sorted(int(scan.metrics().apply("numFiles").value()) for scan in scans(again)) == [5, 5]
    assert list(sessions) == []


@pytest.mark.parametrize("name", ["orders", "parted/region=r0"])
@pytest.mark.parametrize("how", ["UNION ALL", "JOIN"])
def test_two_frames_of_different_age(base: SparkSession, tmp_path: Path, name: str, how: str) -> None:
    """Their indexes are equal, so Spark may read the files of one frame in place of those of the other."""
    root, url = made(tmp_path / "tables"), (tmp_path / "store").as_uri()
    datasets = index(configured(base, url), root)
    table = name.partition("/")[0]
    sessions = shuffled(base, url, root, "true")
    spark = next(sessions)
    spark.table(table).createOrReplaceTempView("old")
    day = pa.array([FIRST_DAY] * (KEYS_PER_FILE + 1))
    pq.write_table(orders(8).set_column(3, "o_day", day), root / name / "new.parquet")
    age(root / name, days=1)
    if "/" in name:
        assert not datasets[table].refresh().failed
    spark.read.parquet(str(root / table)).createOrReplaceTempView("new")
    early = "o_day = DATE'2020-01-01'"
    joined = f"SELECT key, o_key FROM fact JOIN old ON key = o_key WHERE {early}"
    if how == "JOIN":
        same(spark, f"SELECT new.o_key, x.key FROM new JOIN ({joined}) x ON new.o_key = x.o_key WHERE new.{early}")
    else:
        other = "(SELECT CAST(id AS BIGINT) AS key FROM range(220)) other"
        same(spark, f"SELECT key, o_key FROM {other} JOIN new ON key = o_key WHERE {early} UNION ALL {joined}")
    assert list(sessions) == []
