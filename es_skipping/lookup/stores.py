"""The metadata store that a session's settings name."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from es_skipping.errors import SettingError
from es_skipping.settings import PREFIX, SETTINGS, Settings
from es_skipping.stores.registry import open_store, store_type
from es_skipping.stores.urls import check_url

if TYPE_CHECKING:
    from es_skipping.stores.base import MetadataStore
    from es_skipping.stores.files import Files

__all__ = ["WAREHOUSE", "SessionStores", "store_url"]

WAREHOUSE: Final = "spark.sql.warehouse.dir"

_log = logging.getLogger("es_skipping")


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


class SessionStores:
    """Opens stores, and warns of settings that would do nothing. Safe to use from several threads.

    Parameters
    ----------
    files
        The files below a URL, for stores that are directories.
    """

    def __init__(self, files: Callable[[str], Files]) -> None:
        self._files = files
        self._lock = threading.Lock()
        self._checked: set[tuple[str, str]] = set()
        """Names and values that were looked at already."""

    def store(self, conf: Mapping[str, str]) -> MetadataStore:
        """The store of these settings; one shared instance per store and credentials in this process.

        Raises
        ------
        SettingError
            The URL or a credential cannot be used.
        """
        self._warn_of_mistakes(conf)
        url = check_url(store_url(conf))
        files = self._files(url) if store_type(url).uses_files else None
        return open_store(url, Settings(conf), files)

    def _warn_of_mistakes(self, conf: Mapping[str, str]) -> None:
        """Name each unknown key, and each value that cannot be read, in one warning: a typo would else be a setting
        that does nothing. The JVM takes the default for what it cannot read."""
        given = {(key[len(PREFIX) :], value) for key, value in conf.items() if key.startswith(PREFIX)}
        with self._lock:
            new = given - self._checked
            self._checked |= new
        for name in sorted({name for name, _ in new}):
            if name not in SETTINGS:
                nearest = Settings(conf).unknown[PREFIX + name]
                _log.warning("unknown setting %s%s", PREFIX + name, f": did you mean {nearest}?" if nearest else "")
            elif not SETTINGS[name].secret:
                try:
                    Settings(conf)[name]
                except SettingError as error:
                    _log.warning("%s", error)
