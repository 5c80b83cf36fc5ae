"""Decides whether the session or an object made a Spark job fail, and how much of the reason others may read."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from es_skipping.build.object_ids import encoded_path
from es_skipping.catalog import ObjectId

__all__ = ["is_systemic", "named_in", "withheld"]

_KIND: Final = re.compile(
    r"((?:a Python worker failed with )?(?:\w+\.)*\w*(?:Error|Exception|ArrowInvalid))(?::|$)(?: (\[[A-Z0-9_.]+\]))?"
)


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


def withheld(reason: str) -> str:
    """A reason as others may read it: the error's type, and the condition that Spark names. The rest may quote values.

    Examples
    --------
    >>> withheld("org.apache.spark.SparkNumberFormatException: [CAST_INVALID_INPUT] The value 'Oslo' cannot be cast")
    'org.apache.spark.SparkNumberFormatException: [CAST_INVALID_INPUT] (withheld: an index is protected)'
    """
    found = _KIND.match(reason)
    kind = "an error" if found is None else found[1]
    if found is not None and found[2] is not None and kind.startswith("org.apache.spark."):
        kind += f": {found[2]}"
    return f"{kind} (withheld: an index is protected)"
