"""The words that all packages share: objects, indexes, datasets, and an object's metadata."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, get_args

from es_skipping.clauses.metadata import Kind, Metadata
from es_skipping.predicates.types import DataType
from es_skipping.row_groups import of_row_group, row_group_key

__all__ = [
    "UNDERSTOOD",
    "CoveredSnapshot",
    "DatasetDefinition",
    "DatasetEntry",
    "IndexDefinition",
    "ObjectId",
    "ObjectMetadata",
    "Protection",
    "object_key",
]

UNDERSTOOD: Final[frozenset[str]] = frozenset({"elements", "hashed", "rowgroups", "sealed"})
"""The needs (see `IndexDefinition`) that this version meets."""

_PROTECTED: Final = frozenset({"hashed", "sealed"})


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
        """16 bytes that stand for the identity, see `object_key`."""
        return object_key(self.path, self.length, self.mtime)


def object_key(path: str, length: int, mtime: int) -> bytes:
    """The 16 bytes that stand for an object's identity: the MD5 of its parts, which the shim computes alike.

    Of a row group (`es_skipping.row_groups`) they begin as those of its file do.
    """
    group = of_row_group(path)
    text = (path if group is None else group.file).encode("utf-8", "surrogatepass")
    key = hashlib.md5(text + struct.pack(">qq", length, mtime), usedforsecurity=False).digest()
    return key if group is None else row_group_key(key, group)


@dataclass(frozen=True, slots=True)
class Protection:
    """How the metadata of an index is kept from who lacks its key (``docs/decisions/0027``).

    Parameters
    ----------
    mode
        ``"hashed"`` or ``"sealed"``.
    key
        The key's reference, such as ``"env:CITY_KEY"``; never the key.
    check
        Tells the key from another.
    salt
        Random; part of everything that is derived from the key.
    """

    mode: str
    key: str
    check: str
    salt: str


@dataclass(frozen=True, slots=True)
class IndexDefinition:
    """The stored definition of one index of a dataset.

    Parameters
    ----------
    id
        Unique in the dataset, stable and readable: ``"minmax(ts)"``.
    type, columns, parameters
        What the user passed; enough to make the index object again.
    operands
        The indexed expressions as serialised trees (`es_skipping.predicates.codec`), to be recognised in filters.
    kind, value_type
        The kind of metadata, and the type of the values in it.
    built_with
        Text facts that must hold at query time for the index to be used (column schema, settings), by name.
    needs
        Names of what a reader must understand to use the metadata (``docs/decisions/0012``).
    protection
        None for metadata in clear; else its mode is one of the needs.
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
    needs: tuple[str, ...] = ()
    protection: Protection | None = None

    @property
    def mode(self) -> str:
        """``"plain"``, ``"hashed"`` or ``"sealed"``."""
        return "plain" if self.protection is None else self.protection.mode


@dataclass(frozen=True, slots=True)
class CoveredSnapshot:
    """The snapshot of a Delta or Iceberg table that a dataset's metadata covers.

    Parameters
    ----------
    id
        Delta's version or Iceberg's snapshot id, as text.
    stamp
        Tells it from a snapshot with the same id in another table, or in a log that was written anew.
    retained
        Whether the store also has metadata of objects that the snapshot does not have.
    """

    id: str
    stamp: str
    retained: bool = False


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
        The reader's format, such as ``"parquet"``, and its options; keys in lower case.
    built_with
        Facts that must hold for the whole dataset to be used.
    needs
        Needs of every index of the dataset.
    covered
        Of a table with a log: the store has metadata of each object of this snapshot, or names it as failed. None where
        that is unknown: then a refresh lists all objects.
    """

    id: str
    roots: tuple[str, ...]
    format: str
    indexes: tuple[IndexDefinition, ...] = ()
    table: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    schema: str = "{}"
    built_with: Mapping[str, str] = field(default_factory=dict)
    needs: tuple[str, ...] = ()
    covered: CoveredSnapshot | None = None

    def not_understood(self, index: IndexDefinition | None = None) -> tuple[str, ...]:
        """The needs of the dataset and of one of its indexes that this version lacks; the index is unknown then."""
        if index is None:
            return tuple(sorted(set(self.needs) - UNDERSTOOD))
        kind = [] if index.kind in get_args(Kind) else [f"the kind {index.kind!r}"]
        mode = set() if index.protection is None else {index.protection.mode}
        # An index that lost one of the two would be read as what it is not.
        key = [] if set(index.needs) & _PROTECTED == mode else ["a protection that fits its needs"]
        return (*sorted({*self.needs, *index.needs} - UNDERSTOOD), *kind, *key)

    @property
    def understood(self) -> tuple[IndexDefinition, ...]:
        """The indexes that this version can use."""
        return tuple(index for index in self.indexes if not self.not_understood(index))

    @property
    def facts(self) -> tuple[object, ...]:
        """The parts of a dataset, beside the index definitions, that decide the values of its rows."""
        return (self.format, dict(self.options), dict(self.built_with))

    @property
    def is_of_row_groups(self) -> bool:
        """Whether its objects are the row groups of another dataset's files."""
        return "rowgroups" in self.needs

    @property
    def snapshot(self) -> str | None:
        """The version or snapshot id of the table that the metadata covers; None for plain files, or where unknown."""
        return None if self.covered is None else self.covered.id

    def index(self, id: str) -> IndexDefinition:
        """The index with that id; KeyError if there is none."""
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
        By index id; an estimate of the store.
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
    """All metadata of one object; a missing index id is *unknown*."""

    id: ObjectId
    rows: int | None
    metadata: Mapping[str, Metadata]
