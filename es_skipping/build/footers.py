"""MinMax metadata from Parquet footers that are sound; in doubt, a scan reads the object.

If a footer lacks a statistic, the value is unknown, never absent: a row group may have no statistics, the file may lack
a column that has a default, and a writer may leave NaN out. Therefore footers never serve floats, INT96, unsigned
integers, wide decimals, or bounds that may be truncated. Spark must read the type bit for bit. Footers do not serve
files with encrypted columns either: only Spark has the keys.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from es_skipping.catalog import ObjectId, ObjectMetadata
from es_skipping.indexes.minmax import Extent, MinMax
from es_skipping.indexes.toolkit.summaries import lower_bound, upper_bound
from es_skipping.lookup.built_with import reader_options
from es_skipping.lookup.value_settings import setting
from es_skipping.predicates.tree import Column
from es_skipping.predicates.types import DataType

if TYPE_CHECKING:
    import pyarrow.parquet as pq

    from es_skipping.build.arrow.source import FilesSource
    from es_skipping.build.source import Source
    from es_skipping.build.wanted import Wanted

__all__ = ["WITH_FOOTERS", "Footer", "can_answer", "exact_leaf", "from_footers", "open_footer", "read_extent"]

_TEMPORAL: Final = frozenset({"date", "timestamp", "timestamp_ntz"})
_PLAIN_INTEGERS: Final = {"int": ("INT32", 32), "bigint": ("INT64", 64)}
_SMALL_INTEGERS: Final = {"tinyint": 8, "smallint": 16}
_WHOLE_BOUNDS: Final = ("parquet-mr", "parquet-cpp-arrow")
"""Writers that never truncate a bound, and do not record that."""
_THREADS: Final = 16
_FOOTER_READ_BYTES: Final = 1 << 16
_TRAILER_BYTES: Final = 8
"""Bytes at the end of a file: the footer's length and Parquet's magic."""
_LEGACY_DATES: Final = b"org.apache.spark.legacyDateTime"
WITH_FOOTERS: Final = frozenset({"parquet", "delta"})
"""Formats whose files name their columns as the dataset does; of a mapped Delta column, metadata says otherwise."""
_SPARK_VERSION: Final = b"org.apache.spark.version"


def can_answer(source: Source | FilesSource, wanted: Sequence[Wanted]) -> bool:
    """Whether footers can serve at all: every index is a MinMax of a plain column whose type they are sound for."""
    if source.format not in WITH_FOOTERS or reader_options("parquet", source.options):
        return False
    corrected = setting("spark.sql.parquet.datetimeRebaseModeInRead", source.settings) == "CORRECTED"
    for one in wanted:
        if type(one.index) is not MinMax:
            return False
        column = one.columns[0].operand
        if not isinstance(column, Column) or column.type.is_float or not column.type.supported:
            return False
        if any("." in name for name in column.path):
            return False
        if column.type.name in _TEMPORAL and not corrected:
            return False
        if _has_metadata(source.schema, column.path):
            return False
    return True


def _has_metadata(schema: Mapping[str, Any], path: Sequence[str]) -> bool:
    """Whether a field of the path has metadata that may change its values; comments do not."""
    kind: Any = schema
    for name in path:
        field = next(field for field in kind["fields"] if field["name"] == name)
        if set(field.get("metadata") or {}) - {"comment"}:
            return True
        kind = field["type"]
    return False


def from_footers(
    source: Source, wanted: Sequence[Wanted], objects: Sequence[ObjectId], left: list[ObjectId]
) -> Iterator[ObjectMetadata]:
    """Yield the metadata of the objects whose footers serve every index; add the others to ``left``.

    Parameters
    ----------
    source, wanted, objects
        As for a scan; `can_answer` must be true.
    left
        Filled while the iterator runs.
    """
    sensitive = setting("spark.sql.caseSensitive", source.settings) != "false"
    opener = _opener(source)

    def one(object: ObjectId) -> ObjectMetadata | None:
        try:
            footer = Footer(opener(object))
            known = {}
            for index in wanted:
                column = index.columns[0].operand
                assert isinstance(column, Column)
                extent = read_extent(footer, column, sensitive=sensitive)
                if extent is None:
                    return None
                known[index.id] = index.index.collector(index.types).finish(extent)
            rows: int = footer.metadata.num_rows
            return ObjectMetadata(
                object, rows, {id: metadata for id, metadata in known.items() if metadata is not None}
            )
        except Exception:  # the scan finds and reports the error
            return None

    with ThreadPoolExecutor(_THREADS, thread_name_prefix="es-skipping-footers") as pool:
        for at in range(0, len(objects), _THREADS * 64):  # bounds the number of waiting answers
            part = objects[at : at + _THREADS * 64]
            for object, metadata in zip(part, pool.map(one, part), strict=True):
                if metadata is None:
                    left.append(object)
                else:
                    yield metadata


# --- one footer ---------------------------------------------------------------------------------------------------


class Footer:
    """A file's footer. Its columns are found once for all that ask about one of them.

    Parameters
    ----------
    metadata
        As pyarrow reads it.
    """

    def __init__(self, metadata: pq.FileMetaData) -> None:
        self.metadata = metadata
        self._columns: dict[str, list[tuple[Any, int]]] = {}
        at = 0
        for field in metadata.schema.to_arrow_schema():
            self._columns.setdefault(field.name.lower(), []).append((field, at))
            at += _leaves(field.type)
        self._is_plain = at == len(metadata.schema)

    def has(self, name: str) -> bool:
        """Whether there is a top-level column of a name, in any case."""
        return name.lower() in self._columns

    def columns(self, name: str, *, sensitive: bool) -> list[tuple[Any, int]]:
        """The top-level columns of a name, each with the number of its first leaf; none if leaves cannot be told."""
        found = self._columns.get(name.lower(), []) if self._is_plain else []
        return [one for one in found if not sensitive or one[0].name == name]


def read_extent(of: Footer, column: Column, *, sensitive: bool = False) -> Extent | None:
    """The bounds and null count of a column in one file; None if the footer does not prove them.

    Parameters
    ----------
    of
        The file's.
    column
        The column with Spark's name and type.
    sensitive
        Whether names are case-sensitive.
    """
    footer = of.metadata
    if column.type.name in _TEMPORAL and _legacy_calendar(footer.metadata or {}):
        return None
    at = _leaf(of, column.path, sensitive=sensitive)
    if at is None:
        return None
    value = _reader(footer.schema.column(at), column.type)
    if value is None:
        return None
    bytes_ = column.type.name in ("string", "binary")
    whole = (footer.created_by or "").startswith(_WHOLE_BOUNDS)
    found = Extent(None, None, 0, 0)
    lows: list[Any] = []
    highs: list[Any] = []
    nulls = 0
    for group in range(footer.num_row_groups):
        chunk = footer.row_group(group).column(at)
        rows = footer.row_group(group).num_rows
        if not rows:
            continue
        statistics = chunk.statistics if chunk.is_stats_set else None
        if statistics is None or not statistics.has_null_count or chunk.num_values != rows:
            return None
        count = statistics.null_count
        if count is None or not 0 <= count <= rows:
            return None
        nulls += count
        if count == rows:
            continue
        if not statistics.has_min_max:
            return None
        if bytes_ and not (whole or (_exact(statistics, "min") and _exact(statistics, "max"))):
            return None
        lows.append(value(statistics.min_raw))
        highs.append(value(statistics.max_raw))
        if lows[-1] > highs[-1]:
            return None
    if not lows:
        return found._replace(nulls=nulls)
    low, high = min(lows), max(highs)
    if bytes_:
        text = column.type.name == "string"
        if text:
            low.decode("utf-8"), high.decode("utf-8")
        low, high = lower_bound(low, text=text), upper_bound(high, text=text)
        if high is None:
            return None
    return Extent(low, high, nulls, 0)


def exact_leaf(of: Footer, column: Column) -> str | None:
    """The dotted path of the leaf whose values Spark and pyarrow read alike as this column; None if there is none.

    They read INT96 and dates of the old calendar differently, and a leaf of another type than the column's.
    """
    footer = of.metadata
    if column.type.name in _TEMPORAL and _legacy_calendar(footer.metadata or {}):
        return None
    at = _leaf(of, column.path, sensitive=False)
    if at is None:
        return None
    leaf = footer.schema.column(at)
    same = [n for n in range(len(footer.schema)) if footer.schema.column(n).path == leaf.path]
    alike = _reader(leaf, column.type) is not None or _is_read_alike(leaf, column.type)
    return str(leaf.path) if alike and len(same) == 1 else None


def _is_read_alike(leaf: Any, wanted: DataType) -> bool:
    """The types that footers have no sound bounds of."""
    import json

    logical = json.loads(leaf.logical_type.to_json())
    kind = logical.get("Type", "None")
    if wanted.is_float:
        return bool(leaf.physical_type == wanted.name.upper() and kind == "None")
    if wanted.name == "binary":
        return bool(leaf.physical_type == "FIXED_LEN_BYTE_ARRAY" and kind == "None")
    same = (logical.get("precision"), logical.get("scale")) == (wanted.precision, wanted.scale)
    return bool(wanted.name == "decimal" and kind == "Decimal" and same)


def _exact(statistics: pq.Statistics, side: str) -> bool:
    return getattr(statistics, f"is_{side}_value_exact", None) is True


def _legacy_calendar(metadata: Mapping[bytes, bytes]) -> bool:
    """Whether the file's dates use the old calendar, which Spark rebases."""
    version = metadata.get(_SPARK_VERSION)
    return _LEGACY_DATES in metadata or (version is not None and not version[:1].isdigit()) or (version or b"9") < b"3"


