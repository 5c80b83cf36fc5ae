"""Definitions and metadata as data that JSON holds exactly; the stores share it.

Values are written as `es_skipping.predicates.codec` writes them: integers, dates and timestamps as numbers, floats and
decimals as text, binary as hex.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping
from dataclasses import asdict
from decimal import Decimal
from typing import Any

from es_skipping.catalog import CoveredSnapshot, DatasetDefinition, IndexDefinition, Protection
from es_skipping.clauses.metadata import Boxes, Fingerprints, Intervals, Metadata, Values
from es_skipping.errors import StoreError, StoreFormatError
from es_skipping.predicates.codec import value_from_data, value_to_data
from es_skipping.predicates.types import DataType, parse_type
from es_skipping.stores.base import FORMAT_VERSION

__all__ = [
    "check_format",
    "definition_from_data",
    "definition_to_data",
    "index_from_data",
    "index_to_data",
    "metadata_from_data",
    "metadata_to_data",
]


def check_format(data: Mapping[str, Any], where: str) -> None:
    """Refuse data that a newer version of this package wrote.

    Parameters
    ----------
    data
        Something with a ``"format"``.
    where
        For the message: what was read.

    Raises
    ------
    StoreFormatError
        The format is newer than this version reads.
    StoreError
        There is no format: it was not written by this package, or it is damaged.
    """
    version = data.get("format")
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise StoreError(f"{where} has no format version: it is damaged, or was not written by es_skipping")
    if version > FORMAT_VERSION:
        raise StoreFormatError(
            f"{where} is in format {version}, this version of es_skipping reads up to {FORMAT_VERSION}: "
            "upgrade it here, or use another store URL"
        )


# --- definitions --------------------------------------------------------------------------------------------------


def _plain(data: Any) -> Any:
    """Nested data with its tuples marked, because JSON has only lists and definitions must come back equal."""
    if isinstance(data, tuple):
        return {"$tuple": [_plain(one) for one in data]}
    if isinstance(data, list):
        return [_plain(one) for one in data]
    if isinstance(data, Mapping):
        plain = {key: _plain(value) for key, value in data.items()}
        return {"$mapping": plain} if len(plain) == 1 and next(iter(plain)).startswith("$") else plain
    if isinstance(data, bytes):
        return {"$bytes": base64.b64encode(data).decode("ascii")}
    if isinstance(data, Decimal):
        return {"$decimal": str(data)}
    if isinstance(data, float) and not math.isfinite(data):
        return {"$float": str(data)}
    return data


def _nested(data: Any) -> Any:
    if isinstance(data, list):
        return [_nested(one) for one in data]
    if isinstance(data, dict):
        if len(data) == 1:
            ((mark, inner),) = data.items()
            match mark:
                case "$tuple":
                    return tuple(_nested(one) for one in inner)
                case "$mapping":
                    return {key: _nested(value) for key, value in inner.items()}
                case "$bytes":
                    return base64.b64decode(inner)
                case "$decimal":
                    return Decimal(inner)
                case "$float":
                    return float(inner)
        return {key: _nested(value) for key, value in data.items()}
    return data


def index_to_data(index: IndexDefinition) -> dict[str, Any]:
    """An index definition."""
    return {
        "id": index.id,
        "type": index.type,
        "columns": list(index.columns),
        "kind": index.kind,
        "value_type": str(index.value_type),
        "operands": [_plain(operand) for operand in index.operands],
        "column_types": [str(type) for type in index.column_types],
        "parameters": {name: _plain(value) for name, value in index.parameters.items()},
        "built_with": dict(index.built_with),
        **({"needs": list(index.needs)} if index.needs else {}),
        **({"protection": asdict(index.protection)} if index.protection else {}),
    }


def index_from_data(data: Mapping[str, Any]) -> IndexDefinition:
    """The index definition that `index_to_data` was given.

    Raises
    ------
    StoreError
        A field is missing or of another shape.
    """
    try:
        return IndexDefinition(
            id=data["id"],
            type=data["type"],
            columns=tuple(data["columns"]),
            kind=data["kind"],
            value_type=parse_type(data["value_type"]),
            operands=tuple(_nested(operand) for operand in data["operands"]),
            column_types=tuple(parse_type(text) for text in data["column_types"]),
            parameters={name: _nested(value) for name, value in data["parameters"].items()},
            built_with=dict(data["built_with"]),
            needs=_needs_from_data(data),
            protection=_protection_from_data(data.get("protection")),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise StoreError(f"an index definition in the store is damaged: {type(error).__name__}: {error}") from error


def _needs_from_data(data: Mapping[str, Any]) -> tuple[str, ...]:
    needs = data.get("needs", [])
    if not isinstance(needs, list) or not all(isinstance(one, str) for one in needs):
        raise ValueError(f"needs is {needs!r}, expected a list of names")
    return tuple(needs)


def _protection_from_data(data: Any) -> Protection | None:
    if data is None:
        return None
    found = Protection(**data)
    if not all(isinstance(one, str) for one in asdict(found).values()):
        raise ValueError("a protection has a field that is not text")
    return found


def definition_to_data(definition: DatasetDefinition) -> dict[str, Any]:
    """A dataset's definition, with the format version.

    Examples
    --------
    >>> data = definition_to_data(DatasetDefinition("events", ("file:/data/events",), "parquet"))
    >>> definition_from_data(data).roots
    ('file:/data/events',)
    """
    covered = definition.covered
    return {
        "format": FORMAT_VERSION,
        "id": definition.id,
        "roots": list(definition.roots),
        "table": definition.table,
        "reader": definition.format,
        "options": dict(definition.options),
        "schema": definition.schema,
        "built_with": dict(definition.built_with),
        "indexes": [index_to_data(index) for index in definition.indexes],
        **({"needs": list(definition.needs)} if definition.needs else {}),
        **({} if covered is None else {"covered": [covered.id, covered.stamp, covered.retained]}),
    }


def definition_from_data(data: Mapping[str, Any]) -> DatasetDefinition:
    """The definition that `definition_to_data` was given.

    Raises
    ------
    StoreFormatError
        It is of a newer format.
    StoreError
        A field is missing or of another shape.
    """
    check_format(data, f"the definition of dataset {data.get('id')!r}")
    try:
        return DatasetDefinition(
            id=data["id"],
            roots=tuple(data["roots"]),
            format=data["reader"],
            indexes=tuple(index_from_data(index) for index in data["indexes"]),
            table=data["table"],
            options=dict(data["options"]),
            schema=data["schema"],
            built_with=dict(data["built_with"]),
            needs=_needs_from_data(data),
            covered=CoveredSnapshot(*data["covered"]) if "covered" in data else None,
        )
    except (KeyError, TypeError, ValueError) as error:
        raise StoreError(f"a dataset's definition in the store is damaged: {type(error).__name__}: {error}") from error


# --- metadata -----------------------------------------------------------------------------------------------------


def metadata_to_data(metadata: Metadata, type: DataType) -> dict[str, Any]:
    """One index's metadata of one object; ``type`` is the type of the values in it.

    Examples
    --------
    >>> metadata_to_data(Intervals(((1, 5),), nulls=0), parse_type("int"))
    {'ranges': [[1, 5]], 'nulls': 0, 'nans': 0}
    """
    match metadata:
        case Intervals(ranges, nulls, nans):
            pairs = None if ranges is None else [[value_to_data(end, type) for end in pair] for pair in ranges]
            return {"ranges": pairs, "nulls": nulls, "nans": nans}
        case Values(values, nulls, nans):
            listed = [value_to_data(value, type) for value in sorted(values)]
            return {"values": listed, "nulls": nulls, "nans": nans}
        case Fingerprints(space, count, packed, nulls, nans):
            cells = base64.b64encode(packed).decode("ascii")
            return {"space": space, "count": count, "cells": cells, "nulls": nulls, "nans": nans}
        case Boxes(boxes):
            return {"boxes": [[[value_to_data(end, type) for end in side] for side in box] for box in boxes]}


def metadata_from_data(data: Mapping[str, Any], type: DataType) -> Metadata:
    """The metadata that `metadata_to_data` was given.

    Raises
    ------
    StoreError
        A field is missing or of another shape.
    """
    try:
        if "boxes" in data:
            return Boxes(tuple(tuple((float(low), float(high)) for low, high in box) for box in data["boxes"]))
        nulls, nans = data["nulls"], data["nans"]
        if "values" in data:
            return Values(frozenset(value_from_data(one, type) for one in data["values"]), nulls, nans)
        if "cells" in data:
            return Fingerprints(data["space"], data["count"], base64.b64decode(data["cells"]), nulls, nans)
        ranges = data["ranges"]
        if ranges is not None:
            ranges = tuple((value_from_data(low, type), value_from_data(high, type)) for low, high in ranges)
        return Intervals(ranges, nulls, nans)
    except (KeyError, TypeError, ValueError) as error:
        raise StoreError(f"metadata in the store is damaged: {error!r}") from error
