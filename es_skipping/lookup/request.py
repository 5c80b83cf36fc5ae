"""One scan's request, as the shim sends it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from es_skipping.lookup.reply import PROTOCOL

__all__ = ["ScanRequest", "Trees"]

Trees: TypeAlias = Sequence[Mapping[str, Any]]
"""A conjunction of filter trees, as parsed JSON."""


@dataclass(frozen=True, slots=True)
class ScanRequest:
    """What a scan reads, how, and under which filters; ``docs/decisions/0001-bridge-protocol.md`` defines the text.

    Parameters
    ----------
    scan
        Unique in the JVM.
    session, execution
        The session's id, and that of the query that the scan belongs to.
    table
        The catalog's full name, where a table is scanned.
    roots
        Hadoop's decoded text of the root paths.
    format, options
        Of the reader; the options' keys in lower case.
    data_schema, partition_schema
        ``StructType`` as parsed JSON.
    settings
        The session's configuration by full key, as far as a look-up depends on it.
    objects, size
        What Spark's own pruning left: how many objects, and their bytes together.
    filters
        A conjunction for each distinct rest of the partitions' values.
    """

    scan: str
    roots: tuple[str, ...]
    format: str
    session: str = ""
    execution: str | None = None
    table: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    data_schema: Mapping[str, Any] = field(default_factory=dict)
    partition_schema: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)
    objects: int = 0
    size: int = 0
    filters: tuple[Trees, ...] = ()

    @classmethod
    def parse(cls, text: str | bytes) -> ScanRequest:
        """Read the JSON text of a request.

        Raises
        ------
        ValueError
            It is another version of the protocol.
        KeyError
            A field is missing.
        """
        read: dict[str, Any] = json.loads(text)
        if read["v"] != PROTOCOL:
            raise ValueError(f"the shim speaks version {read['v']} of the protocol, this package {PROTOCOL}")
        return cls(
            scan=str(read["scan"]),
            session=str(read["session"]),
            execution=read["execution"],
            table=read["table"],
            roots=tuple(read["roots"]),
            format=read["format"],
            options=read["options"],
            data_schema=read["dataSchema"],
            partition_schema=read["partitionSchema"],
            settings=read["settings"],
            objects=read["objects"],
            size=read["bytes"],
            filters=tuple(read["filters"]),
        )

    @property
    def name(self) -> str:
        """What is scanned, for people: the table, else the roots."""
        return self.table or ", ".join(self.roots)
