"""Random queries of a fact and its dimension: filters, joins, the first rows of an order, and older versions of both."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Final

from tests.soundness.shapes import ORDERS
from tests.soundness.sql import Predicates
from tests.soundness.together_rows import CITIES, DIMENSION, FACT

__all__ = ["Query", "Questions"]

_JOINS: Final = ("JOIN", "JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN")
_HINTS: Final = ("", "", "/*+ BROADCAST(d) */", "/*+ MERGE(d) */", "/*+ SHUFFLE_HASH(d) */")
_MEMBERS: Final = (
    "k IN (SELECT id FROM {dim} d WHERE {far})",
    "EXISTS (SELECT 1 FROM {dim} d WHERE d.id = k AND {far})",
    "EXISTS (SELECT 1 FROM {dim} d WHERE d.id = k AND d.ref < n AND {far})",
    "k NOT IN (SELECT id FROM {dim} d WHERE id IS NOT NULL AND {far})",
    "NOT EXISTS (SELECT 1 FROM {dim} d WHERE d.id = k AND {far})",
    "n > (SELECT max(x) FROM {dim} d WHERE {far})",
    "k = (SELECT min(id) FROM {dim} d WHERE {far})",
    "(k IN (SELECT id FROM {dim} d WHERE {far}) OR n < 12)",
)
"""Tests of the fact's rows against the dimension."""


def _day(days: int) -> str:
    return f"date_add(DATE'2024-01-01', {days})"


@dataclass(frozen=True)
class Query:
    """SQL, and the features that it has."""

    sql: str
    features: tuple[str, ...]


