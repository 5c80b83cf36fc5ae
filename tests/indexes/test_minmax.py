from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pytest

from es_skipping.clauses.clause import Ask
from es_skipping.clauses.metadata import Intervals
from es_skipping.clauses.questions import HasNotNull
from es_skipping.errors import IndexDefinitionError
from es_skipping.indexes.base import Target
from es_skipping.indexes.minmax import MinMax
from es_skipping.indexes.toolkit.summaries import BOUND_BYTES
from es_skipping.predicates.tree import (
    Column,
    Comparison,
    IsIn,
    Literal,
    Matches,
    Not,
    NullTest,
    Predicate,
)
from es_skipping.predicates.types import parse_type
from es_skipping.testing import IndexContract, Setup
from es_skipping.testing.values import TYPES

NAN, INF = math.nan, math.inf
DOUBLE, STRING, INT, BINARY = map(parse_type, ("double", "string", "int", "binary"))


class TestContract(IndexContract):
    setups: ClassVar[Sequence[Setup]] = [(MinMax("c0"), (type,)) for type in TYPES]


def keeps(values: list[Any], predicate: Predicate) -> bool:
    """Whether an object of these values is kept."""
    (column,) = {o for o in (getattr(predicate, n, None) for n in ("left", "operand")) if isinstance(o, Column)}
    setup = (MinMax("x"), (column.type,))
    contract = TestContract()
    contract.columns = lambda types: (column,)  # type: ignore[method-assign]
    return contract.verdict(setup, contract.collect(setup, [[(value,) for value in values]]), predicate) is not False


def x(type: Any) -> Column:
    return Column(("x",), type)


def compare(comparator: Any, value: Any, type: Any) -> Predicate:
    return Comparison(comparator, x(type), Literal(value, type))


def starts(prefix: str, *, negated: bool = False) -> Predicate:
    return Matches("starts", x(STRING), prefix, negated=negated)


@pytest.mark.parametrize(
    ("values", "predicate", "kept"),
    [
        # <> : the object of one value is the only one that can be skipped
        ([5, 5], compare("<>", 5, INT), False),
        ([1, 5, 10], compare("<>", 5, INT), True),
        ([5, 5, None], IsIn(x(INT), (5, 6), negated=True), False),
        (
            [5, 6],
            IsIn(x(INT), (5, 6), negated=True),
            True,
        ),  # bounds cannot tell that there is no third value
        # IN looks at each value, not at the hull of the list
        ([40, 60], IsIn(x(INT), (1, 100)), False),
        ([40, 60], IsIn(x(INT), (1, 50, 100)), True),
        ([40, 60], IsIn(x(INT), (1, 100), has_null=True), False),
        ([40, 60], IsIn(x(INT), (50,), has_null=True), True),
        # ranges
        ([1, 9], compare(">", 9, INT), False),
        ([1, 9], compare(">=", 9, INT), True),
        ([1, 9], compare("<", 1, INT), False),
        ([1, 9], compare("<=", 1, INT), True),
        # NULL
        ([None, None], compare("<>", 5, INT), False),
        ([None, None], compare("<", 5, INT), False),
        ([None, 7], NullTest(x(INT)), True),
        ([7], NullTest(x(INT)), False),
        # NaN is the greatest value, and equal to itself
        ([1.0, NAN], compare(">", 100.0, DOUBLE), True),
        ([1.0, 2.0], compare(">", 100.0, DOUBLE), False),
        ([1.0, NAN], compare("<", 0.0, DOUBLE), False),
        ([NAN, None], compare("<", INF, DOUBLE), False),
        ([NAN, None], compare(">=", INF, DOUBLE), True),
        ([1.0, INF], compare("=", NAN, DOUBLE), False),
        ([1.0, NAN], compare("=", NAN, DOUBLE), True),
        ([NAN, NAN], compare("<>", NAN, DOUBLE), False),
        ([NAN, 1.0], compare("<>", NAN, DOUBLE), True),
        ([5.0, NAN], compare("<>", 5.0, DOUBLE), True),
        ([5.0, 5.0], compare("<>", 5.0, DOUBLE), False),
        ([NAN], compare("<", NAN, DOUBLE), False),
        ([INF], compare("<", NAN, DOUBLE), True),
        ([INF], compare(">=", NAN, DOUBLE), False),
        ([INF, NAN, -INF], compare(">", NAN, DOUBLE), False),
        ([INF], IsIn(x(DOUBLE), (5.0, NAN)), False),
        # the zeros are equal
        ([-0.0], compare("=", 0.0, DOUBLE), True),
        ([0.0], compare("=", -0.0, DOUBLE), True),
        ([-0.0], compare("<", 0.0, DOUBLE), False),
        ([-0.0, 0.0], compare("<>", 0.0, DOUBLE), False),
        # text: stretches of the order
        (["abc123", "abc345"], starts("abc"), True),
        (["abc123", "abc345"], starts("abc2"), True),
        (["abc123", "abc345"], starts("abc5"), False),
        (["ac", "b"], starts("ab"), False),
        (["abc", "abd"], starts("ab", negated=True), False),
        (["abc", "b"], starts("ab", negated=True), True),
        (["\U0010ffff", "\U0010ffffx"], starts("\U0010ffff", negated=True), False),
        (["k"], Matches("like", x(STRING), "a%z"), False),
        (["ab"], Matches("like", x(STRING), "a%z", negated=True), True),
        ([None], Matches("like", x(STRING), "a%z", negated=True), False),
        ([None], Matches("like", x(STRING), "%z", negated=True), False),
        (["k"], Matches("rlike", x(STRING), "^a.*"), False),
        (["k"], Matches("rlike", x(STRING), "a.*"), True),
        ([None], Matches("contains", x(STRING), "a"), False),
        # UTF-8 order is not UTF-16 order: U+FF01 comes before U+1F600
        (["\uff01", "\uff10"], compare("<", "\U0001f600", STRING), True),
        (["\uff01", "\uff10"], compare(">", "\U0001f600", STRING), False),
        # bytes
        ([b"\x7f", b"\x80"], compare(">", b"\x80", BINARY), False),
        ([b"\x7f", b"\x80"], compare(">=", b"\x80", BINARY), True),
    ],
)
def test_what_is_kept(values: list[Any], predicate: Predicate, kept: bool) -> None:
    assert keeps(values, predicate) is kept


