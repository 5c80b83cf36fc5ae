"""From a URL to a metadata store: Elasticsearch for ``http(s)://``, Parquet for everything else."""

from __future__ import annotations

import hashlib
import re
import threading
from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from es_skipping.errors import SettingError

if TYPE_CHECKING:
    from es_skipping.stores.base import MetadataStore
    from es_skipping.stores.parquet.files import Files

__all__ = ["check_url", "open_store"]

_KEY: Final = "spark.es_skipping.store.url"
_HOST_AND_PORT: Final = re.compile(r"[\w.-]+:\d+/?")
_CREDENTIALS: Final = ("store.user", "store.password", "store.token", "store.caCerts", "store.sslFingerprint")
_OTHERS: Final = ("store.timeout", "store.buildTimeout")

_opened: dict[Hashable, MetadataStore] = {}
_lock = threading.Lock()


def check_url(url: str) -> str:
    """A store's URL without a trailing slash, if it can be one.

    Raises
    ------
    SettingError
        It is empty, malformed, holds a password, or has a query or a fragment.

    Examples
    --------
    >>> check_url("https://es:9200/")
    'https://es:9200'
    """
    stripped = url.strip()
    if not stripped or any(ord(character) < 32 for character in stripped):
        raise SettingError(f"{_KEY} is {url!r}, expected a URL such as https://es:9200 or file:///lake/metadata")
    if _HOST_AND_PORT.fullmatch(stripped):
        raise SettingError(f"{_KEY} is {url!r}, which has no scheme: write http://{stripped} or https://{stripped}")
    scheme, colon, rest = stripped.partition(":")
    if not colon or "/" in scheme or "\\" in scheme:
        return stripped.rstrip("/") or "/"  # a plain path
    authority = rest[2:].partition("/")[0] if rest.startswith("//") else ""
    userinfo, at, _ = authority.rpartition("@")
    if at and (":" in userinfo or scheme.lower() in ("http", "https")):
        # The URL is shown in plans, logs and reports, so a secret in it is refused and not repeated here.
        raise SettingError(
            f"{_KEY} names a user or password in the URL ({scheme}://...@...): set spark.es_skipping.store.user and "
            ".password (or .token) instead"
        )
    if scheme.lower() in ("http", "https"):
        try:
            parts = urlsplit(stripped)
            usable = rest.startswith("//") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
        except ValueError:
            usable = False
        if not usable or " " in stripped:
            raise SettingError(f"{_KEY} is {url!r}, expected {scheme.lower()}://host:port")
        if parts.query or parts.fragment:
            raise SettingError(f"{_KEY} is {url!r}, expected {scheme.lower()}://host:port without ? and #")
    elif not scheme or not scheme[0].isalpha() or not all(c.isalnum() or c in "+-." for c in scheme):
        raise SettingError(f"{_KEY} is {url!r}: {scheme!r} is no URL scheme")
    elif not rest.strip("/"):
        raise SettingError(f"{_KEY} is {url!r}, expected a place within it, such as {scheme}:///lake/metadata")
    return stripped.rstrip("/")


def open_store(url: str, settings: Mapping[str, Any] | None = None, files: Files | None = None) -> MetadataStore:
    """The metadata store at a URL; one shared instance per URL, credentials and files in this process.

    Parameters
    ----------
    url
        ``http(s)://host:port`` is Elasticsearch; any other URL or path is a directory of Parquet files.
    settings
        Parsed settings by name (`es_skipping.settings.Settings`); None is all defaults.
    files
        How a Parquet store reads and writes; None is `pyarrow.fs`.

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

    url = check_url(url)
    if settings is None:
        settings = Settings({})
    elastic = url.lower().startswith(("http://", "https://"))
    key: Hashable
    if elastic:
        names = (*_CREDENTIALS, *_OTHERS)
        # Executors are handed what was written: a secret, or a reference that they follow themselves.
        written = [settings.written(name) for name in names] if isinstance(settings, Settings) else []
        shown = repr([[settings[name] for name in names], written])
        key = (url, hashlib.sha256(shown.encode("utf-8", "surrogatepass")).digest())
    else:
        key = (url, files)
    with _lock:
        store = _opened.get(key)
        if store is None:
            store = _opened[key] = _elasticsearch(url, settings) if elastic else _parquet(url, files)
        return store


def _elasticsearch(url: str, settings: Mapping[str, Any]) -> MetadataStore:
    try:
        from es_skipping.stores.elasticsearch.store import ElasticsearchStore
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith("elastic"):
            raise
        raise SettingError(
            f"{_KEY} is {url!r}, but the Elasticsearch client is missing: pip install 'elasticsearch>=8.19,<9'"
        ) from error
    store: MetadataStore = ElasticsearchStore(url, settings)
    return store


def _parquet(url: str, files: Files | None) -> MetadataStore:
    from es_skipping.stores.parquet.files import arrow_files
    from es_skipping.stores.parquet.store import ParquetStore

    return ParquetStore(url, arrow_files(url) if files is None else files)
