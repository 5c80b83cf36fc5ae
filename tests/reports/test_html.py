"""The page that compares queries: complete, self-contained, and safe with any text."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest

from es_skipping.reports.html import Comparison, comparison_page
from es_skipping.reports.units import human_bytes, human_seconds, share

RANGE = Comparison(
    "Range", "SELECT 1 WHERE a < 2", 200, 4, 20_000_000, 400_000, 0.9, 0.2, ("MinMax(ts)",), 12, note="Why it is fast."
)
NOTHING = Comparison("Nothing", "SELECT 2", 60, 60, 6_000_000, 6_000_000, 0.5, 0.52, (), 3)
EVIL = Comparison("<script>alert(1)</script>", "SELECT '</pre><b>'", 1, 1, 1, 1, 0.1, 0.1, ('a"b<i>',), 1, note="&<")

VOID = {"meta", "br", "hr", "img", "input", "link"}


class Balance(HTMLParser):
    """Checks that every element is closed, and remembers which there are."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def parsed(page: str) -> Balance:
    balance = Balance()
    balance.feed(page)
    balance.close()
    assert balance.open == []
    return balance


def test_each_query_is_there_with_its_numbers() -> None:
    text = parsed(comparison_page([RANGE, NOTHING], facts={"Spark": "4.0.0"})).text
    for expected in (
        "4 of 200",
        "60 of 60",
        "MinMax(ts)",
        "Why it is fast.",
        "SELECT 1 WHERE a < 2",
        "4.0.0",
        "12 equal",
    ):
        assert expected in text
    assert "64 of 260 read" in text
    assert "75.4 %" in text


def test_the_page_needs_nothing_from_elsewhere() -> None:
    page = comparison_page([RANGE, NOTHING])
    assert not {"script", "link", "img", "iframe"} & set(parsed(page).seen)
    assert not re.search(r"https?://|url\(|@import|src=", page)
    assert "prefers-color-scheme: dark" in page


def test_any_text_is_shown_as_text() -> None:
    page = comparison_page([EVIL], title="<b>", subtitle="a & b", facts={"<x>": "<y>"})
    balance = parsed(page)
    assert not {"script", "b", "i", "x", "y"} & set(balance.seen)
    assert "<script>alert(1)</script>" in balance.text


def test_different_rows_cannot_be_overlooked() -> None:
    text = parsed(comparison_page([Comparison("Range", "SELECT 1", 2, 1, 2, 1, 1.0, 1.0, equal=False), RANGE])).text
    assert "DIFFERENT in 1 of 2" in text
    assert "different" in text


def test_no_query_and_empty_objects_make_a_page_too() -> None:
    parsed(comparison_page([]))
    parsed(comparison_page([Comparison("Empty", "SELECT 1", 0, 0, 0, 0, 0.0, 0.0)]))


def test_bars_are_as_long_as_their_share() -> None:
    widths = [float(width) for width in re.findall(r'style="width:([\d.]+)%"', comparison_page([RANGE, NOTHING]))]
    assert widths == pytest.approx([2.0, 100.0, 100.0, 22.22, 55.56, 57.78], abs=0.01)


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (human_bytes(0), "0 B"),
        (human_bytes(1023), "1023 B"),
        (human_bytes(1024), "1.0 KiB"),
        (human_bytes(3 * 2**50), "3.0 PiB"),
        (human_seconds(0.0004), "0 ms"),
        (human_seconds(0.9996), "1.00 s"),
        (human_seconds(59.96), "1 min 0 s"),
        (human_seconds(119.7), "2 min 0 s"),
        (share(999_999, 1_000_000), "over 99.9 %"),
        (share(1, 1_000_000), "under 0.1 %"),
        (share(1, 1), "100 %"),
        (share(0, 5), "0 %"),
        (share(5, 0), "0 %"),
    ],
)
def test_numbers_as_people_read_them(shown: str, expected: str) -> None:
    assert shown == expected
