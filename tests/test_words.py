"""Keeps phrases that read as translated out of names, docstrings, comments and messages of the package."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

import es_skipping

PACKAGE = Path(es_skipping.__file__).parent
FORBIDDEN = re.compile(r"\bso many\b|(?<!\bthere )\bis no (?!longer\b)|\bof which\b", re.IGNORECASE)


def texts_of(source: str) -> Iterator[tuple[int, str]]:
    """Each name, string (docstrings included) and run of comments of a module, in words, with its line."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.lineno, node.name.replace("_", " ")
        elif isinstance(node, ast.Name):
            yield node.lineno, node.id.replace("_", " ")
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg.replace("_", " ")
    comments: list[tuple[int, str]] = []
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            if comments and comments[-1][0] + 1 < token.start[0]:
                yield comments[0][0], " ".join(text for _, text in comments)
                comments = []
            comments.append((token.start[0], token.string.lstrip("# ")))
    if comments:
        yield comments[0][0], " ".join(text for _, text in comments)


def translated(source: str) -> list[tuple[int, str]]:
    """The lines of a module with a phrase that reads as translated, and the phrases."""
    return [
        (line, found[0]) for line, text in texts_of(source) for found in FORBIDDEN.finditer(re.sub(r"\s+", " ", text))
    ]


def test_no_text_of_the_package_reads_as_translated() -> None:
    wrong = [
        f"{file.relative_to(PACKAGE.parent)}:{line}: {phrase!r}"
        for file in sorted(PACKAGE.rglob("*.py"))
        for line, phrase in translated(file.read_text(encoding="utf-8"))
    ]
    assert not wrong, "write plain English instead:\n" + "\n".join(wrong)


@pytest.mark.parametrize(
    "source",
    [
        '"""So many objects."""',
        'def f():\n    """MinMax is\n    no index."""',
        "x = 1  # in a view of\n# which is known",
        'raise ValueError(f"{x!r} is no index; pass one")',
        "SO_MANY = 1",
        "def of_which(so_many): ...",
    ],
)
def test_each_place_is_looked_at(source: str) -> None:
    assert translated(source)


def test_plain_english_passes() -> None:
    assert not translated('"""At most N objects. A type is not an index."""\nname = "some of whichever"  # so manifold')
