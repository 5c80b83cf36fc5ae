from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from es_skipping.clauses.clause import SKIP, Ask
from es_skipping.clauses.metadata import Boxes
from es_skipping.clauses.questions import Meets, Range
from es_skipping.errors import IndexDefinitionError
from es_skipping.indexes.base import Target
from es_skipping.indexes.geobox import GeoBox
from es_skipping.predicates.normal import normalise
from es_skipping.predicates.tree import (
    And,
    Column,
    Comparison,
    IsIn,
    Literal,
    NullTest,
    Or,
    Predicate,
)
from es_skipping.predicates.types import parse_type
from es_skipping.testing import IndexContract, Setup
from es_skipping.testing.rows import arrow_array

DOUBLE = parse_type("double")
LAT, LON = Column(("c0",), DOUBLE), Column(("c1",), DOUBLE)
NAN, INF = math.nan, math.inf

_TYPES = [
    ("double", "double"),
    ("float", "double"),
    ("bigint", "bigint"),
    ("decimal(38,0)", "decimal(19,2)"),
    ("tinyint", "decimal(38,38)"),
    ("int", "smallint"),
]


class TestContract(IndexContract):
    setups: ClassVar[Sequence[Setup]] = [
        (GeoBox("c0", "c1", boxes=boxes), (parse_type(one), parse_type(other)))
        for one, other in _TYPES
        for boxes in (1, 3)
    ]
    refused: ClassVar[Sequence[tuple[str, ...]]] = [
        ("string", "double"),
        ("double", "date"),
        ("boolean", "int"),
    ]

    def select(self, index: Any, columns: Any, types: Any) -> list[pa.Array]:
        # Python's float(Decimal) rounds to nearest, as Spark's cast does.
        plain = [
            [None if v is None else float(v) for v in column] if type.name in ("decimal", "bigint") else column
            for column, type in zip(columns, types, strict=True)
        ]
        return [
            pa.array(column, pa.float64()) if type.name in ("decimal", "bigint") else arrow_array(column, type)
            for column, type in zip(plain, types, strict=True)
        ]


def collect(boxes: int, *batches: list[tuple[Any, Any]]) -> Any:
    return TestContract().collect((GeoBox("a", "b", boxes=boxes), (DOUBLE, DOUBLE)), batches)


def between(column: Column, low: float, high: float) -> Predicate:
    bounds = Literal(float(low), DOUBLE), Literal(float(high), DOUBLE)
    return And((Comparison(">=", column, bounds[0]), Comparison("<=", column, bounds[1])))


def at(lat: float, lon: float) -> Predicate:
    return And(tuple(Comparison("=", c, Literal(float(v), DOUBLE)) for c, v in ((LAT, lat), (LON, lon))))


PARIS, TOKYO = (48.9, 2.3), (35.7, 139.7)


@pytest.mark.parametrize(
    ("boxes", "points", "predicate", "kept"),
    [
        (1, [PARIS, TOKYO], at(40.0, 80.0), True),
        (2, [PARIS, TOKYO], at(40.0, 80.0), False),
        (2, [PARIS, TOKYO], at(*TOKYO), True),
        (2, [PARIS, TOKYO], And((between(LAT, 30, 40), between(LON, 100, 180))), True),
        (2, [PARIS, TOKYO], And((between(LAT, 40, 50), between(LON, 100, 180))), False),
        # across the date line
        (
            2,
            [PARIS, TOKYO],
            And(
                (
                    between(LAT, 0, 90),
                    Or((between(LON, 170, 180), between(LON, -180, -170))),
                )
            ),
            False,
        ),
        (
            2,
            [PARIS, TOKYO],
            And(
                (
                    between(LAT, 0, 90),
                    Or((between(LON, 130, 180), between(LON, -180, -170))),
                )
            ),
            True,
        ),
        (2, [PARIS, TOKYO], Or((at(0, 0), at(1, 1))), False),
        (2, [PARIS, TOKYO], Or((at(0, 0), at(*PARIS))), True),
        (
            2,
            [PARIS, TOKYO],
            And((IsIn(LAT, (1.0, 48.9)), IsIn(LON, (1.0, 139.7)))),
            False,
        ),
        (2, [PARIS, TOKYO], And((IsIn(LAT, (1.0, 48.9)), IsIn(LON, (1.0, 2.3)))), True),
        # no bound on an axis, but not null
        (
            2,
            [PARIS, TOKYO],
            And((NullTest(LON, negated=True), between(LAT, 36, 48))),
            False,
        ),
        # one coordinate alone: a row whose other coordinate is null could satisfy it
        (1, [PARIS, (10.0, None)], between(LAT, 9, 11), True),
        (1, [PARIS, (10.0, None)], And((between(LAT, 9, 11), NullTest(LON))), True),
        (
            1,
            [PARIS, (10.0, None)],
            And((between(LAT, 9, 11), between(LON, 0, 180))),
            False,
        ),
        (1, [PARIS, (10.0, None)], Or((between(LAT, 9, 11), at(0, 0))), True),
        (
            1,
            [PARIS, (10.0, None)],
            And((between(LAT, 9, 11), Or((NullTest(LON), between(LON, 0, 1))))),
            True,
        ),
        # a contradiction
        (
            1,
            [PARIS],
            And((between(LAT, 0, 90), between(LON, 0, 1), between(LON, 2, 3))),
            False,
        ),
        # NaN is greater than everything
        (
            1,
            [(1.0, NAN)],
            And((between(LAT, 0, 2), Comparison(">", LON, Literal(1e308, DOUBLE)))),
            True,
        ),
        (
            1,
            [(1.0, NAN)],
            And((between(LAT, 0, 2), Comparison("=", LON, Literal(NAN, DOUBLE)))),
            True,
        ),
        (
            1,
            [(1.0, 5.0)],
            And((between(LAT, 0, 2), Comparison("=", LON, Literal(NAN, DOUBLE)))),
            False,
        ),
        (
            1,
            [(1.0, NAN)],
            And((between(LAT, 0, 2), between(LON, -1e308, 1e308))),
            False,
        ),
        (2, [(-0.0, 0.0)], at(0.0, -0.0), True),
        (1, [], at(0.0, 0.0), False),
    ],
)
def test_what_is_kept(boxes: int, points: list[Any], predicate: Predicate, kept: bool) -> None:
    setup = (GeoBox("c0", "c1", boxes=boxes), (DOUBLE, DOUBLE))
    assert (TestContract().verdict(setup, collect(boxes, points), predicate) is not False) is kept


