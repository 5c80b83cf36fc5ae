from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from es_skipping.clauses.evaluate import holds
from es_skipping.clauses.metadata import Intervals
from es_skipping.errors import IndexDefinitionError
from es_skipping.indexes.base import Target
from es_skipping.indexes.metricdistance import MetricDistance, _ring
from es_skipping.indexes.toolkit.metrics import METRICS
from es_skipping.predicates.functions import Declared
from es_skipping.predicates.tree import Call, Column, Comparison, Literal, NullTest, Operand
from es_skipping.predicates.types import parse_type
from es_skipping.testing import IndexContract, Setup
from tests.examples import examples

DOUBLE = parse_type("double")
X, Y = Column(("x",), DOUBLE), Column(("y",), DOUBLE)


class TestContract(IndexContract):
    setups: ClassVar[Sequence[Setup]] = [
        (MetricDistance(["c0"], [0.5]), (DOUBLE,)),
        (MetricDistance(["c0", "c1"], [52, 4.3], "haversine"), (DOUBLE,)),
    ]
    refused: ClassVar[Sequence[tuple[str, ...]]] = [("string",), ("int",)]


def number(value: float) -> Literal:
    return Literal(value, DOUBLE)


def call(name: str, *arguments: Operand) -> Call:
    return Call(name, arguments, DOUBLE)


def square(operand: Operand) -> Call:
    return call("pow", operand, number(2.0))


def euclidean(*point: float) -> Call:
    """As Spark's optimizer leaves what `MetricDistance.distance` writes."""
    squares = [square(call("subtract", column, number(at))) for column, at in zip((X, Y), point, strict=True)]
    return call("sqrt", call("add", *squares))


def haversine(lat: float, lon: float) -> Call:
    def half(column: Column, at: float) -> Call:
        degrees = call("toradians", call("subtract", column, number(at)))
        return square(call("sin", call("divide", degrees, number(2.0))))

    narrow = call("multiply", number(math.cos(math.radians(lat))), call("cos", call("toradians", X)))
    inner = call("add", half(X, lat), call("multiply", narrow, half(Y, lon)))
    return call("multiply", number(2 * 6371.0088), call("asin", call("sqrt", call("least", number(1.0), inner))))


TREES = {"euclidean": euclidean, "haversine": haversine}
COMPARED = {"<": lambda d, r: d < r, "<=": lambda d, r: d <= r, "=": lambda d, r: d == r, ">": lambda d, r: d > r}


@given(data=st.data())
@examples(400)
def test_no_point_is_ever_lost(data: st.DataObject) -> None:
    metric = data.draw(st.sampled_from(list(TREES)))
    lats = st.one_of(st.floats(-90, 90), st.sampled_from([-90.0, 0.0, 52.0, 90.0]))
    lons = st.one_of(st.floats(-180, 180), st.sampled_from([-180.0, 0.0, 4.0, 180.0]))
    wide = st.one_of(st.floats(-1e9, 1e9), lats)
    points = st.tuples(lats, lons) if metric == "haversine" else st.tuples(wide, wide)
    origin, asked = data.draw(points), data.draw(points)
    rows = data.draw(st.lists(points, min_size=1, max_size=5))
    measure = METRICS[metric].measure
    radius = data.draw(st.one_of(st.sampled_from([measure(row, asked) for row in rows]), st.floats(-1, 20_000)))
    index = MetricDistance(["x", "y"], origin, metric)
    collector = index.collector([DOUBLE])
    metadata = collector.finish(collector.partial([pa.array([measure(row, origin) for row in rows])]))
    target = Target("it", (TREES[metric](*origin),), (DOUBLE,))
    for comparator, passes in COMPARED.items():
        node = Comparison(comparator, TREES[metric](*asked), number(radius))  # type: ignore[arg-type]
        clause = index.label(node, target)
        assert clause is not None
        if holds(clause, {"it": metadata}) is False:  # type: ignore[dict-item]
            assert not any(passes(measure(row, asked), radius) for row in rows)


def verdict(index: MetricDistance, rows: Sequence[Any], node: Any) -> bool | None:
    collector = index.collector([DOUBLE])
    distances = [METRICS[index.metric].measure(row, index.origin) for row in rows]
    metadata = collector.finish(collector.partial([pa.array(distances)]))
    clause = index.label(node, Target("it", (TREES[index.metric](*index.origin),), (DOUBLE,)))
    return None if clause is None else holds(clause, {"it": metadata})  # type: ignore[dict-item]


