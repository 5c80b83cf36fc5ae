"""An index to collect: an index type on columns of one dataset."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from es_skipping.build.columns import ResolvedColumn
from es_skipping.indexes.base import Index
from es_skipping.predicates.tree import Operand
from es_skipping.predicates.types import DataType

if TYPE_CHECKING:
    from es_skipping.build.dimensions import DimensionBits

__all__ = ["Wanted"]


@dataclass(frozen=True, slots=True)
class Wanted:
    """One index to collect.

    Parameters
    ----------
    bits
        Of an `Induced` index: what is collected in place of its column, the key; None before a build has read the
        dimension.
    """

    id: str
    index: Index
    columns: tuple[ResolvedColumn, ...]
    bits: DimensionBits | None = None

    @property
    def types(self) -> tuple[DataType, ...]:
        return tuple(column.type for column in self.columns)

    @property
    def operands(self) -> tuple[Operand, ...]:
        return tuple(column.operand for column in self.columns)

    @property
    def is_protected(self) -> bool:
        return self.index.protect not in (None, "plain")

    @property
    def value_type(self) -> DataType:
        return self.index.value_type(self.types)
