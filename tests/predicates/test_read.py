"""Catalyst's trees, read: every class it sends, every type, and everything that may be wrong with a tree."""

from __future__ import annotations

import math
from dataclasses import replace
from decimal import Decimal
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from es_skipping.predicates.normal import MAX_DEPTH, normalise
from es_skipping.predicates.read import read_conjunction, read_operand, read_predicate
from es_skipping.predicates.reasons import LITERAL, NAMELESS, NEGATIVE_ZERO, PATTERN, TEXT_TYPE
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
    Or,
    Predicate,
)
from es_skipping.predicates.truth import predicate_of
from es_skipping.predicates.types import DataType, parse_type
from tests.examples import examples
from tests.predicates.rows import truth

Tree = dict[str, Any]


def column(name: str, type_name: str) -> Tree:
    return {"c": "AttributeReference", "t": type_name, "name": name}


def literal(value: Any, type_name: str) -> Tree:
    return {"c": "Literal", "t": type_name, "v": value}


def node(name: str, *children: Tree, t: str = "boolean", **more: Any) -> Tree:
    return {"c": name, "t": t, "ch": list(children), **more}


INT, STRING, BOOLEAN, DOUBLE = map(parse_type, ("int", "string", "boolean", "double"))
TX, TS, TB, TD = column("x", "int"), column("s", "string"), column("b", "boolean"), column("d", "double")
X, S, B, D = Column(("x",), INT), Column(("s",), STRING), Column(("b",), BOOLEAN), Column(("d",), DOUBLE)
FIVE, T5 = Literal(5, INT), literal(5, "int")
TRUE = Literal(True, BOOLEAN)
GREATER, T_GREATER = Comparison(">", X, FIVE), node("GreaterThan", TX, T5)


READ: list[tuple[Tree, Predicate]] = [
    (node("EqualTo", TX, T5), Comparison("=", X, FIVE)),
    (node("EqualTo", T5, TX), Comparison("=", FIVE, X)),
    (node("EqualNullSafe", TX, T5), Comparison("<=>", X, FIVE)),
    (node("LessThan", TX, T5), Comparison("<", X, FIVE)),
    (node("LessThanOrEqual", TX, T5), Comparison("<=", X, FIVE)),
    (node("GreaterThan", TX, T5), Comparison(">", X, FIVE)),
    (node("GreaterThanOrEqual", TX, T5), Comparison(">=", X, FIVE)),
    (node("Not", node("EqualTo", TX, T5)), Not(Comparison("=", X, FIVE))),
    (node("Not", node("Not", node("EqualTo", TX, T5))), Comparison("=", X, FIVE)),
    (node("IsNull", TX), NullTest(X)),
    (node("IsNotNull", TX), NullTest(X, negated=True)),
    (node("IsNull", column("a", "array<int>")), NullTest(Column(("a",), parse_type("array<int>")))),
    (node("In", TX, T5, literal(None, "int"), literal(6, "int")), IsIn(X, (5, 6), has_null=True)),
    (node("In", TX, T5, TX), Or((Comparison("=", X, FIVE), Comparison("=", X, X)))),
    (node("InSet", TX, hset=[4, None, 3], ht="int"), IsIn(X, (3, 4), has_null=True)),
    (node("InSet", TD, hset=["NaN", "2.0", "-Infinity"], ht="double"), IsIn(D, (-math.inf, 2.0, math.nan))),
    (node("IsNaN", TD), Comparison("<=>", D, Literal(math.nan, DOUBLE))),
    (node("StartsWith", TS, literal("a", "string")), Matches("starts", S, "a")),
    (node("EndsWith", TS, literal("a", "string")), Matches("ends", S, "a")),
    (node("Contains", TS, literal("a", "string")), Matches("contains", S, "a")),
    (node("Like", TS, literal("a_", "string"), a={"escapeChar": "!"}), Matches("like", S, "a_", "!")),
    (node("RLike", TS, literal("a+", "string")), Matches("rlike", S, "a+")),
    (node("LikeAll", TS, a={"patterns": ["a%", "%b"]}), And((Matches("like", S, "a%"), Matches("like", S, "%b")))),
    (node("NotLikeAny", TS, a={"patterns": ["a%"]}), Or((Not(Matches("like", S, "a%")),))),
    (TB, Comparison("=", B, TRUE)),
    (node("Not", TB), Not(Comparison("=", B, TRUE))),
    (node("EqualTo", TB, literal(False, "boolean")), Comparison("=", B, Literal(False, BOOLEAN))),
    (literal(True, "boolean"), ALWAYS),
    (literal(False, "boolean"), NEVER),
    (node("EqualTo", T_GREATER, literal(True, "boolean")), GREATER),
    (node("EqualTo", literal(False, "boolean"), T_GREATER), Not(GREATER)),
    (node("KnownNotNull", TB), Comparison("=", B, TRUE)),
    (node("Cast", TX, mode="ANSI", zone="UTC"), Comparison("=", Cast(X, BOOLEAN, "ANSI", "UTC"), TRUE)),
    (node("ScalaUDF", TX, a={"udfName": "f", "nullable": True}), Holds(Call("udf:f", (X,), BOOLEAN))),
    (node("PythonUDF", TX, a={"name": "g", "evalType": 100, "id": 41}), Holds(Call("udf:g", (X,), BOOLEAN))),
    (node("ST_Contains", TX), Holds(Call("st_contains", (X,), BOOLEAN))),
]


@pytest.mark.parametrize(("tree", "expected"), READ, ids=[f"{n}-{case[0]['c']}" for n, case in enumerate(READ)])
def test_classes(tree: Tree, expected: Predicate) -> None:
    assert read_predicate(tree) == expected


