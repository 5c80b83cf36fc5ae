"""The query log: a look-up adds a note, and one thread writes it when the scan's outcome is known.

A query only pays for a note in a bounded list. If the store fails, the log loses entries and one warning says so.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from es_skipping.lookup.details import ScanDetail
from es_skipping.lookup.request import ScanRequest
from es_skipping.settings import Settings
from es_skipping.stores.query_log import LoggedQuery

if TYPE_CHECKING:
    from es_skipping.stores.base import MetadataStore

__all__ = ["QueryLog", "is_logged"]

_MAX_WAITING_NOTES: Final = 4_000
"""Limit of waiting notes; past it the oldest is lost."""
_SECONDS_BETWEEN_WRITES: Final = 1.0
_OUTCOME_SECONDS: Final = 60.0
"""Seconds to wait for a scan's outcome: a query may be killed between its look-up and the end of its listing."""

_log = logging.getLogger("es_skipping")

Records = Callable[[int], tuple[int, list[dict[str, Any]]]]


def is_logged(settings: Settings) -> bool:
    """Whether a session's look-ups are logged."""
    return bool(settings["queryLog.enabled"] or settings["remember"])


@dataclass(frozen=True, slots=True)
class _Note:
    request: ScanRequest
    detail: ScanDetail
    time: float


class QueryLog:
    """Writes look-ups to the store. Safe to use from several threads.

    Parameters
    ----------
    records
        Returns the shim's records after a number.
    store
        Returns the store that a session's configuration names.
    application
        Returns Spark's application id.
    written
        Called with a store's URL and the entries that it got.
    """

    def __init__(
        self,
        records: Records,
        store: Callable[[Mapping[str, str]], MetadataStore],
        application: Callable[[], str | None],
        written: Callable[[str, list[LoggedQuery]], None] = lambda store, entries: None,
    ) -> None:
        self._written = written
        self._records = records
        self._store = store
        self._application = application
        self._lock = threading.Lock()
        self._writing = threading.Lock()
        self._notes: OrderedDict[str, _Note] = OrderedDict()
        self._last = 0
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None
        self._warned = False
        self.lost = 0
        """Entries that could not be written."""

    def note(self, request: ScanRequest, detail: ScanDetail) -> None:
        """Remember a look-up, if its session wants it logged; never raises."""
        try:
            if not is_logged(request.parsed_settings):
                return
            with self._lock:
                self._notes[detail.scan] = _Note(request, detail, time.time())
                while len(self._notes) > _MAX_WAITING_NOTES:
                    self._notes.popitem(last=False)
                    self.lost += 1
                if self._thread is None:
                    self._thread = threading.Thread(target=self._run, name="es-skipping-query-log", daemon=True)
                    self._thread.start()
            self._wake.set()
        except Exception as error:
            self._lose(1, error)

    def _run(self) -> None:
        while True:
            self._wake.wait()
            time.sleep(_SECONDS_BETWEEN_WRITES)
            self._wake.clear()
            if self.write():
                self._wake.set()

    def write(self, *, wait: bool = True) -> int:
        """Write the notes whose outcome is known; return how many still wait.

        When this returns, what another thread was writing is written too: who reads the log next finds it.

        Parameters
        ----------
        wait
            Whether notes without an outcome may wait; if not, they are written without it.
        """
        with self._writing:
            return self._write(wait)

    def _write(self, wait: bool) -> int:
        try:
            last, records = self._records(self._last)
        except Exception as error:  # the JVM has ended or is ending
            self._lose(0, error)
            last, records, wait = self._last, [], False
        self._last = last
        outcomes = {str(record["scan"]): record for record in records}
        now = time.time()
        with self._lock:
            ready = [
                scan
                for scan, note in self._notes.items()
                if scan in outcomes or not wait or now - note.time > _OUTCOME_SECONDS
            ]
            notes = [self._notes.pop(scan) for scan in ready]
            waiting = len(self._notes)
        by_store: dict[int, tuple[MetadataStore, float, list[LoggedQuery]]] = {}
        for note in notes:
            try:
                store = self._store(note.request.settings)
                retention = note.request.parsed_settings["queryLog.retention"]
                entry = _entry(note, outcomes.get(note.detail.scan), self._application())
                by_store.setdefault(id(store), (store, retention, []))[2].append(entry)
            except Exception as error:
                self._lose(1, error)
        for store, retention, entries in by_store.values():
            try:
                store.log_queries(entries, retention)
                self._written(store.url, entries)
            except Exception as error:
                self._lose(len(entries), error)
        return waiting

    def _lose(self, count: int, error: Exception) -> None:
        self.lost += count
        if not self._warned:
            self._warned = True
            _log.warning("the query log lost entries; queries are not affected: %s: %s", type(error).__name__, error)


def _entry(note: _Note, record: Mapping[str, Any] | None, application: str | None) -> LoggedQuery:
    request, detail, known = note.request, note.detail, record or {}
    return LoggedQuery(
        time=int(known.get("time") or note.time * 1000),
        application=application,
        session=request.session,
        execution=request.execution,
        scan=detail.scan,
        dataset=detail.dataset,
        table=request.table,
        roots=request.roots[:100],
        format=request.format,
        status="failed" if detail.failed else str(known.get("status", "unknown")),
        reason=detail.reason or known.get("reason"),
        filter=detail.logged.filter,
        clause=detail.logged.clause,
        trees=detail.logged.trees,
        indexes=detail.indexes,
        unusable=tuple(f"{id}: {reason}" for id, reason in detail.logged.unusable),
        objects=known.get("objects", request.objects),
        objects_skipped=known.get("skippedObjects"),
        bytes=known.get("bytes", request.size),
        bytes_skipped=known.get("skippedBytes"),
        lookup_seconds=None if record is None else float(record["askMs"]) / 1000,
        apply_seconds=None if record is None else float(record["applyMs"]) / 1000,
        snapshot=request.snapshot,
    )
