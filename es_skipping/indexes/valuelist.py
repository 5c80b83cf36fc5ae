"""`ValueList`: the distinct values of each object."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

from es_skipping.clauses.clause import Clause, conjunction
from es_skipping.clauses.metadata import Kind, Values
from es_skipping.clauses.questions import TextMatch
from es_skipping.indexes.base import Collector, Target
from es_skipping.indexes.labels import Leaf, Text, constraint_on, text_prefix, value_clause
from es_skipping.indexes.toolkit.arguments import require_positive
from es_skipping.indexes.toolkit.column import ColumnIndex, only
from es_skipping.indexes.toolkit.summaries import (
    Distinct,
    distinct,
    merge_distinct,
    plain,
    python_values,
)
from es_skipping.predicates.tree import Predicate
from es_skipping.predicates.types import DataType

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["DEFAULT_LIMIT", "LIMIT_BYTES", "ValueList", "ValuesCollector", "listed_clause", "listed_values"]

DEFAULT_LIMIT: Final = 10_000
LIMIT_BYTES: Final = 1 << 20
"""Limit in bytes of one object's values, in addition to the count."""


@dataclass(frozen=True)
class ValueList(ColumnIndex):
    """The distinct values of each object, and its numbers of nulls and NaNs.

    Effective if each object holds few distinct values, in any order: cities, states, tenants. The only index that
    serves every string test, and the most precise one for negations.

    Parameters
    ----------
    column
        Name, SQL expression or Spark ``Column`` of any supported type.
    limit
        An object with more distinct values than this (or with more than a mebibyte of values) is unknown to this index,
        which then never skips it.

    Examples
    --------
    >>> ValueList("city", limit=500)
    ValueList(column='city', limit=500)
    """

    limit: int = DEFAULT_LIMIT

    kind: ClassVar[Kind] = "values"

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive(self, "limit", self.limit)

    def collector(self, types: Sequence[DataType]) -> Collector[Distinct]:
        return ValuesCollector(only(types), self.limit)

    def label(self, node: Predicate, target: Target) -> Clause | None:
        leaf = constraint_on(node, target)
        return None if leaf is None else listed_clause(leaf, target)


def listed_clause(leaf: Leaf, target: Target) -> Clause | None:
    """The clause of a leaf for an index that lists the values themselves: every test of a string can be asked of them,
    and everything else of `value_clause`."""
    if not isinstance(leaf, Text):
        return value_clause(leaf, target)
    clause = target.ask(TextMatch(leaf.test, leaf.pattern, leaf.escape, leaf.negated))
    prefix = text_prefix(leaf)
    if leaf.test in ("like", "rlike") and not leaf.negated and prefix:
        # Not every store can run every pattern: the beginning, which all can, goes with it.
        return conjunction([clause, target.ask(TextMatch("starts", prefix))])
    return clause


class ValuesCollector(Collector[Distinct]):
    """Gathers distinct values, up to ``limit`` of them and `LIMIT_BYTES`."""

    repeats_matter = False

    def __init__(self, type: DataType, limit: int) -> None:
        self._type = type
        self._limit = self.distinct_limit = limit

    def partial(self, columns: Sequence[pa.Array]) -> Distinct:
        return distinct(plain(only(columns), self._type), self._limit, LIMIT_BYTES)

    def merge(self, first: Distinct, second: Distinct) -> Distinct:
        return merge_distinct(first, second, self._limit, LIMIT_BYTES)

    def finish(self, partial: Distinct) -> Values | None:
        return listed_values(
            merge_distinct(partial, Distinct((), 0, 0), self._limit, LIMIT_BYTES, compact=True), self._type
        )


def listed_values(gathered: Distinct, type: DataType) -> Values | None:
    """The metadata of an object's values, of at most one chunk; None where they were too many or are no UTF-8."""
    values = None if gathered.chunks is None else python_values(gathered.chunks, type)
    return None if values is None else Values(values, gathered.nulls, gathered.nans)
