"""Changes of Delta tables: the search for the files to change skips, their rewriting does not."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import pytest
from pyspark.sql import SparkSession

import es_skipping as esk
from tests.connectors.equal import run_on_and_off
from tests.spark.objects_read import nodes_executed

_numbers = itertools.count()

Make = Callable[..., str]
ROWS = 400


@pytest.fixture
def make(delta: SparkSession) -> Iterator[Make]:
    """Makes a table of four files; each name is in one of them, and their minima and maxima rule nothing out."""
    made: list[str] = []

    def table(*, vectors: bool, **properties: str) -> str:
        name = f"changed{next(_numbers)}"
        made.append(name)
        given = {"delta.enableDeletionVectors": str(vectors).lower(), **properties}
        text = ", ".join(f"'{key}' = '{value}'" for key, value in given.items())
        columns = "id BIGINT, name STRING, flag BOOLEAN, place STRING"
        delta.sql(f"CREATE TABLE {name} ({columns}) USING delta TBLPROPERTIES ({text})")
        rows = delta.range(0, ROWS, 1, 4).selectExpr(
            "id",
            "concat('n', lpad(CAST(pmod(id * 7919, 400) AS string), 3, '0')) AS name",
            "id < 100 OR id = 205 AS flag",
            "'x' AS place",
        )
        rows.write.format("delta").mode("append").saveAsTable(name)
        return name

    yield table
    for name in made:
        delta.sql(f"DROP TABLE IF EXISTS {name}")


def name_of(id: int) -> str:
    return f"n{id * 7919 % ROWS:03d}"


_OF_TABLES = ("TahoeBatchFileIndex", "SkippingFileIndex")


def scans_of(spark: SparkSession, table: str, statement: str) -> list[tuple[str, int]]:
    """The scans of a table in all that a statement executes: the first word about each, and Spark's number of files."""
    found = []
    for execution, _, files in nodes_executed(
        spark,
        statement.format(table),
        lambda name: name.startswith("Scan parquet") and name.endswith(table),
        "number of files read",
    ):
        if any(index in execution.physicalPlanDescription() for index in _OF_TABLES):
            found.append((str(execution.description()).removeprefix("Delta: ").split(" ")[0], files))
    return found


def metrics(spark: SparkSession, table: str) -> dict[str, str]:
    found = spark.sql(f"DESCRIBE HISTORY {table} LIMIT 1").head()
    assert found is not None
    return {key: value for key, value in found["operationMetrics"].items() if "Time" not in key and "Bytes" not in key}


_MATCHED = "WHEN MATCHED THEN UPDATE SET place = 'merged'"
_OTHERS = "WHEN NOT MATCHED THEN INSERT (name) VALUES (s.name)"
_GONE = "WHEN NOT MATCHED BY SOURCE AND t.id = 7 THEN DELETE"
_NAMES = f"(SELECT explode(array('{name_of(33)}', '{name_of(205)}', '{name_of(206)}', NULL, 'other')) AS name)"
_NAME = f"(SELECT '{name_of(340)}' AS name)"

CHANGES = {
    "update": (f"UPDATE {{}} SET place = 'updated' WHERE name = '{name_of(33)}'", 1),
    "delete": (f"DELETE FROM {{}} WHERE name = '{name_of(205)}'", 1),
    "nothing": ("DELETE FROM {} WHERE name = 'n1234'", 0),
    "merge of one": (f"MERGE INTO {{}} t USING {_NAME} s ON t.name = s.name {_MATCHED} {_OTHERS}", 1),
    "merge of some": (f"MERGE INTO {{}} t USING {_NAMES} s ON t.name = s.name {_MATCHED} {_OTHERS}", 2),
    "merge that deletes": (
        f"MERGE INTO {{}} t USING {_NAMES} s ON t.name = s.name AND t.id > 0 WHEN MATCHED THEN DELETE",
        2,
    ),
    "merge of all": (
        f"MERGE INTO {{}} t USING {_NAME} s ON t.name = s.name {_MATCHED} {_GONE}",
        4,
    ),
    "merge that only inserts": (f"MERGE INTO {{}} t USING {_NAME} s ON t.name = s.name {_OTHERS}", 4),
}
"""Each with the files that the search opens."""


@pytest.mark.every(3)
@pytest.mark.in_turn("vectors")
@pytest.mark.parametrize("vectors", [True, False])
@pytest.mark.parametrize("change", sorted(CHANGES))
def test_only_the_search_skips(delta: SparkSession, make: Make, change: str, vectors: bool) -> None:
    statement, opened = CHANGES[change]
    on, off = make(vectors=vectors), make(vectors=vectors)
    esk.Dataset(delta, table=on).create_indexes(esk.ValueList("name"))
    with esk.observe(delta) as report:
        skipping = scans_of(delta, on, statement)
    esk.disable(delta)
    try:
        plain = scans_of(delta, off, statement)
        rows = [sorted(map(repr, delta.table(one).collect())) for one in (on, off)]
    finally:
        esk.enable(delta)
    assert plain[0][1] == 4
    assert skipping == [(plain[0][0], opened), *plain[1:]]
    assert [scan.objects_skipped for scan in report.scans] == ([] if "insert" in change else [4 - opened])
    assert rows[0] == rows[1]
    assert metrics(delta, on) == metrics(delta, off)


def test_a_merge_finds_its_files_without_adaptive_execution(delta: SparkSession, make: Make) -> None:
    name = make(vectors=False)
    esk.Dataset(delta, table=name).create_indexes(esk.ValueList("name"))
    delta.conf.set("spark.sql.adaptive.enabled", "false")
    try:
        assert [files for _, files in scans_of(delta, name, CHANGES["merge of some"][0])] == [2, 2]
    finally:
        delta.conf.unset("spark.sql.adaptive.enabled")


def test_rows_with_these_marks_in_another_query(delta: SparkSession, make: Make) -> None:
    """Numbers of rows depend on the files that are read, so no condition passes them."""
    name = make(vectors=False)
    esk.Dataset(delta, table=name).create_indexes(esk.ValueList("name"))
    marked = f"SELECT name, monotonically_increasing_id() AS _row_id_, input_file_name() AS _file_name_ FROM {name}"
    run_on_and_off(delta, f"SELECT * FROM ({marked}) WHERE name = '{name_of(340)}'")


def test_the_rewriting_reads_each_file_whole(delta: SparkSession, make: Make) -> None:
    """It keeps the rows that do not match. One file has none: to skip it would change the number of copied rows."""
    on, off = make(vectors=False), make(vectors=False)
    esk.Dataset(delta, table=on).create_indexes(esk.ValueList("flag"))
    change = "DELETE FROM {} WHERE flag"
    skipping = scans_of(delta, on, change)
    esk.disable(delta)
    try:
        plain = scans_of(delta, off, change)
    finally:
        esk.enable(delta)
    assert skipping == [("Finding", 2), ("Rewriting", 2)]
    assert plain == [("Finding", 4), ("Rewriting", 2)]
    assert metrics(delta, on) == metrics(delta, off)
