"""Lists the files of a dataset through `pyarrow.fs`, with the identities that Hadoop would report."""

from __future__ import annotations

import datetime
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.fs as pafs

from es_skipping.catalog import ObjectId
from es_skipping.errors import DatasetError

__all__ = ["ListedFile", "Location", "locate", "partition_columns", "partition_kinds", "unclear_partitions"]

_S3: Final = ("s3a", "s3", "s3n")
"""Schemes that name the same objects; Spark's builds nearly always use the first."""
_INT: Final = re.compile(r"-?(0|[1-9]\d{0,8})", re.ASCII)
"""A number that every engine takes for a 32-bit one."""
_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_TEXT: Final = re.compile(r"[A-Za-z][A-Za-z ]*")
_SPECIAL: Final = re.compile(
    r"t|f|true|false|y|n|yes|no|on|off|nan|inf|infinity|null|none|na|epoch|now|today|tomorrow|yesterday", re.IGNORECASE
)
"""Words that an engine may take for something else than text."""
_GLOB: Final = re.compile(r"[*?\[{]")


@dataclass(frozen=True, slots=True)
class ListedFile:
    """One file of a listing.

    Parameters
    ----------
    name
        The text that an engine opens: a local path, or a URL with the scheme that the caller gave.
    id
        The file's identity in Hadoop's terms.
    """

    name: str
    id: ObjectId


@dataclass(frozen=True)
class Location:
    """Where a dataset is.

    Parameters
    ----------
    filesystem
        Lists and opens the files.
    path
        The dataset's path on that file system, without a trailing slash.
    prefix
        Stands before a path of the file system in what an engine opens; empty for local files.
    roots
        The dataset's path as Hadoop may write it, the likeliest spelling first.
    """

    filesystem: pafs.FileSystem
    path: str
    prefix: str
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
            There is nothing at the path, it cannot be listed, or it is a Delta or Iceberg table.
        """
        try:
            return sorted(self._files(root), key=lambda file: file.name)
        except (OSError, pa.ArrowException) as error:
            raise DatasetError(f"{self.prefix}{self.path} cannot be listed: {error}") from error

    def _files(self, root: str) -> Iterator[ListedFile]:
        top = self.filesystem.get_file_info(self.path)
        if top.type == pafs.FileType.NotFound:
            raise DatasetError(f"there is nothing at {self.prefix}{self.path}: pass the directory of a dataset")
        if top.type == pafs.FileType.File:
            yield self._listed(top, root, "")
            return
        start = len(self.path.rstrip("/")) + 1
        for info in self.filesystem.get_file_info(pafs.FileSelector(self.path, recursive=True)):
            below = info.path[start:]
            if below.startswith("_delta_log/") or (below.startswith("metadata/") and below.endswith(".metadata.json")):
                kind = "a Delta" if below.startswith("_") else "an Iceberg"
                raise DatasetError(
                    f"{self.prefix}{self.path} is {kind} table, and its directory also holds files that are not part "
                    "of the table now: read it with Spark, which skips by the same indexes"
                )
            if info.type == pafs.FileType.File and info.size and not any(map(_is_hidden, below.split("/"))):
                yield self._listed(info, root, "/" + below)

    def _listed(self, info: pafs.FileInfo, root: str, below: str) -> ListedFile:
        # Hadoop cuts what is finer than a millisecond.
        id = ObjectId(root.rstrip("/") + below, info.size, (info.mtime_ns or 0) // 1_000_000)
        return ListedFile(self.prefix + info.path, id)


def locate(path: str | os.PathLike[str]) -> Location:
    """Find the file system of a path or URL.

    Parameters
    ----------
    path
        A local path, or a URL that `pyarrow.fs` supports; ``s3a`` and ``s3n`` are ``s3``. What follows ``?`` in a URL
        goes to `pyarrow.fs.FileSystem.from_uri`: ``s3://lake/events?endpoint_override=minio:9000``.

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
        raise DatasetError(f"{text} is a pattern: pass the directory of the dataset; the filter chooses the files")
    if local:
        plain = os.path.abspath("/" + rest.lstrip("/") if scheme == "file" and colon else text)
        return Location(pafs.LocalFileSystem(), plain, "", ("file:" + plain,))
    place, question, query = rest.partition("?")
    place = place.rstrip("/")
    bucket, slash, key = place.removeprefix("//").partition("/")
    uri = f"{'s3' if scheme in _S3 else scheme}://{bucket}{slash}{question}{query}"
    try:
        filesystem, base = pafs.FileSystem.from_uri(uri)
    except (OSError, ValueError, ImportError, pa.ArrowException) as error:
        raise DatasetError(f"{text} cannot be opened: {error}") from error
    inner = f"{base.rstrip('/')}/{key}" if scheme in _S3 or base.strip("/") == bucket else f"/{key}"
    schemes = (scheme, *_S3) if scheme in _S3 else (scheme,)
    prefix = f"{scheme}://" if inner.startswith(bucket) else f"{scheme}://{bucket}"
    roots = dict.fromkeys(f"{one}:{place}" for one in schemes)
    return Location(filesystem, inner.rstrip("/"), prefix, tuple(roots))


def partition_columns(file: str) -> frozenset[str]:
    """The names before ``=`` in the directories of a path, in lower case: engines read them as columns.

    Examples
    --------
    >>> sorted(partition_columns("file:/lake/events/Day=2026-11-20/city=Oslo/part-0.parquet"))
    ['city', 'day']
    """
    directories = file.split("/")[:-1]
    return frozenset(unquote(name.partition("=")[0]).lower() for name in directories if "=" in name)


def partition_kinds(directory: str) -> frozenset[tuple[str, str]]:
    """The kinds of a directory's partition values, by column, and which columns there are.

    Engines take a partition column for a number only if all values are numbers, and so for dates. Whatever they may
    take in different ways is ``other``, such as the name of the null partition and numbers of more than nine digits.

    Examples
    --------
    >>> sorted(partition_kinds("file:/lake/day=2026-11-20/k=x"))
    [('', 'day,k'), ('day', 'date'), ('k', 'text')]
    """
    pairs = [unquote(name).partition("=") for name in directory.split("/") if "=" in name]
    found = {(column, _kind(value)) for column, _, value in pairs}
    return frozenset({*found, ("", ",".join(column for column, _, _ in pairs))})


def unclear_partitions(directories: Iterable[str]) -> frozenset[str]:
    """The partition columns, in lower case, whose type for an engine depends on which of these it sees.

    Examples
    --------
    >>> sorted(unclear_partitions(["d/k=7/m=1", "d/k=abc/m=2", "d/k=8/m=3"]))
    ['k']
    """
    kinds: dict[str, set[str]] = {}
    columns = set()
    for directory in directories:
        for column, kind in partition_kinds(directory):
            if column:
                kinds.setdefault(column.lower(), set()).add(kind)
            else:
                columns.add(kind)
    if len(columns) > 1:  # some files lack a column
        return frozenset(kinds)
    return frozenset(column for column, found in kinds.items() if len(found) > 1 or "other" in found)


def _kind(value: str) -> str:
    if _INT.fullmatch(value):
        return "number"
    if _DATE.fullmatch(value):
        try:
            datetime.date.fromisoformat(value)
        except ValueError:
            return "other"
        return "date"
    return "text" if _TEXT.fullmatch(value) and not _SPECIAL.fullmatch(value) else "other"


def _is_hidden(name: str) -> bool:
    return (name.startswith("_") and "=" not in name) or name.startswith(".") or name.endswith("._COPYING_")
