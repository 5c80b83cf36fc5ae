"""A refresh of an Iceberg table takes what its snapshots say was changed, and ends where one from nothing would.

``ES_SKIPPING_LIFE`` sets how many random commits there are, ``ES_SKIPPING_SEED`` the random numbers.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import es_skipping as esk
from es_skipping.errors import EsSkippingError
from tests.connectors.changes import Asked, asked, index_again, opened_in, registry
from tests.connectors.copies import check_copies
from tests.connectors.delta_tables import indexes_of, sessions_of
from tests.connectors.new_keys import check_new_keys
from tests.connectors.test_iceberg_generated import Run, Table
from tests.spark.objects_read import splits_read

__all__ = ["asked"]

STEPS = int(os.environ.get("ES_SKIPPING_LIFE", "5"))
SEED = int(os.environ.get("ES_SKIPPING_SEED", "7"))
INDEXES = [esk.ValueList("v"), esk.MinMax("id")]
_FILES = 30
NAME = "lake.db.changing"


@pytest.fixture
def on(iceberg: SparkSession, tmp_path: Path) -> Iterator[SparkSession]:
    """A session on a table of some files, which it has indexed."""
    off, on = sessions_of(iceberg, (tmp_path / "store").as_uri())
    off.sql(
        f"CREATE TABLE {NAME} (id BIGINT, v STRING) USING iceberg TBLPROPERTIES ('format-version' = '2', "
        f"'write.delete.mode' = 'merge-on-read', 'read.split.open-file-cost' = '{128 << 20}', "
        "'write.metadata.metrics.default' = 'none', 'commit.manifest-merge.enabled' = 'false')"
    )
    insert(on, 0, 400, 4)
    esk.Dataset(on, table=NAME).create_indexes(*INDEXES)
    yield on
    esk.disable(on)
    off.sql(f"DROP TABLE {NAME} PURGE")


def insert(spark: SparkSession, first: int, last: int, files: int) -> None:
    spark.range(first, last, 1, files).selectExpr("id", "concat('v', id) AS v").writeTo(NAME).append()


def folder_of(spark: SparkSession) -> Path:
    lake = str(spark.conf.get("spark.sql.catalog.lake.warehouse"))
    return Path(lake.removeprefix("file:").replace("//", "")) / NAME.removeprefix("lake.").replace(".", "/")


def snapshots(spark: SparkSession) -> list[int]:
    rows = spark.sql(f"SELECT snapshot_id FROM {NAME}.snapshots ORDER BY committed_at").collect()
    return [int(row[0]) for row in rows]


def call(spark: SparkSession, procedure: str) -> None:
    spark.sql(f"CALL lake.system.{procedure}").collect()
    spark.sql(f"REFRESH TABLE {NAME}")


SHORT = NAME.removeprefix("lake.")
REWRITE = f"rewrite_data_files(table => '{SHORT}', options => map('rewrite-all', 'true'))"


def test_an_append_asks_for_the_appended_files(on: SparkSession, asked: Asked) -> None:
    on.sql(f"ALTER TABLE {NAME} SET TBLPROPERTIES ('read.split.open-file-cost' = '1')")  # one task reads many
    insert(on, 1000, 3_600, _FILES - 4)
    dataset = esk.Dataset(on, table=NAME)
    assert dataset.refresh().added == _FILES - 4
    data, metadata = folder_of(on) / "data", folder_of(on) / "metadata"
    before, manifests = ({path.name for path in folder.iterdir()} for folder in (data, metadata))
    insert(on, 20_000, 20_100, 1)
    new = {path.name for path in data.glob("*.parquet")} - before
    asked.listed.clear()
    with opened_in(data) as opened, opened_in(metadata) as read:
        result = dataset.refresh()
    assert (result.added, result.removed, result.unchanged) == (1, 0, _FILES)
    assert asked.listed == [1]
    assert {name for name in opened if not name.startswith(".")} == new, "a directory was listed, or a file read"
    earlier = Counter(name for name in read if name in manifests and name.endswith("-m0.avro") and name[0] != ".")
    assert set(earlier.values()) <= {1}, "only Spark's optimizer, once, looks into manifests of earlier commits"
    assert registry(on, NAME) == index_again(on, NAME, INDEXES)
    with opened_in(data) as opened:
        assert dataset.refresh().unchanged == _FILES + 1
    assert opened == []


CHANGES = {
    "a position delete": ([f"DELETE FROM {NAME} WHERE id = 205"], 0, 0),
    "position deletes of all rows of a file": ([f"DELETE FROM {NAME} WHERE id < 100"], 0, 0),
    "rewrite": ([f"CALL lake.system.{REWRITE}"], 1, 4),
    "rewrite, of manifests too, and an append": (
        [
            f"CALL lake.system.{REWRITE}",
            f"CALL lake.system.rewrite_manifests('{SHORT}')",
            f"INSERT INTO {NAME} VALUES (900, 'v')",
        ],
        2,
        4,
    ),
    "an overwrite": ([f"INSERT OVERWRITE {NAME} VALUES (1, 'v')"], 1, 4),
    "a copied file": ([f"UPDATE {NAME} SET v = 'new' WHERE id = 205"], 1, 1),
    "a new column": ([f"ALTER TABLE {NAME} ADD COLUMN more INT", f"INSERT INTO {NAME} VALUES (900, 'v', 1)"], 1, 0),
    "nothing": ([f"ALTER TABLE {NAME} CREATE TAG mark"], 0, 0),
}


@pytest.mark.every(2)
@pytest.mark.parametrize("name", CHANGES)
def test_a_refresh_by_changes_is_one_from_nothing(on: SparkSession, asked: Asked, name: str) -> None:
    commits, added, removed = CHANGES[name]
    for commit in commits:
        on.sql(commit).collect()
    on.sql(f"REFRESH TABLE {NAME}")
    result = esk.Dataset(on, table=NAME).refresh()
    assert asked.by_changes == [True]
    assert (result.added, result.removed) == (added, removed), result
    assert registry(on, NAME) == index_again(on, NAME, INDEXES)


def test_all_files_are_listed_where_ancestry_does_not_tell(on: SparkSession, asked: Asked) -> None:
    dataset = esk.Dataset(on, table=NAME)
    (first,) = snapshots(on)
    insert(on, 500, 600, 1)
    dataset.refresh()
    call(on, f"rollback_to_snapshot('{SHORT}', {first})")
    assert dataset.refresh().removed == 1
    assert asked.by_changes == [True, False], "the snapshot of the index is not an ancestor after a rollback"
    assert registry(on, NAME) == index_again(on, NAME, INDEXES)
    for number in range(3):
        insert(on, 600 + number, 700, 1)
    call(on, f"expire_snapshots(table => '{SHORT}', older_than => TIMESTAMP '2100-01-01', retain_last => 1)")
    assert dataset.refresh().added == 3
    assert asked.by_changes == [True, False, False], "the snapshot of the index is expired"
    on.sql(f"DROP TABLE {NAME} PURGE")
    on.sql(f"CREATE TABLE {NAME} (id BIGINT, v STRING) USING iceberg")
    insert(on, 0, 100, 1)
    result = dataset.refresh()
    assert (result.added, asked.by_changes[3:]) == (1, [False]), result
    assert registry(on, NAME) == index_again(on, NAME, INDEXES)


@pytest.mark.parametrize("retain", ["refresh", "vacuum"])
def test_removed_files_may_be_known_until_they_are_deleted(on: SparkSession, asked: Asked, retain: str) -> None:
    on.conf.set("spark.es_skipping.retainRemoved", retain)
    dataset = esk.Dataset(on, table=NAME)
    (first,) = snapshots(on)
    call(on, REWRITE)
    assert dataset.refresh().removed == (4 if retain == "refresh" else 0)
    old = f"SELECT * FROM {NAME} VERSION AS OF {first} WHERE v = 'v205'"
    assert opened(on, old) == (4 if retain == "refresh" else 1)
    if retain == "vacuum":
        assert len(registry(on, NAME)) == 5
        call(on, f"expire_snapshots(table => '{SHORT}', older_than => TIMESTAMP '2100-01-01', retain_last => 1)")
        assert dataset.refresh().removed == 4
        assert asked.by_changes == []
    assert registry(on, NAME) == index_again(on, NAME, INDEXES)


def opened(spark: SparkSession, sql: str) -> int:
    """How many files a query opens that has one row."""
    df = spark.sql(sql)
    assert len(df.collect()) == 1
    return splits_read(df)


def test_random_commits(iceberg: SparkSession, tmp_path: Path, asked: Asked) -> None:
    rng = random.Random(SEED)
    off, on = sessions_of(iceberg, (tmp_path / "store").as_uri())
    table = Table("lake.db.walk", off, tmp_path / "rows", rng, rng.choice(("merge-on-read", "copy-on-write")), "2")
    indexes = indexes_of(table.fields[:3], rng)
    dataset = esk.Dataset(on, table=table.name)
    dataset.create_indexes(*indexes)
    run = Run()
    try:
        for _ in range(STEPS):
            for _ in range(rng.choice((1, 1, 2))):
                table.commit(off, run)
            table.seen_by(on)
            try:
                table.log.append(str(dataset.refresh()))
            except EsSkippingError as error:  # a column that has another name
                indexes = indexes_of(table.fields[:3], rng)
                dataset.drop_indexes(all=True)
                dataset.create_indexes(*indexes)
                table.log.append(str(error))
            assert registry(on, table.name) == index_again(on, table.name, indexes), "\n".join(table.log)
        said = f"{STEPS} refreshes, by changes: {asked.by_changes}, seed {SEED}"
        print(f"\n{said}\n" + "\n".join(table.log))  # noqa: T201 - for a record run, with -s
        assert any(asked.by_changes), said
    finally:
        esk.disable(on)
        off.sql(f"DROP TABLE {table.name}")


def test_new_keys(on: SparkSession, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def opened(filter: str) -> int:
        df = on.sql(f"SELECT * FROM {NAME} WHERE {filter}")
        df.collect()
        return splits_read(df)

    check_new_keys(on, NAME, opened, lambda: insert(on, 1000, 1100, 1), monkeypatch, capsys)


def test_a_copy_goes_on_by_changes(
    on: SparkSession, asked: Asked, elasticsearch_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    firsts = iter((500, 600, 700))
    check_copies(
        on, NAME, INDEXES, lambda: insert(on, (first := next(firsts)), first + 100, 1), asked, elasticsearch_url, capsys
    )
