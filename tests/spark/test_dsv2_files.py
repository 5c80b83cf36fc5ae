"""Files that Spark reads as DSv2 sources (`useV1SourceList` without their format): they skip as the others do."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import es_skipping as esk
from tests.spark.objects_read import batch_scans, files_of_batches, num_files
from tests.spark.skipping_on_off import age, same_rows

Read = Callable[[SparkSession], DataFrame]

V1_LIST = "spark.sql.sources.useV1SourceList"
FORMATS = ["parquet", "orc", "csv", "json", "text"]


@pytest.fixture
def v2(spark: SparkSession) -> SparkSession:
    """A session that reads every format as a DSv2 source."""
    spark.conf.set(V1_LIST, "")
    spark.conf.set("spark.es_skipping.strict", "true")
    return spark


def written(spark: SparkSession, path: str) -> str:
    """Four files of ten rows each, with an index of `id`."""
    rows = spark.range(0, 40, 1, 4).selectExpr("id", "id % 3 AS k", "named_struct('a', id, 'B', id % 2) AS s")
    rows.write.parquet(path)
    age(path)
    esk.Dataset(spark, path).create_indexes(esk.MinMax("id"), esk.MinMax("s.a"))
    return path


@pytest.fixture(scope="module")
def shared(base: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """Files for tests that leave them as they are, and their store."""
    session, folder = base.newSession(), tmp_path_factory.mktemp("dsv2")
    store = (folder / "store").as_uri()
    for key, value in ((V1_LIST, ""), ("spark.es_skipping.store.url", store)):
        session.conf.set(key, value)
    return written(session, str(folder / "lake")), store


@pytest.fixture
def lake(v2: SparkSession, shared: tuple[str, str]) -> str:
    path, store = shared
    v2.conf.set("spark.es_skipping.store.url", store)
    return path


def opened(spark: SparkSession, query: str | Read) -> list[int]:
    """How many files each DSv2 scan opens; the rows are those with skipping off."""
    return [len(files) for files in files_of_batches(same_rows(spark, query))]


def where(path: str, condition: str) -> Read:
    return lambda session: session.read.parquet(path).where(condition)


@pytest.mark.parametrize("format", FORMATS)
def test_every_format_skips(v2: SparkSession, tmp_path: Path, format: str) -> None:
    path = str(tmp_path / "lake")
    column = "concat('w', id) AS value" if format == "text" else "id"
    v2.range(0, 40, 1, 4).selectExpr(column).write.format(format).save(path)
    age(path)
    schema = "value STRING" if format == "text" else "id BIGINT"
    condition = "value = 'w33'" if format == "text" else "id = 33"
    dataset = esk.Dataset(v2, path, format=format, schema=schema)
    dataset.create_indexes(esk.ValueList("value" if format == "text" else "id"))

    def read(session: SparkSession) -> DataFrame:
        return session.read.format(format).schema(schema).load(path).where(condition)

    assert opened(v2, read) == [1]
    frame = read(v2)
    with esk.observe(v2) as report:
        assert len(frame.collect()) == 1
    assert [(scan.objects_total, scan.objects_skipped) for scan in report.scans] == [(4, 3)]
    assert num_files(frame) == [], "there is no file scan of the older interface in the plan"
    (node,) = batch_scans(frame)
    assert node.metrics().apply("numOutputRows").value() <= 10
    assert node.metrics().apply("filesSkipped").value() == 3
    v2.conf.set(V1_LIST, format)
    assert num_files(same_rows(v2, read)) == [1], "both interfaces use one index"
    assert dataset.refresh().unchanged == 4


def requests(spark: SparkSession, frame: DataFrame) -> list[dict[str, Any]]:
    """The requests that a frame's scans would send, without what numbers them and without the filters."""
    planned: Any = spark._jvm.io.esskipping.report.PlannedScans.of(  # type: ignore[union-attr]
        spark._jsparkSession, frame._jdf.queryExecution().analyzed()
    )
    found = [json.loads(scan.request()) for scan in planned]
    return [{k: v for k, v in one.items() if k not in ("scan", "filters")} for one in found]


