"""The contract of a metadata store.

A store keeps, for each dataset, a *definition* (what is indexed and what it was built with) and one *object metadata*
for each object. It is changed only through a `Change`, which is published whole or not at all, and it answers one
question at query time: which objects does this clause prove to hold nothing?

Stores know no Spark and no index types: only kinds of metadata and questions (`es_skipping.clauses`).
"""

from __future__ import annotations

import hashlib
import re
import struct
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from es_skipping.clauses.clause import Clause
from es_skipping.clauses.metadata import Kind, Metadata
from es_skipping.errors import StoreError
from es_skipping.predicates.types import DataType
from es_skipping.stores.query_log import LoggedQuery
from es_skipping.stores.selection import KEY_BYTES, NO_KEY, Selection

if TYPE_CHECKING:
    from es_skipping.stores.share import Outcome, Share

__all__ = [
    "FORMAT_VERSION",
    "KEY_BYTES",
    "NO_KEY",
    "Answer",
    "Change",
    "DatasetDefinition",
    "DatasetEntry",
    "IndexDefinition",
    "MetadataStore",
    "ObjectId",
    "ObjectMetadata",
    "StoreQuery",
    "check_change",
    "is_under",
]

FORMAT_VERSION: Final = 1
"""Of everything a store writes; a store that finds a higher one raises `StoreFormatError`."""


@dataclass(frozen=True, slots=True, order=True)
class ObjectId:
    """What identifies an object: path, length and modification time together.

    Parameters
    ----------
    path
        Hadoop's decoded text of it, scheme included: ``file:/data/a b.parquet``.
    length
        Bytes.
    mtime
        Milliseconds since the epoch, as Hadoop's ``FileStatus`` reports it.
    """

    path: str
    length: int
    mtime: int

    @property
    def key(self) -> bytes:
        """16 bytes that stand for the identity: the MD5 of path, length and mtime, which the shim computes alike."""
        text = self.path.encode("utf-8", "surrogatepass")
        digest = hashlib.md5(usedforsecurity=False)
        digest.update(text)
        digest.update(struct.pack(">qq", self.length, self.mtime))
        return digest.digest()


@dataclass(frozen=True, slots=True)
class IndexDefinition:
    """One index of a dataset, as it is remembered.

    Parameters
    ----------
    id
        Unique in the dataset, stable and readable: ``"minmax(ts)"``.
    type, columns, parameters
        What the user wrote; enough to make the index object again.
    operands
        The indexed expressions as serialised trees (`es_skipping.predicates.codec`), to be recognised in filters.
    kind, value_type
        What the metadata is, and the type of the values in it.
    built_with
        Text facts that must hold at query time for the index to be used (column schema, settings), by name.
    """

    id: str
    type: str
    columns: tuple[str, ...]
    kind: Kind
    value_type: DataType
    operands: tuple[Any, ...] = ()
    column_types: tuple[DataType, ...] = ()
    parameters: Mapping[str, int | float | str] = field(default_factory=dict)
    built_with: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DatasetDefinition:
    """A dataset and its indexes.

    Parameters
    ----------
    id
        Readable and unique in the store; only ``[a-z0-9_-]``, at most 80 characters.
    roots
        Hadoop's decoded text of the root paths, without a trailing slash.
    table
        The catalog's full name, where the dataset is a table.
    format, options
        Of the reader: ``"parquet"``; options as given, keys in lower case.
    built_with
        Facts that must hold for the whole dataset to be used.
    """

    id: str
    roots: tuple[str, ...]
    format: str
    indexes: tuple[IndexDefinition, ...] = ()
    table: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    schema: str = "{}"
    built_with: Mapping[str, str] = field(default_factory=dict)

    def index(self, id: str) -> IndexDefinition:
        """The index of that id; KeyError where there is none."""
        for index in self.indexes:
            if index.id == id:
                return index
        raise KeyError(id)


