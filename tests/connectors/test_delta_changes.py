"""A refresh of a Delta table takes what its log says was changed, and ends where a refresh from nothing would.

``ES_SKIPPING_LIFE`` sets how many random commits there are, ``ES_SKIPPING_SEED`` the random numbers.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import es_skipping as esk
from es_skipping.build.origin import Changes, TableOrigin
from es_skipping.catalog import CoveredSnapshot
from es_skipping.errors import EsSkippingError
from es_skipping.spark.services import store_of
from tests.connectors.changes import Asked, asked, index_again, opened_in, registry
from tests.connectors.copies import check_copies
from tests.connectors.delta_tables import RandomTable, dropped, indexes_of, sessions_of
from tests.connectors.new_keys import check_new_keys
from tests.soundness.data import COLUMNS
from tests.spark.objects_read import num_files

__all__ = ["asked"]

STEPS = int(os.environ.get("ES_SKIPPING_LIFE", "5"))
SEED = int(os.environ.get("ES_SKIPPING_SEED", "7"))
_COLUMNS = [column for column in COLUMNS if column.sql in ("i32", "f64", "s", "city", "d", "n.x", "n.deep.y")]
INDEXES = [esk.ValueList("v"), esk.MinMax("id")]
_FILES = 30


@pytest.fixture
def on(delta: SparkSession, tmp_path: Path) -> Iterator[SparkSession]:
    """A session on a table ``t`` of some files, which it has indexed."""
    off, on = sessions_of(delta, (tmp_path / "store").as_uri())
    with dropped(off, "t"):
        off.sql(
            "CREATE TABLE t (id BIGINT, v STRING) USING delta TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')"
        )
        insert(on, 0, 400, 4)
        esk.Dataset(on, table="t").create_indexes(*INDEXES)
        yield on
        esk.disable(on)


def insert(spark: SparkSession, first: int, last: int, files: int) -> None:
    rows = spark.range(first, last, 1, files).selectExpr("id", "concat('v', id) AS v")
    rows.write.format("delta").mode("append").saveAsTable("t")


def folder_of(spark: SparkSession) -> Path:
    detail = spark.sql("DESCRIBE DETAIL t").head()
    assert detail is not None
    return Path(detail["location"].removeprefix("file:"))


def test_an_append_asks_for_the_appended_files(on: SparkSession, asked: Asked) -> None:
    insert(on, 1000, 3_600, _FILES - 4)
    dataset = esk.Dataset(on, table="t")
    assert dataset.refresh().added == _FILES - 4
    before = {path.name for path in folder_of(on).glob("*.parquet")}
    insert(on, 20_000, 20_100, 1)
    (new,) = {path.name for path in folder_of(on).glob("*.parquet")} - before
    asked.listed.clear()
    with opened_in(folder_of(on)) as opened:
        result = dataset.refresh()
    assert (result.added, result.removed, result.unchanged) == (1, 0, _FILES)
    assert asked.listed == [1]
    seen = {name for name in opened if not name.startswith(".")} - {"_delta_log"}
    assert seen == {new}, "a directory was listed, or a file read"
    assert registry(on, "t") == index_again(on, "t", INDEXES)
    with opened_in(folder_of(on)) as opened:
        assert dataset.refresh().unchanged == _FILES + 1
    assert set(opened) <= {"_delta_log"}


def change(spark: SparkSession, sql: str) -> None:
    spark.sql(sql).collect()


CHANGES = {
    "a deletion vector: the same file comes again": (["DELETE FROM t WHERE id = 205"], 0, 0),
    "deletion vectors and an append": (["DELETE FROM t WHERE id = 205", "INSERT INTO t VALUES (900, 'v')"], 1, 0),
    "all rows of a file": (["DELETE FROM t WHERE id < 100"], 0, 1),
    "OPTIMIZE": (["OPTIMIZE t"], 1, 4),
    "RESTORE to before": (["OPTIMIZE t", "RESTORE TABLE t TO VERSION AS OF 1"], 0, 0),
    "VACUUM": (["OPTIMIZE t", "VACUUM t RETAIN 0 HOURS"], 1, 4),
    "an overwrite": (["INSERT OVERWRITE t VALUES (1, 'v')"], 1, 4),
    "nothing but properties": (["ALTER TABLE t SET TBLPROPERTIES ('a' = 'b')"], 0, 0),
    "a new column": (["ALTER TABLE t ADD COLUMN more INT", "INSERT INTO t VALUES (900, 'v', 1)"], 1, 0),
    "a merge": (
        ["MERGE INTO t USING (SELECT 205L AS k) s ON t.id = s.k WHEN MATCHED THEN UPDATE SET v = 'new'"], 1, 0
    ),
}  # fmt: skip


@pytest.mark.every(2)
@pytest.mark.parametrize("name", CHANGES)
def test_a_refresh_by_changes_is_one_from_nothing(on: SparkSession, asked: Asked, name: str) -> None:
    commits, added, removed = CHANGES[name]
    for commit in commits:
        change(on, commit)
    result = esk.Dataset(on, table="t").refresh()
    assert asked.by_changes == [True]
    assert (result.added, result.removed) == (added, removed), result
    assert registry(on, "t") == index_again(on, "t", INDEXES)
    again = esk.Dataset(on, table="t").refresh()
    assert (again.added, again.updated, again.removed) == (0, 0, 0)


def test_a_file_with_another_identity_loses_its_metadata(on: SparkSession, asked: Asked) -> None:
    """Another writer adds a file again under its path, with another time: what is known of it is of another file."""
    log = folder_of(on) / "_delta_log"
    adds = [line for line in (log / f"{1:020}.json").read_text(encoding="utf-8").splitlines() if '"add"' in line]
    time = adds[0].partition('"modificationTime":')[2].partition(",")[0]
    again = adds[0].replace(f'"modificationTime":{time}', f'"modificationTime":{int(time) + 5000}')
    (log / f"{2:020}.json").write_text('{"commitInfo":{"operation":"WRITE"}}\n' + again + "\n", encoding="utf-8")
    result = esk.Dataset(on, table="t").refresh()
    assert asked.by_changes == [True]
    assert (result.added, result.updated, result.removed, result.unchanged) == (0, 1, 0, 3)
    assert registry(on, "t") == index_again(on, "t", INDEXES)


def test_all_files_are_listed_where_the_log_does_not_tell(on: SparkSession, asked: Asked) -> None:
    dataset, log = esk.Dataset(on, table="t"), folder_of(on) / "_delta_log"
    covered = store_of(on).dataset(dataset.id).definition.covered  # type: ignore[union-attr]
    assert covered is not None and (covered.id, covered.retained) == ("1", False)
    insert(on, 500, 600, 1)
    insert(on, 600, 700, 1)
    times = {path: path.stat() for path in log.glob("*.json")}
    first = log / f"{1:020}.json"
    os.utime(first, (1, 1))  # a log that was written anew
    assert dataset.refresh().added == 2
    assert asked.by_changes == [False]
    os.utime(first, ns=(times[first].st_atime_ns, times[first].st_mtime_ns))
    on.sql("DROP TABLE t")
    on.sql("CREATE TABLE t (id BIGINT, v STRING) USING delta")
    for number in range(4):
        insert(on, number, 100, 2)
    result = dataset.refresh()
    assert (result.added, result.removed, asked.by_changes) == (8, 6, [False, False])
    assert registry(on, "t") == index_again(on, "t", INDEXES)


def test_what_a_refresh_of_everything_is_for(on: SparkSession, asked: Asked) -> None:
    """A new index, an index that failed on a file, and a part of the table: none of them takes the changes alone."""
    dataset = esk.Dataset(on, table="t")
    insert(on, 500, 600, 1)
    dataset.create_indexes(esk.Prefix("v", length=2))
    assert asked.by_changes == []
    insert(on, 600, 700, 1)
    new = max(folder_of(on).glob("*.parquet"), key=lambda path: path.stat().st_mtime_ns)
    assert dataset.refresh(paths=str(folder_of(on) / "elsewhere")).added == 0
    good = new.read_bytes()
    checksum = new.with_name(f".{new.name}.crc")
    checksum.unlink()
    new.write_bytes(good[:-100] + bytes(100))
    result = dataset.refresh()
    assert (result.added, len(result.failed), asked.by_changes) == (0, 1, [True])
    new.write_bytes(good)
    result = dataset.refresh()
    assert (result.added, result.failed, asked.by_changes) == (1, (), [True])
    assert registry(on, "t") == index_again(on, "t", [*INDEXES, esk.Prefix("v", length=2)])


def test_another_refresh_meanwhile(on: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """The changes lead from the snapshot that the metadata covered: not from what another writer made of it."""
    insert(on, 500, 600, 1)
    changes_since = TableOrigin.changes_since
    others: list[Any] = []

    def meanwhile(self: TableOrigin, snapshot: CoveredSnapshot) -> Changes | None:
        if not others:
            others.append(None)
            others.append(esk.Dataset(on, table="t").refresh())
        return changes_since(self, snapshot)

    monkeypatch.setattr(TableOrigin, "changes_since", meanwhile)
    result = esk.Dataset(on, table="t").refresh()
    assert (others[1].added, result.added, result.unchanged) == (1, 0, 5)
    assert registry(on, "t") == index_again(on, "t", INDEXES)


@pytest.mark.every(2)
@pytest.mark.parametrize("retain", ["refresh", "vacuum"])
def test_removed_files_may_be_known_until_they_are_deleted(on: SparkSession, asked: Asked, retain: str) -> None:
    on.conf.set("spark.es_skipping.retainRemoved", retain)
    dataset = esk.Dataset(on, table="t")
    change(on, "OPTIMIZE t")
    assert dataset.refresh().removed == (4 if retain == "refresh" else 0)
    old = "SELECT * FROM t VERSION AS OF 1 WHERE v = 'v205'"
    assert opened(on, old) == (2 if retain == "refresh" else 1)  # Delta itself leaves two
    insert(on, 500, 600, 1)
    dataset.refresh()
    assert opened(on, old) == (2 if retain == "refresh" else 1)  # Delta itself leaves two
    assert asked.by_changes == ([True, True] if retain == "refresh" else [])
    on.conf.set("spark.es_skipping.retainRemoved", "refresh")
    assert dataset.refresh().removed == (0 if retain == "refresh" else 4)
    assert registry(on, "t") == index_again(on, "t", INDEXES)


def test_vacuum_ends_what_is_retained(on: SparkSession) -> None:
    on.conf.set("spark.es_skipping.retainRemoved", "vacuum")
    dataset = esk.Dataset(on, table="t")
    change(on, "OPTIMIZE t")
    assert dataset.refresh().removed == 0
    assert len(registry(on, "t")) == 5
    change(on, "VACUUM t RETAIN 0 HOURS")
    assert dataset.refresh().removed == 4
    assert registry(on, "t") == index_again(on, "t", INDEXES)


def opened(spark: SparkSession, sql: str) -> int:
    """How many files a query opens that has one row."""
    df = spark.sql(sql)
    assert df.count() == 1
    assert len(df.collect()) == 1
    return sum(num_files(df))


def test_random_commits(delta: SparkSession, tmp_path: Path, asked: Asked) -> None:
    rng = random.Random(SEED)
    off, on = sessions_of(delta, (tmp_path / "store").as_uri())
    with dropped(off, "walk"):
        table = RandomTable("walk", off, tmp_path / "rows", rng, objects=8, columns=_COLUMNS)
        indexes = indexes_of(table.fields, rng)
        dataset = esk.Dataset(on, table="walk")
        dataset.create_indexes(*indexes)
        left: list[str] = []
        for _ in range(STEPS):
            for _ in range(rng.choice((1, 1, 2))):
                if not left:
                    left = ["append", "delete", "delete_all", "update", "merge", "optimize", "restore", "add"]
                    left += ["append", "delete", "optimize", "restore", "turn_vectors"]
                    left += ["vacuum"] if STEPS > 20 else []  # it takes longer than all the others
                    rng.shuffle(left)
                table.commit(off, getattr(table, left.pop()))
            try:
                table.log.append(f"{table.version} {dataset.refresh()}")
            except EsSkippingError as error:  # a column that is gone, by a RESTORE
                indexes = indexes_of(table.fields, rng)
                dataset.drop_indexes(all=True)
                dataset.create_indexes(*indexes)
                table.log.append(f"{table.version} {error}")
            assert registry(on, "walk") == index_again(on, "walk", indexes), f"seed {SEED}\n" + "\n".join(table.log)
        said = f"{STEPS} refreshes, by changes: {asked.by_changes}, seed {SEED}"
        print(f"\n{said}\n" + "\n".join(table.log))  # noqa: T201 - for a record run, with -s
        assert sum(asked.by_changes) > STEPS // 2, said
        esk.disable(on)


def test_new_keys(on: SparkSession, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def opened(filter: str) -> int:
        df = on.sql(f"SELECT * FROM t WHERE {filter}")
        df.collect()
        return sum(num_files(df))

    check_new_keys(on, "t", opened, lambda: insert(on, 1000, 1100, 1), monkeypatch, capsys)


def test_a_copy_goes_on_by_changes(
    on: SparkSession, asked: Asked, elasticsearch_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    firsts = iter((500, 600, 700))
    check_copies(
        on, "t", INDEXES, lambda: insert(on, (first := next(firsts)), first + 100, 1), asked, elasticsearch_url, capsys
    )
