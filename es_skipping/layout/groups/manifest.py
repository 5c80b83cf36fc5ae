"""What lies beside column groups and says what they are.

The reader in the JVM needs nothing else to read every row; the features of the blocks are in it too, so that the index
of them can be made again without the data.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from es_skipping.errors import StoreFormatError

__all__ = ["MANIFEST", "Block", "GroupManifest", "Partition", "StoredGroup"]

MANIFEST: Final = "_es_skipping_groups.json"
"""Spark reads no file whose name begins so."""
_VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class Block:
    """One object: rows of one group.

    Parameters
    ----------
    file
        Its path in the group's directory.
    rows
        How many it has.
    whole
        Whether it has all columns of its group, rather than the masters alone.
    features
        Its union vector: the places, among the manifest's conditions, of those that one of its rows satisfies. They are
        those of all groups, its own and the others', of which it may lack the columns.
    """

    file: str
    rows: int
    whole: bool
    features: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class StoredGroup:
    """One column group, or layout of one: where its blocks are, which columns they have, what they are clustered by.

    Every row is in one of its blocks. Those of rows that satisfy one of its features have all columns, the others those
    of which it is the master; in a table without replicas they are the same.
    """

    directory: str
    columns: tuple[str, ...]
    masters: tuple[str, ...]
    conditions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Partition:
    """A coarse partition: the same rows in each group, with tuple ids from 0 to below ``tuples``; blocks by group."""

    tuples: int
    blocks: tuple[tuple[Block, ...], ...]


@dataclass(frozen=True, slots=True)
class GroupManifest:
    """A table in column groups.

    Parameters
    ----------
    schema
        Of the table, ``StructType.jsonValue()``.
    tuple_column
        The column of every block that holds the tuple ids.
    conditions
        The features of all groups as SQL.
    groups, partitions
        What there is.
    helped
        Of the queries that the groups were designed for, the share that a feature helps; None where they were made by
        hand.
    """

    schema: Mapping[str, Any]
    tuple_column: str
    conditions: tuple[str, ...]
    groups: tuple[StoredGroup, ...]
    partitions: tuple[Partition, ...]
    helped: float | None = None

    @property
    def rows(self) -> int:
        return sum(partition.tuples for partition in self.partitions)

    @property
    def blocks(self) -> dict[str, Block]:
        """Every block, by its path."""
        return {
            f"{group.directory}/{block.file}": block
            for partition in self.partitions
            for group, blocks in zip(self.groups, partition.blocks, strict=True)
            for block in blocks
        }

    def to_json(self) -> bytes:
        """As it is stored.

        Examples
        --------
        >>> manifest = GroupManifest({"type": "struct", "fields": []}, "t", ("a > 1",), (), (Partition(0, ()),))
        >>> GroupManifest.from_json(manifest.to_json(), "here") == manifest
        True
        """
        return json.dumps({"version": _VERSION, **asdict(self)}, ensure_ascii=False).encode("utf-8")

    @classmethod
    def from_json(cls, data: bytes, place: str) -> GroupManifest:
        """As it was stored.

        Raises
        ------
        StoreFormatError
            It is of another version, or no manifest at all.
        """
        try:
            found: Any = json.loads(data)
            version = found["version"]
            if version == _VERSION:
                return cls(
                    found["schema"],
                    found["tuple_column"],
                    tuple(found["conditions"]),
                    tuple(
                        StoredGroup(
                            one["directory"], tuple(one["columns"]), tuple(one["masters"]), tuple(one["conditions"])
                        )
                        for one in found["groups"]
                    ),
                    tuple(_partition(one) for one in found["partitions"]),
                    found.get("helped"),
                )
        except (ValueError, KeyError, TypeError) as error:
            raise StoreFormatError(f"{place}/{MANIFEST} cannot be read ({error!r}); write the groups again") from error
        raise StoreFormatError(f"{place}/{MANIFEST} is of version {version}; this package reads version {_VERSION}")


def _partition(found: Mapping[str, Any]) -> Partition:
    return Partition(
        found["tuples"],
        tuple(
            tuple(Block(block["file"], block["rows"], block["whole"], tuple(block["features"])) for block in blocks)
            for blocks in found["blocks"]
        ),
    )