NORMAL: list[tuple[str, Tree, Predicate]] = [
    ("NULL as a condition", literal(None, "boolean"), NEVER),
    ("NOT NULL as a condition", node("Not", literal(None, "boolean")), NEVER),
    ("= NULL over a condition", node("Not", node("EqualTo", T_GREATER, literal(None, "boolean"))), NEVER),
    ("NOT isnan", node("Not", node("IsNaN", TD)), Or((Comparison("<>", D, Literal(math.nan, DOUBLE)), NullTest(D)))),
    (
        "condition <=> true",
        node("EqualNullSafe", T_GREATER, literal(True, "boolean")),
        And((GREATER, NullTest(X, True))),
    ),
    (
        "NOT (condition <=> true)",
        node("Not", node("EqualNullSafe", T_GREATER, literal(True, "boolean"))),
        Or((Comparison("<=", X, FIVE), NullTest(X))),
    ),
    (
        "condition <=> false",
        node("EqualNullSafe", T_GREATER, literal(False, "boolean")),
        And((Comparison("<=", X, FIVE), NullTest(X, True))),
    ),
    ("condition <=> null", node("EqualNullSafe", T_GREATER, literal(None, "boolean")), NullTest(X)),
    ("condition IS NULL", node("IsNull", T_GREATER), NullTest(X)),
    ("condition IS NOT NULL", node("IsNotNull", T_GREATER), NullTest(X, True)),
    ("(x IS NULL) IS NULL", node("IsNull", node("IsNull", TX)), NEVER),
    (
        "coalesce(condition, false)",
        node("Coalesce", T_GREATER, literal(False, "boolean")),
        And((NullTest(X, True), GREATER)),
    ),
    (
        "if(condition, true, false)",
        node("If", T_GREATER, literal(True, "boolean"), literal(False, "boolean")),
        And((GREATER, NullTest(X, True))),
    ),
    ("a pattern that is NULL", node("Not", node("StartsWith", TS, literal(None, "string"))), NEVER),
    ("NOT LIKE ALL with NULL", node("Not", node("LikeAll", TS, a={"patterns": [None]})), NEVER),
]


@pytest.mark.parametrize(("tree", "expected"), [case[1:] for case in NORMAL], ids=[case[0] for case in NORMAL])
def test_conditions_within_conditions(tree: Tree, expected: Predicate) -> None:
    assert normalise(read_predicate(tree)) == expected


OPAQUE: list[tuple[str, Any]] = [
    ("named", {"c": "Opaque", "t": "boolean", "why": "a subquery"}),
    ("count of nulls", node("AtLeastNNonNulls", TX, a={"n": 1})),
    (
        "collated column",
        node("EqualTo", column("s", "string collate UTF8_LCASE"), literal("a", "string collate UTF8_LCASE")),
    ),
    ("collated pattern", node("StartsWith", column("s", "string collate UTF8_LCASE"), literal("a", "string"))),
    (
        "collated list",
        node("InSet", column("s", "string collate UTF8_LCASE"), hset=["a"], ht="string collate UTF8_LCASE"),
    ),
    ("char", node("EqualTo", column("s", "char(5)"), literal("a", "string"))),
    ("interval", node("LessThan", column("i", "interval day to second"), literal(5, "interval day to second"))),
    ("variant", node("EqualTo", column("v", "variant"), literal("a", "variant"))),
    ("struct", node("EqualTo", column("v", "struct<a:int>"), column("w", "struct<a:int>"))),
    ("struct in a list", node("In", column("v", "struct<a:int>"), column("w", "struct<a:int>"))),
    ("opaque operand", node("EqualTo", node("Opaque", t="int", why="?"), T5)),
    ("opaque argument", node("EqualTo", node("Abs", node("Opaque", t="int"), t="int"), T5)),
    (
        "opaque argument of an argument",
        node("EqualTo", node("Cast", node("Abs", node("Opaque", t="int"), t="int"), t="int"), T5),
    ),
    ("IS NULL of an opaque operand", node("IsNull", node("Opaque", t="int"))),
    ("a state the tree lacks", node("EqualTo", node("JsonToStructs", TS, t="string"), literal("a", "string"))),
    ("patterns the tree lacks", node("LikeAll", TS)),
    ("a function without a name", node("ScalaUDF", TX)),
    ("a pattern that is a column", node("StartsWith", TS, TS)),
    ("an escape that is unknown", node("Like", TS, literal("a", "string"))),
    (
        "-0.0 as an argument",
        node("EqualTo", node("Atan2", literal("-0.0", "double"), TD, t="double"), literal("1.0", "double")),
    ),
    ("an integer as a condition", TX),
    ("a literal of the wrong type", node("EqualTo", TX, literal("5", "int"))),
    ("a literal out of range", node("EqualTo", TX, literal(2**31, "int"))),
    ("a literal of text that is none", node("EqualTo", TS, literal("\ud800", "string"))),
    ("a list of another type", node("InSet", TX, hset=["a"], ht="string")),
    ("a list with a wrong value", node("InSet", TX, hset=["a"], ht="int")),
    ("a list that is none", node("InSet", TX, hset=5, ht="int")),
    ("a list that is missing", node("InSet", TX, ht="int")),
    ("an operand too few", node("EqualTo", TX)),
    ("no operand", node("Not")),
    ("no operands", node("And")),
    ("children that are none", {"c": "EqualTo", "t": "boolean", "ch": 5}),
    ("a class that is none", {"c": 5}),
    ("a type that is none", node("EqualTo", {"c": "AttributeReference", "name": "x", "t": 5}, T5)),
    ("a name that is none", node("EqualTo", {"c": "AttributeReference", "name": None, "t": "int"}, T5)),
    ("a value that is missing", node("EqualTo", TX, {"c": "Literal", "t": "int"})),
    ("fields that are none", node("ST_Contains", TX, a=5)),
    ("a zone that is none", node("Cast", TX, zone=5)),
    ("nothing", None),
    ("a number", 5),
    ("a list", []),
    ("an empty node", {}),
]


