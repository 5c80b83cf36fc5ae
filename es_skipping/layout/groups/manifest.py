"""The manifest beside column groups, which describes them.

The JVM's reader needs nothing else to read every row. The manifest also holds the blocks' features, so that their index
can be rebuilt without the data.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from es_skipping.errors import StoreFormatError

if TYPE_CHECKING:
    from es_skipping.stores.files import Files

__all__ = [
    "FORMAT",
    "MANIFEST",
    "Block",
    "GroupManifest",
    "Partition",
    "StoredGroup",
    "add_partitions",
    "manifest_names",
    "read_manifest",
]

FORMAT: Final = "es_skipping_groups"
"""The name of the data source: ``spark.read.format(FORMAT).load(path)``."""
MANIFEST: Final = "_es_skipping_groups.json"
"""Spark ignores files whose names begin with an underscore."""
_ADDED: Final = "_es_skipping_groups.{:06}.json"
_ADDED_NAME: Final = re.compile(r"_es_skipping_groups\.\d{6}\.json")
"""A later append: the same manifest with only the new coarse partitions."""
_MAX_APPENDS: Final = 999_999
_VERSIONS: Final = (1, 2)
"""Version 2 has blocks that are row groups of a packed file; in version 1 each block is a file."""
_PACKED_ONLY: Final = ("row_group", "row_groups", "bytes")
_MIN_ROWS: Final = 50_000
_PARTITION_ROWS: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Block:
    """Rows of one group, which a query reads or skips together: a file, or some row groups of a packed file.

    Parameters
    ----------
    file
        The path of its file in the group's directory.
    rows
        Its number of rows.
    whole
        Whether it has all columns of its group, or only the masters.
    features
        Its union vector: the positions of the manifest's conditions that one of its rows satisfies. These include
        features of other groups, whose columns it may lack.
    row_group, row_groups
        Its first row group in a packed file, and their number; None if the whole file is the block.
    bytes
        Its length in a packed file.
    """

    file: str
    rows: int
    whole: bool
    features: tuple[int, ...]
    row_group: int | None = None
    row_groups: int = 0
    bytes: int = 0

    @property
    def name(self) -> str:
        """Identifies it in the group's directory; the JVM's reader composes the same name."""
        return self.file if self.row_group is None else f"{self.file}/{self.row_group}"

    def to_data(self) -> dict[str, Any]:
        """The block for JSON; for version 1 if it is a file."""
        found = asdict(self)
        if self.row_group is None:
            for name in _PACKED_ONLY:
                del found[name]
        return found


@dataclass(frozen=True, slots=True)
class StoredGroup:
    """One column group or layout: the directory, columns and features of its blocks.

    Every row is in one of its blocks. Blocks of rows that satisfy one of its features have all columns, the others only
    its master columns; in a table without replicas they are the same.
    """

    directory: str
    columns: tuple[str, ...]
    masters: tuple[str, ...]
    conditions: tuple[str, ...]
    weights: tuple[int, ...] = ()
    """The conditions' weights, for appended rows; empty if all are equal."""


