"""One scan's request, as the shim sends it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from es_skipping.lookup.joins import Joins, Trees
from es_skipping.lookup.reply import PROTOCOL
from es_skipping.settings import Settings

__all__ = ["FirstRows", "ScanRequest", "Trees"]


@dataclass(frozen=True, slots=True)
class FirstRows:
    """The rows that suffice for a query's ORDER BY ... LIMIT, or LIMIT.

    Parameters
    ----------
    k
        How many rows, those of an OFFSET included.
    by
        The tree of the first sort key; None where any rows will do.
    descending, nulls_first
        The order of the first sort key.
    under
        The directories of the listed files; None if they are too many to name.
    """

    k: int
    by: Mapping[str, Any] | None = None
    descending: bool = False
    nulls_first: bool = True
    under: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class ScanRequest:
    """What a scan reads, how, and under which filters; ``docs/decisions/0001-bridge-protocol.md`` defines the format.

    Parameters
    ----------
    scan
        Unique in the JVM.
    session, execution
        The session's id, and the execution id of the scan's query.
    table
        The catalog's full name of the scanned table, if it is one.
    roots
        The root paths as Hadoop's decoded text.
    format, options
        The reader's; the options' keys are in lower case.
    data_schema, partition_schema
        ``StructType`` as parsed JSON.
    settings
        The part of the session's configuration that a look-up depends on, by full key.
    objects, size
        Number and total bytes of the objects that Spark's own pruning left.
    filters
        One conjunction per distinct residual after partition pruning.
    snapshot
        Of a table with a log: the version that the scan reads.
    first
        The rows that suffice; None if the query needs all rows that pass the filters. If it is given, there is one
        entry of filters, and they are all that stands between the scan and the limit.
    joins
        The dimensions that the rows must find a match in.
    row_groups
        Whether the scan can leave row groups out of a file that it reads.
    induced
        Whether the filters hold conditions that the query does not state, such as keys of a join.
    parsed_settings
        The package's own settings.
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
    snapshot: str | None = None
    first: FirstRows | None = None
    joins: Joins = field(default_factory=Joins)
    row_groups: bool = False
    induced: bool = False
    parsed_settings: Settings = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "parsed_settings", Settings(self.settings))

    @classmethod
    def parse(cls, text: str | bytes) -> ScanRequest:
        """Read the JSON text of a request.

        Raises
        ------
        ValueError
            The request has another version of the protocol.
        KeyError
            A field is missing.
        """
        read: dict[str, Any] = json.loads(text)
        if read["v"] != PROTOCOL:
            raise ValueError(f"the jar speaks version {read['v']} of the protocol, this package speaks {PROTOCOL}")
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
            snapshot=read.get("snapshot"),
            first=None if "first" not in read else _first_rows(read["first"]),
            joins=Joins.parse(read["joins"]) if "joins" in read else Joins(),
            row_groups=bool(read.get("rowGroups", False)),
            induced=bool(read.get("induced", False)),
        )

    @property
    def name(self) -> str:
        """The table or else the roots, for people."""
        return self.table or ", ".join(self.roots)


def _first_rows(read: Mapping[str, Any]) -> FirstRows:
    under = None if read.get("under") is None else frozenset(read["under"])
    if read.get("by") is None:
        return FirstRows(read["k"], under=under)
    return FirstRows(read["k"], read["by"], read["descending"], read["nullsFirst"], under)
