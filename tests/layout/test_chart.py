"""Charts, as far as they can be wrong without anybody looking."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from benchmarks import layout_tpch, text_indexes
from es_skipping.layout.chart import line_chart

DOCS = Path(__file__).parents[2] / "docs" / "benchmarks"


@pytest.mark.parametrize(
    ("most", "ticks"),
    [
        (1.0, ["0 %", "25 %", "50 %", "75 %", "100 %"]),
        (0.88, ["0 %", "25 %", "50 %", "75 %", "100 %"]),
        (0.3, ["0 %", "10 %", "20 %", "30 %"]),
        (0.0021, ["0 %", "0.1 %", "0.2 %", "0.3 %"]),
    ],
)
def test_ticks_are_numbers_that_people_count_in(most: float, ticks: list[str]) -> None:
    drawn = line_chart({"a": [(0, 0), (1, most)]}, title="", percent=True)
    assert re.findall(r'text-anchor="end">([^<]+)<', drawn) == ticks


def test_charts_of_the_docs_are_drawn_as_charts_are_now() -> None:
    """From the recorded numbers: a chart that is drawn better is drawn better everywhere."""
    measured = json.loads((DOCS / "layout_tpch.json").read_text(encoding="utf-8"))
    assert (DOCS / "layout_tpch_features.svg").read_text(encoding="utf-8") == layout_tpch.features_chart(measured)
    measured = json.loads((DOCS / "text_indexes.json").read_text(encoding="utf-8"))
    assert (DOCS / "text_indexes.svg").read_text(encoding="utf-8") == text_indexes.chart(measured["lengths"]) + "\n"
