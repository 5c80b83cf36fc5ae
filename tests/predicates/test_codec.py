"""Operands as data and back; predicates as text."""

from __future__ import annotations

import json
import math
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from es_skipping.errors import StoreFormatError
from es_skipping.predicates.codec import (
    float32,
    has_opaque,
    operand_from_data,
    operand_to_data,
    value_from_data,
    value_to_data,
)
from es_skipping.predicates.show import show
from es_skipping.predicates.tree import (
    And,
    Call,
    Cast,
    Column,
    Comparison,
    Holds,
    IsIn,
    Literal,
    Matches,
    Not,
    NullTest,
    Opaque,
    Operand,
    Or,
    Predicate,
)
from es_skipping.predicates.types import DataType, parse_type
from tests.predicates.rows import COLUMNS, EDGES, TYPES, predicates, values

NAMES = st.text(st.characters(codec="utf-8"), max_size=4)


def _leaves() -> st.SearchStrategy[Operand]:
    columns = st.builds(
        Column, st.lists(NAMES, min_size=1, max_size=3).map(tuple), st.sampled_from(list(TYPES.values()))
    )
    literals = st.sampled_from(sorted(EDGES)).flatmap(
        lambda name: (st.none() | values(name).filter(lambda v: v == v)).map(lambda v: Literal(v, TYPES[name]))
    )
    return columns | literals | st.builds(Opaque, NAMES)


OPERANDS = st.recursive(
    _leaves(),
    lambda inner: (
        st.builds(
            Cast,
            inner,
            st.sampled_from(list(TYPES.values())),
            st.sampled_from(("ANSI", "LEGACY", "TRY")),
            st.none() | NAMES,
        )
        | st.builds(
            Call,
            NAMES,
            st.lists(inner, max_size=3).map(tuple),
            st.sampled_from(list(TYPES.values())),
            st.lists(st.tuples(NAMES, NAMES), max_size=2).map(tuple),
        )
    ),
    max_leaves=6,
)


@given(OPERANDS)
def test_round_trip_through_json(operand: Operand) -> None:
    assert operand_from_data(json.loads(json.dumps(operand_to_data(operand)))) == operand


@given(st.sampled_from(sorted(EDGES)).flatmap(lambda name: st.tuples(st.just(name), values(name))))
def test_values_come_back_bit_for_bit(pair: tuple[str, Any]) -> None:
    name, value = pair
    back = value_from_data(json.loads(json.dumps(value_to_data(value, TYPES[name]))), TYPES[name])
    assert type(back) is type(value)
    assert repr(back) == repr(value)  # -0.0, NaN, and a decimal's scale too


def test_every_nan_is_the_same_object() -> None:
    assert value_from_data("NaN", TYPES["double"]) is math.nan
    assert value_from_data("NaN", TYPES["float"]) is math.nan


