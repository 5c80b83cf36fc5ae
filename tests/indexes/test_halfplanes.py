"""Linear conditions on two coordinates: no point for which they are true is outside of the region."""

from __future__ import annotations

import math
from typing import Any

import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st

from es_skipping.clauses.clause import Ask, Clause, Conjunction, Disjunction
from es_skipping.clauses.questions import Meets
from es_skipping.indexes.base import Target
from es_skipping.indexes.geobox import GeoBox
from es_skipping.predicates.normal import all_of, normalise
from es_skipping.predicates.tree import (
    Call,
    Cast,
    Column,
    Comparator,
    Comparison,
    Literal,
    NullTest,
    Operand,
    Predicate,
)
from es_skipping.predicates.types import DataType
from tests.examples import examples
from tests.predicates.rows import truth

DOUBLE = DataType("double")
LAT, LON = Column(("lat",), DOUBLE), Column(("lon",), DOUBLE)
TARGET = Target("geobox(lat,lon)", (LAT, LON), (DOUBLE, DOUBLE))


def number(value: float) -> Literal:
    return Literal(float(value), DOUBLE)


def of(name: str, *arguments: Operand) -> Call:
    return Call(name, arguments, DOUBLE, (("evalMode", "ANSI"),))


def line(a: float, b: float, c: float, comparator: Comparator = ">=") -> Comparison:
    """``a * lon + b * lat + c >= 0``"""
    terms = of("add", of("multiply", number(a), LON), of("multiply", LAT, number(b)))
    return Comparison(comparator, of("add", terms, number(c)), number(0))


def asked(clause: Clause | None, lat: float, lon: float) -> bool:
    """Whether an object with this one point is kept."""
    if clause is None:
        return True
    if isinstance(clause, Conjunction | Disjunction):
        found = [asked(part, lat, lon) for part in clause.clauses]
        return all(found) if isinstance(clause, Conjunction) else any(found)
    assert isinstance(clause, Ask) and isinstance(clause.question, Meets)
    at = (math.inf if math.isnan(one) else one for one in (lat, lon))
    return all(
        (stretch.low is None or stretch.low <= one) and (stretch.high is None or one <= stretch.high)
        for stretch, one in zip(clause.question.box, at, strict=True)
    )


COORDINATES = st.one_of(
    st.floats(-180, 180), st.sampled_from([0.0, 1e-300, 1e300, -1e15, math.inf, -math.inf, math.nan, 0.1 + 0.2])
)
FACTORS = st.one_of(st.floats(-10, 10), st.sampled_from([1.0, -1.0, 1e-12, 1e12, 5e-324, 1e300, 1 / 3])).filter(bool)


def operands(depth: int) -> st.SearchStrategy[Operand]:
    leaf = st.sampled_from([LAT, LON]) | FACTORS.map(number)
    if not depth:
        return leaf
    inner = operands(depth - 1)
    return st.one_of(
        leaf,
        st.builds(of, st.sampled_from(["add", "subtract"]), inner, inner),
        st.builds(of, st.sampled_from(["multiply", "divide"]), inner, FACTORS.map(number)),
        st.builds(of, st.just("multiply"), FACTORS.map(number), inner),
        st.builds(of, st.just("multiply"), inner, inner),
        st.builds(of, st.just("unaryminus"), inner),
    )


CONDITIONS = st.one_of(
    st.builds(line, FACTORS, FACTORS, st.floats(-500, 500), st.sampled_from(["=", "<", "<=", ">", ">="])),
    st.builds(Comparison, st.sampled_from(["=", "<", "<=", ">", ">=", "<>"]), operands(3), operands(3)),
    st.builds(Comparison, st.sampled_from(["<", ">="]), st.sampled_from([LAT, LON]), FACTORS.map(number)),
)


@examples(300)
@given(
    st.lists(CONDITIONS, min_size=2, max_size=5), st.lists(st.tuples(COORDINATES, COORDINATES), min_size=1, max_size=9)
)
def test_no_point_is_lost(conditions: list[Predicate], points: list[tuple[float, float]]) -> None:
    parts = [*conditions, NullTest(LAT, negated=True), NullTest(LON, negated=True)]
    clause = GeoBox("lat", "lon").label(normalise(all_of(map(normalise, parts))), TARGET)
    for lat, lon in points:
        if all(truth(part, {"lat": lat, "lon": lon}) for part in parts):
            assert asked(clause, lat, lon), (lat, lon)


@examples(100)
@given(st.integers(3, 20), st.floats(-170, 170), st.floats(-80, 80), st.floats(0.01, 9), st.floats(0, 6), st.data())
def test_a_polygon_written_by_hand(sides: int, lon: float, lat: float, radius: float, turn: float, data: Any) -> None:
    """Points on its very edges, where rounding decides, are kept too."""
    corners = [
        (math.cos(turn + 2 * math.pi * at / sides), math.sin(turn + 2 * math.pi * at / sides)) for at in range(sides)
    ]
    ring = [(lon + radius * x, lat + radius * y) for x, y in corners]
    parts = []
    for (x0, y0), (x1, y1) in zip(ring, ring[1:] + ring[:1], strict=True):
        parts.append(line(y0 - y1, x1 - x0, -((y0 - y1) * x0 + (x1 - x0) * y0)))
    clause = GeoBox("lat", "lon").label(normalise(all_of(parts)), TARGET)
    share = data.draw(st.floats(0, 1))
    at = data.draw(st.integers(0, sides - 1))
    for x, y in (ring[at], tuple(a + share * (b - a) for a, b in zip(ring[at], ring[at - 1], strict=True)), (lon, lat)):
        if all(truth(part, {"lat": y, "lon": x}) for part in parts):
            assert asked(clause, y, x)
    assert not asked(clause, lat + 2 * radius, lon)
    assert not asked(clause, lat, lon - 2 * radius)


