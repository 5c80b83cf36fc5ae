"""Documents made smaller, and made again: what is no longer in them is no longer said to be known."""

from __future__ import annotations

import json

from es_skipping.catalog import IndexDefinition
from es_skipping.predicates.types import DataType
from es_skipping.stores.elasticsearch.documents import as_json, shrunk
from es_skipping.stores.elasticsearch.fields import Group, whole


def group(name: str) -> Group:
    return Group(name, IndexDefinition(name, "valuelist", ("x",), "values", DataType("int")))


def test_a_document_too_large_loses_its_largest_metadata_and_whatever_is_said_of_it() -> None:
    document = {
        "path": "file:/a",
        "indexed": ["x", "x1", "y"],
        "known": ["x", "x.span", "x1", "y"],
        "x": {"values": list(range(100)), "span": {"min": 0, "max": 99}},
        "x1": {"values": list(range(50)), "span": {"min": 0, "max": 49}},
        "y": {"values": [1]},
    }
    sizes = []
    left = as_json(document)
    for expected in ((["x1", "y"], ["x1", "y"]), (["y"], ["y"]), ([], [])):
        made = shrunk(left)
        assert made is not None
        smaller = json.loads(made)
        assert (smaller["indexed"], smaller["known"]) == expected
        assert set(smaller) == {"path", "indexed", "known", *expected[0]}
        sizes.append(len(made))
        left = made
    assert shrunk(left) is None
    assert sizes == sorted(sizes, reverse=True)


def test_what_is_taken_over_from_a_document_is_known_as_it_was_there() -> None:
    source = {"known": ["x1", "x.span", "x10"], "x": {"span": {}}, "x1": {"values": [1]}, "x10": {"values": [2]}}
    assert whole(group("x"), source) == ({"span": {}}, ["x.span"])
    assert whole(group("x1"), source) == ({"values": [1]}, ["x1"])
