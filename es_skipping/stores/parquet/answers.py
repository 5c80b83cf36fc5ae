"""Loaded columns of a segment: each answers a question for all rows at once.

An answer is a boolean per row, *refuted*: the metadata proves the question false for the object. Missing metadata and
undecidable questions refute nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from es_skipping.clauses.questions import (
    AnyOf,
    HasNaN,
    HasNotNull,
    HasNull,
    Meets,
    OtherThan,
    Overlaps,
    Question,
    Range,
    TextMatch,
)
from es_skipping.predicates.text import text_test
from es_skipping.predicates.types import DataType, Value, parse_type
from es_skipping.stores.parquet.types import Comparable, Incomparable, Physical, bound, comparable, exact

__all__ = [
    "BoxesColumn",
    "CountedColumn",
    "IntervalsColumn",
    "LoadedColumn",
    "Rows",
    "Truths",
    "ValuesColumn",
    "is_empty",
    "offsets_of",
    "size_of",
]

Truths: TypeAlias = npt.NDArray[np.bool_]
_MAX_LITERALS_ONE_BY_ONE: Final = 8
_MAX_SLICES: Final = 64
"""Values whose rows are copied one value after another: of more, one mask over all rows is faster."""


class Rows:
    """Maps the elements of a flat array to rows."""

    def __init__(self, offsets: npt.NDArray[np.int32]) -> None:
        self.offsets = offsets
        self.one_each = bool(np.array_equal(offsets, np.arange(len(offsets), dtype=offsets.dtype)))

    @property
    def empty(self) -> Truths:
        return np.equal(self.offsets[1:], self.offsets[:-1])

    def any(self, truths: Truths) -> Truths:
        """Per row, whether the condition is true for any of its elements."""
        if self.one_each:
            return truths
        sums = np.zeros(len(truths) + 1, np.int32)
        np.cumsum(truths, out=sums[1:], dtype=np.int32)
        found: Truths = sums[self.offsets[1:]] > sums[self.offsets[:-1]]
        return found


# --- comparisons, exact for every type ----------------------------------------------------------------------------


def _compared(column: Comparable, value: Physical, with_numpy: np.ufunc, with_arrow: Callable[..., pa.Array]) -> Truths:
    if isinstance(column, np.ndarray):
        truths: Truths = with_numpy(column, value)
        return truths
    found: Truths = with_arrow(column, pa.scalar(value, column.type)).to_numpy(zero_copy_only=False)
    return found


def _reaches(low: Comparable, high: Comparable, wanted: Range, type: DataType) -> Truths | None:
    """Which of these closed intervals overlap the range; None if none does."""
    smallest, low_equal = (None, False) if wanted.low is None else bound(wanted.low, type, "low")
    largest, high_equal = (None, False) if wanted.high is None else bound(wanted.high, type, "high")
    if is_empty(wanted) or (smallest is None) != (wanted.low is None) or (largest is None) != (wanted.high is None):
        return None
    truths = np.ones(len(low), np.bool_)
    if smallest is not None:
        if wanted.low_open and low_equal:
            truths &= _compared(high, smallest, np.greater, pc.greater)
        else:
            truths &= _compared(high, smallest, np.greater_equal, pc.greater_equal)
    if largest is not None:
        if wanted.high_open and high_equal:
            truths &= _compared(low, largest, np.less, pc.less)
        else:
            truths &= _compared(low, largest, np.less_equal, pc.less_equal)
    return truths


def is_empty(wanted: Range) -> bool:
    """Whether a range with ends of one type contains no value."""
    if wanted.low is None or wanted.high is None:
        return False
    if wanted.low_open or wanted.high_open:
        return not wanted.low < wanted.high  # type: ignore[operator]
    return not wanted.low <= wanted.high  # type: ignore[operator]


def _literals(values: Sequence[Value], type: DataType, like: Comparable) -> Comparable:
    """The literals that a value of the type can equal, in ascending order."""
    found = {physical for physical in (exact(value, type) for value in values) if physical is not None}
    ordered = sorted(found)
    return np.array(ordered, like.dtype) if isinstance(like, np.ndarray) else pa.array(ordered, like.type)


def _is_in(column: Comparable, literals: Comparable) -> Truths:
    if isinstance(column, np.ndarray):
        return np.isin(column, literals)
    found: Truths = pc.is_in(column, value_set=literals).to_numpy(zero_copy_only=False)
    return found


def _covers(low: Comparable, high: Comparable, literals: Comparable) -> Truths:
    """Which of these closed intervals cover any of the ascending literals."""
    count = len(literals)
    if not count:
        return np.zeros(len(low), np.bool_)
    if count <= _MAX_LITERALS_ONE_BY_ONE:
        truths = np.zeros(len(low), np.bool_)
        for literal in literals:
            value = literal.as_py() if isinstance(literal, pa.Scalar) else literal
            above = _compared(low, value, np.less_equal, pc.less_equal)
            truths |= above & _compared(high, value, np.greater_equal, pc.greater_equal)
        return truths
    at = _first_at_least(literals, low)
    nearest = np.minimum(at, count - 1)
    if isinstance(low, np.ndarray):
        covered: Truths = (at < count) & (literals[nearest] <= high)
        return covered
    reached: Truths = pc.less_equal(literals.take(pa.array(nearest)), high).to_numpy(zero_copy_only=False)
    return (at < count) & reached


def _first_at_least(literals: Comparable, column: Comparable) -> np.ndarray:
    """For each element, the position of the first literal that is not less, by one vectorised binary search."""
    if isinstance(column, np.ndarray):
        return np.searchsorted(literals, column, side="left")
    count = len(literals)
    low, high = np.zeros(len(column), np.int64), np.full(len(column), count, np.int64)
    for _ in range(count.bit_length()):
        searching = low < high
        middle = (low + high) // 2
        probe = literals.take(pa.array(np.minimum(middle, count - 1)))
        less = pc.less(probe, column).to_numpy(zero_copy_only=False)
        low = np.where(searching & less, middle + 1, low)
        high = np.where(searching & ~less, middle, high)
    return low


# --- columns ------------------------------------------------------------------------------------------------------


class LoadedColumn:
    """One index's metadata of one segment, ready to answer."""

    def __init__(self, column: pa.StructArray) -> None:
        self.rows = len(column)
        self.known: Truths = _truths(column.is_valid())
        self.fields = dict(zip([field.name for field in column.type], column.flatten(), strict=True))

    nbytes = 0

    def refuted(self, question: Question) -> Truths:
        """Per row, whether the metadata proves the question false."""
        try:
            truths = self._refuted(question)
        except Incomparable:
            truths = None
        return np.zeros(self.rows, np.bool_) if truths is None else truths

    def _refuted(self, question: Question) -> Truths | None:
        raise NotImplementedError

    def _is_zero(self, count: pa.Array) -> Truths:
        """Rows with a count that is known to be zero."""
        return self.known & _truths(pc.fill_null(pc.equal(count, 0), False))


