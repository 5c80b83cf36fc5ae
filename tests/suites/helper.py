"""A helper of the JVM (`es_skipping.helper`) that indexes what a scan reads before it answers the scan's look-up.

Suites make their tables as they go, so nobody could index them beforehand. ``python -m tests.suites`` names this module
as the Python that Spark starts. It says what it did in a file, a line of JSON each.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from es_skipping.build.arrow.index_files import index_files
from es_skipping.catalog import DatasetEntry
from es_skipping.clauses.clause import Clause
from es_skipping.errors import EsSkippingError
from es_skipping.helper.serve import serve
from es_skipping.indexes.minmax import MinMax
from es_skipping.indexes.valuelist import ValueList
from es_skipping.lookup.request import ScanRequest
from es_skipping.lookup.service import LookupService
from es_skipping.predicates.show import quoted_name
from es_skipping.stores.base import Answer
from es_skipping.stores.parquet.store import ParquetStore

NOTES: Final = "ES_SKIPPING_SUITE_NOTES"
"""Names the file."""

_BOTH: Final = ("byte", "short", "integer", "long", "string", "date", "decimal")
_BOUNDS: Final = (*_BOTH, "float", "double", "boolean", "timestamp", "timestamp_ntz")

_lock = threading.RLock()


def note(**said: Any) -> None:
    with _lock, open(os.environ[NOTES], "a", encoding="utf-8") as file:
        file.write(json.dumps(said) + "\n")


def indexes_of(schema: Mapping[str, Any]) -> Iterator[Any]:
    """An index of each type for each column that can carry it."""
    for field in schema["fields"]:
        type = field["type"].partition("(")[0] if isinstance(field["type"], str) else ""
        name = quoted_name(field["name"])
        if "." in field["name"] or set(field.get("metadata") or {}) - {"comment"}:
            continue  # refused where nobody but Spark can read it
        if type in _BOUNDS:
            yield MinMax(name)
        if type in _BOTH:
            yield ValueList(name)


def index(service: LookupService, request: ScanRequest) -> None:
    """Index the roots of a scan, or refresh their indexes; what cannot be indexed is noted, and read whole."""
    store, zone = service.store(request.settings), request.settings.get("user.timezone")
    for root in request.roots:
        for attempt in (1, 2):
            try:
                result = index_files(root, *indexes_of(request.data_schema), store=store.url, zone=zone)
                note(indexed=root, added=result.added, failed=len(result.failed), unknown=len(result.unknown))
                break
            except EsSkippingError as error:  # other columns than those of the same path before, or none
                if attempt == 2:
                    note(refused=root, why=f"{type(error).__name__}: {error}"[:300])
                for one in store.datasets():
                    if root in one.definition.roots:
                        store.drop(one.definition.id)


def main() -> None:
    plain_answer, plain_lookup = LookupService.answer, ParquetStore.lookup

    def answer(self: LookupService, text: str | bytes) -> bytes:
        request = ScanRequest.parse(text)
        with _lock:
            if request.format == "parquet" and request.objects:
                try:
                    index(self, request)
                    self.registry.forget()
                except Exception as error:
                    note(refused=list(request.roots), why=f"{type(error).__name__}: {error}"[:300])
            reply = plain_answer(self, text)
            detail = self.details.of(request.scan)
            note(
                scan=request.scan,
                objects=request.objects,
                failed=detail is not None and detail.failed,
                reason=None if detail is None else detail.reason,
            )
            return reply

    def lookup(self: ParquetStore, entry: DatasetEntry, clause: Clause, **options: Any) -> Answer:
        found = plain_lookup(self, entry, clause, **options)
        note(skipped=found.skipped, known=found.known)
        return found

    LookupService.answer = answer  # type: ignore[method-assign]
    ParquetStore.lookup = lookup  # type: ignore[method-assign,assignment]
    Path(os.environ[NOTES]).touch()
    serve(sys.stdin.buffer, sys.stdout.buffer)


if __name__ == "__main__":
    main()
