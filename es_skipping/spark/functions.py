"""Declares user functions with a version, so that queries can use indexes on them."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from es_skipping.errors import IndexDefinitionError
from es_skipping.predicates.functions import Declared
from es_skipping.spark.bridge import jvm_api
from es_skipping.spark.services import service_of, session_id

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["declare_function"]

_NAME: Final = re.compile(r"[A-Za-z_]\w*")


def declare_function(
    name: str,
    function: Any = None,
    *,
    version: str,
    returns: Any = None,
    monotone: bool = False,
    metric: bool | Callable[..., Any] = False,
    spark: SparkSession | None = None,
) -> Any:
    """Register a user function with a version, so that queries can use indexes on it.

    An index on ``ua_family(user_agent)`` remembers the version. A session that declared another version, or none, does
    not use the index; its queries stay correct and read more. Change the version whenever the function's results
    change, then refresh the dataset to rebuild the index.

    Parameters
    ----------
    name
        The function's name in SQL.
    function
        A Python function, a UDF that `pyspark.sql.functions.udf` or `pandas_udf` made, or the name of a Java class that
        implements one of Spark's ``UDF`` interfaces. None if the function is already registered, for example from
        Scala.
    version
        Any text.
    returns
        The result type, such as ``"string"``, if ``function`` does not define it.
    monotone
        Promises that the function never decreases as its one argument (a whole number or a decimal) grows, and that it
        is null only for null. A `MinMax` of the argument then also serves comparisons of the function. Only for plain
        Python functions that return whole numbers within the range of ``returns``, doubles, strings, binaries or
        booleans; other results never skip.
    metric
        Promises that the function is the distance of two points, called as ``name(x, y, 3.0, 4.0)``: first one point's
        coordinates, then the other's. It is symmetric, obeys the triangle inequality to a millionth, is null if a
        coordinate is null, and NaN if one is NaN. A `MetricDistance` with ``metric="name"`` then serves comparisons
        with a constant. Pass True for a plain Python function; otherwise pass a Python function of the same distance.
    spark
        The session; by default the active one.

    Returns
    -------
    callable
        The function for the DataFrame API: it takes columns and returns a column.

    Raises
    ------
    IndexDefinitionError
        The name, the version or the function cannot be used.

    Examples
    --------
    >>> family = declare_function("ua_family", parse, version="1", returns="string")   # doctest: +SKIP
    >>> dataset.create_indexes(Formatted("user_agent", "ua_family"))                   # doctest: +SKIP
    >>> spark.table("requests").where("ua_family(user_agent) = 'Firefox'")             # doctest: +SKIP
    """
    from pyspark.sql import SparkSession
    from pyspark.sql import functions as F

    from es_skipping.spark.classic import acting, classic_session

    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise IndexDefinitionError(f"{name!r} is not a function name: use letters, digits and _")
    if not isinstance(version, str) or not version:
        raise IndexDefinitionError(f"function {name}: version is {version!r}, but must be a text such as '1'")
    is_udf = hasattr(function, "returnType") and hasattr(function, "evalType")
    if monotone and (is_udf or not callable(function)):
        raise IndexDefinitionError(f"function {name}: only a plain Python function can be declared monotone")
    if metric is True and (is_udf or not callable(function)):
        raise IndexDefinitionError(
            f"function {name}: metric=True needs a plain Python function; pass metric=f, the same distance in Python"
        )
    if not isinstance(metric, bool) and not callable(metric):
        raise IndexDefinitionError(f"function {name}: metric is {metric!r}; pass True or a Python function")
    given = spark or SparkSession.active()
    session = classic_session(given)
    called: Any = lambda *columns: F.call_function(name, *columns)  # noqa: E731
    code = None
    if isinstance(function, str):
        with acting(session):
            session.udf.registerJavaFunction(name, function, returns)
    elif function is not None:
        if not callable(function):
            raise IndexDefinitionError(
                f"function {name} is {function!r}; pass a Python function, a UDF or a class name"
            )
        if not is_udf and returns is None:
            raise IndexDefinitionError(f"function {name}: pass the result type, such as returns='string'")
        with acting(session):
            made = session.udf.register(name, function) if is_udf else session.udf.register(name, function, returns)
            code = _code_of(session, made)
        if hasattr(given, "_jsparkSession"):  # a Spark Connect client calls it by name
            called = made
    distance = function if metric is True else metric or None
    declared = Declared(version, code, function if monotone else None, distance)
    service_of(given).functions.declare(session_id(given), name, declared)
    return called


def _code_of(session: SparkSession, called: Any) -> str | None:
    """The digest of a function's code, as each of its calls will carry it."""
    from es_skipping.spark.classic import functions as F

    plan = session.range(1).select(called(F.lit(None)))._jdf.queryExecution().analyzed()
    code = jvm_api(session).functionCode(plan)
    return None if code is None else str(code)
