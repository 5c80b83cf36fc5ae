"""Columns of a segment answer as the clause algebra does, for every question that a small world of values has."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest

from es_skipping.catalog import IndexDefinition
from es_skipping.clauses.clause import KEEP, SKIP, Ask, Conjunction, Disjunction, indexes_of
from es_skipping.clauses.evaluate import answer
from es_skipping.clauses.metadata import Boxes, Intervals, Metadata, Values
from es_skipping.clauses.questions import (
    AnyOf,
    HasNaN,
    HasNotNull,
    HasNull,
    Meets,
    OtherThan,
    Overlaps,
    Question,
    Range,
    TextMatch,
)
from es_skipping.predicates.types import DataType, parse_type
from es_skipping.stores.parquet import sets
from es_skipping.stores.parquet.answers import BoxesColumn, IntervalsColumn, Rows, is_empty
from es_skipping.stores.parquet.columns import column_of
from es_skipping.stores.parquet.evaluate import only, refuted
from es_skipping.stores.parquet.sets import load
from tests.stores import strategies

INT, STRING, DOUBLE, DECIMAL, BINARY = map(parse_type, ("int", "string", "double", "decimal(20,1)", "binary"))
MAKE: dict[DataType, Callable[[int], Any]] = {
    INT: lambda n: n,
    STRING: lambda n: "aé\U0001f600"[: n % 4] + f"{n:02}",
    DOUBLE: lambda n: n / 4,
    DECIMAL: lambda n: Decimal(n).scaleb(-1),
    BINARY: lambda n: bytes([n]),
}
SEARCHED = (0, 1_000)
"""Fingerprints are searched as they are packed, or unpacked and compared."""
TYPES = [pytest.param(type, id=type.name) for type in MAKE]


def agree(index: IndexDefinition, known: Sequence[Metadata | None], questions: Sequence[Question]) -> None:
    """Each question, asked of all rows at once, is refuted of exactly those of which it is false."""
    for cells in SEARCHED:
        with mock.patch.object(sets, "_MIN_CELLS_TO_SEARCH", cells), mock.patch.object(sets, "_PAIRS_AT_ONCE", 5):
            column = load(index, column_of(index, known))
            for question in questions:
                found = column.refuted(question).tolist()
                expected = [answer(question, one) is False for one in known]
                wrong = [one for one, a, b in zip(known, found, expected, strict=True) if a != b]
                assert not wrong, f"{question} of {wrong[:2]}"


def lists_of(values: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Lists shorter and longer than those that are gone through value by value."""
    odd, even = tuple(values[1::2]), tuple(values[::2])
    return [
        (),
        values[:1],
        values[-1:],
        odd[:8],
        odd[:9],
        even[:8],
        even[:9],
        odd,
        even,
        tuple(values),
        tuple(reversed(odd)),
    ]  # type: ignore[list-item]


def questions_about(values: Sequence[Any]) -> list[Question]:
    listed = lists_of(tuple(values))
    ranges = [
        Range(low, high, a, b)
        for low, high in itertools.product((None, *values[::6]), repeat=2)
        for a, b in itertools.product((False, True), repeat=2)
        if not (low is None and a) and not (high is None and b)
    ]
    return [
        *(HasNull(), HasNaN(), HasNotNull()),
        *map(AnyOf, listed),
        *map(OtherThan, listed),
        *(Overlaps((one,)) for one in ranges),
        Overlaps(()),
        *(Overlaps(pair) for pair in itertools.pairwise(ranges)),
    ]


@pytest.mark.parametrize("type", TYPES)
def test_intervals(type: DataType) -> None:
    values = sorted((MAKE[type](n) for n in range(25)), key=lambda v: v.encode() if isinstance(v, str) else v)
    pairs = [(low, high) for low, high in itertools.combinations_with_replacement(values[::4], 2)]
    known: list[Metadata | None] = [None, Intervals((), 0, 0), Intervals(None, 0, 0), Intervals((), None, None)]
    known += [Intervals((pair,), nulls, nulls) for pair, nulls in zip(pairs, itertools.cycle((0, 3, None)))]
    known += [Intervals((pair, (values[-1], values[-1])), 0) for pair in pairs if pair[1] < values[-1]]
    agree(strategies.index("intervals", type), known, questions_about(values))
    agree(strategies.index("intervals", type), known[4:20], questions_about(values))


