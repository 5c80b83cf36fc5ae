"""Every setting, in one table: name, default, type and meaning. The docs page is made from it.

Settings live in the Spark session under ``spark.es_skipping.`` and take effect on the next query.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from es_skipping.errors import SettingError

__all__ = ["PREFIX", "SETTINGS", "Setting", "Settings"]

PREFIX: Final = "spark.es_skipping."


def _boolean(text: str) -> bool:
    if text.strip().lower() in ("true", "false"):
        return text.strip().lower() == "true"
    raise ValueError("true or false")


def _number(kind: Callable[[str], Any], text: str, expected: str) -> Any:
    """Python's own message says what it could not do, not what is wanted."""
    try:
        return kind(text)
    except ValueError:
        raise ValueError(expected) from None


def _seconds(text: str) -> float:
    expected = "a positive duration such as 2s or 500ms"
    units = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
    text = text.strip().lower()
    for unit in sorted(units, key=len, reverse=True):
        if text.endswith(unit):
            value: float = _number(float, text[: -len(unit)], expected) * units[unit]
            break
    else:
        value = _number(float, text, expected)
    if not 0 < value < float("inf"):
        raise ValueError(expected)
    return value


def _count(text: str) -> int:
    expected = "a positive whole number"
    value: int = _number(int, text, expected)
    if value < 1:
        raise ValueError(expected)
    return value


def _bytes(text: str) -> int:
    text = text.strip().lower().removesuffix("b")
    scale = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30}.get(text[-1:], 1)
    expected = "a positive number of bytes such as 4096 or 64k"
    value: int = _number(int, text[:-1] if scale > 1 else text, expected) * scale
    if value < 1:
        raise ValueError(expected)
    return value


