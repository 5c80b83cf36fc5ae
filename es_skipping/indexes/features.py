"""`Features`: the features of a layout that at least one row of each object satisfies."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Final

from es_skipping.clauses.clause import Ask, Clause, conjunction
from es_skipping.clauses.metadata import Kind, Values
from es_skipping.clauses.questions import AnyOf
from es_skipping.errors import IndexDefinitionError
from es_skipping.indexes.base import Collector, Index, Target
from es_skipping.indexes.toolkit.arguments import require_column, require_supported
from es_skipping.predicates.implied import Conditions
from es_skipping.predicates.normal import any_of
from es_skipping.predicates.show import show
from es_skipping.predicates.tree import IsIn, Operand, Predicate
from es_skipping.predicates.truth import predicate_of
from es_skipping.predicates.types import DataType

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column as SparkColumn

__all__ = ["WORD_BITS", "Features", "feature_words", "union_of_words"]

WORD_BITS: Final = 62
"""Features per integer."""


@dataclass(frozen=True, init=False)
class Features(Index):
    """The union vector of each object: the features that at least one of its rows satisfies.

    A feature is a condition, such as ``returnflag = 'R' AND mode IN ('AIR', 'SHIP')``. A query whose filter implies it
    skips every object without a row that satisfies it. Features may combine columns, compare two columns, or use LIKE
    and functions, which no index on one column can summarise. If all values in a query's list are features (``size =
    7``, ``size = 9``), the query skips every object without a row for any of them. The index pays if rows were laid out
    by these features: `es_skipping.layout.SOP` does that and writes this index itself.

    Sun, *Skipping-oriented Data Design for Large-Scale Analytics*, section 3.5. A null feature counts as not satisfied.

    Parameters
    ----------
    *expressions
        SQL conditions or boolean Spark Columns, over any columns that are stored in the objects.

    Examples
    --------
    >>> Features("returnflag = 'R'", "commitdate < receiptdate")
    Features(expressions=("returnflag = 'R'", 'commitdate < receiptdate'))
    """

    expressions: tuple[Any, ...]

    kind: ClassVar[Kind] = "values"

    def __init__(self, *expressions: Any, protect: str | None = None, key: str | None = None) -> None:
        if not expressions:
            raise IndexDefinitionError("Features: pass at least one condition, such as \"returnflag = 'R'\"")
        for expression in expressions:
            require_column(self, "a feature", expression)
        super().__init__(protect=protect, key=key)
        object.__setattr__(self, "expressions", expressions)

    @property
    def columns(self) -> tuple[Any, ...]:
        return self.expressions

    def named_by(self, columns: Sequence[str]) -> list[str]:
        digest = hashlib.sha256("\n".join(columns).encode("utf-8", "surrogatepass")).hexdigest()
        return [str(len(columns)), digest[:12]]

    def check(self, types: Sequence[DataType]) -> None:
        require_supported(self, types, "conditions: expressions of type boolean", "boolean")

    def collected(self, columns: Sequence[SparkColumn]) -> list[SparkColumn]:
        return feature_words(columns)

    def value_type(self, types: Sequence[DataType]) -> DataType:
        return DataType("int")

    def collector(self, types: Sequence[DataType]) -> Collector[tuple[int, ...]]:
        return _UnionCollector()

    def label(self, node: Predicate, target: Target) -> Clause | None:
        known = _conditions(target.operands)
        asks = [_asked(target, known, (number,)) for number in known.implied_by(node)]
        if isinstance(node, IsIn) and (numbers := known.one_of(node)):
            asks.append(_asked(target, known, numbers))
        return conjunction(asks) if asks else None


@lru_cache(maxsize=256)
def _conditions(operands: tuple[Operand, ...]) -> Conditions:
    return Conditions(list(map(predicate_of, operands)))


def _asked(target: Target, known: Conditions, numbers: tuple[int, ...]) -> Ask:
    """A question for a row that satisfies one of these features."""
    about = show(any_of(known.predicates[number] for number in numbers))
    return Ask(target.id, AnyOf(numbers), about=f"a row with {about}")


def feature_words(features: Sequence[SparkColumn]) -> list[SparkColumn]:
    """Boolean columns as the bits of whole numbers, `WORD_BITS` in each; null is 0.

    Bit ``i % WORD_BITS`` of word ``i // WORD_BITS`` is feature ``i``.
    """
    words = []
    for start in range(0, len(features), WORD_BITS):
        # By methods alone, so that classic columns and those of Spark Connect will do.
        bits = [
            feature.eqNullSafe(True).cast("bigint") * (1 << at)
            for at, feature in enumerate(features[start : start + WORD_BITS])
        ]
        word = bits[0]
        for bit in bits[1:]:
            word = word.bitwiseOR(bit)
        words.append(word)
    return words


def union_of_words(columns: Sequence[pa.Array]) -> tuple[int, ...]:
    """The OR of each column of `feature_words`."""
    import numpy as np

    return tuple(int(np.bitwise_or.reduce(column.to_numpy(zero_copy_only=False))) for column in columns)


class _UnionCollector(Collector["tuple[int, ...]"]):
    """The words of all rows, joined by OR."""

    repeats_matter = False

    def partial(self, columns: Sequence[pa.Array]) -> tuple[int, ...]:
        return union_of_words(columns)

    def merge(self, first: tuple[int, ...], second: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(one | other for one, other in zip(first, second, strict=True))

    def finish(self, partial: tuple[int, ...]) -> Values:
        return Values(
            frozenset(
                number * WORD_BITS + bit
                for number, word in enumerate(partial)
                for bit in range(WORD_BITS)
                if word >> bit & 1
            ),
            nulls=0,
        )
