"""How much new indexes can skip, measured while their metadata passes: an index that cannot help is reported.

For each sampled object a query for one of its values is imagined. The effectiveness is the share of the other objects
that such a query skips. It is 0 if the intervals of all objects overlap, or each value is in each object.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain, islice, takewhile
from typing import Any, Final, NamedTuple, TypeAlias

from es_skipping.catalog import ObjectMetadata
from es_skipping.clauses.fingerprints import cells_of
from es_skipping.clauses.metadata import Boxes, Fingerprints, Intervals, Metadata, Values
from es_skipping.indexes.registry import readable_id

__all__ = ["HELPLESS", "Effectiveness"]

HELPLESS: Final = 0.01
"""An index that skips less than this share of the objects is reported."""
_FEWEST_OBJECTS: Final = 8
_SAMPLED_OBJECTS: Final = 128
_NAMED: Final = 5
"""Indexes that a warning names; the result of the build has the figures of all."""
_MAX_VALUES: Final = 1_000
"""Larger sets of values are not sampled."""
_VALUES_PER_OBJECT: Final = 4
_BYTES_OF_A_TEXT: Final = 16
"""Bytes after the common beginning of all texts by which they are ordered."""

_log: Final = logging.getLogger("es_skipping")


class _Cells(NamedTuple):
    """Fingerprints, unpacked once for all questions; the dictionary is a set that keeps their order."""

    space: int
    cells: dict[int, None]


_Compared: TypeAlias = Boxes | Intervals | Values | _Cells


class Effectiveness:
    """Samples the metadata of some indexes as it passes.

    Parameters
    ----------
    ids
        The indexes' ids.
    """

    def __init__(self, ids: Iterable[str]) -> None:
        self._samples: dict[str, list[Metadata]] = {id: [] for id in ids}
        self._seen = dict.fromkeys(self._samples, 0)
        self._dice = random.Random(0)  # noqa: S311 - not a secret

    def watched(self, found: Iterator[ObjectMetadata]) -> Iterator[ObjectMetadata]:
        """The same metadata; each object has the same chance to be in the sample."""
        for one in found:
            for id, sample in self._samples.items():
                if (metadata := one.metadata.get(id)) is not None and _is_small(metadata):
                    self._note(id, sample, metadata)
            yield one

    def _note(self, id: str, sample: list[Metadata], metadata: Metadata) -> None:
        self._seen[id] += 1
        if len(sample) < _SAMPLED_OBJECTS:
            sample.append(metadata)
        elif (place := self._dice.randrange(self._seen[id])) < _SAMPLED_OBJECTS:
            sample[place] = metadata

    def measured(self) -> tuple[tuple[str, float], ...]:
        """``(index id, share)`` of the indexes that could be measured; one warning tells of those that cannot help."""
        shares = {id: _measured(sample) for id, sample in self._samples.items()}
        known = tuple((id, share) for id, share in sorted(shares.items()) if share is not None)
        if helpless := [readable_id(id) for id, share in known if share < HELPLESS]:
            named = ", ".join(helpless[:_NAMED])
            if len(helpless) > _NAMED:
                named += f" and {len(helpless) - _NAMED} more indexes (the result's `effectiveness` has all)"
            _log.warning(
                "%s can skip hardly any object, because the objects hold nearly the same values: drop it, or lay the "
                "data out by its column",
                named,
            )
        return known


def _measured(sample: list[Metadata]) -> float | None:
    try:
        return effectiveness(sample)
    except (TypeError, ValueError, ArithmeticError):  # an index type of another package may hold any values
        return None


def effectiveness(sample: list[Metadata]) -> float | None:
    """The share of the other objects that a query for a value of one object skips; None if too little is known.

    Examples
    --------
    >>> apart = [Intervals(((10 * at, 10 * at + 5),), 0) for at in range(20)]
    >>> effectiveness(apart), effectiveness([Intervals(((0, 100 + at),), 0) for at in range(20)])
    (1.0, 0.0)
    """
    if len(sample) < _FEWEST_OBJECTS:
        return None
    compared = [_unpacked(one) for one in _as_numbers(sample)]
    skipped = asked = 0
    for number, one in enumerate(compared):
        for value in _values_of(one):
            if value != value:  # NaN: the middle of an interval without ends
                continue
            for place, other in enumerate(compared):
                if place != number and (holds := _holds(other, value, type(one))) is not None:
                    asked += 1
                    skipped += not holds
    return skipped / asked if asked else None


def _is_small(metadata: Metadata) -> bool:
    match metadata:
        case Values(values):
            return len(values) <= _MAX_VALUES
        case Fingerprints(count=count):
            return count <= _MAX_VALUES
        case Intervals(ranges):
            return ranges is not None
        case Boxes():
            return True


def _as_numbers(sample: list[Metadata]) -> list[Metadata]:
    """The same with numbers in place of the texts that bound intervals, so that an interval has a middle."""
    spans = [one for one in sample if isinstance(one, Intervals)]
    bounds = [bound for one in spans for bound in chain.from_iterable(one.ranges or ())]
    texts = [_bytes(bound) for bound in bounds if isinstance(bound, str | bytes)]
    if not texts:
        return sample
    pairs = zip(min(texts), max(texts), strict=False)
    common = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))

    def number(value: Any) -> int:
        return int.from_bytes(_bytes(value)[common : common + _BYTES_OF_A_TEXT].ljust(_BYTES_OF_A_TEXT, b"\0"), "big")

    return [
        replace(one, ranges=tuple((number(low), number(high)) for low, high in one.ranges or ()))
        if isinstance(one, Intervals)
        else one
        for one in sample
    ]


def _bytes(value: str | bytes) -> bytes:
    return value.encode("utf-8", "surrogatepass") if isinstance(value, str) else value


def _unpacked(metadata: Metadata) -> _Compared:
    match metadata:
        case Fingerprints(space, count, packed):
            return _Cells(space, dict.fromkeys(cells_of(packed, space, count)))
        case _:
            return metadata


def _values_of(metadata: _Compared) -> Iterator[Any]:
    """Values that the object holds, or may hold: the middle of its intervals and boxes."""
    match metadata:
        case Values(values):
            yield from islice(values, _VALUES_PER_OBJECT)
        case _Cells(space, cells):
            yield from ((space, cell) for cell in islice(cells, _VALUES_PER_OBJECT))
        case Intervals(ranges):
            low: Any
            high: Any
            for low, high in islice(ranges or (), _VALUES_PER_OBJECT):
                yield low + (high - low) // 2 if isinstance(low, int) else (low + high) / 2
        case Boxes(boxes):
            for box in islice(boxes, _VALUES_PER_OBJECT):
                yield tuple((low + high) / 2 for low, high in box)


def _holds(other: _Compared, value: Any, kind: type[_Compared]) -> bool | None:
    """Whether an object's metadata allows a value of another object; None if the two cannot be compared."""
    if type(other) is not kind:
        return None
    match other:
        case Values(values):
            return value in values
        case _Cells(space, cells):
            return value[1] in cells if value[0] == space else None
        case Intervals(ranges):
            return _is_within(value, ranges or ())
        case Boxes(boxes):
            return any(all(low <= at <= high for at, (low, high) in zip(value, box, strict=True)) for box in boxes)


def _is_within(value: Any, ranges: Iterable[tuple[Any, Any]]) -> bool:
    return any(low <= value <= high for low, high in ranges)
