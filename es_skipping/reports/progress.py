"""Progress of a long operation: a bar in a terminal or a notebook, nothing in a pipe."""

from __future__ import annotations

import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from html import escape
from typing import Any, Final

from es_skipping.reports.units import human_seconds

__all__ = ["ProgressBar", "bar_text", "shown_progress"]

_SECONDS_BETWEEN_DRAWINGS: Final = 0.1
_CELLS: Final = 20


def bar_text(done: int, total: int, phase: str) -> str:
    """A progress bar as text.

    Examples
    --------
    >>> bar_text(100, 200, "collect"), bar_text(0, 0, "list")
    ('[##########..........] collect 100 of 200, ', 'list, ')
    """
    if total <= 0:
        return f"{phase}, " if phase else ""
    filled = _CELLS * min(done, total) // total
    return f"[{'#' * filled}{'.' * (_CELLS - filled)}] {phase} {done:,} of {total:,}, "


class ProgressBar:
    """Draws an operation's progress. Safe to call from several threads.

    Parameters
    ----------
    what
        The operation, such as "indexing /lake/events".
    draw
        Shows ``(done, total, text)``.
    """

    def __init__(self, what: str, draw: Callable[[int, int, str], None]) -> None:
        self._what = what
        self._draw = draw
        self._begun = time.perf_counter()
        self._lock = threading.Lock()
        self._drawn = 0.0
        self._phase = ""

    def __call__(self, done: int, total: int, phase: str) -> None:
        now = time.perf_counter()
        with self._lock:
            if phase == self._phase and now - self._drawn < _SECONDS_BETWEEN_DRAWINGS and done < total:
                return
            self._drawn, self._phase = now, phase
            self._draw(done, total, f"{self._what} {bar_text(done, total, phase)}{human_seconds(now - self._begun)}")


@contextmanager
def shown_progress(mode: str, what: str) -> Iterator[ProgressBar | None]:
    """Show a bar for an operation, if somebody can see it.

    Parameters
    ----------
    mode
        The setting ``progress``: ``auto`` draws in notebooks and if standard error is a terminal, ``true`` always,
        ``false`` never.
    what
        The operation.

    Yields
    ------
    ProgressBar or None
        None if nothing is drawn.
    """
    if mode != "false" and _in_notebook():
        with _drawn_in_notebook(what) as bar:
            yield bar
    elif mode == "true" or (mode == "auto" and sys.stderr is not None and sys.stderr.isatty()):
        with _drawn_in_terminal(what) as bar:
            yield bar
    else:
        yield None


@contextmanager
def _drawn_in_terminal(what: str) -> Iterator[ProgressBar]:
    stream = sys.stderr

    def draw(done: int, total: int, text: str) -> None:
        stream.write(f"\r\x1b[K{text[: shutil.get_terminal_size().columns - 1]}")
        stream.flush()

    try:
        yield ProgressBar(what, draw)
    finally:
        stream.write("\r\x1b[K")
        stream.flush()


def _in_notebook() -> bool:
    """Whether this process is a notebook's kernel, which can display more than text."""
    get_ipython = getattr(sys.modules.get("IPython"), "get_ipython", None)  # another thread may import it right now
    shell: Any = get_ipython() if get_ipython is not None else None
    return shell is not None and hasattr(shell, "kernel")


@contextmanager
def _drawn_in_notebook(what: str) -> Iterator[ProgressBar]:
    from IPython.display import display

    handle: Any = None

    def draw(done: int, total: int, text: str) -> None:
        nonlocal handle
        content = {"text/plain": text, "text/html": _html(done, total, text)}
        if handle is None:
            handle = display(content, raw=True, display_id=True)
        else:
            handle.update(content, raw=True)

    begun = time.perf_counter()
    done = "failed after"
    try:
        yield ProgressBar(what, draw)
        done = "in"
    finally:
        if handle is not None:
            text = f"{what} {done} {human_seconds(time.perf_counter() - begun)}"
            handle.update({"text/plain": text, "text/html": f"<div>{escape(text)}</div>"}, raw=True)


def _html(done: int, total: int, text: str) -> str:
    bar = f'<progress max="{total}" value="{min(done, total)}"></progress> ' if total > 0 else ""
    words = text.partition("] ")[2] if total > 0 else text
    return f"<div>{bar}{escape(words)}</div>"
