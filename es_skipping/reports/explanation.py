"""The result of `es_skipping.explain`: what a query would skip, and why."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape

from es_skipping.indexes.registry import readable_id
from es_skipping.reports.render import Cell, html_fold, html_table, one_line
from es_skipping.reports.snapshots import of_snapshot
from es_skipping.reports.totals import Totals
from es_skipping.reports.units import human_bytes, share

__all__ = ["DatasetExplanation", "Explanation", "NodeExplanation", "ScanExplanation"]


@dataclass(frozen=True, slots=True)
class NodeExplanation:
    """One node of a filter.

    Parameters
    ----------
    depth
        Depth in the filter, 0 for the root.
    text
        The node: ``AND``, ``OR``, or a leaf in SQL.
    clause
        The node's clause as text; None if it has none.
    reason
        Why the node has no clause.
    """

    depth: int
    text: str
    clause: str | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class DatasetExplanation:
    """How one dataset's indexes understand one filter.

    Parameters
    ----------
    dataset
        Its id.
    filter
        The scan's filter; if it tests partition values, a scan has one filter per distinct residual.
    nodes
        The filter's nodes.
    clause
        The clause for the store, as text; None if there is none.
    query
        The store's own query, ready to paste into the store's console; None without a clause.
    notes
        The store's notes on that query.
    unusable
        ``(index id, reason)`` of the indexes that this read must not use.
    by_index
        With ``detail``: the number of the store's objects that each index alone rules out.
    """

    dataset: str
    filter: str
    nodes: tuple[NodeExplanation, ...] = ()
    clause: str | None = None
    query: str | None = None
    notes: tuple[str, ...] = ()
    unusable: tuple[tuple[str, str], ...] = ()
    by_index: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ScanExplanation:
    """One scan of the plan, and what it would skip.

    Parameters
    ----------
    table, roots
        The scanned table and paths.
    objects_total, objects_skipped, bytes_total, bytes_skipped
        The numbers that the query would have now.
    datasets
        One entry per indexed dataset and distinct filter; empty if the scan reads no indexed dataset.
    reason
        Why nothing would be skipped; None if something would.
    store
        The metadata store, without secrets.
    table_format, snapshot
        For a table with a log: its format, such as ``delta``, and the version that the scan reads.
    row_groups_total, row_groups_skipped
        Of datasets with metadata per row group: the row groups that the store knows, and those that would be skipped.
    induced_by
        What may give conditions that are not filters of the query on this scan: joins, whose keys are known when the
        query runs, a limit, generators and elements of arrays.
    """

    table: str | None
    roots: tuple[str, ...]
    objects_total: int
    objects_skipped: int
    bytes_total: int
    bytes_skipped: int
    datasets: tuple[DatasetExplanation, ...] = ()
    reason: str | None = None
    store: str | None = None
    table_format: str | None = None
    snapshot: str | None = None
    row_groups_total: int = 0
    row_groups_skipped: int = 0
    induced_by: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """A short name for the scanned table or paths, with the table's format and snapshot."""
        first = self.roots[0] if self.roots else "?"
        name = self.table or (first if len(self.roots) < 2 else f"{first} and {len(self.roots) - 1} more")
        return of_snapshot(name, self.table_format, self.snapshot)


@dataclass(frozen=True, slots=True, repr=False)
class Explanation(Totals):
    """For each scan of a plan: each filter node's clause, the store's query, and what would be skipped.

    Parameters
    ----------
    scans
        Every file scan of the plan, including those of subqueries.
    note
        A note for the reader, or None.
    """

    scans: tuple[ScanExplanation, ...]
    note: str | None = None

    def __repr__(self) -> str:
        scans = f"{len(self.scans)} {'scan' if len(self.scans) == 1 else 'scans'}"
        return f"Explanation({scans}: {_would_skip(self)})"

    def __str__(self) -> str:
        parts = ["\n".join(_scan_lines(scan)) for scan in self.scans] or [
            "The plan scans no files that could be skipped."
        ]
        if self.note:
            parts.append(f"Note: {one_line(self.note)}")
        return "\n\n".join(parts)

    def _repr_html_(self) -> str:
        parts = [_scan_html(scan) for scan in self.scans] or ["<p>The plan scans no files that could be skipped.</p>"]
        if self.note:
            parts.append(f"<p>Note: {escape(one_line(self.note))}</p>")
        return "".join(parts)