def _leaf(footer: Footer, path: Sequence[str], *, sensitive: bool) -> int | None:
    """The file's leaf column at a path through structs; None if it is not unambiguous."""
    import pyarrow as pa

    found = footer.columns(path[0], sensitive=sensitive)
    spelled = []
    for depth, name in enumerate(path):
        if depth:
            parent, at = found[0]
            if not pa.types.is_struct(parent.type):
                return None
            found = _fields_of(parent.type, at, name, sensitive=sensitive)
        if len(found) != 1:
            return None
        spelled.append(found[0][0].name)
    field, at = found[0]
    leaf = footer.metadata.schema.column(at)
    if pa.types.is_nested(field.type) or leaf.max_repetition_level or leaf.path != ".".join(spelled):
        return None
    return at


def _fields_of(struct: Any, at: int, name: str, *, sensitive: bool) -> list[tuple[Any, int]]:
    """The fields of a name in a struct whose first leaf has the number ``at``, each with the number of its own."""
    found = []
    for field in (struct.field(i) for i in range(struct.num_fields)):
        if field.name == name or (not sensitive and field.name.lower() == name.lower()):
            found.append((field, at))
        at += _leaves(field.type)
    return found


def _leaves(kind: Any) -> int:
    import pyarrow as pa

    while isinstance(kind, pa.BaseExtensionType):  # a file has the leaves of the stored form
        kind = kind.storage_type
    if not pa.types.is_nested(kind):
        return 1
    return sum(_leaves(kind.field(i).type) for i in range(kind.num_fields))