def test_what_is_skipped() -> None:
    index = MetricDistance(["x", "y"], [0, 0])
    near = [(1.0, 0.0), (0.0, 2.0)]
    assert verdict(index, near, Comparison("<", euclidean(30.0, 40.0), number(40.0))) is False
    assert verdict(index, near, Comparison("<", euclidean(30.0, 40.0), number(49.0))) is True
    assert verdict(index, near, Comparison(">", euclidean(3.0, 4.0), number(8.0))) is False
    assert verdict(index, near, Comparison("<>", euclidean(3.0, 4.0), number(8.0))) is True
    assert verdict(index, near, NullTest(euclidean(3.0, 4.0))) is False
    asked = index.label(
        Comparison("<", euclidean(30.0, 40.0), number(40.0)), Target("it", (euclidean(0.0, 0.0),), (DOUBLE,))
    )
    assert asked is not None
    assert holds(asked, {"it": Intervals(((1.0, 2.0),), nulls=1)}) is False, "a null point is at no distance"
    city = MetricDistance(["x", "y"], [52.09, 5.12], "haversine")
    assert verdict(city, [(52.1, 5.1)], Comparison("<", haversine(48.85, 2.35), number(400.0))) is False
    assert verdict(city, [(52.1, 5.1)], Comparison("<", haversine(48.85, 2.35), number(450.0))) is True


def test_what_is_no_distance_of_these_columns_is_left_alone() -> None:
    index = MetricDistance(["x", "y"], [0, 0])
    for odd in (
        call("sqrt", call("add", square(call("subtract", X, number(1.0))), square(call("subtract", X, number(2.0))))),
        call("sqrt", call("add", *[call("pow", call("subtract", c, number(1.0)), number(3.0)) for c in (X, Y)])),
        euclidean(math.inf, 0.0),
        haversine(1.0, 2.0),
        X,
    ):
        assert verdict(index, [(1.0, 0.0)], Comparison("<", odd, number(1.0))) is None
    for odd_radius in (math.inf, 1e200):
        assert verdict(index, [(1.0, 0.0)], Comparison("<", euclidean(1.0, 1.0), number(odd_radius))) is None
    far = MetricDistance(["x", "y"], [1e149, 0])
    assert verdict(far, [(0.0, 0.0)], Comparison("<", euclidean(-1e200, 0.0), number(1.0))) is not False


def test_a_number_in_the_columns_is_no_coordinate() -> None:
    """``x * 5 * 2``, of which nothing can be told from ``x * 3 * 2``."""

    def scaled(by: float, at: float) -> Call:
        return call(
            "sqrt", square(call("subtract", call("multiply", call("multiply", X, number(by)), number(2.0)), number(at)))
        )

    index = MetricDistance(["x * 5.0D * 2.0D"], [0.0])
    target = Target("it", (scaled(5.0, 0.0),), (DOUBLE,))
    for asked in (scaled(3.0, 0.0), scaled(5.0, 1.0)):
        assert index.label(Comparison("<", asked, number(7.0)), target) is None


def test_beyond_the_poles_a_distance_may_be_no_number() -> None:
    """From (85, -100) that of (95, 80) is the root of a negative number by rounding, from (85, -99) it is not."""
    index = MetricDistance(["x", "y"], [85.0, -99.0], "haversine")
    asked = Comparison(">", haversine(85.0, -100.0), number(30_000.0))
    collector = index.collector([DOUBLE])
    metadata = collector.finish(collector.partial([pa.array([1.0])]))
    clause = index.label(asked, Target("it", (TREES["haversine"](85.0, -99.0),), (DOUBLE,)))
    assert clause is not None and holds(clause, {"it": metadata}) is not False  # type: ignore[dict-item]


# --- metrics that a session declared ------------------------------------------------------------------------------


def taxi(a: float, b: float, c: float, d: float) -> float:
    return abs(a - c) + abs(b - d)


def of_taxi(*arguments: Operand | float, version: str = "1") -> Call:
    found = tuple(number(one) if isinstance(one, float) else one for one in arguments)
    return Call("udf:taxi", found, DOUBLE, (("version", version),))


def asked_of_taxi(rows: Sequence[Any], node: Any, declared: Declared | None) -> bool | None:
    index = MetricDistance(["x", "y"], [0, 0], "taxi")
    collector = index.collector([DOUBLE])
    distances = [None if None in row else taxi(*row, 0.0, 0.0) for row in rows]
    metadata = collector.finish(collector.partial([pa.array(distances, pa.float64())]))
    target = Target("it", (of_taxi(X, Y, 0.0, 0.0),), (DOUBLE,), {"taxi": declared}.get)
    clause = index.label(node, target)
    return None if clause is None else holds(clause, {"it": metadata})  # type: ignore[dict-item]


TAXI = Declared("1", metric=taxi)
NEAR = [(1.0, 0.0), (0.0, 2.0)]


