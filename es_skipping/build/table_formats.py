"""Refuses directories of table formats, which look like plain Parquet."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from es_skipping.errors import DatasetError
from es_skipping.spark.bridge import jvm_api

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["WHY_NO_HUDI", "refuse_table_formats", "table_format_at"]

WHY_NO_HUDI: Final = (
    "a file slice of it may have log files that add or change rows, and Hudi publishes no bundle for Spark 4"
)

_MARKS: Final = {"_delta_log": "a Delta table", ".hoodie": "a Hudi table", "metadata": "an Iceberg table"}
"""Sub-directories that mark a table's directory; `TableMarks.java` finds them."""
_SERVED: Final = {"_delta_log": "delta", "metadata": "iceberg"}
"""The formats among them that are indexed as tables."""
_LOG: Final = "The table's own log decides which files and rows are live"
_REASONS: Final = {"_delta_log": _LOG, ".hoodie": WHY_NO_HUDI[0].upper() + WHY_NO_HUDI[1:], "metadata": _LOG}


def table_format_at(spark: SparkSession, paths: Sequence[str]) -> str | None:
    """The format of the table whose own directory one given path is: ``delta`` or ``iceberg``; else None."""
    found = _marked(spark, paths, _SERVED, above=False) if len(paths) == 1 else None
    return None if found is None else _SERVED[found[1]]


def refuse_table_formats(spark: SparkSession, paths: Iterable[str], name: str) -> None:
    """Refuse directories that belong to a Delta, Iceberg or Hudi table, or lie inside one.

    Parameters
    ----------
    spark
        The session, which knows the file systems.
    paths
        The dataset's paths.
    name
        The dataset's name in the message.

    Raises
    ------
    DatasetError
        A path is such a directory. A Delta or Iceberg table as a whole is indexed as a table instead.
    """
    found = _marked(spark, paths, _MARKS, above=True)
    if found is not None:
        directory, mark = found
        raise DatasetError(
            f"{name} is {_MARKS[mark]}: {directory} holds {mark}. {_REASONS[mark]}, so es_skipping cannot index it as "
            "plain files"
        )


def _marked(spark: SparkSession, paths: Iterable[str], marks: Iterable[str], *, above: bool) -> tuple[str, str] | None:
    """The directory of a table, and which of these marks it holds."""
    found = jvm_api(spark).tableMark(spark._jsparkSession, json.dumps(list(paths)), json.dumps(list(marks)), above)
    if found is None:
        return None
    directory, mark = json.loads(found)
    return directory, mark