@pytest.mark.parametrize("type", TYPES)
def test_values(type: DataType) -> None:
    values = sorted((MAKE[type](n) for n in range(21)), key=lambda v: v.encode() if isinstance(v, str) else v)
    known: list[Metadata | None] = [None, Values(frozenset(), 0, 0), Values(frozenset(), None, None)]
    known += [Values(frozenset({value}), 0, None) for value in values]
    known += [Values(frozenset(values[at : at + 5]), 1, 0) for at in range(0, 20, 3)]
    known += [Intervals(((values[2], values[7]),), 0, 0), Intervals(((values[9], values[9]),), None, 2)]
    known += [strategies.fingerprints([values[3], values[8]], space, 0, None) for space in (64, 6400)]
    known += [strategies.fingerprints(values[5:15], 6400, 2, 0)]
    questions = questions_about(values)
    agree(strategies.index("values", type), known, questions)
    agree(strategies.index("values", type), known[3:10], questions)
    agree(strategies.index("fingerprints", type), known[-3:], questions)
    agree(strategies.index("fingerprints", type), known[-2:], questions)
    agree(strategies.index("fingerprints", type), [*known[-1:], None], questions)


TEXTS = ("", "a", "ab", "abc", "b", "ba", "é", "a%", "a\x00b", "\x00", "\U0001f600")


def test_texts() -> None:
    known: list[Metadata | None] = [None, Values(frozenset(), 0), Values(frozenset(TEXTS), 0)]
    known += [Values(frozenset({text}), 0) for text in TEXTS]
    asked = [TextMatch(test, text) for test in ("starts", "ends", "contains") for text in (*TEXTS, "zz")]  # type: ignore[arg-type]
    asked += [TextMatch("like", text) for text in ("a%", "%b", "_", "a\\%", "%\x00%", "zz%")]
    asked += [TextMatch("like", "a!%", "!"), TextMatch("rlike", "^a"), TextMatch("rlike", "^a(?=b)")]
    questions = [*asked, *(TextMatch(one.test, one.pattern, one.escape, negated=True) for one in asked)]
    agree(strategies.index("values", STRING), known, questions)
    lone = load(strategies.index("values", STRING), column_of(strategies.index("values", STRING), known))
    for test in ("starts", "ends", "contains"):
        assert not lone.refuted(TextMatch(test, "\ud800")).any(), "what no string can be is asked of none"  # type: ignore[arg-type]
    numbers = strategies.index("values", INT)
    assert not load(numbers, column_of(numbers, [Values(frozenset({1}), 0)])).refuted(TextMatch("starts", "a")).any()


SIDES = [(-1.0, 0.0), (0.0, 0.0), (0.0, 2.0), (2.0, float("inf"))]
SOUGHT = [Range(0.0, 0.0), Range(None, -1.0), Range(-0.5, None), Range(), Range(2.0, 3.0), Range(1.0, 0.5)]


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_boxes(axes: int) -> None:
    index = strategies.index("boxes", DOUBLE, axes)
    boxes = list(itertools.product(SIDES, repeat=axes))
    known: list[Metadata | None] = [None, Boxes(()), *(Boxes((box,)) for box in boxes)]
    known += [Boxes(pair) for pair in itertools.pairwise(boxes)]
    questions: list[Question] = [Meets(sought) for sought in itertools.product(SOUGHT, repeat=axes)]
    questions += [HasNotNull(), HasNull(), AnyOf((1.0,))]
    agree(index, known, questions)
    agree(index, [None, Boxes(())], questions)
    agree(index, known[2:4], questions)
    agree(index, known, [Meets((Range(0.0, 1.0),) * (axes + 1)), Meets(())])


def test_boxes_of_other_axes_are_not_understood() -> None:
    """No build writes them into one column; whoever does is not believed."""
    first, last = Boxes((((0.0, 1.0), (0.0, 1.0)),)), Boxes((((20.0, 21.0), (20.0, 21.0)),))
    plane, line = strategies.index("boxes", DOUBLE, 2), strategies.index("boxes", DOUBLE, 1)
    others = column_of(line, [Boxes((((5.0, 6.0),),))] * 5)
    column = pa.concat_arrays([column_of(plane, [first, None, Boxes(())]), others, column_of(plane, [last, last])])
    loaded = BoxesColumn(column)

    def refuted(at: float, axes: int = 2) -> list[bool]:
        found: list[bool] = loaded.refuted(Meets((Range(at, at),) * axes)).tolist()
        assert not any(found[3:8])
        return found[:4] + found[8:]

    assert refuted(8.0) == [True, False, True, False, True, True]
    assert refuted(0.5) == [False, False, True, False, True, True]
    assert refuted(20.5) == [True, False, True, False, False, False]
    assert refuted(8.0, axes=1) == [False, False, True, False, False, False]
    assert loaded.refuted(HasNotNull()).tolist() == [at == 2 for at in range(10)]


