"""What a node says of an indexed operand, leaf by leaf, and which question that is to values."""

from __future__ import annotations

import math
from typing import Any

import pytest

from es_skipping.clauses.clause import SKIP, Ask, Disjunction
from es_skipping.clauses.questions import AnyOf, HasNaN, HasNotNull, HasNull, OtherThan, Overlaps, Range
from es_skipping.indexes.base import Target
from es_skipping.indexes.labels import (
    IsNull,
    IsOneOf,
    Leaf,
    NotNull,
    Text,
    Within,
    common_values,
    constraint_on,
    leaf_of,
    text_endings,
    text_parts,
    text_prefix,
    value_clause,
)
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
    NullTest,
    Operand,
    Or,
    Predicate,
)
from es_skipping.predicates.types import DataType

INT, DOUBLE, STRING, BOOLEAN, DATE, TIMESTAMP = map(
    DataType, ("int", "double", "string", "boolean", "date", "timestamp")
)
X, Y, D, S = Column(("x",), INT), Column(("y",), INT), Column(("d",), DOUBLE), Column(("s",), STRING)
TS = Column(("ts",), TIMESTAMP)
DAY = Cast(TS, DATE, "ANSI", "UTC")
ODD = Call("is_odd", (X,), BOOLEAN)
NAN = math.nan


def compare(comparator: Any, value: Any, column: Operand = X) -> Comparison:
    return Comparison(comparator, column, Literal(value, column.type))


LEAVES: list[tuple[Predicate, Operand, Leaf | None]] = [
    (compare("=", 5), X, IsOneOf((5,))),
    (compare("<>", 5), X, IsOneOf((5,), negated=True)),
    (compare("<", 5), X, Within((Range(None, 5, high_open=True),))),
    (compare("<=", 5), X, Within((Range(None, 5),))),
    (compare(">", 5), X, Within((Range(5, None, low_open=True),))),
    (compare(">=", 5), X, Within((Range(5, None),))),
    (compare("<=>", 5), X, None),
    (compare("=", 5, Y), X, None),
    (compare("<", None), X, NotNull()),
    (Comparison("<", X, Literal("a", STRING)), X, NotNull()),
    (Comparison("<", X, Y), X, NotNull()),
    (Comparison("<", Y, X), X, NotNull()),
    (Comparison("<", Y, Y), X, None),
    (compare("=", 1.5, D), D, IsOneOf((1.5,))),
    (compare("=", NAN, D), D, IsOneOf((), nan=True)),
    (compare("<>", NAN, D), D, IsOneOf((), nan=True, negated=True)),
    (compare("<", 1.5, D), D, Within((Range(None, 1.5, high_open=True),))),
    (compare("<=", 1.5, D), D, Within((Range(None, 1.5),))),
    (compare(">", 1.5, D), D, Within((Range(1.5, None, low_open=True),), nan=True)),
    (compare(">=", 1.5, D), D, Within((Range(1.5, None),), nan=True)),
    (compare("<", NAN, D), D, Within((Range(),))),
    (compare("<=", NAN, D), D, NotNull()),
    (compare(">", NAN, D), D, Within(())),
    (compare(">=", NAN, D), D, Within((), nan=True)),
    (compare("<", 2 * 86_400_000_000, TS), DAY, Within((Range(None, 1),))),
    (compare("<", None, TS), DAY, None),
    (IsIn(X, (1, 2)), X, IsOneOf((1, 2))),
    (IsIn(X, (1, 2), negated=True), X, IsOneOf((1, 2), negated=True)),
    (IsIn(X, (1, "a")), X, NotNull()),
    (IsIn(Y, (1, 2)), X, None),
    (IsIn(D, (1.0, NAN, 1.0)), D, IsOneOf((1.0,), nan=True)),
    (NullTest(X), X, IsNull()),
    (NullTest(X, negated=True), X, NotNull()),
    (NullTest(Y), X, None),
    (Matches("like", S, "a%", "!", negated=True), S, Text("like", "a%", "!", negated=True)),
    (Matches("starts", S, "a"), X, None),
    (Matches("starts", X, "a"), X, NotNull()),
    (Holds(ODD), ODD, IsOneOf((True,))),
    (Holds(ODD, negated=True), ODD, IsOneOf((False,))),
    (Holds(Call("is_odd", (X,), INT)), Call("is_odd", (X,), INT), NotNull()),
    (Holds(ODD), X, None),
    (And((compare("=", 5), compare("=", 5))), X, None),
]


