"""The normal form: true of exactly the rows the predicate is true of, and of the promised shape."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from es_skipping.predicates.normal import normalise
from es_skipping.predicates.show import show
from es_skipping.predicates.tree import (
    ALWAYS,
    NEVER,
    And,
    Call,
    Cast,
    Column,
    Comparison,
    Constant,
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
from tests.predicates.rows import CASTS, COLUMNS, COMPARATORS, EDGES, TYPES, cast, predicates, rows, truth

X = COLUMNS["int"]
NULLS: dict[str, Any] = {f"c_{name}": None for name in EDGES}
D = COLUMNS["double"]
S = COLUMNS["string"]
B = COLUMNS["boolean"]


def lit(value: Any, type_name: str) -> Literal:
    return Literal(value, parse_type(type_name))


def compare(comparator: Any, left: Operand, value: Any) -> Comparison:
    return Comparison(comparator, left, Literal(value, left.type))


def cast_of(source: str, target: str, zone: str | None = "UTC") -> Cast:
    return Cast(COLUMNS[source], parse_type(target), zone=zone)


# --- the law ------------------------------------------------------------------------------------------------------


@settings(max_examples=400, deadline=None)
@given(predicates(), st.lists(rows(), min_size=1, max_size=4))
@example(Not(IsIn(X, (5,), has_null=True)), [NULLS])
@example(Matches("like", COLUMNS["string"], "a_%"), [{**NULLS, "c_string": "ab"}])
@example(Matches("like", COLUMNS["string"], "a_%", negated=True), [{**NULLS, "c_string": "a"}])
def test_true_of_the_same_rows(predicate: Predicate, table: list[Any]) -> None:
    normal = normalise(predicate)
    for row in table:
        assert (truth(normal, row) is True) == (truth(predicate, row) is True), show(normal)


@settings(max_examples=400, deadline=None)
@given(predicates())
def test_shape_of_what_filters_see(predicate: Predicate) -> None:
    normal = normalise(predicate)
    assert normalise(normal) == normal
    _check_shape(normal, top=True)


def _check_shape(node: Predicate, top: bool = False) -> None:
    assert not isinstance(node, Not | Opaque)
    assert top or not isinstance(node, Constant)
    if isinstance(node, And | Or):
        assert len(node.children) > 1
        assert len(set(node.children)) == len(node.children)
        assert not any(isinstance(child, type(node)) for child in node.children)
        for child in node.children:
            _check_shape(child)
    if isinstance(node, Comparison):
        assert node.comparator != "<=>"
        assert not isinstance(node.left, Literal)
        if isinstance(node.right, Literal):
            value = node.right.value
            assert value is not None
            assert node.right.type == node.left.type
            if isinstance(value, float):
                assert str(value) != "-0.0"
                assert not math.isnan(value) or node.comparator in {"=", "<>"}
            assert not isinstance(value, bool) or node.comparator == "="
    if isinstance(node, IsIn):
        assert not node.has_null
        assert len(set(node.values)) == len(node.values) > 1
        assert not any(isinstance(value, float) and math.isnan(value) for value in node.values)
        assert "-0.0" not in map(str, node.values)


@pytest.mark.parametrize(("source", "target"), CASTS)
def test_every_comparison_of_every_cast_at_the_edges(source: str, target: str) -> None:
    operand = cast_of(source, target)
    literals = {cast(edge, source, operand.type) for edge in EDGES[source]} | set(EDGES.get(target, ()))
    for comparator in COMPARATORS:
        for value in literals:
            for contrary in (False, True):
                predicate: Predicate = Comparison(comparator, operand, Literal(value, operand.type))
                predicate = Not(predicate) if contrary else predicate
                normal = normalise(predicate)
                for edge in (None, *EDGES[source]):
                    row = {f"c_{source}": edge}
                    assert (truth(normal, row) is True) == (truth(predicate, row) is True), (show(normal), edge)


@pytest.mark.parametrize("name", sorted(EDGES))
def test_every_comparison_and_its_negation_at_the_edges(name: str) -> None:
    column, other = COLUMNS[name], Column(("other",), COLUMNS[name].type)
    edges = [None, *EDGES[name]]
    rows_of_one = [{f"c_{name}": edge} for edge in edges]
    rows_of_two = [{f"c_{name}": one, "other": two} for one in edges for two in edges]
    for comparator in COMPARATORS:
        _check_rows(Comparison(comparator, column, other), rows_of_two)
        for edge in edges:
            literal = Literal(edge, column.type)
            _check_rows(Comparison(comparator, column, literal), rows_of_one)
            _check_rows(Comparison(comparator, literal, column), rows_of_one)
    for listed in (EDGES[name][:1], EDGES[name][1:3], EDGES[name]):
        for negated in (False, True):
            for has_null in (False, True):
                _check_rows(IsIn(column, tuple(listed), negated, has_null), rows_of_one)


def _check_rows(predicate: Predicate, table: list[Any]) -> None:
    for asked in (predicate, Not(predicate)):
        normal = normalise(asked)
        for row in table:
            assert (truth(normal, row) is True) == (truth(asked, row) is True), (show(normal), row)


# --- what it looks like -------------------------------------------------------------------------------------------

CASES: list[tuple[str, Predicate, Predicate]] = [
    ("NOT of a comparison", Not(compare("<", X, 5)), compare(">=", X, 5)),
    ("literal on the left", Comparison("<", lit(5, "int"), X), compare(">", X, 5)),
    ("NOT, literal on the left", Not(Comparison("<=", lit(5, "int"), X)), compare("<", X, 5)),
    ("De Morgan", Not(And((compare("=", X, 5), NullTest(S)))), Or((compare("<>", X, 5), NullTest(S, negated=True)))),
    ("NOT NOT", Not(Not(compare("=", X, 5))), compare("=", X, 5)),
    ("<=>", compare("<=>", X, 5), compare("=", X, 5)),
    ("NOT <=>", Not(compare("<=>", X, 5)), Or((compare("<>", X, 5), NullTest(X)))),
    ("<=> NULL", compare("<=>", X, None), NullTest(X)),
    ("NOT <=> NULL", Not(compare("<=>", X, None)), NullTest(X, negated=True)),
    ("= NULL", compare("=", X, None), NEVER),
    ("NOT = NULL", Not(compare("=", X, None)), NEVER),
    ("IN with NULL", IsIn(X, (5,), has_null=True), compare("=", X, 5)),
    ("NOT IN with NULL", Not(IsIn(X, (5,), has_null=True)), NEVER),
    ("NOT IN", Not(IsIn(X, (5, 6))), IsIn(X, (5, 6), negated=True)),
    ("IN of NULL alone", IsIn(X, (), has_null=True), NEVER),
    ("IN twice the same", IsIn(X, (5, 5)), compare("=", X, 5)),
    ("NOT IN of one", IsIn(X, (5,), negated=True), compare("<>", X, 5)),
    ("IN with NaN", IsIn(D, (1.0, math.nan)), Or((compare("=", D, 1.0), compare("=", D, math.nan)))),
    ("IN of both zeros", IsIn(D, (0.0, -0.0)), compare("=", D, 0.0)),
    ("NOT IN with -0.0", IsIn(D, (1.0, -0.0), negated=True), IsIn(D, (1.0, 0.0), negated=True)),
    ("-0.0", compare(">", D, -0.0), compare(">", D, 0.0)),
    ("> NaN", compare(">", D, math.nan), NEVER),
    (">= NaN", compare(">=", D, math.nan), compare("=", D, math.nan)),
    ("< NaN", compare("<", D, math.nan), compare("<>", D, math.nan)),
    ("<= NaN", compare("<=", D, math.nan), NullTest(D, negated=True)),
    ("NOT a boolean", Not(compare("=", B, True)), compare("=", B, False)),
    ("a boolean below TRUE", compare("<", B, True), compare("=", B, False)),
    ("a boolean up to TRUE", compare("<=", B, True), NullTest(B, negated=True)),
    (
        "flat and once",
        And((compare("=", X, 1), And((compare("=", X, 1), NullTest(S))))),
        And((compare("=", X, 1), NullTest(S))),
    ),
    ("constants", Or((NEVER, And((ALWAYS, compare("=", X, 1))))), compare("=", X, 1)),
    ("NEVER absorbs opaque", And((NEVER, Opaque("?"))), NEVER),
    ("NOT opaque", Not(Opaque("?")), Opaque("?")),
    ("literals", Comparison("<", lit(1, "int"), lit(2, "int")), ALWAYS),
    ("LIKE without wildcards", Matches("like", S, r"a\%"), compare("=", S, "a%")),
    ("NOT LIKE without wildcards", Matches("like", S, "ab", negated=True), compare("<>", S, "ab")),
    ("LIKE a%", Matches("like", S, "a%"), Matches("starts", S, "a")),
    ("LIKE %a", Matches("like", S, "%a"), Matches("ends", S, "a")),
    ("LIKE %a%", Matches("like", S, "%%a%"), Matches("contains", S, "a")),
    ("LIKE %", Matches("like", S, "%"), NullTest(S, negated=True)),
    ("NOT LIKE %", Not(Matches("like", S, "%")), NEVER),
    ("a pattern stays", Matches("like", S, "a_%"), Matches("like", S, "a_%")),
    ("a wrong pattern stays", Matches("like", S, "a\\"), Matches("like", S, "a\\")),
    ("the surrogates of a pattern stay", Matches("like", S, "\U0001f600%"), Matches("like", S, "\U0001f600%")),
]


@pytest.mark.parametrize(("predicate", "expected"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_forms(predicate: Predicate, expected: Predicate) -> None:
    assert repr(normalise(predicate)) == repr(expected)  # which tells -0.0 from 0.0


BIG = 2**53
CAST_CASES: list[tuple[Predicate, Predicate]] = [
    (compare("=", cast_of("int", "bigint"), 5), compare("=", X, 5)),
    (compare("=", cast_of("int", "bigint"), 2**40), NEVER),
    (compare("<", cast_of("int", "bigint"), 2**40), NullTest(X, negated=True)),
    (compare("<>", cast_of("int", "bigint"), 2**40), NullTest(X, negated=True)),
    (compare(">", cast_of("int", "double"), 5.5), compare(">=", X, 6)),
    (compare("=", cast_of("int", "double"), 5.5), NEVER),
    (compare("<=", cast_of("int", "decimal(20,4)"), Decimal("5.5")), compare("<=", X, 5)),
    (compare("<", cast_of("int", "double"), math.nan), NullTest(X, negated=True)),
    # The neighbours of 2**53 that round to it are found, and no others.
    (
        compare("=", cast_of("bigint", "double"), float(BIG)),
        And((compare(">=", COLUMNS["bigint"], BIG), compare("<=", COLUMNS["bigint"], BIG + 1))),
    ),
    (compare(">", cast_of("float", "double"), 0.1), compare(">=", COLUMNS["float"], 0.10000000149011612)),
    (compare(">", cast_of("float", "double"), 1e300), compare(">=", COLUMNS["float"], math.inf)),
    (compare("=", cast_of("float", "double"), 0.1), NEVER),
    (
        compare("=", cast_of("decimal(5,2)", "decimal(20,4)"), Decimal("0.1")),
        compare("=", COLUMNS["decimal(5,2)"], Decimal("0.10")),
    ),
    (compare("=", cast_of("decimal(5,2)", "decimal(20,4)"), Decimal("0.1001")), NEVER),
    (compare(">=", cast_of("date", "timestamp_ntz"), 1), compare(">=", COLUMNS["date"], 1)),
    (NullTest(cast_of("int", "bigint")), NullTest(X)),
    (IsIn(cast_of("int", "bigint"), (5, 6, 2**40)), IsIn(X, (5, 6))),
    (IsIn(cast_of("int", "bigint"), (5, 2**40), negated=True), And((compare("<>", X, 5), NullTest(X, negated=True)))),
]


@pytest.mark.parametrize(("predicate", "expected"), CAST_CASES, ids=[show(case[0]) for case in CAST_CASES])
def test_casts_that_preserve_order_are_undone(predicate: Predicate, expected: Predicate) -> None:
    assert normalise(predicate) == expected


@pytest.mark.parametrize(
    "operand",
    [
        cast_of("bigint", "int"),
        cast_of("double", "float"),
        cast_of("int", "decimal(5,2)"),
        cast_of("decimal(20,4)", "decimal(5,2)"),
        cast_of("date", "timestamp", "Europe/Berlin"),
        cast_of("date", "timestamp", None),
        cast_of("timestamp", "date", "Asia/Tokyo"),
        Cast(COLUMNS["bigint"], TYPES["float"]),
        Cast(COLUMNS["double"], TYPES["bigint"]),
        Cast(B, TYPES["int"]),
    ],
    ids=show,
)
def test_other_casts_stay(operand: Cast) -> None:
    edge = EDGES[str(operand.type)][1]
    predicate = compare("<", operand, edge)
    normal = normalise(predicate)
    assert predicate in (normal, *(normal.children if isinstance(normal, And) else ())), "of times more is said beside"
    assert normalise(NullTest(operand)) == NullTest(operand)


def test_casts_to_and_from_strings_stay() -> None:
    for predicate in (compare("<", cast_of("int", "string"), "5"), compare("<", Cast(S, TYPES["int"]), 5)):
        assert normalise(predicate) == predicate


def test_a_cast_of_a_cast_is_undone_as_far_as_it_can_be() -> None:
    inner = cast_of("bigint", "int")
    assert normalise(compare(">", Cast(inner, TYPES["bigint"]), 5)) == compare(">", inner, 5)
    assert normalise(compare(">", Cast(cast_of("tinyint", "int"), TYPES["bigint"]), 5)) == compare(
        ">", COLUMNS["tinyint"], 5
    )


@pytest.mark.parametrize(
    "type_name",
    ["string collate UTF8_LCASE", "struct<a:int>", "array<int>", "interval day to second", "variant", "char(5)"],
)
def test_values_of_types_without_a_known_order_are_opaque(type_name: str) -> None:
    column = Column(("c",), DataType(type_name))
    assert isinstance(normalise(Comparison("<", column, column)), Opaque)
    assert isinstance(normalise(Not(Comparison("=", column, Literal("a", column.type)))), Opaque)
    assert isinstance(normalise(IsIn(column, ("a",))), Opaque)
    assert isinstance(normalise(Matches("starts", column, "a")), Opaque)
    assert normalise(NullTest(column)) == NullTest(column)  # whether it is null is another matter


def test_literals_of_another_type() -> None:
    assert normalise(Comparison("=", X, lit(5, "bigint"))) == compare("=", X, 5)
    assert normalise(Comparison(">", X, lit(2**40, "bigint"))) == NEVER
    assert normalise(Comparison("=", COLUMNS["bigint"], lit(5, "int"))) == compare("=", COLUMNS["bigint"], 5)
    assert normalise(Comparison("<", COLUMNS["float"], lit(0.1, "double"))) == compare(
        "<=", COLUMNS["float"], 0.09999999403953552
    )
    for other in (lit("5", "string"), lit(5.0, "double"), lit(True, "boolean"), lit(5, "date")):
        assert isinstance(normalise(Comparison("=", X, other)), Opaque)
    assert isinstance(normalise(Comparison("=", X, lit("5", "int"))), Opaque)
    assert isinstance(normalise(IsIn(X, (5, 6.0))), Opaque)


@pytest.mark.parametrize("negated", [False, True])
@pytest.mark.parametrize("pattern", ["a\ufffd%", "a\ufffd", "%\ufffd", "a\ufffd_"])
def test_a_pattern_with_what_stands_for_bytes_that_are_no_text(pattern: str, negated: bool) -> None:
    """LIKE reads strings as Java does: the byte FF, which is no UTF-8, is U+FFFD to it, and equality says otherwise."""
    column = Column(("s",), parse_type("string"))
    found = normalise(Matches("like", column, pattern, negated=negated))
    assert isinstance(found, Opaque), show(found)


def test_functions_keep_their_negation() -> None:
    call = Call("udf:f", (X,), TYPES["boolean"])
    assert normalise(Not(Holds(call))) == Holds(call, negated=True)


def test_wide_and_deep_trees() -> None:
    leaves = tuple(compare("=", X, n) for n in range(50_000))
    nested: Predicate = leaves[0]
    for leaf in leaves[1:]:
        nested = And((nested, leaf))
    wide = normalise(Not(nested))
    assert isinstance(wide, Or)
    assert len(wide.children) == 50_000
    contrary: Predicate = leaves[0]
    for _ in range(100_001):
        contrary = Not(contrary)
    assert normalise(contrary) == compare("<>", X, 0)
    alternating: Predicate = leaves[0]
    for n in range(100_000):
        alternating = (And, Or)[n % 2]((leaves[n % 7 + 1], alternating))
    assert "too deep" in repr(normalise(alternating))
    operand: Operand = X
    for _ in range(100_000):
        operand = Cast(operand, TYPES["bigint"])
    assert normalise(Comparison("=", operand, lit(5, "bigint"))) == Opaque("too deep")


def test_long_lists_are_quick() -> None:
    predicate = IsIn(X, tuple(range(100_000)))
    assert normalise(predicate) == predicate
    under_a_cast = IsIn(cast_of("int", "bigint"), tuple(range(100_000)))
    assert normalise(under_a_cast) == under_a_cast