@pytest.mark.parametrize("tree", [tree for _, tree in OPAQUE], ids=[name for name, _ in OPAQUE])
def test_what_is_not_understood_is_opaque(tree: Any) -> None:
    for read in (read_predicate(tree), normalise(read_predicate({"c": "Not", "t": "boolean", "ch": [tree]}))):
        opaque = normalise(read)
        assert isinstance(opaque, Opaque)
        assert isinstance(opaque.reason, str) and isinstance(opaque.type, DataType)
    beside = normalise(read_predicate(node("And", node("IsNull", TX), tree)))
    assert isinstance(beside, And)  # and costs its neighbours nothing
    assert beside.children[0] == NullTest(X)


VALUES: list[tuple[Any, str, Any]] = [
    (5, "tinyint", 5),
    (-(2**63), "bigint", -(2**63)),
    ("0.1", "float", 0.10000000149011612),
    ("0.1", "double", 0.1),
    ("1.0E10", "double", 1e10),
    ("-Infinity", "double", -math.inf),
    ("NaN", "float", math.nan),
    ("12345678901234567890123456789012345678", "decimal(38,0)", Decimal("12345678901234567890123456789012345678")),
    ("12.50", "decimal(12,2)", Decimal("12.50")),
    ("a\U0001f600\x00", "string", "a\U0001f600\x00"),
    ("00ff", "binary", b"\x00\xff"),
    (False, "boolean", False),
    (-719162, "date", -719162),
    (1704409200000000, "timestamp", 1704409200000000),
    (0, "timestamp_ntz", 0),
    (None, "interval day", None),
]


@pytest.mark.parametrize(("data", "type_name", "value"), VALUES)
def test_literals_of_every_type(data: Any, type_name: str, value: Any) -> None:
    read = read_operand(literal(data, type_name))
    assert isinstance(read, Literal)
    assert type(read.value) is type(value)
    assert read == Literal(value, parse_type(type_name))


FOREIGN = [
    *("And", "Or", "Not", "EqualTo", "EqualNullSafe", "LessThan", "LessThanOrEqual", "GreaterThan"),
    *("In", "InSet", "IsNull", "IsNotNull", "IsNaN", "StartsWith", "EndsWith", "Contains", "Like", "RLike", "LikeAll"),
    *("If", "CaseWhen", "Coalesce", "Alias", "KnownNotNull", "AttributeReference", "Literal", "GetStructField", "Cast"),
    *("Year", "LastDay", "UnixDate", "UnixMicros", "TruncDate", "StringTrim", "ScalaUDF", "PythonUDF", "Invoke"),
    *("StaticInvoke", "GreaterThanOrEqual"),
]


@pytest.mark.parametrize("name", FOREIGN)
@pytest.mark.parametrize("children", [(), (TX,), (TS, literal("x", "string")), (TX, T5), (TB, TB, TB)], ids=len)
def test_a_class_of_another_library_is_never_taken_for_sparks(name: str, children: tuple[Tree, ...]) -> None:
    fields = {"name": "x", "v": True, "field": "x", "a": {"functionName": "isnull", "udfName": "f", "name": "f"}}
    tree = {**node(name, *children, p="com.acme.fuzzy"), **fields}
    operand = read_operand(tree)
    assert isinstance(operand, Call) and operand.name == f"com.acme.fuzzy.{name.lower()}"
    assert operand.arguments == tuple(map(read_operand, children))
    assert read_predicate(tree) == Holds(operand)
    assert normalise(read_predicate(node("And", tree, T_GREATER))) == normalise(And((Holds(operand), GREATER)))
    assert normalise(read_predicate(node("EqualTo", tree, literal(False, "boolean")))) == Holds(operand, negated=True)
    assert predicate_of(read_operand(node("Not", tree))) == Holds(operand, negated=True)
    compared = normalise(read_predicate(node("EqualTo", {**tree, "t": "int"}, T5)))
    assert isinstance(compared, Comparison) and compared.left == replace(operand, type=INT)


def test_fields_of_structs() -> None:
    top = column("a.b", "struct<c:struct<d:int>>")
    inner = node("GetStructField", top, t="struct<d:int>", field="c")
    assert read_operand(node("GetStructField", inner, t="int", field="d")) == Column(("a.b", "c", "d"), INT)
    of_call = read_operand(node("GetStructField", node("F", TX, t="struct<d:int>"), t="int", field="d"))
    assert of_call == Call("getstructfield", (Call("f", (X,), parse_type("struct<d:int>")),), INT, (("field", "d"),))
    assert isinstance(
        read_operand(node("GetStructField", node("Opaque", t="struct<d:int>"), t="int", field="d")), Opaque
    )


def test_calls_keep_their_settings_apart() -> None:
    tokyo = read_operand(node("Hour", TX, t="int", a={"timeZoneId": "Asia/Tokyo"}))
    utc = read_operand(node("Hour", TX, t="int", a={"timeZoneId": "UTC"}))
    assert tokyo == Call("hour", (X,), INT, (("timeZoneId", "Asia/Tokyo"),))
    assert tokyo != utc


SPARK = "org.apache.spark.sql.catalyst"
METHODS: list[tuple[str, Tree, Call | Opaque]] = [
    (
        "of a class",
        node("StaticInvoke", TX, t="int", a={"functionName": "Twice", "staticObject": f"{SPARK}.Util"}),
        Call("twice", (X,), INT, (("functionName", "Twice"), ("staticObject", f"{SPARK}.Util"))),
    ),
    (
        "of the first argument",
        node("Invoke", TX, T5, t="int", a={"functionName": "plus"}),
        Call("plus", (X, FIVE), INT, (("functionName", "plus"),)),
    ),
    (
        "of an evaluator, which is no argument",
        node(
            "Invoke",
            node("Literal", t="struct<>", a={"evaluator": f"{SPARK}.ParseUrlEvaluator", "ansi": True}),
            TX,
            t="int",
            a={"functionName": "evaluate"},
        ),
        Call(
            "parseurl",
            (X,),
            INT,
            (("ansi", "true"), ("evaluator", f"{SPARK}.ParseUrlEvaluator"), ("functionName", "evaluate")),
        ),
    ),
    (
        "without arguments",
        node("Invoke", t="int", a={"functionName": "now"}),
        Call("now", (), INT, (("functionName", "now"),)),
    ),
    (
        "of another's class",
        node("StaticInvoke", TX, t="int", a={"functionName": "f", "staticObject": "com.acme.F"}),
        Opaque("", INT),
    ),
    (
        "of another's evaluator",
        node(
            "Invoke",
            node("Literal", t="int", a={"evaluator": "com.acme.FEvaluator"}),
            TX,
            t="int",
            a={"functionName": "f"},
        ),
        Opaque("", INT),
    ),
    ("that is not deterministic", node("StaticInvoke", TX, t="int", a={"functionName": "aesEncrypt"}), Opaque("", INT)),
    (
        "that depends on a setting",
        node("StaticInvoke", TX, t="int", a={"functionName": "readSidePadding"}),
        Opaque("", INT),
    ),
    ("without a name", node("Invoke", TX, t="int", a={}), Opaque("", DataType(""))),
    (
        "with an opaque argument",
        node("Invoke", node("Opaque", t="int"), t="int", a={"functionName": "f"}),
        Opaque("", INT),
    ),
]


