"""The schema of a Parquet file, in Spark's names of types.

Engines take the types of columns from the first file that they are given, and bring the other files' values to them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq

__all__ = ["FileSchema", "schema_of"]

_NAMES: Final[Mapping[Any, str]] = {
    pa.bool_(): "boolean",
    pa.int8(): "tinyint",
    pa.uint8(): "smallint",
    pa.int16(): "smallint",
    pa.uint16(): "int",
    pa.int32(): "int",
    pa.uint32(): "bigint",
    pa.int64(): "bigint",
    pa.uint64(): "decimal(20,0)",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.large_string(): "string",
    pa.date32(): "date",
}


class FileSchema:
    """The columns of one file.

    Attributes
    ----------
    types
        Spark's names of the types of columns and of fields of structs, by path in lower case. Columns whose names
        differ only in case are left out.
    """

    def __init__(self, schema: Any, physical: Mapping[str, str]) -> None:
        self._schema = schema.remove_metadata()
        self._physical = physical
        found: dict[tuple[str, ...], str | None] = {}
        for path, name in self._paths(self._schema, ()):
            key = tuple(part.lower() for part in path)
            found[key] = None if key in found else name
        self.types = {path: name for path, name in found.items() if name is not None}

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, FileSchema)
            and self._physical == other._physical
            and bool(self._schema.equals(other._schema))
        )

    __hash__ = None  # type: ignore[assignment]

    def _paths(self, fields: Any, above: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str | None]]:
        for field in fields:
            path = (*above, field.name)
            yield path, self._name(field.type, ".".join(path))
            if pa.types.is_struct(field.type):
                yield from self._paths(field.type, path)

    def _name(self, type: Any, path: str) -> str | None:
        if pa.types.is_decimal(type):
            return f"decimal({type.precision},{type.scale})"
        if pa.types.is_timestamp(type):
            if self._physical.get(path) == "INT96" or type.tz is not None:
                return "timestamp"
            return "timestamp_ntz" if type.unit != "ns" else None
        return _NAMES.get(type)


def schema_of(filesystem: pafs.FileSystem, path: str) -> FileSchema | None:
    """Read the schema from a file's footer; None if it cannot be read.

    Parameters
    ----------
    filesystem, path
        Where the file is.
    """
    try:
        with filesystem.open_input_file(path) as opened, pq.ParquetFile(opened) as file:
            columns = (file.schema.column(at) for at in range(len(file.schema)))
            return FileSchema(file.schema_arrow, {column.path: column.physical_type for column in columns})
    except (OSError, pa.ArrowException, ValueError):
        return None
