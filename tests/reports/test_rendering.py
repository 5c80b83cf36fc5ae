"""What people see of a report: every value on its line, nothing that moves a cursor, nothing that is markup."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest

from es_skipping.clauses.clause import KEEP, SKIP, Ask, Conjunction, Disjunction
from es_skipping.clauses.questions import (
    AnyOf,
    HasNaN,
    HasNotNull,
    HasNull,
    Meets,
    OtherThan,
    Overlaps,
    Range,
    TextMatch,
)
from es_skipping.clauses.text import clause_text
from es_skipping.predicates.types import DataType
from es_skipping.reports.explanation import DatasetExplanation, Explanation, NodeExplanation, ScanExplanation
from es_skipping.reports.query import QueryReport
from es_skipping.reports.scan import ScanReport

NASTY = "<script>alert(1)</script>\n\x1b[2J\u202e&\"'"


def scan(**changes: object) -> ScanReport:
    facts: dict[str, object] = {
        "scan": "1",
        "execution": "7",
        "dataset": "events",
        "table": None,
        "roots": ("file:/lake/events",),
        "objects_total": 20,
        "objects_skipped": 19,
        "bytes_total": 20480,
        "bytes_skipped": 19456,
        "indexes": ("minmax(ts)",),
    }
    return ScanReport(**{**facts, **changes})  # type: ignore[arg-type]


class Tags(HTMLParser):
    """Checks that tags are closed in order, and collects them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.seen: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert not self._open

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.seen.append(tag)
        self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag


def test_totals_are_the_sums_over_all_scans() -> None:
    report = QueryReport.of(("7",), (scan(), scan(scan="2", objects_total=5, objects_skipped=0, bytes_skipped=0)))
    assert (report.objects_total, report.objects_skipped, report.objects_read) == (25, 19, 6)
    assert (report.bytes_total, report.bytes_skipped, report.bytes_read) == (40960, 19456, 21504)


def test_repr_is_one_honest_line() -> None:
    report = QueryReport.of(("7",), (scan(), scan(failed=True, reason="down\nnow", objects_skipped=0)))
    assert (
        repr(report)
        == "QueryReport(2 scans: 19 of 40 objects skipped (47.5 %), 38.0 KiB of 40.0 KiB, 1 look-up failed)"
    )
    assert "\n" not in repr(scan(roots=("a\nb",), dataset=None))


@pytest.mark.parametrize(
    ("executions", "note", "expected"),
    [
        ((), None, "nothing ran, no scan did a look-up"),
        (("3",), "why", "execution 3, no scan did a look-up; why"),
        (("3", "4"), None, "2 executions, no scan did a look-up"),
    ],
)
def test_a_report_without_scans_says_what_ran(executions: tuple[str, ...], note: str | None, expected: str) -> None:
    assert str(QueryReport.of(executions, (), note)) == expected


def test_a_terminal_gets_one_line_per_scan() -> None:
    lines = str(QueryReport.of(("7",), (scan(), scan(dataset=NASTY, reason=NASTY, objects_skipped=0)))).splitlines()
    assert len(lines) == 6
    assert "\x1b" not in "".join(lines)
    assert "\u202e" not in "".join(lines)
    assert "failed" not in lines[-1]


def test_indexes_that_may_not_be_used_are_counted_once_each() -> None:
    drift = ("minmax(ts)", "the time zone was another")
    other = ("minmax(ts)", "the schema was another")
    report = QueryReport.of((), (scan(unusable=(drift,)), scan(unusable=(drift, other, ("prefix(s)", "gone")))))
    assert report.unusable == (drift, other, ("prefix(s)", "gone"))
    assert repr(report).endswith(", 2 indexes not used)")
    assert repr(QueryReport.of((), (scan(unusable=(drift,)),))).endswith(", 1 index not used)")


def test_a_failed_look_up_is_marked() -> None:
    assert "failed: store down" in str(QueryReport.of((), (scan(failed=True, reason="store down", objects_skipped=0),)))


def test_wide_characters_keep_columns_aligned() -> None:
    table = str(QueryReport.of((), (scan(dataset="東京"), scan(dataset="tokyo")))).splitlines()[-2:]
    assert table[0].index("19") + 2 == table[1].index("19")


def test_a_table_is_named_with_its_snapshot() -> None:
    orders = scan(dataset="orders", table_format="delta", snapshot="7")
    assert repr(orders).startswith("ScanReport(orders, delta snapshot 7: 19 of 20 objects skipped")
    report = QueryReport.of(("7",), (orders, scan()))
    assert repr(report).endswith("38.0 KiB of 40.0 KiB, delta snapshot 7)")
    lines = str(report).splitlines()
    assert lines[2].split()[:3] == ["execution", "dataset", "snapshot"]
    assert "orders   delta snapshot 7" in lines[4] and "delta" not in lines[5]
    assert ">delta snapshot 7</td>" in report._repr_html_()
    many = QueryReport.of((), tuple(scan(table_format="delta", snapshot=str(number)) for number in (1, 2, 3, 4, 5, 5)))
    assert repr(many).endswith(", delta snapshot 1, delta snapshot 2, delta snapshot 3 and 2 more)")


