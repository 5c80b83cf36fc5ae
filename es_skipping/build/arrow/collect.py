"""Collects the metadata of Parquet files that pyarrow reads, with the collectors that Spark's workers run.

Where Spark may read other values than pyarrow, an index has no metadata for the object, and queries keep it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from es_skipping.build.failures import withheld
from es_skipping.build.footers import Footer, can_answer, exact_leaf, open_footer, read_extent
from es_skipping.build.worker import Part, Unknown, added, finished, nothing
from es_skipping.catalog import ObjectId, ObjectMetadata
from es_skipping.errors import IndexDefinitionError
from es_skipping.indexes.base import Index
from es_skipping.predicates.tree import Column
from es_skipping.predicates.types import DataType

if TYPE_CHECKING:
    import pyarrow.fs as pafs

    from es_skipping.build.arrow.source import FilesSource
    from es_skipping.build.wanted import Wanted

__all__ = ["FilesCollection"]

_BATCH_ROWS: Final = 1 << 16
_OBJECTS_AHEAD: Final = 4
"""Objects per thread that may be finished before the store takes them."""
_ARROW_TYPES: Final = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}


@dataclass
class FilesCollection:
    """Collects the metadata of a dataset's files.

    Parameters
    ----------
    system
        The file system.
    source
        The dataset.
    withheld
        Whether an index of the dataset is protected: then reasons do not quote values. They are in the store, in clear.

    Attributes
    ----------
    failed
        Objects that could not be read, with the reason; complete when the iterator of `metadata` is exhausted.
    unknown
        By index id, why it has no metadata for some object; complete at the same time.
    """

    system: pafs.FileSystem
    source: FilesSource
    withheld: bool = False
    failed: dict[ObjectId, str] = field(default_factory=dict)
    unknown: dict[str, str] = field(default_factory=dict)

    def metadata(self, wanted: Sequence[Wanted], files: Mapping[ObjectId, str]) -> Iterator[ObjectMetadata]:
        """Yield the metadata of these indexes and objects.

        Raises
        ------
        IndexDefinitionError
            An index needs Spark to compute what it collects.
        """
        for one in wanted:
            if _needs_spark(one):
                raise IndexDefinitionError(f"{one.index} needs Spark to compute what it collects: build it with Spark")
        footers = can_answer(self.source, wanted)
        threads = os.cpu_count() or 1
        left = iter(files.items())
        waiting: list[tuple[ObjectId, Future[tuple[ObjectMetadata, dict[str, str]]]]] = []
        with ThreadPoolExecutor(threads, thread_name_prefix="es-skipping-files") as pool:
            while True:
                for object, path in islice(left, _OBJECTS_AHEAD * threads - len(waiting)):
                    waiting.append((object, pool.submit(self._one, object, path, wanted, footers=footers)))
                if not waiting:
                    return
                object, future = waiting.pop(0)
                try:
                    found, unknown = future.result()
                except Exception as error:
                    reason = f"{type(error).__name__}: {error}"
                    self.failed[object] = withheld(reason) if self.withheld else reason
                    continue
                for id, why in unknown.items():
                    self.unknown.setdefault(id, why)
                yield found

    def _one(
        self, object: ObjectId, path: str, wanted: Sequence[Wanted], *, footers: bool
    ) -> tuple[ObjectMetadata, dict[str, str]]:
        with self.system.open_input_file(path) as file:
            footer = Footer(open_footer(file))
            known = _from_footer(footer, wanted) if footers else None
            unknown: dict[str, str] = {}
            if known is None:
                known, unknown = _from_rows(file, footer, wanted)
        return ObjectMetadata(object, footer.metadata.num_rows, known), unknown


def _needs_spark(one: Wanted) -> bool:
    """Whether an index collects something that it computes with Spark only."""
    index = type(one.index)
    return index.collected is not Index.collected and index.collected_arrays is Index.collected_arrays


def _from_footer(footer: Footer, wanted: Sequence[Wanted]) -> dict[str, Any] | None:
    """The metadata that the footer proves for every index; None if it does not."""
    known = {}
    for one in wanted:
        column = one.operands[0]
        assert isinstance(column, Column)
        try:
            extent = read_extent(footer, column)
        except Exception:
            return None
        if extent is None:
            return None
        metadata = one.index.collector(one.types).finish(extent)
        if metadata is not None:
            known[one.id] = metadata
    return known


def _from_rows(file: Any, of: Footer, wanted: Sequence[Wanted]) -> tuple[dict[str, Any], dict[str, str]]:
    footer = of.metadata
    columns = list(dict.fromkeys(column for one in wanted for column in one.operands if isinstance(column, Column)))
    leaves = {column: exact_leaf(of, column) for column in columns}
    absent = {column for column in columns if leaves[column] is None and not of.has(column.path[0])}
    strange = {column for column in columns if leaves[column] is None and column not in absent}
    parts = [
        Part(one.id, one.index.collector(one.types), (), one.index.kind, one.value_type, withheld=one.is_protected)
        for one in wanted
    ]
    states: list[Any] = [_why_unknown(one, strange) for one in wanted]
    selected = [leaf for leaf in leaves.values() if leaf is not None]
    rows = 0
    if not all(isinstance(state, Unknown) for state in states):
        for count, batch in _batches(file, footer, selected):
            rows += count
            arrays = {
                column: pa.nulls(count, _arrow_type(column.type)) if leaf is None else _values(batch, leaf, column.type)
                for column, leaf in leaves.items()
                if column not in strange
            }
            for at, (one, part) in enumerate(zip(wanted, parts, strict=True)):
                states[at] = _with(one, part, states[at], arrays)
        if rows != footer.num_rows:
            raise ValueError(f"{rows} rows were read, and the footer says {footer.num_rows}")
    if not footer.num_rows:
        return {one.id: nothing(one.index.kind, True) for one in wanted}, {}
    return finished(parts, states)


def _why_unknown(one: Wanted, strange: set[Column]) -> Unknown | None:
    names = [".".join(column.path) for column in one.operands if column in strange and isinstance(column, Column)]
    return Unknown(f"Spark and pyarrow may read column {names[0]} of some objects differently") if names else None


def _batches(file: Any, footer: pq.FileMetaData, leaves: list[str]) -> Iterator[tuple[int, pa.RecordBatch | None]]:
    if not leaves:  # the file lacks all columns
        for at in range(0, footer.num_rows, _BATCH_ROWS):
            yield min(_BATCH_ROWS, footer.num_rows - at), None
        return
    file.seek(0)
    opened = pq.ParquetFile(file, metadata=footer, page_checksum_verification=True)
    for batch in opened.iter_batches(batch_size=_BATCH_ROWS, columns=leaves, use_threads=False):
        yield batch.num_rows, batch


def _values(batch: pa.RecordBatch | None, leaf: str, type: DataType) -> pa.Array:
    """A leaf's values as Spark's workers get them; null below a null struct."""
    assert batch is not None
    first, *rest = leaf.split(".")
    array = batch.column(batch.schema.get_field_index(first))
    for name in rest:
        array = array.flatten()[array.type.get_field_index(name)]
    while isinstance(array, pa.ExtensionArray):
        array = array.storage
    return array.cast(_arrow_type(type))


def _arrow_type(type: DataType) -> pa.DataType:
    return pa.decimal128(type.precision, type.scale) if type.name == "decimal" else _ARROW_TYPES[type.name]


def _with(one: Wanted, part: Part, state: Any, arrays: Mapping[Column, pa.Array]) -> Any:
    """Add a batch to an index's partial; if that fails, only this index becomes unknown for the object."""
    if isinstance(state, Unknown):
        return state
    try:
        collected = one.index.collected_arrays(
            [arrays[column] for column in one.operands if isinstance(column, Column)]
        )
    except Exception as error:
        return part.unknown(error)
    assert collected is not None
    return added(replace(part, columns=tuple(range(len(collected)))), state, collected)
