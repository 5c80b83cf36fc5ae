"""Converts metadata to Arrow columns and back: one struct column per index, one row per object, null if unknown.

::

    intervals   struct<low: list<T>, high: list<T>, nulls: int64, nans: int64>    low: null if the values are unknown
    values      struct<values: list<T>, space: int64, count: int64, cells: binary, low: list<T>, high: list<T>,
                       nulls: int64, nans: int64>                                 one of values, cells and low is given
    boxes       struct<axes: int32, bounds: list<double>>                         ends of each axis, box after box

Fingerprints are stored like values: either kind may hold an object's values in ascending order, their cells, or
intervals around them. Segments from before fingerprints have only ``values``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from es_skipping.catalog import IndexDefinition
from es_skipping.clauses.metadata import Boxes, Fingerprints, Intervals, Metadata, Values
from es_skipping.predicates.types import DataType, Value, parse_type
from es_skipping.stores.parquet.types import arrow_type, encode, python_values

__all__ = ["UNFIT", "column_of", "column_type", "conformed", "metadata_of", "storable", "weight"]


_SETS: Final = (Values, Fingerprints, Intervals)
_KINDS: Final[dict[str, tuple[type[Metadata], ...]]] = {
    "intervals": (Intervals,),
    "values": _SETS,
    "fingerprints": _SETS,
    "boxes": (Boxes,),
}
UNFIT: Final = (ValueError, TypeError, OverflowError, ArithmeticError, AttributeError, KeyError, pa.ArrowException)
"""The errors that encoding raises for values that do not fit the type."""


def column_type(index: IndexDefinition) -> pa.DataType:
    """The Arrow type of an index's column."""
    if index.kind == "boxes":
        return pa.struct([("axes", pa.int32()), ("bounds", pa.list_(pa.float64()))])
    values = pa.list_(arrow_type(index.value_type))
    fields = [("low", values), ("high", values)]
    if index.kind != "intervals":
        fields = [("values", values), ("space", pa.int64()), ("count", pa.int64()), ("cells", pa.binary()), *fields]
    return pa.struct([*fields, ("nulls", pa.int64()), ("nans", pa.int64())])


def conformed(column: pa.StructArray, type: pa.DataType) -> pa.StructArray:
    """A column in this version's form, with null for the fields that an earlier version lacks."""
    if column.type == type:
        return column
    found = dict(zip([field.name for field in column.type], column.flatten(), strict=True))
    fields = [found.get(field.name, pa.nulls(len(column), field.type)) for field in type]
    return pa.StructArray.from_arrays(fields, fields=list(type), mask=column.is_null())


def column_of(index: IndexDefinition, metadata: Sequence[Metadata | None]) -> pa.StructArray:
    """The column of an index; None means unknown.

    Raises
    ------
    UNFIT
        Some metadata cannot be stored exactly, or has another kind.
    """
    if not all(one is None or isinstance(one, _KINDS[index.kind]) for one in metadata):
        raise ValueError(f"metadata of index {index.id!r} is not of kind {index.kind}")
    type = column_type(index)
    missing = pa.array([one is None for one in metadata], pa.bool_())
    fields: list[pa.Array]
    if index.kind == "boxes":
        of_boxes = [one if isinstance(one, Boxes) else None for one in metadata]
        if any(one and len({len(box) for box in one.boxes}) > 1 for one in of_boxes):
            raise ValueError("boxes of one object with different numbers of axes")
        flat = [[end for box in one.boxes for side in box for end in side] if one else None for one in of_boxes]
        axes = [len(one.boxes[0]) if one and one.boxes else None if one is None else 0 for one in of_boxes]
        fields = [pa.array(axes, pa.int32()), _lists(flat, _encoder(parse_type("double")))]
    else:
        encoder = _encoder(index.value_type)
        counted = [one if isinstance(one, _SETS) else None for one in metadata]
        ranges = [one.ranges if isinstance(one, Intervals) else None for one in metadata]
        fields = []
        if index.kind != "intervals":
            if any(isinstance(one, Intervals) and one.ranges is None for one in metadata):
                raise ValueError("neither values nor a replacement")
            sets = [sorted(one.values) if isinstance(one, Values) else None for one in metadata]
            prints = [one if isinstance(one, Fingerprints) else None for one in metadata]
            fields.append(_lists(sets, encoder))
            fields.append(_counts([one.space if one else None for one in prints]))
            fields.append(_counts([one.count if one else None for one in prints]))
            fields.append(pa.array([one.packed if one else None for one in prints], pa.binary()))
        for end in (0, 1):
            ends = [None if pairs is None else [pair[end] for pair in pairs] for pairs in ranges]
            fields.append(_lists(ends, encoder))
        fields.append(_counts([one.nulls if one else None for one in counted]))
        fields.append(_counts([one.nans if one else None for one in counted]))
    return pa.StructArray.from_arrays(fields, fields=list(type), mask=missing)