@pytest.mark.parametrize("format", FORMATS)
def test_the_request_is_that_of_the_older_interface(v2: SparkSession, tmp_path: Path, format: str) -> None:
    """Else an index would not be known for what it was built with."""
    path = str(tmp_path / "lake")
    columns = ["concat('w', id) AS value"] if format == "text" else ["id", "concat('w', id) AS Name"]
    v2.range(0, 40, 1, 4).selectExpr(*columns, "id % 2 AS p").write.format(format).partitionBy("p").save(path)
    esk.enable(v2)
    options = {"header": "true", "nullValue": "w3"} if format == "csv" else {"recursiveFileLookup": "false"}
    for schema in ("value STRING, p INT" if format == "text" else "id BIGINT, Name STRING, p INT", None):
        found = []
        for listed in ("", format):
            v2.conf.set(V1_LIST, listed)
            reader = v2.read.format(format).options(**options)
            frame = (reader.schema(schema) if schema else reader).load(path).where("p = 1")
            found += requests(v2, frame)
        assert len(found) == 2
        assert found[0] == found[1]


def test_other_options_are_other_values(v2: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "lake")
    v2.range(0, 40, 1, 4).selectExpr("nullif(id, 33) AS id").write.csv(path, nullValue="7")
    age(path)
    esk.Dataset(v2, path, format="csv", schema="id BIGINT", options={"nullValue": "7"}).create_indexes(esk.MinMax("id"))

    def read(session: SparkSession, **options: str) -> DataFrame:
        return session.read.csv(path, schema="id BIGINT", **options)

    assert opened(v2, lambda session: read(session, nullValue="7").where("id = 3")) == [1]
    assert opened(v2, lambda session: read(session).where("id = 3")) == [4]
    assert len(read(v2).where("id = 7").collect()) == 2, "once itself, and once written for null"


@pytest.mark.parametrize("adaptive", ["true", "false"])
def test_aggregates_of_nothing(v2: SparkSession, lake: str, tmp_path: Path, adaptive: str) -> None:
    """An aggregate without groups has one row, whatever is left of its partitions."""
    v2.conf.set("spark.sql.adaptive.enabled", adaptive)
    single = str(tmp_path / "single")
    v2.range(0, 10, 1, 1).write.parquet(single)
    age(single)
    esk.Dataset(v2, single).create_indexes(esk.MinMax("id"))
    for path in (lake, single):

        def counted(session: SparkSession, path: str = path) -> DataFrame:
            return session.read.parquet(path).where("id = 300").selectExpr("count(*)", "max(id)")

        assert opened(v2, counted) in ([0], []), "adaptive execution may have replaced it by an empty relation"
        assert [tuple(row) for row in counted(v2).collect()] == [(0, None)]
        grouped = v2.read.parquet(path).where("id = 300").groupBy("id").count()
        assert grouped.collect() == []
    empty = str(tmp_path / "empty")
    v2.range(0).write.parquet(empty)
    assert v2.read.parquet(empty).where("id = 300").selectExpr("count(*)").collect()[0][0] == 0


@pytest.mark.parametrize("format", ["parquet", "orc"])
def test_aggregates_from_footers_are_left_alone(v2: SparkSession, tmp_path: Path, format: str) -> None:
    v2.conf.set(f"spark.sql.{format}.aggregatePushdown", "true")
    path = str(tmp_path / "lake")
    v2.range(0, 40, 1, 4).selectExpr("id", "id % 2 AS p").write.format(format).partitionBy("p").save(path)
    age(path)
    esk.Dataset(v2, path, format=format).create_indexes(esk.MinMax("id"))
    for query in (
        "SELECT min(id), max(id), count(*) FROM {}",
        "SELECT min(id), count(id) FROM {} WHERE p = 1",
        "SELECT * FROM (SELECT p, max(id) AS id FROM {} GROUP BY p) WHERE id < 39",
    ):

        def read(session: SparkSession, query: str = query) -> DataFrame:
            session.read.format(format).load(path).createOrReplaceTempView("footers")
            return session.sql(query.format("footers"))

        frame = same_rows(v2, read)
        with esk.observe(v2) as report:
            read(v2).collect()
        assert "PushedAggregation: [M" in frame._jdf.queryExecution().toString(), query
        assert not report.scans, query
    assert opened(
        v2, lambda session: session.read.format(format).load(path).where("id = 3").selectExpr("count(*)")
    ) == [1]


