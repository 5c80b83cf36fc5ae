"""`console_page`: what each query would read under each layout, with sliders for features and block size."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from html import escape
from typing import TYPE_CHECKING, Any, Final

from es_skipping.layout.designing.design import ROWS_PER_SAMPLED_BLOCK, SAMPLE_ROWS, study_of
from es_skipping.layout.designing.study import Forecast, Study
from es_skipping.layout.workload.log import QueryLog
from es_skipping.reports.page import page
from es_skipping.reports.units import share

if TYPE_CHECKING:
    from es_skipping.build.dataset import Dataset

__all__ = ["console_page"]

_SIZES: Final = (12_500, 25_000, 50_000, 100_000, 200_000)
_FEATURES: Final = (1, 2, 5, 10, 15, 25, 40)
_QUERIES: Final = 200
"""Most queries to show a row for; the averages are of all."""


def console_page(
    dataset: Dataset,
    log: QueryLog | Sequence[str],
    *,
    sizes: Sequence[int] = _SIZES,
    features: Sequence[int] = _FEATURES,
    within: Sequence[str] = (),
    holdout: float = 0.2,
    rows: int = SAMPLE_ROWS,
    progress: Callable[[int, int, str], None] | None = None,
) -> str:
    """Make an HTML page with the dry runs of `design` for several sizes of blocks and numbers of features.

    The page has a slider for each, and shows the share of the rows that each held-out query reads of each layout. It
    needs no server and no network. After the console of WARP (Sun et al., *A Partitioning Framework for Aggressive Data
    Skipping*, PVLDB 7(13), 2014).

    Parameters
    ----------
    dataset
        The dataset. Nothing is written to it.
    log
        The workload, as `SOP.fit` takes it. Its held-out filters stand on the page, with their literals.
    sizes
        Fewest rows of a block, one for each step of the slider.
    features
        Numbers of features of `SOP`, one for each step of the slider; those above the number that was found are left
        out.
    within
        SQL expressions; rows with different values never share a block.
    holdout
        The share of the newest queries to judge by.
    rows
        Most rows to sample.
    progress
        Called with ``(done, total, phase)`` during the work.

    Returns
    -------
    str
        A complete HTML document; write it as UTF-8.

    Raises
    ------
    ValueError
        There is no size or no number of features, or one is below 1.
    DatasetError
        The dataset has no rows, or the log has fewer than two queries.

    Examples
    --------
    >>> page = layout.console_page(dataset, log, sizes=[10_000, 50_000])                        # doctest: +SKIP
    >>> Path("layouts.html").write_text(page, encoding="utf-8")                                 # doctest: +SKIP
    """
    steps, counts = sorted(set(sizes)), sorted(set(features))
    if not steps or not counts or steps[0] < 1 or counts[0] < 1:
        raise ValueError(
            f"sizes is {list(sizes)} and features {list(features)}: give each at least one whole number from 1 on"
        )
    study = study_of(dataset, log, within=within, holdout=holdout, rows=rows)
    counts = [count for count in counts if count <= study.most_features] or counts[:1]
    tried = []
    for done, size in enumerate(steps):
        if progress is not None:
            progress(done, len(steps), "dry runs")
        tried.append(_tried(study, size, counts))
    if progress is not None:
        progress(len(steps), len(steps), "dry runs")
    texts = Counter(map(str, study.test))
    shown = [text for text, _ in texts.most_common(_QUERIES)]
    place = {str(query): at for at, query in enumerate(study.test)}
    names = list(dict.fromkeys(name for found in tried for name in found))
    facts: dict[str, Any] = {
        "sizes": steps,
        "scarce": [size * study.sample.share < ROWS_PER_SAMPLED_BLOCK for size in steps],
        "features": counts,
        "queries": [{"text": text, "times": texts[text]} for text in shown],
        "layouts": [
            {
                "name": name,
                "cells": [
                    [_cell(one, [place[text] for text in shown]) for one in found.get(name, ())] for found in tried
                ],
            }
            for name in names
        ],
    }
    return page(f"Layouts of {dataset}", _body(study, str(dataset), facts), style=_STYLE, script=_SCRIPT)


def _tried(study: Study, size: int, counts: Sequence[int]) -> dict[str, list[Forecast]]:
    """By layout, the forecasts for blocks of a size: one for each number of features, or one alone."""
    found: dict[str, list[Forecast]] = {}
    for forecast in (*(study.sop(size, count) for count in counts), study.tree(size), *study.curves(size)):
        if forecast is not None:
            found.setdefault(forecast.name, []).append(forecast)
    return found


def _cell(forecast: Forecast, places: Sequence[int]) -> dict[str, Any]:
    return {
        "detail": forecast.detail,
        "blocks": forecast.blocks,
        "share": round(forecast.share, 5),
        "shares": [round(forecast.shares[at], 5) for at in places],
    }


def _body(study: Study, dataset: str, facts: dict[str, Any]) -> str:
    middle = len(facts["sizes"]) // 2, len(facts["features"]) // 2
    sliders = "".join(
        f'<label>{label} <output id="{name}-shown"></output><input type="range" id="{name}" min="0" '
        f'max="{len(facts[key]) - 1}" value="{at}" step="1"></label>'
        for (label, name, key), at in zip(
            (("Fewest rows of a block", "size", "sizes"), ("Features of SOP", "count", "features")), middle, strict=True
        )
    )
    held = sum(query["times"] for query in facts["queries"])
    left_out = len(study.test) - held
    more = f" The {held:,} most frequent are shown; the averages are of all." if left_out else ""
    matching = (
        "" if study.matching is None else f" {share(study.matching, 1)} of the rows match a held-out query on average."
    )
    data = json.dumps(facts, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    return (
        f"<header><h1>What queries would read of each layout</h1>"
        f'<p class="sub">{escape(dataset)}: dry runs on {share(study.sample.share, 1)} of the rows. '
        f"{len(study.train):,} queries made the layouts, and the newest {len(study.test):,}, held out, judge them."
        f"{more}{matching}</p></header>"
        f'<section class="sliders">{sliders}<p class="small" id="scarce" hidden>The sample has few rows of each block '
        "of this size, so blocks look better than they will be.</p></section>"
        '<section class="tiles" id="tiles"></section>'
        '<section><h2>Rows read by each query</h2><p class="sub">The whole bar is a full scan. '
        '<label>Order <select id="order"><option value="times">by frequency</option></select></label></p>'
        '<div class="chart" id="rows"></div><noscript>This page needs JavaScript.</noscript></section>'
        f'<script type="application/json" id="facts">{data}</script>'
    )


_STYLE: Final = """
:root { --c0: #1b6ca8; --c1: #b97a0f; --c2: #6b757e; --c3: #aab3ba; }
@media (prefers-color-scheme: dark) { :root { --c0: #58aef0; --c1: #e3a83a; --c2: #98a2ab; --c3: #66717b; } }
.sliders { display: grid; grid-template-columns: repeat(auto-fit, minmax(15rem, 1fr)); gap: 1rem; }
.sliders label { display: block; }
.sliders output { float: right; font-variant-numeric: tabular-nums; font-weight: 600; }
.sliders input { display: block; width: 100%; accent-color: var(--c0); }
.sliders p { grid-column: 1 / -1; margin: 0; }
select { font: inherit; }
.tile { border-top: 4px solid var(--line); }
.query { padding: .55rem 0; border-bottom: 1px solid var(--line); }
.query:last-child { border-bottom: 0; }
.query .text { display: flex; gap: 1rem; justify-content: space-between; font: .8rem/1.45 ui-monospace, Menlo, Consolas,
  monospace; overflow-wrap: anywhere; margin-bottom: .3rem; }
.query .text .small { white-space: nowrap; }
.one { display: grid; grid-template-columns: 6.5rem 1fr 4.5rem; gap: .6rem; align-items: center; font-size: .8rem; }
.one .bars { display: block; background: var(--track); border-radius: 4px; overflow: hidden; }
.one .value { font-size: .8rem; }
"""

_SCRIPT: Final = """
"use strict";
const facts = JSON.parse(document.getElementById("facts").textContent);
const size = document.getElementById("size"), count = document.getElementById("count");
const order = document.getElementById("order");
const percent = (part) => {
  if (part > 0 && part < 0.0005) return "under 0.1 %";
  return (Math.round(part * 1000) / 10) + " %";
};
const made = (kind, text, parent, tag = "span") => {
  const one = document.createElement(tag);
  one.className = kind;
  if (text !== null) one.textContent = text;
  parent.append(one);
  return one;
};
facts.layouts.forEach((layout, at) => {
  const option = made("", "by " + layout.name + ", most first", order, "option");
  option.value = String(at);
});
// A layout without features has one cell for each size.
const cell = (layout) => {
  const cells = layout.cells[Number(size.value)];
  return cells.length ? cells[Math.min(Number(count.value), cells.length - 1)] : null;
};
const draw = () => {
  document.getElementById("size-shown").textContent = facts.sizes[size.value].toLocaleString("en");
  document.getElementById("count-shown").textContent = facts.features[count.value];
  document.getElementById("scarce").hidden = !facts.scarce[size.value];
  const cells = facts.layouts.map(cell);
  const tiles = document.getElementById("tiles"), rows = document.getElementById("rows");
  tiles.replaceChildren();
  rows.replaceChildren();
  facts.layouts.forEach((layout, at) => {
    const found = cells[at];
    if (!found) return;
    const tile = made("tile", null, tiles, "div");
    tile.style.borderTopColor = "var(--c" + at % 4 + ")";
    made("label", layout.name, tile);
    made("big", percent(found.share), tile).style.color = "inherit";
    made("small", "of the rows, on average; " + found.blocks.toLocaleString("en") + " blocks; " + found.detail, tile);
  });
  const numbers = facts.queries.map((_, at) => at);
  if (order.value !== "times" && cells[Number(order.value)]) {
    const shares = cells[Number(order.value)].shares;
    numbers.sort((a, b) => shares[b] - shares[a]);
  }
  for (const number of numbers) {
    const query = facts.queries[number];
    const row = made("query", null, rows, "div");
    const text = made("text", null, row, "div");
    made("", query.text, text);
    made("small", query.times === 1 ? "once" : query.times + " times", text);
    facts.layouts.forEach((layout, at) => {
      const found = cells[at];
      if (!found) return;
      const one = made("one", null, row, "div");
      made("small", layout.name, one);
      const bars = made("bars", null, one);
      bars.setAttribute("role", "img");
      bars.setAttribute("aria-label", layout.name + ": " + percent(found.shares[number]) + " of the rows");
      const bar = made("bar", null, bars);
      bar.style.width = (100 * found.shares[number]) + "%";
      bar.style.background = "var(--c" + at % 4 + ")";
      made("value", percent(found.shares[number]), one);
    });
  }
};
for (const one of [size, count, order]) one.addEventListener("input", draw);
draw();
"""
