"""Totals over the scans of a report."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

__all__ = ["Counts", "Totals"]


class Counts(Protocol):
    """One scan's files and their lengths."""

    @property
    def objects_total(self) -> int: ...
    @property
    def objects_skipped(self) -> int: ...
    @property
    def bytes_total(self) -> int: ...
    @property
    def bytes_skipped(self) -> int: ...


class Totals:
    """Sums over the scans of a report."""

    __slots__ = ()

    if TYPE_CHECKING:  # a dataclass would treat it as the field's default

        @property
        def scans(self) -> Sequence[Counts]:
            """The scans, in the order of the run or of the plan."""

    @property
    def objects_total(self) -> int:
        """Number of files of all scans after Spark's own partition pruning; a file that two scans read counts twice."""
        return sum(scan.objects_total for scan in self.scans)

    @property
    def objects_skipped(self) -> int:
        """Number of files that Spark does not open."""
        return sum(scan.objects_skipped for scan in self.scans)

    @property
    def objects_read(self) -> int:
        """Number of files to read."""
        return self.objects_total - self.objects_skipped

    @property
    def bytes_total(self) -> int:
        """Total bytes of the files of all scans."""
        return sum(scan.bytes_total for scan in self.scans)

    @property
    def bytes_skipped(self) -> int:
        """Total bytes of the files that Spark does not open."""
        return sum(scan.bytes_skipped for scan in self.scans)

    @property
    def bytes_read(self) -> int:
        """Total bytes of the files to read."""
        return self.bytes_total - self.bytes_skipped

    @property
    def scanning_factor(self) -> float | None:
        """Bytes to read divided by total bytes; None if there are none. See `es_skipping.indicators`."""
        return self.bytes_read / self.bytes_total if self.bytes_total else None
