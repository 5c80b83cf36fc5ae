"""Many small segments made few: what refreshes leave behind."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from es_skipping.stores.parquet.manifest import Segment
from es_skipping.stores.parquet.segment import IDENTITY
from es_skipping.stores.parquet.tables import Layout

__all__ = ["MAX_BYTES", "MAX_ROWS", "compacted", "to_compact"]

MAX_ROWS: Final = 50_000
"""Objects in a segment, at most."""

MAX_BYTES: Final = 64 << 20
"""About how large a segment may get in memory; one object's metadata is never larger."""

_SMALL_ROWS: Final = MAX_ROWS // 2
_SMALL_BYTES: Final = MAX_BYTES // 8
_MOST_SMALL: Final = 8


def to_compact(segments: Sequence[Segment], thoroughly: bool) -> list[Segment]:
    """The segments worth rewriting.

    Parameters
    ----------
    thoroughly
        All that can be improved, rather than only where small segments pile up or most of one is dead.
    """
    small = [one for one in segments if one.live < _SMALL_ROWS and one.size < _SMALL_BYTES]
    waste = [one for one in segments if one.live * 2 < one.rows]
    if thoroughly:
        waste = [one for one in segments if one.live < one.rows]
        small = small if len(small) > 1 else []
    elif len(small) <= _MOST_SMALL:
        small = []
    chosen = {one.file for one in (*small, *waste)}
    return [one for one in segments if one.file in chosen]


def compacted(
    segments: Sequence[Segment],
    layout: Layout,
    read: Callable[[Segment, list[str]], pa.Table],
    write: Callable[[pa.Table], Segment],
) -> list[Segment]:
    """The live rows of these segments in as few new ones as may be.

    Parameters
    ----------
    read, write
        Give some columns of a segment, and make one of a table.
    """
    return [write(table) for table in _full(_live(segments, layout, read))]


def _live(
    segments: Sequence[Segment], layout: Layout, read: Callable[[Segment, list[str]], pa.Table]
) -> Iterator[pa.Table]:
    for segment in segments:
        table = read(segment, [*IDENTITY.names, *layout.readable(segment)])
        yield layout.widened(table.take(pa.array(np.flatnonzero(~segment.dead_rows()))))


def _full(tables: Iterator[pa.Table]) -> Iterator[pa.Table]:
    """The same rows in tables that are as large as a segment may be."""
    waiting: list[pa.Table] = []
    for table in tables:
        rows, size = sum(map(len, waiting)) + len(table), sum(one.nbytes for one in waiting) + table.nbytes
        if waiting and (rows > MAX_ROWS or size > MAX_BYTES):
            yield pa.concat_tables(waiting)
            waiting = []
        if len(table):
            waiting.append(table)
    if waiting:
        yield pa.concat_tables(waiting)