@pytest.mark.parametrize(("tree", "expected"), [case[1:] for case in METHODS], ids=[case[0] for case in METHODS])
def test_methods_that_stand_for_functions(tree: Tree, expected: Call | Opaque) -> None:
    read = read_operand(tree)
    if isinstance(expected, Call):
        assert read == expected
    else:
        assert isinstance(read, Opaque)
        assert expected.type.name in ("", read.type.name if read.type else "")


@pytest.mark.parametrize("package", ["avro", "execution", "protobuf"])
def test_classes_of_sparks_own_packages_have_bare_names(package: str) -> None:
    tree = {**node("ToAvro", TX, t="int"), "p": f"org.apache.spark.sql.{package}"}
    assert read_operand(tree) == Call("toavro", (X,), INT)


@pytest.mark.parametrize(
    "name",
    [
        *("AtLeastNNonNulls", "BloomFilterMightContain", "DynamicPruningExpression", "InSubqueryExec"),
        *("ApplyFunctionExpression", "CallMethodViaReflection", "NewInstance", "AvroDataToCatalyst"),
        *("CatalystDataToAvro", "CatalystDataToProtobuf", "ProtobufDataToCatalyst", "CsvToStructs", "JsonToStructs"),
        *("JsonTuple", "StructsToCsv", "StructsToJson", "StructsToXml", "XmlToStructs", "InSet", "LikeAll", "LikeAny"),
        *("NotLikeAll", "NotLikeAny", "MultiGetJsonObject", "Encode"),
    ],
)
def test_expressions_with_a_state_are_no_calls(name: str) -> None:
    read = read_operand(node(name, TX, t="int"))
    assert isinstance(read, Opaque)
    assert name in read.reason
    assert read.type == INT


def test_an_opaque_operand_keeps_its_reason_and_type() -> None:
    said = node("Opaque", t="int", why="a subquery")
    assert read_operand(said) == Opaque("a subquery", INT)
    assert read_operand(node("Opaque", t="int")) == Opaque("unknown expression", INT)
    assert read_operand(node("Cast", said, t="string")) == Opaque("a subquery", STRING)
    assert read_operand(node("GetStructField", said, t="string", field="f")) == Opaque("a subquery", STRING)
    assert read_operand(node("Abs", said, t="string")) == Opaque("a subquery", STRING)


@pytest.mark.parametrize("name", ["Alias", "KnownNotNull", "KnownNullable"])
def test_what_is_transparent(name: str) -> None:
    assert read_operand(node(name, node(name, TX, t="int"), t="int")) == X
    assert read_predicate(node("Not", node(name, node("Not", node(name, T_GREATER))))) == GREATER
    assert isinstance(read_operand(node(name, t="int")), Opaque)
    assert isinstance(read_operand(node(name, TX, T5, t="int")), Opaque)


def test_negative_zero_is_no_argument() -> None:
    minus, plus = literal("-0.0", "double"), literal("0.0", "double")
    assert read_operand(node("Cast", minus, t="string")) == Opaque(NEGATIVE_ZERO.text, STRING)
    assert read_operand(node("Abs", minus, t="double")) == Opaque(NEGATIVE_ZERO.text, DOUBLE)
    assert read_operand(node("Abs", plus, t="double")) == Call("abs", (Literal(0.0, DOUBLE),), DOUBLE)
    assert read_operand(minus) == Literal(-0.0, DOUBLE)


def test_a_cast_says_its_mode_and_zone() -> None:
    assert read_operand(node("Cast", TX, t="string")) == Cast(X, STRING, "LEGACY", None)
    assert read_operand(node("Cast", TX, t="string", mode="TRY", zone="UTC")) == Cast(X, STRING, "TRY", "UTC")
    assert isinstance(read_operand(node("Cast", TX, T5, t="string")), Opaque)


def test_parameters_are_sorted_and_truth_values_in_lower_case() -> None:
    read = read_operand(node("F", TX, t="int", a={"z": True, "b": False, "a": 1, "c": "True"}))
    assert read == Call("f", (X,), INT, (("a", "1"), ("b", "false"), ("c", "True"), ("z", "true")))


def test_a_user_function_is_known_by_its_name_and_code() -> None:
    fields = {"udfName": "f", "name": "g", "code": "c0de", "id": 41, "nullable": True}
    assert read_operand(node("ScalaUDF", TX, t="int", a=fields)) == Call("udf:f", (X,), INT, (("code", "c0de"),))
    assert read_operand(node("PythonUDF", TX, t="int", a={"name": "g"})) == Call("udf:g", (X,), INT)


def test_a_function_without_a_name_is_opaque() -> None:
    assert read_operand(node("ScalaUDF", TX, t="int")) == Opaque(NAMELESS.text, INT)
    assert read_operand(node("PythonUDF", TX, t="int", a={"name": ""})) == Opaque(NAMELESS.text, INT)


