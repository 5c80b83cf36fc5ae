"""docs/explanation/sources.md: every row has its proof, and every proof exists."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parent.parent / "docs"
PAGE = DOCS / "explanation" / "sources.md"
STATES = ("done", "declined")


def rows(text: str) -> Iterator[list[str]]:
    """The cells of each claim; the table that explains the states has two columns."""
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")] if line.startswith("| ") else []
        if len(cells) == 3 and cells[1] != "State":
            yield cells


def links(cell: str) -> list[str]:
    return re.findall(r"\]\(([^)\s]+)\)", cell)


def slug(heading: str) -> str:
    """The anchor of a heading, as MkDocs and forges make it."""
    return re.sub(r"[\s-]+", "-", re.sub(r"[^\w\s-]", "", re.sub(r"\[(.+?)\]\(.*?\)", r"\1", heading)).strip().lower())


def dead(page: Path, link: str) -> bool:
    """Whether a link leads nowhere: no such file, no such heading, or no such test."""
    name, _, anchor = link.partition("#")
    target = page.parent / name
    if not target.is_file():
        return True
    text = target.read_text(encoding="utf-8")
    if not anchor:
        return False
    if target.suffix == ".py":
        return re.search(rf"^    def {anchor}\(|^def {anchor}\(", text, re.MULTILINE) is None
    return anchor not in {slug(heading) for heading in re.findall(r"^#+ (.+)$", text, re.MULTILINE)}


NOT_RUN = "has not been run to its end"


def without_figures(page: Path, link: str) -> bool:
    """Whether a link leads to a section whose benchmark says that it has no figures yet."""
    name, _, anchor = link.partition("#")
    target = page.parent / name
    if target.suffix != ".md" or not anchor:
        return False
    sections = re.split(r"^#+ ", target.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return any(slug(one.partition("\n")[0]) == anchor and NOT_RUN in " ".join(one.split()) for one in sections)


def unproven(page: Path, cells: list[str]) -> str | None:
    """What a row lacks, if anything."""
    _, state, where = cells
    if state not in STATES:
        return f"{state!r} is not a state"
    if not links(where):
        return "has no link"
    if gone := [link for link in links(where) if dead(page, link)]:
        return f"dead links: {gone}"
    if state == "done" and not any(re.search(r"tests/|benchmarks/|reference/", link) for link in links(where)):
        return "is done without a test or a figure"
    if state == "done" and (empty := [link for link in links(where) if without_figures(page, link)]):
        return f"is done, but its benchmark was not run: {empty}"
    if state == "declined" and not any("/decisions/" in link for link in links(where)):
        return "is declined without a decision"
    return None


def test_every_row_has_its_proof() -> None:
    found = list(rows(PAGE.read_text(encoding="utf-8")))
    assert len(found) > 120
    assert {cells[0]: lack for cells in found if (lack := unproven(PAGE, cells))} == {}


@pytest.mark.parametrize("document", ["Extensible Data Skipping", "Hyperspace", "WARP and SOP", "GSOP and GSOP-R"])
def test_every_document_has_its_rows(document: str) -> None:
    _, _, after = PAGE.read_text(encoding="utf-8").partition(f"\n## {document}")
    assert len(list(rows(after.partition("\n## ")[0]))) > 20


@pytest.mark.parametrize(
    ("row", "lack"),
    [
        ("| a | done | [t](../../tests/test_sources.py#test_every_row_has_its_proof) |", None),
        ("| a | done | [t](../../tests/test_sources.py#test_that_is_gone) |", "dead links"),
        ("| a | done | [t](../benchmarks/gone.md) |", "dead links"),
        ("| a | done | [t](../benchmarks/build.md#no-such-heading) |", "dead links"),
        ("| a | done | [t](../how-to/sql.md) |", "without a test"),
        ("| a | done | a test |", "no link"),
        ("| a | nearly | [t](../benchmarks/build.md) |", "not a state"),
        ("| a | declined | [t](../benchmarks/build.md) |", "without a decision"),
        ("| a | partly | [t](../benchmarks/build.md) |", "not a state"),
        ("| a | done | [t](../benchmarks/build.md); [x](gone.md) |", "dead links"),
    ],
)
def test_a_row_without_its_proof_is_found(row: str, lack: str | None) -> None:
    (cells,) = rows(row)
    found = unproven(PAGE, cells)
    assert found is None if lack is None else lack in str(found)


def test_a_section_without_figures_is_no_proof(tmp_path: Path) -> None:
    (tmp_path / "benchmarks").mkdir()
    (tmp_path / "explanation").mkdir()
    page = tmp_path / "benchmarks" / "page.md"
    page.write_text(f"## One\n\nThis benchmark {NOT_RUN} yet.\n\n## Two\n\n| 7 |\n", encoding="utf-8")
    for heading, lack in (("one", "was not run"), ("two", "None")):
        cells = ["a", "done", f"[t](../benchmarks/page.md#{heading})"]
        assert lack in str(unproven(tmp_path / "explanation" / "sources.md", cells))