@pytest.mark.parametrize(("node", "operand", "leaf"), LEAVES, ids=lambda value: str(value)[:60])
def test_leaves(node: Predicate, operand: Operand, leaf: Leaf | None) -> None:
    assert leaf_of(node, operand, operand.type) == leaf


def test_a_negative_zero_is_asked_for_as_zero() -> None:
    for comparator in ("=", "<>", "<", "<=", ">", ">="):
        assert "-0.0" not in repr(leaf_of(compare(comparator, -0.0, D), D, DOUBLE))
    assert repr(leaf_of(IsIn(D, (-0.0, 0.0)), D, DOUBLE)) == repr(IsOneOf((0.0,)))


NOT_NULL = NullTest(X, negated=True)
COMMON: list[tuple[tuple[Predicate, ...], Leaf | None]] = [
    ((compare(">", 5), compare("<", 9)), Within((Range(6, 8),))),
    ((compare(">=", 5), compare("<=", 9)), Within((Range(5, 9),))),
    ((compare(">=", 5), compare("<=", 5)), IsOneOf((5,))),
    ((compare(">", 5), compare("<", 7)), IsOneOf((6,))),
    ((compare(">", 5), compare("<=", 5)), Within(())),
    ((compare(">=", 5), compare("<", 5)), Within(())),
    ((compare(">", 9), compare("<", 5)), Within(())),
    ((compare("<", 5), compare("<", 4), compare(">", 1)), Within((Range(2, 3),))),
    ((compare(">", 1), NOT_NULL, compare("<", 4), compare("<", 2, Y)), Within((Range(2, 3),))),
    ((IsIn(X, (1, 5, 9)), compare(">", 3)), IsOneOf((5, 9))),
    ((IsIn(X, (1, 5)), IsIn(X, (5, 9))), IsOneOf((5,))),
    ((IsIn(X, (1, 5)), IsIn(X, (6, 9))), Within(())),
    ((compare("<>", 5), compare(">", 3), compare("<=", 7)), Within((Range(4, 4), Range(6, 7)))),
    ((compare("<>", 5), compare("<>", 7)), Within((Range(None, 4), Range(6, 6), Range(8, None)))),
    ((NullTest(X), compare("<", 5)), Within(())),
    ((NullTest(X), Or((compare("<", 5), NullTest(X)))), None),
    ((Or((compare(">", 7), NullTest(X))), Or((compare("<", 5), NullTest(X)))), IsNull()),
    ((Or((compare(">", 7), NullTest(X))), Or((compare("<", 9), NullTest(X)))), None),
    # one part says as much as both
    ((compare(">", 5), compare(">=", 5)), None),
    ((compare(">", 5), compare(">=", 6)), None),
    ((compare("<=", 4), compare("<", 5)), None),
    ((compare("=", 5), NOT_NULL), None),
    # less than two parts say anything
    ((compare(">", 1), compare("<", 4, Y)), None),
    ((compare("<", 2, Y), compare("<", 4, Y)), None),
    (
        tuple(compare("<>", n) for n in range(0, 126, 2)),
        Within((Range(None, -1), *(Range(n, n) for n in range(1, 124, 2)), Range(125, None))),
    ),
    (tuple(compare("<>", n) for n in range(0, 128, 2)), None),
]


@pytest.mark.parametrize(("parts", "leaf"), COMMON, ids=lambda value: str(value)[:60])
def test_common_values(parts: tuple[Predicate, ...], leaf: Leaf | None) -> None:
    assert common_values(And(parts), X, INT) == leaf
    assert constraint_on(And(parts), Target("i", (X,), (INT,))) == leaf


def test_of_two_stretches_one_says_nothing_more() -> None:
    def asked(*parts: Predicate, column: Column = X) -> Leaf | None:
        return common_values(And(parts), column, column.type, of_one_stretch=True)

    assert asked(compare(">", 5), compare("<", 9)) is None
    assert asked(compare("=", 5), compare("<", 9)) is None
    assert asked(compare("<>", 5), compare("<", 9)) == Within((Range(None, 4), Range(6, 8)))
    assert asked(compare("<>", 5), compare("<>", 9)) == Within((Range(None, 4), Range(6, 8), Range(10, None)))
    assert asked(IsIn(X, (1, 5)), IsIn(X, (5, 9))) == IsOneOf((5,))
    assert asked(NullTest(X), compare("<", 5)) == Within(())
    low, high = compare(">", 1.0, D), compare("<", 4.0, D)
    assert asked(low, high, column=D) == Within((Range(1.0, 4.0, True, True),))
    assert asked(low, compare(">=", 2.0, D), column=D) is None