def test_a_list_with_expressions_has_a_limit() -> None:
    for count, kind in ((100, Or), (101, Opaque)):
        read = read_predicate(node("In", TX, TX, *(literal(n, "int") for n in range(count - 1))))
        assert isinstance(read, kind)
    assert isinstance(read_predicate(node("In", TX, TX, node("Opaque", t="int"))), Or)
    assert read_predicate(node("In", node("Opaque", t="int", why="w"), T5)) == Opaque("w", INT)


def test_a_list_of_literals_of_another_type_is_a_disjunction() -> None:
    other = literal(5, "bigint")
    assert read_predicate(node("In", TX, T5, other)) == Or(
        (Comparison("=", X, FIVE), Comparison("=", X, Literal(5, parse_type("bigint"))))
    )
    assert read_predicate(node("In", TX, T5, literal(None, "bigint"))) == IsIn(X, (5,), has_null=True)
    assert read_predicate(node("In", TX, T5, T5)) == IsIn(X, (5,))


def branches(count: int) -> Tree:
    return node("CaseWhen", *[T_GREATER, TB] * count)


def test_conditionals_have_limits() -> None:
    assert not isinstance(read_predicate(branches(16)), Opaque)
    assert isinstance(read_predicate(branches(17)), Opaque)
    assert isinstance(read_predicate(node("CaseWhen", *[T_GREATER, TB] * 16, TB)), Opaque)
    assert not isinstance(read_predicate(node("CaseWhen", *[T_GREATER, TB] * 15, TB)), Opaque)
    assert isinstance(read_predicate(node("CaseWhen", TB)), Opaque)
    assert not isinstance(read_predicate(node("Coalesce", *[T_GREATER] * 16)), Opaque)
    assert isinstance(read_predicate(node("Coalesce", *[T_GREATER] * 17)), Opaque)
    assert isinstance(read_predicate(node("If", T_GREATER, TB)), Opaque)
    assert isinstance(read_predicate(node("If", T_GREATER, TB, TB, TB)), Opaque)


@pytest.mark.parametrize(("name", "few", "many"), [("If", 2, 3), ("CaseWhen", 2, 3), ("Coalesce", 2, 3)])
def test_conditionals_in_conditionals_have_a_limit(name: str, few: int, many: int) -> None:
    def nested(levels: int) -> Tree:
        tree = T_GREATER
        for _ in range(levels):
            tree = node(name, TB, tree, TB)
        return tree

    assert "too many" not in repr(read_predicate(nested(few)))
    assert "too many" in repr(read_predicate(nested(many)))


def test_null_of_conditions() -> None:
    def null_of(tree: Tree) -> Predicate:
        return read_predicate(node("IsNull", tree))

    y = column("y", "int")
    assert null_of(node("EqualNullSafe", TX, y)) == NEVER
    assert null_of(node("IsNull", TX)) == NEVER
    assert null_of(node("LessThan", TX, y)) == Or((NullTest(X), NullTest(Column(("y",), INT))))
    assert null_of(node("Not", node("LessThan", TX, y))) == Or((NullTest(X), NullTest(Column(("y",), INT))))
    assert null_of(node("StartsWith", TS, literal("a", "string"))) == NullTest(S)
    assert null_of(node("InSet", TX, hset=[1], ht="int")) == NullTest(X)
    assert isinstance(null_of(node("InSet", TX, hset=[1, None], ht="int")), Opaque)
    assert isinstance(null_of(node("And", T_GREATER, TB)), Opaque)
    odd = node("IsOdd", TX)
    assert null_of(odd) == NullTest(Call("isodd", (X,), BOOLEAN))
    assert read_predicate(node("IsNotNull", odd)) == Not(NullTest(Call("isodd", (X,), BOOLEAN)))


@pytest.mark.parametrize(
    "side",
    [
        TB,
        literal(True, "boolean"),
        node("Cast", TX),
        node("GetStructField", column("t", "struct<f:boolean>"), field="f"),
    ],
)
def test_what_is_a_value_is_compared_as_a_value(side: Tree) -> None:
    """A column, a field, a literal or a cast is no condition to be taken apart."""
    for comparator, sign in (("EqualTo", "="), ("EqualNullSafe", "<=>")):
        for value in (True, False):
            read = read_predicate(node(comparator, side, literal(value, "boolean")))
            assert read == Comparison(sign, read_operand(side), Literal(value, BOOLEAN))  # type: ignore[arg-type]
            read = read_predicate(node(comparator, literal(value, "boolean"), side))
            assert read == Comparison(sign, Literal(value, BOOLEAN), read_operand(side))  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["Alias", "KnownNotNull"])
def test_a_wrapped_condition_is_one(name: str) -> None:
    wrapped = node(name, node(name, T_GREATER))
    assert read_predicate(node("EqualTo", wrapped, literal(False, "boolean"))) == Not(GREATER)
    assert read_predicate(node("IsNull", wrapped)) == Or((NullTest(X), NullTest(FIVE)))
    value = node(name, node(name, TB))
    assert read_predicate(node("IsNull", value)) == NullTest(B)
    assert read_predicate(node("EqualTo", value, literal(False, "boolean"))) == Comparison(
        "=", B, Literal(False, BOOLEAN)
    )


def test_null_may_be_of_any_type() -> None:
    array = column("a", "array<int>")
    null = literal(None, "array<int>")
    assert isinstance(read_predicate(node("EqualTo", array, array)), Opaque)
    assert isinstance(read_predicate(node("EqualTo", array, null)), Opaque)
    assert read_predicate(node("EqualTo", TX, null)) == Comparison("=", X, Literal(None, parse_type("array<int>")))


def test_two_conditions_are_compared_as_values() -> None:
    read = read_predicate(node("EqualTo", T_GREATER, node("IsNull", TX)))
    assert isinstance(read, Comparison)
    assert (read.left, read.right) == (read_operand(T_GREATER), read_operand(node("IsNull", TX)))


