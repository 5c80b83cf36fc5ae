"""Read tables that others wrote with skipping off and on: the fixtures of other readers of Delta and Iceberg tables.

    git -C delta-rs archive HEAD crates/test/tests/data | tar -x -C /tmp/tables
    cd /tmp/tables && python -m tests.suites.tables delta .

Each table that Spark can read is indexed by bounds, value lists and Bloom filters of its columns. Queries for values
that its rows hold, and for values beside them, have the same rows in all its versions. The metadata of an Iceberg table
names its files; where it names them by a relative path, run this in the directory that the path is relative to.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession
from pyspark.sql import types as T

import es_skipping as esk
from es_skipping.predicates.show import quoted_name
from tests.connectors.conftest import delta_session, iceberg_session
from tests.connectors.delta_tables import sessions_of
from tests.soundness.data import quoted

_VERSIONS: Final = 6
_VALUES: Final = 3
_ALL: Final = ("=", "<", ">=", "<>")
_INDEXED: Final = (T.IntegralType, T.StringType, T.DateType, T.TimestampType, T.TimestampNTZType, T.DecimalType)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("format", choices=["delta", "iceberg"])
    parser.add_argument("directory", type=Path)
    given = parser.parse_args()
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="es-skipping-tables-") as scratch:
        spark = _session(Path(scratch), given.format)
        for number, place in enumerate(_places(given.directory, given.format)):
            store = (Path(scratch) / f"store{number}").as_uri()
            off, on = sessions_of(spark, store)
            said = _read(off, on, given.format, place, number, counts)
            print(f"{place.relative_to(given.directory)}: {said}", flush=True)
            esk.disable(on)
        spark.stop()
    print(", ".join(f"{count:,} {what}" for what, count in counts.items()))
    return 1 if counts["queries with other rows"] else 0


def _session(scratch: Path, format: str) -> SparkSession:
    if format == "delta":
        return delta_session(scratch)
    # A catalog that registers tables and reads them by Hadoop's file systems.
    return iceberg_session(scratch, {"type": "jdbc", "uri": "jdbc:derby:memory:lake;create=true"})


def _places(directory: Path, format: str) -> list[Path]:
    """The tables' directories."""
    below = "_delta_log" if format == "delta" else "metadata"
    return sorted(one.parent for one in directory.rglob(below) if one.is_dir())


def _read(off: SparkSession, on: SparkSession, format: str, place: Path, number: int, counts: Counter[str]) -> str:
    """Compare the queries of one table; what came of it, for people."""
    try:
        name = f"delta.`{place.resolve()}`" if format == "delta" else _registered(off, place, number)
        rows = off.table(name).limit(200).collect()
    except Exception as error:
        counts["tables that Spark refuses"] += 1
        return f"Spark refuses it: {_line(error)}"
    dataset = esk.Dataset(on, str(place.resolve())) if format == "delta" else esk.Dataset(on, table=name)
    try:
        built = dataset.create_indexes(*_indexes(off.table(name).schema, _partitions(off, name, format)))
    except esk.EsSkippingError as error:
        counts["tables that are not indexed"] += 1
        return f"not indexed: {_line(error)}"
    counts["tables"] += 1
    skipped = queries = 0
    for version in _versions(off, name, format):
        relation = name if version is None else f"(SELECT * FROM {name} VERSION AS OF {version})"
        columns = _hashed(off, relation)
        for condition in _conditions(off.table(name).schema, rows, _ALL if version is None else _ALL[:1]):
            same, left_out = _compared(off, on, f"SELECT {columns} FROM {relation} WHERE {condition}")
            if same is None:
                counts["queries that Spark refuses"] += 1
                continue
            queries, skipped = queries + 1, skipped + left_out
            if not same:
                counts["queries with other rows"] += 1
                print(f"OTHER ROWS: {relation} WHERE {condition}")
    counts["queries"] += queries
    counts["objects skipped"] += skipped
    return f"{built.added} objects, {queries} queries, {skipped} objects skipped"


def _registered(spark: SparkSession, place: Path, number: int) -> str:
    """A name for a table's newest metadata file."""

    def version(file: Path) -> int:
        return int("".join(re.findall(r"\d+", file.name.partition("-")[0].removesuffix(".metadata.json"))) or 0)

    newest = max((place / "metadata").glob("*.metadata.json"), key=version)
    spark.sql(f"CALL lake.system.register_table(table => 'default.t{number}', metadata_file => '{newest}')").collect()
    return f"lake.default.t{number}"


def _columns(schema: T.StructType) -> list[T.StructField]:
    return [field for field in schema.fields if isinstance(field.dataType, _INDEXED)]


def _indexes(schema: T.StructType, partitions: set[str]) -> Iterator[Any]:
    for field in _columns(schema):
        if field.name in partitions:
            continue
        yield esk.MinMax(quoted_name(field.name))
        if not isinstance(field.dataType, (T.TimestampType, T.TimestampNTZType)):
            yield from (esk.ValueList(quoted_name(field.name)), esk.BloomFilter(quoted_name(field.name)))


def _partitions(spark: SparkSession, name: str, format: str) -> set[str]:
    """The columns of a Delta table that are no columns of its files."""
    if format != "delta":
        return set()
    detail = spark.sql(f"DESCRIBE DETAIL {name}").head()
    assert detail is not None
    return set(detail.partitionColumns)


def _versions(spark: SparkSession, name: str, format: str) -> list[str | None]:
    """None for the latest, and some of the others; for the latest alone if a commit of the table is gone."""
    sql, column = f"DESCRIBE HISTORY {name}", "version"
    if format == "iceberg":
        sql, column = f"SELECT snapshot_id FROM {name}.snapshots", "snapshot_id"
    try:
        found = [str(row[column]) for row in spark.sql(sql).collect()]
    except Py4JJavaError:
        return [None]
    return [None, *found[1:][:: max(1, len(found) // _VERSIONS)]]


def _conditions(schema: T.StructType, rows: list[Any], comparators: Sequence[str]) -> Iterator[str]:
    """Conditions on values that some rows hold, as SQL."""
    for field in _columns(schema):
        name, type = quoted_name(field.name), field.dataType.simpleString()
        yield f"{name} IS NULL"
        held = sorted({row[field.name] for row in rows if row[field.name] is not None})
        for value in held[:: max(1, len(held) // _VALUES)]:
            literal = f"CAST({quoted(str(value))} AS {type})"
            yield from (f"{name} {comparator} {literal}" for comparator in comparators)


def _hashed(spark: SparkSession, relation: str) -> str:
    """The number of rows and a digest of their values, as SQL; their number alone if Spark refuses the relation."""
    try:
        schema = spark.sql(f"SELECT * FROM {relation}").schema
    except Exception:  # a version that is gone: each query of it is refused, too
        return "count(*)"
    return f"count(*), bit_xor(xxhash64({', '.join(quoted_name(field.name) for field in _columns(schema))}))"


def _compared(off: SparkSession, on: SparkSession, sql: str) -> tuple[bool | None, int]:
    """Whether the rows are the same, and how many objects were skipped; None if Spark itself refuses the query."""
    try:
        expected = off.sql(sql).collect()
    except Exception:
        return None, 0
    with esk.observe(on) as report:
        found = on.sql(sql).collect()
    return found == expected, sum(scan.objects_skipped for scan in report.scans)


def _line(error: Exception) -> str:
    """What happened: Py4j says in a first line where, and then what."""
    lines = str(error).splitlines()
    return lines[1 if isinstance(error, Py4JJavaError) and len(lines) > 1 else 0][:160]


if __name__ == "__main__":
    sys.exit(main())