@pytest.mark.parametrize("axes", [None, 0, 1])
def test_an_object_whose_boxes_are_not_there_proves_nothing(axes: int | None) -> None:
    """Of a box index that a later version writes in another form, say."""
    index = strategies.index("boxes", DOUBLE, 1)
    column = column_of(index, [Boxes((((5.0, 6.0),),))])
    missing = pa.StructArray.from_arrays(
        [pa.array([axes], pa.int32()), pa.array([None], column.type.field("bounds").type)], fields=list(column.type)
    )
    for loaded in (BoxesColumn(missing), BoxesColumn(pa.concat_arrays([column, missing]))):
        assert not loaded.refuted(HasNotNull())[-1]
        assert not loaded.refuted(Meets((Range(8.0, 9.0),)))[-1]


def test_intervals_whose_ends_do_not_pair_prove_nothing() -> None:
    index = strategies.index("intervals", INT)
    column = column_of(index, [Intervals(((1, 2),), 0), Intervals(((5, 6), (8, 9)), 0)])
    fields = {field.name: column.field(field.name) for field in column.type}
    fields["high"] = pa.array([[2, 6], [9]], column.type.field("high").type)
    odd = pa.StructArray.from_arrays(list(fields.values()), fields=list(column.type))
    loaded = IntervalsColumn(odd, INT)
    assert not loaded.refuted(AnyOf((100,))).any()
    assert loaded.refuted(HasNull()).all(), "what is counted is known all the same"


@pytest.mark.parametrize("absent", ["low", "high"])
def test_intervals_with_one_end_alone_prove_nothing(absent: str) -> None:
    index = strategies.index("intervals", INT)
    column = column_of(index, [Intervals((), 0, 0)])
    fields = {field.name: column.field(field.name) for field in column.type}
    fields[absent] = pa.array([None], fields[absent].type)
    loaded = IntervalsColumn(pa.StructArray.from_arrays(list(fields.values()), fields=list(column.type)), INT)
    assert not loaded.refuted(HasNotNull()).any()
    assert not loaded.refuted(AnyOf((1,))).any()
    assert IntervalsColumn(column, INT).refuted(HasNotNull()).all(), "both are there, and there is no interval"


@pytest.mark.parametrize("cells", SEARCHED)
def test_damaged_cells_prove_nothing(monkeypatch: pytest.MonkeyPatch, cells: int) -> None:
    """`pack` writes as many bits as there are cells."""
    monkeypatch.setattr(sets, "_MIN_CELLS_TO_SEARCH", cells)
    index = strategies.index("fingerprints", INT)
    column = column_of(index, [strategies.fingerprints([1, 2, 3], 6400)])
    fields = {field.name: column.field(field.name) for field in column.type}
    fields["cells"] = pa.array([b""], fields["cells"].type)
    odd = load(index, pa.StructArray.from_arrays(list(fields.values()), fields=list(column.type)))
    assert not odd.refuted(AnyOf((77,))).any()
    assert odd.refuted(HasNull()).all()
    assert load(index, column).refuted(AnyOf((77,))).all()
    fields["cells"], fields["space"] = column.field("cells"), pa.nulls(1, fields["space"].type)
    without = load(index, pa.StructArray.from_arrays(list(fields.values()), fields=list(column.type)))
    assert not without.refuted(AnyOf((77,))).any()
    fields["cells"], fields["count"] = pa.array([b""], fields["cells"].type), pa.array([0], fields["count"].type)
    nothing = load(index, pa.StructArray.from_arrays(list(fields.values()), fields=list(column.type)))
    assert not nothing.refuted(AnyOf((77,))).any(), "no cell in a space that is not told says nothing"


def test_many_rows_are_searched_for_a_cell_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sets, "_MIN_CELLS_TO_SEARCH", 0)
    monkeypatch.setattr(sets, "_PAIRS_AT_ONCE", 2)
    index = strategies.index("fingerprints", INT)
    loaded = load(index, column_of(index, [strategies.fingerprints([n], 1 << 40) for n in range(5)]))
    assert loaded.refuted(AnyOf((1, 3, 77))).tolist() == [True, False, True, False, True]


