"""A dataset's Parquet files at one moment, as a build without Spark takes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from es_skipping.build.settling import split_settled, wait_until_settled
from es_skipping.catalog import ObjectId
from es_skipping.data_files import Location
from es_skipping.stores.object_list import ObjectList

__all__ = ["FilesListing"]


@dataclass(frozen=True, slots=True)
class FilesListing:
    """A dataset's files at one moment.

    Parameters
    ----------
    files
        The settled objects, each with its path in the file system.
    unsettled
        The objects that may still change within their modification time, with the reason to report.
    partition_columns
        The names that directories give to columns.
    """

    files: Mapping[ObjectId, str]
    unsettled: Mapping[ObjectId, str]
    partition_columns: tuple[str, ...]

    @classmethod
    def of(cls, location: Location, *, wait: bool = True) -> FilesListing:
        """List a location; wait briefly if files are so new that they can change within their time stamp.

        Raises
        ------
        DatasetError
            The place does not exist or cannot be listed, or holds a Delta or Iceberg table.
        """
        root = location.roots[0].rstrip("/")
        listed = location.files(root)
        paths = {file.id: file.path for file in listed}
        objects = ObjectList(paths)
        if wait and wait_until_settled(objects):
            return cls.of(location, wait=False)
        old, unsettled = split_settled(objects)
        directories = (directory[len(root) :].split("/") for directory in listed.directories)
        columns = dict.fromkeys(name.partition("=")[0] for names in directories for name in names if "=" in name)
        return cls({object: paths[object] for object in old}, unsettled, tuple(columns))