def test_partitions_and_files(v2: SparkSession, tmp_path: Path) -> None:
    """Spark prunes partitions; a filter of both kinds of columns becomes one filter for each partition."""
    path = str(tmp_path / "lake")
    for part in range(3):
        rows = v2.range(100 * part, 100 * part + 40, 1, 4)
        rows.selectExpr("id", f"{part} AS Part", "concat('v', id) AS v").write.mode("append").partitionBy(
            "Part"
        ).parquet(path)
    age(path)
    esk.Dataset(v2, path).create_indexes(esk.MinMax("id"))
    assert opened(v2, where(path, "part = 1 AND ID = 103")) == [1]
    assert opened(v2, where(path, "part = 1 AND id = 3")) in ([0], [])
    assert opened(v2, where(path, "part = 1 OR id = 3")) == [5]
    assert opened(v2, where(path, "(part = 1 AND id < 110) OR (part = 2 AND id > 235)")) == [2]
    assert opened(v2, where(path, "part < 2")) == [8]
    assert opened(v2, lambda session: session.read.parquet(path).where("part = 1 OR id = 3").selectExpr("v")) == [5]


@pytest.mark.parametrize("adaptive", ["true", "false"])
def test_one_directory_twice_in_a_query(v2: SparkSession, lake: str, adaptive: str) -> None:
    """Scans under different conditions are not one; equal ones share their exchange and their subquery as before."""
    v2.conf.set("spark.sql.adaptive.enabled", adaptive)
    v2.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
    # nothing but the conditions, which are not pushed into files, tells the scans apart
    one, other = (f"SELECT k, count(*) AS n FROM lake WHERE s.a + 0 = {a} OR id = {a} GROUP BY k" for a in (3, 33))

    def view(query: str) -> Read:
        def read(session: SparkSession) -> DataFrame:
            session.read.parquet(lake).createOrReplaceTempView("lake")
            return session.sql(query)

        return read

    assert len(same_rows(v2, view(f"{one} UNION ALL {other}")).collect()) == 2
    assert len(same_rows(v2, view(f"SELECT * FROM ({one}) JOIN ({other}) USING (k, n)")).collect()) == 1
    union = "SELECT id FROM lake WHERE id = 3 UNION ALL SELECT id FROM lake WHERE id = 33"
    assert opened(v2, view(union)) == [1, 1]
    newest = "(SELECT max(id) FROM lake WHERE id < 15)"
    subquery = f"SELECT id FROM lake WHERE id = {newest} OR id = 1 + {newest}"
    assert len(same_rows(v2, view(subquery)).collect()) == 2
    join = "SELECT a.id FROM lake a JOIN lake b ON a.id = b.id WHERE a.id IN (3, 4)"
    assert opened(v2, view(join)) == [1], "one exchange serves both sides"


def test_equal_scans_are_equal_and_others_are_not(v2: SparkSession, lake: str) -> None:
    def scan(condition: str) -> Any:
        (node,) = batch_scans(same_rows(v2, where(lake, condition)))
        return node.canonicalized()

    # a condition that is not pushed: Spark's own scans are equal
    same, twin, other = scan("pmod(id, 50) = 3"), scan("pmod(id, 50) = 3"), scan("pmod(id, 50) = 33")
    assert same.equals(twin)
    assert same.hashCode() == twin.hashCode()
    assert not same.equals(other)
    assert not same.scan().equals(other.scan())


