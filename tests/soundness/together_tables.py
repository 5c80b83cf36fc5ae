"""One table in each of three shapes, plain files, Delta and Iceberg, and the changes that each shape knows."""

from __future__ import annotations

import os
import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

import es_skipping as esk

__all__ = ["SHAPES", "Change", "Table"]

Change = Callable[[SparkSession], object]
"""A change of a table by a session."""

_LONG_AGO: Final = 1_700_000_000
"""Seconds. A build leaves out files that are a moment old."""

_ROWS_PER_GROUP: Final = 9


def _with_part(rows: pa.Table, part: int) -> pa.Table:
    return rows.append_column("p", pa.array([part] * rows.num_rows, pa.int32()))


class Table(ABC):
    """A table that all sessions of a world read.

    Parameters
    ----------
    name
        Short; the view or the table of this name is what queries read.
    schema
        Of all columns. A last column ``p`` may be the partition.
    rows
        Makes the rows of a file, without ``p``.
    sessions
        The session without skipping first.
    """

    relation: str
    """What queries read, in SQL."""

    reference: str | None = None
    """What a foreign key names, in SQL; None if an index cannot be made of a join with it."""

    takes_dml = True
    """Whether SQL deletes, updates and merges its rows."""

    def __init__(
        self, name: str, schema: str, rows: Callable[[], pa.Table], sessions: Sequence[SparkSession], rng: random.Random
    ) -> None:
        self.name, self.schema, self.rows, self.sessions, self.rng = name, schema, rows, sessions, rng
        self.has_part = schema.endswith(" p INT")
        self.partitioned = self.has_part and rng.random() < 0.4

    @property
    def off(self) -> SparkSession:
        return self.sessions[0]

    @abstractmethod
    def dataset(self, session: SparkSession) -> esk.Dataset:
        """The dataset of the table in a session."""

    @abstractmethod
    def append(self, session: SparkSession, files: int) -> object:
        """New files, written by a session."""

    def look(self) -> None:  # noqa: B027 - a shape need not do anything
        """Let each session list the files as they are now."""

    def note(self) -> None:  # noqa: B027
        """Remember the version that the table has now."""

    def old_relation(self) -> str:
        """An older version in SQL; today's where the shape keeps none."""
        return self.relation

    def with_files(self, session: SparkSession, relation: str, file: str) -> DataFrame:
        """The rows of the table, or of its older version, and what an expression says of each one's file."""
        return session.sql(f"SELECT *, {file} FROM {relation}")

    def changes(self) -> list[Change]:
        """Changes of this shape alone."""
        return []

    def drop(self) -> None:  # noqa: B027
        """Remove it."""


class FilesTable(Table):
    """Parquet files of several row groups below a folder."""

    takes_dml = False

    def __init__(self, folder: Path, *given: object) -> None:
        super().__init__(*given)  # type: ignore[arg-type]
        self.folder = folder
        folder.mkdir(parents=True)
        self.relation, self.reference = self.name, f"parquet.`{folder}`"
        self._made = 0

    def dataset(self, session: SparkSession) -> esk.Dataset:
        return esk.Dataset(session, str(self.folder), schema=self.schema)

    def _write(self, file: Path, rows: pa.Table, part: int) -> None:
        if self.has_part and not self.partitioned:
            rows = _with_part(rows, part)
        file.parent.mkdir(exist_ok=True)
        pq.write_table(rows, file, row_group_size=_ROWS_PER_GROUP)
        self._made += 1
        os.utime(file, (_LONG_AGO + self._made,) * 2)

    def append(self, session: SparkSession, files: int) -> object:
        for _ in range(files):
            part = self.rng.randint(0, 2)
            folder = self.folder / f"p={part}" if self.partitioned else self.folder
            self._write(folder / f"f{self._made:04}.parquet", self.rows(), part)
        return files

    def look(self) -> None:
        for session in self.sessions:
            session.read.schema(self.schema).parquet(str(self.folder)).createOrReplaceTempView(self.name)

    def with_files(self, session: SparkSession, relation: str, file: str) -> DataFrame:
        return session.read.schema(self.schema).parquet(str(self.folder)).selectExpr("*", file)  # a view hides them

    def changes(self) -> list[Change]:
        return [self.rewrite, self.rewrite, self.delete, self.insert, self.insert, self.replace_part]

    def _some_file(self) -> Path:
        return self.rng.choice(sorted(self.folder.rglob("*.parquet")))

    def rewrite(self, session: SparkSession) -> object:
        """A file gets other rows in its place."""
        file = self._some_file()
        self._write(file, self.rows(), self.rng.randint(0, 2))
        (file.parent / f".{file.name}.crc").unlink(missing_ok=True)
        return file.name

    def delete(self, session: SparkSession) -> object:
        file = self._some_file()
        if len(list(self.folder.rglob("*.parquet"))) > 2:
            file.unlink()
        return file.name

    def insert(self, session: SparkSession) -> object:
        """Spark writes a file, which the session may index when it commits."""
        part = self.rng.randint(0, 2)
        frame = session.createDataFrame(self.rows()).coalesce(1)
        if self.partitioned:
            frame.write.mode("append").parquet(f"{self.folder}/p={part}")
        elif self.has_part:
            frame.selectExpr("*", f"{part} AS p").write.mode("append").parquet(str(self.folder))
        else:
            frame.write.mode("append").parquet(str(self.folder))
        return part

    def replace_part(self, session: SparkSession) -> object:
        """Spark overwrites one partition."""
        if not self.partitioned:
            return self.rewrite(session)
        part = self.rng.randint(0, 2)
        session.createDataFrame(self.rows()).coalesce(1).write.mode("overwrite").parquet(f"{self.folder}/p={part}")
        return part


