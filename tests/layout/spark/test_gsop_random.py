"""Random tables in the groups and layouts that GSOP and GSOP-R find for random workloads: the source's rows come back.

``ES_SKIPPING_DESIGNS`` sets how many tables (default 1), ``ES_SKIPPING_SEED`` the first one's seed.
"""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

import es_skipping as esk
from es_skipping import layout
from es_skipping.layout.groups.status import storage
from tests.layout.manifests import manifest_of
from tests.soundness.data import COLUMNS, SqlColumn, write_objects
from tests.soundness.forms import execute
from tests.soundness.sql import Predicates
from tests.spark.building import ROOT_SETTING, spark
from tests.spark.objects_read import blocks_read

__all__ = ["spark"]

COUNT = int(os.environ.get("ES_SKIPPING_DESIGNS", "1"))
SEED = int(os.environ.get("ES_SKIPPING_SEED", "20260701"))
SYSTEMS = ("GSOP-R", "GSOP")
"""One after the other; what the first one writes has all that the second's has, and replicas."""
QUERIES = 4
ROWS = 400
MIXED = {
    "m1": "cast(pmod(hash(id, 1), 7) AS int)",
    "m2": "cast(pmod(hash(id, 2), 7) AS int)",
    "m3": "nullif(cast(pmod(hash(id, 3), 10) AS int), 9)",
}
"""Columns whose values do not depend on the object, as those of the others do, nor on each other."""
LISTED = 9
"""Values of ``m3`` that lists draw from; some rows have none of them."""
LISTS = 18
FORMAT = "es_skipping_groups"
Kind = tuple[str, str, str]
"""The column that all kinds of queries read, another, and a filter."""


class Mixed:
    """Draws predicates of which some are those of the workload, some begin with one, and some are any."""

    def __init__(self, rng: random.Random, columns: Sequence[SqlColumn], known: Sequence[str]) -> None:
        self._rng, self._known, self._any = rng, known, Predicates(rng, columns)

    def draw(self, depth: int) -> str:
        chance = self._rng.random()
        if chance < 0.3:
            return str(self._any.draw(depth))
        known = self._rng.choice(self._known)
        return known if chance < 0.6 else f"({known} AND {self._any.draw(depth - 1)})"


def selective(df: DataFrame, texts: Sequence[str]) -> list[str]:
    """Those of these that Spark understands, and that some rows satisfy, but not many."""
    sayable = [text for text in texts if plans(df, text)]
    counted = [f"count_if({text}) / count(*)" for text in sayable]
    shares = df.selectExpr(*counted).head() or ()
    return [text for text, share in zip(sayable, shares) if 0 < share < 0.4]


def plans(df: DataFrame, text: str) -> bool:
    try:
        df.where(text)
    except AnalysisException:
        return False
    return True


def designed(df: DataFrame, lake: str, system: str, rng: random.Random, found: Sequence[str]) -> tuple[Any, list[Kind]]:
    """Groups or layouts for two kinds of queries in conflict, for lists that differ from query to query, and for some
    other queries.

    What the one kind reads and asks for, ``m1``, is independent of what the other does, ``m2``; some of all read the
    same column.
    """
    session, names = df.sparkSession, [name for name in df.columns if name not in MIXED]
    for attempt in range(5):
        one, other, hot = rng.sample(names, 3)
        kinds = [(one, "m1", f"m1 = {value}") for value in range(3)]
        kinds += [(other, "m2", f"m2 = {value}") for value in range(3)]
        kinds += [(hot, rng.choice(names), text) for text in (*rng.sample(found, 2), "m1 = 0", "m2 = 0")]
        lists = [(hot, "m3", f"m3 IN {tuple(rng.sample(range(LISTED), 3))}") for _ in range(LISTS)]
        # With larger blocks there is more conflict.
        options: dict[str, Any] = {"min_rows": 12 + 12 * attempt, "features": 8 + 2 * LISTED, "min_support": 2}
        options["opening"] = rng.choice((0, 0, 50))
        options["partition_rows"] = rng.choice((150, 1_000))
        if system == "GSOP":
            designer = layout.GSOP(esk.Dataset(session, lake), **options)
        else:
            designer = layout.GSOPR(esk.Dataset(session, lake), storage_budget=rng.choice((1.5, 2.0, 3.0)), **options)
        plan = designer.fit([asked(kind) for kind in (*kinds * 3, *lists)], holdout=0)
        # All values of the lists that do not come back; the others are features as they are.
        single = {f"m3 = {value}" for value in range(LISTED)}.intersection(plan.conditions)
        assert len(single) > LISTED / 2, "each value is a feature"
        groups = plan.groups
        # With a replica, layouts that are the master of some of their columns and not of others.
        if any(set(own.columns) > set(own.masters) != set() for own in groups) or (
            system == "GSOP" and len(groups) > 1
        ):
            return designer, kinds + lists[:4]
    raise AssertionError("of five workloads none has columns in conflict")


