"""Random joins of two to four tables: every type of join, several keys, hints, renames, and scalar subqueries."""

from __future__ import annotations

import random
from typing import Final

from tests.soundness.lake import Lake

__all__ = ["random_join"]

_TYPES: Final = (
    *["JOIN"] * 4,
    *["LEFT SEMI JOIN"] * 2,
    *["LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "LEFT ANTI JOIN"],
)
_HINTS: Final = (*["BROADCAST"] * 4, "MERGE", "SHUFFLE_HASH")
_MOST_ROWS_OF_A_DIMENSION: Final = 12
"""Few enough that the files of the other table can be skipped, and that four tables multiply to few rows."""


def random_join(rng: random.Random, lake: Lake) -> str:
    """One query over ``t`` joined with itself; what it returns is the same every time."""
    names = [column.sql for column in lake.columns if "." not in column.sql] or ["id"]
    query = _star(rng, lake, names)
    kind = rng.random()
    if kind < 0.15:  # the same table twice under other filters
        return f"{query} UNION ALL {_star(rng, lake, names)}"
    if kind < 0.25:
        return f"SELECT * FROM ({query}) JOIN ({_star(rng, lake, names)}) ON i = i2".replace("AS i,", "AS i2,", 1)
    return query


def _star(rng: random.Random, lake: Lake, names: list[str]) -> str:
    draw = lake.predicates(rng)
    fact = rng.choice(("t", "t", f"(SELECT * FROM t WHERE {draw.draw(1)})", f"(SELECT * FROM t {_above(rng, names)})"))
    joins, hints = [], []
    for number in range(rng.choice((1, 1, 2, 3))):
        keys = rng.sample(names, min(len(names), rng.choice((1, 1, 1, 2))))
        renamed = ", ".join(f"{key} AS k{place}" for place, key in enumerate(keys))
        few = f"ORDER BY id LIMIT {rng.randint(1, _MOST_ROWS_OF_A_DIMENSION)}"
        dimension = f"(SELECT {renamed} FROM t WHERE {draw.draw(1)} {few}) d{number}"
        equals = rng.choice(("=", "=", "=", "<=>"))
        on = " AND ".join(f"x.{key} {equals} d{number}.k{place}" for place, key in enumerate(keys))
        joins.append(f"{rng.choice(_TYPES)} {dimension} ON {on}")
        hints.append(f"{rng.choice(_HINTS)}(d{number})")
    return f"SELECT /*+ {', '.join(hints)} */ x.id AS i, count(*) AS n FROM {fact} x {' '.join(joins)} GROUP BY x.id"


def _above(rng: random.Random, names: list[str]) -> str:
    """Something that stands between the joins and the scan of the fact."""
    column = rng.choice(names)
    return rng.choice(
        (
            f"WHERE {column} >= (SELECT {rng.choice(('min', 'max'))}({column}) FROM t WHERE id % 7 = 3)",
            f"WHERE {column} = (SELECT max({column}) FROM t)",
            "ORDER BY id LIMIT 60",
            "UNION ALL SELECT * FROM t WHERE id < 20",
            f"DISTRIBUTE BY {column}",
        )
    )