def _one_of(*choices: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text not in choices:
            raise ValueError(" or ".join(choices))
        return text

    return parse


def _secret(text: str) -> str:
    """A value, or where to find it: ``env:NAME``, ``file:PATH``."""
    if text.startswith("env:"):
        if text[4:] not in os.environ:
            raise ValueError(f"environment variable {text[4:]} to be set")
        return os.environ[text[4:]]
    if text.startswith("file:"):
        try:
            return Path(text[5:]).read_text(encoding="utf-8").strip()
        except OSError as error:
            raise ValueError(f"a readable file, but {error.strerror}: {text[5:]}") from None
    return text


@dataclass(frozen=True, slots=True)
class Setting:
    """One key: ``name`` without the common prefix, ``default`` as text (None: unset)."""

    name: str
    default: str | None
    type: str
    meaning: str
    parse: Callable[[str], Any] = str
    secret: bool = False

    @property
    def key(self) -> str:
        return PREFIX + self.name


SETTINGS: Final[Mapping[str, Setting]] = {
    setting.name: setting
    for setting in (
        Setting("enabled", "false", "boolean", "Whether this session's queries skip; `esk.enable` sets it.", _boolean),
        Setting(
            "strict",
            "false",
            "boolean",
            "Let a query fail where a look-up fails, instead of reading all files; Spark's error names "
            "`io.esskipping.LookupFailed` and the reason. For tests.",
            _boolean,
        ),
        Setting(
            "store.url",
            None,
            "URL",
            "The metadata store: `http(s)://host:port` for Elasticsearch, any URL Spark can write for Parquet. "
            "Unset: the Parquet store under `<spark.sql.warehouse.dir>/_es_skipping`.",
        ),
        Setting("store.user", None, "text", "User name for Elasticsearch."),
        Setting(
            "store.password", None, "secret", "Password; a value, `env:NAME` or `file:PATH`.", _secret, secret=True
        ),
        Setting(
            "store.token",
            None,
            "secret",
            "API key (`id:key` or its base64 form) or, with `Bearer ` before it, a bearer token; a value, `env:NAME` "
            "or `file:PATH`.",
            _secret,
            secret=True,
        ),
        Setting(
            "store.caCerts", None, "path", "File with the certificate authority that signed the server's certificate."
        ),
        Setting(
            "store.sslFingerprint",
            None,
            "hex",
            "SHA-256 fingerprint of the server's certificate, instead of a certificate authority.",
        ),
        Setting(
            "store.timeout",
            "2s",
            "duration",
            "How long one look-up may take, reading the list of datasets included; then the scan reads all files.",
            _seconds,
        ),
        Setting(
            "store.buildTimeout",
            "60s",
            "duration",
            "How long one request may take where no query waits for it: building, refreshing, dropping, listing, "
            "reindexing.",
            _seconds,
        ),
        Setting(
            "metadata.budget",
            None,
            "bytes",
            "How much a build may remember of one object, by all its indexes together. Above it the largest metadata "
            "become fingerprints, then an interval, then unknown; `RefreshResult.degraded` says how often. Unset: no "
            "limit.",
            _bytes,
        ),
        Setting(
            "build.executorWriters",
            None,
            "count",
            "How many tasks on the executors write metadata to Elasticsearch themselves, at a time. Unset: the driver "
            "writes. It also writes what they cannot, and all of it where a first task finds no way to the server.",
            _count,
        ),
        Setting("query.budget", "6s", "duration", "How long all look-ups of one query may take together.", _seconds),
        Setting(
            "breaker.failures",
            "3",
            "count",
            "After so many failures in a row no look-up is tried for `breaker.pause`.",
            _count,
        ),
        Setting(
            "breaker.pause",
            "30s",
            "duration",
            "How long a failing store is left alone before one look-up tries again.",
            _seconds,
        ),
        Setting(
            "registry.lifetime",
            "30s",
            "duration",
            "How long a session believes what it read of which datasets are indexed; an old belief only skips less.",
            _seconds,
        ),
        Setting(
            "verify",
            "none",
            "none, stat or open",
            "What the file system is asked of the objects about to be skipped. `stat`: whether each is still as Spark "
            "listed it, up to `verify.limit` of them. `open`: that, and whether a writer has it open, whatever their "
            "number and format. With `none` and `stat` too, HDFS is asked which files of formats that are appended to "
            "(text, CSV, JSON and the like, not Parquet and ORC) are open.",
            _one_of("none", "stat", "open"),
        ),
        Setting("verify.limit", "1000", "count", "Above so many objects to skip, `verify=stat` does not look.", _count),
        Setting(
            "queryLog.enabled",
            "false",
            "boolean",
            "Whether this session's look-ups are logged in the store, in the background. Needs Elasticsearch.",
            _boolean,
        ),
        Setting(
            "queryLog.retention",
            "30d",
            "duration",
            "How long the query log is kept; whole days are deleted by whoever writes it.",
            _seconds,
        ),
        Setting(
            "progress",
            "auto",
            "auto, true or false",
            "Whether building and refreshing draws a progress bar. `auto`: in notebooks, and where standard error is a "
            "terminal.",
            _one_of("auto", "true", "false"),
        ),
        Setting("reports.kept", "1000", "count", "How many scans' reports a session remembers.", _count),
    )
}


class Settings(Mapping[str, Any]):
    """A session's settings, read once: parsed values by name without the prefix.

    Parameters
    ----------
    conf
        The session's configuration, full keys; keys of others are ignored.

    Raises
    ------
    SettingError
        On *reading* a value that cannot be parsed; the message names key, value and what is expected.

    Examples
    --------
    >>> Settings({"spark.es_skipping.store.timeout": "500ms"})["store.timeout"]
    0.5
    """

    def __init__(self, conf: Mapping[str, str]) -> None:
        self._texts = {key[len(PREFIX) :]: value for key, value in conf.items() if key.startswith(PREFIX)}

    def __getitem__(self, name: str) -> Any:
        setting = SETTINGS[name]
        text = self._texts.get(name, setting.default)
        if text is None:
            return None
        try:
            return setting.parse(text)
        except ValueError as error:
            shown = "the given secret" if setting.secret else repr(text)
            raise SettingError(f"{setting.key} is {shown}, expected {error}") from None

    def __iter__(self) -> Any:
        return iter(SETTINGS)

    def __len__(self) -> int:
        return len(SETTINGS)

    def __repr__(self) -> str:
        shown = {n: "***" if SETTINGS[n].secret else t for n, t in sorted(self._texts.items()) if n in SETTINGS}
        return f"Settings({shown})"

    def written(self, name: str) -> str | None:
        """The text of a setting as it was given, a reference to a secret not followed; None where it was not given."""
        return self._texts.get(name)

    @property
    def unknown(self) -> dict[str, str | None]:
        """Keys under the prefix that nobody reads, with the nearest real name (or None)."""
        return {
            PREFIX + name: next((PREFIX + m for m in difflib.get_close_matches(name, SETTINGS, 1)), None)
            for name in self._texts
            if name not in SETTINGS
        }
