"""Table I of *Extensible Data Skipping* as data: an index of each type, a filter, and the objects that it must read.

The test builds all of them on both stores and runs every filter; the page ``reference/indexes/table-one.md`` of the docs
is made from the same rows. Each index has columns of its own, so that no other can have done its work.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import es_skipping as esk
from es_skipping.indexes.base import Index

__all__ = ["COLUMNS", "EXAMPLES", "OBJECTS", "ROWS", "Example", "Row"]

OBJECTS: Final = 8
_IN_OBJECT: Final = 40

COLUMNS: Final[Sequence[str]] = (
    "id",
    f"id div {_IN_OBJECT} AS o",  # the object's number
    "id AS measured",
    f"IF(id % {_IN_OBJECT} < 20, id, id + 1000000) AS clustered",
    f"50D + id div {_IN_OBJECT} * 0.5D + id % 7 / 100D AS lat",
    f"4D + id div {_IN_OBJECT} % 4 * 0.5D + id % 5 / 100D AS lng",
    "uuid_of(id) AS request",
    f"concat('city', id * 7 % 3 + id div {_IN_OBJECT}) AS city",
    f"concat('tenant-', id div {_IN_OBJECT}, '/db-', id) AS db_name",
    f"concat('/data/', id, '.v', id div {_IN_OBJECT}) AS path",
    f"concat('https://host', id div {_IN_OBJECT}, '.example.org/a?', id) AS url",
    f"(id div {_IN_OBJECT} * 100 + id % {_IN_OBJECT} / 4) * 0.6D AS x",
    f"(id div {_IN_OBJECT} * 100 + id % {_IN_OBJECT} / 4) * 0.8D AS y",
    f"IF(id < {4 * _IN_OBJECT}, concat('kind', id div {_IN_OBJECT}), concat('one-', id)) AS kind",
    "array(id, id + 1) AS readings",
    f"array(IF(id % {_IN_OBJECT} < 20, id, id + 1000000)) AS spread",
    "array('none', uuid_of(id)) AS requests",
    f"array('all', concat('tag', id * 7 % 3 + id div {_IN_OBJECT})) AS tags",
    f"array(concat('tenant-', id div {_IN_OBJECT}, '/db-', id)) AS databases",
    f"array(concat('/data/', id, '.v', id div {_IN_OBJECT})) AS paths",
    f"array(concat('https://host', id div {_IN_OBJECT}, '.example.org/a?', id)) AS urls",
    f"array(IF(id < {4 * _IN_OBJECT}, concat('kind', id div {_IN_OBJECT}), concat('one-', id))) AS kinds",
)
"""Of a range of ids; ``uuid_of`` stands for a hash that keeps no order."""


@dataclass(frozen=True)
class Example:
    """An index, a filter, and how many objects must be read for it."""

    index: Index
    filter: str
    reads: int


@dataclass(frozen=True)
class Row:
    """A row of the table: its name there, and an index of that type; of one column, also an index of elements."""

    name: str
    remembers: str
    plain: Example
    elements: Example | None = None


_RING: Final = esk.MetricDistance(["x", "y"], origin=[0, 0])

ROWS: Final = (
    Row(
        "MinMax", "minimum and maximum",
        Example(esk.MinMax("measured"), "measured BETWEEN 100 AND 130", 2),
        Example(esk.MinMax("readings[]"), "exists(readings, r -> r BETWEEN 100 AND 130)", 2),
    ),
    Row(
        "GapList", "the k largest gaps",
        Example(esk.GapList("clustered", gaps=2), "clustered BETWEEN 500 AND 900000", 0),
        Example(esk.GapList("spread[]", gaps=2), "exists(spread, s -> s BETWEEN 500 AND 900000)", 0),
    ),
    Row(
        "GeoBox", "x bounding boxes",
        Example(esk.GeoBox("lat", "lng", boxes=2), "lat BETWEEN 51 AND 51.3 AND lng BETWEEN 5 AND 5.3", 1),
    ),
    Row(
        "BloomFilter", "which values are probably there",
        Example(esk.BloomFilter("request", fpp=0.0001), "request = uuid_of(77)", 1),
        Example(esk.BloomFilter("requests[]", fpp=0.0001), "array_contains(requests, uuid_of(77))", 1),
    ),
    Row(
        "ValueList", "the distinct values",
        Example(esk.ValueList("city"), "city = 'city9'", 1),
        Example(esk.ValueList("tags[]"), "array_contains(tags, 'tag9')", 1),
    ),
    Row(
        "Prefix", "the distinct beginnings",
        Example(esk.Prefix("db_name", length=8), "db_name LIKE 'tenant-3%'", 1),
        Example(esk.Prefix("databases[]", length=8), "exists(databases, d -> d LIKE 'tenant-3%')", 1),
    ),
    Row(
        "Suffix", "the distinct endings",
        Example(esk.Suffix("path", length=3), "path LIKE '%.v6'", 1),
        Example(esk.Suffix("paths[]", length=3), "exists(paths, p -> p LIKE '%.v6')", 1),
    ),
    Row(
        "Formatted", "the distinct results of a transform",
        Example(esk.Formatted("url", "parse_url({}, 'HOST')"), "parse_url(url, 'HOST') = 'host4.example.org'", 1),
        Example(
            esk.Formatted("urls[]", "parse_url({}, 'HOST')"),
            "exists(urls, u -> parse_url(u, 'HOST') = 'host4.example.org')",
            1,
        ),
    ),
    Row(
        "MetricDist", "distances from an origin",
        Example(_RING, f"{_RING.distance([300, 400])} < 25", 1),
    ),
    Row(
        "Hybrid (section IV)", "the distinct values, or fingerprints of many",
        Example(esk.Hybrid("kind", threshold=5, fpp=0.0001), "kind IN ('kind2', 'one-200')", 2),
        Example(esk.Hybrid("kinds[]", threshold=5, fpp=0.0001), "arrays_overlap(kinds, array('kind2', 'one-200'))", 2),
    ),
)  # fmt: skip

EXAMPLES: Final = tuple(one for row in ROWS for one in (row.plain, row.elements) if one is not None)
