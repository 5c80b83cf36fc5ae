"""Segments: immutable Parquet files, read column by column, every byte checked against the manifest's digests.

Beside one struct column per index (`es_skipping.stores.parquet.columns`) a segment holds each object's identity::

    key        fixed_size_binary(16)   ObjectId.key
    path_hash  uint64                  of the path: finds an object's older rows
    path       string
    length     int64
    mtime      int64                   milliseconds since the epoch
    rows       int64                   null where unknown
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from es_skipping.catalog import ObjectId
from es_skipping.errors import StoreError
from es_skipping.stores.base import KEY_BYTES, is_under
from es_skipping.stores.files import Files
from es_skipping.stores.parquet.manifest import Segment, Stretch, digest, segment_path

__all__ = [
    "IDENTITY",
    "adopt_segment",
    "folders_of",
    "identity_columns",
    "path_hash",
    "read_columns",
    "rows_under",
    "segment_age",
    "segment_builder",
    "write_segment",
]

IDENTITY: Final = pa.schema(
    [
        ("key", pa.binary(KEY_BYTES)),
        ("path_hash", pa.uint64()),
        ("path", pa.string()),
        ("length", pa.int64()),
        ("mtime", pa.int64()),
        ("rows", pa.int64()),
    ]
)
_TAIL: Final = 8


def path_hash(path: str) -> int:
    """64 bits of the path's hash; a collision costs a row of metadata, never a wrong answer."""
    data = path.encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.md5(data, usedforsecurity=False).digest()[:8], "big")


def identity_columns(ids: Sequence[ObjectId], rows: Sequence[int | None]) -> dict[str, pa.Array]:
    """The identity columns of these objects."""
    return {
        "key": pa.array([id.key for id in ids], IDENTITY.field("key").type),
        "path_hash": pa.array([path_hash(id.path) for id in ids], pa.uint64()),
        "path": pa.array([id.path for id in ids], pa.string()),
        "length": pa.array([id.length for id in ids], pa.int64()),
        "mtime": pa.array([id.mtime for id in ids], pa.int64()),
        "rows": pa.array(rows, pa.int64()),
    }


def folders_of(paths: pa.ChunkedArray) -> pa.DictionaryArray:
    """The folder of each path; a dataset has few of them."""
    return pc.replace_substring_regex(paths.combine_chunks(), "/[^/]*$", "").dictionary_encode()


def rows_under(paths: pa.ChunkedArray, under: Collection[str]) -> npt.NDArray[np.bool_]:
    """Which of these paths `is_under`; each folder is tried once.

    A path with half a surrogate pair is in no segment.

    Examples
    --------
    >>> rows_under(pa.chunked_array([["file:/a/day=1/x", "file:/a/day=10/y"]]), ["file:/a/day=1"]).tolist()
    [True, False]
    """
    known = [path for path in under if path.isascii() or path.encode("utf-8", "ignore").decode() == path]
    folders = folders_of(paths)
    below = np.array([is_under(folder, under) for folder in folders.dictionary.to_pylist()], np.bool_)
    exactly = pc.is_in(paths, value_set=pa.array(known, paths.type)).to_numpy()
    return np.asarray(below[folders.indices.to_numpy()] | exactly)


def segment_age(file: str) -> int | None:
    """A segment's time from its name, in milliseconds since the epoch; None for another file.

    Early names began with the time itself. The letter before it protects segments from writers of those versions, which
    may delete segments that a later snapshot uses.
    """
    stamp, _, rest = file.removeprefix("s").partition("-")
    return int(stamp) if stamp.isdigit() and rest.endswith(".parquet") else None


def segment_builder(file: str) -> str | None:
    """The name of the change that wrote a segment; None if it had none."""
    parts = file.split("-")
    return parts[1] if len(parts) == 3 else None


def write_segment(
    files: Files, dataset: str, table: pa.Table, made: int, labels: Mapping[str, str], builder: str | None = None
) -> Segment:
    """Write a table as a new segment.

    Parameters
    ----------
    made
        Time for the name, in milliseconds since the epoch.
    labels
        For people who look into the file: index id by column name.
    builder
        The name of the change, for the file's name.
    """
    schema = _labelled(table.schema, labels)
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(sink, schema, compression="zstd", version="2.6", write_statistics=False) as writer:
        writer.write_table(
            table.cast(schema) if table.schema != schema else table, row_group_size=max(1, table.num_rows)
        )
    data = sink.getvalue().to_pybytes()
    file = "-".join([f"s{made:014}", *([builder] if builder else []), f"{uuid.uuid4().hex}.parquet"])
    segment = _described(file, data, table)
    files.write(segment_path(dataset, file), data)
    return segment


