"""Finds a dataset's files that a writer has open; ``OpenFiles.java`` asks the file system."""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import islice
from typing import TYPE_CHECKING, Final

from es_skipping.spark.bridge import jvm_api

if TYPE_CHECKING:
    from es_skipping.build.source import Source
    from es_skipping.catalog import ObjectId

__all__ = ["open_among"]

_REASON: Final = "a writer has it open; the first refresh after it is closed indexes it"
_PATHS_PER_CALL: Final = 20_000
"""Paths per call to the JVM, which asks the file system by directory if there are many."""


def open_among(source: Source, objects: Iterable[ObjectId]) -> dict[ObjectId, str]:
    """The objects that a writer has open and may change without a trace, with the reason to report.

    Makes no call if none of the source's file systems shows files before they are closed.
    """
    spark = source.df.sparkSession
    api = jvm_api(spark)
    open: dict[ObjectId, str] = {}
    if not source.is_table and any(api.openFilesPossible(spark._jsparkSession, root) for root in source.roots):
        listed = iter(objects)
        while batch := {one.path: one for one in islice(listed, _PATHS_PER_CALL)}:
            found = json.loads(api.openFiles(spark._jsparkSession, json.dumps(list(batch))))
            open.update((batch[path], _REASON) for path in found)
    return open