def _reader(leaf: Any, wanted: DataType) -> Callable[[Any], Any] | None:
    """A function that converts a statistic's physical value, if Spark reads this Parquet type as ``wanted`` bit for
    bit."""
    import json

    physical = leaf.physical_type
    logical = json.loads(leaf.logical_type.to_json())
    kind = logical.get("Type", "None")
    name = wanted.name
    if name == "boolean":
        return bool if physical == "BOOLEAN" and kind == "None" else None
    if name in _PLAIN_INTEGERS:
        needed, bits = _PLAIN_INTEGERS[name]
        plain = kind == "None" or (
            kind == "Int" and logical.get("bitWidth") == bits and logical.get("isSigned") is True
        )
        return int if physical == needed and plain else None
    if name in _SMALL_INTEGERS:
        signed = kind == "Int" and logical.get("bitWidth") == _SMALL_INTEGERS[name] and logical.get("isSigned") is True
        return int if physical == "INT32" and signed else None
    if name == "date":
        return int if physical == "INT32" and kind == "Date" else None
    if name in ("timestamp", "timestamp_ntz"):
        if physical != "INT64" or kind != "Timestamp" or logical.get("isAdjustedToUTC") is not (name == "timestamp"):
            return None
        factor = {"microseconds": 1, "milliseconds": 1000}.get(str(logical.get("timeUnit")))
        return None if factor is None else (lambda raw: _in_range(int(raw) * factor))
    if name == "decimal":
        same = kind == "Decimal" and (logical.get("precision"), logical.get("scale")) == (
            wanted.precision,
            wanted.scale,
        )
        return (
            (lambda raw: Decimal(int(raw)).scaleb(-wanted.scale)) if same and physical in ("INT32", "INT64") else None
        )
    if name == "string":
        return bytes if physical == "BYTE_ARRAY" and kind == "String" else None
    if name == "binary":
        return bytes if physical == "BYTE_ARRAY" and kind == "None" else None
    return None


