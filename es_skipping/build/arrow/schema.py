"""The schema that Spark infers from a Parquet footer, as ``StructType.jsonValue()``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

if TYPE_CHECKING:
    import pyarrow.parquet as pq

__all__ = ["inferred_schema"]

_WRITTEN_BY_SPARK: Final = b"org.apache.spark.sql.parquet.row.metadata"
_PLAIN: Final = {
    pa.bool_(): "boolean",
    pa.int8(): "byte",
    pa.int16(): "short",
    pa.int32(): "integer",
    pa.int64(): "long",
    pa.uint8(): "short",
    pa.uint16(): "integer",
    pa.uint32(): "long",
    pa.uint64(): "decimal(20,0)",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.large_string(): "string",
    pa.string_view(): "string",
    pa.binary(): "binary",
    pa.large_binary(): "binary",
    pa.binary_view(): "binary",
    pa.date32(): "date",
    pa.date64(): "date",
}


def inferred_schema(footer: pq.FileMetaData) -> dict[str, Any]:
    """The schema; a field whose type Spark does not read is left out.

    Where a guess differs from what Spark infers, queries do not use the indexes of that column.
    """
    written = (footer.metadata or {}).get(_WRITTEN_BY_SPARK)
    if written is not None:
        found: dict[str, Any] = _nullable(json.loads(written))
        return found
    return _struct(list(footer.schema.to_arrow_schema()))


def _struct(fields: list[pa.Field]) -> dict[str, Any]:
    types = [(field.name, _type(field.type)) for field in fields]
    return {
        "type": "struct",
        "fields": [
            {"name": name, "type": type, "nullable": True, "metadata": {}} for name, type in types if type is not None
        ],
    }


def _type(type: pa.DataType) -> Any:
    while isinstance(type, pa.BaseExtensionType):
        type = type.storage_type
    if pa.types.is_dictionary(type):
        return _type(type.value_type)
    if pa.types.is_decimal(type):
        return f"decimal({type.precision},{type.scale})" if type.precision <= 38 else None
    if pa.types.is_timestamp(type):  # INT96 has nanoseconds and no zone; other nanoseconds are refused by Spark
        return "timestamp" if type.tz is not None or type.unit == "ns" else "timestamp_ntz"
    if pa.types.is_fixed_size_binary(type):
        return "binary"
    if pa.types.is_struct(type):
        return _struct([type.field(at) for at in range(type.num_fields)])
    if pa.types.is_map(type):
        key, value = _type(type.key_type), _type(type.item_type)
        if key is None or value is None:
            return None
        return {"type": "map", "keyType": key, "valueType": value, "valueContainsNull": True}
    if pa.types.is_list(type) or pa.types.is_large_list(type) or pa.types.is_fixed_size_list(type):
        element = _type(type.value_type)
        return None if element is None else {"type": "array", "elementType": element, "containsNull": True}
    return _PLAIN.get(type)


def _nullable(data: Any) -> Any:
    """A schema in which everything may be null, as that of files is."""
    if isinstance(data, dict):
        marks = {"nullable", "containsNull", "valueContainsNull"}
        return {name: True if name in marks else _nullable(value) for name, value in data.items()}
    return [_nullable(one) for one in data] if isinstance(data, list) else data
