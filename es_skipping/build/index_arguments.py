"""The indexes that a user gives: whether they are some, and which of a dataset's they are."""

from __future__ import annotations

import re
from collections.abc import Sequence

from es_skipping.catalog import IndexDefinition
from es_skipping.errors import IndexDefinitionError
from es_skipping.indexes.base import Index

__all__ = ["checked", "is_definition_of"]


def checked(indexes: Sequence[Index]) -> Sequence[Index]:
    """The indexes that a user gives, if that is what they are.

    Raises
    ------
    IndexDefinitionError
        There is none, or something else is among them.
    """
    if not indexes:
        raise IndexDefinitionError("give at least one index, such as MinMax('ts')")
    for index in indexes:
        if isinstance(index, Index):
            continue
        if isinstance(index, (list, tuple)):
            raise IndexDefinitionError(f"{index!r} is no index; give them one by one, or with a star: *indexes")
        if isinstance(index, type) and issubclass(index, Index):
            raise IndexDefinitionError(f"{index.__name__} is no index but a type; say of what: {index.__name__}('ts')")
        raise IndexDefinitionError(f"{index!r} is no index; give for example MinMax('ts'), without quotes around it")
    return indexes


def is_definition_of(definition: IndexDefinition, index: Index) -> bool:
    """Whether a definition is of an index as the user writes it."""
    if definition.type != index.type or dict(definition.parameters) != dict(index.parameters):
        return False
    given = tuple(column if isinstance(column, str) else str(column) for column in index.columns)
    return tuple(definition.columns) == given or [_bare(c) for c in definition.columns] == [_bare(c) for c in given]


def _bare(column: str) -> str:
    """A name without needless quotes and, as Spark prints a Column, without its wrapping."""
    text = re.sub(r"^Column<'(.*)'>$", r"\1", column, flags=re.DOTALL)
    return text[1:-1] if re.fullmatch(r"`[^`.]+`", text) else text
