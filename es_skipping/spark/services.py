"""The look-up service of each JVM that this process drives."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from es_skipping.lookup.service import LookupService
from es_skipping.lookup.stores import WAREHOUSE
from es_skipping.predicates.functions import Declarations
from es_skipping.spark import bridge

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from es_skipping.stores.base import MetadataStore
    from es_skipping.stores.files import Files

__all__ = ["declarations_of", "serve_others", "service_of", "session_id", "store_conf", "store_of"]

_lock: Final = threading.Lock()
_services: Final[dict[int, tuple[Any, LookupService]]] = {}


class _Driver:
    """A PySpark driver that hosts look-ups."""

    def files(self, url: str) -> Files:
        from es_skipping.spark.hadoop_files import files_of

        return files_of(url)

    def records(self, since: int) -> tuple[int, list[dict[str, Any]]]:
        return bridge.all_records(since)

    def forget_unindexed(self) -> None:
        bridge.forget_unindexed()

    def application(self) -> str | None:
        from pyspark import SparkContext

        context = SparkContext._active_spark_context
        return None if context is None else str(context.applicationId)


def service_of(spark: SparkSession) -> LookupService:
    """The look-up service of a session; all sessions of its JVM share it.

    Raises
    ------
    EsSkippingError
        The session is a remote Spark Connect session.
    """
    gateway = bridge.gateway_of(spark)
    with _lock:
        known = _services.get(id(gateway))
        if known is None or known[0] is not gateway:
            known = _services[id(gateway)] = (gateway, LookupService(_Driver()))
        return known[1]


def serve_others(gateway: Any, launched: Mapping[str, str]) -> None:
    """Answer for sessions that may belong to others than who launched the application.

    Parameters
    ----------
    gateway
        The connection to the application's JVM.
    launched
        The application's launch settings. Secrets that they refer to stay with the launched store.
    """
    with _lock:
        _services[id(gateway)] = (gateway, LookupService(_Driver(), launched=launched))


def session_id(spark: SparkSession) -> str:
    """A session's id in the shim's requests."""
    return str(bridge.java_session(spark).sessionUUID())


def declarations_of(spark: SparkSession) -> Declarations:
    """The functions that a session declared."""
    return service_of(spark).functions.of(session_id(spark))


def store_conf(spark: SparkSession) -> dict[str, str]:
    """The session's es_skipping settings, and the warehouse directory."""
    return bridge.session_settings(spark, [WAREHOUSE])


def store_of(spark: SparkSession) -> MetadataStore:
    """The metadata store that a session's settings name.

    Raises
    ------
    SettingError
        The URL or a credential cannot be used.
    """
    return service_of(spark).store(store_conf(spark))
