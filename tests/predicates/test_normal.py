"""The normal form: true of exactly the rows the predicate is true of, and of the promised shape."""

from __future__ import annotations

import math
import time
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from es_skipping.predicates.normal import _MAX_CAST_VALUES, MAX_DEPTH, _said_of_argument, all_of, any_of, normalise
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
    Implying,
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
from tests.examples import examples
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


@examples(400)
@given(predicates(), st.lists(rows(), min_size=1, max_size=4))
@example(Not(IsIn(X, (5,), has_null=True)), [NULLS])
@example(Matches("like", COLUMNS["string"], "a_%"), [{**NULLS, "c_string": "ab"}])
@example(Matches("like", COLUMNS["string"], "a_%", negated=True), [{**NULLS, "c_string": "a"}])
def test_true_of_the_same_rows(predicate: Predicate, table: list[Any]) -> None:
    normal = normalise(predicate)
    for row in table:
        assert (truth(normal, row) is True) == (truth(predicate, row) is True), show(normal)


def test_what_follows_stands_beside_the_exact_predicate() -> None:
    """Where the exact one is true, and where it is false; and nothing beside it where nothing follows."""
    exact, above, below = compare("=", X, 5), compare(">", D, 1.0), compare("<", D, 0.0)
    both = Implying(exact, above, below)
    assert normalise(both) == And((exact, above))
    assert normalise(Not(both)) == And((compare("<>", X, 5), below))
    assert normalise(Not(Not(both))) == And((exact, above))
    assert normalise(Implying(exact, if_false=below)) == exact
    assert normalise(Not(Implying(exact, above))) == compare("<>", X, 5)
    assert normalise(Or((Not(both), both))) == Or((And((compare("<>", X, 5), below)), And((exact, above))))


@examples(400)
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
    assert normalise(Comparison("=", D, lit(0.5, "float"))) == compare("=", D, 0.5)
    for other in (lit("5", "string"), lit(5.0, "double"), lit(True, "boolean"), lit(5, "date")):
        assert isinstance(normalise(Comparison("=", X, other)), Opaque)
    assert isinstance(normalise(Comparison("=", X, lit("5", "int"))), Opaque)
    assert isinstance(normalise(IsIn(X, (5, 6.0))), Opaque)


@pytest.mark.parametrize("negated", [False, True])
@pytest.mark.parametrize("pattern", ["a\ufffd%", "a\ufffd", "%\ufffd", "a\ufffd_"])
def test_a_pattern_with_what_stands_for_bytes_that_are_no_text(pattern: str, negated: bool) -> None:
    """LIKE reads strings as Java does: the byte FF, not UTF-8, is U+FFFD to it, and equality says otherwise."""
    column = Column(("s",), parse_type("string"))
    found = normalise(Matches("like", column, pattern, negated=negated))
    assert isinstance(found, Opaque), show(found)


CONTRADICTIONS = [
    And((compare("=", X, 1), compare("=", X, 2))),
    And((compare("<", X, 1), compare(">", X, 0))),  # there is no whole number between
    And((IsIn(X, (1, 5)), compare(">", X, 5))),
    And((NullTest(X), compare("<>", X, 5))),
    And((compare("=", X, 1), Or((NullTest(X), compare(">", X, 3))))),
    And((Comparison("=", S, lit("a", "string")), Matches("starts", S, "b"))),
]


@pytest.mark.parametrize("predicate", CONTRADICTIONS, ids=show)
def test_what_no_value_satisfies_is_never_true(predicate: And) -> None:
    assert normalise(predicate) == NEVER
    assert normalise(Or((predicate, compare("=", X, 7)))) == compare("=", X, 7)


def test_what_some_value_satisfies_is_left_alone() -> None:
    nan = Comparison("=", D, lit(math.nan, "double"))
    zero = Or((Comparison("=", D, lit(-0.0, "double")), NullTest(D)))
    for predicate in (
        And((compare("<=", X, 1), compare(">=", X, 1))),
        And((Comparison(">", D, lit(1.0, "double")), Comparison("<", D, lit(math.nextafter(1.0, 2.0), "double")))),
        And((Comparison(">", D, lit(math.inf, "double")), nan)),
        And((Comparison("<=", D, lit(0.0, "double")), zero)),
        And((Comparison(">", S, lit("a", "string")), Comparison("<", S, lit("a\x00", "string")))),
        And((NullTest(X), Or((compare("=", X, 1), NullTest(X))))),
        And((IsIn(X, (1, 9)), Or((compare("<", X, 0), compare(">", X, 8))))),
    ):
        assert normalise(predicate) != NEVER, show(predicate)


def test_two_calls_that_look_alike_contradict_nothing() -> None:
    call = Call("udf:f", (X,), TYPES["int"])
    both = And((Comparison("=", call, lit(1, "int")), Comparison("=", call, lit(2, "int"))))
    assert normalise(both) == both


