"""Filters on elements of arrays and maps: what they imply of some element, and above all what they do not."""

from __future__ import annotations

import math
import random
from typing import Any

import pyarrow as pa
import pytest

from es_skipping.build.worker import CollectPartials, Finish, Part
from es_skipping.clauses.clause import KEEP, SKIP, Ask, Clause, Conjunction, disjunction
from es_skipping.clauses.evaluate import holds
from es_skipping.clauses.merge import Labeller, merge_clause, merge_traced
from es_skipping.clauses.metadata import Intervals, Metadata, Values
from es_skipping.clauses.questions import AnyOf, HasNaN, HasNull, Overlaps, Range
from es_skipping.indexes.base import Index, Target
from es_skipping.indexes.bloomfilter import BloomFilter
from es_skipping.indexes.gaplist import GapList
from es_skipping.indexes.minmax import MinMax
from es_skipping.indexes.valuelist import ValueList
from es_skipping.predicates.codec import operand_from_data, operand_to_data
from es_skipping.predicates.elements import element_of, implied_by_access
from es_skipping.predicates.lambdas import read_elements
from es_skipping.predicates.normal import MAX_DEPTH, normalise
from es_skipping.predicates.read import read_operand, read_predicate
from es_skipping.predicates.show import show
from es_skipping.predicates.subsumption import is_certain, subsumes
from es_skipping.predicates.tree import (
    NEVER,
    And,
    Call,
    Column,
    Comparison,
    Element,
    HasElement,
    Holds,
    Implying,
    Literal,
    Not,
    Opaque,
    Or,
    leaves_of,
    operands_in,
)
from es_skipping.predicates.types import DataType
from es_skipping.predicates.value_sets import ValueSet, at_least, at_most
from tests.predicates.element_trees import (
    attribute,
    call,
    compare,
    exists,
    function,
    literal,
    random_filter,
    truth,
    variable,
)

XS = attribute("xs")
X = variable("x")
DOUBLE = DataType("double")
ELEMENT = element_of(Column(("xs",), DataType("array<double>")))
assert isinstance(ELEMENT, Element)


def over(comparator: str, number: float, side: Any = X) -> Any:
    return compare(comparator, side, literal(number))


MORE = over("GreaterThan", 5.0)
LESS = over("LessThan", 9.0)
BELOW_FIVE = over("LessThan", 5.0)


def target(tree: Any, levels: int = 1) -> Target:
    operand = read_elements(tree, levels) if levels else read_operand(tree)
    return Target("it", (operand,), (operand.type,))


def clause(filter: Any, index: Index | None = None, of: Any = XS, levels: int = 1) -> Clause:
    labeller = Labeller(index or MinMax("xs[]"), target(of, levels))
    return merge_clause(normalise(read_predicate(filter)), [labeller])


def within(*ranges: Range) -> Ask:
    return Ask("it", Overlaps(ranges))


ABOVE = disjunction([within(Range(5.0, None, low_open=True)), Ask("it", HasNaN())])
"""NaN is above five."""
LEGACY, PLAIN = ({"legacySizeOfNull": legacy} for legacy in (True, False))


def size(of: Any = MORE, **fields: Any) -> Any:
    return call("Size", call("ArrayFilter", XS, function(of, X), type="array<double>"), type="int", **fields)


def number(value: int) -> Any:
    return literal(value, "int")


