"""Every setting, in one table: name, default, type and meaning. The docs page is made from it.

Settings live in the Spark session under ``spark.es_skipping.`` and take effect on the next query.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from es_skipping.errors import SettingError

__all__ = ["PREFIX", "SETTINGS", "Setting", "Settings", "seconds"]

PREFIX: Final = "spark.es_skipping."


def _boolean(text: str) -> bool:
    if text.strip().lower() in ("true", "false"):
        return text.strip().lower() == "true"
    raise ValueError("true or false")


def _number(kind: Callable[[str], Any], text: str, expected: str) -> Any:
    """Parse a number; on failure name the expected form instead of Python's own message."""
    try:
        return kind(text)
    except ValueError:
        raise ValueError(expected) from None


def seconds(text: str) -> float:
    """A duration such as ``2s`` or ``500ms``; ValueError if it is none."""
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
    text = text.strip().lower().removesuffix("b").replace(" ", "")
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


def _reference(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9+.-]*:.+", text):
        raise _NotReference
    return text


class _NotReference(ValueError):
    """A value that may be a key: it stays out of the message."""


class _MissingSecret(ValueError):
    """A reference to a secret leads nowhere; the message continues "<key> refers to"."""


def _secret(text: str) -> str:
    """Return the value itself, or the one that ``env:NAME`` or ``file:PATH`` refers to."""
    if text.startswith("env:"):
        if text[4:] not in os.environ:
            raise _MissingSecret(f"the environment variable {text[4:]}, which is not set")
        return os.environ[text[4:]]
    if text.startswith("file:"):
        try:
            return Path(text[5:]).read_text(encoding="utf-8").strip()
        except OSError as error:
            raise _MissingSecret(f"the file {text[5:]}, which cannot be read: {error.strerror}") from None
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
        Setting(
            "enabled",
            "false",
            "boolean",
            "Turns skipping on for this session's queries; `esk.enable` sets it.",
            _boolean,
        ),
        Setting(
            "strict",
            "false",
            "boolean",
            "Fail the query when a look-up fails, instead of reading all files. Spark's error names "
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
            "API key (`id:key` or its base64 form), or a bearer token after the word `Bearer `; a value, `env:NAME` "
            "or `file:PATH`.",
            _secret,
            secret=True,
        ),
        Setting(
            "store.caCerts",
            None,
            "path",
            "File with the certificate of the authority that signed the server's certificate.",
        ),
        Setting(
            "store.sslFingerprint",
            None,
            "hex",
            "SHA-256 fingerprint of the server's certificate; replaces the certificate authority.",
        ),
        Setting(
            "store.timeout",
            "2s",
            "duration",
            "Time limit of one look-up, including reading the list of datasets. Past it the scan reads all files.",
            seconds,
        ),
        Setting(
            "store.buildTimeout",
            "60s",
            "duration",
            "Time limit of one request when no query waits for it: building, refreshing, dropping, listing, "
            "reindexing.",
            seconds,
        ),
        Setting(
            "metadata.budget",
            None,
            "bytes",
            "Limit of one object's metadata, all its indexes together. Past it a build replaces the largest metadata "
            "by fingerprints, then by an interval, then by nothing; `RefreshResult.degraded` counts this. Unset: no "
            "limit.",
            _bytes,
        ),
        Setting(
            "build.executorWriters",
            None,
            "count",
            "Number of executor tasks that write metadata to Elasticsearch at the same time. Unset: the driver "
            "writes. The driver also writes what they cannot, and everything if a first task cannot reach the server.",
            _count,
        ),
        Setting(
            "retainRemoved",
            "refresh",
            "refresh or vacuum",
            "How long to keep the metadata of files that a Delta or Iceberg table has removed. `refresh`: until the "
            "next refresh. `vacuum`: until a refresh finds the file deleted, so that queries of older snapshots skip; "
            "each refresh then lists all files of the snapshot.",
            _one_of("refresh", "vacuum"),
        ),
        Setting(
            "granularity",
            "file",
            "file, rowGroup or auto",
            "What has metadata of its own, for datasets of plain Parquet files: each file, or also each row group, so "
            "that queries leave row groups out of the files they read. `auto`: row groups if the files are larger than "
            "128 MB on average. Read by builds and refreshes; where it is not set, they keep what the dataset has.",
            _one_of("file", "rowGroup", "auto"),
        ),
        Setting("query.budget", "6s", "duration", "Time limit of all look-ups of one query together.", seconds),
        Setting(
            "breaker.failures",
            "3",
            "count",
            "After this many failures in a row, no look-up is tried for `breaker.pause`.",
            _count,
        ),
        Setting(
            "breaker.pause",
            "30s",
            "duration",
            "Pause after a store has failed repeatedly; then one look-up tries it again.",
            seconds,
        ),
        Setting(
            "registry.lifetime",
            "30s",
            "duration",
            "How long a session caches the list of indexed datasets. A stale list skips less, never wrongly.",
            seconds,
        ),
        Setting(
            "verify",
            "none",
            "none, stat, open or mac",
            "What to check before skipping objects. `stat`: each is still as Spark listed it, "
            "for up to `verify.limit` objects, and so are the files of a dimension whose filter skips them. `open`: "
            "also that no writer has it open, for any number and format. "
            "`mac`: that authenticated metadata proves the skip too; builds with it keep such metadata "
            "(`verify.key`). "
            "For formats that writers append to (text, CSV, JSON and the like, not Parquet and ORC), HDFS is always "
            "asked which files are open.",
            _one_of("none", "stat", "open", "mac"),
        ),
        Setting(
            "verify.key",
            None,
            "reference",
            "Where the key of `verify=mac` is: `env:NAME`, `file:PATH`, or `SCHEME:REST` of a package. Never the key.",
            _reference,
        ),
        Setting(
            "verify.limit",
            "1000",
            "count",
            "With more objects to skip than this, `verify=stat` checks none, nor a dimension with more files.",
            _count,
        ),
        Setting(
            "queryLog.enabled",
            "false",
            "boolean",
            "Logs this session's look-ups in the store, in the background.",
            _boolean,
        ),
        Setting(
            "queryLog.retention",
            "30d",
            "duration",
            "How long the query log is kept. The session that writes it deletes expired days.",
            seconds,
        ),
        Setting(
            "remember",
            "false",
            "boolean",
            "Logs this session's look-ups in the store, and each refresh of a whole dataset collects the conditions "
            "that recur in them (`Dataset.remember`).",
            _boolean,
        ),
        Setting(
            "remember.budget",
            "2m",
            "bytes",
            "Metadata of all conditions together that one dataset remembers. Past it those that the log needs least "
            "are given up.",
            _bytes,
        ),
        Setting(
            "indexOnCommit",
            "false",
            "boolean",
            "Indexes the files of a write of this session when it has committed, also to a Delta or Iceberg table: "
            "before the call returns if Parquet footers suffice for all indexes of the dataset, otherwise in the "
            "background. In PySpark sessions that called `enable`.",
            _boolean,
        ),
        Setting(
            "autoRefresh",
            "false",
            "boolean",
            "Refreshes a dataset in the background when a query of this session lists other objects than its metadata "
            "knows. In PySpark sessions that called `enable`.",
            _boolean,
        ),
        Setting(
            "autoRefresh.interval",
            "60s",
            "duration",
            "At most one background refresh of a dataset in this time, and none if another process refreshed it so "
            "recently.",
            seconds,
        ),
        Setting(
            "progress",
            "auto",
            "auto, true or false",
            "Shows a progress bar while building and refreshing. `auto`: in notebooks, and when standard error is a "
            "terminal.",
            _one_of("auto", "true", "false"),
        ),
        Setting(
            "helper.enabled",
            "true",
            "boolean",
            "Start a helper process in a driver where no Python calls `esk.enable` and a session turns skipping on. "
            "Read at launch: later changes have no effect.",
            _boolean,
        ),
        Setting(
            "helper.python",
            None,
            "path",
            "The Python that runs the helper, with this package installed. Unset: `spark.pyspark.driver.python`, "
            "`spark.pyspark.python`, `PYSPARK_PYTHON`, then `python3`. Read at launch, never from a session.",
        ),
        Setting(
            "helper.startTimeout",
            "20s",
            "duration",
            "How long the first query waits for the helper to start. Past it queries read all files until the helper "
            "is there. Read at launch.",
            seconds,
        ),
        Setting("reports.kept", "1000", "count", "Number of scans whose reports a session keeps.", _count),
    )
}


class Settings(Mapping[str, Any]):
    """A session's settings, read once: parsed values by name without the prefix.

    Parameters
    ----------
    conf
        The session's configuration by full key; keys without the package's prefix are ignored.

    Raises
    ------
    SettingError
        On *reading* a value that cannot be parsed; the message names the key, the value and the expected form.

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
        except _MissingSecret as error:
            raise SettingError(f"{setting.key} refers to {error}") from None
        except _NotReference:
            raise SettingError(f"{setting.key} is not a reference: pass env:NAME or file:PATH, never the key") from None
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
        """The setting's text as given, without resolving a reference to a secret; None if it was not given."""
        return self._texts.get(name)

    @property
    def unknown(self) -> dict[str, str | None]:
        """Keys under the prefix that are not settings, with the nearest real name (or None)."""
        return {
            PREFIX + name: next((PREFIX + m for m in difflib.get_close_matches(name, SETTINGS, 1)), None)
            for name in self._texts
            if name not in SETTINGS
        }
