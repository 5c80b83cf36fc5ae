"""Keeps the metadata of row groups up to date, beside that of the files that hold them.

The row groups of a dataset's files are the objects of a second dataset in the store, with the same indexes. What it
lacks is read: it may be behind the files' own metadata, and a crash between the two publications leaves it so.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Final

import numpy as np

from es_skipping.build.budget import Budget
from es_skipping.build.collect import Collection, Progress
from es_skipping.build.listing import Listing, Restriction, changed_since
from es_skipping.build.row_group_numbers import row_groups_in
from es_skipping.catalog import DatasetDefinition, ObjectId, ObjectMetadata
from es_skipping.row_groups import FILE_KEY_BYTES, row_groups_of
from es_skipping.spark.relations import footer_rows, has_row_groups
from es_skipping.stores.object_list import Keys, ObjectList, as_keys, is_among

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from es_skipping.build.definitions import Defined
    from es_skipping.build.source import Reading
    from es_skipping.build.wanted import Wanted
    from es_skipping.stores.base import MetadataStore

__all__ = ["RowGroupsUpdate", "definition_of_row_groups"]

_AUTO_MEAN_BYTES: Final = 128 << 20
"""With `auto`, files of more bytes than this on average: writers' default for a row group."""

_FOOTERS_PER_CALL: Final = 4_096

_log = logging.getLogger("es_skipping")


def definition_of_row_groups(files: DatasetDefinition) -> DatasetDefinition:
    """The definition of the dataset of a dataset's row groups; without roots, no scan takes it for its own."""
    needs = tuple(sorted({*files.needs, "rowgroups"}))
    return replace(files, id=row_groups_of(files.id), roots=(), table=None, needs=needs, covered=None)


@dataclass(frozen=True)
class RowGroupsUpdate:
    """Brings the metadata of row groups up to date after that of their files was published.

    Parameters
    ----------
    spark, store, id, reading
        As of `es_skipping.build.update.Update`; the id is that of the files' dataset.
    granularity
        ``file``, ``rowGroup`` or ``auto``; None keeps what the dataset has.
    budget
        Limit of one row group's metadata in bytes; None for no limit.
    """

    spark: SparkSession
    store: MetadataStore
    id: str
    reading: Reading
    granularity: str | None
    budget: int | None = None
    progress: Progress | None = None

    def run(self, listing: Listing, defined: Defined, restriction: Restriction, *, partly: bool) -> None:
        """Collect what is missing, and publish it.

        Parameters
        ----------
        listing
            The dataset's files.
        partly
            Whether the listing lacks files outside the restriction.
        """
        id = row_groups_of(self.id)
        entry = self.store.dataset(id)
        if not self._wanted(listing, there=entry is not None):
            if entry is not None:
                self.store.drop(id)
            return
        definition = definition_of_row_groups(defined.definition)
        has_row_groups(self.spark, defined.definition.roots)
        fresh = entry is None or _differs(entry.definition, definition) or self.store.must_rebuild(entry, definition)
        partly = partly or not restriction.everything
        if fresh and partly and entry is not None:
            return  # the next refresh of the whole dataset makes all of it
        known = as_keys(b"") if fresh else np.sort(as_keys(self.store.keys(id)))
        files = self._files(listing, restriction, known)
        gone = [] if partly else self._gone(id, listing, known)
        if not (fresh or len(files) or gone):
            return
        told = self._row_groups_of(files)
        if not (fresh or told or gone):
            return  # files without row groups are asked again each time, and leave nothing to publish
        files = ObjectList(told)
        hidden = any(one.is_protected for one in defined.wanted)
        collection = Collection(listing.source, self.progress, row_groups=told, withheld=hidden)
        with self.store.change(definition, fresh=fresh) as change:
            change.remove(gone)
            if len(files):
                everything = len(listing.objects) + len(listing.unsettled)
                change.put(self._found(collection, defined.wanted, files, all_objects=len(files) == everything))
            changed = list(changed_since(self.spark, self.reading, listing, files))
            change.remove(group for file in changed for group in row_groups_in(file, told[file]) if group is not None)
            change.publish()

    def _row_groups_of(self, files: ObjectList) -> dict[ObjectId, tuple[int, ...]]:
        """The numbers of rows of each file's row groups, by the footers; without files that have none."""
        told: dict[ObjectId, tuple[int, ...]] = {}
        left = iter(files)
        while page := list(islice(left, _FOOTERS_PER_CALL)):
            rows = footer_rows(self.spark, [file.path for file in page])
            told |= {file: tuple(counts) for file, counts in zip(page, rows, strict=True) if counts and any(counts)}
        return told

    def refuse(self) -> None:
        """Say that the setting has no effect on this dataset."""
        if self.granularity == "rowGroup":
            _log.warning(
                "granularity=rowGroup has no effect on %s: its metadata is for each file, because only plain Parquet "
                "files have metadata for each row group",
                self.reading.name,
            )

    def _wanted(self, listing: Listing, *, there: bool) -> bool:
        if listing.source.format != "parquet":
            self.refuse()
            return False
        if self.granularity == "auto" and not there:
            count = len(listing.objects)
            return count > 0 and sum(object.length for object in listing.objects) > count * _AUTO_MEAN_BYTES
        return there if self.granularity in (None, "auto") else self.granularity == "rowGroup"

    def _files(self, listing: Listing, restriction: Restriction, known: Keys) -> ObjectList:
        """The files whose own metadata is published and whose row groups have none."""
        there = is_among(listing.objects.keys, np.sort(as_keys(self.store.keys(self.id))))
        there &= ~is_among(_file_keys(listing.objects.keys), np.unique(_file_keys(known)))
        if not restriction.everything:
            there &= np.fromiter((restriction.holds(object.path) for object in listing.objects), np.bool_, len(there))
        return listing.objects.those(there)

    def _gone(self, id: str, listing: Listing, known: Keys) -> list[ObjectId]:
        """The stored row groups of files that are no longer listed."""
        now = np.unique(_file_keys(listing.objects.keys))
        left = known[~is_among(_file_keys(known), now)]
        return [group for group, _ in self.store.objects(id, keys=left.tobytes())] if len(left) else []

    def _found(
        self, collection: Collection, wanted: Sequence[Wanted], files: ObjectList, *, all_objects: bool
    ) -> Iterator[ObjectMetadata]:
        found = collection.metadata(wanted, files, all_objects=all_objects)
        return found if self.budget is None else Budget(self.budget, 0.0).kept(found, len(wanted), added=False)


def _differs(stored: DatasetDefinition, now: DatasetDefinition) -> bool:
    """Whether metadata is built otherwise; columns that nobody indexed may come and go."""
    return replace(stored, schema=now.schema) != now


def _file_keys(keys: Keys) -> Keys:
    """The part of each key that a file and its row groups share."""
    return keys.astype(np.dtype(("S", FILE_KEY_BYTES)))
