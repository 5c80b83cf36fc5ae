"""Iceberg tables: every index type on top of Iceberg's pruning, and no row lost by deletes, time travel or renames."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import es_skipping as esk
from es_skipping.build import dataset as datasets
from es_skipping.build import update as build
from tests.connectors.equal import rows_on_and_off, run_on_and_off, skipping_scans
from tests.spark.objects_read import batch_scans, splits_read
from tests.spark.skipping_on_off import warned

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
    "named_struct('a', id % 5, 'b', concat('s', id)) AS s",
]
"""Names are spread over all files, so that their minima and maxima rule nothing out."""

NO_STATISTICS = {"write.metadata.metrics.default": "none"}
"""What is skipped, we skip."""


def name_of(id: int) -> str:
    return f"n{id * 7919 % ROWS:06d}"


Maker = Callable[..., str]


@pytest.fixture
def maker(iceberg: SparkSession) -> Iterator[Maker]:
    """Makes a table of four files in the catalog; each file is a split."""
    made: list[str] = []

    def make(partitioned: str = "", **properties: str) -> str:
        name = f"lake.db.t{next(_numbers)}"
        made.append(name)
        given = {"format-version": "2", "read.split.open-file-cost": str(128 << 20), **properties}
        text = ", ".join(f"'{key}' = '{value}'" for key, value in given.items())
        schema = iceberg.range(0).selectExpr(*COLUMNS).schema
        columns = ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in schema)
        iceberg.sql(f"CREATE TABLE {name} ({columns}) USING iceberg {partitioned} TBLPROPERTIES ({text})")
        append(iceberg, name, 0, ROWS, FILES)
        return name

    yield make
    for name in made:
        iceberg.sql(f"DROP TABLE IF EXISTS {name}")


def append(spark: SparkSession, table: str, first: int, last: int, files: int = 1) -> None:
    spark.range(first, last, 1, files).selectExpr(*COLUMNS).writeTo(table).append()


def opened(spark: SparkSession, sql: str, rows: int | None = None) -> int:
    """How many files the query opens, after it was seen to have the rows that it has with skipping off."""
    found, df = run_on_and_off(spark, sql)
    if rows is not None:
        assert len(found) == rows, sql
    return splits_read(df)


def point(table: str, id: int) -> str:
    return f"SELECT * FROM {table} WHERE name = '{name_of(id)}'"


def first_snapshot(spark: SparkSession, table: str) -> int:
    found = spark.sql(f"SELECT snapshot_id FROM {table}.snapshots ORDER BY committed_at").head()
    assert found is not None
    return int(found[0])


INDEXES: dict[str, tuple[Callable[[], Any], str]] = {
    "ValueList": (lambda: esk.ValueList("name"), f"name = '{name_of(205)}'"),
    "BloomFilter": (lambda: esk.BloomFilter("name", fpp=0.0001), f"name = '{name_of(205)}'"),
    "Hybrid": (lambda: esk.Hybrid("name", threshold=10, fpp=0.0001), f"name = '{name_of(205)}'"),
    "MinMax": (lambda: esk.MinMax("lat"), "lat BETWEEN 19.5 AND 25"),
    "Suffix": (lambda: esk.Suffix("place", length=5), "place LIKE '%.end2'"),
    "Prefix": (lambda: esk.Prefix("place", length=5), "place LIKE '/x/2%'"),
    "expression": (lambda: esk.ValueList("substring(place, 4, 1)"), "substring(place, 4, 1) = '2'"),
    "Formatted": (lambda: esk.Formatted("agent", "split({}, '[.]')[0]"), "split(agent, '[.]')[0] = 'agent 2'"),
    "GeoBox": (lambda: esk.GeoBox("lat", "lon"), "lat BETWEEN 19.5 AND 25 AND lon BETWEEN 0 AND 3"),
    "a field of a struct": (lambda: esk.ValueList("s.b"), "s.b = 's205'"),
}


@pytest.mark.every(5)
@pytest.mark.parametrize("name", INDEXES)
def test_each_index_type_leaves_one_file(iceberg: SparkSession, maker: Maker, name: str) -> None:
    table = maker(**NO_STATISTICS)
    index, condition = INDEXES[name]
    assert opened(iceberg, f"SELECT * FROM {table} WHERE {condition}") == FILES
    result = esk.Dataset(iceberg, table=table).create_indexes(index())
    assert (result.added, result.failed) == (FILES, ())
    assert opened(iceberg, f"SELECT * FROM {table} WHERE {condition}") == 1


def test_sql_statements(iceberg: SparkSession, maker: Maker) -> None:
    table = maker(**NO_STATISTICS)
    created = iceberg.sql(f"CREATE SKIPPING INDEX ON {table} (value_list(name))").collect()
    assert [tuple(row) for row in created] == [(FILES, 0, 0, 0, 0)]
    assert opened(iceberg, point(table, 205), rows=1) == 1
    (kept,) = iceberg.sql(
        f"SELECT path FROM skipping_files('{table}', \"name = '{name_of(205)}'\") WHERE NOT skipped"
    ).collect()
    (read,) = iceberg.sql(f"SELECT _file FROM {table} WHERE name = '{name_of(205)}'").collect()
    assert kept.path.removeprefix("file:") == read[0].removeprefix("file:")
    append(iceberg, table, ROWS, ROWS + 10)
    (health,) = iceberg.sql(f"CALL es_skipping.health('{table}')").collect()
    assert (health.objects, health.covered) == (FILES + 1, FILES)
    assert iceberg.sql(f"REFRESH SKIPPING INDEX ON {table}").first().added == 1  # type: ignore[union-attr]
    iceberg.sql(f"DROP SKIPPING INDEX ON {table}")
    assert not esk.Dataset(iceberg, table=table).is_indexed()


def test_what_a_report_says(iceberg: SparkSession, maker: Maker) -> None:
    table = maker()
    esk.Dataset(iceberg, table=table).create_indexes(esk.ValueList("name"))
    with esk.observe(iceberg) as report:
        iceberg.sql(point(table, 205)).collect()
    (scan,) = report.scans
    snapshot = str(first_snapshot(iceberg, table))
    assert (scan.objects_total, scan.objects_skipped, scan.table_format, scan.snapshot) == (4, 3, "iceberg", snapshot)
    explained = str(esk.explain(iceberg.sql(point(table, 205))))
    assert f"Scan of {table}, iceberg snapshot {snapshot}\n  3 of 4 objects would be skipped" in explained
    advice = str(esk.why_not(iceberg.sql(f"SELECT * FROM {table} WHERE agent = 'agent 2.5'")))
    assert "ValueList(agent)" in advice and f"Scan of {table}, iceberg snapshot {snapshot}, filter" in advice
    judged = str(esk.advise(iceberg, esk.Dataset(iceberg, table=table), budget="1 MB", log=["agent = 'agent 2.5'"]))
    assert f", iceberg snapshot {snapshot}: indexes within 1.0 MiB, judged from 4 of 4 objects" in judged
    assert f"iceberg snapshot {snapshot}" in repr(scan) and f"iceberg snapshot {snapshot}" in str(report)
    df = iceberg.sql(point(table, 205))
    df.collect()
    (node,) = batch_scans(df)
    assert node.metrics().apply("filesSkipped").value() == 3
    health = esk.Dataset(iceberg, table=table).health()
    assert (health.objects, health.covered) == (FILES, FILES)
    assert (health.table_format, health.snapshot, health.indexed_snapshot) == ("iceberg", snapshot, snapshot)
    (row,) = [row for row in esk.list_indexes(iceberg).collect() if row.table and row.table.endswith(table)]
    assert (row.format, row.snapshot) == ("iceberg", snapshot)
    (query,) = esk.queries(iceberg).where(f"table LIKE '%{table}' AND objects_skipped > 0").tail(1)
    assert (query.table_format, query.snapshot) == ("iceberg", snapshot)
    append(iceberg, table, 400, 500)
    health = esk.Dataset(iceberg, table=table).health()
    assert health.snapshot != snapshot == health.indexed_snapshot
    assert f"iceberg snapshot {health.snapshot}; the metadata covers {snapshot}" in str(health)


def test_an_index_of_columns_that_a_query_does_not_read_is_nothing_to_say(
    iceberg: SparkSession, maker: Maker, caplog: pytest.LogCaptureFixture
) -> None:
    """Iceberg's scan knows the columns that it reads, and a filter cannot be on others."""
    table = maker(**NO_STATISTICS)
    esk.Dataset(iceberg, table=table).create_indexes(esk.MinMax("id"), esk.ValueList("s.b"), esk.ValueList("name"))
    with esk.observe(iceberg) as report:
        assert opened(iceberg, f"SELECT id FROM {table} WHERE s.a = 3 AND id < 100") == 1
    assert report.unusable == ()
    assert warned(caplog) == []
    iceberg.sql(f"ALTER TABLE {table} DROP COLUMN name")
    iceberg.sql(f"ALTER TABLE {table} ADD COLUMN name STRING")
    with esk.observe(iceberg) as report:
        assert opened(iceberg, f"SELECT id FROM {table} WHERE name IS NULL") == FILES
    ((_, reason),) = report.unusable
    assert "column name is not in this query's schema" in reason


