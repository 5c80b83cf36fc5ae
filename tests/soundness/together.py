"""A fact, its dimension and their indexes, which change while queries run: each query has the rows of an unaided one."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from pyspark.sql import SparkSession

import es_skipping as esk
from es_skipping.build.dataset import RefreshResult
from es_skipping.errors import IndexDefinitionError
from es_skipping.reports.scan import ScanReport
from es_skipping.spark.services import service_of
from tests.soundness.together_changes import change_rows
from tests.soundness.together_helper import HelperProcess
from tests.soundness.together_indexes import KEY_NAMES, Indexes
from tests.soundness.together_queries import Query, Questions
from tests.soundness.together_rows import DIMENSION_SCHEMA, FACT_SCHEMA, dimension_rows, fact_rows
from tests.soundness.together_tables import SHAPES, Table

__all__ = ["Tally", "World"]

_KEPT_LOG: Final = 60

_SOURCES: Final = {
    "ORDER BY": "limit",
    "LIMIT": "limit",
    "scalar": "subquery",
    "elements": "elements",
    "explode": "generator",
}
"""What a report's text about an induced condition begins with."""


@dataclass
class Tally:
    """What a run did, over all its worlds."""

    begun: float = field(default_factory=time.monotonic)
    worlds: Counter[str] = field(default_factory=Counter)
    rounds: int = 0
    changes: Counter[str] = field(default_factory=Counter)
    refused: int = 0
    queries: int = 0
    failing: int = 0
    rows: int = 0
    objects: int = 0
    skipped: int = 0
    row_groups_skipped: int = 0
    by_feature: Counter[str] = field(default_factory=Counter)
    """Objects skipped by queries with a feature."""
    by_index: Counter[str] = field(default_factory=Counter)
    """Scans that skipped and asked an index of a type."""
    by_source: Counter[str] = field(default_factory=Counter)
    """Scans that skipped with conditions that the query does not state."""
    by_answerer: Counter[str] = field(default_factory=Counter)
    """Objects skipped by the answers of the driver and of the helper."""

    def __str__(self) -> str:
        return (
            f"{time.monotonic() - self.begun:.0f} s, {sum(self.worlds.values())} worlds {dict(self.worlds)}, "
            f"{self.rounds} rounds, changes {dict(self.changes)} ({self.refused} refused), {self.queries} queries with "
            f"{self.rows} rows ({self.failing} fail without skipping too), {self.skipped} of {self.objects} objects "
            f"skipped, and {self.row_groups_skipped} row groups; objects by feature {dict(self.by_feature)}; scans by "
            f"index {dict(self.by_index)}, by what induced a condition {dict(self.by_source)}; objects by who answered "
            f"{dict(self.by_answerer)}"
        )