def _truths(array: pa.Array) -> Truths:
    truths: Truths = array.to_numpy(zero_copy_only=False)
    return truths.astype(np.bool_, copy=False)


def offsets_of(lists: pa.ListArray) -> npt.NDArray[np.int32]:
    offsets: npt.NDArray[np.int32] = lists.offsets.to_numpy()
    return offsets


def size_of(*parts: Comparable) -> int:
    return sum(part.nbytes for part in parts)


class CountedColumn(LoadedColumn):
    """The counts of nulls and NaNs beside the values.

    Subclasses set ``_decided``, the rows in this form, and ``_of``, the map from elements to rows.
    """

    _decided: Truths
    _of: Rows

    def __init__(self, column: pa.StructArray) -> None:
        super().__init__(column)
        self._no_null, self._no_nan = self._is_zero(self.fields["nulls"]), self._is_zero(self.fields["nans"])

    def _refuted(self, question: Question) -> Truths | None:
        match question:
            case HasNull():
                return self._no_null
            case HasNaN():
                return self._no_nan
            case HasNotNull():
                return self._decided & self._of.empty & self._no_nan
        held = self._held_by_rows(question)
        if held is None:
            return None
        refuted: Truths = self._decided & ~held
        return refuted

    def _held_by_rows(self, question: Question) -> Truths | None:
        """Per row, whether the question may be true for it; None if that is unknown."""
        held = self._held(question)
        return None if held is None else self._of.any(held)

    def _held(self, question: Question) -> Truths | None:
        """Per element, whether the question may be true for it; None if that is unknown."""
        raise NotImplementedError

    def _counted_size(self, *parts: Comparable) -> int:
        return size_of(self.known, self._no_null, self._no_nan, self._decided, self._of.offsets, *parts)


