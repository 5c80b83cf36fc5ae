"""Indexes what a write committed: the setting ``indexOnCommit``.

The JVM calls this process when a write of files or a commit to a Delta or Iceberg table has succeeded, on the thread
that waits for it. A failed write, and the attempts of a task that Spark gave up, are never reported: a refresh lists
what was committed, or reads it in the table's log. If the process dies in between, the files stay unknown, and queries
read them.
"""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING, Any, Final

from es_skipping.build.auto_refresh import AutoRefresh, indexed_dataset
from es_skipping.build.footers import WITH_FOOTERS
from es_skipping.errors import DatasetError
from es_skipping.settings import Settings
from es_skipping.spark import bridge
from es_skipping.spark.classic import python_session
from es_skipping.spark.formats import TABLES
from es_skipping.spark.services import service_of, store_conf, store_of
from es_skipping.stores.base import is_under

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from es_skipping.build.dataset import Dataset
    from es_skipping.catalog import DatasetDefinition

__all__ = ["index_commits"]

_MAPPED: Final = '"delta.columnMapping.'
"""In the schema of a Delta table whose files name columns otherwise than the table does."""
_log: Final = logging.getLogger("es_skipping")


class _Callback:
    """The JVM calls it with a session and the place that was written."""

    def apply(self, session: Any, written: str) -> str:
        from pyspark import SparkContext

        place = json.loads(written)
        try:
            _index(python_session(SparkContext._active_spark_context, session), **place)
        except Exception as error:  # the write succeeded, and queries read what is not indexed
            _log.warning("what was written to %s is not indexed: %s: %s", place["path"], type(error).__name__, error)
        return ""

    class Java:
        implements = ("java.util.function.BiFunction",)


_CALLBACK: Final = _Callback()


def index_commits(spark: SparkSession) -> None:
    """Let writes of the sessions of a JVM be indexed, as far as their setting ``indexOnCommit`` says."""
    bridge.jvm_api(spark).reportsWrites(_CALLBACK)


def _index(spark: SparkSession, path: str, table: str | None, format: str | None) -> None:
    """Refresh the dataset that a write belongs to, now or in the background.

    Parameters
    ----------
    format
        The format of a table with a log, whose refresh asks the log what changed; None for files, which it lists.
    """
    service, store, settings = service_of(spark), store_of(spark), Settings(store_conf(spark))
    # The write waits: a store that does not answer costs it what it costs a query.
    with service.breakers[store].attempt(settings["breaker.failures"], settings["breaker.pause"]):
        for lifetime in (settings["registry.lifetime"], 0.0):  # what is indexed may be known of a store that is gone
            datasets = service.registry.find(store, [path], table, lifetime, settings["store.timeout"], format)
            if not datasets:
                return
    for found in datasets:
        definition = found.entry.definition
        if (definition.format if definition.format in TABLES else None) != format:
            continue  # the directory of the table is indexed as plain files, or the other way round
        paths = None if format or definition.table is not None or path in definition.roots else (path,)
        if paths is not None and not is_under(path, definition.roots):
            continue
        background = service.on_use if isinstance(service.on_use, AutoRefresh) else None
        remembers, done = settings["remember"] and paths is None, False
        if background is None or (found.row_groups is None and _by_footers(definition)):
            try:
                _refresh(indexed_dataset(spark, definition, "never"), paths, remembers=remembers)
                done = not remembers
            except DatasetError:  # the table has another schema: to build its metadata anew takes too long to wait for
                if background is None:
                    raise
        if background is not None and not done:
            background.soon(spark, store.url, definition, paths)


def _refresh(dataset: Dataset, paths: tuple[str, ...] | None, *, remembers: bool) -> None:
    """Refresh a dataset while a write waits. No condition is remembered meanwhile, because that takes the rows."""

    def silent(done: int, total: int, phase: str) -> None:
        pass

    if remembers:
        dataset._update((), must_exist=True, paths=paths, progress=silent)
    else:
        dataset.refresh(paths, progress=silent)


def _by_footers(definition: DatasetDefinition) -> bool:
    """Whether footers suffice, so that indexing takes little of the time of the write itself."""
    return (
        definition.format in WITH_FOOTERS
        and _MAPPED not in definition.schema
        and all(index.type == "MinMax" for index in definition.indexes)
    )