def test_many_likes() -> None:
    like, other = Matches("like", S, "a%"), Matches("like", S, "%b")
    fields = {"patterns": ["a%", "%b"]}
    assert read_predicate(node("LikeAny", TS, a=fields)) == Or((like, other))
    assert read_predicate(node("LikeAll", TS, a=fields)) == And((like, other))
    assert read_predicate(node("NotLikeAny", TS, a=fields)) == Or((Not(like), Not(other)))
    assert read_predicate(node("NotLikeAll", TS, a=fields)) == And((Not(like), Not(other)))
    assert isinstance(read_predicate(node("LikeAll", TX, a=fields)), Opaque)
    assert isinstance(read_predicate(node("LikeAll", TS, TS, a=fields)), Opaque)
    assert read_predicate(node("LikeAll", node("Opaque", t="string", why="w"), a=fields)) == Opaque("w", STRING)


def test_a_chain_keeps_its_order() -> None:
    parts = [node("EqualTo", TX, literal(n, "int")) for n in range(5)]
    tree = node("Or", node("Or", parts[0], parts[1]), node("Or", parts[2], node("Or", parts[3], parts[4])))
    assert read_predicate(tree) == Or(tuple(Comparison("=", X, Literal(n, INT)) for n in range(5)))
    mixed = read_predicate(node("And", node("Or", parts[0], parts[1]), parts[2]))
    assert isinstance(mixed, And)
    assert [type(child) for child in mixed.children] == [Or, Comparison]


def test_a_list_of_filters_is_no_text() -> None:
    assert isinstance(read_conjunction("ab"), Opaque)
    assert isinstance(read_conjunction(5), Opaque)
    assert read_conjunction((T_GREATER, T_GREATER)) == And((GREATER, GREATER))


def test_conjunctions() -> None:
    assert read_conjunction([]) == ALWAYS
    assert read_conjunction([T_GREATER]) == GREATER
    assert read_conjunction([T_GREATER, node("IsNull", TX)]) == And((GREATER, NullTest(X)))
    assert isinstance(read_conjunction(None), Opaque)


# --- conditionals decide as Spark does ----------------------------------------------------------------------------

CONDITIONS = {"p": column("p", "boolean"), "q": column("q", "boolean"), "r": column("r", "boolean")}


def _decide(tree: Tree, row: dict[str, bool | None]) -> bool | None:
    """The oracle: Catalyst's evaluation of a tree of truth values."""
    children = [partial(_decide, child, row) for child in tree.get("ch", [])]
    match tree["c"]:
        case "AttributeReference":
            return row[tree["name"]]
        case "Literal":
            value: bool | None = tree["v"]
            return value
        case "Not":
            return None if (child := children[0]()) is None else not child
        case "And" | "Or":
            found = {child() for child in children}
            absorbing = tree["c"] == "Or"
            return absorbing if absorbing in found else None if None in found else not absorbing
        case "If":
            return children[1]() if children[0]() is True else children[2]()
        case "CaseWhen":
            for condition, result in zip(children[::2], children[1::2], strict=False):
                if condition() is True:
                    return result()
            return children[-1]() if len(children) % 2 else None
        case "Coalesce":
            return next((value for child in children if (value := child()) is not None), None)
        case "EqualTo":
            left, right = children[0](), children[1]()
            return None if left is None or right is None else left == right
        case "EqualNullSafe":
            return children[0]() == children[1]()
        case "IsNull":
            return children[0]() is None
        case "IsNotNull":
            return children[0]() is not None
    raise AssertionError(tree["c"])


def _conditions() -> st.SearchStrategy[Tree]:
    leaves = st.sampled_from([*CONDITIONS.values(), *(literal(v, "boolean") for v in (True, False, None))])
    truths = st.sampled_from([literal(v, "boolean") for v in (True, False, None)])

    def deeper(inner: st.SearchStrategy[Tree]) -> st.SearchStrategy[Tree]:
        def of(name: str, *operands: st.SearchStrategy[Tree]) -> st.SearchStrategy[Tree]:
            return st.tuples(*operands).map(lambda children: node(name, *children))

        return st.one_of(
            *(of(name, inner) for name in ("Not", "IsNull", "IsNotNull")),
            *(of(name, inner, inner) for name in ("And", "Or", "Coalesce", "CaseWhen")),
            *(of(name, inner, truths) for name in ("EqualTo", "EqualNullSafe")),
            of("EqualNullSafe", truths, inner),
            of("If", inner, inner, inner),
            of("CaseWhen", inner, inner, inner, inner),
            of("CaseWhen", inner, inner, inner, inner, inner),
        )

    return st.recursive(leaves, deeper, max_leaves=8)


def _possible(predicate: Predicate, row: dict[str, bool | None]) -> bool:
    """Whether a row may satisfy a normal predicate, opaque parts satisfied."""
    if isinstance(predicate, And):
        return all(_possible(child, row) for child in predicate.children)
    if isinstance(predicate, Or):
        return any(_possible(child, row) for child in predicate.children)
    return isinstance(predicate, Opaque) or truth(predicate, row) is True


@examples(300)
@given(_conditions())
def test_conditionals_lose_no_row(tree: Tree) -> None:
    normal = normalise(read_predicate(tree))
    exact = "Opaque" not in repr(normal)
    for p in (True, False, None):
        for q in (True, False, None):
            for r in (True, False, None):
                row = {"p": p, "q": q, "r": r}
                if _decide(tree, row) is True:
                    assert _possible(normal, row)
                elif exact:
                    assert not _possible(normal, row)


# --- size ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("left", [True, False])
def test_an_and_of_50_000(left: bool) -> None:
    tree = T_GREATER
    for n in range(50_000):
        leaf = node("EqualTo", TX, literal(n, "int"))
        tree = node("And", tree, leaf) if left else node("And", leaf, tree)
    read = read_predicate(tree)
    assert isinstance(read, And)
    assert len(read.children) == 50_001
    assert (read.children[0] if left else read.children[-1]) == GREATER


