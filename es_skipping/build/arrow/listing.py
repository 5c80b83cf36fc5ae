"""Lists Parquet files with pyarrow's file systems, under the identities that Spark's listing gives them."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import pyarrow.fs as pafs

from es_skipping.catalog import ObjectId
from es_skipping.errors import DatasetError
from es_skipping.stores.urls import scheme_of

__all__ = ["FilesListing", "Location"]

_FINE_MS: Final = 10
_COARSE_MS: Final = 1000
"""The time resolutions of file systems, as for builds with Spark."""
_NANOSECONDS: Final = 1_000_000
_ARROW_SCHEMES: Final = {"s3a": "s3", "s3n": "s3"}


@dataclass(frozen=True, slots=True)
class FilesListing:
    """A dataset's files at one moment.

    Parameters
    ----------
    root
        The dataset's path as Hadoop writes it.
    files
        The settled objects, each with its path in the file system.
    unsettled
        The objects that may still change within their modification time, with the reason to report.
    partition_columns
        The names that directories give to columns.
    """

    root: str
    files: Mapping[ObjectId, str]
    unsettled: Mapping[ObjectId, str]
    partition_columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Location:
    """A dataset's place: a directory of Parquet files, or one file.

    Parameters
    ----------
    system
        The file system.
    path
        The place in it.
    root
        The place as Hadoop writes it.
    """

    system: pafs.FileSystem
    path: str
    root: str

    @classmethod
    def of(cls, path: str | os.PathLike[str], system: pafs.FileSystem | None = None) -> Location:
        """The place that a path or a URL names.

        Parameters
        ----------
        system
            The file system, where its address or its credentials are not the default ones.

        Raises
        ------
        DatasetError
            pyarrow does not know the file system.

        Examples
        --------
        >>> Location.of("file:///lake/events/").root, Location.of("/lake/events").path
        ('file:/lake/events', '/lake/events')
        """
        text = os.fspath(path)
        scheme = scheme_of(text)
        if scheme is None or scheme == "file":
            local = text if scheme is None else text.partition(":")[2]
            if local.startswith("//"):
                local = "/" + local.lstrip("/")
            local = os.path.abspath(local)
            return cls(system or pafs.LocalFileSystem(), local, f"file:{local}")
        root, rest = text.rstrip("/"), text.partition("://")[2].strip("/")
        if system is not None:
            return cls(system, rest, root)
        try:
            found, inside = pafs.FileSystem.from_uri(f"{_ARROW_SCHEMES.get(scheme, scheme)}://{rest}")
        except Exception as error:
            raise DatasetError(f"{text} cannot be reached with pyarrow: {error}") from error
        return cls(found, inside.rstrip("/"), root)

    def list(self, *, wait: bool = True) -> FilesListing:
        """List the place; wait briefly if files are so new that they can change within their time stamp.

        Raises
        ------
        DatasetError
            The place does not exist or cannot be listed, or holds a Delta or Iceberg table.
        """
        found, partitions = self._listed()
        times = [object.mtime for object in found]
        resolution = _FINE_MS if any(moment % 1000 for moment in times) else _COARSE_MS
        left = max(times, default=0) + 2 * resolution - time.time() * 1000
        if wait and 0 < left <= 2 * resolution:
            time.sleep(left / 1000 + 0.001)
            return self.list(wait=False)
        now = time.time() * 1000
        unsettled = {
            object: (
                "modified in the future by this machine's clock"
                if object.mtime > now
                else "modified just before it was listed; the next run indexes it"
            )
            for object in found
            if object.mtime + 2 * resolution > now
        }
        settled = {object: path for object, path in found.items() if object not in unsettled}
        return FilesListing(self.root, settled, unsettled, partitions)

    def _listed(self) -> tuple[dict[ObjectId, str], tuple[str, ...]]:
        try:
            (top,) = self.system.get_file_info([self.path])
            if top.type == pafs.FileType.NotFound:
                raise DatasetError(f"{self.root} does not exist")
            selector = pafs.FileSelector(self.path, recursive=True)
            infos = [top] if top.type == pafs.FileType.File else self.system.get_file_info(selector)
        except OSError as error:
            raise DatasetError(f"{self.root} cannot be listed: {error}") from error
        found: dict[ObjectId, str] = {}
        names: dict[str, None] = {}
        for info in sorted(infos, key=lambda one: one.path):
            below = info.path[len(self.path) :].strip("/")
            parts = below.split("/") if below else []
            if "_delta_log" in parts or (parts[:-1] == ["metadata"] and below.endswith(".metadata.json")):
                raise DatasetError(
                    f"{self.root} is a Delta or Iceberg table, whose log says which files it has: index it with Spark"
                )
            if info.type != pafs.FileType.File or any(map(_is_hidden, parts)):
                continue
            names |= dict.fromkeys(part.partition("=")[0] for part in parts[:-1] if "=" in part)
            path = f"{self.root}/{below}" if below else self.root
            found[ObjectId(path, info.size, info.mtime_ns // _NANOSECONDS)] = info.path
        return found, tuple(names)


def _is_hidden(name: str) -> bool:
    """Whether Spark passes over a file or directory of this name."""
    return (name.startswith("_") and "=" not in name) or name.startswith(".") or name.endswith("._COPYING_")
