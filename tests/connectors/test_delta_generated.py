"""No query of a Delta table may lose a row: random predicates between random commits, over both stores.

``ES_SKIPPING_SOUNDNESS`` sets how many predicates are planned for each store; a tenth as many queries are executed with
skipping on and off. ``ES_SKIPPING_SEED`` sets the seed. A commit comes before each round of predicates; a refresh may
come after it or not, and the predicates are of the latest version or of an older one.
"""

from __future__ import annotations

import os
import random
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import es_skipping as esk
from es_skipping.errors import EsSkippingError
from tests.connectors.delta_tables import RandomTable, dropped, indexes_of, sessions_of
from tests.connectors.rounds import JUDGED, PLANNED, ROW_FILE, per_round, random_query, remembered
from tests.soundness.harness import FILE_NAME, Outcome, objects_planned, soundness_of
from tests.soundness.sql import Node
from tests.spark.objects_read import num_files

COUNT = int(os.environ.get("ES_SKIPPING_SOUNDNESS", "12"))
SEED = int(os.environ.get("ES_SKIPPING_SEED", "20260720"))
_PER_ROUND = per_round(COUNT)
_ROUNDS_PER_TABLE = 15
_SHAPES = ({}, {"partitioned": True, "vectors": False}, {"partitioned": True}, {"vectors": False})
"""Tables take turns in them."""


@dataclass
class Run:
    """What came of a run over one store."""

    begun: float = field(default_factory=time.monotonic)
    rounds: int = 0
    commits: int = 0
    refused: int = 0
    not_as_expected: int = 0
    refreshes: int = 0
    executed: int = 0
    failing: int = 0
    rows: int = 0
    opened: int = 0
    opened_without: int = 0
    planned: Outcome = field(default_factory=Outcome)

    def __str__(self) -> str:
        return (
            f"{time.monotonic() - self.begun:.0f} s, {self.rounds} rounds, {self.commits} commits "
            f"({self.refused} refused, {self.not_as_expected} not as expected), {self.refreshes} refreshes; "
            f"{self.planned}; {self.executed} queries executed with {self.rows} rows, {self.failing} that fail; "
            f"they opened {self.opened} files with skipping and {self.opened_without} without"
        )


@pytest.mark.parametrize("store", ["parquet", "elasticsearch"])
def test_no_query_between_random_commits_loses_a_row(
    request: pytest.FixtureRequest, delta: SparkSession, tmp_path: Path, store: str
) -> None:
    url = (tmp_path / "store").as_uri() if store == "parquet" else request.getfixturevalue("elasticsearch_url")
    run = Run()
    tables = 0
    while run.planned.predicates < COUNT:
        rng = random.Random(SEED + tables)
        shape = _SHAPES[(tables + (store == "elasticsearch")) % len(_SHAPES)]
        _one_table(delta, url, tmp_path / str(tables), rng, run, f"{store}_{tables}", **shape)
        tables += 1
    assert run.refused <= run.commits / 3, f"{run}"
    assert run.not_as_expected <= run.commits / 20, f"{run}"
    assert run.planned.errors < run.planned.predicates / 4, f"{run}"
    assert run.planned.skipped > run.planned.could_skip / 4, f"skipping is sound but useless: {run}"
    share = 0.9 if run.executed >= 100 else 1  # a few queries may all ask for most files
    assert run.opened < run.opened_without * share, f"skipping adds nothing to Delta's own pruning: {run}"


def _one_table(
    delta: SparkSession, url: str, folder: Path, rng: random.Random, run: Run, name: str, **shape: bool
) -> None:
    off, *ons = sessions_of(delta, url, skipping=2)
    with dropped(off, name):
        table = RandomTable(name, off, folder, rng, **shape)
        dataset = esk.Dataset(ons[0], table=name)
        dataset.create_indexes(*indexes_of(table.fields))
        try:
            for _ in range(_ROUNDS_PER_TABLE):
                if run.planned.predicates >= COUNT:
                    break
                _one_round(off, ons, table, rng, run)
        finally:
            run.refused += table.refused
            run.not_as_expected += table.not_as_expected
            esk.Dataset(ons[0], table=name).drop_indexes(all=True)
            for session in ons:
                esk.disable(session)


