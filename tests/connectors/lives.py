"""Four sessions on one table: two commit while a third queries and a fourth refreshes."""

from __future__ import annotations

import contextlib
import random
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession

import es_skipping as esk
from es_skipping.errors import EsSkippingError

__all__ = ["Busy", "answer", "opened_by", "quietly"]


def quietly(action: Callable[[], str]) -> None:
    """Do something that another writer may make impossible."""
    with contextlib.suppress(EsSkippingError):
        action()


def answer(session: SparkSession, sql: str, opened: Callable[[DataFrame], int]) -> tuple[list[str], int] | str:
    """A query's rows and how many files it opened, or its error."""
    try:
        frame = session.sql(sql)
        return sorted(map(repr, frame.collect())), opened(frame)
    except Exception as error:
        return str(error) or "error"


def opened_by(
    ons: Sequence[SparkSession],
    sql: str,
    expected: tuple[list[str], int],
    opened: Callable[[DataFrame], int],
    after: str,
) -> int:
    """How many files sessions that skip opened together, each of which returned the expected rows.

    Parameters
    ----------
    expected
        The `answer` without skipping.
    after
        What has happened to the table, for a failure's message.
    """
    total = 0
    for on in ons:
        got = answer(on, sql, opened)
        assert not isinstance(got, str), f"only with skipping: {got}, {after}"
        assert got[0] == expected[0], f"{sql} after {after}"
        assert got[1] <= expected[1], sql
        total += got[1]
    return total


@dataclass
class Busy:
    """A table ``(id, v)`` that several sessions use at once.

    Parameters
    ----------
    name
        The table's.
    off, on, refreshing, committing
        The sessions: one without skipping, one that queries, one that refreshes, two that commit.
    snapshots
        All snapshots that ever were the latest, in order.
    change
        A random commit in SQL.
    is_conflict
        Whether an error says that commits excluded each other.
    opened
        How many files an executed frame opened.
    look
        Called with a session before it reads, so that it sees what others committed.
    """

    name: str
    off: SparkSession
    on: SparkSession
    refreshing: SparkSession
    committing: Sequence[SparkSession]
    snapshots: Callable[[], list[Any]]
    change: Callable[[random.Random], str]
    is_conflict: Callable[[str], bool]
    opened: Callable[[DataFrame], int]
    look: Callable[[SparkSession], object] = lambda session: None

    def run(self, rounds: int, seed: int) -> None:
        """Compare the third session's answers with those without skipping, so many rounds."""
        done = threading.Event()
        commits = [0, 0]
        conflicts: list[str] = []
        refreshes: list[Any] = []

        def commit(number: int) -> None:
            rng = random.Random(seed * 10 + number)
            while not done.is_set():
                self.look(self.committing[number])
                try:
                    self.committing[number].sql(self.change(rng)).collect()
                    commits[number] += 1
                except Exception as error:
                    if not self.is_conflict(str(error)):
                        raise
                    conflicts.append(str(error).splitlines()[0])

        def refresh() -> None:
            while not done.is_set():
                self.look(self.refreshing)
                refreshes.append(esk.Dataset(self.refreshing, table=self.name).refresh())

        rng = random.Random(seed)
        opened = without = 0
        with ThreadPoolExecutor(3) as pool:
            running = [pool.submit(commit, 0), pool.submit(commit, 1), pool.submit(refresh)]
            try:
                for _ in range(rounds):
                    where = rng.choice(
                        (f"v = 'v{rng.randrange(10)}'", f"v = 'u{rng.randrange(7)}'", f"id = {rng.randrange(500)}")
                    )
                    pinned = f"SELECT * FROM {self.name} VERSION AS OF {self.snapshots()[-1]} WHERE {where}"
                    self.look(self.off)
                    self.look(self.on)
                    expected, got = answer(self.off, pinned, self.opened), answer(self.on, pinned, self.opened)
                    assert not isinstance(expected, str), expected
                    assert got[0] == expected[0], f"seed {seed}, {pinned}"
                    opened, without = opened + int(got[1]), without + expected[1]
                    self._latest(where, seed)
                    ended = [str(one.exception(0)) for one in running if one.done()]
                    assert not ended, f"seed {seed}: {ended}"
            finally:
                done.set()
            for one in running:
                one.result()
        said = f"{rounds} rounds, {commits} commits, {len(conflicts)} conflicts, {len(refreshes)} refreshes, "
        said += f"{opened} of {without} files opened"
        print(f"\n{said}, seed {seed}")  # noqa: T201 - for a record run, with -s
        assert refreshes and any(commits), said
        assert opened < without or rounds < 20, said  # a few rounds may ask for nothing that can be skipped

    def _latest(self, where: str, seed: int) -> None:
        """A query of the latest version has the rows of one of the versions that were the latest meanwhile."""
        before = len(self.snapshots())
        self.look(self.on)
        got = answer(self.on, f"SELECT * FROM {self.name} WHERE {where}", self.opened)
        assert not isinstance(got, str), got
        meanwhile = self.snapshots()[before - 1 :]
        self.look(self.off)
        seen = [
            answer(self.off, f"SELECT * FROM {self.name} VERSION AS OF {one} WHERE {where}", self.opened)
            for one in meanwhile
        ]
        assert got[0] in [one[0] for one in seen], f"seed {seed}, {where}, of {meanwhile}: {got[0]}"
