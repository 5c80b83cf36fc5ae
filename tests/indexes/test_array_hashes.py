"""Hashes of whole arrays are those of their values, and packed arrays of cells those of the cells: both are stored."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from es_skipping.clauses.fingerprints import hash_of, last_cell, pack
from es_skipping.indexes.toolkit import array_hashes
from es_skipping.indexes.toolkit.array_hashes import hashes_of_array
from es_skipping.indexes.toolkit.hashes import hashes_of
from es_skipping.indexes.toolkit.packing import packed
from es_skipping.indexes.toolkit.summaries import plain
from es_skipping.predicates.types import parse_type
from tests.clauses.test_fingerprints import sets_of_cells

INT_64 = st.one_of(st.integers(-(1 << 63), (1 << 63) - 1), st.sampled_from([-(1 << 63), 1 - (1 << 63), 0, -1]))
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=70)


def integers(bits: int) -> st.SearchStrategy[int]:
    low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    return st.one_of(st.integers(low, high), st.sampled_from([low, high]))


def decimals(precision: int, scale: int) -> st.SearchStrategy[Decimal]:
    top = 10**precision - 1
    unscaled = st.one_of(st.integers(-top, top), st.sampled_from([0, top, -top]), st.integers(-99, 99))
    return unscaled.map(lambda one: Decimal(f"{one}E{-scale}"))


ARRAYS: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "boolean": (pa.bool_(), st.booleans()),
    "tinyint": (pa.int8(), integers(8)),
    "smallint": (pa.int16(), integers(16)),
    "int": (pa.int32(), integers(32)),
    "bigint": (pa.int64(), INT_64),
    "date": (pa.int32(), integers(32)),
    "float": (pa.float32(), st.floats(width=32, allow_nan=False)),
    "double": (pa.float64(), st.floats(allow_nan=False)),
    "decimal(7,2)": (pa.decimal128(7, 2), decimals(7, 2)),
    "decimal(18,0)": (pa.decimal128(18, 0), decimals(18, 0)),
    "decimal(18,18)": (pa.decimal128(18, 18), decimals(18, 18)),
    "decimal(19,3)": (pa.decimal128(19, 3), decimals(19, 3)),
    "decimal(38,10)": (pa.decimal128(38, 10), decimals(38, 10)),
    "string": (pa.string(), TEXT),
    "large string": (pa.large_string(), TEXT),
    "binary": (pa.binary(), st.binary(max_size=70)),
    "large binary": (pa.large_binary(), st.binary(max_size=70)),
    "fixed binary": (pa.binary(5), st.binary(min_size=5, max_size=5)),
}


@pytest.mark.parametrize("name", ARRAYS)
@given(data=st.data(), few=st.sampled_from([1, 16]), at_once=st.sampled_from([3, 1 << 13]))
def test_an_array_hashes_as_its_values(name: str, data: st.DataObject, few: int, at_once: int) -> None:
    kind, values = ARRAYS[name]
    drawn = data.draw(st.lists(values, max_size=40))
    start = data.draw(st.integers(0, 3))
    array = pa.array(drawn, kind)[start:]
    wanted = [hash_of(value) for value in array.to_pylist()]
    with (
        mock.patch.object(array_hashes, "_MIN_VALUES_PER_STEP", few),
        mock.patch.object(array_hashes, "_VALUES_AT_ONCE", at_once),
    ):
        assert hashes_of_array(array).tolist() == wanted


@pytest.mark.parametrize("length", [*range(34), 47, 48, 1023, 1024, 1040, 5000])
def test_each_length_of_text(length: int) -> None:
    generator = np.random.default_rng(length)
    values = [generator.bytes(length) for _ in range(40)]
    assert hashes_of_array(pa.array(values, pa.binary())).tolist() == [hash_of(value) for value in values]


def test_many_values() -> None:
    generator = np.random.default_rng(3)
    numbers = generator.integers(-(1 << 63), (1 << 63) - 1, 30_000)
    texts = [f"user-{number % 10 ** (number % 19)}" for number in numbers.tolist()]
    assert hashes_of_array(pa.array(numbers)).tolist() == [hash_of(one) for one in numbers.tolist()]
    assert hashes_of_array(pa.array(texts)).tolist() == [hash_of(one) for one in texts]


def test_zeros_and_nans_of_floats() -> None:
    """The two zeros are equal, and a NaN leaves no hash."""
    for name, kind in (("double", pa.float64()), ("float", pa.float32())):
        column = plain(pa.array([-0.0, 0.0, math.nan, None, 1.5], kind), parse_type(name))
        (chunk,) = hashes_of(column).chunks or ()
        assert chunk.tolist() == sorted([hash_of(0.0), hash_of(1.5)])


@given(sets_of_cells())
def test_arrays_of_cells_are_packed_as_cells(drawn: tuple[int, list[int]]) -> None:
    space, cells = drawn
    found = packed(np.array(cells, np.uint64), space)
    assert found == pack(cells, space)
    if cells:
        assert last_cell(found, space, len(cells)) == cells[-1]
