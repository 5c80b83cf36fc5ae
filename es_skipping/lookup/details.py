"""What Python knows of each scan it was asked about; the JVM's record of it holds what was listed and skipped."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass

__all__ = ["ScanDetail", "ScanDetails"]


@dataclass(frozen=True, slots=True)
class ScanDetail:
    """One look-up.

    Parameters
    ----------
    scan
        The shim's number for the scan.
    dataset
        Ids of the indexed datasets that were asked, joined by a comma; None where there is none.
    reason
        Why nothing could be skipped, or why the look-up failed; None where it went well.
    failed
        Whether it went wrong (as against: there was nothing to skip).
    indexes
        Ids of the indexes whose metadata the clause asked.
    filter, clause
        Both as text for people.
    unusable
        ``(index id, reason)`` of indexes that may not be used for this read.
    store
        Its URL, without secrets.
    seconds
        Spent in Python, the store's answer included.
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
    seconds: float = 0.0


class ScanDetails:
    """The latest details, by scan. Safe to use from several threads."""

    def __init__(self, kept: int = 4096) -> None:
        self._kept = kept
        self._lock = threading.Lock()
        self._by_scan: OrderedDict[str, ScanDetail] = OrderedDict()

    def remember(self, detail: ScanDetail) -> None:
        """Keep it, and forget the oldest above the bound."""
        with self._lock:
            self._by_scan[detail.scan] = detail
            while len(self._by_scan) > self._kept:
                self._by_scan.popitem(last=False)

    def of(self, scan: str) -> ScanDetail | None:
        """The detail of that scan, if it is still remembered."""
        with self._lock:
            return self._by_scan.get(scan)