# --- what is implied ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "filter",
    [
        exists(XS, MORE),
        exists(XS, call("And", MORE, call("IsNotNull", X))),
        call("And", exists(XS, MORE), exists(attribute("xs2", "array<double>"), LESS)),
        call("Not", call("Not", exists(XS, MORE))),
        call("Not", call("ArrayForAll", XS, function(call("Not", MORE), X))),
        compare("GreaterThan", size(**PLAIN), number(0)),
        compare("GreaterThan", size(**LEGACY), number(0)),
        compare("GreaterThanOrEqual", size(**PLAIN), number(1)),
        compare("EqualTo", size(**PLAIN), number(2)),
        compare("LessThan", number(0), size(**PLAIN)),
        call("Not", compare("EqualTo", size(**PLAIN), number(0))),
        call("Not", compare("LessThan", size(**LEGACY), number(1))),
        call("Not", compare("LessThanOrEqual", size(**PLAIN), number(0))),
        over("GreaterThan", 5.0, call("GetArrayItem", XS, number(0), type="double", failOnError=True)),
        over("GreaterThan", 5.0, call("ElementAt", XS, number(-1), type="double", failOnError=False)),
        exists(XS, call("And", MORE, compare("GreaterThan", X, attribute("z", "double")))),
        exists(call("ArrayTransform", attribute("rs", "array<struct<v:double>>"), function(
            {"c": "GetStructField", "t": "double", "field": "v", "ch": [variable("r", "struct<v:double>")]},
            variable("r", "struct<v:double>")), type="array<double>"), MORE),
        over("GreaterThan", 5.0, {"c": "GetStructField", "t": "double", "field": "v", "ch": [
            call("GetArrayItem", attribute("rs", "array<struct<v:double>>"), number(0), type="struct<v:double>",
                 failOnError=True)]}),
    ],
)  # fmt: skip
def test_some_element_is_above_five(filter: Any) -> None:
    of = XS
    if "rs" in str(filter):
        of = call("GetArrayStructFields", attribute("rs", "array<struct<v:double>>"), type="array<double>", field="v")
    assert ABOVE in parts(clause(filter, of=of))


def parts(found: Clause) -> tuple[Clause, ...]:
    return found.clauses if isinstance(found, Conjunction) else (found,)


@pytest.mark.parametrize(
    "filter",
    [
        call("Not", exists(XS, MORE)),
        call("Not", call("ArrayContains", XS, literal(5.0))),
        call("ArrayForAll", XS, function(MORE, X)),
        compare("EqualTo", size(**PLAIN), number(0)),
        compare("EqualTo", size(**LEGACY), number(-1)),
        compare("GreaterThan", size(**LEGACY), number(-1)),
        compare("GreaterThanOrEqual", size(**PLAIN), number(0)),
        compare("LessThan", size(**PLAIN), number(1)),
        compare("LessThanOrEqual", size(**PLAIN), number(0)),
        call("Not", compare("EqualTo", size(**LEGACY), number(0))),  # size(NULL) is -1
        call("Not", compare("GreaterThan", size(**PLAIN), number(0))),
        call("Or", exists(XS, MORE), compare("EqualTo", attribute("z", "double"), literal(1.0))),
        call("IsNull", exists(XS, MORE)),
        call("IsNull", call("GetArrayItem", XS, number(0), type="double", failOnError=False)),
        call("Not", call("IsNotNull", call("GetArrayItem", XS, number(0), type="double", failOnError=False))),
        # '' where the array ends: split_part
        over("GreaterThan", 5.0, call("ElementAt", XS, number(9), type="double", defaultValueOutOfBound="6.0")),
        exists(XS, compare("GreaterThan", variable("i", "int"), number(5)), X, variable("i", "int")),
        exists(attribute("others", "array<double>"), MORE),
        exists(attribute("xs", "array<float>"), compare("GreaterThan", variable("x", "float"), literal("5.0", "float")),
               variable("x", "float")),
        MORE,  # a variable of no lambda
    ],
)  # fmt: skip
def test_nothing_follows(filter: Any) -> None:
    assert clause(filter) == KEEP
    assert clause(filter, ValueList("xs[]")) == KEEP


@pytest.mark.parametrize("body", [function(MORE), MORE])
@pytest.mark.parametrize("name", ["ArrayExists", "ArrayForAll"])
def test_a_lambda_without_a_variable_implies_nothing(name: str, body: Any) -> None:
    found = read_predicate(call(name, XS, body))
    assert isinstance(found, Implying) and found == Implying(found.exact)


