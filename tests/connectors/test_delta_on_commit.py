"""What commits to a Delta table is indexed when the command returns, or soon; a failed command publishes nothing."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import es_skipping as esk
from es_skipping.build import auto_refresh
from es_skipping.build.origin import TableOrigin
from es_skipping.spark.services import store_of
from tests.connectors.changes import Asked, asked, opened_in
from tests.connectors.delta_tables import dropped, sessions_of
from tests.spark.objects_read import num_files
from tests.spark.skipping_on_off import warned

__all__ = ["asked"]

PATIENCE = 60.0


@pytest.fixture
def on(delta: SparkSession, tmp_path: Path) -> Iterator[SparkSession]:
    """A session that indexes what it commits. Delta keeps no minima of the table, so only our indexes skip."""
    off, on = sessions_of(delta, (tmp_path / "store").as_uri())
    on.conf.set("spark.es_skipping.indexOnCommit", "true")
    with dropped(off, "t"):
        make(off)
        yield on
        esk.disable(on)


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Grows with each background refresh that begins."""
    found: list[str] = []
    whole = auto_refresh._refresh
    monkeypatch.setattr(auto_refresh, "_refresh", lambda *args: (found.append("now"), whole(*args)))
    return found


def make(spark: SparkSession, how: str = "CREATE TABLE t", **properties: str) -> None:
    set = {"delta.dataSkippingNumIndexedCols": "0", "delta.enableDeletionVectors": "false", **properties}
    spark.sql(
        f"{how} (id BIGINT, v STRING, p INT) USING delta PARTITIONED BY (p) TBLPROPERTIES ("
        + ", ".join(f"'{key}' = '{value}'" for key, value in set.items())
        + ")"
    )
    rows(spark, 0, 400, 4).write.format("delta").mode("append").saveAsTable("t")


def rows(spark: SparkSession, first: int, last: int, files: int = 1) -> Any:
    return spark.range(first, last, 1, files).selectExpr("id", "concat('v', id) AS v", "CAST(id DIV 1000 AS INT) AS p")


def opened(spark: SparkSession, condition: str) -> tuple[list[int], int]:
    found = spark.table("t").where(condition)
    return sorted(row.id for row in found.collect()), sum(num_files(found))


def location(spark: SparkSession) -> str:
    detail = spark.sql("DESCRIBE DETAIL t").head()
    assert detail is not None
    return str(detail["location"])


