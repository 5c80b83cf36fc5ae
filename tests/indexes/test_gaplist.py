from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from es_skipping.clauses.metadata import Intervals
from es_skipping.cli.index_text import parse_index
from es_skipping.errors import IndexDefinitionError
from es_skipping.indexes.gaplist import _STRETCHES, GapList
from es_skipping.indexes.registry import index_id
from es_skipping.predicates.tree import Column, Comparison, IsIn, Literal, Predicate
from es_skipping.predicates.types import DataType, parse_type
from es_skipping.testing import IndexContract, Setup
from tests.examples import examples
from tests.stores.strategies import EDGES, TYPES, values

INT, BIGINT, DOUBLE, DATE = map(parse_type, ("int", "bigint", "double", "date"))
NUMERIC = [type for type in TYPES if type.name not in ("string", "binary", "boolean")]
N = Column(("c0",), INT)


class TestContract(IndexContract):
    setups: ClassVar[Sequence[Setup]] = [
        (GapList("c0", gaps, asked), (type,))
        for type in NUMERIC
        for gaps, asked in ((1, ()), (3, ()), (2, [(-1, 1), (2, 3, 5.0), ("0.5", "0.7"), (10**30, 10**31)]))
    ]
    refused: ClassVar[Sequence[tuple[str, ...]]] = [("string",), ("binary",), ("boolean",)]


def collect(index: GapList, type: DataType, *batches: list[Any]) -> Any:
    return TestContract().collect((index, (type,)), [[(value,) for value in batch] for batch in batches])


@pytest.mark.parametrize(
    ("gaps", "predicate", "kept"),
    [
        # of 1 2 3, 50 51, 1000: the gaps are 3..50 and 51..1000
        (2, Comparison("=", N, Literal(2, INT)), True),
        (2, Comparison("=", N, Literal(4, INT)), False),
        (2, Comparison("=", N, Literal(500, INT)), False),
        (1, Comparison("=", N, Literal(4, INT)), True),
        (1, Comparison("=", N, Literal(500, INT)), False),
        (2, IsIn(N, (4, 52, 2000)), False),
        (2, IsIn(N, (4, 51)), True),
        (2, Comparison("<>", N, Literal(2, INT)), True),
        (9, Comparison(">", N, Literal(1000, INT)), False),
    ],
)
def test_what_is_kept(gaps: int, predicate: Predicate, kept: bool) -> None:
    metadata = collect(GapList("c0", gaps), INT, [1, 50, None], [1000, 2, 3], [51])
    assert (TestContract().verdict((GapList("c0", gaps), (INT,)), metadata, predicate) is not False) is kept


def test_what_is_remembered() -> None:
    assert collect(GapList("x", 1), INT, [5, 1, None], [2, 9]) == Intervals(((1, 5), (9, 9)), 1)
    assert collect(GapList("x", 5), INT, [1, 2, 3]) == Intervals(((1, 3),), 0), "1, 2, 3 leave nothing out"
    assert collect(GapList("x", 1), DOUBLE, [-0.0, math.nan, 1.0], [math.inf]) == Intervals(
        ((0.0, 1.0), (math.inf, math.inf)), 0, 1
    )
    low, high = EDGES[BIGINT][0], EDGES[BIGINT][-1]
    assert collect(GapList("x", 1), BIGINT, [low, 0, high]) == Intervals(((low, low), (0, high)), 0)
    least, big = Decimal("-" + "9" * 38), Decimal("9" * 37)
    assert collect(GapList("x", 1), parse_type("decimal(38,0)"), [least, big, Decimal(5)]) == Intervals(
        ((least, least), (Decimal(5), big)), 0
    )
    cents = [Decimal("1.00"), Decimal("1.01"), Decimal("1.02"), Decimal("7.50")]
    assert collect(GapList("x", 3), parse_type("decimal(10,2)"), cents) == Intervals(
        ((cents[0], cents[2]), (cents[3], cents[3])), 0
    )
    assert collect(GapList("x", 2), DATE, []) == Intervals((), 0)


@given(data=st.data())
@examples(200)
def test_the_widest_gaps_are_found(data: st.DataObject) -> None:
    """Whatever batches the values came in, while they are fewer than what is kept of them."""
    type = data.draw(st.sampled_from([type for type in NUMERIC if not type.is_float]))
    batches = data.draw(st.lists(st.lists(values(type), max_size=6), min_size=1, max_size=4))
    gaps = data.draw(st.integers(1, 4))
    unit = Fraction(1, 10**type.scale)
    ordered = sorted({Fraction(value) for batch in batches for value in batch})  # type: ignore[arg-type]
    widths = sorted(((b - a) / unit for a, b in itertools.pairwise(ordered)), reverse=True)
    metadata = collect(GapList("x", gaps), type, *batches)
    ends = [(Fraction(low), Fraction(high)) for low, high in metadata.ranges]
    left = [(later[0] - earlier[1]) / unit for earlier, later in itertools.pairwise(ends)]
    assert sorted(left, reverse=True) == [width for width in widths[:gaps] if width > 1]


