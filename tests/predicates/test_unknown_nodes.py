"""A node that no walk knows, as a later version may add one, is opaque to all of them: it keeps every object."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pytest

from es_skipping.clauses.clause import KEEP, SKIP
from es_skipping.clauses.merge import Labeller, merge_clause, merge_traced
from es_skipping.indexes.base import Index, Target
from es_skipping.indexes.features import Features
from es_skipping.indexes.filters import filters_of
from es_skipping.indexes.geobox import GeoBox
from es_skipping.indexes.minmax import MinMax
from es_skipping.indexes.valuelist import ValueList
from es_skipping.layout.features.helping import Helping
from es_skipping.predicates.codec import has_opaque, operand_from_data, operand_to_data
from es_skipping.predicates.functions import versioned, with_images
from es_skipping.predicates.implied import Conditions
from es_skipping.predicates.normal import normalise
from es_skipping.predicates.show import show
from es_skipping.predicates.subsumption import is_certain, subsumes
from es_skipping.predicates.tree import (
    And,
    Call,
    Column,
    Comparison,
    IsIn,
    Literal,
    Not,
    Opaque,
    Or,
    map_operands,
    operands_of,
)
from es_skipping.predicates.truth import sql_of
from es_skipping.predicates.types import DataType
from es_skipping.predicates.value_sets import ValueSet, at_least, at_most
from es_skipping.workload.families import families_of
from es_skipping.workload.mining import Feature, candidates_of, frequent_sets, never_by_time
from es_skipping.workload.queries import Query, conjuncts

INT, BOOLEAN = DataType("int"), DataType("boolean")
X, Y = Column(("x",), INT), Column(("y",), INT)
UNDECLARED = Call("udf:f", (X,), INT)
LESS = Comparison("<", X, Literal(9, INT))


@dataclass(frozen=True)
class Near:
    """A leaf that nobody knows."""

    operand: Any
    metres: int = 5


@dataclass(frozen=True)
class Part:
    """An operand that nobody knows."""

    child: Any
    type: DataType = INT


@dataclass(frozen=True)
class NearShaped(Near):
    """A leaf that nobody knows, though it is shaped as every node is."""

    @property
    def operands(self) -> tuple[Any, ...]:
        return (self.operand,)

    def map_operands(self, change: Any) -> NearShaped:
        return replace(self, operand=change(self.operand))


LEAVES: list[Any] = [Near(X), Near(UNDECLARED), Near(Part(X)), NearShaped(X), NearShaped(UNDECLARED)]


def unknown(leaf: Any) -> str:
    return f"unknown node {type(leaf).__name__}"


def target(*operands: Any) -> Target:
    return Target("i", operands, tuple(one.type for one in operands))


@pytest.mark.parametrize("leaf", LEAVES)
def test_nothing_is_proved_of_it(leaf: Any) -> None:
    for node in (leaf, And((leaf, LESS)), Or((leaf, LESS))):
        assert not is_certain(node)
        assert not subsumes(node, node)
        assert not subsumes(leaf, node)
    assert not subsumes(LESS, leaf)
    assert not subsumes(Or((leaf, Near(Y))), leaf)  # type: ignore[arg-type]
    assert subsumes(LESS, And((leaf, LESS)))  # by the part that is known
    assert operands_of(leaf) == ()
    everything = ValueSet.__or__(at_most(LESS, X), at_most(normalise(Not(LESS)), X))
    assert everything <= at_most(leaf, X)
    assert at_most(leaf, X).null
    assert at_least(leaf, X) == ValueSet()


@pytest.mark.parametrize("leaf", LEAVES)
def test_the_normal_form_holds_something_opaque_instead(leaf: Any) -> None:
    opaque = Opaque(unknown(leaf))
    assert normalise(leaf) == normalise(Not(leaf)) == opaque
    assert normalise(Or((LESS, leaf))) == Or((LESS, opaque))
    read = versioned(And((leaf, LESS)), lambda name: None)
    assert normalise(with_images(read, lambda name: None)) == And((opaque, LESS))
    assert map_operands(leaf, lambda operand: Y) == versioned(leaf, lambda name: None) == leaf


def test_an_unknown_operand_of_a_known_leaf_stays() -> None:
    """It has none of the methods that an operand has."""
    odd: Any = Part(UNDECLARED)
    leaf = Comparison("<", odd, Literal(9, INT))
    assert versioned(leaf, lambda name: None) == with_images(leaf, lambda name: None) == leaf
    assert not is_certain(leaf)


def labellers() -> list[Labeller]:
    """Indexes of each sort that has a walk of its own, and a user's filter that recognises whatever it is shown."""
    one = Call("equalto", (X, Literal(1, INT)), BOOLEAN)
    indexes: list[tuple[Index, Target]] = [
        (MinMax("x"), target(X)),
        (ValueList("x"), target(X)),
        (GeoBox("x", "y"), target(X, Y)),
        (Features("x = 1"), target(one)),
    ]
    eager = [lambda node, index, target: SKIP]
    known = [Labeller(index, target, filters_of(type(index))) for index, target in indexes]
    return [*known, replace(known[0], filters=eager)]


