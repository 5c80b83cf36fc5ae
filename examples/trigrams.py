"""An index type of one's own: trigrams, for ``message LIKE '%timeout%'`` over rows in any order.

Of each object it remembers every run of three characters in a text column. A string that contains "timeout" holds
"tim", "ime", "meo", "eou" and "out": an object that lacks one of them has no such row.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import pyarrow as pa

from es_skipping.clauses.clause import Clause, conjunction, disjunction
from es_skipping.clauses.metadata import Kind, Values
from es_skipping.clauses.questions import AnyOf
from es_skipping.indexes.base import Collector, Target
from es_skipping.indexes.labels import IsNull, IsOneOf, NotNull, Text, leaf_of, text_parts, value_clause
from es_skipping.indexes.registry import register
from es_skipping.indexes.toolkit.column import ColumnIndex
from es_skipping.predicates.tree import Predicate
from es_skipping.predicates.types import DataType

MOST = 20_000  # an object with more trigrams than this is left unknown


@register
@dataclass(frozen=True)
class Trigrams(ColumnIndex):
    """The runs of three characters in each object's strings (a shorter string is remembered whole)."""

    kind: ClassVar[Kind] = "values"
    wanted: ClassVar[str] = "a string without a collation"
    wanted_types: ClassVar[tuple[str, ...]] = ("string",)

    def collector(self, types: Sequence[DataType]) -> Collector[Any]:
        return TrigramCollector()

    def label(self, node: Predicate, target: Target) -> Clause | None:
        match leaf_of(node, target.operands[0], target.types[0]):
            case IsOneOf(values, negated=False):
                return disjunction(holds_all(trigrams([str(value)]), target) for value in values)
            case Text(negated=False) as text:
                return holds_all(trigrams(part for part in text_parts(text) if len(part) > 2), target)
            case IsNull() | NotNull() as leaf:
                return value_clause(leaf, target)
        return None


class TrigramCollector(Collector[tuple[frozenset[str], int]]):
    def partial(self, columns: Sequence[pa.Array]) -> tuple[frozenset[str], int]:
        return trigrams(columns[0].drop_null().to_pylist()), columns[0].null_count

    def merge(self, first: Any, second: Any) -> tuple[frozenset[str], int]:
        return first[0] | second[0], first[1] + second[1]

    def finish(self, partial: tuple[frozenset[str], int]) -> Values | None:
        return Values(*partial) if len(partial[0]) <= MOST else None


def trigrams(texts: Iterable[str]) -> frozenset[str]:
    return frozenset(text[at : at + 3] for text in texts for at in range(max(1, len(text) - 2)))


def holds_all(grams: frozenset[str], target: Target) -> Clause:
    return conjunction(target.ask(AnyOf((gram,))) for gram in sorted(grams))
