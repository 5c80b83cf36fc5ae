"""A dataset as Spark reads it: the relation, its facts, and a fresh listing of its objects.

A clone of the user's session reads everything. The build can pin settings there without touching the user's, and the
clone has no cached listing.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from es_skipping.build.origin import FileOrigin, Origin, TableOrigin
from es_skipping.build.table_formats import WHY_NO_HUDI
from es_skipping.catalog import ObjectId
from es_skipping.errors import DatasetError
from es_skipping.lookup.built_with import RELEVANT_SETTINGS
from es_skipping.spark.bridge import session_settings
from es_skipping.spark.failures import first_line
from es_skipping.spark.formats import INDEXED, TABLES
from es_skipping.spark.relations import (
    list_objects_again,
    refuse_all_but_files,
    relation_facts,
    same_files,
    table_snapshot,
)
from es_skipping.spark.services import service_of, session_id
from es_skipping.stores.object_list import ObjectList

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

__all__ = [
    "DELTA_SKIPPING",
    "Reading",
    "Source",
    "build_session",
    "cloned_session",
    "load",
    "moved",
]

_KNOWN: Final = ", ".join(sorted(INDEXED | TABLES))

_FILES_PER_CALL: Final = 1_000
"""Files per call to the JVM."""
DELTA_SKIPPING: Final = "spark.databricks.delta.stats.skipping"
_PINNED: Final = {
    # The build must notice everything that it cannot read: an unread value must never count as absent.
    "spark.es_skipping.enabled": "false",
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.variant.pushVariantIntoScan": "false",  # else a VARIANT column becomes a struct of the requested fields
    # With a byte limit Spark measures the batch after each row, which costs more than writing the row.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "16384",
    "spark.sql.execution.arrow.maxBytesPerBatch": str((1 << 31) - 1),
    "spark.sql.execution.arrow.useLargeVarTypes": "false",
    # The JVM never compiles a method of more than 8,000 bytes. With this limit Spark leaves its whole-stage code there,
    # and generates short methods instead: collecting dozens of conditions takes half the time.
    "spark.sql.codegen.hugeMethodLimit": "8000",
    DELTA_SKIPPING: "false",  # else each optimized plan lists all files of a Delta table
    "spark.sql.sources.useV1SourceList": "avro,csv,json,kafka,orc,parquet,text",
}


@dataclass(frozen=True, slots=True)
class Reading:
    """How to read a dataset: the arguments of `pyspark.sql.DataFrameReader`."""

    paths: tuple[str, ...] = ()
    table: str | None = None
    format: str = "parquet"
    options: Mapping[str, str] = field(default_factory=dict)
    schema: str | StructType | None = None
    known_schema: str | None = None
    """The data's schema as indexed, in JSON; used if a broken file prevents inference."""

    @property
    def name(self) -> str:
        """The dataset's name in messages."""
        return f"table {self.table}" if self.table is not None else ", ".join(self.paths)


