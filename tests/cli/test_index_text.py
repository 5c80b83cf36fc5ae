"""Indexes as they are written on the command line."""

from __future__ import annotations

import pytest

from es_skipping.cli.index_text import parse_index
from es_skipping.errors import IndexDefinitionError
from es_skipping.indexes.geobox import GeoBox
from es_skipping.indexes.minmax import MinMax
from es_skipping.indexes.prefix import Prefix


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("MinMax(ts)", MinMax("ts")),
        ("  MinMax( ts ) ", MinMax("ts")),
        ("MinMax(address.city)", MinMax("address.city")),
        ('MinMax("to_date(ts)")', MinMax("to_date(ts)")),
        ("MinMax('`a.b`')", MinMax("`a.b`")),
        ("MinMax(größe)", MinMax("größe")),
        ("Prefix(db_name, length=15)", Prefix("db_name", length=15)),
        ("Prefix(column=db_name, length=15)", Prefix("db_name", length=15)),
        ("GeoBox(lat, lon, boxes=4)", GeoBox("lat", "lon", boxes=4)),
    ],
)
def test_an_index_is_what_python_would_make_of_it(text: str, expected: object) -> None:
    assert parse_index(text) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is not an index"),
        ("ts", "is not an index"),
        ("MinMax", "is not an index"),
        ("MinMax(ts", "is not an index"),
        ("MinMax(ts); import os", "is not an index"),
        ("a.MinMax(ts)", "is not an index"),
        ("MinMax(`a.b`)", "is not an index"),
        ("MinMax(to_date(ts))", r"quote 'to_date\(ts\)', which is neither a plain column name nor a number"),
        ("MinMax(__import__('os'))", "neither a plain column name nor a number"),
        ("MinMax(**x)", r"\*\* is not allowed"),
        ("MinMaks(ts)", "unknown index type 'MinMaks'"),
        ("MinMax()", r"is wrong; write MinMax\("),
        ("MinMax(ts, fpp=0.1)", r"is wrong; write MinMax\("),
        ("Prefix(name, length=0)", "length"),
        ("MinMax(\0)", "is not an index"),
    ],
)
def test_a_mistake_is_told_with_the_text_and_the_way_out(text: str, message: str) -> None:
    with pytest.raises(IndexDefinitionError, match=message):
        parse_index(text)


def test_nothing_is_evaluated(tmp_path: object) -> None:
    with pytest.raises(IndexDefinitionError):
        parse_index(f"MinMax(open({str(tmp_path) + '/x'!r}, 'w'))")