def enough(df: DataFrame) -> DataFrame:
    """Some hundred rows: where objects are nearly empty, no blocks are small enough for columns in conflict."""
    copies = -(-ROWS // df.count())
    if copies < 2:
        return df
    renumbered = [f"id + 1000000000L * copy AS {name}" if name == "id" else f"`{name}`" for name in df.columns]
    return df.crossJoin(df.sparkSession.range(copies).toDF("copy")).selectExpr(*renumbered)


def asked(kind: Kind) -> str:
    hot, other, text = kind
    return f"SELECT `{hot}`, `{other}` FROM t WHERE {text}"


@pytest.mark.parametrize("seed", range(SEED, SEED + COUNT))
def test_random_tables_workloads_and_queries(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    rng, system = random.Random(seed), SYSTEMS[(seed - SEED) % 2]
    lake, place = str(tmp_path / "lake"), str(tmp_path / "groups")
    nested = [c for c in COLUMNS if c.sql.startswith("n.")] if rng.random() < 0.5 else []
    columns = rng.sample([c for c in COLUMNS if "." not in c.sql], 4) + nested
    write_objects(tmp_path / "objects", seed, objects=9, rows=60, columns=columns)
    on, off = spark.newSession(), spark.newSession()
    for session in (on, off):
        for key in (ROOT_SETTING, "spark.sql.session.timeZone", "spark.sql.shuffle.partitions"):
            session.conf.set(key, str(spark.conf.get(key)))
        session.conf.set("spark.sql.ansi.enabled", "false")  # or most filters fail
    off.conf.set("spark.sql.parquet.filterPushdown", "false")  # it loses rows whose text is not UTF-8
    more = [f"{expression} AS {name}" for name, expression in MIXED.items()]
    enough(on.read.parquet(str(tmp_path / "objects"))).selectExpr("*", *more).write.parquet(lake)
    for session in (on, off):
        session.read.parquet(lake).createOrReplaceTempView("t")
    draw = Predicates(rng, columns)
    found = selective(on.table("t"), [str(draw.draw(1)) for _ in range(30)])
    designer, kinds = designed(on.table("t"), lake, system, rng, found)
    assert designer.write(place, packed=rng.random() < 0.7).rows == off.table("t").count()
    manifest = manifest_of(tmp_path / "groups")
    if system == "GSOP-R":
        assert storage(manifest) > 1, "some cells are stored twice"
    else:
        assert storage(manifest) == 1 < len(manifest.groups)
    on.read.format(FORMAT).load(place).createOrReplaceTempView("t")
    esk.enable(on)
    opened = []
    for query in ("SELECT * FROM t", *map(asked, [*rng.sample(kinds[:-4], 4), *kinds[-2:]])):
        got = collectable(on.sql(query))
        assert rows_of(got) == rows_of(collectable(off.sql(query))), (seed, query)
        opened += blocks_read(got)
    assert min(opened) < opened[0] / 2, "queries are helped"
    known = [text for _, _, text in kinds]
    drawn: Any = SimpleNamespace(
        on=on, off=off, columns=columns, elements=False, predicates=lambda rng: Mixed(rng, columns, known)
    )
    executed = execute(drawn, QUERIES, seed)
    assert executed.wrong == [], (seed, executed.wrong[:3])
    assert executed.refused < QUERIES


def collectable(df: DataFrame) -> DataFrame:
    """With times as text: some are of years that Python has not."""
    numbered = df.toDF(*(f"c{number}" for number in range(len(df.columns))))
    times = {"date", "timestamp", "timestamp_ntz"}
    return numbered.selectExpr(
        *(f"cast({f.name} AS string)" if f.dataType.typeName() in times else f.name for f in numbered.schema)
    )


def rows_of(df: DataFrame) -> list[str]:
    return sorted(map(repr, df.collect()))
