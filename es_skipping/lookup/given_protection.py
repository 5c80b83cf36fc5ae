"""The protection that a new index needs: on a column of a protected index it must not show what that one hides."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from es_skipping.catalog import DatasetDefinition, IndexDefinition
from es_skipping.indexes.base import Index
from es_skipping.lookup.withheld import columns_of, columns_read_by, is_protected
from es_skipping.predicates.tree import Operand, Predicate

__all__ = ["GivenProtection"]

_Given = TypeVar("_Given", bound=Index)


class GivenProtection:
    """The protected indexes of a dataset, by the columns that they read.

    Parameters
    ----------
    definition
        The dataset's; None if it has no index.
    """

    def __init__(self, definition: DatasetDefinition | None) -> None:
        indexes = () if definition is None else definition.indexes
        self._indexes = [(one, frozenset(columns_read_by(one))) for one in indexes if is_protected(one)]

    def of(self, operands: Iterable[Operand | Predicate]) -> list[IndexDefinition]:
        """The protected indexes that read a column of these operands or predicates, sealed ones first.

        What could not be read may be any column.
        """
        asked = {None if name is None else name.lower() for one in operands for name in columns_of(one)}
        found = [one for one, read in self._indexes if asked and (None in asked | read or asked & read)]
        return sorted(found, key=lambda one: one.mode != "sealed")

    def given(self, index: _Given, operands: Iterable[Operand]) -> _Given:
        """An index of these operands, sealed with the key of a protected index that reads one of their columns.

        It is sealed even if that one is hashed: it then skips what it skips in clear.
        """
        found = [one.protection.key for one in self.of(operands) if one.protection is not None]
        return index.protected("sealed", found[0]) if found else index
