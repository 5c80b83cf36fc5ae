"""The Python end of the bridge into Spark: loads the jar and calls its API.

``docs/decisions/0001-bridge-protocol.md`` describes the message formats.
"""

from __future__ import annotations

import base64
import contextlib
import json
import re
import threading
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from es_skipping.errors import EsSkippingError
from es_skipping.lookup.reply import failed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = [
    "forget_unindexed",
    "gateway_of",
    "JAR",
    "Answer",
    "all_records",
    "attached",
    "connect_session",
    "propagate",
    "install",
    "installed",
    "is_our_jar",
    "java_session",
    "jvm_api",
    "session_settings",
    "ship_jar",
]

Answer: TypeAlias = Callable[[str], bytes]
"""The look-up function, called once per scan: the request's JSON text in, the reply's bytes out."""

_UNLIMITED: Final = (1 << 31) - 1

JAR: Final = Path(__file__).parent / "jvm" / "es-skipping.jar"

_JAR_NAME: Final = re.compile(r"(io\.esskipping_)?es-skipping(-\d[\w.+-]*)?\.jar")
"""Spark copies what it resolves as ``GROUP_ARTIFACT-VERSION.jar``."""

NOT_BUILT: Final = f"{JAR} is missing. Installing the package compiles it; in a source tree run `python hatch_build.py`"

REMOTE: Final = (
    "this Spark Connect session runs on a remote server, so es_skipping cannot work from this process: enable it in "
    "the process that runs the server, or use a classic session or builder.remote('local[*]')"
)

_lock = threading.RLock()
_apis: dict[int, tuple[Any, Any]] = {}
_callbacks: dict[int, tuple[Any, _Callback]] = {}


class _Callback:
    """The callback that the JVM calls once per scan, on its own daemon threads."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self._settings: tuple[list[str], Any] = [], None

    def settings(self, wanted: list[str], gateway: Any) -> Any:
        """The settings as a Java list, which takes two questions to the JVM for each: made again where they differ."""
        from py4j.java_collections import ListConverter

        if self._settings[1] is None or self._settings[0] != wanted:
            self._settings = wanted, ListConverter().convert(wanted, gateway._gateway_client)
        return self._settings[1]

    def apply(self, request: str) -> bytes:
        try:
            return self.answer(_unpacked(request))
        except Exception as error:  # the shim keeps all files; under the strict setting it raises the reason
            return failed(f"{type(error).__name__}: {error}")

    class Java:
        # an interface of the JDK: py4j's class loader does not see the classes of a jar loaded later
        implements = ("java.util.function.Function",)


def _unpacked(request: str) -> str:
    """Decompress a long request: py4j takes 40 ms for more than 8 KiB."""
    return request if request.startswith("{") else zlib.decompress(base64.b64decode(request)).decode("utf-8")


def install(spark: SparkSession, answer: Answer, settings: Iterable[str] = ()) -> None:
    """Install the shim in a session, and let it call ``answer``.

    The shim calls it only if the session sets ``spark.es_skipping.enabled``. A process has one callback: the latest
    ``answer`` serves all sessions.

    Parameters
    ----------
    spark
        A classic session, or a Spark Connect session whose server runs in this process.
    answer
        Called in daemon threads, several at once.
    settings
        Keys that each request carries besides this package's own.

    Raises
    ------
    EsSkippingError
        The session is remote, or the jar is missing.
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
        api.connect(known[1], known[1].settings(list(settings), gateway))
        api.install(session)


def propagate(spark: SparkSession) -> None:
    """Let sessions made from this one start with its current settings.

    Each query of the session does the same, because Spark does not report new sessions.
    """
    jvm_api(spark).propagate(java_session(spark))


def installed(spark: SparkSession) -> bool:
    """Whether `install` was called for this session, or for the session it was made from."""
    api = jvm_api(spark)
    return bool(api.connected()) and bool(api.installed(java_session(spark)))


