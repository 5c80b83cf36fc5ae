"""Merge-Clause: Algorithm 1 case by case, and its theorem: no object with a satisfying row is skipped."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from es_skipping.clauses import merge
from es_skipping.clauses.clause import KEEP, SKIP, Ask, Clause, Conjunction, Disjunction, conjunction, disjunction
from es_skipping.clauses.evaluate import holds
from es_skipping.clauses.merge import Labeller, Trace, merge_clause, merge_traced
from es_skipping.clauses.metadata import Intervals, Kind, Metadata, Values
from es_skipping.clauses.questions import AnyOf, HasNaN, HasNotNull, HasNull, OtherThan, Overlaps, Range, TextMatch
from es_skipping.indexes.base import Collector, Index, Target
from es_skipping.predicates import reasons
from es_skipping.predicates.elements import element_of, has_element
from es_skipping.predicates.normal import normalise
from es_skipping.predicates.tree import (
    ALWAYS,
    NEVER,
    And,
    Call,
    Cast,
    Column,
    Comparison,
    Element,
    HasElement,
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
from tests.predicates.rows import COLUMNS, TYPES, predicates, rows, truth

X, Y = Column(("x",), parse_type("int")), Column(("y",), parse_type("int"))


class Toy(Index):
    """The least an index needs: it says what each leaf about its column asks of exact metadata."""

    kind: ClassVar[Kind] = "values"

    @property
    def columns(self) -> tuple[Any, ...]:
        return ()

    def check(self, types: Sequence[DataType]) -> None:
        raise NotImplementedError

    def value_type(self, types: Sequence[DataType]) -> DataType:
        return types[0]

    def collector(self, types: Sequence[DataType]) -> Collector[Any]:
        raise NotImplementedError

    def label(self, node: Predicate, target: Target) -> Clause | None:
        operand = target.operands[0]
        nan: list[Clause] = [target.ask(HasNaN())] if operand.type.is_float else []
        if isinstance(node, Comparison) and node.left == operand and isinstance(node.right, Literal):
            value = node.right.value
            assert value is not None
            if isinstance(value, float) and math.isnan(value):
                return target.ask(HasNaN()) if node.comparator == "=" else target.ask(HasNotNull())
            match node.comparator:
                case "=":
                    return target.ask(AnyOf((value,)))
                case "<>":
                    return disjunction([target.ask(OtherThan((value,))), *nan])
                case "<" | "<=":
                    return target.ask(Overlaps((Range(None, value, high_open=node.comparator == "<"),)))
                case _:
                    above = Overlaps((Range(value, None, low_open=node.comparator == ">"),))
                    return disjunction([target.ask(above), *nan])
        if isinstance(node, IsIn) and node.operand == operand:
            if node.negated:
                return disjunction([target.ask(OtherThan(node.values)), *nan])
            return target.ask(AnyOf(node.values))
        if isinstance(node, NullTest) and node.operand == operand:
            return target.ask(HasNotNull() if node.negated else HasNull())
        if isinstance(node, Matches) and node.operand == operand:
            return target.ask(TextMatch(node.test, node.pattern, node.escape, node.negated))
        return None


class Broken(Toy):
    def label(self, node: Predicate, target: Target) -> Clause | None:
        raise ValueError("no luck")


class Wrong(Toy):
    def label(self, node: Predicate, target: Target) -> Clause | None:
        return True  # type: ignore[return-value]


class OfConnectives(Toy):
    """Labels And and Or themselves, as a feature or a box index does."""

    def label(self, node: Predicate, target: Target) -> Clause | None:
        return target.ask(AnyOf((1,))) if isinstance(node, And | Or) else None


class OfEverything(Toy):
    def label(self, node: Predicate, target: Target) -> Clause | None:
        return target.ask(AnyOf((1,)))


class OfElements(Toy):
    """Labels a condition on elements itself."""

    def label(self, node: Predicate, target: Target) -> Clause | None:
        return target.ask(AnyOf((1,))) if isinstance(node, HasElement) else None


def labeller(operand: Operand, index: Index | None = None, name: str = "") -> Labeller:
    path = operand.path[0] if isinstance(operand, Column) else "expression"
    return Labeller(index or Toy(), Target(name or f"toy({path})", (operand,), (operand.type,)))


def is_(column: Column, value: int) -> Comparison:
    return Comparison("=", column, Literal(value, column.type))


def asks(name: str, value: int) -> Clause:
    return Ask(f"toy({name})", AnyOf((value,)))


# --- Algorithm 1 --------------------------------------------------------------------------------------------------


def test_a_leaf_is_the_conjunction_of_its_labels() -> None:
    two = [labeller(X), labeller(X, name="other")]
    assert merge_clause(is_(X, 1), two) == Conjunction((asks("x", 1), Ask("other", AnyOf((1,)))))


def test_a_leaf_without_labels_keeps() -> None:
    assert merge_clause(is_(X, 1), [labeller(Y)]) == KEEP
    assert merge_clause(is_(X, 1), []) == KEEP


def test_and_keeps_whichever_side_is_usable() -> None:  # trap 25
    assert merge_clause(And((is_(X, 1), is_(Y, 2))), [labeller(X)]) == asks("x", 1)
    assert merge_clause(And((is_(X, 1), Opaque("?"))), [labeller(X)]) == asks("x", 1)


def test_or_needs_every_side() -> None:
    both = Or((is_(X, 1), is_(Y, 2)))
    assert merge_clause(both, [labeller(X)]) == KEEP
    assert merge_clause(both, [labeller(X), labeller(Y)]) == Disjunction((asks("x", 1), asks("y", 2)))
    assert merge_clause(Or((is_(X, 1), Opaque("?"))), [labeller(X)]) == KEEP


def test_labels_of_connectives_join_by_conjunction() -> None:
    own = labeller(Y, OfConnectives(), "own")
    of_node = Ask("own", AnyOf((1,)))
    x = labeller(X)
    anded, ored = And((is_(X, 1), is_(X, 2))), Or((is_(X, 1), is_(X, 2)))
    assert merge_clause(anded, [x, own]) == Conjunction((asks("x", 1), asks("x", 2), of_node))
    assert merge_clause(ored, [x, own]) == Conjunction((Disjunction((asks("x", 1), asks("x", 2))), of_node))
    assert merge_clause(ored, [own]) == of_node  # though no part of it has a clause


def test_constants_and_what_is_not_understood() -> None:
    assert merge_clause(NEVER, []) == SKIP
    assert merge_clause(ALWAYS, []) == KEEP
    assert merge_clause(Opaque("?"), [labeller(X)]) == KEEP
    assert merge_clause(Not(is_(X, 1)), [labeller(X)]) == KEEP  # not normal: never the complement
    assert merge_clause(And((is_(X, 1), NEVER)), [labeller(X)]) == SKIP


def test_no_index_is_asked_about_a_negation() -> None:
    negation = Not(is_(X, 1))
    trace = merge_traced(negation, [labeller(X, OfEverything())])
    assert (trace.node, trace.clause, trace.labels) == (negation, KEEP, ())
    assert trace.reason is not None and "NOT" in trace.reason


def test_an_index_of_an_expression_is_found_by_its_tree() -> None:
    lower = Call("lower", (Column(("s",), parse_type("string")),), parse_type("string"))
    node = Comparison("=", lower, Literal("a", lower.type))
    assert merge_clause(node, [labeller(lower)]) == Ask("toy(expression)", AnyOf(("a",)))
    other = Call("upper", lower.arguments, lower.type)
    assert merge_clause(Comparison("=", other, Literal("a", lower.type)), [labeller(lower)]) == KEEP


def test_an_index_of_an_opaque_expression_is_not_heard() -> None:
    opaque = Call("f", (Opaque("not deterministic"),), parse_type("int"))
    assert merge_clause(Comparison("=", opaque, Literal(1, X.type)), [labeller(opaque)]) == KEEP


def test_an_index_of_a_function_known_by_name_alone_is_not_heard() -> None:  # trap 21
    by_name = Call("udf:f", (X,), X.type)
    declared = Call("udf:f", (X,), X.type, (("version", "3"),))
    redeclared = Call("udf:f", (X,), X.type, (("version", "4"),))
    one = Literal(1, X.type)
    assert merge_clause(Comparison("=", by_name, one), [labeller(by_name)]) == KEEP
    assert merge_clause(Comparison("=", redeclared, one), [labeller(declared)]) == KEEP
    assert merge_clause(Comparison("=", declared, one), [labeller(declared)]) == Ask("toy(expression)", AnyOf((1,)))


# --- one index fails, the others do not ---------------------------------------------------------------------------


def test_an_index_that_raises_is_ignored_and_named() -> None:
    usable = [labeller(X, Broken(), "broken"), labeller(X), labeller(X, Wrong(), "wrong")]
    trace = merge_traced(is_(X, 1), usable)
    assert merge_clause(is_(X, 1), usable) == trace.clause == asks("x", 1)
    assert trace.labels == (("toy(x)", asks("x", 1)),)
    assert trace.errors == (("broken", "ValueError: no luck"), ("wrong", "'True' is not a clause"))
    alone = merge_traced(is_(X, 1), [labeller(X, Broken(), "broken")])
    assert alone.clause == KEEP
    assert alone.reason == "index broken failed: ValueError: no luck"


def test_the_trace_mirrors_the_tree() -> None:
    tree = And(
        (is_(X, 1), Or((is_(Y, 2), Opaque("a subquery"))), Comparison("<", X, Y), NullTest(Cast(Y, TYPES["string"])))
    )
    trace = merge_traced(tree, [labeller(X)])
    assert trace.clause == merge_clause(tree, [labeller(X)]) == asks("x", 1)
    assert trace.reason is None
    assert [child.node for child in trace.children] == list(tree.children)
    assert [child.reason for child in trace.children] == [
        None,
        "a part of it has no clause",
        "toy(x) cannot decide this of x, y",
        "no index on CAST(y AS STRING)",
    ]
    assert [child.reason for child in trace.children[1].children] == ["no index on y", "a subquery"]
    assert trace.children[0].text == "x = 1"


def test_why_a_comparison_of_two_columns_keeps() -> None:
    trace = merge_traced(Comparison("<", X, Y), [])
    assert trace.clause == KEEP
    assert trace.reason == reasons.NO_INDEX_OF_BOTH.of(operands="x, y")
    assert reasons.NO_INDEX_OF_BOTH.of(operands="x, y") != reasons.NO_INDEX.of(operand="x, y")
    pair = Labeller(Toy(), Target("pair", (X, Column(("z",), X.type)), (X.type, X.type)))
    assert merge_traced(Comparison("<", X, Opaque("a subquery")), []).reason == reasons.NO_INDEX.of(operand="x")
    assert merge_traced(is_(Y, 1), [pair]).reason == reasons.NO_INDEX.of(operand="y")
    assert merge_traced(Comparison("<", X, Y), [pair]).reason == reasons.CANNOT_DECIDE.of(
        indexes="pair", operand="x, y"
    )
    odd = merge_traced(Comparison("<", Literal(1, X.type), Literal(2, X.type)), [labeller(X)])
    assert odd.reason == reasons.NO_INDEX_OF_BOTH.of(operands="")


def test_why_a_conjunction_keeps() -> None:
    """Each of its parts says why; the whole says that there is none to use."""
    assert merge_traced(And((is_(X, 1), is_(Y, 2))), []).reason == reasons.NO_PART.text
    assert merge_traced(Or((is_(X, 1), is_(Y, 2))), []).reason == reasons.PART_OF_OR.text


def test_wide_trees() -> None:
    tree = And(tuple(is_(X, n) for n in range(50_000)))
    assert len(merge_clause(tree, [labeller(X)]).clauses) == 50_000  # type: ignore[union-attr]


def test_deep_trees() -> None:
    tree: Predicate = is_(X, 0)
    for n in range(100_000):
        tree = (Or, And)[n % 2]((is_(X, n), tree))
    assert merge_clause(tree, [labeller(X)]) != SKIP


@pytest.mark.parametrize(("levels", "expected"), [(201, SKIP), (202, KEEP)])
def test_how_deep_a_tree_is_read(levels: int, expected: Clause) -> None:
    tree: Predicate = NEVER
    for _ in range(levels):
        tree = And((tree,))
    assert merge_clause(tree, []) == expected


def test_a_node_that_lies_too_deep_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merge, "_MAX_DEPTH", 0)
    deep = Or((is_(X, 1), is_(X, 2)))
    trace = merge_traced(And((deep, is_(Y, 1))), [labeller(X), labeller(Y)])
    assert trace.children == tuple(Trace(node, KEEP, reason=reasons.TOO_DEEP.text) for node in (deep, is_(Y, 1)))


# --- the theorem --------------------------------------------------------------------------------------------------


def _metadata(name: str, values: list[Any], style: str) -> Metadata | None:
    if style == "missing":
        return None
    known = [value for value in values if value is not None and value == value]
    known = [value + 0.0 if isinstance(value, float) else value for value in known]
    nulls = sum(value is None for value in values)
    nans = len(values) - nulls - len(known)
    if style == "values":
        return Values(frozenset(known), nulls, nans)
    if style == "uncounted":
        return Intervals(((min(known), max(known)),) if known else (), None, None)
    return Intervals(((min(known), max(known)),) if known else (), nulls, nans)


STYLES = st.fixed_dictionaries({name: st.sampled_from(("values", "hull", "uncounted", "missing")) for name in COLUMNS})
LABELLERS = [Labeller(Toy(), Target(name, (column,), (column.type,))) for name, column in COLUMNS.items()]


@examples(400)
@given(predicates(), st.lists(rows(), min_size=1, max_size=4), STYLES)
def test_no_object_with_a_satisfying_row_is_skipped(predicate: Predicate, table: list[Any], styles: Any) -> None:
    metadata = {
        name: found
        for name, style in styles.items()
        if (found := _metadata(name, [row[f"c_{name}"] for row in table], style)) is not None
    }
    clause = merge_clause(normalise(predicate), LABELLERS)
    if any(truth(predicate, row) for row in table):
        assert holds(clause, metadata) is not False


def test_the_theorem_is_not_kept_by_never_skipping() -> None:
    table: dict[str, Metadata] = {"int": Intervals(((1, 9),), nulls=0), "string": Values(frozenset({"ab"}), nulls=0)}
    x, s = COLUMNS["int"], COLUMNS["string"]
    ten = Literal(10, x.type)
    skipping: list[Predicate] = [
        Comparison("=", x, ten),
        Not(Comparison("<", x, ten)),
        Not(Or((Comparison("<", x, ten), NullTest(x)))),
        NullTest(x),
        IsIn(x, (0, 10), has_null=True),
        Not(IsIn(x, (5,), has_null=True)),
        Comparison("=", Cast(x, TYPES["bigint"]), Literal(10, TYPES["bigint"])),
        And((Opaque("?"), Comparison(">", x, ten))),
        Or((Comparison(">", x, ten), Not(Matches("starts", s, "a")))),
        Matches("like", s, "a_c%"),
        Not(Matches("like", s, "a_")),
    ]
    for predicate in skipping:
        assert holds(merge_clause(normalise(predicate), LABELLERS), table) is False, predicate


def test_conjunctions_are_flat() -> None:
    nested = And((is_(X, 1), Or((And((is_(X, 2), is_(X, 3))), is_(X, 4)))))
    clause = merge_clause(nested, [labeller(X)])
    assert clause == conjunction([asks("x", 1), Disjunction((Conjunction((asks("x", 2), asks("x", 3))), asks("x", 4)))])


def test_an_index_of_a_column_and_of_elements_says_nothing_of_rows() -> None:
    element = element_of(Column(("xs",), parse_type("array<int>")))
    asked = Comparison("=", X, Literal(3, X.type))
    alone, both = (Labeller(Toy(), Target("it", of, (X.type,) * len(of))) for of in ((X,), (X, element)))
    assert merge_clause(asked, [alone]) == Ask("it", AnyOf((3,)))
    assert merge_clause(asked, [both]) == KEEP


def test_the_label_of_a_condition_on_elements_joins_that_of_what_it_asks_of_them() -> None:
    element = element_of(Column(("xs",), parse_type("array<int>")))
    assert isinstance(element, Element)
    three = has_element(element, Comparison("=", element, Literal(3, X.type)))
    assert isinstance(three, HasElement)
    of_elements = labeller(element, name="elements")
    assert merge_clause(three, [of_elements]) == Ask("elements", AnyOf((3,)))
    whole = labeller(X, OfElements(), "whole")
    assert merge_clause(three, [of_elements, whole]) == Conjunction(
        (Ask("elements", AnyOf((3,))), Ask("whole", AnyOf((1,))))
    )
