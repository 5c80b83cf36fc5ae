"""What commits to an Iceberg table is indexed soon, from its snapshot; a failed command publishes nothing."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import es_skipping as esk
from es_skipping.build import auto_refresh
from es_skipping.spark.services import service_of, store_of
from tests.connectors.changes import Asked, asked
from tests.connectors.delta_tables import sessions_of
from tests.spark.objects_read import splits_read
from tests.spark.skipping_on_off import warned

__all__ = ["asked"]

PATIENCE = 60.0
NAME = "lake.db.committed"
USING = "USING iceberg PARTITIONED BY (p)"
SET = (
    "TBLPROPERTIES ('write.metadata.metrics.default' = 'none', 'read.split.open-file-cost' = '134217728', "
    "'write.delete.mode' = '{how}', 'write.update.mode' = '{how}', 'write.merge.mode' = '{how}')"
)
SELECTED = "SELECT id, concat('v', id) AS v, 1 AS p FROM range(1000, 1100, 1, 1)"


@pytest.fixture
def refreshed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The datasets that were refreshed in the background, in order."""
    found: list[str] = []
    whole = auto_refresh._refresh

    def noted(spark: SparkSession, due: Any) -> None:
        whole(spark, due)
        found.append(due.definition.id)

    monkeypatch.setattr(auto_refresh, "_refresh", noted)
    return found


@pytest.fixture
def on(iceberg: SparkSession, tmp_path: Path) -> Iterator[SparkSession]:
    """A session that indexes what it commits. Iceberg keeps no minima of the table, so only our indexes skip."""
    off, on = sessions_of(iceberg, (tmp_path / "store").as_uri())
    on.conf.set("spark.es_skipping.indexOnCommit", "true")
    make(off, "copy-on-write")
    yield on
    esk.disable(on)
    off.sql(f"DROP TABLE IF EXISTS {NAME} PURGE")


def make(spark: SparkSession, how: str) -> None:
    spark.sql(f"DROP TABLE IF EXISTS {NAME} PURGE")
    spark.sql(
        f"CREATE TABLE {NAME} (id BIGINT, v STRING, p INT) USING iceberg PARTITIONED BY (p) {SET.format(how=how)}"
    )
    rows(spark, 0, 400, 4).writeTo(NAME).append()


def rows(spark: SparkSession, first: int, last: int, files: int = 1) -> Any:
    spark.conf.set("spark.sql.iceberg.distribution-mode", "none")  # else one file for each partition
    return spark.range(first, last, 1, files).selectExpr("id", "concat('v', id) AS v", "CAST(id DIV 1000 AS INT) AS p")


def opened(spark: SparkSession, condition: str) -> tuple[list[int], int]:
    """The rows, and the files that a query opens: each task reads one."""
    spark.sql(f"REFRESH TABLE {NAME}")
    found = spark.table(NAME).where(condition)
    ids = sorted(row.id for row in found.collect())
    return ids, splits_read(found)


def until(reached: Callable[[], Any]) -> None:
    end = time.monotonic() + PATIENCE
    while not reached():
        assert time.monotonic() < end
        time.sleep(0.1)


def statement(text: str) -> Callable[[SparkSession], object]:
    return lambda spark: spark.sql(text).collect()


COMMANDS = {
    "writeTo append": lambda spark: rows(spark, 1_000, 1_100).writeTo(NAME).append(),
    "saveAsTable": lambda spark: rows(spark, 1_000, 1_100).write.format("iceberg").mode("append").saveAsTable(NAME),
    "INSERT": statement(f"INSERT INTO {NAME} {SELECTED}"),
    "overwrite": lambda spark: rows(spark, 1_000, 1_100).writeTo(NAME).overwrite(F.lit(True)),
    "overwrite partitions": lambda spark: rows(spark, 1_000, 1_100).writeTo(NAME).overwritePartitions(),
    "UPDATE": statement(f"UPDATE {NAME} SET id = id + 1000, p = 1 WHERE id < 100"),
    "MERGE": statement(
        f"MERGE INTO {NAME} t USING (SELECT id - 1000 AS old, * FROM ({SELECTED})) s ON t.id = s.old "
        "WHEN MATCHED THEN UPDATE SET id = s.id, p = 1"
    ),
    "MERGE of new rows": statement(
        f"MERGE INTO {NAME} t USING ({SELECTED}) s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *"
    ),
    "CREATE OR REPLACE ... AS SELECT": statement(
        f"CREATE OR REPLACE TABLE {NAME} {USING} {SET.format(how='copy-on-write')} AS {SELECTED}"
    ),
}  # fmt: skip


