"""`Dataset`: creating, refreshing, describing and dropping the indexes of a dataset."""

from __future__ import annotations

import hashlib
import random
import re
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, Final

from es_skipping.build.collect import Progress
from es_skipping.build.collected import Collected
from es_skipping.build.index_arguments import checked, is_definition_of
from es_skipping.build.listing import qualified
from es_skipping.build.results import Health, RefreshResult, dataset_html, index_table, shown_as
from es_skipping.build.source import Reading, Source, as_paths, schema_of
from es_skipping.build.update import Update
from es_skipping.catalog import DatasetEntry, IndexDefinition
from es_skipping.errors import DatasetError, IndexDefinitionError, StoreConflict
from es_skipping.indexes.base import Index
from es_skipping.reports.progress import shown_progress
from es_skipping.settings import Settings
from es_skipping.spark.services import service_of, store_conf, store_of
from es_skipping.stores.base import MetadataStore

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

__all__ = ["Dataset", "Health", "RefreshResult", "list_indexes", "session_of", "source_of"]

_DESCRIPTION: Final = (
    "id string, type string, columns array<string>, params map<string,string>, objects bigint, "
    "metadata_bytes bigint, bytes_per_object double"
)
_LIST: Final = (
    "dataset string, `table` string, roots array<string>, format string, " + _DESCRIPTION + ", refreshed timestamp"
)
_CONFLICT_TRIES: Final = 6
"""How often a change is tried where other writers publish in between."""

_CONFLICT_WAIT: Final = 0.2
"""Up to how many seconds to wait after the first conflict; twice as many after each further one."""


class Dataset:
    """A dataset of files, whose indexes are created, refreshed and dropped here. Queries need none of it.

    Parameters
    ----------
    spark
        The session; its settings say where the metadata is.
    path
        Directory, file or glob, or several; as `DataFrameReader.load` takes it.
    table
        Instead of a path: a table of the catalog.
    format, options, schema
        As the reader takes them. An index is used by reads of the same format and options. A dataset that is indexed
        already is read as it was indexed, unless any of the three is given.

    Raises
    ------
    DatasetError
        Neither or both of path and table are given.

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
    ) -> None:
        from es_skipping.spark.classic import classic_session

        paths = as_paths(path)
        if bool(paths) == (table is not None) or any(not part.strip() for part in paths):
            raise DatasetError(f"give either a path or a table, not path={path!r} and table={table!r}")
        if table is not None and (format is not None or options or schema is not None):
            raise DatasetError(
                f"table {table} has its format, options and schema in the catalog; give none of them here"
            )
        if options is not None and not isinstance(options, Mapping):
            raise DatasetError(f"options={options!r}; give names and values, such as options={{'header': 'true'}}")
        self._user_spark = spark
        self._spark = classic_session(spark)
        self._as_given = Reading(
            paths, table, format or "parquet", {name: _text(value) for name, value in (options or {}).items()}, schema
        )
        self._said_how = format is not None or options is not None or schema is not None
        self._id: str | None = None

    def __repr__(self) -> str:
        return f"Dataset({self._as_given.name})"

    def _repr_html_(self) -> str:
        return dataset_html(self._as_given.name, self._store, self.id)

    # --- building -------------------------------------------------------------------------------------------------

    def create_indexes(self, *indexes: Index, progress: Progress | None = None) -> RefreshResult:
        """Build indexes: all of a dataset that has none, or more for one that has some.

        Every object is read once for all of them (or only its Parquet footer, where that answers soundly). Objects
        that are new or changed since the last build get all indexes.

        Parameters
        ----------
        *indexes
            What to build.
        progress
            Called with ``(done, total, phase)`` as the work goes on. Left out, a bar is drawn as the setting
        ``progress`` says: in notebooks and terminals.

        Raises
        ------
        IndexDefinitionError
            One is there already, or is given twice.
        ColumnError
            A column is unknown or cannot carry the index.
        DatasetError
            The dataset cannot be listed or read.
        StoreError
            The store cannot be reached, or refused.
        """
        return self._update(checked(indexes), ensure=False, progress=progress)

    def ensure_indexes(self, *indexes: Index, progress: Progress | None = None) -> RefreshResult:
        """As `create_indexes`, but what is there already is no error and is refreshed: for nightly jobs."""
        return self._update(checked(indexes), ensure=True, progress=progress)

    def refresh(
        self,
        paths: str | Sequence[str] | None = None,
        partitions: Mapping[str, Any] | str | Sequence[Mapping[str, Any] | str] | None = None,
        *,
        progress: Progress | None = None,
    ) -> RefreshResult:
        """Index what is new or changed since, and forget what is gone.

        Parameters
        ----------
        paths
            Only objects at or below these.
        partitions
            Only objects of these partitions: ``{"day": "2024-01-05"}`` or ``"day=2024-01-05"``, or several.

        Raises
        ------
        DatasetError
            There is no index, the dataset cannot be listed, or a path lies outside of it.
        """
        return self._update((), must_exist=True, paths=paths, partitions=partitions, progress=progress)

    def drop_indexes(self, *indexes: Index, all: bool = False) -> None:
        """Drop indexes with their metadata; the data is not touched.

        Raises
        ------
        IndexDefinitionError
            One is not there; then none is dropped. Or neither indexes nor ``all`` is given, or both.
        """
        if bool(indexes) == all:
            raise IndexDefinitionError("name the indexes to drop, or say all=True; not both and not neither")
        if not all:
            checked(indexes)
        store = self._store()
        if all:
            store.drop(self.id)
            service_of(self._spark).registry.forget()
            return
        for left in reversed(range(_CONFLICT_TRIES)):
            try:
                self._drop(store, indexes)
                break
            except StoreConflict:
                if not left:
                    raise
                _wait(left)

    def optimize(self) -> None:
        """Compact what many refreshes left behind in the store. Readers are not disturbed."""
        self._store().optimize(self.id)
        service_of(self._spark).registry.forget()

    # --- looking --------------------------------------------------------------------------------------------------

    @property
    def id(self) -> str:
        """The dataset's name in the store: readable, and made from its place alone."""
        if self._id is None:
            self._id = _dataset_id(self._spark, self._as_given)
        return self._id

    def is_indexed(self) -> bool:
        """Whether the store holds a published index of it."""
        entry = self._store().dataset(self.id)
        return entry is not None and bool(entry.definition.indexes)

    def describe(self) -> DataFrame:
        """A row per index: ``id``, ``type``, ``columns``, ``params``, ``objects``, ``metadata_bytes``,
        ``bytes_per_object``.

        Empty where there is none. ``objects`` counts those of which the index knows something.
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
        listed = Source.open(self._spark, self._reading(entry)).objects()
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
        )

    # --- inside ---------------------------------------------------------------------------------------------------

    def _store(self) -> MetadataStore:
        return store_of(self._spark)

    def _reading(self, entry: DatasetEntry | None) -> Reading:
        """As the user said; where nothing was said, as it was indexed."""
        given = self._as_given
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
        with Collected() as collected:
            for left in reversed(range(_CONFLICT_TRIES)):
                entry = store.dataset(self.id)
                reading = self._reading(entry)
                update = Update(self._spark, store, self.id, reading, add, **limits, **options, collected=collected)
                try:
                    return update.run()
                except StoreConflict:
                    if not left:
                        raise
                    _wait(left)
                finally:
                    service_of(self._spark).registry.forget()
        raise AssertionError("the last try returns or raises")

    def _drop(self, store: MetadataStore, indexes: Sequence[Index]) -> None:
        entry = store.dataset(self.id)
        there = list(entry.definition.indexes) if entry is not None else []
        left = list(there)
        for index in indexes:
            found = next((one for one in left if is_definition_of(one, index)), None)
            if found is None:
                names = ", ".join(one.id for one in there) or f"none in the store {store.url}"
                raise IndexDefinitionError(f"{index!r} is no index of {self._as_given.name}; it has {names}")
            left.remove(found)
        if not left or entry is None:
            store.drop(self.id)
        else:
            with store.change(replace(entry.definition, indexes=tuple(left))) as change:
                change.publish(entry.failed)
        service_of(self._spark).registry.forget()


def _wait(left: int) -> None:
    """A random while, longer with each try, so that two writers do not meet again."""
    time.sleep(random.uniform(0, _CONFLICT_WAIT * 2.0 ** (_CONFLICT_TRIES - 1 - left)))  # noqa: S311 - no secret


def source_of(dataset: Dataset) -> Source:
    """A dataset's data, opened as its arguments say, whatever its store knows; for the layouts."""
    return Source.open(dataset._spark, dataset._as_given)


