"""Charts, as far as they can be wrong without anybody looking."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchmarks.charts import charts
from es_skipping.layout.chart import PALETTE, Role, bar_chart, line_chart

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
    drawn = {name: picture.rstrip("\n") + "\n" for name, picture in charts()}
    assert {path.stem for path in DOCS.glob("*.svg")} == drawn.keys()
    stale = [name for name, picture in drawn.items() if (DOCS / f"{name}.svg").read_text(encoding="utf-8") != picture]
    assert stale == [], "run python -m benchmarks.charts"


def test_what_is_ours_is_strong_references_are_grey_and_the_ideal_is_dashed() -> None:
    roles: dict[str, Role] = {"none": "reference", "optimum": "ideal"}
    lines = line_chart({"none": [(0, 1)], "optimum": [(0, 0)], "ours": [(0, 0.5)]}, title="", roles=roles)
    strokes = re.findall(r'<polyline [^>]*stroke="(#\w+)"[^/]*?(stroke-dasharray)?[^/"]*"?[^/"]*"?/>', lines)
    assert len(strokes) == 6  # each in the legend, and in the picture
    assert lines.count("stroke-dasharray") == 2
    assert re.findall(r'text-anchor="start">([^<]+)<', lines) == ["ours", "none", "optimum"]
    grey = {colour for colour, _ in strokes} - set(PALETTE)
    assert grey
    assert all(max(rgb) - min(rgb) < 24 for rgb in (bytes.fromhex(colour[1:]) for colour in grey))
    bars = bar_chart({"ours": 0.5, "none": 1.0, "optimum": 0.1}, title="", roles=roles)
    ours, none, ideal = re.findall(r"<rect [^>]*/>", bars)
    assert f'fill="{PALETTE[0]}"' in ours
    assert f'fill="{PALETTE[0]}"' not in none + ideal
    assert "stroke-dasharray" in ideal


def test_every_colour_has_another_on_a_dark_page() -> None:
    roles: dict[str, Role] = {**{f"r{n}": "reference" for n in range(4)}, "ideal": "ideal"}
    drawn = line_chart({name: [(0, 0), (1, 1)] for name in (*"abcdef", *roles)}, title="", roles=roles)
    used = set(re.findall(r'(stroke|fill)="(#\w{6})"', drawn.partition("<style>@media")[0]))
    assert len(used) == 21
    assert used == set(re.findall(r'\[(stroke|fill)="(#\w{6})"\]\{', drawn))


def test_lines_of_a_kind_differ_by_their_marks() -> None:
    """So that a legend can be read without colours."""
    drawn = line_chart({name: [(0, 0), (1, 1)] for name in "abcd"}, title="")
    assert drawn.count("<circle") == 3
    assert {len(corners.split()) for corners in re.findall(r'<polygon points="([^"]+)"', drawn)} == {3, 4}


def test_labels_of_bars_fit_before_them() -> None:
    drawn = bar_chart({"GSOP, replicas by selectivity 1.2": 1.0}, title="")
    (label,) = re.findall(r'<text x="([\d.]+)" [^>]*text-anchor="end"', drawn)
    assert float(label) > 6 * len("GSOP, replicas by selectivity 1.2")