def test_contradictions_are_looked_for_within_bounds() -> None:
    """Ten thousand parts of one column are soon met; what would take long is left as it is."""
    excluded = And(tuple(compare("<>", X, n) for n in range(10_000)))
    of_many = And(
        (
            *(Comparison("=", Column((f"c{n}",), TYPES["int"]), lit(n, "int")) for n in range(1_000)),
            Or(tuple(compare("=", X, n) for n in range(10_000))),
        )
    )
    for predicate in (excluded, of_many):
        begun = time.process_time()
        assert normalise(predicate) == predicate
        assert time.process_time() - begun < 5


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
    of_many = [Comparison("=", Column((f"c{n}",), TYPES["int"]), lit(n, "int")) for n in range(7)]
    for n in range(100_000):
        alternating = (And, Or)[n % 2]((of_many[n % 7], alternating))
    assert "too deep" in repr(normalise(alternating))
    operand: Operand = X
    for _ in range(100_000):
        operand = Cast(operand, TYPES["bigint"])
    assert normalise(Comparison("=", operand, lit(5, "bigint"))) == Opaque("too deep")
    assert normalise(Comparison("=", lit(5, "bigint"), operand)) == Opaque("too deep")
    call = Call("is_odd", (operand,), TYPES["boolean"])
    for leaf in (IsIn(operand, (5,)), NullTest(operand), Matches("starts", operand, "a"), Holds(call)):
        assert normalise(leaf) == Opaque("too deep")


def test_long_lists_are_quick() -> None:
    predicate = IsIn(X, tuple(range(100_000)))
    assert normalise(predicate) == predicate
    under_a_cast = IsIn(cast_of("int", "bigint"), tuple(range(100_000)))
    assert normalise(under_a_cast) == under_a_cast


@pytest.mark.parametrize("type_name", ["int", "string", "boolean", "double"])
def test_whatever_is_said_of_an_opaque_operand_is_opaque(type_name: str) -> None:
    odd = Opaque("a subquery", TYPES[type_name])
    value = EDGES[type_name][1]
    literal = Literal(value, odd.type)
    said: list[Predicate] = [
        *(Comparison(comparator, odd, literal) for comparator in COMPARATORS if comparator != "<=>"),
        *(Comparison(comparator, literal, odd) for comparator in COMPARATORS if comparator != "<=>"),
        Comparison("<", odd, COLUMNS[type_name]),
        Comparison("<", COLUMNS[type_name], odd),
        IsIn(odd, (value,)),
        IsIn(odd, (value, EDGES[type_name][0])),
        IsIn(odd, (value,), negated=True),
        NullTest(odd),
        NullTest(odd, negated=True),
        Matches("starts", odd, "a"),
    ]
    for one in said:
        assert normalise(one) == odd
        assert normalise(Not(one)) == odd
    safe = normalise(Comparison("<=>", odd, literal))
    assert safe == odd or odd in safe.children  # type: ignore[union-attr]


def test_lists_of_nothing_and_of_null() -> None:
    null = Literal(None, TYPES["int"])
    assert normalise(IsIn(X, ())) == NEVER
    assert normalise(IsIn(X, (), negated=True)) == ALWAYS
    assert normalise(IsIn(null, ())) == NEVER
    assert normalise(IsIn(null, (), negated=True)) == ALWAYS
    assert normalise(IsIn(null, (1,))) == normalise(IsIn(null, (1,), negated=True)) == NEVER
    assert normalise(IsIn(null, (), has_null=True)) == normalise(IsIn(null, (), True, True)) == NEVER
    assert normalise(IsIn(Literal(None, DataType("void")), (1,))) == NEVER
    assert normalise(IsIn(lit(5, "int"), (5, 6))) == ALWAYS
    assert normalise(IsIn(lit(5, "int"), (6, 7))) == NEVER
    assert normalise(IsIn(lit(5, "int"), (6, 7), negated=True)) == ALWAYS


@pytest.mark.parametrize("negated", [False, True])
def test_a_long_list_keeps_its_cast(negated: bool) -> None:
    """Each value of a shorter one is looked for among the values that the cast has."""
    operand = cast_of("int", "bigint")
    short, long = tuple(range(_MAX_CAST_VALUES)), tuple(range(_MAX_CAST_VALUES + 1))
    assert normalise(IsIn(operand, short, negated)) == IsIn(X, short, negated)
    assert normalise(IsIn(operand, long, negated)) == IsIn(operand, long, negated)


def test_a_list_of_years_says_where_the_days_are() -> None:
    year = Call("year", (COLUMNS["date"],), TYPES["int"])
    listed = normalise(IsIn(year, (1970, 1972)))
    assert isinstance(listed, And)
    first, said = listed.children
    assert first == IsIn(year, (1970, 1972))
    assert isinstance(said, Or) and len(said.children) == 2
    assert normalise(IsIn(year, (1970, 1972), negated=True)) == IsIn(year, (1970, 1972), negated=True)
    many = tuple(range(_MAX_CAST_VALUES + 1))
    assert normalise(IsIn(year, many)) == IsIn(year, many)


