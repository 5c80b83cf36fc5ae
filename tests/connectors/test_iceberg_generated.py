"""No query of an Iceberg table may lose a row: random predicates between random commits, over both stores.

``ES_SKIPPING_SOUNDNESS`` sets how many predicates are planned for each store; some queries are also executed with
skipping on and off (a tenth as many in a long run). ``ES_SKIPPING_SEED`` sets the seed. A commit comes before each
round of predicates; a refresh may come after it or not, and predicates are of the latest snapshot or of an older one.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import es_skipping as esk
from es_skipping.errors import EsSkippingError
from tests.connectors.delta_tables import WIDER, Field, indexes_of, sessions_of
from tests.connectors.rounds import JUDGED, PLANNED, ROW_FILE, per_round, random_query, remembered
from tests.soundness.checked_change import check_change
from tests.soundness.data import COLUMNS, write_objects
from tests.soundness.harness import ICEBERG_FILE_NAME, Outcome, objects_planned_by_iceberg, soundness_of
from tests.soundness.sql import Node, Predicates
from tests.spark.objects_read import splits_read

COUNT = int(os.environ.get("ES_SKIPPING_SOUNDNESS", "30"))
SEED = int(os.environ.get("ES_SKIPPING_SEED", "20261123"))
_PER_ROUND = per_round(COUNT)
_EXECUTED = max(3, _PER_ROUND // 10)
"""In a round."""
_ROUNDS_PER_TABLE = 12
_FEWEST_COLUMNS = 6
_UNKNOWN_TO_ICEBERG = ("tinyint", "smallint")
_COLUMNS = tuple(column for column in COLUMNS if column.sql_type not in _UNKNOWN_TO_ICEBERG and "." not in column.sql)


@dataclass
class Run:
    """What came of a run over one store."""

    begun: float = field(default_factory=time.monotonic)
    commits: int = 0
    refused: int = 0
    refreshes: int = 0
    executed: int = 0
    failing: int = 0
    rows: int = 0
    opened: int = 0
    opened_without: int = 0
    planned: Outcome = field(default_factory=Outcome)

    def __str__(self) -> str:
        return (
            f"{time.monotonic() - self.begun:.0f} s, {self.commits} commits ({self.refused} refused), {self.refreshes} "
            f"refreshes; {self.planned}; {self.executed} queries executed with {self.rows} rows, {self.failing} that "
            f"fail; they opened {self.opened} files with skipping and {self.opened_without} without"
        )


class Table:
    """An Iceberg table of random rows, and random commits to it; ``rng`` decides everything."""

    def __init__(self, name: str, off: SparkSession, folder: Path, rng: random.Random, mode: str, version: str) -> None:
        self.name, self._off, self._folder, self._rng = name, off, folder, rng
        self.fields = tuple(Field(column, column.sql) for column in _COLUMNS)
        self.log: list[str] = []
        self._batches = 0
        self._partitioned = ""
        columns = ", ".join(f"{one.column.sql} {one.column.sql_type}" for one in self.fields)
        modes = ", ".join(f"'write.{change}.mode' = '{mode}'" for change in ("delete", "update", "merge"))
        off.sql(
            f"CREATE TABLE {name} (id BIGINT, {columns}) USING iceberg TBLPROPERTIES ({modes}, 'format-version' = "
            f"'{version}', 'read.split.open-file-cost' = '{128 << 20}', 'write.metadata.metrics.default' = 'none')"
        )
        self.snapshots: list[tuple[int, tuple[Field, ...]]] = []
        self._append(12, 30)
        self._note()

    def _note(self) -> None:
        newest = self._off.sql(f"SELECT snapshot_id FROM {self.name}.snapshots ORDER BY committed_at DESC").head()
        assert newest is not None
        if not self.snapshots or self.snapshots[-1][0] != newest[0]:
            self.snapshots.append((newest[0], self.fields))

    def _append(self, objects: int, rows: int) -> None:
        self._batches += 1
        folder = self._folder / f"rows-{self._batches}"
        write_objects(folder, self._rng.randrange(1 << 30), objects, rows)
        selected = [f"{one.origin} AS {one.column.sql}" for one in self.fields]
        self._off.conf.set("spark.sql.files.openCostInBytes", str(1 << 27))  # one task for each object
        frame = self._off.read.parquet(str(folder)).selectExpr(f"id + {self._batches}00000000 AS id", *selected)
        frame.writeTo(self.name).append()

    def _where(self) -> str:
        return str(self.predicates(None, self._rng).draw(1))

    def predicates(self, fields: tuple[Field, ...] | None, rng: random.Random) -> Predicates:
        return Predicates(rng, [one.column for one in (self.fields if fields is None else fields)])

    @property
    def actions(self) -> list[tuple[int, Callable[[SparkSession], str]]]:
        return [
            (4, self.append), (4, self.delete), (3, self.update), (2, self.merge), (2, self.rewrite),
            (2, self.roll_back), (2, self.rename), (1, self.swap), (1, self.add_again),
            (1, self.add), (1, self.drop), (1, self.promote), (1, self.partition_anew),
        ]  # fmt: skip

    def commit(self, session: SparkSession, run: Run) -> None:
        """One action; what Spark or Iceberg refuses without skipping too counts as refused."""
        actions = self.actions
        (action,) = self._rng.choices([one for _, one in actions], [weight for weight, _ in actions])
        run.commits += 1
        try:
            said = action(session)
        except AssertionError:
            raise
        except Exception as error:
            run.refused += 1
            said = f"refused: {str(error).splitlines()[0][:200]}"
        self.seen_by(self._off)
        self._note()
        self.log.append(f"{action.__name__} {said}")

    def seen_by(self, *sessions: SparkSession) -> None:
        """A session's catalog remembers a table for half a minute, and does not see what others commit to it."""
        for session in sessions:
            session.sql(f"REFRESH TABLE {self.name}")

    def append(self, session: SparkSession) -> str:
        self._append(self._rng.choice((1, 3)), 20)
        return ""

    def _checked(self, session: SparkSession, change: str, expected: str) -> str:
        """A change in a session that may skip; its rows are those that a query without skipping expects."""
        now = f"SELECT id, {self.fields[0].column.sql} AS c FROM {self.name}"
        look = partial(self.seen_by, self._off, session)
        try:
            check_change(self._off, session, change, expected=expected, found=now, look=look)
        except AssertionError as error:
            raise AssertionError(f"{error} after\n" + "\n".join(self.log)) from None
        return change

    def delete(self, session: SparkSession) -> str:
        where, first = self._where(), self.fields[0].column.sql
        kept = f"SELECT id, {first} AS c FROM {self.name} WHERE ({where}) IS NOT TRUE"
        return self._checked(session, f"DELETE FROM {self.name} WHERE {where}", kept)

    def update(self, session: SparkSession) -> str:
        where, column = self._where(), self.fields[0].column
        value = column.literal(self._rng.choice(column.domain))
        changed = f"SELECT id, CASE WHEN {where} THEN {value} ELSE {column.sql} END AS c FROM {self.name}"
        return self._checked(session, f"UPDATE {self.name} SET {column.sql} = {value} WHERE {where}", changed)

    def merge(self, session: SparkSession) -> str:
        where, column = self._where(), self.fields[0].column
        value = column.literal(self._rng.choice(column.domain))
        source = f"SELECT DISTINCT id AS key FROM {self.name} WHERE {where}"
        expected = (
            f"SELECT id, CASE WHEN s.key IS NOT NULL THEN {value} ELSE {column.sql} END AS c "
            f"FROM {self.name} t LEFT JOIN ({source}) s ON t.id = s.key"
        )
        change = f"MERGE INTO {self.name} t USING ({source}) s ON t.id = s.key WHEN MATCHED THEN UPDATE SET "
        return self._checked(session, f"{change}{column.sql} = {value}", expected)

    def rewrite(self, session: SparkSession) -> str:
        short = self.name.removeprefix("lake.")
        session.sql(
            f"CALL lake.system.rewrite_data_files(table => '{short}', options => map('min-input-files', '2', "
            "'target-file-size-bytes', '20000', 'min-file-size-bytes', '15000', 'max-file-size-bytes', '30000'))"
        ).collect()
        return ""

    def roll_back(self, session: SparkSession) -> str:
        snapshot, _ = self._rng.choice(self.snapshots)
        short = self.name.removeprefix("lake.")
        session.sql(f"CALL lake.system.set_current_snapshot('{short}', {snapshot})").collect()
        return str(snapshot)  # the columns stay those of today

    def _renamed(self, session: SparkSession, at: int, new: str) -> None:
        one = self.fields[at]
        session.sql(f"ALTER TABLE {self.name} RENAME COLUMN {one.column.sql} TO {new}")
        changed = replace(one, column=replace(one.column, sql=new))
        self.fields = (*self.fields[:at], changed, *self.fields[at + 1 :])

    def rename(self, session: SparkSession) -> str:
        at = self._rng.randrange(len(self.fields))
        self._renamed(session, at, f"c{len(self.log)}")
        return self.fields[at].column.sql

    def swap(self, session: SparkSession) -> str:
        """Two columns of a type take each other's names."""
        at, to = self._rng.sample(range(len(self.fields)), 2)
        one, other = self.fields[at].column.sql, self.fields[to].column.sql
        for place, name in ((at, "aside"), (to, one), (at, other)):
            self._renamed(session, place, name)
        return f"{one} and {other}"

    def add_again(self, session: SparkSession) -> str:
        """A column is dropped and comes again under its name."""
        at = self._rng.randrange(len(self.fields))
        column = self.fields[at].column
        session.sql(f"ALTER TABLE {self.name} DROP COLUMN {column.sql}")
        session.sql(f"ALTER TABLE {self.name} ADD COLUMN {column.sql} {column.sql_type}")
        return column.sql

    def add(self, session: SparkSession) -> str:
        """A column that no file has yet."""
        of, name = self._rng.choice(_COLUMNS), f"a{len(self.log)}"
        session.sql(f"ALTER TABLE {self.name} ADD COLUMN {name} {of.sql_type}")
        self.fields += (Field(replace(of, sql=name), of.sql),)
        return f"{name} {of.sql_type}"

    def drop(self, session: SparkSession) -> str:
        if len(self.fields) <= _FEWEST_COLUMNS:
            return "nothing"
        at = self._rng.randrange(1, len(self.fields))  # changes are judged by the first
        session.sql(f"ALTER TABLE {self.name} DROP COLUMN {self.fields[at].column.sql}")
        self.fields = (*self.fields[:at], *self.fields[at + 1 :])
        return str(at)

    def promote(self, session: SparkSession) -> str:
        """A wider type; files that were written before keep the narrower one."""
        narrow = [at for at, one in enumerate(self.fields) if one.column.sql_type in WIDER]
        if not narrow:
            return "nothing"
        wide = self.fields[at := self._rng.choice(narrow)].widened()
        session.sql(f"ALTER TABLE {self.name} ALTER COLUMN {wide.column.sql} TYPE {wide.column.sql_type}")
        self.fields = (*self.fields[:at], wide, *self.fields[at + 1 :])
        return f"{wide.column.sql} to {wide.column.sql_type}"

    def partition_anew(self, session: SparkSession) -> str:
        """Files that were written before stay as they are partitioned."""
        if self._partitioned:
            session.sql(f"ALTER TABLE {self.name} DROP PARTITION FIELD {self._partitioned}")
        self._partitioned = "" if self._partitioned else self._rng.choice(("bucket(2, id)", "truncate(100000000, id)"))
        if self._partitioned:
            session.sql(f"ALTER TABLE {self.name} ADD PARTITION FIELD {self._partitioned}")
        return self._partitioned or "none"


