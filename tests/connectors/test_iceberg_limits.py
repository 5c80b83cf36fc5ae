"""ORDER BY ... LIMIT and LIMIT over Iceberg tables: a file whose every row is read guarantees its rows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import es_skipping as esk
from tests.connectors.equal import run_on_and_off
from tests.connectors.limits import check_limits
from tests.connectors.test_iceberg import delete_by_equality
from tests.connectors.test_iceberg_cases import FILES, Make, make
from tests.connectors.test_iceberg_evolution import add_with_default
from tests.spark.objects_read import batch_scans, splits_read

__all__ = ["make"]


def opened(spark: SparkSession, sql: str, rows: int) -> int:
    """How many splits a query reads; its rows are those that it has with skipping off."""
    found, frame = run_on_and_off(spark, sql)
    assert len(found) == rows, sql
    return splits_read(frame)


def opened_for_any(spark: SparkSession, sql: str, rows: int) -> int:
    """How many splits a query may read that returns any of several rows; Spark stops when it has enough."""
    frame = spark.sql(sql)
    assert len(frame.collect()) == rows, sql
    return sum(scan.inputRDD().getNumPartitions() for scan in batch_scans(frame))


@contextmanager
def settings(spark: SparkSession, **given: str) -> Iterator[None]:
    for key, value in given.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key in given:
            spark.conf.unset(key)


@pytest.mark.parametrize("version", ["2", "3"])
def test_files_without_deleted_rows_guarantee_those_of_a_limit(iceberg: SparkSession, make: Make, version: str) -> None:
    """How many rows a file has says how many a query gets of it, unless some are deleted in the snapshot."""
    table = make(**{"write.delete.mode": "merge-on-read", "format-version": version})

    def check_any(sql: str, rows: int) -> None:
        assert opened_for_any(iceberg, sql, rows) == FILES

    def latest() -> object:
        newest = iceberg.sql(f"SELECT snapshot_id FROM {table}.snapshots ORDER BY committed_at DESC").head()
        assert newest is not None
        return newest[0]

    def go_back(snapshot: object) -> object:
        name = table.removeprefix("lake.")
        return iceberg.sql(f"CALL lake.system.rollback_to_snapshot('{name}', {snapshot})")

    check_limits(iceberg, table, lambda sql, rows: opened(iceberg, sql, rows), check_any, latest, go_back)


ORDERS = {
    "v": ("ASC NULLS LAST", "ASC NULLS FIRST", "DESC NULLS LAST", "DESC NULLS FIRST"),
    "x": ("ASC NULLS LAST", "ASC NULLS FIRST", "DESC NULLS LAST", "DESC NULLS FIRST"),
}


def test_orders_nulls_and_offsets(iceberg: SparkSession, make: Make) -> None:
    table = make()
    iceberg.sql(f"ALTER TABLE {table} ADD COLUMNS (v BIGINT, x DOUBLE, s STRUCT<f: BIGINT>)")
    iceberg.sql(f"TRUNCATE TABLE {table}")
    rows = iceberg.range(0, 400, 1, FILES).selectExpr(
        "id",
        "concat('n', id) AS name",
        "id % 7 AS k",
        "IF(id >= 300 AND id % 10 = 0, NULL, id) AS v",
        "CASE WHEN id BETWEEN 100 AND 109 THEN DOUBLE('NaN') WHEN id % 50 = 0 THEN NULL ELSE id END AS x",
        "named_struct('f', -id) AS s",
    )
    rows.writeTo(table).append()
    esk.Dataset(iceberg, table=table).create_indexes(esk.MinMax("v"), esk.MinMax("x"), esk.MinMax("s.f"))
    read = {}
    for column, orders in ORDERS.items():
        for order in orders:
            read[column, order] = opened(iceberg, f"SELECT id FROM {table} ORDER BY {column} {order}, id LIMIT 7", 7)
    assert list(read.values()) == [1, 2, 1, 1, 1, FILES, 2, FILES], "each file has nulls of x"
    assert opened(iceberg, f"SELECT id FROM {table} ORDER BY s.f LIMIT 10", 10) == 1
    assert opened(iceberg, f"SELECT id FROM {table} ORDER BY s.f DESC LIMIT 5 OFFSET 98", 5) == 2
    assert opened(iceberg, f"SELECT v + 1 FROM {table} WHERE s.f > -250 ORDER BY v DESC LIMIT 3", 3) == 3
    limited = f"SELECT id FROM {table} WHERE v < 200 ORDER BY v DESC LIMIT 3"
    assert opened(iceberg, limited, 3) == 1
    (explained,) = esk.explain(iceberg.sql(limited)).scans
    assert (explained.induced_by, explained.objects_skipped) == (("ORDER BY v DESC NULLS LAST LIMIT 3",), FILES - 1)
    assert opened(iceberg, f"SELECT id FROM {table} WHERE name > 'n' ORDER BY v DESC LIMIT 3", 3) == FILES, "no index"
    assert opened_for_any(iceberg, f"SELECT id FROM {table} LIMIT 30", 30) == 1
    assert opened_for_any(iceberg, f"SELECT id FROM {table} LIMIT 80 OFFSET 30", 80) == 2
    assert opened_for_any(iceberg, f"SELECT id FROM {table} WHERE v >= 0 LIMIT 150", 150) == 2
    assert opened_for_any(iceberg, f"SELECT id FROM {table} WHERE v >= 350 LIMIT 150", 45) == 1


def test_two_limits_in_one_query(iceberg: SparkSession, make: Make) -> None:
    """Scans under different limits are not one, though Iceberg's own scans are equal."""
    table = make()
    esk.Dataset(iceberg, table=table).create_indexes(esk.MinMax("id"))
    limits = [f"(SELECT id FROM {table} ORDER BY id {order} LIMIT 5)" for order in ("", "DESC")]
    assert opened(iceberg, f"{limits[0]} UNION ALL {limits[1]}", 10) == 2
    assert opened(iceberg, f"SELECT * FROM {limits[0]} a JOIN {limits[1]} b ON a.id + 395 = b.id", 5) == 2
    assert opened(iceberg, f"SELECT * FROM {limits[0]} a JOIN {table} b ON a.id = b.id", 5) == 2
    assert opened(iceberg, f"{limits[0]} UNION ALL SELECT id FROM {table}", 405) == 1 + FILES


