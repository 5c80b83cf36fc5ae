"""Checks the URL of a metadata store."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import urlsplit

from es_skipping.errors import SettingError

__all__ = ["KEY", "check_url", "scheme_of"]

KEY: Final = "spark.es_skipping.store.url"
_HOST_AND_PORT: Final = re.compile(r"[\w.-]+:\d+/?")


def scheme_of(url: str) -> str | None:
    """The scheme of a URL in lower case; None for a plain path.

    Examples
    --------
    >>> scheme_of("S3A://lake/metadata"), scheme_of("/lake/metadata:v2")
    ('s3a', None)
    """
    scheme, colon, _ = url.strip().partition(":")
    return None if not colon or "/" in scheme or "\\" in scheme else scheme.lower()


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
        raise SettingError(f"{KEY} is {url!r}, expected a URL such as https://es:9200 or file:///lake/metadata")
    if _HOST_AND_PORT.fullmatch(stripped):
        raise SettingError(f"{KEY} is {url!r}, which has no scheme: write http://{stripped} or https://{stripped}")
    scheme, colon, rest = stripped.partition(":")
    if not colon or "/" in scheme or "\\" in scheme:
        return stripped.rstrip("/") or "/"  # a plain path
    authority = rest[2:].partition("/")[0] if rest.startswith("//") else ""
    userinfo, at, _ = authority.rpartition("@")
    if at and (":" in userinfo or scheme.lower() in ("http", "https")):
        # The URL is shown in plans, logs and reports, so a secret in it is refused and not repeated here.
        raise SettingError(
            f"{KEY} names a user or password in the URL ({scheme}://...@...): set spark.es_skipping.store.user and "
            ".password (or .token) instead"
        )
    if scheme.lower() in ("http", "https"):
        try:
            parts = urlsplit(stripped)
            usable = rest.startswith("//") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
        except ValueError:
            usable = False
        if not usable or " " in stripped:
            raise SettingError(f"{KEY} is {url!r}, expected {scheme.lower()}://host:port")
        if parts.query or parts.fragment:
            raise SettingError(f"{KEY} is {url!r}, expected {scheme.lower()}://host:port without ? and #")
    elif not scheme or not scheme[0].isalpha() or not all(c.isalnum() or c in "+-." for c in scheme):
        raise SettingError(f"{KEY} is {url!r}: {scheme!r} is not a URL scheme")
    elif not rest.strip("/"):
        raise SettingError(f"{KEY} is {url!r}, expected a path in it, such as {scheme}:///lake/metadata")
    return stripped.rstrip("/")
