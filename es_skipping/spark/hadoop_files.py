"""The Parquet store's files on Hadoop's file systems, with the session's credentials."""

from __future__ import annotations

import contextlib
import functools
import logging
import uuid
from typing import TYPE_CHECKING, Any, Final, Literal

from es_skipping.errors import SettingError
from es_skipping.spark.failures import error_text, reason
from es_skipping.spark.hadoop_errors import EXISTS, AsOsError, is_caused_by
from es_skipping.stores.parquet.claims import create_by_claim
from es_skipping.stores.parquet.files import local_files

if TYPE_CHECKING:
    from es_skipping.stores.files import ReplaceableFiles

__all__ = ["HadoopFiles", "files_of"]

_log = logging.getLogger(__name__)

_RENAMING: Final = ("hdfs",)
"""Schemes whose atomic ``rename`` fails if the target exists. Readers see only finished files."""

_EXCLUSIVE: Final = ("wasb", "wasbs", "abfs", "abfss", "gs", "file")
"""Schemes whose atomic ``create(overwrite=false)`` fails if the file exists."""

_CONDITIONAL_OPTION: Final = "fs.option.create.conditional.overwrite"
"""An option of Hadoop's S3 client since 3.4.2: at closing, the server refuses a file that exists."""


@functools.lru_cache(maxsize=64)
def files_of(url: str) -> ReplaceableFiles:
    """The files below a URL: local ones directly, all others through Spark's file system.

    Parameters
    ----------
    url
        The store's URL: a path or any URL that Spark can write.

    Raises
    ------
    SettingError
        No file system serves the URL, or Spark does not run.
    """
    local = local_files(url)
    if local is not None:
        return local
    from pyspark import SparkContext

    context = SparkContext._active_spark_context
    if context is None:
        raise SettingError(f"spark.es_skipping.store.url is {url!r}, which needs a running Spark session")
    return HadoopFiles(context, url)