class IntervalsColumn(CountedColumn):
    """Intervals: flat arrays of low and high ends."""

    def __init__(self, column: pa.StructArray, type: DataType) -> None:
        super().__init__(column)
        low, high = self.fields["low"], self.fields["high"]
        self._type = type
        self._decided = self.known & _truths(low.is_valid()) & _truths(high.is_valid())
        self._of = Rows(offsets_of(low))
        if not np.array_equal(self._of.offsets, offsets_of(high)):
            self._decided = np.zeros(self.rows, np.bool_)  # not written by this package: conclude nothing
        self._low, self._high = comparable(low.values, type), comparable(high.values, type)
        self.fields.clear()
        self.nbytes = self._counted_size(self._low, self._high)

    def _held(self, question: Question) -> Truths | None:
        match question:
            case AnyOf(values):
                return _covers(self._low, self._high, _literals(values, self._type, self._low))
            case OtherThan(values):
                literals = _literals(values, self._type, self._low)
                if isinstance(self._low, np.ndarray):
                    single = self._low == self._high
                else:
                    single = _truths(pc.equal(self._low, self._high))
                others: Truths = ~(single & _is_in(self._low, literals))
                return others
            case Overlaps(ranges):
                return _in_any(self._low, self._high, ranges, self._type)
        return None


def _in_any(low: Comparable, high: Comparable, ranges: Sequence[Range], type: DataType) -> Truths:
    """Which of these closed intervals overlap any of the ranges."""
    held = np.zeros(len(low), np.bool_)
    for wanted in ranges:
        reached = _reaches(low, high, wanted, type)
        if reached is not None:
            held |= reached
    return held


class ValuesColumn(CountedColumn):
    """Sets of values: decides a question once per distinct value, and then marks the rows that hold those values."""

    def __init__(self, column: pa.StructArray, type: DataType) -> None:
        super().__init__(column)
        self._type = type
        lists = self.fields["values"]
        self._decided = self.known & _truths(lists.is_valid())
        offsets = offsets_of(lists)
        self._of = Rows(offsets)
        encoded = lists.values.slice(offsets[0], offsets[-1] - offsets[0]).dictionary_encode()
        codes: np.ndarray = encoded.indices.to_numpy(zero_copy_only=False)
        distinct = comparable(encoded.dictionary, type)
        if isinstance(distinct, np.ndarray):  # in ascending order, so that a literal is found by binary search
            order = np.argsort(distinct)
            rank = np.empty(len(order), np.int32)
            rank[order] = np.arange(len(order), dtype=np.int32)
            distinct, codes = distinct[order], rank[codes]
        self._texts = encoded.dictionary if type.name == "string" else None
        self._distinct = distinct
        rows = np.repeat(np.arange(self.rows, dtype=np.int32), np.diff(offsets))
        self._rows: npt.NDArray[np.int32] = rows[_order_of(codes)]
        """The rows of each distinct value, one value after another."""
        ends = np.cumsum(np.bincount(codes, minlength=len(distinct)), dtype=np.int32)
        self._starts: npt.NDArray[np.int32] = np.concatenate([np.zeros(1, np.int32), ends])
        self._sizes = np.diff(self._starts)
        self.fields.clear()
        self.nbytes = self._counted_size(self._rows, self._starts, self._sizes, self._distinct)

    def _held_by_rows(self, question: Question) -> Truths | None:
        held = np.zeros(self.rows, np.bool_)
        if isinstance(question, AnyOf) and isinstance(self._distinct, np.ndarray):
            for code in _places_of(_literals(question.values, self._type, self._distinct), self._distinct):
                held[self._rows[self._starts[code] : self._starts[code + 1]]] = True
            return held
        passing = self._passing(question)
        if passing is None:
            return None
        if 2 * int(self._sizes[passing].sum()) <= len(self._rows):
            held[self._rows_of(passing)] = True
            return held
        # A row holds a passing value unless all of its values are among the others, which are fewer.
        others = np.bincount(self._rows_of(~passing), minlength=self.rows)
        found: Truths = others < np.diff(self._of.offsets)
        return found

    def _rows_of(self, chosen: Truths) -> npt.NDArray[np.int32]:
        """The rows of each chosen value, one value after another."""
        codes = np.flatnonzero(chosen)
        if len(codes) > _MAX_SLICES:
            return self._rows[np.repeat(chosen, self._sizes)]
        return np.concatenate([self._rows[:0], *(self._rows[self._starts[n] : self._starts[n + 1]] for n in codes)])

    def _passing(self, question: Question) -> Truths | None:
        """Per distinct value, whether the question may be true for it; None if that is unknown."""
        match question:
            case AnyOf(values):
                return _is_in(self._distinct, _literals(values, self._type, self._distinct))
            case OtherThan(values):
                return ~_is_in(self._distinct, _literals(values, self._type, self._distinct))
            case Overlaps(ranges):
                return _in_any(self._distinct, self._distinct, ranges, self._type)
            case TextMatch() if self._texts is not None:
                return _may_match(self._texts, question)
        return None


