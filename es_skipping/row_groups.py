"""Row groups as objects: how one is named, and the key that it shares with its file.

A dataset with the granularity ``rowGroup`` has a second dataset in the store, whose objects are the row groups of its
files. A row group is named by its file's path and its place; length and modification time are those of the file.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

__all__ = [
    "FILE_KEY_BYTES",
    "RowGroup",
    "files_of",
    "of_row_group",
    "row_group_key",
    "row_groups_of",
    "row_groups_path",
]

FILE_KEY_BYTES: Final = 10
"""The first bytes of a row group's key, which are those of its file's key."""
_MAX_FIRST_ROW: Final = 1 << 40
_MAX_COUNTED: Final = 255
"""Readers cannot tell whether they have all row groups of a file with this many or more."""
_MARK: Final = "#row_group="
_NAME: Final = re.compile(r"(.*)#row_group=(\d+)\+(\d+)/(\d+)", re.DOTALL | re.ASCII)
_SUFFIX: Final = "-rowgroups"


@dataclass(frozen=True, slots=True)
class RowGroup:
    """A row group of a file.

    Parameters
    ----------
    file
        The file's path.
    first_row
        The place of its first row in the file.
    rows
        How many rows it has.
    count
        How many row groups the file has.
    """

    file: str
    first_row: int
    rows: int
    count: int


def row_groups_path(group: RowGroup) -> str | None:
    """The path that names a row group; None if its key has no room for its place.

    Examples
    --------
    >>> row_groups_path(RowGroup("file:/lake/a.parquet", 1000, 500, 3))
    'file:/lake/a.parquet#row_group=1000+500/3'
    """
    if group.first_row >= _MAX_FIRST_ROW:
        return None
    return f"{group.file}{_MARK}{group.first_row}+{group.rows}/{group.count}"


def of_row_group(path: str) -> RowGroup | None:
    """The row group that a path names; None for a file's path.

    A file with such a name is never skipped: the shim computes another key for it.
    """
    if _MARK not in path:
        return None
    found = _NAME.fullmatch(path)
    if found is None or int(found[2]) >= _MAX_FIRST_ROW:
        return None
    return RowGroup(found[1], int(found[2]), int(found[3]), int(found[4]))


def row_group_key(file_key: bytes, group: RowGroup) -> bytes:
    """The 16 bytes of a row group's key: 10 of its file's, 5 for its first row, 1 for how many the file has."""
    place = group.first_row << 8 | min(group.count, _MAX_COUNTED)
    return file_key[:FILE_KEY_BYTES] + place.to_bytes(16 - FILE_KEY_BYTES, "big")


def row_groups_of(dataset: str) -> str:
    """The id of the dataset of a dataset's row groups."""
    return dataset + _SUFFIX


def files_of(dataset: str) -> str:
    """The id of the dataset of files whose row groups a dataset has; any other id as it is.

    Examples
    --------
    >>> files_of(row_groups_of("events")), files_of("events")
    ('events', 'events')
    """
    return dataset.removesuffix(_SUFFIX)
