"""The files of a dataset that a filter needs: `es_skipping.files`."""

from __future__ import annotations

import itertools
import json
import logging
import os
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from es_skipping.data_files import TABLES, FileListing, Location, locate, table_error
from es_skipping.engines.columns import Columns
from es_skipping.engines.condition import Condition, condition_of, parsed
from es_skipping.engines.footers import FileSchema, schema_of
from es_skipping.engines.partitions import partition_columns, partition_kinds, unclear_partitions
from es_skipping.engines.report import FileList, FilesReport
from es_skipping.engines.store import service, store_settings
from es_skipping.errors import StoreError
from es_skipping.lookup.lookup import Lookup, look_up
from es_skipping.lookup.registry import IndexedDataset
from es_skipping.lookup.request import ScanRequest
from es_skipping.settings import Settings
from es_skipping.stores.object_list import as_keys, is_among

__all__ = ["files"]

_log = logging.getLogger("es_skipping")
_numbers: Final = itertools.count(1)

_SMALLEST: Final = "no file can match; it is the smallest, and engines refuse an empty list"

_WITHOUT_EFFECT: Final = frozenset(
    {
        "spark.sql.parquet.datetimeRebaseModeInRead",
        "spark.sql.parquet.int96RebaseModeInRead",
        "user.timezone",
    }
)
"""Settings that an index was built with and that change only values about which every condition keeps the object, see
`es_skipping.engines.leaves`. All others must have Spark's defaults."""


def files(
    path: str | os.PathLike[str],
    where: str,
    *,
    store: str | os.PathLike[str] | Mapping[str, str] | None = None,
    allow_empty: bool = False,
) -> FileList:
    """List the files of a dataset that can hold a row that satisfies a filter. Needs no Spark and no JVM.

    Give the list to DuckDB, Polars or pyarrow together with the same filter: the list leaves out only files that hold
    no matching row. A file that the store does not know is in the list. So is every file if the store does not answer
    in time; then a warning says why.

    Parameters
    ----------
    path
        The dataset's directory, as a local path or a URL. A part of a dataset is possible too.
    where
        A condition in Spark's SQL. Parts that engines may understand in different ways rule nothing out; the report
        names them.
    store
        Where the indexes are: ``"http://es:9200"``, or the path or URL of a Parquet store. Pass a mapping for more
        settings: ``{"spark.es_skipping.store.url": ..., "spark.es_skipping.store.token": "env:ES_TOKEN"}``. None is
        ``spark-warehouse/_es_skipping`` in the working directory, as of a Spark session without settings.
    allow_empty
        Return an empty list if no file can match. Otherwise the smallest file is in the list then, because DuckDB and
        Polars refuse an empty list.

    Returns
    -------
    FileList
        A list of paths or URLs, with a ``report``.

    Raises
    ------
    FilterError
        The filter is not one condition.
    ColumnError
        The filter names a column that the dataset does not have.
    DatasetError
        The path cannot be listed, or holds a Delta or Iceberg table.
    SettingError
        The store's URL or a credential cannot be used.

    Examples
    --------
    >>> found = files("/lake/events", "city = 'Oslo'", store="http://es:9200")  # doctest: +SKIP
    >>> query = "SELECT count(*) FROM read_parquet($files) WHERE city = 'Oslo'"
    >>> duckdb.sql(query, params={"files": found})  # doctest: +SKIP
    """
    begun = time.perf_counter()
    parsed(where)  # an error of the text is one whatever the store says
    conf = store_settings(store)
    location = locate(path)
    call = _Call(str(os.fspath(path)), where, conf, location)
    try:
        call.look_up()
    except StoreError as error:
        if Settings(conf)["strict"]:
            raise
        _log.warning("all files of %s are kept, because the look-up failed: %s", call.path, error)
        call.failure = f"{type(error).__name__}: {error}"
    return call.result(allow_empty, begun)