def test_a_size_of_something_malformed_implies_nothing() -> None:
    filtered = call("ArrayFilter", XS, type="array<double>")
    found = read_predicate(compare("GreaterThan", call("Size", filtered, type="int", **PLAIN), number(0)))
    assert isinstance(found, Opaque | Comparison)


@pytest.mark.parametrize("value", ["12", {"1.0": 1}, 5])
def test_a_literal_that_is_no_list_has_no_parts(value: Any) -> None:
    text = attribute("texts", "array<string>")
    odd = {"c": "Literal", "t": "array<string>", "v": value}
    found = read_predicate(call("ArraysOverlap", text, odd))
    assert isinstance(found, Opaque), "nothing follows"


def test_a_negation_implies_nothing_of_elements_wherever_it_stands() -> None:
    negated = call("Not", exists(XS, MORE))
    assert clause(exists(XS, call("Not", exists(XS, MORE)))) == KEEP
    assert clause(call("And", negated, exists(XS, LESS))) == within(Range(None, 9.0, high_open=True))
    assert clause(call("Or", negated, exists(XS, LESS))) == KEEP


# --- the same element, or another ---------------------------------------------------------------------------------


def test_one_lambda_is_about_one_element() -> None:
    assert (
        holds(clause(exists(XS, call("And", MORE, LESS)), GapList("xs[]", gaps=3)), only((0.0, 5.0), (9.0, 20.0)))
        is False
    )


def test_two_lambdas_may_be_about_two_elements() -> None:
    """`x > 5` by one element and `x < 5` by another: no element need be both, and no value common to both."""
    for index in (MinMax("xs[]"), GapList("xs[]", gaps=3), ValueList("xs[]")):
        both = clause(call("And", exists(XS, MORE), exists(XS, BELOW_FIVE)), index)
        assert both not in (SKIP, KEEP)
        listed = {"it": Values(frozenset({1.0, 7.0}), 0)}
        assert holds(both, listed if isinstance(index, ValueList) else only((1.0, 1.0), (7.0, 7.0))) is True


def test_no_walk_combines_two_conditions() -> None:
    above, below = (HasElement(ELEMENT.array, Comparison(how, ELEMENT, Literal(5.0, DOUBLE))) for how in (">", "<"))
    both = And((above, below))
    assert normalise(both) == both
    assert at_most(both, ELEMENT).everything
    assert at_least(both, ELEMENT) == ValueSet()
    assert not subsumes(above, below)
    assert normalise(HasElement(ELEMENT.array, And((above.condition, below.condition)))) != NEVER  # two clauses do it


def test_a_looser_condition_subsumes_a_stricter_one_of_the_same_array() -> None:
    def some(array: Any, comparator: Any, number: float) -> HasElement:
        element = element_of(Column((array,), DataType("array<double>")))
        assert isinstance(element, Element)
        return HasElement(element.array, Comparison(comparator, element, Literal(number, DOUBLE)))

    assert subsumes(some("xs", ">", 2.0), some("xs", "=", 3.0))
    assert not subsumes(some("xs", "=", 3.0), some("xs", ">", 2.0))
    assert not subsumes(some("xs", ">", 2.0), some("others", "=", 3.0))
    assert not subsumes(some("xs", ">", 2.0), And((some("xs", ">", 1.0), some("xs", "<", 3.0))))
    assert not subsumes(some("xs", ">", 2.0), some("xs", "=", 3.0).condition)
    access = [
        Call("getmapvalue", (Column(("m",), DataType("map<string,double>")), Literal("k", DataType("string"))), DOUBLE)
    ]
    above, three = (normalise(Comparison(how, access[0], Literal(n, DOUBLE))) for how, n in ((">", 2.0), ("=", 3.0)))
    assert subsumes(above, three)


