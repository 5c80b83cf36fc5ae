"""Catalyst's trees, read: every class it sends, every type, and everything that may be wrong with a tree."""

from __future__ import annotations

import math
from dataclasses import replace
from decimal import Decimal
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from es_skipping.predicates.normal import normalise
from es_skipping.predicates.read import read_conjunction, read_operand, read_predicate
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
from es_skipping.predicates.types import parse_type
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
        assert isinstance(normalise(read), Opaque)
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


@settings(max_examples=300, deadline=None)
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


@settings(max_examples=300)
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
