"""The rows of a segment in an order, so that those that guarantee something are found first.

A segment never changes, so it is sorted once. The sorting only decides which rows come first; what each guarantees is
read from its metadata when it is its turn.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable, Iterator
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from es_skipping.catalog import IndexDefinition
from es_skipping.stores.base import is_under
from es_skipping.stores.guarantors import Guarantor, Ordering, greatest_first, guarantor, rank
from es_skipping.stores.parquet.answers import Truths, offsets_of
from es_skipping.stores.parquet.columns import column_type, conformed, metadata_of
from es_skipping.stores.parquet.segment import folders_of

__all__ = ["SortedSegment", "merged"]

_FIRST_BATCH: Final = 16
_LARGEST_BATCH: Final = 4_096


class SortedSegment:
    """The rows of a segment, those with the best bounds first.

    Parameters
    ----------
    keys
        Of the objects, by row.
    table
        With the columns ``path`` and ``rows`` and, with an ordering, the index's column.
    index
        The index of the ordering, and its column; None without an ordering.
    """

    def __init__(
        self, keys: np.ndarray, table: pa.Table, index: tuple[IndexDefinition, str] | None, ordering: Ordering | None
    ) -> None:
        self._keys = keys
        self._counts = table["rows"].combine_chunks()
        self._ordering = ordering
        self._index = index
        self._column = None if index is None else conformed(table[index[1]].combine_chunks(), column_type(index[0]))
        by = self._counts if self._column is None else _bounds(self._column, greatest_first(ordering))
        order = "descending" if greatest_first(ordering) else "ascending"
        places = pc.sort_indices(by, sort_keys=[("", order)])  # nulls at the end
        self._order = places.to_numpy()[: len(by) - by.null_count]
        folders = folders_of(table["path"])
        self._folders = folders.dictionary.to_pylist()
        self._folder_of = folders.indices.to_numpy()
        stored = 0 if self._column is None else self._column.nbytes
        self.nbytes = int(stored + self._counts.nbytes + self._order.nbytes + self._folder_of.nbytes)

    def among(self, chosen: Truths, under: Collection[str] | None) -> Iterator[Guarantor]:
        """What the chosen rows below these directories guarantee; None is everywhere."""
        if under is not None:
            chosen = chosen & np.array([is_under(path, under) for path in self._folders], np.bool_)[self._folder_of]
        rows = self._order[chosen[self._order]]
        start, size = 0, _FIRST_BATCH
        while start < len(rows):
            yield from self._guarantors(rows[start : start + size])
            start, size = start + size, min(4 * size, _LARGEST_BATCH)

    def _guarantors(self, rows: np.ndarray) -> Iterator[Guarantor]:
        places = pa.array(rows)
        known: Iterable[Any] = [None] * len(rows)
        if self._column is not None and self._index is not None:
            known = metadata_of(self._index[0], self._column.take(places))
        for row, count, metadata in zip(rows, self._counts.take(places).to_pylist(), known, strict=True):
            found = guarantor(self._keys[row].tobytes(), count, metadata, self._ordering)
            if found is not None:
                yield found


def _bounds(column: pa.StructArray, low: bool) -> pa.Array:
    """The least low or the greatest high end of each row; null where there is none."""
    lists = dict(zip([field.name for field in column.type], column.flatten(), strict=True))["low" if low else "high"]
    offsets = offsets_of(lists)
    start, end = offsets[:-1], offsets[1:]
    places = pa.array(start if low else end - 1, mask=start == end)
    return lists.values.take(places)


def merged(segments: Iterable[Iterator[Guarantor]], ordering: Ordering | None) -> Iterator[Guarantor]:
    """The guarantors of all segments in one order."""
    return heapq.merge(*segments, key=rank(ordering), reverse=greatest_first(ordering))