def test_text_that_no_file_can_hold_is_not_looked_for() -> None:
    index = strategies.index("fingerprints", STRING)
    loaded = load(index, column_of(index, [strategies.fingerprints(["a"], 6400)]))
    assert not loaded.refuted(AnyOf(("b", "\ud800"))).any()
    assert loaded.refuted(AnyOf(("b",))).all()


def test_elements_of_rows() -> None:
    rows = Rows(np.array([0, 2, 2, 3], np.int32))
    assert not rows.one_each
    assert rows.empty.tolist() == [False, True, False]
    assert rows.any(np.array([False, True, False])).tolist() == [True, False, False]
    assert rows.any(np.array([True, True, True])).tolist() == [True, False, True]
    single = Rows(np.array([0, 1, 2], np.int32))
    assert single.one_each
    assert single.any(np.array([False, True])).tolist() == [False, True]
    assert not Rows(np.array([1, 2, 3], np.int32)).one_each
    assert not Rows(np.array([0, 1, 1], np.int32)).one_each


@pytest.mark.parametrize(
    ("wanted", "empty"),
    [
        *((Range(), False), (Range(1, None), False), (Range(None, 1, False, True), False), (Range(1, 2), False)),
        *((Range(1, 1), False), (Range(1, 1, True), True), (Range(1, 1, False, True), True), (Range(2, 1), True)),
        *((Range(2, 1, True), True), (Range(1, 2, True, True), False)),
    ],
)
def test_ranges_that_hold_nothing(wanted: Range, empty: bool) -> None:
    assert is_empty(wanted) is empty


def test_clauses_over_rows() -> None:
    rows = {"a": [True, True, False, False], "b": [True, False, True, False]}
    asked: list[str] = []

    def answered(ask: Ask) -> np.ndarray:
        asked.append(ask.index)
        return np.array(rows.get(ask.index, [ask.index == "all"] * 4))

    a, b, all_, none = (Ask(name, HasNull()) for name in ("a", "b", "all", "none"))
    both = refuted(Conjunction((a, b)), answered, 4)
    assert both.tolist() == [True, True, True, False]
    assert refuted(Disjunction((a, b)), answered, 4).tolist() == [True, False, False, False]
    assert refuted(SKIP, answered, 3).tolist() == [True] * 3
    assert refuted(KEEP, answered, 3).tolist() == [False] * 3
    assert refuted(Conjunction(()), answered, 2).tolist() == [False, False]
    assert refuted(Disjunction(()), answered, 2).tolist() == [True, True]
    asked.clear()
    assert refuted(Conjunction((all_, a)), answered, 4).all() and asked == ["all"], "the rest is not asked"
    asked.clear()
    assert not refuted(Disjunction((none, a)), answered, 4).any() and asked == ["none"]
    assert rows["a"] == [True, True, False, False], "an answer is nobody's to change"


def test_clauses_without_some_indexes() -> None:
    a, b = Ask("a", HasNull()), Ask("b", HasNull())
    assert only(a, {"a"}) == a
    assert only(a, {"b"}) == KEEP
    assert only(Conjunction((a, b)), {"a"}) == a
    assert only(Disjunction((a, b)), {"a"}) == KEEP
    assert only(Disjunction((a, b)), {"a", "b"}) == Disjunction((a, b))
    assert only(SKIP, ()) == SKIP
    assert list(indexes_of(Conjunction((b, Disjunction((a, b)), SKIP)))) == ["b", "a"]
    assert indexes_of(KEEP) == ()


def test_the_memory_of_fingerprints_is_told() -> None:
    """Cells of several spaces take the space of each beside them."""
    index = strategies.index("fingerprints", INT)

    def size(*spaces: int) -> int:
        made = [strategies.fingerprints([1, 2, 3], space) for space in spaces]
        return load(index, column_of(index, made)).nbytes

    assert size(6400, 102_400) >= size(6400, 6400) + 6 * 8
    assert size(6400, 6400) >= size(6400) + 3 * 4


@pytest.mark.parametrize(
    ("index", "one"),
    [
        (strategies.index("intervals", INT), Intervals(((1, 2),), 0)),
        (strategies.index("values", STRING), Values(frozenset({"a", "b"}), 0)),
        (strategies.index("boxes", DOUBLE, 2), Boxes((((0.0, 1.0), (0.0, 1.0)),))),
    ],
)
def test_the_memory_of_a_column_is_told(index: IndexDefinition, one: Metadata) -> None:
    few, many = (load(index, column_of(index, [one] * count)).nbytes for count in (10, 1_010))
    assert many - few >= 1_000 * 8
