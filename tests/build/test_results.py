"""What building gives back, as people see it, and the bar that is drawn meanwhile."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from datetime import datetime, timezone
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import es_skipping as esk
from es_skipping.build.results import Health
from es_skipping.errors import StoreUnavailable
from es_skipping.reports.progress import shown_progress
from tests.reports.conftest import events, memory, spark, store
from tests.reports.memory_store import MemoryStore

__all__ = ["events", "memory", "spark", "store"]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


# --- results --------------------------------------------------------------------------------------------------------


def test_a_result_is_one_line_a_table_and_html() -> None:
    failed = tuple((f"file:/<lake>/{n}", "no Parquet") for n in range(25))
    result = esk.RefreshResult(added=1200, failed=failed, seconds=18.58888888888889, store="http://es:9200")
    assert repr(result) == "RefreshResult(1200 added, 0 updated, 0 removed, 0 unchanged, 25 failed, in 18.6 s)"
    lines = str(result).splitlines()
    assert lines[0].split() == ["added", "updated", "removed", "unchanged", "failed", "time"]
    assert lines[2].split() == ["1,200", "0", "0", "0", "25", "18.6", "s"]
    assert "store: http://es:9200" in lines
    assert lines[-1] == "and 5 more"
    html = result._repr_html_()
    assert html.count("<tr>") == 2 + 1 + 20
    assert "file:/&lt;lake&gt;/0" in html
    assert result == esk.RefreshResult(added=1200, failed=failed), "the clock is no part of what was done"


def test_what_was_not_wholly_remembered_is_told() -> None:
    result = esk.RefreshResult(added=3, unknown=(("minmax(x)", "no"),), degraded=(("valuelist(s)", "interval", 2),))
    assert repr(result).endswith("0 failed, 1 unknown, 1 degraded)")
    assert "MinMax(x) has no metadata for some objects: no" in str(result)
    assert "ValueList(s) is reduced to interval for 2 objects" in str(result)


def test_health_is_one_line_a_table_and_html() -> None:
    when = datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone.utc)
    health = Health(9, 7, 7 / 9, 1, 1 / 9, 1, 0, when)
    assert repr(health) == "Health(7 of 9 objects covered (77.8 %), 1 stale, 1 missing, 0 gone, 0 failed)"
    assert "7 (77.8 %)" in str(health)
    assert "2026-01-02 03:04:05" in health._repr_html_()
    assert "0.7777" not in str(health) + health._repr_html_()


def test_a_dataset_and_its_description_show_indexes(
    spark: SparkSession, events: str, store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = esk.Dataset(spark, events)
    shown = dataset._repr_html_()
    assert f"{events}: 20 objects, " in shown
    assert store.url in shown
    assert "MinMax(id)" in shown
    described = dataset.describe()
    assert isinstance(described, DataFrame)
    assert repr(described).splitlines()[2].startswith("MinMax(id)")
    assert "MinMax(id)" in described._repr_html_()  # type: ignore[operator]
    assert described.where("objects = 20").select("type").collect() == [("MinMax",)]

    def away(_: str) -> None:
        raise StoreUnavailable("it is on <holiday>")

    monkeypatch.setattr(store, "dataset", away)
    assert "it is on &lt;holiday&gt;" in dataset._repr_html_()


# --- progress -------------------------------------------------------------------------------------------------------


@pytest.fixture
def build(spark: SparkSession, events: str) -> Iterator[esk.Dataset]:
    dataset = esk.Dataset(spark, events)
    yield dataset
    dataset.drop_indexes(esk.MinMax("length(word)"))


def test_a_build_draws_a_bar_in_a_terminal_and_leaves_none(
    spark: SparkSession, build: esk.Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    terminal, pipe = Terminal(), io.StringIO()
    monkeypatch.setattr(sys, "stderr", terminal)
    result = build.create_indexes(esk.MinMax("length(word)"))
    assert result.seconds > 0
    drawn = terminal.getvalue().split("\r\x1b[K")
    assert any("[####################] collect 20 of 20, " in line for line in drawn)
    assert drawn[-1] == ""
    monkeypatch.setattr(sys, "stderr", pipe)
    build.refresh()
    assert pipe.getvalue() == ""
    spark.conf.set("spark.es_skipping.progress", "false")
    terminal.truncate(0)
    monkeypatch.setattr(sys, "stderr", terminal)
    build.refresh()
    spark.conf.unset("spark.es_skipping.progress")
    assert "indexing" not in terminal.getvalue()


@pytest.mark.parametrize(("mode", "stream", "draws"), [("true", io.StringIO, True), ("auto", io.StringIO, False)])
def test_the_setting_decides(mode: str, stream: Any, draws: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    into = stream()
    monkeypatch.setattr(sys, "stderr", into)
    with shown_progress(mode, "indexing") as bar:
        assert (bar is not None) == draws
        if bar is not None:
            bar(1, 2, "collect")
    assert ("collect 1 of 2" in into.getvalue()) == draws


class Display:
    """What a notebook's front end is told."""

    def __init__(self) -> None:
        self.shown: list[dict[str, str]] = []

    def __call__(self, content: dict[str, str], **options: Any) -> Display:
        self.shown.append(content)
        return self

    update = __call__


def test_another_thread_that_imports_ipython_meanwhile_is_no_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    """PySpark imports it where it makes columns, in whatever thread; until then the module is there without content."""
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace())  # type: ignore[arg-type]
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with shown_progress("auto", "indexing") as bar:
        assert bar is None


def test_in_a_notebook_one_output_is_updated(monkeypatch: pytest.MonkeyPatch) -> None:
    display = Display()
    shell = SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))  # type: ignore[arg-type]
    monkeypatch.setitem(sys.modules, "IPython.display", SimpleNamespace(display=display))  # type: ignore[arg-type]

    def fail() -> None:
        with shown_progress("auto", "indexing <t>") as bar:
            assert bar is not None
            bar(0, 0, "list")
            bar(5, 10, "collect")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    first, second, last = (each["text/html"] for each in display.shown)
    assert first.startswith("<div>indexing &lt;t&gt; list, ")
    assert '<progress max="10" value="5"></progress> collect 5 of 10, ' in second
    assert last.startswith("<div>indexing &lt;t&gt; failed after ")