def all_records(since: int = 0) -> tuple[int, list[dict[str, Any]]]:
    """The records of the latest scans in this process's JVM, for all sessions; callable from any thread.

    Parameters
    ----------
    since
        Return only records numbered above it.

    Returns
    -------
    last : int
        The number of the newest record; pass it as ``since`` next time.
    records : list of dict
        Oldest first, with the protocol's field names; empty if no JVM was used yet.
    """
    with _lock:
        known = list(_apis.values())
    for _, api in reversed(known):  # the latest JVM, if this process had several
        found = json.loads(api.records(since))
        return found["last"], found["records"]
    return since, []


def forget_unindexed() -> None:
    """Clear the JVMs' caches of roots that are not indexed, after a build."""
    with _lock:
        known = list(_apis.values())
    for _, api in known:
        with contextlib.suppress(Exception):  # a JVM that has ended has no cache
            api.forgetUnindexed()


def session_settings(spark: SparkSession, wanted: Iterable[str]) -> dict[str, str]:
    """The settings that a query's request would carry.

    Returns
    -------
    dict
        This package's own keys; the wanted keys that this Spark knows, with its defaults; and ``user.timezone``, the
        JVM's zone.
    """
    # as one text: py4j would pass a list key by key
    found: dict[str, str] = json.loads(jvm_api(spark).settings(java_session(spark), "\n".join(wanted)))
    return found


def ship_jar(spark: SparkSession) -> None:
    """Give executors the jar, unless the session was launched with it."""
    context = spark.sparkContext
    launched = context._jsc.sc().conf().get("spark.jars", "").split(",")
    if not any(is_our_jar(jar) for jar in [*launched, *_added_jars(context)]):
        context._jsc.addJar(str(JAR))


def is_our_jar(path: str) -> bool:
    """Whether a path or URL names this package's jar: the one in the package, or one that Maven resolved."""
    return _JAR_NAME.fullmatch(path.strip().rpartition("/")[2]) is not None


def _added_jars(context: Any) -> list[str]:
    jars = context._jsc.sc().listJars()
    return [str(jars.apply(i)) for i in range(jars.size())]


def java_session(spark: SparkSession) -> Any:
    """The JVM's session behind a Python one.

    Raises
    ------
    EsSkippingError
        The session is a Spark Connect session whose server is not in this process.
    """
    session = getattr(spark, "_jsparkSession", None)
    return session if session is not None else connect_session(spark).session()


def connect_session(spark: Any) -> Any:
    """The server's side of a Spark Connect session, if the server runs in this process's JVM.

    Raises
    ------
    EsSkippingError
        The server is remote, or the argument is not a session.
    """
    from pyspark import SparkContext

    if not hasattr(spark, "client"):
        raise EsSkippingError(f"{spark!r} is not a Spark session")
    jvm: Any = SparkContext._jvm
    if jvm is None or SparkContext._active_spark_context is None:
        raise EsSkippingError(REMOTE)
    service = jvm.org.apache.spark.sql.connect.service
    _ = spark.version  # the first request makes the server create the session
    key = service.SessionKey(spark.client._user_id or "", spark.client._session_id)
    # the companion object, because some methods cannot be called on the class
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
    """The jar's API object in a session's JVM; loads the jar if it is not on the class path.

    Raises
    ------
    EsSkippingError
        The session is remote, or the jar was not built.
    """
    gateway = gateway_of(spark)
    with _lock:
        known = _apis.get(id(gateway))
        if known is None or known[0] is not gateway:
            known = _apis[id(gateway)] = (gateway, _load(gateway))
        return known[1]


def attached(gateway: Any, api: Any) -> None:
    """Use this API object in a JVM that started this process, and whose class loader only the JVM knows."""
    with _lock:
        _apis[id(gateway)] = (gateway, api)


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
            parent.addURL(jar)  # as if Spark had started with the jar, so that data sources are found by name
            found = java.lang.Class.forName(name, True, parent)
        else:
            urls = gateway.new_array(java.net.URL, 1)
            urls[0] = jar
            found = java.lang.Class.forName(name, True, java.net.URLClassLoader(urls, parent))
    return found.getDeclaredConstructor(gateway.new_array(java.lang.Class, 0)).newInstance(
        gateway.new_array(java.lang.Object, 0)
    )
