"""Sets of values of one operand, as a predicate allows them: stretches of an ordered type, NaN, and null.

A predicate has two approximations, and a proof must use the right one: `at_most` holds every value that
the operand may have in a row for which the predicate is true; `at_least` holds only values for which it is true.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from typing import Any, Final, NamedTuple

from es_skipping.predicates.text import like_prefix, successor
from es_skipping.predicates.tree import (
    And,
    Comparison,
    Constant,
    IsIn,
    Literal,
    Matches,
    NullTest,
    Operand,
    Or,
    Predicate,
)
from es_skipping.predicates.types import DataType, Value

__all__ = ["ValueSet", "at_least", "at_most", "common"]

_DISCRETE: Final = frozenset({"date", "timestamp", "timestamp_ntz"})


class _Stretch(NamedTuple):
    """Everything between two values; None leaves a side open to infinity."""

    low: Any = None
    low_open: bool = True
    high: Any = None
    high_open: bool = True


@dataclass(frozen=True, slots=True)
class ValueSet:
    """Stretches of values, sorted and disjoint; ``nan`` and ``null`` say whether these belong to it too."""

    stretches: tuple[_Stretch, ...] = ()
    nan: bool = False
    null: bool = False

    def __le__(self, other: ValueSet) -> bool:
        """Whether every member is a member of the other."""
        if self.nan > other.nan or self.null > other.null:
            return False
        return all(any(_inside(mine, theirs) for theirs in other.stretches) for mine in self.stretches)

    def __or__(self, other: ValueSet) -> ValueSet:
        joined = _joined([*self.stretches, *other.stretches])
        return ValueSet(joined, self.nan or other.nan, self.null or other.null)

    def __and__(self, other: ValueSet) -> ValueSet:
        both = []
        one = two = 0
        while one < len(self.stretches) and two < len(other.stretches):
            mine, theirs = self.stretches[one], other.stretches[two]
            met = _common(mine, theirs)
            if met is not None:
                both.append(met)
            if _ends_first(mine, theirs):
                one += 1
            else:
                two += 1
        return ValueSet(_joined(both), self.nan and other.nan, self.null and other.null)

    @classmethod
    def of_ranges(cls, ranges: Iterable[tuple[Any, bool, Any, bool]], nan: bool) -> ValueSet:
        """The values in any of these ranges. Each is: low end, whether it is open, high end, whether it is open."""
        stretches = (_Stretch(low, low is None or a, high, high is None or b) for low, a, high, b in ranges)
        return cls(_joined(stretches), nan)

    @property
    def everything(self) -> bool:
        """Whether every value is a member, null and NaN too."""
        return self == _EVERYTHING

    @property
    def empty(self) -> bool:
        """Whether it certainly has no member."""
        return not (self.stretches or self.nan or self.null)

    @property
    def points(self) -> tuple[Value, ...] | None:
        """Its single values, if there are finitely many, without null and NaN; None otherwise."""
        if self.nan or self.null or any(one.low is None or one.low != one.high for one in self.stretches):
            return None
        return tuple(one.low for one in self.stretches)


_EVERYTHING: Final = ValueSet((_Stretch(),), nan=True, null=True)


def at_most(predicate: Predicate, operand: Operand) -> ValueSet:
    """A set that contains the operand's value in every row that satisfies the predicate."""
    match predicate:
        case And(children):
            return common([at_most(child, operand) for child in children])
        case Or(children):
            return _together([at_most(child, operand) for child in children])
        case _ if (exact := _exact(predicate, operand)) is not None:
            return exact
        case Matches(_, tested, negated=negated) if tested == operand:
            return _not_null() if negated else _beginning(_known_beginning(predicate))
        case Comparison(comparator, left, right) if operand in (left, right):
            return _EVERYTHING if comparator == "<=>" else _not_null()
        case _:
            return _EVERYTHING


def at_least(predicate: Predicate, operand: Operand) -> ValueSet:
    """A set all of whose values, whatever else is in the row, satisfy the predicate; empty where none is known to."""
    match predicate:
        case And(children):
            return reduce(ValueSet.__and__, (at_least(child, operand) for child in children))
        case Or(children):
            return reduce(ValueSet.__or__, (at_least(child, operand) for child in children))
        case _:
            return _exact(predicate, operand) or ValueSet()


def common(sets: Sequence[ValueSet]) -> ValueSet:
    """The intersection; everything if there are no sets."""
    left = list(sets) or [_EVERYTHING]
    while len(left) > 1:  # by pairs: thousands of parts are soon met
        pairs = [one & other for one, other in zip(left[::2], left[1::2], strict=False)]
        left = pairs + left[2 * len(pairs) :]
    return left[0]


def _together(sets: Sequence[ValueSet]) -> ValueSet:
    """The union."""
    stretches = _joined(stretch for one in sets for stretch in one.stretches)
    return ValueSet(stretches, any(one.nan for one in sets), any(one.null for one in sets))


def _exact(leaf: Predicate, operand: Operand) -> ValueSet | None:
    """The values for which a leaf is true, exactly; None where it is not about the operand, or where they are not a set
    of stretches."""
    match leaf:
        case Constant(value):
            return _EVERYTHING if value else ValueSet()
        case NullTest(tested, negated) if tested == operand:
            return _not_null() if negated else ValueSet(null=True)
        case IsIn(tested, values, negated, has_null=False) if tested == operand:
            return _listed(values, operand.type, negated)
        case Comparison(comparator, tested, Literal(value, type)) if tested == operand:
            return None if value is None or type != operand.type else _compared(comparator, value, operand.type)
        case _:
            return None


