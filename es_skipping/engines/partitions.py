"""Reads the columns that directories name: engines take their types from all files that they are given."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable
from typing import Final
from urllib.parse import unquote

__all__ = ["partition_columns", "partition_kinds", "unclear_partitions"]

_INT: Final = re.compile(r"-?(0|[1-9]\d{0,8})", re.ASCII)
"""A number that every engine takes for a 32-bit one."""
_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_TEXT: Final = re.compile(r"[A-Za-z][A-Za-z ]*")
_SPECIAL: Final = re.compile(
    r"t|f|true|false|y|n|yes|no|on|off|nan|inf|infinity|null|none|na|epoch|now|today|tomorrow|yesterday", re.IGNORECASE
)
"""Words that an engine may take for something else than text."""


def partition_columns(file: str) -> frozenset[str]:
    """The names before ``=`` in the directories of a path, in lower case: engines read them as columns.

    Examples
    --------
    >>> sorted(partition_columns("file:/lake/events/Day=2026-11-20/city=Oslo/part-0.parquet"))
    ['city', 'day']
    """
    directories = file.split("/")[:-1]
    return frozenset(unquote(name.partition("=")[0]).lower() for name in directories if "=" in name)


def partition_kinds(directory: str) -> frozenset[tuple[str, str]]:
    """The kinds of a directory's partition values, by column, and which columns there are.

    Engines take a partition column for a number only if all values are numbers, and so for dates. Whatever they may
    take in different ways is ``other``, such as the name of the null partition and numbers of more than nine digits.

    Examples
    --------
    >>> sorted(partition_kinds("file:/lake/day=2026-11-20/k=x"))
    [('', 'day,k'), ('day', 'date'), ('k', 'text')]
    """
    pairs = [unquote(name).partition("=") for name in directory.split("/") if "=" in name]
    found = {(column, _kind(value)) for column, _, value in pairs}
    return frozenset({*found, ("", ",".join(column for column, _, _ in pairs))})


def unclear_partitions(directories: Iterable[str]) -> frozenset[str]:
    """The partition columns, in lower case, whose type for an engine depends on which of these it sees.

    Examples
    --------
    >>> sorted(unclear_partitions(["d/k=7/m=1", "d/k=abc/m=2", "d/k=8/m=3"]))
    ['k']
    """
    kinds: dict[str, set[str]] = {}
    columns = set()
    for directory in directories:
        for column, kind in partition_kinds(directory):
            if column:
                kinds.setdefault(column.lower(), set()).add(kind)
            else:
                columns.add(kind)
    if len(columns) > 1:  # some files lack a column
        return frozenset(kinds)
    return frozenset(column for column, found in kinds.items() if len(found) > 1 or "other" in found)


def _kind(value: str) -> str:
    if _INT.fullmatch(value):
        return "number"
    if _DATE.fullmatch(value):
        try:
            datetime.date.fromisoformat(value)
        except ValueError:
            return "other"
        return "date"
    return "text" if _TEXT.fullmatch(value) and not _SPECIAL.fullmatch(value) else "other"
