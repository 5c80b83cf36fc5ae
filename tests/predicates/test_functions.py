"""Versions of user functions in predicates, and what a monotone one says of its argument."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from es_skipping.predicates.functions import Declared, versioned, with_images
from es_skipping.predicates.normal import normalise
from es_skipping.predicates.operands import read_operand
from es_skipping.predicates.tree import (
    ALWAYS,
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
    Or,
    Predicate,
)
from es_skipping.predicates.types import DataType, parse_type
from es_skipping.testing.rows import truth

INT, LONG, TEXT, BOOL = DataType("int"), DataType("bigint"), DataType("string"), DataType("boolean")
X = Column(("x",), INT)


def call(*parameters: tuple[str, str], name: str = "f", type: DataType = INT) -> Call:
    return Call(f"udf:{name}", (X,), type, parameters)


def every(f: Call) -> Predicate:
    """A predicate with a call in each place where there can be one."""
    text, flag = Call(f.name, (f,), TEXT, f.parameters), Call(f.name, (X,), BOOL, f.parameters)
    return Or(
        (
            And((Comparison("=", f, Literal(1, INT)), Comparison("<", Literal(1, INT), f))),
            Not(IsIn(Cast(f, LONG), (1, 2))),
            NullTest(f),
            Matches("starts", text, "a"),
            Holds(flag, negated=True),
            ALWAYS,
        )
    )


def test_a_declared_function_carries_its_version_wherever_it_is_called() -> None:
    code, version = ("code", "c0de"), ("version", "3")
    assert versioned(every(call(code)), {"f": Declared("3", "c0de")}.get) == every(call(version))
    assert versioned(every(call()), {"f": Declared("3")}.get) == every(call(version)), "a Java function has no code"


@pytest.mark.parametrize(
    "declared",
    [
        {},
        {"g": Declared("3", "c0de")},
        {"f": Declared("3", "other")},
        {"f": Declared("3")},
    ],
)
def test_a_name_alone_proves_nothing(declared: dict[str, Declared]) -> None:
    predicate = every(call(("code", "c0de")))
    assert versioned(predicate, declared.get) == predicate


COLUMN = {"c": "AttributeReference", "t": "int", "name": "x"}
OTHER = {"c": "AttributeReference", "t": "int", "name": "y"}
NULL = {"c": "Literal", "t": "int", "v": None}


def udf(*arguments: Any) -> dict[str, Any]:
    return {"c": "ScalaUDF", "t": "int", "a": {"udfName": "f"}, "ch": list(arguments)}


def guarded(condition: Any, value: Any) -> dict[str, Any]:
    return {"c": "If", "t": "int", "ch": [condition, NULL, value]}


def is_null(tree: Any) -> dict[str, Any]:
    return {"c": "IsNull", "t": "boolean", "ch": [tree]}


def test_a_function_of_a_primitive_is_the_function_alone() -> None:
    known = {"c": "KnownNotNull", "t": "int", "ch": [COLUMN]}
    assert read_operand(guarded(is_null(COLUMN), udf(known))) == read_operand(udf(COLUMN))
    both = {"c": "Or", "t": "boolean", "ch": [is_null(COLUMN), is_null(OTHER)]}
    assert read_operand(guarded(both, udf(COLUMN, OTHER))) == read_operand(udf(COLUMN, OTHER))
    for odd in (guarded(is_null(OTHER), udf(COLUMN)), guarded(is_null(COLUMN), COLUMN)):
        assert read_operand(odd) != read_operand(udf(COLUMN))


def thirds(value: int | None) -> int | None:
    return None if value is None else value // 3


def fails(value: int | None) -> int:
    raise ValueError(value)


FUNCTION = Declared("1", image=thirds)
F = call(("version", "1"))
TINY, ROUND, CENTS = (replace(F, type=parse_type(name)) for name in ("tinyint", "float", "decimal(20,2)"))


def exact_third(value: int | None) -> Decimal | None:
    return None if value is None else Decimal(value) / 3


@given(
    st.sampled_from(["=", "<>", "<", "<=", ">", ">="]),
    st.integers(-(2**31), 2**31 - 1),
    st.one_of(st.none(), st.integers(-20, 20), st.integers(-(2**31), 2**31 - 1)),
    st.booleans(),
)
def test_a_monotone_function_says_the_same_of_its_argument(
    comparator: Any, asked: int, value: int | None, near: bool
) -> None:
    if near and value is not None:
        asked = value // 3
    predicate = Comparison(comparator, F, Literal(asked, INT))
    said = with_images(predicate, {"f": FUNCTION}.get)
    assert isinstance(said, And)
    assert said.children[0] == predicate
    result = thirds(value)
    expected = result is not None and truth(predicate, {F: result})
    assert bool(truth(normalise(said.children[1]), {X: value})) is bool(expected)


@pytest.mark.parametrize(
    ("declared", "predicate"),
    [
        (None, Comparison("=", F, Literal(1, INT))),
        (Declared("1"), Comparison("=", F, Literal(1, INT))),
        (Declared("2", image=thirds), Comparison("=", F, Literal(1, INT))),
        (Declared("1", image=fails), Comparison("=", F, Literal(1, INT))),
        (Declared("1", image=lambda value: 0), Comparison("=", F, Literal(1, INT))),  # not null of null
        (Declared("1", image=lambda value: None if value is None else "a"), Comparison("=", F, Literal(1, INT))),
        # beyond the type of its results: Spark makes another number of it
        (Declared("1", image=lambda value: None if value is None else value + 1), Comparison("<", F, Literal(0, INT))),
        (Declared("1", image=lambda value: value), Comparison("=", TINY, Literal(-1, TINY.type))),
        # rounded by Spark
        (Declared("1", image=lambda value: value and value + 0.1), Comparison("=", ROUND, Literal(1.1, ROUND.type))),
        (Declared("1", image=exact_third), Comparison("=", CENTS, Literal(Decimal("0.33"), CENTS.type))),
        (FUNCTION, Comparison("=", F, Literal(None, INT))),
        (FUNCTION, Comparison("=", F, X)),
        (FUNCTION, NullTest(F)),
    ],
)
def test_what_is_not_known_to_be_monotone_says_nothing(declared: Declared | None, predicate: Predicate) -> None:
    assert with_images(predicate, lambda name: declared) == predicate


@pytest.mark.parametrize(
    ("name", "image", "value"),
    [
        ("double", float, 2.0),
        ("string", lambda value: "a" * (value > 3) + "b" * (value > 5), "ab"),
        ("binary", lambda value: b"\x01" if value > 3 else b"", b"\x01"),
        ("boolean", lambda value: value > 3, True),
        ("bigint", int, 2),
    ],
)
def test_results_that_spark_takes_as_they_are(name: str, image: Any, value: Any) -> None:
    call = replace(F, type=DataType(name))
    predicate = Comparison("=", call, Literal(value, call.type))
    declared = Declared("1", image=lambda one: None if one is None else image(one))
    assert with_images(predicate, {"f": declared}.get) != predicate
    assert with_images(Or((predicate, Not(predicate))), {"f": declared}.get) != Or((predicate, Not(predicate)))
    unversioned = Comparison("=", replace(call, parameters=()), Literal(value, call.type))
    assert with_images(unversioned, {"f": declared}.get) == unversioned
    assert with_images(replace(predicate, comparator="<=>"), {"f": declared}.get) == replace(
        predicate, comparator="<=>"
    )
    own = replace(call, name="f")
    assert with_images(replace(predicate, left=own), lambda _: declared) == replace(predicate, left=own)
    two = replace(call, arguments=(X, X))
    assert with_images(replace(predicate, left=two), {"f": declared}.get) == replace(predicate, left=two)


@pytest.mark.parametrize("name", ["float", "decimal(5,2)", "date", "timestamp"])
def test_results_that_spark_may_change(name: str) -> None:
    call = replace(F, type=parse_type(name))
    for image in (lambda one: one, float):
        predicate = Comparison("<", call, Literal(image(3), call.type))
        assert with_images(predicate, lambda _: Declared("1", image=image)) == predicate  # noqa: B023


@pytest.mark.parametrize("type_name", ["double", "float", "string", "date", "timestamp", "boolean"])
def test_arguments_of_which_nothing_is_said(type_name: str) -> None:
    call = replace(F, arguments=(Column(("y",), DataType(type_name)),))
    predicate = Comparison("=", call, Literal(1, INT))
    assert with_images(predicate, lambda _: Declared("1", image=lambda one: None if one is None else 1)) == predicate


def test_results_at_the_ends_of_their_type() -> None:
    small = Column(("t",), DataType("tinyint"))
    for least, most, fits in ((-128, 127, True), (-129, 127, False), (-128, 128, False)):
        call = replace(TINY, arguments=(small,))
        predicate = Comparison("=", call, Literal(0, TINY.type))

        def image(one: int | None, least: int = least, most: int = most) -> int | None:
            return None if one is None else least if one < 0 else most if one > 0 else 0

        said = with_images(predicate, lambda _, image=image: Declared("1", image=image))  # type: ignore[misc]
        assert (said != predicate) is fits


def test_what_is_not_a_number_is_said_nothing_of() -> None:
    call = replace(F, type=DataType("double"))
    nan = Literal(float("nan"), call.type)
    declared = Declared("1", image=lambda one: None if one is None else float(one))
    assert with_images(Comparison("=", call, nan), lambda _: declared) == Comparison("=", call, nan)
    odd = Declared("1", image=lambda one: None if one is None else float("nan"))
    asked = Comparison("=", call, Literal(1.0, call.type))
    assert with_images(asked, lambda _: odd) == asked
    other = Comparison("=", call, Literal(1, INT))
    assert with_images(other, lambda _: declared) == other


def test_a_function_that_fails_for_null_may_be_monotone() -> None:
    declared = Declared("1", image=lambda value: value // 3)
    predicate = Comparison("=", F, Literal(1, INT))
    assert with_images(predicate, lambda _: declared) != predicate


@pytest.mark.parametrize(
    ("condition", "null", "value"),
    [
        (is_null(COLUMN), {"c": "Literal", "t": "int", "v": 0}, udf(COLUMN)),
        (is_null(COLUMN), COLUMN, udf(COLUMN)),
        ({"c": "IsNotNull", "t": "boolean", "ch": [COLUMN]}, NULL, udf(COLUMN)),
        ({"c": "And", "t": "boolean", "ch": [is_null(COLUMN), is_null(OTHER)]}, NULL, udf(COLUMN, OTHER)),
        ({"c": "Or", "t": "boolean", "ch": [is_null(COLUMN), is_null(OTHER)]}, NULL, udf(COLUMN)),
        (is_null(COLUMN), NULL, {"c": "Abs", "t": "int", "ch": [COLUMN]}),
    ],
)
def test_what_is_not_the_function_alone(condition: Any, null: Any, value: Any) -> None:
    tree = {"c": "If", "t": "int", "ch": [condition, null, value]}
    assert read_operand(tree) != read_operand(value)


def test_sparks_own_functions_have_no_version() -> None:
    own = Call("f", (X, call()), INT)
    found = versioned(NullTest(own), {"f": Declared("3")}.get)
    assert found == NullTest(Call("f", (X, call(("version", "3"))), INT))


def test_a_monotone_function_of_a_decimal() -> None:
    cents = Column(("d",), parse_type("decimal(4,1)"))
    f = replace(F, arguments=(cents,))
    declared = Declared("1", image=lambda value: None if value is None else int(value))
    said = with_images(Comparison(">=", f, Literal(3, INT)), lambda _: declared)
    assert isinstance(said, And)
    assert said.children[1] == Comparison(">=", cents, Literal(Decimal("3.0"), cents.type))