@pytest.mark.parametrize(
    "wrap",
    [
        lambda tree: node("Not", tree),
        lambda tree: node("EqualTo", tree, literal(True, "boolean")),
        lambda tree: node("EqualNullSafe", tree, literal(True, "boolean")),
        lambda tree: node("If", tree, tree, tree),
        lambda tree: node("Coalesce", tree, literal(False, "boolean")),
        lambda tree: node("IsNull", tree),
        lambda tree: node("KnownNotNull", tree),
        lambda tree: node("And", TB, node("Or", TB, tree)),
        lambda tree: node("F", tree),
        lambda tree: node("EqualTo", node("Cast", tree, t="int"), T5),
        lambda tree: node("In", tree, TB),
    ],
)
def test_100_000_levels_are_no_overflow(wrap: Any) -> None:
    tree: Tree = T_GREATER
    for _ in range(100_000):
        tree = wrap(tree)
    read = read_predicate(tree)
    normal = normalise(read)
    hash(normal)
    assert (
        "too deep" in repr(normal) or "too many" in repr(normal) or isinstance(normal, Comparison | Constant | Opaque)
    )


def test_a_list_of_100_000() -> None:
    read = read_predicate(node("InSet", TX, hset=list(range(100_000)), ht="int"))
    assert isinstance(read, IsIn)
    assert len(read.values) == 100_000


def test_a_case_of_many_branches_stays_small() -> None:
    tree = node("CaseWhen", *[T_GREATER, TB] * 16, TB)
    for _ in range(5):
        tree = node("CaseWhen", *[tree, TB] * 16, tree)
    assert len(repr(read_predicate(tree))) < 50_000_000


@examples(300)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=3) | st.sampled_from([TX, TS, TB, T5]),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.fixed_dictionaries(
                {},
                optional={
                    "c": st.sampled_from(
                        ("And", "Or", "Not", "EqualTo", "In", "InSet", "Like", "Cast", "Literal", "If", "F")
                    )
                    | inner,
                    "t": st.sampled_from(("int", "string", "boolean")) | inner,
                    "ch": st.lists(inner, max_size=3) | inner,
                    "a": inner,
                    "v": inner,
                    "name": inner,
                    "field": inner,
                    "hset": inner,
                    "ht": st.just("int") | inner,
                    "zone": inner,
                    "mode": inner,
                },
            )
        ),
        max_leaves=12,
    )
)
def test_nothing_raises(tree: Any) -> None:
    hash(normalise(read_predicate(tree)))
    hash(read_operand(tree))


@pytest.mark.parametrize("tree", [TX, literal(0, "int"), literal(5, "int"), node("Year", TX, t="int")])
def test_a_number_is_not_a_condition(tree: Tree) -> None:
    assert read_predicate(tree) == Opaque("int as a condition")


@pytest.mark.parametrize("name", ["StartsWith", "EndsWith", "Contains", "Like", "RLike"])
@pytest.mark.parametrize("other", ["binary", "string collate UTF8_LCASE"])
def test_only_plain_strings_are_tested(name: str, other: str) -> None:
    more = {"a": {"escapeChar": "!"}}
    for operand, pattern in ((column("s", other), literal("YQ==", "string")), (TS, column("t", other))):
        assert read_predicate(node(name, operand, pattern, **more)) == Opaque(TEXT_TYPE.of(type=parse_type(other)))
    assert isinstance(read_predicate(node(name, TS, literal("YQ==", "binary"), **more)), Opaque)


@pytest.mark.parametrize("tree", [None, 5, [], {}, {"c": None}, {"c": 5, "p": "p"}])
def test_a_node_without_a_class(tree: Any) -> None:
    assert read_predicate(tree) == read_operand(tree) == Opaque("malformed: a node without a class")


@pytest.mark.parametrize("name", ["StartsWith", "EndsWith", "Contains", "Like", "RLike"])
def test_a_pattern_that_is_not_written_out(name: str) -> None:
    more = {"a": {"escapeChar": "!"}}
    assert read_predicate(node(name, TS, TS, **more)) == Opaque(PATTERN.text)


def test_fields_that_are_no_fields_are_named() -> None:
    assert read_operand(node("Add", TX, T5, t="int", a=5)) == Opaque("malformed: the fields of Add")


@pytest.mark.parametrize("values", ["55", {"5": 5}, 5, None])
def test_a_set_that_is_no_list_is_no_set_of_its_parts(values: Any) -> None:
    found = read_predicate(node("InSet", TS, ht="string", hset=values))
    assert found == Opaque("malformed: the values of InSet")


def test_a_field_of_another_kind_is_named() -> None:
    assert read_operand({"c": "Cast", "t": "int", "ch": 5}) == Opaque(
        "malformed: TypeError(\"object of type 'int' has no len()\")"
    )


OPERAND_WRAPS = {
    "Alias": lambda tree: node("Alias", tree, t="int"),
    "Cast": lambda tree: node("Cast", tree, t="int"),
    "Abs": lambda tree: node("Abs", tree, t="int"),
    "second argument": lambda tree: node("Plus", T5, tree, t="int"),
    "GetStructField": lambda tree: node("GetStructField", tree, t="int", field="f"),
    "Invoke": lambda tree: node("Invoke", tree, t="int", a={"functionName": "f"}),
}


@pytest.mark.parametrize("wrap", OPERAND_WRAPS.values(), ids=OPERAND_WRAPS)
def test_how_deep_an_operand_may_be(wrap: Any) -> None:
    tree: Tree = TX
    for _ in range(MAX_DEPTH):
        tree = wrap(tree)
    assert not isinstance(read_operand(tree), Opaque)
    assert read_operand(wrap(tree)) == Opaque("too deep")


def test_how_deep_a_function_of_a_primitive_may_be() -> None:
    """IF(x IS NULL, NULL, f(x)) is as deep as f(x) within something else."""
    null = literal(None, "int")
    tree: Tree = node("ScalaUDF", TX, t="int", a={"udfName": "f"})
    tree = node("If", node("IsNull", TX), null, tree, t="int")
    for _ in range(MAX_DEPTH - 2):
        tree = node("Abs", tree, t="int")
    assert not isinstance(read_operand(tree), Opaque)
    assert read_operand(node("Abs", tree, t="int")) == Opaque("too deep")


