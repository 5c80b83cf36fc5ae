"""Refuses directories of table formats, which look like plain Parquet."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from es_skipping.errors import DatasetError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["is_delta_table", "refuse_table_formats"]

_DELTA_LOG: Final = "_delta_log"
_MARKS: Final = {_DELTA_LOG: "a Delta table", ".hoodie": "a Hudi table", "metadata": "an Iceberg table"}
"""Sub-directories that mark a table's directory; Iceberg's holds files that end with `_ICEBERG`."""
_ICEBERG: Final = ".metadata.json"


def is_delta_table(spark: SparkSession, paths: Sequence[str]) -> bool:
    """Whether one path is given, and it is a Delta table's own directory."""
    if len(paths) != 1:
        return False
    jvm: Any = spark._jvm
    log = jvm.org.apache.hadoop.fs.Path(paths[0].rstrip("/") or "/", _DELTA_LOG)
    try:
        return _is_there(log.getFileSystem(spark._jsparkSession.sessionState().newHadoopConf()), log)
    except Exception:  # Spark says so when it opens the dataset
        return False


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
        A path is such a directory. A Delta table as a whole is indexed as a table instead.
    """
    configuration = spark._jsparkSession.sessionState().newHadoopConf()
    jvm: Any = spark._jvm
    seen: set[str] = set()
    for path in paths:
        directory = jvm.org.apache.hadoop.fs.Path(path)
        try:
            system = directory.getFileSystem(configuration)
        except Exception:  # Spark reports it when it opens the dataset
            continue
        directory = system.makeQualified(directory)
        while directory is not None and directory.toString() not in seen:
            seen.add(directory.toString())
            for mark, table in _MARKS.items():
                if _is_there(system, jvm.org.apache.hadoop.fs.Path(directory, mark)):
                    raise DatasetError(
                        f"{name} is {table}: {directory.toString()} holds {mark}. The table's own log decides which "
                        "files and rows are live, so es_skipping cannot index it as plain files"
                    )
            directory = directory.getParent()


def _is_there(system: Any, mark: Any) -> bool:
    try:
        if mark.getName() != "metadata":
            return bool(system.exists(mark))
        return any(str(status.getPath().getName()).endswith(_ICEBERG) for status in system.listStatus(mark))
    except Exception:  # missing, or above the dataset, where permissions may forbid a look
        return False