@dataclass(frozen=True, slots=True)
class Partition:
    """A coarse partition: the same rows in each group, with tuple ids from 0 to below ``tuples``; blocks by group.

    Parameters
    ----------
    built_with
        The facts under which its blocks' features were evaluated (`es_skipping.layout.groups.indexing`); empty if
        unknown.
    """

    tuples: int
    blocks: tuple[tuple[Block, ...], ...]
    built_with: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class GroupManifest:
    """A table in column groups.

    Parameters
    ----------
    schema
        The table's schema, as ``StructType.jsonValue()``.
    tuple_column
        The tuple id column of every block.
    conditions
        The features of all groups as SQL.
    groups, partitions
        The groups and the coarse partitions.
    helped
        The share of the design's queries that a feature helps; None if the groups were made by hand.
    min_rows, within, partition_rows
        The arguments it was written with, for appended rows.
    packed
        Whether the blocks of a coarse partition and group share a file.
    """

    schema: Mapping[str, Any]
    tuple_column: str
    conditions: tuple[str, ...]
    groups: tuple[StoredGroup, ...]
    partitions: tuple[Partition, ...]
    helped: float | None = None
    min_rows: int = _MIN_ROWS
    within: tuple[str, ...] = ()
    partition_rows: int = _PARTITION_ROWS
    packed: bool = False

    @property
    def rows(self) -> int:
        return sum(partition.tuples for partition in self.partitions)

    @property
    def blocks(self) -> dict[str, Block]:
        """Every block, by its path."""
        return {name: block for partition in self.partitions for name, block in self.blocks_in(partition)}

    def blocks_in(self, partition: Partition) -> Iterator[tuple[str, Block]]:
        """The blocks of a coarse partition, with their paths."""
        for group, blocks in zip(self.groups, partition.blocks, strict=True):
            for block in blocks:
                yield f"{group.directory}/{block.name}", block

    def to_json(self) -> bytes:
        """The manifest as JSON.

        Examples
        --------
        >>> manifest = GroupManifest({"type": "struct", "fields": []}, "t", ("a > 1",), (), (Partition(0, ()),))
        >>> GroupManifest.from_json(manifest.to_json(), "here") == manifest
        True
        """
        facts = [
            *{json.dumps(dict(one.built_with), sort_keys=True): one.built_with for one in self.partitions}.values()
        ]
        partitions = [
            {
                "tuples": one.tuples,
                "blocks": [[block.to_data() for block in own] for own in one.blocks],
                "built_with": at,
            }
            for one in self.partitions
            for at in [facts.index(one.built_with)]
        ]
        version = _VERSIONS[self.packed]
        found = {"version": version, **asdict(replace(self, partitions=())), "facts": facts, "partitions": partitions}
        return json.dumps(found, ensure_ascii=False, default=dict).encode("utf-8")

    @classmethod
    def from_json(cls, data: bytes, place: str, name: str = MANIFEST) -> GroupManifest:
        """Read a manifest's JSON; the name is for messages.

        Raises
        ------
        StoreFormatError
            It has another version, or is not a manifest.
        """
        try:
            found: Any = json.loads(data)
            version = found["version"]
            if version in _VERSIONS:
                return cls(
                    schema=found["schema"],
                    tuple_column=found["tuple_column"],
                    conditions=tuple(found["conditions"]),
                    groups=tuple(
                        StoredGroup(
                            one["directory"],
                            tuple(one["columns"]),
                            tuple(one["masters"]),
                            tuple(one["conditions"]),
                            tuple(one.get("weights", ())),
                        )
                        for one in found["groups"]
                    ),
                    partitions=tuple(_partition(one, found.get("facts", [])) for one in found["partitions"]),
                    helped=found.get("helped"),
                    min_rows=found.get("min_rows", _MIN_ROWS),
                    within=tuple(found.get("within", ())),
                    partition_rows=found.get("partition_rows", _PARTITION_ROWS),
                    packed=found.get("packed", False),
                )
        except (ValueError, LookupError, TypeError) as error:
            cure = (
                "write the groups again" if name == MANIFEST else "if an append was killed while writing it, delete it"
            )
            raise StoreFormatError(f"{place}/{name} cannot be read ({error!r}); {cure}") from error
        raise StoreFormatError(f"{place}/{name} has version {version}; this package reads versions 1 and 2")


def read_manifest(files: Files, place: str) -> GroupManifest:
    """A table's manifest, including appends.

    Raises
    ------
    FileNotFoundError
        There is no manifest.
    StoreFormatError
        A manifest cannot be read, or an append belongs to another table.
    """
    manifest = GroupManifest.from_json(files.read(MANIFEST), place)
    for name in manifest_names(files)[1:]:
        added = GroupManifest.from_json(files.read(name), place, name)
        if added.groups != manifest.groups or added.conditions != manifest.conditions:
            raise StoreFormatError(
                f"{place}/{name} belongs to another table: its groups differ from those of {MANIFEST}"
            )
        manifest = replace(manifest, partitions=(*manifest.partitions, *added.partitions))
    return manifest


def manifest_names(files: Files) -> list[str]:
    """The files of a table's manifest: its first one, and one for each append."""
    return [MANIFEST, *sorted(filter(_ADDED_NAME.fullmatch, files.list("")))]


def add_partitions(files: Files, manifest: GroupManifest, added: tuple[Partition, ...]) -> None:
    """Append coarse partitions: readers see all of them or none. Two writers at once both succeed."""
    data = replace(manifest, partitions=added).to_json()
    taken = sum(1 for name in files.list("") if _ADDED_NAME.fullmatch(name))
    for number in range(taken + 1, _MAX_APPENDS + 1):
        if files.create_if_absent(_ADDED.format(number), data):
            return
    raise StoreFormatError(
        f"rows were appended {_MAX_APPENDS:,} times, which is the limit: write the column groups again"
    )


def _partition(found: Mapping[str, Any], facts: Sequence[Mapping[str, str]]) -> Partition:
    known = found.get("built_with")
    return Partition(
        found["tuples"],
        tuple(
            tuple(Block(**{**block, "features": tuple(block["features"])}) for block in blocks)
            for blocks in found["blocks"]
        ),
        {} if known is None else facts[known],
    )
