"""The questions a clause can ask about one object's metadata.

The vocabulary is closed and small: a store that answers these questions serves every index type, now and later.
Which kind of metadata answers which question:

===============  =========  ======  ============  =====
question         intervals  values  fingerprints  boxes
===============  =========  ======  ============  =====
`AnyOf`          yes        yes     yes
`OtherThan`      yes        yes
`Overlaps`       yes        yes
`HasNull`        yes        yes     yes
`HasNotNull`     yes        yes     yes           yes
`HasNaN`         yes        yes     yes
`TextMatch`                 yes
`Meets`                                           yes
===============  =========  ======  ============  =====

All but the three that name null or NaN ask about the values that are neither. A store that cannot answer a
question says *unknown*, which keeps the object.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from es_skipping.predicates.tree import TextTest
from es_skipping.predicates.types import Value

__all__ = [
    "AnyOf",
    "HasNaN",
    "HasNotNull",
    "HasNull",
    "Meets",
    "OtherThan",
    "Overlaps",
    "Question",
    "Range",
    "TextMatch",
]


@dataclass(frozen=True, slots=True)
class Range:
    """A stretch of an ordered type; None leaves a side open to infinity. Never holds NaN.

    Examples
    --------
    >>> Range(5, None, low_open=True)   # x > 5
    Range(low=5, high=None, low_open=True, high_open=False)
    """

    low: Value | None = None
    high: Value | None = None
    low_open: bool = False
    high_open: bool = False


@dataclass(frozen=True, slots=True)
class AnyOf:
    """Does it hold (or might its intervals cover) any of these values?"""

    values: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class OtherThan:
    """Might it hold a value that is none of these?"""

    values: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Overlaps:
    """Does any of its values lie (or any of its intervals reach) into any of these ranges?"""

    ranges: tuple[Range, ...]


@dataclass(frozen=True, slots=True)
class HasNull:
    """Is any row's value null?"""


@dataclass(frozen=True, slots=True)
class HasNotNull:
    """Is any row's value not null (NaN included)?"""


@dataclass(frozen=True, slots=True)
class HasNaN:
    """Is any row's value NaN?"""


@dataclass(frozen=True, slots=True)
class TextMatch:
    """Is there a string that passes the test (or with ``negated`` fails it)?"""

    test: TextTest
    pattern: str
    escape: str = "\\"
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Meets:
    """Does any of its boxes meet this box? One closed `Range` of floats per axis."""

    box: tuple[Range, ...]


Question: TypeAlias = AnyOf | OtherThan | Overlaps | HasNull | HasNotNull | HasNaN | TextMatch | Meets
