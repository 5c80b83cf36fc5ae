"""Classic PySpark, also in a process that uses Spark Connect.

PySpark shares some state between all threads of a process: `SparkSession._instantiatedSession` and `_activeSession`,
and the environment variable ``SPARK_CONNECT_MODE_ENABLED``, which selects classic or Connect columns. The user's
threads depend on that state, so this module never writes it.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterator
from contextlib import contextmanager
from types import FunctionType, SimpleNamespace
from typing import TYPE_CHECKING, Any

from pyspark import SparkContext
from pyspark.errors.exceptions.captured import install_exception_handler
from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame
from pyspark.sql.classic.window import Window
from pyspark.sql.functions import builtin
from pyspark.sql.profiler import AccumulatorProfilerCollector
from pyspark.sql.session import SparkSession as ClassicSession
from pyspark.sql.udf import UserDefinedFunction
from pyspark.sql.utils import is_remote
from pyspark.util import PythonEvalType

from es_skipping.spark.bridge import connect_session, java_session

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession, functions

__all__ = [
    "Window",
    "acting",
    "classic_column",
    "classic_session",
    "functions",
    "functions_are_remote",
    "local_frame",
    "map_in_arrow",
    "python_session",
]


def _undispatched(module: Any) -> SimpleNamespace:
    """A module's functions without PySpark's decorators, which dispatch calls to Spark Connect.

    The functions call each other, so each is bound to a namespace that holds the undecorated others.
    """
    bare: dict[str, Any] = dict(vars(module))
    for name, value in vars(module).items():
        inner = inspect.unwrap(value) if isinstance(value, FunctionType) else None
        if inner is not None and inner.__globals__ is vars(module):
            made = FunctionType(inner.__code__, bare, inner.__name__, inner.__defaults__, inner.__closure__)
            made.__kwdefaults__ = inner.__kwdefaults__
            bare[name] = made
    return SimpleNamespace(**bare)


if not TYPE_CHECKING:
    functions = _undispatched(builtin)
    """`pyspark.sql.functions` for classic columns."""


def python_session(context: Any, session: Any) -> SparkSession:
    """A Python session over a JVM session. `SparkSession.__init__` would also register it as the process's own."""
    made: Any = object.__new__(ClassicSession)
    made._sc, made._jsc, made._jvm, made._jsparkSession = context, context._jsc, context._jvm, session
    made._profiler_collector = AccumulatorProfilerCollector()
    made.is_stopped = False  # read from the stand-in for a Connect session
    install_exception_handler()  # like any session, return the same object each time
    return made  # type: ignore[no-any-return]


def classic_session(spark: Any) -> SparkSession:
    """The classic session behind a session; for Spark Connect, the server's session in this process's JVM.

    Raises
    ------
    DatasetError
        The session is a Spark Connect session whose server runs elsewhere.
    """
    if hasattr(spark, "_jsparkSession"):
        return spark  # type: ignore[no-any-return]
    session = java_session(spark)
    return python_session(SparkContext._active_spark_context, session)


def functions_are_remote() -> bool:
    """Whether `pyspark.sql.functions` makes Spark Connect columns in this process."""
    return is_remote() and "PYSPARK_NO_NAMESPACE_SHARE" not in os.environ


@contextmanager
def acting(session: SparkSession) -> Iterator[None]:
    """Make this classic session the active Spark Connect session for PySpark, in this thread only.

    In a process with classic sessions, PySpark finds one of the user's instead. That works too: it only parses types.
    """
    if not is_remote():
        yield
        return
    from pyspark.sql.connect.session import SparkSession as ConnectSession

    here: Any = ConnectSession._active_session  # a threading.local
    before = getattr(here, "session", None)
    here.session = session
    try:
        yield
    finally:
        here.session = before


def local_frame(session: SparkSession, rows: Any, schema: str | None = None) -> DataFrame:
    """A DataFrame from the driver's data: a pyarrow table, or rows and their schema.

    A classic session's own `createDataFrame` would make that session the process's active one.
    """
    own: Any = session
    if not hasattr(session, "_jsparkSession"):
        return session.createDataFrame(rows, schema)
    with acting(session):
        if schema is None:
            return super(ClassicSession, own).createDataFrame(rows)  # type: ignore[no-any-return]
        return own._create_dataframe(rows, own._parse_ddl(schema), None, True)  # type: ignore[no-any-return]


def map_in_arrow(df: DataFrame, function: Any, schema: str) -> DataFrame:
    """`DataFrame.mapInArrow`, always with a classic function."""
    session = df.sparkSession
    with acting(session):
        returned = session._parse_ddl(schema)
        udf = UserDefinedFunction(function, returned, evalType=PythonEvalType.SQL_MAP_ARROW_ITER_UDF)
        mapped = df._jdf.mapInArrow(udf(*(df[name] for name in df.columns))._jc, False, None)
    return ClassicDataFrame(mapped, session)


def classic_column(column: Column) -> Column:
    """Convert a column that `pyspark.sql.functions` made to a classic one.

    An index's own code calls those functions. In a Spark Connect process they make Connect columns.
    """
    if hasattr(column, "_jc"):
        return column
    from pyspark.sql.connect.session import SparkSession as ConnectSession

    spark: Any = ConnectSession.active()
    jvm: Any = SparkContext._jvm
    sql = jvm.org.apache.spark.sql
    message = column.to_plan(spark.client).SerializeToString()  # type: ignore[operator]
    expression = jvm.org.apache.spark.connect.proto.Expression.parseFrom(message)
    planner = sql.connect.planner.SparkConnectPlanner(connect_session(spark), jvm.scala.Option.empty())
    return _of_java(sql.classic.ExpressionUtils.column(planner.transformExpression(expression)))


def _of_java(column: Any) -> Column:
    from pyspark.sql.classic.column import Column as ClassicColumn

    return ClassicColumn(column)