class Questions:
    """Draws queries.

    Parameters
    ----------
    rng
        Decides everything.
    """

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._fact, self._dimension = Predicates(rng, FACT), Predicates(rng, DIMENSION)
        self._favourites = [self._fresh() for _ in range(3)]

    # --- predicates

    def of_fact(self) -> str:
        """A predicate of the fact; some come again, so that they are remembered."""
        return self._rng.choice(self._favourites) if self._rng.random() < 0.3 else self._fresh()

    def _fresh(self) -> str:
        rng, chance = self._rng, self._rng.random()
        if chance < 0.3:
            return str(self._fact.draw(rng.choice((0, 1, 2))))
        if chance < 0.75:
            return self._simple()
        joined = f" {rng.choice(('AND', 'OR'))} ".join(self._simple() for _ in range(2))
        return f"NOT ({joined})" if rng.random() < 0.2 else f"({joined})"

    def _simple(self) -> str:
        rng = self._rng
        low, city = rng.randint(0, 90), rng.choice(CITIES)
        return rng.choice(
            (
                f"n BETWEEN {low} AND {low + 5}", f"n > {low}", f"n + 1 <= {low // 3}", f"k IN ({low // 2}, {low // 2 + 1})",
                f"city = '{city}'", f"city LIKE '{city[:2]}%'", f"city LIKE '%{city[-2:]}'", f"upper(city) = '{city.upper()}'",
                f"city NOT IN ('{city}', 'Rom')", f"day < {_day(low // 2)}", f"v >= {low}.5D", "isnan(v)",
                f"day = {_day(low // 2)}", f"ts > timestamp_seconds(1704067200 + {low} * 40000)",
                f"amount = {low}.25BD", f"amount < {low // 4}.0BD", "city IS NULL", f"n IS NULL AND k > {low // 2}",
                f"n > 40 AND city = '{city}'", f"array_contains(tags, {low // 2})", f"exists(tags, t -> t > {low // 2})",
                f"p = {low % 3}", f"p = {low % 3} AND n < {low}", f"k % 3 = {low % 3}", f"id < {low * 10}", "n < k", f"v = {low // 2}",
            )
        )  # fmt: skip

    def of_dimension(self) -> str:
        """A predicate of the dimension."""
        rng = self._rng
        if rng.random() < 0.2:
            return str(self._dimension.draw(rng.choice((0, 1))))
        low = rng.randint(0, 10)
        return rng.choice(
            (
                f"x > {low}", f"x = {low}", f"x IN ({low}, {low + 2})", f"x = {low} AND s = 'a1'", f"day < DATE'2024-01-{low + 1:02}'",
                f"day BETWEEN DATE'2024-01-{low + 10}' AND DATE'2024-01-{low + 13}'", "s LIKE 'ab%'", "s IS NULL", f"ref = {low}",
                f"NOT (x < {low})", f"id < {low * 2}", "x > ref", f"x > 5 AND day > DATE'2024-01-{low + 15}'",
            )
        )  # fmt: skip

    # --- queries

    def draw(self, fact: str, dimension: str, old_fact: str, old_dimension: str) -> Query:
        """A query whose rows are the same each time.

        Parameters
        ----------
        fact, dimension, old_fact, old_dimension
            The relations, today's and older ones.
        """
        rng, features = self._rng, []
        if rng.random() < 0.2:
            features.append("time travel" if old_fact != fact else "today")
            fact = old_fact
        if rng.random() < 0.1:
            dimension = old_dimension
        columns = ["id", *rng.sample(("k", "n", "v", "city", "day", "ts", "amount"), 2)]
        sql, kind = self._rows(fact, dimension, columns)
        features.append(kind)
        chance = rng.random()
        if chance < (0.8 if kind == "range" else 0.4):
            features.append("first rows")
            sql = self._first(sql, columns)
        elif (chance < 0.86 and kind == "range") or chance < 0.46:
            features.append("limit")
            sql = f"SELECT count(*) FROM ({sql} LIMIT {rng.choice((1, 7, 40, 1000))})"
        elif chance < 0.56:
            features.append("aggregate")
            number = next((one for one in columns if one in ("k", "n", "amount")), "id")
            sql = f"SELECT count(*), count({number}), min({number}), max({number}), min(id), max(id) FROM ({sql})"
        elif chance < 0.62:
            features.append("union")
            sql = f"{sql} UNION ALL SELECT {', '.join(columns)} FROM ({sql.replace(fact, old_fact)})"
        return Query(sql, tuple(features))

    def _rows(self, fact: str, dimension: str, columns: list[str]) -> tuple[str, str]:
        """Rows of the fact, and the kind of the query; a join adds columns of the dimension."""
        rng, chance = self._rng, self._rng.random()
        where = f" WHERE {self.of_fact()}" if rng.random() < 0.7 else ""
        if chance < 0.15:  # metadata may show that whole files match, and so which rows come first
            low = rng.randint(0, 90)
            where = rng.choice(("", f" WHERE n > {low}", f" WHERE day >= {_day(low // 2)}", f" WHERE id < {low * 10}"))
            return f"SELECT {', '.join(columns)} FROM {fact} f{where}", "range"
        if chance < 0.45:
            return f"SELECT {', '.join(columns)} FROM {fact} f{where or f' WHERE {self.of_fact()}'}", "filter"
        if chance < 0.53:
            columns.append("e")
            test = rng.choice((f"e > {rng.randint(20, 45)}", f"e = {rng.randint(0, 42)}", "e IS NULL"))
            rows = f"SELECT * FROM {fact}{where}"
            return (
                f"SELECT {', '.join(columns)} FROM ({rows}) LATERAL VIEW explode(tags) AS e WHERE {test}",
                "generator",
            )
        if chance < 0.7:
            member = rng.choice(_MEMBERS).format(dim=dimension, far=self.of_dimension())
            also = f"{where} AND {member}" if where else f" WHERE {member}"
            return f"SELECT {', '.join(columns)} FROM {fact} f{also}", "membership"
        inner = f"SELECT * FROM {dimension} WHERE {self.of_dimension()}"
        on = rng.choice(("f.k = d.id", "f.k = d.id", "f.k = d.id", "f.k = d.id AND f.n > d.ref", "f.k <=> d.id"))
        if rng.random() < 0.15:
            kind = rng.choice(("LEFT SEMI JOIN", "LEFT ANTI JOIN"))
            found = f"SELECT {rng.choice(_HINTS)} f.* FROM (SELECT * FROM {fact}{where}) f {kind} ({inner}) d ON {on}"
            return f"SELECT {', '.join(columns)} FROM ({found})", "join"
        kept = [f"f.{column}" for column in columns]
        columns += ["dx", "ds"]
        kind, hint = rng.choice(_JOINS), rng.choice(_HINTS)
        rows = f"(SELECT * FROM {fact}{where}) f {kind} ({inner}) d ON {on}"
        return f"SELECT {hint} {', '.join(kept)}, d.x AS dx, d.s AS ds FROM {rows}", "join"

    def _first(self, sql: str, columns: list[str]) -> str:
        """The first rows in an order of all columns: rows that tie are equal."""
        rng = self._rng
        order = rng.sample(columns, len(columns))
        if rng.random() < 0.7:  # metadata can bound it
            order.sort(key=lambda name: name not in ("n", "day", "ts", "amount", "k"))
        text = ", ".join(f"{name} {rng.choice(ORDERS)}" for name in order)
        limit = f"LIMIT {rng.choice((1, 3, 10, 50))}{rng.choice(('', '', ' OFFSET 2'))}"
        return f"SELECT * FROM ({sql}) ORDER BY {text} {limit}"
