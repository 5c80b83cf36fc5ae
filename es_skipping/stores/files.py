"""The files of a store: a protocol of five operations, for any file system."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

__all__ = ["Files", "ReplaceableFiles"]


@runtime_checkable
class Files(Protocol):
    """The files below one directory; paths are relative to it, with ``/`` between names.

    Errors are `OSError`; a file that is not there is `FileNotFoundError`.
    """

    def list(self, directory: str) -> list[str]:
        """Names directly in a directory, of files and directories alike; ``""`` is the top. Empty if it is missing."""

    def read(self, path: str, offset: int = 0, length: int | None = None) -> bytes:
        """A file's bytes, or a stretch of them; fewer where the file ends earlier."""

    def write(self, path: str, data: bytes) -> None:
        """Write a file whole, with the directories above it. Paths are never written twice."""

    def delete(self, path: str) -> None:
        """Delete a file; a missing one is accepted."""

    def create_if_absent(self, path: str, data: bytes) -> bool:
        """Write a file whole unless it is there: True if this call made it, False if it was there.

        Must be atomic among all writers. Where the file system cannot promise that, raise `OSError` that says so.
        """


@runtime_checkable
class ReplaceableFiles(Files, Protocol):
    """Files that may also be replaced. Stores never replace a file; the manifest of a table in column groups is."""

    def replace(self, path: str, data: bytes) -> None:
        """Write a file in place of another: readers see the old or the new one, even if the writer dies.

        Must be atomic on a local disk, on HDFS, and on object stores that show a file when it is whole.
        """
