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

_URL: Final = PREFIX + "store.url"
_SERVER: Final = (_URL, PREFIX + "store.caCerts", PREFIX + "store.sslFingerprint")
"""What says which server a secret is sent to."""

_log = logging.getLogger("es_skipping")


def store_url(settings: Settings, warehouse: str | None) -> str:
    """The store's URL: the setting, or else the embedded Parquet store in the warehouse directory.

    Raises
    ------
    SettingError
        Neither the URL nor the warehouse directory is set.

    Examples
    --------
    >>> store_url(Settings({}), "file:/lake/warehouse/")
    'file:/lake/warehouse/_es_skipping'
    """
    url: str | None = settings["store.url"]
    if url:
        return url
    if not warehouse:
        raise SettingError(f"there is no metadata store: set spark.es_skipping.store.url or {WAREHOUSE}")
    return warehouse.rstrip("/") + "/_es_skipping"


def _refuse_new_references(conf: Mapping[str, str], launched: Mapping[str, str]) -> None:
    """A client of a server must not read the server's environment and files, nor send its secrets elsewhere.

    Secrets of the launch go to the launched server alone, told by the same certificates.
    """
    moved = [key for key in _SERVER if conf.get(key) != launched.get(key)]
    for setting in SETTINGS.values():
        text = conf.get(setting.key, "")
        if not (setting.secret or setting.name == "verify.key") or not text:
            continue
        if text == launched.get(setting.key):
            if moved and setting.secret:
                raise SettingError(
                    f"a session has changed {moved[0]}, and {setting.key} is still that of the launch: give the secret "
                    "of the other store, or launch the application with that store"
                )
        elif text.startswith(("env:", "file:")):
            raise SettingError(
                f"a session has changed {setting.key} to the reference {text!r} since the launch: set it when the "
                "application is launched, or give the secret itself"
            )


class SessionStores:
    """Opens stores, and warns of settings that have no effect. Safe to use from several threads.

    Parameters
    ----------
    files
        Returns the files below a URL, for stores that are directories.
    launched
        The settings that an application was launched with, if its sessions belong to others than who launched it. Then
        references to secrets (``env:``, ``file:``) are resolved only for the launched store.
    """

    def __init__(self, files: Callable[[str], Files], launched: Mapping[str, str] | None = None) -> None:
        self._files = files
        self._launched = launched
        self._lock = threading.Lock()
        self._checked: set[tuple[str, str]] = set()
        """Names and values that were checked before."""

    def store(self, conf: Mapping[str, str], settings: Settings | None = None) -> MetadataStore:
        """The store that these settings name; one instance per store and credentials in this process.

        Parameters
        ----------
        conf
            By full key.
        settings
            The same, if they were parsed before.

        Raises
        ------
        SettingError
            The URL or a credential cannot be used.
        """
        self._warn_of_mistakes(conf)
        if self._launched is not None:
            _refuse_new_references(conf, self._launched)
        settings = settings or Settings(conf)
        url = check_url(store_url(settings, conf.get(WAREHOUSE)))
        files = self._files(url) if store_type(url).uses_files else None
        return open_store(url, settings, files)

    def _warn_of_mistakes(self, conf: Mapping[str, str]) -> None:
        """Warn once of each unknown key and each value that cannot be parsed: without a warning a typo has no visible
        effect. The JVM takes the default for a value that it cannot parse."""
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