@pytest.mark.parametrize("store", ["parquet", "elasticsearch"])
def test_no_query_between_random_commits_loses_a_row(
    request: pytest.FixtureRequest, iceberg: SparkSession, tmp_path: Path, store: str
) -> None:
    url = (tmp_path / "store").as_uri() if store == "parquet" else request.getfixturevalue("elasticsearch_url")
    run, tables = Run(), 0
    while run.planned.predicates < COUNT:
        rng = random.Random(SEED + tables)
        mode = ("merge-on-read", "copy-on-write")[(tables + (store == "elasticsearch")) % 2]
        off, on = sessions_of(iceberg, url)
        table = Table(f"lake.db.g_{store}_{tables}", off, tmp_path / str(tables), rng, mode, rng.choice("23"))
        tables += 1
        dataset = esk.Dataset(on, table=table.name)
        dataset.create_indexes(*indexes_of(table.fields))
        try:
            for _ in range(_ROUNDS_PER_TABLE):
                _one_round(off, on, table, dataset, rng, run)
                print(f"\n{run}, seed {SEED}, {table.name}", flush=True)  # noqa: T201 - for a record run, with -s
                if run.planned.predicates >= COUNT:
                    break
        finally:
            esk.disable(on)
            dataset.drop_indexes(all=True)
            off.sql(f"DROP TABLE {table.name}")
    assert run.refused <= run.commits / 2, f"{run}"
    assert run.planned.errors < run.planned.predicates / 4, f"{run}"
    assert run.planned.skipped > run.planned.could_skip / 4, f"skipping is sound but useless: {run}"
    share = 0.9 if run.executed >= 100 else 1  # a few queries may all be of an old snapshot with other columns
    assert run.opened < run.opened_without * share, f"skipping adds nothing: {run}"


