"""A PySpark driver carries statements out itself: the JVM calls it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from es_skipping.spark import bridge
from es_skipping.spark.classic import python_session
from es_skipping.sql.statements import carry_out

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["carry_out_statements"]


class _Callback:
    """The JVM calls it on the thread that waits for the statement."""

    def apply(self, session: Any, statement: str) -> str:
        from pyspark import SparkContext

        return carry_out(python_session(SparkContext._active_spark_context, session), statement)

    class Java:
        implements = ("java.util.function.BiFunction",)


_CALLBACK: Final = _Callback()


def carry_out_statements(spark: SparkSession) -> None:
    """Let this process carry out the statements of a session's JVM, in all its sessions."""
    bridge.jvm_api(spark).carriesOut(_CALLBACK)
