from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from es_skipping.clauses.fingerprints import cell_of, pack, space_for
from es_skipping.stores.parquet.packed_cells import PackedCells
from tests.clauses.test_fingerprints import sets_of_cells


@given(st.lists(st.one_of(st.none(), sets_of_cells()), max_size=8), st.integers(0, 2), st.data())
def test_each_row_holds_its_cells_and_no_others(
    rows: list[tuple[int, list[int]] | None], skipped: int, data: st.DataObject
) -> None:
    column = pa.array([None if row is None else pack(row[1], row[0]) for row in rows], pa.binary())[skipped:]
    kept = rows[skipped:]
    spaces = np.array([0 if row is None else row[0] for row in kept], np.int64)
    counts = np.array([0 if row is None else len(row[1]) for row in kept], np.int64)
    asked = []
    for at, row in enumerate(kept):
        if row is not None:
            space, cells = row
            near = {cell + step for cell in cells for step in (-1, 0, 1)} & set(range(space)) if space < 400 else set()
            others = data.draw(st.sets(st.integers(0, space - 1), max_size=5))
            asked += [(at, cell) for cell in sorted({*cells, *near, *others, 0, space - 1})]
    found = PackedCells(column, spaces, counts).hold(
        np.array([at for at, _ in asked], np.int64), np.array([cell for _, cell in asked], np.uint64)
    )
    sets = [set() if row is None else set(row[1]) for row in kept]
    assert found.tolist() == [cell in sets[at] for at, cell in asked]


@pytest.mark.parametrize("fpp", [0.5, 0.01, 1e-6, 1e-11])
def test_large_rows(fpp: float) -> None:
    generator = np.random.default_rng(7)
    spaces, rows = [], []
    for count in (1, 3000, 20_000, 255):
        spaces.append(space_for(count, fpp))
        hashes = generator.integers(0, 1 << 64, count, np.uint64, endpoint=False).tolist()
        rows.append(sorted({cell_of(one, spaces[-1]) for one in hashes}))
    column = pa.array([pack(cells, space) for space, cells in zip(spaces, rows, strict=True)], pa.binary())
    packed = PackedCells(column, np.array(spaces), np.array([len(cells) for cells in rows]))
    for at, (space, cells) in enumerate(zip(spaces, rows, strict=True)):
        asked = np.concatenate([np.array(cells, np.uint64), generator.integers(0, space, 5000, np.uint64)])
        wanted = np.isin(asked, np.array(cells, np.uint64))
        assert np.array_equal(packed.hold(np.full(len(asked), at), asked), wanted)


def test_what_was_not_packed_so_is_refused() -> None:
    packed = pack([3, 70, 99], 100)
    column = pa.array([packed, packed], pa.binary())
    hundred = np.array([100, 100])
    for counts in ([3, 2], [3, 4], [2, 4], [3, -3]):
        with pytest.raises(ValueError, match="a row"):
            PackedCells(column, hundred, np.array(counts))
    with pytest.raises(ValueError, match="missing"):
        PackedCells(pa.array([None, packed], pa.binary()), hundred, np.array([1, 3]))
    with pytest.raises(ValueError, match="shorter"):
        PackedCells(pa.array([b""], pa.binary()), np.array([100]), np.array([3]))