def test_or_and_icebergs_own_pruning(iceberg: SparkSession, maker: Maker) -> None:
    table = maker()
    esk.Dataset(iceberg, table=table).create_indexes(esk.ValueList("name"))
    either = f"name = '{name_of(5)}' OR name = '{name_of(205)}'"
    assert opened(iceberg, f"SELECT * FROM {table} WHERE {either}", 2) == 2
    assert opened(iceberg, f"SELECT * FROM {table} WHERE id = 205 AND ({either})", 1) == 1


@pytest.mark.parametrize("version", ["2", "3"])
@pytest.mark.parametrize("mode", ["merge-on-read", "copy-on-write"])
def test_deleted_rows(iceberg: SparkSession, maker: Maker, mode: str, version: str) -> None:
    table = maker(**{"write.delete.mode": mode, "format-version": version})
    dataset = esk.Dataset(iceberg, table=table)
    dataset.create_indexes(esk.ValueList("name"))
    first = first_snapshot(iceberg, table)
    iceberg.sql(f"ALTER TABLE {table} CREATE TAG before")
    iceberg.sql(f"ALTER TABLE {table} CREATE BRANCH side")
    time = iceberg.sql(f"SELECT committed_at FROM {table}.snapshots").head()[0]  # type: ignore[index]
    iceberg.sql(f"DELETE FROM {table} WHERE name = '{name_of(205)}'")
    rewritten = 0 if mode == "merge-on-read" else 1
    assert opened(iceberg, point(table, 205), 0) == 1
    for old in (first, "'before'", "'side'"):
        assert opened(iceberg, point(f"{table} VERSION AS OF {old}", 205), 1) == 1
    assert opened(iceberg, point(f"{table} TIMESTAMP AS OF '{time}'", 205), 1) == 1
    assert opened(iceberg, point(f"{table}.branch_side", 205), 1) == 1
    refreshed = dataset.refresh()
    assert (refreshed.added, refreshed.removed) == (rewritten, rewritten)


