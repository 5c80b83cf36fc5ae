"""Runs in Spark's Python workers during a build: makes partials per object and merges them.

It imports little, because every worker process loads it.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, TypeAlias

if TYPE_CHECKING:
    import pyarrow as pa

    from es_skipping.clauses.metadata import Kind, Metadata
    from es_skipping.indexes.base import Collector
    from es_skipping.predicates.types import DataType
    from es_skipping.stores.share import Share

__all__ = [
    "FINISHED",
    "PARTIAL",
    "CollectPartials",
    "Finish",
    "FinishAndWrite",
    "Part",
    "RowGroupRuns",
    "Unknown",
    "added",
    "finished",
    "nothing",
]

_Found: TypeAlias = "tuple[dict[str, Any], dict[str, str]]"

PARTIAL: Final = "object bigint, rows bigint, parts binary"
FINISHED: Final = PARTIAL

_BATCH_ROWS: Final = 256
_BATCH_BYTES: Final = 1 << 20
_DISTINCT_ROWS: Final = 1 << 21


@dataclass(frozen=True)
class Part:
    """One index's share of a pass.

    Parameters
    ----------
    id
        The index's id.
    collector
        The index's collector.
    columns
        Positions of its selected columns in a batch.
    kind, value_type
        The kind and value type of the collector's metadata.
    nulls_known
        Whether every read sees the same number of nulls.
    levels
        How many levels of arrays the columns have whose elements are collected; 0 for the values of the rows.
    withheld
        Whether the index is protected: then reasons do not quote values.
    """

    id: str
    collector: Collector[Any]
    columns: tuple[int, ...]
    kind: Kind
    value_type: DataType
    nulls_known: bool = True
    levels: int = 0
    withheld: bool = False

    def unknown(self, error: Exception) -> Unknown:
        """In place of a partial, if the collector fails."""
        kind = type(error).__name__
        return Unknown(kind if self.withheld else f"{kind}: {error}")


@dataclass(frozen=True)
class Unknown:
    """Replaces a partial: the index has no metadata for this object."""

    why: str


class CollectPartials:
    """Turns batches of rows, with the object's number in the first column, into partials of all indexes per object.

    Rows of one object are adjacent, because a task reads one split after the other. So memory holds one object's.

    Parameters
    ----------
    parts
        The parts to collect.
    distinct
        Whether the batches come from `es_skipping.spark.relations.distinct_rows`.
    runs
        Cuts a batch into pieces of one object each; None goes by the number in the first column.
    """

    def __init__(self, parts: Sequence[Part], *, distinct: bool = False, runs: RowGroupRuns | None = None) -> None:
        self._parts = tuple(parts)
        self._distinct = distinct
        self._runs: Callable[[pa.RecordBatch], Iterator[tuple[int, pa.RecordBatch]]] = runs or _runs

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        out = _Output()
        current: int | None = None
        rows = 0
        state: list[Any] = []
        for batch in batches:
            if not batch.num_rows:
                continue
            for number, piece in self._runs(batch):
                if number != current:
                    if current is not None:
                        yield from out.add(current, rows, state)
                    current, rows, state = number, 0, [None] * len(self._parts)
                for count, columns in _distinct(piece) if self._distinct else [(piece.num_rows, piece.columns)]:
                    rows += count
                    for at, part in enumerate(self._parts):
                        state[at] = added(part, state[at], columns)
        if current is not None:
            yield from out.add(current, rows, state)
        yield from out.flush()


class Finish:
    """Merges partials, sorted by object, into each object's metadata by index id."""

    def __init__(self, parts: Sequence[Part]) -> None:
        self._parts = tuple(parts)

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        out = _Output()
        for number, rows, found in self.objects(batches):
            yield from out.add(number, rows, found)
        yield from out.flush()

    def objects(self, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, int, _Found]]:
        """Yield each object's number, its number of rows, and the result of `finished`."""
        current: int | None = None
        rows = 0
        state: list[Any] = []
        for batch in batches:
            numbers, counts, blobs = (column.to_pylist() for column in batch.columns)
            for number, count, blob in zip(numbers, counts, blobs, strict=True):
                partials = pickle.loads(blob)  # noqa: S301 - written by our own workers
                if number != current:
                    if current is not None:
                        yield current, rows, finished(self._parts, state)
                    current, rows, state = number, count, partials
                    continue
                rows += count
                for at, part in enumerate(self._parts):
                    state[at] = _merged(part, state[at], partials[at])
        if current is not None:
            yield current, rows, finished(self._parts, state)


