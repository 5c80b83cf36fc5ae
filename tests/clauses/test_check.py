"""What is no clause and no metadata is recognised before anything relies on it."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from es_skipping.clauses.check import why_no_clause, why_no_metadata
from es_skipping.clauses.clause import KEEP, Ask, Conjunction
from es_skipping.clauses.metadata import Boxes, Intervals, Values
from es_skipping.clauses.questions import AnyOf, HasNull, Meets, Overlaps, Range, TextMatch
from es_skipping.predicates.types import parse_type
from tests.stores import strategies

INT, STRING, DOUBLE = map(parse_type, ("int", "string", "double"))
INDEXES = [strategies.index(kind, type) for kind in ("intervals", "values") for type in strategies.TYPES]
BOXES = strategies.index("boxes", DOUBLE, 2)


@given(st.data())
def test_whatever_an_index_may_say_passes(data: st.DataObject) -> None:
    definition = data.draw(st.sampled_from([*INDEXES, BOXES]))
    metadata = data.draw(strategies.metadata(definition))
    assert why_no_metadata(metadata, definition.kind, definition.value_type) is None
    clause = data.draw(strategies.clauses([definition]))
    assert why_no_clause(clause, definition.value_type) is None


@pytest.mark.parametrize(
    ("found", "type"),
    [
        (True, INT),
        (Ask("it", "a question?"), INT),  # type: ignore[arg-type]
        (Ask("it", AnyOf((1, None))), INT),  # type: ignore[arg-type]
        (Ask("it", AnyOf((1.0,))), INT),
        (Ask("it", Overlaps((Range("a", 1),))), STRING),
        (Ask("it", TextMatch("starts", b"x")), STRING),  # type: ignore[arg-type]
        (Ask("it", Meets((Range(1, 2),))), DOUBLE),
        (Conjunction((KEEP, Ask("it", HasNull()), None)), INT),  # type: ignore[arg-type]
    ],
)
def test_no_clause(found: Any, type: Any) -> None:
    assert why_no_clause(found, type)


@pytest.mark.parametrize(
    ("found", "kind", "type"),
    [
        ({"x"}, "values", STRING),
        (Values(frozenset({"x"}), 0), "intervals", STRING),
        (Values({"x"}, 0), "values", STRING),  # type: ignore[arg-type]
        (Values(frozenset({"x", 1}), 0), "values", STRING),
        (Values(frozenset({math.nan}), 0), "values", DOUBLE),
        (Values(frozenset(), -1), "values", STRING),
        (Values(frozenset(), 0, "0"), "values", STRING),  # type: ignore[arg-type]
        (Intervals(((2, 1),), 0), "intervals", INT),
        (Intervals(((3, 4), (1, 2)), 0), "intervals", INT),
        (Intervals(((1, Decimal(2)),), 0), "intervals", INT),
        (Boxes((((0, 1), (0, 1)),)), "boxes", DOUBLE),
        (Boxes((((1.0, 0.0), (0.0, 1.0)),)), "boxes", DOUBLE),
        (Boxes((((0.0, math.nan), (0.0, 1.0)),)), "boxes", DOUBLE),
    ],
)
def test_no_metadata(found: Any, kind: Any, type: Any) -> None:
    assert why_no_metadata(found, kind, type)