def test_equality_deletes(iceberg: SparkSession, maker: Maker) -> None:
    table = maker()
    dataset = esk.Dataset(iceberg, table=table)
    dataset.create_indexes(esk.ValueList("name"))
    first = first_snapshot(iceberg, table)
    delete_by_equality(iceberg, table, "name", name_of(205))
    assert opened(iceberg, point(table, 205), 0) == 1
    assert opened(iceberg, point(table, 206), 1) == 1
    assert opened(iceberg, point(f"{table} VERSION AS OF {first}", 205), 1) == 1
    dataset.drop_indexes(all=True)
    dataset.create_indexes(esk.ValueList("name"))
    assert opened(iceberg, point(f"{table} VERSION AS OF {first}", 205), 1) == 1
    assert opened(iceberg, point(table, 205), 0) == 1


def delete_by_equality(spark: SparkSession, table: str, column: str, value: str) -> None:
    """As Flink and others do: Spark itself writes position deletes only."""
    iceberg: Any = spark._jvm.org.apache.iceberg  # type: ignore[union-attr]
    loaded = iceberg.spark.Spark3Util.loadIcebergTable(spark._jsparkSession, table)
    id = loaded.schema().findField(column).fieldId()
    path = Path(str(loaded.location()).removeprefix("file:")) / "data" / f"deletes-{next(_numbers)}.parquet"
    field = pa.field(column, pa.string(), metadata={"PARQUET:field_id": str(id)})
    pq.write_table(pa.table([[value]], schema=pa.schema([field])), path)
    ids = spark.sparkContext._gateway.new_array(spark._jvm.int, 1)  # type: ignore[union-attr]
    ids[0] = id
    deletes = iceberg.FileMetadata.deleteFileBuilder(loaded.spec()).ofEqualityDeletes(ids).withFormat("parquet")
    file = deletes.withPath(f"file:{path}").withFileSizeInBytes(path.stat().st_size).withRecordCount(1).build()
    loaded.newRowDelta().addDeletes(file).commit()
    spark.sql(f"REFRESH TABLE {table}")


def test_an_index_made_after_the_delete_knows_the_rows_that_come_back(iceberg: SparkSession, maker: Maker) -> None:
    table = maker(**{"write.delete.mode": "merge-on-read"})
    first = first_snapshot(iceberg, table)
    iceberg.sql(f"DELETE FROM {table} WHERE name = '{name_of(205)}' OR id BETWEEN 301 AND 399")
    esk.Dataset(iceberg, table=table).create_indexes(esk.ValueList("name"), esk.MinMax("lat"))
    assert opened(iceberg, point(table, 205), 0) == 1
    for id in (205, 350):
        assert opened(iceberg, point(f"{table} VERSION AS OF {first}", id), 1) == 1
    iceberg.sql(f"CALL lake.system.rollback_to_snapshot('{table.removeprefix('lake.')}', {first})")
    assert opened(iceberg, point(table, 205), 1) == 1
    assert opened(iceberg, f"SELECT * FROM {table} WHERE lat >= 30", 100) == 1


def test_every_row_of_a_file_deleted(iceberg: SparkSession, maker: Maker) -> None:
    table = maker(**{"write.delete.mode": "merge-on-read"})
    first = first_snapshot(iceberg, table)
    iceberg.sql(f"DELETE FROM {table} WHERE name IN ({', '.join(repr(name_of(id)) for id in range(300, 400))})")
    esk.Dataset(iceberg, table=table).create_indexes(esk.ValueList("name"))
    assert opened(iceberg, point(table, 350), 0) == 1
    assert opened(iceberg, point(f"{table} VERSION AS OF {first}", 350), 1) == 1


def test_cherry_picked_commits(iceberg: SparkSession, maker: Maker) -> None:
    table = maker(**{"write.wap.enabled": "true"})
    dataset = esk.Dataset(iceberg, table=table)
    dataset.create_indexes(esk.ValueList("name"))
    iceberg.conf.set("spark.wap.id", "staged")
    try:
        append(iceberg, table, 400, 500)
    finally:
        iceberg.conf.unset("spark.wap.id")
    assert opened(iceberg, point(table, 50), 1) == 1
    staged = iceberg.sql(f"SELECT max_by(snapshot_id, committed_at) FROM {table}.snapshots").head()[0]  # type: ignore[index]
    iceberg.sql(f"CALL lake.system.cherrypick_snapshot('{table.removeprefix('lake.')}', {staged})")
    assert opened(iceberg, point(table, 50), 2) == 2
    assert dataset.refresh().added == 1
    assert opened(iceberg, point(table, 205), 1) == 1


