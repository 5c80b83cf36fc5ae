"""A session in a JVM that started this process, for one statement.

``io.esskipping.helper.StatementProcess`` is the other end.
"""

from __future__ import annotations

import importlib.metadata
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from es_skipping.errors import EsSkippingError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["attach"]


def attach(start: Mapping[str, Any]) -> tuple[SparkSession, Any]:
    """Attach this thread to the JVM.

    Parameters
    ----------
    start
        From the JVM: ``port`` and ``secret`` of its gateway, Spark's ``version``, ``modules`` (where that Spark has its
        own PySpark), and ``settings`` (those that the application was launched with).

    Returns
    -------
    spark
        The statement's own session: the same settings, temporary views and current database.
    call : JavaObject
        ``io.esskipping.helper.StatementCall``.

    Raises
    ------
    EsSkippingError
        There is no PySpark of Spark's version.
    """
    _find_pyspark(start["version"], start["modules"])
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway

    from es_skipping.spark import bridge
    from es_skipping.spark.classic import python_session
    from es_skipping.spark.services import serve_others

    # PySpark reads these three; children of this process are the only others who could
    os.environ["PYSPARK_GATEWAY_PORT"] = str(start["port"])
    os.environ["PYSPARK_GATEWAY_SECRET"] = start["secret"]
    os.environ["PYSPARK_PIN_THREAD"] = "true"
    gateway: Any = launch_gateway()  # type: ignore[no-untyped-call, unused-ignore]
    del os.environ["PYSPARK_GATEWAY_SECRET"]
    call = gateway.entry_point
    call.begin()
    bridge.attached(gateway, call.api())
    serve_others(gateway, start["settings"])
    java = call.context()
    conf = SparkConf(_jvm=gateway.jvm, _jconf=java.getConf())
    context = SparkContext(conf=conf, gateway=gateway, jsc=java)
    return python_session(context, call.session()), call


def _find_pyspark(version: str, modules: str) -> None:
    """Prefer the PySpark of this Python if its version is that of the running Spark, else the one that Spark ships."""
    try:
        installed = importlib.metadata.version("pyspark")
    except importlib.metadata.PackageNotFoundError:
        installed = None
    if installed == version:
        return
    shipped = [path for path in modules.split(os.pathsep) if path.endswith(".zip") and Path(path).exists()]
    if shipped:
        sys.path[:0] = shipped
    elif installed is not None:
        raise EsSkippingError(
            f"Spark's version is {version}, and {sys.executable} has PySpark {installed}: install pyspark=={version} "
            "for it, or set SPARK_HOME where the application is launched"
        )
