"""Decides whether the session or an object made a Spark job fail."""

from __future__ import annotations

import re
from collections.abc import Sequence

from es_skipping.build.object_ids import encoded_path
from es_skipping.catalog import ObjectId

__all__ = ["is_systemic", "named_in"]


def is_systemic(error: Exception, text: str) -> bool:
    """Whether the session or our own code failed, not an object."""
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
    """The objects whose path an error message names; the longest if one path is a prefix of another."""
    text = re.sub(r"\bfile:/{2,3}", "file:/", text)
    found: dict[str, ObjectId] = {}
    for object in chunk:
        for path in (object.path, encoded_path(object.path)):
            if path in text:
                found[path] = object
    return list(
        {object: None for path, object in found.items() if not any(o != path and o.startswith(path) for o in found)}
    )
