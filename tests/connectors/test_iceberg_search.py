"""Changes of copy-on-write Iceberg tables: the search for the files to change skips, their rewriting does not."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import es_skipping as esk
from tests.connectors.test_iceberg import summaries
from tests.spark.objects_read import nodes_executed

FILES = 4
ROWS = 400
_numbers = itertools.count()

Make = Callable[[], str]


@pytest.fixture
def make(iceberg: SparkSession) -> Iterator[Make]:
    """Makes a table of four files, each a split; each name is in one of them, and Iceberg's own pruning knows none."""
    made: list[str] = []

    def table() -> str:
        name = f"lake.db.changed{next(_numbers)}"
        made.append(name)
        given = {f"write.{change}.mode": "copy-on-write" for change in ("delete", "update", "merge")}
        given |= {"read.split.open-file-cost": str(128 << 20), "write.metadata.metrics.default": "none"}
        text = ", ".join(f"'{key}' = '{value}'" for key, value in given.items())
        columns = "id BIGINT, name STRING, flag BOOLEAN, place STRING"
        iceberg.sql(f"CREATE TABLE {name} ({columns}) USING iceberg TBLPROPERTIES ({text})")
        rows = iceberg.range(0, ROWS, 1, FILES).selectExpr(
            "id", "concat('n', id) AS name", "id < 100 OR id = 205 AS flag", "'x' AS place"
        )
        rows.writeTo(name).append()
        return name

    yield table
    for name in made:
        iceberg.sql(f"DROP TABLE IF EXISTS {name}")


def scans_of(spark: SparkSession, table: str, statement: str) -> dict[str, int]:
    """How many files the scans of a table read while a statement runs, as Iceberg's own metric tells."""
    found = {}
    for _, node, files in nodes_executed(
        spark, statement.format(table), f"BatchScan {table}".__eq__, "number of file splits read"
    ):
        what = "rewrite" if "dynamicpruning" in node.desc() else "search"  # it waits for the files that were found
        assert what not in found, (found, statement)
        found[what] = files
    return found


CHANGES = {
    "update": ("UPDATE {} SET place = 'updated' WHERE name = 'n33'", 1),
    "delete": ("DELETE FROM {} WHERE name = 'n205'", 1),
    "merge": (
        (
            "MERGE INTO {} t USING (SELECT 'n340' AS name) s ON t.name = s.name "
            "WHEN MATCHED THEN UPDATE SET place = 'merged' WHEN NOT MATCHED THEN INSERT (name) VALUES (s.name)"
        ),
        1,
    ),
    "merge-of-rows": (
        (
            "MERGE INTO {} t USING merged_rows s ON t.name = s.name "
            "WHEN MATCHED AND s.place = 'gone' THEN DELETE WHEN MATCHED THEN UPDATE SET place = s.place "
            "WHEN NOT MATCHED THEN INSERT (name, place) VALUES (s.name, s.place)"
        ),
        2,
    ),
    # all rows of one file and one of another: the rewriting keeps the rows that do not match
    "rows-of-two-files": ("DELETE FROM {} WHERE flag", 2),
    "nothing": ("DELETE FROM {} WHERE name = 'n1234'", 0),
}
"""Each with the number of files that hold a row of it, which are those that the search opens."""


@pytest.mark.every(3)
@pytest.mark.parametrize("change", sorted(CHANGES))
def test_only_the_search_skips(iceberg: SparkSession, make: Make, tmp_path: Path, change: str) -> None:
    on, off = make(), make()
    rows = "(5, 'n5', 'gone'), (205, 'n205', 'merged'), (900, 'n900', 'new')"
    source = iceberg.sql(f"SELECT name, place FROM VALUES {rows} AS v(id, name, place)")
    source.write.parquet(str(tmp_path / "rows"))
    iceberg.read.parquet(str(tmp_path / "rows")).createOrReplaceTempView("merged_rows")
    esk.Dataset(iceberg, table=on).create_indexes(esk.ValueList("name"), esk.ValueList("flag"))
    statement, searched = CHANGES[change]
    with esk.observe(iceberg) as report:
        skipping = scans_of(iceberg, on, statement)
    esk.disable(iceberg)
    try:
        plain = scans_of(iceberg, off, statement)
        found = [sorted(map(repr, iceberg.table(one).collect())) for one in (on, off)]
    finally:
        esk.enable(iceberg)
    assert plain["search"] == FILES
    assert skipping == {**plain, "search": searched}
    assert [(scan.objects_total, scan.objects_skipped) for scan in report.scans if scan.table_format == "iceberg"] == [
        (FILES, FILES - searched)
    ]
    assert found[0] == found[1]
    assert summaries(iceberg, on) == summaries(iceberg, off)
