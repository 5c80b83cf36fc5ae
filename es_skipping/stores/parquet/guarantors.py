"""What each row of a segment guarantees, in order: made once for a segment, which never changes."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable, Iterator
from typing import Any, Final

import numpy as np
import pyarrow as pa

from es_skipping.catalog import IndexDefinition
from es_skipping.stores.base import is_under
from es_skipping.stores.guarantors import Guarantor, Ordering, greatest_first, guarantor, rank
from es_skipping.stores.parquet.answers import Truths
from es_skipping.stores.parquet.columns import metadata_of

__all__ = ["SegmentGuarantors", "merged"]

_BYTES_PER_ROW: Final = 250


class SegmentGuarantors:
    """The rows of a segment that may guarantee something, those with the best bounds first.

    Parameters
    ----------
    keys
        Of the objects, by row.
    table
        With the columns ``path`` and ``rows`` and, with an ordering, the index's column.
    index
        The index of the ordering, and its column.
    """

    def __init__(
        self, keys: np.ndarray, table: pa.Table, index: tuple[IndexDefinition, str] | None, ordering: Ordering | None
    ) -> None:
        rows = table["rows"].to_pylist()
        known: Iterable[Any] = [None] * len(rows)
        if index is not None:
            known = metadata_of(index[0], table[index[1]].combine_chunks())
        made = (
            (guarantor(key.tobytes(), count, metadata, ordering), row)
            for row, (key, count, metadata) in enumerate(zip(keys, rows, known, strict=True))
        )
        order = rank(ordering)
        found = [(one, row) for one, row in made if one is not None]
        found.sort(key=lambda pair: order(pair[0]), reverse=greatest_first(ordering))
        self._guarantors = [one for one, _ in found]
        self._rows = np.array([row for _, row in found], np.int64)
        directories = [path.rpartition("/")[0] for path in table["path"].to_pylist()]
        numbers = {path: number for number, path in enumerate(dict.fromkeys(directories))}
        self._directories = list(numbers)
        self._directory_of = np.array([numbers[directories[row]] for _, row in found], np.int32)
        self.nbytes = _BYTES_PER_ROW * len(found)

    def among(self, chosen: Truths, under: Collection[str] | None) -> Iterator[Guarantor]:
        """Those of the chosen rows that are below one of these directories; None is everywhere."""
        useful = chosen[self._rows]
        if under is not None:
            useful &= np.array([is_under(path, under) for path in self._directories], np.bool_)[self._directory_of]
        for at in np.flatnonzero(useful):
            yield self._guarantors[at]


def merged(segments: Iterable[Iterator[Guarantor]], ordering: Ordering | None) -> Iterator[Guarantor]:
    """The guarantors of all segments in one order."""
    return heapq.merge(*segments, key=rank(ordering), reverse=greatest_first(ordering))
