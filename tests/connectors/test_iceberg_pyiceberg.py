"""A table that PyIceberg wrote, without Spark: renames, evolution of types and partitions, changes; read by Spark.

PyIceberg keeps its own catalog. Spark's Hadoop catalog finds a table by the names of its files alone, so a copy of each
new metadata file under such a name shows Spark what PyIceberg committed. PyIceberg writes no position deletes: Spark
adds those to the files that PyIceberg wrote.
"""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import DoubleType, LongType, StringType
from pyspark.sql import SparkSession

import es_skipping as esk
from tests.connectors.equal import run_on_and_off
from tests.spark.objects_read import splits_read

ROWS = 50


def rows(file: int, type: Any = None) -> pa.Table:
    """The rows of one file: names are spread, so that their minima and maxima rule nothing out."""
    ids = range(file * ROWS, (file + 1) * ROWS)
    struct = pa.struct([("code", pa.string()), ("rank", pa.int32())])
    return pa.table(
        {
            "id": pa.array(ids, type or pa.int32()),
            "name": [f"n{id * 7919 % 1000:04}" for id in ids],
            "place": pa.array([{"code": f"c{id}", "rank": id % 9} for id in ids], struct),
        }
    )


@dataclass
class Shared:
    """One table in both catalogs."""

    spark: SparkSession
    table: Any
    name: str
    published: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def publish(self) -> None:
        """Show Spark what PyIceberg committed."""
        latest = Path(self.table.metadata_location.removeprefix("file:"))
        version = next(self.published)
        shutil.copyfile(latest, latest.with_name(f"v{version}.metadata.json"))
        latest.with_name("version-hint.text").write_text(str(version), encoding="utf-8")
        for left_over in latest.parent.glob(".*.crc"):
            left_over.unlink()
        self.spark.sql(f"REFRESH TABLE {self.name}")

    def opened(self, condition: str, rows: int, at: object = None) -> int:
        """How many files a query opens, after its rows were seen to be those without skipping."""
        sql = f"SELECT * FROM {self.name}{'' if at is None else f' VERSION AS OF {at}'} WHERE {condition}"
        found, df = run_on_and_off(self.spark, sql)
        assert len(found) == rows, sql
        return splits_read(df)


@pytest.fixture
def shared(iceberg: SparkSession, tmp_path: Path, request: pytest.FixtureRequest) -> Shared:
    lake = Path(str(iceberg.conf.get("spark.sql.catalog.lake.warehouse")).removeprefix("file:").replace("//", ""))
    catalog = SqlCatalog("py", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=lake.as_uri())
    catalog.create_namespace("py")
    properties = {"read.split.open-file-cost": str(128 << 20), "write.metadata.metrics.default": "none"}
    schema = rows(0).schema
    name = request.node.name
    place = f"file:{lake / 'py' / name}"
    table = catalog.create_table(f"py.{name}", schema=schema, location=place, properties=properties)
    for file in range(4):
        table.append(rows(file))
    found = Shared(iceberg, table, f"lake.py.{name}")
    found.publish()
    return found


def test_a_table_of_another_writer(shared: Shared) -> None:
    spark, table = shared.spark, shared.table
    dataset = esk.Dataset(spark, table=shared.name)
    assert shared.opened("name = 'n0495'", 1) == 4
    assert dataset.create_indexes(esk.ValueList("name"), esk.ValueList("place.code"), esk.MinMax("id")).added == 4
    assert shared.opened("name = 'n0495'", 1) == 1  # of id 105
    assert shared.opened("place.code = 'c105'", 1) == 1
    assert shared.opened("id BETWEEN 105 AND 107", 3) == 1
    first = table.current_snapshot().snapshot_id

    with table.update_schema() as update:  # a struct's field too
        update.rename_column("name", "called")
        update.rename_column("place.code", "key")
    with table.update_schema() as update:
        update.add_column("name", StringType())
    shared.publish()
    assert shared.opened("called = 'n0495'", 1) == 1
    assert shared.opened("place.key = 'c105'", 1) == 1
    assert shared.opened("name = 'n0495'", 0) == 4, "a new column under the old name met the old column's metadata"
    assert shared.opened("name IS NULL AND id = 105", 1) == 1
    assert shared.opened("name = 'n0495'", 1, at=first) == 1

    with table.update_schema() as update:
        update.update_column("id", LongType())
        update.add_column("weight", DoubleType())
    shared.publish()
    assert shared.opened("id = 105", 1) == 4, "the index knows ints"
    dataset.drop_indexes(all=True)
    assert dataset.create_indexes(esk.ValueList("called"), esk.ValueList("place.key"), esk.MinMax("id")).added == 4
    assert shared.opened("id = 105", 1) == 1
    assert shared.opened("id = 3000000000", 0) == 0


def test_its_changes_are_refreshed(shared: Shared) -> None:
    spark, table = shared.spark, shared.table
    dataset = esk.Dataset(spark, table=shared.name)
    dataset.create_indexes(esk.ValueList("name"))
    first = table.current_snapshot().snapshot_id
    table.append(rows(4))
    table.delete("name = 'n0495'")  # writes the file anew
    table.delete("id >= 150 AND id < 200")  # all rows of a file
    with table.update_spec() as update:
        update.add_field("name", IdentityTransform(), "name_itself")
    table.append(rows(5).slice(0, 2))
    shared.publish()
    assert shared.opened("name = 'n0495'", 0) == 2, "new files are read before a refresh"
    result = dataset.refresh()
    assert (result.added, result.removed, result.unchanged, result.failed) == (4, 2, 2, ())
    assert shared.opened("name = 'n0495'", 0) == 0
    assert shared.opened(f"name = 'n{200 * 7919 % 1000:04}'", 1) == 1
    assert shared.opened("name = 'n0495'", 1, at=first) >= 1

    # Spark deletes by position in the files that PyIceberg wrote.
    spark.sql(f"ALTER TABLE {shared.name} SET TBLPROPERTIES ('write.delete.mode' = 'merge-on-read')")
    before = spark.sql(f"SELECT max_by(snapshot_id, committed_at) FROM {shared.name}.snapshots").head()[0]  # type: ignore[index]
    spark.sql(f"DELETE FROM {shared.name} WHERE id = 5")
    deletes = spark.sql(f"SELECT count(*) FROM {shared.name}.delete_files").head()
    assert deletes is not None and deletes[0] == 1
    again = dataset.refresh()
    assert (again.added, again.removed) == (0, 0)
    gone = f"name = 'n{5 * 7919 % 1000:04}'"
    assert shared.opened(gone, 0) == 1
    assert shared.opened(gone, 1, at=before) == 1
