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
from hypothesis import given, settings
from hypothesis import strategies as st

from es_skipping.clauses.metadata import Intervals
from es_skipping.errors import IndexDefinitionError
from es_skipping.indexes.gaplist import _STRETCHES, GapList
from es_skipping.predicates.tree import Column, Comparison, IsIn, Literal, Predicate
from es_skipping.predicates.types import DataType, parse_type
from es_skipping.testing import IndexContract, Setup
from tests.stores.strategies import EDGES, TYPES, values

INT, BIGINT, DOUBLE, DATE = map(parse_type, ("int", "bigint", "double", "date"))
NUMERIC = [type for type in TYPES if type.name not in ("string", "binary", "boolean")]
N = Column(("c0",), INT)


class TestContract(IndexContract):
    setups: ClassVar[Sequence[Setup]] = [(GapList("c0", gaps), (type,)) for type in NUMERIC for gaps in (1, 3)]
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
@settings(max_examples=200, deadline=None)
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


@pytest.mark.parametrize("gaps", [0, -1, 2.5, "7", True, None])
def test_the_number_of_gaps_is_positive(gaps: Any) -> None:
    with pytest.raises(IndexDefinitionError, match="GapList: gaps"):
        GapList("x", gaps)