def test_appends_and_rewrites_without_a_refresh(iceberg: SparkSession, maker: Maker) -> None:
    table = maker()
    dataset = esk.Dataset(iceberg, table=table)
    dataset.create_indexes(esk.ValueList("name"))
    append(iceberg, table, 400, 500)
    assert opened(iceberg, point(table, 205), 1) == 2
    result = dataset.refresh()
    assert (result.added, result.unchanged) == (1, 4)
    assert opened(iceberg, point(table, 150), 1) == 1
    iceberg.sql(
        f"CALL lake.system.rewrite_data_files(table => '{table.removeprefix('lake.')}', "
        "options => map('rewrite-all', 'true'))"
    )
    assert opened(iceberg, point(table, 150), 1) == 1  # the one new file
    result = dataset.refresh()
    assert (result.added, result.removed) == (1, 5)


def test_an_incremental_refresh_reads_new_files_only(iceberg: SparkSession, maker: Maker) -> None:
    table = maker()
    dataset = esk.Dataset(iceberg, table=table)
    dataset.create_indexes(esk.ValueList("name"))
    location = Path(str(iceberg.conf.get("spark.sql.catalog.lake.warehouse")).removeprefix("file://"))
    old = sorted((location / table.removeprefix("lake.").replace(".", "/") / "data").glob("*.parquet"))
    kept = [file.read_bytes() for file in old]
    append(iceberg, table, 400, 500)
    for file in old:
        file.unlink()
    assert dataset.refresh().failed == ()
    for file, content in zip(old, kept, strict=True):
        file.write_bytes(content)
    assert opened(iceberg, point(table, 205), 1) == 1


def test_renames_keep_an_index_useful(iceberg: SparkSession, maker: Maker) -> None:
    table = maker(**NO_STATISTICS)
    first = first_snapshot(iceberg, table)
    esk.Dataset(iceberg, table=table).create_indexes(esk.ValueList("name"), esk.ValueList("s.b"))
    iceberg.sql(f"ALTER TABLE {table} RENAME COLUMN name TO title")
    iceberg.sql(f"ALTER TABLE {table} RENAME COLUMN s.b TO c")
    assert opened(iceberg, f"SELECT * FROM {table} WHERE title = '{name_of(205)}'", 1) == 1
    assert opened(iceberg, f"SELECT * FROM {table} WHERE s.c = 's205'", 1) == 1
    iceberg.sql(f"ALTER TABLE {table} ADD COLUMN name STRING")
    assert opened(iceberg, f"SELECT * FROM {table} WHERE title = '{name_of(205)}'", 1) == 1
    assert opened(iceberg, f"SELECT * FROM {table} WHERE name IS NULL", ROWS) == FILES
    assert opened(iceberg, f"SELECT * FROM {table} WHERE name = '{name_of(205)}'", 0) == FILES
    assert opened(iceberg, point(f"{table} VERSION AS OF {first}", 205), 1) == 1


def test_swapped_names(iceberg: SparkSession, maker: Maker) -> None:
    table = maker(**NO_STATISTICS)
    esk.Dataset(iceberg, table=table).create_indexes(esk.ValueList("name"), esk.ValueList("agent"))
    for old, new in (("name", "other"), ("agent", "name"), ("other", "agent")):
        iceberg.sql(f"ALTER TABLE {table} RENAME COLUMN {old} TO {new}")
    assert opened(iceberg, f"SELECT * FROM {table} WHERE agent = '{name_of(205)}'", 1) == 1
    assert opened(iceberg, f"SELECT * FROM {table} WHERE name = 'agent 2.5'", 10) == 1


def test_a_column_that_was_dropped_and_added_again(iceberg: SparkSession, maker: Maker) -> None:
    table = maker(**NO_STATISTICS)
    dataset = esk.Dataset(iceberg, table=table)
    dataset.create_indexes(esk.ValueList("name"))
    iceberg.sql(f"ALTER TABLE {table} DROP COLUMN name")
    iceberg.sql(f"ALTER TABLE {table} ADD COLUMN name STRING")
    assert opened(iceberg, f"SELECT * FROM {table} WHERE name IS NULL", ROWS) == FILES
    dataset.refresh()
    assert opened(iceberg, f"SELECT * FROM {table} WHERE name IS NULL", ROWS) == FILES
    assert opened(iceberg, f"SELECT * FROM {table} WHERE name = 'x'", 0) == 0


def test_a_field_of_an_array_that_was_dropped_and_added_again(iceberg: SparkSession) -> None:
    table = f"lake.db.t{next(_numbers)}"
    iceberg.sql(
        f"CREATE TABLE {table} (id BIGINT, a ARRAY<STRUCT<x: INT, y: INT>>) USING iceberg "
        "TBLPROPERTIES ('write.metadata.metrics.default' = 'none')"
    )
    rows = iceberg.range(0, 400, 1, 4).selectExpr("id", "array(named_struct('x', int(id), 'y', 1)) AS a")
    rows.writeTo(table).append()
    esk.Dataset(iceberg, table=table).create_indexes(esk.ValueList("element_at(a.x, 1)"))
    assert len(rows_on_and_off(iceberg, f"SELECT id FROM {table} WHERE element_at(a.x, 1) = 205")) == 1
    iceberg.sql(f"ALTER TABLE {table} DROP COLUMN a.element.x")
    iceberg.sql(f"ALTER TABLE {table} ADD COLUMN a.element.x INT FIRST")
    # read without y, Iceberg 1.10 gives empty arrays
    condition = "element_at(a.x, 1) IS NULL AND element_at(a.y, 1) = 1"
    assert len(rows_on_and_off(iceberg, f"SELECT id FROM {table} WHERE {condition}")) == 400
    iceberg.sql(f"DROP TABLE {table}")


