"""The metadata store a session's settings name."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from es_skipping.errors import SettingError
from es_skipping.settings import PREFIX, SETTINGS, Settings
from es_skipping.stores.open import check_url, open_store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from es_skipping.stores.base import MetadataStore

__all__ = ["WAREHOUSE", "session_store", "store_conf", "store_url"]

WAREHOUSE: Final = "spark.sql.warehouse.dir"

_log = logging.getLogger("es_skipping")
_told: set[tuple[str, str]] = set()
"""Names and values that were looked at already."""


def store_conf(spark: SparkSession) -> dict[str, str]:
    """The session's settings of this package, and the warehouse."""
    from es_skipping.spark.bridge import session_settings

    return session_settings(spark, [WAREHOUSE])


def store_url(conf: Mapping[str, str]) -> str:
    """The store's URL: the setting, or the embedded Parquet store beside the warehouse's tables.

    Parameters
    ----------
    conf
        The session's configuration by full key; needs ``spark.sql.warehouse.dir`` where no URL is set.

    Raises
    ------
    SettingError
        No URL is set and the warehouse is not known.

    Examples
    --------
    >>> store_url({"spark.sql.warehouse.dir": "file:/lake/warehouse/"})
    'file:/lake/warehouse/_es_skipping'
    """
    url: str | None = Settings(conf)["store.url"]
    if url:
        return url
    warehouse = conf.get(WAREHOUSE)
    if not warehouse:
        raise SettingError(f"neither spark.es_skipping.store.url nor {WAREHOUSE} is set, so there is no metadata store")
    return warehouse.rstrip("/") + "/_es_skipping"


def session_store(conf: Mapping[str, str]) -> MetadataStore:
    """The store of these settings; one shared instance per store and credentials in this process.

    Raises
    ------
    SettingError
        The URL or a credential cannot be used.
    """
    _tell_mistakes(conf)
    url = check_url(store_url(conf))
    files = None
    if not url.startswith(("http://", "https://")):
        from es_skipping.spark.hadoop_files import files_of

        files = files_of(url)
    return open_store(url, Settings(conf), files)


def _tell_mistakes(conf: Mapping[str, str]) -> None:
    """Name each key that nobody reads, and each value that cannot be read, in one warning: a typo would else be a
    setting that does nothing. The JVM takes the default for what it cannot read."""
    given = {key[len(PREFIX) :]: value for key, value in conf.items() if key.startswith(PREFIX)}
    new = {(name, value) for name, value in given.items() if (name, value) not in _told}
    for name, value in sorted(new):
        _told.add((name, value))
        if name not in SETTINGS:
            nearest = Settings(conf).unknown[PREFIX + name]
            _log.warning(
                "nobody reads the setting %s%s", PREFIX + name, f": did you mean {nearest}?" if nearest else ""
            )
        elif not SETTINGS[name].secret:
            try:
                Settings(conf)[name]
            except SettingError as error:
                _log.warning("%s", error)
