"""SQL statements on skipping indexes: what they do, what parsing does not do, and where errors point."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import ParseException
from pyspark.sql import SparkSession

import es_skipping as esk
from tests.spark.objects_read import num_files
from tests.spark.skipping_on_off import age


@pytest.fixture
def path(spark: SparkSession, tmp_path: Path) -> str:
    folder = tmp_path / "d"
    spark.range(0, 100, 1, 5).selectExpr("id", "id % 7 AS day", "'it''s' AS `a word`").write.parquet(str(folder))
    age(folder)
    esk.enable(spark)
    return str(folder)


def run(spark: SparkSession, sql: str) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in spark.sql(sql).collect()]


@pytest.fixture(params=["parquet", "elasticsearch"])
def store(request: pytest.FixtureRequest, spark: SparkSession) -> None:
    if request.param == "elasticsearch":
        spark.conf.set("spark.es_skipping.store.url", request.getfixturevalue("elasticsearch_url"))


@pytest.mark.usefixtures("store")
def test_a_round_trip(spark: SparkSession, path: str) -> None:
    table = f"parquet.`{path}`"
    create = f"CREATE SKIPPING INDEX ON {table} (minmax(id), bloom_filter(day, fpp => 0.001))"
    assert run(spark, create) == [(5, 0, 0, 0, 0)]
    df = spark.sql(f"SELECT * FROM {table} WHERE id = 3")
    assert len(df.collect()) == 1
    assert num_files(df) == [1]
    assert sorted(run(spark, f"SHOW SKIPPING INDEX ON {table}")) == [("BloomFilter(day)",), ("MinMax(id)",)]
    described = {row[0]: row[1:4] for row in run(spark, f"describe skipping index on {table};")}
    assert described["BloomFilter"] == ("day", "fpp => 0.001", 5)
    assert described["MinMax"] == ("id", "", 5)
    assert run(spark, f"REFRESH SKIPPING INDEX ON {table}") == [(0, 0, 0, 5, 0)]
    for argument in (f"'parquet.`{path}`'", f'TABLE => "parquet.`{path}`"'):
        assert run(spark, f"CALL es_skipping.health({argument})") == [(5, 5, 1.0, 0, 0, 0, 0)]
    assert run(spark, f"OPTIMIZE SKIPPING INDEX ON {table}") == []
    ((plan,),) = run(spark, f"EXPLAIN SKIPPING SELECT * FROM {table} WHERE id = 3")
    assert "4 of 5 objects would be skipped" in plan
    assert run(spark, f"DROP SKIPPING INDEX ON {table} (minmax(id))") == []
    assert run(spark, f"SHOW SKIPPING INDEX ON {table}") == [("BloomFilter(day)",)]
    assert run(spark, f"DROP SKIPPING INDEX ON {table}") == []
    assert not esk.Dataset(spark, path).is_indexed()
    assert run(spark, f"DROP SKIPPING INDEX IF EXISTS ON {table}") == []


def test_existing_indexes_are_an_error_unless_they_may_exist(spark: SparkSession, path: str) -> None:
    run(spark, f"CREATE SKIPPING INDEX ON parquet.`{path}` (minmax(id))")
    with pytest.raises(Exception, match=r"CREATE SKIPPING INDEX: .*MinMax\(id\)"):
        run(spark, f"CREATE SKIPPING INDEX ON parquet.`{path}` (MinMax(id))")
    run(spark, f"CREATE SKIPPING INDEX IF NOT EXISTS ON parquet.`{path}` (min_max(id), value_list(`a word`))")
    assert len(run(spark, f"SHOW SKIPPING INDEXES ON parquet.`{path}`")) == 2


def test_tables_and_expressions(spark: SparkSession, path: str) -> None:
    spark.sql(f"CREATE TABLE sql_statements USING parquet LOCATION '{path}'")
    try:
        run(
            spark,
            "CREATE SKIPPING INDEX\nON sql_statements -- a comment\n(minmax(id + day), prefix(`a word`, length => 2))",
        )
        shown = [row[0] for row in run(spark, "SHOW SKIPPING INDEX ON sql_statements")]
        assert len(shown) == 2
    finally:
        spark.sql("DROP TABLE sql_statements")


@pytest.mark.parametrize("explain", ["EXPLAIN", "EXPLAIN EXTENDED", "EXPLAIN FORMATTED"])
def test_explain_create_does_nothing(spark: SparkSession, path: str, explain: str) -> None:
    ((plan,),) = run(spark, f"{explain} CREATE SKIPPING INDEX ON parquet.`{path}` (minmax(id))")
    assert "SkippingCommand" in plan or "Skipping" in plan
    assert not esk.Dataset(spark, path).is_indexed()


def test_parsing_does_nothing(spark: SparkSession, path: str) -> None:
    parser: Any = spark._jsparkSession.sessionState().sqlParser()
    plan = parser.parsePlan(f"CREATE SKIPPING INDEX ON parquet.`{path}` (minmax(id))")
    assert "CREATE SKIPPING INDEX" in str(plan.toString())
    assert not esk.Dataset(spark, path).is_indexed()


@pytest.mark.parametrize(
    ("statement", "place", "hint"),
    [
        ("CREATE SKIPPING INDEX t (minmax(id))", "t (minmax", "expected ON and a table"),
        ("CREATE SKIPPING INDEX ON t", None, "expected a list of indexes"),
        ("CREATE SKIPPING INDEX ON t ()", "()", "expected a list of indexes"),
        ("CREATE SKIPPING INDEX ON t (id)", "id)", "expected an index"),
        ("CREATE SKIPPING INDEX ON t (minmax(id)) WITH", "WITH", "expected the end"),
        ("CREATE SKIPPING INDEX ON t (minmax(id)) + 1", "+ 1", "expected the end"),
        ("CREATE SKIPPING INDEX ON t (minmax(DISTINCT id))", "minmax(D", "expected an index"),
        ("CREATE SKIPPING INDEX ON t (DISTINCT minmax(id))", "(D", "expected a list of indexes"),
        ("CREATE SKIPPING INDEX ON t (minmax(id)", None, ""),
        ("CREATE SKIPPING INDEX ON 't' (minmax(id))", "'t'", ""),
        ("CREATE SKIPPING INDEX IF EXISTS ON t (minmax(id))", " IF EXISTS", "takes no IF EXISTS"),
        ("REFRESH SKIPPING INDEX ON t (minmax(id))", "(minmax", "takes no list"),
        ("DROP SKIPPING INDEX", None, "expected ON"),
        ("CALL es_skipping.helth('t')", "helth", "the procedures are es_skipping.health and es_skipping.advise"),
        ("CALL es_skipping.health(3)", "3)", "expected a table"),
        ("CALL es_skipping.health()", "()", "expected a table"),
        ("CALL es_skipping.health('t', 'u')", "'u'", "takes each of these once: table"),
        ("CALL es_skipping.health(budget => '1k')", "'1k'", "takes each of these once: table"),
        ("CALL es_skipping.advise('t', table => 'u')", "'u'", "takes each of these once: table, budget, log"),
        ("CALL es_skipping.advise('t', log => array(3))", "array", "expected a literal, or array(...) of literals"),
        ("EXPLAIN SKIPPING", None, "expected a query"),
        ("EXPLAIN SKIPPING SELEC 1", "SELEC", ""),
        ("EXPLAIN SKIPPING DROP TABLE t", "DROP", "expected a query"),
        ("EXPLAIN SKIPPING INSERT INTO t SELECT 1", "INSERT", "expected a query"),
        ("EXPLAIN SKIPPING WITH a AS (SELECT 1) INSERT INTO t SELECT * FROM a", "WITH a", "expected a query"),
        ("EXPLAIN SKIPPING EXECUTE IMMEDIATE 'DROP TABLE t'", "EXECUTE", "expected a query"),
        ("EXPLAIN SKIPPING CREATE SKIPPING INDEX ON t (minmax(id))", "SKIPPING INDEX", ""),
        ("EXPLAIN CREATE SKIPPING INDEX ON t (id)", "id)", "expected an index"),
    ],
)
def test_a_syntax_error_points_into_the_statement(
    spark: SparkSession, path: str, statement: str, place: str | None, hint: str
) -> None:
    with pytest.raises(ParseException) as raised:
        spark.sql("-- a line before\n" + statement)
    text = str(raised.value)
    assert hint in text
    if place is not None:
        assert f"(line 2, pos {statement.index(place)})" in text
        assert statement.rstrip(";") in text


@pytest.mark.parametrize("before", ["t\n\r\n", "`\U0001f600 (`", "t /* ( */ -- ("])
def test_positions_do_not_depend_on_what_stands_before(spark: SparkSession, path: str, before: str) -> None:
    with pytest.raises(ParseException) as raised:
        spark.sql(f"CREATE SKIPPING INDEX ON {before}\n  (minmax(id), id)")
    line = 2 + before.count("\n")
    assert f"(line {line}, pos 15)" in str(raised.value)
    assert "expected an index" in str(raised.value)


@pytest.mark.parametrize("index", ["minmx(id)", "minmax(id, length => 3)", "prefix(day, length => 'x')"])
def test_an_error_about_an_index_points_to_it(spark: SparkSession, path: str, index: str) -> None:
    statement = f"CREATE SKIPPING INDEX ON parquet.`{path}` (minmax(id), {index})"
    with pytest.raises(ParseException) as raised:
        spark.sql(statement)
    assert f"(line 1, pos {statement.index(index)})" in str(raised.value)
    assert index in str(raised.value)
    assert not esk.Dataset(spark, path).is_indexed()


@pytest.mark.parametrize("sql", ["SELECT 'skipping' AS skipping", "SELECT 1 /* CREATE SKIPPING INDEX ON t */"])
def test_other_statements_are_sparks(spark: SparkSession, path: str, sql: str) -> None:
    assert len(run(spark, sql)) == 1


def test_errors_of_datasets_name_the_statement(spark: SparkSession, path: str) -> None:
    with pytest.raises(Exception, match=r"REFRESH SKIPPING INDEX: .*nowhere"):
        spark.sql("REFRESH SKIPPING INDEX ON nowhere")
    with pytest.raises(Exception, match=r"CREATE SKIPPING INDEX: .*missing"):
        spark.sql(f"CREATE SKIPPING INDEX ON parquet.`{path}` (minmax(missing))")


def test_skipping_files_are_those_that_the_query_does_not_read(spark: SparkSession, path: str) -> None:
    table = f"parquet.`{path}`"
    run(spark, f"CREATE SKIPPING INDEX ON {table} (minmax(id))")
    files = f"skipping_files('{table}', 'id IN (3, 45)')"
    read = {name for (name,) in run(spark, f"SELECT _metadata.file_path FROM {table} WHERE id IN (3, 45)")}
    assert {name for (name,) in run(spark, f"SELECT path FROM {files} WHERE NOT skipped")} == read
    assert len(read) == 2
    sizes = {f"file:{file}": file.stat().st_size for file in Path(path).glob("*.parquet")}
    assert dict(run(spark, f"SELECT path, size FROM {files}")) == sizes
    child = spark.newSession()
    named = f"SELECT count_if(skipped), count(*) FROM skipping_files(filter => 'false', table => '{table}')"
    assert run(child, named) == [(5, 5)]  # Spark reads none of them
    ((plan,),) = run(spark, f"EXPLAIN SELECT * FROM {files}")
    assert "LocalTableScan" in plan
    esk.disable(spark)
    with pytest.raises(Exception, match="skipping_files: skipping is off in this session"):
        run(spark, f"SELECT * FROM {files}")


def test_skipping_files_fails_where_a_look_up_fails(spark: SparkSession, path: str) -> None:
    run(spark, f"CREATE SKIPPING INDEX ON parquet.`{path}` (minmax(id))")
    spark.conf.set("spark.es_skipping.store.url", "http://127.0.0.1:9")
    with pytest.raises(Exception, match="skipping_files: the look-up failed, so that a query reads all files"):
        run(spark, f"SELECT * FROM skipping_files('parquet.`{path}`', 'id = 3')")


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        ("'{table}', 3", "give skipping_files a table and a filter"),
        ("'{table}'", "give skipping_files a table and a filter"),
        ("'{table}', 'id = 3', 'id = 4'", "give skipping_files a table and a filter"),
        ("'{table}', where => 'id = 3'", "give skipping_files a table and a filter"),
        ("'{table}', 'nothing = 3'", "`nothing` cannot be resolved"),
        ("'nowhere', 'id = 3'", "`nowhere` cannot be found"),
    ],
)
def test_an_error_of_skipping_files_points_to_it(spark: SparkSession, path: str, arguments: str, hint: str) -> None:
    with pytest.raises(Exception, match=re.escape(hint)) as raised:
        spark.sql(f"SELECT 1,\n  path FROM skipping_files({arguments.format(table=f'parquet.`{path}`')})")
    if "'," in arguments:
        assert re.search(r"line 2,? pos 12", str(raised.value))


def test_advise(spark: SparkSession, path: str) -> None:
    table = f"parquet.`{path}`"
    log = "array(" + ", ".join(f"'id = {at}'" for at in range(0, 100, 5)) + ")"
    found = run(spark, f"CALL es_skipping.advise(table => '{table}', budget => '50 MB', log => {log})")
    (created,) = [row for row in found if row[0] == "create"]
    assert "(id" in created[1]
    assert created[2] > 0
    assert 0.7 < created[3] <= 0.8  # 4 of 5 files
    assert created[4] <= created[3] <= created[5]
    assert not esk.Dataset(spark, path).is_indexed()
    (nothing,) = run(spark, f"CALL es_skipping.advise('{table}', 50000000, 'day = 3')")
    assert nothing[0] == "none"
    assert "No index helps" in nothing[-1]
    with pytest.raises(Exception, match=r"CALL es_skipping.advise: .*budget.*many"):
        run(spark, f"CALL es_skipping.advise('{table}', budget => 'many', log => 'id = 3')")
    with pytest.raises(Exception, match=r"CALL es_skipping.advise: .*quer"):
        run(spark, f"CALL es_skipping.advise('{table}')")  # there is no query log
