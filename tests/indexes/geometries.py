"""Geometries for tests: random ones, and how Sedona writes them; apart from the package's own code on purpose."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from typing import Any

import shapely
from hypothesis import strategies as st

from es_skipping.indexes.toolkit.sedona import PACKAGE
from es_skipping.predicates.tree import Call, Literal, Operand
from es_skipping.predicates.types import parse_type

BINARY, BOOLEAN, DOUBLE = map(parse_type, ("binary", "boolean", "double"))


def sedona_bytes(shape: Any, srid: int = 0) -> bytes:
    """As Sedona serialises a geometry."""
    kind = shapely.get_type_id(shape)
    number = {0: 1, 1: 2, 3: 3, 4: 4, 5: 5, 6: 6}[kind]
    dimensions = 3 if shape.has_z else 2
    points = shapely.get_coordinates(shape, include_z=shape.has_z)
    head = bytes([number << 4 | (2 if shape.has_z else 1) << 1 | bool(srid)]) + srid.to_bytes(3, "big")
    out = head + struct.pack("<i", len(points)) + struct.pack(f"<{dimensions * len(points)}d", *points.ravel())

    def rings(polygon: Any) -> list[int]:
        return [len(ring.coords) for ring in (polygon.exterior, *polygon.interiors)]

    lengths: list[int] = []
    if number == 3:
        lengths = [1 + len(shape.interiors), *rings(shape)]
    elif number == 5:
        lengths = [len(shape.geoms), *(len(line.coords) for line in shape.geoms)]
    elif number == 6:
        lengths = [len(shape.geoms)]
        for polygon in shape.geoms:
            lengths += [1 + len(polygon.interiors), *rings(polygon)]
    return out + struct.pack(f"<{len(lengths)}i", *lengths)


def sedona(name: str, *arguments: Operand, type: Any = BOOLEAN) -> Call:
    return Call(f"{PACKAGE}.{name}", arguments, type)


def constant(shape: Any) -> Literal:
    return Literal(sedona_bytes(shape), BINARY)


def number(value: float) -> Literal:
    return Literal(float(value), DOUBLE)


def ring_shape(at: Sequence[float], radius: float, corners: int, hole: float) -> Any:
    """A star with a hole: nothing like its bounding box."""
    turns = [2 * math.pi * step / corners for step in range(corners)]
    points = [
        (at[0] + radius * (1 if step % 2 else 0.6) * math.cos(turn), at[1] + radius * math.sin(turn))
        for step, turn in enumerate(turns)
    ]
    star = shapely.Polygon(points)
    inner = [(at[0] + (x - at[0]) * hole, at[1] + (y - at[1]) * hole) for x, y in points]
    return shapely.Polygon(points, [inner[::-1]]) if 0 < hole < 1 and star.is_valid else star


_grid = st.integers(-12, 12).map(float)
_places = st.tuples(_grid, _grid)
_stars = st.builds(
    ring_shape, _places, st.sampled_from([0.5, 2.0, 6.0]), st.integers(3, 9), st.sampled_from([0.0, 0.5, 0.9])
)


def shapes() -> st.SearchStrategy[Any]:
    """Points, lines, polygons with holes, several of each, and some that are not valid."""
    return st.one_of(
        _places.map(shapely.Point),
        st.lists(_places, min_size=2, max_size=5, unique=True).map(shapely.LineString),
        _stars,
        _stars,
        st.lists(_stars, min_size=1, max_size=3).map(shapely.union_all).filter(lambda s: s.geom_type != "Point"),
        st.lists(_places, min_size=1, max_size=4).map(shapely.MultiPoint),
        st.lists(st.lists(_places, min_size=2, max_size=3, unique=True), min_size=1, max_size=3).map(
            shapely.MultiLineString
        ),
        st.lists(_places, min_size=4, max_size=6, unique=True).map(shapely.Polygon),
    )


RELATIONS = {
    "st_contains": shapely.contains,
    "st_covers": shapely.covers,
    "st_coveredby": shapely.covered_by,
    "st_crosses": shapely.crosses,
    "st_equals": shapely.equals,
    "st_intersects": shapely.intersects,
    "st_overlaps": shapely.overlaps,
    "st_touches": shapely.touches,
    "st_within": shapely.within,
}
