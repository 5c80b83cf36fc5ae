"""The store in memory, with an error to raise: so that a report's test fails for the report's sake alone."""

from __future__ import annotations

from typing import Any

from es_skipping.catalog import DatasetEntry
from es_skipping.clauses.clause import Clause
from es_skipping.stores.base import Answer
from es_skipping.stores.memory.store import MemoryStore
from es_skipping.stores.registry import StoreType, register

__all__ = ["STORE", "FailingStore"]


class FailingStore(MemoryStore):
    """``error`` is raised by the next look-ups while it is set."""

    error: Exception | None = None

    def lookup(self, entry: DatasetEntry, clause: Clause, **options: Any) -> Answer:
        if self.error is not None:
            raise self.error
        return super().lookup(entry, clause, **options)


STORE = FailingStore("reports://memory")
register("reports", StoreType(lambda *_: STORE))
