"""The animals: each a public bug by which rows were lost, and beside it the same evaluator with the bug mended.

Every evaluator is a `Peer` with one method as that system had it. They are written from the descriptions in the linked
threads; no code is taken from there. Where a limit of the original is large, it is scaled down to reach small objects.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from es_skipping.predicates.tree import Cast, Comparison, IsIn, Literal, Predicate
from es_skipping.predicates.types import DataType
from tests.predicates.rows import cast as cast_value
from tests.zoo.peer import Evaluator, Object, Peer, Stats, is_nan, key

__all__ = ["ANIMALS", "Animal"]


@dataclass(frozen=True)
class Animal:
    """One bug.

    Parameters
    ----------
    project, number
        Whose, and the issue's or pull request's number there.
    lost
        What was lost, and why.
    wrong, mended
        The evaluator with the bug, and without it.
    types
        Columns of which types can show it.
    kind
        ``issues`` or ``pull``.
    also
        Threads of others about the same mistake.
    """

    project: str
    number: int
    lost: str
    wrong: Evaluator
    mended: Evaluator
    types: tuple[str, ...]
    kind: str = "issues"
    also: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return f"{self.project}#{self.number}"

    @property
    def url(self) -> str:
        return f"https://github.com/{self.project}/{self.kind}/{self.number}"


# --- NaN ----------------------------------------------------------------------------------------------------------


class _NaNClearsBounds(Peer):
    """Parquet's Java writer drops a column's bounds when it meets a NaN. Nobody counts NaNs."""

    def remember(self, values: Sequence[Any], type: DataType) -> Stats:
        stats = super().remember(values, type)
        return replace(stats, low=None, high=None, nans=None) if stats.nans else stats


class _DroppedBoundsAreZero(_NaNClearsBounds):
    """The fields of the dropped bounds are still there, and hold 0.0: they were recorded as bounds."""

    def remember(self, values: Sequence[Any], type: DataType) -> Stats:
        stats = super().remember(values, type)
        return replace(stats, low=0.0, high=0.0, nans=0) if stats.nans is None else stats  # Parquet counts the nulls


class _NaNIsNowhere(Peer):
    """Writers that leave NaN out of the bounds and count none: such bounds of floats are not to be used."""

    def remember(self, values: Sequence[Any], type: DataType) -> Stats:
        stats = super().remember(values, type)
        return replace(stats, low=None, high=None, nans=None) if type.is_float else stats


class _BoundsHoldAll(Peer):
    """The bounds are taken to hold every value that is not null."""

    def nan(self, stats: Stats) -> bool:
        return False

    def leaf(self, node: Predicate, stats: Stats) -> bool:
        only_nan = stats.low is None and stats.nulls != stats.rows
        return only_nan or super().leaf(node, stats)


class _FloatsAreKept(Peer):
    """Of floats nothing is decided but what bounds that leave NaN out can prove: equality, and what is below."""

    def nan(self, stats: Stats) -> bool:
        return True


class _OneBoundIsOneValue(_FloatsAreKept):
    """``<>`` skips where both bounds are the value, though a NaN may stand beside them."""

    def leaf(self, node: Predicate, stats: Stats) -> bool:
        unequal = isinstance(node, Comparison) and node.comparator == "<>"
        if (unequal or (isinstance(node, IsIn) and node.negated)) and stats.low is not None:
            values = node.values if isinstance(node, IsIn) else (node.right.value,)  # type: ignore[union-attr]
            return self.other_than(values, stats)
        return super().leaf(node, stats)


# --- what is unknown ----------------------------------------------------------------------------------------------

_STATISTICS_BYTES = 1
"""Longer strings have no statistics. Parquet's Java writer has such a limit too, of about a thousand bytes."""


class _LongStrings(Peer):
    """A column with a long string has no statistics at all."""

    def remember(self, values: Sequence[Any], type: DataType) -> Stats:
        if any(isinstance(value, str) and len(key(value)) > _STATISTICS_BYTES for value in values):
            return Stats(len(values), None, None)
        return super().remember(values, type)


class _NoStatisticsIsAllNull(_LongStrings):
    """Where there are no statistics, every row was recorded as null."""

    def remember(self, values: Sequence[Any], type: DataType) -> Stats:
        stats = super().remember(values, type)
        return replace(stats, nulls=stats.rows) if stats.nulls is None else stats


class _AddedColumn(Peer):
    """An object in which a column is null throughout is one from before the column was added: nothing is recorded."""

    def remember(self, values: Sequence[Any], type: DataType) -> Stats:
        stats = super().remember(values, type)
        return Stats(stats.rows, None, None) if stats.nulls == stats.rows else stats


