"""Splits the names of columns as Spark does."""

from __future__ import annotations

import re

__all__ = ["name_parts"]


def name_parts(text: str) -> list[str] | None:
    """Split a name as Spark does, at dots outside backticks; None if the text is not a name.

    Examples
    --------
    >>> name_parts("a.`b.c`"), name_parts("upper(a)")
    (['a', 'b.c'], ['upper(a)'])
    """
    parts = re.findall(r"(`(?:[^`]|``)+`|[^`.]+)(\.|$)", text)
    if "".join(part + end for part, end in parts) != text or text.endswith("."):
        return None
    return [part[1:-1].replace("``", "`") if part.startswith("`") else part for part, _ in parts]
