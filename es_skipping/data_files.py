"""Lists the files of a dataset through `pyarrow.fs`, with the identities that Hadoop would report."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Final, NamedTuple, overload

import numpy as np
import pyarrow as pa
import pyarrow.fs as pafs

from es_skipping.catalog import ObjectId, object_key
from es_skipping.errors import DatasetError

__all__ = ["TABLES", "FileListing", "ListedFile", "Location", "locate", "table_error"]

_S3: Final = ("s3a", "s3", "s3n")
"""Schemes that name the same objects; Spark's builds nearly always use the first."""
_GLOB: Final = re.compile(r"[*?\[{]")
TABLES: Final = {"delta": "a Delta", "iceberg": "an Iceberg"}
"""The formats of tables with a log, each with its name after "is"."""


class ListedFile(NamedTuple):
    """One file of a listing.

    Parameters
    ----------
    name
        The text that an engine opens: a local path, or a URL with the scheme that the caller gave.
    path
        The file's path on its file system.
    id
        Its identity in Hadoop's terms.
    """

    name: str
    path: str
    id: ObjectId


class _Directory(NamedTuple):
    """What is the same for all files of a directory: judged once, not for each of them."""

    is_read: bool
    may_be_tables: bool
    name: str
    path: str
    url: str


_FoundFile = tuple[_Directory, str, int, int]
"""A directory, a name in it, bytes, and nanoseconds of the modification time."""


class FileListing(Sequence[ListedFile]):
    """Files in the order of their paths. It is kept in columns, because a directory has many files.

    Attributes
    ----------
    lengths, mtimes
        Bytes and milliseconds, a number a file.
    directories
        The URL of each directory that holds a file, with the position of its first one.
    """

    def __init__(self, found: Iterable[_FoundFile]) -> None:
        columns = tuple(zip(*found, strict=True)) or ((), (), (), ())
        self._places: tuple[_Directory, ...] = columns[0]
        self._names: tuple[str, ...] = columns[1]
        self.lengths = np.array(columns[2], np.int64)
        self.mtimes = np.array(columns[3], np.int64) // 1_000_000  # Hadoop cuts what is finer
        self.directories: dict[str, int] = {}
        for at, (place, before) in enumerate(zip(self._places, (None, *self._places), strict=False)):
            if place is not before:
                self.directories.setdefault(self.directory(at), at)

    def __len__(self) -> int:
        return len(self._names)

    @overload
    def __getitem__(self, at: int) -> ListedFile: ...

    @overload
    def __getitem__(self, at: slice) -> list[ListedFile]: ...

    def __getitem__(self, at: int | slice) -> ListedFile | list[ListedFile]:
        if isinstance(at, slice):
            return [self[one] for one in range(len(self))[at]]
        place, name = self._places[at], self._names[at]
        id = ObjectId(place.url + name, int(self.lengths[at]), int(self.mtimes[at]))
        return ListedFile(place.name + name, place.path + name, id)

    def directory(self, at: int) -> str:
        """The URL of a file's directory."""
        return self._places[at].url.removesuffix("/")

    def name(self, at: int) -> str:
        """What an engine opens."""
        return self._places[at].name + self._names[at]

    def keys(self) -> bytes:
        """The keys of all files' identities, one after another."""
        columns = (self._places, self._names, self.lengths.tolist(), self.mtimes.tolist())
        rows = zip(*columns, strict=True)
        return b"".join(object_key(place.url + name, length, mtime) for place, name, length, mtime in rows)


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

    def files(self, root: str) -> FileListing:
        """All files below; hidden and empty files are left out, as Spark does.

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
            return FileListing(self._files(root.rstrip("/")))
        except (OSError, pa.ArrowException, UnicodeError) as error:  # Hadoop's names of files are all UTF-8
            raise DatasetError(f"{self.name} cannot be listed: {error}") from error

    def _files(self, root: str) -> Iterator[_FoundFile]:
        top = self.filesystem.get_file_info(self.path)
        if top.type == pafs.FileType.NotFound:
            raise DatasetError(f"{self.name} does not exist: pass the directory of a dataset")
        if top.is_file:
            if top.size and not _is_hidden(top.base_name):
                name = top.base_name
                above = (one.removesuffix(name) for one in (self.name.rstrip("/"), top.path, root))
                yield _Directory(True, False, *above), name, top.size, top.mtime_ns or 0
            return
        only_files_have_sizes = isinstance(self.filesystem, pafs.LocalFileSystem)
        known: dict[str, _Directory] = {}
        infos = self.filesystem.get_file_info(pafs.FileSelector(self.path, recursive=True))
        for info in sorted(infos, key=attrgetter("path")):
            path = info.path
            place, _, name = path.rpartition("/")
            directory = known.get(place)
            if directory is None:
                directory = known[place] = self._directory(path.removesuffix(name), root)
            if directory.may_be_tables and name.endswith(".metadata.json"):
                raise table_error(self.name, "iceberg")
            if _is_hidden(name):
                if name == "_delta_log":
                    raise table_error(self.name, "delta")
            elif directory.is_read and (size := info.size) and (only_files_have_sizes or info.is_file):
                yield directory, name, size, info.mtime_ns or 0

    def _directory(self, path: str, root: str) -> _Directory:
        parts = [part for part in path[len(self.path) :].split("/") if part]
        if "_delta_log" in parts:
            raise table_error(self.name, "delta")
        below = "/".join(["", *parts, ""])
        is_read = not any(map(_is_hidden, parts))
        return _Directory(is_read, parts == ["metadata"], self.name.rstrip("/") + below, path, root + below)


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
    if name.startswith(("_", ".")):
        return name[0] == "." or "=" not in name
    return name.endswith("._COPYING_")
