"""What a comparison of arithmetic says of its arguments: true of each row of the comparison, and little more."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from decimal import Decimal
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from es_skipping.predicates.normal import normalise
from es_skipping.predicates.show import show
from es_skipping.predicates.tree import Call, Cast, Column, Comparison, IsIn, Literal, Not, Operand, Predicate
from es_skipping.predicates.types import DataType, Value, parse_type
from tests.examples import examples
from tests.predicates.rows import COLUMNS, COMPARATORS, EDGES, TYPES, Row, arithmetic, rows, truth, value_of

INT, BIGINT, DOUBLE, DATE = map(DataType, ("int", "bigint", "double", "date"))
X, L, D, DAY = Column(("x",), INT), Column(("l",), BIGINT), Column(("d",), DOUBLE), Column(("day",), DATE)
Y, MONEY = Column(("y",), INT), Column(("money",), parse_type("decimal(5,2)"))
TINY = Column(("tiny",), parse_type("tinyint"))
F, FINE = Column(("f",), DataType("float")), parse_type("decimal(6,3)")


def check(operand: Operand, table: Sequence[Row]) -> None:
    """Every comparison of an expression with each of its results: where a bound is most easily off by one."""
    results: dict[str, Value] = {repr(found): found for row in table if (found := value_of(operand, row)) is not None}
    for result, comparator, negated in product(results.values(), COMPARATORS, (False, True)):
        compared: Predicate = Comparison(comparator, operand, Literal(result, operand.type))
        compared = Not(compared) if negated else compared
        normal = normalise(compared)
        for row in table:
            assert (truth(compared, row) is True) == (truth(normal, row) is True), (show(normal), row)
    listed = IsIn(operand, tuple(results.values())[:3]) if results else None
    for row in table if listed is not None else ():
        assert (truth(listed, row) is True) == (truth(normalise(listed), row) is True), row


@examples(150)
@given(arithmetic(), st.lists(rows(), min_size=1, max_size=6))
def test_true_of_the_same_rows(operand: Operand, table: list[Any]) -> None:
    check(operand, table)


def functions_of(name: str) -> Iterator[Operand]:
    """Each function of a column, with constants on either side, in each mode, and some of two functions."""
    column, type = COLUMNS[name], TYPES[name]
    if name == "date":
        constants: list[Literal] = []
    else:
        made = {"double": float, "float": float}.get(name, Decimal if type.name == "decimal" else int)
        constants = [Literal(made(n), type) for n in (-100, -3, 1, 127)]
    for mode in ("LEGACY", "ANSI", "TRY"):
        for constant in constants:
            for function in ("add", "subtract", "multiply", "divide", "integraldivide", "remainder"):
                if type.name == "decimal" and function not in ("add", "subtract"):
                    continue
                if (function == "divide" and type.is_integer) or (function == "integraldivide" and not type.is_integer):
                    continue
                for arguments in ((column, constant), (constant, column)):
                    yield Call(function, arguments, type, (("evalMode", mode),))
    for refuses in ("true", "false") if name != "date" else ():
        negative = Call("unaryminus", (column,), type, (("failOnError", refuses),))
        yield from (negative, Call("abs", (column,), type, (("failOnError", refuses),)))
        yield Call("abs", (negative,), type, (("failOnError", refuses),))
        if name == "double":
            yield from (Call(name, (column,), BIGINT, (("failOnError", refuses),)) for name in ("floor", "ceil"))
    for constant in constants[:3] or [Literal(0, type)]:
        for function in ("greatest", "least", "coalesce"):
            yield Call(function, (column, constant), type)
            yield Call(function, (Call("greatest", (column, column), type), column, constant), type)
    if name == "date":
        for days in (-(2**31), -3, 0, 5, 2**31 - 1):
            yield Call("dateadd", (column, Literal(days, INT)), type)
            yield Call("datesub", (column, Literal(days, INT)), type)
            yield from (
                Call("datediff", pair, INT) for pair in ((column, Literal(days, type)), (Literal(days, type), column))
            )


@pytest.mark.parametrize("name", ["tinyint", "int", "bigint", "float", "double", "decimal(5,2)", "date"])
def test_each_function_at_the_edges(name: str) -> None:
    beside = {"date": (-(2**31), 2**31 - 1), "tinyint": (-100, -42, 100), "double": (3.5, -2.0, 100.0)}
    table = [{COLUMNS[name].path[0]: value} for value in (*EDGES[name], *beside.get(name, ()), None)]
    for operand in functions_of(name):
        check(operand, table)


def call(name: str, *arguments: Operand | int | float, mode: str = "ANSI", type: DataType | None = None) -> Call:
    operands = [one for one in arguments if isinstance(one, Column | Call | Cast | Literal)]
    of = operands[0].type
    made = tuple(
        one if isinstance(one, Column | Call | Cast | Literal) else Literal(float(one) if of.is_float else int(one), of)
        for one in arguments
    )
    parameters = (("failOnError", "true" if mode == "ANSI" else "false"),) if len(made) == 1 else (("evalMode", mode),)
    return Call(name, made, type or of, parameters)


SMALL, TENTH = parse_type("smallint"), Literal(Decimal("0.10"), MONEY.type)
UP_TO_THE_GREATEST = call(  # from 32,512 to 32,767, the greatest of its type
    "add", Cast(Column(("b",), parse_type("tinyint")), SMALL), Literal(32_640, SMALL), mode="LEGACY"
)
NEW_YEAR = Literal(19_723, DATE)
YEAR, MONTH = call("year", DAY, type=INT), call("month", DAY, type=INT)
SAID = [
    (">", call("add", X, 5), 7, "x >= 3"),
    (">", call("add", X, 5, mode="LEGACY"), 7, "x <= 2147483642 AND x >= 3"),
    ("<", call("add", X, 5, mode="LEGACY"), 7, "(x <= 1 OR x >= 2147483643)"),
    ("<", call("subtract", 5, X, mode="TRY"), 7, "x >= -1"),
    ("<", call("abs", call("subtract", X, 5)), 2, "x >= 4"),
    ("<", call("abs", call("subtract", X, 5)), 2, "x <= 6"),
    (">=", call("abs", X), 2, "(x <= -2 OR x >= 2)"),
    ("<=", call("abs", X), 3, "AND x <= 3 AND x >= -3"),
    (">", call("unaryminus", X), 3, "x <= -4"),
    ("=", call("multiply", X, 10), 35, "FALSE"),
    ("=", call("multiply", X, 10), 30, "x = 3"),
    (">", call("multiply", D, -2), 7.0, "(d <= -3.4999999999999996 OR d = DOUBLE 'NaN')"),
    (">", call("multiply", X, call("unaryminus", call("abs", Y))), 4, "x <= -1"),
    ("<", call("multiply", X, call("unaryminus", call("abs", Y))), -4, "x >= 1"),
    (">", call("multiply", X, call("abs", Y)), 4, "x >= 1"),
    ("<", call("multiply", X, call("abs", Y)), -4, "x <= -1"),
    (">", call("multiply", Cast(MONTH, DOUBLE), Cast(TINY, DOUBLE)), 500.0, "tiny >= 4"),  # one of them may be 0
    (">", call("add", X, call("multiply", MONTH, 2)), 100, "x >= 77"),
    ("<", call("add", F, 1), 7.0, "f <= 6.000001430511475"),  # rounded to single precision
    (">", call("multiply", F, 2), 3.0, "f >= 1.4999996423721313"),
    ("<=", call("add", D, call("abs", D)), sys.float_info.max, "<="),  # no double is beyond the greatest
    ("<", call("divide", D, 2), 7.0, "d <= 14.000000000000002"),
    (">", call("divide", 100, D), 5.0, "d <= 20.000000000000007"),
    ("=", call("integraldivide", X, 10), 3, "x >= 30"),
    ("<", call("integraldivide", X, 10), 0, "x <= -10"),
    ("<", call("floor", D, type=BIGINT), 5, "(d <= 5.0 OR d = DOUBLE 'NaN')"),
    ("=", call("floor", D, type=BIGINT), 0, "d = DOUBLE 'NaN'"),  # which floor makes 0
    ("<=", call("floor", D, type=BIGINT), 0, "d = DOUBLE 'NaN'"),
    ("=", call("ceil", D, type=BIGINT), 0, "d = DOUBLE 'NaN'"),
    (">", call("ceil", D, type=BIGINT), 5, "d >= 5.0"),
    ("=", call("subtract", L, call("floor", MONEY, type=BIGINT)), 0, "l >= -1000"),
    ("=", call("subtract", L, call("ceil", MONEY, type=BIGINT)), 0, "l <= 1000"),
    # a quotient by less than 1 may be of any size
    ("=", call("add", L, call("integraldivide", MONEY, TENTH, type=BIGINT)), 0, "l >= -9223372036854775807"),
    ("<", call("add", call("abs", X), call("abs", Y)), 7, "x >= -6"),
    ("<", call("add", call("abs", X), call("abs", Y)), 7, "y >= -6"),
    (">", call("dateadd", DAY, Literal(3, INT), type=DATE), 19_723, "day >= DATE '2023-12-30'"),
    ("=", call("add", call("multiply", YEAR, 100), MONTH), 202_611, "day >= DATE '2026-01-01'"),
    ("=", call("add", call("multiply", YEAR, 100), MONTH), 202_611, "day <= DATE '2026-12-31'"),
    (">", call("add", Cast(call("multiply", X, 2), BIGINT), Literal(1, BIGINT)), 7, "x >= 4"),
    ("=", call("add", L, Cast(MONTH, BIGINT)), 100, "l >= 88"),
    ("=", call("add", X, call("unaryminus", MONTH)), 0, "x >= 1"),
    ("=", call("add", X, call("unaryminus", MONTH)), 0, "x <= 12"),
    ("=", call("subtract", X, call("datediff", call("dateadd", NEW_YEAR, MONTH), NEW_YEAR, type=INT)), 0, "x <= 12"),
    ("<", Call("greatest", (X, Literal(5, INT)), INT), 7, "(x IS NULL OR x < 7)"),
    ("=", Call("greatest", (X, Literal(5, INT)), INT), 4, "FALSE"),
    (">", Call("least", (X, Literal(5, INT)), INT), 3, "(x IS NULL OR x > 3)"),
    (">", Call("greatest", (X, Literal(5, INT)), INT), 7, "x > 7"),
    ("<=", Call("least", (X, Literal(5, INT)), INT), 3, "x <= 3"),
    ("=", Call("coalesce", (X, Literal(0, INT)), INT), 0, "(x = 0 OR x IS NULL)"),
    ("=", Call("coalesce", (X, Literal(0, INT)), INT), 3, "x = 3"),
    ("<>", Call("coalesce", (X, Literal(0, INT)), INT), 0, "x <> 0"),
    ("<", call("add", X, Cast(UP_TO_THE_GREATEST, INT)), 0, "x <= -32513"),
    ("<", call("add", MONEY, Literal(Decimal("1.00"), MONEY.type)), Decimal("0.98"), "money <= 0.00"),
    ("<", call("add", MONEY, Literal(Decimal("0.005"), FINE), type=FINE), Decimal("1.000"), "money <= 0.99"),
    (">", call("add", MONEY, Literal(Decimal("0.005"), FINE), type=FINE), Decimal("1.000"), "money >= 1.00"),
    (
        "<",
        call("datediff", DAY, call("datesub", Literal(19_723, DATE), MONTH), type=INT),
        5,
        "day <= DATE '2024-01-04'",
    ),
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
        ("<", call("add", X, Y), 7),
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
        ("<", call("integraldivide", MONEY, TENTH, type=BIGINT), 7),
        (">", call("add", D, math.inf), 3.0),
        ("=", call("multiply", D, 5e-324), 1.0),
        ("=", call("add", D, call("multiply", Literal(1e300, DOUBLE), 1e12)), 1.0),
        ("=", call("add", D, call("multiply", Literal(-1e300, DOUBLE), 1e12)), 1.0),
        ("<", call("subtract", D, 1), math.nextafter(sys.float_info.max, 0)),  # any finite number
        ("=", Call("coalesce", (X, L), BIGINT), 3),
        (">", call("multiply", X, Y), 4),  # y may be 0, or of either sign
        ("<=", call("floor", D, type=BIGINT), 2**63 - 1),  # which is what floor makes of all that is greater
        (">=", call("ceil", D, type=BIGINT), -(2**63)),
    ],
)
def test_of_what_nothing_is_said(comparator: Any, operand: Operand, value: Value) -> None:
    compared = Comparison(comparator, operand, Literal(value, operand.type))
    assert normalise(compared) == compared


@pytest.mark.parametrize(
    ("name", "least", "most"),
    [
        ("month", 1, 12), ("quarter", 1, 4), ("dayofmonth", 1, 31), ("dayofyear", 1, 366), ("dayofweek", 1, 7),
        ("weekday", 0, 6), ("weekofyear", 1, 53), ("hour", 0, 23), ("minute", 0, 59), ("second", 0, 59),
        ("year", -6_000_000, 6_000_000),
    ],
)  # fmt: skip
def test_parts_of_dates_have_ends(name: str, least: int, most: int) -> None:
    """What a column can be beside such a part: each end of the part decides one."""
    found = show(normalise(Comparison("=", call("subtract", X, call(name, DAY, type=INT)), Literal(100, INT))))
    assert f"x <= {100 + most}" in found
    assert f"x >= {100 + least}" in found


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