def _one_round(
    off: SparkSession, on: SparkSession, table: Table, dataset: esk.Dataset, rng: random.Random, run: Run
) -> None:
    table.commit(rng.choice((off, on)), run)
    table.seen_by(off, on)
    if rng.random() < 0.5:
        run.refreshes += 1
        try:
            table.log.append(str(dataset.refresh()))
        except EsSkippingError as error:  # a column that is gone
            dataset.drop_indexes(all=True)
            table.log.append(f"{error}: {dataset.create_indexes(*indexes_of(table.fields, rng))}")
    snapshot, fields = rng.choice(table.snapshots) if rng.random() < 0.3 else (None, table.fields)
    view = table.name if snapshot is None else f"{table.name} VERSION AS OF {snapshot}"
    _plan(off, on, table, view, fields, rng, run)
    for number in range(_EXECUTED):
        columns = [one.column.sql for one in fields]
        predicate = table.predicates(fields, rng).draw()
        sql = random_query(rng, PLANNED if number % 5 else view, predicate, columns)
        try:
            plain = off.sql(sql)
            expected = sorted(row.id for row in plain.collect())
        except Exception:  # Spark or Iceberg refuses it
            run.failing += 1
            run.executed += 1
            continue
        skipping = on.sql(sql)
        found = sorted(row.id for row in skipping.collect())
        assert found == expected, f"seed {SEED}, {sql} after\n" + "\n".join(table.log)
        opened, without = splits_read(skipping), splits_read(plain)
        assert opened <= without, sql
        run.executed, run.rows = run.executed + 1, run.rows + len(expected)
        run.opened, run.opened_without = run.opened + opened, run.opened_without + without


def _plan(
    off: SparkSession,
    on: SparkSession,
    table: Table,
    view: str,
    fields: tuple[Field, ...] | None,
    rng: random.Random,
    run: Run,
) -> None:
    def draw(rng: random.Random) -> Node:
        return table.predicates(fields, rng).draw()

    names = objects_planned_by_iceberg(off, f"SELECT id FROM {view}") or set()
    remembered(on, off, view, off.sql(f"SELECT *, {ICEBERG_FILE_NAME} AS {ROW_FILE} FROM {view}"))
    found = soundness_of(
        on,
        off,
        PLANNED,
        JUDGED,
        names,
        rng.randrange(1 << 30),
        min(_PER_ROUND, COUNT - run.planned.predicates),
        draw=draw,
        planned_by=objects_planned_by_iceberg,
        file_name=ROW_FILE,
    )
    assert not found.lost, f"seed {SEED}, {view}: {found.lost[:3]} after\n" + "\n".join(table.log)
    run.planned.add(found)
