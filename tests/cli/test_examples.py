"""The examples in the README and the tutorial run as they stand."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.running import SMALL

ROOT = Path(__file__).resolve().parent.parent.parent


def python_blocks(page: Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)


def run_python(code: str, folder: Path) -> str:
    """Run it in a fresh process whose spark-defaults make a small session."""
    defaults = folder / "conf"
    defaults.mkdir()
    lines = [f"{key} {value}" for key, value in {**SMALL, "spark.ui.showConsoleProgress": "false"}.items()]
    (defaults / "spark-defaults.conf").write_text("\n".join(lines), encoding="utf-8")
    path = os.pathsep.join(entry for entry in sys.path if entry)
    environment = {**os.environ, "SPARK_CONF_DIR": str(defaults), "PYTHONPATH": path}
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_readme(tmp_path: Path) -> None:
    first = python_blocks(ROOT / "README.md")[0]
    assert len(first.splitlines()) <= 10
    out = run_python(first, tmp_path)
    assert "999999" in out, "the query's own result"
    assert re.search(r"\b100\b", out), "the report names all objects"


def test_the_tutorial(tmp_path: Path) -> None:
    blocks = python_blocks(ROOT / "docs" / "tutorial.md")
    marked = "\n".join(f"{block}\nprint('== {number}')" for number, block in enumerate(blocks))
    out = run_python(marked, tmp_path)
    parts = re.split(r"^== \d+\n", out, flags=re.MULTILINE)
    assert len(parts) == len(blocks) + 1
    tables = [re.findall(r"^\|\s*(\d+)\|", part, flags=re.MULTILINE) for part in parts]
    (skipped,), (unskipped,) = tables[3], tables[4]
    assert int(skipped) > 0
    assert skipped == unskipped, "the same rows with skipping off"
    (after,) = tables[6]
    assert int(after) == int(skipped) + 10, "rows that nobody has indexed are found"


@pytest.mark.parametrize("page", ["README.md", "docs/tutorial.md"])
def test_the_pages_have_examples(page: str) -> None:
    assert python_blocks(ROOT / page)
