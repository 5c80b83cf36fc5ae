"""Filters on arithmetic skip by the columns in it, on both stores; rows are those without skipping."""

from __future__ import annotations

import math
from collections.abc import Iterator
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import es_skipping as esk
from tests.spark.skipping_on_off import age, reading

FILES = 40

pytestmark = pytest.mark.in_turn("spark", "ansi")


@pytest.fixture(scope="module", params=["parquet", "elasticsearch"])
def spark(
    request: pytest.FixtureRequest, base: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SparkSession]:
    """View ``t``: ten numbers, ten days and one place of a grid in each object."""
    folder = tmp_path_factory.mktemp("expressions")
    (folder / "t").mkdir()
    for file in range(FILES):
        numbers = [10 * file + at for at in range(10)]
        table = pa.table(
            {
                "x": pa.array(numbers, pa.int32()),
                "l": pa.array([1_000_000_000_000 - n for n in numbers], pa.int64()),
                "d": pa.array([n / 4 for n in numbers[:-1]] + [None], pa.float64()),
                "price": pa.array(map(Decimal, numbers), pa.decimal128(14, 2)),
                "day": pa.array([19_000 + 10 * n for n in numbers], pa.int32()).cast(pa.date32()),
                "ts": pa.array([n * 3_600_000_000 for n in numbers], pa.timestamp("us", "UTC")),
                "lat": pa.array([50 + file // 8 + n % 10 / 20 for n in numbers]),
                "lon": pa.array([-4 + file % 8 + n % 10 / 20 for n in numbers]),
            }
        )
        pq.write_table(table, folder / "t" / f"{file:03}.parquet")
    age(folder / "t")
    session = base.newSession()
    url = (folder / "store").as_uri()
    session.conf.set(
        "spark.es_skipping.store.url",
        url if request.param == "parquet" else request.getfixturevalue("elasticsearch_url"),
    )
    session.conf.set("spark.es_skipping.store.timeout", "30s")
    session.read.parquet(str(folder / "t")).createOrReplaceTempView("t")
    esk.enable(session)
    dataset = esk.Dataset(session, str(folder / "t"))
    dataset.create_indexes(*(esk.MinMax(c) for c in ("x", "l", "d", "price", "day", "ts")), esk.GeoBox("lat", "lon"))
    yield session
    dataset.drop_indexes(all=True)
    esk.disable(session)


CONDITIONS = [
    ("x + 5 > 390", 2),
    ("abs(x - 200) < 3", 2),
    ("-x >= -4", 1),
    ("2 * x - 100 BETWEEN 500 AND 519", 1),
    ("x DIV 10 = 7", 2),
    ("l - 999999999000 > 997", 1),
    ("d * 2.5D + 1 > 244", 1),
    ("d / 2 < 1.0D", 1),
    ("1000 / (x + 1) > 100", 1),
    ("floor(d) = 50", 3),
    ("ceil(d) < 2", 1),
    ("price * 1.5 > 580", 2),
    ("price * (1 - 0.25) < 6.5", 1),
    ("greatest(x, 5) < 7", 1),
    ("least(x, 1000) >= 390", 1),
    ("coalesce(x, 0) = 7", 1),
    ("coalesce(d, 0) = 12.5", 2),
    ("CASE WHEN x > 395 THEN 1 ELSE 0 END = 1", 1),
    ("date_add(day, 30) > DATE'2032-11-20'", 1),
    ("datediff(day, DATE'2022-01-08') < 100", 1),
    ("year(day) * 100 + month(day) = 202407", 5),
    ("year(day) * 100 + month(day) IN (202407, 202512)", 8),
    ("ts - INTERVAL '1' DAY > TIMESTAMP'1970-01-15 00:00:00Z'", 4),
    ("ts + INTERVAL '26:30' HOUR TO MINUTE < TIMESTAMP'1970-01-02 03:00:00Z'", 1),
    ("ts - INTERVAL '1' MONTH > TIMESTAMP'1970-01-15 00:00:00Z'", FILES),
    ("NOT (abs(x - 200) >= 3)", 2),
    ("x % 10 = 3", FILES),
    ("x + l > 0", FILES),
    ("try_add(x, 2147483600) IS NULL AND x > 5", FILES),
]


@pytest.mark.parametrize("ansi", ["true", "false"])
@pytest.mark.parametrize(("condition", "most"), CONDITIONS)
def test_which_objects_are_read(spark: SparkSession, condition: str, most: int, ansi: str) -> None:
    spark.conf.set("spark.sql.ansi.enabled", ansi)
    found = reading(spark, f"SELECT * FROM t WHERE {condition}")
    assert found <= most, f"{found} objects for {condition}"


def test_a_sum_that_wraps_around_is_not_lost(spark: SparkSession) -> None:
    spark.conf.set("spark.sql.ansi.enabled", "false")
    assert reading(spark, "SELECT x FROM t WHERE x + 2147483647 < -2147483300") > 1
    assert spark.sql("SELECT x FROM t WHERE x + 2147483647 < -2147483300").count() > 300


def test_a_polygon_written_as_inequalities(spark: SparkSession) -> None:
    """A hexagon about one place of the grid: its bounding box meets more places than it does."""
    corners = [(0.5 + 1.2 * math.cos(at * math.pi / 3), 52.3 + 1.2 * math.sin(at * math.pi / 3)) for at in range(6)]
    edges = []
    for (x0, y0), (x1, y1) in zip(corners, corners[1:] + corners[:1], strict=True):
        a, b = y0 - y1, x1 - x0
        edges.append(f"{a!r}D * lon + {b!r}D * lat >= {a * x0 + b * y0!r}D")
    sql = f"SELECT lat, lon FROM t WHERE {' AND '.join(edges)}"
    matching = spark.sql(f"SELECT DISTINCT x DIV 10 FROM t WHERE {' AND '.join(edges)}").count()
    assert matching <= reading(spark, sql) <= matching + 2 < FILES / 4