def _not_null() -> ValueSet:
    return ValueSet((_Stretch(),), nan=True)


def _compared(comparator: str, value: Value, type: DataType) -> ValueSet | None:
    if comparator in ("=", "<>"):
        return _listed((value,), type, comparator == "<>")
    if isinstance(value, float) and math.isnan(value):
        return None  # a normal predicate has none
    if comparator in ("<", "<="):
        return ValueSet(_joined([_closed(_Stretch(high=value, high_open=comparator == "<"), type)]))
    if comparator in (">", ">="):
        return ValueSet(_joined([_closed(_Stretch(low=value, low_open=comparator == ">"), type)]), nan=type.is_float)
    return None


def _listed(values: Iterable[Value], type: DataType, negated: bool) -> ValueSet:
    values = list(values)
    plain = sorted(value for value in values if value == value)  # NaN is not equal to itself
    nan = len(plain) < len(values)
    if not negated:
        return ValueSet(_joined([_Stretch(value, False, value, False) for value in plain]), nan)
    edges = [None, *plain, None]
    gaps = [_closed(_Stretch(low, True, high, True), type) for low, high in pairwise(edges)]
    return ValueSet(_joined(gaps), type.is_float and not nan)


def _known_beginning(leaf: Matches) -> str:
    if leaf.test == "starts":
        return leaf.pattern
    return like_prefix(leaf.pattern, leaf.escape) if leaf.test == "like" else ""


def _beginning(prefix: str) -> ValueSet:
    """The range of strings with this beginning. A string that is not UTF-8 may lie in it with another beginning."""
    if not prefix:
        return _not_null()
    return ValueSet((_Stretch(prefix, False, successor(prefix), True),))


# --- stretches ----------------------------------------------------------------------------------------------------


def _closed(stretch: _Stretch, type: DataType) -> _Stretch:
    """For a type that counts in whole numbers: closed ends, so that equal sets look alike."""
    if not type.is_integer and type.name not in _DISCRETE:
        return stretch
    low, low_open, high, high_open = stretch
    if low is not None and low_open:
        low, low_open = low + 1, False
    if high is not None and high_open:
        high, high_open = high - 1, False
    return _Stretch(low, low_open, high, high_open)


def _empty(one: _Stretch) -> bool:
    if one.low is None or one.high is None:
        return False
    return bool(one.low > one.high or (one.low == one.high and (one.low_open or one.high_open)))


def _joined(stretches: Iterable[_Stretch]) -> tuple[_Stretch, ...]:
    """Sorted and disjoint; stretches without a gap between them become one."""
    found: list[_Stretch] = []
    bounded = [one for one in stretches if not _empty(one)]
    endless = [one for one in bounded if one.low is None]
    rest = sorted((one for one in bounded if one.low is not None), key=lambda one: (one.low, one.low_open))
    for one in [*endless, *rest]:
        if found and _touch(found[-1], one):
            found[-1] = _hull(found[-1], one)
        else:
            found.append(one)
    return tuple(found)


def _touch(first: _Stretch, second: _Stretch) -> bool:
    """Whether nothing lies between two stretches, given in order."""
    if second.low is None or first.high is None:
        return True
    if second.low < first.high:
        return True
    if second.low == first.high:
        return not (second.low_open and first.high_open)
    whole = type(first.high) is int and type(second.low) is int  # integers, dates and moments: closed, so neighbours
    return whole and not first.high_open and not second.low_open and bool(second.low == first.high + 1)


def _hull(first: _Stretch, second: _Stretch) -> _Stretch:
    if first.high is None or second.high is None:
        return first._replace(high=None, high_open=True)
    if second.high > first.high or (second.high == first.high and first.high_open):
        return first._replace(high=second.high, high_open=second.high_open)
    return first


def _inside(inner: _Stretch, outer: _Stretch) -> bool:
    if outer.low is not None:
        if inner.low is None or inner.low < outer.low:
            return False
        if inner.low == outer.low and outer.low_open and not inner.low_open:
            return False
    if outer.high is not None:
        if inner.high is None or inner.high > outer.high:
            return False
        if inner.high == outer.high and outer.high_open and not inner.high_open:
            return False
    return True


def _ends_first(first: _Stretch, second: _Stretch) -> bool:
    """Whether the first ends before the second or at the same value: at which no other stretch of a set begins."""
    if second.high is None or first.high is None:
        return second.high is None
    return bool(first.high <= second.high)


def _common(first: _Stretch, second: _Stretch) -> _Stretch | None:
    low, low_open = first.low, first.low_open
    if low is None or (second.low is not None and (second.low, second.low_open) > (low, low_open)):
        low, low_open = second.low, second.low_open
    high, high_open = first.high, first.high_open
    if high is None or (second.high is not None and (second.high, not second.high_open) < (high, not high_open)):
        high, high_open = second.high, second.high_open
    met = _Stretch(low, low_open, high, high_open)
    return None if _empty(met) else met
