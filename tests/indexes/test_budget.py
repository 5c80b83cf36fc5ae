"""A budget of bytes for one object: how metadata degrade, and that no value is lost on the way."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from es_skipping.clauses.check import why_no_metadata
from es_skipping.clauses.clause import Ask, Clause
from es_skipping.clauses.evaluate import holds
from es_skipping.clauses.metadata import Boxes, Fingerprints, Intervals, Metadata, Values
from es_skipping.clauses.questions import AnyOf, HasNotNull, HasNull, Meets, OtherThan, Overlaps, Range
from es_skipping.indexes.toolkit.budget import size_of, within
from es_skipping.predicates.types import Value, parse_type

CITIES = Values(frozenset(f"city number {n}" for n in range(400)), nulls=3)


def test_within_the_budget_nothing_changes() -> None:
    held: dict[str, Metadata] = {"a": CITIES, "b": Intervals(((1, 2), (5, 9)), 0)}
    kept = within(held, size_of(CITIES) + 32)
    assert kept.metadata == held
    assert kept.degraded == {}


@pytest.mark.parametrize(
    ("budget", "form"), [(1000, "fingerprints"), (100, "interval"), (10, "unknown"), (0, "unknown")]
)
def test_values_degrade_to_fingerprints_to_an_interval_to_unknown(budget: int, form: str) -> None:
    kept = within({"cities": CITIES}, budget)
    assert kept.degraded == {"cities": form}
    left = kept.metadata.get("cities")
    assert sum(map(size_of, kept.metadata.values())) <= budget
    if form == "fingerprints":
        assert isinstance(left, Fingerprints)
        assert left.nulls == 3
    elif form == "interval":
        assert left == Intervals((("city number 0", "city number 99"),), 3)
    else:
        assert left is None


def test_the_largest_goes_first() -> None:
    small = Values(frozenset({"Edam", "Gouda"}), 0)
    kept = within({"cities": CITIES, "small": small}, 700)
    assert kept.metadata["small"] is small
    assert kept.degraded == {"cities": "fingerprints"}


def test_several_intervals_become_one_and_several_boxes_one() -> None:
    gaps = Intervals(((1, 2), (5, 9), (20, 30)), 0, 1)
    boxes = Boxes((((0.0, 1.0), (5.0, 6.0)), ((-3.0, 0.5), (8.0, 9.0))))
    kept = within({"gaps": gaps, "boxes": boxes}, 50)
    assert kept.metadata == {"gaps": Intervals(((1, 30),), 0, 1), "boxes": Boxes((((-3.0, 1.0), (5.0, 9.0)),))}
    assert kept.degraded == {"gaps": "interval", "boxes": "box"}


def test_fingerprints_have_no_lesser_form() -> None:
    (prints,) = within({"it": CITIES}, 1000).metadata.values()
    assert within({"it": prints}, 100) == ({}, {"it": "unknown"})


def test_what_has_no_bytes_stays() -> None:
    nothing = Values(frozenset(), nulls=7)
    assert within({"nothing": nothing, "cities": CITIES}, 0).metadata == {"nothing": nothing}


def test_half_a_surrogate_pair_and_boxes_of_two_worlds_stop_nothing() -> None:
    odd = Values(frozenset({"\ud800" * 50, "a" * 50}), 0)
    assert within({"odd": odd}, 100).degraded == {"odd": "unknown"}
    flat = Boxes((((0.0, 1.0),), ((0.0, 1.0), (2.0, 3.0))))
    assert within({"flat": flat}, 20).degraded == {"flat": "unknown"}


VALUES: list[tuple[str, st.SearchStrategy[Value]]] = [
    ("string", st.text(st.characters(exclude_categories=["Cs"]), max_size=12)),
    ("binary", st.binary(max_size=12)),
    ("bigint", st.integers(-(2**63), 2**63 - 1)),
    ("double", st.floats(allow_nan=False).map(lambda value: value + 0.0)),
    ("decimal(10,2)", st.decimals(-(10**7), 10**7, places=2).map(Decimal)),
]


@given(st.data())
def test_no_question_loses_an_object(data: st.DataObject) -> None:
    """Whatever the budget, the object is kept for each of its values, and for ranges and nulls as they are."""
    name, values = data.draw(st.sampled_from(VALUES))
    held = data.draw(st.frozensets(values, min_size=1, max_size=40))
    nulls = data.draw(st.integers(0, 2))
    kept = within({"it": Values(held, nulls)}, data.draw(st.integers(0, 600))).metadata
    for metadata in kept.values():
        assert why_no_metadata(metadata, "values", parse_type(name)) is None
    questions: list[Clause] = [Ask("it", HasNotNull()), *(Ask("it", AnyOf((value,))) for value in held)]
    questions += [Ask("it", Overlaps((Range(value, value),))) for value in held]
    if nulls:
        questions.append(Ask("it", HasNull()))
    if len(held) > 1:
        questions += [Ask("it", OtherThan((value,))) for value in held]
    assert not any(holds(question, kept) is False for question in questions)


@given(st.lists(st.tuples(*[st.floats(-9, 9)] * 4), min_size=1, max_size=8), st.integers(0, 200))
def test_no_point_leaves_its_box(corners: list[tuple[float, ...]], budget: int) -> None:
    boxes = Boxes(tuple(((min(a, b), max(a, b)), (min(c, d), max(c, d))) for a, b, c, d in corners))
    kept = within({"it": boxes}, budget).metadata
    for a, _, c, _ in corners:
        box = (Range(a, a), Range(c, c))
        assert holds(Ask("it", Meets(box)), kept) is not False
