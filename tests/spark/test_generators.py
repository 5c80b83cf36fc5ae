"""A filter on what ``explode`` generates becomes a condition on the elements of the array; never a row too few."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from pyspark.sql import SparkSession

import es_skipping as esk
from tests.spark.skipping_on_off import age, objects_read

FILES: Final = 6

INDEXES: Final = (
    esk.ValueList("tags[]"),
    esk.MinMax("xs[]"),
    esk.MinMax("readings[].value"),
    esk.ValueList("readings[].`b c`"),
    esk.MinMax("grid[][]"),
    esk.ValueList("map_keys(m)[]"),
    esk.MinMax("map_values(m)[]"),
    esk.ValueList("split(s, ',')[]"),
    esk.MinMax("id"),
)

FOUND: Final = {
    "FROM t LATERAL VIEW explode(tags) v AS x WHERE x = 't3'": 1,
    "FROM t LATERAL VIEW explode(tags) v AS x WHERE x = 't3' AND id = 4": 0,
    "FROM t LATERAL VIEW explode(tags) v AS x WHERE x IN ('t1', 'u2')": 2,
    "FROM t LATERAL VIEW explode(tags) v AS x WHERE x = 't1' OR id = 5": 2,
    "FROM t, LATERAL explode(tags) v(x) WHERE x = 't3'": 1,
    "FROM (SELECT id, explode(tags) AS x FROM t) WHERE x = 't3'": 1,
    "FROM (SELECT id AS i, x AS y FROM (SELECT id, explode(tags) AS x FROM t)) WHERE y = 't3' AND i < 9": 1,
    "FROM t LATERAL VIEW explode(xs) v AS x WHERE x > 45": 2,
    "FROM t LATERAL VIEW explode(xs) v AS x WHERE x > 5.4 AND x < 9": 3,  # one element, for all that bounds tell
    "FROM t LATERAL VIEW explode(xs) v AS x LATERAL VIEW explode(xs) w AS y WHERE x > 45 AND y < 6": 2,  # two elements
    "FROM t LATERAL VIEW explode(xs) v AS x LATERAL VIEW explode(xs) w AS y WHERE x > y": FILES,
    "FROM t LATERAL VIEW explode(xs) v AS x LATERAL VIEW explode(xs) w AS y WHERE if(x = 2.5, y = 20, y = 7777)": 3,
    "FROM t LATERAL VIEW explode(xs) v AS x WHERE x IS NULL": 2,  # an element, of an array that is not null
    "FROM t LATERAL VIEW posexplode(xs) v AS p, x WHERE x > 45": 2,
    "FROM t LATERAL VIEW posexplode(xs) v AS p, x WHERE x > 45 AND p = 1": 2,
    "FROM t LATERAL VIEW posexplode(xs) v AS p, x WHERE x > 45 + p": FILES,
    "FROM t LATERAL VIEW posexplode(xs) v AS p, x WHERE p = 0": FILES,
    "FROM t LATERAL VIEW inline(readings) v AS a, b, c WHERE b = 3": 1,
    "FROM t LATERAL VIEW inline(readings) v AS a, b, c WHERE a = 2 AND b = 3": 1,
    "FROM t LATERAL VIEW inline(readings) v AS a, b, c WHERE a = 4 AND b = 3": 0,
    "FROM t LATERAL VIEW explode(readings) v AS r WHERE r.value = 4": 1,
    "FROM t LATERAL VIEW explode(readings.value) v AS x WHERE x = 4": 1,
    "FROM t LATERAL VIEW explode(grid) v AS r LATERAL VIEW explode(r) w AS x WHERE x = 1003": 3,
    "FROM t LATERAL VIEW explode(grid) v AS r LATERAL VIEW explode(r) w AS x WHERE x = 1003 AND size(r) = 2": 3,
    "FROM t LATERAL VIEW explode(m) v AS k, x WHERE k = 'k2'": 1,
    "FROM t LATERAL VIEW explode(m) v AS k, x WHERE x > 450": 1,
    "FROM t LATERAL VIEW explode(m) v AS k, x WHERE k = 'k2' AND x = 2": 1,
    "FROM t LATERAL VIEW explode(m) v AS k, x WHERE k = 'k2' AND x = 400": 0,  # files 2 and 4
    "FROM t LATERAL VIEW explode(m) v AS k, x WHERE k = concat('k', x)": FILES,
    "FROM t LATERAL VIEW explode(split(s, ',')) v AS x WHERE x = 'b3'": 1,
    "FROM t LATERAL VIEW explode(tags) v AS x WHERE exists(tags, x1 -> x1 = 't3') AND x = 'u3'": 1,
    "FROM t LATERAL VIEW explode(tags) v AS x WHERE exists(array('t3', 'q'), y -> y = x)": FILES,
    "FROM t LATERAL VIEW explode(tags) v AS x WHERE x = concat('t', id)": FILES,
    "FROM t LATERAL VIEW explode(tags) v AS x WHERE x = 't3' AND rand(1) >= 0": 1,
    # a join on the element
    "FROM (SELECT id, explode(tags) AS x FROM t) JOIN (SELECT * FROM VALUES ('t2'), ('u4') AS (w)) ON x = w": 2,
    "FROM (SELECT id, explode(tags) AS x FROM t) LEFT JOIN (SELECT * FROM VALUES ('t2') AS (w)) ON x = w": FILES,
    "FROM t LATERAL VIEW explode(tags) v AS x WHERE x IN (SELECT w FROM VALUES ('t2') AS (w))": 1,
    "FROM t LATERAL VIEW explode(tags) v AS x WHERE x NOT IN (SELECT w FROM VALUES ('t2') AS (w))": FILES,
    # what implies nothing of any element
    "FROM t LATERAL VIEW OUTER explode(tags) v AS x WHERE x = 't3' OR x IS NULL": FILES,
    "FROM t LATERAL VIEW OUTER explode(tags) v AS x WHERE coalesce(x, 't3') = 't3'": FILES,
    "FROM t LATERAL VIEW OUTER explode(tags) v AS x WHERE id = 3": 1,
    "FROM (SELECT * FROM t LATERAL VIEW explode(tags) v AS x LIMIT 100) WHERE x = 't3'": FILES,
    "FROM (SELECT x, row_number() OVER (ORDER BY id) FROM t LATERAL VIEW explode(tags) v AS x) WHERE x = 't3'": FILES,
    "FROM t LATERAL VIEW explode(shuffle(tags)) v AS x WHERE x = 't3'": FILES,
    "FROM t LATERAL VIEW explode(shuffle(tags)) v AS x WHERE id = 3": FILES,
    "FROM t LATERAL VIEW stack(2, id, id + 1) v AS x WHERE x = 3": FILES,
    "FROM t LATERAL VIEW explode(array(id, id + 10)) v AS x WHERE x = 13": FILES,
}


def write(base: SparkSession, path: Path) -> None:
    """In each file a row with values of its own, and rows with empty and null arrays."""
    full = base.range(0, FILES, 1, FILES).selectExpr(
        "id",
        "array(concat('t', id), concat('u', id)) AS tags",
        "array(id + 0.5D, CASE WHEN id < 2 THEN NULL WHEN id = 4 THEN double('NaN') ELSE id * 10D END) AS xs",
        "array(named_struct('value', id, 'b c', id + 1, 'z', id), NULL) AS readings",
        "array(array(1000 + id, NULL), array(1002 + id), NULL) AS grid",
        "map(concat('k', id), id, 'l', id * 100) AS m",
        "concat('a', id, ',b', id) AS s",
    )
    empty = full.selectExpr(
        "id", "array() AS tags", "array() AS xs", "array() AS readings", "array() AS grid", "map() AS m", "s"
    )
    nothing = full.selectExpr("id", *(f"NULL AS {name}" for name in ("tags", "xs", "readings", "grid", "m", "s")))
    full.union(empty).union(nothing).repartitionByRange(FILES, "id").sortWithinPartitions("id").write.parquet(str(path))
    age(path)


def configured(base: SparkSession, path: Path) -> SparkSession:
    session = base.newSession()
    session.conf.set("spark.es_skipping.store.url", (path.parent / "store").as_uri())
    session.conf.set("spark.es_skipping.strict", "true")
    return session


@pytest.fixture(scope="module")
def indexed(base: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data; its store is beside it."""
    path = tmp_path_factory.mktemp("generators") / "data"
    write(base, path)
    esk.Dataset(configured(base, path), str(path)).create_indexes(*INDEXES)
    return path


