"""Documents made smaller, and made again: what is no longer in them is no longer said to be known."""

from __future__ import annotations

import json

import pytest

from es_skipping.catalog import IndexDefinition
from es_skipping.clauses.metadata import Boxes, Intervals, Metadata, Values
from es_skipping.predicates.types import DataType
from es_skipping.stores.elasticsearch.documents import as_json, forms_of, shrunk, whole
from es_skipping.stores.elasticsearch.fields import (
    Group,
    decode,
    encode,
    mapping,
    with_prefix,
    with_room_for,
)
from es_skipping.stores.elasticsearch.names import column_of
from tests.stores.strategies import fingerprints


def group(name: str) -> Group:
    return Group(name, IndexDefinition(name, "valuelist", ("x",), "values", DataType("int")))


def test_a_document_too_large_loses_its_largest_metadata_and_whatever_is_said_of_it() -> None:
    document = {
        "path": "file:/a",
        "known": ["x.span", "x1", "y.prints"],
        "x": {"values": list(range(100)), "span": {"min": 0, "max": 99}},
        "x1": {"values": list(range(50)), "span": {"min": 0, "max": 49}},
        "y": {"values": [1]},
    }
    sizes = []
    left = as_json(document)
    for expected in (["x1", "y.prints"], ["y.prints"], []):
        made = shrunk(left)
        assert made is not None
        smaller = json.loads(made)
        assert smaller["known"] == expected
        assert set(smaller) == {"path", "known", *(form.partition(".")[0] for form in expected)}
        sizes.append(len(made))
        left = made
    assert shrunk(left) is None
    assert sizes == sorted(sizes, reverse=True)


def test_what_is_taken_over_from_a_document_is_known_as_it_was_there() -> None:
    source = {"known": ["x1", "x.span", "x10"], "x": {"span": {}}, "x1": {"values": [1]}, "x10": {"values": [2]}}
    assert (forms_of(group("x"), source), whole(group("x"), source)) == (("x.span",), {"span": {}})
    assert (forms_of(group("x1"), source), whole(group("x1"), source)) == (("x1",), {"values": [1]})
    assert forms_of(group("x"), {**source, "known": ["x1", "x10"]}) == ()
    assert forms_of(group("x"), {**source, "known": ["x.later"]}) == ()


def test_what_is_known_is_said_of_every_form() -> None:
    text = IndexDefinition("b", "BloomFilter", ("x",), "fingerprints", DataType("string"))
    number = IndexDefinition("m", "MinMax", ("y",), "intervals", DataType("int"))
    made: list[tuple[IndexDefinition, Metadata, tuple[str, ...], tuple[str, ...]]] = [
        (text, Values(frozenset({"a"}), 0), ("g",), ()),
        (text, Values(frozenset(), 1), ("g",), ("g",)),
        (text, fingerprints(["a"], 640), ("g.prints",), ()),
        (text, Intervals((("a", "b"),), 0), ("g.span",), ()),
        (number, Intervals(((1, 2),), 0), ("g",), ()),
        (number, Intervals((), 1), ("g",), ("g",)),
        (number, Intervals(None, 1), ("g.counts",), ()),
    ]
    for index, metadata, known, empty in made:
        group = with_room_for(with_prefix(Group("g", index), [metadata]), metadata)
        encoded = encode(group, metadata)
        assert encoded is not None
        assert (encoded.known, encoded.empty) == (known, empty)
        assert decode(group, encoded) == metadata
        for missing in ((), ("g.later",), ("h",)):
            assert decode(group, encoded._replace(known=missing)) is None


@pytest.mark.parametrize(
    ("columns", "sides"),
    [
        (("lat", "lon"), ["lat", "lon"]),
        (("place.lat", "to_double(`a b`)"), ["place~2e~lat", "to_double~28~~60~a~20~b~60~~29~"]),
        (("Lat", "lat"), ["Lat", "lat"]),
        (("_id", "type"), ["_id", "type"]),
        (("x", "x"), ["axis_0", "axis_1"]),
        (("shape",), ["axis_0", "axis_1"]),
        (("axis_1", "axis_0"), ["axis_0", "axis_1"]),
        (("", "y"), ["axis_0", "axis_1"]),
        (("x" * 201, "y"), ["axis_0", "axis_1"]),
    ],
)
def test_the_axes_of_boxes_are_named_after_their_columns(columns: tuple[str, ...], sides: list[str]) -> None:
    """Where the columns tell the axes apart."""
    index = IndexDefinition("g", "GeoBox", columns, "boxes", DataType("double"))
    metadata = Boxes((((0.0, 1.0), (5.0, 6.0)), ((2.0, 3.0), (7.0, 8.0))))
    group = with_room_for(Group("g", index), metadata)
    assert list(mapping(group)["properties"]["box_1"]["properties"]) == sides
    encoded = encode(group, metadata)
    assert encoded is not None
    assert encoded.fields["box_1"] == {sides[0]: {"gte": 2.0, "lte": 3.0}, sides[1]: {"gte": 7.0, "lte": 8.0}}
    assert decode(group, encoded) == metadata
    if sides[0] != "axis_0":
        assert tuple(map(column_of, sides)) == columns
    grown = with_room_for(group, Boxes((((0.0, 1.0),) * 3,)))
    assert [grown.side(axis) for axis in range(3)] == [*sides, "axis_2"], "what is stored keeps its names"
    before = with_room_for(Group("g", index, boxes=1, axes=2), metadata)
    assert [before.side(axis) for axis in range(2)] == ["axis_0", "axis_1"], "so named in format 1"
