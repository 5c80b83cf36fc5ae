"""`Suffix`: the distinct endings of each object's strings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from es_skipping.clauses.clause import Clause
from es_skipping.indexes.base import Target
from es_skipping.indexes.labels import Text, leaf_of, text_endings
from es_skipping.indexes.toolkit.column import only
from es_skipping.indexes.toolkit.ends import EndIndex, checked_end, end_of_each
from es_skipping.predicates.tree import Predicate

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column as SparkColumn

__all__ = ["Suffix"]


@dataclass(frozen=True)
class Suffix(EndIndex):
    """The distinct endings of each object's strings.

    For tests of a string's end, which neither an order of rows nor least and greatest values can help: file extensions,
    domains, the last parts of paths.

    Parameters
    ----------
    column
        Name, SQL expression or Spark ``Column`` of type string.
    length
        Number of code points to store of each string.
    limit
        An object with more distinct endings than this (or more than a mebibyte of them) is unknown to the index.

    Examples
    --------
    >>> Suffix("path", length=4)
    Suffix(column='path', length=4, limit=10000)
    """

    test: ClassVar[Literal["starts", "ends"]] = "ends"

    def collected(self, columns: Sequence[SparkColumn]) -> list[SparkColumn]:
        from pyspark.sql import functions as F

        # A string shorter than the length is taken whole.
        return [checked_end(only(columns), F.substring(only(columns), -self.length, self.length))]

    def collected_arrays(self, columns: Sequence[pa.Array]) -> list[pa.Array]:
        return [end_of_each(only(columns), -self.length, None)]

    def label(self, node: Predicate, target: Target) -> Clause | None:
        leaf = leaf_of(node, only(target.operands), only(target.types))
        if leaf is None:
            return None
        return self.end_clause(leaf, target)

    def end_of(self, text: str) -> str:
        return text[-self.length :]

    def certain(self, text: Text) -> tuple[str, ...]:
        return text_endings(text)
