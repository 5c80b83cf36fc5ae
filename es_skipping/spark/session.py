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
_PACKAGES: Final = "spark.jars.packages"
_MODULE: Final = "io.esskipping:es-skipping:"
"""The jar where Maven resolves it, see ``maven_build.py``."""

Builder = TypeVar("Builder")


def configure(builder: Builder) -> Builder:
    """Add this package's jar to the session that a builder will make.

    It appends the jar to ``spark.jars``, after the entries from the builder, ``PYSPARK_SUBMIT_ARGS`` and
    ``spark-defaults.conf``. It changes nothing else, not even ``spark.sql.extensions``. To turn skipping on, call
    `enable`, which also loads the jar into a running session that was made without `configure`.

    Parameters
    ----------
    builder
        ``SparkSession.builder``, with any settings.

    Returns
    -------
    The same builder.

    Warns
    -----
    UserWarning
        A session already runs: ``getOrCreate`` returns it unchanged.

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
            "a Spark session already runs, so the builder's settings do not reach it: call "
            "es_skipping.enable(spark) on that session instead",
            UserWarning,
            stacklevel=2,
        )
        return builder
    options: dict[str, Any] = builder._options  # type: ignore[attr-defined]
    remote = options.get("spark.remote")
    if remote:
        if not str(remote).startswith("local"):
            raise EsSkippingError(bridge.REMOTE)
        return builder  # Spark Connect warns about settings like spark.jars, and `enable` does not need them
    launched = launch_conf()
    jars, packages = (_words(options.get(key) or launched.get(key, "")) for key in (_JARS, _PACKAGES))
    if not any(bridge.is_our_jar(jar) for jar in jars) and not any(each.startswith(_MODULE) for each in packages):
        builder.config(_JARS, ",".join([*jars, bridge.JAR.as_uri()]))  # type: ignore[attr-defined]
    return builder


def _words(setting: object) -> list[str]:
    return [word.strip() for word in str(setting).split(",") if word.strip()]


def enable(spark: SparkSession) -> None:
    """Turn skipping on for a session, without SQL statements; the public `es_skipping.enable` adds those.

    Raises
    ------
    EsSkippingError
        The session is a remote Spark Connect session.
    """
    from es_skipping.lookup.built_with import RELEVANT_SETTINGS
    from es_skipping.lookup.stores import WAREHOUSE
    from es_skipping.spark.services import service_of

    bridge.install(spark, service_of(spark).answer, [*RELEVANT_SETTINGS, WAREHOUSE])
    spark.conf.set(_ENABLED, "true")
    bridge.propagate(spark)


def disable(spark: SparkSession) -> None:
    """Turn skipping off for a session, from its next query on; does nothing if `enable` was not called.

    Raises
    ------
    EsSkippingError
        The session is a remote Spark Connect session.
    """
    spark.conf.set(_ENABLED, "false")
    bridge.propagate(spark)


def is_enabled(spark: SparkSession) -> bool:
    """Whether a session's queries skip: skipping is on and the bridge is installed.

    Raises
    ------
    EsSkippingError
        The session is a remote Spark Connect session.
    """
    switched_on = str(spark.conf.get(_ENABLED, "false")).strip().lower() == "true"
    return switched_on and bridge.installed(spark)
