from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from decimal import Decimal
from typing import Any, ClassVar

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from es_skipping.clauses.clause import SKIP, Ask, Disjunction
from es_skipping.clauses.evaluate import holds
from es_skipping.clauses.metadata import Boxes
from es_skipping.clauses.questions import Meets, Range
from es_skipping.errors import IndexDefinitionError
from es_skipping.indexes.base import Target
from es_skipping.indexes.geobox import GeoBox, _above, _below, _coarser, _stretches
from es_skipping.indexes.toolkit.boxes import _CELLS, BoxCollector
from es_skipping.predicates.normal import normalise
from es_skipping.predicates.tree import (
    NEVER,
    And,
    Call,
    Cast,
    Column,
    Comparison,
    IsIn,
    Literal,
    NullTest,
    Or,
    Predicate,
)
from es_skipping.predicates.types import parse_type
from es_skipping.predicates.value_sets import ValueSet
from es_skipping.testing import IndexContract, Setup
from es_skipping.testing.rows import arrow_array
from tests.examples import examples

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
    at = Comparison("=", x, Literal(exact, bigint))
    for comparator, least in ((">=", 2.0**53), (">", 2.0**53 + 2)):
        clause = label(And((at, Comparison(comparator, y, Literal(exact, bigint)))), "bigint")  # type: ignore[arg-type]
        assert clause == Ask("it", Meets((Range(2.0**53, 2.0**53 + 2), Range(least, None))))


def test_boxes_of_decimals_are_a_few_doubles_wider() -> None:
    collector = GeoBox("c0", "c1").collector([parse_type("decimal(4,1)")] * 2)
    points = [pa.array([Decimal("1.5"), Decimal("2.5")])] * 2
    (box,) = collector.finish(collector.partial(points)).boxes
    for low, high in box:
        assert 1.5 - 1e-9 < low < 1.5
        assert 2.5 < high < 2.5 + 1e-9


def test_long_lists_ask_a_few_larger_boxes() -> None:
    far = tuple(float(v) for v in range(1000, 2000, 10))
    clause = label(And((IsIn(LAT, (*far, -5.0)), IsIn(LON, far))))
    assert len(clause.clauses) <= 32
    boxes = [ask.question.box for ask in clause.clauses]
    assert {box[0] for box in boxes} >= {Range(-5.0, -5.0)}, "the widest gap stays"
    assert all(any(b[0].low <= a <= b[0].high and b[1].low <= o <= b[1].high for b in boxes) for a in far for o in far)


def test_a_contradiction_skips_everything() -> None:
    contradiction = And((between(LAT, 5, 4), between(LON, 0, 1)))
    assert normalise(contradiction) == NEVER, "most are seen before an index is asked"
    assert GeoBox("c0", "c1").label(contradiction, Target("it", (LAT, LON), (DOUBLE, DOUBLE))) == SKIP


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
@examples(300)
def test_every_point_is_in_a_box(points: list[tuple[float, float]], boxes: int) -> None:
    cover = collect(boxes, points[::2], points[1::2]).boxes
    assert 1 <= len(cover) <= boxes
    for point in points:
        lat, lon = (INF if math.isnan(v) else v for v in point)
        assert any(a <= lat <= b and c <= lon <= d for (a, b), (c, d) in cover)


@pytest.mark.parametrize("boxes", [0, -1, 1.0, None])
def test_the_number_of_boxes_is_positive(boxes: Any) -> None:
    with pytest.raises(IndexDefinitionError, match=r"^GeoBox: boxes is "):
        GeoBox("lat", "lon", boxes=boxes)


def test_points_are_brought_together_before_they_are_too_many() -> None:
    collector = BoxCollector(2, widen=False)
    batch = [pa.array(range(at, at + 3_000), pa.float64()) for at in (0, 100)]
    partial = collector.partial(batch)
    for _ in range(3):
        partial = collector.merge(partial, collector.partial(batch))
        assert len(partial) <= 4 * _CELLS
    ((low, _), (_, high)) = (box[0] for box in sorted(collector.finish(partial).boxes))
    assert (low, high) == (0.0, 2_999.0)


# --- the arithmetic of stretches ------------------------------------------------------------------------------------

DECIMAL = parse_type("decimal(19,2)")
BIG = 2**53


