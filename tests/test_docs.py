"""The docs: current, linked, and speaking of names that exist. (That their examples run is tested in tests/cli.)"""

from __future__ import annotations

import argparse
import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import es_skipping
from benchmarks.pages import blocks_without_a_stamp, stamp
from es_skipping import layout
from es_skipping.cli.arguments import parser
from es_skipping.settings import PREFIX, SETTINGS

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md")])


def generator() -> object:
    spec = importlib.util.spec_from_file_location("docs_generate", DOCS / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_pages_made_from_code_are_current() -> None:
    assert generator().stale() == [], "run `make docs`"  # type: ignore[attr-defined]


def test_every_setting_and_every_public_name_has_its_place_in_the_reference() -> None:
    settings = (DOCS / "reference" / "settings.md").read_text(encoding="utf-8")
    api = (DOCS / "reference" / "api.md").read_text(encoding="utf-8")
    assert [name for name in SETTINGS if f"`{PREFIX}{name}`" not in settings] == []
    assert [name for name in es_skipping.__all__ if f"`{name}" not in api] == []
    layouts = (DOCS / "reference" / "layout.md").read_text(encoding="utf-8")
    assert [name for name in layout.__all__ if f"### `{name}" not in layouts] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    targets = re.findall(r"\]\(([^)\s]+)\)", text)
    local = [target.partition("#")[0] for target in targets if not re.match(r"[a-z]+:", target) and target[0] != "#"]
    assert [target for target in local if not (page.parent / target).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_names_and_settings_in_the_text_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    names = set(re.findall(r"\besk\.(\w+)", text))
    assert names <= set(es_skipping.__all__)
    keys = set(re.findall(r"\bspark\.es_skipping\.([A-Za-z]+(?:\.[A-Za-z]+)*)", text))
    assert keys <= set(SETTINGS)


def commands(top: argparse.ArgumentParser, name: str = "es-skipping") -> Iterator[tuple[str, argparse.ArgumentParser]]:
    groups = [action for action in top._actions if isinstance(action, argparse._SubParsersAction)]
    if not groups:
        yield name, top
    for group in groups:
        for word, command in group.choices.items():
            yield from commands(command, f"{name} {word}")


def test_the_command_line_page_names_every_command_and_option() -> None:
    text = (DOCS / "reference" / "cli.md").read_text(encoding="utf-8")
    of_the_demo = {"--folder", "--scale", "--repeat"}  # its help will do
    for name, command in commands(parser()):
        assert f"`{name}" in text
        options = {option for action in command._actions for option in action.option_strings if option.startswith("--")}
        assert [option for option in sorted(options - of_the_demo - {"--help"}) if option not in text] == []


def test_the_code_of_the_page_on_writing_an_index_is_the_example_that_is_tested() -> None:
    page = (DOCS / "how-to" / "write-an-index.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n# trigrams.py\n(.*?)```", page, re.DOTALL)
    _, _, example = (ROOT / "examples" / "trigrams.py").read_text(encoding="utf-8").partition('"""\n\n')
    assert code == example


@pytest.mark.parametrize("page", sorted((DOCS / "benchmarks").glob("*.md")), ids=lambda page: page.stem)
def test_figures_carry_the_commit_and_the_date_of_their_run(page: Path) -> None:
    assert blocks_without_a_stamp(page.read_text(encoding="utf-8")) == []


def test_figures_without_a_stamp_are_found() -> None:
    table, chart, measured = "| rows |\n|---|\n| 3 |", "![rows](rows.svg)", stamp(["2026-11-22 at commit 2c37ba7"])
    assert blocks_without_a_stamp(f"# Rows\n\n{table}\n\n{chart}\n\n{measured}\n\nText.") == []
    assert blocks_without_a_stamp(f"**A**\n\n{table}\n\n**B**\n\n{table}\n\n{measured}\n<!-- end of rows -->") == []
    assert blocks_without_a_stamp(f"{table}\n\nText.\n\n{measured}\n\n{chart}") == ["| rows |", "![rows](rows.svg)"]
    assert blocks_without_a_stamp(f"{measured}\n\n<!-- rows: written -->\n{table}\n<!-- end of rows -->") == [
        "| rows |"
    ]
    assert blocks_without_a_stamp(f"{table}\n\nMeasured last week.") == ["| rows |"]


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 80


def test_nothing_in_the_docs_is_of_one_machine() -> None:
    found = [page for page in PAGES if re.search(r"/(?:work|root|tmp/[a-z])\b", page.read_text(encoding="utf-8"))]
    assert found == []


HARD_TO_READ = {
    r"\bso\s+many\b": 'write "at most N" or "at least N"',
    r"\bis\s+no\s": 'write "is not a ..." or "has no ..."',
    r"\bof\s+which\b": "begin a new sentence with the noun",
}
"""Constructions that the docs avoid, and what to write instead."""


def written_by_hand() -> list[Path]:
    """Pages made from code are left out: their words are the code's."""
    elsewhere = [page for folder in ("tests", "examples", "docker") for page in (ROOT / folder).rglob("*.md")]
    return sorted(
        page for page in [*PAGES, *elsewhere] if not page.read_text(encoding="utf-8").startswith("<!-- Made by")
    )


def hard_to_read(text: str) -> list[str]:
    """The lines of a page that hold such a construction. Code is left out; a line break counts as a space."""
    prose = re.sub(r"```.*?```|`[^`\n]*`", lambda code: re.sub(r"[^\n]", "`", code[0]), text, flags=re.DOTALL)
    found = [
        (prose.count("\n", 0, match.start()) + 1, " ".join(match[0].split()), advice)
        for pattern, advice in HARD_TO_READ.items()
        for match in re.finditer(pattern, prose, re.IGNORECASE)
    ]
    return [f'line {line}: "{words}": {advice}' for line, words, advice in sorted(found)]


@pytest.mark.parametrize("page", written_by_hand(), ids=lambda page: str(page.relative_to(ROOT)))
def test_the_docs_are_plain_english(page: Path) -> None:
    assert hard_to_read(page.read_text(encoding="utf-8")) == []


def test_what_is_hard_to_read_is_found_across_lines_and_not_in_code() -> None:
    code = "`there is no index`\n```\nso many\n```\n"
    text = f"MinMax is no\nindex.\n{code}Two objects, of which one is kept. Is it? No: the answer is no."
    assert [each.partition(":")[0] for each in hard_to_read(text)] == ["line 1", "line 7"]
    assert hard_to_read(code) == []


def python_blocks(page: Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_python_in_the_docs_is_python(page: Path) -> None:
    for block in python_blocks(page):
        compile(block, str(page), "exec")


@pytest.mark.parametrize("page", sorted((DOCS / "reference" / "indexes").glob("*.md")), ids=lambda page: page.stem)
def test_the_indexes_on_their_pages_can_be_made(page: Path) -> None:
    for block in python_blocks(page)[:1]:
        lines = [line for line in block.splitlines() if not line.startswith("spark.")]
        exec("\n".join(lines), {"esk": es_skipping})
