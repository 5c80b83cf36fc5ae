"""A small lake for trap tests: named objects in a folder, indexes on them, and queries with skipping off and on.

What is opened is taken from the RDD that Spark executes (the files of its partitions), not from what the shim says.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

import es_skipping as esk
from es_skipping.indexes.base import Index
from tests.spark.objects_read import scans

__all__ = ["Lake", "files_opened"]

_BUILT_LONG_AGO = 1_700_000_000


def files_opened(df: DataFrame) -> set[str]:
    """Names of the objects that the executed plan's scans open, subqueries included; run its action first."""
    names: set[str] = set()
    for scan in scans(df):
        partitions = scan.inputRDD().filePartitions()
        for i in range(partitions.size()):
            names.update(str(file.filePath().toPath().getName()) for file in partitions.apply(i).files())
    return names


class Lake:
    """Objects in a folder, read by one session.

    Parameters
    ----------
    spark
        The `spark` fixture. It is strict: a look-up that fails raises, so no test passes because nothing was skipped.
    folder
        Of the objects; a name may hold sub-folders (``p=1/a.parquet``).
    format, schema, options
        How queries read, and what is indexed; they can be changed between the two.
    """

    def __init__(
        self,
        spark: SparkSession,
        folder: Path | str,
        format: str = "parquet",
        schema: str | None = None,
        options: Mapping[str, str] | None = None,
    ) -> None:
        spark.conf.set("spark.es_skipping.strict", "true")
        self.spark = spark
        self.folder = Path(folder)
        self.path = str(folder)
        self.format = format
        self.schema = schema
        self.options = dict(options or {})

    def put(self, name: str, content: pa.Table | Mapping[str, Any] | str | bytes, **options: Any) -> Path:
        """Write one object: columns as Parquet (``options`` are pyarrow's), text as it is. It looks long finished."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, bytes | str):
            path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
        else:
            table = content if isinstance(content, pa.Table) else pa.table(dict(content))
            pq.write_table(table, path, **options)
        os.utime(path, (_BUILT_LONG_AGO, _BUILT_LONG_AGO))
        return path

    def put_all(self, objects: Mapping[str, Any], **options: Any) -> Lake:
        """`put` each; returns the lake."""
        for name, content in objects.items():
            self.put(name, content, **options)
        return self

    @property
    def dataset(self) -> esk.Dataset:
        """The folder as a dataset, read as the lake reads now."""
        return esk.Dataset(self.spark, self.path, format=self.format, schema=self.schema, options=self.options)

    def index(self, *indexes: Index) -> Lake:
        """Create indexes, all of whose objects must come in; returns the lake, with skipping on."""
        result = self.dataset.create_indexes(*indexes)
        assert not result.failed, result.failed
        esk.enable(self.spark)
        return self

    def read(self) -> DataFrame:
        """The whole relation."""
        reader = self.spark.read.format(self.format).options(**self.options)
        return (reader.schema(self.schema) if self.schema else reader).load(self.path)

    def query(self, where: str) -> DataFrame:
        """The rows of which a SQL condition is true; override it for another query."""
        return self.read().where(where)

    def rows(self, where: str) -> Counter[str]:
        """The multiset of the rows, as text."""
        return Counter(map(repr, self.query(where).collect()))

    def opened(self, where: str) -> set[str]:
        """Names of the objects that the query opened."""
        df = self.query(where)
        df.collect()
        return files_opened(df)

    def assert_sound(self, *wheres: str, some_rows: bool = True) -> None:
        """Assert that each condition finds the rows that it finds with skipping off (and that there are some)."""
        for where in wheres:
            self._sound(where, some_rows)

    def _sound(self, where: str, some_rows: bool) -> DataFrame:
        esk.disable(self.spark)
        expected = self.rows(where)
        esk.enable(self.spark)
        df = self.query(where)
        found = Counter(map(repr, df.collect()))
        assert not some_rows or expected, f"{where} finds no rows at all: it tests nothing"
        assert found == expected, f"{where}: lost {expected - found}, got besides {found - expected}"
        return df

    def assert_opens(self, where: str, *names: str) -> None:
        """Assert which objects are opened for a condition, and that no row is lost."""
        assert files_opened(self._sound(where, some_rows=False)) == set(names), where
