"""Files in this process: a Parquet store that nothing outlives."""

from __future__ import annotations

import threading

__all__ = ["MemoryFiles"]


class MemoryFiles:
    """`es_skipping.stores.files.Files` in a dictionary.

    Examples
    --------
    >>> files = MemoryFiles()
    >>> files.create_if_absent("a/b", b"1"), files.create_if_absent("a/b", b"2")
    (True, False)
    >>> files.list(""), files.list("a"), files.read("a/b")
    (['a'], ['b'], b'1')
    """

    def __init__(self) -> None:
        self._files: dict[str, bytes] = {}
        self._lock = threading.Lock()

    def list(self, directory: str) -> list[str]:
        above = directory.rstrip("/") + "/" if directory else ""
        with self._lock:
            return sorted({path[len(above) :].partition("/")[0] for path in self._files if path.startswith(above)})

    def read(self, path: str, offset: int = 0, length: int | None = None) -> bytes:
        with self._lock:
            if path not in self._files:
                raise FileNotFoundError(path)
            data = self._files[path]
        return data[offset : None if length is None else offset + length]

    def write(self, path: str, data: bytes) -> None:
        with self._lock:
            self._files[path] = bytes(data)

    def delete(self, path: str) -> None:
        with self._lock:
            self._files.pop(path, None)

    def create_if_absent(self, path: str, data: bytes) -> bool:
        with self._lock:
            if path in self._files:
                return False
            self._files[path] = bytes(data)
            return True
