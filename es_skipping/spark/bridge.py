"""The Python end of the bridge into Spark: loads the jar, and calls what is in it.

The message formats are described in ``docs/decisions/0001-bridge-protocol.md``.
"""

from __future__ import annotations

import base64
import contextlib
import json
import tempfile
import threading
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from es_skipping.errors import DatasetError, EsSkippingError
from es_skipping.lookup.reply import failed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = [
    "forget_unindexed",
    "gateway_of",
    "JAR",
    "Answer",
    "all_records",
    "connect_session",
    "distinct_rows",
    "expression_tree",
    "hand_on",
    "install",
    "installed",
    "java_session",
    "jvm_api",
    "list_objects",
    "list_objects_again",
    "same_files",
    "refuse_all_but_files",
    "relation_facts",
    "session_settings",
    "ship_jar",
]

Answer: TypeAlias = Callable[[str], bytes]
"""What is called for each scan: the request's JSON text in, the reply's bytes out."""

_UNLIMITED: Final = (1 << 31) - 1

JAR: Final = Path(__file__).parent / "jvm" / "es-skipping.jar"

NOT_BUILT: Final = (
    f"{JAR} is missing: it is compiled when the package is installed; in a source tree run `python hatch_build.py`"
)

REMOTE: Final = (
    "this Spark Connect session runs on a server that this process cannot reach into, so its queries cannot skip: "
    "enable es_skipping in the process that runs the server, or use a classic session or builder.remote('local[*]')"
)

_lock = threading.RLock()
_apis: dict[int, tuple[Any, Any]] = {}
_callbacks: dict[int, tuple[Any, _Callback]] = {}


class _Callback:
    """What the JVM holds and calls, once per scan, on daemon threads of its own."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer

    def apply(self, request: str) -> bytes:
        try:
            return self.answer(_unpacked(request))
        except Exception as error:  # the shim keeps all files, or raises the reason under the strict setting
            return failed(f"{type(error).__name__}: {error}")

    class Java:
        # an interface of the JDK: py4j's class loader does not know those of a jar that was loaded later
        implements = ("java.util.function.Function",)


def _unpacked(request: str) -> str:
    """A long request arrives compressed: py4j takes 40 ms for more than 8 KiB."""
    return request if request.startswith("{") else zlib.decompress(base64.b64decode(request)).decode("utf-8")


def install(spark: SparkSession, answer: Answer, settings: Iterable[str] = ()) -> None:
    """Make a session's plans pass the shim, and let the shim ask ``answer``.

    Whether it asks is up to the session's ``spark.es_skipping.enabled``. The callback is one for the process: the
    latest ``answer`` counts, for all sessions.

    Parameters
    ----------
    spark
        A classic session, or one of Spark Connect whose server runs in this process.
    answer
        Called in daemon threads, several at once.
    settings
        Keys that each request shall carry besides this package's own.

    Raises
    ------
    EsSkippingError
        A remote session, or the jar is missing.
    """
    from pyspark.java_gateway import ensure_callback_server_started

    session = java_session(spark)
    api = jvm_api(spark)
    gateway = gateway_of(spark)
    with _lock:
        known = _callbacks.get(id(gateway))
        if known is None or known[0] is not gateway:
            ensure_callback_server_started(gateway)  # type: ignore[no-untyped-call, unused-ignore]
            known = _callbacks[id(gateway)] = (gateway, _Callback(answer))
        known[1].answer = answer
        api.connect(known[1], list(settings))
        api.install(session)


def hand_on(spark: SparkSession) -> None:
    """Let sessions made from this one begin with its settings of this moment.

    It happens at each of its queries too; Spark has no way to be told of a new session.
    """
    jvm_api(spark).handOn(java_session(spark))


def installed(spark: SparkSession) -> bool:
    """Whether `install` was called for this session, or for one that it was made from."""
    api = jvm_api(spark)
    return bool(api.connected()) and bool(api.installed(java_session(spark)))


def all_records(since: int = 0) -> tuple[int, list[dict[str, Any]]]:
    """What happened to the latest scans of this process's JVM, of all sessions; from any thread.

    Parameters
    ----------
    since
        Only those numbered above it.

    Returns
    -------
    last : int
        The number of the newest, to be given as ``since`` the next time.
    records : list of dict
        As the protocol names their fields, oldest first; empty where no JVM was used yet.
    """
    with _lock:
        known = list(_apis.values())
    for _, api in reversed(known):  # the latest JVM, where this process has had several
        found = json.loads(api.records(since))
        return found["last"], found["records"]
    return since, []


def forget_unindexed() -> None:
    """Let this process's JVMs ask again of what was not indexed: something was built."""
    with _lock:
        known = list(_apis.values())
    for _, api in known:
        with contextlib.suppress(Exception):  # a JVM that has ended remembers nothing
            api.forgetUnindexed()


