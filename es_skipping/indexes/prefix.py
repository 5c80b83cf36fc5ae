"""`Prefix`: how the strings of each object begin."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from es_skipping.clauses.clause import Clause
from es_skipping.clauses.metadata import Kind
from es_skipping.clauses.questions import Overlaps, Range
from es_skipping.indexes.arguments import (
    require_column,
    require_positive,
    require_supported,
)
from es_skipping.indexes.base import Collector, Index, Target
from es_skipping.indexes.ends import checked_end, end_clause
from es_skipping.indexes.labels import Within, common_range, leaf_of, text_prefix
from es_skipping.indexes.summaries import Distinct
from es_skipping.indexes.valuelist import DEFAULT_LIMIT, ValuesCollector
from es_skipping.predicates.tree import Predicate
from es_skipping.predicates.types import DataType

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn

__all__ = ["Prefix"]


@dataclass(frozen=True)
class Prefix(Index):
    """The distinct beginnings of each object's strings.

    For columns with too many values for a list whose beginnings are few: names with a tenant or a date in front, URLs,
    paths.

    Parameters
    ----------
    column
        Name, SQL expression or Spark ``Column`` of type string.
    length
        How many code points are remembered of each string.
    limit
        An object with more distinct beginnings than this (or more than a mebibyte of them) is remembered as unknown.

    Examples
    --------
    >>> Prefix("db_name", length=15)
    Prefix(column='db_name', length=15, limit=10000)
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

        # Spark takes no byte for the first of a character of more than four.
        return [checked_end(columns[0], F.substring(columns[0], 1, self.length), safe_bytes=4 * self.length)]

    def value_type(self, types: Sequence[DataType]) -> DataType:
        return types[0]

    def collector(self, types: Sequence[DataType]) -> Collector[Distinct]:
        return ValuesCollector(types[0], self.limit)

    def label(self, node: Predicate, target: Target) -> Clause | None:
        operand, type = target.operands[0], target.types[0]
        leaf = common_range(node, operand, type) or leaf_of(node, operand, type)
        if leaf is None:
            return None
        if isinstance(leaf, Within) and leaf.ranges:
            return target.ask(Overlaps(tuple(map(self._reach, leaf.ranges))))
        return end_clause(
            leaf,
            target,
            length=self.length,
            end_of=self._cut,
            test="starts",
            certain=text_prefix,
        )

    def _cut(self, text: str) -> str:
        return text[: self.length]

    def _reach(self, wanted: Range) -> Range:
        """Where the beginning of a string can lie that lies in this range.

        A beginning is never above its string, so a bound from above holds as it is. Cutting keeps the order, so
        x >= v implies cut(x) >= cut(v); and x > v implies cut(x) > v only where nothing was cut off v, nor could be.
        """
        low = wanted.low
        if not isinstance(low, str) or len(low) < self.length:
            return wanted
        return replace(wanted, low=self._cut(low), low_open=False)