def _encoder(type: DataType) -> Callable[[list[Value]], pa.Array]:
    return lambda values: encode(values, type)


def _lists(lists: Sequence[Sequence[Value] | None], flat: Callable[[list[Value]], pa.Array]) -> pa.ListArray:
    lengths = np.fromiter((len(one) if one is not None else 0 for one in lists), np.int32, len(lists))
    offsets = np.concatenate([np.zeros(1, np.int32), np.cumsum(lengths, dtype=np.int32)])
    values = flat([value for one in lists if one is not None for value in one])
    return pa.ListArray.from_arrays(
        pa.array(offsets, pa.int32()), values, mask=pa.array([one is None for one in lists], pa.bool_())
    )


def _counts(counts: list[int | None]) -> pa.Array:
    if any(count is not None and count < 0 for count in counts):
        raise ValueError("a negative count")
    return pa.array(counts, pa.int64())


def storable(index: IndexDefinition, metadata: Metadata) -> bool:
    """Whether metadata fits the index's column exactly; otherwise it is left out and counts as unknown."""
    try:
        column_of(index, [metadata])
    except UNFIT:
        return False
    return True


def weight(metadata: Metadata) -> int:
    """The approximate size of metadata in bytes."""
    values: list[Value]
    match metadata:
        case Intervals(ranges):
            values = [end for pair in ranges or () for end in pair]
        case Values(some):
            values = list(some)
        case Fingerprints():
            return 32 + len(metadata.packed)
        case Boxes(boxes):
            return 16 + 16 * sum(len(box) for box in boxes)
    if values and isinstance(values[0], (str, bytes)):
        lengths = sum(len(value) for value in values if isinstance(value, (str, bytes)))
        return 16 + 8 * len(values) + 2 * lengths
    return 16 + 16 * len(values)


def metadata_of(index: IndexDefinition, column: pa.StructArray) -> Iterator[Metadata | None]:
    """The metadata of each row of a column; None if unknown."""
    column = conformed(column, column_type(index))
    known = column.is_valid().to_pylist()
    field = dict(zip([one.name for one in column.type], column.flatten(), strict=True))
    if index.kind == "boxes":
        for is_known, axes, bounds in zip(known, field["axes"].to_pylist(), field["bounds"].to_pylist(), strict=True):
            yield Boxes(_boxes(axes, bounds)) if is_known else None
        return
    type = index.value_type
    intervals = [
        None if low is None or high is None else tuple(zip(low, high, strict=True))
        for low, high in zip(_rows(field["low"], type), _rows(field["high"], type), strict=True)
    ]
    counts = list(zip(field["nulls"].to_pylist(), field["nans"].to_pylist(), strict=True))
    if index.kind == "intervals":
        for is_known, ranges, count in zip(known, intervals, counts, strict=True):
            yield Intervals(ranges, *count) if is_known else None
        return
    prints = zip(*(field[name].to_pylist() for name in ("space", "count", "cells")), strict=True)
    sets = zip(known, _rows(field["values"], type), prints, intervals, counts, strict=True)
    for is_known, values, (space, held, packed), ranges, count in sets:
        if not is_known:
            yield None
        elif values is not None:
            yield Values(frozenset(values), *count)
        else:
            yield Intervals(ranges, *count) if packed is None else Fingerprints(space, held, packed, *count)


def _rows(lists: pa.ListArray, type: DataType) -> Iterator[list[Value] | None]:
    flat = python_values(lists.values, type)
    offsets = lists.offsets.to_pylist()
    for row, is_valid in enumerate(lists.is_valid().to_pylist()):
        yield flat[offsets[row] : offsets[row + 1]] if is_valid else None


def _boxes(axes: int, bounds: list[float]) -> tuple[tuple[tuple[float, float], ...], ...]:
    if not axes:
        return ()
    sides = list(zip(bounds[::2], bounds[1::2], strict=True))
    return tuple(tuple(sides[i : i + axes]) for i in range(0, len(sides), axes))