@given(
    values=st.sets(st.integers(0, 40), max_size=12),
    asked=st.lists(st.tuples(st.integers(-2, 42), st.integers(0, 4), st.integers(1, 9)), max_size=8),
    gaps=st.integers(1, 4),
)
@examples(200)
def test_no_other_gaps_hold_more_of_what_queries_ask(
    values: set[int], asked: list[tuple[int, int, int]], gaps: int
) -> None:
    ranges = [(low, low + length, weight) for low, length, weight in asked]
    ordered = sorted(values)
    all_gaps = [pair for pair in itertools.pairwise(ordered) if pair[1] - pair[0] > 1]

    def held(chosen: Sequence[tuple[int, int]]) -> int:
        return sum(weight for low, high, weight in ranges if any(a < low and high < b for a, b in chosen))

    metadata = collect(GapList("x", gaps, ranges), INT, ordered[::2], ordered[1::2])
    stored = [(before[1], after[0]) for before, after in itertools.pairwise(metadata.ranges)]
    assert set(stored) <= set(all_gaps)
    best = max(held(some) for some in itertools.combinations(all_gaps, min(gaps, len(all_gaps))))
    assert held(stored) == best


def test_gaps_that_queries_ask_come_before_wider_ones() -> None:
    rows = [1, 50, 1000, 1002]
    assert collect(GapList("x", 1, [(1001, 1001)]), INT, rows) == Intervals(((1, 1000), (1002, 1002)), 0)
    assert collect(GapList("x", 2, [(1001, 1001)]), INT, rows) == Intervals(((1, 50), (1000, 1000), (1002, 1002)), 0)
    cents = [Decimal("1.00"), Decimal("1.20"), Decimal("9.00"), Decimal("9.05")]
    narrow = GapList("x", 1, [("9.01", "9.02")])
    for type in ("decimal(10,2)", "decimal(38,2)"):
        assert collect(narrow, parse_type(type), cents).ranges == ((cents[0], cents[2]), (cents[3], cents[3]))


def test_asked_ranges_are_kept_while_an_object_has_many_gaps() -> None:
    """More gaps than are held while an object is read, each wider than the one that queries ask."""
    rows = [10 * at for at in range(4 * _STRETCHES)]
    batches = [[*rows[at::8], 71, 73] for at in range(8)]
    found = collect(GapList("x", 1, [(72, 72)]), INT, *batches)
    assert found == Intervals(((0, 71), (73, rows[-1])), 0)


def test_asked_ranges_are_no_part_of_the_name_and_are_stored_whole() -> None:
    index = GapList("x", 4, [(Decimal("1.5"), 2), (7, 9, 0.5)])
    assert index == GapList("x", 4, index.parameters["asked"]) == GapList.from_definition(["x"], index.parameters)
    assert index_id(index, ["x"]) == index_id(GapList("x", 4), ["x"]) == "gaplist(x,gaps=4)"
    assert str(index) == "GapList(x, gaps=4, asked=[('1.5', 2), (7, 9, 0.5)])"
    assert parse_index(str(index)) == index, "the command line takes what is printed"
    assert eval(repr(index)) == index
    assert dict(GapList("x", 4).parameters) == {"gaps": 4}


@pytest.mark.parametrize(
    "asked", ["[", 5, [1], [("a", 1)], [(1, 2, -1)], [(1, 2, 0)], [(1, math.inf)], [(1, 2, math.nan)]]
)
def test_asked_ranges_are_finite(asked: Any) -> None:
    with pytest.raises(IndexDefinitionError, match="GapList: asked"):
        GapList("x", 1, asked)


def test_asked_ranges_are_not_protected() -> None:
    with pytest.raises(IndexDefinitionError, match="in clear"):
        GapList("x", 1, [(1, 2)], protect="sealed", key="env:KEY")
    with pytest.raises(IndexDefinitionError, match="in clear"):
        GapList("x", 1, [(1, 2)]).protected("hashed", "env:KEY")
    assert GapList("x", 1, [(1, 2)]).protected(None, None) == GapList("x", 1, [(1, 2)])
    assert GapList("x", 1).protected("sealed", "env:KEY").protect == "sealed"
    assert str(GapList("x", 1).protected("sealed", "env:KEY")) == "GapList(x, gaps=1, protect=sealed, key=env:KEY)"


def test_partials_stay_small_and_cover() -> None:
    rng = np.random.default_rng(1)
    collector = GapList("x", gaps=3).collector([INT])
    islands = [0, 10**6, 5 * 10**6, 10**9]
    partial = None
    everything: list[int] = []
    for _ in range(40):
        batch = np.concatenate([start + rng.integers(0, 10**5, 500) for start in islands]).astype(np.int32)
        everything += batch.tolist()
        one = collector.partial([pa.array(batch)])
        partial = one if partial is None else collector.merge(partial, one)
        assert len(partial[0].low) <= 3 * _STRETCHES
    ranges = collector.finish(partial).ranges
    found = np.array(everything)
    assert [low for low, _ in ranges] == [int(found[found >= start].min()) for start in islands]
    assert sum(((found >= low) & (found <= high)).sum() for low, high in ranges) == len(found)


def test_nulls_and_nans_of_batches_are_counted_each_for_itself() -> None:
    collector = GapList("x", 1).collector([DOUBLE])
    batches = [[1.0, None, math.nan, math.nan], [math.nan, None, 5.0, None, math.nan, math.nan]]
    first, second = (collector.partial([pa.array(batch, pa.float64())]) for batch in batches)
    assert collector.finish(collector.merge(first, second)) == Intervals(((1.0, 1.0), (5.0, 5.0)), nulls=3, nans=5)


@pytest.mark.parametrize("gaps", [0, -1, 2.5, "7", True, None])
def test_the_number_of_gaps_is_positive(gaps: Any) -> None:
    with pytest.raises(IndexDefinitionError, match="GapList: gaps"):
        GapList("x", gaps)
