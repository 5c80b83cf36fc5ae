"""How reports name the snapshot of a table that a scan reads."""

from __future__ import annotations

__all__ = ["of_snapshot", "snapshot_text"]


def snapshot_text(table_format: str | None, snapshot: str | None) -> str:
    """The format and the snapshot; empty for plain files, and for a table without a snapshot.

    Examples
    --------
    >>> snapshot_text("delta", "7"), snapshot_text(None, None)
    ('delta snapshot 7', '')
    """
    return "" if snapshot is None else f"{table_format} snapshot {snapshot}"


def of_snapshot(name: str, table_format: str | None, snapshot: str | None) -> str:
    """A table's name and its snapshot; of plain files the name alone.

    Examples
    --------
    >>> of_snapshot("orders", "delta", "7"), of_snapshot("file:/lake/events", None, None)
    ('orders, delta snapshot 7', 'file:/lake/events')
    """
    said = snapshot_text(table_format, snapshot)
    return f"{name}, {said}" if said else name
