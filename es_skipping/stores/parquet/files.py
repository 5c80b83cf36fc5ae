"""A Parquet store's file access: five operations, implemented on `pyarrow.fs`.

`Files.create_if_absent` is the essential one: it publishes a manifest, and only one of two writers succeeds.
"""

from __future__ import annotations

import contextlib
import os
import uuid
from pathlib import Path

import pyarrow as pa
import pyarrow.fs as pafs

from es_skipping.errors import SettingError
from es_skipping.stores.files import Files
from es_skipping.stores.parquet.claims import create_by_claim

__all__ = ["ArrowFiles", "LocalFiles", "arrow_files", "local_files"]


class LocalFiles:
    """Files on a local (or mounted) disk, durable when a call returns.

    Parameters
    ----------
    root
        The directory; the first write creates it.
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
        # Write aside and link into place: a hard link fails if the name is taken, and never shows half a file.
        aside = f"{path}.{uuid.uuid4().hex}.tmp"
        self.write(aside, data)
        try:
            os.link(self._root / aside, target)
        except FileExistsError:
            return False
        except OSError:  # a file system without hard links: use exclusive creation; the checksum reveals a torn file
            try:
                self.write(path, data)
            except FileExistsError:
                return False
        finally:
            with contextlib.suppress(OSError):
                (self._root / aside).unlink()
        _sync_directory(target.parent)
        return True

    def replace(self, path: str, data: bytes) -> None:
        aside = f"{path}.{uuid.uuid4().hex}.tmp"
        try:
            self.write(aside, data)
            os.replace(self._root / aside, self._root / path)
        finally:
            self.delete(aside)
        _sync_directory((self._root / path).parent)


def _sync_directory(directory: Path) -> None:
    """Make new names in a directory durable, if the platform supports it."""
    with contextlib.suppress(OSError):
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


class ArrowFiles:
    """Files on any `pyarrow.fs.FileSystem`, such as S3 or GCS.

    ``pyarrow.fs`` has no conditional write, so `create_if_absent` is
    `es_skipping.stores.parquet.claims.create_by_claim`.
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


def local_files(url: str) -> LocalFiles | None:
    """Files at a path or at a ``file:`` URL; None for another URL."""
    scheme, colon, rest = url.partition(":")
    if not colon or "/" in scheme:
        return LocalFiles(url)
    # Hadoop writes both file:/a b and file:///a%20b; take the name as written.
    return LocalFiles("/" + rest.lstrip("/")) if scheme == "file" else None


def arrow_files(url: str) -> Files:
    """Files at a path, or at a URL that `pyarrow.fs` supports.

    Raises
    ------
    SettingError
        No file system of pyarrow serves the URL.

    Examples
    --------
    >>> arrow_files("file:///lake/metadata")
    LocalFiles('/lake/metadata')
    """
    local = local_files(url)
    if local is not None:
        return local
    scheme, _, rest = url.partition(":")
    try:
        filesystem, root = pafs.FileSystem.from_uri(("s3:" + rest) if scheme in ("s3a", "s3n") else url)
    except (pa.ArrowException, ValueError, OSError, ImportError) as error:
        raise SettingError(f"spark.es_skipping.store.url is {url!r}, which pyarrow cannot open: {error}") from error
    return ArrowFiles(filesystem, root)
