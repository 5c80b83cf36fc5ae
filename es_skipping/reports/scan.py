"""The report on one scan."""

from __future__ import annotations

from dataclasses import dataclass

from es_skipping.indexes.registry import readable_id
from es_skipping.reports.render import one_line
from es_skipping.reports.snapshots import of_snapshot
from es_skipping.reports.units import human_bytes, share

__all__ = ["ScanReport"]


@dataclass(frozen=True, slots=True, repr=False)
class ScanReport:
    """One scan of a query: how much it skipped, by which indexes, or why nothing.

    The totals count what Spark's own partition pruning left. Spark never opened the skipped objects.

    Parameters
    ----------
    scan
        The scan's number, unique in the driver's JVM.
    execution
        Spark's id of the SQL execution, as on the SQL page of its UI; None for a listing outside an execution.
    dataset
        Ids of the indexed datasets, joined by a comma; None if the scan reads none.
    table, roots
        The scanned table's name in the catalog, if it has one, and the scanned paths.
    table_format, snapshot
        For a table with a log: its format, such as ``delta``, and the version that the scan reads.
    objects_total, objects_skipped, bytes_total, bytes_skipped
        Counts of files, and sums of their lengths.
    indexes
        Ids of the indexes that the clause asks.
    reason
        Why nothing was skipped; None if something was.
    failed
        Whether the look-up failed.
    filter, clause
        The scan's filter, and the condition on metadata that represents it.
    unusable
        ``(index id, reason)`` of the indexes that this read must not use.
    store
        The metadata store, without secrets.
    seconds
        Time of the look-up as the query saw it; ``store_seconds`` is the part outside the JVM.
    row_groups_total, row_groups_skipped
        Of datasets with metadata per row group: the row groups that the store knows, and those that were skipped, with
        their files or out of a file that was read. ``bytes_skipped`` counts whole files only.
    induced_by
        What gave conditions that the query does not state as filters of this scan: joins with their number of keys,
        the limit that made other objects suffice, scalar subqueries, generators, elements of arrays and filters on
        joined dimensions. The store was asked about them, whether or not an index knows their columns.

    Examples
    --------
    >>> ScanReport("7", "12", "events", None, ("file:/lake/events",), 20, 19, 20480, 19456, indexes=("minmax(ts)",))
    ScanReport(events: 19 of 20 objects skipped (95 %), 19.0 KiB of 20.0 KiB, by MinMax(ts))
    """

    scan: str
    execution: str | None
    dataset: str | None
    table: str | None
    roots: tuple[str, ...]
    objects_total: int
    objects_skipped: int
    bytes_total: int
    bytes_skipped: int
    indexes: tuple[str, ...] = ()
    reason: str | None = None
    failed: bool = False
    filter: str = ""
    clause: str = ""
    unusable: tuple[tuple[str, str], ...] = ()
    store: str | None = None
    seconds: float = 0.0
    store_seconds: float = 0.0
    table_format: str | None = None
    snapshot: str | None = None
    row_groups_total: int = 0
    row_groups_skipped: int = 0
    induced_by: tuple[str, ...] = ()

    @property
    def objects_read(self) -> int:
        """Number of files to read."""
        return self.objects_total - self.objects_skipped

    @property
    def bytes_read(self) -> int:
        """Total bytes of the files to read."""
        return self.bytes_total - self.bytes_skipped

    @property
    def scanning_factor(self) -> float | None:
        """Bytes to read divided by total bytes; None if there are none. See `es_skipping.indicators`."""
        return self.bytes_read / self.bytes_total if self.bytes_total else None

    @property
    def name(self) -> str:
        """A short name for the scan: the dataset, else the table, else the paths."""
        if self.dataset or self.table:
            return self.dataset or self.table or ""
        first = self.roots[0] if self.roots else "?"
        return first if len(self.roots) < 2 else f"{first} and {len(self.roots) - 1} more"

    def __repr__(self) -> str:
        name = of_snapshot(self.name, self.table_format, self.snapshot)
        skipped = self.objects_skipped or self.row_groups_skipped
        by = f", by {', '.join(map(readable_id, self.indexes))}" if skipped and self.indexes else ""
        groups = f", {self.row_groups_skipped} of {self.row_groups_total} row groups" if self.row_groups_total else ""
        induced = f", induced by {'; '.join(self.induced_by)}" if skipped and self.induced_by else ""
        why = f", {'failed: ' if self.failed else ''}{self.reason}" if self.reason else ""
        return one_line(
            f"ScanReport({name}: {self.objects_skipped} of {self.objects_total} objects skipped "
            f"({share(self.objects_skipped, self.objects_total)}), "
            f"{human_bytes(self.bytes_skipped)} of {human_bytes(self.bytes_total)}{groups}{by}{induced}{why})"
        )
