"""The frame of every HTML page: one file without fonts or external links, light or dark as the reader prefers.

It can be mailed, archived and opened offline, fits a phone screen, and prints.
"""

from __future__ import annotations

from html import escape
from typing import Final

__all__ = ["page"]


def page(title: str, body: str, *, style: str = "", script: str = "") -> str:
    """Make a complete HTML document.

    Parameters
    ----------
    title
        Plain text.
    body
        HTML.
    style
        CSS beside the shared one.
    script
        JavaScript that runs once the body is there.

    Examples
    --------
    >>> page("a & b", "<p>text</p>").count("<title>a &amp; b</title>")
    1
    """
    run = f"<script>{script}</script>\n" if script else ""
    return _DOCUMENT.format(title=escape(title), style=_STYLE + style, body=body, script=run)


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
{script}</body>
</html>
"""