@pytest.mark.parametrize(("negated", "value"), [(False, "TRUE"), (True, "FALSE")])
def test_a_boolean_of_a_map_says_something_of_its_values(negated: bool, value: str) -> None:
    flags = Column(("m",), DataType("map<string,boolean>"))
    access = Call("getmapvalue", (flags, Literal("k", DataType("string"))), DataType("boolean"))
    said = [show(one) for one in implied_by_access(Holds(access, negated))]
    assert any(f"= {value}" in one for one in said), said


def test_an_inner_lambda_over_the_same_array_is_about_another_element() -> None:
    y = variable("y")
    inner = exists(XS, call("And", over("GreaterThan", 5.0, y), over("LessThan", 5.0)), y)
    found = clause(exists(XS, inner), GapList("xs[]", gaps=3))
    assert holds(found, only((1.0, 1.0), (7.0, 7.0))) is True
    assert found == ABOVE


def test_the_innermost_lambda_has_a_name() -> None:
    hidden = exists(XS, call("And", exists(XS, MORE), BELOW_FIVE))
    assert holds(clause(hidden, GapList("xs[]", gaps=3)), only((1.0, 1.0), (7.0, 7.0))) is True
    other = exists(attribute("others", "array<double>"), call("And", exists(XS, LESS), MORE))
    assert clause(other) == within(Range(None, 9.0, high_open=True))


def only(*stretches: tuple[float, float]) -> dict[str, Metadata]:
    return {"it": Intervals(stretches, 0, 0)}


def test_an_index_of_elements_labels_nothing_outside_of_its_array() -> None:
    """Even if such a predicate should ever come to be."""
    naked = Comparison(">", ELEMENT, Literal(5.0, DOUBLE))
    labellers = [Labeller(MinMax("xs[]"), target(XS))]
    assert merge_clause(naked, labellers) == KEEP
    others = Column(("others",), DataType("array"))
    assert merge_clause(HasElement(others, naked), labellers) == KEEP
    assert merge_clause(HasElement(ELEMENT.array, HasElement(others, naked)), labellers) == KEEP
    assert merge_clause(HasElement(ELEMENT.array, naked), labellers) == ABOVE
    assert merge_clause(Implying(HasElement(ELEMENT.array, naked)), labellers) == KEEP  # not normal


def test_the_position_is_not_the_element() -> None:
    whole, position = attribute("whole", "array<int>"), variable("i", "int")
    body = compare("GreaterThan", position, number(5))
    filtered = call("ArrayFilter", whole, function(body, variable("x", "int"), position), type="array<int>")
    filter = compare("GreaterThan", call("Size", filtered, type="int", **PLAIN), number(0))
    assert clause(filter, of=whole) == KEEP
    body["ch"][0] = variable("x", "int")
    assert clause(filter, of=whole) == within(Range(5, None, low_open=True))


def test_a_rows_own_columns_in_a_lambda_are_its_columns() -> None:
    """An element stands with its row, so an index of rows may be asked."""
    z = attribute("z", "double")
    found = clause(exists(XS, call("And", MORE, over("LessThan", 9.0, z))), MinMax("z"), of=z, levels=0)
    assert found == within(Range(None, 9.0, high_open=True))


# --- values -------------------------------------------------------------------------------------------------------


def test_array_contains_asks_for_the_value() -> None:
    for value, wanted in ((3.0, AnyOf((3.0,))), (-0.0, AnyOf((0.0,)))):
        assert clause(call("ArrayContains", XS, literal(value)), ValueList("xs[]")) == Ask("it", wanted)
    nan = clause(call("ArrayContains", XS, literal(math.nan)), ValueList("xs[]"))
    assert holds(nan, {"it": Values(frozenset({1.0}), 0, nans=0)}) is False
    assert holds(nan, {"it": Values(frozenset({1.0}), 0, nans=1)}) is True
    assert clause(call("ArrayContains", XS, literal(None))) == SKIP