class FinishAndWrite:
    """Like `Finish`, but writes the metadata to the store and yields only receipts.

    Parameters
    ----------
    parts
        As for `Finish`.
    share
        The share of a change that writes the objects.
    numbers
        The objects' numbers, in the order of the share.
    counted
        Whether to store the number of rows.
    """

    def __init__(self, parts: Sequence[Part], share: Share, numbers: Sequence[int], *, counted: bool) -> None:
        self._finish = Finish(parts)
        self._share = share
        self._numbers = tuple(numbers)
        self._counted = counted

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from es_skipping.catalog import ObjectMetadata

        out = _Output()
        places = {number: place for place, number in enumerate(self._numbers)}
        waiting: dict[int, tuple[int, dict[str, str]]] = {}
        strays: list[tuple[int, int]] = []

        def found() -> Iterator[tuple[int, ObjectMetadata]]:
            for number, rows, (known, unknown) in self._finish.objects(batches):
                place = places.get(number)
                if place is None:
                    strays.append((number, rows))
                    continue
                waiting[place] = rows, unknown
                yield place, ObjectMetadata(self._share.objects[place], rows if self._counted else None, known)

        for outcome in self._share.put(found()):
            rows, unknown = waiting.pop(outcome.place)
            yield from out.add(self._numbers[outcome.place], rows, (outcome, unknown))
        for number, rows in strays:
            yield from out.add(number, rows, (None, {}))
        yield from out.flush()


def finished(parts: Sequence[Part], state: Sequence[Any]) -> _Found:
    """Metadata by index id; and the reasons, by index id, for collectors that failed."""
    from dataclasses import replace

    from es_skipping.clauses.check import why_no_metadata
    from es_skipping.clauses.metadata import Boxes

    known: dict[str, Any] = {}
    unknown: dict[str, str] = {}
    for part, partial in zip(parts, state, strict=True):
        if not isinstance(partial, Unknown):
            try:
                metadata = part.collector.finish(partial)
                wrong = None if metadata is None else why_no_metadata(metadata, part.kind, part.value_type)
            except Exception as error:
                wrong = part.unknown(error).why
            else:
                if wrong is not None and part.withheld:
                    wrong = f"this is not metadata of kind {part.kind}"
            if wrong is not None:
                partial = Unknown(wrong)
            else:
                if metadata is not None and not isinstance(metadata, Boxes) and not part.nulls_known:
                    metadata = replace(metadata, nulls=None)
                if metadata is not None:
                    known[part.id] = metadata
                continue
        unknown[part.id] = partial.why
    return known, unknown


def nothing(kind: Kind, counted: bool) -> Metadata:
    """The metadata of an object without rows."""
    from es_skipping.clauses.metadata import Boxes, Intervals, Values

    nulls = 0 if counted else None
    if kind == "intervals":
        return Intervals((), nulls)
    return Boxes(()) if kind == "boxes" else Values(frozenset(), nulls)


def _distinct(piece: pa.RecordBatch) -> Iterator[tuple[int, list[pa.Array]]]:
    """The number of rows that a piece represents, and its columns for these rows, without repeated values.

    The columns differ in length; the first, with the object's number, is unused. A piece that represents very many rows
    is split into parts, because its nulls are written out.
    """
    import numpy as np

    counts = piece.column(1)
    chunks = np.flatnonzero(counts.is_valid().to_numpy(zero_copy_only=False))
    represented = np.zeros(piece.num_rows, np.int64)
    represented[chunks] = counts.flatten().to_numpy()[:: 1 + 2 * (piece.num_columns - 2)]
    total = np.cumsum(represented)
    start = 0
    while start < piece.num_rows:
        before = int(total[start - 1]) if start else 0
        end = max(start + 1, int(np.searchsorted(total, before + _DISTINCT_ROWS, side="right")))
        yield int(total[end - 1]) - before, _told_again(piece.slice(start, end - start))
        start = end