def _in_range(microseconds: int) -> int:
    if not -(1 << 63) <= microseconds < 1 << 63:
        raise OverflowError("a timestamp that Spark cannot hold")
    return microseconds


# --- reaching footers ---------------------------------------------------------------------------------------------


def _opener(source: Source) -> Callable[[ObjectId], pq.FileMetaData]:
    spark = source.df.sparkSession
    jvm: Any = spark._jvm
    configuration = spark._jsparkSession.sessionState().newHadoopConf()

    def open_(object: ObjectId) -> pq.FileMetaData:
        if object.path.startswith("file:/"):
            with open("/" + object.path[6:].lstrip("/"), "rb") as file:
                return _whole(file)
        path = jvm.org.apache.hadoop.fs.Path(object.path)
        system = path.getFileSystem(configuration)

        def read(offset: int) -> bytes:
            stream = system.open(path)
            try:
                stream.seek(offset)
                return bytes(jvm.org.apache.commons.io.IOUtils.toByteArray(stream))
            finally:
                stream.close()

        return _whole(_Tail(object.length, read))

    return open_


def open_footer(file: Any) -> pq.FileMetaData:
    """The footer of an open file.

    Raises
    ------
    ValueError
        The footer is signed.
    """
    return _whole(file)


def _whole(file: Any) -> pq.FileMetaData:
    """A file's footer, unless its columns may be encrypted: pyarrow ends the process when it reads such a footer.

    A plain footer of encrypted columns is signed: the signature stands between the footer and its length.

    Raises
    ------
    ValueError
        The footer is signed.
    """
    import pyarrow.parquet as pq

    file.seek(-_TRAILER_BYTES, io.SEEK_END)
    length = int.from_bytes(file.read(4), "little")
    file.seek(0)
    footer = pq.read_metadata(file)
    if footer.serialized_size != length:
        raise ValueError("the footer is signed, so some columns may be encrypted")
    return footer


class _Tail(io.RawIOBase):
    """The end of a remote file, read in one request."""

    def __init__(self, size: int, read: Callable[[int], bytes]) -> None:
        super().__init__()
        self._size = size
        self._read = read
        self._at = 0
        self._from = size
        self._data = b""

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        return self._at

    def read(self, size: int | None = -1) -> bytes:
        end = self._size if size is None or size < 0 else min(self._size, self._at + size)
        if self._at < self._from:
            self._from = max(0, min(self._at, self._size - _FOOTER_READ_BYTES))
            self._data = self._read(self._from)
        data = self._data[self._at - self._from : end - self._from]
        self._at = end
        return data