def test_files_in_parts(v2: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "lake")
    v2.range(0, 4000, 1, 4).selectExpr("id", "concat('a long value ', id) AS v").write.json(path)
    age(path)
    esk.Dataset(v2, path, format="json").create_indexes(esk.MinMax("id"))
    v2.conf.set("spark.sql.files.maxPartitionBytes", "5000")
    frame = same_rows(v2, lambda session: session.read.json(path).where("id = 3 OR id = 2999"))
    (files,) = files_of_batches(frame)
    assert len(files) == 2
    assert batch_scans(frame)[0].inputPartitions().size() > 2
    assert len(frame.collect()) == 2


def test_files_that_are_new_or_changed_are_read(v2: SparkSession, tmp_path: Path) -> None:
    lake = written(v2, str(tmp_path / "lake"))
    v2.range(300, 310, 1, 1).selectExpr("id", "0L AS k", "named_struct('a', id, 'B', 0L) AS s").write.mode(
        "append"
    ).parquet(lake)
    assert opened(v2, where(lake, "id = 3")) == [2]
    assert opened(v2, where(lake, "id = 303")) == [1]
    frame = v2.read.parquet(lake).where("id = 3")
    age(Path(lake), days=3)
    assert len(frame.collect()) == 1
    assert opened(v2, where(lake, "id = 3")) == [5], "each has another time"


def test_nested_and_computed_columns(v2: SparkSession, lake: str) -> None:
    assert opened(v2, where(lake, "S.A = 33")) == [1]
    assert opened(v2, lambda session: session.read.parquet(lake).where("s.a = 33").selectExpr("s.b")) == [1]
    assert opened(
        v2, lambda session: session.read.parquet(lake).selectExpr("id AS renamed", "k").where("renamed = 33")
    ) == [1]
    assert opened(v2, lambda session: session.read.parquet(lake).limit(5).where("id = 33")) == [4]
    assert opened(v2, where(lake, "id = 33 AND rand() >= 0 AND input_file_name() != ''")) == [1]


def test_explaining_asks_nothing(v2: SparkSession, lake: str) -> None:
    esk.enable(v2)
    frame = v2.read.parquet(lake).where("id = 33")
    with esk.observe(v2) as report:
        text = frame._jdf.queryExecution().executedPlan().toString()
    assert "[skipping]" in text
    assert not report.scans
    assert "3 of 4 objects would be skipped" in str(esk.explain(frame))
    assert "PushedFilters: [IsNotNull(id), EqualTo(id,33)]" in frame._sc._jvm.PythonSQLUtils.explainString(  # type: ignore[union-attr]
        frame._jdf.queryExecution(), "formatted"
    )


def test_tables_of_the_catalog_and_writes(v2: SparkSession, lake: str, tmp_path: Path) -> None:
    """Spark reads tables of its own catalog by the older interface, whatever the setting."""
    v2.sql("DROP TABLE IF EXISTS dsv2_table")
    v2.read.parquet(lake).selectExpr("id", "k").repartitionByRange(4, "id").write.bucketBy(2, "k").saveAsTable(
        "dsv2_table"
    )
    try:
        first = v2.table("dsv2_table").inputFiles()[0]
        age(Path(first.removeprefix("file:")).parent)
        v2.catalog.refreshTable("dsv2_table")
        esk.Dataset(v2, table="dsv2_table").create_indexes(esk.ValueList("id"))
        frame = same_rows(v2, "SELECT * FROM dsv2_table WHERE id = 33")
        assert num_files(frame) == [1]
    finally:
        v2.sql("DROP TABLE dsv2_table")
    copy = str(tmp_path / "copy")
    esk.enable(v2)
    v2.read.parquet(lake).where("id IN (3, 33)").write.parquet(copy)
    assert sorted(row.id for row in v2.read.parquet(copy).collect()) == [3, 33]


def test_a_store_that_fails_skips_nothing(v2: SparkSession, lake: str, tmp_path: Path) -> None:
    v2.conf.set("spark.es_skipping.strict", "false")
    v2.conf.set("spark.es_skipping.store.url", "http://127.0.0.1:9")
    assert opened(v2, where(lake, "id = 33")) == [4]
    v2.conf.set("spark.es_skipping.strict", "true")
    with pytest.raises(Exception, match=r"127\.0\.0\.1"):
        v2.read.parquet(lake).where("id = 33").collect()
