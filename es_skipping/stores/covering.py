"""Whether metadata allows an object every value that other metadata of it allows: the test of a copy."""

from __future__ import annotations

from es_skipping.clauses.metadata import Boxes, Fingerprints, Intervals, Metadata, Values

__all__ = ["covers"]


def covers(copy: Metadata, original: Metadata) -> bool:
    """Whether the copy allows the object every value that the original allows.

    A store may round outward, or forget: the copy may be wider, never narrower.

    Examples
    --------
    >>> covers(Intervals(((1, 9),), nulls=None), Intervals(((2, 5), (7, 9)), nulls=3))
    True
    >>> covers(Intervals(((1, 8),), nulls=3), Intervals(((2, 9),), nulls=3))
    False
    """
    if copy == original:
        return True
    match copy, original:
        case Intervals(), Intervals():
            if not _counts(copy, original):
                return False
            if copy.ranges is None:
                return True
            return original.ranges is not None and all(
                any(low <= first and last <= high for low, high in copy.ranges)  # type: ignore[operator]
                for first, last in original.ranges
            )
        case Values(), Values():
            return _counts(copy, original) and copy.values >= original.values
        case Fingerprints(), Fingerprints():
            same = (copy.space, copy.count, copy.packed) == (original.space, original.count, original.packed)
            return same and _counts(copy, original)
        case Boxes(), Boxes():
            return all(
                any(
                    len(wide) == len(box)
                    and all(low <= first and last <= high for (low, high), (first, last) in zip(wide, box, strict=True))
                    for wide in copy.boxes
                )
                for box in original.boxes
            )
    return False


_Counted = Intervals | Values | Fingerprints


def _counts(copy: _Counted, original: _Counted) -> bool:
    return copy.nulls in (None, original.nulls) and copy.nans in (None, original.nans)