class _Call:
    """One call: the listing, the look-up and what remains."""

    def __init__(self, path: str, where: str, conf: dict[str, str], location: Location) -> None:
        self.path = path
        self.failure: str | None = None
        self._where = where
        self._conf = conf
        self._location = location
        self._store = service().store(conf)
        self._listed: FileListing | None = None
        self._first: FileSchema | None = None
        self._condition = Condition((), ())
        self._found: Lookup | None = None

    def look_up(self) -> None:
        """Ask the store.

        Raises
        ------
        StoreError
            There is no answer.
        """
        settings = Settings(self._conf)
        timeout: float = settings["store.timeout"]
        breaker = service().breakers[self._store]
        failures, pause = settings["breaker.failures"], settings["breaker.pause"]
        with breaker.attempt(failures, pause):
            dataset, root = self._dataset(settings["registry.lifetime"], timeout)
        listed = self._listed = self._location.files(root)
        if dataset is None or not listed:
            return
        if listed.mtimes.max() > dataset.entry.refreshed:  # a refresh may know the new files
            with breaker.attempt(failures, pause):
                dataset, root = self._dataset(0.0, timeout)
            if dataset is None:
                return
        request = self._request(dataset, root, listed)
        if request is None:
            return
        deadline = time.monotonic() + timeout
        with breaker.attempt(failures, pause):
            self._found = look_up(request, [dataset], service().functions, lambda: deadline - time.monotonic())

    def _dataset(self, lifetime: float, timeout: float) -> tuple[IndexedDataset | None, str]:
        """The dataset that the path belongs to, and the spelling of the path in it."""
        roots = self._location.roots
        for seconds in (lifetime, 0.0):  # one that was built since the list was read is not missed
            for root in roots:
                found = service().registry.find(self._store, [root], None, seconds, timeout, "parquet")
                if found:
                    format = found[0].entry.definition.format
                    if format in TABLES:
                        raise table_error(self.path, format)
                    return found[0], root
        return None, roots[0]

    def _request(self, dataset: IndexedDataset, root: str, listed: FileListing) -> ScanRequest | None:
        definition = dataset.entry.definition
        schema: dict[str, Any] = json.loads(definition.schema)
        partitions = frozenset(name for one in listed.directories for name in partition_columns(one + "/"))
        self._first = self._schema(listed, 0) if definition.format == "parquet" else None
        in_file = {} if self._first is None else self._first.types
        columns = Columns(schema, partitions, in_file, unclear_partitions(listed.directories))
        self._condition = condition_of(self._where, columns)
        return ScanRequest(
            scan=f"files-{next(_numbers)}",
            roots=(root,),
            format="parquet",
            data_schema=schema,
            settings={
                **self._conf,
                **{
                    name: value
                    for index in definition.indexes
                    for name, value in index.built_with.items()
                    if name in _WITHOUT_EFFECT
                },
            },
            objects=len(listed),
            size=int(listed.lengths.sum()),
            filters=(self._condition.trees,),
        )

    def _schema(self, listed: FileListing, at: int) -> FileSchema | None:
        return schema_of(self._location.filesystem, listed[at].path)

    def result(self, allow_empty: bool, begun: float) -> FileList:
        """The list and its report."""
        listed = self._listed if self._listed is not None else self._location.files(self._location.roots[0])
        kept = self._kept(listed)
        added: list[tuple[str, str]] = []
        if not kept and listed and not allow_empty:
            kept = [int(listed.lengths.argmin())]
            added.append((listed.name(kept[0]), _SMALLEST))
        if kept and len(kept) < len(listed) and (witnesses := _witnesses(listed, kept)):
            kept = sorted({*kept, *witnesses})
            added += ((listed.name(at), "engines take partition columns' types from all files") for at in witnesses)
        if kept and kept[0] != 0 and self._schema(listed, kept[0]) != self._first:
            kept.insert(0, 0)
            added.append((listed.name(0), "engines take the columns' types from the first file"))
        found = self._found
        skipped = len(listed) - len(kept)
        size, left = int(listed.lengths.sum()), int(listed.lengths[kept].sum())
        reason = self.failure or (
            "there are no files" if not listed else "not indexed" if found is None else found.reason
        )
        report = FilesReport(
            path=self.path,
            where=self._where,
            objects_total=len(listed),
            bytes_total=size,
            objects_skipped=skipped,
            bytes_skipped=size - left,
            dataset=None if found is None else ", ".join(one.entry.definition.id for one in found.datasets),
            reason=reason,
            failed=self.failure is not None,
            refused=self._condition.refused,
            indexes=() if found is None else found.indexes,
            clause="" if found is None else " | ".join(part.asked for part in found.flat),
            unusable=() if found is None else found.unusable,
            added=tuple(added),
            store=self._store.url,
            seconds=time.perf_counter() - begun,
        )
        return FileList(map(listed.name, kept), report)

    def _kept(self, listed: FileListing) -> list[int]:
        """The positions of the listed files, unknown ones included, that no answer rules out."""
        answers = [answer for answers in self._found.answers for answer in answers] if self._found is not None else []
        if not answers:
            return list(range(len(listed)))
        skip = np.sort(as_keys(b"".join(answer.skip for answer in answers)))
        left: list[int] = np.flatnonzero(~is_among(as_keys(listed.keys()), skip)).tolist()
        return left


def _witnesses(listed: FileListing, kept: Sequence[int]) -> list[int]:
    """Files to keep so that partition columns have values of the same kinds as in the whole listing: DuckDB compares a
    column as numbers only if each value in the list of files is one."""
    seen = {kind for directory in {listed.directory(at) for at in kept} for kind in partition_kinds(directory)}
    found = []
    for directory, first in listed.directories.items():
        kinds = partition_kinds(directory)
        if not kinds <= seen:
            found.append(first)
            seen |= kinds
    return found
