"""The life of Delta tables: commits, refreshes and queries of several sessions at once.

``ES_SKIPPING_LIFE`` sets how many steps one table lives, ``ES_SKIPPING_ROUNDS`` how often the third of four sessions
queries while two commit and one refreshes, ``ES_SKIPPING_SEED`` the random numbers.
"""

from __future__ import annotations

import os
import random
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

import es_skipping as esk
from es_skipping.errors import EsSkippingError
from tests.connectors.delta_tables import RandomTable, dropped, indexes_of, sessions_of
from tests.connectors.lives import Busy, answer, opened_by, quietly
from tests.soundness.data import COLUMNS
from tests.spark.objects_read import num_files

STEPS = int(os.environ.get("ES_SKIPPING_LIFE", "2"))
ROUNDS = int(os.environ.get("ES_SKIPPING_ROUNDS", "1"))
SEED = int(os.environ.get("ES_SKIPPING_SEED", "7"))
_COLUMNS = [column for column in COLUMNS if column.sql in ("i32", "f64", "s", "city", "d", "n.x", "n.deep.y")]


def test_the_life_of_a_table(delta: SparkSession, tmp_path: Path) -> None:
    rng = random.Random(SEED)
    off, *ons = sessions_of(delta, (tmp_path / "store").as_uri(), skipping=2)
    queries = opened = without = 0
    with dropped(off, "life"):
        table = RandomTable("life", off, tmp_path / "rows", rng, objects=8, columns=_COLUMNS)
        esk.Dataset(ons[0], table="life").create_indexes(*indexes_of(table.fields))

        def refresh() -> str:
            return str(esk.Dataset(rng.choice(ons), table="life").refresh())

        def rebuild() -> str:
            dataset = esk.Dataset(rng.choice(ons), table="life")
            dataset.drop_indexes(all=True)
            return str(dataset.create_indexes(*indexes_of(table.fields, rng)))

        for _ in range(STEPS):
            chance = rng.random()
            table.commit(rng.choice((off, *ons)), table.vacuum if chance < 0.1 else table.some_action())
            if chance > 0.5:
                try:
                    table.log.append(f"{table.version} {refresh()}")
                except EsSkippingError as error:  # a column that is gone
                    table.log.append(f"{table.version} {error}: {rebuild()}")
            meanwhile = threading.Thread(target=quietly, args=(rng.choice((refresh, refresh, rebuild)),))
            if rng.random() < 0.3:
                table.log.append(f"{table.version} a refresh or a rebuild meanwhile")
                meanwhile.start()
            version = table.some_version() if rng.random() < 0.3 else None
            for _ in range(2):
                sql = f"SELECT * FROM {table.snapshot(version)} WHERE {table.predicates(rng, version).draw(1)}"
                expected = answer(off, sql, _opened)
                if isinstance(expected, str):
                    continue
                opened += opened_by(ons, sql, expected, _opened, f"seed {SEED}\n" + "\n".join(table.log))
                queries, without = queries + len(ons), without + len(ons) * expected[1]
            if meanwhile.ident is not None:
                meanwhile.join()
        said = f"{STEPS} steps ({table.refused} refused), {queries} queries, {opened} of {without} files opened"
        print(f"\n{said}, seed {SEED}\n" + "\n".join(table.log))  # noqa: T201 - for a record run, with -s
        assert opened < without or STEPS < 50, said  # Delta itself prunes most of a small table's files


def _opened(frame: DataFrame) -> int:
    return sum(num_files(frame))


CHANGES = (
    "INSERT INTO busy SELECT {k} + id, concat('v', id % 10) FROM range(20)",
    "DELETE FROM busy WHERE id % 97 = {k} % 97",
    "UPDATE busy SET v = concat('u', {k} % 7) WHERE id % 89 = {k} % 89",
    """MERGE INTO busy USING (SELECT {k} AS k) s ON busy.id = s.k WHEN MATCHED THEN DELETE
    WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.k, 'v3')""",
    "OPTIMIZE busy",
    "RESTORE TABLE busy TO VERSION AS OF {old}",
)


@pytest.fixture
def busy(delta: SparkSession, tmp_path: Path) -> Iterator[list[SparkSession]]:
    """Six sessions on one indexed table: one without skipping, three for rows, two that commit."""
    sessions = sessions_of(delta, (tmp_path / "store").as_uri(), skipping=5)
    off, on, *_ = sessions
    with dropped(off, "busy"):
        off.sql(
            "CREATE TABLE busy (id BIGINT, v STRING) USING delta TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')"
        )
        rows = off.range(0, 400, 1, 8).selectExpr(  # minima and maxima rule nothing out
            "pmod(id * 7919, 400) AS id",
            "CASE id % 50 WHEN 0 THEN 'a' WHEN 1 THEN 'z' ELSE concat('v', floor(id / 50)) END AS v",
        )
        rows.write.format("delta").mode("append").saveAsTable("busy")
        esk.Dataset(on, table="busy").create_indexes(esk.ValueList("v"), esk.BloomFilter("id", fpp=0.001))
        yield sessions
        for session in sessions[1:]:
            esk.disable(session)


def test_two_sessions_commit_while_a_third_queries_and_a_fourth_refreshes(busy: list[SparkSession]) -> None:
    off, on, refreshing, *committing = busy
    detail = off.sql("DESCRIBE DETAIL busy").head()
    assert detail is not None
    log = Path(detail["location"].removeprefix("file:")) / "_delta_log"

    def versions() -> list[int]:
        return sorted(int(path.stem) for path in log.glob("*.json") if path.stem.isdigit())

    def change(rng: random.Random) -> str:
        chosen = rng.choice(CHANGES[:4] * 3 + CHANGES)
        return chosen.format(k=rng.randrange(1_000), old=rng.randint(1, versions()[-1]))

    def is_conflict(error: str) -> bool:
        return "CONCURRENT" in error.upper()

    Busy("busy", off, on, refreshing, committing, versions, change, is_conflict, _opened).run(ROUNDS, SEED)