def _told_again(piece: pa.RecordBatch) -> list[pa.Array]:
    import pyarrow as pa

    counts = piece.column(1).flatten().to_numpy().reshape(-1, 1 + 2 * (piece.num_columns - 2)).sum(axis=0).tolist()
    columns = [piece.column(0)]
    for values, nulls, nans in zip(piece.columns[2:], counts[1::2], counts[2::2], strict=True):
        parts = [values.drop_null()]
        if nulls:
            parts.append(pa.nulls(nulls, values.type))
        if nans:
            parts.append(pa.repeat(pa.scalar(float("nan"), values.type), nans))
        columns.append(parts[0] if len(parts) == 1 else pa.concat_arrays(parts))
    return columns


def added(part: Part, state: Any, columns: Sequence[pa.Array]) -> Any:
    """Add a piece of an object. If a collector fails, only its own index becomes unknown for this object."""
    if isinstance(state, Unknown):
        return state
    try:
        partial = part.collector.partial([_elements(columns[at], part.levels) for at in part.columns])
        return partial if state is None else part.collector.merge(state, partial)
    except Exception as error:
        return part.unknown(error)


def _elements(array: Any, levels: int) -> Any:
    """The elements of all rows, in order; a null or empty array has none."""
    for _ in range(levels):
        array = array.flatten()
    return array


def _merged(part: Part, first: Any, second: Any) -> Any:
    for partial in (first, second):
        if isinstance(partial, Unknown):
            return partial
    try:
        return part.collector.merge(first, second)
    except Exception as error:
        return part.unknown(error)


class RowGroupRuns:
    """Cuts batches into pieces of one row group each, by the place of each row in its file, in the last column.

    Parameters
    ----------
    files
        By file number, the number of the first row group and the places where its row groups end. Row groups of a file
        are numbered in order.
    """

    STRAY: Final = -1
    """The number of rows of no known row group."""

    def __init__(self, files: Mapping[int, tuple[int, Sequence[int]]]) -> None:
        self._files = dict(files)

    def __call__(self, batch: pa.RecordBatch) -> Iterator[tuple[int, pa.RecordBatch]]:
        import numpy as np

        for number, piece in _runs(batch):
            first, ends = self._files.get(number, (self.STRAY, ()))
            if not ends:
                yield self.STRAY, piece
                continue
            places = piece.column(piece.num_columns - 1).to_numpy()
            groups = np.searchsorted(np.asarray(ends, np.int64), places, side="right")
            bounds = [0, *(np.flatnonzero(np.diff(groups)) + 1).tolist(), piece.num_rows]
            for start, end in pairwise(bounds):
                group = int(groups[start])
                yield (first + group if group < len(ends) else self.STRAY), piece.slice(start, end - start)


def _runs(batch: pa.RecordBatch) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The runs of adjacent rows of one object; nearly always one."""
    import pyarrow.compute as pc

    numbers = batch.column(0)
    bounds = pc.min_max(numbers)
    if bounds["min"] == bounds["max"]:
        yield bounds["min"].as_py(), batch
        return
    ends = pc.run_end_encode(numbers)
    start = 0
    for end, number in zip(ends.run_ends.to_pylist(), ends.values.to_pylist(), strict=True):
        yield number, batch.slice(start, end - start)
        start = end


class _Output:
    """Gathers rows into batches of limited size."""

    def __init__(self) -> None:
        self._rows: list[tuple[int, int, bytes]] = []
        self._bytes = 0

    def add(self, number: int, rows: int, parts: Any) -> Iterator[pa.RecordBatch]:
        blob = pickle.dumps(parts, protocol=pickle.HIGHEST_PROTOCOL)
        self._rows.append((number, rows, blob))
        self._bytes += len(blob)
        if len(self._rows) >= _BATCH_ROWS or self._bytes >= _BATCH_BYTES:
            yield from self.flush()

    def flush(self) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        if not self._rows:
            return
        numbers, rows, blobs = zip(*self._rows, strict=True)
        self._rows, self._bytes = [], 0
        yield pa.RecordBatch.from_arrays(
            [pa.array(numbers, pa.int64()), pa.array(rows, pa.int64()), pa.array(blobs, pa.binary())],
            names=["object", "rows", "parts"],
        )
