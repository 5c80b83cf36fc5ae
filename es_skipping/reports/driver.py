"""The reports' access to the driver's JVM: executions, the threads that started them, and the records of scans."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from es_skipping.errors import EsSkippingError
from es_skipping.lookup.request import ScanRequest
from es_skipping.reports.records import Execution, executions_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from es_skipping.lookup.details import ScanDetails

__all__ = ["NOT_ENABLED", "OBSERVERS", "Driver", "PlannedScan", "session_of"]

OBSERVERS: Final = "es_skipping.observers"
"""A thread's local property: the observers of its queries, joined by commas."""

NOT_ENABLED: Final = "skipping is not enabled in this session; call es_skipping.enable(spark)"

_apis: dict[int, tuple[Any, Any]] = {}
_lock = threading.Lock()


def session_of(df: DataFrame) -> SparkSession:
    """The session of a DataFrame.

    Raises
    ------
    EsSkippingError
        The argument is not a DataFrame, but for example a query's text.
    """
    spark: SparkSession | None = getattr(df, "sparkSession", None)
    if spark is None:
        raise EsSkippingError(f"{df!r} is not a DataFrame; for a SQL query pass spark.sql('SELECT ...')")
    return spark


class PlannedScan:
    """A scan of a plan that was not executed.

    Parameters
    ----------
    handle
        The object in the JVM.
    """

    def __init__(self, handle: Any) -> None:
        self._handle = handle
        self.request = ScanRequest.parse(handle.request())

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the scan reads, and the partition columns in its filter."""
        return tuple(json.loads(self._handle.columns()))

    @property
    def induced_by(self) -> tuple[str, ...]:
        """What may give conditions that the query does not state as filters of this scan."""
        return tuple(json.loads(self._handle.inducedBy()))

    def skipped(self, reply: bytes) -> tuple[int, int, int]:
        """How many listed objects, bytes and row groups a reply to the request skips."""
        objects, size, groups = json.loads(self._handle.skipped(bytearray(reply)))
        return int(objects), int(size), int(groups)


class Driver:
    """The driver of one session.

    Parameters
    ----------
    spark
        A classic session, or a Spark Connect session whose server runs in this process' own JVM (``local[...]``).

    Raises
    ------
    EsSkippingError
        The session is a remote Spark Connect session, whose driver this process cannot reach.
    """

    def __init__(self, spark: SparkSession) -> None:
        from es_skipping.spark.bridge import java_session, jvm_api

        self._spark = spark
        self._session = java_session(spark)
        self._context = self._session.sparkContext()
        self.connect = not hasattr(spark, "_jsparkSession")
        shim = jvm_api(spark)
        with _lock:
            known = _apis.get(id(shim))
            if known is None or known[0] is not shim:
                known = _apis[id(shim)] = (shim, _load(shim))
        self._shim, self._api = known

    @property
    def session(self) -> str:
        """Spark's id of the session."""
        return str(self._session.sessionUUID())

    @property
    def details(self) -> ScanDetails:
        """The details of the latest look-ups."""
        from es_skipping.spark.services import service_of

        return service_of(self._spark).details

    def watch(self) -> None:
        """Start to record executions.

        Raises
        ------
        EsSkippingError
            This Spark does not support a listener.
        """
        reason = self._api.watch(self._context)
        if reason is not None:
            raise EsSkippingError(f"this Spark does not reveal which thread started an execution: {reason}")

    @property
    def watching(self) -> bool:
        """Whether executions are recorded."""
        return bool(self._api.watches(self._context))

    def last(self) -> str | None:
        """The last execution that the calling thread started in this session; over Spark Connect, that any thread
        did."""
        found = self._api.lastOfSession(self.session) if self.connect else self._api.last(self.session)
        return None if found is None else str(found)

    def executions(self, observer: str | None = None, root: str | None = None) -> list[Execution]:
        """The executions under an observer, or inside an execution (including itself), or all; oldest first."""
        return executions_of(json.loads(self._api.entries(observer, root)))

    def records(self, since: int = 0) -> tuple[int, list[Mapping[str, Any]]]:
        """The number of the shim's latest scan record, and the records above a number, oldest first.

        The shim keeps a limited number: if the first record is not the one after ``since``, some were dropped.
        """
        found = json.loads(self._shim.records(since))
        return int(found["last"]), list(found["records"])

    def planned_scans(self, df: DataFrame) -> list[PlannedScan]:
        """The file scans of a DataFrame's plan, which is planned again and not executed."""
        plan = self._connect_plan(df) if self.connect else df._jdf.queryExecution().analyzed()
        return [PlannedScan(handle) for handle in self._api.plannedScans(self._session, plan)]

    def _connect_plan(self, df: Any) -> Any:
        """The logical plan that the server makes from a Spark Connect DataFrame."""
        from pyspark import SparkContext

        from es_skipping.spark.bridge import connect_session

        assert SparkContext._jvm is not None
        spark = SparkContext._jvm.org.apache.spark
        message = df._plan.to_proto(df.sparkSession.client).SerializeToString()
        relation = spark.connect.proto.Plan.parseFrom(message).getRoot()
        nothing_runs = SparkContext._jvm.scala.Option.empty()
        planner = spark.sql.connect.planner.SparkConnectPlanner(connect_session(df.sparkSession), nothing_runs)
        return planner.transformRelation(relation)

    def begin(self, observer: str) -> None:
        """Let an observer watch the calling thread's further queries."""
        if self.connect:
            self._spark.addTag(observer)
        else:
            self._set_observers([*self._observers(), observer])

    def end(self, observer: str) -> None:
        """Undo `begin` in this thread; other observers, and threads that inherited this one, are unchanged."""
        if self.connect:
            self._spark.removeTag(observer)
        else:
            self._set_observers([name for name in self._observers() if name != observer])

    def _observers(self) -> list[str]:
        return [name for name in str(self._context.getLocalProperty(OBSERVERS) or "").split(",") if name]

    def _set_observers(self, names: list[str]) -> None:
        self._context.setLocalProperty(OBSERVERS, ",".join(names) or None)

    @property
    def pinned(self) -> bool:
        """Whether each Python thread has its own JVM thread, as is PySpark's default."""
        return self.connect or os.environ.get("PYSPARK_PIN_THREAD", "true").lower() == "true"


def _load(shim: Any) -> Any:
    """The jar's object for reports, from the class loader that the bridge loaded the jar with."""
    from pyspark import SparkContext

    gateway = SparkContext._gateway
    assert gateway is not None
    found = shim.getClass().getClassLoader().loadClass("io.esskipping.ReportsApi")
    java = gateway.jvm.java.lang
    return found.getDeclaredConstructor(gateway.new_array(java.Class, 0)).newInstance(gateway.new_array(java.Object, 0))