def test_arrays_overlap_asks_for_each_value_of_a_list() -> None:
    listed = {"c": "Literal", "t": "array<double>", "v": ["1.0", None, "NaN"]}
    for sides in ((XS, listed), (listed, XS)):
        found = clause(call("ArraysOverlap", *sides), ValueList("xs[]"))
        assert holds(found, {"it": Values(frozenset({2.0}), 5, nans=0)}) is False
        assert holds(found, {"it": Values(frozenset({1.0}), 0, nans=0)}) is True
        assert holds(found, {"it": Values(frozenset({2.0}), 0, nans=1)}) is True
    written = call("CreateArray", literal(1.0), attribute("y"), type="array<double>")
    assert holds(clause(call("ArraysOverlap", XS, written), ValueList("xs[]")), {"it": Values(frozenset({2.0}), 0, 0)})
    assert clause(call("ArraysOverlap", XS, attribute("others", "array<double>"))) == KEEP
    assert clause(call("ArraysOverlap", XS, {**listed, "v": []})) == SKIP
    written["ch"][1] = literal(3.0)
    each = disjunction([Ask("it", AnyOf((value,))) for value in (1.0, 3.0)])
    assert clause(call("ArraysOverlap", written, XS), ValueList("xs[]")) == each


def test_what_is_made_of_each_element() -> None:
    """The elements of ``transform(tags, t -> upper(t))``, asked of an index of the same expression."""
    tags, t = attribute("tags", "array<string>"), variable("t", "string")
    made = call("ArrayTransform", tags, function(call("Upper", t, type="string"), t), type="array<string>")
    index, wanted = ValueList("transform(tags, t -> upper(t))[]"), Ask("it", AnyOf(("A",)))
    u, a = variable("u", "string"), literal("A", "string")
    listed = {"c": "Literal", "t": "array<string>", "v": ["A", None]}
    for filter in (
        exists(tags, compare("EqualTo", call("Upper", t, type="string"), a), t),
        call("ArrayContains", made, a),
        call("ArraysOverlap", made, listed),
        exists(made, compare("EqualTo", u, a), u),
        call("Not", call("ArrayForAll", made, function(call("Not", compare("EqualTo", u, a)), u))),
    ):
        assert clause(filter, index, made) == wanted
        assert clause(filter, ValueList("tags[]"), tags) == KEEP
    for made_of_none in (
        call("ArrayTransform", tags, function(literal("A", "string"), t), type="array<string>"),
        call("ArrayTransform", tags, function(variable("v", "string"), t), type="array<string>"),
    ):
        assert clause(call("ArrayContains", made_of_none, a), index, made) == KEEP


def test_what_doubles_with_each_step_does_not_take_for_ever() -> None:
    x, made = variable("x"), XS
    for _ in range(60):
        made = call("ArrayTransform", made, function(call("Add", x, x, type="double"), x), type="array<double>")
    assert clause(exists(made, MORE), MinMax("xs[]")) == KEEP


def test_null_elements_are_counted_for_themselves() -> None:
    nulls = clause(exists(XS, call("IsNull", X)))
    assert nulls == Ask("it", HasNull())
    assert holds(nulls, only((1.0, 2.0))) is False