COPYING, MERGING = "copy-on-write", "merge-on-read"


@pytest.mark.every(3)
@pytest.mark.parametrize(
    ("name", "how"), [*((name, COPYING) for name in COMMANDS), ("UPDATE", MERGING), ("MERGE", MERGING)]
)
def test_a_command_is_indexed_soon(on: SparkSession, asked: Asked, refreshed: list[str], name: str, how: str) -> None:
    if how == MERGING:
        make(on, how)
    dataset = esk.Dataset(on, table=NAME)
    dataset.create_indexes(esk.MinMax("id"))
    asked.listed.clear()
    asked.by_changes.clear()
    COMMANDS[name](on)
    until(lambda: refreshed)
    assert refreshed == [dataset.id], "once"
    if not name.startswith("CREATE"):
        assert asked.by_changes == [True]
        assert max(asked.listed) == 1, "more than the files of the commit"
    assert opened(on, "id = 1007") == ([1007], 1)
    assert dataset.health().coverage == 1


def test_a_thread_that_has_loaded_no_catalog_knows_the_table(on: SparkSession) -> None:
    """As in the background, when a table's own maintenance has committed in a session of its own."""
    found: list[str] = []
    fresh = on.newSession()
    thread = Thread(target=lambda: found.append(esk.Dataset(fresh, table=NAME).id))
    thread.start()
    thread.join()
    assert found == [esk.Dataset(on, table=NAME).id]


def test_a_delete_of_whole_files(on: SparkSession, refreshed: list[str]) -> None:
    COMMANDS["INSERT"](on)
    dataset = esk.Dataset(on, table=NAME)
    dataset.create_indexes(esk.MinMax("id"))
    refreshed.clear()
    on.sql(f"DELETE FROM {NAME} WHERE p = 1")
    until(lambda: refreshed)
    assert (dataset.health().coverage, dataset.health().gone) == (1, 0)


FAILING = {
    "append": lambda spark: rows(spark, 1_000, 1_100)
    .selectExpr("IF(id < 1050, id, raise_error('no')) AS id", "v", "p")
    .writeTo(NAME).append(),
    "UPDATE": statement(f"UPDATE {NAME} SET v = raise_error('no') WHERE id = 7"),
    "CREATE OR REPLACE ... AS SELECT": statement(
        f"CREATE OR REPLACE TABLE {NAME} USING iceberg AS SELECT id, raise_error('no') AS v, 1 AS p FROM range(10)"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FAILING)
def test_a_failed_command_publishes_nothing(on: SparkSession, refreshed: list[str], name: str) -> None:
    dataset = esk.Dataset(on, table=NAME)
    dataset.create_indexes(esk.MinMax("id"))
    before = store_of(on).dataset(dataset.id)
    with pytest.raises(Exception, match="no"):
        FAILING[name](on)
    assert not background_of(on)._waiting
    assert (refreshed, store_of(on).dataset(dataset.id)) == ([], before)
    assert opened(on, "id = 7") == ([7], 1)


def background_of(spark: SparkSession) -> auto_refresh.AutoRefresh:
    found = service_of(spark).on_use
    assert isinstance(found, auto_refresh.AutoRefresh)
    return found


def test_a_refresh_that_fails_does_not_fail_the_write(
    on: SparkSession, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    dataset = esk.Dataset(on, table=NAME)
    dataset.create_indexes(esk.MinMax("id"))
    with monkeypatch.context() as broken:
        broken.setattr(esk.Dataset, "refresh", lambda *args, **options: 1 / 0)
        COMMANDS["INSERT"](on)
        until(lambda: warned(caplog))
    assert [text.partition(" is not ")[2] for text in warned(caplog)] == [
        "refreshed in the background: ZeroDivisionError: division by zero"
    ]
    assert opened(on, "id = 1007")[0] == [1007]
    assert dataset.health().missing == 1


def test_only_where_it_is_turned_on_and_indexed(on: SparkSession, asked: Asked, refreshed: list[str]) -> None:
    COMMANDS["INSERT"](on)
    assert store_of(on).datasets() == []
    dataset = esk.Dataset(on, table=NAME)
    dataset.create_indexes(esk.MinMax("id"))
    on.conf.set("spark.es_skipping.indexOnCommit", "false")
    COMMANDS["INSERT"](on)
    assert dataset.health().missing == 1
    assert refreshed == []
    assert opened(on, "id = 1007") == ([1007, 1007], 2)
