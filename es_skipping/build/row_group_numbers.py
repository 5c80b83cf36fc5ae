"""Numbers the row groups of some files for one Spark job, and checks that a row group was read whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import accumulate

from es_skipping.build.worker import RowGroupRuns
from es_skipping.catalog import ObjectId
from es_skipping.row_groups import RowGroup, of_row_group, row_groups_path

__all__ = ["is_whole", "numbered", "row_groups_in"]


def row_groups_in(file: ObjectId, rows: Sequence[int]) -> list[ObjectId | None]:
    """A file's row groups in order, by their numbers of rows; None for one that cannot be named.

    Examples
    --------
    >>> [group.path for group in row_groups_in(ObjectId("file:/a", 90, 7), (10, 5))]
    ['file:/a#row_group=0+10/2', 'file:/a#row_group=10+5/2']
    """
    firsts = [0, *accumulate(rows)]
    paths = (row_groups_path(RowGroup(file.path, *place, len(rows))) for place in zip(firsts, rows, strict=False))
    return [None if path is None else replace(file, path=path) for path in paths]


def numbered(
    files: Mapping[int, ObjectId], row_groups: Mapping[ObjectId, Sequence[int]]
) -> tuple[dict[int, ObjectId], RowGroupRuns]:
    """The row groups of these files by number, and what cuts their rows by these numbers.

    Parameters
    ----------
    files
        By the numbers that rows carry.
    row_groups
        Each file's numbers of rows.
    """
    by_number: dict[int, ObjectId] = {}
    cuts: dict[int, tuple[int, Sequence[int]]] = {}
    first = 0
    for number, file in files.items():
        rows = row_groups[file]
        cuts[number] = first, tuple(accumulate(rows))
        for at, group in enumerate(row_groups_in(file, rows)):
            if group is not None:
                by_number[first + at] = group
        first += len(rows)
    return by_number, RowGroupRuns(cuts)


def is_whole(row_group: ObjectId, rows: int) -> bool:
    """Whether these are as many rows as the footer tells."""
    group = of_row_group(row_group.path)
    return group is not None and group.rows == rows
