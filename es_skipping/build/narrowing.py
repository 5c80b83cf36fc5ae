"""Lists only the part of a dataset that a restricted refresh covers, if that part can be read alone.

This works for files and partition directories below one root: Spark lists these, and finds partition values by the
option ``basePath``. Other datasets (tables, globs, plain sub-directories, which Spark may or may not read) are listed
completely, and objects outside the part are left out.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

from es_skipping.build.listing import directory_names, qualified
from es_skipping.build.source import schema_of
from es_skipping.spark.formats import TABLES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from es_skipping.build.source import Reading, Source
    from es_skipping.catalog import DatasetDefinition

__all__ = ["Part", "has_glob", "narrowed"]

_BASE: Final = "basePath"
_GLOB: Final = frozenset("*?[{\\")


def has_glob(path: str) -> bool:
    """Whether a path is a glob."""
    return bool(_GLOB & set(path))


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a dataset that can be read alone.

    Parameters
    ----------
    reading
        How to read the part.
    paths
        Files and directories: the part contains all stored objects at or below them.
    stored
        The dataset as it was indexed.
    given
        Whether the reader was given a schema, which may be another than the dataset was indexed with.
    """

    reading: Reading
    paths: tuple[str, ...]
    stored: DatasetDefinition
    given: bool

    def restored(self, source: Source) -> Source:
        """Give a source that `reading` opened the facts of the whole dataset.

        Spark takes a partition column out of a schema that it is given, and not out of one that it infers from files
        which store the column.
        """
        options = {name: value for name, value in source.options.items() if name != _BASE.lower()}
        schema = source.schema if self.given else json.loads(self.stored.schema)
        return replace(source, roots=self.stored.roots, options=options, schema=schema)


def narrowed(
    spark: SparkSession, reading: Reading, stored: DatasetDefinition, paths: str | Sequence[str] | None, partitions: Any
) -> Part | None:
    """The part that a refresh of these paths and partitions covers; None if everything must be listed.

    Parameters
    ----------
    stored
        The dataset as it was indexed; a part does not infer its schema again.
    """
    lower = {name.lower() for name in reading.options}
    if reading.table is not None or reading.format in TABLES:
        return None
    if len(reading.paths) != 1 or lower & {_BASE.lower(), "recursivefilelookup"}:
        return None
    if (paths is None) == (partitions is None) or has_glob(reading.paths[0]):
        return None
    root = qualified(spark, reading.paths[0])
    files = _Files(spark, root)
    if paths is not None:
        wanted = [qualified(spark, path) for path in ([paths] if isinstance(paths, str) else paths)]
        if not all(_readable(root, path) for path in wanted):
            return None
        there = [path for path in wanted if files.is_readable(path)]
    else:
        found = files.partitions(partitions)
        if found is None:
            return None
        wanted = there = found
    if not there:
        return None
    given = reading.schema is not None
    schema = reading.schema if given else schema_of(stored.schema)
    part = replace(reading, paths=tuple(there), schema=schema, options={**reading.options, _BASE: root})
    return Part(part, tuple(wanted), stored, given)


def _readable(root: str, path: str) -> bool:
    """Whether a scan of the root reads a path, given that it is a file or a partition directory."""
    if not path.startswith(root + "/"):
        return False
    names = path[len(root) + 1 :].split("/")
    return all("=" in name for name in names[:-1]) and not names[-1].startswith((".", "_")) and not has_glob(path)


class _Files:
    """The file system operations that narrowing needs."""

    def __init__(self, spark: SparkSession, root: str) -> None:
        jvm: Any = spark._jvm
        self._path = jvm.org.apache.hadoop.fs.Path
        self._root = root
        configuration = spark._jsparkSession.sessionState().newHadoopConf()
        self._system = self._path(root).getFileSystem(configuration)

    def is_readable(self, path: str) -> bool:
        """Whether the path is a file or a partition directory."""
        at = self._path(path)
        if not self._system.exists(at):
            return False
        return "=" in path.rpartition("/")[2] or bool(self._system.getFileStatus(at).isFile())

    def directories(self, path: str) -> list[str]:
        """The partition directories directly below a directory."""
        listed = self._system.listStatus(self._path(path))
        names = [str(one.getPath().getName()) for one in listed if one.isDirectory()]
        return [f"{path}/{name}" for name in names if "=" in name]

    def partitions(self, partitions: Any) -> list[str] | None:
        """The directories of these partitions; None if there are none, or if a column has no directory."""
        columns, level = [], self._root
        while below := self.directories(level):
            level = below[0]
            columns.append(unquote(level.rpartition("/")[2].partition("=")[0]))
        given = [partitions] if isinstance(partitions, (str, Mapping)) else list(partitions)
        found: list[str] = []
        for one in given:
            (wanted,) = directory_names([one], columns)
            names = {segment.partition("=")[0] for segment in wanted}
            depth = max(columns.index(name) for name in names) + 1
            level_paths = [self._root]
            for column in columns[:depth]:
                below = [path for parent in level_paths for path in self.directories(parent)]
                level_paths = [
                    path for path in below if column not in names or unquote(path.rpartition("/")[2]) in wanted
                ]
            if not level_paths:
                return None
            found += level_paths
        return found
