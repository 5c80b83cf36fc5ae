"""The life of Iceberg tables: commits, refreshes and queries of several sessions at once.

``ES_SKIPPING_LIFE`` sets how many steps one table lives, ``ES_SKIPPING_ROUNDS`` how often the third of four sessions
queries while two commit and one refreshes, ``ES_SKIPPING_SEED`` the random numbers.
"""

from __future__ import annotations

import os
import random
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import es_skipping as esk
from es_skipping.errors import EsSkippingError
from tests.connectors.delta_tables import Field, dropped, indexes_of, sessions_of
from tests.connectors.lives import Busy, answer, opened_by, quietly
from tests.connectors.test_iceberg_generated import Run, Table
from tests.spark.objects_read import splits_read

STEPS = int(os.environ.get("ES_SKIPPING_LIFE", "4"))
ROUNDS = int(os.environ.get("ES_SKIPPING_ROUNDS", "2"))
SEED = int(os.environ.get("ES_SKIPPING_SEED", "7"))


class LivingTable(Table):
    """A table with branches and tags, whose old snapshots may expire."""

    def __init__(self, *given: object) -> None:
        self.views: dict[str, tuple[Field, ...]] = {}
        """Branches and tags, with the columns that a query of each finds."""
        super().__init__(*given)  # type: ignore[arg-type]

    @property
    def actions(self) -> list[tuple[int, Callable[[SparkSession], str]]]:
        return [*super().actions, (2, self.branch), (1, self.tag), (1, self.expire)]

    def branch(self, session: SparkSession) -> str:
        """A branch with a commit of its own; it has the columns of the table."""
        name = f"b{len(self.log)}"
        session.sql(f"ALTER TABLE {self.name} CREATE BRANCH {name}")
        session.sql(f"DELETE FROM {self.name}.branch_{name} WHERE pmod(id, 3) = 0")
        self.views[f"{self.name}.branch_{name}"] = ()
        return name

    def tag(self, session: SparkSession) -> str:
        name = f"m{len(self.log)}"
        session.sql(f"ALTER TABLE {self.name} CREATE TAG {name}")
        self.views[f"{self.name} VERSION AS OF '{name}'"] = self.fields
        return name

    def expire(self, session: SparkSession) -> str:
        """Old snapshots, and files of theirs that no branch and no tag has."""
        short = self.name.removeprefix("lake.")
        session.sql(
            f"CALL lake.system.expire_snapshots(table => '{short}', older_than => TIMESTAMP '2100-01-01', "
            "retain_last => 1)"
        ).collect()
        current = session.sql(f"SELECT snapshot_id FROM {self.name}.refs WHERE name = 'main'").head()
        assert current is not None
        self.snapshots = [one for one in self.snapshots if one[0] == current[0]] or [(current[0], self.fields)]
        return ""

    def some_view(self) -> tuple[str, tuple[Field, ...]]:
        """What to query: the table, an old snapshot, a branch or a tag; a branch shows today's columns."""
        old = [(f"{self.name} VERSION AS OF {id}", fields) for id, fields in self.snapshots]
        views = [(view, fields or self.fields) for view, fields in self.views.items()]
        return self._rng.choice([(self.name, self.fields), self._rng.choice(old), self._rng.choice(views or old)])


def test_the_life_of_a_table(iceberg: SparkSession, tmp_path: Path) -> None:
    rng, run = random.Random(SEED), Run()
    off, *ons = sessions_of(iceberg, (tmp_path / "store").as_uri(), skipping=2)
    name = "lake.db.life"
    with dropped(off, name):
        table = LivingTable(name, off, tmp_path / "rows", rng, rng.choice(("merge-on-read", "copy-on-write")), "2")
        esk.Dataset(ons[0], table=name).create_indexes(*indexes_of(table.fields, rng))

        def refresh() -> str:
            session = rng.choice(ons)
            table.seen_by(session)
            run.refreshes += 1
            return str(esk.Dataset(session, table=name).refresh())

        def rebuild() -> str:
            dataset = esk.Dataset(rng.choice(ons), table=name)
            dataset.drop_indexes(all=True)
            return str(dataset.create_indexes(*indexes_of(table.fields, rng)))

        for _ in range(STEPS):
            committing = rng.choice((off, *ons))
            table.seen_by(committing)
            table.commit(committing, run)
            if rng.random() > 0.5:
                try:
                    table.log.append(refresh())
                except EsSkippingError as error:  # a column that is gone
                    table.seen_by(*ons)
                    table.log.append(f"{error}: {rebuild()}")
            table.seen_by(off, *ons)
            meanwhile = threading.Thread(target=quietly, args=(rng.choice((refresh, refresh, rebuild)),))
            if rng.random() < 0.3:
                table.log.append("a refresh or a rebuild meanwhile")
                meanwhile.start()
            for _ in range(2):
                view, fields = table.some_view()
                sql = f"SELECT * FROM {view} WHERE {table.predicates(fields, rng).draw(1)}"
                expected = answer(off, sql, splits_read)
                if isinstance(expected, str):
                    run.failing += 1
                    continue
                run.opened += opened_by(ons, sql, expected, splits_read, f"seed {SEED}\n" + "\n".join(table.log))
                run.executed, run.rows = run.executed + len(ons), run.rows + len(ons) * len(expected[0])
                run.opened_without += len(ons) * expected[1]
            if meanwhile.ident is not None:
                meanwhile.join()
        print(f"\n{STEPS} steps: {run}, seed {SEED}\n" + "\n".join(table.log))  # noqa: T201 - for a record run, with -s
        assert run.opened < run.opened_without or STEPS < 50, run
        for session in ons:
            esk.disable(session)


