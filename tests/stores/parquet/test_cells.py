from __future__ import annotations

from unittest import mock

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from es_skipping.clauses.fingerprints import pack
from es_skipping.stores.parquet import cells
from es_skipping.stores.parquet.cells import unpacked
from tests.clauses.test_fingerprints import sets_of_cells


@given(
    st.lists(st.one_of(st.none(), sets_of_cells()), max_size=8), st.integers(0, 2), st.sampled_from([1, 30, 1 << 16])
)
def test_many_rows_are_unpacked_as_each_alone(
    rows: list[tuple[int, list[int]] | None], skipped: int, at_a_time: int
) -> None:
    column = pa.array([None if row is None else pack(row[1], row[0]) for row in rows], pa.binary())[skipped:]
    kept = rows[skipped:]
    spaces = np.array([0 if row is None else row[0] for row in kept], np.int64)
    counts = np.array([0 if row is None else len(row[1]) for row in kept], np.int64)
    with mock.patch.object(cells, "_CHUNK_BYTES", at_a_time):
        found = unpacked(column, spaces, counts)
    assert found is not None
    assert found.tolist() == [cell for row in kept if row is not None for cell in row[1]]


def test_what_was_not_packed_so_is_not_unpacked() -> None:
    packed = pack([3, 70, 99], 100)
    column = pa.array([packed, packed], pa.binary())
    hundred = np.array([100, 100])
    assert unpacked(column, hundred, np.array([3, 2])) is None
    assert unpacked(column, hundred, np.array([3, 4])) is None
    assert unpacked(column, hundred, np.array([2, 4])) is None
    assert unpacked(column, hundred, np.array([3, -3])) is None
    assert unpacked(pa.array([None, packed], pa.binary()), hundred, np.array([1, 3])) is None
