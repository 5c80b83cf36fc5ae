"""Data on one stream, chatter on the other."""

from __future__ import annotations

import datetime
import decimal
import io
import json
import time

import pytest

from es_skipping.cli.output import Console


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def console(form: str = "text") -> tuple[Console, io.StringIO, io.StringIO]:
    data, chatter = io.StringIO(), io.StringIO()
    return Console(form, data, chatter), data, chatter


def test_rows_are_an_aligned_table_with_numbers_to_the_right() -> None:
    out, data, chatter = console()
    out.rows([{"name": "a", "objects": 1200, "fresh": True}, {"name": "bcd", "objects": 7, "fresh": None}])
    assert data.getvalue().splitlines() == [
        "name  objects  fresh",
        "----  -------  -----",
        "a       1,200  yes",
        "bcd         7  -",
    ]
    assert chatter.getvalue() == ""


def test_rows_as_json_keep_every_value() -> None:
    out, data, _ = console("json")
    row = {"when": datetime.date(2026, 1, 2), "price": decimal.Decimal("1.20"), "names": ("a", "b"), "none": None}
    out.rows([row])
    assert json.loads(data.getvalue()) == [{"when": "2026-01-02", "price": "1.20", "names": ["a", "b"], "none": None}]


def test_keys_of_json_are_names() -> None:
    out, data, _ = console("json")
    out.rows([{"metadata bytes": 1, "index": {"a key of data": 2}}])
    out.value({"objects read": 3})
    assert [json.loads(line) for line in data.getvalue().splitlines()] == [
        [{"metadata_bytes": 1, "index": {"a key of data": 2}}],
        {"objects_read": 3},
    ]


def test_no_rows_are_an_empty_array_and_no_table() -> None:
    out, data, _ = console("json")
    out.rows([])
    assert json.loads(data.getvalue()) == []
    out, data, _ = console()
    out.rows([])
    assert data.getvalue() == ""


def test_one_value_is_lines_or_an_object() -> None:
    out, data, _ = console()
    out.value({"added": 3, "unchanged": 12000})
    assert data.getvalue() == "added      3\nunchanged  12,000\n"
    out, data, _ = console("json")
    out.value({"added": 3})
    assert json.loads(data.getvalue()) == {"added": 3}


def test_lists_of_lists_are_told_apart() -> None:
    out = io.StringIO()
    Console("text", out).value({"groups": [["a", "b"], ["c"]], "columns": ["a", "b"]})
    assert out.getvalue() == "groups   (a, b), (c)\ncolumns  a, b\n"


def test_a_step_away_from_a_terminal_is_one_line() -> None:
    out, data, chatter = console()
    with out.step("indexing lineitem"):
        pass
    assert data.getvalue() == ""
    assert chatter.getvalue().startswith("indexing lineitem in ")
    assert chatter.getvalue().count("\n") == 1
    assert "\r" not in chatter.getvalue()


def test_a_step_that_fails_says_so_and_lets_the_error_through() -> None:
    out, _, chatter = console()
    with pytest.raises(ZeroDivisionError), out.step("dividing"):
        raise ZeroDivisionError
    assert chatter.getvalue().startswith("dividing failed after ")


def test_a_step_that_failed_without_an_exception_says_so_too() -> None:
    out, _, chatter = console()
    with out.step("building") as step:
        step.failed = True
    assert chatter.getvalue().startswith("building failed after ")


def test_a_step_on_a_terminal_shows_how_far_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    terminal = Terminal()
    with Console("text", io.StringIO(), terminal).step("indexing") as progress:
        progress(100, 200, "collect")
        time.sleep(0.5)
    assert "\r\x1b[Kindexing [##########..........] collect 100 of 200, " in terminal.getvalue()
    assert terminal.getvalue().rpartition("\x1b[K")[2].startswith("indexing in ")


def test_a_progress_line_fits_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    terminal = Terminal()
    with Console("text", io.StringIO(), terminal).step("indexing " + "x" * 100):
        time.sleep(0.3)
    drawn = terminal.getvalue().split("\r\x1b[K")[1:-1]
    assert drawn
    assert all(len(line) == 29 for line in drawn)