def test_a_key_and_its_value() -> None:
    access = over("EqualTo", 3.0, call("GetMapValue", attribute("m"), literal("k", "string"), type="double"))
    keys = call("MapKeys", attribute("m"), type="array<string>")
    values = call("MapValues", attribute("m"), type="array<double>")
    assert clause(access, ValueList("map_keys(m)[]"), of=keys) == Ask("it", AnyOf(("k",)))
    assert clause(access, ValueList("map_values(m)[]"), of=values) == Ask("it", AnyOf((3.0,)))
    at = call("ElementAt", attribute("m"), literal("k", "string"), type="double", failOnError=False)
    assert clause(over("EqualTo", 3.0, at), ValueList("map_keys(m)[]"), of=keys) == Ask("it", AnyOf(("k",)))
    assert clause(over("EqualTo", 3.0, at), ValueList("map_values(m)[]"), of=values) == Ask("it", AnyOf((3.0,)))
    other = call("SomethingElse", attribute("m"), literal("k", "string"), type="double")
    assert clause(over("EqualTo", 3.0, other), ValueList("map_keys(m)[]"), of=keys) == KEEP
    contains = call("ArrayContains", keys, literal("k", "string"))
    assert clause(contains, ValueList("map_keys(m)[]"), of=keys) == Ask("it", AnyOf(("k",)))
    missing = call("IsNull", access["ch"][0])
    assert clause(missing, ValueList("map_keys(m)[]"), of=keys) == KEEP
    assert clause(call("Not", access), ValueList("map_keys(m)[]"), of=keys) == Ask("it", AnyOf(("k",)))
    cast = {"c": "Cast", "t": "decimal(9,2)", "mode": "LEGACY", "ch": [access["ch"][0]]}
    assert clause(call("IsNotNull", cast), ValueList("map_keys(m)[]"), of=keys) == Ask("it", AnyOf(("k",)))
    default = call("Coalesce", access["ch"][0], literal(3.0), type="double")
    assert clause(over("EqualTo", 3.0, default), ValueList("map_keys(m)[]"), of=keys) == KEEP


def test_arrays_in_arrays() -> None:
    grid = attribute("ns")
    inner = exists(variable("a", "array<double>"), MORE)
    nested = exists(grid, inner, variable("a", "array<double>"))
    assert clause(nested, of=grid, levels=2) == ABOVE
    assert clause(nested, of=grid, levels=1) == KEEP
    assert clause(exists(call("Flatten", grid, type="array<double>"), MORE), of=grid, levels=2) == KEEP


# --- the operand --------------------------------------------------------------------------------------------------


def test_the_same_elements_are_the_same_operand() -> None:
    """However many fields of the structs a query reads."""
    found = set()
    for structs in ("array<struct<v:double>>", "array<struct<u:int,v:double>>"):
        found.add(
            read_elements(call("GetArrayStructFields", attribute("rs", structs), type="array<double>", field="v"), 1)
        )
        variable_ = variable("r", structs[6:-1])
        field = {"c": "GetStructField", "t": "double", "field": "v", "ch": [variable_]}
        read = normalise(read_predicate(exists(attribute("rs", structs), over("GreaterThan", 5.0, field), variable_)))
        (some,) = (leaf for leaf in leaves_of(read) if isinstance(leaf, HasElement))
        found.add(operands_in(some.condition)[0])
    assert found == {Element(Column(("rs",), DataType("array")), DOUBLE, ("v",))}


def test_an_element_is_shown_and_stored() -> None:
    nested = Element(Element(Column(("a b",), DataType("array")), DataType("array"), ("c",)), DOUBLE, ("d.e",))
    assert show(nested) == "`a b`[].c[].`d.e`"
    assert operand_from_data(operand_to_data(nested)) == nested
    keys = Call("mapkeys", (Column(("m",), DataType("map<string,int>")),), DataType("array<string>"))
    assert show(element_of(keys)) == "mapkeys(m)[]"
    assert isinstance(element_of(Column(("x",), DOUBLE)), Opaque)
    unread = Opaque("a lambda", DataType("array<double>"))
    assert element_of(unread) == unread
    structs = (Column(("rs",), DataType("array<struct<v:double>>")),)
    for type, parameters in ((DOUBLE, (("field", "v"),)), (DataType("array<double>"), ())):
        assert isinstance(element_of(Call("getarraystructfields", structs, type, parameters)), Opaque)
    assert isinstance(
        element_of(Call("getarraystructfields", (Column(("x",), DOUBLE),), DataType("array<double>"))), Opaque
    )
    assert read_elements("nonsense", 1) == Opaque("malformed: a node without a class")


