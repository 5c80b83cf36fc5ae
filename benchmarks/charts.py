"""Draws every chart of docs/benchmarks from the figures that the benchmarks recorded; nothing is measured.

Run: ``python -m benchmarks.charts``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from benchmarks import (
    advisor_page,
    geospatial,
    groups_study,
    index_columns,
    layout_tpch,
    lookup,
    object_store,
    refresh,
    text_indexes,
)
from benchmarks.drawing import groups_chart, layout_chart, search_chart

__all__ = ["charts"]

DOCS: Final = Path(__file__).resolve().parent.parent / "docs" / "benchmarks"


def _groups(name: str, figure: str, told: str, percent: bool) -> Iterator[tuple[str, str]]:
    for chapter, facts in _read(name).items():
        number, _, months = chapter.removeprefix("chapter ").partition(", ")
        values = {scheme: one[figure] for scheme, one in facts["schemes"].items()}
        title = f"TPC-H, templates of chapter {number}: {told}"
        stem = "_".join([name, number, *months.split()[:1]])
        yield stem, groups_chart(values, title, percent=percent)


def charts() -> Iterator[tuple[str, str]]:
    """The name of each chart's file, and the picture."""
    yield "advisor", advisor_page.chart(advisor_page.Measured(_read("advisor")))
    for name in ("curve", "arrival"):
        yield f"geospatial_{name}", geospatial.chart(name, _read("geospatial")[name]["windows"])
    yield from _groups("groups_times", "seconds a query", "seconds a query", percent=False)
    yield from _groups("groups_tpch", "read", "cells and ids read", percent=True)
    yield from groups_study.charts(_read("groups_study"))
    yield "gsop_search", search_chart(_read("gsop_search")["seconds"])
    log = _read("layout_log")
    title = f"A log of {log['rows']:,} views: rows scanned by {log['test queries']} queries"
    yield "layout_log", layout_chart(_shares(log), title)
    for stem in ("layout_tpch", "layout_tpch_skewed"):
        yield stem, layout_tpch.chart(_read(stem))
    for stem in ("layout_log", "layout_tpch"):
        yield f"{stem}_features", layout_tpch.features_chart(_read(stem))
    million = _read("million")
    yield "million_lookup", lookup.chart(dict(sorted(million["lookup"].items())))
    yield "million_refresh", refresh.chart(dict(sorted(million["refresh"].items())))
    for stem, drawn in (("index_columns", index_columns.chart), ("object_store", object_store.chart)):
        if (DOCS / f"{stem}.json").exists():
            yield stem, drawn(_read(stem))
    yield "text_indexes", text_indexes.chart(_read("text_indexes")["lengths"])


def _shares(measured: Mapping[str, Any]) -> dict[str, float]:
    return {name: one["share"] for name, one in measured["scanned"].items()}


def _read(name: str) -> Any:
    return json.loads((DOCS / f"{name}.json").read_text(encoding="utf-8"))


def main() -> None:
    for name, drawn in charts():
        (DOCS / f"{name}.svg").write_text(drawn.rstrip("\n") + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
