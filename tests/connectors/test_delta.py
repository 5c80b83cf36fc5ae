"""Delta tables: every index type on top of Delta's own pruning, and no row lost by deletes, time travel or renames."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import es_skipping as esk
from es_skipping.build import dataset as datasets
from es_skipping.build import update as build
from es_skipping.indexes.features import Features
from tests.connectors.equal import rows_on_and_off, run_on_and_off
from tests.spark.objects_read import num_files

ROWS = 400
FILES = 4
_numbers = itertools.count()

COLUMNS = [
    "id",
    f"concat('n', lpad(cast(pmod(id * 7919, {ROWS}) AS string), 6, '0')) AS name",
    "concat('/x/', floor(id / 100), '/', id % 100, '.end', floor(id / 100)) AS place",
    "concat('agent ', floor(id / 100), '.', id % 10) AS agent",
    "CAST(10 * floor(id / 100) + (id % 10) / 10 AS DOUBLE) AS lat",
    "CAST((id % 7) AS DOUBLE) AS lon",
    "struct(id % 5 AS a, concat('s', id) AS b) AS s",
]
"""Names are spread over all files, so that their minima and maxima rule nothing out."""


def name_of(id: int) -> str:
    return f"n{id * 7919 % ROWS:06d}"


Maker = Callable[..., str]


def _making(delta: SparkSession) -> Iterator[Maker]:
    """Makes a table of four files in the catalog."""
    made: list[str] = []

    def make(**properties: str) -> str:
        name = f"t{next(_numbers)}"
        made.append(name)
        given = {"delta.enableDeletionVectors": "true", **properties}
        text = ", ".join(f"'{key}' = '{value}'" for key, value in given.items())
        schema = delta.range(0).selectExpr(*COLUMNS).schema
        columns = ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in schema)
        delta.sql(f"CREATE TABLE {name} ({columns}) USING delta TBLPROPERTIES ({text})")
        append(delta, name, 0, ROWS, FILES)
        return name

    yield make
    for name in made:
        delta.sql(f"DROP TABLE IF EXISTS {name}")


@pytest.fixture
def maker(delta: SparkSession) -> Iterator[Maker]:
    """For a test that changes its tables."""
    yield from _making(delta)


@pytest.fixture(scope="module")
def unchanged(delta: SparkSession) -> Iterator[str]:
    """A table without statistics of its own: what is skipped, we skip. Tests leave it as it was, without an index."""
    for make in _making(delta):
        yield make(**{"delta.dataSkippingNumIndexedCols": "0"})


def append(spark: SparkSession, table: str, first: int, last: int, files: int = 1) -> None:
    spark.range(first, last, 1, files).selectExpr(*COLUMNS).write.format("delta").mode("append").saveAsTable(table)


def opened(spark: SparkSession, sql: str, rows: int | None = None) -> int:
    """How many files the query opens, after it was seen to have the rows that it has with skipping off."""
    found, df = run_on_and_off(spark, sql)
    if rows is not None:
        assert len(found) == rows, sql
    return sum(num_files(df))


def point(table: str, id: int) -> str:
    return f"SELECT * FROM {table} WHERE name = '{name_of(id)}'"


INDEXES: dict[str, tuple[Callable[[], Any], str]] = {
    "ValueList": (lambda: esk.ValueList("name"), f"name = '{name_of(205)}'"),
    "BloomFilter": (lambda: esk.BloomFilter("name", fpp=0.0001), f"name = '{name_of(205)}'"),
    "Hybrid": (lambda: esk.Hybrid("name", threshold=10, fpp=0.0001), f"name = '{name_of(205)}'"),
    "Suffix": (lambda: esk.Suffix("place", length=5), "place LIKE '%.end2'"),
    "Prefix": (lambda: esk.Prefix("place", length=5), "place LIKE '/x/2%'"),
    "expression": (lambda: esk.ValueList("substring(place, 4, 1)"), "substring(place, 4, 1) = '2'"),
    "Formatted": (lambda: esk.Formatted("agent", "split({}, '[.]')[0]"), "split(agent, '[.]')[0] = 'agent 2'"),
    "GeoBox": (
        lambda: esk.GeoBox("lat", "lon"),
        "lat BETWEEN 19.5 AND 25 AND lon BETWEEN 0 AND 3",
    ),
    "a field of a struct": (lambda: esk.ValueList("s.b"), "s.b = 's205'"),
}


@pytest.mark.every(5)
@pytest.mark.parametrize("name", INDEXES)
def test_each_index_type_leaves_one_file(delta: SparkSession, unchanged: str, name: str) -> None:
    index, condition = INDEXES[name]
    dataset = esk.Dataset(delta, table=unchanged)
    result = dataset.create_indexes(index())
    try:
        assert (result.added, result.failed) == (FILES, ())
        assert opened(delta, f"SELECT * FROM {unchanged} WHERE {condition}") == 1
    finally:
        dataset.drop_indexes(all=True)


def test_what_a_report_says(delta: SparkSession, maker: Maker) -> None:
    table = maker()
    esk.Dataset(delta, table=table).create_indexes(esk.ValueList("name"))
    with esk.observe(delta) as report:
        delta.sql(point(table, 205)).collect()
    (scan,) = report.scans
    assert (scan.objects_total, scan.objects_skipped, scan.table_format, scan.snapshot) == (4, 3, "delta", "1")
    assert f"{table}-" in repr(scan) and ", delta snapshot 1: 3 of 4 objects skipped" in repr(scan)
    assert repr(report).endswith(", delta snapshot 1)")
    assert "delta snapshot 1" in str(report).splitlines()[-1] and "delta snapshot 1</td>" in report._repr_html_()
    explained = str(esk.explain(delta.sql(point(table, 205))))
    assert "3 of 4 objects would be skipped" in explained and "delta snapshot 1\n" in explained
    (row,) = [row for row in esk.list_indexes(delta).collect() if row.table and row.table.endswith(table)]
    assert (row.format, row.snapshot) == ("delta", "1")
    (query,) = esk.queries(delta).where(f"table LIKE '%{table}' AND objects_skipped > 0").tail(1)
    assert (query.table_format, query.snapshot) == ("delta", "1")
    append(delta, table, 400, 500)
    health = esk.Dataset(delta, table=table).health()
    assert (health.table_format, health.snapshot, health.indexed_snapshot) == ("delta", "2", "1")
    assert repr(health).endswith("0 failed, delta snapshot 2)")


def test_sql_statements_beside_deltas_own(delta: SparkSession, maker: Maker) -> None:
    table = maker(**{"delta.dataSkippingNumIndexedCols": "0"})
    created = delta.sql(f"CREATE SKIPPING INDEX ON {table} (value_list(name))").collect()
    assert [tuple(row) for row in created] == [(FILES, 0, 0, 0, 0)]
    assert opened(delta, point(table, 205), rows=1) == 1
    delta.sql(f"OPTIMIZE {table}").collect()  # Delta's statement
    assert delta.sql(f"DESCRIBE HISTORY {table}").first().operation == "OPTIMIZE"  # type: ignore[union-attr]
    (health,) = delta.sql(f"CALL es_skipping.health('{table}')").collect()
    assert (health.objects, health.covered) == (1, 0)
    assert delta.sql(f"REFRESH SKIPPING INDEX ON {table}").first().added == 1  # type: ignore[union-attr]
    delta.sql(f"OPTIMIZE SKIPPING INDEX ON {table}")


def test_or_and_deltas_own_pruning(delta: SparkSession, maker: Maker) -> None:
    table = maker()
    esk.Dataset(delta, table=table).create_indexes(esk.ValueList("name"))
    either = f"name = '{name_of(5)}' OR name = '{name_of(205)}'"
    assert opened(delta, f"SELECT * FROM {table} WHERE {either}", 2) == 2
    assert opened(delta, f"SELECT * FROM {table} WHERE id = 205 AND ({either})", 1) == 1


@pytest.mark.parametrize("vectors", ["true", pytest.param("false", marks=pytest.mark.long)])
def test_deleted_rows(delta: SparkSession, maker: Maker, vectors: str) -> None:
    table = maker(**{"delta.enableDeletionVectors": vectors})
    esk.Dataset(delta, table=table).create_indexes(esk.ValueList("name"))
    delta.sql(f"DELETE FROM {table} WHERE name = '{name_of(205)}'")
    rewritten = 0 if vectors == "true" else 1
    assert opened(delta, point(table, 205), 0) == 1
    assert opened(delta, point(f"{table} VERSION AS OF 1", 205), 1) == 1
    time = delta.sql(f"DESCRIBE HISTORY {table}").where("version = 1").head()["timestamp"]  # type: ignore[index]
    assert opened(delta, point(f"{table} TIMESTAMP AS OF '{time}'", 205), 1) == 1
    refreshed = esk.Dataset(delta, table=table).refresh()
    assert (refreshed.added + refreshed.updated, refreshed.removed) == (rewritten, rewritten)


def test_an_index_made_after_the_delete_knows_the_rows_that_come_back(delta: SparkSession, maker: Maker) -> None:
    table = maker()
    delta.sql(f"DELETE FROM {table} WHERE name = '{name_of(205)}' OR id BETWEEN 300 AND 399")
    esk.Dataset(delta, table=table).create_indexes(esk.ValueList("name"), esk.MinMax("lat"))
    assert opened(delta, point(table, 205), 0) == 1
    # the file whose rows all are deleted is not one of the table any more, so the build did not see it
    assert opened(delta, point(f"{table} VERSION AS OF 1", 205), 1) == 2
    assert opened(delta, point(f"{table} VERSION AS OF 1", 350), 1) == 1
    delta.sql(f"RESTORE TABLE {table} TO VERSION AS OF 1")
    assert opened(delta, point(table, 205), 1) == 2
    assert opened(delta, f"SELECT * FROM {table} WHERE lat >= 30", 100) == 1
    assert esk.Dataset(delta, table=table).refresh().added == 1
    assert opened(delta, point(table, 205), 1) == 1


def test_every_row_of_a_file_deleted(delta: SparkSession, maker: Maker) -> None:
    table = maker()
    delta.sql(f"UPDATE {table} SET name = name WHERE id < 100")
    delta.sql(f"DELETE FROM {table} WHERE id BETWEEN 300 AND 398")
    esk.Dataset(delta, table=table).create_indexes(esk.ValueList("name"))
    for id in (350, 399):
        rows_on_and_off(delta, point(table, id))
        assert len(rows_on_and_off(delta, point(f"{table} VERSION AS OF 1", id))) == 1


def test_appends_and_rewrites_without_a_refresh(delta: SparkSession, maker: Maker) -> None:
    table = maker()
    dataset = esk.Dataset(delta, table=table)
    dataset.create_indexes(esk.ValueList("name"))
    append(delta, table, 400, 500)
    assert opened(delta, point(table, 205), 1) == 2
    result = dataset.refresh()
    assert (result.added, result.unchanged) == (1, 4)
    assert opened(delta, f"SELECT * FROM {table} WHERE name = '{name_of(150)}'", 1) == 1
    delta.sql(f"OPTIMIZE {table}")
    assert opened(delta, point(table, 150), 1) == 1  # the one new file
    result = dataset.refresh()
    assert (result.added, result.removed) == (1, 5)


@pytest.mark.in_turn("mode")
@pytest.mark.parametrize("mode", ["name", "id"])
def test_renames_keep_an_index_useful(delta: SparkSession, maker: Maker, mode: str) -> None:
    table = maker(**{"delta.columnMapping.mode": mode})
    esk.Dataset(delta, table=table).create_indexes(esk.ValueList("name"), esk.ValueList("s.b"), esk.Suffix("place", 5))
    assert opened(delta, point(table, 205), 1) == 1
    delta.sql(f"ALTER TABLE {table} RENAME COLUMN name TO title")
    delta.sql(f"ALTER TABLE {table} RENAME COLUMN s.b TO c")
    assert opened(delta, f"SELECT * FROM {table} WHERE title = '{name_of(205)}'", 1) == 1
    assert opened(delta, f"SELECT * FROM {table} WHERE s.c = 's205'", 1) == 1
    delta.sql(f"ALTER TABLE {table} ADD COLUMN name STRING")
    assert opened(delta, f"SELECT * FROM {table} WHERE title = '{name_of(205)}'", 1) == 1
    assert opened(delta, f"SELECT * FROM {table} WHERE name IS NULL", 400) == FILES
    assert opened(delta, f"SELECT * FROM {table} WHERE name = '{name_of(205)}'", 0) == FILES


def test_swapped_names(delta: SparkSession, maker: Maker) -> None:
    table = maker(**{"delta.columnMapping.mode": "name"})
    esk.Dataset(delta, table=table).create_indexes(esk.ValueList("name"), esk.ValueList("agent"))
    for old, new in (("name", "other"), ("agent", "name"), ("other", "agent")):
        delta.sql(f"ALTER TABLE {table} RENAME COLUMN {old} TO {new}")
    assert opened(delta, f"SELECT * FROM {table} WHERE agent = '{name_of(205)}'", 1) == 1
    assert opened(delta, f"SELECT * FROM {table} WHERE name = 'agent 2.5'", 10) == 1


def test_a_column_that_was_dropped_and_added_again(delta: SparkSession, maker: Maker) -> None:
    table = maker(**{"delta.columnMapping.mode": "name"})
    dataset = esk.Dataset(delta, table=table)
    dataset.create_indexes(esk.ValueList("name"))
    delta.sql(f"ALTER TABLE {table} DROP COLUMN name")
    delta.sql(f"ALTER TABLE {table} ADD COLUMN name STRING")
    assert opened(delta, f"SELECT * FROM {table} WHERE name IS NULL", 400) == FILES
    dataset.refresh()
    assert opened(delta, f"SELECT * FROM {table} WHERE name IS NULL", 400) == FILES
    assert opened(delta, f"SELECT * FROM {table} WHERE name = 'x'", 0) == 0


def test_a_widened_type_is_unknown_until_it_is_built_again(delta: SparkSession) -> None:
    table = f"t{next(_numbers)}"
    delta.sql(f"CREATE TABLE {table} (a INT, b STRING) USING delta TBLPROPERTIES ('delta.enableTypeWidening' = 'true')")
    frame = delta.range(0, 400, 1, 4).selectExpr("CAST(pmod(id * 7919, 400) AS INT) AS a", "string(id) AS b")
    frame.write.format("delta").mode("append").saveAsTable(table)
    dataset = esk.Dataset(delta, table=table)
    dataset.create_indexes(esk.ValueList("a"))
    assert opened(delta, f"SELECT * FROM {table} WHERE a = 7", 1) == 1
    delta.sql(f"ALTER TABLE {table} ALTER COLUMN a TYPE BIGINT")
    assert opened(delta, f"SELECT * FROM {table} WHERE a = 7", 1) == FILES
    dataset.refresh()
    assert opened(delta, f"SELECT * FROM {table} WHERE a = 7", 1) == 1
    delta.sql(f"DROP TABLE {table}")


def metrics(spark: SparkSession, table: str, commits: int) -> list[dict[str, str]]:
    """Those of the last commits, which tell neither times nor sizes."""
    found = [row["operationMetrics"] for row in spark.sql(f"DESCRIBE HISTORY {table} LIMIT {commits}").collect()]
    return [{key: value for key, value in one.items() if "Time" not in key and "Bytes" not in key} for one in found]


@pytest.mark.parametrize("vectors", ["true", pytest.param("false", marks=pytest.mark.long)])  # as the search's tests
def test_changes_have_the_metrics_that_they_have_without_skipping(
    delta: SparkSession, maker: Maker, vectors: str
) -> None:
    merge = (
        f"MERGE INTO {{}} t USING (SELECT '{name_of(340)}' AS name) s ON t.name = s.name "
        "WHEN MATCHED THEN UPDATE SET place = 'merged' WHEN NOT MATCHED THEN INSERT (name) VALUES (s.name)"
    )
    changes = (
        f"UPDATE {{}} SET place = 'updated' WHERE name = '{name_of(33)}'",
        f"DELETE FROM {{}} WHERE name = '{name_of(205)}' OR id BETWEEN 110 AND 119",
        merge,
    )
    with_skipping, without = (maker(**{"delta.enableDeletionVectors": vectors}) for _ in range(2))
    esk.Dataset(delta, table=with_skipping).create_indexes(esk.ValueList("name"), esk.MinMax("id"))
    for change in changes:
        delta.sql(change.format(with_skipping))
        esk.disable(delta)
        delta.sql(change.format(without))
        esk.enable(delta)
        both = (sorted(map(repr, delta.table(one).collect())) for one in (with_skipping, without))
        assert next(both) == next(both), change
    found = metrics(delta, with_skipping, len(changes))
    assert len(found) == len(changes) and all(found), found
    assert found == metrics(delta, without, len(changes))
    assert opened(delta, f"SELECT * FROM {with_skipping} WHERE place = 'merged'", 1) >= 1


def test_partitioned_tables(delta: SparkSession) -> None:
    table = f"t{next(_numbers)}"
    frame = delta.range(0, ROWS, 1, 1).selectExpr(*COLUMNS, "floor(id / 100) AS part")
    frame.write.format("delta").partitionBy("part").saveAsTable(table)
    dataset = esk.Dataset(delta, table=table)
    dataset.create_indexes(esk.ValueList("name"), esk.ValueList("agent"))
    assert opened(delta, f"SELECT * FROM {table} WHERE part = 2 AND agent = 'agent 2.5'", 10) == 1
    assert opened(delta, f"SELECT * FROM {table} WHERE part = 1 AND agent = 'agent 2.5'", 0) == 0
    assert opened(delta, f"SELECT * FROM {table} WHERE part = 1 OR name = '{name_of(205)}'", 101) == 2
    with pytest.raises(esk.DatasetError, match="delta table, whose paths do not tell partitions"):
        dataset.refresh(partitions={"part": 1})
    delta.sql(f"DROP TABLE {table}")


def test_change_feeds_and_streams_are_left_alone(delta: SparkSession, maker: Maker, tmp_path: Path) -> None:
    table = maker(**{"delta.enableChangeDataFeed": "true"})
    esk.Dataset(delta, table=table).create_indexes(esk.ValueList("name"))
    delta.sql(f"UPDATE {table} SET place = 'x' WHERE id = 205")
    feed = f"SELECT * FROM table_changes('{table}', 1) WHERE name = '{name_of(205)}'"
    assert len(rows_on_and_off(delta, feed)) == 3
    with esk.observe(delta) as report:
        delta.sql(feed).collect()
    assert [scan for scan in report.scans if scan.objects_skipped] == []
    stream = delta.readStream.table(table).where(f"name = '{name_of(100)}'")
    query = stream.writeStream.format("memory").queryName("seen").option("checkpointLocation", str(tmp_path))
    query.trigger(availableNow=True).start().awaitTermination()
    assert delta.table("seen").count() == 1


def test_a_path_means_the_table(delta: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "a table")
    delta.range(0, ROWS, 1, FILES).selectExpr(*COLUMNS).write.format("delta").save(path)
    dataset = esk.Dataset(delta, path)
    dataset.create_indexes(esk.ValueList("name"))
    assert opened(delta, f"SELECT * FROM delta.`{path}` WHERE name = '{name_of(205)}'", 1) == 1
    delta.sql(f"DELETE FROM delta.`{path}` WHERE name = '{name_of(205)}'")
    assert opened(delta, f"SELECT * FROM delta.`{path}@v0` WHERE name = '{name_of(205)}'", 1) == 1
    old = delta.read.format("delta").option("versionAsOf", 0).load(path).where(f"name = '{name_of(205)}'")
    assert old.count() == 1
    old.collect()
    assert num_files(old) == [1]
    health = dataset.health()
    assert (health.objects, health.covered) == (FILES, FILES - 1)  # the delete wrote one anew
    with pytest.raises(esk.DatasetError, match="is a Delta table"):
        esk.Dataset(delta, path, format="parquet").create_indexes(esk.MinMax("id"))


def test_an_index_of_the_directory_is_not_one_of_the_table(
    delta: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(tmp_path / "t")
    delta.range(0, ROWS, 1, FILES).selectExpr(*COLUMNS).write.format("delta").save(path)
    query = f"SELECT * FROM delta.`{path}` WHERE name = '{name_of(205)}'"
    delta.conf.set("spark.databricks.delta.formatCheck.enabled", "false")
    with monkeypatch.context() as before:  # made before such directories were refused
        before.setattr(build, "refuse_table_formats", lambda *given: None)
        before.setattr(datasets, "table_format_at", lambda *given: None)
        esk.Dataset(delta, path).create_indexes(esk.ValueList("name"))
    assert opened(delta, query, 1) == FILES
    esk.Dataset(delta, path).drop_indexes(all=True)
    esk.Dataset(delta, path).create_indexes(esk.ValueList("name"))
    assert opened(delta, query, 1) == 1
    plain = f"SELECT * FROM parquet.`{path}` WHERE name = '{name_of(205)}'"
    assert opened(delta, plain, 1) == FILES
    delta.conf.unset("spark.databricks.delta.formatCheck.enabled")


def test_views(delta: SparkSession, maker: Maker) -> None:
    table = maker()
    delta.sql(f"CREATE OR REPLACE TEMP VIEW old AS SELECT id, name AS called FROM {table} VERSION AS OF 1")
    with pytest.raises(esk.DatasetError, match="it is a view"):
        esk.Dataset(delta, table="old").create_indexes(esk.ValueList("called"))
    esk.Dataset(delta, table=table).create_indexes(esk.ValueList("name"))
    delta.sql(f"DELETE FROM {table} WHERE id > 100")
    assert opened(delta, f"SELECT * FROM old WHERE called = '{name_of(205)}'", 1) == 1


def test_files_that_vacuum_took(delta: SparkSession, maker: Maker) -> None:
    table = maker(**{"delta.enableDeletionVectors": "false"})
    dataset = esk.Dataset(delta, table=table)
    dataset.create_indexes(esk.ValueList("name"))
    location = delta.sql(f"DESCRIBE DETAIL {table}").head()["location"]  # type: ignore[index]
    append(delta, table, 400, 500)
    newest = max(Path(location.removeprefix("file:")).glob("*.parquet"), key=lambda path: path.stat().st_mtime)
    content = newest.read_bytes()
    newest.unlink()
    result = dataset.refresh()
    assert [path.rpartition("/")[2] for path, _ in result.failed] == [newest.name]
    newest.write_bytes(content)
    assert opened(delta, point(table, 450), 2) == 2
    assert dataset.refresh().failed == ()
    assert opened(delta, point(table, 20), 2) == 2


def test_verify_looks_at_files_and_believes_the_log_about_their_time(delta: SparkSession, maker: Maker) -> None:
    table = maker()
    esk.Dataset(delta, table=table).create_indexes(esk.ValueList("name"))
    location = delta.sql(f"DESCRIBE DETAIL {table}").head()["location"]  # type: ignore[index]
    for file in Path(location.removeprefix("file:")).glob("*.parquet"):
        file.touch()
    delta.conf.set("spark.es_skipping.verify", "stat")
    try:
        assert opened(delta, point(table, 205), 1) == 1
    finally:
        delta.conf.unset("spark.es_skipping.verify")


def test_identity_comes_from_the_log(delta: SparkSession, maker: Maker) -> None:
    table = maker()
    dataset = esk.Dataset(delta, table=table)
    dataset.create_indexes(esk.ValueList("name"))
    location = delta.sql(f"DESCRIBE DETAIL {table}").head()["location"].removeprefix("file:")  # type: ignore[index]
    log = (Path(location) / "_delta_log" / "00000000000000000001.json").read_text(encoding="utf-8").splitlines()
    added = [json.loads(line)["add"] for line in log if line.startswith('{"add"')]
    from es_skipping.spark.services import store_of

    known = {(id.path.rpartition("/")[2], id.length, id.mtime) for id, _ in store_of(delta).objects(dataset.id)}
    assert known == {(add["path"], add["size"], add["modificationTime"]) for add in added}


def test_row_tracking_and_metadata_columns(delta: SparkSession, maker: Maker) -> None:
    table = maker(**{"delta.enableRowTracking": "true"})
    esk.Dataset(delta, table=table).create_indexes(esk.ValueList("name"))
    delta.sql(f"DELETE FROM {table} WHERE id = 7")
    query = f"SELECT id, _metadata.file_name, _metadata.row_id FROM {table} WHERE name = '{name_of(205)}'"
    assert opened(delta, query, 1) == 1
    file = delta.sql(f"SELECT _metadata.file_path AS path FROM {table} WHERE id = 205").head()
    assert file is not None
    by_file = f"SELECT id FROM {table} WHERE _metadata.file_path = '{file.path}' AND name >= 'n'"
    assert len(rows_on_and_off(delta, by_file)) == 100
    by_input = f"SELECT id FROM {table} WHERE input_file_name() LIKE '%part-%' AND name = '{name_of(205)}'"
    assert len(rows_on_and_off(delta, by_input)) == 1


def test_a_refresh_reads_new_files_only(delta: SparkSession, maker: Maker) -> None:
    table = maker()
    dataset = esk.Dataset(delta, table=table)
    dataset.create_indexes(esk.ValueList("name"))
    location = delta.sql(f"DESCRIBE DETAIL {table}").head()["location"].removeprefix("file:")  # type: ignore[index]
    kept = {file: file.read_bytes() for file in Path(location).glob("*.parquet")}
    append(delta, table, 400, 500)
    for file in kept:
        file.unlink()
    assert dataset.refresh().failed == ()
    for file, content in kept.items():
        file.write_bytes(content)
    assert opened(delta, point(table, 205), 1) == 1


def test_a_layout_holds_live_rows_only(delta: SparkSession, maker: Maker, tmp_path: Path) -> None:
    table = maker()
    delta.sql(f"DELETE FROM {table} WHERE name = '{name_of(205)}'")
    sop = esk.layout.SOP(esk.Dataset(delta, table=table), min_rows=50)
    sop.fit(["lat < 10", "lat < 10", "lat >= 30", "lat >= 30"])
    path = str(tmp_path / "laid")
    sop.write(path)
    assert delta.read.parquet(path).count() == ROWS - 1
    # Delta can take the files over as they are; then the table is indexed, not the directory
    delta.sql(f"CONVERT TO DELTA parquet.`{path}`")
    blocks = len(list(Path(path).glob("*.parquet")))
    asked = f"SELECT id FROM delta.`{path}` WHERE lat >= 30"
    esk.Dataset(delta, path).create_indexes(Features("lat < 10", "lat >= 30"))
    found, frame = run_on_and_off(delta, asked)
    assert len(found) == 100
    assert sum(num_files(frame)) < blocks


def test_plain_parquet_beside_it_skips(delta: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "plain")
    delta.range(0, 1000, 1, 10).write.parquet(path)
    esk.Dataset(delta, path).create_indexes(esk.MinMax("id"))
    with esk.observe(delta) as report:
        assert rows_on_and_off(delta, f"SELECT * FROM parquet.`{path}` WHERE id = 77") == [(77,)]
    assert report.scans[0].objects_skipped == 9


@pytest.mark.in_turn("adaptive")  # the first here, the second with Iceberg
@pytest.mark.parametrize("adaptive", ["true", "false"])
def test_a_join_opens_the_files_of_its_keys(delta: SparkSession, maker: Maker, adaptive: str) -> None:
    table = maker()
    esk.Dataset(delta, table=table).create_indexes(esk.ValueList("name"))
    delta.conf.set("spark.sql.adaptive.enabled", adaptive)
    delta.conf.set("spark.sql.codegen.wholeStage", "true")  # the keys come out of a compiled stage
    keys = f"(SELECT * FROM VALUES '{name_of(5)}', '{name_of(205)}' AS v(k) WHERE length(k) > rand(1))"
    assert opened(delta, f"SELECT id FROM {table} JOIN {keys} ON name = k", 2) == 2
    delta.sql(f"DELETE FROM {table} WHERE id = 205")
    assert opened(delta, f"SELECT id FROM {table} WHERE name IN (SELECT k FROM {keys})", 1) == 2
    assert opened(delta, f"SELECT id FROM {table} ANTI JOIN {keys} ON name = k", ROWS - 2) == FILES
    delta.conf.unset("spark.sql.adaptive.enabled")
    delta.conf.set("spark.sql.codegen.wholeStage", "false")


def test_plain_files_skip_under_deltas_catalog(delta: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "plain")
    delta.range(0, ROWS, 1, FILES).selectExpr(*COLUMNS).write.parquet(path)
    esk.Dataset(delta, path).create_indexes(esk.ValueList("name"))
    assert opened(delta, point(f"parquet.`{path}`", 5), 1) == 1
