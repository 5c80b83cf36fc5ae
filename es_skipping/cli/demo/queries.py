"""The demo's indexes and queries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = ["INDEXES", "QUERIES", "DemoQuery"]

INDEXES: Final = {
    "lineitem": ("MinMax(l_shipdate)", "ValueList(l_partkey)", "Prefix(l_comment, length=12)"),
    "orders": ("MinMax(o_orderdate)", "ValueList(o_orderkey)"),
    "places": ("ValueList(cc)", "Prefix(name, length=6)", "Suffix(name, length=7)", "GeoBox(lat, lon, boxes=6)"),
}
"""The indexes of each table, as on the command line."""


@dataclass(frozen=True, slots=True)
class DemoQuery:
    """One query, with a remark."""

    name: str
    sql: str
    note: str = ""


QUERIES: Final = (
    DemoQuery(
        "Range",
        """
        SELECT sum(l_extendedprice * l_discount) AS revenue
        FROM lineitem
        WHERE l_shipdate >= DATE '1994-03-01' AND l_shipdate < DATE '1994-03-15' AND l_quantity < 24
        """,
        "The rows are laid out by ship date, so two weeks lie in few objects.",
    ),
    DemoQuery(
        "IN list",
        "SELECT * FROM orders WHERE o_orderkey IN (7, 4519, 131301, 299684, 600000)",
        "The orders are laid out by date: the least and greatest key of an object do not help, its list of keys does.",
    ),
    DemoQuery(
        "Prefix",
        "SELECT l_orderkey, l_comment FROM lineitem WHERE l_comment LIKE 'zzle fur%'",
        "A comment can stand in any object, but each object holds few of the prefixes.",
    ),
    DemoQuery(
        "Prefix of names",
        "SELECT name, cc FROM places WHERE name LIKE 'Sankt %'",
    ),
    DemoQuery(
        "Suffix",
        "SELECT name, admin1 FROM places WHERE name LIKE '%borough'",
        "A list of the last seven characters; no sorting by name could help here.",
    ),
    DemoQuery(
        "Bounding box",
        """
        SELECT name, admin1, lat, lon
        FROM places
        WHERE lat BETWEEN 45.8 AND 47.9 AND lon BETWEEN 5.9 AND 10.6
        """,
        "Some objects hold regions far apart: several boxes around the points skip more than one box.",
    ),
    DemoQuery(
        "OR",
        """
        SELECT count(*) AS items, sum(l_quantity) AS quantity
        FROM lineitem
        WHERE l_shipdate >= DATE '1998-11-20' OR l_partkey = 4242
        """,
        "Each side has its own index; an object is skipped if both sides are false.",
    ),
    DemoQuery(
        "NOT",
        "SELECT cc, count(*) AS places FROM places WHERE cc NOT IN ('US', 'CN', 'DE', 'IT', 'ID', 'FR') GROUP BY cc",
        "Objects that hold only these countries are skipped.",
    ),
    DemoQuery(
        "Join",
        """
        SELECT o_orderpriority, count(*) AS items, sum(l_extendedprice) AS price
        FROM orders JOIN lineitem ON l_orderkey = o_orderkey
        WHERE o_orderdate BETWEEN DATE '1995-03-01' AND DATE '1995-03-10'
          AND l_shipdate BETWEEN DATE '1995-03-12' AND DATE '1995-03-31'
        GROUP BY o_orderpriority
        """,
        "Both tables skip objects, each by its own filter.",
    ),
    DemoQuery(
        "Aggregate",
        """
        SELECT l_returnflag, l_linestatus, count(*) AS items, sum(l_quantity) AS quantity, avg(l_discount) AS discount
        FROM lineitem
        WHERE l_shipdate <= DATE '1992-03-01'
        GROUP BY l_returnflag, l_linestatus
        """,
    ),
    DemoQuery(
        "Nothing to skip",
        "SELECT count(*) AS items FROM lineitem WHERE l_quantity = 50",
        "Every object holds such a row, and the column has no index: the query reads everything, as before.",
    ),
)
"""Each runs with skipping off and on. All results are exact (counts, sums of decimals), so rows can be compared."""
