"""Compacts the many small segments that refreshes write."""

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
"""Most objects in a segment."""

MAX_BYTES: Final = 64 << 20
"""Approximate limit of a segment in memory; one object's metadata is never larger."""

_SMALL_ROWS: Final = MAX_ROWS // 2
_SMALL_BYTES: Final = MAX_BYTES // 8
_MAX_SMALL_SEGMENTS: Final = 8


def to_compact(segments: Sequence[Segment], thoroughly: bool) -> list[Segment]:
    """The segments worth rewriting.

    Parameters
    ----------
    thoroughly
        Rewrite everything that can be improved, not only many small segments and mostly dead ones.
    """
    small = [one for one in segments if one.live < _SMALL_ROWS and one.size < _SMALL_BYTES]
    waste = [one for one in segments if one.live * 2 < one.rows]
    if thoroughly:
        waste = [one for one in segments if one.live < one.rows]
        small = small if len(small) > 1 else []
    elif len(small) <= _MAX_SMALL_SEGMENTS:
        small = []
    chosen = {one.file for one in (*small, *waste)}
    return [one for one in segments if one.file in chosen]


def compacted(
    segments: Sequence[Segment],
    layout: Layout,
    read: Callable[[Segment, list[str]], pa.Table],
    write: Callable[[pa.Table], Segment],
) -> list[Segment]:
    """Write the live rows of these segments to as few new ones as possible.

    Parameters
    ----------
    read, write
        Functions that read some columns of a segment, and that write a table as one.
    """
    return [write(table) for table in _full(_live(segments, layout, read))]


def _live(
    segments: Sequence[Segment], layout: Layout, read: Callable[[Segment, list[str]], pa.Table]
) -> Iterator[pa.Table]:
    for segment in segments:
        table = read(segment, [*IDENTITY.names, *layout.readable(segment)])
        yield layout.widened(table.take(pa.array(np.flatnonzero(~segment.dead_rows()))))


def _full(tables: Iterator[pa.Table]) -> Iterator[pa.Table]:
    """Regroup rows into tables of the largest size of a segment."""
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
