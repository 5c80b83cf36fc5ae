"""From a URL's scheme to a metadata store: this package's, an installed package's, or one that a process registers."""

from __future__ import annotations

import hashlib
import importlib
import threading
import time
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any, Final

from es_skipping.errors import SettingError
from es_skipping.stores.urls import KEY, check_url, scheme_of

if TYPE_CHECKING:
    from es_skipping.settings import Settings
    from es_skipping.stores.base import MetadataStore
    from es_skipping.stores.files import Files

__all__ = ["ENTRY_POINTS", "StoreType", "open_store", "register", "store_type"]

ENTRY_POINTS: Final = "es_skipping.stores"
"""Group of entry points; each is named after its URL scheme and points to a `StoreType`."""

_OURS: Final = {
    "http": "es_skipping.stores.elasticsearch",
    "https": "es_skipping.stores.elasticsearch",
    "memory": "es_skipping.stores.memory",
}
_ANY_OTHER: Final = "es_skipping.stores.parquet"
"""Keeps metadata as files, wherever a file system serves the scheme."""
_ENTRY_POINT_SECONDS: Final = 60.0
"""After this time a scheme without an entry point is searched again, which reads a file of every installed package."""


@dataclass(frozen=True, slots=True)
class StoreType:
    """How stores of a URL scheme are opened.

    Parameters
    ----------
    open
        Takes the checked URL, the parsed settings by name, and the files at the URL or None.
    settings
        Names of the settings that tell stores apart: callers with the same values share one store.
    uses_files
        Whether the store is a directory of files: then a Spark session hands it those of its own file systems.
    """

    open: Callable[[str, Mapping[str, Any], Files | None], MetadataStore]
    settings: tuple[str, ...] = ()
    uses_files: bool = False


_registered: Final[dict[str, StoreType]] = {}
_no_entry_point_until: Final[dict[str, float]] = {}
"""By scheme, on the monotonic clock."""
_opened: Final[dict[Hashable, MetadataStore]] = {}
_lock: Final = threading.Lock()


def register(scheme: str, type: StoreType) -> None:
    """Register a store type under a URL scheme, in this process.

    Raises
    ------
    SettingError
        The scheme belongs to another store type.

    Examples
    --------
    >>> from es_skipping.stores.memory import STORE
    >>> register("scratch", STORE)
    >>> open_store("scratch://one").url
    'scratch://one'
    """
    known = _registered.get(scheme)
    if scheme in _OURS or (known is not None and known != type):
        raise SettingError(f"the scheme {scheme!r} belongs to another store already: choose another")
    _registered[scheme] = type


def store_type(url: str) -> StoreType:
    """The store type that serves a URL; Parquet files if no other type claims the scheme.

    Raises
    ------
    SettingError
        An entry point claims the scheme and leads to something else.
    """
    scheme = scheme_of(url)
    if scheme is None:
        return _of_package(_ANY_OTHER)
    if scheme in _registered:
        return _registered[scheme]
    if scheme in _OURS:
        return _of_package(_OURS[scheme])
    if time.monotonic() < _no_entry_point_until.get(scheme, 0.0):
        return _of_package(_ANY_OTHER)
    for point in entry_points(group=ENTRY_POINTS, name=scheme):
        found = point.load()
        if not isinstance(found, StoreType):
            raise SettingError(
                f"{KEY} is {url!r}: the entry point {scheme} of {ENTRY_POINTS} leads to {found!r}, which is not a "
                "StoreType"
            )
        _registered[scheme] = found
        return found
    _no_entry_point_until[scheme] = time.monotonic() + _ENTRY_POINT_SECONDS
    return _of_package(_ANY_OTHER)


def _of_package(package: str) -> StoreType:
    found: StoreType = importlib.import_module(package).STORE
    return found


def open_store(url: str, settings: Mapping[str, Any] | None = None, files: Files | None = None) -> MetadataStore:
    """The metadata store at a URL; one shared instance per URL, settings that matter, and files in this process.

    Parameters
    ----------
    url
        ``http(s)://host:port`` is Elasticsearch, ``memory://name`` is in this process, other schemes are those of
        installed packages; any other URL or path is a directory of Parquet files.
    settings
        Parsed settings by name (`es_skipping.settings.Settings`); None is all defaults.
    files
        How a store of files reads and writes; None is `pyarrow.fs`.

    Raises
    ------
    SettingError
        The URL or a credential cannot be used.

    Examples
    --------
    >>> open_store("https://user:secret@es:9200")
    Traceback (most recent call last):
        ...
    es_skipping.errors.SettingError: spark.es_skipping.store.url names a user or password in the URL ...
    """
    from es_skipping.settings import Settings
    from es_skipping.stores.protection.store import ProtectedStore

    url = check_url(url)
    if settings is None:
        settings = Settings({})
    type = store_type(url)
    verify = _verifying_key(settings)
    key = (url, _digest(type.settings, settings), files if type.uses_files else None, verify)
    with _lock:
        store = _opened.get(key)
        if store is None:
            store = _opened[key] = ProtectedStore(type.open(url, settings, files), verify)
        return store


def _verifying_key(settings: Mapping[str, Any]) -> str | None:
    """The reference of the key that authenticates metadata; None if metadata is not verified."""
    if settings.get("verify") != "mac":
        return None
    reference: str | None = settings.get("verify.key")
    if reference is None:
        raise SettingError(
            "spark.es_skipping.verify is 'mac', which needs a key: set spark.es_skipping.verify.key to env:NAME or "
            "file:PATH"
        )
    return reference


def _digest(names: tuple[str, ...], settings: Mapping[str, Any] | Settings) -> bytes:
    """A digest of the settings' values and of their text: executors get a secret, or a reference that they resolve
    themselves."""
    from es_skipping.settings import Settings

    written = [settings.written(name) for name in names] if isinstance(settings, Settings) else []
    shown = repr([[settings[name] for name in names], written])
    return hashlib.sha256(shown.encode("utf-8", "surrogatepass")).digest()
