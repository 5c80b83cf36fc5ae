"""Columns of a table that were renamed since an index was built.

A table format knows a column by a key that a rename leaves alone: Delta's column mapping by a physical name, Iceberg by
a field id. A column that was dropped and added again has another key, so it does not meet what is known of the old one.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, TypeAlias

from es_skipping.lookup.request import ScanRequest
from es_skipping.predicates.tree import Column, Operand, Predicate, map_operands, operands_in, why_opaque

__all__ = ["as_indexed", "is_written"]

_KEYS: Final = ("delta.columnMapping.physicalName", "iceberg.fieldId")

_ANOTHER: Final = "\0"
"""Stands behind the name of a column that was not there when the dataset was indexed; no column's name has it."""

_Path: TypeAlias = tuple[str, ...]


def as_indexed(request: ScanRequest, schema: str) -> tuple[ScanRequest, Callable[[Predicate], Predicate]]:
    """A request, and a way to read its filters, under the names that columns had when the dataset was indexed.

    Parameters
    ----------
    schema
        Of the dataset's data as it was indexed, JSON.

    Returns
    -------
    request
        Its schema has the old names. A column that was not there then has a name that no column can have.
    rename
        Does the same to a predicate.
    """
    if not any(_key(field) for field in request.data_schema.get("fields", ())):
        return request, lambda predicate: predicate
    renamed: dict[_Path, _Path] = {}
    now = _renamed(request.data_schema, _parsed(schema), (), (), renamed)

    def operand(one: Operand) -> Operand:
        if why_opaque(one) is not None:
            return one
        if isinstance(one, Column):
            return replace(one, path=renamed.get(one.path, one.path))
        return one.map_operands(operand) if operands_in(one) else one

    return replace(request, data_schema=now), lambda predicate: map_operands(predicate, operand)


def is_written(schema: Mapping[str, Any], path: Sequence[str]) -> bool:
    """Whether a schema that `as_indexed` returns has fields of these names, be they the same columns or not."""
    type: Any = schema
    for name in path:
        found = next((field for field in _fields(type) if field["name"].partition(_ANOTHER)[0] == name), None)
        if found is None:
            return False
        type = found["type"]
    return True


@functools.lru_cache(maxsize=64)
def _parsed(schema: str) -> Mapping[str, Any]:
    found: Mapping[str, Any] = json.loads(schema)
    return found


def _renamed(
    now: Mapping[str, Any], then: Any, path: _Path, old_path: _Path, renamed: dict[_Path, _Path]
) -> dict[str, Any]:
    """A struct with the old names of its fields; what became of each path is noted."""
    by_key = {_key(field): field for field in _fields(then) if _key(field)}
    fields = []
    for field in _fields(now):
        key = _key(field)
        old = by_key.get(key) if key else None
        name = old["name"] if old is not None else f"{field['name']}{_ANOTHER}{key}"
        here, there = (*path, field["name"]), (*old_path, name)
        renamed[here] = there
        type = field["type"]
        if isinstance(type, Mapping) and type.get("type") == "struct":
            type = _renamed(type, old["type"] if old is not None else None, here, there, renamed)
        fields.append({**field, "name": name, "type": type})
    return {**now, "fields": fields}


def _fields(type: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(type, Mapping) and type.get("type") == "struct":
        yield from type["fields"]


def _key(field: Mapping[str, Any]) -> str | None:
    metadata = field.get("metadata") or {}
    return next((str(metadata[key]) for key in _KEYS if key in metadata), None)