def adopt_segment(
    files: Files, dataset: str, file: str, schema: pa.Schema, labels: Mapping[str, str]
) -> Segment | None:
    """A segment that an unfinished change wrote; None if it is torn or has another schema."""
    data = files.read(segment_path(dataset, file))
    try:
        table = pq.ParquetFile(pa.BufferReader(data)).read(use_threads=False)
    except (pa.ArrowException, OSError, ValueError):
        return None
    if table.schema != schema or _labels(table.schema) != _labels(_labelled(schema, labels)):
        return None
    return _described(file, data, table)


def _labelled(schema: pa.Schema, labels: Mapping[str, str]) -> pa.Schema:
    return schema.with_metadata({f"es_skipping.{name}": id for name, id in labels.items()})


def _labels(schema: pa.Schema) -> dict[bytes, bytes]:
    return {key: value for key, value in (schema.metadata or {}).items() if key.startswith(b"es_skipping.")}


def _described(file: str, data: bytes, table: pa.Table) -> Segment:
    """A segment's entry in the manifest."""
    return Segment(
        file=file,
        size=len(data),
        rows=table.num_rows,
        live=table.num_rows,
        bytes=sum(table["length"].to_numpy().tolist()),
        footer=_stretch(data, _footer_offset(data), len(data)),
        columns={name: _stretch(data, *ends) for name, ends in _column_ends(data).items()},
    )


def _stretch(data: bytes, start: int, end: int) -> Stretch:
    return Stretch(start, end - start, digest(data[start:end]))


def _footer_offset(data: bytes) -> int:
    return len(data) - _TAIL - int.from_bytes(data[-_TAIL : -_TAIL + 4], "little")


def _column_ends(data: bytes) -> dict[str, tuple[int, int]]:
    """The byte range of each top-level column's chunks, which are adjacent in the single row group."""
    ends: dict[str, tuple[int, int]] = {}
    footer = pq.read_metadata(pa.BufferReader(data))
    for group in range(footer.num_row_groups):
        for leaf in range(footer.num_columns):
            chunk = footer.row_group(group).column(leaf)
            starts = [chunk.data_page_offset]
            if chunk.has_dictionary_page and chunk.dictionary_page_offset:
                starts.append(chunk.dictionary_page_offset)
            start = min(starts)
            name = chunk.path_in_schema.partition(".")[0]
            low, high = ends.get(name, (start, start))
            ends[name] = (min(low, start), max(high, start + chunk.total_compressed_size))
    return ends


def read_columns(files: Files, dataset: str, segment: Segment, columns: Iterable[str]) -> pa.Table:
    """Read some columns of a segment, and no byte of the others.

    Raises
    ------
    StoreError
        The file is missing, torn or altered.
    """
    names = list(dict.fromkeys(columns))
    path = segment_path(dataset, segment.file)
    image = bytearray(segment.size)  # zeros except for the bytes read, so that offsets are the file's
    for stretch in _joined([segment.footer, *(segment.columns[name] for name in names)]):
        data = files.read(path, stretch[0].offset, stretch[-1].offset + stretch[-1].length - stretch[0].offset)
        for one in stretch:
            start = one.offset - stretch[0].offset
            part = data[start : start + one.length]
            if len(part) != one.length or digest(part) != one.digest:
                raise StoreError(
                    f"{path} is damaged: bytes {one.offset} to {one.offset + one.length} have changed since they were "
                    "written. Create the dataset's indexes again"
                )
            image[one.offset : one.offset + one.length] = part
    try:
        table = pq.ParquetFile(pa.BufferReader(pa.py_buffer(image))).read(columns=names, use_threads=False)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise StoreError(f"{path} cannot be read: {error}") from error
    if table.num_rows != segment.rows or set(table.column_names) != set(names):
        raise StoreError(f"{path} is damaged: its rows or columns differ from those written")
    return table


def _joined(stretches: list[Stretch]) -> list[list[Stretch]]:
    """Byte ranges in file order; adjacent ranges become one read."""
    groups: list[list[Stretch]] = []
    for stretch in sorted(stretches, key=lambda one: one.offset):
        if groups and groups[-1][-1].offset + groups[-1][-1].length == stretch.offset:
            groups[-1].append(stretch)
        else:
            groups.append([stretch])
    return groups
