"""Refuses directories of table formats, which look like plain Parquet."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from es_skipping.errors import DatasetError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["refuse_table_formats", "table_format_at"]

_MARKS: Final = {"_delta_log": "a Delta table", ".hoodie": "a Hudi table", "metadata": "an Iceberg table"}
"""Sub-directories that mark a table's directory; Iceberg's holds files that end with `_ICEBERG`."""
_SERVED: Final = {"_delta_log": "delta", "metadata": "iceberg"}
"""The formats among them that are indexed as tables."""
_ICEBERG: Final = ".metadata.json"


def table_format_at(spark: SparkSession, paths: Sequence[str]) -> str | None:
    """The format of the table whose own directory one given path is: ``delta`` or ``iceberg``; else None."""
    if len(paths) != 1:
        return None
    new_path = _path_class(spark)
    root = paths[0].rstrip("/") or "/"
    for mark, format in _SERVED.items():
        place = new_path(root, mark)
        try:
            if _is_there(place.getFileSystem(spark._jsparkSession.sessionState().newHadoopConf()), place):
                return format
        except Exception:  # Spark says so when it opens the dataset
            return None
    return None


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
    configuration = spark._jsparkSession.sessionState().newHadoopConf()
    new_path = _path_class(spark)
    seen: set[str] = set()
    for path in paths:
        directory = new_path(path)
        try:
            system = directory.getFileSystem(configuration)
        except Exception:  # Spark reports it when it opens the dataset
            continue
        directory = system.makeQualified(directory)
        while directory is not None and directory.toString() not in seen:
            seen.add(directory.toString())
            for mark, table in _MARKS.items():
                if _is_there(system, new_path(directory, mark)):
                    raise DatasetError(
                        f"{name} is {table}: {directory.toString()} holds {mark}. The table's own log decides which "
                        "files and rows are live, so es_skipping cannot index it as plain files"
                    )
            directory = directory.getParent()


def _path_class(spark: SparkSession) -> Any:
    """Hadoop's ``Path``; each name that leads to it is a question to the JVM."""
    jvm: Any = spark._jvm
    return jvm.org.apache.hadoop.fs.Path


def _is_there(system: Any, mark: Any) -> bool:
    try:
        if not system.exists(mark):  # listing it would throw, and PySpark asks the JVM a lot about each exception
            return False
        if mark.getName() != "metadata":
            return True
        return any(str(status.getPath().getName()).endswith(_ICEBERG) for status in system.listStatus(mark))
    except Exception:  # above the dataset, where permissions may forbid a look
        return False