@pytest.mark.parametrize(
    ("value", "below", "above"),
    [
        (5, 5.0, 5.0),
        (1.5, 1.5, 1.5),
        (Decimal("0.5"), 0.5, 0.5),
        (Decimal("0.1"), math.nextafter(0.1, 0), 0.1),  # the nearest double is greater
        (Decimal("0.3"), 0.3, math.nextafter(0.3, 1)),  # and here it is less
        (BIG + 1, float(BIG), float(BIG + 2)),
        (BIG + 3, float(BIG + 2), float(BIG + 4)),
        (-BIG - 1, float(-BIG - 2), float(-BIG)),
    ],
)
def test_numbers_between_two_doubles(value: Any, below: float, above: float) -> None:
    assert (_below(value), _above(value)) == (below, above)
    assert below <= value <= above


def test_bounds_that_no_double_is_are_asked_for_outward() -> None:
    lat, lon = Column(("c0",), DECIMAL), Column(("c1",), DECIMAL)
    target = Target("it", (lat, lon), (DECIMAL, DECIMAL))

    def compare(column: Column, comparator: Any, text: str) -> Predicate:
        return Comparison(comparator, column, Literal(Decimal(text), DECIMAL))

    box = And((compare(lat, ">=", "0.10"), compare(lat, "<=", "0.30"), compare(lon, "=", "0.10")))
    expected = Meets((Range(math.nextafter(0.1, 0), math.nextafter(0.3, 1)), Range(math.nextafter(0.1, 0), 0.1)))
    assert GeoBox("c0", "c1").label(box, target) == Ask("it", expected)
    open_ = And((compare(lat, ">", "0.50"), compare(lon, "<", "0.50")))
    assert GeoBox("c0", "c1").label(open_, target) == Ask("it", Meets((Range(0.5, None), Range(None, 0.5))))


ENDS = (-math.inf, 0.0, 1.0, 2.0, 3.0, math.inf)
STRETCHES = [(low, high) for low in ENDS for high in ENDS if low <= high]
PLACES = (-math.inf, -0.5, 0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, math.inf)


def inside(stretches: list[tuple[float, float]]) -> list[bool]:
    return [any(low <= place <= high for low, high in stretches) for place in PLACES]


def test_unions_and_intersections_of_stretches() -> None:
    pairs = [[one, other] for one in STRETCHES for other in STRETCHES]
    unions = []
    for pair in pairs:
        values = ValueSet.of_ranges([(low, False, high, False) for low, high in pair], nan=False)
        union = _stretches(values)
        assert inside(union) == inside(pair)
        assert all(before[1] < after[0] for before, after in itertools.pairwise(union))
        unions.append((values, union))
    for (some, first), (others, second) in itertools.product(unions[::5], unions[::7]):
        common = _stretches(some & others)
        assert inside(common) == [a and b for a, b in zip(inside(first), inside(second), strict=True)]


def test_open_ends_are_closed_and_nan_lies_at_infinity() -> None:
    around = ValueSet.of_ranges([(None, True, 1.0, True), (1.0, True, 2.0, True), (5.0, True, None, True)], nan=True)
    assert _stretches(around) == [(-math.inf, 2.0), (5.0, math.inf)]
    assert _stretches(ValueSet.of_ranges([(1.0, False, 2.0, False)], nan=True)) == [(1.0, 2.0), (math.inf, math.inf)]
    assert _stretches(ValueSet()) == []


def test_the_narrowest_gaps_are_closed_first() -> None:
    assert _coarser([(0, 1), (2, 3)]) == [(0, 3)]
    assert _coarser([(0, 1), (5, 6), (7, 9)]) == [(0, 9)]
    assert _coarser([(0, 1), (5, 6), (7, 9), (20, 21)]) == [(0, 9), (20, 21)]
    assert _coarser([(0, 1), (2, 30), (33, 34), (38, 39)]) == [(0, 34), (38, 39)]
    assert _coarser([(0, 9), (10, 11), (13, 14), (20, 21)]) == [(0, 14), (20, 21)]
    assert _coarser([(0, 1), (9, 10), (11, 12), (30, 31), (33, 34)]) == [(0, 12), (30, 34)]


def listed(column: Column, *values: float) -> Predicate:
    return IsIn(column, tuple(map(float, values)))


