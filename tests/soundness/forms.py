"""Whole queries around random predicates: joins, subqueries, windows, limits, functions of Python.

What a query returns is compared, so these are executed, with skipping off and on.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from pyspark.sql import SparkSession
from pyspark.sql.types import BooleanType

from tests.soundness.joins import random_join
from tests.soundness.lake import Lake
from tests.soundness.shapes import random_shape

__all__ = ["Executed", "execute", "random_query"]

_FORMS = (
    "SELECT id FROM t WHERE {p}",
    "SELECT id FROM t WHERE {p}",
    "SELECT count(*), sum(id), min(id) FROM t WHERE {p}",
    "SELECT x.id, y.k FROM (SELECT * FROM t WHERE {p}) x JOIN (SELECT id AS k, {c} AS j FROM t WHERE {q}) y ON x.{c} = y.j",
    "SELECT x.id, y.k FROM (SELECT * FROM t WHERE {p}) x LEFT JOIN (SELECT id AS k FROM t WHERE {q}) y ON x.id = y.k",
    "SELECT x.id, y.k FROM t x LEFT JOIN (SELECT id AS k, {c} AS j FROM t WHERE {q}) y ON x.id = y.k WHERE y.j IS NULL",
    "SELECT x.id, y.k FROM t x FULL JOIN (SELECT id AS k, {c} AS j FROM t WHERE {q}) y ON x.id = y.k AND y.j IS NOT NULL",
    "SELECT id FROM t WHERE id IN (SELECT id FROM t WHERE {p}) OR {q}",
    "SELECT id FROM t WHERE {c} NOT IN (SELECT {c} FROM t WHERE {p} AND {c} IS NOT NULL)",
    "SELECT id FROM t x LEFT ANTI JOIN (SELECT id AS k FROM t WHERE {p}) y ON x.id = y.k",
    "SELECT id FROM t x LEFT SEMI JOIN (SELECT {c} AS k FROM t WHERE {p}) y ON x.{c} <=> y.k",
    "SELECT id FROM t WHERE {c} >= (SELECT min({c}) FROM t WHERE {p})",
    "SELECT id, (SELECT max({c}) FROM t WHERE {p}), (SELECT min({c}) FROM t WHERE {q}) FROM t WHERE {q}",
    "SELECT id FROM t x WHERE EXISTS (SELECT 1 FROM t y WHERE y.id = x.id + 1 AND y.{c} IS NULL) AND x.{c} IS NOT NULL",
    "WITH w AS (SELECT * FROM t WHERE {p}) SELECT id FROM w WHERE {q} UNION ALL SELECT count(*) FROM w",
    "SELECT id FROM (SELECT *, row_number() OVER (PARTITION BY {c} ORDER BY id) AS place FROM t) WHERE place = 1 AND {p}",
    "SELECT id FROM (SELECT *, lag({c}) OVER (ORDER BY id) AS before FROM t) WHERE before IS NULL AND {p}",
    "SELECT id FROM (SELECT * FROM t ORDER BY id LIMIT 50) WHERE {p}",
    "SELECT id FROM (SELECT * FROM t ORDER BY id OFFSET 40) WHERE {p}",
    "SELECT id FROM (SELECT * FROM t WHERE {p} ORDER BY id DESC LIMIT 7) WHERE {q}",
    "SELECT {c}, count(*) AS n FROM t WHERE {p} GROUP BY {c} HAVING count(*) > 1",
    "SELECT max(id) FROM t HAVING count_if({p}) > 0",
    "SELECT count(*) FILTER (WHERE {p}), count(*) FROM t",
    "SELECT count(DISTINCT {c}) FROM t WHERE {p}",
    "SELECT id, e FROM t LATERAL VIEW explode(array({c}, NULL)) v AS e WHERE e IS NULL AND {p}",
    "SELECT id FROM t WHERE {p} EXCEPT SELECT id FROM t WHERE {q}",
    "SELECT id FROM t WHERE {p} INTERSECT SELECT id FROM t WHERE {q}",
    "SELECT id FROM (SELECT id, {c} AS renamed FROM t WHERE {p}) WHERE renamed IS NOT NULL",
    "SELECT id FROM t WHERE even(id) AND {p}",
    "SELECT id FROM t WHERE even(id) OR {p}",
    "SELECT CASE WHEN {p} THEN id END FROM t WHERE {q}",
    "SELECT id FROM t WHERE CASE WHEN {p} THEN {q} END",
)


_JOINS = 0.25
"""The share of queries that join several tables."""
_SHAPES = 0.35
"""The share of queries with generators, limits and joins together."""


def _even(number: int) -> bool:
    return number % 2 == 0


def random_query(rng: random.Random, lake: Lake) -> str:
    """One query over ``t``; what it returns is the same every time."""
    kind = rng.random()
    if kind < _JOINS:
        return random_join(rng, lake)
    if kind < _JOINS + _SHAPES:
        return random_shape(rng, lake)
    draw = lake.predicates(rng)
    column = rng.choice([c.sql for c in lake.columns if "." not in c.sql] or ["id"])
    return rng.choice(_FORMS).replace("{c}", column).replace("{p}", str(draw.draw(2))).replace("{q}", str(draw.draw(1)))


@dataclass
class Executed:
    """What came of queries run with skipping off and on.

    Attributes
    ----------
    spared
        Queries that failed with skipping off and not with it on: the failing row was in a skipped object.
    refused
        Queries that fail either way.
    wrong
        ``(query, what)`` of those whose rows differ, or that fail only with skipping on.
    """

    queries: int = 0
    spared: int = 0
    refused: int = 0
    wrong: list[tuple[str, str]] = field(default_factory=list)

    def __str__(self) -> str:
        return f"{self.queries} queries executed, {self.refused} that fail either way, {self.spared} spared an error, {len(self.wrong)} wrong"


def execute(lake: Lake, count: int, seed: int) -> Executed:
    """Run so many random queries with skipping off and on; adaptive execution is on for every other one."""
    rng = random.Random(seed)
    found = Executed()
    for session in (lake.on, lake.off):
        session.udf.register("even", _even, BooleanType())
    for number in range(count):
        sql = random_query(rng, lake)
        for session in (lake.on, lake.off):
            session.conf.set("spark.sql.adaptive.enabled", "true" if number % 2 else "false")
        found.queries += 1
        expected, got = _rows(lake.off, sql), _rows(lake.on, sql)
        if isinstance(expected, str) and isinstance(got, str):
            found.refused += 1
        elif isinstance(expected, str):
            found.spared += 1
        elif expected != got:
            found.wrong.append((sql, f"{expected[:5]} ... became {got[:200] if isinstance(got, str) else got[:5]}"))
    for session in (lake.on, lake.off):
        session.conf.set("spark.sql.adaptive.enabled", "false")
    return found


def _rows(spark: SparkSession, sql: str) -> list[str] | str:
    try:
        return sorted(map(repr, spark.sql(sql).collect()))
    except Exception as error:
        return str(error) or "error"
