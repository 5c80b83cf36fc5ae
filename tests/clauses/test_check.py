"""What is no clause and no metadata is recognised before anything relies on it."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from es_skipping.clauses.check import why_no_clause, why_no_metadata
from es_skipping.clauses.clause import KEEP, Ask, Conjunction
from es_skipping.clauses.fingerprints import pack
from es_skipping.clauses.metadata import Boxes, Fingerprints, Intervals, Values
from es_skipping.clauses.questions import AnyOf, HasNull, Meets, Overlaps, Range, TextMatch
from es_skipping.predicates.types import parse_type
from tests.stores import strategies

INT, STRING, DOUBLE = map(parse_type, ("int", "string", "double"))
INDEXES = [
    strategies.index(kind, type) for kind in ("intervals", "values", "fingerprints") for type in strategies.TYPES
]
BOXES = strategies.index("boxes", DOUBLE, 2)


@settings(deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_whatever_an_index_may_say_passes(data: st.DataObject) -> None:
    definition = data.draw(st.sampled_from([*INDEXES, BOXES]))
    metadata = data.draw(strategies.metadata(definition))
    assert why_no_metadata(metadata, definition.kind, definition.value_type) is None
    clause = data.draw(strategies.clauses([definition]))
    assert why_no_clause(clause, definition.value_type) is None


def test_fingerprints_are_packed_as_they_must_be() -> None:
    packed = pack([3, 70], 100)
    for kind in ("values", "fingerprints"):
        assert why_no_metadata(Fingerprints(100, 2, packed, 0), kind, STRING) is None
        wrong = [
            Fingerprints(100, 0, pack([], 100), 0),  # an object without values has an empty list of them
            Fingerprints(100, 1, packed, 0),
            Fingerprints(100, 2, b"\0", 0),
            Fingerprints(69, 2, pack([3, 70], 69), 0),
            Fingerprints(100, 2, packed, -1),
        ]
        assert None not in [why_no_metadata(one, kind, STRING) for one in wrong]
    assert why_no_metadata(Fingerprints(100, 2, packed, 0), "intervals", STRING)


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
