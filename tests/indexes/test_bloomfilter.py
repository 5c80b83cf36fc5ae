"""`BloomFilter` and `Hybrid`: fingerprints of all values, or of those that are too many to list."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import pyarrow as pa
import pytest

from es_skipping.clauses.clause import Ask
from es_skipping.clauses.evaluate import answer
from es_skipping.clauses.fingerprints import cell_of, cells_of, hash_of, space_for
from es_skipping.clauses.metadata import Fingerprints, Values
from es_skipping.clauses.questions import AnyOf, HasNotNull
from es_skipping.errors import IndexDefinitionError
from es_skipping.indexes.base import Index, Target
from es_skipping.indexes.bloomfilter import BloomFilter
from es_skipping.indexes.hybrid import Hybrid
from es_skipping.indexes.toolkit import hashes
from es_skipping.predicates.tree import And, Column, Comparison, IsIn, Literal, Matches, Predicate
from es_skipping.predicates.types import DataType, parse_type
from es_skipping.testing import IndexContract, Setup
from tests.stores.strategies import TYPES

STRING, INT, DOUBLE, DATE = map(parse_type, ("string", "int", "double", "date"))
N, S = Column(("c0",), INT), Column(("c0",), STRING)


class TestBloomFilterContract(IndexContract):
    setups: ClassVar[Sequence[Setup]] = [(BloomFilter("c0", fpp), (type,)) for type in TYPES for fpp in (0.01, 0.9)]


class TestHybridContract(IndexContract):
    setups: ClassVar[Sequence[Setup]] = [(Hybrid("c0", limit, 0.1), (type,)) for type in TYPES for limit in (1, 3, 100)]


def collect(index: Index, type: DataType, *batches: list[Any]) -> Any:
    return TestHybridContract().collect((index, (type,)), [[(value,) for value in batch] for batch in batches])


def test_cells_are_those_of_the_values() -> None:
    for fpp in (0.5, 0.01, 1e-12):  # the last has a space of more than 32 bits
        held = [f"value {n}" for n in range(100)]
        metadata = collect(BloomFilter("x", fpp), STRING, held[:60], [*held[40:], None])
        space = space_for(100, fpp)
        cells = {cell_of(hash_of(value), space) for value in held}
        assert isinstance(metadata, Fingerprints)
        assert (metadata.space, metadata.nulls, metadata.nans) == (space, 1, 0)
        assert set(cells_of(metadata.packed, space, metadata.count)) == cells


def test_nulls_and_nans_leave_no_fingerprint() -> None:
    assert collect(BloomFilter("x"), DOUBLE, [None, math.nan, None]) == Values(frozenset(), 2, 1)
    assert collect(BloomFilter("x"), DOUBLE, [-0.0, math.nan]) == collect(BloomFilter("x"), DOUBLE, [0.0], [math.nan])


def test_a_hybrid_lists_what_is_few() -> None:
    index = Hybrid("x", threshold=3)
    assert collect(index, INT, [1, 2], [3, 1, None]) == Values(frozenset({1, 2, 3}), 1)
    bloom = collect(BloomFilter("x"), INT, [1, 2, 3, 4, None])
    assert isinstance(bloom, Fingerprints)
    assert collect(index, INT, [1, 2], [3, 4, None]) == bloom
    assert collect(index, INT, [1, 2, 3, 4], [None]) == bloom
    assert collect(index, INT, [1, 2], [3, 1], [4, 4], [None]) == bloom
    assert collect(index, INT, [4, 3, 2, 1], [1, None]) == bloom
    many = list(range(9))
    gathered = collect(index, INT, many[:3], many[3:6], many[6:])
    assert gathered == collect(BloomFilter("x"), INT, many), "nothing is lost when lists together grow too long"


def test_a_hybrid_lists_no_mebibyte() -> None:
    half = "x" * (1 << 19)
    metadata = collect(Hybrid("x"), STRING, [half + "a"], [half + "b"], [half + "c"])
    assert isinstance(metadata, Fingerprints)
    assert metadata.count == 3


def test_too_many_values_are_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hashes, "MOST_HASHES", 5)
    for index in (BloomFilter("x"), Hybrid("x", threshold=2)):
        assert collect(index, INT, [1, 2, 3], [3, 4, 5]) is not None
        assert collect(index, INT, [1, 2, 3], [4, 5, 6]) is None
        assert collect(index, INT, list(range(6)), [1], [None]) is None, "merging does not make it known"


def test_partials_stay_small() -> None:
    collector = BloomFilter("x").collector([INT])
    partial = collector.partial([pa.array([0], pa.int32())])
    for start in range(0, 100_000, 500):
        batch = pa.array([v % 1000 for v in range(start, start + 500)], pa.int32())
        partial = collector.merge(partial, collector.partial([batch]))
        assert sum(map(len, partial.chunks)) <= 1000 * 40
    assert collector.finish(partial).count > 980


def is_(value: int) -> Predicate:
    return Comparison("=", N, Literal(value, INT))


@pytest.mark.parametrize(
    ("predicate", "clause"),
    [
        (is_(5), Ask("it", AnyOf((5,)))),
        (IsIn(N, (5, 6)), Ask("it", AnyOf((5, 6)))),
        (IsIn(N, (5, 6), negated=True), Ask("it", HasNotNull())),
        (Comparison(">", N, Literal(5, INT)), Ask("it", HasNotNull())),
        (
            And((Comparison(">", N, Literal(5, INT)), Comparison("<=", N, Literal(8, INT)))),
            Ask("it", AnyOf((6, 7, 8))),
        ),
        (
            And((Comparison(">", N, Literal(5, INT)), Comparison("<=", N, Literal(1000, INT)))),
            Ask("it", HasNotNull()),
        ),
    ],
)
def test_what_is_asked(predicate: Predicate, clause: Ask) -> None:
    assert BloomFilter("c0").label(predicate, Target("it", (N,), (INT,))) == clause


@pytest.mark.parametrize(("low", "high"), [(-(2**63), 2**63 - 1), (-(2**63), -1), (5 - 2**62, -2)])
def test_no_long_list_is_made_of_a_wide_range(low: int, high: int) -> None:
    big = DataType("bigint")
    column = Column(("n",), big)
    wide = And((Comparison(">=", column, Literal(low, big)), Comparison("<=", column, Literal(high, big))))
    assert BloomFilter("n").label(wide, Target("it", (column,), (big,))) == Ask("it", HasNotNull())


def test_moments_are_too_many_to_be_listed() -> None:
    moment = DataType("timestamp")
    column = Column(("t",), moment)
    few = And((Comparison(">", column, Literal(5, moment)), Comparison("<=", column, Literal(8, moment))))
    assert BloomFilter("t").label(few, Target("it", (column,), (moment,))) == Ask("it", HasNotNull())


def test_a_text_pattern_is_no_question_for_fingerprints() -> None:
    target = Target("it", (S,), (STRING,))
    assert BloomFilter("c0").label(Matches("like", S, "a%b"), target) == Ask("it", HasNotNull())
    metadata = collect(Hybrid("c0", threshold=1), STRING, ["ab", "cd"])
    clause = Hybrid("c0").label(Matches("starts", S, "zz"), target)
    assert isinstance(clause, Ask)
    assert answer(clause.question, metadata) is None


@pytest.mark.parametrize("fpp", [0, 1, -0.1, 2, "0.1", True, None])
def test_the_share_of_false_positives_is_one(fpp: Any) -> None:
    for index in (BloomFilter, Hybrid):
        with pytest.raises(IndexDefinitionError, match=f"^{index.__name__}: fpp is "):
            index("x", fpp=fpp)


@pytest.mark.parametrize("column", ["", None, 5])
def test_an_index_without_a_column_is_none(column: Any) -> None:
    for index in (BloomFilter, Hybrid):
        with pytest.raises(IndexDefinitionError, match=f"^{index.__name__}: column is "):
            index(column)
