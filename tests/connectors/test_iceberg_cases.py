"""Iceberg tables: hidden columns, rows that come back, incremental reads, conflicts, catalogs."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import es_skipping as esk
from es_skipping.build.source import Source
from es_skipping.cli import main
from es_skipping.stores.object_list import ObjectList
from tests.connectors.conflicts import CHANGES, overtaken
from tests.connectors.equal import run_on_and_off
from tests.connectors.test_iceberg import delete_by_equality
from tests.spark.objects_read import num_files, splits_read

FILES = 4
_numbers = itertools.count()
Make = Callable[..., str]


@pytest.fixture
def make(iceberg: SparkSession) -> Iterator[Make]:
    """Makes a table of four files of 100 rows, each a split; Iceberg's own pruning knows nothing of them."""
    made: list[str] = []

    def table(partitioned: str = "", **properties: str) -> str:
        name = f"lake.db.case{next(_numbers)}"
        made.append(name)
        given = {
            "format-version": "2",
            "read.split.open-file-cost": str(128 << 20),
            "write.metadata.metrics.default": "none",
            **properties,
        }
        text = ", ".join(f"'{key}' = '{value}'" for key, value in given.items())
        iceberg.sql(
            f"CREATE TABLE {name} (id BIGINT, name STRING, k BIGINT) USING iceberg {partitioned} TBLPROPERTIES ({text})"
        )
        rows = iceberg.range(0, 400, 1, FILES).selectExpr("id", "concat('n', id) AS name", "id % 7 AS k")
        rows.writeTo(name).append()
        return name

    yield table
    for name in made:
        iceberg.sql(f"DROP TABLE IF EXISTS {name}")


def opened(spark: SparkSession, sql: str, rows: int | None = None) -> int:
    """How many files the query opens; its rows are those that it has with skipping off."""
    found, frame = run_on_and_off(spark, sql)
    if rows is not None:
        assert len(found) == rows, sql
    return splits_read(frame)


def files_of(spark: SparkSession, table: str) -> dict[int, Path]:
    """The file of each row."""
    return {id: Path(file.removeprefix("file:")) for id, file in spark.sql(f"SELECT id, _file FROM {table}").collect()}


BESIDE = (
    "_file = '{file}'",
    "_pos = {position}",
    "_spec_id = 0",
    "_partition.id_trunc = 200",
    "_row_id = {row}",
    "_last_updated_sequence_number = {number}",
)
"""What is true of the row 205 beside its columns."""


@pytest.mark.every(2)
@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_hidden_columns_beside_an_indexed_one(iceberg: SparkSession, make: Make, mode: str) -> None:
    table = make("PARTITIONED BY (truncate(100, id))", **{"format-version": "3", "write.update.mode": mode})
    dataset = esk.Dataset(iceberg, table=table)
    dataset.create_indexes(esk.ValueList("name"))
    for hidden in ("_file", "_pos", "_row_id"):
        with pytest.raises(esk.ColumnError, match="a metadata column"):
            dataset.create_indexes(esk.ValueList(hidden))
    update = f"UPDATE {table} SET k = 100 WHERE id = 205"
    options = "options => map('rewrite-all', 'true')"
    rewrite = f"CALL lake.system.rewrite_data_files(table => '{table.removeprefix('lake.')}', {options})"

    def asked(conditions: Iterable[str]) -> str:
        """All in one plan, in which each is a scan of its own."""
        return " UNION ALL ".join(f"SELECT {n} AS n, id FROM {table} WHERE {one}" for n, one in enumerate(conditions))

    for change in ("SELECT 1", update, rewrite):
        iceberg.sql(change).collect()
        dataset.refresh()
        columns = "_file AS file, _pos AS position, _row_id AS row, _last_updated_sequence_number AS number"
        (found,) = iceberg.sql(f"SELECT {columns} FROM {table} WHERE id = 205").collect()
        beside = [text.format(**found.asDict()) for text in BESIDE]
        files = iceberg.sql(f"SELECT file_path FROM {table}.data_files").count()
        with_the_name = 2 if mode == "merge-on-read" and change == update else 1  # the old file has the row, deleted
        both = asked(f"name = 'n205' AND {one}" for one in beside)
        assert opened(iceberg, both, len(beside)) == with_the_name * len(beside)
        but_not = asked(f"name = 'n205' AND NOT ({one})" for one in beside)
        assert opened(iceberg, but_not, 0) == with_the_name * len(beside)
        either = asked(f"name = 'n5' OR {one}" for one in beside)
        assert opened(iceberg, either) == files * len(beside)


