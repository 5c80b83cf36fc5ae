"""Which objects a dataset has now, and which of them can be believed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

import numpy as np

from es_skipping.build.source import Source
from es_skipping.catalog import ObjectId
from es_skipping.errors import DatasetError
from es_skipping.stores.base import is_under
from es_skipping.stores.object_list import ObjectList, as_keys, is_among

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from es_skipping.build.source import Reading

__all__ = ["Listing", "Restriction", "changed_since", "directory_names", "settled"]

_FINE_MS: Final = 10
"""Local file systems give milliseconds or better, from a clock that ticks some hundred times a second."""
_COARSE_MS: Final = 1000
_FEW: Final = 20
"""Of so many listed objects one is few."""
_NULL_PARTITION: Final = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True, slots=True)
class Listing:
    """A dataset's objects at one moment.

    Parameters
    ----------
    source
        Whose scan reads exactly these objects.
    objects
        Those that can be indexed.
    unsettled
        Those that may yet change under the same modification time, with what to tell of them.
    """

    source: Source
    objects: ObjectList
    unsettled: Mapping[ObjectId, str]


def settled(
    spark: SparkSession, reading: Reading, restored: Callable[[Source], Source] = lambda source: source
) -> Listing:
    """List a dataset, and wait a moment where objects are so new that they could change within their own time stamp.

    An object that is younger at its listing than twice the file system's time resolution could be written again without
    a trace; git keeps its index honest by the same rule.

    Parameters
    ----------
    restored
        What is done to the source once it is open.
    """
    source = Source.open(spark, reading)
    objects = source.objects()
    resolution = _resolution(objects)
    youngest = int(objects.mtimes.max(initial=0))
    wait = youngest + 2 * resolution - time.time() * 1000
    if 0 < wait <= 2 * resolution:
        time.sleep(wait / 1000 + 0.001)
        source = source.again(spark, reading)
        objects = source.objects()
    now = time.time() * 1000
    young = objects.mtimes + 2 * resolution > now
    unsettled = {
        object: (
            "modified in the future, by this machine's clock"
            if object.mtime > now
            else "modified a moment ago, while it was listed; the next refresh takes it"
        )
        for object in objects.those(young)
    }
    return Listing(restored(source), objects.those(~young), unsettled)


def _resolution(objects: ObjectList) -> int:
    return _FINE_MS if (objects.mtimes % 1000).any() else _COARSE_MS


def changed_since(spark: SparkSession, reading: Reading, listing: Listing, *parts: ObjectList) -> Iterator[ObjectId]:
    """Those of these objects, of a listing, that are not there any more as they were listed.

    A few are looked at one by one, so that what a refresh costs is one listing and what has changed. Where one of them
    seems to be another, or they are many, all is listed again: some file systems tell other times of one object than of
    a directory's.
    """
    count = sum(map(len, parts))
    few = count * _FEW <= len(listing.objects)
    if not count or (few and listing.source.are_unchanged(object for part in parts for object in part)):
        return
    try:
        now = np.sort(listing.source.objects_again(spark, reading).keys)
    except DatasetError:  # it is gone altogether
        now = as_keys(b"")
    for part in parts:
        yield from part.those(~is_among(part.keys, now))


class Restriction:
    """The part of a dataset that a refresh is restricted to.

    Parameters
    ----------
    spark
        The session, which knows the file systems.
    paths
        Objects or directories; all below them counts.
    partitions
        Each a mapping of partition columns to values, or a text such as ``"day=2024-01-05"``.
    partition_columns
        Of the dataset.

    Raises
    ------
    DatasetError
        A partition column does not exist.
    """

    def __init__(
        self,
        spark: SparkSession,
        paths: str | Sequence[str] | None,
        partitions: Any,
        partition_columns: Sequence[str],
    ) -> None:
        given = [paths] if isinstance(paths, str) else paths
        self._paths = None if given is None else [qualified(spark, path) for path in given]
        self._partitions = None if partitions is None else directory_names(partitions, partition_columns)

    def refuse_elsewhere(self, name: str, roots: Sequence[str]) -> None:
        """Paths outside of a dataset are a mistake: nothing there would be refreshed, without a word.

        Raises
        ------
        DatasetError
            One lies neither below these roots nor above one of them.
        """
        for path in self._paths or ():
            if not is_under(path, roots) and not any(is_under(root, [path]) for root in roots):
                raise DatasetError(f"{path} is no part of {name}, which lies at {', '.join(sorted(set(roots)))}")

    @property
    def everything(self) -> bool:
        return self._paths is None and self._partitions is None

    def holds(self, path: str) -> bool:
        """Whether an object's path is in the part."""
        if self.everything:
            return True
        if is_under(path, self._paths or ()):
            return True
        if self._partitions:
            names = {unquote(name) for name in path.split("/")}
            return any(wanted <= names for wanted in self._partitions)
        return False


def qualified(spark: SparkSession, path: str) -> str:
    """A path as Hadoop writes it, scheme included, without a trailing slash."""
    jvm: Any = spark._jvm
    hadoop = jvm.org.apache.hadoop.fs.Path(str(path))
    configuration = spark._jsparkSession.sessionState().newHadoopConf()
    system = hadoop.getFileSystem(configuration)
    return str(hadoop.makeQualified(system.getUri(), system.getWorkingDirectory()).toString()).rstrip("/")


def directory_names(partitions: Any, columns: Sequence[str]) -> list[set[str]]:
    """Of each partition the names of the directories that lead to it, decoded.

    Raises
    ------
    DatasetError
        A partition column does not exist.
    """
    given = [partitions] if isinstance(partitions, (str, Mapping)) else list(partitions)
    found = []
    for one in given:
        pairs = (
            dict(part.split("=", 1) for part in one.strip("/").split("/") if "=" in part)
            if isinstance(one, str)
            else dict(one)
        )
        by_name = {column.lower(): column for column in columns}
        wanted = set()
        for name, value in pairs.items():
            if name.lower() not in by_name:
                raise DatasetError(
                    f"{name!r} is no partition column of this dataset; "
                    + (f"it has {', '.join(columns)}" if columns else "it has none")
                )
            wanted.add(f"{by_name[name.lower()]}={_NULL_PARTITION if value is None else unquote(str(value))}")
        if not wanted:
            raise DatasetError(f"partition {one!r} names no column; give {{column: value}} or 'column=value'")
        found.append(wanted)
    return found