def session_settings(spark: SparkSession, wanted: Iterable[str]) -> dict[str, str]:
    """What a query's request would carry of a session's settings.

    Returns
    -------
    dict
        This package's own keys; those that are wanted, with Spark's defaults, as far as this Spark knows them; and
        ``user.timezone``, the JVM's zone.
    """
    # as one text: a list would cross to the JVM key by key
    found: dict[str, str] = json.loads(jvm_api(spark).settings(java_session(spark), "\n".join(wanted)))
    return found


def relation_facts(df: DataFrame) -> dict[str, Any]:
    """Facts of the one file relation that a DataFrame reads.

    Parameters
    ----------
    df
        Of a classic session; it reads one path, several, or one table of a format that Spark reads as files.

    Returns
    -------
    dict
        ``table`` (full name or None), ``roots`` (Hadoop's decoded text), ``format`` (short name), ``options`` (keys in
        lower case, without paths), ``dataSchema`` and ``partitionSchema`` (``StructType`` as parsed JSON), ``location``
        (class of Spark's file index).

    Raises
    ------
    DatasetError
        It does not read exactly one relation of files.
    """
    facts: dict[str, Any] = json.loads(_ask(df, "facts"))
    return facts


def refuse_all_but_files(df: DataFrame) -> None:
    """Raise `DatasetError` for a view, and for what does not have the rows and columns of its files as they are."""
    _ask(df, "refuseAllButFiles")


def list_objects(df: DataFrame) -> Iterator[tuple[str, int, int]]:
    """Every object that an unfiltered scan of a DataFrame's relation would read, as Spark's own file index lists it.

    Parameters
    ----------
    df
        As for `relation_facts`.

    Returns
    -------
    iterator of (path, length, mtime)
        The path is Hadoop's decoded text, the modification time in milliseconds.

    Raises
    ------
    DatasetError
        It does not read exactly one relation of files.
    """
    file = _local_file()
    _ask(df, "objects", file.name)
    return _objects(file)


def list_objects_again(df: DataFrame) -> Iterator[tuple[str, int, int]] | None:
    """What has become of the objects of `list_objects`; None where Spark's file index cannot look again.

    Objects that are new may be missing.
    """
    file = _local_file()
    return _objects(file) if _ask(df, "objectsNow", file.name) else None


def _local_file() -> Any:
    """For what the JVM, which runs on this machine, has to say at length; it is gone once nobody has it open."""
    return tempfile.NamedTemporaryFile("r", prefix="es-skipping-", encoding="utf-8")


def _objects(file: Any) -> Iterator[tuple[str, int, int]]:
    with file:
        for line in file:
            yield from map(tuple, json.loads(line))


def same_files(spark: SparkSession, files: Sequence[tuple[str, int, int]]) -> bool:
    """Whether these files of `list_objects` are there now with the same length and modification time."""
    return bool(jvm_api(spark).sameFiles(spark._jsparkSession, json.dumps(files)))


def expression_tree(projection: DataFrame) -> dict[str, Any]:
    """An expression over a relation's columns as the tree that filters arrive as, after Spark's optimizer.

    Parameters
    ----------
    projection
        The expression, as the only column selected from what `relation_facts` takes.

    Returns
    -------
    dict
        A tree of the protocol; where nothing can be known of the expression its class is ``"Opaque"``.

    Raises
    ------
    DatasetError
        It is no plain projection of one relation of files.
    """
    tree: dict[str, Any] = json.loads(_ask(projection, "tree"))
    return tree


def distinct_rows(df: DataFrame, limits: Sequence[int | None] | None = None) -> DataFrame | None:
    """A DataFrame with fewer rows, made so before they leave the JVM: distinct values per object and column.

    Parameters
    ----------
    df
        Its first column is the object's number, a ``bigint``; rows of one object are next to each other.
    limits
        For each other column of how many distinct values in one object more tell nothing: where there are more than
        that some more than that are told, and the others may be left out, nulls included.

    Returns
    -------
    DataFrame or None
        Columns ``object, rows, nulls1, nans1, nulls2, ...`` and then those of ``df`` after its first. The counts of a
        chunk of an object stand in its first row and are 0 in the others; a null among the values stands for nothing,
        and values of one row have nothing to do with each other. None where a column's type does not allow it.
    """
    from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame

    given = [None] * (len(df.columns) - 1) if limits is None else limits
    # Values are told apart by their bits; of these two stand for one value, 0.0 and -0.0.
    enough = [_UNLIMITED if limit is None else min(limit + 2, _UNLIMITED) for limit in given]
    found = jvm_api(df.sparkSession).distinctRows(df._jdf, ",".join(map(str, enough)))
    return None if found is None else ClassicDataFrame(found, df.sparkSession)


