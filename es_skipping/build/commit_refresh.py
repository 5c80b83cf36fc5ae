"""Indexes what a write committed: the setting ``indexOnCommit``.

The JVM calls this process when a write of files has succeeded, on the thread that waits for the write. A failed write,
and the attempts of a task that Spark gave up, are never reported: a refresh lists what was committed. If the process
dies in between, the files stay unknown, and queries read them.
"""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING, Any, Final

from es_skipping.build.auto_refresh import AutoRefresh, indexed_dataset
from es_skipping.settings import Settings
from es_skipping.spark import bridge
from es_skipping.spark.classic import python_session
from es_skipping.spark.services import service_of, store_conf, store_of
from es_skipping.stores.base import is_under

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from es_skipping.catalog import DatasetDefinition

__all__ = ["index_commits"]

_log: Final = logging.getLogger("es_skipping")


class _Callback:
    """The JVM calls it with a session and the place that was written."""

    def apply(self, session: Any, written: str) -> str:
        from pyspark import SparkContext

        place = json.loads(written)
        try:
            _index(python_session(SparkContext._active_spark_context, session), place["path"], place["table"])
        except Exception as error:  # the write succeeded, and queries read what is not indexed
            _log.warning("what was written to %s is not indexed: %s: %s", place["path"], type(error).__name__, error)
        return ""

    class Java:
        implements = ("java.util.function.BiFunction",)


_CALLBACK: Final = _Callback()


def index_commits(spark: SparkSession) -> None:
    """Let writes of the sessions of a JVM be indexed, as far as their setting ``indexOnCommit`` says."""
    bridge.jvm_api(spark).reportsWrites(_CALLBACK)


def _index(spark: SparkSession, path: str, table: str | None) -> None:
    service, store = service_of(spark), store_of(spark)
    lifetime = Settings(store_conf(spark))["registry.lifetime"]
    for found in service.registry.find(store, [path], table, lifetime):
        definition = found.entry.definition
        paths = None if definition.table is not None or path in definition.roots else (path,)
        if paths is not None and not is_under(path, definition.roots):
            continue
        if (found.row_groups is None and _by_footers(definition)) or not isinstance(service.on_use, AutoRefresh):
            indexed_dataset(spark, definition).refresh(paths, progress=lambda done, total, phase: None)
        else:
            service.on_use.soon(spark, store.url, definition, paths)


def _by_footers(definition: DatasetDefinition) -> bool:
    """Whether footers suffice, so that indexing takes little of the time of the write itself."""
    return definition.format == "parquet" and all(index.type == "MinMax" for index in definition.indexes)
