"""The report on a query, or on all queries of a block: its scans and their totals."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from es_skipping.indexes.registry import readable_id
from es_skipping.reports.render import Cell, Rendered, Table, one_line
from es_skipping.reports.scan import ScanReport
from es_skipping.reports.snapshots import snapshot_text
from es_skipping.reports.totals import Totals
from es_skipping.reports.units import human_bytes, human_seconds, share

__all__ = ["QueryReport", "Seen"]

_HEADER = ("execution", "dataset", "objects skipped", "of", "bytes skipped", "of", "by", "why not more", "look-up")
_NAMED_SNAPSHOTS: Final = 3
"""The headline names at most this many snapshots."""

Seen = tuple[tuple[str, ...], tuple[ScanReport, ...], str | None]
"""Executions, their scans, and a note for the reader."""


class QueryReport(Totals, Rendered):
    """The scans of one query, or of all queries of a block, with totals.

    `es_skipping.observe` and `es_skipping.last_query` return it. While its block runs, each access reads the latest
    scans; afterwards the report does not change.

    Attributes
    ----------
    executions : tuple of str
        Spark's ids of the SQL executions, in order of their start.
    scans : tuple of ScanReport
        Every file scan that did a look-up, in order.
    note : str or None
        A note for the reader: why there is no scan, or that some were dropped.

    Examples
    --------
    >>> with esk.observe(spark) as report:                             # doctest: +SKIP
    ...     spark.sql("SELECT count(*) FROM events WHERE ts > '2026-01-01'").collect()
    >>> report                                                         # doctest: +SKIP
    QueryReport(1 scan: 19 of 20 objects skipped (95 %), 1.2 MiB of 1.3 MiB)
    """

    def __init__(self, read: Callable[[], Seen]) -> None:
        self._read = read
        self._final: Seen | None = None

    @classmethod
    def of(cls, executions: tuple[str, ...], scans: tuple[ScanReport, ...], note: str | None = None) -> QueryReport:
        """A report with fixed content."""
        report = cls(lambda: (executions, scans, note))
        report.close()
        return report

    def close(self) -> None:
        """Read the scans a last time and fix the report."""
        if self._final is None:
            self._final = self._read()

    def _seen(self) -> Seen:
        return self._final if self._final is not None else self._read()

    @property
    def executions(self) -> tuple[str, ...]:
        return self._seen()[0]

    @property
    def scans(self) -> tuple[ScanReport, ...]:
        return self._seen()[1]

    @property
    def note(self) -> str | None:
        return self._seen()[2]

    @property
    def seconds(self) -> float:
        """Seconds that all scans spent on look-ups."""
        return sum(scan.seconds for scan in self.scans)

    @property
    def failed(self) -> bool:
        """Whether a look-up failed, so that its scan read all its files."""
        return any(scan.failed for scan in self.scans)

    @property
    def unusable(self) -> tuple[tuple[str, str], ...]:
        """``(index id, reason)`` of each index that some scan must not use, for example because of another schema."""
        return tuple(dict.fromkeys(pair for scan in self.scans for pair in scan.unusable))

    def __repr__(self) -> str:
        return one_line(f"QueryReport({_headline(*self._seen())})")

    def parts(self) -> Iterator[str | Table]:
        seen = self._seen()
        yield _headline(*seen)
        if seen[1]:
            yield _table(seen[1])


def _headline(executions: tuple[str, ...], scans: tuple[ScanReport, ...], note: str | None) -> str:
    after = f"; {note}" if note else ""
    if not scans:
        ran = {0: "nothing ran", 1: f"execution {executions[0]}" if executions else ""}.get(
            len(executions), f"{len(executions)} executions"
        )
        return f"{ran}, no scan did a look-up{after}"
    total, skipped = sum(s.objects_total for s in scans), sum(s.objects_skipped for s in scans)
    failed = sum(scan.failed for scan in scans)
    unusable = len({index for scan in scans for index, _ in scan.unusable})
    trouble = _count(failed, "look-up failed", "look-ups failed") + _count(
        unusable, "index not used", "indexes not used"
    )
    return (
        f"{len(scans)} {'scan' if len(scans) == 1 else 'scans'}: {skipped} of {total} objects skipped "
        f"({share(skipped, total)}), {human_bytes(sum(s.bytes_skipped for s in scans))} of "
        f"{human_bytes(sum(s.bytes_total for s in scans))}{_snapshots(scans)}{trouble}{after}"
    )


def _count(number: int, one: str, many: str) -> str:
    return f", {number} {one if number == 1 else many}" if number else ""


def _snapshots(scans: tuple[ScanReport, ...]) -> str:
    """The first snapshots of tables that were read; empty for plain files."""
    found = list(dict.fromkeys(said for scan in scans if (said := snapshot_text(scan.table_format, scan.snapshot))))
    named = "".join(f", {said}" for said in found[:_NAMED_SNAPSHOTS])
    return named + (f" and {len(found) - _NAMED_SNAPSHOTS} more" if len(found) > _NAMED_SNAPSHOTS else "")


def _table(scans: tuple[ScanReport, ...]) -> Table:
    """A row for each scan, and a column of snapshots if a scan reads a table with a log."""
    rows = _rows(scans)
    said = [snapshot_text(scan.table_format, scan.snapshot) for scan in scans]
    if not any(said):
        return Table(_HEADER, rows)
    return Table(
        (*_HEADER[:2], "snapshot", *_HEADER[2:]),
        [[*row[:2], Cell(text), *row[2:]] for row, text in zip(rows, said, strict=True)],
    )


def _rows(scans: tuple[ScanReport, ...]) -> list[list[Cell]]:
    return [
        [
            Cell(scan.execution or "", number=True),
            Cell(scan.name),
            Cell(f"{scan.objects_skipped:,}", number=True),
            Cell(f"{scan.objects_total:,}", number=True),
            Cell(human_bytes(scan.bytes_skipped), number=True),
            Cell(human_bytes(scan.bytes_total), number=True),
            Cell(", ".join(map(readable_id, scan.indexes))),
            Cell(_why(scan)),
            Cell(human_seconds(scan.seconds), number=True),
        ]
        for scan in scans
    ]


def _why(scan: ScanReport) -> str:
    if scan.reason:
        return f"failed: {scan.reason}" if scan.failed else scan.reason
    return "; ".join(f"{readable_id(index)} is not used: {reason}" for index, reason in scan.unusable)
