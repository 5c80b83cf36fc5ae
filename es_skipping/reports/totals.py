"""What the scans of a report come to together."""

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

    if TYPE_CHECKING:  # a dataclass would take it for its field's default

        @property
        def scans(self) -> Sequence[Counts]:
            """The scans, in the order in which they ran or stand in the plan."""

    @property
    def objects_total(self) -> int:
        """Files of all scans, after Spark's own partition pruning; one that two scans read counts twice."""
        return sum(scan.objects_total for scan in self.scans)

    @property
    def objects_skipped(self) -> int:
        """Those that Spark does not open."""
        return sum(scan.objects_skipped for scan in self.scans)

    @property
    def objects_read(self) -> int:
        """Those that are left to read."""
        return self.objects_total - self.objects_skipped

    @property
    def bytes_total(self) -> int:
        """Lengths of the files of all scans."""
        return sum(scan.bytes_total for scan in self.scans)

    @property
    def bytes_skipped(self) -> int:
        """Lengths of those that Spark does not open."""
        return sum(scan.bytes_skipped for scan in self.scans)

    @property
    def bytes_read(self) -> int:
        """Lengths of those that are left to read."""
        return self.bytes_total - self.bytes_skipped

    @property
    def scanning_factor(self) -> float | None:
        """Bytes left to read by bytes there were; None where there were none. See `es_skipping.indicators`."""
        return self.bytes_read / self.bytes_total if self.bytes_total else None
