"""The conditions that an index was built under, and whether a read sees the same values.

A column's values depend on more than the file: on the declared type, the field's metadata (column defaults,
char/varchar), the reader's options and some session settings. The index remembers them as text facts, and each query
compares them. A read that could see other values does not use the index. If in doubt the comparison says "another
read", which costs skipping and never rows.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from es_skipping.catalog import DatasetDefinition, IndexDefinition
from es_skipping.lookup.renames import is_written
from es_skipping.lookup.request import ScanRequest
from es_skipping.lookup.value_settings import RELEVANT_SETTINGS, TEXT_FORMATS, setting, setting_facts
from es_skipping.predicates.tree import Call, Column, Element, Operand, parts_of

__all__ = [
    "RELEVANT_SETTINGS",
    "TEXT_FORMATS",
    "columns_of",
    "compatible",
    "dataset_facts",
    "depends_on_columns_read",
    "index_facts",
    "is_about",
    "is_secret",
    "reader_options",
]

# Reader options that change the listing, the schema's inference or the speed, but never a value.
_IGNORED_OPTIONS: Final = frozenset(
    {
        "__globpaths__", "basepath", "compression", "codec", "ignorecorruptfiles", "ignoremissingfiles", "inferschema",
        "maxpartitionbytes", "mergeschema", "modifiedafter", "modifiedbefore", "orc.compress", "parquet.block.size",
        "parquet.compression", "parquet.page.size", "path", "pathglobfilter", "paths", "recursivefilelookup",
        "samplingratio", "serialization.format", "timestampasof", "transient_lastddltime", "vectorizedreaderbatchsize",
        "versionasof",
    }
)  # fmt: skip
_OPTION_DEFAULTS: Final[Mapping[str, Mapping[str, str]]] = {
    "csv": {"header": "false", "sep": ",", "multiline": "false", "mode": "PERMISSIVE", "quote": '"', "escape": "\\"},
    "json": {"multiline": "false", "mode": "PERMISSIVE"},
    "text": {"wholetext": "false"},  # PySpark's `read.text` always passes it
}
_BOOLEAN_OPTIONS: Final = frozenset(
    {
        "columnpruning", "enforceschema", "header", "ignoreleadingwhitespace", "ignoretrailingwhitespace", "multiline",
        "primitivesasstring", "wholetext",
    }
)  # fmt: skip
"""Boolean options, whose values ignore case; other options may not."""
_SYNONYMS: Final = {"delimiter": "sep", "charset": "encoding"}
_FOR_WRITERS: Final = re.compile(r"comment|CURRENT_DEFAULT|delta\.(identity\..*|generationExpression|invariants)")
"""Metadata of a field that says nothing about the values of a file."""
_VARIANT_FIELDS: Final = "__VARIANT_METADATA_KEY"
_SECRET: Final = re.compile(r"secret|password|passwd|token|credential|access\.?key|private|sas", re.IGNORECASE)


def is_secret(option: str) -> bool:
    """Whether an option's value must not be stored in clear."""
    return _SECRET.search(option) is not None


def reader_options(format: str, options: Mapping[str, str]) -> dict[str, str]:
    """The options that can change a value, in one spelling; a secret is replaced by its digest.

    Examples
    --------
    >>> reader_options("csv", {"Header": "TRUE", "delimiter": ";", "path": "/x", "mode": "permissive"})
    {'header': 'true', 'sep': ';'}
    """
    defaults = _OPTION_DEFAULTS.get(format, {})
    given = {name.lower(): str(value) for name, value in options.items()}
    if format in TEXT_FORMATS:
        for synonym, name in _SYNONYMS.items():  # if both are given, Spark uses the proper name
            if synonym in given:
                given.setdefault(name, given[synonym])
                del given[synonym]
    found = {}
    for name, text in given.items():
        if name in _IGNORED_OPTIONS:
            continue
        if name in _BOOLEAN_OPTIONS:
            text = text.lower()
        if name == "mode":
            text = text.upper()
        if defaults.get(name) == text:
            continue
        found[name] = "sha256:" + hashlib.sha256(text.encode()).hexdigest() if is_secret(name) else text
    return dict(sorted(found.items()))


# --- facts --------------------------------------------------------------------------------------------------------


def dataset_facts(format: str, options: Mapping[str, str], schema: Mapping[str, Any]) -> dict[str, str]:
    """The facts of a whole dataset.

    Parameters
    ----------
    format, options
        The reader's.
    schema
        The data's, as ``StructType.jsonValue()``. It is a fact as a whole for CSV, which finds columns by position, and
        for ORC, which does so if a file does not name them or an option demands it.
    """
    facts = {"format": format, "options": _text(reader_options(format, options))}
    if format in {"csv", "orc"}:
        facts["schema"] = _text(_without_nullability(schema))
    return facts


