"""One HTML page that compares queries with skipping off and on.

The page is a single file without scripts, fonts or external links, so it can be mailed, archived and opened offline. It
follows the reader's light or dark preference, fits a phone screen, and prints.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

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
    return _DOCUMENT.format(title=escape(title), style=_STYLE, body="\n".join(parts))


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


_STYLE: Final = """
:root { color-scheme: light dark; --bg: #fbfbf9; --card: #ffffff; --ink: #1d2327; --soft: #5d676e; --line: #dfe3e6;
  --track: #e6eaec; --on: #0b7a75; --off: #a9b4bb; --chip: #e3f1f0; --chip-ink: #0a5d59; --bad: #b3261e; }
@media (prefers-color-scheme: dark) { :root { --bg: #14181b; --card: #1c2226; --ink: #e8ecee; --soft: #9aa6ad;
  --line: #2f383d; --track: #2b3439; --on: #3fbdb5; --off: #6c7880; --chip: #1f3b3a; --chip-ink: #8fe0da;
  --bad: #ff8a80; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--bg); color: var(--ink);
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif; }
main { max-width: 68rem; margin: 0 auto; padding: 2rem 1.25rem 3rem; }
h1 { font-size: 1.75rem; line-height: 1.2; margin: 0 0 .25rem; }
h2 { font-size: 1.1rem; margin: 0 0 .25rem; }
.sub, .small, .legend, footer { color: var(--soft); font-size: .875rem; }
.sub { margin: 0 0 .75rem; }
section { background: var(--card); border: 1px solid var(--line); border-radius: .75rem; padding: 1.1rem 1.25rem;
  margin-top: 1.25rem; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(11rem, 1fr)); gap: 1rem; padding: 0; border: 0;
  background: none; }
.tile { background: var(--card); border: 1px solid var(--line); border-radius: .75rem; padding: .9rem 1.1rem;
  display: flex; flex-direction: column; }
.tile .label { color: var(--soft); font-size: .875rem; }
.tile .big { font-size: 1.75rem; font-weight: 650; line-height: 1.25; color: var(--on); }
.tile.bad .big, .wrong { color: var(--bad); }
.row { display: grid; grid-template-columns: minmax(8rem, 15rem) 1fr 9.5rem; gap: .75rem; align-items: center;
  padding: .3rem 0; }
.name { overflow-wrap: anywhere; }
.value { text-align: right; color: var(--soft); font-size: .875rem; font-variant-numeric: tabular-nums; }
.bars { display: flex; flex-direction: column; gap: 3px; }
.track .bars { background: var(--track); border-radius: 4px; overflow: hidden; }
.bar { display: block; height: .55rem; border-radius: 4px; min-width: 2px; }
.track .bar { height: 1rem; border-radius: 0; }
.bar.on, .key.on { background: var(--on); }
.bar.off, .key.off { background: var(--off); }
.legend { margin: 0 0 .5rem; }
.key { display: inline-block; width: .8rem; height: .8rem; border-radius: 3px; margin: 0 .4rem 0 1rem;
  vertical-align: -1px; }
.key:first-child { margin-left: 0; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: .9rem; }
th { text-align: left; white-space: nowrap; font-weight: 600; color: var(--soft); }
th, td { padding: .45rem .75rem .45rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }
tbody tr:last-child td { border-bottom: 0; }
td:first-child { min-width: 12rem; max-width: 26rem; }
.n { white-space: nowrap; font-variant-numeric: tabular-nums; }
summary { cursor: pointer; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; font: .8rem/1.45 ui-monospace, Menlo, Consolas, monospace;
  background: var(--bg); border: 1px solid var(--line); border-radius: .4rem; padding: .5rem .65rem; margin: .4rem 0; }
.chip { display: inline-block; background: var(--chip); color: var(--chip-ink); border-radius: 1rem;
  padding: .05rem .6rem; margin: 0 .25rem .25rem 0; font-size: .8rem; white-space: nowrap; }
.ok { color: var(--on); }
footer dl { display: grid; grid-template-columns: max-content 1fr; gap: .15rem 1rem; margin: 1.25rem 0 0; }
footer dd { margin: 0; overflow-wrap: anywhere; }
@media (max-width: 40rem) { .row { grid-template-columns: 1fr auto; } .bars { grid-column: 1 / -1; grid-row: 2; } }
@media print { section, .tile { break-inside: avoid; } }
"""

_DOCUMENT: Final = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<main>
{body}
</main>
</body>
</html>
"""