def test_nan_is_among_common_values_if_all_parts_have_it() -> None:
    low, high = compare(">", 1.0, D), compare("<", 4.0, D)
    assert common_values(And((low, compare("<>", 2.0, D))), D, DOUBLE) == Within(
        (Range(1.0, 2.0, True, True), Range(2.0, None, True)), nan=True
    )
    assert common_values(And((low, high)), D, DOUBLE) == Within((Range(1.0, 4.0, True, True),))
    assert common_values(And((low, IsIn(D, (NAN, 1.0)))), D, DOUBLE) == Within((), nan=True)
    assert common_values(And((low, IsIn(D, (NAN, 1.0, 2.0)))), D, DOUBLE) == IsOneOf((2.0,), nan=True)


def test_of_dates_the_times_say_more() -> None:
    day = 86_400_000_000
    parts = And((compare(">=", 2 * day, TS), compare("<", 5 * day, TS)))
    assert common_values(parts, DAY, DATE) == Within((Range(2, 4),))


def test_one_part_has_nothing_in_common() -> None:
    one = compare(">", 1)
    assert common_values(one, X, INT) is None
    assert common_values(Or((one, compare("<", 4))), X, INT) is None
    assert constraint_on(one, Target("i", (X,), (INT,))) == Within((Range(1, None, True),))


@pytest.mark.parametrize(
    ("leaf", "prefix", "endings", "parts"),
    [
        (Text("starts", "ab"), "ab", (), ("ab",)),
        (Text("ends", "ab"), "", ("ab",), ("ab",)),
        (Text("contains", "ab"), "", (), ("ab",)),
        (Text("like", "ab%cd_ef"), "ab", ("ef",), ("ab", "cd", "ef")),
        (Text("like", "%"), "", (), ()),
        (Text("like", "a!%b%", "!"), "a%b", (), ("a%b",)),
        (Text("like", "ab%cd!", "!"), "", (), ()),
        (Text("rlike", "^ab.*cd$"), "ab", ("cd", "cd\n", "cd\r\n"), ("ab", "cd")),
        (Text("rlike", "ab"), "", (), ()),
    ],
)
def test_what_is_certain_of_a_string(leaf: Text, prefix: str, endings: tuple[str, ...], parts: tuple[str, ...]) -> None:
    assert text_prefix(leaf) == prefix
    assert text_endings(leaf)[: len(endings) or None] == endings
    assert text_parts(leaf) == parts


def ask(*questions: Any, id: str = "i") -> Any:
    asked = tuple(Ask(id, question) for question in questions)
    return asked[0] if len(asked) == 1 else Disjunction(asked)


RANGES = (Range(1.0, 2.0),)


@pytest.mark.parametrize(
    ("leaf", "of_double", "of_int"),
    [
        (IsOneOf((1.0,)), ask(AnyOf((1.0,))), ask(AnyOf((1.0,)))),
        (IsOneOf((1.0,), nan=True), ask(AnyOf((1.0,)), HasNaN()), ask(AnyOf((1.0,)), HasNaN())),
        (IsOneOf((), nan=True), ask(HasNaN()), ask(HasNaN())),
        (IsOneOf(()), SKIP, SKIP),
        (IsOneOf((1.0,), negated=True), ask(OtherThan((1.0,)), HasNaN()), ask(OtherThan((1.0,)))),
        (IsOneOf((1.0,), nan=True, negated=True), ask(OtherThan((1.0,))), ask(OtherThan((1.0,)))),
        (IsOneOf((), negated=True), ask(OtherThan(()), HasNaN()), ask(OtherThan(()))),
        (Within(RANGES), ask(Overlaps(RANGES)), ask(Overlaps(RANGES))),
        (Within(RANGES, nan=True), ask(Overlaps(RANGES), HasNaN()), ask(Overlaps(RANGES), HasNaN())),
        (Within((), nan=True), ask(HasNaN()), ask(HasNaN())),
        (Within(()), SKIP, SKIP),
        (IsNull(), ask(HasNull()), ask(HasNull())),
        (NotNull(), ask(HasNotNull()), ask(HasNotNull())),
        (Text("starts", "a"), None, None),
    ],
)
def test_clauses_of_leaves(leaf: Leaf, of_double: Any, of_int: Any) -> None:
    assert value_clause(leaf, Target("i", (D,), (DOUBLE,))) == of_double
    assert value_clause(leaf, Target("i", (X,), (INT,))) == of_int