class _UnknownIsNotAboveZero(_AddedColumn):
    """``IS NULL`` became ``nullCount > 0``, which is null where the count is, and so not true."""

    def null(self, stats: Stats) -> bool:
        return stats.nulls is not None and stats.nulls > 0


class _NoCounts(Peer):
    """A writer that records bounds and no counts, which a manifest need not have."""

    def remember(self, values: Sequence[Any], type: DataType) -> Stats:
        return replace(super().remember(values, type), nulls=None, nans=None)


class _NoCountIsNone(_NoCounts):
    """A missing count of nulls, and of values, is read as none."""

    def null(self, stats: Stats) -> bool:
        return False

    def not_null(self, stats: Stats) -> bool:
        return False


class _CountsOfGroups(Peer):
    """Each row is a row group, and every second one was written by a writer that counts no nulls."""

    def remember(self, values: Sequence[Any], type: DataType) -> Stats:
        counts = [None if place % 2 else int(value is None) for place, value in enumerate(values)]
        return replace(super().remember(values, type), nulls=self.total(counts))

    def total(self, counts: Sequence[int | None]) -> int | None:
        return None if None in counts else sum(count for count in counts if count is not None)


class _UnknownIsMinusOne(_CountsOfGroups):
    """An unknown count is -1, and is added like the others; only a negative sum is unknown."""

    def total(self, counts: Sequence[int | None]) -> int | None:
        found = sum(-1 if count is None else count for count in counts)
        return found if found >= 0 else None


class _EmptyIsNull(Peer):
    """A bound is stored as its bytes, and null as no bytes: '' comes back as null, and the object as one of nulls."""

    def remember(self, values: Sequence[Any], type: DataType) -> Stats:
        stats = super().remember(values, type)
        return replace(stats, low=None, high=None, nulls=stats.rows) if stats.low == "" else stats


