"""Refreshes datasets in the background: when queries list other objects than their metadata knows, and after writes.

A look-up only notes that a dataset may be out of date. One thread of the process refreshes such datasets, each at most
once in an interval, and none that another process has just refreshed. Queries never wait for it: until a new object is
indexed, they read it.
"""

from __future__ import annotations

import logging
import threading
import time
import weakref
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from es_skipping.build.dataset import Dataset
from es_skipping.errors import DatasetError
from es_skipping.spark.classic import classic_session
from es_skipping.spark.services import service_of, session_id, store_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from es_skipping.build.update import Rebuild
    from es_skipping.catalog import DatasetDefinition, DatasetEntry
    from es_skipping.lookup.request import ScanRequest

__all__ = ["AutoRefresh", "indexed_dataset", "watch"]

_LONGEST_PAUSE: Final = 3600.0
"""Seconds between attempts at a dataset that cannot be refreshed; each failure doubles the pause up to this."""
_log: Final = logging.getLogger("es_skipping")


@dataclass(frozen=True, slots=True)
class _Due:
    """A dataset, or paths of it, that may be out of date; the session that asked, and its interval in seconds."""

    key: tuple[str, str]
    definition: DatasetDefinition
    session: str
    interval: float
    paths: tuple[str, ...] | None = None
    spark: SparkSession | None = None
    """Refreshes, whatever the interval says."""


class AutoRefresh:
    """The background refreshes of all sessions that share a look-up service. Safe to use from several threads."""

    def __init__(self) -> None:
        self._sessions: weakref.WeakValueDictionary[str, SparkSession] = weakref.WeakValueDictionary()
        self._not_before: dict[tuple[str, str], float] = {}
        self._failures: dict[tuple[str, str], int] = {}
        self._waiting: deque[_Due] = deque()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None

    def add(self, id: str, spark: SparkSession) -> None:
        """Let a session's queries cause refreshes, which run in this session."""
        self._sessions[id] = spark

    def __call__(self, request: ScanRequest, store: str, entry: DatasetEntry) -> None:
        """Note that a query uses a dataset: it is refreshed soon if the query lists other objects.

        Parameters
        ----------
        store
            The URL of the metadata store.
        entry
            The dataset, as the look-up knows it.
        """
        settings = request.parsed_settings
        if not settings["autoRefresh"] or request.session not in self._sessions:
            return
        if (request.objects, request.size) == (entry.objects, entry.bytes):
            return
        key, now = (store, entry.definition.id), time.monotonic()
        with self._changed:
            if now < self._not_before.get(key, 0.0):
                return
            interval: float = settings["autoRefresh.interval"]
            self._not_before[key] = now + interval
            self._enqueue(_Due(key, entry.definition, request.session, interval))

    def soon(
        self, spark: SparkSession, store: str, definition: DatasetDefinition, paths: tuple[str, ...] | None
    ) -> None:
        """Refresh a dataset or some of its paths, because a write of a session committed there."""
        due = _Due((store, definition.id), definition, session_id(spark), 0.0, paths, spark)
        with self._changed:
            if not any((one.key, one.paths) == (due.key, due.paths) and one.spark for one in self._waiting):
                self._enqueue(due)

    def _enqueue(self, due: _Due) -> None:
        self._waiting.append(due)
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="es_skipping auto refresh", daemon=True)
            self._thread.start()
        self._changed.notify()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting)
                due = self._waiting.popleft()
            spark = due.spark or self._sessions.get(due.session)
            if spark is None:
                continue
            try:
                _refresh(spark, due)
                self._failures.pop(due.key, None)
            except Exception as error:  # queries read what is not indexed
                self._failed(due, error)

    def _failed(self, due: _Due, error: Exception) -> None:
        failures = self._failures[due.key] = self._failures.get(due.key, 0) + 1
        pause = min(due.interval * 2**failures, max(due.interval, _LONGEST_PAUSE))
        with self._changed:
            self._not_before[due.key] = time.monotonic() + pause
        level = logging.WARNING if failures == 1 else logging.DEBUG
        _log.log(level, "%s is not refreshed in the background: %s: %s", due.key[1], type(error).__name__, error)


def _refresh(spark: SparkSession, due: _Due) -> None:
    entry = store_of(spark).dataset(due.definition.id)
    if entry is None or (due.spark is None and time.time() - entry.refreshed / 1000 < due.interval):
        return  # dropped, or refreshed by another process
    result = indexed_dataset(spark, due.definition, "schema").refresh(
        due.paths, progress=lambda done, total, phase: None
    )
    if result.added or result.updated or result.removed or result.failed:
        _log.info("%s was refreshed in the background: %s", due.definition.id, result)


def indexed_dataset(spark: SparkSession, definition: DatasetDefinition, rebuild: Rebuild) -> Dataset:
    """The dataset of a definition, for refreshes that nobody asked for: they add to its metadata.

    A session that reads the dataset with another time zone or another schema than the last build would build all
    metadata anew, for its own queries alone.

    Parameters
    ----------
    rebuild
        ``schema`` if the metadata may be replaced where a table itself has another schema, ``never`` if somebody waits.

    Raises
    ------
    DatasetError
        It was indexed by a path that its roots do not tell, such as a glob.
    """
    if definition.table is not None:
        dataset = Dataset(spark, table=definition.table)
    else:
        dataset = Dataset(spark, list(definition.roots))
    if dataset.id != definition.id:
        raise DatasetError(f"it was indexed by another path than {', '.join(definition.roots)}: call its refresh()")
    dataset._rebuild = rebuild
    return dataset


def watch(spark: SparkSession) -> None:
    """Let a session's queries refresh what they use, as far as its setting ``autoRefresh`` says.

    A session of Spark Connect is left alone: its queries are asked by the server's session.
    """
    if classic_session(spark) is not spark:
        return
    service = service_of(spark)
    refreshing = service.on_use if isinstance(service.on_use, AutoRefresh) else AutoRefresh()
    refreshing.add(session_id(spark), spark)
    service.on_use = refreshing
