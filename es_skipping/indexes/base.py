"""The interface of an index type: the metadata that it collects, and the predicates that it understands.

An index type is a frozen dataclass: its fields are the user's column(s) and parameters. It knows neither stores nor
datasets. It implements three steps:

1. ``check``      may these column types carry the index? 2. ``collected`` / ``collector``   the columns that Spark
selects, and how their batches become metadata; 3. ``label``      the clause that represents a node of a query's filter.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from es_skipping.clauses.clause import Ask, Clause
from es_skipping.clauses.metadata import Kind, Metadata
from es_skipping.clauses.questions import Question
from es_skipping.predicates.functions import Declarations
from es_skipping.predicates.tree import Operand, Predicate
from es_skipping.predicates.types import DataType

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column as SparkColumn

__all__ = ["Collector", "Index", "Target"]

P = TypeVar("P")
S = TypeVar("S", bound="Index")


@dataclass(frozen=True, slots=True)
class Target:
    """One index of one dataset, for its filters.

    Parameters
    ----------
    id
        The index's id in the dataset's definition.
    operands
        The trees of the indexed columns or expressions, in the index's order; compare them with ``==``.
    types
        Their types.
    functions
        The functions that the querying session declared; None without a session.
    """

    id: str
    operands: tuple[Operand, ...]
    types: tuple[DataType, ...]
    functions: Declarations | None = None

    def ask(self, question: Question) -> Clause:
        """The clause that asks this index's metadata."""
        return Ask(self.id, question)


class Collector(ABC, Generic[P]):
    """Turns batches of one object's rows into metadata. Runs in Spark's Python workers and must pickle, as must its
    partials: one object can be read as several splits.

    Attributes
    ----------
    repeats_matter
        False if the summary only depends on each column's distinct values and its numbers of nulls and NaNs. A build
        then passes fewer rows, which is most of its cost.
    distinct_limit
        With more distinct values than this in an object, `finish` returns None, so a build may leave out the rest; None
        if every value counts. Only for collectors with ``repeats_matter`` false.
    """

    repeats_matter: ClassVar[bool] = True
    distinct_limit: int | None = None

    @abstractmethod
    def partial(self, columns: Sequence[pa.Array]) -> P:
        """Summarise one batch of rows of one object; ``columns`` are those that `Index.collected` selected."""

    @abstractmethod
    def merge(self, first: P, second: P) -> P:
        """Merge the summaries of two batches. Must be associative and commutative."""

    @abstractmethod
    def finish(self, partial: P) -> Metadata | None:
        """The object's metadata; None makes the object *unknown* to the index, and queries keep it."""


@dataclass(frozen=True)
class Index(ABC):
    """Base class of every index type.

    Subclasses are frozen dataclasses and set the first class attribute.

    Parameters
    ----------
    protect
        ``"plain"``, ``"hashed"`` or ``"sealed"``: how the store keeps the metadata. None is the dataset's default.
    key
        For the last two: where the key is, ``"env:NAME"`` or ``"file:PATH"``; never the key itself.

    Attributes
    ----------
    kind
        The kind of metadata that they collect.
    bounds_values
        Whether its intervals are bounds of the values of its one column, so that they can order objects.
    """

    kind: ClassVar[Kind]
    bounds_values: ClassVar[bool] = False
    protect: str | None = field(default=None, kw_only=True, repr=False)
    key: str | None = field(default=None, kw_only=True, repr=False)

    def protected(self: S, protect: str | None, key: str | None) -> S:
        """The same index with another protection."""
        changed = copy.copy(self)
        object.__setattr__(changed, "protect", protect)
        object.__setattr__(changed, "key", key)
        return changed

    @property
    def type(self) -> str:
        """The index type's name, as the user writes it."""
        return type(self).__name__

    def __str__(self) -> str:
        """The index as people write it, without parameters at their defaults: ``Prefix(name, length=15)``."""
        defaults: dict[str, Any] = {}
        if is_dataclass(self):
            defaults = {field.name: field.default for field in fields(self)}
        parameters = [f"{name}={value}" for name, value in self.parameters.items() if defaults.get(name) != value]
        if self.protect not in (None, "plain"):
            parameters += [f"protect={self.protect}", f"key={self.key}"]
        return f"{self.type}({', '.join([*map(str, self.columns), *parameters])})"

    @property
    @abstractmethod
    def columns(self) -> tuple[Any, ...]:
        """The indexed columns as the user gave them: names, SQL expressions or Spark Columns."""

    @property
    def parameters(self) -> Mapping[str, int | float | str]:
        """The stored parameters besides the columns; the constructor takes them by keyword."""
        return {}

    @property
    def naming(self) -> Mapping[str, int | float | str]:
        """The parameters that are part of the index's id where they differ from their defaults."""
        return self.parameters

    @property
    def changing(self) -> frozenset[str]:
        """Names of parameters that may change while the metadata of objects stays valid."""
        return frozenset()

    def named_by(self, columns: Sequence[str]) -> Sequence[str]:
        """The columns' part of the index's id: the columns, unless they are many and long."""
        return columns

    @classmethod
    def from_definition(cls, columns: Sequence[Any], parameters: Mapping[str, Any]) -> Index:
        """Make the index from the columns and parameters of a stored definition.

        Override it if the constructor does not take the columns one by one.
        """
        return cls(*columns, **parameters)

    def summarised(self, columns: Sequence[str]) -> Sequence[str]:
        """The expressions to collect, and to recognise in filters: the columns themselves, or SQL expressions of them.

        Parameters
        ----------
        columns
            SQL texts of the indexed columns.
        """
        return columns

    @abstractmethod
    def check(self, types: Sequence[DataType]) -> None:
        """Raise `ColumnError` if columns of these types cannot carry this index.

        Raises
        ------
        ColumnError
        """

    def collected(self, columns: Sequence[SparkColumn]) -> list[SparkColumn]:
        """The Spark columns for the collector, made from the indexed ones. Select as little as possible."""
        return list(columns)

    def collected_arrays(self, columns: Sequence[pa.Array]) -> list[pa.Array] | None:
        """The arrays for the collector where pyarrow reads the files: what `collected` computes, value by value.

        None, if this index needs Spark. Override it together with `collected`.
        """
        return list(columns) if type(self).collected is Index.collected else None

    @abstractmethod
    def value_type(self, types: Sequence[DataType]) -> DataType:
        """The type of the values in the metadata (of the coordinates, for boxes)."""

    @abstractmethod
    def collector(self, types: Sequence[DataType]) -> Collector[Any]:
        """A collector for columns of these types."""

    @abstractmethod
    def label(self, node: Predicate, target: Target) -> Clause | None:
        """The clause that represents a node of a normal predicate; None if the index does not understand the node.

        Called for every node, including `And` and `Or`. A node's children are labelled separately, so an index that
        only understands leaves ignores the others.
        """