def session_of(dataset: Dataset) -> SparkSession:
    """The session that a dataset was made with, which may be of Spark Connect."""
    return dataset._user_spark


def list_indexes(spark: SparkSession) -> DataFrame:
    """Every index in the session's store, of all datasets. Its old name, `indexes`, works until 1.0.

    Parameters
    ----------
    spark
        The session.

    Returns
    -------
    DataFrame
        A row per index: where the dataset is, what is indexed, how much there is, and when it last changed.
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
        )
        for entry in sorted(entries, key=lambda entry: entry.definition.id)
        for index in entry.definition.indexes
    ]
    return local_frame(spark, rows, _LIST)


def _description(entry: DatasetEntry, index: IndexDefinition, objects: int) -> tuple[Any, ...]:
    params = {name: str(value) for name, value in index.parameters.items()}
    size = entry.metadata_bytes.get(index.id)
    per_object = None if size is None or not objects else round(size / objects, 1)
    return index.id, index.type, list(index.columns), params, objects, size, per_object


def _moment(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1000, timezone.utc)


def _text(value: Any) -> str:
    """An option's value as the reader would write it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _dataset_id(spark: SparkSession, reading: Reading) -> str:
    """Readable, and different for the same path in two places: of the last name, and a hash of all of it."""
    if reading.table is not None:
        place = _full_name(spark, reading.table)
        name = place.rpartition(".")[2]
    else:
        try:
            places = sorted(qualified(spark, path) for path in reading.paths)
        except Exception as error:
            raise DatasetError(
                f"{reading.name} is no path that Spark can read: {str(error).splitlines()[0]}"
            ) from error
        place = "\n".join(places)
        name = places[0].rpartition("/")[2]
    readable = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")[:40]
    return f"{readable or 'dataset'}-{hashlib.sha256(place.encode('utf-8', 'surrogatepass')).hexdigest()[:12]}"


def _full_name(spark: SparkSession, table: str) -> str:
    from pyspark.errors import PySparkException

    state = spark._jsparkSession.sessionState()
    try:
        identifier = state.sqlParser().parseTableIdentifier(table)
        return str(state.catalog().qualifyIdentifier(identifier).unquotedString())
    except PySparkException as error:
        raise DatasetError(f"{table!r} is no table's name: {str(error).strip().splitlines()[0]}") from None