def until(reached: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not reached():
        assert time.monotonic() < end
        time.sleep(0.1)


def append(spark: SparkSession) -> None:
    rows(spark, 1_000, 1_100).write.format("delta").mode("append").saveAsTable("t")


def append_to_path(spark: SparkSession) -> None:
    rows(spark, 1_000, 1_100).write.format("delta").mode("append").save(location(spark))


def overwrite(spark: SparkSession) -> None:
    rows(spark, 1_000, 1_100).write.format("delta").mode("overwrite").save(location(spark))


def overwrite_partitions(spark: SparkSession) -> None:
    spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    spark.sql("INSERT OVERWRITE t SELECT id, concat('v', id), 1 FROM range(1000, 1100, 1, 1)")


def statement(text: str) -> Callable[[SparkSession], object]:
    return lambda spark: spark.sql(text).collect()


SELECTED = "SELECT id, concat('v', id) AS v, 1 AS p FROM range(1000, 1100, 1, 1)"
COMMANDS = {
    "append to the table": append,
    "append to its path": append_to_path,
    "writeTo": lambda spark: rows(spark, 1_000, 1_100).writeTo("t").append(),
    "overwrite": overwrite,
    "overwrite partitions": overwrite_partitions,
    "INSERT": statement(f"INSERT INTO t {SELECTED}"),
    "INSERT OVERWRITE": statement(f"INSERT OVERWRITE t {SELECTED}"),
    "INSERT REPLACE WHERE": statement(f"INSERT INTO t REPLACE WHERE p = 1 {SELECTED}"),
    "UPDATE": statement("UPDATE t SET id = id + 1000 WHERE id < 100"),
    "MERGE": statement(f"MERGE INTO t USING ({SELECTED}) s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *"),
    "CREATE OR REPLACE ... AS SELECT": statement(
        "CREATE OR REPLACE TABLE t USING delta PARTITIONED BY (p) TBLPROPERTIES "
        f"('delta.dataSkippingNumIndexedCols' = '0', 'delta.enableDeletionVectors' = 'false') AS {SELECTED}"
    ),
}


OF_THE_WHOLE = ("overwrite", "INSERT OVERWRITE", "CREATE OR REPLACE ... AS SELECT")


@pytest.mark.every(2)
@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_is_indexed_before_it_returns(on: SparkSession, asked: Asked, name: str) -> None:
    dataset = esk.Dataset(on, table="t")
    dataset.create_indexes(esk.MinMax("id"))
    asked.listed.clear()
    data = Path(location(on).removeprefix("file:"))
    with opened_in(data) as directory:
        COMMANDS[name](on)
    if not name.startswith("CREATE"):
        assert asked.by_changes == [True]
        assert max(asked.listed) == 1, "more than the files of the commit"
        assert "listed" not in directory
    assert (dataset.health().coverage, dataset.health().gone) == (1, 0)
    assert opened(on, "id = 1007") == ([1007], 1)
    assert opened(on, "id = 250") == (([], 0) if name in OF_THE_WHOLE else ([250], 1))


@pytest.mark.every(3)
@pytest.mark.parametrize("command", ["DELETE FROM t WHERE id = 7", "OPTIMIZE t", "RESTORE TABLE t TO VERSION AS OF 1"])
def test_files_that_a_command_replaced(on: SparkSession, command: str) -> None:
    dataset = esk.Dataset(on, table="t")
    append(on)
    dataset.create_indexes(esk.MinMax("id"))
    on.sql(command)
    assert (dataset.health().coverage, dataset.health().gone) == (1, 0)
    assert opened(on, "id = 8") == ([8], 1)


@pytest.mark.every(2)
@pytest.mark.parametrize("mapped", [False, True])
def test_other_indexes_follow_in_the_background(on: SparkSession, begun: list[str], mapped: bool) -> None:
    """Those that need the rows, and any of a table whose files name their columns otherwise."""
    if mapped:
        on.sql("DROP TABLE t")
        make(on, **{"delta.columnMapping.mode": "name"})
    dataset = esk.Dataset(on, table="t")
    dataset.create_indexes(esk.MinMax("id"), *(() if mapped else (esk.ValueList("v"),)))
    append(on)
    until(lambda: dataset.health().coverage == 1)
    assert begun == ["now"]
    until(lambda: opened(on, "id = 1007" if mapped else "v = 'v1007'") == ([1007], 1))


def test_a_widened_type_is_built_again_in_the_background(
    on: SparkSession, begun: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    """The table says its schema, so that no other session would build it back. A write does not wait for that."""
    on.sql("DROP TABLE t")
    make(on, **{"delta.enableTypeWidening": "true"})
    on.sql("ALTER TABLE t ADD COLUMN small INT")
    on.range(4).selectExpr("id", "'w' AS v", "0 AS p", "CAST(id AS INT) AS small").write.format("delta").mode(
        "append"
    ).saveAsTable("t")
    dataset = esk.Dataset(on, table="t")
    dataset.create_indexes(esk.MinMax("small"))
    on.sql("ALTER TABLE t ALTER COLUMN small TYPE BIGINT")
    on.sql("INSERT INTO t VALUES (1007, 'v1007', 1, 5000000000)")
    until(lambda: opened(on, "small = 5000000000") == ([1007], 1))
    assert begun
    assert dataset.health().coverage == 1
    assert not [text for text in warned(caplog) if "is not indexed" in text or "is not refreshed" in text]


def test_names_in_footers_are_not_those_of_a_mapped_table(on: SparkSession) -> None:
    """Two columns exchange their names; the files keep the old ones."""
    on.sql("DROP TABLE t")
    on.sql("CREATE TABLE t (id BIGINT, p INT, v STRING, other BIGINT) USING delta")
    on.range(0, 400, 1, 4).selectExpr("id", "0 AS p", "'v' AS v", "id + 1000 AS other").write.insertInto("t")
    on.sql("ALTER TABLE t SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')")
    for old, new in (("id", "between"), ("other", "id"), ("between", "other")):
        on.sql(f"ALTER TABLE t RENAME COLUMN {old} TO {new}")
    dataset = esk.Dataset(on, table="t")
    dataset.create_indexes(esk.MinMax("id"), esk.MinMax("other"))
    assert opened(on, "id = 1007") == ([1007], 1)
    assert opened(on, "other = 107") == ([1107], 1)


def test_footers_serve_a_plain_table(on: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*args: Any, **options: Any) -> Any:
        raise AssertionError("rows were read")

    monkeypatch.setattr(TableOrigin, "rows", refused)
    assert esk.Dataset(on, table="t").create_indexes(esk.MinMax("id")).added == 4
    assert opened(on, "id = 250") == ([250], 1)


def test_an_index_of_the_path(on: SparkSession) -> None:
    dataset = esk.Dataset(on, location(on))
    dataset.create_indexes(esk.MinMax("id"))
    append(on)
    append_to_path(on)
    assert dataset.health().coverage == 1
    assert opened(on, "id = 1007") == ([1007, 1007], 2)


FAILING = {
    "append": lambda spark: rows(spark, 1_000, 1_100)
    .selectExpr("IF(id < 1050, id, raise_error('no')) AS id", "v", "p")
    .write.format("delta").mode("append").saveAsTable("t"),
    "UPDATE": statement("UPDATE t SET v = raise_error('no') WHERE id = 7"),
    "MERGE": statement(
        "MERGE INTO t USING (SELECT 7L AS id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = raise_error('no')"
    ),
    "a constraint": statement("INSERT INTO t VALUES (-1, 'v', 1)"),
}  # fmt: skip


@pytest.mark.parametrize("name", FAILING)
def test_a_failed_command_publishes_nothing(on: SparkSession, asked: Asked, name: str) -> None:
    dataset = esk.Dataset(on, table="t")
    dataset.create_indexes(esk.MinMax("id"))
    on.sql("ALTER TABLE t ADD CONSTRAINT positive CHECK (id >= 0)")
    before = store_of(on).dataset(dataset.id)
    asked.listed.clear()
    with pytest.raises(Exception, match=r"no|positive"):
        FAILING[name](on)
    assert store_of(on).dataset(dataset.id) == before
    assert asked.listed == []
    assert opened(on, "id = 7") == ([7], 1)


def test_a_refresh_that_fails_does_not_fail_the_write(
    on: SparkSession, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    esk.Dataset(on, table="t").create_indexes(esk.MinMax("id"))
    with monkeypatch.context() as broken:
        broken.setattr(esk.Dataset, "refresh", lambda *args, **options: 1 / 0)
        append(on)
    assert [text for text in warned(caplog) if "not indexed" in text] == [
        f"what was written to {location(on)} is not indexed: ZeroDivisionError: division by zero"
    ]
    assert opened(on, "id = 7") == ([7], 2), "what is not indexed is read"
    assert opened(on, "id = 1007") == ([1007], 1)
    assert esk.Dataset(on, table="t").health().missing == 1
    append(on)
    assert esk.Dataset(on, table="t").health().coverage == 1, "the next commit covers what this one left out"


def test_only_tables_that_are_indexed(on: SparkSession, asked: Asked) -> None:
    append(on)
    assert asked.listed == []
    assert store_of(on).datasets() == []


def test_only_where_it_is_turned_on(on: SparkSession) -> None:
    dataset = esk.Dataset(on, table="t")
    dataset.create_indexes(esk.MinMax("id"))
    on.conf.set("spark.es_skipping.indexOnCommit", "false")
    append(on)
    assert dataset.health().missing == 1
    assert opened(on, "id = 7") == ([7], 2)
