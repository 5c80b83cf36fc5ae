"""Every form of query opens only the objects it needs, and returns what it returns without skipping."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from es_skipping.spark import bridge, relations
from tests.spark.conftest import ENABLED
from tests.spark.objects_read import file_indexes, files_of_rows, num_files
from tests.spark.row_oracle import Honest

FILES = 10
ROWS = 20


@pytest.fixture(scope="module")
def table(base: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    """``id`` ascending over ten files, ``grp`` the same in each file, ``word`` text of ``id``."""
    path = tmp_path_factory.mktemp("flat") / "odd dir é %20 #x"
    df = base.range(0, FILES * ROWS, 1, FILES).selectExpr("id", "cast(id % 5 as int) AS grp", "concat('w', id) AS word")
    df.write.parquet(str(path))
    return str(path)


@pytest.fixture(scope="module")
def parts(base: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Partitioned by ``p`` in 0, 1, 2; ``id`` ascending over the three files of each."""
    path = tmp_path_factory.mktemp("parted") / "parts"
    df = base.range(0, 90, 1, 1).selectExpr(
        "id % 30 AS id", "cast(id / 30 as int) AS p", "cast(id % 30 / 10 as int) AS f"
    )
    df.repartitionByRange(9, "p", "f").drop("f").write.partitionBy("p").parquet(str(path))
    return str(path)


def same(on: SparkSession, query: Callable[[SparkSession], DataFrame]) -> DataFrame:
    """Run a query with skipping on and off, compare the rows, return the frame that was run with it on."""
    on.conf.set(ENABLED, "false")
    expected = sorted(map(str, query(on).collect()))
    on.conf.set(ENABLED, "true")
    df = query(on)
    assert sorted(map(str, df.collect())) == expected
    return df


@pytest.fixture
def t(on: SparkSession, honest: Honest, table: str, know: Callable[..., None]) -> SparkSession:
    know(honest, table)
    on.read.parquet(table).createOrReplaceTempView("t")
    return on


@pytest.mark.in_turn("adaptive")
@pytest.mark.parametrize("adaptive", ["true", "false"])
@pytest.mark.parametrize(
    ("sql", "read"),
    [
        ("SELECT * FROM t WHERE id = 77", [1]),
        ("SELECT * FROM T WHERE ID = 77", [1]),
        ("SELECT * FROM t WHERE id < 30 OR id >= 190", [3]),
        ("SELECT * FROM t WHERE NOT (id < 180)", [1]),
        ("SELECT * FROM t WHERE id BETWEEN 35 AND 45", [2]),
        ("SELECT * FROM t WHERE id IN (1, 2, 3, 199)", [2]),
        ("SELECT * FROM t WHERE id IN (1,2,3,4,5,6,7,8,9,10,11,12,13,199)", [2]),
        ("SELECT * FROM t WHERE word LIKE 'w19%' AND id > 150", [1]),
        ("SELECT * FROM t WHERE id > 1000", [0]),
        ("SELECT count(*), max(id) FROM t WHERE id > 1000", [0]),
        ("SELECT a.id, b.word FROM t a JOIN t b ON a.id = b.id WHERE a.id = 42", [1, 1]),
        ("SELECT a.id FROM t a LEFT JOIN t b ON a.id = b.id + 100 WHERE a.id < 20 AND b.id IS NULL", [1, 10]),
        ("SELECT id FROM t WHERE id < 20 UNION ALL SELECT id FROM t WHERE id >= 180", [1, 1]),
        ("WITH c AS (SELECT * FROM t WHERE id < 40) SELECT grp, sum(id) FROM c GROUP BY grp", [2]),
        ("SELECT * FROM t WHERE id > (SELECT max(id) - 3 FROM t WHERE id < 20) AND id < 40", [2, 1]),
        ("SELECT * FROM (SELECT id + 1 AS j, word FROM t) WHERE j = 78", None),
        ("SELECT id, word FROM t WHERE id < 100 ORDER BY id DESC LIMIT 7", [5]),
    ],
)
def test_sql(t: SparkSession, sql: str, read: list[int] | None, adaptive: str) -> None:
    t.conf.set("spark.sql.adaptive.enabled", adaptive)
    df = same(t, lambda spark: spark.sql(sql))
    if read is not None:
        # a scan that adaptive execution found to be empty may be gone from the plan
        assert sorted(num_files(df)) == sorted(read) or (
            adaptive == "true" and read == [0] and num_files(df) in ([], [0])
        )
    assert set(file_indexes(df)) <= {"SkippingFileIndex"}