def test_a_promoted_type_is_unknown_until_it_is_built_again(iceberg: SparkSession) -> None:
    table = f"lake.db.t{next(_numbers)}"
    iceberg.sql(
        f"CREATE TABLE {table} (a INT, b STRING) USING iceberg "
        f"TBLPROPERTIES ('write.metadata.metrics.default' = 'none', 'read.split.open-file-cost' = '{128 << 20}')"
    )
    iceberg.range(0, 400, 1, 4).selectExpr("CAST(pmod(id * 7919, 400) AS INT) AS a", "string(id) AS b").writeTo(
        table
    ).append()
    dataset = esk.Dataset(iceberg, table=table)
    dataset.create_indexes(esk.ValueList("a"))
    assert opened(iceberg, f"SELECT * FROM {table} WHERE a = 7", 1) == 1
    iceberg.sql(f"ALTER TABLE {table} ALTER COLUMN a TYPE BIGINT")
    assert opened(iceberg, f"SELECT * FROM {table} WHERE a = 7", 1) == FILES
    dataset.refresh()
    assert opened(iceberg, f"SELECT * FROM {table} WHERE a = 7", 1) == 1
    iceberg.sql(f"DROP TABLE {table}")


def test_files_without_ids(iceberg: SparkSession, maker: Maker, tmp_path: Path) -> None:
    """Files that another writer made, taken into a table as they are, whose columns go by name."""
    table, path = maker(), str(tmp_path / "plain")
    iceberg.range(400, 500, 1, 2).selectExpr(*COLUMNS).write.parquet(path)
    iceberg.sql(
        f"CALL lake.system.add_files(table => '{table.removeprefix('lake.')}', source_table => '`parquet`.`{path}`')"
    )
    result = esk.Dataset(iceberg, table=table).create_indexes(esk.ValueList("s.b"), esk.MinMax("id"))
    assert (result.added, result.failed) == (FILES + 2, ())
    assert opened(iceberg, f"SELECT * FROM {table} WHERE s.b = 's450'", 1) == 1


def summaries(spark: SparkSession, table: str) -> list[dict[str, str]]:
    """What each snapshot's summary says, but for sizes and names, the oldest first."""
    timed = ("spark.app.id", "app-id", "engine-version", "iceberg-version")
    found = spark.sql(f"SELECT summary FROM {table}.snapshots ORDER BY committed_at").collect()
    return [{key: value for key, value in one[0].items() if key not in timed and "size" not in key} for one in found]


@pytest.mark.every(2)
@pytest.mark.parametrize("mode", ["merge-on-read", "copy-on-write"])
def test_changes_commit_what_they_commit_without_skipping(iceberg: SparkSession, maker: Maker, mode: str) -> None:
    merge = (
        f"MERGE INTO {{}} t USING (SELECT '{name_of(340)}' AS name) s ON t.name = s.name "
        "WHEN MATCHED THEN UPDATE SET place = 'merged'"
    )
    changes = (
        f"UPDATE {{}} SET place = 'updated' WHERE name = '{name_of(33)}'",
        f"DELETE FROM {{}} WHERE name = '{name_of(205)}' OR id BETWEEN 110 AND 119",
        merge,
        f"UPDATE {{}} SET lat = 0 WHERE id IN (SELECT id FROM {{}} WHERE name = '{name_of(77)}')",
    )
    modes = {f"write.{change}.mode": mode for change in ("delete", "update", "merge")}
    with_skipping, without = (maker(**modes) for _ in range(2))
    esk.Dataset(iceberg, table=with_skipping).create_indexes(esk.ValueList("name"), esk.MinMax("id"))
    for change in changes:
        iceberg.sql(change.replace("{}", with_skipping))
        esk.disable(iceberg)
        iceberg.sql(change.replace("{}", without))
        esk.enable(iceberg)
        both = (sorted(map(repr, iceberg.table(one).collect())) for one in (with_skipping, without))
        assert next(both) == next(both), change
    found = summaries(iceberg, with_skipping)
    assert len(found) == 1 + len(changes)
    assert found == summaries(iceberg, without)
    assert len(rows_on_and_off(iceberg, f"SELECT * FROM {with_skipping} WHERE place = 'merged'")) == 1


