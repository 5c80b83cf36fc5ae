"""The one switch: `configure`, `enable`, `disable`, `is_enabled`."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, Final, TypeVar

from es_skipping.errors import EsSkippingError
from es_skipping.settings import PREFIX
from es_skipping.spark import bridge
from es_skipping.spark.launch_conf import launch_conf

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["configure", "disable", "enable", "is_enabled"]

_ENABLED: Final = PREFIX + "enabled"
_JARS: Final = "spark.jars"

Builder = TypeVar("Builder")


def configure(builder: Builder) -> Builder:
    """Bring this package's jar to the session that a builder is going to make.

    The jar is added to ``spark.jars``, after what the builder, ``PYSPARK_SUBMIT_ARGS`` and ``spark-defaults.conf`` have
    there; nothing else is touched, ``spark.sql.extensions`` neither. It does not switch skipping on: `enable` does.
    A session works without it too, since `enable` loads the jar into a running one.

    Parameters
    ----------
    builder
        ``SparkSession.builder``, with whatever was set on it.

    Returns
    -------
    The same builder.

    Warns
    -----
    UserWarning
        A session runs already: ``getOrCreate`` will return it as it is.

    Examples
    --------
    >>> from pyspark.sql import SparkSession
    >>> import es_skipping as esk
    >>> spark = esk.configure(SparkSession.builder).getOrCreate()  # doctest: +SKIP
    """
    from pyspark import SparkContext

    if not bridge.JAR.exists():
        raise EsSkippingError(bridge.NOT_BUILT)
    if SparkContext._active_spark_context is not None:
        warnings.warn(
            "a Spark session runs already, so the builder's settings come too late for it: "
            "es_skipping.enable(spark) is all it needs",
            UserWarning,
            stacklevel=2,
        )
        return builder
    options: dict[str, Any] = builder._options  # type: ignore[attr-defined]
    remote = options.get("spark.remote")
    if remote:
        if not str(remote).startswith("local"):
            raise EsSkippingError(bridge.REMOTE)
        return builder  # Spark Connect warns of settings like spark.jars, and `enable` needs none
    given = options.get(_JARS) or launch_conf().get(_JARS, "")
    jars = [jar.strip() for jar in str(given).split(",") if jar.strip()]
    if not any(jar.endswith(bridge.JAR.name) for jar in jars):
        builder.config(_JARS, ",".join([*jars, bridge.JAR.as_uri()]))  # type: ignore[attr-defined]
    return builder


def enable(spark: SparkSession) -> None:
    """Let a session's queries skip objects, from the next query on.

    Works on any session that runs in this process, whether or not it was made with `configure`. Sessions made from it
    later (``spark.newSession()``) begin with the ``spark.es_skipping`` settings, this switch included, that it had at
    its last query; no other session is changed.

    Parameters
    ----------
    spark
        A classic session, or one of Spark Connect whose server runs in this process (``remote("local[*]")``).

    Raises
    ------
    EsSkippingError
        A remote Spark Connect session.
    """
    from es_skipping.lookup.built_with import RELEVANT_SETTINGS
    from es_skipping.lookup.stores import WAREHOUSE
    from es_skipping.spark.services import service_of

    bridge.install(spark, service_of(spark).answer, [*RELEVANT_SETTINGS, WAREHOUSE])
    spark.conf.set(_ENABLED, "true")
    bridge.hand_on(spark)


def disable(spark: SparkSession) -> None:
    """Let a session's queries read all objects again, from the next query on; harmless where `enable` was not called.

    Raises
    ------
    EsSkippingError
        A remote Spark Connect session.
    """
    spark.conf.set(_ENABLED, "false")
    bridge.hand_on(spark)


def is_enabled(spark: SparkSession) -> bool:
    """Whether a session's queries skip: it is switched on, and the bridge is in place.

    Raises
    ------
    EsSkippingError
        A remote Spark Connect session.
    """
    switched_on = str(spark.conf.get(_ENABLED, "false")).strip().lower() == "true"
    return switched_on and bridge.installed(spark)
