"""Which casts preserve order, and what a comparison of one says of the column: case by case."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import pytest

from es_skipping.predicates.casts import compare_image, ends_of, less, may_be_null, monotone, same_family
from es_skipping.predicates.tree import NEVER, Cast, Column, Comparison, Literal, NullTest, Or
from es_skipping.predicates.types import parse_type

DAY = 86_400_000_000

CASTS: list[tuple[str, str, str | None, Any, Any]] = [
    ("int", "int", None, 5, 5),
    ("string", "string", None, "a", "a"),
    ("tinyint", "smallint", None, 5, 5),
    ("int", "bigint", None, 5, 5),
    ("bigint", "double", None, 5, 5.0),
    ("int", "float", None, 16_777_217, 16_777_216.0),
    ("tinyint", "decimal(3,0)", None, 5, Decimal(5)),
    ("tinyint", "decimal(5,2)", None, 5, Decimal(5)),
    ("smallint", "decimal(5,0)", None, 5, Decimal(5)),
    ("int", "decimal(10,0)", None, 5, Decimal(5)),
    ("bigint", "decimal(19,0)", None, 5, Decimal(5)),
    ("decimal(5,2)", "decimal(5,2)", None, Decimal("1.50"), Decimal("1.50")),
    ("decimal(5,2)", "decimal(6,2)", None, Decimal("1.50"), Decimal("1.50")),
    ("decimal(5,2)", "decimal(6,3)", None, Decimal("1.50"), Decimal("1.50")),
    ("decimal(5,2)", "double", None, Decimal("1.50"), 1.5),
    ("float", "double", None, 1.5, 1.5),
    ("date", "timestamp", "UTC", 3, 3 * DAY),
    ("date", "timestamp_ntz", None, 3, 3 * DAY),
    ("timestamp", "date", "GMT", -1, -1),
    ("timestamp_ntz", "date", None, 2 * DAY - 1, 1),
    ("timestamp", "timestamp_ntz", "Z", 5, 5),
    ("timestamp_ntz", "timestamp", "+00:00", 5, 5),
]


@pytest.mark.parametrize(("source", "target", "zone", "value", "image"), CASTS)
def test_casts_that_preserve_order(source: str, target: str, zone: str | None, value: Any, image: Any) -> None:
    function = monotone(parse_type(source), parse_type(target), zone)
    assert function is not None
    assert function(value) == image
    assert type(function(value)) is type(image)


@pytest.mark.parametrize(
    ("source", "target", "zone"),
    [
        *(("bigint", "int", None), ("bigint", "float", None), ("int", "string", None), ("int", "date", None)),
        *(("tinyint", "decimal(2,0)", None), ("tinyint", "decimal(4,2)", None), ("smallint", "decimal(4,0)", None)),
        *(("int", "decimal(9,0)", None), ("int", "decimal(11,2)", None), ("bigint", "decimal(18,0)", None)),
        *(("decimal(5,2)", "decimal(5,3)", None), ("decimal(5,2)", "decimal(6,1)", None)),
        *(("decimal(5,2)", "float", None), ("decimal(5,2)", "int", None), ("float", "int", None)),
        *(
            ("double", "float", None),
            ("float", "decimal(5,2)", None),
            ("string", "int", None),
            ("double", "date", None),
        ),
        *(("date", "timestamp", None), ("date", "timestamp", "Asia/Tokyo"), ("timestamp", "date", "Asia/Tokyo")),
        *(("timestamp", "timestamp_ntz", "Asia/Tokyo"), ("timestamp_ntz", "timestamp", None), ("date", "int", "UTC")),
        *(("timestamp", "bigint", "UTC"), ("array<int>", "array<int>", None), ("boolean", "int", None)),
    ],
)
def test_casts_that_may_not(source: str, target: str, zone: str | None) -> None:
    assert monotone(parse_type(source), parse_type(target), zone) is None


@pytest.mark.parametrize("zone", ["UTC", "Etc/UTC", "Z", "GMT", "Etc/GMT", "+00:00"])
def test_the_names_of_utc(zone: str) -> None:
    day, moment, local = map(parse_type, ("date", "timestamp", "timestamp_ntz"))
    for source, target in ((day, moment), (moment, day), (moment, local), (local, moment)):
        assert monotone(source, target, zone) is not None
        assert monotone(source, target, zone + ":01") is None


def test_casts_that_may_be_null() -> None:
    day, moment = Column(("d",), parse_type("date")), Column(("t",), parse_type("timestamp"))
    for mode, expected in (("TRY", True), ("LEGACY", True), ("ANSI", False)):
        assert may_be_null(Cast(day, parse_type("timestamp"), mode, "UTC")) is expected
        assert may_be_null(Cast(day, parse_type("timestamp_ntz"), mode)) is expected
        assert may_be_null(Cast(moment, parse_type("date"), mode, "UTC")) is False
        assert may_be_null(Cast(day, parse_type("date"), mode)) is False


@pytest.mark.parametrize(
    ("type_name", "first", "last"),
    [
        ("tinyint", -128, 127),
        ("smallint", -32_768, 32_767),
        ("int", -(2**31), 2**31 - 1),
        ("bigint", -(2**63), 2**63 - 1),
        ("date", -(2**31), 2**31 - 1),
        ("timestamp", -(2**63), 2**63 - 1),
        ("timestamp_ntz", -(2**63), 2**63 - 1),
        ("decimal(4,2)", Decimal("-99.99"), Decimal("99.99")),
    ],
)
def test_ends_of_types(type_name: str, first: Any, last: Any) -> None:
    assert ends_of(parse_type(type_name)) == (first, last)


def test_ends_of_floats_and_of_types_without_ends() -> None:
    ends = ends_of(parse_type("float"))
    assert ends is not None
    assert ends[0] == -math.inf and isinstance(ends[1], float) and math.isnan(ends[1])
    for name in ("double", "string", "binary", "boolean"):
        assert ends_of(parse_type(name)) is None


def test_the_order_has_nan_at_its_end() -> None:
    assert less(1.0, 2.0) and not less(2.0, 1.0) and not less(1.0, 1.0)
    assert less(math.inf, math.nan) and not less(math.nan, math.inf) and not less(math.nan, math.nan)
    assert less("a", "b") and not less("a", "a")


def test_families_of_types() -> None:
    int_, bigint, double, float_, one, two, string = map(
        parse_type, ("int", "bigint", "double", "float", "decimal(4,2)", "decimal(9,0)", "string")
    )
    for pair in ((int_, bigint), (double, float_), (one, two)):
        assert same_family(*pair) and same_family(*reversed(pair))
    for pair in ((int_, double), (int_, one), (double, one), (string, string), (int_, string), (one, string)):
        assert not same_family(*pair) and not same_family(*reversed(pair))


TINY = parse_type("tinyint")
X = Column(("x",), TINY)


def compared(comparator: Any, value: int) -> Comparison:
    return Comparison(comparator, X, Literal(value, TINY))


def tens(value: int) -> int:
    return value // 10


@pytest.mark.parametrize(
    ("comparator", "value", "expected"),
    [
        ("=", 3, (compared(">=", 30), compared("<=", 39))),
        ("<", 3, (compared("<=", 29),)),
        ("<=", 3, (compared("<=", 39),)),
        (">", 3, (compared(">=", 40),)),
        (">=", 3, (compared(">=", 30),)),
        ("=", 12, (compared(">=", 120),)),
        ("=", -13, (compared("<=", -121),)),
        ("=", 2.5, NEVER),
        ("<", 2.5, (compared("<=", 29),)),
        ("<=", 2.5, (compared("<=", 29),)),
        (">", 2.5, (compared(">=", 30),)),
        (">=", 2.5, (compared(">=", 30),)),
        ("<>", 2.5, NullTest(X, negated=True)),
        ("<", 99, NullTest(X, negated=True)),
        (">", -99, NullTest(X, negated=True)),
        (">", 99, NEVER),
        ("<", -99, NEVER),
        (">=", 12, (compared(">=", 120),)),
        (">", 12, NEVER),
        ("<=", -13, (compared("<=", -121),)),
        ("<", -13, NEVER),
    ],
)
def test_what_a_comparison_of_an_image_says(comparator: str, value: Any, expected: Any) -> None:
    found = compare_image(comparator, X, tens, value)
    parts = getattr(found, "children", (found,))
    assert parts == (expected if isinstance(expected, tuple) else (expected,))


def test_what_an_inequality_of_an_image_says() -> None:
    assert compare_image("<>", X, tens, 3) == Or((compared("<=", 29), compared(">=", 40)))
    assert compare_image("<>", X, tens, 12) == compared("<=", 119)
    assert compare_image("<>", X, tens, -13) == compared(">=", -120)
    assert compare_image("<>", X, lambda _: 1, 1) == NEVER
    for comparator in ("=", "<>", "<", "<=", ">", ">="):
        assert compare_image(comparator, X, None, 7) == compared(comparator, 7), "the same comparison of one preimage"
    assert compare_image("=", X, None, 127.0) == compared("=", 127)
    assert compare_image("=", Column(("d",), parse_type("double")), None, 1.0) is None
    assert compare_image(">=", X, lambda value: min(value, 126), 126) == compared(">=", 126)
    assert compare_image(">", X, lambda value: min(value, 125), 124.5) == compared(">=", 125)
    assert compare_image(">", X, tens, 11) == compared(">=", 120)


def test_the_zero_of_decimals_has_no_sign() -> None:
    column = Column(("d",), parse_type("decimal(5,2)"))
    found = compare_image("=", column, None, Decimal(0))
    assert isinstance(found, Comparison) and str(found.right.value) == "0.00"  # type: ignore[union-attr]


def test_one_value_below_or_above_is_compared_by_equality() -> None:
    def not_least(value: int) -> int:
        return int(value > -128)

    def greatest(value: int) -> int:
        return int(value == 127)

    assert compare_image("<", X, not_least, 1) == compared("=", -128)
    assert compare_image(">", X, greatest, 0) == compared("=", 127)