def test_partitions_that_evolve(iceberg: SparkSession, maker: Maker) -> None:
    table = maker("PARTITIONED BY (truncate(agent, 7))", **NO_STATISTICS)
    iceberg.sql(f"ALTER TABLE {table} ADD PARTITION FIELD bucket(3, id)")
    append(iceberg, table, 400, 500)
    files = iceberg.sql(f"SELECT count(*) FROM {table}.files").head()[0]  # type: ignore[index]
    dataset = esk.Dataset(iceberg, table=table)
    assert dataset.create_indexes(esk.ValueList("s.b"), esk.ValueList("agent")).added == files
    assert opened(iceberg, f"SELECT * FROM {table} WHERE s.b = 's205'", 1) == 1
    assert opened(iceberg, f"SELECT * FROM {table} WHERE s.b = 's450'", 1) == 1
    assert opened(iceberg, f"SELECT * FROM {table} WHERE agent = 'agent 2.5' AND s.b = 's205'", 1) == 1
    with pytest.raises(esk.DatasetError, match="iceberg table, whose paths do not tell partitions"):
        dataset.refresh(partitions={"agent": "agent 1"})


def test_a_join_without_a_shuffle(iceberg: SparkSession, maker: Maker) -> None:
    """Each partition's place and key must stay, also where none of its files is read."""
    settings = {
        "spark.sql.sources.v2.bucketing.enabled": "true",
        "spark.sql.sources.v2.bucketing.pushPartValues.enabled": "true",
        "spark.sql.iceberg.planning.preserve-data-grouping": "true",
        "spark.sql.autoBroadcastJoinThreshold": "-1",
        "spark.sql.requireAllClusterKeysForCoPartition": "false",
    }
    left, right = (maker("PARTITIONED BY (bucket(4, id))", **NO_STATISTICS) for _ in range(2))
    esk.Dataset(iceberg, table=left).create_indexes(esk.ValueList("s.b"))
    query = f"SELECT l.id, r.name FROM {left} l JOIN {right} r ON l.id = r.id WHERE l.s.b = 's205'"
    for key, value in settings.items():
        iceberg.conf.set(key, value)
    try:
        assert rows_on_and_off(iceberg, query) == [(205, name_of(205))]
        df = iceberg.sql(query)
        df.collect()
        plan = df._jdf.queryExecution().executedPlan().toString()
        assert "Exchange" not in plan, plan
        assert rows_on_and_off(iceberg, query.replace("s205", "nothing")) == []
    finally:
        for key in settings:
            iceberg.conf.unset(key)


def test_runtime_filters(iceberg: SparkSession, maker: Maker) -> None:
    """Spark plans the partitions again once it knows a join's keys."""
    table = maker("PARTITIONED BY (truncate(agent, 7))", **NO_STATISTICS)
    esk.Dataset(iceberg, table=table).create_indexes(esk.ValueList("s.b"))
    iceberg.sql(
        "CREATE OR REPLACE TEMP VIEW keys AS SELECT * FROM VALUES ('agent 2.5', 1), ('agent 3.5', 0) k(agent, w)"
    )
    query = (
        f"SELECT /*+ BROADCAST(k) */ t.id FROM {table} t JOIN (SELECT agent FROM keys WHERE w = 1) k "
        "ON t.agent = k.agent WHERE t.s.b IN ('s205', 's305')"
    )
    assert rows_on_and_off(iceberg, query) == [(205,)]


def test_a_table_of_one_file(iceberg: SparkSession, maker: Maker) -> None:
    table = maker(**NO_STATISTICS)
    iceberg.sql(f"DELETE FROM {table} WHERE id >= 0")
    append(iceberg, table, 0, 100)
    esk.Dataset(iceberg, table=table).create_indexes(esk.ValueList("name"))
    assert rows_on_and_off(iceberg, f"SELECT count(*) FROM {table} WHERE name = 'nobody'") == [(0,)]
    assert opened(iceberg, f"SELECT count(*) FROM {table} WHERE name = 'nobody'", 1) == 0


def test_one_table_twice_in_a_query(iceberg: SparkSession, maker: Maker) -> None:
    """Scans under different conditions are not one, though Iceberg's own scans are equal."""
    table = maker(**NO_STATISTICS)
    esk.Dataset(iceberg, table=table).create_indexes(esk.ValueList("s.b"))
    for adaptive in ("true", "false"):
        iceberg.conf.set("spark.sql.adaptive.enabled", adaptive)
        union = " UNION ALL ".join(
            f"SELECT id FROM {table} WHERE s.b LIKE 's{id}%' OR s.b = 's{id}'" for id in (5, 205)
        )
        assert len(rows_on_and_off(iceberg, union)) == 12
        join = " JOIN ".join(
            f"(SELECT id % 100 AS k, count(*) AS n FROM {table} WHERE s.b = 's{id}' GROUP BY 1)" for id in (5, 205)
        )
        assert rows_on_and_off(iceberg, f"SELECT * FROM {join} USING (k)") == [(5, 1, 1)]
    iceberg.conf.unset("spark.sql.adaptive.enabled")


@pytest.mark.in_turn("adaptive")  # the first here, the second with Delta
@pytest.mark.parametrize("adaptive", ["false", "true"])
def test_a_join_opens_the_files_of_its_keys(iceberg: SparkSession, maker: Maker, adaptive: str) -> None:
    table = maker(**NO_STATISTICS)
    esk.Dataset(iceberg, table=table).create_indexes(esk.ValueList("name"))
    iceberg.conf.set("spark.sql.adaptive.enabled", adaptive)
    keys = f"(SELECT * FROM VALUES '{name_of(5)}', '{name_of(205)}' AS v(k) WHERE length(k) > rand(1))"
    assert opened(iceberg, f"SELECT id FROM {table} JOIN {keys} ON name = k", 2) == 2
    iceberg.sql(f"DELETE FROM {table} WHERE id = 205")
    assert opened(iceberg, f"SELECT id FROM {table} WHERE name IN (SELECT k FROM {keys})", 1) == 2
    assert opened(iceberg, f"SELECT id FROM {table} ANTI JOIN {keys} ON name = k", ROWS - 2) == FILES
    iceberg.conf.unset("spark.sql.adaptive.enabled")


