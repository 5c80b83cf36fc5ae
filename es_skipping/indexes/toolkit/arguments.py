"""Checks the arguments of the constructors of index types, so that a mistake raises at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from es_skipping.errors import ColumnError, IndexDefinitionError
from es_skipping.predicates.types import DataType

__all__ = ["require_column", "require_positive", "require_share", "require_supported"]


def require_column(index: object, argument: str, column: Any) -> None:
    """A column's name or SQL expression, or a Spark ``Column``.

    Raises
    ------
    IndexDefinitionError
    """
    # By name, so that Spark is not imported; Classic and Connect also have different classes.
    is_spark = any(base.__name__ == "Column" for base in type(column).__mro__)
    if not is_spark and not (isinstance(column, str) and column.strip()):
        raise IndexDefinitionError(
            f"{type(index).__name__}: {argument} is {column!r}; give a name, a SQL expression or a Spark Column"
        )


def require_positive(index: object, argument: str, value: Any) -> None:
    """A whole number of at least 1.

    Raises
    ------
    IndexDefinitionError
    """
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise IndexDefinitionError(
            f"{type(index).__name__}: {argument} is {value!r}; give a whole number of at least 1"
        )


def require_share(index: object, argument: str, value: Any) -> None:
    """A number between 0 and 1, both excluded.

    Raises
    ------
    IndexDefinitionError
    """
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value < 1:
        raise IndexDefinitionError(f"{type(index).__name__}: {argument} is {value!r}; give a number between 0 and 1")


def require_supported(index: object, types: Sequence[DataType], wanted: str, *names: str) -> None:
    """Check that every type is supported, and one of ``names`` if any are given.

    Raises
    ------
    ColumnError
    """
    for type_ in types:
        if not type_.supported or (names and type_.name not in names):
            raise ColumnError(f"{index} cannot be built on a column of type {type_}; it needs {wanted}")
