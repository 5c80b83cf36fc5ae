"""The helper as the process that look-ups run in."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING, Any

from es_skipping.helper.jvm import Jvm, JvmFiles
from es_skipping.stores.urls import scheme_of

if TYPE_CHECKING:
    from es_skipping.stores.files import Files

__all__ = ["HelperHost"]


class HelperHost:
    """Offers look-ups the local files directly, and everything else through the JVM.

    Parameters
    ----------
    jvm
        The JVM whose look-ups the helper answers.
    application
        Spark's application id.
    """

    def __init__(self, jvm: Jvm, application: str | None) -> None:
        self._jvm = jvm
        self._application = application
        self._lock = threading.Lock()
        self._files: dict[str, Files] = {}

    def files(self, url: str) -> Files:
        """The files below a URL; the same object each time, because open stores are found by it."""
        with self._lock:
            if url not in self._files:
                self._files[url] = self._open(url)
            return self._files[url]

    def _open(self, url: str) -> Files:
        if scheme_of(url) in (None, "file"):
            from es_skipping.stores.parquet.files import arrow_files

            return arrow_files(url)
        return JvmFiles(self._jvm, url)

    def records(self, since: int) -> tuple[int, list[dict[str, Any]]]:
        found = json.loads(self._jvm.ask("records", since=since))
        return found["last"], found["records"]

    def forget_unindexed(self) -> None:
        self._jvm.ask("forgetUnindexed")

    def application(self) -> str | None:
        return self._application