@dataclass(frozen=True, slots=True)
class Source:
    """An opened dataset.

    Parameters
    ----------
    df
        Reads the whole dataset as a query does, in the build's own session.
    origin
        Where its objects come from.
    roots, table, format, options
        As in a query's request.
    schema
        The data's, as ``StructType.jsonValue()``.
    settings
        The session's relevant settings.
    """

    df: DataFrame
    origin: Origin
    roots: tuple[str, ...]
    table: str | None
    format: str
    options: Mapping[str, str]
    schema: Mapping[str, Any]
    partition_columns: tuple[str, ...]
    settings: Mapping[str, str]

    @classmethod
    def open(cls, spark: SparkSession, reading: Reading, settings: Mapping[str, str] | None = None) -> Source:
        """Open a dataset in a session of its own.

        Parameters
        ----------
        settings
            The session's relevant settings, if known.

        Raises
        ------
        DatasetError
            The dataset does not exist, is empty, or is not a dataset of files.
        """
        if settings is None:
            settings = session_settings(spark, RELEVANT_SETTINGS)
        df = _frame(build_session(spark), reading)
        snapshot = table_snapshot(df)
        facts = relation_facts(df, snapshot)
        refuse_all_but_files(df)
        if facts["format"] not in INDEXED | TABLES:
            raise DatasetError(f"{reading.name} has the format {facts['format']}; only {_KNOWN} can be indexed")
        for option in ("ignorecorruptfiles", "ignoremissingfiles"):
            if str(facts["options"].get(option, "")).lower() == "true":
                raise DatasetError(
                    f"{reading.name} has the option {option} = true, which makes an unreadable object look empty: "
                    "remove the option from the table, or index the table's path"
                )
        return cls(
            df=df,
            origin=FileOrigin(df) if snapshot is None else TableOrigin(df, snapshot, facts["format"]),
            roots=tuple(root.rstrip("/") for root in facts["roots"]),
            table=facts["table"],
            format=facts["format"],
            options=facts["options"],
            schema=facts["dataSchema"],
            partition_columns=tuple(field["name"] for field in facts["partitionSchema"]["fields"]),
            settings=settings,
        )

    @property
    def is_table(self) -> bool:
        """Whether a table's log lists the objects, which are written once and never change."""
        return self.origin.is_table

    def again(self, spark: SparkSession, reading: Reading) -> Source:
        """The same dataset with a new listing; it keeps an inferred schema, since inference can be costly."""
        if reading.table is None and reading.schema is None and not self.is_table:
            reading = replace(reading, schema=schema_of(json.dumps(self.schema)))
        return Source.open(spark, reading, self.settings)

    @property
    def corrupt_record_column(self) -> str | None:
        """The column for records that cannot be parsed, if the format has one."""
        if self.format not in ("csv", "json"):
            return None
        named = self.options.get("columnnameofcorruptrecord")
        return named or self.settings.get("spark.sql.columnNameOfCorruptRecord") or "_corrupt_record"

    def objects(self) -> ObjectList:
        """The objects that this frame's scan reads."""
        return self.origin.objects()

    def are_unchanged(self, objects: Iterable[ObjectId]) -> bool:
        """Whether the file system reports for each single object what the listing said."""
        listed = iter(objects)
        while batch := list(islice(listed, _FILES_PER_CALL)):
            if not same_files(self.df.sparkSession, [(one.path, one.length, one.mtime) for one in batch]):
                return False
        return True

    def objects_again(self, spark: SparkSession, reading: Reading) -> ObjectList:
        """List the objects again; new objects may be missing.

        Raises
        ------
        DatasetError
            The dataset is gone.
        """
        try:
            found = list_objects_again(self.df)
        except DatasetError:
            raise
        except Exception as error:
            raise DatasetError(f"{reading.name} can no longer be listed: {_useful_line(error)}") from error
        if found is None:
            return self.again(spark, reading).objects()
        return ObjectList(ObjectId(*one) for one in found)


def build_session(spark: SparkSession) -> SparkSession:
    """Clone a session with its settings, views and catalog, and pin the settings `_PINNED`."""
    return cloned_session(spark, _PINNED)


def cloned_session(spark: SparkSession, settings: Mapping[str, str]) -> SparkSession:
    """Clone a session with its views, catalog and settings, and override these settings."""
    from es_skipping.spark.classic import python_session

    clone = python_session(spark.sparkContext, spark._jsparkSession.cloneSession())
    service_of(spark).functions.copy(session_id(spark), session_id(clone))
    for key, value in settings.items():
        clone.conf.set(key, value)
    return clone


def moved(df: DataFrame, session: SparkSession) -> DataFrame:
    """A DataFrame with the same analysed plan, computed and written under another session's settings."""
    from pyspark.sql.classic.dataframe import DataFrame as Classic

    datasets = session._jvm.org.apache.spark.sql.classic.Dataset  # type: ignore[union-attr]
    return Classic(datasets.ofRows(session._jsparkSession, df._jdf.queryExecution().analyzed()), session)


