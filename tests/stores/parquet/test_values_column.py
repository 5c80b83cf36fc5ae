"""Loaded sets of values: each question is answered as a loop over the rows' values answers it."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from es_skipping.clauses.questions import AnyOf, HasNotNull, OtherThan, Overlaps, Question, Range, TextMatch
from es_skipping.predicates.types import DataType
from es_skipping.stores.parquet.answers import ValuesColumn, _order_of

TEXT, NUMBER = DataType("string"), DataType("bigint")


def _column(rows: list[list[Any] | None], type: pa.DataType) -> pa.StructArray:
    lists = pa.array(rows, pa.list_(type))
    zeros = pa.array([0] * len(rows), pa.int64())
    known = pa.array([row is None for row in rows], pa.bool_())
    return pa.StructArray.from_arrays([lists, zeros, zeros], ["values", "nulls", "nans"], mask=known)


def _rows(rng: random.Random, make: Callable[[int], Any]) -> list[list[Any] | None]:
    """Many rows hold the same few values; each also holds values that no other row has."""
    rows: list[list[Any] | None] = []
    for row in range(2_000):
        own = [make(1_000 + 10 * row + at) for at in range(rng.randrange(4))]
        rows.append(None if rng.random() < 0.1 else rng.sample([make(n) for n in range(30)], rng.randrange(4)) + own)
    return rows


QUESTIONS: list[tuple[Callable[[Callable[[int], Any]], Question], Callable[[Callable[[int], Any], Any], bool]]] = [
    (lambda make: AnyOf((make(3),)), lambda make, value: value == make(3)),
    (lambda make: AnyOf((make(7), make(1_023), make(-5), make(999_999))), lambda make, v: v in (make(7), make(1_023))),
    (lambda make: AnyOf(()), lambda make, value: False),
    (lambda make: OtherThan((make(3), make(4))), lambda make, value: value not in (make(3), make(4))),
    # Many values pass or fail, with more and with less than half of all that the rows hold.
    (lambda make: OtherThan(tuple(map(make, range(30)))), lambda make, value: value > make(29)),
    (lambda make: OtherThan(tuple(map(make, range(2_000)))), lambda make, value: value > make(1_999)),
    (lambda make: OtherThan(tuple(map(make, range(21_000)))), lambda make, value: value >= make(21_000)),
    (lambda make: Overlaps((Range(make(5), make(9)),)), lambda make, value: make(5) <= value <= make(9)),
]


@pytest.mark.parametrize("cut", [0, 317])
@pytest.mark.parametrize("type", [TEXT, NUMBER], ids=str)
def test_each_question(type: DataType, cut: int) -> None:
    def make(number: int) -> Any:
        return f"v{number + 10:07}" if type == TEXT else (number - 500) * 1_000_003

    rows = _rows(random.Random(50), make)
    stored = _column(rows, pa.string() if type == TEXT else pa.int64()).slice(cut, 1_500)
    column, rows = ValuesColumn(stored, type), rows[cut : cut + 1_500]
    for ask, holds in QUESTIONS:
        right = [row is not None and not any(holds(make, value) for value in row) for row in rows]
        assert column.refuted(ask(make)).tolist() == right, ask(make)
        assert any(right)
    assert column.refuted(HasNotNull()).tolist() == [row is not None and not row for row in rows]
    like = column.refuted(TextMatch("starts", "v00000"))
    right = [row is not None and not any(value.startswith("v00000") for value in row) for row in rows if type == TEXT]
    assert like.tolist() == (right if type == TEXT else [False] * len(rows))


def test_more_values_than_16_bits_count() -> None:
    """Each row holds a value of its own, and one of three that many hold."""
    order = np.random.default_rng(50).permutation(70_000)
    rows: list[list[Any] | None] = [[int(own), -1 - int(own) % 3] for own in order]
    column = ValuesColumn(_column(rows, pa.int64()), NUMBER)
    for own in (0, 65_535, 65_536, 65_537, 69_999):
        assert np.flatnonzero(~column.refuted(AnyOf((own,)))).tolist() == np.flatnonzero(order == own).tolist()
    assert np.flatnonzero(~column.refuted(AnyOf((-2,)))).tolist() == np.flatnonzero(order % 3 == 1).tolist()
    assert column.refuted(AnyOf((70_000, -4))).all()
    assert np.array_equal(order[_order_of(order.astype(np.int32))], np.arange(70_000))
    assert column.nbytes < 70_000 * 40


def test_the_order_of_codes() -> None:
    codes = np.array([70_000, 65_535, 3, 131_072, 65_536, 32_768, 98_304, 3], np.int32)
    assert _order_of(codes).tolist() == np.argsort(codes, kind="stable").tolist()


def test_no_row_and_no_value() -> None:
    for rows in ([], [None, None], [[], None]):
        column = ValuesColumn(_column(rows, pa.int64()), NUMBER)
        assert column.refuted(AnyOf((1,))).tolist() == [row is not None for row in rows]
        assert column.refuted(OtherThan((1,))).tolist() == [row is not None for row in rows]
