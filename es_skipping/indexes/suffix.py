"""`Suffix`: how the strings of each object end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from es_skipping.clauses.clause import Clause
from es_skipping.clauses.metadata import Kind
from es_skipping.indexes.arguments import (
    require_column,
    require_positive,
    require_supported,
)
from es_skipping.indexes.base import Collector, Index, Target
from es_skipping.indexes.ends import checked_end, end_clause
from es_skipping.indexes.labels import leaf_of, text_suffix
from es_skipping.indexes.summaries import Distinct
from es_skipping.indexes.valuelist import DEFAULT_LIMIT, ValuesCollector
from es_skipping.predicates.tree import Predicate
from es_skipping.predicates.types import DataType

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn

__all__ = ["Suffix"]


@dataclass(frozen=True)
class Suffix(Index):
    """The distinct endings of each object's strings.

    For tests of the end, which no order of the rows and no least and greatest value can help: file extensions, domains,
    the last parts of paths.

    Parameters
    ----------
    column
        Name, SQL expression or Spark ``Column`` of type string.
    length
        How many code points are remembered of each string.
    limit
        An object with more distinct endings than this (or more than a mebibyte of them) is remembered as unknown.

    Examples
    --------
    >>> Suffix("path", length=4)
    Suffix(column='path', length=4, limit=10000)
    """

    column: Any
    length: int
    limit: int = DEFAULT_LIMIT

    kind: ClassVar[Kind] = "values"

    def __post_init__(self) -> None:
        require_column(self, "column", self.column)
        require_positive(self, "length", self.length)
        require_positive(self, "limit", self.limit)

    @property
    def columns(self) -> tuple[Any, ...]:
        return (self.column,)

    @property
    def parameters(self) -> dict[str, int | float | str]:
        return {"length": self.length, "limit": self.limit}

    def check(self, types: Sequence[DataType]) -> None:
        require_supported(self, types, "a string without a collation", "string")

    def collected(self, columns: Sequence[SparkColumn]) -> list[SparkColumn]:
        from pyspark.sql import functions as F

        # A string shorter than the length is taken whole.
        return [checked_end(columns[0], F.substring(columns[0], -self.length, self.length))]

    def value_type(self, types: Sequence[DataType]) -> DataType:
        return types[0]

    def collector(self, types: Sequence[DataType]) -> Collector[Distinct]:
        return ValuesCollector(types[0], self.limit)

    def label(self, node: Predicate, target: Target) -> Clause | None:
        leaf = leaf_of(node, target.operands[0], target.types[0])
        if leaf is None:
            return None
        return end_clause(
            leaf,
            target,
            length=self.length,
            end_of=self._cut,
            test="ends",
            certain=text_suffix,
        )

    def _cut(self, text: str) -> str:
        return text[-self.length :]