@pytest.mark.parametrize(
    ("data", "type_name"),
    [
        (True, "int"),
        (1, "boolean"),
        (128, "tinyint"),
        (2**63, "timestamp"),
        (1.0, "int"),
        ("1", "int"),
        ("x", "double"),
        (1.0, "double"),
        ("NaN", "decimal(5,2)"),
        ("x", "decimal(5,2)"),
        ("\ud800", "string"),
        (1, "string"),
        ("0g", "binary"),
        ("a", "string collate UTF8_LCASE"),
        (1, "interval day to second"),
        (None, "int"),
    ],
)
def test_what_is_no_value_of_a_type(data: Any, type_name: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        value_from_data(data, parse_type(type_name))


@pytest.mark.parametrize(
    "data",
    [
        None,
        [],
        {},
        {"type": "int"},
        {"type": 1, "column": ["a"]},
        {"type": "int", "column": [1]},
        {"type": "int", "literal": "x"},
        {"type": "int", "cast": {}, "mode": "ANSI", "zone": None},
        {"type": "int", "call": "f", "arguments": 1, "parameters": []},
        {"type": "int", "call": "f", "arguments": [], "parameters": [["a"]]},
    ],
)
def test_what_was_not_written_here(data: Any) -> None:
    with pytest.raises(StoreFormatError, match="create the index again"):
        operand_from_data(data)


def test_deep_data_is_an_error_and_no_overflow() -> None:
    data: dict[str, Any] = {"type": "int", "column": ["a"]}
    for _ in range(5_000):
        data = {"type": "int", "cast": data, "mode": "ANSI", "zone": None}
    with pytest.raises(StoreFormatError):
        operand_from_data(data)


def test_opaque_parts_are_found_wherever_they_are() -> None:
    x = COLUMNS["int"]
    assert not has_opaque(Call("f", (Cast(x, TYPES["double"]),), TYPES["int"]))
    assert has_opaque(Call("f", (x, Cast(Opaque(), TYPES["double"])), TYPES["int"]))


def test_float32() -> None:
    assert float32(0.1) == 0.10000000149011612
    assert float32(1e300) == math.inf
    assert float32(-1e300) == -math.inf
    assert float32(1e-300) == 0.0


X = COLUMNS["int"]
SHOWN: list[tuple[Predicate | Operand, str]] = [
    (Column(("a", "b.c", "d`e"), TYPES["int"]), "a.`b.c`.`d``e`"),
    (Cast(X, TYPES["decimal(5,2)"]), "CAST(c_int AS DECIMAL(5,2))"),
    (Cast(X, TYPES["date"], "TRY"), "TRY_CAST(c_int AS DATE)"),
    (Call("udf:f", (X, Literal(None, TYPES["int"])), TYPES["int"]), "udf:f(c_int, NULL)"),
    (Literal("it's\n", TYPES["string"]), r"'it\'s\n'"),
    (Literal(b"\x00\xff", TYPES["binary"]), "X'00ff'"),
    (Literal(True, TYPES["boolean"]), "TRUE"),
    (Literal(Decimal("1.50"), TYPES["decimal(5,2)"]), "1.50"),
    (Literal(-1, TYPES["date"]), "DATE '1969-12-31'"),
    (Literal(2**31 - 1, TYPES["date"]), "DATE 2147483647"),
    (Literal(1, TYPES["timestamp"]), "TIMESTAMP '1970-01-01 00:00:00.000001Z'"),
    (Literal(0, TYPES["timestamp_ntz"]), "TIMESTAMP_NTZ '1970-01-01 00:00:00'"),
    (IsIn(X, tuple(range(100)), negated=True), "c_int NOT IN (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, ... 90 more)"),
    (Matches("starts", COLUMNS["string"], "a", negated=True), "NOT startswith(c_string, 'a')"),
    (Matches("like", COLUMNS["string"], "a!%", "!"), "c_string LIKE 'a!%' ESCAPE '!'"),
    (Holds(Call("f", (), TYPES["boolean"]), negated=True), "NOT f()"),
    (Opaque("a reason"), "<a reason>"),
    (
        And((Or((NullTest(X), NullTest(X, negated=True))), Not(NullTest(X)))),
        "(c_int IS NULL OR c_int IS NOT NULL) AND NOT (c_int IS NULL)",
    ),
]


@pytest.mark.parametrize(("node", "text"), SHOWN, ids=[text for _, text in SHOWN])
def test_show(node: Predicate | Operand, text: str) -> None:
    assert show(node) == text


@given(predicates() | OPERANDS)
def test_shown_text_is_one_printable_line(node: Any) -> None:
    assert show(node).isprintable()
    assert len(show(node)) <= 2_000


def test_show_of_what_is_deep_or_wide() -> None:
    deep: Predicate = NullTest(X)
    for _ in range(100_000):
        deep = Not(deep)
    assert "..." in show(deep)
    assert "more" in show(And(tuple(Comparison("=", X, Literal(n, X.type)) for n in range(101))))[-12:]
    assert len(show(Literal("x" * 10_000, DataType("string")))) < 300


@pytest.mark.parametrize("kind", ["call", "second argument", "cast"])
def test_how_deep_a_stored_expression_may_be(kind: str) -> None:
    int_ = parse_type("int")
    operand: Operand = Column(("x",), int_)
    for _ in range(200):
        if kind == "cast":
            operand = Cast(operand, int_)
        else:
            first = (Column(("y",), int_),) if kind == "second argument" else ()
            operand = Call("f", (*first, operand), int_)
    assert operand_from_data(operand_to_data(operand)) == operand
    with pytest.raises(StoreFormatError):
        operand_from_data(operand_to_data(Call("f", (operand,), int_)))


@pytest.mark.parametrize(
    ("name", "bits"),
    [
        ("tinyint", 8),
        ("smallint", 16),
        ("int", 32),
        ("bigint", 64),
        ("date", 32),
        ("timestamp", 64),
        ("timestamp_ntz", 64),
    ],
)
def test_whole_numbers_up_to_the_ends_of_their_type(name: str, bits: int) -> None:
    type, most = parse_type(name), (1 << bits - 1) - 1
    for value in (most, -most - 1):
        assert value_from_data(value, type) == value
        assert value_to_data(value, type) == value
    for value in (most + 1, -most - 2, True, "1", 1.0, None):
        with pytest.raises(ValueError, match="is not a value of type"):
            value_from_data(value, type)


@pytest.mark.parametrize("name", ["string", "binary", "decimal(5,2)", "double", "float", "boolean", "array<int>"])
def test_whole_numbers_are_values_of_no_other_type(name: str) -> None:
    for value in (0, 5, -5):
        with pytest.raises(ValueError, match="is not a value of type"):
            value_from_data(value, parse_type(name))


def test_null_is_stored_as_null() -> None:
    null = Literal(None, parse_type("date"))
    assert operand_to_data(null) == {"literal": None, "type": "date"}
    assert operand_from_data(operand_to_data(Call("f", (null,), null.type))) == Call("f", (null,), null.type)