def test_plain_files_are_printed_without_a_snapshot() -> None:
    for report in (scan(), QueryReport.of(("7",), (scan(),))):
        assert "snapshot" not in f"{report!r} {report}"


@pytest.mark.parametrize("place", ["dataset", "reason", "table"])
def test_a_notebook_gets_escaped_values(place: str) -> None:
    nasty = scan(**{"dataset": None, place: NASTY})
    html = QueryReport.of(("7",), (nasty,), note=NASTY)._repr_html_()
    assert "script" not in Tags(html).seen
    assert "&lt;script&gt;" in html
    assert "color" not in html.replace("rgba", "")


def test_a_report_is_read_afresh_until_closed() -> None:
    seen = [scan()]
    report = QueryReport(lambda: (("7",), tuple(seen), None))
    assert report.objects_skipped == 19
    seen.append(scan(scan="2"))
    assert report.objects_skipped == 38
    report.close()
    seen.clear()
    assert report.objects_skipped == 38


# --- explanations -------------------------------------------------------------------------------------------------


def explanation(text: str = "x > 1") -> Explanation:
    nodes = (
        NodeExplanation(0, "AND", "the parts below, joined by AND"),
        NodeExplanation(1, text, "MinMax(x): a value > 1"),
        NodeExplanation(1, "f(y)", None, "no index on f(y)"),
    )
    query = '{\n  "path": "\u202e"\n}'
    part = DatasetExplanation(
        "events",
        f"{text} AND f(y)",
        nodes,
        "MinMax(x): a value > 1",
        query,
        ("a note",),
        (("prefix(s, 3)", "why"),),
        {"minmax(x)": 19},
    )
    return Explanation(
        (ScanExplanation(None, ("file:/e",), 20, 19, 2000, 1900, (part,), None, "https://es:9200"),), NASTY
    )


def test_an_explanation_says_what_each_node_became() -> None:
    lines = str(explanation()).splitlines()
    assert "      x > 1  →  MinMax(x): a value > 1" in lines
    assert "      f(y)   →  nothing: no index on f(y)" in lines
    assert "  not used Prefix(s, 3): why" in lines
    assert "  alone    MinMax(x) 19" in lines
    assert lines[1] == "  19 of 20 objects would be skipped (95 %), 1.9 KiB of 2.0 KiB"


def test_the_query_can_be_pasted_from_a_terminal() -> None:
    lines = str(explanation()).splitlines()
    start = lines.index("    {")
    pasted = "\n".join(lines[start : start + 3])
    assert "\u202e" not in pasted
    import json

    assert json.loads(pasted) == {"path": "\u202e"}


def test_a_notebook_gets_the_query_as_it_is_and_everything_escaped() -> None:
    html = explanation(NASTY)._repr_html_()
    assert "script" not in Tags(html).seen
    assert "\u202e" in html
    assert repr(explanation()) == "Explanation(1 scan: 19 of 20 objects would be skipped (95 %), 1.9 KiB of 2.0 KiB)"


def test_a_plan_without_scans_says_so() -> None:
    assert str(Explanation(())) == "The plan scans no files that could be skipped."


# --- clauses ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("clause", "expected"),
    [
        (KEEP, "every object is kept"),
        (SKIP, "no object is kept"),
        (Ask("i", AnyOf((1, 2))), "i: a value IN (1, 2)"),
        (Ask("i", AnyOf(tuple(range(12)))), "i: a value IN (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, ... 2 more)"),
        (Ask("i", OtherThan((1,))), "i: a value NOT IN (1)"),
        (Ask("i", Overlaps((Range(1, 3), Range(5, 5), Range()))), "i: a value >= 1 and <= 3 or = 5 or at all"),
        (Ask("i", Overlaps((Range(None, 3, high_open=True),))), "i: a value < 3"),
        (Ask("i", HasNull()), "i: a null"),
        (Ask("i", HasNotNull()), "i: a value that is not null"),
        (Ask("i", HasNaN()), "i: a NaN"),
        (Ask("i", TextMatch("starts", "a'b", negated=True)), "i: a value not starting with 'a\\'b'"),
        (
            Ask("i", Meets((Range(0.0, 1.0), Range(None, 2.0)))),
            "i: a point with axis 1 >= 0.0 and <= 1.0 and axis 2 <= 2.0",
        ),
        (
            Conjunction((Ask("i", HasNull()), Disjunction((Ask("j", HasNull()), Ask("k", HasNaN()))))),
            "i: a null AND (j: a null OR k: a NaN)",
        ),
    ],
)
def test_clauses_read_as_text(clause: object, expected: str) -> None:
    assert clause_text(clause) == expected  # type: ignore[arg-type]


def test_values_read_in_the_type_of_the_index() -> None:
    clause = Ask("minmax(d)", AnyOf((19723,)))
    assert clause_text(clause, {"minmax(d)": DataType("date")}) == "minmax(d): a value IN (DATE '2024-01-01')"


def test_a_clause_too_deep_is_cut() -> None:
    clause: object = Ask("i", HasNull())
    for level in range(500):
        clause = (Conjunction if level % 2 else Disjunction)((clause, Ask("j", HasNull())))  # type: ignore[arg-type]
    assert "..." in clause_text(clause)  # type: ignore[arg-type]