def test_a_filter_that_iceberg_takes_away(iceberg: SparkSession, make: Make) -> None:
    """The plan has no such filter any more; a file outside of its partitions guarantees nothing."""
    table = make("PARTITIONED BY (k)")
    esk.Dataset(iceberg, table=table).create_indexes(esk.MinMax("id"))
    query = f"SELECT id FROM {table} WHERE k = 3 ORDER BY id DESC LIMIT 5"
    assert "Filter" not in iceberg.sql(query)._jdf.queryExecution().executedPlan().toString().partition("BatchScan")[0]
    assert opened(iceberg, query, 5) == 1
    assert opened(iceberg, query.replace("k = 3", "k IN (3, 5) AND id < 250"), 5) == 2, "one of each k"
    assert opened_for_any(iceberg, f"SELECT id FROM {table} WHERE k = 3 LIMIT 5", 5) == 1
    iceberg.sql(f"ALTER TABLE {table} DROP PARTITION FIELD k")
    rows = iceberg.range(400, 500, 1, 1).selectExpr("id", "concat('n', id) AS name", "id % 7 AS k")
    rows.writeTo(table).append()
    esk.Dataset(iceberg, table=table).refresh()
    assert "Filter" in iceberg.sql(query)._jdf.queryExecution().executedPlan().toString().partition("BatchScan")[0]
    assert opened(iceberg, query, 5) > 1, "k has no index, and the new file has rows of other partitions"


@pytest.mark.parametrize("format", ["orc", "avro"])
def test_other_formats(iceberg: SparkSession, make: Make, format: str) -> None:
    """What the reader itself leaves out by a filter is known of Parquet only."""
    table = make(**{"write.format.default": format})
    esk.Dataset(iceberg, table=table).create_indexes(esk.MinMax("id"))
    assert opened(iceberg, f"SELECT id FROM {table} ORDER BY id LIMIT 10", 10) == 1
    assert opened(iceberg, f"SELECT id FROM {table} WHERE id >= 0 ORDER BY id LIMIT 10", 10) == FILES
    assert opened_for_any(iceberg, f"SELECT id FROM {table} LIMIT 10", 10) == 1