PREDICATE_WRAPS = {
    "And": lambda tree: node("Not", node("And", TB, node("Not", tree))),
    "EqualTo": lambda tree: node("Not", node("EqualTo", tree, literal(True, "boolean"))),
    "EqualNullSafe": lambda tree: node("EqualNullSafe", tree, literal(True, "boolean")),
}


@pytest.mark.parametrize("wrap", PREDICATE_WRAPS.values(), ids=PREDICATE_WRAPS)
def test_how_deep_a_predicate_may_be(wrap: Any) -> None:
    tree: Tree = T_GREATER
    for _ in range(MAX_DEPTH):
        tree = wrap(tree)
    assert "too deep" not in repr(read_predicate(tree))
    assert "too deep" in repr(read_predicate(wrap(tree)))


def test_a_list_whose_column_is_opaque() -> None:
    said = node("Opaque", t="int", why="a subquery")
    assert read_predicate(node("InSet", said, hset=[1], ht="int")) == Opaque("a subquery", INT)
    assert read_predicate(node("In", said, T5)) == Opaque("a subquery", INT)
    for other in ("bigint", "date"):
        assert isinstance(read_predicate(node("InSet", TX, hset=[5], ht=other)), Opaque)
    array = column("a", "array<int>")
    assert isinstance(read_predicate(node("InSet", array, hset=[], ht="array<int>")), Opaque)
    assert read_predicate(node("IsNull", said)) == Opaque("a subquery", INT)
    assert read_predicate(node("EqualTo", T5, said)) == Opaque("a subquery", INT)
    assert read_predicate(node("StartsWith", {**said, "t": "string"}, literal("a", "string"))) == Opaque(
        "a subquery", STRING
    )


def test_trees_too_deep_to_be_compared_are_opaque() -> None:
    """Whether x of IF(x IS NULL, NULL, f(x)) is the same x both times takes a comparison of the two trees."""

    def deep() -> Tree:
        tree = TX
        for _ in range(20_000):
            tree = node("Abs", tree, t="int")
        return tree

    tree = node("If", node("IsNull", deep()), literal(None, "int"), node("ScalaUDF", deep(), t="int"), t="int")
    assert read_operand(tree) == Opaque("too deep")
    assert read_predicate(node("EqualTo", tree, T5)) == Opaque("too deep")


WITHIN = {
    "If": node("If", T_GREATER, TB, TB),
    "CaseWhen": node("CaseWhen", T_GREATER, TB),
    "Coalesce": node("Coalesce", T_GREATER, TB),
    "IsNull": node("IsNull", T_GREATER),
    "EqualTo": node("EqualTo", T_GREATER, literal(True, "boolean")),
    "Or": node("Or", T_GREATER, TB),
}


@pytest.mark.parametrize("tree", WITHIN.values(), ids=WITHIN)
def test_how_deep_what_holds_conditions_may_be(tree: Tree) -> None:
    for n in range(MAX_DEPTH - 1):
        tree = node("Or" if n % 2 else "And", TB, tree)
    assert "Opaque" not in repr(read_predicate(tree))
    deeper = node("And" if tree["c"] == "Or" else "Or", TB, tree)
    assert "Opaque" in repr(read_predicate(deeper))


@pytest.mark.parametrize(
    ("name", "sign"), [("LessThan", "<"), ("LessThanOrEqual", "<="), ("GreaterThan", ">"), ("GreaterThanOrEqual", ">=")]
)
def test_a_condition_above_or_below_a_truth_value(name: str, sign: Any) -> None:
    """Only ``=`` and ``<=>`` of a condition are taken apart."""
    operand, true = read_operand(T_GREATER), literal(True, "boolean")
    assert read_predicate(node(name, T_GREATER, true)) == Comparison(sign, operand, TRUE)
    assert read_predicate(node(name, true, T_GREATER)) == Comparison(sign, TRUE, operand)


LEAVES_OF: dict[str, Any] = {
    "EqualTo": lambda tree: node("EqualTo", tree, literal("a", "string")),
    "right": lambda tree: node("LessThan", literal("a", "string"), tree),
    "IsNull": lambda tree: node("IsNull", tree),
    "IsNotNull": lambda tree: node("IsNotNull", tree),
    "In": lambda tree: node("In", tree, literal("a", "string")),
    "in a list": lambda tree: node("In", TS, tree),
    "InSet": lambda tree: node("InSet", tree, hset=["a"], ht="string"),
    "StartsWith": lambda tree: node("StartsWith", tree, literal("a", "string")),
    "LikeAll": lambda tree: node("LikeAll", tree, a={"patterns": ["a%"]}),
    "Holds": lambda tree: node("IsOdd", tree),
}


@pytest.mark.parametrize("leaf", LEAVES_OF.values(), ids=LEAVES_OF)
def test_how_deep_an_operand_of_a_leaf_may_be(leaf: Any) -> None:
    tree: Tree = TS
    for _ in range(MAX_DEPTH - (leaf is LEAVES_OF["Holds"])):
        tree = node("Upper", tree, t="string")
    assert "too deep" not in repr(read_predicate(leaf(tree)))
    assert "too deep" in repr(read_predicate(leaf(node("Upper", tree, t="string"))))


def test_how_deep_a_number_that_is_no_number_may_be() -> None:
    tree: Tree = TD
    for _ in range(MAX_DEPTH):
        tree = node("Abs", tree, t="double")
    assert "too deep" not in repr(read_predicate(node("IsNaN", tree)))
    assert "too deep" in repr(read_predicate(node("IsNaN", node("Abs", tree, t="double"))))


def test_a_truth_value_that_is_none() -> None:
    for odd in (5, "true", 1.0, []):
        for name in ("EqualTo", "EqualNullSafe"):
            assert isinstance(read_predicate(node(name, T_GREATER, literal(odd, "boolean"))), Opaque)


def test_literals_of_types_that_are_not_known() -> None:
    odd = parse_type("interval day")
    assert read_operand(literal(5, "interval day")) == Opaque(LITERAL.of(type=odd), odd)
