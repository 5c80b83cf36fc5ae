"""The Parquet store's files on Hadoop's file systems, which have the session's credentials."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from es_skipping.errors import SettingError
from es_skipping.spark.failures import error_text, reason
from es_skipping.stores.parquet.files import arrow_files, create_by_claim

if TYPE_CHECKING:
    from es_skipping.stores.parquet.files import Files

__all__ = ["HadoopFiles", "files_of"]

_CONDITIONAL = ("hdfs", "viewfs", "wasb", "wasbs", "abfs", "abfss", "gs", "file")
"""Schemes whose ``create(overwrite=false)`` fails where the file exists, atomically. S3's does not."""


@functools.lru_cache(maxsize=64)
def files_of(url: str) -> Files:
    """The files below a URL: local ones directly, all others through the file system that Spark uses.

    Parameters
    ----------
    url
        Of the store; a path or any URL that Spark can write.

    Raises
    ------
    SettingError
        No file system serves the URL, or there is no running Spark to ask.
    """
    scheme, colon, _ = url.partition(":")
    if not colon or "/" in scheme or scheme == "file":
        return arrow_files(url)
    from pyspark import SparkContext

    context = SparkContext._active_spark_context
    if context is None:
        raise SettingError(f"spark.es_skipping.store.url is {url!r}: no Spark session runs here to reach it through")
    return HadoopFiles(context, url)


class HadoopFiles:
    """Files below one directory of a Hadoop ``FileSystem``.

    Parameters
    ----------
    context
        The Spark context, whose Hadoop configuration holds the credentials.
    root
        URL of the directory.
    """

    def __init__(self, context: Any, root: str) -> None:
        self._jvm = context._jvm
        self._gateway = context._gateway
        self._root = root.rstrip("/")
        path = self._jvm.org.apache.hadoop.fs.Path(self._root)
        try:
            self._system = path.getFileSystem(context._jsc.hadoopConfiguration())
        except Exception as error:
            raise SettingError(
                f"spark.es_skipping.store.url is {root!r}, which no file system of this session serves: "
                f"{reason(error_text(error))}. Elasticsearch is written http(s)://host:port; other schemes need the "
                "jar of their file system on Spark's class path"
            ) from error
        self._scheme = str(self._system.getUri().getScheme()).lower()

    def __repr__(self) -> str:
        return f"HadoopFiles({self._root!r})"

    def _path(self, path: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(f"{self._root}/{path}" if path else self._root)

    def list(self, directory: str) -> list[str]:
        with _AsOsError(directory):
            try:
                found = self._system.listStatus(self._path(directory))
            except Exception as error:
                if _is(error, "FileNotFoundException"):
                    return []
                raise
            return sorted(str(status.getPath().getName()) for status in found)

    def read(self, path: str, offset: int = 0, length: int | None = None) -> bytes:
        with _AsOsError(path):
            stream = self._system.open(self._path(path))
            try:
                if offset:
                    stream.seek(offset)
                io = self._jvm.org.apache.commons.io.IOUtils
                if length is None:
                    return bytes(io.toByteArray(stream))
                size = int(self._system.getFileStatus(self._path(path)).getLen())
                wanted = max(0, min(length, size - offset))
                return bytes(io.toByteArray(stream, wanted)) if wanted else b""
            finally:
                stream.close()

    def write(self, path: str, data: bytes) -> None:
        with _AsOsError(path):
            self._put(path, data, overwrite=True)

    def delete(self, path: str) -> None:
        with _AsOsError(path):
            self._system.delete(self._path(path), False)

    def create_if_absent(self, path: str, data: bytes) -> bool:
        if self._scheme not in _CONDITIONAL:
            return create_by_claim(self, path, data)
        with _AsOsError(path):
            if self._system.exists(self._path(path)):
                return False
            try:
                self._put(path, data, overwrite=False)
            except Exception as error:
                if _is(error, "FileAlreadyExistsException") or "already exists" in str(error):
                    return False
                raise
            return True

    def _put(self, path: str, data: bytes, *, overwrite: bool) -> None:
        stream = self._system.create(self._path(path), overwrite)
        try:
            stream.write(data)
        finally:
            stream.close()


class _AsOsError:
    """Java's exceptions as `OSError`, a missing file as `FileNotFoundError`."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if error is None or isinstance(error, OSError) or not isinstance(error, Exception):
            return
        text = f"{self._path}: {str(error).splitlines()[0] if str(error) else type(error).__name__}"
        if _is(error, "FileNotFoundException"):
            raise FileNotFoundError(text) from error
        raise OSError(text) from error


def _is(error: BaseException, name: str) -> bool:
    java = getattr(error, "java_exception", None)
    while java is not None:
        if java.getClass().getSimpleName() == name:
            return True
        java = java.getCause()
    return False
