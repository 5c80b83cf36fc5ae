"""`Features`: the union vector of a layout as an index."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import pyarrow as pa
import pytest

from es_skipping.clauses.clause import KEEP, SKIP, Ask, Conjunction
from es_skipping.clauses.evaluate import holds
from es_skipping.clauses.merge import Labeller, merge_clause
from es_skipping.clauses.metadata import Values
from es_skipping.clauses.questions import AnyOf
from es_skipping.errors import IndexDefinitionError
from es_skipping.indexes.base import Index, Target
from es_skipping.indexes.features import WORD_BITS, Features
from es_skipping.indexes.registry import index_id
from es_skipping.predicates.codec import operand_from_data, operand_to_data
from es_skipping.predicates.normal import normalise
from es_skipping.predicates.tree import (
    And,
    Call,
    Column,
    Comparison,
    IsIn,
    Literal,
    Matches,
    Not,
    NullTest,
    Operand,
    Or,
    Predicate,
)
from es_skipping.predicates.types import DataType, parse_type
from es_skipping.testing import IndexContract, Setup

BOOLEAN, INT, STRING = map(parse_type, ("boolean", "int", "string"))
X, S = Column(("x",), INT), Column(("s",), STRING)


def packed(columns: Sequence[list[Any]]) -> list[pa.Array]:
    """As `Index.collected` has Spark do it."""
    words = []
    for start in range(0, len(columns), WORD_BITS):
        some = columns[start : start + WORD_BITS]
        words.append(
            pa.array([sum((row[at] is True) << at for at in range(len(some))) for row in zip(*some)], pa.int64())
        )
    return words


class TestContract(IndexContract):
    setups: ClassVar[Sequence[Setup]] = [
        (Features("c0"), (BOOLEAN,)),
        (Features("c0", "c1", "c2"), (BOOLEAN,) * 3),
        (Features(*(f"c{at}" for at in range(70))), (BOOLEAN,) * 70),
    ]
    refused: ClassVar[Sequence[tuple[str, ...]]] = [("int",), ("string",)]

    def select(self, index: Index, columns: Sequence[list[Any]], types: Sequence[DataType]) -> list[pa.Array]:
        return packed(columns)

    def test_an_object_without_values_is_skipped_by_a_test_for_one(self) -> None:
        """Of values it knows nothing: only of what is true of no row."""
        for setup in self.setups:
            nothing = self.collect(setup, [[(None,) * len(setup[1])] * 3, []])
            column = self.columns(setup[1])[-1]
            assert self.verdict(setup, nothing, Comparison("=", column, Literal(True, BOOLEAN))) is False
            assert self.verdict(setup, nothing, NullTest(column, negated=True)) is not False
            assert self.verdict(setup, nothing, NullTest(column)) is not False


def call(name: str, *arguments: Operand, **parameters: str) -> Call:
    return Call(name, arguments, BOOLEAN, tuple(sorted(parameters.items())))


def lit(value: Any, type: DataType) -> Literal:
    return Literal(value, type)


SOLD = call("and", call("in", S, lit("shoes", STRING), lit("shirts", STRING)), call("greaterthan", X, lit(21, INT)))
JACKET = call("like", S, lit("j_cket%", STRING), escapeChar="\\")
NOT_NULL = call("not", call("isnull", X))
OPERANDS = tuple(operand_from_data(operand_to_data(one)) for one in (SOLD, JACKET, NOT_NULL))
INDEX = Features("sold", "jacket", "known")
TARGET = Target("f", OPERANDS, (BOOLEAN,) * 3)


def equal(column: Column, value: Any) -> Predicate:
    return Comparison("=", column, lit(value, column.type))


@pytest.mark.parametrize(
    ("predicate", "asked"),
    [
        (And((equal(S, "shoes"), Comparison(">", X, lit(32, INT)))), [2, 0]),
        (And((equal(S, "shoes"), Comparison(">", X, lit(20, INT)))), [2]),
        (And((equal(S, "hats"), equal(X, 30))), [2]),
        (equal(S, "shoes"), []),
        (equal(S, "jackets"), [1]),
        (Matches("like", S, "j_cket%"), [1]),
        (NullTest(X), []),
        (And((IsIn(S, ("shirts", "shoes")), equal(X, 22), equal(S, "shoes"))), [2, 0]),
    ],
    ids=str,
)
def test_which_features_a_filter_asks_for(predicate: Predicate, asked: list[int]) -> None:
    clause = merge_clause(normalise(predicate), [Labeller(INDEX, TARGET)])
    parts = clause.clauses if isinstance(clause, Conjunction) else (clause,)
    assert [part.question for part in parts if isinstance(part, Ask)] == [AnyOf((number,)) for number in asked]


def test_a_disjunction_is_skipped_only_where_each_part_is() -> None:
    either = normalise(Or((equal(S, "jackets"), And((equal(S, "shoes"), equal(X, 30))))))
    clause = merge_clause(either, [Labeller(INDEX, TARGET)])
    truths = [holds(clause, {"f": Values(frozenset(bits), 0)}) for bits in ([], [0], [1], [2], [0, 2], [1, 2])]
    assert truths == [False, False, True, False, True, True]


def test_it_says_which_feature_is_asked_for() -> None:
    clause = merge_clause(normalise(equal(S, "jackets")), [Labeller(INDEX, TARGET)])
    assert isinstance(clause, Ask)
    assert clause.about == "a row with s LIKE 'j_cket%'"
    assert clause == Ask("f", AnyOf((1,)))


def test_a_feature_that_may_have_been_redefined_is_not_used() -> None:
    mine = call("udf:mine", X)
    assert Features("mine(x)").label(equal(X, 1), Target("f", (mine,), (BOOLEAN,))) is None
    assert merge_clause(
        predicate_that_calls(mine), [Labeller(Features("mine(x)"), Target("f", (mine,), (BOOLEAN,)))]
    ) == (merge_clause(predicate_that_calls(mine), []))


def predicate_that_calls(operand: Operand) -> Predicate:
    return normalise(Comparison("=", operand, Literal(True, BOOLEAN)))


def test_its_id_is_short_and_tells_features_apart() -> None:
    texts = [f"column_{at} = {at}" for at in range(40)]
    name = index_id(Features(*texts), texts)
    assert name.startswith("features(40,")
    assert len(name) < 40
    assert name != index_id(Features(*texts[::-1]), texts[::-1])


def test_features_are_needed() -> None:
    with pytest.raises(IndexDefinitionError, match="at least one condition"):
        Features()
    with pytest.raises(IndexDefinitionError, match="a feature is 5"):
        Features(5)


SIZES = tuple(call("equalto", X, lit(value, INT)) for value in (3, 5, 7))
BY_SIZE = Labeller(Features("x = 3", "x = 5", "x = 7"), Target("f", SIZES, (BOOLEAN,) * 3))


def test_a_list_is_skipped_where_none_of_its_values_is() -> None:
    clause = merge_clause(normalise(IsIn(X, (7, 3))), [BY_SIZE])
    assert clause == Ask("f", AnyOf((0, 2)))
    assert isinstance(clause, Ask)
    assert clause.about == "a row with x = 3 OR x = 7"
    truths = [holds(clause, {"f": Values(frozenset(bits), 0)}) for bits in ([], [0], [1], [2], [0, 1], [0, 2])]
    assert truths == [False, True, False, True, True, True]
    assert holds(clause, {}) is None


@pytest.mark.parametrize(
    "predicate",
    [IsIn(X, (7, 4)), IsIn(X, (7, 3), negated=True), Not(IsIn(X, (7, 3))), Not(IsIn(X, (7, 4), negated=True))],
    ids=str,
)
def test_a_list_with_a_value_that_is_no_feature_or_negated_skips_nothing(predicate: Predicate) -> None:
    assert merge_clause(normalise(predicate), [BY_SIZE]) == KEEP


def test_a_list_with_null_is_a_list_without() -> None:
    clause = merge_clause(normalise(IsIn(X, (7, 3), has_null=True)), [BY_SIZE])
    assert clause == Ask("f", AnyOf((0, 2)))
    assert merge_clause(normalise(IsIn(X, (7, 3), negated=True, has_null=True)), [BY_SIZE]) == SKIP


def test_what_all_values_imply_is_asked_for_too() -> None:
    target = Target("f", (*SIZES, call("lessthan", X, lit(6, INT))), (BOOLEAN,) * 4)
    clause = merge_clause(normalise(IsIn(X, (5, 3))), [Labeller(Features("a", "b", "c", "d"), target)])
    assert clause == Conjunction((Ask("f", AnyOf((3,))), Ask("f", AnyOf((0, 1)))))


def test_features_of_every_word_are_remembered() -> None:
    index = Features(*(f"c{at}" for at in range(130)))
    collector = index.collector((BOOLEAN,) * 130)
    true = {0, WORD_BITS - 1, WORD_BITS, 100, 129}
    rows = packed([[at in true, None] for at in range(130)])
    assert collector.finish(collector.partial(rows)) == Values(frozenset(true), 0)