@pytest.mark.parametrize("adaptive", ["true", "false"])
def test_a_condition_above_a_limit_is_not_used(t: SparkSession, honest: Honest, adaptive: str) -> None:
    t.conf.set("spark.sql.adaptive.enabled", adaptive)  # with it on, the limit ends the stage in any case
    t.sql("SELECT * FROM (SELECT id FROM t LIMIT 200) WHERE id = 7").collect()
    assert [request["filters"] for request in honest.requests] == [[[]]]  # asked because of the limit alone


def test_a_subquery_is_no_column_whatever_columns_are_called(
    on: SparkSession, honest: Honest, tmp_path: Path, know: Callable[..., None]
) -> None:
    pq.write_table(pa.table({"": [False], "id": [1]}), tmp_path / "a.parquet")
    know(honest, str(tmp_path))
    on.range(3).createOrReplaceTempView("three")
    on.read.parquet(str(tmp_path)).createOrReplaceTempView("nameless")
    same(on, lambda spark: spark.sql("SELECT id FROM nameless WHERE (SELECT max(id) > 1 FROM three)"))
    (trees,) = honest.requests[-1]["filters"]
    assert "AttributeReference" not in str(trees)


def test_dataframe_and_rows_files(t: SparkSession, table: str) -> None:
    df = same(t, lambda spark: spark.read.parquet(table).where("id >= 180").select("id", "_metadata.file_path"))
    assert num_files(df) == [1]
    assert len(files_of_rows(t.read.parquet(table).where("id >= 180"))) == 1


def test_metadata_columns_are_opaque(t: SparkSession, table: str, honest: Honest) -> None:
    df = t.read.parquet(table).where("_metadata.file_size > 0 AND id < 20")
    df.collect()
    assert num_files(df) == [1]
    assert any("a metadata column" in str(tree) for tree in honest.requests[-1]["filters"][0])


def test_spark_prunes_by_metadata_columns(t: SparkSession, table: str) -> None:
    """Spark itself leaves files out of a listing by their names and sizes, and must still do so with skipping on."""
    name = sorted(path.name for path in Path(table).glob("*.parquet"))[3]

    def named(spark: SparkSession, also: str = "true") -> DataFrame:
        return spark.read.parquet(table).where(f"_metadata.file_name = '{name}' AND {also}")

    assert num_files(same(t, named)) == [1]
    assert num_files(same(t, lambda spark: named(spark, "grp < 9"))) == [1]
    assert num_files(same(t, lambda spark: named(spark, "id < 20"))) == [0]
    assert num_files(same(t, lambda spark: spark.read.parquet(table).where("_metadata.file_size < 0"))) == [0]


def test_python_function(t: SparkSession, table: str, honest: Honest) -> None:
    def late(value):  # type: ignore[no-untyped-def]  # Spark would read hints as a request for Arrow
        return value >= 170

    honest.functions["late"] = late
    function = F.udf(late, "boolean", useArrow=False)
    for adaptive in ("true", "false"):
        t.conf.set("spark.sql.adaptive.enabled", adaptive)
        df = same(t, lambda spark: spark.read.parquet(table).where(function("id") & F.expr("id < 190")).select("word"))
        assert num_files(df) == [2]
    (tree,) = [tree for tree in honest.requests[-1]["filters"][0] if tree["c"] == "PythonUDF"]
    assert set(tree["a"]) == {"name", "code"}  # nothing that differs from plan to plan


