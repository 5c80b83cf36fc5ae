"""Every block of the README, the tutorial and the how-to pages runs as it stands, on both stores.

``make test`` runs each third page, on one of them in turn; ``make test-all`` and ``make release-check`` run all.
"""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.pages import HOW_TO, LANGUAGES, PAGES, ROOT, blocks, command_lines, is_run
from tests.cli.running import IN_PAGES
from tests.jvm import PRELOADED
from tests.processes import run_python

STORES = ("parquet", "elasticsearch")

NOT_OURS = {
    "make": "tests of their own run the targets",
    "pip install": "test_packaging.py installs a checkout",
    "docker compose": "needs Docker",
    "export": "the test sets it",
    "python -m pytest -q tests/": "other legs of the suite run them",
}
"""Shell commands that are not ours, and why no test of pages runs them."""


Printed = list[dict[str, Any]]
"""What each block that ran printed; the last may have failed."""


@pytest.fixture(scope="module")
def ran(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, elasticsearch_url: str
) -> dict[tuple[str, str], Printed]:
    """By store and page, where a test asks. One process a store runs them all: to start Spark takes longest."""
    tested = [item.callspec.params for item in request.session.items if "ran" in getattr(item, "fixturenames", ())]  # type: ignore[attr-defined]
    found: dict[tuple[str, str], Printed] = {}
    for store in STORES:
        conf = {**IN_PAGES, **PRELOADED}
        if store == "elasticsearch":
            conf["spark.es_skipping.store.url"] = elasticsearch_url
        pages = [one["name"] for one in tested if one["store"] == store]
        for name, printed in _run(tmp_path_factory.mktemp("pages"), pages, conf, elasticsearch_url):
            found[store, name] = printed
    return found


def _run(folder: Path, pages: list[str], conf: dict[str, str], server: str) -> list[tuple[str, Printed]]:
    """The pages as a reader of this store would run them."""
    for name in ("conf", "work"):
        (folder / name).mkdir()
    lines = "\n".join(f"{key} {value}" for key, value in conf.items())
    (folder / "conf" / "spark-defaults.conf").write_text(lines, encoding="utf-8")
    environment = {
        **os.environ,
        "SPARK_CONF_DIR": str(folder / "conf"),
        "PYTHONPATH": os.pathsep.join([str(ROOT), *(entry for entry in sys.path if entry)]),
        "ES_URL": server,
        "TZ": "UTC",
    }
    code = "from tests.cli.pages import main; main()"
    done = run_python(code, folder / "work", *pages, environment=environment, seconds=1_800)
    return [
        (name, printed) for name, printed in (json.loads(line) for line in done.stdout.splitlines() if line[:1] == "[")
    ]


@pytest.mark.every(3)
@pytest.mark.in_turn("store")
@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("name", PAGES)
def test_the_blocks_of_a_page_run_and_print_what_it_shows(
    ran: dict[tuple[str, str], Printed], name: str, store: str
) -> None:
    done = {one["line"]: one for one in ran[store, name]}
    for one in done.values():
        assert one["error"] is None, f"{name}:{one['line']}\n{one['error']}\n{one['out']}"
    printed = ""
    for block in blocks(ROOT / name):
        if block.line in done:
            printed = done[block.line]["out"]
        elif block.language == "text" and block.reason is None:
            assert stable(block.code) == stable(printed), f"{name}:{block.line}\n{printed}"
    if name == "docs/tutorial.md":
        python = [block for block in blocks(ROOT / name) if block.language == "python"]
        loses_no_row([done[block.line]["out"] for block in python])


def loses_no_row(printed: list[str]) -> None:
    """What the tutorial's blocks print: the same query with skipping, without, and after more rows came."""
    tables = [re.findall(r"^\|\s*(\d+)\|", one, flags=re.MULTILINE) for one in printed]
    (skipped,), (unskipped,), (after,) = tables[3], tables[4], tables[6]
    assert int(skipped) > 0
    assert skipped == unskipped, "the same rows with skipping off"
    assert int(after) == int(skipped) + 10, "rows that nobody has indexed are found"


def stable(output: str) -> str:
    """What stays the same from run to run: no times, sizes, ids, places, nor where lines break and columns begin."""
    return " ".join(shown for line in output.splitlines() if (shown := _stable(line)))


def _stable(line: str) -> str:
    for pattern, instead in (
        (r"\x1b\[[0-9;]*m", ""),
        (r"\b(file|https?):[\w./:-]*", "PLACE"),
        (r"\b(\w+)-[0-9a-f]{12}\b", r"\1-ID"),
        (r"\b\d[\d.,]* ?(ms|s|seconds|B|KiB|MiB)\b", r"N \1"),
        (r"^\s*\d+\s+(\w+-ID)", r"EXECUTION \1"),
        (r"[-+|─━]{3,}", ""),
        (r"\s+", " "),
    ):
        line = re.sub(pattern, instead, line)
    return line.strip().lower()  # an index is written MinMax(ts) where people read, minmax(ts) is its id


@pytest.mark.parametrize("name", PAGES)
def test_every_block_says_what_it_is(name: str) -> None:
    for block in blocks(ROOT / name):
        assert block.language in LANGUAGES, f"{name}:{block.line} has no known language"
        if block.language != "sh" or block.reason is not None:
            continue
        for line in command_lines(block.code):
            assert is_run(line) or line.startswith(tuple(NOT_OURS)), f"{name}:{block.line} {line}"


@pytest.mark.parametrize("name", HOW_TO)
def test_nothing_on_a_page_comes_from_nowhere(name: str) -> None:
    """The page makes its data, and the reader names the server."""
    for block in blocks(ROOT / name):
        if block.language in ("python", "sh", "sql") and block.reason is None:
            found = re.findall(r"/lake|s3a?://\w|https?://(?!localhost)[a-z]", block.code)
            assert found == [], f"{name}:{block.line}"
