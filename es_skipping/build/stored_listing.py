"""`read`: a dataset whose files the metadata store lists, so that a query's plan needs no listing of directories."""

from __future__ import annotations

import hashlib
import json
import logging
import tempfile
from collections.abc import Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from es_skipping.build.dataset import Dataset
from es_skipping.build.source import Reading, load
from es_skipping.errors import StoreError
from es_skipping.settings import Settings
from es_skipping.spark.bridge import jvm_api, session_settings
from es_skipping.spark.classic import classic_session
from es_skipping.spark.formats import INDEXED
from es_skipping.spark.services import store_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from es_skipping.catalog import DatasetEntry
    from es_skipping.stores.base import MetadataStore

__all__ = ["read"]

_OBJECTS_PER_LINE: Final = 4_096
_MAX_FAILED: Final = 1_000
"""Above this many objects without metadata, list the dataset: each would be asked for."""
_ATTEMPTS: Final = 3
"""Attempts to read one generation while others publish."""
_PATHS: Final = frozenset({"path", "paths"})
_PARTITION_SETTINGS: Final = (
    "spark.sql.sources.partitionColumnTypeInference.enabled",
    "spark.sql.session.timeZone",
    "spark.sql.caseSensitive",
    "spark.sql.timestampType",
    "spark.sql.legacy.timeParserPolicy",
    "spark.sql.sources.validatePartitionColumns",
)
"""Settings by which Spark reads the values of partitions from paths."""
_SCHEMA_SETTINGS: Final = {
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
    "spark.sql.parquet.binaryAsString": "false",
    "spark.sql.parquet.int96AsTimestamp": "true",
    "spark.sql.parquet.inferTimestampNTZ.enabled": "true",
    "spark.sql.parquet.mergeSchema": "false",
    "spark.sql.orc.mergeSchema": "false",
}
"""Settings by which Spark finds the types of columns, and their defaults. The store knows the schema of the build."""
_log: Final = logging.getLogger("es_skipping")


def read(spark: SparkSession, dataset: Dataset | str) -> DataFrame:
    """Read a dataset without listing its directories: the metadata store lists its files and knows its schema.

    `spark.read` lists all files before it plans a query. Here the files are those of the last build or refresh, and a
    query asks the file system only about files that it does not skip. **Files that were added or written again since
    then are seen after the next refresh.** If a file that the query does not skip has changed or is gone, the query
    lists the directories and reads what it finds.

    Delta and Iceberg tables, tables of the catalog, datasets without an index and sessions of Spark Connect are read as
    `spark.read` reads them, and with ``verify=mac`` all datasets are.

    Parameters
    ----------
    spark
        A classic session.
    dataset
        The dataset, or its path.

    Returns
    -------
    DataFrame
        For SQL, give it a name: ``esk.read(spark, dataset).createOrReplaceTempView("events")``. It keeps the files that
        it was made with; call this again after a refresh.

    Raises
    ------
    StoreError
        The store cannot be read.

    Examples
    --------
    >>> df = esk.read(spark, "/lake/events")                                          # doctest: +SKIP
    >>> df.where("city = 'Oslo'").count()                                             # doctest: +SKIP
    1042
    """
    opened = dataset if isinstance(dataset, Dataset) else Dataset(spark, dataset)
    session = classic_session(spark)
    store = store_of(session)
    for _ in range(_ATTEMPTS):
        entry = store.dataset(opened.id)
        reading = opened._reading(entry)
        if entry is None or session is not spark or not _is_listed(entry, reading) or not _has_schema(session, entry):
            break
        if Settings(session_settings(session, ()))["verify"] == "mac":  # nobody has authenticated the list of files
            break
        found = _by_store(session, store, entry, reading)
        if found is not None:
            return found
    return load(spark, reading)


def _is_listed(entry: DatasetEntry, reading: Reading) -> bool:
    """Whether the store's objects are the files that this reading would list."""
    definition = entry.definition
    if reading.table is not None or definition.table is not None or reading.format not in INDEXED:
        return False
    same = definition.format == reading.format and dict(definition.options) == _lower(reading.options)
    return same and bool(definition.indexes) and not definition.not_understood() and len(entry.failed) <= _MAX_FAILED


def _has_schema(spark: SparkSession, entry: DatasetEntry) -> bool:
    """Whether Spark would find the schema that the build found: all settings that decide have their defaults."""
    return all(
        str(spark.conf.get(name, default)).lower() == default.lower()
        and all(str(one.built_with.get(name, default)).lower() == default.lower() for one in entry.definition.indexes)
        for name, default in _SCHEMA_SETTINGS.items()
    )


def _by_store(spark: SparkSession, store: MetadataStore, entry: DatasetEntry, reading: Reading) -> DataFrame | None:
    """The dataset as this entry describes it; None if the store has something else by now."""
    from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame

    definition = entry.definition
    facts: dict[str, Any] = {
        "roots": list(definition.roots),
        "options": {name: value for name, value in reading.options.items() if name.lower() not in _PATHS},
        "format": definition.format,
        "schema": _as_json(spark, reading),
        "dataSchema": definition.schema,
    }
    settings = session_settings(spark, _PARTITION_SETTINGS)
    listed = [store.url, facts, [settings.get(name) for name in _PARTITION_SETTINGS]]
    generation = f"{definition.id} {entry.snapshot} {hashlib.sha256(json.dumps(listed).encode()).hexdigest()[:16]}"
    api, java = jvm_api(spark), spark._jsparkSession
    try:
        if not api.hasListing(java, generation):
            with tempfile.NamedTemporaryFile("w", prefix="es-skipping-", encoding="ascii") as file:
                if _written(store, definition.id, file) != (entry.objects, entry.bytes):
                    return None
                failed = [path for path, _ in entry.failed]
                api.keepListing(java, generation, json.dumps({**facts, "failed": failed}), file.name)
        made = api.readListing(java, generation, json.dumps(facts))
    except StoreError:
        raise
    except Exception as error:  # such as a file system that does not tell a failed file's state
        _log.warning("%s is read by a listing of its directories: %s", definition.id, error)
        return load(spark, reading)
    return None if made is None else ClassicDataFrame(made, spark)


def _written(store: MetadataStore, id: str, file: Any) -> tuple[int, int]:
    """Write a store's objects into a file; their number and bytes."""
    objects = length = 0
    left = store.objects(id)
    while page := [object for object, _ in islice(left, _OBJECTS_PER_LINE)]:
        objects += len(page)
        length += sum(one.length for one in page)
        file.write(json.dumps([(one.path, one.length, one.mtime) for one in page]) + "\n")
    file.flush()
    return objects, length


def _as_json(spark: SparkSession, reading: Reading) -> str | None:
    """The reader's own schema."""
    if reading.schema is None or not isinstance(reading.schema, str):
        return None if reading.schema is None else str(reading.schema.json())
    jvm: Any = spark._jvm
    return str(jvm.org.apache.spark.sql.types.StructType.fromDDL(reading.schema).json())


def _lower(options: Mapping[str, str]) -> dict[str, str]:
    """Options as a definition has them."""
    return {name.lower(): value for name, value in options.items() if name.lower() not in _PATHS}