def test_equality_deletes_void_the_guarantee(iceberg: SparkSession, make: Make) -> None:
    """They are of no file in particular: every older file may have deleted rows."""
    table = make()
    iceberg.sql(f"ALTER TABLE {table} CREATE TAG whole")
    dataset = esk.Dataset(iceberg, table=table)
    dataset.create_indexes(esk.MinMax("id"))
    first = f"SELECT id FROM {table} ORDER BY id LIMIT 10"
    assert opened(iceberg, first, 10) == 1
    delete_by_equality(iceberg, table, "name", "n5")
    assert opened(iceberg, first, 10) == FILES
    assert opened_for_any(iceberg, f"SELECT id FROM {table} LIMIT 100", 100) == FILES
    assert opened_for_any(iceberg, f"SELECT id FROM {table} LIMIT 400", 399) == FILES
    assert opened(iceberg, first.replace(table, f"{table} VERSION AS OF 'whole'"), 10) == 1
    iceberg.range(-100, 0, 1, 1).selectExpr("id", "'n5' AS name", "0 AS k").writeTo(table).append()
    dataset.refresh()
    assert opened(iceberg, first, 10) == 1, "the delete is not about a later file"


ROWS_OF_MANY = 300
"""How many rows a file of several row groups has."""
MANY_PARTS = {
    "write.parquet.row-group-size-bytes": "4096",
    "write.parquet.row-group-check-min-record-count": "10",
    "write.parquet.row-group-check-max-record-count": "10",
    "read.split.open-file-cost": "1",
    "read.split.target-size": "1024",
}


@pytest.mark.parametrize("deleted", [False, True])
def test_splits_of_one_file(iceberg: SparkSession, make: Make, deleted: bool) -> None:
    """Several tasks read one file. If all of them are there, they read all its rows."""
    table = make(**MANY_PARTS, **{"write.delete.mode": "merge-on-read"})
    iceberg.sql(f"TRUNCATE TABLE {table}")
    rows = iceberg.range(0, FILES * ROWS_OF_MANY, 1, FILES).selectExpr("id", "concat('n', uuid()) AS name", "0 AS k")
    rows.writeTo(table).append()
    esk.Dataset(iceberg, table=table).create_indexes(esk.MinMax("id"))
    tasks = opened(iceberg, f"SELECT id FROM {table}", FILES * ROWS_OF_MANY)
    assert tasks > 2 * FILES
    if deleted:
        iceberg.sql(f"DELETE FROM {table} WHERE id = 5")
    for where in ("", "WHERE id >= 0"):
        for limit in (10, ROWS_OF_MANY):
            read = opened(iceberg, f"SELECT id FROM {table} {where} ORDER BY id LIMIT {limit}", limit)
            assert read == tasks if deleted else 1 < read < tasks / 2


def test_a_part_of_a_file_is_missing(iceberg: SparkSession, make: Make) -> None:
    """Iceberg plans all parts of a file. If a version does not, the file guarantees nothing."""
    table = make(**MANY_PARTS)
    iceberg.range(400, 400 + ROWS_OF_MANY, 1, 1).selectExpr("id", "uuid() AS name", "0 AS k").writeTo(table).append()
    esk.Dataset(iceberg, table=table).create_indexes(esk.MinMax("id"))
    (node,) = batch_scans(iceberg.sql(f"SELECT id FROM {table} WHERE id >= 400 ORDER BY id LIMIT 10"))
    parts = list(node.scan().toBatch().planInputPartitions())
    assert len(parts) > 2
    assert not _hides_rows(iceberg, node.scan(), parts)
    for missing in range(len(parts)):
        left = parts[:missing] + parts[missing + 1 :]
        assert _hides_rows(iceberg, node.scan(), left), missing


