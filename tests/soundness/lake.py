"""Random datasets with random indexes in sessions of random settings: one number makes all of it again."""

from __future__ import annotations

import functools
import random
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import hypothesis
from hypothesis import HealthCheck
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

import es_skipping as esk
from es_skipping.predicates.types import parse_type
from tests.soundness.data import COLUMNS, PARTITIONS, SqlColumn, write_objects
from tests.soundness.elements import arrays, element_indexes, element_leaf
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
_FORMATS = ("parquet", "parquet", "orc", "json", "csv")
_GAPS = ("i8", "i16", "i32", "i64", "f32", "f64", "money", "big", "d", "ts", "ntz", "n.x", "lat")
_NO_CSV = ("bin", "n.x", "n.deep.y")
"""Columns of types that CSV cannot hold."""
_ENDS = ("s", "city", "n.deep.y")
_LISTED = ("i32", "f64", "f32", "big", "s", "city", "bin", "d", "ts", "n.deep.y", "flag", "i8", "ntz", "n.x")


@dataclass
class Lake:
    """A dataset, a session that skips and one that does not.

    Parameters
    ----------
    seed
        Of format, columns, rows, partitions, indexes and settings.
    folder
        Where the objects are.
    """

    seed: int
    folder: Path
    on: SparkSession
    off: SparkSession
    format: str
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
        format = rng.choice(_FORMATS)
        columns = [column for column in _columns(rng) if format != "csv" or column.sql not in _NO_CSV]
        partitions = rng.sample(PARTITIONS, rng.choice((0, 0, 1, 2)))
        settings = {key: rng.choice(values) for key, values in _SETTINGS.items()}
        elements = format in ("parquet", "orc")
        more = functools.partial(arrays, seed) if elements else None
        write_objects(folder, seed, objects, rows, columns, partitions, more)
        schema = _written_as(base.newSession(), folder, format)
        on, off = base.newSession(), base.newSession()
        for session in (on, off):
            for key, value in {**settings, "spark.sql.adaptive.enabled": "false"}.items():
                session.conf.set(key, value)
            session.read.format(format).schema(schema).load(str(folder)).createOrReplaceTempView("t")
        off.read.format(format).schema(schema).load(str(folder)).select("*", "_metadata").createOrReplaceTempView(
            "judged"
        )
        on.conf.set("spark.es_skipping.store.url", url)
        on.conf.set("spark.es_skipping.store.timeout", "60s")
        on.conf.set("spark.es_skipping.query.budget", "600s")
        on.conf.set("spark.es_skipping.strict", "true")
        if format == "parquet" and random.Random(-seed).random() < 0.5:
            on.conf.set("spark.es_skipping.granularity", "rowGroup")
        esk.enable(on)
        indexes = _indexes(rng, columns, off, expressions=6 if format in ("parquet", "orc") else 0)
        indexes += element_indexes(seed) if elements else []
        dataset = esk.Dataset(on, str(folder), format=format, schema=schema)
        dataset.create_indexes(*indexes)
        return cls(seed, folder, on, off, format, columns, partitions, indexes, dataset, settings)

    def __str__(self) -> str:
        kinds = ", ".join(map(repr, self.indexes))
        changed = {key: value for key, value in self.settings.items() if value != _SETTINGS[key][0]}
        return f"lake {self.seed}: {self.format}, {len(self.columns)} columns, by {[c.sql for c in self.partitions]}, {changed}, {kinds}"

    @property
    def elements(self) -> bool:
        """Whether there are columns of arrays and maps."""
        return self.format in ("parquet", "orc")

    def drop(self) -> None:
        """Forget its metadata."""
        self.dataset.drop_indexes(all=True)
        esk.disable(self.on)

    def predicates(self, rng: random.Random) -> Predicates:
        """What draws predicates about its columns."""
        return Predicates(rng, (*self.columns, *self.partitions), element_leaf if self.elements else None)

    def soundness(self, count: int, batch: int = 75, seed: int | None = None) -> Outcome:
        """Plan so many predicates and judge them."""
        names = [path.name for path in self.folder.rglob(f"*.{self.format}")]
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

    def hunt(self, count: int, seed: int) -> Node | None:
        """The smallest predicate that loses a row, of so many that Hypothesis draws one by one; None if all is well."""
        found: list[Node] = []

        @hypothesis.seed(seed)
        @hypothesis.settings(max_examples=count, deadline=None, database=None, suppress_health_check=list(HealthCheck))
        @hypothesis.given(st.randoms(use_true_random=False))
        def look(rng: random.Random) -> None:
            predicate = self.predicates(rng).draw()
            if self.loses(predicate):
                found.append(predicate)
                raise _Lost

        try:
            look()
        except _Lost:
            return found[-1]
        return None

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


class _Lost(Exception):
    pass


def _written_as(spark: SparkSession, folder: Path, format: str) -> StructType:
    """Turn Parquet objects into objects of another format with the same rows; their schema."""
    files = sorted(folder.rglob("*.parquet"))
    schema = spark.read.parquet(str(files[0])).schema
    for file in files if format != "parquet" else ():
        made = folder.parent / f"{folder.name}-{format}"
        spark.read.schema(schema).parquet(str(file)).coalesce(1).write.format(format).save(
            str(made), compression="none"
        )
        (part,) = made.glob(f"*.{format}")
        part.rename(file.with_suffix(f".{format}"))
        shutil.rmtree(made)
        file.unlink()
    return schema


def _columns(rng: random.Random) -> list[SqlColumn]:
    pairs = ({"n.x", "n.deep.y"}, {"lat", "lon"})
    singles = [c.sql for c in COLUMNS if not any(c.sql in pair for pair in pairs)]
    chosen = set(rng.sample(singles, rng.randint(3, len(singles))))
    for pair in pairs:
        if rng.random() < 0.6:
            chosen |= pair
    return [c for c in COLUMNS if c.sql in chosen]


def _indexes(rng: random.Random, columns: Sequence[SqlColumn], off: SparkSession, expressions: int) -> list[Any]:
    """Each only if it is possible, so many of expressions among them at most; at least one."""
    makers: list[Callable[[], Any]] = []
    for column in columns:
        makers += [lambda c=column.sql: esk.MinMax(c)] * 2
        if column.sql in _LISTED:
            makers.append(lambda c=column.sql: esk.ValueList(c, limit=rng.choice((2, 10_000))))
            makers.append(lambda c=column.sql: esk.BloomFilter(c))
            makers.append(lambda c=column.sql: esk.Hybrid(c, threshold=rng.choice((2, 100))))
        if column.sql in _GAPS:
            makers.append(lambda c=column.sql: esk.GapList(c, gaps=rng.choice((1, 4))))
        if column.sql in _ENDS:
            makers.append(lambda c=column.sql: esk.Prefix(c, length=rng.choice((1, 2, 5))))
            makers.append(lambda c=column.sql: esk.Suffix(c, length=rng.choice((1, 2, 5))))
    drawn = Predicates(rng, columns)
    for _ in range(expressions):
        text = drawn.expression()
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
