"""Python's part of each scan's report; the JVM's record holds the files listed and skipped."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

__all__ = ["LoggedFilter", "ScanDetail", "ScanDetails"]


@dataclass(frozen=True, slots=True)
class LoggedFilter:
    """A filter as the query log holds it: without conditions on columns with protected indexes.

    Parameters
    ----------
    filter, clause
        Text for people.
    trees
        As in `es_skipping.stores.query_log.LoggedQuery`.
    unusable
        As of `ScanDetail`.
    """

    filter: str = ""
    clause: str = ""
    trees: list[Any] | None = None
    unusable: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class ScanDetail:
    """One look-up's part of a scan's report.

    Parameters
    ----------
    scan
        The shim's number for the scan.
    dataset
        Ids of the datasets that the look-up asked, joined by a comma; None if the scan reads none.
    reason
        Why nothing could be skipped, or why the look-up failed; None on success.
    failed
        True if the look-up failed, false if there was only nothing to skip.
    indexes
        Ids of the indexes that the clause asks.
    filter, clause
        Both as text for people.
    unusable
        ``(index id, reason)`` of the indexes that this read must not use.
    induced_by
        The filters on joined dimensions that the clause also comes from.
    row_groups
        How many row groups the stores know of the datasets.
    store
        Its URL, without secrets.
    elements
        The arrays whose elements the filter restricts and an index describes.
    seconds
        Time spent in Python, including the store's answer.
    logged
        What the query log gets.
    """

    scan: str
    dataset: str | None = None
    reason: str | None = None
    failed: bool = False
    indexes: tuple[str, ...] = ()
    filter: str = ""
    clause: str = ""
    unusable: tuple[tuple[str, str], ...] = ()
    store: str | None = None
    elements: tuple[str, ...] = ()
    seconds: float = 0.0
    induced_by: tuple[str, ...] = ()
    row_groups: int = 0
    logged: LoggedFilter = LoggedFilter()


class ScanDetails:
    """The latest details, by scan. Safe to use from several threads."""

    def __init__(self, kept: int = 4096) -> None:
        self._kept = kept
        self._lock = threading.Lock()
        self._by_scan: OrderedDict[str, ScanDetail] = OrderedDict()

    def remember(self, detail: ScanDetail) -> None:
        """Keep a detail, and forget the oldest past the limit."""
        with self._lock:
            self._by_scan[detail.scan] = detail
            while len(self._by_scan) > self._kept:
                self._by_scan.popitem(last=False)

    def of(self, scan: str) -> ScanDetail | None:
        """The detail of a scan, or None if it is forgotten."""
        with self._lock:
            return self._by_scan.get(scan)