def ship_jar(spark: SparkSession) -> None:
    """Give executors the jar, unless the session was launched with it."""
    context = spark.sparkContext
    if JAR.name in context._jsc.sc().conf().get("spark.jars", ""):
        return
    if not any(JAR.name in str(jar) for jar in _added_jars(context)):
        context._jsc.addJar(str(JAR))


def _added_jars(context: Any) -> list[str]:
    jars = context._jsc.sc().listJars()
    return [str(jars.apply(i)) for i in range(jars.size())]


def _ask(df: DataFrame, question: str, *more: str) -> Any:
    api = jvm_api(df.sparkSession)
    try:
        return getattr(api, question)(df._jdf, *more)
    except Exception as error:
        cause = _java_message(error, "IllegalArgumentException")
        if cause is None:
            raise
        raise DatasetError(f"this DataFrame cannot be indexed: {cause}") from None


def _java_message(error: Exception, class_name: str) -> str | None:
    """The message of a Java exception of that class, else None; pyspark translates some exceptions and not others."""
    if type(error).__name__ == class_name:
        return str(getattr(error, "desc", error)) or str(error)
    java = getattr(error, "java_exception", None)
    if java is not None and java.getClass().getSimpleName() == class_name:
        return str(java.getMessage())
    return None


def java_session(spark: SparkSession) -> Any:
    """The JVM's session behind a Python one.

    Raises
    ------
    EsSkippingError
        It is a Spark Connect session whose server is not in this process.
    """
    session = getattr(spark, "_jsparkSession", None)
    return session if session is not None else connect_session(spark).session()


def connect_session(spark: Any) -> Any:
    """What the server of a Spark Connect session keeps of it, where that server is in this process's JVM.

    Raises
    ------
    EsSkippingError
        It is not: the server is a remote one. Or it is no session at all.
    """
    from pyspark import SparkContext

    if not hasattr(spark, "client"):
        raise EsSkippingError(f"{spark!r} is no Spark session")
    jvm: Any = SparkContext._jvm
    if jvm is None or SparkContext._active_spark_context is None:
        raise EsSkippingError(REMOTE)
    service = jvm.org.apache.spark.sql.connect.service
    _ = spark.version  # the server makes the session at its first request
    key = service.SessionKey(spark.client._user_id or "", spark.client._session_id)
    # the object, because not all of its methods can be called on the class
    server = getattr(getattr(service, "SparkConnectService$"), "MODULE$")
    holder = server.sessionManager().getIsolatedSessionIfPresent(key)
    if holder.isEmpty():
        raise EsSkippingError(REMOTE)
    return holder.get()


def gateway_of(spark: SparkSession) -> Any:
    """The connection to a session's JVM."""
    from pyspark import SparkContext

    if hasattr(spark, "_jsparkSession"):
        return spark.sparkContext._gateway
    java_session(spark)
    return SparkContext._gateway


def jvm_api(spark: SparkSession) -> Any:
    """The object of the jar that Python calls, for a session's JVM; loads the jar where it is not on the class path.

    Raises
    ------
    EsSkippingError
        A remote session, or the jar was not built.
    """
    gateway = gateway_of(spark)
    with _lock:
        known = _apis.get(id(gateway))
        if known is None or known[0] is not gateway:
            known = _apis[id(gateway)] = (gateway, _load(gateway))
        return known[1]


def _load(gateway: Any) -> Any:
    name = "io.esskipping.PythonApi"
    java = gateway.jvm.java
    parent = java.lang.Thread.currentThread().getContextClassLoader()
    try:
        found = java.lang.Class.forName(name, True, parent)
    except Exception as error:
        if "ClassNotFoundException" not in str(error):
            raise
        if not JAR.exists():
            raise EsSkippingError(NOT_BUILT) from None
        jar = java.io.File(str(JAR)).toURI().toURL()
        if parent.getClass().getName() == "org.apache.spark.util.MutableURLClassLoader":
            parent.addURL(jar)  # as if Spark had been started with it: data sources are found by their names
            found = java.lang.Class.forName(name, True, parent)
        else:
            urls = gateway.new_array(java.net.URL, 1)
            urls[0] = jar
            found = java.lang.Class.forName(name, True, java.net.URLClassLoader(urls, parent))
    return found.getDeclaredConstructor(gateway.new_array(java.lang.Class, 0)).newInstance(
        gateway.new_array(java.lang.Object, 0)
    )
