"""The command line's output: data on standard output as a table or JSON, everything else on standard error."""

from __future__ import annotations

import datetime
import decimal
import json
import shutil
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TextIO

from es_skipping.reports.progress import bar_text
from es_skipping.reports.units import human_seconds

__all__ = ["Console", "Step"]


class Console:
    """The output of a command.

    Parameters
    ----------
    form
        The form of data: ``"text"`` or ``"json"``.
    data, chatter
        Streams; by default standard output and standard error.
    """

    def __init__(self, form: str = "text", data: TextIO | None = None, chatter: TextIO | None = None) -> None:
        self.form = form
        self._data = data or sys.stdout
        self._chatter = chatter or sys.stderr

    def tell(self, message: str) -> None:
        """Write one line for people."""
        print(message, file=self._chatter, flush=True)

    def text(self, text: str) -> None:
        """Write data that is text already."""
        print(text, file=self._data, flush=True)

    def value(self, value: Mapping[str, Any]) -> None:
        """Write one item: ``name  value`` lines, or a JSON object."""
        if self.form == "json":
            self.text(json.dumps(_keyed(value), default=_plain, ensure_ascii=False))
            return
        width = max((len(name) for name in value), default=0)
        for name, item in value.items():
            self.text(f"{name:<{width}}  {_shown(item)}")

    def rows(self, rows: Sequence[Mapping[str, Any]], columns: Sequence[str] | None = None) -> None:
        """Write items of one shape: an aligned table, or a JSON array."""
        if self.form == "json":
            self.text(json.dumps([_keyed(row) for row in rows], default=_plain, ensure_ascii=False))
            return
        names = list(columns or (rows[0] if rows else ()))
        cells = [[_shown(row.get(name)) for name in names] for row in rows]
        if names:
            self.text(table(names, cells, right=_numeric(rows, names)))

    @contextmanager
    def step(self, what: str) -> Iterator[Step]:
        """Show an operation's name, progress and duration.

        A terminal shows one line that is rewritten during the work; elsewhere a single line appears at the end.

        Yields
        ------
        Step
            Call it with ``(done, total, phase)`` from time to time, from any thread.
        """
        begun = time.perf_counter()
        stop = threading.Event()
        state = Step()
        watcher = None
        if self._chatter.isatty():
            watcher = threading.Thread(target=self._watch, args=(what, state, stop), daemon=True)
            watcher.start()
        done = "failed after"
        try:
            yield state
            if not state.failed:
                done = "in"
        finally:
            stop.set()
            if watcher is not None:
                watcher.join()
                self._chatter.write("\r\x1b[K")
            self.tell(f"{what} {done} {human_seconds(time.perf_counter() - begun)}")

    def _watch(self, what: str, state: Step, stop: threading.Event) -> None:
        begun = time.perf_counter()
        while not stop.wait(0.2):
            line = f"{what} {state.bar()}{human_seconds(time.perf_counter() - begun)}"
            width = shutil.get_terminal_size().columns - 1
            self._chatter.write(f"\r\x1b[K{line[:width]}")
            self._chatter.flush()


class Step:
    """A step's progress. Set ``failed`` if it failed without an exception."""

    def __init__(self) -> None:
        self.failed = False
        self._told = (0, 0, "")

    def __call__(self, done: int, total: int, phase: str) -> None:
        self._told = (done, total, phase)

    def bar(self) -> str:
        return bar_text(*self._told)


def table(names: Sequence[str], cells: Sequence[Sequence[str]], right: Sequence[bool]) -> str:
    """An aligned table with right-aligned numbers.

    Examples
    --------
    >>> print(table(["a", "n"], [["x", "1"], ["yy", "22"]], [False, True]))
    a    n
    --  --
    x    1
    yy  22
    """
    widths = [
        max(len(name), *(len(row[i]) for row in cells), 0) if cells else len(name) for i, name in enumerate(names)
    ]

    def line(values: Sequence[str]) -> str:
        padded = (f"{v:>{w}}" if r else f"{v:<{w}}" for v, w, r in zip(values, widths, right, strict=True))
        return "  ".join(padded).rstrip()

    return "\n".join([line(names), line(["-" * width for width in widths]), *(line(row) for row in cells)])


def _numeric(rows: Sequence[Mapping[str, Any]], names: Sequence[str]) -> list[bool]:
    def numeric(name: str) -> bool:
        values = [row.get(name) for row in rows if row.get(name) is not None]
        return bool(values) and all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in values)

    return [numeric(name) for name in names]


def _shown(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.3g}"
    if isinstance(value, Mapping):
        return ", ".join(f"{key}={_shown(item)}" for key, item in value.items()) or "-"
    if isinstance(value, (list, tuple)):
        nested = any(isinstance(item, (list, tuple)) for item in value)
        return ", ".join(f"({_shown(item)})" if nested else _shown(item) for item in value) or "-"
    return str(value)


def _keyed(value: Mapping[str, Any]) -> dict[str, Any]:
    """JSON keys from a table's header: spaces become underscores."""
    return {name.replace(" ", "_"): item for name, item in value.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, (datetime.date, datetime.datetime)):
        return value.isoformat()
    if isinstance(value, decimal.Decimal):
        return str(value)
    if isinstance(value, (set, frozenset, tuple)):
        return list(value)
    if hasattr(value, "asDict"):
        return value.asDict(recursive=True)
    return str(value)