def _one_round(off: SparkSession, ons: list[SparkSession], table: RandomTable, rng: random.Random, run: Run) -> None:
    for _ in range(rng.choice((1, 1, 2))):
        table.commit(rng.choice((off, *ons)), table.some_action())
        run.commits += 1
    if rng.random() < 0.5:
        _maintain(rng.choice(ons), table, rng)
        run.refreshes += 1
    version = table.some_version() if rng.random() < 0.3 else None
    # Without its own pruning, Delta reads through another file index, and refuses tables with deletion vectors.
    own_pruning = "false" if not table.vectors and rng.random() < 0.5 else "true"
    for session in (off, *ons):
        session.conf.set("spark.databricks.delta.stats.skipping", own_pruning)
    view, on = table.snapshot(version), rng.choice(ons)
    table.log.append(f"{table.version} queries of {view}, own pruning {own_pruning}")
    _plan(off, on, table, view, version, rng, run)
    for number in range(max(_PER_ROUND // 10, 1)):
        source = PLANNED if number % 5 else view  # Delta reads its log again for each query that names an old version
        columns = [one.column.sql for one in (table.fields if version is None else table.fields_at(version))]
        _execute(off, on, random_query(rng, source, table.predicates(rng, version).draw(), columns), table, run)
    run.rounds += 1
    print(f"\n{run}, seed {SEED}, {table.name}, {table.log[-3:]}", flush=True)  # noqa: T201 - for a record run, with -s


def _maintain(on: SparkSession, table: RandomTable, rng: random.Random) -> None:
    """A refresh; now and then an index more, or all of them anew."""
    dataset, chance = esk.Dataset(on, table=table.name), rng.random()
    try:
        if chance < 0.7:
            said = str(dataset.refresh())
        elif chance < 0.85:
            said = str(dataset.ensure_indexes(*indexes_of(table.fields, rng)[:2]))
        else:
            raise EsSkippingError("rebuilt at random")
    except EsSkippingError as error:  # a column that is gone
        dataset.drop_indexes(all=True)
        said = f"{error}: {dataset.create_indexes(*indexes_of(table.fields))}"
    table.log.append(f"{table.version} maintained: {said}")


def _plan(
    off: SparkSession,
    on: SparkSession,
    table: RandomTable,
    view: str,
    version: int | None,
    rng: random.Random,
    run: Run,
) -> None:
    def draw(rng: random.Random) -> Node:
        return table.predicates(rng, version).draw()

    names = objects_planned(off, f"SELECT id FROM {view}") or set()
    count = min(_PER_ROUND, COUNT - run.planned.predicates)
    remembered(on, off, view, off.sql(f"SELECT *, {FILE_NAME} AS {ROW_FILE} FROM {view}"))
    found = soundness_of(on, off, PLANNED, JUDGED, names, rng.randrange(1 << 30), count, draw=draw, file_name=ROW_FILE)
    by_us = []
    for predicate, name in found.lost:  # Delta's own pruning is not what is judged
        without = objects_planned(off, f"SELECT id FROM {view} WHERE {predicate}")
        if without is not None and name in without:
            by_us.append((str(predicate), name))
    assert not by_us, f"seed {SEED}, {view}: {by_us[:3]} after\n" + "\n".join(table.log)
    found.lost.clear()
    run.planned.add(found)


def _execute(off: SparkSession, on: SparkSession, sql: str, table: RandomTable, run: Run) -> None:
    try:
        plain = off.sql(sql)
        expected = sorted(row.id for row in plain.collect())
    except Exception:
        run.failing += 1
        return
    skipping = on.sql(sql)
    assert sorted(row.id for row in skipping.collect()) == expected, f"seed {SEED}, {sql} after\n" + "\n".join(
        table.log
    )
    opened, without = sum(num_files(skipping)), sum(num_files(plain))
    assert opened <= without, sql
    run.executed, run.rows = run.executed + 1, run.rows + len(expected)
    run.opened, run.opened_without = run.opened + opened, run.opened_without + without
