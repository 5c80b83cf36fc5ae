"""The query log of a Parquet store: files of JSON lines, named after the day of their entries, beside the datasets.

Files are never changed. A writer that finds many of one day writes their entries to one file and then deletes them, so
an entry may be there twice, and a reader that misses a file lists anew.
"""

from __future__ import annotations

import json
import re
import threading
import time
import uuid
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta, timezone
from typing import Final

from es_skipping.errors import StoreError
from es_skipping.stores.files import Files
from es_skipping.stores.parquet.snapshots import store_errors
from es_skipping.stores.query_log import LoggedQuery

__all__ = ["QueryFiles"]

_DIRECTORY: Final = "queries.log"
"""No id of a dataset has a dot."""
_NAME: Final = re.compile(r"(\d{4}-\d\d-\d\d)-[0-9a-f]{12}\.jsonl")
_END: Final = b"\n\n"
"""An empty line stands at the end of each file, and nowhere else."""
_TIDY_EVERY: Final = 60.0
_MOST_OF_A_DAY: Final = 32
_TRIES: Final = 5


class QueryFiles:
    """The query log of one store. Safe to use from several threads, and by several writers.

    Parameters
    ----------
    files
        The store's files.
    url
        The store, for error messages.
    """

    def __init__(self, files: Files, url: str) -> None:
        self._files = files
        self._url = url
        self._lock = threading.Lock()
        self._tidy_at = 0.0

    def write(self, queries: Sequence[LoggedQuery], retention: float) -> None:
        """Add entries; delete days that ended longer ago than these seconds."""
        days: dict[str, list[LoggedQuery]] = {}
        for query in queries:
            days.setdefault(_date(query.time), []).append(query)
        with store_errors(f"writing the query log of {self._url}"):
            for day, entries in days.items():
                self._add(day, entries)
            with self._lock:
                due = time.monotonic() >= self._tidy_at
                if due:
                    self._tidy_at = time.monotonic() + _TIDY_EVERY
            if due:
                self._tidy(retention)

    def read(self, dataset: str | None = None, since: int = 0) -> Iterator[LoggedQuery]:
        """Entries of a dataset, or all, from these milliseconds on; oldest first."""
        first = _date(since) if since > 0 else ""
        with store_errors(f"reading the query log of {self._url}"):
            for day, names in sorted(self._days().items()):
                if day >= first:
                    found = (entry for entry in self._entries(day, names) if entry.time >= since)
                    yield from (entry for entry in found if dataset is None or entry.dataset == dataset)

    def _add(self, day: str, entries: Iterable[LoggedQuery]) -> None:
        lines = (json.dumps(entry.to_document(), ensure_ascii=False, separators=(",", ":")) for entry in entries)
        data = "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogatepass") + b"\n"
        self._files.write(f"{_DIRECTORY}/{day}-{uuid.uuid4().hex[:12]}.jsonl", data)

    def _days(self) -> dict[str, list[str]]:
        """The files of each day."""
        days: dict[str, list[str]] = {}
        for name in self._files.list(_DIRECTORY):
            if found := _NAME.fullmatch(name):
                days.setdefault(found[1], []).append(name)
        return days

    def _entries(self, day: str, names: Sequence[str]) -> list[LoggedQuery]:
        for _ in range(_TRIES):
            try:
                return self._parsed((name, self._read(name)) for name in names)
            except FileNotFoundError:  # another writer has put the day together, or it is over
                names = self._days().get(day, [])
        raise StoreError(f"the query log of {self._url} changes faster than it can be read")

    def _read(self, name: str) -> bytes:
        return self._files.read(f"{_DIRECTORY}/{name}")

    def _parsed(self, files: Iterable[tuple[str, bytes]]) -> list[LoggedQuery]:
        found: dict[str, LoggedQuery] = {}
        for name, data in files:
            lines = data.split(b"\n")[:-1]  # the last line of a file that is being written may be half there
            for line in filter(None, lines):
                try:
                    entry = LoggedQuery.from_document(json.loads(line.decode("utf-8", "surrogatepass")))
                except (ValueError, StoreError) as error:
                    raise StoreError(f"{_DIRECTORY}/{name} in {self._url} is damaged: {error}; delete it") from error
                found[entry.identity] = entry
        return sorted(found.values(), key=lambda entry: entry.time)

    def _tidy(self, retention: float) -> None:
        """Delete days that are over, and put together those of many files."""
        now = datetime.now(timezone.utc)
        oldest, today = ((now - timedelta(seconds=age)).date().isoformat() for age in (retention, 0))
        for day, names in self._days().items():
            if day < oldest:
                self._delete(names)
            elif len(names) > (_MOST_OF_A_DAY if day >= today else 1):
                try:
                    # Files without the end are being written, or their writer died.
                    files = {name: data for name in names if (data := self._read(name)).endswith(_END)}
                    entries = self._parsed(files.items())
                except (FileNotFoundError, StoreError):  # another writer does it; or a reader says what is damaged
                    continue
                if len(files) > 1:
                    self._add(day, entries)
                    self._delete(files)

    def _delete(self, names: Iterable[str]) -> None:
        for name in names:
            self._files.delete(f"{_DIRECTORY}/{name}")


def _date(milliseconds: int) -> str:
    return datetime.fromtimestamp(milliseconds / 1000, timezone.utc).date().isoformat()
