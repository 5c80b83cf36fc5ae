"""`Prefix`: the distinct beginnings of each object's strings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Literal

from es_skipping.clauses.clause import Clause
from es_skipping.clauses.questions import Overlaps, Range
from es_skipping.indexes.base import Target
from es_skipping.indexes.labels import Text, Within, constraint_on, text_prefix
from es_skipping.indexes.toolkit.column import only
from es_skipping.indexes.toolkit.ends import EndIndex, checked_end, end_of_each
from es_skipping.predicates.tree import Predicate

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column as SparkColumn

__all__ = ["Prefix"]


@dataclass(frozen=True)
class Prefix(EndIndex):
    """The distinct beginnings of each object's strings.

    For columns with too many values for a list but few beginnings: names that start with a tenant or a date, URLs,
    paths.

    Parameters
    ----------
    column
        Name, SQL expression or Spark ``Column`` of type string.
    length
        Number of code points to store of each string.
    limit
        An object with more distinct beginnings than this (or more than a mebibyte of them) is unknown to the index.

    Examples
    --------
    >>> Prefix("db_name", length=15)
    Prefix(column='db_name', length=15, limit=10000)
    """

    test: ClassVar[Literal["starts", "ends"]] = "starts"

    def collected(self, columns: Sequence[SparkColumn]) -> list[SparkColumn]:
        from pyspark.sql import functions as F

        # Spark takes no byte for the first of a character of more than four.
        return [checked_end(only(columns), F.substring(only(columns), 1, self.length), safe_bytes=4 * self.length)]

    def collected_arrays(self, columns: Sequence[pa.Array]) -> list[pa.Array]:
        return [end_of_each(only(columns), 0, self.length)]

    def label(self, node: Predicate, target: Target) -> Clause | None:
        leaf = constraint_on(node, target)
        if leaf is None:
            return None
        if isinstance(leaf, Within) and leaf.ranges:
            return target.ask(Overlaps(tuple(map(self._reach, leaf.ranges))))
        return self.end_clause(leaf, target)

    def end_of(self, text: str) -> str:
        return text[: self.length]

    def certain(self, text: Text) -> tuple[str, ...]:
        return (text_prefix(text),)

    def _reach(self, wanted: Range) -> Range:
        """Where the beginning of a string can lie that lies in this range.

        A beginning is never above its string, so a bound from above holds as it is. Cutting keeps the order, so
        x >= v implies cut(x) >= cut(v); and x > v implies cut(x) > v only where nothing was cut off v, nor could be.
        """
        low = wanted.low
        if not isinstance(low, str) or len(low) < self.length:
            return wanted
        return replace(wanted, low=self.end_of(low), low_open=False)
