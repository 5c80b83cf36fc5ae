"""Random datasets with random indexes in sessions of random settings: one number makes all of it again."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

import es_skipping as esk
from es_skipping.predicates.types import parse_type
from tests.soundness.data import COLUMNS, PARTITIONS, SqlColumn, write_objects
from tests.soundness.harness import Outcome, objects_planned, soundness_of
from tests.soundness.sql import Node, Predicates

__all__ = ["Lake"]

_SETTINGS = {
    "spark.sql.ansi.enabled": ("false", "false", "true"),
    "spark.sql.session.timeZone": ("UTC", "UTC", "America/New_York", "Asia/Kathmandu"),
    "spark.sql.caseSensitive": ("false", "false", "true"),
    "spark.sql.parquet.enableVectorizedReader": ("true", "true", "false"),
    "spark.sql.optimizer.inSetConversionThreshold": ("10", "0", "2"),
    "spark.sql.codegen.wholeStage": ("true", "true", "false"),
    "spark.sql.parquet.filterPushdown": ("true", "false"),
    "spark.sql.optimizer.nestedSchemaPruning.enabled": ("true", "false"),
}
_ENDS = ("s", "city", "n.deep.y")
_LISTED = ("i32", "f64", "f32", "big", "s", "city", "bin", "d", "ts", "n.deep.y", "flag", "i8", "ntz", "n.x")


@dataclass
class Lake:
    """A dataset, a session that skips and one that does not.

    Parameters
    ----------
    seed
        Of columns, rows, partitions, indexes and settings.
    folder
        Where the objects are.
    """

    seed: int
    folder: Path
    on: SparkSession
    off: SparkSession
    columns: Sequence[SqlColumn]
    partitions: Sequence[SqlColumn]
    indexes: Sequence[Any]
    dataset: Any
    settings: dict[str, str]

    @classmethod
    def make(cls, base: SparkSession, url: str, folder: Path, seed: int, objects: int = 24, rows: int = 40) -> Lake:
        """Write the objects and index them.

        Parameters
        ----------
        url
            Of the store.
        """
        rng = random.Random(seed)
        columns = _columns(rng)
        partitions = rng.sample(PARTITIONS, rng.choice((0, 0, 1, 2)))
        settings = {key: rng.choice(values) for key, values in _SETTINGS.items()}
        write_objects(folder, seed, objects, rows, columns, partitions)
        on, off = base.newSession(), base.newSession()
        for session in (on, off):
            for key, value in {**settings, "spark.sql.adaptive.enabled": "false"}.items():
                session.conf.set(key, value)
            session.read.parquet(str(folder)).createOrReplaceTempView("t")
        off.read.parquet(str(folder)).select("*", "_metadata").createOrReplaceTempView("judged")
        on.conf.set("spark.es_skipping.store.url", url)
        on.conf.set("spark.es_skipping.store.timeout", "60s")
        on.conf.set("spark.es_skipping.query.budget", "600s")
        on.conf.set("spark.es_skipping.strict", "true")
        esk.enable(on)
        indexes = _indexes(rng, columns, off)
        dataset = esk.Dataset(on, str(folder))
        dataset.create_indexes(*indexes)
        return cls(seed, folder, on, off, columns, partitions, indexes, dataset, settings)

    def __str__(self) -> str:
        kinds = ", ".join(map(repr, self.indexes))
        changed = {key: value for key, value in self.settings.items() if value != _SETTINGS[key][0]}
        return (
            f"lake {self.seed}: {len(self.columns)} columns, by {[c.sql for c in self.partitions]}, {changed}, {kinds}"
        )

    def drop(self) -> None:
        """Forget its metadata."""
        self.dataset.drop_indexes(all=True)
        esk.disable(self.on)

    def predicates(self, rng: random.Random) -> Predicates:
        """What draws predicates about its columns."""
        return Predicates(rng, (*self.columns, *self.partitions))

    def soundness(self, count: int, batch: int = 75, seed: int | None = None) -> Outcome:
        """Plan so many predicates and judge them."""
        names = [path.name for path in self.folder.rglob("*.parquet")]
        drawn: dict[int, Predicates] = {}

        def draw(rng: random.Random) -> Node:
            return drawn.setdefault(id(rng), self.predicates(rng)).draw()

        seed = self.seed + 1 if seed is None else seed
        return soundness_of(self.on, self.off, "t", "judged", names, seed, count, batch, draw, self.dataset)

    def loses(self, predicate: Node) -> set[str]:
        """The objects with a satisfying row that a scan of the predicate would not open."""
        try:
            kept = objects_planned(self.on, f"SELECT id FROM t WHERE {predicate}") or set()
            rows = self.off.sql(f"SELECT DISTINCT _metadata.file_name AS f FROM judged WHERE {predicate}").collect()
        except Exception:
            return set()
        return {row.f for row in rows} - kept

    def smallest(self, predicate: Node) -> Node:
        """The predicate with everything left out without which a row is still lost."""
        shrinking = True
        while shrinking:
            shrinking = False
            for smaller in predicate.smaller():
                if self.loses(smaller):
                    predicate, shrinking = smaller, True
                    break
        return predicate

    def reproduction(self, predicate: Node, store: str) -> str:
        """A test to be pasted, and what it is about."""
        least = self.smallest(predicate)
        names = sorted(self.loses(least))
        named = [c.sql for c in (*self.columns, *self.partitions) if c.sql in str(least)] or ["*"]
        rows = self.off.sql(
            f"SELECT _metadata.file_name, id, {', '.join(named)} FROM judged WHERE {least} AND _metadata.file_name = '{names[0]}' LIMIT 3"
        ).collect()
        return (
            f"def test_lake_{self.seed}(base: SparkSession, {store}_url: str, tmp_path: Path) -> None:\n"
            f"    # {self}\n"
            + "".join(f"    # {row}\n" for row in rows)
            + f'    lake = Lake.make(base, {store}_url, tmp_path / "t", {self.seed})\n'
            f"    assert lake.loses(Node(({str(least)!r},))) == set()  # lost {', '.join(names)}\n"
        )


def _columns(rng: random.Random) -> list[SqlColumn]:
    pairs = ({"n.x", "n.deep.y"}, {"lat", "lon"})
    singles = [c.sql for c in COLUMNS if not any(c.sql in pair for pair in pairs)]
    chosen = set(rng.sample(singles, rng.randint(3, len(singles))))
    for pair in pairs:
        if rng.random() < 0.6:
            chosen |= pair
    return [c for c in COLUMNS if c.sql in chosen]


def _indexes(rng: random.Random, columns: Sequence[SqlColumn], off: SparkSession) -> list[Any]:
    """Each only if it is possible; at least one."""
    makers: list[Callable[[], Any]] = []
    for column in columns:
        makers += [lambda c=column.sql: esk.MinMax(c)] * 2
        if column.sql in _LISTED:
            makers.append(lambda c=column.sql: esk.ValueList(c, limit=rng.choice((2, 10_000))))
        if column.sql in _ENDS:
            makers.append(lambda c=column.sql: esk.Prefix(c, length=rng.choice((1, 2, 5))))
            makers.append(lambda c=column.sql: esk.Suffix(c, length=rng.choice((1, 2, 5))))
    expressions = Predicates(rng, columns)
    for _ in range(6):
        text = expressions.expression()
        if _possible(off, text):
            makers.append(lambda e=text: esk.MinMax(e))
            makers.append(lambda e=text: esk.ValueList(e))
    if {"lat", "lon"} <= {c.sql for c in columns}:
        makers.append(lambda: esk.GeoBox("lat", "lon", boxes=rng.choice((1, 3))))
    chosen = [make() for make in rng.sample(makers, rng.randint(1, min(len(makers), 18)))]
    return list({repr(index): index for index in chosen}.values())


def _possible(off: SparkSession, expression: str) -> bool:
    try:
        type = off.sql(f"SELECT {expression} AS e FROM t").schema[0].dataType.simpleString()
    except Exception:
        return False
    return parse_type(type).supported