class _LoggedTable(Table):
    """A table whose format logs its versions."""

    format: str

    def __init__(self, folder: Path, *given: object) -> None:
        super().__init__(*given)  # type: ignore[arg-type]
        self._folder = folder
        self._batches = 0
        self.versions: list[object] = []
        self.relation = self.full_name
        parts = " PARTITIONED BY (p)" if self.partitioned else ""
        properties = ", ".join(f"'{key}' = '{value}'" for key, value in self.properties().items())
        self.off.sql(
            f"CREATE TABLE {self.full_name} ({self.schema}) USING {self.format}{parts} TBLPROPERTIES ({properties})"
        )

    @property
    @abstractmethod
    def full_name(self) -> str: ...

    @abstractmethod
    def properties(self) -> dict[str, str]: ...

    @abstractmethod
    def latest(self) -> object:
        """The version that the table has now."""

    def dataset(self, session: SparkSession) -> esk.Dataset:
        return esk.Dataset(session, table=self.full_name)

    def append(self, session: SparkSession, files: int) -> object:
        self._batches += 1
        folder = self._folder / f"{self.name}-{self._batches}"
        folder.mkdir(parents=True)
        for number in range(files):
            rows = self.rows()
            if self.has_part:
                rows = _with_part(rows, self.rng.randint(0, 2))
            pq.write_table(rows, folder / f"{number}.parquet")
        open_cost = session.conf.get("spark.sql.files.openCostInBytes")
        session.conf.set("spark.sql.files.openCostInBytes", str(1 << 27))  # a task, and so a file, for each of them
        try:
            session.read.parquet(str(folder)).writeTo(self.full_name).append()
        finally:
            session.conf.set("spark.sql.files.openCostInBytes", open_cost or "4194304")
        return files

    def look(self) -> None:
        for session in self.sessions:
            session.sql(f"REFRESH TABLE {self.full_name}")

    def note(self) -> None:
        version = self.latest()
        if not self.versions or self.versions[-1] != version:
            self.versions.append(version)

    def old_relation(self) -> str:
        return f"{self.full_name} VERSION AS OF {self.rng.choice(self.versions)}"

    def drop(self) -> None:
        self.off.sql(f"DROP TABLE IF EXISTS {self.full_name}")


class DeltaTable(_LoggedTable):
    """A Delta table whose deletes write deletion vectors."""

    format = "delta"

    @property
    def full_name(self) -> str:
        return self.name

    def properties(self) -> dict[str, str]:
        return {
            "delta.enableDeletionVectors": "true",
            "delta.dataSkippingNumIndexedCols": self.rng.choice(("0", "0", "32")),
        }

    def latest(self) -> object:
        row = self.off.sql(f"DESCRIBE HISTORY {self.full_name} LIMIT 1").head()
        assert row is not None
        return row["version"]

    def changes(self) -> list[Change]:
        return [self.optimize, self.restore]

    def optimize(self, session: SparkSession) -> object:
        session.sql(f"OPTIMIZE {self.full_name}").collect()
        return ""

    def restore(self, session: SparkSession) -> object:
        version = self.rng.choice(self.versions)
        session.sql(f"RESTORE TABLE {self.full_name} TO VERSION AS OF {version}").collect()
        return version


class IcebergTable(_LoggedTable):
    """An Iceberg table whose deletes write delete files, or data files anew."""

    format = "iceberg"

    @property
    def full_name(self) -> str:
        return f"lake.db.{self.name}"

    def properties(self) -> dict[str, str]:
        mode = self.rng.choice(("merge-on-read", "merge-on-read", "copy-on-write"))
        return {
            "format-version": "2",
            **{f"write.{change}.mode": mode for change in ("delete", "update", "merge")},
            "write.distribution-mode": "none",  # each task writes its rows, so files stay different
            "write.spark.fanout.enabled": "true",
            "read.split.open-file-cost": str(128 << 20),
            "write.metadata.metrics.default": self.rng.choice(("none", "none", "full")),
        }

    def latest(self) -> object:
        row = self.off.sql(f"SELECT snapshot_id FROM {self.full_name}.refs WHERE name = 'main'").head()
        assert row is not None
        return row["snapshot_id"]

    def changes(self) -> list[Change]:
        return [self.compact, self.roll_back]

    def compact(self, session: SparkSession) -> object:
        session.sql(
            f"CALL lake.system.rewrite_data_files(table => 'db.{self.name}', options => map('min-input-files', '2', "
            "'target-file-size-bytes', '12000', 'min-file-size-bytes', '9000', 'max-file-size-bytes', '20000'))"
        ).collect()
        return ""

    def roll_back(self, session: SparkSession) -> object:
        version = self.rng.choice(self.versions)
        session.sql(f"CALL lake.system.set_current_snapshot('db.{self.name}', {version})").collect()
        return version


SHAPES: Final[Mapping[str, Callable[..., Table]]] = {"files": FilesTable, "delta": DeltaTable, "iceberg": IcebergTable}
