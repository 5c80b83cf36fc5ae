"""Checks the indexes that a user passes, and matches them with a dataset's indexes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from es_skipping.catalog import IndexDefinition
from es_skipping.errors import IndexDefinitionError
from es_skipping.indexes.base import Index

__all__ = ["checked", "is_definition_of", "lasting"]


def checked(indexes: Sequence[Index]) -> Sequence[Index]:
    """Return the indexes if all arguments are indexes.

    Raises
    ------
    IndexDefinitionError
        No index is given, or an argument is not an index.
    """
    if not indexes:
        raise IndexDefinitionError("pass at least one index, such as MinMax('ts')")
    for index in indexes:
        if isinstance(index, Index):
            continue
        if isinstance(index, (list, tuple)):
            raise IndexDefinitionError(f"{index!r} is not an index; pass indexes one by one, or with a star: *indexes")
        if isinstance(index, type) and issubclass(index, Index):
            raise IndexDefinitionError(f"{index.__name__} is an index type; give it a column: {index.__name__}('ts')")
        raise IndexDefinitionError(
            f"{index!r} is not an index; pass for example MinMax('ts'), without quotes around it"
        )
    return indexes


def is_definition_of(definition: IndexDefinition, index: Index) -> bool:
    """Whether a stored definition matches a user's index."""
    if definition.type != index.type or lasting(index, definition.parameters) != lasting(index, index.parameters):
        return False
    given = tuple(column if isinstance(column, str) else str(column) for column in index.columns)
    return tuple(definition.columns) == given or [_bare(c) for c in definition.columns] == [_bare(c) for c in given]


def lasting(index: Index, parameters: Mapping[str, int | float | str]) -> dict[str, int | float | str]:
    """The parameters of an index without those that may change while its metadata stays valid."""
    return {name: value for name, value in parameters.items() if name not in index.changing}


def _bare(column: str) -> str:
    """A name without needless quotes, and without the wrapping that Spark prints around a Column."""
    text = re.sub(r"^Column<'(.*)'>$", r"\1", column, flags=re.DOTALL)
    return text[1:-1] if re.fullmatch(r"`[^`.]+`", text) else text
