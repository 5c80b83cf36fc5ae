"""What is asked, in words that Spark, DuckDB and Polars all understand, and the indexes that answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import es_skipping as esk
from benchmarks.peers.data import Data

__all__ = ["INDEXES", "RECURRING", "Query", "queries"]


@dataclass(frozen=True)
class Query:
    """One query over one table.

    Parameters
    ----------
    name
        For people.
    table
        ``lineitem`` or ``places``.
    select, where, rest
        Its parts; ``rest`` is what follows the filter.
    """

    name: str
    table: str
    where: str
    select: str = "count(*), max(l_extendedprice)"
    rest: str = ""

    def sql(self, source: str) -> str:
        """The text, over a table or a table function."""
        return f"SELECT {self.select} FROM {source} WHERE {self.where} {self.rest}".strip()


RECURRING: Final = "l_returnflag = 'R' AND l_shipmode = 'AIR'"
"""A filter that comes back, which the layout is made for."""

INDEXES: Final[Mapping[str, Callable[[], list[Any]]]] = {
    "lineitem": lambda: [
        esk.MinMax("l_shipdate"),
        esk.MinMax("l_extendedprice"),
        esk.BloomFilter("l_orderkey", fpp=0.01),
        esk.BloomFilter("l_partkey", fpp=0.01),
    ],
    "places": lambda: [
        esk.Prefix("name", length=6),
        esk.Suffix("name", length=4),
        esk.MinMax("lat"),
        esk.MinMax("lon"),
    ],
}


def queries(data: Data) -> list[Query]:
    """The queries, with values that occur in the data."""
    key, parts = data.key, data.parts
    names = "name, lat, lon"
    return [
        Query("a key that nothing clusters", "lineitem", f"l_orderkey = {key}"),
        Query("three values of another key", "lineitem", f"l_partkey IN {parts}"),
        Query("either key", "lineitem", f"l_orderkey = {key} OR l_partkey = {parts[0]}"),
        Query("one week", "lineitem", "l_shipdate BETWEEN DATE '1995-03-06' AND DATE '1995-03-12'"),
        Query(
            "a month, by an expression",
            "lineitem",
            "EXTRACT(YEAR FROM l_shipdate) = 1995 AND EXTRACT(MONTH FROM l_shipdate) = 3",
        ),
        Query(
            "the latest ten before a day",
            "lineitem",
            "l_shipdate <= DATE '1995-06-30'",
            select="l_shipdate",
            rest="ORDER BY l_shipdate DESC LIMIT 10",
        ),
        Query("a filter that comes back", "lineitem", RECURRING),
        Query("beginning of a name", "places", "name LIKE 'Winterth%'", select=names),
        Query("end of a name", "places", "name LIKE '%swil'", select=names),
        Query("a box", "places", "lat BETWEEN 46.5 AND 47.5 AND lon BETWEEN 7 AND 9", select="count(*), max(lat)"),
        Query("nothing can be skipped", "lineitem", "l_quantity >= 25"),
    ]
