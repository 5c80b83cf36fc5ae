"""What an index type is: what it collects of an object, and which predicates it understands.

An index type is a frozen dataclass: its fields are the column(s) and parameters that the user wrote. It knows no store
and no dataset. Three steps of its life are its own:

1. ``check``      may these column types carry me?
2. ``collected`` / ``collector``   what Spark selects, and how batches of it become metadata;
3. ``label``      which clause represents this node of a query's filter?
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class Target:
    """One index of one dataset, as the filters see it.

    Parameters
    ----------
    id
        The index's id in the dataset's definition.
    operands
        The trees of the indexed columns or expressions, in the index's order; compare them with ``==``.
    types
        Their types.
    functions
        What the session that asks declared of its functions; None where there is no session.
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
        False where the summary of rows is that of each column's distinct values, in any order, with as many nulls and
        NaNs: then a build hands over fewer rows, which is most of what it costs.
    distinct_limit
        Of more distinct values than this in one object nothing is said (`finish` returns None), so that a build may
        leave out the rest of them; None where each value counts. For collectors to which repeats do not matter.
    """

    repeats_matter: ClassVar[bool] = True
    distinct_limit: int | None = None

    @abstractmethod
    def partial(self, columns: Sequence[pa.Array]) -> P:
        """The summary of one batch of rows of one object; ``columns`` are what `Index.collected` selected."""

    @abstractmethod
    def merge(self, first: P, second: P) -> P:
        """The summary of two batches together. Associative and commutative."""

    @abstractmethod
    def finish(self, partial: P) -> Metadata | None:
        """The metadata, or None where nothing can be said of the object (it is then *unknown*, and kept)."""


class Index(ABC):
    """Base class of every index type.

    Subclasses are frozen dataclasses and set one class attribute.

    Attributes
    ----------
    kind
        Which kind of metadata they collect.
    """

    kind: ClassVar[Kind]

    @property
    def type(self) -> str:
        """The index type's name, as the user writes it."""
        return type(self).__name__

    @property
    @abstractmethod
    def columns(self) -> tuple[Any, ...]:
        """The indexed columns as the user gave them: names, SQL expressions or Spark Columns."""

    @property
    def parameters(self) -> Mapping[str, int | float | str]:
        """What is remembered besides the columns; passed back to the constructor by keyword."""
        return {}

    def named_by(self, columns: Sequence[str]) -> Sequence[str]:
        """What stands for the columns in the index's id: the columns, unless they are many and long."""
        return columns

    @classmethod
    def remade(cls, columns: Sequence[Any], parameters: Mapping[str, Any]) -> Index:
        """The index again, from the columns and parameters that a definition remembers.

        Index types whose constructor does not take the columns one by one override it.
        """
        return cls(*columns, **parameters)

    def summarised(self, columns: Sequence[str]) -> Sequence[str]:
        """What is summarised, and recognised in filters: the columns themselves, or SQL expressions made of them.

        Parameters
        ----------
        columns
            SQL texts of the indexed columns.
        """
        return columns

    @abstractmethod
    def check(self, types: Sequence[DataType]) -> None:
        """Raise `ColumnError` where columns of these types cannot carry this index.

        Raises
        ------
        ColumnError
        """

    def collected(self, columns: Sequence[SparkColumn]) -> list[SparkColumn]:
        """The Spark columns that the collector wants, made of the indexed ones. Select as little as will do."""
        return list(columns)

    @abstractmethod
    def value_type(self, types: Sequence[DataType]) -> DataType:
        """The type of the values in the metadata (of the coordinates, for boxes)."""

    @abstractmethod
    def collector(self, types: Sequence[DataType]) -> Collector[Any]:
        """A collector for columns of these types."""

    @abstractmethod
    def label(self, node: Predicate, target: Target) -> Clause | None:
        """The clause that represents a node of a normal predicate, or None where this index has nothing to say.

        Called for every node, `And` and `Or` included; a node's children are labelled on their own, so an index that
        only understands leaves ignores the others.
        """