def test_not_over_a_leaf_is_no_complement() -> None:
    # An object [20, 30] satisfies NOT (x = 20) although x = 20 may hold in it too.
    assert keeps([20, 30], compare("=", 20, INT))
    column = x(INT)
    setup = (MinMax("x"), (INT,))
    contract = TestContract()
    contract.columns = lambda types: (column,)  # type: ignore[method-assign]
    metadata = contract.collect(setup, [[(20,), (30,)]])
    assert contract.verdict(setup, metadata, Not(compare("=", 20, INT))) is True


def test_a_negative_zero_is_never_asked_for() -> None:
    # Stores may tell the zeros apart, and order them.
    target = Target("it", (x(DOUBLE),), (DOUBLE,))
    for predicate in [
        *(compare(c, -0.0, DOUBLE) for c in ("=", "<>", "<", ">=")),
        IsIn(x(DOUBLE), (-0.0, 1.0)),
    ]:
        assert "-0.0" in repr(predicate)
        assert "-0.0" not in repr(MinMax("x").label(predicate, target))


def test_a_literal_of_another_type_asks_for_a_value_only() -> None:
    for value in ("5", 5.0, True, Decimal(5), None):
        odd = Comparison("=", x(INT), Literal(value, INT))
        assert MinMax("x").label(odd, Target("it", (x(INT),), (INT,))) == Ask("it", HasNotNull())


def collect(values: list[Any], type: Any, *more: list[Any]) -> Any:
    return TestContract().collect((MinMax("x"), (type,)), [[(v,) for v in batch] for batch in (values, *more)])


def test_what_is_remembered() -> None:
    assert collect([3, None, 1], INT, [], [None], [7]) == Intervals(((1, 7),), 2)
    assert collect([NAN, None], DOUBLE, [-0.0]) == Intervals(((0.0, 0.0),), 1, 1)
    assert math.copysign(1, collect([-0.0], DOUBLE).ranges[0][0]) == 1
    assert collect([], INT) == Intervals((), 0)
    big, small = Decimal("9" * 38), Decimal("-" + "9" * 38)
    assert collect([big, small], parse_type("decimal(38,0)")) == Intervals(((small, big),), 0)
    assert collect([False], parse_type("boolean"), [True]) == Intervals(((False, True),), 0)


def test_long_bounds_are_cut_outward() -> None:
    low, high = "m" * 5000, "z" * 5000
    metadata = collect([low, high], STRING)
    ((kept_low, kept_high),) = metadata.ranges
    assert max(len(kept_low), len(kept_high)) <= BOUND_BYTES
    assert kept_low < low < high < kept_high
    assert kept_high < "{", "cut as little as possible"


@pytest.mark.parametrize("character", ["é", "\ud7ff", "\uffff", "\U0001f600"])
def test_long_bounds_are_cut_between_characters(character: str) -> None:
    for shift in range(4):
        value = "a" * shift + character * 2000
        ((low, high),) = collect([value], STRING).ranges
        assert low < value < high
        assert value.startswith(low)
        high.encode()


def test_a_bound_without_a_successor_is_unknown() -> None:
    assert collect(["\U0010ffff" * 2000, None], STRING) == Intervals(None, 1)
    assert collect([b"\xff" * 2000], BINARY) == Intervals(None, 0)
    assert collect([b"\xfe" + b"\xff" * 2000], BINARY).ranges[0][1] == b"\xff"
    assert collect(["\U0010ffff" * 2000], STRING, ["a"], [None]) == Intervals(None, 1), "merging does not make it known"


def not_utf8(*values: bytes) -> pa.Array:
    """A string column whose bytes nobody checked, as Parquet files may hold it."""
    offsets = np.cumsum([0, *map(len, values)]).astype(np.int32)
    return pa.Array.from_buffers(
        pa.string(),
        len(values),
        [None, pa.py_buffer(offsets.tobytes()), pa.py_buffer(b"".join(values))],
    )


@pytest.mark.parametrize("values", [(b"a", b"\xff"), (b"\xff" * 3000,), (b"a", b"z" + b"\x80" * 3000)])
def test_bytes_that_are_no_utf8_are_unknown(values: tuple[bytes, ...]) -> None:
    collector = MinMax("x").collector([STRING])
    assert collector.finish(collector.partial([not_utf8(*values)])) == Intervals(None, 0)


def test_bytes_that_are_no_utf8_in_between_do_no_harm() -> None:
    collector = MinMax("x").collector([STRING])
    assert collector.finish(collector.partial([not_utf8(b"a", b"b\xff", b"c")])) == Intervals((("a", "c"),), 0)


@pytest.mark.parametrize("column", ["", "  ", 5, None, ["a"]])
def test_a_column_is_a_name_or_a_column(column: Any) -> None:
    with pytest.raises(IndexDefinitionError, match="column"):
        MinMax(column)
