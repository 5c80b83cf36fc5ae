"""What one line says of a Spark or Java error."""

from __future__ import annotations

import re

__all__ = ["error_text", "first_line", "reason"]


def first_line(error: BaseException) -> str:
    """The first line of an error's message, or its class if it has none.

    Examples
    --------
    >>> first_line(ValueError("bad value\\nat line 3")), first_line(ValueError())
    ('bad value', 'ValueError')
    """
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def error_text(error: Exception) -> str:
    """An error's whole text, with its causes."""
    text = str(error)
    for attribute in ("java_exception", "_origin"):
        java = getattr(error, attribute, None)
        depth = 0
        while java is not None and hasattr(java, "getCause") and depth < 20:
            text += f"\nCaused by: {java.toString()}"
            java = java.getCause()
            depth += 1
    return text


def reason(text: str) -> str:
    """One line for people: the deepest cause, or else the first line."""
    python = re.findall(r"^(\w+(?:Error|Exception): .+)$", text, re.MULTILINE)
    if "PythonException" in text and python:
        return f"a Python worker failed with {python[-1].strip()[:300]}"
    causes = re.findall(r"^Caused by: (.+)$", text, re.MULTILINE)
    line = str(causes[-1]) if causes else text.strip().splitlines()[0]
    return line.strip()[:300]
