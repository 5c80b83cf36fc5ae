"""Lists the files of a dataset through `pyarrow.fs`, with the identities that Hadoop would report."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.fs as pafs

from es_skipping.catalog import ObjectId
from es_skipping.errors import DatasetError

__all__ = ["TABLES", "ListedFile", "Location", "locate", "table_error"]

_S3: Final = ("s3a", "s3", "s3n")
"""Schemes that name the same objects; Spark's builds nearly always use the first."""
_GLOB: Final = re.compile(r"[*?\[{]")
TABLES: Final = {"delta": "a Delta", "iceberg": "an Iceberg"}
"""The formats of tables with a log, each with its name after "is"."""


@dataclass(frozen=True, slots=True)
class ListedFile:
    """One file of a listing.

    Parameters
    ----------
    name
        The text that an engine opens: a local path, or a URL with the scheme that the caller gave.
    path
        The file's path on its file system.
    id
        The file's identity in Hadoop's terms.
    """

    name: str
    path: str
    id: ObjectId


@dataclass(frozen=True, slots=True)
class Location:
    """Where a dataset is: a directory, or one file.

    Parameters
    ----------
    filesystem
        Lists and opens the files.
    path
        The dataset's path on that file system.
    name
        The dataset's path as an engine opens it.
    roots
        The dataset's path as Hadoop may write it, the likeliest spelling first.
    """

    filesystem: pafs.FileSystem
    path: str
    name: str
    roots: tuple[str, ...]

    def files(self, root: str) -> list[ListedFile]:
        """All files below, in the order of their paths; hidden and empty files are left out, as Spark does.

        Parameters
        ----------
        root
            The one of `roots` that the files' identities begin with.

        Raises
        ------
        DatasetError
            There is nothing at the path, it cannot be listed, or it holds a Delta or Iceberg table.
        """
        try:
            return sorted(self._files(root.rstrip("/")), key=lambda file: file.path)
        except (OSError, pa.ArrowException) as error:
            raise DatasetError(f"{self.name} cannot be listed: {error}") from error

    def _files(self, root: str) -> Iterator[ListedFile]:
        engine_root = self.name.rstrip("/")
        top = self.filesystem.get_file_info(self.path)
        if top.type == pafs.FileType.NotFound:
            raise DatasetError(f"{self.name} does not exist: pass the directory of a dataset")
        selector = pafs.FileSelector(self.path, recursive=True)
        read: dict[str, bool] = {}  # a directory is judged once, not for each of its files
        for info in [top] if top.type == pafs.FileType.File else self.filesystem.get_file_info(selector):
            below = info.path[len(self.path) :].strip("/")
            directory, _, name = below.rpartition("/")
            if directory not in read:
                read[directory] = self._is_read(directory)
            if name == "_delta_log":
                raise table_error(self.name, "delta")
            if directory == "metadata" and name.endswith(".metadata.json"):
                raise table_error(self.name, "iceberg")
            if info.size and info.type == pafs.FileType.File and read[directory] and not _is_hidden(name):
                inside = "/".join(["", *filter(None, below.split("/"))]) if "//" in below else below and "/" + below
                # Hadoop cuts what is finer than a millisecond.
                id = ObjectId(root + inside, info.size, (info.mtime_ns or 0) // 1_000_000)
                yield ListedFile(engine_root + inside, info.path, id)

    def _is_read(self, directory: str) -> bool:
        """Whether Spark reads the files of a directory below this place."""
        parts = directory.split("/")
        if "_delta_log" in parts:
            raise table_error(self.name, "delta")
        return not any(map(_is_hidden, parts))


def locate(path: str | os.PathLike[str], filesystem: pafs.FileSystem | None = None) -> Location:
    """Find the file system of a path or URL.

    Parameters
    ----------
    path
        A local path, or a URL that `pyarrow.fs` supports; ``s3a`` and ``s3n`` are ``s3``. What follows ``?`` in a URL
        goes to `pyarrow.fs.FileSystem.from_uri`: ``s3://lake/events?endpoint_override=minio:9000``.
    filesystem
        The file system, if its address or its credentials are not the default ones.

    Raises
    ------
    DatasetError
        The path is a pattern, or no file system serves it.

    Examples
    --------
    >>> locate("file:///lake/events/").roots
    ('file:/lake/events',)
    """
    text = os.fspath(path)
    scheme, colon, rest = text.partition(":")
    local = not colon or "/" in scheme or scheme == "file"
    if _GLOB.search(text if local else text.partition("?")[0]) and not (local and os.path.exists(text)):
        raise DatasetError(f"{text} is a pattern: pass the directory of the dataset")
    if local:
        plain = os.path.abspath("/" + rest.lstrip("/") if scheme == "file" and colon else text)
        return Location(filesystem or pafs.LocalFileSystem(), plain, plain, ("file:" + plain,))
    place, question, query = rest.partition("?")
    place = place.rstrip("/")
    inside = place.strip("/")
    if filesystem is None:
        bucket, slash, key = place.removeprefix("//").partition("/")
        uri = f"{'s3' if scheme in _S3 else scheme}://{bucket}{slash}{question}{query}"
        try:
            filesystem, base = pafs.FileSystem.from_uri(uri)
        except (OSError, ValueError, ImportError, pa.ArrowException) as error:
            raise DatasetError(f"{text} cannot be opened: {error}") from error
        inside = f"{base.rstrip('/')}/{key}".rstrip("/")
    roots = dict.fromkeys(f"{one}:{place}" for one in ((scheme, *_S3) if scheme in _S3 else (scheme,)))
    return Location(filesystem, inside, f"{scheme}:{place}", tuple(roots))


def table_error(place: str, format: str) -> DatasetError:
    """The error for a table's directory: only the table's log says which of the files are part of it."""
    return DatasetError(
        f"{place} is {TABLES[format]} table, and its directory also holds files that are not part of the table now: "
        "index it and read it with Spark"
    )


def _is_hidden(name: str) -> bool:
    """Whether Spark passes over a file or directory of this name."""
    return (name.startswith("_") and "=" not in name) or name.startswith(".") or name.endswith("._COPYING_")
