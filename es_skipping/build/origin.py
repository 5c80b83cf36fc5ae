"""Where a dataset's objects come from: Spark's listing of files, or the snapshot of a table.

A build asks an origin for the objects and for the rows that they hold. A table's rows are physical: deleted rows count,
because time travel, rollback and RESTORE read them again from a file of the same identity.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from es_skipping.build.object_ids import encoded_path
from es_skipping.catalog import CoveredSnapshot, ObjectId
from es_skipping.errors import DatasetError
from es_skipping.spark.relations import TableSnapshot, list_objects
from es_skipping.stores.object_list import ObjectList

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["Changes", "FileOrigin", "Origin", "Rows", "TableOrigin"]

_WITHOUT_AUTHORITY: Final = "^([A-Za-z][A-Za-z0-9+.-]*):///"
"""How a location may begin that Hadoop writes with one slash."""


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of some objects.

    Parameters
    ----------
    frame
        The rows, perhaps with rows of other objects.
    path
        The object of each row, as text.
    texts
        How that text spells each object.
    """

    frame: DataFrame
    path: Column
    texts: Mapping[ObjectId, str]

    encoded: bool = True
    """Whether the texts are encoded paths."""

    @property
    def place(self) -> Column:
        """The place of each row in its file of Parquet."""
        return self.frame.metadataColumn("_metadata")["row_index"]

    def spells(self, object: ObjectId) -> bool:
        """Whether Spark writes an object's path as `texts` does, so that no row of it means that it holds none."""
        if not self.encoded:
            return True
        jvm: Any = self.frame.sparkSession._jvm
        return bool(jvm.org.apache.hadoop.fs.Path(object.path).toUri().toString() == self.texts[object])


@dataclass(frozen=True, slots=True)
class Changes:
    """What changed in a dataset since a snapshot.

    Parameters
    ----------
    origin
        Of the added objects only. An object with a new identity counts as added.
    removed
        Paths that the snapshot may have had and the dataset no longer has.
    """

    origin: Origin
    removed: frozenset[str]


class Origin(ABC):
    """Where a dataset's objects come from."""

    is_table: bool
    """Whether a table's log lists the objects, which are written once and never change."""

    @abstractmethod
    def objects(self) -> ObjectList:
        """The objects that an unfiltered scan of the dataset reads."""

    @abstractmethod
    def rows(self, objects: Sequence[ObjectId], *, all_objects: bool) -> Rows:
        """The rows that objects hold.

        Parameters
        ----------
        objects
            Some of `objects`.
        all_objects
            Whether these are all.
        """

    @property
    @abstractmethod
    def snapshot(self) -> CoveredSnapshot | None:
        """The snapshot that `objects` lists; None where there is none, or nothing tells it from others."""

    @abstractmethod
    def changes_since(self, snapshot: CoveredSnapshot) -> Changes | None:
        """What changed since an earlier snapshot, found without listing all objects; None means: list them."""

    @abstractmethod
    def close(self) -> None:
        """Release what `rows` made."""


@dataclass(frozen=True, slots=True)
class FileOrigin(Origin):
    """Files as Spark lists them.

    Parameters
    ----------
    df
        Reads the dataset.
    """

    df: DataFrame
    is_table = False
    snapshot = None

    def objects(self) -> ObjectList:
        return ObjectList(ObjectId(*one) for one in list_objects(self.df))

    def rows(self, objects: Sequence[ObjectId], *, all_objects: bool) -> Rows:
        texts = {object: encoded_path(object.path) for object in objects}
        path = _file_path(self.df)
        return Rows(self.df if all_objects else self.df.where(path.isin(list(texts.values()))), path, texts)

    def changes_since(self, snapshot: CoveredSnapshot) -> None:
        return None

    def close(self) -> None:
        pass


@dataclass(frozen=True, slots=True)
class TableOrigin(Origin):
    """The files of one snapshot of a Delta or Iceberg table.

    Parameters
    ----------
    df
        Reads the table.
    opened
        The snapshot, or its files that are new.
    format
        The table's.
    """

    df: DataFrame
    opened: TableSnapshot
    format: str
    is_table = True

    def objects(self) -> ObjectList:
        return ObjectList(ObjectId(*one) for one in list_objects(self.df, self.opened))

    def rows(self, objects: Sequence[ObjectId], *, all_objects: bool) -> Rows:
        from es_skipping.spark.classic import functions as F

        frame = self.opened.rows(None if all_objects else [object.path for object in objects])
        if self.format != "iceberg":
            return Rows(frame, _file_path(frame), {object: encoded_path(object.path) for object in objects})
        path = F.regexp_replace(F.col("_file"), _WITHOUT_AUTHORITY, "$1:/")
        return Rows(frame, path, {object: object.path for object in objects}, encoded=False)

    @property
    def snapshot(self) -> CoveredSnapshot | None:
        stamp = self.opened.stamp
        return None if stamp is None else CoveredSnapshot(self.opened.id, stamp)

    def changes_since(self, snapshot: CoveredSnapshot) -> Changes | None:
        found = self.opened.since(snapshot.id, snapshot.stamp)
        if found is None:
            return None
        added, removed = found
        return Changes(TableOrigin(self.df, added, self.format), frozenset(removed))

    def close(self) -> None:
        self.opened.close()


def _file_path(frame: DataFrame) -> Column:
    """The encoded path of each row's object.

    Raises
    ------
    DatasetError
        Spark does not reveal it: 4.0 hides it behind the padding of CHAR columns.
    """
    from pyspark.errors import AnalysisException

    try:
        return frame.metadataColumn("_metadata")["file_path"]
    except AnalysisException:
        raise DatasetError(
            "this version of Spark does not tell which file a row is from, as it does not where a table has CHAR "
            "columns that it pads: use a newer Spark"
        ) from None
