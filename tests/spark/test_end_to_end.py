"""Hand-written queries and data, through Spark and a real Parquet store: exactly which objects are read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import es_skipping as esk
from tests.spark.objects_read import file_indexes, files_of_rows, num_files
from tests.spark.skipping_on_off import age, objects_read, readings, same_rows

FILES = 10
ROWS = 20

Query = str | Callable[[SparkSession], DataFrame]


@pytest.fixture(scope="module")
def people(base: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    """``id`` ascends over ten files of twenty rows; each file has a city, a range of scores and names of its own."""
    path = tmp_path_factory.mktemp("e2e") / "people"
    df = base.range(0, FILES * ROWS, 1, FILES).selectExpr(
        "id",
        "concat('city', id div 20) AS city",
        "concat(chr(97 + cast(id div 20 as int)), 'name', id, '.', chr(122 - cast(id div 20 as int)), 'x') AS name",
        "cast(id as double) / 10 AS score",
        "IF(id < 100, NULL, cast(id as int)) AS late",
        "cast(id % 7 as int) AS grp",
        "date_add(DATE'2024-01-01', cast(id as int)) AS day",
        "named_struct('x', id, 'in', named_struct('y', -id)) AS s",
        "named_struct('only', id) AS one",
    )
    df.write.parquet(str(path))
    age(path)
    return str(path)


@pytest.fixture
def indexed(spark: SparkSession, people: str) -> SparkSession:
    result = esk.Dataset(spark, people).create_indexes(
        esk.MinMax("id"),
        esk.MinMax("score"),
        esk.MinMax("late"),
        esk.MinMax("day"),
        esk.MinMax("s.in.y"),
        esk.MinMax("ONE.Only"),
        esk.ValueList("city"),
        esk.Prefix("name", length=3),
        esk.Suffix("name", length=3),
    )
    assert (result.added, result.failed) == (FILES, ())
    spark.read.parquet(people).createOrReplaceTempView("t")
    return spark


EXPECTED: dict[str, int] = {
    "id = 77": 1,
    "77 = id": 1,
    "ID = 77": 1,
    "id <=> 77": 1,
    "id <> 77": 10,
    "id < 40": 2,
    "NOT (id >= 40)": 2,
    "id BETWEEN 35 AND 45": 2,
    "id NOT BETWEEN 20 AND 179": 2,
    "id IN (3, 45, 199)": 3,
    "id IN (1,2,3,4,5,6,7,8,9,10,11,12,13,14,199)": 2,
    "id NOT IN (3)": 10,
    "id > 19 AND id < 20": 0,
    "id > 1e18": 0,
    "cast(id AS double) < 19.5": 1,
    "id + 0 < 20": 1,  # which Spark simplifies
    "id * 2 < 20": 1,
    "score > 19.85": 1,
    "score = double('NaN')": 0,
    "late IS NULL": 5,
    "late IS NOT NULL": 5,
    "late < 120": 1,
    "coalesce(late, 7) = 7": 5,
    "day < DATE'2024-01-21'": 1,
    "day = '2024-02-01'": 1,
    "year(day) = 2024 AND id = 1": 1,
    "s.in.y < -185": 1,
    "S.In.Y < -185": 1,
    "one.only = 77": 1,
    "One.ONLY = 77": 1,
    "ONE.Only IN (3, 199)": 2,
    "city = 'city4'": 1,
    "city <> 'city4'": 9,
    "city IN ('city1', 'city9', 'nowhere')": 2,
    "city = 'Gotham'": 0,
    "city LIKE '%4'": 1,
    "city LIKE 'c_ty4'": 1,
    "upper(city) = 'CITY4'": 10,
    "name LIKE 'cn%'": 1,
    "name LIKE 'cna%' AND name NOT LIKE 'x%'": 1,
    "startswith(name, 'dname6')": 1,
    "name LIKE '%zx'": 1,
    "endswith(name, 'yx')": 1,
    "name LIKE 'a%yx'": 0,
    "name LIKE 'a%' OR name LIKE '%qx'": 2,
    "id < 20 OR city = 'city9'": 2,
    "id < 20 OR grp = 100": 10,
    "NOT (id >= 20 AND city <> 'city9')": 2,
    "(id < 60 OR score > 19) AND (city = 'city1' OR day > DATE'2024-07-15')": 2,
    "id < 20 AND rand(1) >= 0": 1,
    "id IS NULL": 0,
    "city IS NULL": 0,
    "id = 5 AND NULL": 0,
}


def test_predicates(indexed: SparkSession) -> None:
    assert readings(indexed, lambda session: session.table("t"), EXPECTED, "id") == EXPECTED


FORMS: dict[str, list[int]] = {
    "SELECT s FROM t WHERE S.In.Y < -185": [1],  # the whole struct is read, so none of its fields is pruned
    "SELECT a.id, b.city FROM t a JOIN t b ON a.id = b.id WHERE a.id = 42": [1, 1],
    "SELECT a.id FROM t a JOIN t b ON a.grp = b.grp WHERE a.id < 20 AND b.city = 'city7'": [1, 1],
    "SELECT id FROM t WHERE id < 20 UNION ALL SELECT id FROM t WHERE city = 'city9'": [1, 1],
    "WITH c AS (SELECT * FROM t WHERE id < 40) SELECT grp, sum(id) FROM c GROUP BY grp": [2],
    "SELECT * FROM t WHERE id IN (SELECT id FROM t WHERE city = 'city3') AND id < 80": [1, 1],
    "SELECT * FROM t WHERE id < 40 AND id > (SELECT max(id) - 3 FROM t WHERE city = 'city0')": [1, 2],
    "SELECT city, count(*) FROM t WHERE score < 2 GROUP BY city HAVING count(*) > 1": [1],
    "SELECT * FROM (SELECT id AS i, city AS c FROM t) WHERE i < 5 AND c = 'city0'": [1],
    "SELECT id, row_number() OVER (PARTITION BY city ORDER BY id) r FROM t WHERE city = 'city2'": [1],
    "SELECT DISTINCT city FROM t WHERE id >= 180 ORDER BY city LIMIT 5": [1],
    "SELECT id FROM t WHERE id < 20 EXCEPT SELECT id + 10 FROM t WHERE id < 40": [1, 2],
    "SELECT a.id FROM t a LEFT ANTI JOIN t b ON a.id = b.id AND b.id < 10 WHERE a.id < 20": [1, 1],
}


@pytest.mark.parametrize("adaptive", ["true", "false"])
def test_forms_of_queries(indexed: SparkSession, adaptive: str) -> None:
    indexed.conf.set("spark.sql.adaptive.enabled", adaptive)
    assert {sql: objects_read(indexed, sql) for sql in FORMS} == FORMS


def test_which_objects_the_rows_come_from(indexed: SparkSession, people: str) -> None:
    esk.enable(indexed)
    df = indexed.read.parquet(people).where("city = 'city4' OR id = 199")
    files = files_of_rows(df)
    assert {name[:10] for name in files} == {"part-00004", "part-00009"}
    df.collect()
    assert num_files(df) == [2]
    assert file_indexes(df) == ["SkippingFileIndex"]


def test_a_python_function_beside_what_can_be_pushed(indexed: SparkSession, people: str) -> None:
    even = F.udf(lambda value: value % 2 == 0, "boolean")
    for adaptive in ("true", "false"):
        indexed.conf.set("spark.sql.adaptive.enabled", adaptive)
        assert objects_read(indexed, lambda s: s.read.parquet(people).where(even("id") & F.expr("id < 40"))) == [2]
        assert objects_read(indexed, lambda s: s.read.parquet(people).where(even("id") | F.expr("id < 40"))) == [10]
        assert objects_read(indexed, lambda s: s.read.parquet(people).where(even("id"))) == [10]


def test_caches(indexed: SparkSession, people: str) -> None:
    esk.enable(indexed)
    cached = indexed.read.parquet(people).where("id < 40").cache()
    try:
        assert cached.count() == 40
        assert num_files(cached) == [2]
        assert cached.where("id < 5").count() == 5
        assert indexed.read.parquet(people).where("id >= 40").count() == FILES * ROWS - 40
        esk.disable(indexed)
        assert cached.where("id >= 20").count() == 20
        assert num_files(cached) == [2]  # it was filled with skipping on, and is believed as it is
    finally:
        cached.unpersist()


def test_two_scalar_subqueries_that_spark_merges(indexed: SparkSession) -> None:
    for right in ("city = 'city9'", "id >= 180", "grp = 3"):
        sql = f"SELECT (SELECT sum(id) FROM t WHERE id < 20), (SELECT max(score) FROM t WHERE {right})"
        same_rows(indexed, sql)


def test_one_session_and_not_another(indexed: SparkSession, base: SparkSession, people: str) -> None:
    other = base.newSession()
    other.conf.set("spark.es_skipping.store.url", indexed.conf.get("spark.es_skipping.store.url"))
    esk.enable(indexed)
    for session, expected, index in ((other, 10, "InMemoryFileIndex"), (indexed, 1, "SkippingFileIndex")):
        df = session.read.parquet(people).where("id = 7")
        assert df.count() == 1
        counted = df.groupBy().count()
        counted.collect()
        assert (num_files(counted), file_indexes(counted)) == ([expected], [index])
    assert not esk.is_enabled(other)
    assert esk.last_query(other).scans == ()


def test_two_stores_of_two_sessions(indexed: SparkSession, base: SparkSession, people: str, tmp_path: Path) -> None:
    other = base.newSession()
    other.conf.set("spark.es_skipping.store.url", (tmp_path / "another").as_uri())
    assert not esk.Dataset(other, people).is_indexed()
    read = lambda s: s.read.parquet(people).where("id = 7")  # noqa: E731
    assert (objects_read(other, read), objects_read(indexed, read)) == ([10], [1])
    assert esk.Dataset(indexed, people).is_indexed()
    esk.disable(other)


def test_boxes(spark: SparkSession, tmp_path: Path) -> None:
    """A file in each corner, one of two far clusters, and one along the date line."""
    places = {
        "north_west": [(50.0 + i, -10.0 - i) for i in range(5)],
        "south_east": [(-30.0 - i, 140.0 + i) for i in range(5)],
        "clusters": [(10.0, 10.0), (11.0, 11.0), (80.0, 80.0), (81.0, 81.0)],
        "line": [(0.0, 179.5), (1.0, -179.5)],
        "unknown": [(None, None), (5.0, None)],
    }
    for name, points in places.items():
        df = spark.createDataFrame([(lat, lon, name) for lat, lon in points], "lat double, lon double, name string")
        df.coalesce(1).write.parquet(str(tmp_path / "places" / name))
    age(tmp_path / "places")
    read = lambda s: s.read.option("recursiveFileLookup", "true").parquet(str(tmp_path / "places"))  # noqa: E731
    dataset = esk.Dataset(spark, str(tmp_path / "places"), options={"recursiveFileLookup": "true"})
    assert dataset.create_indexes(esk.GeoBox("lat", "lon", boxes=2)).added == 5
    window = "lat BETWEEN {} AND {} AND lon BETWEEN {} AND {}"
    expected = {
        window.format(49, 56, -20, 0): 1,
        window.format(-90, 90, -180, 180): 4,
        window.format(30, 60, 30, 60): 0,  # between the two clusters, inside of their common box
        window.format(10.5, 10.9, 10.5, 10.9): 1,  # inside of a cluster's box, where there is no point
        window.format(0, 1, 170, 180): 1,
        "lat > 79 AND lat < 82 AND lon > 79 AND lon < 82": 1,
        "lat = -30.0 AND lon = 140.0": 1,
        "lat < -29": 5,  # a point without a longitude is in no box
        "lon IS NULL": None,
        "(lat > 49 AND lon < 0) OR (lat < -29 AND lon > 100)": None,
    }
    found = readings(spark, read, expected)
    assert {one: found[one] for one, count in expected.items() if count is not None} == {
        one: count for one, count in expected.items() if count is not None
    }


def test_dynamic_partition_pruning(spark: SparkSession, tmp_path: Path) -> None:
    facts = str(tmp_path / "facts")
    df = spark.range(0, 120, 1, 1).selectExpr(
        "id % 30 AS id", "cast(id div 30 as int) AS p", "cast(id % 30 div 10 as int) AS f"
    )
    df.repartitionByRange(12, "p", "f").drop("f").write.partitionBy("p").parquet(facts)
    spark.createDataFrame([(0, "a"), (1, "b"), (2, "b"), (3, "c")], "p int, label string").coalesce(1).write.parquet(
        str(tmp_path / "labels")
    )
    age(tmp_path)
    esk.Dataset(spark, facts).create_indexes(esk.MinMax("id"))
    spark.read.parquet(facts).createOrReplaceTempView("f")
    spark.read.parquet(str(tmp_path / "labels")).createOrReplaceTempView("d")
    for adaptive in ("true", "false"):
        spark.conf.set("spark.sql.adaptive.enabled", adaptive)
        sql = "SELECT f.id, d.label FROM f JOIN d ON f.p = d.p WHERE d.label = 'b' AND f.id < 10"
        assert "dynamicpruning" in spark.sql(sql)._jdf.queryExecution().executedPlan().toString().lower()
        assert objects_read(spark, sql) == [1, 2]  # one file of each of two partitions; the labels are one
