"""The contract of a metadata store.

A store keeps, for each dataset, a *definition* (what is indexed and what it was built with) and one *object metadata*
for each object. It is changed only through a `Change`, which is published whole or not at all, and it answers one
question at query time: which objects does this clause prove to hold nothing?

Stores know no Spark and no index types: only kinds of metadata and questions (`es_skipping.clauses`).
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal

from es_skipping.catalog import DatasetDefinition, DatasetEntry, IndexDefinition, ObjectId, ObjectMetadata
from es_skipping.clauses.clause import Clause
from es_skipping.clauses.metadata import Metadata
from es_skipping.errors import SettingError, StoreError, StoreFormatError
from es_skipping.stores.guarantors import Guarantor, Ordering
from es_skipping.stores.query_log import LoggedQuery
from es_skipping.stores.selection import KEY_BYTES, NO_KEY, Selection, Selections

if TYPE_CHECKING:
    from es_skipping.stores.files import Files
    from es_skipping.stores.share import Outcome, Share

__all__ = [
    "FORMAT_VERSION",
    "KEY_BYTES",
    "MAX_METADATA_BY_KEY",
    "NO_KEY",
    "Answer",
    "Change",
    "Check",
    "MetadataStore",
    "StoreQuery",
    "check_change",
    "check_understood",
    "is_under",
]

FORMAT_VERSION: Final = 2
"""The format of everything a store writes; a store that finds a higher one raises `StoreFormatError`."""
MAX_METADATA_BY_KEY: Final = 4_096
"""Objects whose metadata `MetadataStore.metadata_by_key` reads. Each of them is decoded while a query waits."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The objects that may be skipped.

    Parameters
    ----------
    found
        The objects the clause is proved false of: their keys (`ObjectId.key`), concatenated, in no order; or a
        `Selection`, or several. Only objects whose identity the metadata was computed from; whatever is missing here is
        kept.
    known
        How many objects the store has metadata of.
    by_index
        How many objects each index alone would skip; empty unless asked for.
    unusable
        ``(index id, reason)`` of the indexes in the clause that count as unknown for some or all objects.
    """

    found: bytes | Selection | Selections
    known: int
    by_index: Mapping[str, int] = field(default_factory=dict)
    unusable: tuple[tuple[str, str], ...] = ()

    @property
    def skip(self) -> bytes:
        """The keys of the objects to skip, concatenated, in no order."""
        return self.found if isinstance(self.found, bytes) else self.found.keys()

    @property
    def skipped(self) -> int:
        return len(self.found) // KEY_BYTES if isinstance(self.found, bytes) else self.found.skipped


@dataclass(frozen=True, slots=True)
class StoreQuery:
    """A store's query: ``text`` can be pasted into the store's console."""

    text: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Check:
    """``bad``: look-ups or builds cannot work; ``note``: they work with less, or need attention."""

    name: str
    state: Literal["good", "note", "bad"]
    found: str


class Change(ABC):
    """One writer's pending change of one dataset. Readers use none of it until `publish`.

    Attributes
    ----------
    outlives_conflict
        Whether `collected` can be asked after a conflict.
    """

    outlives_conflict: ClassVar[bool] = False

    @abstractmethod
    def put(self, objects: Iterable[ObjectMetadata]) -> None:
        """Add objects, or for an identity already stored, add to its metadata (replacing index ids given again).

        Another identity with the same path is replaced. The iterable is consumed with bounded memory. An object that is
        too large for the store loses its largest metadata (it becomes unknown), never the whole build.
        """

    @abstractmethod
    def remove(self, objects: Iterable[ObjectId]) -> None:
        """Forget these objects; missing ones are accepted."""

    @abstractmethod
    def publish(self, failed: Iterable[tuple[str, str]] = ()) -> DatasetEntry:
        """Put the change in use, definition included, whole.

        Raises
        ------
        StoreConflict
            Another writer published in between; nothing of this change is used.
        """

    def collected(self, keys: bytes) -> Iterator[ObjectMetadata]:
        """After a conflict, until the change's context ends: the metadata that was put for the objects with these keys.

        Concatenated keys, sorted. What cannot be read any more is left out.
        """
        return iter(())

    def share(self, objects: Sequence[ObjectId]) -> Share | None:
        """What other processes need to write these objects themselves, with all of their metadata.

        None where the store takes metadata only from this process, or has taken one of the objects in this change. An
        object without a received written `Outcome` may be `put` here instead, and is not published otherwise.
        """
        return None

    def receive(self, share: Share, outcomes: Iterable[Outcome]) -> None:
        """Take the outcomes of objects of a share, once for each object."""
        raise NotImplementedError(f"{type(self).__name__} does not support shares")

    @abstractmethod
    def written(self) -> Iterator[ObjectId]:
        """The objects that were put so far, read back from the store; where `change` was given a name also those that
        earlier changes of that name put."""

    @abstractmethod
    def read(self, objects: Iterable[ObjectId]) -> Iterator[ObjectMetadata]:
        """The metadata of those of these objects that are in `written`, read back from the store, in any order."""


def is_under(path: str, under: Collection[str] | None) -> bool:
    """Whether a path is one of these, or below one; None is everywhere. Pass a set where there are many."""
    if under is None or path in under:
        return True
    return any(letter == "/" and path[:at] in under for at, letter in enumerate(path))


def check_change(fresh: bool, name: str | None) -> None:
    """Refuse arguments that no store's `change` accepts.

    Raises
    ------
    ValueError
        The name is malformed, or a change with a name would not be fresh.
    """
    if name is not None and not (fresh and re.fullmatch("[a-z0-9]{1,32}", name)):
        raise ValueError(
            f"a change with the name {name!r} must be fresh, and the name must be 1 to 32 characters of [a-z0-9]"
        )


def check_understood(definition: DatasetDefinition, base: DatasetDefinition | None = None) -> None:
    """Refuse to write metadata that this version does not fully understand: some of it would be lost, or be wrong.

    Parameters
    ----------
    base
        The definition that a change adds to.

    Raises
    ------
    StoreFormatError
        An index of the definition, or the whole dataset, has needs that only a later version meets.
    """
    if base is not None and (lacking := base.not_understood()):
        raise StoreFormatError(
            f"dataset {base.id!r} needs {', '.join(lacking)}, which this version of es_skipping does not understand: "
            "upgrade it here, or drop the dataset"
        )
    for index in definition.indexes:
        if lacking := definition.not_understood(index):
            raise StoreFormatError(
                f"index {index.id} of dataset {definition.id!r} needs {', '.join(lacking)}, which this version of "
                "es_skipping does not understand: upgrade it here, or drop the index"
            )


class MetadataStore(ABC):
    """Keeps metadata, answers which objects may be skipped. Safe to use from several threads.

    Attributes
    ----------
    files
        Files beside the metadata, for sealed indexes, in directories whose names begin with a dot; None without them.
    """

    files: Files | None = None

    @property
    @abstractmethod
    def url(self) -> str:
        """The store's URL, without secrets."""

    @abstractmethod
    def datasets(self, *, timeout: float | None = None) -> list[DatasetEntry]:
        """Every dataset in the store; an empty list if nothing was ever written.

        Parameters
        ----------
        timeout
            Seconds that a waiting query allows; None is the time-out of a build.
        """

    @abstractmethod
    def dataset(self, id: str) -> DatasetEntry | None:
        """One dataset, read afresh."""

    @abstractmethod
    def change(
        self, definition: DatasetDefinition, *, fresh: bool = False, name: str | None = None
    ) -> AbstractContextManager[Change]:
        """Begin a change that will leave the dataset with this definition; see `check_understood`.

        Leaving the context without `Change.publish` discards it. Metadata of index ids that the definition no longer
        has is dropped.

        Parameters
        ----------
        fresh
            Start a new, empty generation, which readers do not see until it is published completely.
        name
            Of a fresh change that takes long: left without `Change.publish`, or killed, it is kept, and the next change
            of that name and definition goes on from there. What it replaces is kept too, until `drop_superseded`.
        """

    def change_with(
        self, definition: DatasetDefinition, name: str, index_settings: Mapping[str, Any]
    ) -> AbstractContextManager[Change]:
        """Like a fresh `change` with a name, for stores whose generations are indices with settings of their own.

        Raises
        ------
        SettingError
            The store has no such index.
        """
        raise SettingError(f"{self.url} is not Elasticsearch: it has no index that could have {dict(index_settings)}")

    @abstractmethod
    def drop(self, id: str) -> None:
        """Drop a dataset with all its metadata; a missing one is accepted."""

    @abstractmethod
    def keys(self, id: str) -> bytes:
        """The keys of the objects of the published snapshot, concatenated; each has its metadata in the store."""

    @abstractmethod
    def objects(
        self, id: str, *, under: Collection[str] | None = None, keys: bytes | None = None
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
        """All metadata, streamed, as it was put (up to roundings that the store documents, always outward)."""

    @abstractmethod
    def lookup(
        self, entry: DatasetEntry, clause: Clause, *, timeout: float | None = None, detail: bool = False
    ) -> Answer:
        """The objects for which the clause is proved false.

        Parameters
        ----------
        entry
            The reader's cached entry; the store may have moved on. An answer is right whatever happened meanwhile.
        timeout
            Seconds this look-up may take; None waits as long as the store's own settings say.
        detail
            Also fill `Answer.by_index`.

        Raises
        ------
        StoreError
            There is no answer, or it is not known to be complete.
        """

    def guarantors(
        self,
        entry: DatasetEntry,
        clause: Clause,
        k: int,
        ordering: Ordering | None = None,
        *,
        under: Collection[str] | None = None,
        timeout: float | None = None,
    ) -> tuple[Guarantor, ...]:
        """Objects for which the clause is proved false and that together guarantee ``k`` rows.

        The fewest and those with the best bounds, as far as the store can tell. Empty if it finds none, or if the
        store does not look for them.

        Parameters
        ----------
        ordering
            The rows that count, see `es_skipping.stores.guarantors.guarantor`; None counts every row.
        under
            Only objects below these directories.

        Raises
        ------
        StoreError
            There is no answer.
        """
        return ()

    def metadata_by_key(
        self, entry: DatasetEntry, index: str, *, timeout: float | None = None
    ) -> Mapping[bytes, Metadata | None]:
        """One index's metadata of every object of the published snapshot, by the object's key; None where unknown.

        Empty for more than `MAX_METADATA_BY_KEY` objects, for an index that is not as the entry has it, or if the store
        does not read metadata while a query waits.

        Raises
        ------
        StoreError
            There is no answer, or it is not known to be complete.
        """
        return {}

    @abstractmethod
    def explain(self, entry: DatasetEntry, clause: Clause) -> StoreQuery:
        """The query that `lookup` would send."""

    def superseded(self, id: str) -> list[str]:
        """The parts of a dataset that no reader uses: replaced generations that were kept, and what changes left
        unfinished, those under way included."""
        return []

    def drop_superseded(self, id: str) -> list[str]:
        """Remove what `superseded` lists, and return it. Do so while no change of the dataset is under way."""
        return []

    def must_rebuild(self, entry: DatasetEntry, definition: DatasetDefinition) -> bool:
        """Whether a change to this definition leaves metadata incomplete, so that a refresh collects all of it anew."""
        return False

    def log_queries(self, queries: Sequence[LoggedQuery], retention: float) -> None:
        """Add to the query log, and remove entries older than this many seconds, by whole days.

        Raises
        ------
        StoreError
            The store keeps no query log, or could not write it.
        """
        raise StoreError(f"{self.url} keeps no query log: that takes Elasticsearch or a Parquet store")

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

    def metadata_size(self, index: IndexDefinition, metadata: Metadata) -> int | None:
        """Estimated bytes that the store takes for one object's metadata of an index; for advice before a build.

        None, if the estimate is to be taken from a Parquet store.
        """
        return None

    def checks(self, stale_days: float) -> Iterator[Check]:
        """Findings that an operator should see before trusting the store; empty if there are none.

        Parameters
        ----------
        stale_days
            A dataset is named from this many days without a refresh on.
        """
        return iter(())

    def optimize(self, id: str) -> None:  # noqa: B027 - a store that leaves nothing behind has nothing to do
        """Compact what refreshes left behind, without disturbing readers."""

    def close(self) -> None:  # noqa: B027 - nor one that holds nothing
        """Release connections and threads."""
