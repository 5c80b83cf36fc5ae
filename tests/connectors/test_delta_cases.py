"""Delta tables: conflicts, builds that files are taken from, odd paths and readers, tables that others wrote."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import es_skipping as esk
from es_skipping.build.source import Source
from es_skipping.stores.object_list import ObjectList
from tests.connectors.conflicts import CHANGES, overtaken
from tests.connectors.equal import rows_on_and_off, run_on_and_off
from tests.connectors.limits import check_limits
from tests.spark.objects_read import num_files

_numbers = itertools.count()
Make = Callable[..., str]


@pytest.fixture
def make(delta: SparkSession) -> Iterator[Make]:
    """Makes a table of four files; each name is in one of them, and their minima and maxima rule nothing out."""
    made: list[str] = []

    def table(*columns: str, by: str | None = None, **properties: str) -> str:
        name = f"case{next(_numbers)}"
        made.append(name)
        rows = delta.range(0, 400, 1, 4).selectExpr(
            "id", "concat('n', lpad(CAST(pmod(id * 7919, 400) AS string), 3, '0')) AS name", "id % 7 AS k", *columns
        )
        text = ", ".join(f"'{key}' = '{value}'" for key, value in {"delta.appendOnly": "false", **properties}.items())
        schema = ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in rows.schema)
        partitioned = f"PARTITIONED BY ({by})" if by else ""
        delta.sql(f"CREATE TABLE {name} ({schema}) USING delta {partitioned} TBLPROPERTIES ({text})")
        rows.write.format("delta").mode("append").saveAsTable(name)
        return name

    yield table
    for name in made:
        delta.sql(f"DROP TABLE IF EXISTS {name}")


def name_of(id: int) -> str:
    return f"n{id * 7919 % 400:03d}"


def opened(spark: SparkSession, sql: str, rows: int | None = None) -> list[int]:
    """How many files each scan of the query opens; its rows are those that it has with skipping off."""
    found, frame = run_on_and_off(spark, sql)
    assert rows is None or len(found) == rows, (sql, len(found))
    return sorted(num_files(frame))


def location(spark: SparkSession, table: str) -> Path:
    detail = spark.sql(f"DESCRIBE DETAIL {table}").head()
    assert detail is not None
    return Path(detail["location"].removeprefix("file:"))


def test_a_count_over_a_table_whose_only_file_is_skipped(delta: SparkSession, make: Make) -> None:
    table = make()
    delta.sql(f"OPTIMIZE {table}")
    esk.Dataset(delta, table=table).create_indexes(esk.ValueList("name"))
    absent = f"SELECT count(*), max(id) FROM {table} WHERE name = 'n1234'"
    assert rows_on_and_off(delta, absent) == [(0, None)]
    assert sum(opened(delta, absent)) == 0
    assert rows_on_and_off(delta, f"SELECT k, count(*) FROM {table} WHERE name = 'n1234' GROUP BY k") == []


def test_files_without_deleted_rows_guarantee_those_of_a_limit(delta: SparkSession, make: Make) -> None:
    """How many rows a file has says how many a query gets of it, unless some are deleted in the snapshot."""
    table = make(**{"delta.enableDeletionVectors": "true", "delta.dataSkippingNumIndexedCols": "0"})

    def files(sql: str, rows: int) -> int:
        (found,) = opened(delta, sql, rows)
        return found

    def check_any(sql: str, rows: int) -> None:
        assert delta.sql(sql).count() == rows

    def latest() -> object:
        newest = delta.sql(f"DESCRIBE HISTORY {table}").head()
        assert newest is not None
        return newest["version"]

    def go_back(version: object) -> object:
        return delta.sql(f"RESTORE TABLE {table} TO VERSION AS OF {version}")

    check_limits(delta, table, files, check_any, latest, go_back)


def test_which_index_would_help(delta: SparkSession, make: Make) -> None:
    """By its name and by its path; of an older version the advice says that it was judged from the latest."""
    table = make()
    folder = location(delta, table)
    condition = "k = 3 AND name LIKE 'n12%'"
    reads = {
        table: delta.table(table),
        str(folder): delta.sql(f"SELECT * FROM delta.`{folder}`"),
        folder.name: delta.read.format("delta").load(str(folder)),
    }
    for name, frame in reads.items():
        advice = esk.why_not(frame.where(condition))
        (scan,) = advice.scans
        assert scan.reason is None, scan
        assert (scan.objects, scan.sampled, scan.table_format, scan.snapshot) == (4, 4, "delta", "1")
        first = str(advice).splitlines()[0]
        assert first.startswith("Scan of ") and f"{name}, delta snapshot 1, filter " in first
        assert {"ValueList(k)", "MinMax(k)"} <= {str(one.index) for one in scan.candidates}, scan
    delta.sql(f"INSERT INTO {table} VALUES (1, 'x', 1)")
    for old in (
        delta.sql(f"SELECT * FROM {table} VERSION AS OF 1"),
        delta.read.format("delta").option("versionAsOf", 1).load(str(folder)),
    ):
        advice = esk.why_not(old.where(condition))
        (scan,) = advice.scans
        assert (scan.reason, scan.objects, scan.snapshot, scan.sampled_snapshot) == (None, 5, "1", "2")
        assert str(advice).endswith("Judged from 5 of 5 objects of delta snapshot 2.")
    judged = str(esk.advise(delta, esk.Dataset(delta, table=table), budget="1 MB", log=[condition]))
    assert ", delta snapshot 2: indexes within 1.0 MiB, judged from 5 of 5 objects" in judged


def test_deltas_v2_connector_is_left_alone(delta: SparkSession, make: Make) -> None:
    table = make(**{"delta.dataSkippingNumIndexedCols": "0"})
    esk.Dataset(delta, table=table).create_indexes(esk.ValueList("name"))
    point = f"SELECT * FROM delta.`{location(delta, table)}` WHERE name = '{name_of(205)}'"
    delta.conf.set("spark.databricks.delta.v2.enableMode", "STRICT")
    try:
        with esk.observe(delta) as report:
            found, frame = run_on_and_off(delta, point)
    finally:
        delta.conf.unset("spark.databricks.delta.v2.enableMode")
    there = "BatchScan" in frame._jdf.queryExecution().executedPlan().toString()
    assert (len(found), there) == (1, not delta.version.startswith("4.0"))  # Delta 4.0 does not have it
    assert [scan.objects_skipped for scan in report.scans if scan.objects_skipped] == ([] if there else [3])


def test_two_scans_of_one_table_with_other_filters(delta: SparkSession, make: Make) -> None:
    table = make()
    esk.Dataset(delta, table=table).create_indexes(esk.ValueList("name"))
    one, other = (f"SELECT id, k FROM {table} WHERE name = '{name_of(id)}'" for id in (5, 205))
    assert opened(delta, f"{one} UNION ALL {other}", 2) == [1, 1]
    joined = f"SELECT a.id, b.id FROM {table} a JOIN {table} b ON a.k = b.k"
    assert opened(delta, f"{joined} WHERE a.name = '{name_of(5)}' AND b.name = '{name_of(208)}'", 1) == [1, 1]
    then = f"SELECT id, k FROM {table} VERSION AS OF 1 WHERE name = '{name_of(205)}'"
    delta.sql(f"DELETE FROM {table} WHERE name = '{name_of(205)}'")
    assert len(rows_on_and_off(delta, f"{then} EXCEPT ({other})")) == 1


@pytest.mark.parametrize("mapping", ["none", "name", pytest.param("id", marks=pytest.mark.long)])
def test_bounds_from_footers_are_of_the_right_column(delta: SparkSession, make: Make, mapping: str) -> None:
    table = make("id AS low", "id + 1000 AS high", **{"delta.columnMapping.mode": mapping})
    if mapping != "none":  # each has a physical name that was the other's
        for old, new in (("low", "aside"), ("high", "low"), ("aside", "high")):
            delta.sql(f"ALTER TABLE {table} RENAME COLUMN {old} TO {new}")
    esk.Dataset(delta, table=table).create_indexes(esk.MinMax("low"), esk.MinMax("high"))
    delta.conf.set("spark.databricks.delta.stats.skipping", "false")  # so that nobody else skips
    delta.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'false')")
    high = "low" if mapping != "none" else "high"
    low = "high" if mapping != "none" else "low"
    try:
        assert opened(delta, f"SELECT * FROM {table} WHERE {high} = 1205", 1) == [1]
        assert opened(delta, f"SELECT * FROM {table} WHERE {low} = 205", 1) == [1]
        assert sum(opened(delta, f"SELECT * FROM {table} WHERE {low} = 1205", 0)) == 0
    finally:
        delta.conf.unset("spark.databricks.delta.stats.skipping")


def test_columns_that_come_with_later_files(delta: SparkSession, make: Make) -> None:
    table = make()
    dataset = esk.Dataset(delta, table=table)
    dataset.create_indexes(esk.ValueList("name"))
    rows = delta.range(400, 500, 1, 1).selectExpr(
        "id", "concat('n', id) AS name", "id % 7 AS k", "concat('e', id) AS extra"
    )
    rows.write.format("delta").mode("append").option("mergeSchema", "true").saveAsTable(table)
    assert opened(delta, f"SELECT * FROM {table} WHERE name = 'n450'", 1) == [1]
    dataset.ensure_indexes(esk.ValueList("extra"))
    assert opened(delta, f"SELECT * FROM {table} WHERE extra = 'e450'", 1) == [1]
    assert opened(delta, f"SELECT * FROM {table} WHERE extra IS NULL", 400) == [4]
    assert opened(delta, f"SELECT * FROM {table} WHERE name = '{name_of(5)}' AND extra IS NULL", 1) == [1]


def test_metadata_columns_in_filters(delta: SparkSession, make: Make) -> None:
    table = make(**{"delta.enableRowTracking": "true", "delta.enableDeletionVectors": "true"})
    esk.Dataset(delta, table=table).create_indexes(esk.ValueList("name"), esk.MinMax("id"))
    delta.sql(f"DELETE FROM {table} WHERE id IN (7, 206)")
    row = delta.sql(f"SELECT _metadata.row_id AS row, _metadata.row_index AS at FROM {table} WHERE id = 205").head()
    assert row is not None
    point = f"name = '{name_of(205)}'"
    conditions = (
        f"_metadata.row_id = {row.row}",
        f"_metadata.row_id >= {row.row} AND {point}",
        f"_metadata.row_index = {row.at} AND {point}",
        f"input_file_name() <> '' AND {point}",
        f"_metadata.file_size > 0 AND ({point} OR _metadata.row_index < 0)",
        f"_metadata.file_modification_time > TIMESTAMP'2000-01-01' AND {point}",
        f"_metadata.row_commit_version = 1 AND {point}",
    )
    each = (f"SELECT {n} AS n, id FROM {table} WHERE {condition}" for n, condition in enumerate(conditions))
    assert rows_on_and_off(delta, " UNION ALL ".join(each)) == [(n, 205) for n in range(len(conditions))]


@pytest.mark.parametrize("mapping", [pytest.param("none", marks=pytest.mark.long), "name"])
def test_partitions_whose_paths_are_odd(delta: SparkSession, make: Make, mapping: str) -> None:
    table = make(
        "CASE k WHEN 0 THEN 'a b' WHEN 1 THEN 'é=%25/ü' WHEN 2 THEN '' WHEN 3 THEN 'x+y#?' END AS part",
        by="part",
        **{"delta.columnMapping.mode": mapping},
    )
    delta.sql(f"OPTIMIZE {table}")
    dataset = esk.Dataset(delta, table=table)
    result = dataset.create_indexes(esk.ValueList("name"))
    assert (result.added, result.failed) == (4, ())
    each = (f"SELECT * FROM {table} WHERE name = '{name_of(id)}'" for id in range(5))  # all five ways of writing one
    assert opened(delta, " UNION ALL ".join(each), 5) == [1] * 5
    if mapping == "name":
        delta.sql(f"ALTER TABLE {table} RENAME COLUMN part TO piece")
        delta.sql(f"ALTER TABLE {table} ADD COLUMN part STRING")
        assert opened(delta, f"SELECT * FROM {table} WHERE piece = 'a b' AND name = '{name_of(0)}'", 1) == [1]
        assert len(rows_on_and_off(delta, f"SELECT * FROM {table} WHERE part IS NULL AND name = '{name_of(0)}'")) == 1
        assert rows_on_and_off(delta, f"SELECT * FROM {table} WHERE part = 'a b'") == []


def test_shallow_clones(delta: SparkSession, make: Make) -> None:
    table = make(**{"delta.enableDeletionVectors": "true"})
    clone = f"{table}_clone"
    delta.sql(f"CREATE TABLE {clone} SHALLOW CLONE {table}")
    try:
        esk.Dataset(delta, table=table).create_indexes(esk.ValueList("name"))
        point = f"SELECT * FROM {{}} WHERE name = '{name_of(205)}'"
        assert len(rows_on_and_off(delta, point.format(clone))) == 1
        esk.Dataset(delta, table=clone).create_indexes(esk.ValueList("name"))
        assert opened(delta, point.format(clone), 1) == [1]
        delta.sql(f"DELETE FROM {clone} WHERE name = '{name_of(205)}'")
        assert opened(delta, point.format(clone), 0) == [1]
        assert opened(delta, point.format(table), 1) == [1]
    finally:
        delta.sql(f"DROP TABLE {clone}")


def test_vacuum_takes_files_during_a_build(delta: SparkSession, make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    table = make(**{"delta.enableDeletionVectors": "false"})
    other = delta.newSession()
    other.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    plain = Source.objects

    def objects(self: Source) -> ObjectList:
        found = plain(self)
        other.sql(f"UPDATE {table} SET k = 9 WHERE id < 100")
        other.sql(f"VACUUM {table} RETAIN 0 HOURS")
        return found

    dataset = esk.Dataset(delta, table=table)
    with monkeypatch.context() as patched:
        patched.setattr(Source, "objects", objects)
        result = dataset.create_indexes(esk.ValueList("name"), esk.MinMax("id"))
    assert (result.added, len(result.failed)) == (3, 1)
    assert opened(delta, f"SELECT * FROM {table} WHERE name = '{name_of(50)}'", 1) == [1]  # the new file, unknown yet
    assert opened(delta, f"SELECT * FROM {table} WHERE name = '{name_of(205)}'", 1) == [2]
    again = dataset.refresh()
    assert (again.added, again.failed) == (1, ())
    assert opened(delta, f"SELECT * FROM {table} WHERE name = '{name_of(205)}'", 1) == [1]


def test_a_refresh_opens_new_files_only(delta: SparkSession, make: Make) -> None:
    table = make(**{"delta.enableDeletionVectors": "false"})
    dataset = esk.Dataset(delta, table=table)
    dataset.create_indexes(esk.ValueList("name"))
    known = next(location(delta, table).glob("*.parquet"))
    delta.sql(f"INSERT INTO {table} VALUES (1000, 'new', 1)")
    aside = known.rename(known.with_suffix(".aside"))
    try:
        result = dataset.refresh()
    finally:
        aside.rename(known)
    assert (result.added, result.unchanged, result.failed) == (1, 4, ())
    assert opened(delta, f"SELECT * FROM {table} WHERE name = 'new'", 1) == [1]


def test_conflicts_are_those_that_there_are_without_skipping(delta: SparkSession, make: Make, tmp_path: Path) -> None:
    other = delta.newSession()

    def outcome(number: int, meanwhile: str, *, skipping: bool) -> str:
        """What becomes of an UPDATE of one file if something else is committed after it has begun."""
        table = make(**{"delta.enableDeletionVectors": "false"})
        if skipping:
            esk.Dataset(delta, table=table).create_indexes(esk.ValueList("name"), esk.MinMax("id"))
        error: Any = overtaken(
            delta,
            f"UPDATE {table} SET name = slow(name) WHERE name = '{name_of(205)}'",
            lambda: other.sql(meanwhile.format(table)).collect(),
            tmp_path / f"{number}-{skipping}",
            skipping=skipping,
        )
        condition = getattr(error, "getCondition", lambda: None)()
        said = "done" if error is None else str(condition or str(error).split("]")[0].split(":")[0])
        return f"{said}, {delta.table(table).count()} rows"

    found = [[outcome(n, change, skipping=on) for n, change in enumerate(CHANGES)] for on in (True, False)]
    assert found[0] == found[1]
    assert not found[0][2].startswith("done"), found


def test_a_column_dropped_and_added_again_after_a_query_was_made(delta: SparkSession) -> None:
    """Where the session does not ask Delta to fail, the files are read by the names that the query was made with."""
    delta.sql(
        "CREATE TABLE made_before (k BIGINT, day INT) USING delta TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"
    )
    delta.range(0, 40, 1, 4).selectExpr("id AS k", "CAST(id DIV 10 AS INT) AS day").write.insertInto("made_before")
    dataset = esk.Dataset(delta, table="made_before")
    dataset.create_indexes(esk.MinMax("k"))
    off = delta.newSession()
    delta.conf.set("spark.databricks.delta.checkLatestSchemaOnRead", "false")
    off.conf.set("spark.databricks.delta.checkLatestSchemaOnRead", "false")
    esk.disable(off)
    try:
        frames = [session.table("made_before").where("k = 5") for session in (delta, off)]
        off.sql("ALTER TABLE made_before DROP COLUMN k")
        off.sql("ALTER TABLE made_before ADD COLUMN k BIGINT")
        off.sql("INSERT INTO made_before VALUES (9, 5)")
        dataset.refresh()
        ours, theirs = (sorted(map(repr, frame.collect())) for frame in frames)
        assert ours == theirs == ["Row(k=5, day=0)"]
    finally:
        delta.conf.unset("spark.databricks.delta.checkLatestSchemaOnRead")
        delta.sql("DROP TABLE made_before")


def test_a_table_that_delta_rs_wrote(delta: SparkSession, tmp_path: Path) -> None:
    """Its files, statistics and paths are another writer's."""
    path = str(tmp_path / "by delta-rs")
    for first in range(0, 400, 100):
        ids = range(first, first + 100)
        rows = pa.table(
            {
                "id": pa.array(ids),
                "name": [name_of(id) for id in ids],
                "part": [("a b", "ü%2B", None)[id % 3] for id in ids],
            }
        )
        deltalake.write_deltalake(path, rows, mode="append", partition_by=["part"])
    table = deltalake.DeltaTable(path)
    dataset = esk.Dataset(delta, path)
    result = dataset.create_indexes(esk.ValueList("name"), esk.MinMax("id"))
    assert (result.added, result.failed) == (12, ())
    point = f"SELECT * FROM delta.`{path}` WHERE name = '{name_of(205)}'"
    assert opened(delta, point, 1) == [1]
    table.delete(f"name = '{name_of(205)}'")
    assert sum(opened(delta, point, 0)) == 1  # what is left of the file, written anew
    assert sum(opened(delta, point.replace(f"`{path}`", f"`{path}@v3`"), 1)) == 1
    table.update(updates={"name": f"'{name_of(205)}'"}, predicate="id = 7")
    table.optimize.compact()
    assert len(rows_on_and_off(delta, point)) == 1
    assert dataset.refresh().failed == ()
    assert opened(delta, point, 1) == [1]
