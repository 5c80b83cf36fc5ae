"""Pages of docs/benchmarks whose tables the benchmarks write: million.md, if none is named."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Final

__all__ = ["fill", "recorded", "write_chart"]

FOLDER: Final = Path(__file__).resolve().parent.parent / "docs" / "benchmarks"
PAGE: Final = FOLDER / "million.md"
FIGURES: Final = FOLDER / "million.json"


def recorded(name: str, part: str, figures: Any) -> dict[str, Any]:
    """Keep the figures of one part of a benchmark, beside those of its other parts; returns them all."""
    known = json.loads(FIGURES.read_text(encoding="utf-8")) if FIGURES.exists() else {}
    known.setdefault(name, {})[part] = figures
    FIGURES.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    found: dict[str, Any] = known[name]
    return dict(sorted(found.items()))


def fill(name: str, text: str, path: Path = PAGE) -> None:
    """Put a text into its place on a page."""
    page = path.read_text(encoding="utf-8")
    begin, end = f"<!-- {name}: written by the benchmark -->", f"<!-- end of {name} -->"
    pattern = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.DOTALL)
    if not pattern.search(page):
        raise SystemExit(f"{path} has no place for {name}")
    path.write_text(pattern.sub(lambda _: f"{begin}\n{text}\n{end}", page), encoding="utf-8")


def write_chart(name: str, svg: str) -> None:
    """A chart beside the page."""
    (FOLDER / f"{name}.svg").write_text(svg + "\n", encoding="utf-8")
