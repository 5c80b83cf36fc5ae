"""Versions of user functions in predicates, and what a monotone one says of its argument."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
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


@settings(deadline=None)
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