def test_a_declared_metric_skips() -> None:
    index = MetricDistance(["x", "y"], [0, 0.5], "taxi")
    assert index.summarised(["x", "y"]) == ["taxi(x, y, 0.0D, 0.5D)"]
    assert MetricDistance.from_definition(["x", "y"], index.parameters) == index
    three = Literal(3, parse_type("int"))
    for asked in (of_taxi(X, Y, 30.0, 3.0), of_taxi(30.0, 3.0, X, Y), of_taxi(X, Y, 30.0, three)):
        assert asked_of_taxi(NEAR, Comparison("<", asked, number(30.0)), TAXI) is False
        assert asked_of_taxi(NEAR, Comparison("<", asked, number(31.5)), TAXI) is True
        assert asked_of_taxi(NEAR, Comparison(">", asked, number(36.0)), TAXI) is False
    far = Comparison("<", of_taxi(X, Y, 30.0, 3.0), number(30.0))
    assert asked_of_taxi([*NEAR, (None, 1.0)], far, TAXI) is True, "a null may be a distance from elsewhere"
    assert asked_of_taxi(NEAR, NullTest(of_taxi(X, Y, 0.0, 0.0)), TAXI) is False
    assert asked_of_taxi(NEAR, NullTest(of_taxi(X, Y, 3.0, 0.0)), TAXI) is None


@given(st.lists(st.tuples(st.floats(-99, 99), st.floats(-99, 99)), min_size=1, max_size=6), st.data())
@examples(200)
def test_a_declared_metric_loses_no_point(rows: list[tuple[float, float]], data: st.DataObject) -> None:
    point = data.draw(st.tuples(st.floats(-99, 99), st.floats(-99, 99)))
    radius = data.draw(st.one_of(st.sampled_from([taxi(*row, *point) for row in rows]), st.floats(0, 400)))
    for comparator, passes in COMPARED.items():
        node = Comparison(comparator, of_taxi(X, Y, *point), number(radius))  # type: ignore[arg-type]
        if asked_of_taxi(rows, node, TAXI) is False:
            assert not any(passes(taxi(*row, *point), radius) for row in rows)


@pytest.mark.parametrize(
    "declared",
    [
        None,
        Declared("2", metric=taxi),
        Declared("1"),
        Declared("1", metric=lambda *_: -1.0),
        Declared("1", metric=lambda *_: 0.0),  # says something of a point without coordinates
        Declared("1", metric=lambda a, b, c, d: math.inf if a is None else taxi(a, b, c, d)),
        Declared("1", metric=lambda a: a),
    ],
)
def test_what_was_not_declared_a_metric_is_left_alone(declared: Declared | None) -> None:
    assert asked_of_taxi(NEAR, Comparison("<", of_taxi(X, Y, 30.0, 3.0), number(3.0)), declared) is None


def test_other_calls_of_a_declared_metric_are_left_alone() -> None:
    for odd in (
        of_taxi(Y, X, 1.0, 1.0),
        of_taxi(X, Y, 1.0, X),
        of_taxi(X, Y, math.inf, 1.0),
        of_taxi(X, 1.0, Y, 1.0),
        of_taxi(X, Y, 1.0, 1.0, version="2"),
        of_taxi(1.0, 1.0, 1.0, 1.0),
    ):
        assert asked_of_taxi(NEAR, Comparison("<", odd, number(1.0)), TAXI) is None


@pytest.mark.parametrize(
    ("columns", "origin", "metric"),
    [
        ("xy", [0, 0], "euclidean"),
        ([], [], "euclidean"),
        (["x"], [0, 0], "euclidean"),
        (["x", "y"], [0, math.nan], "euclidean"),
        (["x", "y"], ["0", 0], "euclidean"),
        (["x", "y"], [0, 1e200], "euclidean"),
        (["x", "y"], [0, 0], "no metric"),
        (["x"], [0], "haversine"),
        (["x", ""], [0, 0], "euclidean"),
    ],
)
def test_mistakes_are_told_at_once(columns: Any, origin: Any, metric: str) -> None:
    with pytest.raises(IndexDefinitionError, match="MetricDistance"):
        MetricDistance(columns, origin, metric)


def test_rings_around_the_origin() -> None:
    """How far from the origin a point can be that is so far from another one, 10 from the origin."""
    for comparator in ("<", "<="):
        within = _ring(comparator, 10.0, 3.0)
        assert within is not None
        assert 6.99 < within.low < 7.0 and 13.0 < within.high < 13.01  # type: ignore[operator]
    at = _ring("=", 10.0, 3.0)
    assert at is not None
    assert 6.99 < at.low < 7.0 and 13.0 < at.high < 13.01  # type: ignore[operator]
    far = _ring("=", 3.0, 10.0)
    assert far is not None
    assert 6.99 < far.low < 7.0 and 13.0 < far.high < 13.01  # type: ignore[operator]
    for comparator in (">", ">="):
        beyond = _ring(comparator, 3.0, 10.0)
        assert beyond is not None
        assert 6.99 < beyond.low < 7.0 and beyond.high is None  # type: ignore[operator]
    assert _ring("<>", 10.0, 3.0) is None
    for comparator in ("<", "<=", "=", ">", ">="):
        for between in (math.inf, math.nan, 1e150):
            assert _ring(comparator, between, 3.0) is None, "beyond what is reasoned about"
        assert _ring(comparator, 9e149, 3.0) is not None
