"""Joins the JVM's record and this process's detail of a scan into one report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from es_skipping.lookup.details import ScanDetails
from es_skipping.reports.scan import ScanReport

__all__ = ["Execution", "executions_of", "scan_report", "scan_reports"]


@dataclass(frozen=True, slots=True)
class Execution:
    """One SQL execution, recorded at its start.

    Parameters
    ----------
    id, root
        Spark's id of the execution, and of the execution that it is part of (mostly itself).
    thread
        Number of the thread that started it.
    session
        Spark's id of the session.
    time
        Start time, in milliseconds since the epoch.
    description
        Its description in Spark's UI.
    """

    id: str
    root: str
    thread: str
    session: str
    time: int
    description: str


def executions_of(entries: Iterable[Mapping[str, Any]]) -> list[Execution]:
    """The executions of the shim's log, in its order."""
    return [
        Execution(
            str(entry["execution"]),
            str(entry["root"]),
            str(entry["thread"]),
            str(entry["session"]),
            int(entry["time"]),
            str(entry["description"] or ""),
        )
        for entry in entries
    ]


def scan_report(record: Mapping[str, Any], details: ScanDetails) -> ScanReport:
    """The report on one scan.

    The JVM's record says what was listed and left out. The detail says why, if it is still kept. If they disagree (a
    reply came too late, or the shim could not use it), the record says what happened.

    Parameters
    ----------
    record
        The shim's record, see ``docs/decisions/0001-bridge-protocol.md``.
    details
        The details of this process's look-ups.
    """
    scan = str(record["scan"])
    detail = details.of(scan)
    status = record.get("status")
    skipped = int(record.get("skippedObjects") or 0)
    groups = int(record.get("skippedRowGroups") or 0)
    failed = status == "failed" or (detail is not None and detail.failed)
    reason = record.get("reason") or (detail.reason if detail else None) or _by_status(status)
    execution = record.get("execution")
    return ScanReport(
        scan=scan,
        execution=None if execution is None else str(execution),
        dataset=detail.dataset if detail else None,
        table=record.get("table"),
        roots=tuple(record.get("roots") or ()),
        objects_total=int(record.get("objects") or 0),
        objects_skipped=skipped,
        bytes_total=int(record.get("bytes") or 0),
        bytes_skipped=int(record.get("skippedBytes") or 0),
        indexes=detail.indexes if detail else (),
        reason=None if skipped or groups else reason,
        failed=failed,
        filter=detail.filter if detail else "",
        clause=detail.clause if detail else "",
        unusable=detail.unusable if detail else (),
        store=detail.store if detail else None,
        seconds=float(record.get("askMs") or 0) / 1000,
        store_seconds=detail.seconds if detail else 0.0,
        table_format=record.get("tableFormat"),
        snapshot=record.get("snapshot"),
        row_groups_total=detail.row_groups if detail else 0,
        row_groups_skipped=groups,
        induced_by=(
            *(record.get("inducedBy") or ()),
            *((*detail.elements, *detail.induced_by) if detail else ()),
        ),
    )


def scan_reports(
    records: Iterable[Mapping[str, Any]], executions: Iterable[str], details: ScanDetails
) -> tuple[ScanReport, ...]:
    """The reports on the scans of these executions, each scan once.

    If Spark lists a scan's files twice, the scan has two records; the later one counts.
    """
    wanted = set(executions)
    latest = {str(r["scan"]): r for r in records if r.get("execution") is not None and str(r["execution"]) in wanted}
    return tuple(scan_report(record, details) for record in latest.values())


def _by_status(status: object) -> str:
    return {
        "off": "skipping is off in this session",
        "skipped": "no object in Spark's listing was ruled out",
    }.get(str(status), "no object could be ruled out")
