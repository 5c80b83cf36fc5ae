"""One HTML page that compares queries with skipping off and on. It has no scripts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

from es_skipping.reports.page import page
from es_skipping.reports.units import human_bytes, human_seconds, share

__all__ = ["Comparison", "comparison_page"]


@dataclass(frozen=True, slots=True)
class Comparison:
    """One query, run with skipping off and on.

    Parameters
    ----------
    name
        A few words about the kind of query.
    sql
        The query's text.
    objects_total, objects_read
        Files that Spark read with skipping off, and on, by Spark's own count.
    bytes_total, bytes_read
        Their sizes.
    seconds_off, seconds_on
        Time of the whole query.
    indexes
        The indexes that answered, as the user wrote them.
    rows
        Number of rows that the query returns.
    equal
        Whether both runs returned the same rows.
    note
        One sentence for the reader; may be empty.
    """

    name: str
    sql: str
    objects_total: int
    objects_read: int
    bytes_total: int
    bytes_read: int
    seconds_off: float
    seconds_on: float
    indexes: tuple[str, ...] = ()
    rows: int = 0
    equal: bool = True
    note: str = ""


def comparison_page(
    comparisons: Sequence[Comparison],
    *,
    title: str = "What data skipping saved",
    subtitle: str = "",
    facts: Mapping[str, str] | None = None,
) -> str:
    """Make the page.

    Parameters
    ----------
    comparisons
        In display order.
    title, subtitle
        Plain text above the charts.
    facts
        The circumstances of the measurement (versions, data, store), shown by name at the foot.

    Returns
    -------
    str
        A complete HTML document; write it as UTF-8.

    Examples
    --------
    >>> page = comparison_page([Comparison("range", "SELECT 1", 200, 4, 10_000_000, 210_000, 0.9, 0.2)])
    >>> page.startswith("<!doctype html>"), "4 of 200" in page
    (True, True)
    """
    parts = (
        _head(title, subtitle),
        _tiles(comparisons),
        _objects_chart(comparisons),
        _seconds_chart(comparisons),
        _details(comparisons),
        _foot(facts or {}),
    )
    return page(title, "\n".join(parts))


def _head(title: str, subtitle: str) -> str:
    below = f'<p class="sub">{escape(subtitle)}</p>' if subtitle else ""
    return f"<header><h1>{escape(title)}</h1>{below}</header>"


def _tiles(comparisons: Sequence[Comparison]) -> str:
    objects, objects_read = sum(c.objects_total for c in comparisons), sum(c.objects_read for c in comparisons)
    size, size_read = sum(c.bytes_total for c in comparisons), sum(c.bytes_read for c in comparisons)
    off, on = sum(c.seconds_off for c in comparisons), sum(c.seconds_on for c in comparisons)
    wrong = sum(not c.equal for c in comparisons)
    rows = "the same in every query" if not wrong else f"DIFFERENT in {wrong} of {len(comparisons)}"
    tiles = (
        ("Objects skipped", share(objects - objects_read, objects), f"{objects_read:,} of {objects:,} read"),
        ("Bytes skipped", share(size - size_read, size), f"{human_bytes(size_read)} of {human_bytes(size)} read"),
        ("Time", human_seconds(on), f"instead of {human_seconds(off)}"),
        ("Rows", "equal" if not wrong else "wrong", rows),
    )
    cells = "".join(
        f'<div class="tile{" bad" if wrong and label == "Rows" else ""}"><span class="label">{label}</span>'
        f'<span class="big">{escape(value)}</span><span class="small">{escape(small)}</span></div>'
        for label, value, small in tiles
    )
    return f'<section class="tiles">{cells}</section>'


def _objects_chart(comparisons: Sequence[Comparison]) -> str:
    rows = "".join(
        _bar_row(
            c.name,
            bars=(("on", _percent(c.objects_read, c.objects_total)),),
            text=f"{c.objects_read:,} of {c.objects_total:,}",
            aria=f"{c.name}: {c.objects_read} of {c.objects_total} objects read",
        )
        for c in comparisons
    )
    return (
        '<section><h2>Objects read</h2><p class="sub">The whole bar shows what the query reads with skipping off; '
        f'the filled part shows what it reads with skipping on.</p><div class="chart track">{rows}</div></section>'
    )


def _seconds_chart(comparisons: Sequence[Comparison]) -> str:
    longest = max((max(c.seconds_off, c.seconds_on) for c in comparisons), default=0.0)
    rows = "".join(
        _bar_row(
            c.name,
            bars=(("off", _percent(c.seconds_off, longest)), ("on", _percent(c.seconds_on, longest))),
            text=f"{human_seconds(c.seconds_off)} → {human_seconds(c.seconds_on)}",
            aria=f"{c.name}: {human_seconds(c.seconds_off)} off, {human_seconds(c.seconds_on)} on",
        )
        for c in comparisons
    )
    legend = '<p class="legend"><span class="key off"></span>skipping off<span class="key on"></span>skipping on</p>'
    return f'<section><h2>Time</h2>{legend}<div class="chart">{rows}</div></section>'


def _bar_row(name: str, *, bars: Sequence[tuple[str, float]], text: str, aria: str) -> str:
    drawn = "".join(f'<span class="bar {kind}" style="width:{width:.2f}%"></span>' for kind, width in bars)
    return (
        f'<div class="row"><span class="name">{escape(name)}</span>'
        f'<span class="bars" role="img" aria-label="{escape(aria)}">{drawn}</span>'
        f'<span class="value">{escape(text)}</span></div>'
    )


def _details(comparisons: Sequence[Comparison]) -> str:
    body = "".join(_detail_row(c) for c in comparisons)
    return (
        '<section><h2>Each query</h2><div class="scroll"><table><thead><tr><th>Query</th><th>Objects read</th>'
        "<th>Bytes read</th><th>Off</th><th>On</th><th>Indexes</th><th>Rows</th></tr></thead>"
        f"<tbody>{body}</tbody></table></div></section>"
    )


def _detail_row(c: Comparison) -> str:
    chips = "".join(f'<span class="chip">{escape(i)}</span>' for i in c.indexes) or '<span class="small">none</span>'
    note = f'<p class="small">{escape(c.note)}</p>' if c.note else ""
    verdict = '<span class="ok">equal</span>' if c.equal else '<span class="wrong">different</span>'
    return (
        f"<tr><td><details><summary>{escape(c.name)}</summary>{note}<pre>{escape(c.sql)}</pre></details></td>"
        f'<td class="n">{c.objects_read:,} of {c.objects_total:,}</td>'
        f'<td class="n">{human_bytes(c.bytes_read)} of {human_bytes(c.bytes_total)}</td>'
        f'<td class="n">{human_seconds(c.seconds_off)}</td><td class="n">{human_seconds(c.seconds_on)}</td>'
        f'<td>{chips}</td><td class="n">{c.rows:,} {verdict}</td></tr>'
    )


def _foot(facts: Mapping[str, str]) -> str:
    items = "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in facts.items())
    return f"<footer><dl>{items}</dl></footer>" if items else ""


def _percent(part: float, whole: float) -> float:
    return 100.0 * min(max(part / whole, 0.0), 1.0) if whole > 0 else 0.0
