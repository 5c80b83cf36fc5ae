"""How a Parquet store reads and writes: five operations, and an implementation on `pyarrow.fs`.

Everything hangs on `Files.create_if_absent`: a manifest is published by it, and of two writers only one succeeds.
"""

from __future__ import annotations

import contextlib
import os
import time
import uuid
from pathlib import Path
from typing import Final, Protocol, runtime_checkable

import pyarrow as pa
import pyarrow.fs as pafs

from es_skipping.errors import SettingError

__all__ = ["ArrowFiles", "Files", "LocalFiles", "arrow_files", "create_by_claim"]

_CLAIM_STALE: Final = 600.0
_CLAIM_VALID: Final = 300.0


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
        """Delete a file; one that is not there is no error."""

    def create_if_absent(self, path: str, data: bytes) -> bool:
        """Write a file whole unless it is there: True if this call made it, False if it was there.

        Must be atomic among all writers. Where the file system cannot promise that, raise `OSError` that says so.
        """


class LocalFiles:
    """Files on a local (or mounted) disk, durable when a call returns.

    Parameters
    ----------
    root
        The directory; made when something is first written.
    """

    def __init__(self, root: str | os.PathLike[str]) -> None:
        self._root = Path(root)

    def __repr__(self) -> str:
        return f"LocalFiles({str(self._root)!r})"

    def list(self, directory: str) -> list[str]:
        try:
            return sorted(os.listdir(self._root / directory))
        except (FileNotFoundError, NotADirectoryError):
            return []

    def read(self, path: str, offset: int = 0, length: int | None = None) -> bytes:
        with open(self._root / path, "rb") as file:
            file.seek(offset)
            return file.read(-1 if length is None else length)

    def write(self, path: str, data: bytes) -> None:
        target = self._root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        with open(target, "xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        _sync_directory(target.parent)

    def delete(self, path: str) -> None:
        (self._root / path).unlink(missing_ok=True)

    def create_if_absent(self, path: str, data: bytes) -> bool:
        target = self._root / path
        if target.exists():
            return False
        # Written aside and linked into place: a hard link fails where the name is taken, and never shows half a file.
        aside = f"{path}.{uuid.uuid4().hex}.tmp"
        self.write(aside, data)
        try:
            os.link(self._root / aside, target)
        except FileExistsError:
            return False
        except OSError:  # a file system without hard links: exclusive creation, and the checksum tells a torn file
            try:
                self.write(path, data)
            except FileExistsError:
                return False
        finally:
            with contextlib.suppress(OSError):
                (self._root / aside).unlink()
        _sync_directory(target.parent)
        return True


def _sync_directory(directory: Path) -> None:
    """Make new names in a directory durable, where the platform can."""
    with contextlib.suppress(OSError):
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


class ArrowFiles:
    """Files on any `pyarrow.fs.FileSystem`, such as S3 or GCS.

    ``pyarrow.fs`` has no conditional write, so `create_if_absent` is `create_by_claim`.
    """

    def __init__(self, filesystem: pafs.FileSystem, root: str) -> None:
        self._filesystem = filesystem
        self._root = root.rstrip("/")

    def __repr__(self) -> str:
        return f"ArrowFiles({self._filesystem.type_name!r}, {self._root!r})"

    def _path(self, path: str) -> str:
        return f"{self._root}/{path}" if path else self._root

    def list(self, directory: str) -> list[str]:
        selector = pafs.FileSelector(self._path(directory), allow_not_found=True)
        return sorted(info.base_name for info in self._filesystem.get_file_info(selector))

    def read(self, path: str, offset: int = 0, length: int | None = None) -> bytes:
        with self._filesystem.open_input_file(self._path(path)) as file:
            size = file.size()
            wanted = max(0, size - offset) if length is None else min(length, max(0, size - offset))
            data: bytes = file.read_at(wanted, offset) if wanted else b""
            return data

    def write(self, path: str, data: bytes) -> None:
        target = self._path(path)
        self._filesystem.create_dir(target.rpartition("/")[0], recursive=True)
        with self._filesystem.open_output_stream(target) as stream:
            stream.write(data)

    def delete(self, path: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            self._filesystem.delete_file(self._path(path))

    def create_if_absent(self, path: str, data: bytes) -> bool:
        return create_by_claim(self, path, data)


def create_by_claim(files: Files, path: str, data: bytes) -> bool:
    """`Files.create_if_absent` for file systems without a conditional write.

    Each writer writes a claim file of its own and lists the directory; who sees another's claim, or then the file
    itself, gives way. Both may give way, never do both go on, as long as a listing shows what is there from its
    beginning to its end (S3, GCS, Azure and HDFS promise that) and clocks differ by less than five minutes.
    """
    directory, _, name = path.rpartition("/")
    started = time.time()
    mine = f"{name}.{int(started * 1000)}.{uuid.uuid4().hex}.claim"
    files.write(f"{directory}/{mine}", b"")
    try:
        for other in files.list(directory):
            if other == name:
                return False
            if other.startswith(f"{name}.") and other.endswith(".claim") and other != mine:
                claimed = int(other[len(name) + 1 :].partition(".")[0]) / 1000
                if started - claimed < _CLAIM_STALE:
                    return False
        # A listing is no instant: while its pages are read, another writer may make the file on a page that has gone by
        # and take its claim from one still to come. Claims go after their file, so that a second look finds the file.
        if _exists(files, path):
            return False
        if time.time() - started > _CLAIM_VALID:
            return False
        files.write(path, data)
        return True
    finally:
        with contextlib.suppress(OSError):
            files.delete(f"{directory}/{mine}")


def _exists(files: Files, path: str) -> bool:
    try:
        files.read(path, 0, 0)
    except FileNotFoundError:
        return False
    return True


def arrow_files(url: str) -> Files:
    """Files at a URL that `pyarrow.fs` knows, or at a path.

    Raises
    ------
    SettingError
        No file system of pyarrow serves the URL.

    Examples
    --------
    >>> arrow_files("file:///lake/metadata")
    LocalFiles('/lake/metadata')
    """
    scheme, colon, rest = url.partition(":")
    if not colon or "/" in scheme:
        return LocalFiles(url)
    if scheme == "file":
        # Hadoop writes file:/a b as well as file:///a%20b; a name is taken as it is written.
        return LocalFiles("/" + rest.lstrip("/"))
    try:
        filesystem, root = pafs.FileSystem.from_uri(("s3:" + rest) if scheme in ("s3a", "s3n") else url)
    except (pa.ArrowException, ValueError, OSError, ImportError) as error:
        raise SettingError(f"spark.es_skipping.store.url is {url!r}, which pyarrow cannot open: {error}") from error
    return ArrowFiles(filesystem, root)
