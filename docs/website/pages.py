"""What Sphinx reads: a copy of the pages, with the files outside ``docs`` that they link to, and the navigation."""

from __future__ import annotations

import ast
import os
import posixpath
import re
import shutil
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LINK = re.compile(r"(!?\[[^\]]*\]\()([^)\s#]*)((?:#[^)\s]*)?\))")
FENCED = r"^ *```.*?^ *```"
INLINE = r"`[^`\n]+`"
LINK_OR_CODE = re.compile(rf"{FENCED}|{LINK.pattern}|{INLINE}", re.MULTILINE | re.DOTALL)
OUTSIDE = "source"
"""The folder of the site for files that are not below ``docs``."""
LANGUAGES = {".py": "python", ".java": "java", ".json": "json", ".yaml": "yaml", ".sh": "bash", ".toml": "toml"}


class DeadLink(Exception):
    """A page links to a file that does not exist."""


class Site:
    """The pages of the site.

    Parameters
    ----------
    folder
        Where they are written.
    root
        The checkout whose folder ``docs`` they come from.
    """

    def __init__(self, folder: Path, root: Path = ROOT) -> None:
        self.folder = folder
        self.root = root
        self._left: list[str] = []
        self._anchors: defaultdict[str, set[str]] = defaultdict(set)

    def write(self) -> None:
        """Write all pages into the folder, which is made anew."""
        shutil.rmtree(self.folder, ignore_errors=True)
        shutil.copytree(self.root / "docs", self.folder, ignore=shutil.ignore_patterns("*.md", "*.py", "website"))
        pages = sorted(path.relative_to(self.root).as_posix() for path in (self.root / "docs").rglob("*.md"))
        self._page("docs/decisions/README.md", decisions(self.root))
        for name in pages:
            self._page(name, (self.root / name).read_text(encoding="utf-8"))
        seen = set()
        while self._left:
            name = self._left.pop()
            if name.endswith(".md") and name not in seen:
                seen.add(name)
                text = (self.root / name).read_text(encoding="utf-8")
                self._page(name, f"---\norphan: true\n---\n{text}")
        for name, anchors in self._anchors.items():
            self._place(name).write_text(source_page(self.root, name, anchors), encoding="utf-8")

    def _place(self, name: str) -> Path:
        """Where the site keeps a file of the repository."""
        inside, _, rest = name.partition("/")
        place = self.folder / rest if inside == "docs" else self.folder / OUTSIDE / name
        place = place if place.suffix == ".md" or inside == "docs" else place.with_name(place.name + ".md")
        place.parent.mkdir(parents=True, exist_ok=True)
        return place

    def _page(self, name: str, text: str) -> None:
        linked = LINK_OR_CODE.sub(lambda found: self._link(name, found) if found[1] else found[0], text)
        self._place(name).write_text(linked + navigation(self.root, name), encoding="utf-8")

    def _link(self, page: str, link: re.Match[str]) -> str:
        text, target, anchor = link.groups()
        if not target or re.match(r"[a-z]+:", target):
            return link[0]
        name = posixpath.normpath(posixpath.join(posixpath.dirname(page), target))
        if (self.root / name).is_dir():
            name += "/README.md"
        elif not (self.root / name).is_file():
            raise DeadLink(f"{page} links to {target}, and there is no {name}")
        if not name.startswith("docs/"):
            self._left.append(name)
            if not name.endswith(".md"):
                self._anchors[name].add(anchor[1:-1])
        return text + os.path.relpath(self._place(name), self._place(page).parent) + anchor


def source_page(root: Path, name: str, anchors: set[str]) -> str:
    """A file that is not Markdown as a page, with a heading before each definition that is linked to."""
    text = (root / name).read_text(encoding="utf-8")
    suffix = Path(name).suffix
    lines = text.splitlines()
    starts = {0: ""}
    for node in ast.walk(ast.parse(text)) if suffix == ".py" else ():
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name in anchors:
            starts[min([node.lineno, *(each.lineno for each in node.decorator_list)]) - 1] = node.name
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
    page = f"---\norphan: true\nno-search: true\n---\n# `{name}`\n"
    ordered = sorted(starts)
    for start, end in zip(ordered, [*ordered[1:], len(lines)], strict=True):
        if starts[start]:
            page += f"\n## {starts[start]}\n"
        code = "\n".join(lines[start:end]).strip("\n")
        page += (
            f"\n{fence}{{code-block}} {LANGUAGES.get(suffix, 'text')}\n:lineno-start: {start + 1}\n\n{code}\n{fence}\n"
        )
    return page


def decisions(root: Path) -> str:
    """The list of decisions, by number."""
    lines = ["# Decisions", "", "Each page says what was decided and why.", ""]
    for path in sorted((root / "docs" / "decisions").glob("[0-9]*.md")):
        title = re.findall(r"^# (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)[0]
        lines.append(f"- [{title}]({path.name})")
    return "\n".join(lines) + "\n"


def sections(root: Path = ROOT) -> dict[str, list[str]]:
    """The navigation: each heading of ``docs/index.md`` with the pages that it links to, in this order."""
    text = (root / "docs" / "index.md").read_text(encoding="utf-8")
    found: dict[str, list[str]] = {}
    for part in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        caption, _, rest = part.partition("\n")
        targets = [link[2] for link in LINK.finditer(rest)]
        names = [target + "README.md" if target.endswith("/") else target for target in targets]
        found[caption] = [name for name in dict.fromkeys(names) if name.endswith(".md")]
    return found


def navigation(root: Path, name: str) -> str:
    """The part of the navigation that hangs on a page."""
    if name == "docs/index.md":
        trees = [toctree(pages, caption) for caption, pages in sections(root).items()]
        return "".join(trees)
    if name.startswith("docs/") and name.endswith("/README.md"):
        return toctree(beside(root / name))
    return ""


def beside(page: Path) -> list[str]:
    """The other pages of a folder, which its README leads to."""
    return sorted(path.name for path in page.parent.glob("*.md") if path != page)


def toctree(pages: list[str], caption: str = "") -> str:
    named = f":caption: {caption}\n" if caption else ""
    return "\n```{toctree}\n:hidden:\n" + named + "\n" + "\n".join(pages) + "\n```\n"
