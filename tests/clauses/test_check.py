"""What is not a clause or not metadata is recognised before anything relies on it."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from es_skipping.clauses.check import why_no_clause, why_no_metadata
from es_skipping.clauses.clause import KEEP, Ask, Conjunction, Disjunction
from es_skipping.clauses.fingerprints import pack
from es_skipping.clauses.metadata import Boxes, Fingerprints, Intervals, Values
from es_skipping.clauses.questions import AnyOf, HasNull, Meets, OtherThan, Overlaps, Range, TextMatch
from es_skipping.predicates.types import DataType, parse_type
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


@pytest.mark.parametrize(
    ("question", "type", "stranger"),
    [
        (AnyOf((1, "one")), INT, "'one'"),
        (OtherThan((1, "one")), INT, "'one'"),
        (Overlaps((Range(1, 2), Range("low", None))), INT, "'low'"),
        (Overlaps((Range(1, 2), Range(None, "high"))), INT, "'high'"),
        (Meets((Range(1.0, 2.0), Range(1, None))), STRING, "'1'"),
        (TextMatch("starts", "a"), INT, "'a'"),
    ],
)
def test_the_value_of_another_type_is_named(question: Any, type: DataType, stranger: str) -> None:
    found = why_no_clause(Ask("it", question), type)
    assert found is not None and stranger in found
    for clause in (Conjunction((KEEP, Ask("it", question))), Disjunction((Ask("it", HasNull()), Ask("it", question)))):
        assert why_no_clause(clause, type) == found


@pytest.mark.parametrize(
    ("question", "type"),
    [
        *((AnyOf((1, 2)), INT), (OtherThan((1,)), INT), (Overlaps((Range(), Range(1, None), Range(None, 2))), INT)),
        *((Meets((Range(1.0, None), Range(None, 2.0))), STRING), (TextMatch("like", "a"), STRING), (HasNull(), INT)),
    ],
)
def test_questions_that_pass(question: Any, type: DataType) -> None:
    assert why_no_clause(Ask("it", question), type) is None
    assert why_no_clause(Disjunction((KEEP, Conjunction((Ask("it", question),)))), type) is None


@pytest.mark.parametrize(
    ("found", "kind", "type"),
    [
        *((Intervals(((1, 2), (2, 3)), 0), "intervals", INT), (Intervals(None, None, None), "intervals", INT)),
        *((Intervals((), 0), "values", STRING), (Values(frozenset({"a"}), 0), "fingerprints", STRING)),
        *(
            (Boxes((((0.0, 0.0),),)), "boxes", INT),
            (Boxes(()), "boxes", INT),
            (Values(frozenset(), 2**70), "values", INT),
        ),
        (object(), "a kind of another package", INT),
    ],
)
def test_metadata_that_passes(found: Any, kind: Any, type: DataType) -> None:
    assert why_no_metadata(found, kind, type) is None


@pytest.mark.parametrize(
    ("found", "kind", "type"),
    [
        *((Intervals(((1, 2),), -1), "intervals", INT), (Intervals(((1, 2),), True), "intervals", INT)),
        *((Intervals(((1, 2),), 0, -1), "intervals", INT), (Intervals(((1, 2),), 0, 1.0), "intervals", INT)),  # type: ignore[arg-type]
        *((Intervals(((1, 3), (2, 4)), 0), "intervals", INT), (Intervals(((2, 1),), 0), "intervals", INT)),
        *((Intervals(((1, "a"),), 0), "intervals", INT), (Values(frozenset({"a"}), 0), "intervals", STRING)),
        *((Values(frozenset({1}), 0), "values", STRING), (Values(frozenset({1}), 0, -1), "values", INT)),
        *((Values([1], 0), "values", INT), (Values(frozenset({math.nan}), 0), "values", DOUBLE)),  # type: ignore[arg-type]
        *((Boxes((((0.0, 0.0), (1.0, 0.5)),)), "boxes", INT), (Boxes((((0, 1),),)), "boxes", INT)),
        *((Boxes(()), "intervals", INT), (Boxes((((math.nan, math.nan),),)), "boxes", INT), (None, "values", INT)),
        (Boxes((((0.0, 1.0),), ((3.0, 2.0),))), "a kind of another package", INT),
    ],
)
def test_metadata_that_does_not(found: Any, kind: Any, type: DataType) -> None:
    assert why_no_metadata(found, kind, type) is not None


def test_each_kind_has_its_own_metadata() -> None:
    box, interval = Boxes((((0.0, 1.0), (0.0, 1.0)),)), Intervals(((1.0, 2.0),), 0)
    assert why_no_metadata(box, "boxes", DOUBLE) is None
    assert why_no_metadata(interval, "boxes", DOUBLE) == f"{str(interval)[:100]!r} is not metadata of kind boxes"
    assert why_no_metadata(box, "intervals", DOUBLE) == f"{str(box)[:100]!r} is not metadata of kind intervals"