def _hides_rows(spark: SparkSession, scan: Any, parts: list[Any]) -> bool:
    """Whether a scan of one file may not read all its rows, if Iceberg plans these input partitions."""
    jvm: Any = spark._jvm
    new_array: Any = spark.sparkContext._gateway.new_array  # type: ignore[union-attr]
    given = new_array(jvm.Object, 1)
    partitions = new_array(jvm.org.apache.spark.sql.connector.read.InputPartition, len(parts))
    for place, part in enumerate(parts):
        partitions[place] = part
    given[0] = partitions
    listing = next(m for m in scan.getClass().getDeclaredMethods() if m.getName() == "listing")
    listing.setAccessible(True)
    found = listing.invoke(scan, given)
    directories, index = (found.getClass().getField(name).get(found) for name in ("directories", "index"))
    (file,) = (directories.head().files().apply(i) for i in range(directories.head().files().size()))
    tables = scan.getClass().getClassLoader().loadClass("io.esskipping.scan.Tables")
    check = next(m for m in tables.getDeclaredMethods() if m.getName() == "mayHideRows")
    check.setAccessible(True)
    arguments = new_array(jvm.Object, 2)
    arguments[0], arguments[1] = index.getClass().getField("inner").get(index), file
    return bool(check.invoke(None, arguments))


def test_guarantors_that_are_gone(iceberg: SparkSession, make: Make) -> None:
    """The store names files that the snapshot has no more, and those that it has are not enough."""
    table = make()
    dataset = esk.Dataset(iceberg, table=table)
    dataset.create_indexes(esk.MinMax("id"))
    tops = [f"SELECT id FROM {table} ORDER BY id {order} LIMIT 10" for order in ("", "DESC")]
    iceberg.sql(f"DELETE FROM {table} WHERE id < 100")
    assert [opened(iceberg, top, 10) for top in tops] == [FILES - 1, 1]
    assert opened_for_any(iceberg, f"SELECT id FROM {table} LIMIT 400", 300) == FILES - 1
    iceberg.sql(f"UPDATE {table} SET k = 8 WHERE id = 350")  # another file with the same ids
    assert [opened(iceberg, top, 10) for top in tops] == [FILES - 1] * 2
    dataset.refresh()
    assert [opened(iceberg, top, 10) for top in tops] == [1, 1]


def test_a_partition_with_a_key_guarantees_nothing(iceberg: SparkSession, make: Make) -> None:
    """Where Spark joins without a shuffle it may leave out or repeat partitions by their keys."""
    table = make("PARTITIONED BY (truncate(100, id))")
    esk.Dataset(iceberg, table=table).create_indexes(esk.MinMax("id"))
    query = f"SELECT id FROM {table} ORDER BY id LIMIT 10"
    assert opened(iceberg, query, 10) == 1
    grouped = {
        "spark.sql.sources.v2.bucketing.enabled": "true",
        "spark.sql.sources.v2.bucketing.pushPartValues.enabled": "true",
        "spark.sql.iceberg.planning.preserve-data-grouping": "true",
    }
    with settings(iceberg, **grouped):
        assert opened(iceberg, query, 10) == FILES


def test_keys_of_a_join_come_after_the_look_up(iceberg: SparkSession, make: Make) -> None:
    """The limit is above the join, so that a file's rows may not reach it."""
    table = make("PARTITIONED BY (truncate(100, id))")
    esk.Dataset(iceberg, table=table).create_indexes(esk.MinMax("id"))
    keys = "(SELECT * FROM VALUES (3, 1), (205, 1), (399, 0) k(id, w) WHERE w = 1)"
    for how in ("JOIN", "LEFT SEMI JOIN", "LEFT JOIN", "LEFT ANTI JOIN"):
        query = f"SELECT t.id FROM {table} t {how} {keys} k ON t.id = k.id ORDER BY t.id DESC LIMIT 2"
        run_on_and_off(iceberg, query)