@dataclass(frozen=True, slots=True)
class DatasetEntry:
    """A dataset as the store has it now.

    Parameters
    ----------
    snapshot
        Changes with every publication; two entries with equal ``(definition.id, snapshot)`` see the same metadata.
    objects, bytes
        How many objects have metadata, and the sum of their lengths.
    failed
        ``(path, reason)`` of objects the last build or refresh could not read.
    refreshed
        When the last change was published, milliseconds since the epoch.
    metadata_bytes
        By index id; as near as the store can tell.
    """

    definition: DatasetDefinition
    snapshot: str
    objects: int
    bytes: int
    refreshed: int
    failed: tuple[tuple[str, str], ...] = ()
    metadata_bytes: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ObjectMetadata:
    """All that is remembered of one object; an index id that is missing is *unknown*."""

    id: ObjectId
    rows: int | None
    metadata: Mapping[str, Metadata]


@dataclass(frozen=True, slots=True)
class Answer:
    """Which objects may be skipped.

    Parameters
    ----------
    found
        The objects the clause is proved false of: their keys (`ObjectId.key`), concatenated, in no order; or a
        `Selection`. Only objects whose identity the metadata was computed from; whatever is missing here is kept.
    known
        How many objects the store has metadata of.
    by_index
        How many objects each index alone would skip; only where asked for, else empty.
    """

    found: bytes | Selection
    known: int
    by_index: Mapping[str, int] = field(default_factory=dict)

    @property
    def skip(self) -> bytes:
        """The keys of the objects to skip, concatenated, in no order."""
        return self.found if isinstance(self.found, bytes) else self.found.keys()

    @property
    def skipped(self) -> int:
        return len(self.found) // KEY_BYTES if isinstance(self.found, bytes) else self.found.skipped


@dataclass(frozen=True, slots=True)
class StoreQuery:
    """What a store would be asked: ``text`` can be pasted where people ask the store by hand."""

    text: str
    notes: tuple[str, ...] = ()


class Change(ABC):
    """One writer's pending change of one dataset. Nothing of it is used by readers until `publish`."""

    @abstractmethod
    def put(self, objects: Iterable[ObjectMetadata]) -> None:
        """Add objects, or for an identity already stored, add to its metadata (replacing index ids given again).

        Another identity with the same path is replaced. The iterable is consumed with bounded memory. An object that is
        too large for the store loses its largest metadata (it becomes unknown), never the whole build.
        """

    @abstractmethod
    def remove(self, objects: Iterable[ObjectId]) -> None:
        """Forget these objects; those that are not there are no error."""

    @abstractmethod
    def publish(self, failed: Iterable[tuple[str, str]] = ()) -> DatasetEntry:
        """Put the change in use, definition included, whole.

        Raises
        ------
        StoreConflict
            Another writer published in between; nothing of this change is used.
        """

    def share(self, objects: Sequence[ObjectId]) -> Share | None:
        """What other processes need to write these objects themselves: all that is known of them, then.

        None where the store takes metadata only from this process, or has taken one of the objects in this change. An
        object of which no written `Outcome` is received may be `put` here instead, and is not published otherwise.
        """
        return None

    def receive(self, share: Share, outcomes: Iterable[Outcome]) -> None:
        """Take what became of objects of a share; of each object once."""
        raise NotImplementedError(f"{type(self).__name__} gives out no shares")

    @abstractmethod
    def written(self) -> Iterator[ObjectId]:
        """The objects that were put so far, read back from the store; where `change` was given a name also those that
        earlier changes of that name put."""

    @abstractmethod
    def read(self, objects: Iterable[ObjectId]) -> Iterator[ObjectMetadata]:
        """The metadata of those of these objects that `written` has, read back from the store, in any order."""


def is_under(path: str, under: Sequence[str] | None) -> bool:
    """Whether a path is one of these, or below one; None is everywhere."""
    return under is None or any(path == part or path.startswith(part + "/") for part in under)


def check_change(fresh: bool, name: str | None) -> None:
    """Refuse what no store's `change` understands.

    Raises
    ------
    ValueError
        The name is no name, or a change with a name would add to what is there.
    """
    if name is not None and not (fresh and re.fullmatch("[a-z0-9]{1,32}", name)):
        raise ValueError(f"a change by the name {name!r} must be fresh, and the name 1 to 32 of [a-z0-9]")


