"""Tables for a terminal and for a notebook."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

__all__ = ["Cell", "Rendered", "Table", "html_fold", "html_parts", "html_table", "one_line", "text_table"]

# The page chooses the colours, so that the table is readable on a light and on a dark background.
_TABLE = "border-collapse:collapse;margin:0.4em 0"
_CELL = "padding:0.15em 0.8em 0.15em 0;vertical-align:top"
_LINE = "border-bottom:1px solid rgba(128,128,128,0.5)"


@dataclass(frozen=True, slots=True)
class Cell:
    """One value of a table: its text, and whether it is a number, which is right-aligned."""

    text: str
    number: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of cells under a header."""

    header: Sequence[str]
    rows: Sequence[Sequence[Cell]]


class Rendered:
    """A report for a terminal and for a notebook, from one description of its parts."""

    def parts(self) -> Iterable[str | Table]:
        """Paragraphs and tables, in order."""
        raise NotImplementedError

    def __str__(self) -> str:
        return "\n\n".join(
            part if isinstance(part, str) else text_table(part.header, part.rows) for part in self.parts()
        )

    def _repr_html_(self) -> str:
        return html_parts(self.parts())


def html_parts(parts: Iterable[str | Table]) -> str:
    """Paragraphs and tables for a notebook."""
    return "".join(
        f"<p>{escape(one_line(part))}</p>" if isinstance(part, str) else html_table(part.header, part.rows)
        for part in parts
    )


def one_line(text: str, width: int = 0) -> str:
    """Text without line breaks and control characters, truncated to a width (0: not truncated).

    The text comes from data and paths, and must not be able to move a terminal's cursor.

    Examples
    --------
    >>> one_line("a\\nb\\x1b[31m"), one_line("abcdef", 4)
    ('a b?[31m', 'abc…')
    """
    text = "".join(
        " " if char in "\n\r\t" else "?" if unicodedata.category(char) in ("Cc", "Cf", "Cs") else char for char in text
    )
    return text[: width - 1] + "…" if 0 < width < len(text) else text


def text_table(header: Sequence[str], rows: Sequence[Sequence[Cell]], width: int = 60) -> str:
    """A table for a terminal: columns aligned, every value on one line of at most ``width`` characters.

    Examples
    --------
    >>> rows = [[Cell("a"), Cell("12", number=True)], [Cell("bcdef"), Cell("7", number=True)]]
    >>> print(text_table(["name", "n"], rows))
    name    n
    -----  --
    a      12
    bcdef   7
    """
    lines = [[one_line(title) for title in header], *([one_line(cell.text, width) for cell in row] for row in rows)]
    widths = [max(map(_columns, column)) for column in zip(*lines, strict=True)]
    numbers = [bool(rows) and all(row[i].number or not row[i].text for row in rows) for i in range(len(header))]
    lines.insert(1, ["-" * size for size in widths])
    return "\n".join(
        "  ".join(_pad(text, size, right) for text, size, right in zip(line, widths, numbers, strict=True)).rstrip()
        for line in lines
    )


def html_table(header: Sequence[str], rows: Sequence[Sequence[Cell]]) -> str:
    """The same table for a notebook, with every value escaped and without colours.

    Examples
    --------
    >>> "&lt;b&gt;" in html_table(["x"], [[Cell("<b>")]])
    True
    """
    head = "".join(f'<th style="{_CELL};{_LINE};text-align:left">{escape(title)}</th>' for title in header)
    body = "".join("<tr>" + "".join(_td(cell) for cell in row) + "</tr>" for row in rows)
    return f'<table style="{_TABLE}"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'


def html_fold(title: str, text: str) -> str:
    """Text folded under a title, unchanged, for copying."""
    return (
        f'<details><summary>{escape(title)}</summary><pre style="white-space:pre-wrap">{escape(text)}</pre></details>'
    )


def _td(cell: Cell) -> str:
    align = "right;font-variant-numeric:tabular-nums" if cell.number else "left"
    return f'<td style="{_CELL};text-align:{align};overflow-wrap:anywhere">{escape(cell.text)}</td>'


def _columns(text: str) -> int:
    """The width of a text in terminal columns."""
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text
    )


def _pad(text: str, width: int, right: bool) -> str:
    space = " " * (width - _columns(text))
    return space + text if right else text + space