def test_nothing_opaque_is_certain() -> None:
    some = HasElement(ELEMENT.array, Opaque("?"))
    assert not is_certain(some)
    assert normalise(some) == Opaque("?")
    assert isinstance(normalise(Not(HasElement(ELEMENT.array, Comparison("=", ELEMENT, Literal(1.0, DOUBLE))))), Opaque)
    assert normalise(HasElement(ELEMENT.array, NEVER)) == NEVER
    nested: Any = Comparison(">", ELEMENT, Literal(5.0, DOUBLE))
    for _ in range(MAX_DEPTH + 2):
        nested = HasElement(ELEMENT.array, nested)
    assert normalise(nested) == Opaque("too deep")
    deep: Any = Comparison(">", ELEMENT, Literal(5.0, DOUBLE))
    for _ in range(300):
        deep = HasElement(ELEMENT.array, Or((deep, deep.condition if isinstance(deep, HasElement) else deep)))
    assert merge_clause(normalise(deep), [Labeller(MinMax("xs[]"), target(XS))]) == KEEP


def test_a_trace_says_what_became_of_the_condition() -> None:
    trace = merge_traced(normalise(read_predicate(exists(XS, MORE))), [Labeller(MinMax("xs[]"), target(XS))])
    assert [child.text for child in trace.children][1] == "ANY xs[] (xs[] > 5.0)"
    assert trace.children[1].children[0].labels == (("it", ABOVE),)


# --- collecting ---------------------------------------------------------------------------------------------------


def collected(index: Index, array: pa.Array, type: DataType, levels: int) -> Metadata:
    """The metadata of an object whose rows come in two slices of a batch, as Spark may cut them."""
    part = Part("it", index.collector((type,)), (1,), index.kind, index.value_type((type,)), levels=levels)
    batch = pa.RecordBatch.from_arrays([pa.array([7] * len(array), pa.int64()), array], names=["object", "c1"])
    half = len(array) // 2
    (partial,) = CollectPartials([part])([batch.slice(0, half), batch.slice(half)])
    ((_, rows, (known, unknown)),) = Finish([part]).objects([partial])
    assert (rows, unknown) == (len(array), {})
    found: Metadata = known["it"]
    return found


@pytest.mark.parametrize("large", [False, True])
def test_nulls_of_elements_are_counted_and_null_arrays_have_none(large: bool) -> None:
    type = pa.large_list(pa.float64()) if large else pa.list_(pa.float64())
    rows = pa.array([[99.0], None, [], [1.0, None], [math.nan, -0.0, 3.0], [77.0]], type).slice(1, 4)
    found = collected(MinMax("xs[]"), rows, DOUBLE, 1)
    assert found == Intervals(((0.0, 3.0),), nulls=1, nans=1)
    assert collected(ValueList("xs[]"), rows, DOUBLE, 1) == Values(frozenset({0.0, 1.0, 3.0}), nulls=1, nans=1)
    nothing = pa.array([None, [], None], type)
    assert collected(MinMax("xs[]"), nothing, DOUBLE, 1) == Intervals((), nulls=0, nans=0)


def test_a_null_array_may_hide_values() -> None:
    """Arrow allows values below a null: they belong to no row."""
    hidden = pa.ListArray.from_arrays(pa.array([0, 1, 3]), pa.array([1.0, 50.0, 60.0]), mask=pa.array([False, True]))
    assert collected(MinMax("xs[]"), hidden, DOUBLE, 1) == Intervals(((1.0, 1.0),), nulls=0, nans=0)


def test_arrays_in_arrays_are_flattened_twice() -> None:
    rows = pa.array([[[1.0], None, []], None, [[2.0, None]]], pa.list_(pa.list_(pa.float64())))
    assert collected(MinMax("ns[][]"), rows, DOUBLE, 2) == Intervals(((1.0, 2.0),), nulls=1, nans=0)