class MetadataStore(ABC):
    """Keeps metadata, answers which objects may be skipped. Safe to use from several threads."""

    @property
    @abstractmethod
    def url(self) -> str:
        """Where it is, without secrets."""

    @abstractmethod
    def datasets(self) -> list[DatasetEntry]:
        """Every dataset in the store; an empty list where nothing was ever written."""

    @abstractmethod
    def dataset(self, id: str) -> DatasetEntry | None:
        """One dataset, read afresh."""

    @abstractmethod
    def change(
        self, definition: DatasetDefinition, *, fresh: bool = False, name: str | None = None
    ) -> AbstractContextManager[Change]:
        """Begin a change that will leave the dataset with this definition.

        Leaving the context without `Change.publish` discards it. Metadata of index ids that the definition no longer
        has is dropped.

        Parameters
        ----------
        fresh
            Start from nothing: a new generation, of which readers see nothing until it is published whole.
        name
            Of a fresh change that takes long: left without `Change.publish`, or killed, it is kept, and the next change
            of that name and definition goes on from there. What it replaces is kept too, until `drop_superseded`.
        """

    @abstractmethod
    def drop(self, id: str) -> None:
        """Forget a dataset with all its metadata; one that is not there is no error."""

    @abstractmethod
    def keys(self, id: str) -> bytes:
        """The keys of the objects of the published snapshot, concatenated; what is stored under each is there."""

    @abstractmethod
    def objects(
        self, id: str, *, under: Sequence[str] | None = None, keys: bytes | None = None
    ) -> Iterator[tuple[ObjectId, frozenset[str]]]:
        """Every object of the published snapshot, with the ids of the indexes that know something of it.

        Parameters
        ----------
        under
            Only those at these paths, or below them.
        keys
            Only those with these keys, concatenated.
        """

    @abstractmethod
    def metadata(self, id: str) -> Iterator[ObjectMetadata]:
        """Everything, streamed, as it was put (up to roundings that the store documents, always outward)."""

    @abstractmethod
    def lookup(
        self, entry: DatasetEntry, clause: Clause, *, timeout: float | None = None, detail: bool = False
    ) -> Answer:
        """Which objects the clause is proved false of.

        Parameters
        ----------
        entry
            As a reader has it cached: the store may have moved on. An answer is right whatever happened meanwhile.
        timeout
            Seconds this look-up may take; None waits as long as the store's own settings say.
        detail
            Also fill `Answer.by_index`.

        Raises
        ------
        StoreError
            The answer could not be had, or is not known to be whole.
        """

    @abstractmethod
    def explain(self, entry: DatasetEntry, clause: Clause) -> StoreQuery:
        """What `lookup` would ask."""

    def superseded(self, id: str) -> list[str]:
        """What there is of a dataset that no reader uses: replaced generations that were kept, and what changes left
        unfinished, those under way included."""
        return []

    def drop_superseded(self, id: str) -> list[str]:
        """Remove what `superseded` lists, and return it. Do so while no change of the dataset is under way."""
        return []

    def log_queries(self, queries: Sequence[LoggedQuery], retention: float) -> None:
        """Add to the query log, and remove what is older than so many seconds, by whole days.

        Raises
        ------
        StoreError
            The store keeps no query log, or could not write it.
        """
        raise StoreError(f"{self.url} keeps no query log: that takes Elasticsearch")

    def logged_queries(self, dataset: str | None = None, since: int = 0) -> Iterator[LoggedQuery]:
        """The query log, oldest first; empty where there is none.

        Parameters
        ----------
        dataset
            Only of that id.
        since
            Milliseconds since the epoch.
        """
        return iter(())

    def optimize(self, id: str) -> None:  # noqa: B027 - a store that leaves nothing behind has nothing to do
        """Compact what refreshes left behind; readers are not disturbed."""

    def close(self) -> None:  # noqa: B027 - nor one that holds nothing
        """Give back connections and threads."""