def test_where_a_coordinate_may_be_null() -> None:
    target = Target("it", (LAT, LON), (DOUBLE, DOUBLE))
    index = GeoBox("c0", "c1")
    near = between(LON, 0, 1)
    for unbounded in (
        And((near, NullTest(LAT))),
        And((near, Or((listed(LAT, 1, 2), NullTest(LAT))))),
        And((near, Or((listed(LAT, 1, 2), listed(Column(("c2",), DOUBLE), 1, 2))))),
        And((near, near)),
    ):
        assert index.label(unbounded, target) is None
    everywhere = index.label(And((*near.children, NullTest(LAT, negated=True))), target)  # type: ignore[union-attr]
    assert everywhere == Ask("it", Meets((Range(), Range(0.0, 1.0))))
    some = index.label(And((*near.children, Or((listed(LAT, 1), listed(LAT, 3))))), target)  # type: ignore[union-attr]
    assert some == Disjunction(tuple(Ask("it", Meets((Range(value, value), Range(0.0, 1.0)))) for value in (1.0, 3.0)))
    beyond = index.label(And((*near.children, Comparison(">", LAT, Literal(5.0, DOUBLE)))), target)  # type: ignore[union-attr]
    assert beyond == Ask("it", Meets((Range(5.0, None), Range(0.0, 1.0))))
    nan = index.label(And((*near.children, Comparison("=", LAT, Literal(NAN, DOUBLE)))), target)  # type: ignore[union-attr]
    assert nan == Ask("it", Meets((Range(INF, None), Range(0.0, 1.0))))


@pytest.mark.parametrize(
    ("rows", "columns", "asked"),
    [(4, 8, 32), (32, 1, 32), (33, 1, 16), (65, 1, 32), (8, 8, 16), (8, 9, 32), (100, 100, 9)],
)
def test_many_boxes_become_fewer(rows: int, columns: int, asked: int) -> None:
    target = Target("it", (LAT, LON), (DOUBLE, DOUBLE))
    node = And((listed(LAT, *range(rows)), listed(LON, *range(columns))))
    clause = GeoBox("c0", "c1").label(node, target)
    assert isinstance(clause, Disjunction)
    assert len(clause.clauses) == asked


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("decimal(38,38)", "0.00351082222701268451365990101397984013"),  # Arrow casts it to the third double from it
        ("decimal(38,20)", "-0.02330423172746546917"),
        ("decimal(30,25)", "0.0033351327205403675837063"),
        ("decimal(38,10)", "457452403986554.1700087318"),
    ],
)
@pytest.mark.parametrize("sign", ["", "-"])
def test_boxes_hold_decimals_that_arrow_casts(name: str, text: str, sign: str) -> None:
    value, type_ = Decimal((sign + text).replace("--", "")), parse_type(name)
    collector = GeoBox("a", "b").collector([type_, type_])
    column = pa.array([value], pa.decimal128(type_.precision, type_.scale))
    boxes = collector.finish(collector.partial([column, column]))
    assert isinstance(boxes, Boxes)
    for low, high in boxes.boxes[0]:
        assert Decimal(low) <= value <= Decimal(high)


def test_one_box_unless_more_are_wanted() -> None:
    assert GeoBox("lat", "lon") == GeoBox("lat", "lon", boxes=1)


def test_linear_conditions_on_cast_coordinates() -> None:
    """Spark puts the cast around other numbers."""
    number = parse_type("int")
    lat, lon = Column(("lat",), number), Column(("lon",), number)
    y, x = Cast(lat, DOUBLE, "ANSI"), Cast(lon, DOUBLE, "ANSI")
    sums = [Call("add", (x, y), DOUBLE), Call("subtract", (x, y), DOUBLE)]
    inside = And(
        (
            Comparison("<=", sums[0], Literal(1.0, DOUBLE)),
            Comparison(">=", sums[0], Literal(-1.0, DOUBLE)),
            Comparison("<=", sums[1], Literal(1.0, DOUBLE)),
            Comparison(">=", sums[1], Literal(-1.0, DOUBLE)),
        )
    )
    clause = GeoBox("lat", "lon").label(inside, Target("it", (lat, lon), (number, number)))
    assert clause is not None
    assert holds(clause, {"it": Boxes((((0.0, 0.0), (0.0, 0.0)),))}) is True
    assert holds(clause, {"it": Boxes((((5.0, 6.0), (5.0, 6.0)),))}) is False
