"""The log entry of a look-up: for monitoring, and as the workload of a layout."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Final

from es_skipping.errors import StoreError

__all__ = ["LoggedQuery"]

_LONGEST_TEXT: Final = 8_000
_LONGEST_TREES: Final = 100_000
_LISTS: Final = ("roots", "indexes", "unusable")


@dataclass(frozen=True, slots=True)
class LoggedQuery:
    """One scan that asked the store.

    Parameters
    ----------
    time
        Milliseconds since the epoch.
    application, session, execution, scan
        Spark's application id, the session's UUID, the SQL execution, the shim's number of the scan.
    dataset, table, roots, format
        What Spark read. ``dataset`` is the store's id, several joined by commas; None if it is not indexed.
    snapshot
        Of a Delta or Iceberg table: the version that the scan read; None for plain files.
    status
        ``"skipped"``, ``"nothing"`` or ``"failed"``; ``"unknown"`` where the scan's outcome was not seen.
    reason
        Why nothing was skipped.
    filter, clause
        Text for people; long ones are cut.
    trees
        The filter as it came, the ``filters`` of a request (``docs/decisions/0001-bridge-protocol.md``): each a
        conjunction that `es_skipping.predicates.read.read_predicate` reads tree by tree. None where it is too long.
    indexes
        Ids of the indexes that were asked.
    unusable
        ``"id: reason"`` of the indexes that could not be asked.
    objects, objects_skipped, bytes, bytes_skipped
        Of the listing; None where unknown.
    lookup_seconds, apply_seconds
        Seconds until the reply arrived, and to remove the objects that it names.
    """

    time: int
    application: str | None
    session: str | None
    execution: str | None
    scan: str
    dataset: str | None
    table: str | None
    roots: tuple[str, ...]
    format: str | None
    status: str
    reason: str | None
    filter: str
    clause: str
    trees: list[Any] | None
    indexes: tuple[str, ...] = ()
    unusable: tuple[str, ...] = ()
    objects: int | None = None
    objects_skipped: int | None = None
    bytes: int | None = None
    bytes_skipped: int | None = None
    lookup_seconds: float | None = None
    apply_seconds: float | None = None
    snapshot: str | None = None

    @property
    def identity(self) -> str:
        """The same for an entry that is stored twice, and for no other."""
        return f"{self.application}.{self.session}.{self.scan}.{self.time}"

    def to_document(self) -> dict[str, Any]:
        """The stored document, without unknown fields."""
        data = asdict(self)
        trees = None if self.trees is None else json.dumps(self.trees, ensure_ascii=False, separators=(",", ":"))
        data["trees"] = trees if trees is not None and len(trees) <= _LONGEST_TREES else None
        for name in ("filter", "clause", "reason"):
            if data[name] and len(data[name]) > _LONGEST_TEXT:
                data[name] = data[name][: _LONGEST_TEXT - 1] + "…"
        if self.objects and self.objects_skipped is not None:
            data["share_skipped"] = self.objects_skipped / self.objects
        for name in _LISTS:
            data[name] = list(data[name])
        return {name: value for name, value in data.items() if value not in (None, [], "")}

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> LoggedQuery:
        """The entry that `to_document` was called on, long texts cut.

        Raises
        ------
        StoreError
            It is damaged.
        """
        try:
            given: dict[str, Any] = {field.name: document.get(field.name) for field in fields(cls)}
            given |= {name: tuple(document.get(name, ())) for name in _LISTS}
            given |= {name: document.get(name, "") for name in ("filter", "clause")}
            trees = document.get("trees")
            given["trees"] = None if trees is None else json.loads(trees)
            given["time"], given["scan"] = int(document["time"]), str(document["scan"])
            return cls(**given)
        except (KeyError, TypeError, ValueError) as error:
            raise StoreError(f"an entry of the query log is damaged: {error!r}") from error