# --- any filter ---------------------------------------------------------------------------------------------------

_STRING = DataType("string")
_KEYS = call("MapKeys", attribute("m"), type="array<string>")
_VALUES = call("MapValues", attribute("m"), type="array<double>")
INDEXES: list[tuple[str, Index, Any, int]] = [
    ("minmax(xs[])", MinMax("xs[]"), XS, 1),
    ("valuelist(xs[])", ValueList("xs[]"), XS, 1),
    ("gaplist(xs[])", GapList("xs[]", gaps=2), XS, 1),
    ("bloomfilter(xs[])", BloomFilter("xs[]"), XS, 1),
    ("gaplist(ns[][])", GapList("ns[][]", gaps=2), attribute("ns"), 2),
    ("valuelist(keys)", ValueList("map_keys(m)[]"), _KEYS, 1),
    ("valuelist(values)", ValueList("map_values(m)[]"), _VALUES, 1),
    ("minmax(y)", MinMax("y"), attribute("y"), 0),
]


def labeller(id: str, index: Index, of: Any, levels: int) -> Labeller:
    return Labeller(index, Target(id, *(target(of, levels).operands, target(of, levels).types)))


def random_rows(draw: random.Random) -> list[dict[str, Any]]:
    def value() -> float | None:
        return draw.choice([0.0, -0.0, 1.0, 2.0, 3.0, 4.0, 5.0, math.nan, math.inf, None])

    def array() -> list[Any] | None:
        return draw.choice([None, [], [value()], [value(), value()], [value(), value(), value()]])

    def pairs() -> list[Any] | None:
        return draw.choice([None, [(draw.choice("abcd"), value()) for _ in range(draw.randrange(3))]])

    return [
        {"xs": array(), "ns": draw.choice([None, [], [array()], [array(), array()]]), "m": pairs(), "y": value()}
        for _ in range(draw.randrange(1, 4))
    ]


def metadata_of(rows: list[dict[str, Any]]) -> dict[str, Metadata]:
    lists = pa.list_(pa.float64())
    maps = [row["m"] for row in rows]
    columns = {
        "xs": pa.array([row["xs"] for row in rows], lists),
        "ns": pa.array([row["ns"] for row in rows], pa.list_(lists)),
        "keys": pa.array([None if one is None else [key for key, _ in one] for one in maps], pa.list_(pa.string())),
        "values": pa.array([None if one is None else [value for _, value in one] for one in maps], lists),
        "y": pa.array([row["y"] for row in rows], pa.float64()),
    }
    found = {}
    for id, index, _, levels in INDEXES:
        column = columns[id.partition("(")[2].rstrip(")").replace("[]", "")]
        found[id] = collected(index, column, _STRING if "keys" in id else DOUBLE, levels)
    return found


def test_no_filter_loses_a_row() -> None:
    """Random filters on elements over random objects, by Spark's truth; a part of both is skipped, each index helps."""
    draw = random.Random(21)
    labellers = {id: labeller(id, index, of, levels) for id, index, of, levels in INDEXES}
    skipped = dict.fromkeys(labellers, 0)
    for _ in range(250):
        rows = random_rows(draw)
        known = metadata_of(rows)
        for _ in range(12):
            filter = random_filter(draw, draw.randrange(4))
            normal = normalise(read_predicate(filter))
            matched = any(truth(filter, row) is True for row in rows)
            assert holds(merge_clause(normal, list(labellers.values())), known) is not False or not matched, (
                filter,
                rows,
            )
            for id, one in labellers.items():
                if holds(merge_clause(normal, [one]), known) is False:
                    assert not matched, (id, filter, rows)
                    skipped[id] += 1
    assert all(count > 5 for count in skipped.values()), skipped
