"""Pages of docs/benchmarks whose tables the benchmarks write: million.md, if none is named.

After figures stands a stamp, the date and the commit of their run; every benchmark prints or writes it. Figures that
are older than this rule carry the commit that brought them to the page.
"""

from __future__ import annotations

import datetime
import functools
import json
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

__all__ = ["blocks_without_a_stamp", "fill", "recorded", "stamp", "write_chart"]

FOLDER: Final = Path(__file__).resolve().parent.parent / "docs" / "benchmarks"
PAGE: Final = FOLDER / "million.md"
FIGURES: Final = FOLDER / "million.json"
STAMPS: Final = "measured"
"""Key of `FIGURES`: by benchmark and part, the commit and the date of the run."""


@functools.cache
def _this_run() -> str:
    def git(*arguments: str) -> str:
        command = ["git", "-C", str(FOLDER), *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    # What the benchmark itself has just written under docs/ is no change of the code.
    changed = " with uncommitted changes" * bool(git("status", "--porcelain", "-uno", "--", ":/", ":(top,exclude)docs"))
    return f"{datetime.date.today()} at commit {git('rev-parse', '--short=7', 'HEAD')}{changed}"


def stamp(runs: Sequence[str] = ()) -> str:
    """The line that stands after figures on a page: the date and the commit of their run, this one if none is given.

    Examples
    --------
    >>> stamp(["2026-11-22 at commit 2c37ba7 (Elasticsearch)", "2026-11-22 at commit 0bb520c (Parquet)"])
    'Measured 2026-11-22 at commit 2c37ba7 (Elasticsearch), 2026-11-22 at commit 0bb520c (Parquet).'
    """
    return f"Measured {', '.join(runs or [_this_run()])}."


_RUN: Final = r"\d{4}-\d\d-\d\d at commit [0-9a-f]{7,40}( with uncommitted changes)?( \([^()]+\))?"
_STAMP: Final = re.compile(rf"Measured {_RUN}(, {_RUN})*\.")


def blocks_without_a_stamp(page: str) -> list[str]:
    """First lines of the tables and charts of a page that no stamp follows. Several in a row may share one.

    Between figures and their stamp may stand more figures, their titles in bold, and marks of what is written by a
    benchmark.
    """
    open_blocks: list[str] = []
    missing: list[str] = []
    for paragraph in re.split(r"\n\s*\n", page):
        shown = re.sub(r"<!--.*?-->", "", paragraph, flags=re.DOTALL).strip()
        text = " ".join(shown.split())
        if _STAMP.fullmatch(text):
            open_blocks.clear()
        elif re.search(r"^(\||!\[)", shown, re.MULTILINE):
            open_blocks.append(next(line for line in shown.splitlines() if line.startswith(("|", "!["))))
        elif text and not re.fullmatch(r"\*\*.*\*\*", text):
            missing += open_blocks
            open_blocks.clear()
    return missing + open_blocks


def recorded(name: str, part: str, figures: Any) -> dict[str, Any]:
    """Keep the figures of one part of a benchmark, beside those of its other parts; returns them all."""
    known = json.loads(FIGURES.read_text(encoding="utf-8")) if FIGURES.exists() else {}
    known.setdefault(name, {})[part] = figures
    known.setdefault(STAMPS, {}).setdefault(name, {})[part] = _this_run()
    FIGURES.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    found: dict[str, Any] = known[name]
    return dict(sorted(found.items()))


def fill(name: str, text: str, path: Path = PAGE) -> None:
    """Put a text into its place on a page, with the stamp of the runs that made it."""
    page = path.read_text(encoding="utf-8")
    begin, end = f"<!-- {name}: written by the benchmark -->", f"<!-- end of {name} -->"
    pattern = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.DOTALL)
    if not pattern.search(page):
        raise SystemExit(f"{path} has no place for {name}")
    runs = []
    if path == PAGE:
        stamps = json.loads(FIGURES.read_text(encoding="utf-8")).get(STAMPS, {}).get(name, {})
        runs = [f"{run} ({part})" if len(stamps) > 1 else run for part, run in sorted(stamps.items())]
    written = f"{begin}\n{text.rstrip()}\n\n{stamp(runs)}\n{end}"
    path.write_text(pattern.sub(lambda _: written, page), encoding="utf-8")


def write_chart(name: str, svg: str) -> None:
    """A chart beside the page."""
    (FOLDER / f"{name}.svg").write_text(svg + "\n", encoding="utf-8")