def test_what_is_left_alone(iceberg: SparkSession, maker: Maker, tmp_path: Path) -> None:
    table = maker()
    dataset = esk.Dataset(iceberg, table=table)
    dataset.create_indexes(esk.ValueList("name"))
    iceberg.sql(f"UPDATE {table} SET place = 'x' WHERE id = 205")
    append(iceberg, table, 400, 500)
    dataset.refresh()
    short = table.removeprefix("lake.")
    iceberg.sql(f"CALL lake.system.create_changelog_view(table => '{short}', changelog_view => 'changes')")
    queries = (
        f"SELECT file_path FROM {table}.files WHERE record_count > 3",
        f"SELECT count(*) FROM {table}.entries",
        f"SELECT id, _change_type FROM changes WHERE name = '{name_of(205)}'",
    )
    with esk.observe(iceberg) as report:
        for query in queries:
            assert rows_on_and_off(iceberg, query)
    assert [scan for scan in report.scans if scan.objects_skipped] == []
    fresh = maker()
    esk.Dataset(iceberg, table=fresh).create_indexes(esk.ValueList("name"))
    stream = iceberg.readStream.format("iceberg").load(fresh).where(f"name = '{name_of(100)}'")
    query = stream.writeStream.format("memory").queryName("seen").option("checkpointLocation", str(tmp_path))
    query.trigger(availableNow=True).start().awaitTermination()
    assert iceberg.table("seen").count() == 1


def test_hidden_columns(iceberg: SparkSession, maker: Maker) -> None:
    table = maker(**{"format-version": "3", **NO_STATISTICS})
    esk.Dataset(iceberg, table=table).create_indexes(esk.ValueList("name"), esk.ValueList("s.b"))
    file = iceberg.sql(f"SELECT _file FROM {table} WHERE id = 205").head()
    assert file is not None
    assert len(rows_on_and_off(iceberg, f"SELECT id FROM {table} WHERE _file = '{file[0]}'")) == 100
    assert opened(iceberg, f"SELECT id, _pos, _row_id FROM {table} WHERE name = '{name_of(205)}' AND _pos >= 0", 1) == 1
    assert opened(iceberg, f"SELECT id FROM {table} WHERE input_file_name() <> '' AND s.b = 's205'", 1) == 1


def test_a_view_of_an_old_snapshot(iceberg: SparkSession, maker: Maker) -> None:
    table = maker(**{"write.delete.mode": "merge-on-read"})
    first = first_snapshot(iceberg, table)
    iceberg.sql(f"CREATE OR REPLACE TEMP VIEW old AS SELECT id, name AS called FROM {table} VERSION AS OF {first}")
    with pytest.raises(esk.DatasetError, match="it is a view"):
        esk.Dataset(iceberg, table="old").create_indexes(esk.ValueList("called"))
    esk.Dataset(iceberg, table=table).create_indexes(esk.ValueList("name"))
    iceberg.sql(f"DELETE FROM {table} WHERE id > 100")
    assert opened(iceberg, f"SELECT * FROM old WHERE called = '{name_of(205)}'", 1) == 1


def test_a_branch_is_not_a_dataset(iceberg: SparkSession, maker: Maker) -> None:
    table = maker()
    iceberg.sql(f"ALTER TABLE {table} CREATE BRANCH side")
    iceberg.sql(f"ALTER TABLE {table} CREATE TAG mark")
    for name in (f"{table}.branch_side", f"{table}.tag_mark", f"{table}.snapshot_id_{first_snapshot(iceberg, table)}"):
        with pytest.raises(esk.DatasetError, match="index the table itself"):
            esk.Dataset(iceberg, table=name).create_indexes(esk.ValueList("name"))
    esk.Dataset(iceberg, table=table).create_indexes(esk.ValueList("name"))
    append(iceberg, f"{table}.branch_side", 400, 500)
    assert opened(iceberg, point(f"{table}.branch_side", 50), 2) == 2
    assert opened(iceberg, point(table, 50), 1) == 1


def test_names_of_a_table(iceberg: SparkSession, maker: Maker) -> None:
    table = maker()
    esk.Dataset(iceberg, table=table).create_indexes(esk.ValueList("name"))
    short = table.rpartition(".")[2]
    iceberg.sql("USE lake.db")
    try:
        for name in (short, f"db.{short}", f"`lake`.db.`{short}`"):
            assert esk.Dataset(iceberg, table=name).is_indexed()
        assert opened(iceberg, point(short, 205), 1) == 1
    finally:
        iceberg.sql("USE spark_catalog.default")


