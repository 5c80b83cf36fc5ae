"""`ColumnIndex`: what the index types of one column have in common."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, TypeVar

from es_skipping.indexes.base import Index
from es_skipping.indexes.toolkit.arguments import require_column, require_supported
from es_skipping.predicates.types import DataType

__all__ = ["ColumnIndex", "only"]

_T = TypeVar("_T")


def only(sequence: Sequence[_T]) -> _T:
    """The one element: an index of one column gets sequences of one column, operand or type."""
    (element,) = sequence
    return element


@dataclass(frozen=True)
class ColumnIndex(Index):
    """Base class of the index types of one column, whose metadata holds values of the column's own type.

    A subclass adds its parameters as fields, its `kind`, a `collector` and a `label`.

    Parameters
    ----------
    column
        Name, SQL expression or Spark ``Column``.

    Attributes
    ----------
    wanted
        The types it can carry, as an error names them.
    wanted_types
        Their names (`DataType.name`); every supported type if empty.
    """

    column: Any

    wanted: ClassVar[str] = "a number, string, binary, boolean, date or timestamp, without a collation"
    wanted_types: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        require_column(self, "column", self.column)

    @property
    def columns(self) -> tuple[Any, ...]:
        return (self.column,)

    @property
    def parameters(self) -> dict[str, int | float | str]:
        others = {"column", *(field.name for field in fields(Index))}
        return {field.name: getattr(self, field.name) for field in fields(self) if field.name not in others}

    def check(self, types: Sequence[DataType]) -> None:
        require_supported(self, types, self.wanted, *self.wanted_types)

    def value_type(self, types: Sequence[DataType]) -> DataType:
        return only(types)