def index_facts(
    format: str, operands: Sequence[Operand], schema: Mapping[str, Any], settings: Mapping[str, str | None]
) -> dict[str, str]:
    """The facts of one index: its columns' fields, and the settings that can change what it collects.

    Parameters
    ----------
    operands
        The indexed expressions.
    schema
        The data's, as ``StructType.jsonValue()``.
    settings
        The session's; at least those of `RELEVANT_SETTINGS` that are set.

    Raises
    ------
    KeyError
        A column is not in the schema.
    """
    facts: dict[str, str] = {}
    types: set[str] = set()
    for column in columns_of(operands):
        fact = _field_fact(schema, column.path)
        if fact is None:
            raise KeyError(".".join(column.path))
        facts["column " + _text(column.path)] = fact
        types.add(column.type.name)
    expression = not all(map(_is_stored, operands))
    parts = [part for operand in operands for part in parts_of(operand)]
    types |= {part.type.name for part in parts if isinstance(part, Element)}
    calls = [part.name for part in parts if isinstance(part, Call)]
    user_function = any(name.startswith("udf:") for name in calls)
    zoned = expression and any("timestamp" in name for name in (*calls, *(part.type.name for part in parts)))
    own = facts.values()
    facts.update(
        setting_facts(format, types, own, settings, expression=expression, zoned=zoned, user_function=user_function)
    )
    return facts


def compatible(definition: DatasetDefinition, index: IndexDefinition, request: ScanRequest) -> str | None:
    """Say why a read may see other values than the index was built from.

    Parameters
    ----------
    definition, index
        As stored.
    request
        The scan's.

    Returns
    -------
    str or None
        None if it sees the same values; otherwise the reason, for people.
    """
    built, schema = definition.built_with, request.data_schema
    if built.get("format") != request.format:
        return f"it was built from {built.get('format')} files, this query reads {request.format}"
    options = _text(reader_options(request.format, request.options))
    if built.get("options") != options:
        return f"it was built with the reader options {built.get('options')}, this query has {options}"
    if "schema" in built and built["schema"] != _text(_without_nullability(schema)):
        return "it was built with another schema, and this format finds columns by position"
    facts = index.built_with
    columns = []
    settings = 0
    for name, remembered in facts.items():
        if name.startswith("column "):
            now = _field_fact(schema, json.loads(name[7:]))
            if now is None:
                return f"column {'.'.join(json.loads(name[7:]))} is not in this query's schema"
            if now != remembered and _VARIANT_FIELDS in now:
                return (
                    f"Spark extracts fields of the variant {'.'.join(json.loads(name[7:]))} while reading; set "
                    "spark.sql.variant.pushVariantIntoScan=false to read the values that the index was built from"
                )
            if now != remembered:
                return f"column {'.'.join(json.loads(name[7:]))} was {remembered} when indexed and is {now} now"
            columns.append(now)
        else:
            settings += 1
    if not settings:
        return "the index does not record the settings it was built with"
    for name, remembered in facts.items():
        if not name.startswith("column "):
            value = setting(name, request.settings)
            if value is None or value != remembered:
                return f"it was built with {name} = {remembered}, this session has {value or 'an unknown value'}"
    return None


def is_about(index: IndexDefinition, schema: Mapping[str, Any]) -> bool:
    """Whether a read's schema has fields of the names of an index's columns, be they the same columns or not.

    Iceberg's scans know the columns that they read. A filter cannot be about an index of other columns.
    """
    paths = (json.loads(name[7:]) for name in index.built_with if name.startswith("column "))
    return all(is_written(schema, path) for path in paths)


def depends_on_columns_read(format: str, options: Mapping[str, str]) -> bool:
    """Whether a record's values depend on which of its columns are read.

    They do in JSON, where one bad value can void a record, and in CSV with DROPMALFORMED, where it can drop one.
    """
    return format == "json" or (
        format == "csv" and reader_options(format, options).get("mode", "").strip() == "DROPMALFORMED"
    )


def columns_of(operands: Iterable[Operand]) -> list[Column]:
    """The columns that the operands read, without duplicates."""
    parts = (part for operand in operands for part in parts_of(operand))
    return list(dict.fromkeys(part for part in parts if isinstance(part, Column)))


def _is_stored(operand: Operand) -> bool:
    """Whether a file stores the values: they are a column's, or those of the elements of one."""
    while isinstance(operand, Element):
        operand = operand.array
    return isinstance(operand, Column)


# --- columns ------------------------------------------------------------------------------------------------------


def _field_fact(schema: Mapping[str, Any], path: Sequence[str]) -> str | None:
    """Type and metadata of the field at a path, with its ancestors' metadata; None if there is no such field."""
    metadata = []
    type: Any = schema
    for name in path:
        if not isinstance(type, Mapping) or type.get("type") != "struct":
            return None
        fields = [field for field in type["fields"] if field["name"] == name]
        if len(fields) != 1:
            return None
        metadata.append(_lasting(fields[0].get("metadata") or {}))
        type = fields[0]["type"]
    return _text(
        {"type": _without_nullability(type), "metadata": metadata}
        if any(metadata)
        else {"type": _without_nullability(type)}
    )


def _lasting(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Field metadata without the keys that no reader uses."""
    return {key: value for key, value in metadata.items() if not _FOR_WRITERS.fullmatch(key)}


def _without_nullability(type: Any) -> Any:
    if isinstance(type, Mapping):
        return {
            key: _lasting(value) if key == "metadata" else _without_nullability(value)
            for key, value in type.items()
            if key not in ("nullable", "containsNull", "valueContainsNull") and not (key == "metadata" and not value)
        }
    if isinstance(type, list):
        return [_without_nullability(part) for part in type]
    return type


def _text(data: Any) -> str:
    return json.dumps(data, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
