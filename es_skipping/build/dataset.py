"""`Dataset`: creating, refreshing, describing and dropping the indexes of a dataset."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, Final

from es_skipping.build.collect import Progress
from es_skipping.build.collected import Collected
from es_skipping.build.conflicts import retry_conflicts
from es_skipping.build.dataset_id import id_of_reading
from es_skipping.build.index_arguments import checked, is_definition_of
from es_skipping.build.remembering import Remembering, RememberResult, remembered_in, remembering
from es_skipping.build.results import Health, RefreshResult, dataset_html, index_table, shown_as
from es_skipping.build.source import DELTA_SKIPPING, Reading, Source, as_paths, schema_of
from es_skipping.build.table_formats import table_format_at
from es_skipping.build.update import Rebuild, Update
from es_skipping.catalog import DatasetEntry, IndexDefinition
from es_skipping.errors import DatasetError, IndexDefinitionError, StoreError
from es_skipping.indexes.base import Index
from es_skipping.indexes.registry import readable_id
from es_skipping.reports.progress import shown_progress
from es_skipping.row_groups import row_groups_of
from es_skipping.settings import PREFIX, Settings
from es_skipping.spark.services import service_of, store_conf, store_of
from es_skipping.stores.base import MetadataStore
from es_skipping.stores.protection.keys import check_protection
from es_skipping.workload.logged import logged_queries

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

__all__ = ["Dataset", "Health", "RefreshResult", "list_indexes", "session_of", "source_of"]

_DESCRIPTION: Final = (
    "id string, type string, columns array<string>, params map<string,string>, objects bigint, "
    "metadata_bytes bigint, bytes_per_object double, protection string"
)
_LIST: Final = (
    "dataset string, `table` string, roots array<string>, format string, "
    + _DESCRIPTION
    + ", refreshed timestamp, snapshot string"
)
_log = logging.getLogger("es_skipping")


class Dataset:
    """A dataset of files; creates, refreshes and drops its indexes. Queries do not need this object.

    Parameters
    ----------
    spark
        The session; its settings name the metadata store.
    path
        One or several directories, files or globs, as for `DataFrameReader.load`.
    table
        A table of the catalog, instead of a path.
    format, options, schema
        As for the reader. Queries use an index only if they read with the same format and options. If all three are
        left out, an indexed dataset is read as it was indexed.
    protect, key
        For indexes that name no protection: ``"hashed"`` or ``"sealed"``, and where the key is: ``"env:NAME"``.

    Raises
    ------
    DatasetError
        Both path and table are given, or neither.

    Examples
    --------
    >>> dataset = Dataset(spark, "/lake/events")                  # doctest: +SKIP
    >>> dataset.create_indexes(MinMax("ts"), ValueList("city"))   # doctest: +SKIP
    RefreshResult(24 added, 0 updated, 0 removed, 0 unchanged, 0 failed, in 1.34 s)
    """

    def __init__(
        self,
        spark: SparkSession,
        path: str | Sequence[str] | None = None,
        *,
        table: str | None = None,
        format: str | None = None,
        options: Mapping[str, Any] | None = None,
        schema: str | StructType | None = None,
        protect: str = "plain",
        key: str | None = None,
    ) -> None:
        from es_skipping.spark.classic import classic_session

        paths = as_paths(path)
        if bool(paths) == (table is not None) or any(not part.strip() for part in paths):
            raise DatasetError(f"pass either a path or a table, not path={path!r} and table={table!r}")
        if table is not None and (format is not None or options or schema is not None):
            raise DatasetError(f"do not pass format, options or schema for table {table}: the catalog defines them")
        if options is not None and not isinstance(options, Mapping):
            raise DatasetError(f"options={options!r}: pass a mapping of names to values, such as {{'header': 'true'}}")
        check_protection(protect, key)
        self._protection = protect, key
        self._user_spark = spark
        self._spark = classic_session(spark)
        self._as_given = Reading(
            paths, table, format or "parquet", {name: _text(value) for name, value in (options or {}).items()}, schema
        )
        self._said_how = format is not None or options is not None or schema is not None
        self._id: str | None = None
        self._rebuild: Rebuild = "always"

    def __repr__(self) -> str:
        return f"Dataset({self._as_given.name})"

    def _repr_html_(self) -> str:
        return dataset_html(self._as_given.name, self._store, self.id)

    # --- building -------------------------------------------------------------------------------------------------

    def create_indexes(self, *indexes: Index, progress: Progress | None = None) -> RefreshResult:
        """Build the first indexes of a dataset, or add more.

        One read per object serves all indexes; for some indexes the Parquet footer suffices. Objects that are new or
        changed since the last build get all indexes, also the earlier ones.

        Parameters
        ----------
        *indexes
            The indexes to build.
        progress
            Called with ``(done, total, phase)`` during the build. By default the setting ``progress`` decides whether a
            progress bar is shown.

        Raises
        ------
        IndexDefinitionError
            An index exists already, or is given twice.
        ColumnError
            A column is unknown or cannot carry the index.
        DatasetError
            The dataset cannot be listed or read.
        StoreError
            The store cannot be reached, or refused.
        """
        return self._update(checked(indexes), ensure=False, progress=progress)

    def ensure_indexes(self, *indexes: Index, progress: Progress | None = None) -> RefreshResult:
        """Like `create_indexes`, but refresh an index that exists instead of raising: for nightly jobs."""
        return self._update(checked(indexes), ensure=True, progress=progress)

    def refresh(
        self,
        paths: str | Sequence[str] | None = None,
        partitions: Mapping[str, Any] | str | Sequence[Mapping[str, Any] | str] | None = None,
        *,
        progress: Progress | None = None,
    ) -> RefreshResult:
        """Index new and changed objects, and drop the metadata of deleted ones.

        Parameters
        ----------
        paths
            Refresh only objects at or below these paths.
        partitions
            Refresh only objects of these partitions: ``{"day": "2024-01-05"}`` or ``"day=2024-01-05"``, or several.

        Raises
        ------
        DatasetError
            The dataset has no index or cannot be listed, or a path lies outside it.
        """
        settings = Settings(store_conf(self._spark))
        if not settings["remember"] or paths is not None or partitions is not None:
            return self._update((), must_exist=True, paths=paths, partitions=partitions, progress=progress)
        try:
            change = self._to_remember(settings["remember.budget"])
        except StoreError as error:
            _log.warning("nothing new is remembered: the query log cannot be read: %s", error)
            change = Remembering()
        return self._remember(change, progress)

    def remember(self, budget: str | int | None = None, *, progress: Progress | None = None) -> RememberResult:
        """Collect the conditions that recur in the query log, so that queries with them skip; name no index.

        Sessions write the log with ``spark.es_skipping.queryLog.enabled`` or ``spark.es_skipping.remember``; with the
        latter each `refresh` of the whole dataset does this. A remembered condition helps every stricter filter too.

        Parameters
        ----------
        budget
            Bytes of all remembered conditions together, such as ``"2 MB"``. By default the setting ``remember.budget``.

        Returns
        -------
        RememberResult
            The conditions that were added, kept and dropped.

        Examples
        --------
        >>> dataset.remember(budget="2 MB")                           # doctest: +SKIP
        RememberResult(added=("city = 'Oslo'",), kept=(), dropped=())
        """
        settings = Settings(store_conf(self._spark))
        if budget is not None:
            settings = Settings({f"{PREFIX}remember.budget": str(budget)})
        change = self._to_remember(settings["remember.budget"])
        self._remember(change, progress)
        return change.result

    def drop_indexes(self, *indexes: Index, all: bool = False) -> None:
        """Drop indexes with their metadata; the data stays.

        Raises
        ------
        IndexDefinitionError
            An index does not exist (then none is dropped), or the call passes neither indexes nor ``all``, or both.
        """
        if bool(indexes) == all:
            raise IndexDefinitionError("pass either indexes or all=True")
        if not all:
            checked(indexes)
        store = self._store()
        if all:
            store.drop(row_groups_of(self.id))
            store.drop(self.id)
            service_of(self._spark).registry.forget()
            return
        retry_conflicts(lambda: self._drop(store, indexes))

    def optimize(self) -> None:
        """Compact the metadata that many refreshes wrote. Readers continue undisturbed."""
        store, groups = self._store(), row_groups_of(self.id)
        for id in (self.id, groups) if store.dataset(groups) is not None else (self.id,):
            store.optimize(id)
        service_of(self._spark).registry.forget()

    # --- looking --------------------------------------------------------------------------------------------------

    @property
    def id(self) -> str:
        """The dataset's readable name in the store, made from its location."""
        if self._id is None:
            self._id = id_of_reading(self._spark, self._as_given)
        return self._id

    def is_indexed(self) -> bool:
        """Whether the store holds a published index of the dataset."""
        entry = self._store().dataset(self.id)
        return entry is not None and bool(entry.definition.indexes)

    def describe(self) -> DataFrame:
        """A row per index: ``id``, ``type``, ``columns``, ``params``, ``objects``, ``metadata_bytes``,
        ``bytes_per_object``, ``protection`` (``plain``, ``hashed`` or ``sealed``).

        Empty without indexes. ``objects`` counts the objects that the index has metadata of.
        """
        from es_skipping.spark.classic import local_frame

        store = self._store()
        entry = store.dataset(self.id)
        known: Counter[str] = Counter()
        if entry is not None:
            for _, ids in store.objects(self.id):
                known.update(ids)
        rows = (
            [] if entry is None else [_description(entry, index, known[index.id]) for index in entry.definition.indexes]
        )
        return shown_as(local_frame(self._user_spark, rows, _DESCRIPTION), index_table(entry, known))

    def health(self) -> Health:
        """Compare the metadata with a fresh listing of the dataset."""
        store = self._store()
        entry = store.dataset(self.id)
        source = Source.open(self._spark, self._reading(entry))
        listed, current = source.objects(), source.origin.snapshot
        known = set() if entry is None else {object for object, _ in store.objects(self.id)}
        paths = {object.path for object in known}
        now = {object.path for object in listed}
        covered = sum(object in known for object in listed)
        stale = sum(object not in known and object.path in paths for object in listed)
        count = len(listed)
        return Health(
            objects=count,
            covered=covered,
            coverage=covered / count if count else 1.0,
            stale=stale,
            stale_share=stale / count if count else 0.0,
            missing=count - covered - stale,
            gone=len(paths - now),
            refreshed=None if entry is None else _moment(entry.refreshed),
            failed=() if entry is None else entry.failed,
            table_format=source.format if source.is_table else None,
            snapshot=None if current is None else current.id,
            indexed_snapshot=None if entry is None else entry.definition.snapshot,
        )

    # --- inside ---------------------------------------------------------------------------------------------------

    def _store(self) -> MetadataStore:
        return store_of(self._spark)

    def _reading(self, entry: DatasetEntry | None) -> Reading:
        """How to read the dataset: as the user passed it, or else as it was indexed."""
        given = self._as_given
        if not self._said_how and given.table is None and (format := table_format_at(self._spark, given.paths)):
            return replace(given, format=format)
        if entry is not None:
            given = replace(given, known_schema=entry.definition.schema)
        if entry is None or self._said_how or given.table is not None:
            return given
        definition = entry.definition
        if definition.format == given.format and not definition.options:
            return given
        schema = schema_of(definition.schema) if definition.format in ("csv", "json") else None
        return Reading(given.paths, None, definition.format, definition.options, schema, definition.schema)

    def _update(self, add: Sequence[Index], *, progress: Progress | None, **options: Any) -> RefreshResult:
        conf = store_conf(self._spark)
        store, settings = service_of(self._spark).store(conf), Settings(conf)
        begun = time.perf_counter()
        with shown_progress("false" if progress else settings["progress"], f"indexing {self._as_given.name}") as bar:
            result = self._updated(store, settings, add, progress=progress or bar, **options)
        return replace(result, seconds=time.perf_counter() - begun, store=store.url)

    def _updated(self, store: MetadataStore, settings: Settings, add: Sequence[Index], **options: Any) -> RefreshResult:
        limits = {"budget": settings["metadata.budget"], "writers": settings["build.executorWriters"]}
        limits["retain_removed"], limits["rebuild"] = settings["retainRemoved"] == "vacuum", self._rebuild
        limits["granularity"] = settings["granularity"] if settings.written("granularity") is not None else None
        if self._protection[0] != "plain":
            add = [one if one.protect is not None else one.protected(*self._protection) for one in add]

        def attempt() -> RefreshResult:
            reading = self._reading(store.dataset(self.id))
            update = Update(self._spark, store, self.id, reading, add, **limits, **options, collected=collected)
            try:
                return update.run()
            finally:
                service_of(self._spark).registry.forget()

        with Collected() as collected:
            return retry_conflicts(attempt)

    def _to_remember(self, budget: int) -> Remembering:
        service, store = service_of(self._spark), self._store()
        service.query_log.write()
        entry = store.dataset(self.id)
        queries = None if entry is None else logged_queries(store, entry.definition.roots)
        if entry is not None and not queries and not remembered_in(entry):
            return Remembering()
        source = Source.open(self._spark, self._reading(entry))
        with closing(source.origin):
            if queries is None:
                queries = logged_queries(store, source.roots)
            return remembering(source, entry, queries, budget)

    def _remember(self, change: Remembering, progress: Progress | None) -> RefreshResult:
        if not change.add and not self.is_indexed():
            return RefreshResult(store=self._store().url)
        result = self._update(change.add, ensure=True, progress=progress)
        for index in change.drop:
            with suppress(IndexDefinitionError):  # another session dropped it
                self.drop_indexes(index)
        return result

    def _drop(self, store: MetadataStore, indexes: Sequence[Index]) -> None:
        entry = store.dataset(self.id)
        there = list(entry.definition.indexes) if entry is not None else []
        left = list(there)
        for index in indexes:
            found = next((one for one in left if is_definition_of(one, index)), None)
            if found is None:
                names = ", ".join(readable_id(one.id) for one in there) or f"none in the store {store.url}"
                raise IndexDefinitionError(f"{index} is not an index of {self._as_given.name}; it has {names}")
            left.remove(found)
        kept = {one.id for one in left}
        for one in filter(None, (store.dataset(row_groups_of(self.id)), entry)):
            # Row groups may be behind the files: they keep their own definitions.
            still = tuple(each for each in one.definition.indexes if each.id in kept)
            if not still:
                store.drop(one.definition.id)
                continue
            with store.change(replace(one.definition, indexes=still)) as change:
                change.publish(one.failed)
        service_of(self._spark).registry.forget()


