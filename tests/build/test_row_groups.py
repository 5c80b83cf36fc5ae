"""Row groups of a build: their names, their numbers, and which rows belong to them."""

from __future__ import annotations

import pyarrow as pa
import pytest

from es_skipping.build.row_group_numbers import is_whole, numbered, row_groups_in
from es_skipping.build.worker import RowGroupRuns
from es_skipping.catalog import ObjectId
from es_skipping.row_groups import RowGroup, of_row_group, row_groups_path

FILE = ObjectId("file:/lake/a#row_group=odd.parquet", 900, 7)


def batch(rows: list[tuple[int, int]]) -> pa.RecordBatch:
    files, places = zip(*rows, strict=True)
    return pa.RecordBatch.from_arrays([pa.array(files), pa.array(places), pa.array(places)], ["object", "c", "place"])


def test_a_name_is_read_back() -> None:
    for group, named in zip(((0, 3), (3, 1)), row_groups_in(FILE, (3, 1)), strict=True):
        assert named is not None
        assert of_row_group(named.path) == RowGroup(FILE.path, *group, 2)
    assert of_row_group(FILE.path) is None
    assert row_groups_path(RowGroup("file:/a", 1 << 40, 1, 2)) is None


def test_a_key_begins_with_the_files_own() -> None:
    groups = row_groups_in(FILE, (300, 5))
    keys = [group.key for group in groups if group is not None]
    assert keys == [FILE.key[:10] + bytes([0, 0, 0, 0, 0, 2]), FILE.key[:10] + bytes([0, 0, 0, 1, 44, 2])]
    other = ObjectId(FILE.path, FILE.length, FILE.mtime + 1)
    assert all(group.key[:10] != FILE.key[:10] for group in row_groups_in(other, (300, 5)) if group is not None)


def test_more_row_groups_than_a_key_counts() -> None:
    last = row_groups_in(FILE, [1] * 1000)[-1]
    assert last is not None and last.key[10:] == (999 << 8 | 255).to_bytes(6, "big")


def test_rows_find_their_row_group() -> None:
    files = {7: FILE, 8: ObjectId("file:/b", 1, 1)}
    by_number, runs = numbered(files, {FILE: (2, 3), files[8]: (4,)})
    assert [object.path[-5:] for object in by_number.values()] == ["0+2/2", "2+3/2", "0+4/1"]
    found = list(runs(batch([(7, 0), (7, 1), (7, 2), (7, 4), (8, 3), (7, 5), (9, 0)])))
    assert [(number, piece.num_rows) for number, piece in found] == [
        (0, 2),
        (1, 2),
        (2, 1),
        (RowGroupRuns.STRAY, 1),
        (RowGroupRuns.STRAY, 1),
    ]


@pytest.mark.parametrize("rows", [0, 2, 4])
def test_a_row_group_that_was_read_in_part_is_not_whole(rows: int) -> None:
    group = row_groups_in(FILE, (3, 1))[0]
    assert group is not None and is_whole(group, 3) and not is_whole(group, rows)
    assert not is_whole(FILE, 3)