def _would_skip(counts: Explanation | ScanExplanation) -> str:
    return (
        f"{counts.objects_skipped} of {counts.objects_total} objects would be skipped "
        f"({share(counts.objects_skipped, counts.objects_total)}), "
        f"{human_bytes(counts.bytes_skipped)} of {human_bytes(counts.bytes_total)}"
    )


def _became(node: NodeExplanation) -> str:
    return node.clause if node.clause is not None else f"nothing: {node.reason or 'no index understands it'}"


def _by_index(part: DatasetExplanation) -> str:
    return ", ".join(f"{readable_id(index)} {count:,}" for index, count in part.by_index.items())


def _printable(line: str) -> str:
    """Text with control characters as the escapes that JSON strings use for them."""
    return "".join(char if char.isprintable() else json.dumps(char)[1:-1] for char in line)


def _headline(scan: ScanExplanation) -> list[str]:
    lines = [_would_skip(scan)]
    if scan.row_groups_total:
        lines.append(f"{scan.row_groups_skipped} of {scan.row_groups_total} row groups would be skipped")
    return lines


def _scan_lines(scan: ScanExplanation) -> list[str]:
    lines = [f"Scan of {one_line(scan.name)}", *(f"  {line}" for line in _headline(scan))]
    if scan.reason:
        lines.append(f"  nothing is skipped: {one_line(scan.reason)}")
    lines += [f"  induced by {one_line(source)}" for source in scan.induced_by]
    for part in scan.datasets:
        lines.append(f"  dataset  {one_line(part.dataset)}")
        lines.append(f"  filter   {one_line(part.filter)}")
        texts = ["  " * node.depth + one_line(node.text, 60) for node in part.nodes]
        width = max(map(len, texts), default=0)
        lines += [
            f"    {text:<{width}}  →  {one_line(_became(node))}" for text, node in zip(texts, part.nodes, strict=True)
        ]
        lines.append(f"  asked    {one_line(part.clause) if part.clause else 'nothing'}")
        lines += [f"  not used {one_line(readable_id(index))}: {one_line(reason)}" for index, reason in part.unusable]
        if part.by_index:
            lines.append(f"  alone    {one_line(_by_index(part))}")
        if part.query:
            lines.append(f"  query    of {one_line(scan.store or 'the store')}")
            lines += [f"    {_printable(line)}" for line in part.query.split("\n")]
        lines += [f"  note     {one_line(note)}" for note in part.notes]
    return lines


def _scan_html(scan: ScanExplanation) -> str:
    parts = [f"<h4>Scan of {escape(one_line(scan.name))}</h4>"]
    parts += [f"<p>{escape(line)}</p>" for line in _headline(scan)]
    if scan.reason:
        parts.append(f"<p>Nothing is skipped: {escape(one_line(scan.reason))}</p>")
    parts += [f"<p>Induced by {escape(one_line(source))}</p>" for source in scan.induced_by]
    for part in scan.datasets:
        rows = [[Cell("\u2003" * node.depth + node.text), Cell(_became(node))] for node in part.nodes]
        parts.append(f"<p>Dataset {escape(part.dataset)}, filter <code>{escape(one_line(part.filter))}</code></p>")
        parts.append(html_table(("filter node", "became"), rows))
        facts = [
            ("asked", part.clause or "nothing"),
            *((f"not used: {readable_id(index)}", reason) for index, reason in part.unusable),
        ]
        if part.by_index:
            facts.append(("skipped by each index alone", _by_index(part)))
        facts += [("note", note) for note in part.notes]
        parts.append(html_table(("", ""), [[Cell(name), Cell(value)] for name, value in facts]))
        if part.query:
            parts.append(html_fold(f"The query of {scan.store or 'the store'}", part.query))
    return "".join(parts)