def test_verify_looks_at_files_and_believes_the_snapshot_about_their_time(iceberg: SparkSession, make: Make) -> None:
    table = make()
    esk.Dataset(iceberg, table=table).create_indexes(esk.ValueList("name"))
    files = files_of(iceberg, table)
    for file in set(files.values()):
        os.utime(file, (10**9, 10**9))
    iceberg.conf.set("spark.es_skipping.verify", "stat")
    try:
        assert opened(iceberg, f"SELECT * FROM {table} WHERE name = 'n205'", 1) == 1
        files[5].unlink()
        with pytest.raises(Exception, match="NotFoundException"):  # which Spark says with skipping off
            iceberg.sql(f"SELECT * FROM {table} WHERE name = 'n205'").collect()
    finally:
        iceberg.conf.unset("spark.es_skipping.verify")
    assert [row.id for row in iceberg.sql(f"SELECT id FROM {table} WHERE name = 'n205'").collect()] == [205]


def test_rows_that_equality_deletes_took_come_back(iceberg: SparkSession, make: Make) -> None:
    """The index is built while the row is gone."""
    table = make()
    call, short = "CALL lake.system.", table.removeprefix("lake.")
    for reference in ("TAG whole", "BRANCH side"):
        iceberg.sql(f"ALTER TABLE {table} CREATE {reference}")
    delete_by_equality(iceberg, table, "name", "n205")
    for reference in ("TAG less", "BRANCH lessened"):
        iceberg.sql(f"ALTER TABLE {table} CREATE {reference}")
    before, after = iceberg.sql(f"SELECT * FROM {table}.snapshots ORDER BY committed_at").collect()
    esk.Dataset(iceberg, table=table).create_indexes(esk.ValueList("name"))
    query = f"SELECT * FROM {table}{{}} WHERE name = 'n205'"
    for rows, tag, branch, snapshot in ((1, "whole", "side", before), (0, "less", "lessened", after)):
        for when in (
            f" VERSION AS OF '{tag}'",
            f" VERSION AS OF '{branch}'",
            f" TIMESTAMP AS OF '{snapshot.committed_at}'",
            f".branch_{branch}",
        ):
            assert opened(iceberg, query.format(when), rows) == 1
    for rows, procedure in (
        (1, f"rollback_to_snapshot('{short}', {before.snapshot_id})"),
        (0, f"set_current_snapshot('{short}', {after.snapshot_id})"),
        (1, f"rollback_to_timestamp('{short}', TIMESTAMP '{after.committed_at}')"),
        (0, f"fast_forward('{short}', 'main', 'lessened')"),
    ):
        iceberg.sql(call + procedure)
        assert opened(iceberg, query.format(""), rows) == 1


def test_a_row_that_is_cherry_picked_after_its_name_was_deleted(iceberg: SparkSession, make: Make) -> None:
    table = make(**{"write.wap.enabled": "true"})
    iceberg.conf.set("spark.wap.id", "staged")
    try:
        rows = "SELECT * FROM VALUES (400L, 'n205', 0L), (401L, 'n401', 0L) AS v(id, name, k)"
        iceberg.sql(rows).coalesce(1).writeTo(table).append()
    finally:
        iceberg.conf.unset("spark.wap.id")
    (staged,) = iceberg.sql(f"SELECT * FROM {table}.snapshots WHERE summary['wap.id'] = 'staged'").collect()
    delete_by_equality(iceberg, table, "name", "n205")
    dataset = esk.Dataset(iceberg, table=table)
    dataset.create_indexes(esk.ValueList("name"))
    query = f"SELECT * FROM {table} WHERE name = '{{}}'"
    assert opened(iceberg, query.format("n205"), 0) == 1
    iceberg.sql(f"CALL lake.system.cherrypick_snapshot('{table.removeprefix('lake.')}', {staged.snapshot_id})")
    picked = ((True, "n205", 1, 2), (True, "n105", 1, 2), (False, "n205", 1, 2), (False, "n105", 1, 1))
    for unknown, name, rows, files in (*picked, (False, "n401", 1, 1)):
        if not unknown:
            dataset.refresh()
        assert opened(iceberg, query.format(name), rows) == files
    of_the_staged = f"SELECT * FROM {table} VERSION AS OF {staged.snapshot_id} WHERE name = 'n205'"
    assert opened(iceberg, of_the_staged, 2) == 2


