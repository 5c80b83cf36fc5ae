"""Functions that a session declares with a version, so that indexes on them are used."""

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
    """Register a user function under a name and say which version of it this is, so that indexes on it are used.

    An index on ``ua_family(user_agent)`` remembers the version. A session that declared another one, or none, does not
    use the index: its queries read what they must, as ever. Give a new version whenever the function computes something
    else; refreshing the dataset in a session that declares it builds the index anew.

    Parameters
    ----------
    name
        By which SQL calls it.
    function
        A Python function, a UDF as `pyspark.sql.functions.udf` or `pandas_udf` makes it, or the name of a Java class
        that implements one of Spark's ``UDF`` interfaces. None where a function of that name is registered already, as
        from Scala.
    version
        Any text.
    returns
        The type of its results, where ``function`` does not tell it: ``"string"``.
    monotone
        That it is non-decreasing in its one argument, a whole number or a decimal, and null of null alone: then a
        `MinMax` of the argument serves comparisons of the function too. Of plain Python functions only, whose results
        Spark takes as they are: whole numbers that fit ``returns`` for every argument, doubles, strings, binaries and
        booleans; of others nothing is concluded.
    metric
        That it is the distance of two points, called as ``name(x, y, 3.0, 4.0)``: the coordinates of the one and then
        of the other. It is the same from either side, obeys the triangle inequality to a millionth, and is null where a
        coordinate is null, NaN where one is NaN. Then a `MetricDistance` with ``metric="name"`` serves comparisons of
        it with a constant. True for a plain Python function; else a Python function of the same distance.
    spark
        The session; the active one if it is not given.

    Returns
    -------
    callable
        Takes columns and gives a column: the function for the DataFrame API.

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
        raise IndexDefinitionError(f"a function is named {name!r}; give a name of letters, digits and _")
    if not isinstance(version, str) or not version:
        raise IndexDefinitionError(f"function {name} has version {version!r}; give a text such as '1'")
    is_udf = hasattr(function, "returnType") and hasattr(function, "evalType")
    if monotone and (is_udf or not callable(function)):
        raise IndexDefinitionError(f"function {name}: only a plain Python function can be declared monotone")
    if metric is True and (is_udf or not callable(function)):
        raise IndexDefinitionError(
            f"function {name}: metric=True says that a plain Python function is one; give metric=f, the same in Python"
        )
    if not isinstance(metric, bool) and not callable(metric):
        raise IndexDefinitionError(f"function {name}: metric is {metric!r}; give True or a Python function")
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
                f"function {name} is {function!r}; give a Python function, a UDF or a class name"
            )
        if not is_udf and returns is None:
            raise IndexDefinitionError(f"function {name}: say what it returns, such as returns='string'")
        with acting(session):
            made = session.udf.register(name, function) if is_udf else session.udf.register(name, function, returns)
            code = _code_of(session, made)
        if hasattr(given, "_jsparkSession"):  # a client of Spark Connect calls it by its name
            called = made
    distance = function if metric is True else metric or None
    declared = Declared(version, code, function if monotone else None, distance)
    service_of(given).functions.declare(session_id(given), name, declared)
    return called


def _code_of(session: SparkSession, called: Any) -> str | None:
    """The digest of a function's code as it will come with each of its calls."""
    from es_skipping.spark.classic import functions as F

    plan = session.range(1).select(called(F.lit(None)))._jdf.queryExecution().analyzed()
    code = jvm_api(session).functionCode(plan)
    return None if code is None else str(code)
