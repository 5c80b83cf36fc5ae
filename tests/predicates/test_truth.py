"""Predicates as SQL text, form by form. (That Spark reads the text back as the same predicate is a test with Spark.)"""

from __future__ import annotations

import math
from decimal import Decimal

import pytest

from es_skipping.predicates import reasons
from es_skipping.predicates.tree import (
    ALWAYS,
    NEVER,
    And,
    Call,
    Cast,
    Column,
    Comparison,
    Element,
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
from es_skipping.predicates.truth import predicate_of, sql_of, sql_of_operand
from es_skipping.predicates.types import DataType, parse_type

INT, BIGINT, STRING, BOOLEAN, DATE = map(DataType, ("int", "bigint", "string", "boolean", "date"))
TIMESTAMP, NTZ, DOUBLE, BINARY = map(DataType, ("timestamp", "timestamp_ntz", "double", "binary"))
X, S, D = Column(("x",), INT), Column(("s",), STRING), Column(("d",), DATE)
TS, TX = Column(("ts",), TIMESTAMP), Column(("tx",), NTZ)
ONE, TWO = Literal(1, INT), Literal(2, INT)


def is_one(column: Operand = X) -> Predicate:
    return Comparison("=", column, ONE)


def call(name: str, *arguments: Operand, type: DataType = INT) -> Call:
    return Call(name, arguments, type)


SAID: list[tuple[Predicate, str]] = [
    (ALWAYS, "true"),
    (NEVER, "false"),
    *((Comparison(sign, X, ONE), f"x {sign} 1") for sign in ("=", "<>", "<", "<=", ">", ">=")),  # type: ignore[arg-type]
    (NullTest(X), "x IS NULL"),
    (NullTest(X, negated=True), "x IS NOT NULL"),
    (And((is_one(), NullTest(S), is_one(S))), "x = 1 AND s IS NULL AND s = 1"),
    (Or((is_one(), NullTest(S))), "x = 1 OR s IS NULL"),
    (And((Or((is_one(), NullTest(S))), NullTest(X))), "(x = 1 OR s IS NULL) AND x IS NULL"),
    (Or((And((is_one(), NullTest(S))), NullTest(X))), "(x = 1 AND s IS NULL) OR x IS NULL"),
    (IsIn(X, (1, 2)), "x IN (1, 2)"),
    (IsIn(X, (1, 2), negated=True), "x NOT IN (1, 2)"),
    (IsIn(X, tuple(range(10))), "x IN (0, 1, 2, 3, 4, 5, 6, 7, 8, 9)"),
    (IsIn(X, tuple(range(12))), "x IN (0, 1, 2, 3, 4, 5, 6, 7, 8, 9) OR x IN (10, 11)"),
    (IsIn(X, tuple(range(11)), negated=True), "x NOT IN (0, 1, 2, 3, 4, 5, 6, 7, 8, 9) AND x NOT IN (10)"),
    (And((NullTest(S), IsIn(X, (1, 2)))), "s IS NULL AND x IN (1, 2)"),
    (And((NullTest(S), IsIn(X, tuple(range(10))))), "s IS NULL AND x IN (0, 1, 2, 3, 4, 5, 6, 7, 8, 9)"),
    (
        And((NullTest(S), IsIn(X, tuple(range(11))))),
        "s IS NULL AND (x IN (0, 1, 2, 3, 4, 5, 6, 7, 8, 9) OR x IN (10))",
    ),
    (Matches("like", S, "a%"), "s LIKE 'a%'"),
    (Matches("like", S, "a%", negated=True), "s NOT LIKE 'a%'"),
    (Matches("like", S, "a!%", "!"), "s LIKE 'a!%' ESCAPE '!'"),
    (Matches("rlike", S, "^a"), "s RLIKE '^a'"),
    (Matches("rlike", S, "^a", negated=True), "s NOT RLIKE '^a'"),
    (Matches("starts", S, "a"), "startswith(s, 'a')"),
    (Matches("ends", S, "a"), "endswith(s, 'a')"),
    (Matches("contains", S, "it's \\"), "contains(s, 'it\\'s \\\\')"),
    (Matches("contains", S, "a", negated=True), "NOT contains(s, 'a')"),
    (Holds(call("is_odd", X, type=BOOLEAN)), "is_odd(x)"),
    (Holds(call("is_odd", X, type=BOOLEAN), negated=True), "NOT is_odd(x)"),
]


@pytest.mark.parametrize(("predicate", "text"), SAID, ids=[text[:40] for _, text in SAID])
def test_predicates_as_sql(predicate: Predicate, text: str) -> None:
    assert sql_of(predicate) == text


OPERANDS: list[tuple[Operand, str]] = [
    (Column(("a", "b c", "1st", "_d1"), INT), "a.`b c`.`1st`._d1"),
    (Literal(None, INT), "CAST(NULL AS int)"),
    (Literal(True, BOOLEAN), "true"),
    (Literal(False, BOOLEAN), "false"),
    (Literal(-7, INT), "-7"),
    (Literal(7, BIGINT), "CAST(7 AS bigint)"),
    (Literal("it's a \\ and ü", STRING), "'it\\'s a \\\\ and ü'"),
    (Literal(b"\x00b1", BINARY), "X'006231'"),
    (Literal(2.5, DOUBLE), "CAST('2.5' AS double)"),
    (Literal(math.inf, DOUBLE), "CAST('Infinity' AS double)"),
    (Literal(-math.inf, DOUBLE), "CAST('-Infinity' AS double)"),
    (Literal(math.nan, DOUBLE), "CAST('NaN' AS double)"),
    (Literal(Decimal("3.20"), parse_type("decimal(5,2)")), "CAST('3.20' AS decimal(5,2))"),
    (Literal(0, DATE), "DATE '1970-01-01'"),
    (Literal(19_783, DATE), "DATE '2024-03-01'"),
    (Literal(1_500_000, TIMESTAMP), "TIMESTAMP '1970-01-01 00:00:01.500000Z'"),
    (Literal(-1, NTZ), "TIMESTAMP_NTZ '1969-12-31 23:59:59.999999'"),
    (Cast(X, BIGINT, "ANSI"), "CAST(x AS bigint)"),
    (Cast(X, BIGINT, "LEGACY"), "CAST(x AS bigint)"),
    (Cast(X, BIGINT, "TRY"), "TRY_CAST(x AS bigint)"),
    (call("add", X, ONE), "(x + 1)"),
    (call("subtract", X, ONE), "(x - 1)"),
    (call("multiply", X, ONE), "(x * 1)"),
    (call("divide", X, ONE), "(x / 1)"),
    (call("remainder", X, ONE), "(x % 1)"),
    (call("integraldivide", X, ONE), "(x DIV 1)"),
    (call("unaryminus", X), "(- x)"),
    (call("equalto", X, ONE), "(x = 1)"),
    (call("equalnullsafe", X, ONE), "(x <=> 1)"),
    (call("lessthan", X, ONE), "(x < 1)"),
    (call("lessthanorequal", X, ONE), "(x <= 1)"),
    (call("greaterthan", X, ONE), "(x > 1)"),
    (call("greaterthanorequal", X, ONE), "(x >= 1)"),
    (call("abs", X), "abs(x)"),
    (call("udf:family", S), "family(s)"),
    (call("org.apache.spark.Year", D), "Year(d)"),
    (call("stringtrim", S), "trim(s)"),
    (call("stringtrimleft", S), "ltrim(s)"),
    (call("stringtrimleft", S, Literal("k", STRING)), "ltrim('k', s)"),
    (call("stringtrimright", S), "rtrim(s)"),
    (call("stringreplace", S, S, S), "replace(s, s, s)"),
    (call("stringinstr", S, S), "instr(s, s)"),
    (call("stringlpad", S, ONE, S), "lpad(s, 1, s)"),
    (call("stringrpad", S, ONE, S), "rpad(s, 1, s)"),
    (call("dateadd", D, ONE), "date_add(d, 1)"),
    (call("datesub", D, ONE), "date_sub(d, 1)"),
    (call("dayofmonth", D), "day(d)"),
    (call("dayofweek", D), "dayofweek(d)"),
    (call("truncdate", D, S), "trunc(d, s)"),
    (call("trunctimestamp", S, D), "date_trunc(s, d)"),
    (call("dateformatclass", D, S), "date_format(d, s)"),
    (call("concatws", S, S), "concat_ws(s, s)"),
    (call("regexpextract", S, S, ONE), "regexp_extract(s, s, 1)"),
    (call("regexpreplace", S, S, S), "regexp_replace(s, s, s)"),
    (call("octetlength", S), "octet_length(s)"),
    (call("unixtimestamp", S, S), "unix_timestamp(s, s)"),
    (call("gettimestamp", S, S), "to_timestamp(s, s)"),
    (call("bitwiseand", X, ONE), "(x & 1)"),
    (call("getarrayitem", Column(("stops",), parse_type("array<int>")), ONE), "stops[1]"),
    (call("elementat", Column(("stops",), parse_type("array<int>")), ONE), "element_at(stops, 1)"),
]


@pytest.mark.parametrize(("operand", "text"), OPERANDS, ids=[text for _, text in OPERANDS])
def test_operands_as_sql(operand: Operand, text: str) -> None:
    assert sql_of_operand(operand) == text
    assert sql_of(NullTest(operand)) == f"{text} IS NULL"


UNSAYABLE: list[Operand] = [
    Opaque("unknown", INT),
    Cast(X, BIGINT, "OTHER"),
    call("no name", X),
    call("udf:com.acme.f", X),
    Literal("a\nb", STRING),
    Literal(10_000_000, DATE),
    Literal(1 << 62, TIMESTAMP),
    call("abs", Opaque("unknown", INT)),
]


@pytest.mark.parametrize("operand", UNSAYABLE, ids=str)
def test_what_has_no_sql(operand: Operand) -> None:
    assert sql_of_operand(operand) is None
    assert sql_of(NullTest(operand)) is None
    assert sql_of(And((is_one(), NullTest(operand)))) is None


def test_predicates_without_sql() -> None:
    assert sql_of(Comparison("<=>", X, ONE)) is None
    assert sql_of(IsIn(X, (1,), has_null=True)) is None
    assert sql_of(Not(is_one())) is None
    assert sql_of(Opaque("unknown", BOOLEAN)) is None


FLAG = Column(("f",), BOOLEAN)
YES, PATTERN = Literal(True, BOOLEAN), Literal("a%", STRING)

READ: list[tuple[Operand, Predicate]] = [
    (YES, ALWAYS),
    (Literal(False, BOOLEAN), NEVER),
    (Literal(None, BOOLEAN), NEVER),
    (call("not", Literal(None, BOOLEAN), type=BOOLEAN), NEVER),
    (FLAG, Comparison("=", FLAG, YES)),
    (call("isnull", X, type=BOOLEAN), NullTest(X)),
    (call("isnotnull", X, type=BOOLEAN), NullTest(X, negated=True)),
    (call("in", X, ONE, TWO, type=BOOLEAN), IsIn(X, (1, 2))),
    (call("in", X, ONE, Literal(None, INT), TWO, type=BOOLEAN), IsIn(X, (1, 2))),
    (call("not", call("in", X, ONE, Literal(None, INT), type=BOOLEAN), type=BOOLEAN), NEVER),
    (call("like", S, Literal("a_b", STRING), type=BOOLEAN), Matches("like", S, "a_b")),
    (call("rlike", S, PATTERN, type=BOOLEAN), Matches("rlike", S, "a%")),
    (call("startswith", S, PATTERN, type=BOOLEAN), Matches("starts", S, "a%")),
    (call("endswith", S, PATTERN, type=BOOLEAN), Matches("ends", S, "a%")),
    (call("contains", S, PATTERN, type=BOOLEAN), Matches("contains", S, "a%")),
    (call("is_odd", X, type=BOOLEAN), Holds(call("is_odd", X, type=BOOLEAN))),
    (
        Call("like", (S, Literal("!__b", STRING)), BOOLEAN, (("escapeChar", "!"),)),
        Matches("like", S, "!__b", "!"),
    ),
]


@pytest.mark.parametrize(("operand", "predicate"), READ, ids=str)
def test_operands_as_predicates(operand: Operand, predicate: Predicate) -> None:
    assert predicate_of(operand) == predicate


def test_connectives_of_operands() -> None:
    less, more = call("lessthan", X, ONE, type=BOOLEAN), call("isnull", S, type=BOOLEAN)
    parts = Comparison("<", X, ONE), NullTest(S)
    assert predicate_of(call("and", less, more, type=BOOLEAN)) == And(parts)
    assert predicate_of(call("or", less, more, type=BOOLEAN)) == Or(parts)
    assert predicate_of(call("not", more, type=BOOLEAN)) == NullTest(S, negated=True)


def test_a_list_with_what_is_no_literal_of_its_type_is_a_disjunction() -> None:
    other = Column(("y",), INT)
    assert predicate_of(call("in", X, ONE, other, type=BOOLEAN)) == Or((is_one(), Comparison("=", X, other)))


def test_what_is_no_condition() -> None:
    for operand in (X, Literal(1, INT), call("not", FLAG)):
        assert predicate_of(operand) == Opaque(reasons.NO_CONDITION.of(type=INT), INT)
    for opaque_operand in (Opaque("unknown", BOOLEAN), Opaque("a subquery"), Opaque("a subquery", INT)):
        assert predicate_of(opaque_operand) == opaque_operand
    opaque = predicate_of(call("like", S, S, type=BOOLEAN))
    assert opaque == Holds(call("like", S, S, type=BOOLEAN))


def test_a_field_of_an_element() -> None:
    stops = Column(("stops",), DataType("array<struct<far away:int>>"))
    assert sql_of_operand(Element(stops, DataType("int"), ("far away",))) == "stops[].`far away`"