def test_incremental_reads_are_left_alone(iceberg: SparkSession, make: Make) -> None:
    """An index says which files of a snapshot hold a row, and such a read is not one of a snapshot."""
    table = make()
    dataset = esk.Dataset(iceberg, table=table)
    dataset.create_indexes(esk.ValueList("name"))
    for first in (400, 420):
        rows = iceberg.range(first, first + 10, 1, 1).selectExpr("id", "concat('n', id % 400) AS name", "id % 7 AS k")
        rows.writeTo(table).append()
    iceberg.sql(f"DELETE FROM {table} WHERE name = 'n205'")  # of such a commit an incremental read says nothing
    dataset.refresh()
    found = iceberg.sql(f"SELECT snapshot_id FROM {table}.snapshots ORDER BY committed_at").collect()
    whole, one, two, last = (str(row.snapshot_id) for row in found)
    reads = {
        (whole, two, 5): (1, 2),  # in the first of the two files
        (whole, last, 25): (1, 2),  # in the second
        (whole, last, 105): (0, 2),  # in an older one
        (whole, one, 5): (1, 1),
        (one, two, 5): (0, 1),
        (two, last, 205): (0, 0),
    }
    for (start, end, id), (rows, files) in reads.items():
        assert opened(iceberg, f"SELECT * FROM {table} WHERE name = 'n{id}'") < FILES  # as the index knows both
        options = f"`start-snapshot-id` = '{start}', `end-snapshot-id` = '{end}'"
        with esk.observe(iceberg) as report:
            query = f"SELECT * FROM {table} WITH ({options}) WHERE name = 'n{id}'"
            assert (len(run_on_and_off(iceberg, query)[0]), opened(iceberg, query)) == (rows, files)
        assert report.scans == ()


def test_the_folder_of_an_indexed_table_as_parquet(iceberg: SparkSession, make: Make) -> None:
    """An index of the table says nothing of the directory, which may hold other files and other rows."""
    table = make()
    esk.Dataset(iceberg, table=table).create_indexes(esk.ValueList("name"))
    folder = files_of(iceberg, table)[0].parent
    iceberg.sql(f"DELETE FROM {table} WHERE id < 100")
    iceberg.read.parquet(str(folder)).createOrReplaceTempView("folder")
    for id in (5, 205):
        found, frame = run_on_and_off(iceberg, f"SELECT id FROM folder WHERE name = 'n{id}'")
        assert (found, num_files(frame)) == ([(id,)], [FILES])


CATALOGS = {
    "jdbc": ("side", "SparkCatalog", {"type": "jdbc", "uri": "jdbc:derby:memory:lake;create=true"}),
    "session": ("spark_catalog", "SparkSessionCatalog", {"type": "hadoop"}),
}


@pytest.mark.parametrize("kind", CATALOGS)
def test_other_catalogs(iceberg: SparkSession, tmp_path: Path, kind: str) -> None:
    """One that a database keeps, and one in the place of Spark's own, which has plain tables too."""
    catalog, name, given = CATALOGS[kind]
    spark, key = iceberg.newSession(), f"spark.sql.catalog.{catalog}"
    iceberg._jvm.System.setProperty("derby.stream.error.file", str(tmp_path / "derby.log"))  # type: ignore[union-attr]
    spark.conf.set(key, f"org.apache.iceberg.spark.{name}")
    for option, value in {**given, "warehouse": (tmp_path / "lake").as_uri()}.items():
        spark.conf.set(f"{key}.{option}", value)
    esk.enable(spark)
    table = f"{catalog}.default.kept"
    spark.sql(
        f"CREATE TABLE {table} (id BIGINT, name STRING) USING iceberg TBLPROPERTIES "
        f"('write.metadata.metrics.default' = 'none', 'read.split.open-file-cost' = '{128 << 20}')"
    )
    spark.range(0, 400, 1, FILES).selectExpr("id", "concat('n', id) AS name").writeTo(table).append()
    dataset = esk.Dataset(spark, table=table)
    assert dataset.create_indexes(esk.ValueList("name")).added == FILES
    query = f"SELECT * FROM {table} WHERE name = 'n205'"
    assert opened(spark, query, 1) == 1
    spark.range(400, 410, 1, 1).selectExpr("id", "concat('n', id) AS name").writeTo(table).append()
    assert opened(spark, query, 1) == 2
    assert dataset.refresh().added == 1
    assert opened(spark, query, 1) == 1
    spark.sql(f"DELETE FROM {table} WHERE name = 'n205'")
    assert opened(spark, query, 0) == 1
    if kind == "session":
        assert esk.Dataset(spark, table="kept").id == dataset.id
        numbers = "SELECT /*+ REPARTITION_BY_RANGE(4, id) */ id, concat('n', id) AS name FROM range(400)"
        spark.sql(f"CREATE TABLE plain USING parquet AS {numbers}")
        esk.Dataset(spark, table="plain").create_indexes(esk.ValueList("name"))
        found, frame = run_on_and_off(spark, "SELECT id FROM plain WHERE name = 'n205'")
        assert (found, num_files(frame)) == ([(205,)], [1])
        spark.sql("DROP TABLE plain")
    spark.sql(f"DROP TABLE {table}")