def test_partition_values_are_put_into_the_filter(
    on: SparkSession, honest: Honest, parts: str, know: Callable[..., None]
) -> None:
    know(honest, parts, "id")
    query = "(p = 0 AND id < 5) OR (p = 1 AND id >= 25) OR (p = 2 AND id < p - 1)"
    df = same(on, lambda spark: spark.read.parquet(parts).where(query))
    assert num_files(df) == [3]
    assert len(honest.requests[-1]["filters"]) == 3
    df = same(on, lambda spark: spark.read.parquet(parts).where("p = 1 OR id < 3"))
    assert num_files(df) == [3 + 2]
    df = same(on, lambda spark: spark.read.parquet(parts).where("id = p * 10 + 1"))
    assert num_files(df) == [3]


def test_dynamic_partition_pruning(
    on: SparkSession, honest: Honest, parts: str, table: str, know: Callable[..., None]
) -> None:
    know(honest, parts, "id")
    know(honest, table)
    on.read.parquet(parts).createOrReplaceTempView("f")
    on.read.parquet(table).createOrReplaceTempView("d")
    sql = "SELECT f.id, d.word FROM f JOIN d ON f.p = d.grp WHERE d.id = 1 AND f.id < 10"
    df = same(on, lambda spark: spark.sql(sql))
    assert sorted(num_files(df))[0] == 1
    assert all(n <= 3 for n in num_files(df))


def test_two_scalar_subqueries_over_one_table(t: SparkSession, honest: Honest) -> None:
    """Spark 4.3 merges two scans after filters were pushed down: the filter of one is not that of the merged scan."""
    same(t, lambda spark: spark.sql("SELECT (SELECT sum(id) FROM t WHERE id < 20), (SELECT count(word) FROM t)"))
    same(
        t,
        lambda spark: spark.sql(
            "SELECT (SELECT sum(id) FROM t WHERE id < 20), (SELECT max(id) FROM t WHERE id >= 180)"
        ),
    )
    same(
        t,
        lambda spark: spark.sql(
            "SELECT (SELECT sum(id) FROM t WHERE id < 20 OR grp = 9), (SELECT count(1) FROM t WHERE word > 'w5')"
        ),
    )
    assert honest.requests


def test_cache(t: SparkSession, table: str) -> None:
    cached = t.read.parquet(table).where("id < 40").cache()
    try:
        assert cached.count() == 40
        assert cached.where("id < 5").count() == 5
        assert t.read.parquet(table).where("id >= 40").count() == FILES * ROWS - 40
    finally:
        cached.unpersist()


def test_a_self_join_still_reuses_its_exchange(t: SparkSession) -> None:
    t.conf.set("spark.sql.adaptive.enabled", "false")
    t.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
    sql = """SELECT a.grp, count(*) FROM t a JOIN t b ON a.grp = b.grp AND a.word = b.word
             WHERE a.id < 40 AND b.id < 40 GROUP BY 1"""
    plans = []
    for enabled in ("false", "true"):
        t.conf.set(ENABLED, enabled)
        plans.append(t.sql(sql)._jdf.queryExecution().executedPlan().toString().count("ReusedExchange"))
    assert plans == [1, 1]


def test_statistics_and_join_strategy_are_as_without(t: SparkSession) -> None:
    sql = "SELECT /*+ MERGE(b) */ a.id FROM t a JOIN t b ON a.id = b.id WHERE a.id < 20"
    for query in (sql, sql.replace("/*+ MERGE(b) */", "")):
        shapes = []
        for enabled in ("false", "true"):
            t.conf.set(ENABLED, enabled)
            execution = t.sql(query)._jdf.queryExecution()
            lines = execution.sparkPlan().toString().split("\n")
            names = [line.strip("*+-: ()0123456789").split(" ")[0] for line in lines]
            shapes.append((names, str(execution.optimizedPlan().stats().sizeInBytes())))
        assert shapes[0] == shapes[1]


@pytest.mark.parametrize("format", ["csv", "json", "orc", "text"])
def test_formats(on: SparkSession, honest: Honest, know: Callable[..., None], tmp_path: Path, format: str) -> None:
    df = on.range(0, 100, 1, 5).selectExpr("id", "concat('x', id) AS s")
    if format == "text":
        df = df.selectExpr("concat('line', id div 20) AS value")
    options = {"header": "true", "inferSchema": "true"} if format == "csv" else {}
    df.write.options(**options).format(format).save(str(tmp_path / "d"))
    know(honest, tmp_path / "d", format=format, **options)
    where = "value = 'line3'" if format == "text" else "id < 20"
    read = same(on, lambda spark: spark.read.format(format).options(**options).load(str(tmp_path / "d")).where(where))
    assert num_files(read) == [1]