class HadoopFiles:
    """Files below one directory of a Hadoop ``FileSystem``.

    Parameters
    ----------
    context
        The Spark context, whose Hadoop configuration holds the credentials.
    root
        The directory's URL.
    """

    def __init__(self, context: Any, root: str) -> None:
        self._jvm = context._jvm
        self._gateway = context._gateway
        self._root = root.rstrip("/")
        # To find a class by its name takes longer than to read a small local file.
        self._new_path = self._jvm.org.apache.hadoop.fs.Path
        self._io = self._jvm.org.apache.commons.io.IOUtils
        path = self._new_path(self._root)
        try:
            self._system = path.getFileSystem(context._jsc.hadoopConfiguration())
        except Exception as error:
            raise SettingError(
                f"spark.es_skipping.store.url is {root!r}, which no file system of this session serves: "
                f"{reason(error_text(error))}. For Elasticsearch use http(s)://host:port; for another scheme put the "
                "jar of its file system on Spark's class path"
            ) from error
        self._scheme = str(self._system.getUri().getScheme()).lower()

    def __repr__(self) -> str:
        return f"HadoopFiles({self._root!r})"

    def _path(self, path: str) -> Any:
        return self._new_path(f"{self._root}/{path}" if path else self._root)

    def list(self, directory: str) -> list[str]:
        with AsOsError(directory):
            try:
                found = self._system.listStatus(self._path(directory))
            except Exception as error:
                if is_caused_by(error, "FileNotFoundException"):
                    return []
                raise
            return sorted(str(status.getPath().getName()) for status in found)

    def read(self, path: str, offset: int = 0, length: int | None = None) -> bytes:
        with AsOsError(path):
            stream = self._system.open(self._path(path))
            try:
                if offset:
                    stream.seek(offset)
                if length is None:
                    return bytes(self._io.toByteArray(stream))
                size = int(self._system.getFileStatus(self._path(path)).getLen())
                wanted = max(0, min(length, size - offset))
                return bytes(self._io.toByteArray(stream, wanted)) if wanted else b""
            finally:
                stream.close()

    def write(self, path: str, data: bytes) -> None:
        with AsOsError(path):
            self._put(path, data, overwrite=True)

    def delete(self, path: str) -> None:
        with AsOsError(path):
            self._system.delete(self._path(path), False)

    def create_if_absent(self, path: str, data: bytes) -> bool:
        way = self._way
        if way == "claim":
            return create_by_claim(self, path, data)
        if way == "conditional":
            return create_by_claim(self, path, data, conditional=self._put_conditionally)
        with AsOsError(path):
            if self._system.exists(self._path(path)):
                return False
            return self._put_aside(path, data) if way == "rename" else self._put_exclusively(path, data)

    def replace(self, path: str, data: bytes) -> None:
        """Write a file in place of another.

        HDFS renames a finished file over the old one. An object store shows the new file once it is whole. Other file
        systems may show an unfinished file for a moment.
        """
        with AsOsError(path):
            if self._own_scheme in _RENAMING:
                self._put_over(path, data)
            else:
                self._put(path, data, overwrite=True)

    @functools.cached_property
    def _own_scheme(self) -> str:
        """The scheme of the file system that holds the files."""
        if self._scheme != "viewfs":
            return self._scheme
        with AsOsError(self._root):  # a view over other file systems
            self._system.mkdirs(self._path(""))
            return str(self._system.resolvePath(self._path("")).toUri().getScheme()).lower()

    @functools.cached_property
    def _way(self) -> Literal["rename", "exclusive", "conditional", "claim"]:
        """How this file system creates a file if absent."""
        scheme = self._own_scheme
        if scheme in _RENAMING:
            return "rename"
        if scheme in _EXCLUSIVE:
            return "exclusive"
        return "conditional" if self._refuses_what_exists() else "claim"

    def _refuses_what_exists(self) -> bool:
        """Whether client and server support conditional writes: some servers ignore the condition."""
        probe = f".conditional-{uuid.uuid4().hex}.probe"
        try:
            if not self._system.hasPathCapability(self._path(probe), _CONDITIONAL_OPTION):
                return False
            heeded = self._put_conditionally(probe, b"1") and not self._put_conditionally(probe, b"2")
        except Exception as error:
            _log.info("%s has no conditional writes: %s", self._root, error)
            heeded = False
        with contextlib.suppress(OSError):
            self.delete(probe)
        return heeded

    def _put_aside(self, path: str, data: bytes) -> bool:
        """Write another file and rename it, so that no reader sees half a file even if this process dies."""
        aside = f"{path}.{uuid.uuid4().hex}.tmp"
        try:
            self._put(aside, data, overwrite=False)
            if self._system.rename(self._path(aside), self._path(path)):
                return True
            if self._system.exists(self._path(path)):
                return False
            raise OSError(f"{path}: the file system did not rename {aside} and gave no reason")
        finally:
            with contextlib.suppress(Exception):
                self._system.delete(self._path(aside), False)

    def _put_over(self, path: str, data: bytes) -> None:
        """Write another file and rename it over this one: `FileSystem.rename` refuses that, `FileContext` does it."""
        fs = self._jvm.org.apache.hadoop.fs
        aside = f"{path}.{uuid.uuid4().hex}.tmp"
        try:
            self._put(aside, data, overwrite=False)
            options = self._gateway.new_array(fs.Options.Rename, 1)
            options[0] = fs.Options.Rename.OVERWRITE
            context = fs.FileContext.getFileContext(self._system.getUri(), self._system.getConf())
            context.rename(self._path(aside), self._path(path), options)
        finally:
            with contextlib.suppress(Exception):
                self._system.delete(self._path(aside), False)

    def _put_exclusively(self, path: str, data: bytes) -> bool:
        try:
            self._put(path, data, overwrite=False)
        except Exception as error:
            if is_caused_by(error, *EXISTS) or "already exists" in str(error):
                return False
            raise
        return True

    def _put_conditionally(self, path: str, data: bytes) -> bool:
        with AsOsError(path):
            stream = (
                self._system.createFile(self._path(path))
                .create()
                .overwrite(True)  # skips the client's own check, which two writers can pass at the same time
                .recursive()
                .must(_CONDITIONAL_OPTION, "true")
                .build()
            )
            try:
                stream.write(data)
                stream.close()
            except Exception as error:
                if is_caused_by(error, *EXISTS, "RemoteFileChangedException") or "Status Code: 409" in str(error):
                    return False
                raise
            return True

    def _put(self, path: str, data: bytes, *, overwrite: bool) -> None:
        stream = self._system.create(self._path(path), overwrite)
        try:
            stream.write(data)
        finally:
            stream.close()
