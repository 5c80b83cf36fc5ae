"""`BloomFilter`: fingerprints of each object's values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

from es_skipping.clauses.clause import Clause
from es_skipping.clauses.metadata import Fingerprints, Kind, Values
from es_skipping.clauses.questions import HasNotNull, Range
from es_skipping.indexes.base import Collector, Target
from es_skipping.indexes.labels import IsOneOf, Leaf, Text, Within, constraint_on, value_clause
from es_skipping.indexes.toolkit.arguments import require_share
from es_skipping.indexes.toolkit.column import ColumnIndex, only
from es_skipping.indexes.toolkit.hashes import Hashes, fingerprints, hashes_of, merge_hashes
from es_skipping.indexes.toolkit.summaries import plain
from es_skipping.predicates.tree import Predicate
from es_skipping.predicates.types import DataType

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["BloomFilter"]

_MAX_VALUES_PER_RANGE: Final = 64
"""A range of at most this many whole numbers or days is asked by its values."""


@dataclass(frozen=True)
class BloomFilter(ColumnIndex):
    """Fingerprints of each object's values, which say that an object does not hold a value, or probably holds it.

    For columns with very many values and filters for single ones: ids, addresses, keys. At 1 % it takes about 9 bits
    per distinct value of any type. A value that an object does not hold seems present with a probability of at most
    ``fpp``. It does not serve ranges, text patterns or negations.

    Parameters
    ----------
    column
        Name, SQL expression or Spark ``Column`` of any supported type.
    fpp
        The probability of a false positive, per object and requested value.

    References
    ----------
    *Extensible Data Skipping* (Ta-Shma, Khazma, Lushi, Feder), Table I. Bloom, *Space/Time Trade-offs in Hash Coding
    with Allowable Errors*, CACM 1970: the stores hold one fingerprint per value instead of a bit field, which takes
    less space and fits an inverted index.

    Examples
    --------
    >>> BloomFilter("request_id")
    BloomFilter(column='request_id', fpp=0.01)
    """

    fpp: float = 0.01

    kind: ClassVar[Kind] = "fingerprints"

    def __post_init__(self) -> None:
        super().__post_init__()
        require_share(self, "fpp", self.fpp)

    def collector(self, types: Sequence[DataType]) -> Collector[Hashes]:
        return _HashCollector(only(types), self.fpp)

    def label(self, node: Predicate, target: Target) -> Clause | None:
        leaf = constraint_on(node, target)
        if isinstance(leaf, Within) and (listed := _listed(leaf, only(target.types))) is not None:
            leaf = listed
        if isinstance(leaf, Text | Within) or (isinstance(leaf, IsOneOf) and leaf.negated):
            return target.ask(HasNotNull())
        return None if leaf is None else value_clause(leaf, target)


def _listed(leaf: Within, type: DataType) -> Leaf | None:
    """A range as the values in it, where it has but a few."""
    if not (type.is_integer or type.name == "date"):
        return None
    values: list[int] = []
    for wanted in leaf.ranges:
        few = _whole_numbers(wanted)
        if few is None:
            return None
        values += few
    return IsOneOf(tuple(values)) if len(values) <= _MAX_VALUES_PER_RANGE else None


def _whole_numbers(wanted: Range) -> list[int] | None:
    if not isinstance(wanted.low, int) or not isinstance(wanted.high, int):
        return None
    first, last = wanted.low + wanted.low_open, wanted.high - wanted.high_open
    return list(range(first, last + 1)) if last - first < _MAX_VALUES_PER_RANGE else None


class _HashCollector(Collector[Hashes]):
    repeats_matter = False

    def __init__(self, type: DataType, fpp: float) -> None:
        self._type = type
        self._fpp = fpp

    def partial(self, columns: Sequence[pa.Array]) -> Hashes:
        return hashes_of(plain(only(columns), self._type))

    def merge(self, first: Hashes, second: Hashes) -> Hashes:
        return merge_hashes(first, second)

    def finish(self, partial: Hashes) -> Fingerprints | Values | None:
        return fingerprints(partial, self._fpp)