def source_of(dataset: Dataset) -> Source:
    """A dataset's data, opened as its arguments say, whatever its store knows; for the layouts."""
    source = Source.open(dataset._spark, dataset._as_given)
    if source.is_table:  # layouts read live rows, which Delta tells from deleted ones only where its own skipping is on
        source.df.sparkSession.conf.unset(DELTA_SKIPPING)
    return source


def session_of(dataset: Dataset) -> SparkSession:
    """The session that a dataset was made with, which may be of Spark Connect."""
    return dataset._user_spark


def list_indexes(spark: SparkSession) -> DataFrame:
    """Every index of all datasets in the session's store. The old name `indexes` works until 1.0.

    Parameters
    ----------
    spark
        The session.

    Returns
    -------
    DataFrame
        A row per index: the dataset's location, the indexed columns, the metadata's size, protection and last change,
        and of a Delta or Iceberg table the snapshot that the metadata covers.
    """
    from es_skipping.spark.classic import classic_session, local_frame

    entries = store_of(classic_session(spark)).datasets()
    rows = [
        (
            entry.definition.id,
            entry.definition.table,
            list(entry.definition.roots),
            entry.definition.format,
            *_description(entry, index, entry.objects),
            _moment(entry.refreshed),
            entry.definition.snapshot,
        )
        for entry in sorted(entries, key=lambda entry: entry.definition.id)
        if not entry.definition.is_of_row_groups
        for index in entry.definition.indexes
    ]
    return local_frame(spark, rows, _LIST)


def _description(entry: DatasetEntry, index: IndexDefinition, objects: int) -> tuple[Any, ...]:
    params = {name: str(value) for name, value in index.parameters.items()}
    size = entry.metadata_bytes.get(index.id)
    per_object = None if size is None or not objects else round(size / objects, 1)
    return index.id, index.type, list(index.columns), params, objects, size, per_object, index.mode


def _moment(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1000, timezone.utc)


def _text(value: Any) -> str:
    """An option's value as the reader writes it."""
    return str(value).lower() if isinstance(value, bool) else str(value)
