"""The file formats that are known: one list, which the shim reads from its jar as well."""

from __future__ import annotations

import pkgutil
from typing import Final

__all__ = ["INDEXED", "LEFT_OUT", "TABLES", "classes"]


def classes() -> dict[str, dict[str, tuple[str, ...]]]:
    """By kind (``indexed`` or ``left-out``) and format the names of Spark's classes that read it.

    Examples
    --------
    >>> classes()["indexed"]["csv"]
    ('org.apache.spark.sql.execution.datasources.csv.CSVFileFormat',)
    """
    text = pkgutil.get_data("es_skipping.spark", "jvm/formats.properties")  # on executors it is in an archive
    assert text is not None
    found: dict[str, dict[str, tuple[str, ...]]] = {}
    for line in text.decode("utf-8").replace("\\\n", " ").splitlines():
        if line and not line.startswith("#"):
            key, _, names = line.partition("=")
            kind, _, format = key.strip().partition(".")
            found.setdefault(kind, {})[format] = tuple(names.split())
    return found


INDEXED: Final = frozenset(classes()["indexed"])
"""Indexes can be made over datasets of these formats."""

LEFT_OUT: Final = frozenset(classes()["left-out"])
"""No index can be made over these: their values, options and settings are not looked at here."""

TABLES: Final = frozenset({"delta", "iceberg"})
"""Table formats. A table's log lists its files and says which of their rows are live."""
