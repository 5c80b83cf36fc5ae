"""What look-ups need of the process that they run in: a PySpark driver, or a helper beside a JVM."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from es_skipping.stores.files import Files

__all__ = ["Host"]


class Host(Protocol):
    """Its methods are called from several threads."""

    def files(self, url: str) -> Files:
        """The files below a URL, by the session's own file systems."""

    def records(self, since: int) -> tuple[int, list[dict[str, Any]]]:
        """What happened to the latest scans, numbered above ``since``, and the number of the newest."""

    def forget_unindexed(self) -> None:
        """Let the shim ask again about what was not indexed: something was built."""

    def application(self) -> str | None:
        """Spark's id of the application."""
