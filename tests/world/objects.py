"""Every object of at most three rows, its metadata by the indexes' own collectors, and what that metadata admits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import combinations_with_replacement
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from es_skipping.catalog import IndexDefinition
from es_skipping.clauses.fingerprints import cell_of, cells_of, hash_of
from es_skipping.clauses.merge import Labeller
from es_skipping.clauses.metadata import Boxes, Fingerprints, Intervals, Metadata, Values
from es_skipping.indexes.base import Index, Target
from es_skipping.indexes.filters import filters_of
from es_skipping.indexes.registry import index_id
from es_skipping.predicates.types import DataType
from tests.world.tabulate import Collected

__all__ = ["MOST_ROWS", "Indexed", "Objects", "admitted", "all_objects"]

MOST_ROWS: Final = 3

Objects: TypeAlias = tuple[tuple[int, ...], ...]
"""Each object as the numbers of its rows, in ascending order; a number twice is a row twice."""


def all_objects(rows: int) -> Objects:
    """Every multiset of at most three of these rows, the empty one too."""
    return tuple(
        object for count in range(MOST_ROWS + 1) for object in combinations_with_replacement(range(rows), count)
    )


@dataclass(frozen=True)
class Indexed:
    """An index of a domain: its definition, and its metadata of every object and of every row by itself.

    Parameters
    ----------
    labeller
        Makes its clauses.
    definition
        As a store remembers it.
    of_object
        By object; None is unknown.
    of_row
        By row, as of an object that holds this row alone; with it the row is recognised in other metadata.
    """

    labeller: Labeller
    definition: IndexDefinition
    of_object: tuple[Metadata | None, ...]
    of_row: tuple[Metadata | None, ...]
    row_values: tuple[Any, ...]

    @property
    def id(self) -> str:
        return self.definition.id

    @classmethod
    def of(cls, index: Index, collected: Collected, objects: Objects) -> Indexed:
        """Collect every object."""
        types = tuple(operand.type for operand in collected.operands)
        index.check(types)
        texts = [str(column) for column in index.columns]
        id = index_id(index, texts)
        target = Target(id, collected.operands, types)
        definition = IndexDefinition(
            id=id,
            type=index.type,
            columns=tuple(texts),
            kind=index.kind,
            value_type=index.value_type(types),
            column_types=types,
            parameters=index.parameters,
        )
        collector = index.collector(types)

        def metadata(rows: Sequence[int]) -> Metadata | None:
            # A row at a time: merging is a part of collecting.
            parts = [
                collector.partial([column.take(pa.array(part, pa.int64())) for column in collected.columns])
                for part in ([[row] for row in rows] or [[]])
            ]
            found: Metadata | None = collector.finish(reduce(collector.merge, parts))
            return found

        count = len(collected.columns[0])
        return cls(
            Labeller(index, target, filters_of(type(index))),
            definition,
            tuple(map(metadata, objects)),
            tuple(metadata([row]) for row in range(count)),
            tuple(_value(collected.columns[0][row], definition.value_type) for row in range(count)),
        )

    def classes(self) -> dict[Metadata | None, list[int]]:
        """The objects by their metadata."""
        found: dict[Metadata | None, list[int]] = {}
        for number, metadata in enumerate(self.of_object):
            found.setdefault(metadata, []).append(number)
        return found

    def admits(self) -> npt.NDArray[np.bool_]:
        """Objects by rows: whether an object with the same metadata may hold the row."""
        found = np.zeros((len(self.of_object), len(self.of_row)), bool)
        for metadata, numbers in self.classes().items():
            found[numbers] = [
                admitted(metadata, row, value) for row, value in zip(self.of_row, self.row_values, strict=True)
            ]
        return found


def _value(scalar: pa.Scalar, type: DataType) -> Any:
    """The one value of a row as it is held, but strings as their bytes; None where it is null."""
    wanted = {"date": pa.int32(), "timestamp": pa.int64(), "timestamp_ntz": pa.int64(), "string": pa.binary()}
    found = scalar.cast(wanted[type.name]) if type.name in wanted else scalar
    return found.as_py()


def admitted(metadata: Metadata | None, row: Metadata | None, value: Any) -> bool:
    """Whether an object of this metadata may hold a row, told from what the kinds of metadata mean.

    Parameters
    ----------
    metadata
        Of an object.
    row
        Of an object that holds the row alone.
    value
        The row's one value, strings as their bytes.
    """
    if metadata is None:
        return True
    match metadata:
        case Boxes(boxes):
            assert isinstance(row, Boxes)
            return not row.boxes or any(_box_in(row.boxes[0], box) for box in boxes)
        case Intervals(ranges, nulls, nans):
            assert isinstance(row, Intervals)
            if row.nulls or row.nans:
                return _counted(row.nulls, nulls) and _counted(row.nans, nans)
            # Strings by their bytes: one that is not UTF-8 may well lie between two that are.
            return ranges is None or any(_bytes(low) <= value <= _bytes(high) for low, high in ranges)
        case Values(values, nulls, nans):
            return isinstance(row, Values) and (
                row.values <= values and _counted(row.nulls, nulls) and _counted(row.nans, nans)
            )
        case Fingerprints(space, count, packed, nulls, nans):
            if row is None:
                return False
            assert isinstance(row, Values | Fingerprints)
            if row.nulls or row.nans:
                return _counted(row.nulls, nulls) and _counted(row.nans, nans)
            return cell_of(hash_of(value), space) in set(cells_of(packed, space, count))


def _bytes(bound: Any) -> Any:
    return bound.encode() if isinstance(bound, str) else bound


def _counted(row: int | None, known: int | None) -> bool:
    return not row or known is None or known > 0


def _box_in(inner: Sequence[tuple[float, float]], outer: Sequence[tuple[float, float]]) -> bool:
    return all(o[0] <= i[0] and i[1] <= o[1] for i, o in zip(inner, outer, strict=True))


def membership(objects: Objects, rows: int) -> npt.NDArray[np.bool_]:
    """Objects by rows: whether the object holds the row."""
    found = np.zeros((len(objects), rows), bool)
    for number, object in enumerate(objects):
        found[number, list(object)] = True
    return found


def definitions(indexed: Mapping[str, Indexed]) -> tuple[IndexDefinition, ...]:
    """Of all the indexes of a world."""
    return tuple(one.definition for one in indexed.values())