@pytest.mark.parametrize("leaf", LEAVES)
def test_it_keeps_every_object(leaf: Any) -> None:
    trace = merge_traced(leaf, labellers())
    assert merge_clause(leaf, labellers()) == trace.clause == KEEP
    assert (trace.reason, trace.labels, trace.text) == (unknown(leaf), (), f"<{unknown(leaf)}>")
    known = labellers()[:-1]
    assert merge_clause(Or((leaf, LESS)), known) == KEEP
    assert merge_clause(And((leaf, LESS)), known) == merge_clause(LESS, known) != KEEP


@pytest.mark.parametrize("leaf", LEAVES)
def test_it_is_shown(leaf: Any) -> None:
    assert show(And((LESS, leaf))) == f"x < 9 AND <{unknown(leaf)}>"
    assert show(Comparison("=", Part(X), Literal(1, INT))) == "<unknown node Part> = 1"  # type: ignore[arg-type]
    assert sql_of(And((LESS, leaf))) is None


def test_an_unknown_operand_is_opaque() -> None:
    for operand in (Part(X), Call("abs", (Part(X),), INT)):  # type: ignore[arg-type]
        assert has_opaque(operand)  # type: ignore[arg-type]
        leaf = Comparison("=", operand, Literal(1, INT))  # type: ignore[arg-type]
        assert not is_certain(leaf)
        assert not subsumes(leaf, leaf)
        assert merge_clause(leaf, [Labeller(MinMax("x"), target(operand)), *labellers()[:-1]]) == KEEP
    written = operand_to_data(Part(X))  # type: ignore[arg-type]
    assert operand_from_data(written) == Opaque("unknown node Part", INT)


@pytest.mark.parametrize("leaf", LEAVES)
def test_no_feature_comes_of_it_and_none_helps_it(leaf: Any) -> None:
    assert conjuncts(And((leaf, LESS))) == (LESS,)
    assert conjuncts(Or((leaf, LESS))) == ()
    assert not never_by_time(leaf)
    known = Conditions([leaf, LESS])
    assert known.implied_by(leaf) == known.implied_by(Or((leaf, LESS))) == ()
    assert known.implied_by(And((leaf, LESS))) == (1,)
    assert known.one_of(Or((leaf, LESS))) is None
    query = Query(Or((leaf, LESS)))
    assert not Helping([Feature((leaf,)), Feature((LESS,))]).help(query)
    log = [Query(And((leaf, IsIn(X, (1, 2))))), Query(And((leaf, LESS)))] * 3
    found = [
        *candidates_of(log, min_support=1, usable=never_by_time),
        *frequent_sets(log, 9, min_support=1, usable=never_by_time),
        *(one for family in families_of(log, [], 1, never_by_time) for one in family.features),
    ]
    assert found
    assert all(is_certain(feature.predicate) for feature in found)


def test_a_null_safe_comparison_leaves_null() -> None:
    """As it does where a predicate is not normal."""
    assert at_most(Comparison("<=>", X, Y), X).null
    assert not at_most(Comparison("=", X, Y), X).null