def label(predicate: Predicate, type: str = "double") -> Any:
    columns = tuple(Column(column.path, parse_type(type)) for column in (LAT, LON))
    return GeoBox("c0", "c1").label(normalise(predicate), Target("it", columns, (parse_type(type),) * 2))


def test_bounds_are_rounded_outward() -> None:
    exact = 2**53 + 1
    bigint = parse_type("bigint")
    x, y = Column(("c0",), bigint), Column(("c1",), bigint)
    clause = label(
        And(
            (
                Comparison("=", x, Literal(exact, bigint)),
                Comparison(">", y, Literal(exact, bigint)),
            )
        ),
        "bigint",
    )
    assert clause == Ask("it", Meets((Range(2.0**53, 2.0**53 + 2), Range(2.0**53, None))))


def test_long_lists_ask_a_few_larger_boxes() -> None:
    far = tuple(float(v) for v in range(1000, 2000, 10))
    clause = label(And((IsIn(LAT, (*far, -5.0)), IsIn(LON, far))))
    assert len(clause.clauses) <= 32
    boxes = [ask.question.box for ask in clause.clauses]
    assert {box[0] for box in boxes} >= {Range(-5.0, -5.0)}, "the widest gap stays"
    assert all(any(b[0].low <= a <= b[0].high and b[1].low <= o <= b[1].high for b in boxes) for a in far for o in far)


def test_a_contradiction_skips_everything() -> None:
    assert label(And((between(LAT, 5, 4), between(LON, 0, 1)))) == SKIP


def test_one_coordinate_alone_has_no_label() -> None:
    assert label(between(LAT, 0, 1)) is None
    assert label(And((between(LAT, 0, 1), NullTest(LON)))) is None
    assert label(Comparison("=", LAT, LON)) is None


def test_boxes_hold_the_numbers_that_a_double_cannot() -> None:
    exact, types = 2**53 + 1, [parse_type("bigint")] * 2
    collector = GeoBox("a", "b").collector(types)
    boxes = collector.finish(collector.partial([pa.array([float(exact)]), pa.array([float(-exact)])])).boxes
    (((low, high), (low2, high2)),) = boxes
    assert low <= exact <= high
    assert low2 <= -exact <= high2


def test_null_points_are_in_no_box() -> None:
    assert collect(2, [(1.0, None), (None, 2.0), (None, None)], []) == Boxes(())
    assert collect(2, [(1.0, None), (3.0, 2.0)]) == Boxes((((3.0, 3.0), (2.0, 2.0)),))
    assert collect(1, [(NAN, -INF)]) == Boxes((((INF, INF), (-INF, -INF)),))


@given(
    st.lists(
        st.tuples(st.floats(), st.floats())
        | st.sampled_from([(0.0, 0.0), (5e-324, 1.7e308), (-1.7e308, 1.0), (NAN, -INF)]),
        min_size=1,
        max_size=60,
    ),
    st.integers(1, 8),
)
@settings(max_examples=300, deadline=None)
def test_every_point_is_in_a_box(points: list[tuple[float, float]], boxes: int) -> None:
    cover = collect(boxes, points[::2], points[1::2]).boxes
    assert 1 <= len(cover) <= boxes
    for point in points:
        lat, lon = (INF if math.isnan(v) else v for v in point)
        assert any(a <= lat <= b and c <= lon <= d for (a, b), (c, d) in cover)


@pytest.mark.parametrize("boxes", [0, -1, 1.0, None])
def test_the_number_of_boxes_is_positive(boxes: Any) -> None:
    with pytest.raises(IndexDefinitionError, match="boxes"):
        GeoBox("lat", "lon", boxes=boxes)
