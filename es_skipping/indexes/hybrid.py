"""`Hybrid`: a value list of objects with few values, fingerprints of the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from es_skipping.clauses.clause import Clause
from es_skipping.clauses.metadata import Fingerprints, Kind, Values
from es_skipping.indexes.arguments import require_column, require_positive, require_share, require_supported
from es_skipping.indexes.base import Collector, Index, Target
from es_skipping.indexes.hashes import Hashes, fingerprints, hashes_of, merge_hashes
from es_skipping.indexes.labels import common_range, leaf_of
from es_skipping.indexes.summaries import Distinct, Plain, distinct, merge_distinct, plain, python_values
from es_skipping.indexes.valuelist import DEFAULT_LIMIT, LIMIT_BYTES, listed_clause
from es_skipping.predicates.tree import Predicate
from es_skipping.predicates.types import DataType

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Hybrid"]


@dataclass(frozen=True)
class Hybrid(Index):
    """A value list of each object that has few distinct values, fingerprints of each that has many.

    The safe choice where it is not known how many values an object will have: what a `ValueList` answers it answers for
    the small objects, and for the large ones, of which a `ValueList` would know nothing, still ``=`` and ``IN``.

    Parameters
    ----------
    column
        Name, SQL expression or Spark ``Column`` of any supported type.
    threshold
        Objects of at most so many distinct values (and at most a mebibyte of them) have them listed.
    fpp
        The probability of a false positive among the others, per object and value asked for.

    References
    ----------
    *Extensible Data Skipping* (Ta-Shma, Khazma, Lushi, Feder), Table I.

    Examples
    --------
    >>> Hybrid("user_id", threshold=500)
    Hybrid(column='user_id', threshold=500, fpp=0.01)
    """

    column: Any
    threshold: int = DEFAULT_LIMIT
    fpp: float = 0.01

    kind: ClassVar[Kind] = "fingerprints"

    def __post_init__(self) -> None:
        require_column(self, "column", self.column)
        require_positive(self, "threshold", self.threshold)
        require_share(self, "fpp", self.fpp)

    @property
    def columns(self) -> tuple[Any, ...]:
        return (self.column,)

    @property
    def parameters(self) -> dict[str, int | float | str]:
        return {"threshold": self.threshold, "fpp": self.fpp}

    def check(self, types: Sequence[DataType]) -> None:
        require_supported(
            self,
            types,
            "a number, string, binary, boolean, date or timestamp, without a collation",
        )

    def value_type(self, types: Sequence[DataType]) -> DataType:
        return types[0]

    def collector(self, types: Sequence[DataType]) -> Collector[Gathered]:
        return _HybridCollector(types[0], self.threshold, self.fpp)

    def label(self, node: Predicate, target: Target) -> Clause | None:
        operand, type = target.operands[0], target.types[0]
        leaf = common_range(node, operand, type) or leaf_of(node, operand, type)
        return None if leaf is None else listed_clause(leaf, target)


Gathered: TypeAlias = Distinct | Hashes
"""Values while they are few, then their hashes."""


class _HybridCollector(Collector[Gathered]):
    repeats_matter = False

    def __init__(self, type: DataType, threshold: int, fpp: float) -> None:
        self._type = type
        self._threshold = threshold
        self._fpp = fpp

    def partial(self, columns: Sequence[pa.Array]) -> Gathered:
        column = plain(columns[0], self._type)
        few = distinct(column, self._threshold, LIMIT_BYTES)
        return few if few.chunks is not None else _hashed(column)

    def merge(self, first: Gathered, second: Gathered) -> Gathered:
        if isinstance(first, Distinct) and isinstance(second, Distinct):
            few = merge_distinct(first, second, self._threshold, LIMIT_BYTES)
            if few.chunks is not None:
                return few
        return merge_hashes(_as_hashes(first), _as_hashes(second))

    def finish(self, partial: Gathered) -> Values | Fingerprints | None:
        if isinstance(partial, Distinct):
            few = merge_distinct(partial, Distinct((), 0, 0), self._threshold, LIMIT_BYTES, compact=True)
            if few.chunks is not None:
                values = python_values(few.chunks, self._type)
                return None if values is None else Values(values, few.nulls, few.nans)
        return fingerprints(_as_hashes(partial), self._fpp)


def _hashed(column: Plain) -> Hashes:
    return hashes_of([column.array], column.nulls, column.nans)


def _as_hashes(gathered: Gathered) -> Hashes:
    if isinstance(gathered, Hashes):
        return gathered
    return hashes_of(gathered.chunks or (), gathered.nulls, gathered.nans)