@pytest.fixture(scope="module", params=["true", "false"], ids=["adaptive", "fixed"])
def spark(base: SparkSession, indexed: Path, request: pytest.FixtureRequest) -> Iterator[SparkSession]:
    session, path = configured(base, indexed), indexed
    session.conf.set("spark.sql.adaptive.enabled", request.param)
    session.read.parquet(str(path)).createOrReplaceTempView("t")
    yield session
    esk.disable(session)


def test_filters_on_what_is_generated(spark: SparkSession) -> None:
    adaptive = spark.conf.get("spark.sql.adaptive.enabled") == "true"
    expected = (
        FOUND if adaptive else {query: files for query, files in FOUND.items() if "JOIN" in query or "OUTER" in query}
    )
    assert {query: sum(objects_read(spark, f"SELECT * {query}")) for query in expected} == expected


def test_reports_name_the_generator(spark: SparkSession) -> None:
    esk.enable(spark)
    df = spark.sql("SELECT id, x FROM t LATERAL VIEW explode(tags) v AS x WHERE x = 't3' AND id < 5")
    assert [scan.induced_by for scan in esk.explain(df).scans] == [("explode(tags)", "elements of tags")]
    df.collect()
    (scan,) = esk.last_query(spark).scans
    assert (scan.objects_read, scan.induced_by) == (1, ("explode(tags)", "elements of tags"))
    spark.sql("SELECT id FROM t WHERE id = 3").collect()
    assert [scan.induced_by for scan in esk.last_query(spark).scans] == [()]


def test_equal_plans_share_their_exchange(spark: SparkSession) -> None:
    """The names in the condition do not depend on the numbers that Spark gives to columns."""
    half = "(SELECT id, count(*) AS n FROM t LATERAL VIEW explode(tags) v AS x WHERE x < 't4' GROUP BY id)"
    esk.enable(spark)
    df = spark.sql(f"SELECT /*+ MERGE(b) */ * FROM {half} a JOIN {half} b ON a.n = b.n")
    df.collect()
    assert "ReusedExchange" in df._jdf.queryExecution().executedPlan().toString()  # type: ignore[operator]


def test_with_elasticsearch(base: SparkSession, tmp_path: Path, elasticsearch_url: str) -> None:
    write(base, tmp_path / "data")
    session = base.newSession()
    session.conf.set("spark.es_skipping.store.url", elasticsearch_url)
    session.conf.set("spark.es_skipping.strict", "true")
    dataset = esk.Dataset(session, str(tmp_path / "data"))
    dataset.create_indexes(*INDEXES)
    session.read.parquet(str(tmp_path / "data")).createOrReplaceTempView("t")
    try:
        for query in ("explode(tags) v AS x WHERE x = 't3'", "inline(readings) v AS a, b, c WHERE a = 2 AND b = 3"):
            assert objects_read(session, f"SELECT * FROM t LATERAL VIEW {query}") == [1], query
    finally:
        dataset.drop_indexes(all=True)
        esk.disable(session)
