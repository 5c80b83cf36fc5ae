"""The process that look-ups run in: a PySpark driver, or a helper beside a JVM."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from es_skipping.stores.files import Files

__all__ = ["Host"]


class Host(Protocol):
    """The services that a process offers to look-ups. Several threads call its methods."""

    def files(self, url: str) -> Files:
        """The files below a URL, through the session's file systems."""

    def records(self, since: int) -> tuple[int, list[dict[str, Any]]]:
        """The number of the latest scan, and the records of the scans numbered above ``since``."""

    def forget_unindexed(self) -> None:
        """Drop the shim's cache of roots that are not indexed, after a build."""

    def application(self) -> str | None:
        """Spark's application id."""