def test_what_no_list_takes_in_of_a_function_stays_beside_it() -> None:
    flag, number = (Call("f", (X,), TYPES[name]) for name in ("boolean", "double"))
    assert normalise(IsIn(flag, (True,))) == compare("=", flag, True)
    mixed = normalise(IsIn(number, (1.0, math.nan, 2.0)))
    assert isinstance(mixed, Or)
    listed, nan = mixed.children
    assert listed == IsIn(number, (1.0, 2.0))
    assert isinstance(nan, Comparison) and isinstance(nan.right, Literal)
    assert nan.comparator == "=" and math.isnan(nan.right.value)  # type: ignore[arg-type]


@pytest.mark.parametrize("wrap", ["cast", "call"])
def test_how_deep_an_operand_of_a_leaf_may_be(wrap: str) -> None:
    def deep(levels: int) -> Operand:
        operand: Operand = S
        for _ in range(levels):
            operand = Cast(operand, TYPES["string"], "TRY") if wrap == "cast" else Call("f", (S, operand), S.type)
        return operand

    def leaves(operand: Operand) -> list[Predicate]:
        value = Literal("a", S.type)
        return [
            Comparison("<", operand, value),
            Comparison("<", value, operand),
            IsIn(operand, ("a",)),
            NullTest(operand),
            Matches("starts", operand, "a"),
            Holds(Call("is_odd", (operand,), TYPES["boolean"])),
        ]

    assert not any(isinstance(normalise(leaf), Opaque) for leaf in leaves(deep(MAX_DEPTH)))
    assert {normalise(leaf) for leaf in leaves(deep(MAX_DEPTH + 2))} == {Opaque("too deep")}


@pytest.mark.parametrize("comparator", COMPARATORS)
def test_two_literals(comparator: Any) -> None:
    def compared(left: Literal, right: Literal) -> Predicate:
        return normalise(Comparison(comparator, left, right))

    one, two = lit(1, "int"), lit(2, "int")
    for left, right in ((one, one), (one, two), (two, one)):
        expected = truth(Comparison(comparator, left, right), {})
        assert compared(left, right) == (ALWAYS if expected else NEVER)
    for left, right in (
        (one, lit("1", "string")),
        (one, lit(1, "bigint")),
        (lit("1", "int"), one),
        (one, lit("1", "int")),
        (lit(1.0, "double"), lit(1, "double")),
        (lit(True, "boolean"), lit(1, "boolean")),
    ):
        assert "Opaque" in repr(compared(left, right))
        assert "Opaque" in repr(compared(right, left))


@pytest.mark.parametrize("target", ["timestamp", "timestamp_ntz"])
def test_a_cast_that_may_be_null_of_a_value_is_tested_itself(target: str) -> None:
    """No timestamp holds the last day of all: under TRY its cast is null, though the day is not."""
    day = COLUMNS["date"]
    for mode, kept in (("TRY", True), ("LEGACY", True), ("ANSI", False)):
        cast = Cast(day, TYPES[target], mode, "UTC")
        assert normalise(NullTest(cast)) == NullTest(cast if kept else day)
        assert normalise(NullTest(cast, negated=True)) == NullTest(day, negated=True)
        assert normalise(Not(NullTest(cast))) == NullTest(day, negated=True)
    around = Cast(Cast(day, TYPES[target], "TRY", "UTC"), TYPES[target], "ANSI", "UTC")
    assert normalise(NullTest(around)) == NullTest(around.child)


def test_how_deep_connectives_may_nest() -> None:
    def nested(levels: int) -> Predicate:
        tree: Predicate = compare("=", X, 0)
        for n in range(levels):
            tree = (And, Or)[n % 2]((NullTest(COLUMNS["bigint"]) if n % 2 else NullTest(S), tree))
        return tree

    assert "too deep" not in repr(normalise(nested(MAX_DEPTH + 1)))
    deep = normalise(nested(MAX_DEPTH + 2))
    assert "Opaque(reason='too deep'" in repr(deep)
    assert "None)" not in repr(deep)


def test_connectives_are_flat() -> None:
    parts = [NullTest(COLUMNS[name]) for name in ("int", "string", "double", "boolean")]
    for kind, make in ((Or, any_of), (And, all_of)):
        nested = kind((parts[0], kind((parts[1], kind((parts[2], parts[3]))))))
        assert normalise(nested) == kind(tuple(parts))
        assert make([parts[0], kind(tuple(parts[1:])), parts[0]]) == kind(tuple(parts))
        assert make([parts[0]]) == make([parts[0], parts[0]]) == parts[0]
    assert any_of([]) == any_of([NEVER]) == NEVER and all_of([]) == all_of([ALWAYS]) == ALWAYS
    assert any_of([parts[0], ALWAYS]) == ALWAYS and all_of([parts[0], NEVER]) == NEVER
    assert any_of([parts[0], NEVER]) == all_of([parts[0], ALWAYS]) == parts[0]


def test_what_lies_too_deep_says_nothing_of_its_arguments() -> None:
    x = Column(("x",), parse_type("int"))
    minus = Call("unaryminus", (x,), x.type, (("failOnError", "true"),))
    assert _said_of_argument("=", minus, 3, 0) != ALWAYS
    assert _said_of_argument("=", minus, 3, MAX_DEPTH + 1) == ALWAYS