def test_files_that_lack_a_column_with_a_default(iceberg: SparkSession, make: Make) -> None:
    """A filter of Iceberg 1.10 finds none of their rows, though each has the default."""
    table = make(**{"format-version": "3"})
    iceberg.sql(f"ALTER TABLE {table} ADD COLUMN s STRUCT<a: INT>")
    add_with_default(iceberg, table, 5)
    iceberg.range(400, 500, 1, 1).selectExpr(
        "id", "concat('n', id) AS name", "id % 7 AS k", "named_struct('a', 1, 'd', 5) AS s", "5 AS d"
    ).writeTo(table).append()
    esk.Dataset(iceberg, table=table).create_indexes(esk.MinMax("id"), esk.MinMax("d"))
    assert opened(iceberg, f"SELECT id FROM {table} ORDER BY id LIMIT 10", 10) == 1
    assert opened(iceberg, f"SELECT id FROM {table} WHERE d = 5 ORDER BY id LIMIT 10", 10) == FILES + 1


def test_columns_by_which_iceberg_loses_rows(iceberg: SparkSession, make: Make) -> None:
    """UUIDs, which Iceberg 1.12 compares as signed numbers, and required fields in a struct that may be null, of which
    1.10 finds no nulls. A filter on these drops rows with skipping off too; a limit must not drop others for that."""
    table = make(**{"write.metadata.metrics.default": "none"})
    iceberg.sql(f"ALTER TABLE {table} ADD COLUMN s STRUCT<f: BIGINT NOT NULL>")
    native = iceberg._jvm.org.apache.iceberg  # type: ignore[union-attr]
    uuid = native.types.Types.UUIDType.get()
    native.spark.Spark3Util.loadIcebergTable(iceberg._jsparkSession, table).updateSchema().addColumn("u", uuid).commit()
    iceberg.sql(f"REFRESH TABLE {table}")
    iceberg.sql(f"TRUNCATE TABLE {table}")
    hexadecimal = "concat(IF(id < 200, 'f', '0'), lpad(CAST(id AS STRING), 7, '0'), '-0000-0000-8000-000000000000')"
    iceberg.range(0, 400, 1, FILES).selectExpr(
        "id", "concat('n', id) AS name", "id % 7 AS k", "IF(id < 100, NULL, named_struct('f', id)) AS s",
        f"{hexadecimal} AS u",
    ).writeTo(table).append()  # fmt: skip
    esk.Dataset(iceberg, table=table).create_indexes(esk.MinMax("id"), esk.MinMax("s.f"), esk.MinMax("u"))
    filters = ["s.f IS NULL OR id > 350", "(id > 350 OR s.f IS NULL) AND k >= 0"]
    filters += ["u >= '00000000-0000-0000-0000-000000000000'", "NOT (u < '00000000-0000-0000-0000-000000000000')"]
    for filter in filters:
        try:
            iceberg.sql(f"SELECT id FROM {table} WHERE {filter}").collect()
        except Exception as error:  # Iceberg 1.10 takes a UUID for a text
            assert "ClassCastException" in str(error)
            continue
        for order in ("ORDER BY id", "ORDER BY id DESC", "ORDER BY u DESC", ""):
            limited = f"SELECT id FROM {table} WHERE {filter} {order} LIMIT 10"
            run_on_and_off(iceberg, limited if order else f"SELECT count(*) FROM ({limited})")


def test_timestamps_in_milliseconds(iceberg: SparkSession, make: Make, tmp_path: Path) -> None:
    """Of files that were imported Iceberg 1.12 compares such timestamps with microseconds."""
    table = make(**{"write.metadata.metrics.default": "none"})
    iceberg.sql(f"ALTER TABLE {table} ADD COLUMN ts TIMESTAMP")
    iceberg.sql(f"TRUNCATE TABLE {table}")
    for first, unit in ((0, "TIMESTAMP_MILLIS"), (100, "TIMESTAMP_MICROS")):
        folder = tmp_path / unit
        with settings(iceberg, **{"spark.sql.parquet.outputTimestampType": unit}):
            iceberg.range(first, first + 100, 1, 1).selectExpr(
                "id", "concat('n', id) AS name", "id % 7 AS k", "timestamp '2020-01-01' AS ts"
            ).write.parquet(str(folder))
        call = f"CALL lake.system.add_files(table => '{table[5:]}', source_table => '`parquet`.`{folder}`')"
        iceberg.sql(call).collect()
    with settings(
        iceberg, **{"spark.sql.iceberg.vectorization.enabled": "false"}
    ):  # 1.10 reads such files by row alone
        esk.Dataset(iceberg, table=table).create_indexes(esk.MinMax("id"), esk.MinMax("ts"))
        for filter in ("ts >= '2019-01-01'", "ts >= '2019-01-01' OR id < 0"):
            for limit in ("ORDER BY id LIMIT 10", "LIMIT 10"):
                run_on_and_off(iceberg, f"SELECT count(*) FROM (SELECT id FROM {table} WHERE {filter} {limit})")
        assert opened(iceberg, f"SELECT id FROM {table} WHERE id >= 0 ORDER BY id DESC LIMIT 10", 10) == 1