def _order_of(codes: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
    """The order that sorts codes, by their halves: numpy sorts 16 bits in linear time."""
    order = np.argsort(codes.astype(np.uint16), kind="stable")
    if len(codes) and codes.max() >> 16:
        order = order[np.argsort((codes >> 16).astype(np.uint16)[order], kind="stable")]
    return order


def _places_of(literals: np.ndarray, ascending: np.ndarray) -> npt.NDArray[np.int64]:
    """Where those literals are that are among ascending values."""
    at = np.searchsorted(ascending, literals)
    there = at < len(ascending)
    there[there] = ascending[at[there]] == literals[there]
    return at[there]


def _may_match(texts: pa.StringArray, question: TextMatch) -> Truths:
    """For each string, whether the test or its negation may hold."""
    with_arrow = {"starts": pc.starts_with, "ends": pc.ends_with, "contains": pc.match_substring}.get(question.test)
    if with_arrow is not None and "\x00" not in question.pattern:
        try:
            truths = _truths(with_arrow(texts, pattern=question.pattern))
        except UnicodeEncodeError:
            raise Incomparable from None
        return ~truths if question.negated else truths
    decided = (text_test(question.test, text, question.pattern, question.escape) for text in texts.to_pylist())
    # None means unknown, which is neither, and may match either way
    return np.fromiter((truth is not question.negated for truth in decided), np.bool_, len(texts))


class BoxesColumn(LoadedColumn):
    """Boxes: a matrix with a row per box, and each axis's low and high end side by side."""

    _double = parse_type("double")

    def __init__(self, column: pa.StructArray) -> None:
        super().__init__(column)
        axes = self.fields["axes"].fill_null(0).to_numpy(zero_copy_only=False)
        lists = self.fields["bounds"]
        used = axes[axes > 0]
        self._axes = int(used[0]) if len(used) else 0
        # All boxes of an index have the same number of axes; others are not understood.
        self._decided: Truths = self.known & _truths(lists.is_valid()) & ((axes == self._axes) | (axes == 0))
        bounds: np.ndarray = lists.values.to_numpy(zero_copy_only=False)
        offsets = offsets_of(lists)
        width = 2 * self._axes or 1
        if len(used) and not (used == self._axes).all():
            keep = np.repeat(axes == self._axes, np.diff(offsets))
            lengths = np.where(axes == self._axes, np.diff(offsets), 0)
            bounds, offsets = bounds[keep], np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
        self._bounds = bounds.reshape(-1, width)
        self._of = Rows(offsets // width)
        self.fields.clear()
        self.nbytes = size_of(self.known, self._decided, self._bounds, self._of.offsets)

    def _refuted(self, question: Question) -> Truths | None:
        if isinstance(question, HasNotNull):
            return self._decided & self._of.empty
        if not isinstance(question, Meets):
            return None
        if self._axes and len(question.box) != self._axes:
            return self._decided & self._of.empty
        met = np.ones(len(self._bounds), np.bool_)
        for axis, wanted in enumerate(question.box):
            if not self._axes:
                break
            reached = _reaches(self._bounds[:, 2 * axis], self._bounds[:, 2 * axis + 1], wanted, self._double)
            if reached is None:
                return self._decided
            met &= reached
        refuted: Truths = self._decided & ~self._of.any(met)
        return refuted
