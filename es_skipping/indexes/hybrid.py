"""`Hybrid`: a value list for objects with few values, fingerprints for the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, TypeAlias

from es_skipping.clauses.clause import Clause
from es_skipping.clauses.metadata import Fingerprints, Kind, Values
from es_skipping.indexes.base import Collector, Target
from es_skipping.indexes.labels import constraint_on
from es_skipping.indexes.toolkit.arguments import require_positive, require_share
from es_skipping.indexes.toolkit.column import ColumnIndex, only
from es_skipping.indexes.toolkit.hashes import Hashes, fingerprints, hashes_of, hashes_of_distinct, merge_hashes
from es_skipping.indexes.toolkit.summaries import Distinct, distinct, merge_distinct, plain
from es_skipping.indexes.valuelist import DEFAULT_LIMIT, LIMIT_BYTES, listed_clause, listed_values
from es_skipping.predicates.tree import Predicate
from es_skipping.predicates.types import DataType

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Hybrid"]


@dataclass(frozen=True)
class Hybrid(ColumnIndex):
    """A value list for objects with few distinct values, fingerprints for objects with many.

    The safe choice if the number of values per object is unknown. For small objects it serves everything that a
    `ValueList` serves. For large ones, which are unknown to a `ValueList`, it still serves ``=`` and ``IN``.

    Parameters
    ----------
    column
        Name, SQL expression or Spark ``Column`` of any supported type.
    threshold
        Objects with at most this many distinct values (and at most a mebibyte of them) get a value list.
    fpp
        The probability of a false positive in the other objects, per object and requested value.

    References
    ----------
    *Extensible Data Skipping* (Ta-Shma, Khazma, Lushi, Feder), Table I.

    Examples
    --------
    >>> Hybrid("user_id", threshold=500)
    Hybrid(column='user_id', threshold=500, fpp=0.01)
    """

    threshold: int = DEFAULT_LIMIT
    fpp: float = 0.01

    kind: ClassVar[Kind] = "fingerprints"

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive(self, "threshold", self.threshold)
        require_share(self, "fpp", self.fpp)

    def collector(self, types: Sequence[DataType]) -> Collector[Gathered]:
        return _HybridCollector(only(types), self.threshold, self.fpp)

    def label(self, node: Predicate, target: Target) -> Clause | None:
        leaf = constraint_on(node, target)
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
        column = plain(only(columns), self._type)
        few = distinct(column, self._threshold, LIMIT_BYTES)
        return few if few.chunks is not None else hashes_of(column)

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
                return listed_values(few, self._type)
        return fingerprints(_as_hashes(partial), self._fpp)


def _as_hashes(gathered: Gathered) -> Hashes:
    return gathered if isinstance(gathered, Hashes) else hashes_of_distinct(gathered)
