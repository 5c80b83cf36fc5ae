"""Random queries of several shapes at once: generators over arrays, joins, and ORDER BY ... LIMIT in every order."""

from __future__ import annotations

import random
from typing import Final

from tests.soundness.elements import random_generator
from tests.soundness.lake import Lake

__all__ = ["ORDERS", "random_shape"]

_JOINS: Final = ("JOIN", "JOIN", "LEFT SEMI JOIN", "LEFT JOIN", "LEFT ANTI JOIN", "RIGHT JOIN", "FULL JOIN")
_NULLS: Final = ("", "NULLS FIRST", "NULLS LAST")
ORDERS: Final = tuple(f"{direction} {nulls}".strip() for direction in ("", "ASC", "DESC") for nulls in _NULLS)


def random_shape(rng: random.Random, lake: Lake) -> str:
    """One query over ``t``; what it returns is the same every time, because its order has no ties."""
    draw = lake.predicates(rng)
    names = [column.sql for column in lake.columns if "." not in column.sql] or ["id"]
    column = rng.choice(names)
    source = f"SELECT * FROM t{_where(rng, str(draw.draw(2)), 0.6)}"
    if rng.random() < 0.15:
        return f"SELECT count(*) FROM ({source} LIMIT {rng.choice((1, 7, 60, 2000))})"
    wanted, order = ["id"], [f"{column} {rng.choice(ORDERS)}", f"id {rng.choice(ORDERS)}"]
    if lake.elements and rng.random() < 0.6:
        views, conditions = [], []
        for number in range(rng.choice((1, 1, 2))):
            view, condition, name = random_generator(rng, number)
            views.append(view)
            conditions.append(condition)
            if name is not None:
                wanted.append(name)
                order.append(f"{name} {rng.choice(ORDERS)}")
        where = _where(rng, rng.choice((" AND ", " OR ")).join(conditions), 0.9)
        source = f"SELECT {', '.join((column, *wanted))} FROM ({source}) x {' '.join(views)}{where}"
    if rng.random() < 0.4:
        source = _joined(rng, source, wanted, column, str(draw.draw(1)))
    if rng.random() < 0.75:
        limit = f" LIMIT {rng.choice((1, 3, 20, 200))}{rng.choice(('', '', ' OFFSET 2', ' OFFSET 45'))}"
        source = f"{source} ORDER BY {', '.join(order)}{limit}"
        if rng.random() < 0.2:
            source = (
                f"SELECT * FROM ({source}){_where(rng, str(draw.draw(0)) if wanted == ['id'] else 'id % 2 = 1', 0.5)}"
            )
    return f"SELECT {', '.join(wanted)} FROM ({source})"


def _joined(rng: random.Random, source: str, wanted: list[str], column: str, filter: str) -> str:
    """Joined with a few rows of the same table, on one of its columns or on a generated one."""
    key = rng.choice((column, "id", wanted[-1]))
    few = f"SELECT {column if key not in wanted else 'id'} AS k FROM t WHERE {filter} ORDER BY id LIMIT {rng.randint(1, 8)}"
    if key in wanted[1:]:
        few = f"SELECT {key} AS k FROM ({source}) ORDER BY id, {key} LIMIT {rng.randint(1, 4)}"
    joined = rng.choice(_JOINS)
    hint = rng.choice(("BROADCAST(d)", "BROADCAST(d)", "MERGE(d)", "SHUFFLE_HASH(d)"))
    return f"SELECT /*+ {hint} */ x.* FROM ({source}) x {joined} (SELECT DISTINCT k FROM ({few})) d ON x.{key} = d.k"


def _where(rng: random.Random, condition: str, chance: float) -> str:
    return f" WHERE {condition}" if rng.random() < chance else ""
