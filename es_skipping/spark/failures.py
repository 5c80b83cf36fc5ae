"""What a failed Spark job tells: whose fault it was, and why, in one line."""

from __future__ import annotations

import re
from collections.abc import Sequence

from es_skipping.spark.object_ids import encoded_path
from es_skipping.stores.base import ObjectId

__all__ = ["error_text", "is_systemic", "named_in", "reason"]


def error_text(error: Exception) -> str:
    """All that it says, with what caused it."""
    text = str(error)
    for attribute in ("java_exception", "_origin"):
        java = getattr(error, attribute, None)
        depth = 0
        while java is not None and hasattr(java, "getCause") and depth < 20:
            text += f"\nCaused by: {java.toString()}"
            java = java.getCause()
            depth += 1
    return text


def is_systemic(error: Exception, text: str) -> bool:
    """Whether it is not an object's fault: our own code or the session, not what was read."""
    from pyspark.errors import PythonException

    return isinstance(error, PythonException) or any(
        sign in text
        for sign in (
            "PythonException",
            "ModuleNotFoundError",
            "SparkContext was shut down",
            "stopped SparkContext",
            "cancelled",
        )
    )


def named_in(text: str, chunk: Sequence[ObjectId]) -> list[ObjectId]:
    """The objects whose path an error message tells; the longest where one path is the beginning of another."""
    text = re.sub(r"\bfile:/{2,3}", "file:/", text)
    found: dict[str, ObjectId] = {}
    for object in chunk:
        for path in (object.path, encoded_path(object.path)):
            if path in text:
                found[path] = object
    return list(
        {object: None for path, object in found.items() if not any(o != path and o.startswith(path) for o in found)}
    )


def reason(text: str) -> str:
    """One line for people: the deepest cause, else the first line."""
    python = re.findall(r"^(\w+(?:Error|Exception): .+)$", text, re.MULTILINE)
    if "PythonException" in text and python:
        return f"a Python worker failed with {python[-1].strip()[:300]}"
    causes = re.findall(r"^Caused by: (.+)$", text, re.MULTILINE)
    line = str(causes[-1]) if causes else text.strip().splitlines()[0]
    return line.strip()[:300]
