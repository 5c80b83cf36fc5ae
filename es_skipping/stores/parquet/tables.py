"""Converts objects to Arrow tables, and merges tables of several segments."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from es_skipping.catalog import DatasetDefinition, IndexDefinition, ObjectId, ObjectMetadata
from es_skipping.clauses.metadata import Metadata
from es_skipping.stores.parquet.columns import UNFIT, column_of, column_type, conformed, metadata_of, storable, weight
from es_skipping.stores.parquet.manifest import Segment
from es_skipping.stores.parquet.segment import IDENTITY, identity_columns

__all__ = ["Layout", "fitting", "objects_of"]


class Layout:
    """The columns that segments of a definition have, of the indexes that are understood.

    Parameters
    ----------
    definition
        The indexes, in order.
    columns
        Column name by index id.
    """

    def __init__(self, definition: DatasetDefinition, columns: Mapping[str, str]) -> None:
        self.indexes: dict[str, IndexDefinition] = {columns[index.id]: index for index in definition.understood}
        self.schema = pa.schema([*IDENTITY, *((name, column_type(index)) for name, index in self.indexes.items())])
        self.labels = {name: index.id for name, index in self.indexes.items()}

    def table(self, objects: Sequence[ObjectMetadata]) -> pa.Table:
        """A row per object; metadata that does not fit its index's type is left out and counts as unknown."""
        columns: dict[str, pa.Array] = dict(
            identity_columns([one.id for one in objects], [one.rows for one in objects])
        )
        for name, index in self.indexes.items():
            columns[name] = _column(index, [one.metadata.get(index.id) for one in objects])
        return pa.table(columns, self.schema)

    def readable(self, segment: Segment) -> list[str]:
        """The index columns that a segment has."""
        return [name for name in self.indexes if name in segment.columns]

    def widened(self, table: pa.Table) -> pa.Table:
        """The table with null columns for the indexes it lacks."""
        columns = [
            _of_type(table[field.name].combine_chunks(), field.type)
            if field.name in table.column_names
            else pa.nulls(len(table), field.type)
            for field in self.schema
        ]
        return pa.table(columns, self.schema)

    def merged(self, new: pa.Table, old: pa.Table, old_row: np.ndarray) -> pa.Table:
        """Fill in metadata that ``new`` lacks from ``old``.

        Parameters
        ----------
        old_row
            For each row of ``new``, the row of ``old`` with the same object; -1 if there is none.
        """
        count = len(new)
        merged = [new[name] for name in IDENTITY.names]
        for position, name in enumerate(self.schema.names):
            if name in IDENTITY.names and name != "rows":
                continue
            mine, theirs = new[name].combine_chunks(), old[name].combine_chunks()
            lacking = ~mine.is_valid().to_numpy(zero_copy_only=False) & (old_row >= 0)
            source = np.where(lacking, count + old_row, np.arange(count))
            column = pa.concat_arrays([mine, theirs]).take(pa.array(source)) if lacking.any() else mine
            if name == "rows":
                merged[IDENTITY.names.index("rows")] = column
            else:
                assert position == len(merged)
                merged.append(column)
        return pa.table(merged, self.schema)


def _of_type(column: pa.Array, type: pa.DataType) -> pa.Array:
    return conformed(column, type) if pa.types.is_struct(type) else column


def _column(index: IndexDefinition, metadata: list[Metadata | None]) -> pa.StructArray:
    try:
        return column_of(index, metadata)
    except UNFIT:  # rare, so only then try each alone
        return column_of(index, [one if one is not None and storable(index, one) else None for one in metadata])


def fitting(one: ObjectMetadata, definition: DatasetDefinition, limit: int) -> tuple[ObjectMetadata, int]:
    """An object with the metadata that can be stored, and its approximate bytes.

    Leaves out metadata of other indexes and, if the object is too large, the largest metadata: the object is then
    unknown to that index, and kept.
    """
    defined = {index.id for index in definition.indexes}
    weights = {id: weight(metadata) for id, metadata in one.metadata.items() if id in defined}
    total = sum(weights.values())
    for id in heapq.nlargest(len(weights), weights, key=weights.__getitem__) if total > limit else ():
        total -= weights.pop(id)
        if total <= limit:
            break
    kept = {id: one.metadata[id] for id in weights}
    return ObjectMetadata(one.id, one.rows, kept), total + 2 * len(one.id.path) + 64


def objects_of(table: pa.Table, indexes: Mapping[str, IndexDefinition]) -> Iterator[ObjectMetadata]:
    """The objects of a table with these index columns."""
    paths, lengths = table["path"].to_pylist(), table["length"].to_pylist()
    mtimes, rows = table["mtime"].to_pylist(), table["rows"].to_pylist()
    columns = [list(metadata_of(index, table[name].combine_chunks())) for name, index in indexes.items()]
    ids = [index.id for index in indexes.values()]
    for n, (path, length, mtime, count) in enumerate(zip(paths, lengths, mtimes, rows, strict=True)):
        known = {id: column[n] for id, column in zip(ids, columns, strict=True)}
        metadata = {id: one for id, one in known.items() if one is not None}
        yield ObjectMetadata(ObjectId(path, length, mtime), count, metadata)
