"""What a comparison of arithmetic says of its arguments: true of each row of the comparison, and little more."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from es_skipping.predicates.normal import normalise
from es_skipping.predicates.show import show
from es_skipping.predicates.tree import Call, Cast, Column, Comparison, IsIn, Literal, Operand, Predicate
from es_skipping.predicates.types import DataType, Value, parse_type
from tests.predicates.rows import arithmetic, rows, truth

INT, BIGINT, DOUBLE, DATE = map(DataType, ("int", "bigint", "double", "date"))
X, L, D, DAY = Column(("x",), INT), Column(("l",), BIGINT), Column(("d",), DOUBLE), Column(("day",), DATE)


@settings(max_examples=600)
@given(arithmetic(), st.lists(rows(), min_size=1, max_size=6))
def test_true_of_the_same_rows(predicate: Predicate, table: list[Any]) -> None:
    normal = normalise(predicate)
    for row in table:
        assert (truth(predicate, row) is True) == (truth(normal, row) is True), (show(normal), row)


def call(name: str, *arguments: Operand | int | float, mode: str = "ANSI", type: DataType | None = None) -> Call:
    operands = [one for one in arguments if isinstance(one, Column | Call | Cast | Literal)]
    of = operands[0].type
    made = tuple(
        one if isinstance(one, Column | Call | Cast | Literal) else Literal(float(one) if of.is_float else int(one), of)
        for one in arguments
    )
    parameters = (("failOnError", "true" if mode == "ANSI" else "false"),) if len(made) == 1 else (("evalMode", mode),)
    return Call(name, made, type or of, parameters)


YEAR, MONTH = call("year", DAY, type=INT), call("month", DAY, type=INT)
SAID = [
    (">", call("add", X, 5), 7, "x >= 3"),
    (">", call("add", X, 5, mode="LEGACY"), 7, "x <= 2147483642 AND x >= 3"),
    ("<", call("add", X, 5, mode="LEGACY"), 7, "(x <= 1 OR x >= 2147483643)"),
    ("<", call("subtract", 5, X, mode="TRY"), 7, "x >= -1"),
    ("<", call("abs", call("subtract", X, 5)), 2, "x >= 4"),
    ("<", call("abs", call("subtract", X, 5)), 2, "x <= 6"),
    (">=", call("abs", X), 2, "(x <= -2 OR x >= 2)"),
    (">", call("unaryminus", X), 3, "x <= -4"),
    ("=", call("multiply", X, 10), 35, "FALSE"),
    ("=", call("multiply", X, 10), 30, "x = 3"),
    (">", call("multiply", D, -2), 7.0, "(d <= -3.4999999999999996 OR d = DOUBLE 'NaN')"),
    ("<", call("divide", D, 2), 7.0, "d <= 14.000000000000002"),
    (">", call("divide", 100, D), 5.0, "d <= 20.000000000000007"),
    ("=", call("integraldivide", X, 10), 3, "x >= 30"),
    ("<", call("integraldivide", X, 10), 0, "x <= -10"),
    ("<", call("floor", D, type=BIGINT), 5, "(d <= 5.0 OR d = DOUBLE 'NaN')"),
    (">", call("ceil", D, type=BIGINT), 5, "d >= 5.0"),
    (">", call("dateadd", DAY, Literal(3, INT), type=DATE), 19_723, "day >= DATE '2023-12-30'"),
    ("=", call("add", call("multiply", YEAR, 100), MONTH), 202_611, "day >= DATE '2026-01-01'"),
    ("=", call("add", call("multiply", YEAR, 100), MONTH), 202_611, "day <= DATE '2026-12-31'"),
    (">", call("add", Cast(call("multiply", X, 2), BIGINT), Literal(1, BIGINT)), 7, "x >= 4"),
    ("<", Call("greatest", (X, Literal(5, INT)), INT), 7, "(x IS NULL OR x < 7)"),
    ("=", Call("greatest", (X, Literal(5, INT)), INT), 4, "FALSE"),
    (">", Call("least", (X, Literal(5, INT)), INT), 3, "(x IS NULL OR x > 3)"),
    ("=", Call("coalesce", (X, Literal(0, INT)), INT), 0, "(x = 0 OR x IS NULL)"),
    ("=", Call("coalesce", (X, Literal(0, INT)), INT), 3, "x = 3"),
    ("<>", Call("coalesce", (X, Literal(0, INT)), INT), 0, "x <> 0"),
]


@pytest.mark.parametrize(("comparator", "operand", "value", "expected"), SAID)
def test_what_is_said(comparator: Any, operand: Operand, value: Value, expected: str) -> None:
    found = show(normalise(Comparison(comparator, operand, Literal(value, operand.type))))
    assert expected in found, found


@pytest.mark.parametrize(
    ("comparator", "operand", "value"),
    [
        ("<>", call("add", X, 5), 7),
        ("<", call("multiply", X, 1000, mode="LEGACY"), 7),  # it may have wrapped around a thousand times
        ("<", call("add", X, Column(("y",), INT)), 7),
        (">", call("multiply", D, 0), 7.0),
        (">", call("remainder", X, 10), 3),
        (">", call("exp", D), 3.0),
        (
            "<",
            Call(
                "integraldivide",
                (Column(("m",), parse_type("decimal(5,2)")), Literal(Decimal("0.10"), parse_type("decimal(5,2)"))),
                BIGINT,
            ),
            7,
        ),
        (">", call("add", D, math.inf), 3.0),
        ("=", call("multiply", D, 5e-324), 1.0),
    ],
)
def test_of_what_nothing_is_said(comparator: Any, operand: Operand, value: Value) -> None:
    compared = Comparison(comparator, operand, Literal(value, operand.type))
    assert normalise(compared) == compared


def test_each_value_of_a_list_says_something() -> None:
    key = call("add", call("multiply", YEAR, 100), MONTH)
    found = show(normalise(IsIn(key, (202_611, 202_612))))
    assert "day >= DATE '2026-01-01'" in found


def test_deep_nests_say_nothing_and_shallow_ones_stay_short() -> None:
    deep: Operand = X
    for _ in range(20):
        deep = call("add", deep, 1, mode="LEGACY")
    compared = Comparison("<", deep, Literal(7, INT))
    assert normalise(compared) == compared
    shallow: Operand = X
    for _ in range(6):
        shallow = call("add", shallow, 1, mode="LEGACY")
    assert len(show(normalise(Comparison("<", shallow, Literal(7, INT))))) < 20_000