class World:
    """Two tables, three sessions and what happens to them; ``seed`` decides everything.

    Parameters
    ----------
    base
        A session with Delta's catalog and Iceberg's catalog ``lake``.
    url
        Of the store.
    folder
        Empty.
    name
        A prefix of the tables' names.
    helper
        Answers the look-ups of some queries in the driver's place.
    """

    def __init__(
        self, base: SparkSession, url: str, folder: Path, name: str, seed: int, tally: Tally, helper: HelperProcess
    ) -> None:
        self.rng, self.seed, self.tally, self.helper = random.Random(seed), seed, tally, helper
        self.log: list[str] = []
        self._ids = 0
        self.off, *self.ons = self._sessions(base, url)
        fact, dimension = self.rng.choice(list(SHAPES)), self.rng.choice(["files", *SHAPES])
        sessions = (self.off, *self.ons)
        self.fact: Table = SHAPES[fact](folder / "fact", f"{name}_fact", FACT_SCHEMA, self._fact, sessions, self.rng)
        self.dimension: Table = SHAPES[dimension](
            folder / "dim", f"{name}_dim", DIMENSION_SCHEMA, self._dimension, sessions, self.rng
        )
        self.indexes = Indexes(self.dimension.reference, self.rng)
        tally.worlds[f"{fact} x {dimension}"] += 1
        self.questions = Questions(self.rng)
        self.fact.append(self.off, self.rng.randint(8, 14))
        self.dimension.append(self.off, self.rng.randint(2, 4))
        self._look()
        self._say(f"{fact} x {dimension}", self._index())

    def _sessions(self, base: SparkSession, url: str) -> list[SparkSession]:
        """One without skipping, two with it."""
        rng = self.rng
        settings = {
            "store.url": url,
            "store.timeout": "60s",
            "query.budget": "120s",
            "strict": "true",
            "remember": "true",
            "retainRemoved": rng.choice(("refresh", "vacuum")),
            "verify": rng.choice(("none", "stat", "open", "mac")),
            "verify.key": f"env:{KEY_NAMES[0]}",
            "granularity": rng.choice(("rowGroup", "rowGroup", "file")),
            "registry.lifetime": rng.choice(("1s", "30s")),
        }
        if rng.random() < 0.2:
            settings["metadata.budget"] = "400"
        found = [base.newSession() for _ in range(3)]
        for session in found:
            esk.disable(session)
            session.conf.set("spark.sql.ansi.enabled", "false")
        for session in found[1:]:
            for key, value in settings.items():
                session.conf.set(f"spark.es_skipping.{key}", value)
            session.conf.set("spark.es_skipping.indexOnCommit", rng.choice(("true", "false")))
            esk.enable(session)
        self._say("settings", settings)
        return found

    def _say(self, what: str, how: object) -> None:
        self.log.append(f"{time.monotonic() - self.tally.begun:.0f} s {what}: {' '.join(str(how).split())[:400]}")

    def _fact(self) -> object:
        self._ids += 50
        return fact_rows(self.rng, self._ids, self.rng.choice((8, 20, 40)))

    def _dimension(self) -> object:
        return dimension_rows(self.rng, self.rng.randint(5, 25))

    def _look(self) -> None:
        for table in (self.fact, self.dimension):
            table.look()
            table.note()

    # --- indexes

    def _on(self) -> SparkSession:
        return self.rng.choice(self.ons)

    def _index(self) -> str:
        fact, dimension = self.indexes.of_fact(4), self.indexes.of_dimension()
        created = self._ensure(self.fact, fact)
        return f"{fact}: {created}; {dimension}: {self._ensure(self.dimension, dimension)}"

    def _ensure(self, table: Table, indexes: Sequence[Any]) -> RefreshResult:
        dataset = table.dataset(self._on())
        try:
            return dataset.ensure_indexes(*indexes)
        except IndexDefinitionError as error:
            if "another protection" not in str(error):
                raise
            dataset.drop_indexes(all=True)  # a refresh remembered a plain `MinMax` that is to be protected now
            return dataset.ensure_indexes(*indexes)

    def maintain(self) -> None:
        """A refresh of one table or of both, other indexes, or nothing."""
        what = self.rng.choice(("both", "both", "fact", "fact", "dimension", "more", "fewer", "nothing", "nothing"))
        self.tally.changes[f"maintain {what}"] += 1
        for session in self.ons:
            service_of(session).query_log.write(wait=False)  # what was asked is in the log, as it is a second later
        said: list[object] = []
        if what in ("both", "fact"):
            said.append(self.fact.dataset(self._on()).refresh())
        if what in ("both", "dimension"):
            said.append(self.dimension.dataset(self._on()).refresh())
        if what == "more":
            said.append(self._ensure(self.fact, self.indexes.of_fact(1)))
        if what == "fewer":
            self.fact.dataset(self._on()).drop_indexes(all=True)
            said.append(self._index())
        assert not any(getattr(one, "failed", ()) for one in said), said
        self._say(f"maintain {what}", said)

    # --- changes

    def change(self) -> None:
        """One table changes."""
        rng = self.rng
        table = rng.choice((self.fact, self.fact, self.dimension))
        session = rng.choice((self.off, *self.ons))
        kind = rng.choice(("append", "own", "rows", "rows", "rows") if table.takes_dml else ("append", "own", "own"))
        try:
            if kind == "append":
                said: object = table.append(session, rng.randint(1, 3))
            elif kind == "own":
                action = rng.choice(table.changes())
                kind = action.__name__
                said = action(session)
            else:
                where = self.questions.of_fact() if table is self.fact else self.questions.of_dimension()
                said = change_rows(session, table, where, "n" if table is self.fact else "ref", rng)
        except AssertionError as error:
            raise AssertionError(self.reproduction(str(error))) from None
        except Exception as error:
            if kind != "rows":
                raise
            self.tally.refused += 1  # without skipping too, or else it is an assertion
            said = f"refused: {error}"
        self.tally.changes[kind] += 1
        by = "off" if session is self.off else f"on{self.ons.index(session)}"
        self._say(f"{table.name} {kind} by {by}", said)
        self._look()

    # --- queries

    @contextmanager
    def answerer(self) -> Iterator[str]:
        """Who answers look-ups while this lasts: now and then the helper."""
        if self.rng.random() < 0.25:
            with self.helper.answers():
                yield "helper"
        else:
            yield "driver"

    def ask(self) -> None:
        """A query in the session without skipping and in one that skips."""
        relations = (
            self.fact.relation,
            self.dimension.relation,
            self.fact.old_relation(),
            self.dimension.old_relation(),
        )
        query = self.questions.draw(*relations)
        on = self._on()
        conf = {
            "spark.sql.adaptive.enabled": self.rng.choice(("true", "false")),
            "spark.sql.autoBroadcastJoinThreshold": self.rng.choice(("-1", "-1", "10MB")),
        }
        for session in (self.off, on):
            for key, value in conf.items():
                session.conf.set(key, value)
        try:
            expected = sorted(map(repr, self.off.sql(query.sql).collect()))
        except Exception as error:
            self.tally.failing += 1
            self._say("fails without skipping too", f"{query.sql}: {str(error).splitlines()[0]}")
            return
        with esk.observe(on) as report, self.answerer() as answerer:
            try:
                found = sorted(map(repr, on.sql(query.sql).collect()))
            except Exception as error:
                raise AssertionError(
                    self.reproduction(f"only skipping makes this fail: {query.sql}\n{error}")
                ) from None
        assert found == expected, self.reproduction(
            f"{query.sql}\nwith {conf}, answered by the {answerer}\nlost {_less(expected, found)}\n"
            f"added {_less(found, expected)}\n{report}"
        )
        self._say("query", query.sql)
        self._count(query, report.scans, len(expected), answerer)

    def _count(self, query: Query, scans: Sequence[ScanReport], rows: int, answerer: str) -> None:
        tally = self.tally
        tally.queries, tally.rows = tally.queries + 1, tally.rows + rows
        for scan in scans:
            tally.objects += scan.objects_total
            tally.skipped += scan.objects_skipped
            tally.by_answerer[answerer] += scan.objects_skipped
            tally.row_groups_skipped += scan.row_groups_skipped
            if not scan.objects_skipped and not scan.row_groups_skipped:
                continue
            for feature in query.features:
                tally.by_feature[feature] += scan.objects_skipped
            for index in {one.partition("(")[0] for one in scan.indexes}:
                tally.by_index[index] += 1
            for source in set(map(_kind, scan.induced_by)):
                tally.by_source[source] += 1

    def reproduction(self, what: str) -> str:
        """What happened, and all that came before."""
        return f"world of seed {self.seed}: {what}\nafter\n" + "\n".join(self.log[:2] + self.log[2:][-_KEPT_LOG:])

    # --- a life

    def round(self, queries: int) -> None:
        """A change, maintenance and this many queries."""
        self.change()
        self.maintain()
        for _ in range(queries):
            self.ask()
        self.tally.rounds += 1

    def end(self) -> None:
        """Drop the indexes and the tables."""
        for table in (self.fact, self.dimension):
            table.dataset(self.ons[0]).drop_indexes(all=True)
            table.drop()
        for session in self.ons:
            esk.disable(session)


def _less(one: Sequence[str], other: Sequence[str]) -> list[str]:
    return list((Counter(one) - Counter(other)).elements())[:5]


def _kind(source: str) -> str:
    """What induced a condition, in a word."""
    named = next((kind for begin, kind in _SOURCES.items() if source.startswith(begin)), None)
    return named or ("join" if " JOIN " in source else "dimension")