@pytest.mark.filterwarnings("ignore:a Spark session already runs")
def test_the_command_line_takes_a_name_of_three_parts(
    iceberg: SparkSession,
    make: Make,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    table, key = make(), "spark.es_skipping.store.url"
    before = iceberg.conf.get(key, None)
    monkeypatch.setattr(SparkSession, "stop", lambda self: None)  # commands share the session of this test
    asked = ("--table", table, "--json", "--store", (tmp_path / "store").as_uri())
    try:
        assert main(["index", "create", *asked, "ValueList(name)"]) == 0
        assert json.loads(capsys.readouterr().out)["added"] == FILES
        iceberg.range(400, 410, 1, 1).selectExpr("id", "concat('n', id) AS name", "id AS k").writeTo(table).append()
        assert main(["index", "refresh", *asked]) == 0
        assert json.loads(capsys.readouterr().out)["added"] == 1
        assert main(["index", "describe", *asked]) == 0
        assert '"iceberg"' in capsys.readouterr().out
    finally:
        if before is None:
            iceberg.conf.unset(key)
        else:
            iceberg.conf.set(key, before)


def test_files_expire_during_a_build(iceberg: SparkSession, make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    table = make(**{"write.update.mode": "copy-on-write"})
    other, short = iceberg.newSession(), table.removeprefix("lake.")
    plain = Source.objects

    def objects(self: Source) -> ObjectList:
        found = plain(self)
        other.sql(f"UPDATE {table} SET k = 9 WHERE id < 100")
        other.sql(
            f"CALL lake.system.expire_snapshots(table => '{short}', older_than => TIMESTAMP '2100-01-01', "
            "retain_last => 1)"
        ).collect()
        return found

    dataset = esk.Dataset(iceberg, table=table)
    with monkeypatch.context() as patched:
        patched.setattr(Source, "objects", objects)
        result = dataset.create_indexes(esk.ValueList("name"), esk.MinMax("id"))
    assert (result.added, len(result.failed)) == (FILES - 1, 1)
    iceberg.sql(f"REFRESH TABLE {table}")
    assert opened(iceberg, f"SELECT * FROM {table} WHERE name = 'n50'", 1) == 1  # the new file, unknown yet
    assert opened(iceberg, f"SELECT * FROM {table} WHERE name = 'n205'", 1) == 2
    again = dataset.refresh()
    assert (again.added, again.failed) == (1, ())
    assert opened(iceberg, f"SELECT * FROM {table} WHERE name = 'n205'", 1) == 1


@pytest.mark.every(2)
@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_conflicts_are_those_that_there_are_without_skipping(
    iceberg: SparkSession, make: Make, tmp_path: Path, mode: str
) -> None:
    other = iceberg.newSession()

    def outcome(number: int, meanwhile: str, *, skipping: bool) -> str:
        """What becomes of an UPDATE of one file if something else is committed after it has begun."""
        table = make(**{"write.update.mode": mode, "write.delete.mode": mode})
        if skipping:
            esk.Dataset(iceberg, table=table).create_indexes(esk.ValueList("name"), esk.MinMax("id"))
        error = overtaken(
            iceberg,
            f"UPDATE {table} SET name = slow(name) WHERE name = 'n205'",
            lambda: other.sql(meanwhile.format(table)).collect(),
            tmp_path / f"{number}-{skipping}",
            skipping=skipping,
        )
        iceberg.sql(f"REFRESH TABLE {table}")
        return f"{'done' if error is None else 'refused'}, {iceberg.table(table).count()} rows"

    found = [[outcome(n, change, skipping=on) for n, change in enumerate(CHANGES)] for on in (True, False)]
    assert found[0] == found[1]
    assert not found[0][2].startswith("done"), found
