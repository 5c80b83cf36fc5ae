"""The one-line reason of a Spark or Java error."""

from __future__ import annotations

import re

__all__ = ["error_text", "reason"]


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
