"""Random queries of a star in which each construct around a join may stand at each place.

The views are ``fact(k, n, j, w, t, st)``, ``dim(id, x, s, day, ref)`` and ``far(id, x, s, day, ref)``; a query may read each
of them several times, and a view's readers share the column ids that Spark gave it.
"""

from __future__ import annotations

import random
from typing import Final

__all__ = ["random_query"]

_JOINS: Final = (
    *["JOIN"] * 6,
    *["LEFT SEMI JOIN"] * 3,
    *["LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "LEFT ANTI JOIN", "CROSS JOIN"],
)
_NEAR: Final = (
    *["f.k = {d}.id"] * 8,
    "f.k <=> {d}.id",
    "f.k = {d}.id AND f.j = {d}.ref",
    "f.k = {d}.id AND f.j < {d}.x",
    "f.k = {d}.id OR f.n = 3",
    "f.k = {d}.id AND f.n < {d}.x",
    "coalesce(f.k, {d}.id) = {d}.id",
    "f.k >= {d}.id AND f.k <= {d}.id",
    "f.t = {d}.s AND f.k = {d}.id",
    "NOT (f.k <> {d}.id)",
)
"""How the fact meets ``dim``."""
_FAR: Final = (
    *["f.j = {d}.id"] * 4,
    "f.w = {d}.id",
    "f.st.j = {d}.id",
    "cast(f.w AS INT) = {d}.ref",
    "f.j = {d}.ref",
    "f.j + 1 = {d}.ref",
    "f.t = {d}.s",
    "cast(f.j AS STRING) = cast({d}.id AS STRING)",
    "cast(f.j AS DOUBLE) = {d}.id",
)
"""How it meets ``far``."""
_CONDITIONS: Final = (
    "{d}.x > 7",
    "{d}.x = 3 AND {d}.s = 'a1'",
    "{d}.day < DATE'2024-01-06'",
    "{d}.day BETWEEN DATE'2024-01-09' AND DATE'2024-01-12'",
    "{d}.s LIKE 'ab%'",
    "{d}.s IS NULL",
    "{d}.ref IN (1, 2)",
    "NOT ({d}.x < 6)",
    "{d}.x > {d}.ref",
    "{d}.day = (SELECT max(day) FROM {table})",
    "{d}.id IS NOT NULL",
    "{d}.ref = 4 OR {d}.x = 4",
    "{d}.x > 8 AND rand(3) >= 0",
)
_FACTS: Final = (
    *["fact"] * 8,
    "(SELECT * FROM fact WHERE j < 8)",
    "(SELECT DISTINCT * FROM fact)",
    "(SELECT * FROM fact ORDER BY n, k, j LIMIT 40)",
    "(SELECT *, row_number() OVER (PARTITION BY j ORDER BY n, k) AS r FROM fact)",
    "(SELECT * FROM fact UNION ALL SELECT * FROM fact WHERE n < 4)",
    "(SELECT /*+ REPARTITION(3) */ * FROM fact)",
    "(SELECT max(k) AS k, max(n) AS n, j, max(w) AS w, max(t) AS t, max(st) AS st FROM fact GROUP BY j)",
    "(SELECT k AS k2, n, j, w, t, st, k FROM fact)",
    "(SELECT upper(t) AS t, k, n, j, w, st FROM fact)",
    "(SELECT k, n + 0 * monotonically_increasing_id() AS n, j, w, t, st FROM fact)",
    "(SELECT k, n, e AS j, w, t, st FROM fact LATERAL VIEW explode(array(j, n)) AS e)",
)
_DIMENSIONS: Final = (
    *["SELECT * FROM {table} d WHERE {where}"] * 8,
    "SELECT * FROM (SELECT * FROM {table} ORDER BY id, x, s, day, ref LIMIT 9) d WHERE {where}",
    "SELECT id, max(x) AS x, max(s) AS s, max(day) AS day, max(ref) AS ref FROM {table} d WHERE {where} GROUP BY id",
    "SELECT DISTINCT * FROM {table} d WHERE {where}",
    "SELECT * FROM {table} d WHERE {where} UNION ALL SELECT * FROM {table} e WHERE e.x = 1",
    "SELECT * FROM {table} d WHERE {where} INTERSECT SELECT * FROM {table} e WHERE e.ref < 9",
    "SELECT * FROM {table} d WHERE {where} EXCEPT SELECT * FROM {table} e WHERE e.ref < 3",
    "SELECT ref AS id, x, s, day, id AS swapped, x AS ref FROM far d WHERE {where}",
    "SELECT d.* FROM {table} d JOIN far ON d.ref = far.id WHERE {where} AND far.x > 6",
    "SELECT d.* FROM {table} d LEFT JOIN far ON d.ref = far.id AND far.x > 6 WHERE {where}",
    "SELECT d.* FROM {table} d WHERE {where} AND d.ref IN (SELECT id FROM far WHERE x > 6)",
    "SELECT d.* FROM {table} d WHERE {where} AND NOT EXISTS (SELECT 1 FROM far WHERE far.id = d.ref AND far.x > 6)",
)
_TESTS: Final = (
    *["f.k IN (SELECT id FROM dim d WHERE {near})"] * 3,
    "EXISTS (SELECT 1 FROM dim d WHERE d.id = f.k AND {near})",
    "EXISTS (SELECT 1 FROM dim d WHERE d.id = f.k AND d.ref = f.j AND {near})",
    "(f.k, f.j) IN (SELECT id, ref FROM dim d WHERE {near})",
    "f.k NOT IN (SELECT id FROM dim d WHERE d.id IS NOT NULL AND {near})",
    "NOT EXISTS (SELECT 1 FROM dim d WHERE d.id = f.k AND {near})",
    "(f.j IN (SELECT id FROM far d WHERE {far}) OR f.n < 3)",
    "f.j IN (SELECT id FROM far d WHERE {far})",
    "f.n > (SELECT min(n) FROM fact)",
    "f.j = (SELECT max(d.id) FROM far d WHERE d.ref = f.j)",
    "f.k IN (SELECT k FROM fact WHERE j > 5)",
)


def random_query(dice: random.Random) -> str:
    """A query whose rows are the same each time; it holds at most three joins and three tests."""
    kind = dice.random()
    if kind < 0.1:
        return f"{_part(dice)} UNION ALL {_part(dice)}"
    if kind < 0.15:
        return f"SELECT l.* FROM ({_part(dice)}) l JOIN ({_part(dice)}) r ON l.k = r.k"
    if kind < 0.2:
        return f"WITH c AS ({_part(dice)}) SELECT * FROM c WHERE n < 9 UNION ALL SELECT * FROM c WHERE n > 3"
    return _part(dice)


def _part(dice: random.Random) -> str:
    joins = [_join(dice, f"d{number}") for number in range(dice.choice((0, 1, 1, 1, 2, 3)))]
    tests = [dice.choice(_TESTS) for _ in range(dice.choice((0, 0, 1, 2)) if joins else dice.choice((1, 2, 3)))]
    where = [one.format(near=_condition(dice, "d", "dim"), far=_condition(dice, "d", "far")) for one in tests]
    if dice.random() < 0.3:
        where.append(dice.choice(("f.n < 9", "f.j IS NOT NULL", "f.n < 9 OR f.n IS NULL", "f.k IS NOT NULL")))
    found = f"SELECT f.k, f.n, f.j FROM {dice.choice(_FACTS)} f {' '.join(joins)}"
    return f"{found} WHERE {' AND '.join(where)}" if where else found


def _join(dice: random.Random, name: str) -> str:
    table, keys = dice.choice((("dim", _NEAR), ("dim", _NEAR), ("far", _FAR)))
    where = _condition(dice, "d", table)
    dimension = dice.choice(_DIMENSIONS).format(table=table, where=where)
    if "swapped" in dimension:
        dimension = f"SELECT id, x, s, day, ref FROM ({dimension})"
        table, keys = "far", _FAR
    on = [dice.choice(keys).format(d=name)]
    more = _condition(dice, name, table)
    if dice.random() < 0.2 and "rand" not in more:
        on.append(more)
    kind = dice.choice(_JOINS)
    if kind == "CROSS JOIN":  # few rows
        return f"CROSS JOIN (SELECT max(x) AS x FROM ({dimension})) {name}"
    return f"{kind} ({dimension}) {name} ON {' AND '.join(f'({one})' for one in on)}"


def _condition(dice: random.Random, name: str, table: str) -> str:
    return dice.choice(_CONDITIONS).format(d=name, table=table)
