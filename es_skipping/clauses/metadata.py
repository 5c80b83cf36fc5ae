"""The kinds of metadata that an index may store for one object.

An object without an entry is *unknown* to the index, and unknown keeps the object. The counts ``nulls`` and ``nans``
are None if only they are unknown.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from es_skipping.predicates.types import Value

__all__ = ["Box", "Boxes", "Fingerprints", "Intervals", "Kind", "Metadata", "Values"]

Kind: TypeAlias = Literal["intervals", "values", "boxes", "fingerprints"]
"""What an index usually collects. An index of kind *values* or *fingerprints* may keep less of an object whose
values are too many or too large: `Fingerprints` or `Intervals` in place of `Values`."""

Box: TypeAlias = tuple[tuple[float, float], ...]
"""One closed ``(low, high)`` per axis; infinities open a side."""


@dataclass(frozen=True, slots=True)
class Intervals:
    """Closed, sorted, disjoint intervals that cover every value that is neither null nor NaN.

    Parameters
    ----------
    ranges
        ``((low, high), ...)``; empty where there is no such value; None where the values are unknown.
    nulls, nans
        How many rows are null, how many are NaN (0 for types without NaN); None where unknown.
    """

    ranges: tuple[tuple[Value, Value], ...] | None
    nulls: int | None
    nans: int | None = 0


@dataclass(frozen=True, slots=True)
class Values:
    """Every value that is neither null nor NaN (-0.0 is held as 0.0)."""

    values: frozenset[Value]
    nulls: int | None
    nans: int | None = 0


@dataclass(frozen=True, slots=True)
class Fingerprints:
    """The cells of every value that is neither null nor NaN, in a space where others seldom meet them.

    Parameters
    ----------
    space
        How many cells there are (`es_skipping.clauses.fingerprints`).
    count
        How many of them are taken.
    packed
        Which ones.
    nulls, nans
        As of `Values`.
    """

    space: int
    count: int
    packed: bytes
    nulls: int | None
    nans: int | None = 0


@dataclass(frozen=True, slots=True)
class Boxes:
    """Boxes that together cover every point none of whose coordinates is null. A NaN coordinate counts as +infinity,
    because Spark orders NaN above every number. Empty where there is no such point."""

    boxes: tuple[Box, ...]


Metadata: TypeAlias = Intervals | Values | Fingerprints | Boxes
