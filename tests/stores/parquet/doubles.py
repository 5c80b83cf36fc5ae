"""Doubles of `Files` that fail as machines and networks do."""

from __future__ import annotations

import errno
from collections.abc import Callable
from typing import Literal

from es_skipping.stores.files import Files

Mode = Literal["before", "after", "torn"]


class CrashingFiles:
    """Works for so many operations; the next one fails, and from then on the machine is gone.

    Parameters
    ----------
    mode
        Whether the failing operation was done (``"after"``), not done (``"before"``), or a written file was left half
        there (``"torn"``; `create_if_absent` is atomic by contract, and then not done).
    once
        Fail one operation only, and work again: a network that hiccups.
    """

    def __init__(self, files: Files, operations: int, mode: Mode = "before", once: bool = False) -> None:
        self._files = files
        self._left = operations
        self._mode = mode
        self._once = once
        self.crashed = False

    def _failing(self) -> bool:
        if self.crashed:
            return not self._once
        self._left -= 1
        self.crashed = self._left < 0
        return self.crashed

    def _crash(self) -> OSError:
        return OSError(errno.EIO, "the machine is gone")

    def list(self, directory: str) -> list[str]:
        if self._failing():
            raise self._crash()
        return self._files.list(directory)

    def read(self, path: str, offset: int = 0, length: int | None = None) -> bytes:
        if self._failing():
            raise self._crash()
        return self._files.read(path, offset, length)

    def write(self, path: str, data: bytes) -> None:
        first = not self.crashed
        if self._failing():
            if first and self._mode != "before":
                self._files.write(path, data if self._mode == "after" else data[: len(data) // 2])
            raise self._crash()
        self._files.write(path, data)

    def delete(self, path: str) -> None:
        first = not self.crashed
        if self._failing():
            if first and self._mode == "after":
                self._files.delete(path)
            raise self._crash()
        self._files.delete(path)

    def create_if_absent(self, path: str, data: bytes) -> bool:
        first = not self.crashed
        if self._failing():
            if first and self._mode == "after":
                self._files.create_if_absent(path, data)
            raise self._crash()
        return self._files.create_if_absent(path, data)


class ReadOnlyFiles:
    """A file system mounted for reading."""

    def __init__(self, files: Files) -> None:
        self.list = files.list
        self.read = files.read

    def write(self, path: str, data: bytes) -> None:
        raise OSError(errno.EROFS, "Read-only file system", path)

    def delete(self, path: str) -> None:
        raise OSError(errno.EROFS, "Read-only file system", path)

    def create_if_absent(self, path: str, data: bytes) -> bool:
        raise OSError(errno.EROFS, "Read-only file system", path)


class CountingFiles:
    """Remembers what was read."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self.reads: list[tuple[str, int]] = []
        self.list = files.list
        self.write = files.write
        self.delete = files.delete
        self.create_if_absent = files.create_if_absent

    def read(self, path: str, offset: int = 0, length: int | None = None) -> bytes:
        data = self._files.read(path, offset, length)
        self.reads.append((path, len(data)))
        return data


class InterruptedFiles:
    """Lets something happen before one of its operations.

    Parameters
    ----------
    operation
        Before which, counted from the moment that `armed` is set.
    happens
        What.
    """

    def __init__(self, files: Files, operation: int, happens: Callable[[], object]) -> None:
        self._files = files
        self._left = operation
        self._happens = happens
        self.armed = False
        self.happened = False

    def _before(self) -> Files:
        if self.armed and not self.happened:
            self._left -= 1
            if self._left < 0:
                self.happened = True
                self._happens()
        return self._files

    def list(self, directory: str) -> list[str]:
        return self._before().list(directory)

    def read(self, path: str, offset: int = 0, length: int | None = None) -> bytes:
        return self._before().read(path, offset, length)

    def write(self, path: str, data: bytes) -> None:
        self._before().write(path, data)

    def delete(self, path: str) -> None:
        self._before().delete(path)

    def create_if_absent(self, path: str, data: bytes) -> bool:
        return self._before().create_if_absent(path, data)
