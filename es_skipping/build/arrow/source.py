"""A dataset of Parquet files as a build without Spark sees it, and its columns."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from es_skipping.build.columns import ResolvedColumn
from es_skipping.build.elements import elements_in
from es_skipping.build.names import name_parts
from es_skipping.errors import ColumnError
from es_skipping.predicates.tree import Column
from es_skipping.predicates.types import parse_type

__all__ = ["FilesSource", "resolve_stored", "this_zone"]


@dataclass(frozen=True, slots=True)
class FilesSource:
    """A dataset that Spark reads as ``spark.read.parquet(root)`` with its default settings.

    Parameters
    ----------
    root
        The dataset's path as Hadoop writes it.
    schema
        The data's, as ``StructType.jsonValue()``.
    partition_columns
        The columns that directories name.
    zone
        The time zone of the JVMs that will read, which Spark compares before it uses an index of timestamps.
    """

    root: str
    schema: Mapping[str, Any]
    partition_columns: tuple[str, ...]
    zone: str
    table: None = None
    format: str = "parquet"
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def roots(self) -> tuple[str, ...]:
        return (self.root,)

    @property
    def settings(self) -> dict[str, str]:
        return {"user.timezone": self.zone}


def resolve_stored(source: FilesSource, given: Any) -> ResolvedColumn:
    """Resolve the name of a column or of a field in structs.

    Raises
    ------
    ColumnError
        The column is unknown or a partition column, it is an expression, or only Spark knows its values.
    """
    parts = name_parts(given) if isinstance(given, str) and elements_in(given) is None else None
    if parts is None:
        raise ColumnError(
            f"column {str(given)!r} is not the name of a column: index expressions and elements with Spark"
        )
    if any(part.lower() == parts[0].lower() for part in source.partition_columns):
        raise ColumnError(
            f"column {given!r} is a partition column, and Spark itself skips by partition values: index a column that "
            "the files store"
        )
    type: Any = source.schema
    for part in parts:
        fields = type["fields"] if isinstance(type, Mapping) and type.get("type") == "struct" else ()
        found = [one for one in fields if one["name"].lower() == part.lower()]
        if len(found) != 1 or found[0]["name"] != part:
            names = ", ".join(one["name"] for one in source.schema["fields"])
            raise ColumnError(
                f"column {given!r} does not exist, or not under this name alone; the columns are {names} (index "
                "expressions with Spark)"
            )
        if set(found[0].get("metadata") or {}) - {"comment"}:
            raise ColumnError(f"column {given!r} has metadata that may change its values: index it with Spark")
        if "." in part:
            raise ColumnError(f"column {given!r} has a dot in its name, by which pyarrow cannot select it: use Spark")
        type = found[0]["type"]
    text = type if isinstance(type, str) else str(type.get("type") if isinstance(type, Mapping) else type)
    known = parse_type(text)
    if not known.supported:
        raise ColumnError(
            f"column {given!r} has type {text}; only numbers, strings without a collation, binaries, booleans, dates "
            "and timestamps can be indexed"
        )
    return ResolvedColumn(given, Column(tuple(parts), known))


def this_zone() -> str:
    """This machine's time zone, under the name that Java takes for it."""
    zone = os.environ.get("TZ", "").lstrip(":")
    if zone:
        return zone
    try:
        linked = os.path.realpath("/etc/localtime")
        with open("/etc/timezone", encoding="ascii") as file:
            named = file.read().strip()
    except OSError:
        named = ""
    _, found, name = linked.partition("zoneinfo/")
    return named or (name if found else "") or time.tzname[0]