def test_no_error_of_other_rows(iceberg: SparkSession, make: Make) -> None:
    """Of a limit without an order other rows arrive than without skipping; an expression may fail for these."""
    table = make()
    iceberg.range(400, 600, 1, 1).selectExpr("id", "CAST(id AS STRING) AS name", "0 AS k").writeTo(table).append()
    esk.Dataset(iceberg, table=table).create_indexes(esk.MinMax("id"), esk.MinMax("k"))
    for plain in ("id AS x, name", "1 AS x", "k"):
        assert opened_for_any(iceberg, f"SELECT {plain} FROM {table} WHERE k >= 0 LIMIT 30", 30) == 1
    for projected in ("CAST(name AS INT)", "k / k", "upper(name)"):
        (scan,) = batch_scans(iceberg.sql(f"SELECT {projected} FROM {table} LIMIT 30"))
        assert scan.inputRDD().getNumPartitions() == FILES + 1
    (scan,) = batch_scans(iceberg.sql(f"SELECT id FROM {table} WHERE CAST(name AS INT) > 0 OR k >= 0 LIMIT 30"))
    assert scan.inputRDD().getNumPartitions() == FILES + 1


@pytest.mark.parametrize("groups", [pytest.param("one", marks=pytest.mark.long), "many"])
def test_nan_under_a_filter(iceberg: SparkSession, make: Make, groups: str) -> None:
    """Spark counts NaN as greater than all numbers; Iceberg leaves files and row groups out by bounds without it."""
    small = {"write.parquet.row-group-size-bytes": "600", "write.parquet.row-group-check-min-record-count": "5"}
    table = make(**({} if groups == "one" else {**small, "write.parquet.row-group-check-max-record-count": "5"}))
    iceberg.sql(f"ALTER TABLE {table} ADD COLUMNS (x DOUBLE)")
    iceberg.sql(f"TRUNCATE TABLE {table}")
    of_files = "DOUBLE('NaN')", "id * 1D", "IF(id % 2 = 0, DOUBLE('NaN'), id * 1D)", "IF(id % 5 = 0, NULL, id / 400D)"
    cases = " ".join(f"WHEN {at} THEN {value}" for at, value in enumerate(of_files))
    rows = iceberg.range(0, 400, 1, FILES).selectExpr(
        "id", "concat('n', id) AS name", "id % 7 AS k", f"CASE id DIV 100 {cases} END AS x"
    )
    rows.writeTo(table).append()
    esk.Dataset(iceberg, table=table).create_indexes(esk.MinMax("id"), esk.MinMax("x"), esk.ValueList("x"))
    _, frame = run_on_and_off(iceberg, f"SELECT id FROM {table}")
    every, skipped = splits_read(frame), 0
    for filter in ("x > 5", "x >= 5", "NOT (x < 5)", "x < 5", "x <= 1000", "x <> 1", "x = DOUBLE('NaN')", "x > 150"):
        for order, count in (("id", 7), ("id DESC", 7), ("x DESC, id", 120), ("x, id", 3), ("id", 180)):
            sql = f"SELECT id FROM {table} WHERE {filter} ORDER BY {order} LIMIT {count}"
            _, frame = run_on_and_off(iceberg, sql)
            skipped += splits_read(frame) < every
        _, frame = run_on_and_off(iceberg, f"SELECT count(*) FROM (SELECT id FROM {table} WHERE {filter} LIMIT 130)")
        skipped += splits_read(frame) < every
    assert skipped > 20
