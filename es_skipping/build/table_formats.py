"""Directories of table formats, which look like plain Parquet and are not."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from es_skipping.errors import DatasetError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["refuse_table_formats"]

_MARKS: Final = {"_delta_log": "a Delta table", ".hoodie": "a Hudi table", "metadata": "an Iceberg table"}
"""The directory that only the table's own directory holds; Iceberg's has files that end with `_ICEBERG`."""
_ICEBERG: Final = ".metadata.json"


def refuse_table_formats(spark: SparkSession, paths: Iterable[str], name: str) -> None:
    """Refuse directories that are, or lie in, the directory of a Delta, Iceberg or Hudi table.

    Parameters
    ----------
    spark
        The session, which knows the file systems.
    paths
        Of the dataset.
    name
        The dataset, for the message.

    Raises
    ------
    DatasetError
        One is such a directory.
    """
    configuration = spark._jsparkSession.sessionState().newHadoopConf()
    jvm: Any = spark._jvm
    seen: set[str] = set()
    for path in paths:
        directory = jvm.org.apache.hadoop.fs.Path(path)
        try:
            system = directory.getFileSystem(configuration)
        except Exception:  # Spark says so when it opens the dataset
            continue
        directory = system.makeQualified(directory)
        while directory is not None and directory.toString() not in seen:
            seen.add(directory.toString())
            for mark, table in _MARKS.items():
                if _is_there(system, jvm.org.apache.hadoop.fs.Path(directory, mark)):
                    raise DatasetError(
                        f"{name} is {table}: {directory.toString()} holds {mark}. Its own log says which files and "
                        "rows are live, so it cannot be indexed as plain files; index a dataset of plain files instead"
                    )
            directory = directory.getParent()


def _is_there(system: Any, mark: Any) -> bool:
    try:
        if mark.getName() != "metadata":
            return bool(system.exists(mark))
        return any(str(status.getPath().getName()).endswith(_ICEBERG) for status in system.listStatus(mark))
    except Exception:  # it is not there, or above the dataset, where not everybody may look
        return False
