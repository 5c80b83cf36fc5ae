"""`index_files`: builds and refreshes the indexes of Parquet files without Spark."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from es_skipping.build.arrow.collect import FilesCollection
from es_skipping.build.arrow.listing import FilesListing
from es_skipping.build.arrow.schema import inferred_schema
from es_skipping.build.arrow.source import FilesSource, resolve_stored, this_zone
from es_skipping.build.budget import Budget
from es_skipping.build.conflicts import retry_conflicts
from es_skipping.build.definitions import defined_dataset
from es_skipping.build.footers import open_footer
from es_skipping.build.index_arguments import checked
from es_skipping.build.object_ids import dataset_id
from es_skipping.build.results import RefreshResult
from es_skipping.build.wanted import Wanted
from es_skipping.catalog import DatasetDefinition, ObjectId, ObjectMetadata
from es_skipping.data_files import Location, locate
from es_skipping.errors import DatasetError
from es_skipping.indexes.base import Index
from es_skipping.settings import Settings
from es_skipping.stores.base import check_understood
from es_skipping.stores.registry import open_store

if TYPE_CHECKING:
    import pyarrow.fs as pafs

    from es_skipping.stores.base import MetadataStore

__all__ = ["index_files"]


def index_files(
    path: str | os.PathLike[str],
    *indexes: Index,
    store: str,
    settings: Mapping[str, str] | None = None,
    zone: str | None = None,
    filesystem: pafs.FileSystem | None = None,
) -> RefreshResult:
    """Build or refresh indexes of Parquet files without Spark: pyarrow lists and reads the files.

    The metadata is the same as that of ``Dataset(spark, path).ensure_indexes(...)``, and Spark uses it in the same way:
    call this with the path as Spark's users write it, and with the store that their sessions name. An index that exists
    is refreshed; new and changed files get all indexes, and the metadata of deleted files is dropped.

    An index has no metadata for a file that Spark may read differently, such as one with INT96 or with dates of the
    old calendar; ``RefreshResult.unknown`` says so. Queries read such files.

    Parameters
    ----------
    path
        A directory of Parquet files, perhaps with partitions, or one file; a local path or a URL that pyarrow knows.
    *indexes
        The indexes, of columns or fields of structs; without any, those that exist are refreshed.
    store
        The metadata store's URL, as in ``spark.es_skipping.store.url``.
    settings
        Settings by full key: those of the store, such as ``spark.es_skipping.store.password``, and
        ``spark.es_skipping.metadata.budget``.
    zone
        The time zone of the JVMs that will read (``user.timezone``); by default this machine's. Spark does not use
        indexes of timestamps that were built for another zone.
    filesystem
        pyarrow's file system, if the address or the credentials are not the default ones; ``path`` still has its
        scheme.

    Raises
    ------
    DatasetError
        The path does not exist, holds no Parquet file that can be read, or is a table; or the store has indexes of it
        that only Spark can build.
    ColumnError
        A column is unknown or cannot carry the index.
    IndexDefinitionError
        An index needs Spark to compute what it collects.
    StoreError
        The store cannot be reached, or refused.

    Examples
    --------
    >>> import tempfile
    >>> import pyarrow as pa, pyarrow.parquet as pq
    >>> from es_skipping.indexes.minmax import MinMax
    >>> folder = tempfile.TemporaryDirectory()
    >>> pq.write_table(pa.table({"id": [1, 2, 3]}), f"{folder.name}/part-0.parquet")
    >>> index_files(folder.name, MinMax("id"), store="memory://example").added
    1
    """
    begun = time.perf_counter()
    if indexes:
        checked(indexes)
    given = Settings(settings or {})
    opened = open_store(store, given)
    location = locate(path, filesystem)
    limit = given["metadata.budget"]
    result = retry_conflicts(lambda: _updated(opened, location, indexes, zone or this_zone(), limit))
    return replace(result, seconds=time.perf_counter() - begun, store=opened.url)


def _updated(
    store: MetadataStore, location: Location, add: tuple[Index, ...], zone: str, limit: int | None
) -> RefreshResult:
    root = location.roots[0]
    id = dataset_id(root.rpartition("/")[2], root)
    entry = store.dataset(id)
    stored = None if entry is None else entry.definition
    if stored is None and not add:
        raise DatasetError(f"{root} has no index to refresh in the store {store.url}: pass the indexes")
    if stored is not None:
        check_understood(stored)
        _refuse_what_spark_reads_otherwise(stored)
    listing = FilesListing.of(location)
    source = FilesSource(root, _schema(location, listing), listing.partition_columns, zone)
    defined = defined_dataset(source, id, stored, add, ensure=True, resolving=resolve_stored)
    if entry is not None and not defined.fresh and store.must_rebuild(entry, defined.definition):
        defined = replace(defined, fresh=True)
    known = {} if defined.fresh else dict(store.objects(id))
    complete = frozenset(one.id for one in defined.wanted) - defined.new
    again = {path for path, _ in entry.failed} if entry is not None else set()
    whole = {
        object: path
        for object, path in listing.files.items()
        if object not in known or (object.path in again and not complete <= known[object])
    }
    new = tuple(one for one in defined.wanted if one.id in defined.new)
    more = {object: path for object, path in listing.files.items() if object not in whole} if new else {}
    gone = [object for object in known if object not in listing.files and object not in listing.unsettled]
    paths = {object.path for object in known}
    if entry is not None and stored == defined.definition and not (defined.fresh or whole or more or gone):
        before = _failures(listing.unsettled)
        if {path for path, _ in before} == again:
            return RefreshResult(unchanged=len(listing.files), failed=before)
    hidden = any(one.is_protected for one in defined.wanted)
    collection = FilesCollection(location.filesystem, source, withheld=hidden)
    added: list[ObjectId] = []

    budget = Budget.of_build(limit, entry, adds=bool(more))

    def put(wanted: Sequence[Wanted], objects: Mapping[ObjectId, str], *, adds: bool) -> None:
        found = collection.metadata(wanted, objects)
        change.put(noted(found if budget is None else budget.kept(found, len(wanted), added=adds)))

    def noted(found: Iterator[ObjectMetadata]) -> Iterator[ObjectMetadata]:
        for one in found:
            added.append(one.id)
            yield one

    with store.change(defined.definition, fresh=defined.fresh) as change:
        put(defined.wanted, whole, adds=False)
        if more:
            put(new, more, adds=True)
        now = FilesListing.of(location, wait=False)
        changed = [object for object in (*whole, *more) if object not in now.files and object not in now.unsettled]
        change.remove([*gone, *changed])
        failed = collection.failed | dict.fromkeys(changed, "changed while it was read; the next run indexes it")
        failed |= listing.unsettled
        failures = _failures(failed)
        change.publish(failures)
    done = set(added) - failed.keys()
    updated = {object for object in done if object.path in paths}
    current = {object.path for object in (*listing.files, *listing.unsettled)}
    return RefreshResult(
        added=len(done) - len(updated),
        updated=len(updated),
        removed=len({object.path for object in gone} - current),
        unchanged=len(listing.files) - len(whole) - len(more),
        failed=failures,
        unknown=tuple(sorted(collection.unknown.items())),
        degraded=budget.reported() if budget is not None else (),
    )


def _failures(failed: Mapping[ObjectId, str]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((object.path, why) for object, why in failed.items()))


def _refuse_what_spark_reads_otherwise(stored: DatasetDefinition) -> None:
    """Refuse a dataset that Spark indexed with a reader that this build does not have.

    Raises
    ------
    DatasetError
        It has another format, or options.
    """
    if stored.format != "parquet" or stored.options or stored.table is not None:
        how = f"format {stored.format}" + (f" and options {dict(stored.options)}" if stored.options else "")
        raise DatasetError(f"{stored.roots[0]} was indexed by Spark with {how}: refresh it with Spark")


def _schema(location: Location, listing: FilesListing) -> dict[str, object]:
    """The schema of the first file that can be read, as Spark takes it."""
    why = "there is no file"
    for path in listing.files.values():
        try:
            with location.filesystem.open_input_file(path) as file:
                return inferred_schema(open_footer(file))
        except Exception as error:
            why = f"{type(error).__name__}: {error}"
    raise DatasetError(f"{location.name} holds no Parquet file that can be read: {why}")