BUSY = "lake.db.busy"
CHANGES = (
    f"INSERT INTO {BUSY} SELECT {{k}} + id, concat('v', id % 10) FROM range(20)",
    f"DELETE FROM {BUSY} WHERE id % 97 = {{k}} % 97",
    f"UPDATE {BUSY} SET v = concat('u', {{k}} % 7) WHERE id % 89 = {{k}} % 89",
    f"""MERGE INTO {BUSY} USING (SELECT {{k}} AS k) s ON {BUSY}.id = s.k WHEN MATCHED THEN DELETE
    WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.k, 'v3')""",
    "CALL lake.system.rewrite_data_files(table => 'db.busy', options => map('rewrite-all', 'true'))",
    "CALL lake.system.set_current_snapshot('db.busy', {old})",
)
CONFLICTS = (
    *("conflict", "CommitFailed", "commit failed", "Cannot commit", "changed", "stale", "Missing required files"),
    "is not an ancestor",
)


@pytest.fixture
def busy(iceberg: SparkSession, tmp_path: Path) -> Iterator[list[SparkSession]]:
    """Five sessions on one indexed table: one without skipping, two that read it, two that commit."""
    sessions = sessions_of(iceberg, (tmp_path / "store").as_uri(), skipping=4)
    off, on, *_ = sessions
    with dropped(off, BUSY):
        modes = ", ".join(f"'write.{change}.mode' = 'merge-on-read'" for change in ("delete", "update", "merge"))
        off.sql(
            f"CREATE TABLE {BUSY} (id BIGINT, v STRING) USING iceberg TBLPROPERTIES ('format-version' = '2', {modes})"
        )
        rows = off.range(0, 400, 1, 8).selectExpr(  # minima and maxima rule nothing out
            "pmod(id * 7919, 400) AS id",
            "CASE id % 50 WHEN 0 THEN 'a' WHEN 1 THEN 'z' ELSE concat('v', floor(id / 50)) END AS v",
        )
        rows.writeTo(BUSY).append()
        esk.Dataset(on, table=BUSY).create_indexes(esk.ValueList("v"), esk.BloomFilter("id", fpp=0.001))
        yield sessions
        for session in sessions[1:]:
            esk.disable(session)


def test_two_sessions_commit_while_a_third_queries_and_a_fourth_refreshes(
    iceberg: SparkSession, busy: list[SparkSession]
) -> None:
    off, on, refreshing, *committing = busy
    asking = iceberg.newSession()

    def look(session: SparkSession) -> None:
        session.sql(f"REFRESH TABLE {BUSY}")

    lock = threading.Lock()

    def snapshots() -> list[int]:
        with lock:
            look(asking)
            return [int(row[0]) for row in asking.sql(f"SELECT snapshot_id FROM {BUSY}.history").collect()]

    def change(rng: random.Random) -> str:
        chosen = rng.choice(CHANGES[:4] * 3 + CHANGES)
        return chosen.format(k=rng.randrange(1_000), old=rng.choice(snapshots()) if "{old}" in chosen else 0)

    def is_conflict(error: str) -> bool:
        return any(word.lower() in error.lower() for word in CONFLICTS)

    Busy(BUSY, off, on, refreshing, committing, snapshots, change, is_conflict, splits_read, look).run(ROUNDS, SEED)
