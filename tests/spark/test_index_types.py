"""Every index type beyond the first five through Spark, on both stores: exactly which objects a query reads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pytest
from pyspark.sql import SparkSession

import es_skipping as esk
from tests.spark.skipping_on_off import age, objects_by_predicate

FILES: Final = 6

GAPS: Final = {
    "n = 1003": 1,  # each object has ten values at its number times 1000, and ten a million later
    "n = 1500": 0,
    "n BETWEEN 1500 AND 900000": 4,  # two stretches of four objects
    "n BETWEEN 6000 AND 999000": 0,
    "n IN (2005, 1003009)": 2,
    "n <> 2005": 6,
    "day = DATE'2024-02-03'": 1,
    "day = DATE'2024-05-01'": 0,
    "ts = TIMESTAMP'2024-02-03 00:00:00'": 1,
    "ts BETWEEN TIMESTAMP'2024-05-01 00:00:00' AND TIMESTAMP'2024-06-01 00:00:00'": 0,
    "amount = 2003.25": 1,
    "amount > 7000 AND amount < 999999": 0,
    "x > 7000 AND x < 999999": 0,
    "x = double('NaN')": 1,
    "x IS NULL": 1,
}

FORMATTED: Final = {
    "parse_url(url, 'HOST') = 'host4.example.org'": 1,
    "parse_url(url, 'HOST') LIKE 'host4%'": 1,
    "parse_url(url, 'HOST') <> 'host4.example.org'": 5,
    "parse_url(url, 'PATH') = '/v1/a'": 6,  # another expression
    "regexp_extract(url, '/v([0-9]+)/', 1) = '3'": 1,
    "regexp_extract(url, '/v([0-9]+)/', 1) IN ('3', '5', '77')": 2,
    "lower(city) = 'city2'": 1,
    "upper(city) = 'CITY2'": 6,
    "lower(city) = 'city2' OR n = 1003": 2,
    "length(city) = 6": 6,
    "startswith(upper(city), 'CITY5')": 6,
    "city LIKE '%3' OR lower(city) = 'x'": 6,
    "luhn_check(card)": 2,  # a truth value: of the objects' numbers 2 and 3 the check digit is right
    "NOT luhn_check(card)": 4,
    "luhn_check(card) IS NULL": 0,
}

DATES: Final = {
    # Spark may write these as ranges of seen; each object has 22 hours of it
    "to_date(seen) = DATE'2024-01-04'": 2,
    "to_date(seen) > DATE'2024-01-05'": 1,
    "date(seen) IN (DATE'2024-01-01', DATE'2024-01-02')": 3,
}

HASHED: Final = {
    "user = 'user-47'": 1,  # twenty values an object
    "user = 'nobody'": 0,
    "user IN ('user-3', 'user-110', 'nobody')": 2,
    "user <> 'user-47'": 6,
    "user LIKE 'user-47%'": 6,
    "id = 47": 1,
    "id BETWEEN 38 AND 41": 2,  # few enough to be asked one by one
    "id > 100": 6,
    "kind = 'city2'": 1,  # one value each in objects 0 to 2, many in the others
    "kind = 'kind-70'": 1,
    "kind <> 'city2'": 5,  # listed where they are few
    "kind LIKE 'city%'": 6,
    "kind LIKE 'kind%'": 3,
    "kind IS NULL": 0,
}

AROUND: Final = esk.MetricDistance(["x0", "y0"], origin=[0, 0])
CITY: Final = esk.MetricDistance(["lat", "lon"], origin=[52.09, 5.12], metric="haversine")

DISTANCES: Final = {
    f"{AROUND.distance([300, 400])} < 25": 1,  # each object is a ring of its number times 100 to that plus 9.5
    f"{AROUND.distance([0, 0])} BETWEEN 105 AND 205": 2,
    f"{AROUND.distance([0.5, 0])} > 450": 1,
    f"{AROUND.distance([3, 4])} IS NULL": 0,
    f"{AROUND.distance([3, 4])} >= 0": 6,
    "sqrt(power(x0 - 300, 2) + power(y0 - 400, 2)) < 25": 1,  # as people write it
    "sqrt(power(x0 - 300, 2) + power(x0 - 400, 2)) < 25": 6,  # of other columns
    f"{CITY.distance([48.85, 2.35])} < 50": 0,
    f"{CITY.distance([52.1, 5.1])} < 10": 1,
}

INDEXES: Final = (
    AROUND,
    CITY,
    esk.BloomFilter("user"),
    esk.BloomFilter("id", fpp=0.001),
    esk.Hybrid("kind", threshold=5),
    esk.MinMax("to_date(seen)"),
    esk.GapList("n", gaps=3),
    esk.GapList("day", gaps=2),
    esk.GapList("ts", gaps=2),
    esk.GapList("amount", gaps=2),
    esk.GapList("x", gaps=2),
    esk.Formatted("url", "parse_url({}, 'HOST')"),
    esk.Formatted("url", "regexp_extract({}, '/v([0-9]+)/', 1)"),
    esk.Formatted("card", "luhn_check"),
    esk.Formatted("city", "lower"),
)


@pytest.fixture(scope="module")
def data(base: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("types") / "data"
    base.range(0, FILES * 20, 1, FILES).selectExpr(
        "id",
        "id div 20 * 1000 + id % 10 + IF(id % 20 < 10, 0, 1000000) AS n",
    ).selectExpr(
        "id",
        "n",
        "date_add(DATE'2024-02-01', cast(id div 20 * 10 + id % 10 + IF(n < 1000000, 0, 200) AS int)) AS day",
        "cast(n + 0.25 AS DECIMAL(30, 2)) AS amount",
        "CASE WHEN n = 1005 THEN double('NaN') WHEN n = 3001 THEN NULL ELSE cast(n AS double) END AS x",
        "concat('https://host', id div 20, '.example.org/v', id div 20, '/a?', id) AS url",
        "concat('City', id div 20) AS city",
        "concat('user-', id) AS user",
        "(id div 20 * 100 + id % 20 / 2) * 0.6D AS x0",
        "(id div 20 * 100 + id % 20 / 2) * 0.8D AS y0",
        "52D + id div 20 * 0.5D + id % 20 / 1000D AS lat",
        "5D + id div 20 * 0.5D AS lon",
        "IF(id < 60, concat('city', id div 20), concat('kind-', id)) AS kind",
        "timestamp_seconds(1704067200 + id * 4000) AS seen",
        "concat('7992739871', IF(id div 20 = 2, 3, id div 20)) AS card",
    ).selectExpr("*", "timestamp(day) AS ts").write.parquet(str(path))
    age(path)
    return str(path)


@pytest.fixture(params=["parquet", "elasticsearch"])
def on(spark: SparkSession, data: str, request: pytest.FixtureRequest) -> Iterator[SparkSession]:
    if request.param == "elasticsearch":
        spark.conf.set("spark.es_skipping.store.url", request.getfixturevalue("elasticsearch_url"))
    spark.conf.set("spark.es_skipping.strict", "true")  # a look-up that fails would show as all objects read
    dataset = esk.Dataset(spark, data)
    result = dataset.create_indexes(*INDEXES)
    assert (result.added, result.failed) == (FILES, ())
    yield spark
    dataset.drop_indexes(all=True)


@pytest.mark.every(2)
def test_predicates(on: SparkSession, data: str) -> None:
    expected = GAPS | FORMATTED | DATES | HASHED | DISTANCES
    assert objects_by_predicate(on, lambda s: s.read.parquet(data), expected) == expected
    assert esk.Dataset(on, data).ensure_indexes(*INDEXES).unchanged == FILES, "made again they are the same"
