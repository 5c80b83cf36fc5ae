from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from es_skipping.clauses.evaluate import holds
from es_skipping.errors import IndexDefinitionError
from es_skipping.indexes.base import Target
from es_skipping.indexes.metricdistance import MetricDistance
from es_skipping.indexes.metrics import METRICS
from es_skipping.predicates.tree import Call, Column, Comparison, Literal, NullTest, Operand
from es_skipping.predicates.types import parse_type
from es_skipping.testing import IndexContract, Setup

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
@settings(max_examples=400, deadline=None)
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


@pytest.mark.parametrize(
    ("columns", "origin", "metric"),
    [
        ("xy", [0, 0], "euclidean"),
        ([], [], "euclidean"),
        (["x"], [0, 0], "euclidean"),
        (["x", "y"], [0, math.nan], "euclidean"),
        (["x", "y"], ["0", 0], "euclidean"),
        (["x", "y"], [0, 1e200], "euclidean"),
        (["x", "y"], [0, 0], "manhattan"),
        (["x"], [0], "haversine"),
        (["x", ""], [0, 0], "euclidean"),
    ],
)
def test_mistakes_are_told_at_once(columns: Any, origin: Any, metric: str) -> None:
    with pytest.raises(IndexDefinitionError, match="MetricDistance"):
        MetricDistance(columns, origin, metric)