@pytest.mark.parametrize("partitioned", [False, True])
def test_tables(on: SparkSession, honest: Honest, know: Callable[..., None], partitioned: bool) -> None:
    name = f"bridge_table_{partitioned}".lower()
    by = "PARTITIONED BY (q)" if partitioned else ""
    on.sql(
        f"""CREATE TABLE {name} USING parquet {by} AS
            SELECT /*+ REPARTITION_BY_RANGE(4, id) */ id, int(id % 2) AS q FROM range(80)"""
    )
    try:
        know(honest, name, "id")
        before = len(honest.requests)
        df = same(on, lambda spark: spark.table(name).where("id < 20" + (" AND q = 1" if partitioned else "")))
        assert num_files(df) == [1]
        assert honest.requests[before]["table"] == f"spark_catalog.default.{name}"
        assert relations.relation_facts(on.table(name))["table"] == f"spark_catalog.default.{name}"
        # writing reads the source through the scan too
        on.sql(f"CREATE TABLE {name}_copy USING parquet AS SELECT * FROM {name} WHERE id < 20")
        assert on.table(f"{name}_copy").count() == 20
        on.sql(f"INSERT OVERWRITE {name}_copy SELECT * FROM {name} WHERE id >= 60")
        assert on.table(f"{name}_copy").count() == 20
    finally:
        on.sql(f"DROP TABLE {name}")
        on.sql(f"DROP TABLE IF EXISTS {name}_copy")


def test_streams_are_left_alone(on: SparkSession, table: str, tmp_path: Path, honest: Honest) -> None:
    schema = on.read.parquet(table).schema
    stream = on.readStream.schema(schema).parquet(table).where("id < 5")
    query = (
        stream.writeStream.format("memory")
        .queryName("streamed")
        .option("checkpointLocation", str(tmp_path))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    assert on.table("streamed").count() == 5
    assert honest.requests == []


def test_requests_of_wide_tables_fit_into_what_py4j_sends_at_once(
    on: SparkSession, honest: Honest, know: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More than 8 KiB took 40 ms, for an acknowledgement."""
    path = tmp_path / "wide"
    columns = [f"id + {number} AS `colonne é {number}`" for number in range(120)]
    on.range(0, 40, 1, 4).selectExpr("id", *columns).write.parquet(str(path))
    know(honest, path, columns="id")
    sent: list[str] = []
    apply = bridge._Callback.apply

    def heard(self: bridge._Callback, request: str) -> bytes:
        sent.append(request)
        return apply(self, request)

    monkeypatch.setattr(bridge._Callback, "apply", heard)
    assert num_files(same(on, lambda spark: spark.read.parquet(str(path)).where("id = 3"))) == [1]
    (request,) = honest.requests
    assert [field["name"] for field in request["dataSchema"]["fields"]][-1] == "colonne é 119"
    assert [len(text) < 8_000 < len(json.dumps(request)) for text in sent] == [True]


def test_a_changed_object_is_read(on: SparkSession, honest: Honest, know: Callable[..., None], tmp_path: Path) -> None:
    path = tmp_path / "d"
    on.range(0, 40, 1, 4).write.parquet(str(path))
    know(honest, path)
    assert num_files(same(on, lambda spark: spark.read.parquet(str(path)).where("id = 3"))) == [1]
    import os

    victim = sorted(path.glob("*.parquet"))[-1]
    os.utime(victim, (1_000_000_000, 1_000_000_000))
    assert num_files(same(on, lambda spark: spark.read.parquet(str(path)).where("id = 3"))) == [2]
    on.range(3, 4).coalesce(1).write.mode("append").parquet(str(path))
    assert num_files(same(on, lambda spark: spark.read.parquet(str(path)).where("id = 3"))) == [3]
