"""Iceberg tables: conflicts, builds that files are taken from, and limits, for which no file may stand for its rows."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import es_skipping as esk
from es_skipping.build.source import Source
from es_skipping.cli import main
from es_skipping.stores.object_list import ObjectList
from tests.connectors.conflicts import CHANGES, overtaken
from tests.connectors.equal import run_on_and_off
from tests.spark.objects_read import batch_scans

FILES = 4
_numbers = itertools.count()
Make = Callable[..., str]


@pytest.fixture
def make(iceberg: SparkSession) -> Iterator[Make]:
    """Makes a table of four files of 100 rows, each a split; Iceberg's own pruning knows nothing of them."""
    made: list[str] = []

    def table(**properties: str) -> str:
        name = f"lake.db.case{next(_numbers)}"
        made.append(name)
        given = {
            "format-version": "2",
            "read.split.open-file-cost": str(128 << 20),
            "write.metadata.metrics.default": "none",
            **properties,
        }
        text = ", ".join(f"'{key}' = '{value}'" for key, value in given.items())
        iceberg.sql(f"CREATE TABLE {name} (id BIGINT, name STRING, k BIGINT) USING iceberg TBLPROPERTIES ({text})")
        rows = iceberg.range(0, 400, 1, FILES).selectExpr("id", "concat('n', id) AS name", "id % 7 AS k")
        rows.writeTo(name).append()
        return name

    yield table
    for name in made:
        iceberg.sql(f"DROP TABLE IF EXISTS {name}")


def opened(spark: SparkSession, sql: str, rows: int) -> int:
    """How many files the query opens; its rows are those that it has with skipping off."""
    found, frame = run_on_and_off(spark, sql)
    assert len(found) == rows, sql
    return sum(scan.metrics().apply("numSplits").value() for scan in batch_scans(frame))


def test_no_file_guarantees_the_rows_of_a_limit(iceberg: SparkSession, make: Make) -> None:
    """A file may have deleted rows, so the number of its rows does not say how many of them a query gets."""
    table = make(**{"write.delete.mode": "merge-on-read"})
    dataset = esk.Dataset(iceberg, table=table)
    dataset.create_indexes(esk.MinMax("id"), esk.ValueList("k"))
    first = f"SELECT id FROM {table} ORDER BY id LIMIT 10"
    some = f"SELECT id FROM {table} WHERE id >= 0 ORDER BY id DESC LIMIT 10"
    assert (opened(iceberg, first, 10), opened(iceberg, some, 10)) == (FILES, FILES)
    iceberg.sql(f"DELETE FROM {table} WHERE id < 95 OR id >= 305")
    for refresh in (False, True):
        if refresh:
            dataset.refresh()
        assert (opened(iceberg, first, 10), opened(iceberg, some, 10)) == (FILES, FILES)
        assert iceberg.sql(f"SELECT id FROM {table} LIMIT 300").count() == 210


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
