"""The site: its navigation names every page, and Sphinx finds nothing to warn of. (`make docs` builds it.)"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parent.parent
WEBSITE = ROOT / "docs" / "website"


@pytest.fixture(scope="module")
def pages() -> ModuleType:
    spec = importlib.util.spec_from_file_location("website_pages", WEBSITE / "pages.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def check(folder: Path, root: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """Sphinx in a process of its own: it changes settings of the whole process."""
    command = [sys.executable, str(WEBSITE / "build.py"), "--check", "--root", str(root), str(folder)]
    return subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)


def test_sphinx_finds_no_dead_link_and_no_page_outside_the_navigation(tmp_path: Path) -> None:
    done = check(tmp_path / "site")
    assert (done.returncode, done.stderr) == (0, "")


def test_the_navigation_names_every_page_once(pages: ModuleType) -> None:
    docs = ROOT / "docs"
    named = [name for section in pages.sections().values() for name in section]
    assert sorted(named) == sorted(set(named)), "docs/index.md names a page twice"
    folders = {Path(name).parent for name in named if name.endswith("/README.md")}
    assert folders == {Path("decisions"), Path("reference/indexes")}
    written = {path.relative_to(docs) for path in docs.rglob("*.md")} - {Path("index.md")}
    left = {page for page in written - set(map(Path, named)) if page.parent not in folders}
    assert left == set(), "docs/index.md, which is the navigation of the site, leaves these pages out"


def checkout(root: Path, index: str, **files: str) -> Path:
    (root / "docs" / "decisions").mkdir(parents=True)
    (root / "docs" / "index.md").write_text(f"# Home\n\n## Pages\n\n{index}\n", encoding="utf-8")
    for name, text in files.items():
        (root / name.replace("__", "/").replace("_md", ".md").replace("_py", ".py")).write_text(text, encoding="utf-8")
    return root


GOOD = "- [one](one.md)\n- [decisions](decisions/)"


@pytest.mark.parametrize(
    ("index", "page", "warning"),
    [
        (GOOD, "# One\n\n[a test](../example.py#test_it)", None),
        (GOOD, "# One\n\n[gone](index.md#no-such-heading)", "local id not found"),
        (GOOD, "# One\n\n[gone](../example.py#test_gone)", "local id not found"),
        (GOOD, "# One\n\n[gone](gone.md)", "there is no docs/gone.md"),
        ("- [decisions](decisions/)", "# One", "isn't included in any toctree"),
    ],
)
def test_what_is_dead_or_left_out_is_found(tmp_path: Path, index: str, page: str, warning: str | None) -> None:
    example = "import os\n\n\ndef test_it():\n    assert os\n"
    done = check(tmp_path / "site", checkout(tmp_path / "checkout", index, docs__one_md=page, example_py=example))
    assert (done.returncode == 0) == (warning is None), done.stderr
    assert (warning or "") in done.stderr


def test_a_file_outside_the_docs_is_a_page_with_a_heading_for_each_linked_definition(
    pages: ModuleType, tmp_path: Path
) -> None:
    code = 'import os\n\n\n@given\ndef test_it():\n    """```"""\n\n\ndef test_other():\n    pass\n'
    root = checkout(tmp_path / "checkout", "- [it](../example.py#test_it)", example_py=code)
    pages.Site(tmp_path / "site", root).write()
    assert "[it](source/example.py.md#test_it)" in (tmp_path / "site" / "index.md").read_text(encoding="utf-8")
    page = (tmp_path / "site" / "source" / "example.py.md").read_text(encoding="utf-8")
    before, heading, after = page.partition("\n## test_it\n")
    assert heading and "import os" in before and "test_other" in after
    assert "````{code-block} python\n:lineno-start: 4\n\n@given\ndef test_it" in after
