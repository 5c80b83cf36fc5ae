"""The callback that carries out SQL statements on skipping indexes."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

from es_skipping.spark import bridge
from es_skipping.spark.classic import python_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["carry_out_statements"]

_ROOM: Final = "es_skipping.sql.statements"
"""Imported by its name, because that room is above this one."""


class _Callback:
    """The JVM calls it on the thread that waits for the statement."""

    def apply(self, session: Any, statement: str) -> str:
        from pyspark import SparkContext

        spark = python_session(SparkContext._active_spark_context, session)
        answer: str = importlib.import_module(_ROOM).carry_out(spark, statement)
        return answer

    class Java:
        implements = ("java.util.function.BiFunction",)


_CALLBACK: Final = _Callback()


def carry_out_statements(spark: SparkSession) -> None:
    """Let a session's JVM ask this process to carry out statements, in all its sessions."""
    bridge.jvm_api(spark).carriesOut(_CALLBACK)