def test_the_corners_of_a_bounding_box_are_left_out() -> None:
    diamond = [line(a, b, 10) for a in (1, -1) for b in (1, -1)]  # |lon| + |lat| <= 10
    clause = GeoBox("lat", "lon").label(normalise(all_of(diamond)), TARGET)
    assert asked(clause, 0, 9.9) and asked(clause, 4.9, 4.9)
    assert not asked(clause, 8, 8) and not asked(clause, -9, 7)
    boxes = [part.question.box for part in clause.clauses]  # type: ignore[union-attr]
    inside = [shapely.box(x.low, y.low, x.high, y.high) for y, x in boxes if None not in (x.low, x.high, y.low, y.high)]
    assert shapely.unary_union([box for box in inside if math.isfinite(box.area)]).area < 1.3 * 200  # of 400


def test_what_is_lost_when_large_terms_cancel_is_kept() -> None:
    """``(lat * 1e15 + lon) - lat * 1e15``: at 45 degrees what is left of a longitude is a multiple of 8."""
    large = of("multiply", LAT, number(1e15))
    lost = of("add", of("subtract", of("add", large, LON), large), of("multiply", LAT, number(1e-9)))
    for comparator, end, lon in (("<", 0.1, 3.0), ("<=", -1, -3.9), (">", 7, 5.0), (">=", -1, -3.0)):
        parts = [Comparison(comparator, lost, number(end))]
        parts += [Comparison(">", LAT, number(-80)), Comparison("<", LAT, number(80))]
        parts += [Comparison(">", LON, number(-10)), Comparison("<", LON, number(10))]
        row = {"lat": 45.1, "lon": lon}
        clause = GeoBox("lat", "lon").label(normalise(all_of(parts)), TARGET)
        if all(truth(part, row) for part in parts):
            assert asked(clause, 45.1, lon), (comparator, lon)


def test_one_line_splits_the_plane() -> None:
    both = all_of([line(1, 1, -100), NullTest(LAT, negated=True)])
    clause = GeoBox("lat", "lon").label(normalise(both), TARGET)
    assert asked(clause, 60, 60) and asked(clause, 1e9, -1e9) and asked(clause, math.nan, 0)
    assert not asked(clause, 0, 0) and not asked(clause, -50, 20)


def test_a_coordinate_that_must_be_null_bounds_nothing() -> None:
    clause = GeoBox("lat", "lon").label(normalise(all_of([line(1, 1, -100), NullTest(LAT)])), TARGET)
    assert clause is not None and asked(clause, 60, 60) and not asked(clause, 0, 0)


def test_bounds_of_one_coordinate_cut_too() -> None:
    both = all_of([line(1, 1, -100), Comparison("<", LAT, number(10))])
    clause = GeoBox("lat", "lon").label(normalise(both), TARGET)
    assert asked(clause, 9, 99) and not asked(clause, 50, 60)


@pytest.mark.parametrize(
    "condition",
    [
        Comparison("<>", of("add", LAT, LON), number(3)),
        Comparison("<", of("multiply", LAT, LON), number(3)),
        Comparison("<", of("divide", number(1), of("add", LAT, LON)), number(3)),
        Comparison("<", of("sqrt", of("add", LAT, LON)), number(3)),
        Comparison("<", of("add", LAT, Column(("other",), DOUBLE)), number(3)),
        Comparison("<", Call("add", (LAT, LON), DataType("decimal(9,2)")), Literal(3, DataType("decimal(9,2)"))),
    ],
)
def test_of_other_conditions_nothing_is_known(condition: Predicate) -> None:
    plain = [NullTest(LAT, negated=True), NullTest(LON, negated=True)]
    index = GeoBox("lat", "lon")
    assert index.label(all_of([condition, *plain]), TARGET) == index.label(all_of(plain), TARGET)


def test_a_row_with_a_null_coordinate_fits_a_condition_on_the_other() -> None:
    lone = Comparison(">", of("multiply", LAT, number(2)), number(3))
    clause = GeoBox("lat", "lon").label(all_of([lone, Comparison("<", LAT, number(9))]), TARGET)
    assert clause is None


def test_integers_are_cast() -> None:
    whole = Column(("lat",), DataType("int"))
    target = Target("geobox(lat,lon)", (whole, LON), (whole.type, DOUBLE))
    below = Comparison("<", of("add", Cast(whole, DOUBLE), LON), number(3))
    bounds = [Comparison(">", LON, number(0)), Comparison(">", whole, Literal(0, whole.type))]
    clause = GeoBox("lat", "lon").label(normalise(all_of([below, *bounds])), target)
    assert asked(clause, 1, 1) and not asked(clause, 3, 3)
