"""A budget of bytes for the metadata of one object. Above it metadata degrades, the largest first.

Values become fingerprints, then the interval from the least to the greatest, then unknown. Several intervals become
one, several boxes one. Each form is true of the object, only less exact. An index of values may use
any of the three forms (`es_skipping.clauses.metadata.Kind`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Final, NamedTuple

from es_skipping.clauses.metadata import Boxes, Fingerprints, Intervals, Metadata, Values
from es_skipping.indexes.toolkit.hashes import ascending, printed
from es_skipping.predicates.types import Value

__all__ = ["Kept", "size_of", "within"]

_FPP: Final = 0.01
_NUMBER_BYTES: Final = 8
_DECIMAL_BYTES: Final = 16


class Kept(NamedTuple):
    """Parameters
    ----------
    metadata
        By index, the metadata that is left; unknown metadata is absent.
    degraded
        By index, the new form: ``fingerprints``, ``interval``, ``box`` or ``unknown``.
    """

    metadata: dict[str, Metadata]
    degraded: dict[str, str]


def size_of(metadata: Metadata) -> int:
    """Bytes of the values themselves, before a store packs them: 8 a number, 16 a decimal, of text its UTF-8.

    Examples
    --------
    >>> size_of(Values(frozenset({"Pune", "Haifa"}), nulls=0)), size_of(Intervals(((1, 9),), nulls=0))
    (9, 16)
    """
    if isinstance(metadata, Fingerprints):
        return len(metadata.packed)
    if isinstance(metadata, Boxes):
        return sum(2 * _NUMBER_BYTES * len(box) for box in metadata.boxes)
    if isinstance(metadata, Values):
        return sum(map(_bytes, metadata.values))
    return sum(_bytes(end) for pair in metadata.ranges or () for end in pair)


def within(metadata: Mapping[str, Metadata], budget: float) -> Kept:
    """The metadata of one object, over all its indexes, that fits the budget.

    Parameters
    ----------
    metadata
        By index.
    budget
        Bytes, as `size_of` counts them.

    Examples
    --------
    >>> cities = Values(frozenset(f"city {n}" for n in range(100)), nulls=0)
    >>> years = Intervals(((1999, 2024),), nulls=0)
    >>> kept = within({"cities": cities, "years": years}, 200)
    >>> type(kept.metadata["cities"]).__name__, kept.metadata["years"] is years, kept.degraded
    ('Fingerprints', True, {'cities': 'fingerprints'})
    >>> within({"cities": cities, "years": years}, 50).degraded
    {'cities': 'interval'}
    """
    kept = dict(metadata)
    sizes = {id: size_of(one) for id, one in kept.items()}
    lesser = {id: _lesser(one) for id, one in kept.items()}
    degraded: dict[str, str] = {}
    while sizes and sum(sizes.values()) > budget:
        largest = max(sizes, key=sizes.__getitem__)
        if not sizes[largest]:
            break
        form = next(iter(lesser[largest]), "unknown")
        made = _as(form, metadata[largest]) if lesser[largest] else None
        lesser[largest] = lesser[largest][1:]
        if form != "unknown" and (made is None or size_of(made) >= sizes[largest]):
            continue  # it gains nothing; try the next form
        degraded[largest] = form
        if made is None:
            del kept[largest], sizes[largest]
        else:
            kept[largest], sizes[largest] = made, size_of(made)
    return Kept(kept, degraded)


def _lesser(metadata: Metadata) -> tuple[str, ...]:
    """The forms that metadata may take, each usually smaller than the one before; after the last it is unknown."""
    match metadata:
        case Values():
            return "fingerprints", "interval"
        case Intervals(ranges) if ranges and len(ranges) > 1:
            return ("interval",)
        case Boxes(boxes) if len(boxes) > 1:
            return ("box",)
    return ()


def _as(form: str, metadata: Metadata) -> Metadata | None:
    match form, metadata:
        case "fingerprints", Values(values):
            return _fingerprints(metadata)
        case "interval", Values(values):
            # Values of one type are ordered as Spark orders them: text by code points, which is UTF-8's byte order.
            ends = ((min(values), max(values)),)
            return Intervals(ends, metadata.nulls, metadata.nans)
        case "interval", Intervals(ranges) if ranges:
            return replace(metadata, ranges=((ranges[0][0], ranges[-1][1]),))
        case "box", Boxes(boxes) if len(set(map(len, boxes))) == 1:
            axes = zip(*boxes, strict=True)
            return Boxes((tuple((min(low for low, _ in axis), max(high for _, high in axis)) for axis in axes),))
    return None


def _fingerprints(metadata: Values) -> Fingerprints | None:
    try:
        return printed(ascending(metadata.values), _FPP, metadata.nulls, metadata.nans)
    except ValueError:  # text with half a surrogate pair
        return None


def _bytes(value: Value) -> int:
    if isinstance(value, str):
        return len(value.encode("utf-8", "surrogatepass"))
    if isinstance(value, bytes):
        return len(value)
    return _DECIMAL_BYTES if isinstance(value, Decimal) else _NUMBER_BYTES
