"""Where the files of a dataset lie: on the local disk, on HDFS, on S3."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

import pyarrow.fs
from pyspark.sql import SparkSession

__all__ = ["Folder", "HadoopFolder", "LocalFolder", "S3Folder"]


class Folder(Protocol):
    """Files below one directory, by their names relative to it.

    Attributes
    ----------
    url
        As Spark takes it.
    """

    url: str

    def names(self, suffix: str) -> list[str]:
        """Those with a suffix, in their order."""

    def read(self, name: str) -> bytes:
        """All of a file."""

    def write(self, name: str, data: bytes, mtime: int) -> None:
        """Put a file there at once, over another; with a modification time (ms) where the file system takes one."""

    def delete(self, name: str) -> None:
        """Remove a file."""

    def rename(self, name: str, to: str) -> None:
        """Move a file; nothing is there yet."""

    def forget_checksums(self) -> None:
        """Remove what Hadoop keeps beside local files: it does not follow other writers."""


class LocalFolder:
    """On the local disk."""

    def __init__(self, path: Path) -> None:
        self._path, self.url = path, str(path)
        path.mkdir()

    def names(self, suffix: str) -> list[str]:
        return sorted(path.relative_to(self._path).as_posix() for path in self._path.rglob(f"*{suffix}"))

    def read(self, name: str) -> bytes:
        return (self._path / name).read_bytes()

    def write(self, name: str, data: bytes, mtime: int) -> None:
        """Written as Spark's writers do, beside the path and then moved there."""
        path = self._path / name
        path.parent.mkdir(exist_ok=True)
        beside = path.with_name(f"_{path.name}.tmp")
        beside.write_bytes(data)
        os.utime(beside, ns=(mtime * 1_000_000, mtime * 1_000_000))
        beside.rename(path)

    def delete(self, name: str) -> None:
        (self._path / name).unlink()

    def rename(self, name: str, to: str) -> None:
        (self._path / name).rename(self._path / to)

    def forget_checksums(self) -> None:
        for path in self._path.rglob("*.crc"):
            path.unlink(missing_ok=True)


class HadoopFolder:
    """On HDFS, through the client of a Spark's JVM."""

    def __init__(self, spark: SparkSession, url: str) -> None:
        self.url = url.rstrip("/")
        self._jvm: Any = spark._jvm
        root = self._jvm.org.apache.hadoop.fs.Path(self.url)
        self._system = root.getFileSystem(spark._jsparkSession.sessionState().newHadoopConf())
        self._system.mkdirs(root)

    def _path(self, name: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(f"{self.url}/{name}")

    def names(self, suffix: str) -> list[str]:
        found = []
        listed = self._system.listFiles(self._jvm.org.apache.hadoop.fs.Path(self.url), True)
        while listed.hasNext():
            path = str(listed.next().getPath().toString()).removeprefix(f"{self.url}/")
            if path.endswith(suffix):
                found.append(path)
        return sorted(found)

    def read(self, name: str) -> bytes:
        stream = self._system.open(self._path(name))
        try:
            return bytes(self._jvm.org.apache.commons.io.IOUtils.toByteArray(stream))
        finally:
            stream.close()

    def write(self, name: str, data: bytes, mtime: int) -> None:
        path, beside = self._path(name), self._path(f"_{name.rpartition('/')[2]}.tmp")
        stream = self._system.create(beside, True)
        stream.write(data)
        stream.close()
        self._system.setTimes(beside, mtime, -1)
        self._system.mkdirs(path.getParent())
        self._system.delete(path, False)
        assert self._system.rename(beside, path)

    def delete(self, name: str) -> None:
        assert self._system.delete(self._path(name), False)

    def rename(self, name: str, to: str) -> None:
        assert self._system.rename(self._path(name), self._path(to))

    def forget_checksums(self) -> None:
        pass


class S3Folder:
    """On S3, where times are the server's, in whole seconds, and a move is a copy."""

    def __init__(self, files: pyarrow.fs.S3FileSystem, url: str) -> None:
        self.url = url.rstrip("/")
        parts = urlsplit(self.url)
        self._files, self._root = files, f"{parts.netloc}{parts.path}"

    def _path(self, name: str) -> str:
        return f"{self._root}/{name}"

    def names(self, suffix: str) -> list[str]:
        selector = pyarrow.fs.FileSelector(self._root, recursive=True, allow_not_found=True)
        listed = (info for info in self._files.get_file_info(selector) if info.type is pyarrow.fs.FileType.File)
        return sorted(info.path.removeprefix(f"{self._root}/") for info in listed if info.path.endswith(suffix))

    def read(self, name: str) -> bytes:
        with self._files.open_input_file(self._path(name)) as file:
            return bytes(file.read())

    def write(self, name: str, data: bytes, mtime: int) -> None:
        del mtime
        with self._files.open_output_stream(self._path(name)) as file:
            file.write(data)

    def delete(self, name: str) -> None:
        self._files.delete_file(self._path(name))

    def rename(self, name: str, to: str) -> None:
        self._files.move(self._path(name), self._path(to))

    def forget_checksums(self) -> None:
        pass
