"""Lists a dataset's objects, and finds those whose identity can be trusted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

import numpy as np

from es_skipping.build.settling import split_settled, wait_until_settled
from es_skipping.build.source import Source
from es_skipping.catalog import ObjectId
from es_skipping.errors import DatasetError
from es_skipping.stores.base import is_under
from es_skipping.stores.object_list import ObjectList, as_keys, is_among

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from es_skipping.build.source import Reading

__all__ = ["Listing", "Restriction", "changed_since", "directory_names", "settled"]

_OBJECTS_PER_SINGLE_CHECK: Final = 20
"""Look at objects one by one up to this share: one in this many listed objects."""
_NULL_PARTITION: Final = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True, slots=True)
class Listing:
    """A dataset's objects at one moment.

    Parameters
    ----------
    source
        A source whose scan reads exactly these objects.
    objects
        The objects that can be indexed.
    unsettled
        The objects that may still change within their modification time, with the reason to report.
    removed
        None if `objects` has every object. Otherwise it has what a table added since the stored metadata's snapshot,
        and these paths are what the table removed.
    """

    source: Source
    objects: ObjectList
    unsettled: Mapping[ObjectId, str]
    removed: frozenset[str] | None = None


def settled(
    spark: SparkSession,
    reading: Reading,
    source: Source,
    restored: Callable[[Source], Source] = lambda source: source,
) -> Listing:
    """List a dataset of files, and wait briefly if objects are so new that they can change within their time stamp.

    Parameters
    ----------
    source
        The dataset, just opened.
    restored
        Called with the source that was listed.
    """
    objects = source.objects()
    if wait_until_settled(objects):
        source = source.again(spark, reading)
        objects = source.objects()
    return Listing(restored(source), *split_settled(objects))


def changed_since(spark: SparkSession, reading: Reading, listing: Listing, *parts: ObjectList) -> Iterator[ObjectId]:
    """The objects of a listing that have changed or disappeared since.

    A few objects are checked one by one, so that a refresh costs one listing plus the changes. If one seems to have
    changed, or if there are many, everything is listed again: some file systems report other times for one object than
    in a directory's listing.
    """
    if listing.source.is_table:
        return
    count = sum(map(len, parts))
    few = count * _OBJECTS_PER_SINGLE_CHECK <= len(listing.objects)
    if not count or (few and listing.source.are_unchanged(object for part in parts for object in part)):
        return
    try:
        now = np.sort(listing.source.objects_again(spark, reading).keys)
    except DatasetError:  # the dataset is gone
        now = as_keys(b"")
    for part in parts:
        yield from part.those(~is_among(part.keys, now))


class Restriction:
    """The part of a dataset that a restricted refresh covers.

    Parameters
    ----------
    spark
        The session, which knows the file systems.
    paths
        Objects or directories, with everything below them.
    partitions
        Mappings of partition columns to values, or texts such as ``"day=2024-01-05"``.
    partition_columns
        The dataset's partition columns.

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
        """Refuse paths outside the dataset, which a refresh would silently ignore.

        Raises
        ------
        DatasetError
            A path lies neither below these roots nor above one of them.
        """
        for path in self._paths or ():
            if not is_under(path, roots) and not any(is_under(root, [path]) for root in roots):
                raise DatasetError(f"{path} is not part of {name}, which is at {', '.join(sorted(set(roots)))}")

    @property
    def everything(self) -> bool:
        return self._paths is None and self._partitions is None

    def holds(self, path: str) -> bool:
        """Whether the part contains an object's path."""
        if self.everything:
            return True
        if is_under(path, self._paths or ()):
            return True
        if self._partitions:
            names = {unquote(name) for name in path.split("/")}
            return any(wanted <= names for wanted in self._partitions)
        return False


def qualified(spark: SparkSession, path: str) -> str:
    """A path as Hadoop writes it, with scheme, without a trailing slash."""
    jvm: Any = spark._jvm
    hadoop = jvm.org.apache.hadoop.fs.Path(str(path))
    configuration = spark._jsparkSession.sessionState().newHadoopConf()
    system = hadoop.getFileSystem(configuration)
    return str(hadoop.makeQualified(system.getUri(), system.getWorkingDirectory()).toString()).rstrip("/")


def directory_names(partitions: Any, columns: Sequence[str]) -> list[set[str]]:
    """For each partition, the decoded names of the directories that lead to it.

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
                    f"{name!r} is not a partition column of this dataset; "
                    + (f"it has {', '.join(columns)}" if columns else "it has none")
                )
            wanted.add(f"{by_name[name.lower()]}={_NULL_PARTITION if value is None else unquote(str(value))}")
        if not wanted:
            raise DatasetError(f"partition {one!r} does not name a column; pass {{column: value}} or 'column=value'")
        found.append(wanted)
    return found
