"""Filters with constant geometries: row by row as shapely decides them, under the contract of index types."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pytest
import shapely
from hypothesis import example, given
from hypothesis import strategies as st

from es_skipping.clauses.evaluate import holds
from es_skipping.clauses.metadata import Boxes
from es_skipping.errors import IndexDefinitionError
from es_skipping.indexes.base import Index, Target
from es_skipping.indexes.geobox import GeoBox
from es_skipping.indexes.geometrybox import GeometryBox
from es_skipping.indexes.toolkit.sedona import PACKAGE, function_of, wkb_of
from es_skipping.indexes.toolkit.shapes import cap, cover, region_clause
from es_skipping.predicates.tree import Call, Cast, Column, Comparison, Holds, Literal, Predicate
from es_skipping.predicates.types import DataType, parse_type
from es_skipping.testing import IndexContract, Setup
from es_skipping.testing.rows import Row
from tests.examples import examples
from tests.indexes.geometries import (
    BINARY,
    DOUBLE,
    RELATIONS,
    constant,
    number,
    sedona,
    sedona_bytes,
    shapes,
)

LAT, LON = Column(("c0",), DOUBLE), Column(("c1",), DOUBLE)
SHAPE = Column(("c0",), BINARY)
POINT = sedona("st_point", LON, LAT, type=BINARY)


def leaf(ours: Any, name: str, shape: Any, turned: bool, distance: float, comparator: Any, negated: bool) -> Predicate:
    sides = (ours, constant(shape))
    sides = sides[::-1] if turned else sides
    if name == "st_distance":
        return Comparison(comparator, sedona(name, *sides, type=DOUBLE), number(distance))
    if name == "st_dwithin":
        return Holds(sedona(name, *sides, number(distance)), negated)
    return Holds(sedona(name, *sides), negated)


def leaves(ours: Any) -> Any:
    return st.builds(
        leaf,
        st.just(ours),
        st.sampled_from([*RELATIONS, "st_distance", "st_dwithin"]),
        shapes(),
        st.booleans(),
        st.sampled_from([0.0, 0.5, 3.0, 30.0]),
        st.sampled_from(["<", "<=", ">", "="]),
        st.sampled_from([False, False, True]),
    )


def decided(predicate: Predicate, geometry: Any) -> bool | None:
    """As Sedona would: by what the other argument is, in the order in which they stand."""
    if geometry is None:
        return None
    call = predicate.call if isinstance(predicate, Holds) else predicate.left  # type: ignore[union-attr]
    assert isinstance(call, Call)
    first, second = (
        shapely.from_wkb(wkb_of(argument.value)) if isinstance(argument, Literal) else geometry  # type: ignore[arg-type]
        for argument in call.arguments[:2]
    )
    if isinstance(predicate, Comparison):
        away = 0.0 if geometry.is_empty else shapely.distance(first, second)
        value = predicate.right.value  # type: ignore[union-attr]
        if math.isnan(away):
            return predicate.comparator == ">"
        return {"<": away < value, "<=": away <= value, ">": away > value, "=": away == value}[predicate.comparator]
    assert isinstance(predicate, Holds)
    name = function_of(call)
    assert name is not None
    if name == "st_dwithin":
        limit = call.arguments[2].value  # type: ignore[union-attr]
        return bool(geometry.is_empty or shapely.distance(first, second) <= limit) != predicate.negated
    with np.errstate(invalid="ignore"):  # GEOS before 3.12 leaves the processor's flag set, which NumPy warns of
        return bool(RELATIONS[name](first, second)) != predicate.negated


class TestGeoBox(IndexContract):
    setups: ClassVar[Sequence[Setup]] = [(GeoBox("c0", "c1", boxes=boxes), (DOUBLE, DOUBLE)) for boxes in (1, 3)]
    leaves: ClassVar[Any] = leaves(POINT)

    def cells(self, type: DataType) -> st.SearchStrategy[Any]:
        return st.one_of(st.integers(-15, 15).map(float), st.sampled_from([None, math.nan, math.inf, -0.0]))

    def truth(self, predicate: Predicate, row: Row) -> bool | None:
        x, y = row[LON], row[LAT]
        if x is None or y is None:
            return None
        if not (math.isfinite(x) and math.isfinite(y)):
            return False
        return decided(predicate, shapely.Point(x, y))


class TestGeometryBox(IndexContract):
    setups: ClassVar[Sequence[Setup]] = [(GeometryBox("c0", boxes=boxes), (BINARY,)) for boxes in (1, 3)]
    refused: ClassVar[Sequence[tuple[str, ...]]] = [("string",), ("double",)]
    leaves: ClassVar[Any] = leaves(SHAPE)

    def cells(self, type: DataType) -> st.SearchStrategy[Any]:
        odd = st.sampled_from([None, shapely.to_wkb(shapely.Polygon())])
        return st.one_of(shapes().map(shapely.to_wkb), odd)

    def select(self, index: Index, columns: Sequence[list[Any]], types: Sequence[DataType]) -> list[pa.Array]:
        found = [None if wkb is None else shapely.from_wkb(wkb) for wkb in columns[0]]
        # of an empty geometry Sedona's extents are inside out
        ends = [
            None if shape is None else (1e308, -1e308) * 2 if shape.is_empty else (y0, y1, x0, x1)
            for shape in found
            for x0, y0, x1, y1 in [shape.bounds if shape is not None else (0, 0, 0, 0)]
        ]
        arrays = [pa.array([None if end is None else end[at] for end in ends], pa.float64()) for at in range(4)]
        return [*arrays, pa.array([shape is not None for shape in found], pa.bool_())]

    def truth(self, predicate: Predicate, row: Row) -> bool | None:
        return decided(predicate, None if row[SHAPE] is None else shapely.from_wkb(row[SHAPE]))


@pytest.mark.parametrize(
    "shape", [shapely.Point(9, 9), shapely.LineString([(9, 1), (9, 9)]), shapely.LineString([(1, 9), (9, 9)])]
)
def test_a_point_and_a_straight_line_have_a_box(shape: Any) -> None:
    contract = TestGeometryBox()
    setup = (GeometryBox("c0"), (BINARY,))
    found = contract.collect(setup, [[(shapely.to_wkb(shape),)]])
    far, near = (Holds(sedona("st_intersects", SHAPE, constant(shapely.Point(*at)))) for at in ((0, 0), (9, 9)))
    assert contract.verdict(setup, found, far) is False
    assert contract.verdict(setup, found, near) is not False
    assert setup[0].value_type(setup[1]) == DOUBLE, "the type of the sides, not of the column"


# --- by their true shape ----------------------------------------------------------------------------------------------


def kept(points: list[tuple[float, float]], predicate: Predicate, boxes: int = 1) -> bool:
    contract = TestGeoBox()
    setup = (GeoBox("c0", "c1", boxes=boxes), (DOUBLE, DOUBLE))
    return contract.verdict(setup, contract.collect(setup, [[(y, x) for x, y in points]]), predicate) is not False


L_SHAPE = shapely.from_wkt("POLYGON((0 0, 10 0, 10 1, 1 1, 1 10, 0 10, 0 0))")
FRAME = shapely.from_wkt("POLYGON((0 0, 10 0, 10 10, 0 10, 0 0), (1 1, 9 1, 9 9, 1 9, 1 1))")
ISLANDS = shapely.union(shapely.box(-170, 0, -160, 10), shapely.box(160, 0, 170, 10))
TRIANGLE = shapely.from_wkt("POLYGON((0 0, 10 0, 10 10, 0 0))")


@pytest.mark.parametrize(
    ("shape", "points", "expected"),
    [
        (L_SHAPE, [(5, 5), (9, 9)], False),  # inside its bounding box
        (L_SHAPE, [(5, 0.5), (9, 0.9)], True),
        (FRAME, [(3, 3), (7, 7)], False),  # in the hole
        (FRAME, [(3, 3), (9.5, 7)], True),
        (ISLANDS, [(-100, 5), (100, 5)], False),  # between the two
        (ISLANDS, [(-165, 5)], True),
        (TRIANGLE, [(1, 5), (3, 9)], False),
        (TRIANGLE, [(10, 10)], True),
        # no way round the globe in the plane: Sedona's answer is the plane's too
        (shapely.box(170, 0, 190, 10), [(-175, 5)], False),
        (shapely.box(170, 0, 190, 10), [(175, 5)], True),
        (shapely.box(-180, 80, 180, 90), [(12, 89.9)], True),
        (shapely.box(-180, 80, 180, 90), [(12, 79)], False),
    ],
)
def test_polygons_are_pruned_by_their_true_shape(shape: Any, points: Any, expected: bool) -> None:
    assert kept(points, Holds(sedona("st_contains", constant(shape), POINT))) is expected
    assert kept(points, Holds(sedona("st_within", POINT, constant(shape)))) is expected
    assert kept(points, Holds(sedona("st_contains", constant(shape), POINT), negated=True)) is True


def test_who_is_trusted() -> None:
    shape = constant(shapely.box(0, 0, 1, 1))
    far = [(50.0, 50.0)]
    assert not kept(far, Holds(sedona("st_intersects", shape, POINT)))
    for stranger in (
        Call("st_intersects", (shape, POINT), DOUBLE),
        Call("com.example.st_intersects", (shape, POINT), DOUBLE),
        Call("st_intersects", (shape, POINT), DOUBLE, (("package", PACKAGE),)),
        Call("udf:st_intersects", (shape, POINT), DOUBLE, (("version", "1"),)),
        sedona("st_disjoint", shape, POINT),
        sedona("st_intersects", shape, sedona("st_point", LAT, LON)),
        sedona("st_intersects", shape, sedona("st_buffer", POINT, number(1))),
        sedona("st_intersects", Literal(b"\x32nonsense", BINARY), POINT),
    ):
        assert kept(far, Holds(stranger))


def test_coordinates_that_spark_casts_and_reference_systems() -> None:
    decimal = parse_type("decimal(9,6)")
    lat, lon = Column(("c0",), decimal), Column(("c1",), decimal)
    target = Target("it", (lat, lon), (decimal, decimal))
    point = sedona("st_setsrid", sedona("st_point", Cast(lon, DOUBLE), Cast(lat, DOUBLE)), Literal(4326, LAT.type))
    node = Holds(sedona("st_intersects", point, constant(shapely.box(0, 0, 1, 1))))
    clause = GeoBox("c0", "c1").label(node, target)
    assert clause is not None
    assert holds(clause, {"it": Boxes((((5.0, 6.0), (5.0, 6.0)),))}) is False
    assert holds(clause, {"it": Boxes((((1.0, 6.0), (0.5, 6.0)),))}) is True


@given(shapes(), st.sampled_from([0.0, 0.3, 2.0]), st.data())
@examples(150)
def test_a_cover_holds_the_shape(shape: Any, distance: float, data: st.DataObject) -> None:
    boxes = cover(shapely.to_wkb(shape), distance)
    assert boxes is not None
    union = shapely.union_all([shapely.box(x0, y0, x1, y1) for x0, x1, y0, y1 in boxes])
    assert union.buffer(1e-9).covers(shape if shape.is_valid else shapely.envelope(shape))
    point = shapely.Point(data.draw(st.floats(-16, 16)), data.draw(st.floats(-16, 16)))
    if shape.is_valid and shapely.distance(point, shape) <= distance:
        assert shapely.intersects(union, point)


def test_a_distance_too_small_for_a_number_counts_as_none() -> None:
    boxes = cover(shapely.to_wkb(shapely.Point(0, 0)))
    assert boxes is not None
    assert shapely.distance(shapely.Point(0, 0), shapely.Point(0, 4.9e-216)) == 0
    assert any(x0 <= 0 <= x1 and y0 <= 4.9e-216 <= y1 for x0, x1, y0, y1 in boxes)


@given(shapes(), st.sampled_from([0, 4326]))
def test_sedonas_form_is_read(shape: Any, srid: int) -> None:
    read = wkb_of(sedona_bytes(shape, srid))
    assert read is not None
    assert shapely.from_wkb(read).equals_exact(shape, 0.0)
    assert shapely.from_wkb(wkb_of(sedona_bytes(shapely.force_3d(shape, 7.0)))).equals_exact(shape, 0.0)  # type: ignore[arg-type]


@given(shapes(), st.data())
def test_what_is_not_sedonas_form_is_not_understood(shape: Any, data: st.DataObject) -> None:
    whole = sedona_bytes(shape)
    cut = data.draw(st.integers(0, len(whole) - 1))
    assert wkb_of(whole[:cut]) is None
    assert wkb_of(whole + b"\x00\x00\x00\x00") is None


def test_of_empty_and_endless_shapes_nothing_is_said() -> None:
    assert cover(shapely.to_wkb(shapely.Polygon())) is None
    assert cover(shapely.to_wkb(shapely.Point(math.inf, 0))) is None
    assert cover(shapely.to_wkb(shapely.Point(0, 0)), math.inf) is None
    assert cover(shapely.to_wkb(shapely.Point(0, 0)), math.nan) is None


# --- on the globe -----------------------------------------------------------------------------------------------------


def haversine(one: tuple[float, float], other: tuple[float, float]) -> float:
    """Degrees between two places given as longitude and latitude."""
    (x0, y0), (x1, y1) = (tuple(map(math.radians, place)) for place in (one, other))
    a = math.sin((y1 - y0) / 2) ** 2 + math.cos(y0) * math.cos(y1) * math.sin((x1 - x0) / 2) ** 2
    return math.degrees(2 * math.asin(math.sqrt(min(1.0, a))))


@given(
    st.floats(-180, 180),
    st.one_of(st.floats(-90, 90), st.sampled_from([-90.0, 0.0, 89.9, 90.0])),
    st.one_of(st.floats(0, 5), st.floats(0, 180)),
    st.lists(st.tuples(st.floats(-400, 400), st.floats(-90, 90)), max_size=5),
    st.floats(0, 360),
)
@example(178.0, 0.0, 79.0, [(-103.0, 0.0)], 0.0)  # 463 degrees to the west
@examples(500)
def test_a_cap_holds_what_is_near(x: float, y: float, angle: float, places: Any, bearing: float) -> None:
    boxes = cap(x, y, angle)
    assert boxes is not None
    # beside random places, one at the very edge
    theta, phi, turn = math.radians(angle), math.radians(y), math.radians(bearing)
    edge_y = math.asin(
        max(-1, min(1, math.sin(phi) * math.cos(theta) + math.cos(phi) * math.sin(theta) * math.cos(turn)))
    )
    edge_x = x + math.degrees(
        math.atan2(math.sin(turn) * math.sin(theta) * math.cos(phi), math.cos(theta) - math.sin(phi) * math.sin(edge_y))
    )
    for place in [*places, (edge_x, math.degrees(edge_y))]:
        if haversine((x, y), place) <= angle:
            for turned in (place[0], place[0] - 360, place[0] + 360):
                if abs(turned) <= 540:
                    assert any(w <= turned <= e and s <= place[1] <= n for w, e, s, n in boxes), place


def sphere(
    places: list[tuple[float, float]], x: float, y: float, metres: float, name: str = "st_distancesphere"
) -> bool:
    call = sedona(name, POINT, constant(shapely.Point(x, y)), type=DOUBLE)
    return kept(places, Comparison("<", call, number(metres)))


@pytest.mark.parametrize("name", ["st_distancesphere", "st_distancespheroid"])
def test_distances_on_the_globe(name: str) -> None:
    fiji, alaska, kiel = (179.9, -17.0), (-179.9, 52.0), (10.1, 54.3)
    assert sphere([(-179.9, -17.0)], *fiji, 50_000, name)  # across the date line
    assert not sphere([(-179.0, -17.0)], *fiji, 50_000, name)
    assert sphere([(179.9, 52.0)], *alaska, 20_000, name)
    assert sphere([(-120.0, 89.9)], 60.0, 89.9, 30_000, name)  # over the pole
    assert not sphere([(-120.0, 89.0)], 60.0, 89.9, 30_000, name)
    assert not sphere([(12.0, 54.3)], *kiel, 100_000, name)
    assert sphere([(11.0, 54.3)], *kiel, 100_000, name)
    assert not sphere([(11.4, 55.1)], *kiel, 100_000, name)  # in the corner of the bounding box


def test_within_a_distance_on_the_globe_or_in_the_plane() -> None:
    other = constant(shapely.Point(0, 0))
    flags = {None: False, False: False, True: True}
    for flag, globe in flags.items():
        more = () if flag is None else (Literal(flag, parse_type("boolean")),)
        node = Holds(sedona("st_dwithin", POINT, other, number(5), *more))
        assert kept([(3.0, 3.0)], node) is not globe  # five degrees, or five metres
        assert not kept([(4.5, 4.5)], node)


def test_the_clause_asks_for_few_boxes() -> None:
    comb = shapely.union_all([shapely.box(x, 0, x + 0.4, 10) for x in range(200)])
    boxes = cover(shapely.to_wkb(comb))
    assert boxes is not None
    assert len(boxes) <= 32
    clause = region_clause(Target("it", (LAT, LON), (DOUBLE, DOUBLE)), boxes)
    assert len(clause.clauses) <= 34  # type: ignore[union-attr]


FAR, NEAR = [(50.0, 50.0)], [(0.5, 0.5)]
CORNER = constant(shapely.Point(0, 0))


def distance_of(name: str, *more: Any) -> Call:
    return sedona(name, POINT, CORNER, *more, type=DOUBLE)


@pytest.mark.parametrize(
    ("node", "understood"),
    [
        (Holds(sedona("st_dwithin", POINT, CORNER, number(2))), True),
        (Holds(sedona("st_dwithin", POINT, CORNER, number(2), Literal(False, DataType("boolean")))), True),
        (Holds(sedona("st_dwithin", POINT, CORNER, number(200_000), Literal(True, DataType("boolean")))), True),
        (Holds(sedona("st_dwithin", POINT, CORNER)), False),
        (Holds(sedona("st_dwithin", POINT, CORNER, number(2), number(2))), False),
        (Holds(sedona("st_dwithin", POINT, CORNER, number(2), number(2), number(2))), False),
        (Holds(sedona("st_dwithin", POINT, POINT, number(2))), False),
        (Holds(sedona("st_dwithin", POINT, CORNER, number(2)), negated=True), False),
        (Holds(sedona("st_intersects", POINT, CORNER, CORNER)), False),
        (Holds(sedona("st_intersects", POINT)), False),
        (Holds(sedona("st_intersects", sedona("st_point", LON, type=BINARY), CORNER)), False),
        (Holds(sedona("st_intersects", CORNER, CORNER)), False),
        (Comparison("<", distance_of("st_distance"), number(2)), True),
        (Comparison("<=", distance_of("st_distance"), number(2)), True),
        (Comparison("=", distance_of("st_distance"), number(2)), True),
        (Comparison("<", distance_of("st_distance"), number(-1)), False),
        (Comparison("<", distance_of("st_distance"), number(-0.5)), False),
        (Comparison("<", distance_of("st_distancesphere"), number(-0.5)), False),
        (Comparison("<", sedona("st_distance", CORNER, type=DOUBLE), number(2)), False),
        (Comparison(">", distance_of("st_distance"), number(2)), False),
        (Comparison("<>", distance_of("st_distance"), number(2)), False),
        (Comparison("<", distance_of("st_distance", number(1)), number(2)), False),
        (Comparison("<", distance_of("st_distancespheroid"), number(200_000)), True),
        (Comparison("<", distance_of("st_distancespheroid", number(1)), number(200_000)), False),
        (Comparison("<", distance_of("st_distancesphere"), number(200_000)), True),
        (Comparison("<", distance_of("st_distancesphere", number(6_000_000)), number(200_000)), True),
        (Comparison("<", distance_of("st_distancesphere", number(0)), number(200_000)), False),
        (Comparison("<", distance_of("st_distancesphere", number(-1)), number(200_000)), False),
        (Comparison("<", distance_of("st_distancesphere", number(1), number(1)), number(200_000)), False),
        (Comparison("<", distance_of("st_area"), number(2)), False),
        (Comparison("<", Call("st_distance", (POINT, CORNER), DOUBLE), number(2)), False),
    ],
)
def test_which_relations_are_understood(node: Predicate, understood: bool) -> None:
    assert kept(FAR, node) is not understood
    assert kept(NEAR, node)


def test_a_radius_of_ones_own() -> None:
    """On a small globe the same way is a wide angle."""
    small = Comparison("<", distance_of("st_distancesphere", number(1_000)), number(600))
    assert kept([(30.0, 0.0)], small) and not kept([(40.0, 0.0)], small)


def test_a_line_has_no_distance_on_the_globe() -> None:
    line = constant(shapely.LineString([(0, 0), (1, 1)]))
    for name in ("st_distancesphere", "st_distancespheroid"):
        assert kept(FAR, Comparison("<", sedona(name, POINT, line, type=DOUBLE), number(10)))


@pytest.mark.parametrize("boxes", [0, -1, True, 1.5])
def test_how_many_boxes_there_may_not_be(boxes: Any) -> None:
    with pytest.raises(IndexDefinitionError, match=r"^GeometryBox: boxes is "):
        GeometryBox("shape", boxes=boxes)
    with pytest.raises(IndexDefinitionError, match=r"^GeoBox: boxes is "):
        GeoBox("lat", "lon", boxes=boxes)


@pytest.mark.parametrize("column", ["", None, 5])
def test_which_columns_there_may_not_be(column: Any) -> None:
    with pytest.raises(IndexDefinitionError, match=r"^GeometryBox: geometry is "):
        GeometryBox(column)
    with pytest.raises(IndexDefinitionError, match=r"^GeoBox: lat is "):
        GeoBox(column, "lon")
    with pytest.raises(IndexDefinitionError, match=r"^GeoBox: lon is "):
        GeoBox("lat", column)


def test_one_box_for_geometries_unless_more_are_wanted() -> None:
    assert GeometryBox("shape") == GeometryBox("shape", boxes=1)


EVERYWHERE = Boxes((((-math.inf, math.inf), (-math.inf, math.inf)),))


@pytest.mark.parametrize(
    "ends", [(2, 1, 0, 9), (0, 9, 2, 1), (None, None, 0, 9), (0, 9, None, None), (math.nan, math.nan, 0, 9)]
)
def test_a_geometry_whose_extent_is_not_known_lies_everywhere(ends: Any) -> None:
    """One side that is inside out or missing is enough."""
    known = (0, 1, 0, 1)
    columns = [pa.array(pair, pa.float64()) for pair in zip(known, ends, strict=True)]
    collector = GeometryBox("c0").collector((BINARY,))
    assert collector.finish(collector.partial([*columns, pa.array([True, True])])) == EVERYWHERE
    assert collector.finish(collector.partial([*columns, pa.array([True, False])])) == Boxes((((0, 1), (0, 1)),))


def test_one_that_lies_everywhere_is_all_that_is_remembered() -> None:
    known = (0, 5, 1), (1, 6, 2), (0, 5, 1), (1, 6, 0)  # the last one ends before it begins
    columns = [pa.array(ends, pa.float64()) for ends in known]
    collector = GeometryBox("c0", boxes=3).collector((BINARY,))
    assert collector.finish(collector.partial([*columns, pa.array([True, True, True])])) == EVERYWHERE


EVERY_KIND = [
    shapely.Point(1, 2),
    shapely.LineString([(0, 0), (1, 2), (3, 1)]),
    FRAME,
    shapely.MultiPoint([(0, 0), (1, 2)]),
    shapely.MultiLineString([[(0, 0), (1, 2)], [(5, 5), (6, 6), (7, 5)]]),
    shapely.MultiPolygon([FRAME, shapely.box(20, 20, 30, 30)]),
]


@pytest.mark.parametrize("shape", EVERY_KIND, ids=lambda shape: shape.geom_type)
def test_a_geometry_is_read_whole_or_not_at_all(shape: Any) -> None:
    for solid in (shape, shapely.force_3d(shape, 7.0)):
        data = sedona_bytes(solid)
        wkb = wkb_of(data)
        assert wkb is not None
        assert shapely.equals_exact(shapely.from_wkb(wkb), shape)
        for length in range(len(data)):
            assert wkb_of(data[:length]) is None, length
        assert wkb_of(data + b"\x01\x00\x00\x00") is None
        assert wkb_of(bytes([data[0] & 0x0F | 0x70]) + data[1:]) is None, "no such shape"
        assert wkb_of(bytes([data[0] & 0xF1]) + data[1:]) is None, "no such coordinates"
    lengths = data[8 + 24 * len(shapely.get_coordinates(shape)) :]
    for at in range(0, len(lengths), 4):
        where = len(data) - len(lengths) + at
        for wrong in (-1, 1 << 24, 0, 99):
            assert wkb_of(data[:where] + wrong.to_bytes(4, "little", signed=True) + data[where + 4 :]) is None


def test_an_empty_geometry_is_not_read() -> None:
    assert wkb_of(sedona_bytes(shapely.Polygon())) is None
    assert wkb_of(b"") is None
    point = sedona_bytes(shapely.Point(1, 2))
    two = point[:4] + (2).to_bytes(4, "little") + point[8:] + point[8:]
    assert wkb_of(two) is None, "a point of two coordinates"


def test_an_empty_part_is_read() -> None:
    box = sedona_bytes(shapely.MultiPolygon([shapely.box(0, 0, 1, 2)]))
    lengths = b"".join(length.to_bytes(4, "little") for length in (2, 0, 1, 5))
    wkb = wkb_of(box[: -4 * 3] + lengths)
    assert wkb is not None
    assert shapely.from_wkb(wkb).bounds == (0, 0, 1, 2)


@pytest.mark.parametrize(("code", "dimensions"), [(1, 2), (2, 3), (3, 3), (4, 4)])
def test_coordinates_with_height_and_measure(code: int, dimensions: int) -> None:
    numbers = (1.0, 2.0, 7.0, 8.0)[:dimensions]
    data = bytes([1 << 4 | code << 1, 0, 0, 0]) + struct.pack(f"<i{dimensions}d", 1, *numbers)
    assert wkb_of(data) == shapely.to_wkb(shapely.Point(1, 2), byte_order=1)
    assert wkb_of(data + struct.pack("<d", 9.0)) is None
    assert wkb_of(bytes([1 << 4 | 5 << 1, 0, 0, 0]) + data[4:]) is None


def test_an_index_of_cast_coordinates() -> None:
    """Whether the index has the cast or what is cast, and the filter the one or the other."""
    number_ = parse_type("bigint")
    lat, lon = Column(("c0",), number_), Column(("c1",), number_)
    casts = Cast(lon, DOUBLE, "ANSI"), Cast(lat, DOUBLE, "ANSI")
    node = Holds(sedona("st_intersects", sedona("st_point", *casts), constant(shapely.box(0, 0, 1, 1))))
    index = GeoBox("c0", "c1")
    assert index.label(node, Target("it", (lat, lon), (number_, number_))) is not None
    assert index.label(node, Target("it", (casts[1], casts[0]), (DOUBLE, DOUBLE))) is not None
    assert index.label(node, Target("it", (casts[0], casts[1]), (DOUBLE, DOUBLE))) is None
    other = Holds(sedona("st_intersects", sedona("st_point", lon, lat), constant(shapely.box(0, 0, 1, 1))))
    assert index.label(other, Target("it", (lat, lon), (number_, number_))) is not None
    text = Cast(lon, parse_type("string"), "ANSI"), casts[1]
    odd = Holds(sedona("st_intersects", sedona("st_point", *text), constant(shapely.box(0, 0, 1, 1))))
    assert index.label(odd, Target("it", (lat, lon), (number_, number_))) is None