class _FirstGroup(Peer):
    """An object's statistics are those of its first row group."""

    def remember(self, values: Sequence[Any], type: DataType) -> Stats:
        return super().remember(values[: max(1, len(values) // 2)], type)


class _HalfIndexed(Peer):
    """The index was built when the dataset had the first half of its objects."""

    skips_unindexed = False

    def skipped(self, objects: Sequence[Object], predicate: Predicate) -> Sequence[bool]:
        indexed = (len(objects) + 1) // 2
        others = [self.skips_unindexed] * (len(objects) - indexed)
        return [*super().skipped(objects[:indexed], predicate), *others]


class _UnindexedIsPruned(_HalfIndexed):
    """The objects to read are chosen among those that the index knows."""

    skips_unindexed = True


# --- rules --------------------------------------------------------------------------------------------------------


class _PrefixIsEqual(Peer):
    """What starts with a prefix was looked for as if it were equal to the prefix."""

    def starts(self, prefix: str, stats: Stats) -> bool:
        return self.equal(prefix, stats)


class _OtherIsOutside(Peer):
    """``<>`` kept an object only if the value lies outside of its bounds."""

    def other_than(self, values: Sequence[Any], stats: Stats) -> bool:
        return all(not self.equal(value, stats) for value in values)


class _NotIsTheComplement(Peer):
    """``IS NOT NULL`` kept the objects that ``IS NULL`` skips."""

    def not_null(self, stats: Stats) -> bool:
        return not self.null(stats)


class _ImageOfTheBounds(Peer):
    """An expression's range was taken to lie between its values at the bounds, whether or not it keeps the order."""

    def of_cast(self, node: Predicate, cast: Cast, stats: Stats) -> bool:
        numbers = cast.child.type.is_integer and (cast.type.is_integer or cast.type.name == "string")
        if stats.low is None or not numbers or not isinstance(node, Comparison | IsIn):
            return True
        low, high = (cast_value(end, cast.child.type.name, cast.type) for end in (stats.low, stats.high))
        if low is None or high is None or is_nan(low) or is_nan(high):
            return True
        return self.leaf(node, replace(stats, low=low, high=high, nans=None))


# --- encodings ----------------------------------------------------------------------------------------------------


class _Milliseconds(Peer):
    """Bounds are written in milliseconds, rounded down; a reader adds what may have been cut off."""

    cut = 999

    def remember(self, values: Sequence[Any], type: DataType) -> Stats:
        stats = super().remember(values, type)
        if stats.low is None or not type.name.startswith("timestamp"):
            return stats
        return replace(stats, low=stats.low // 1000 * 1000, high=stats.high // 1000 * 1000 + self.cut)


class _CutMaximum(_Milliseconds):
    """The greatest value is used as it was cut."""

    cut = 0


class _Bloom(Peer):
    """A Bloom filter without false positives: it answers ``=`` and ``IN`` by what stands for the values."""

    def remember(self, values: Sequence[Any], type: DataType) -> Stats:
        held = frozenset(self.hash(value) for value in values if value is not None)
        return Stats(len(values), None, None, hashes=held)

    def leaf(self, node: Predicate, stats: Stats) -> bool:
        assert stats.hashes is not None
        match node:
            case Comparison("=", _, Literal(value)):
                return self.hash(value) in stats.hashes
            case IsIn(_, values, False):
                return any(self.hash(value) in stats.hashes for value in values)
        return True

    def hash(self, value: Any) -> bytes:
        return self.bits(0.0 if value == 0 else value)

    @staticmethod
    def bits(value: Any) -> bytes:
        return struct.pack("<d", value) if isinstance(value, float) else repr(key(value)).encode()


class _TwoZeros(_Bloom):
    """The hash is that of the bits, in which the two zeros differ."""

    def hash(self, value: Any) -> bytes:
        return self.bits(value)


# --- all of them --------------------------------------------------------------------------------------------------

ANIMALS = (
    Animal(
        "apache/hudi", 18754, "a NaN clears the bounds of a Parquet column; their fields, 0.0, were recorded as bounds",
        _DroppedBoundsAreZero(), _NaNClearsBounds(), ("double",),
    ),
    Animal(
        "apache/hudi", 18755, "a string too long for Parquet's statistics made the whole column null",
        _NoStatisticsIsAllNull(), _LongStrings(), ("string",),
    ),
    Animal(
        "apache/hudi", 18791, "`LIKE 'p%'` was answered as `= 'p'`",
        _PrefixIsEqual(), Peer(), ("string",),
    ),
    Animal(
        "apache/hudi", 19645, "`IS NULL` became `nullCount > 0`, which skips where the count is unknown",
        _UnknownIsNotAboveZero(), _AddedColumn(), ("int", "string", "double"),
    ),
    Animal(
        "delta-io/delta", 7101, "bounds from footers that leave NaN out were used as if they held every value",
        _BoundsHoldAll(), _NaNIsNowhere(), ("double",), "pull",
        ("apache/datafusion#15812", "duckdb/duckdb#25521", "ClickHouse/ClickHouse#118110"),
    ),
    Animal(
        "apache/paimon-rust", 795, "`<> v` skipped an object with v and NaN, whose bounds are both v",
        _OneBoundIsOneValue(), _FloatsAreKept(), ("double",), "pull", ("ClickHouse/ClickHouse#121481",),
    ),
    Animal(
        "alibaba/paimon-cpp", 436, "an empty string as least key was read back as null, and the object as one of nulls",
        _EmptyIsNull(), Peer(), ("string",), "pull",
    ),
    Animal(
        "apache/iceberg", 17558, "a missing null count was added as -1, and a file with nulls counted none",
        _UnknownIsMinusOne(), _CountsOfGroups(), ("int", "string", "double"),
    ),
    Animal(
        "duckdb/duckdb-iceberg", 782, "missing counts were read as 0: `IS NULL` and `IS NOT NULL` skipped every file",
        _NoCountIsNone(), _NoCounts(), ("int", "string", "double"),
    ),
    Animal(
        "duckdb/duckdb-iceberg", 1052, "an expression's range was computed from the bounds, though it keeps no order",
        _ImageOfTheBounds(), Peer(), ("casts",),
    ),
    Animal(
        "apache/datafusion", 561, "`<> v` skipped every object whose bounds enclose v",
        _OtherIsOutside(), Peer(), ("int", "string", "double"), "pull", ("Xskipper, seen when run",),
    ),
    Animal(
        "apache/datafusion", 9230, "`IS NOT NULL` skipped every object with a null, as the contrary of `IS NULL`",
        _NotIsTheComplement(), Peer(), ("int", "string", "double"), "issues", ("lance-format/lance#5171",),
    ),
    Animal(
        "delta-io/delta-kernel-rs", 1003, "the greatest timestamp, cut to milliseconds, was below those of the file",
        _CutMaximum(), _Milliseconds(), ("timestamp",), "pull",
        ("trinodb/trino#31231",),
    ),
    Animal(
        "databendlabs/databend", 20520, "a Bloom filter hashed the bits of -0.0, and `= 0.0` did not find it",
        _TwoZeros(), _Bloom(), ("double",), "issues", ("duckdb/duckdb#23829", "lance-format/lance#6236"),
    ),
    Animal(
        "milvus-io/milvus", 51440, "the bounds of the first row group stood for several",
        _FirstGroup(), Peer(), ("int", "string", "double"),
    ),
    Animal(
        "lance-format/lance-spark", 780, "fragments that the index does not cover were pruned",
        _UnindexedIsPruned(), _HalfIndexed(), ("int", "string", "double"),
    ),
)  # fmt: skip