def _frame(spark: SparkSession, reading: Reading) -> DataFrame:
    from pyspark.errors import PySparkException

    try:
        try:
            return _load(spark, reading)
        except Exception as error:
            if reading.table is not None or reading.schema is not None or reading.format in TABLES or _condition(error):
                raise
            # Spark took the schema from an unreadable file. The other files can still be indexed.
            return _load_around(spark, reading)
    except PySparkException as error:
        condition = _condition(error)
        if condition.startswith(("PATH_NOT_FOUND", "TABLE_OR_VIEW_NOT_FOUND")):
            place = (error.getMessageParameters() or {}).get("path", reading.name)
            raise DatasetError(
                f"{reading.name} does not exist" + (f": Spark looked at {place}" if place != reading.name else "")
            ) from None
        if condition.startswith("UNABLE_TO_INFER_SCHEMA"):
            raise DatasetError(
                f"{reading.name} holds no {reading.format} files with a schema: it is empty, or has another format"
            ) from None
        raise _unreadable(reading, error) from error
    except Exception as error:
        raise _unreadable(reading, error) from error


def _unreadable(reading: Reading, error: Exception) -> DatasetError:
    why = _useful_line(error)
    if "ClassNotFoundException" in why and reading.format.lower() in TABLES:
        why = f"this session does not have the jar of {reading.format}"
    elif "ClassNotFoundException" in why and reading.format.lower() == "hudi":
        why = WHY_NO_HUDI
    elif "ClassNotFoundException" in why and reading.format.lower() not in INDEXED:
        why = f"Spark does not know this format; {_KNOWN} can be indexed"
    return DatasetError(f"{reading.name} cannot be read as {reading.format}: {why}")


def _load(spark: SparkSession, reading: Reading, **more: str) -> DataFrame:
    overruled = {"ignorecorruptfiles", "ignoremissingfiles"}
    options = {name: value for name, value in reading.options.items() if name.lower() not in overruled}
    return load(spark, replace(reading, options={**options, **more}))


def load(spark: SparkSession, reading: Reading) -> DataFrame:
    """Read a dataset in a session, as `pyspark.sql.DataFrameReader` does."""
    if reading.table is not None:
        return spark.read.table(reading.table)
    reader = spark.read.format(reading.format).options(**reading.options)
    if reading.schema is not None:
        from es_skipping.spark.classic import acting

        with acting(spark):
            reader = reader.schema(reading.schema)
    return reader.load(list(reading.paths) if len(reading.paths) > 1 else reading.paths[0])


def _load_around(spark: SparkSession, reading: Reading) -> DataFrame:
    """Open with the indexed schema, or the schema of the readable files; the scan still reports unreadable files."""
    if reading.known_schema is not None:
        return _load(spark, replace(reading, schema=schema_of(reading.known_schema)))
    key = "spark.sql.files.ignoreCorruptFiles"
    spark.conf.set(key, "true")
    try:
        merge = {"mergeSchema": "true"} if reading.format in ("parquet", "orc") else {}
        found = _load(spark, reading, **merge).schema
    finally:
        spark.conf.set(key, "false")
    return _load(spark, replace(reading, schema=found))


def _condition(error: Exception) -> str:
    """Spark's name for a user's error, such as a missing path; empty if it has none."""
    from pyspark.errors import AnalysisException

    return (error.getCondition() or "") if isinstance(error, AnalysisException) else ""


def _useful_line(error: Exception) -> str:
    """The useful line of an error; py4j's own first line is not."""
    java = getattr(error, "java_exception", None)
    if java is not None:
        while java.getCause() is not None:
            java = java.getCause()
        return str(java.toString()).splitlines()[0][:300]
    return first_line(error)[:300]


def schema_of(text: str) -> StructType:
    """A schema in the form that a definition stores."""
    from pyspark.sql.types import StructType

    return StructType.fromJson(json.loads(text))


def as_paths(path: str | Sequence[str] | None) -> tuple[str, ...]:
    """One path or several, as text."""
    if path is None:
        return ()
    several = isinstance(path, Sequence) and not isinstance(path, str)
    parts = tuple(path) if several else (path,)
    for part in parts:
        if not isinstance(part, (str, os.PathLike)):
            raise DatasetError(f"{part!r} is a {type(part).__name__}, not a path; pass one or several paths as text")
    return tuple(str(part) for part in parts)