def test_a_path_means_the_table(iceberg: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "a table")
    tables = iceberg._jvm.org.apache.iceberg.hadoop.HadoopTables()  # type: ignore[union-attr]
    made = f"lake.db.t{next(_numbers)}"
    iceberg.sql(f"CREATE TABLE {made} (id BIGINT, name STRING) USING iceberg")
    schema = iceberg._jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(  # type: ignore[union-attr]
        iceberg._jsparkSession, made
    ).schema()
    tables.create(schema, path)
    rows = iceberg.range(0, ROWS, 1, FILES).selectExpr(*COLUMNS[:2])
    rows.write.format("iceberg").mode("append").save(path)
    esk.Dataset(iceberg, path).create_indexes(esk.ValueList("name"))
    df = iceberg.read.format("iceberg").load(path).where(f"name = '{name_of(205)}'")
    (advice,) = esk.why_not(df).scans
    assert (advice.reason, advice.table_format, advice.snapshot) == (None, "iceberg", advice.sampled_snapshot)
    (there,) = [one for one in advice.candidates if one.exists]
    assert (str(there.index), there.skipped) == ("ValueList(name)", FILES - 1)
    with esk.observe(iceberg) as report:
        assert [row.id for row in df.collect()] == [205]
    assert [scan.objects_skipped for scan in report.scans] == [3]
    with pytest.raises(esk.DatasetError, match="is an Iceberg table"):
        esk.Dataset(iceberg, path, format="parquet").create_indexes(esk.MinMax("id"))


def test_an_index_of_the_directory_is_not_one_of_the_table(
    iceberg: SparkSession, maker: Maker, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = maker(**NO_STATISTICS)
    location = f"{iceberg.conf.get('spark.sql.catalog.lake.warehouse')}/{table.removeprefix('lake.').replace('.', '/')}"
    with pytest.raises(esk.DatasetError, match=r"is an Iceberg table: .* holds metadata"):
        esk.Dataset(iceberg, f"{location}/data").create_indexes(esk.MinMax("id"))
    with monkeypatch.context() as before:  # made before such directories were refused
        before.setattr(build, "refuse_table_formats", lambda *given: None)
        before.setattr(datasets, "table_format_at", lambda *given: None)
        esk.Dataset(iceberg, f"{location}/data").create_indexes(esk.ValueList("name"))
    assert opened(iceberg, point(table, 205), 1) == FILES
    esk.Dataset(iceberg, table=table).create_indexes(esk.ValueList("name"))
    assert opened(iceberg, point(table, 205), 1) == 1


def test_a_layout_holds_live_rows_only(iceberg: SparkSession, maker: Maker, tmp_path: Path) -> None:
    table = maker(**{"write.delete.mode": "merge-on-read"})
    iceberg.sql(f"DELETE FROM {table} WHERE name = '{name_of(205)}'")
    sop = esk.layout.SOP(esk.Dataset(iceberg, table=table), min_rows=50)
    sop.fit(["lat < 10", "lat < 10", "lat >= 30", "lat >= 30"])
    sop.write(str(tmp_path / "laid"))
    assert iceberg.read.parquet(str(tmp_path / "laid")).count() == ROWS - 1


def test_plain_parquet_beside_it_skips(iceberg: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "plain")
    iceberg.range(0, 1000, 1, 10).write.parquet(path)
    esk.Dataset(iceberg, path).create_indexes(esk.MinMax("id"))
    iceberg.read.parquet(path).createOrReplaceTempView("plain")
    assert rows_on_and_off(iceberg, "SELECT * FROM plain WHERE id = 77") == [(77,)]
    assert skipping_scans(iceberg, "SELECT * FROM plain WHERE id = 77") == 1


def test_a_merge_from_an_indexed_source(iceberg: SparkSession, tmp_path: Path) -> None:
    """Conditions of a MERGE say of which rows an action is, not which rows of the source there are."""
    path = str(tmp_path / "source")
    iceberg.range(0, 1000, 1, 10).selectExpr("id", "concat('new', id) AS name").write.parquet(path)
    esk.Dataset(iceberg, path).create_indexes(esk.MinMax("id"), esk.ValueList("name"))
    iceberg.read.parquet(path).createOrReplaceTempView("merged")
    merges = {
        "matched": "USING merged s ON t.id = s.id AND s.id > 150 WHEN MATCHED THEN UPDATE SET name = s.name",
        "all": "USING (SELECT * FROM merged WHERE id BETWEEN 100 AND 249) s ON t.id = s.id AND s.id > 150 "
        "WHEN MATCHED AND s.name <> 'new200' THEN UPDATE SET name = s.name "
        "WHEN NOT MATCHED AND s.id < 180 THEN INSERT * WHEN NOT MATCHED BY SOURCE AND t.id < 50 THEN DELETE",
    }
    for name, merge in merges.items():
        found = []
        for on in (False, True):
            into = f"lake.db.merge_{name}_{str(on).lower()}"
            iceberg.sql(f"CREATE TABLE {into} (id BIGINT, name STRING) USING iceberg")
            iceberg.range(0, 2000, 7, 4).selectExpr("id", "'old' AS name").writeTo(into).append()
            (esk.enable if on else esk.disable)(iceberg)
            try:
                with esk.observe(iceberg) as report:
                    iceberg.sql(f"MERGE INTO {into} t {merge}")
            finally:
                esk.enable(iceberg)
            if on:
                assert sum(scan.objects_skipped for scan in report.scans) >= 1, report
            found.append(sorted(tuple(row) for row in iceberg.table(into).collect()))
        assert found[0] == found[1] and any("new" in row[1] for row in found[0])
