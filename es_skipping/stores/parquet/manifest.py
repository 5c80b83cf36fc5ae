"""A manifest: one snapshot of one dataset, in one small text file.

Create-if-absent publishes it under the next number, and it never changes. Its first line is JSON, its second line is
the digest of the first, which reveals torn and foreign files.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeAlias

import numpy as np

from es_skipping.catalog import DatasetDefinition, DatasetEntry, IndexDefinition
from es_skipping.errors import StoreError
from es_skipping.stores.base import FORMAT_VERSION
from es_skipping.stores.codec import check_format, definition_from_data, definition_to_data

__all__ = [
    "MAX_LINEAGE",
    "ComparedDefinitions",
    "REMEDY",
    "Manifest",
    "Retired",
    "Segment",
    "Stretch",
    "TornManifest",
    "UsableIndexes",
    "digest",
    "manifest_number",
    "manifest_path",
    "manifests_directory",
    "segment_path",
    "segments_directory",
    "usable_indexes",
]

Bits: TypeAlias = bytes
UsableIndexes: TypeAlias = Mapping[str, tuple[IndexDefinition, str]]
"""By an index's id its definition and its column in the segments."""

_BEGINNING: Final = b'{"format":'
"""The beginning of every manifest: a file with another beginning is damaged, not cut off."""


class TornManifest(StoreError):
    """A manifest is empty or cut off: its publication did not finish."""


REMEDY: Final = "Drop the dataset's indexes and create them again, or delete its directory in the store"

MAX_LINEAGE: Final = 100
"""Most earlier snapshots that a manifest names."""

_MAX_COMPARED: Final = 1_000
"""Datasets whose compared definition is remembered."""

_NAME: Final = re.compile(r"(\d{12})\.json")


def manifests_directory(dataset: str) -> str:
    return f"{dataset}/manifests"


def segments_directory(dataset: str) -> str:
    return f"{dataset}/segments"


def manifest_path(dataset: str, number: int) -> str:
    return f"{manifests_directory(dataset)}/{number:012}.json"


def segment_path(dataset: str, file: str) -> str:
    return f"{segments_directory(dataset)}/{file}"


def manifest_number(name: str) -> int | None:
    """The number in a manifest's file name; None for other files, such as temporary ones."""
    match = _NAME.fullmatch(name)
    return int(match[1]) if match else None


def digest(data: bytes) -> str:
    """A digest that reveals torn or altered bytes."""
    return hashlib.blake2b(data, digest_size=16).hexdigest()


@dataclass(frozen=True, slots=True)
class Stretch:
    """A byte range of a file, with its digest."""

    offset: int
    length: int
    digest: str


@dataclass(frozen=True, slots=True)
class Segment:
    """One immutable Parquet file of a snapshot.

    Parameters
    ----------
    columns
        The byte ranges of each readable column. A column that is missing here is not read, even if the file has it,
        because its index was dropped.
    dead
        Rows removed or replaced since the file was written, as packed bits; empty if all rows are live.
    live, bytes
        Number of live rows, and the total length of their objects.
    """

    file: str
    size: int
    rows: int
    live: int
    bytes: int
    footer: Stretch
    columns: Mapping[str, Stretch]
    dead: Bits = b""

    def dead_rows(self) -> np.ndarray:
        """A boolean per row."""
        if not self.dead:
            return np.zeros(self.rows, np.bool_)
        return np.unpackbits(np.frombuffer(self.dead, np.uint8), count=self.rows).astype(np.bool_)

    def with_dead(self, dead: np.ndarray, lengths: np.ndarray) -> Segment:
        """The segment with these rows marked dead; ``lengths`` are the objects' lengths."""
        live = ~dead
        packed = np.packbits(dead).tobytes() if dead.any() else b""
        total = sum(lengths[live].tolist())  # Python's integers, because the sum of many lengths may exceed 2^63
        return replace(self, dead=packed, live=int(live.sum()), bytes=total)

    def metadata_bytes(self, column: str) -> int:
        return self.columns[column].length if column in self.columns else 0


@dataclass(frozen=True, slots=True)
class Retired:
    """An earlier snapshot whose files are kept for readers that still use it."""

    number: int
    since: int
    files: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Manifest:
    """One snapshot.

    Parameters
    ----------
    token
        Random; distinguishes two snapshots with the same number if somebody deleted the directory in between.
    definition
        None means a dropped dataset: the number stays taken, so that an earlier writer meets a conflict.
    columns
        Column name in the segments by index id.
    lineage
        Number and token of the last `MAX_LINEAGE` ancestors, oldest first.
    """

    number: int
    token: str
    published: int
    definition: DatasetDefinition | None
    columns: Mapping[str, str] = field(default_factory=dict)
    segments: tuple[Segment, ...] = ()
    failed: tuple[tuple[str, str], ...] = ()
    retired: tuple[Retired, ...] = ()
    lineage: tuple[tuple[int, str], ...] = ()

    @property
    def snapshot(self) -> str:
        return f"{self.number}-{self.token}"

    @property
    def objects(self) -> int:
        return sum(segment.live for segment in self.segments)

    def descends_from(self, other: Manifest) -> bool | None:
        """Whether it descends from another snapshot; None if its lineage does not reach that far.

        Earlier versions of this package wrote no lineage.
        """
        tokens = dict(self.lineage)
        if other.number in tokens:
            return tokens[other.number] == other.token
        return False if tokens and min(tokens) < other.number else None

    def entry(self) -> DatasetEntry | None:
        """The dataset for readers; None if it was dropped."""
        if self.definition is None:
            return None
        return DatasetEntry(
            definition=self.definition,
            snapshot=self.snapshot,
            objects=self.objects,
            bytes=sum(segment.bytes for segment in self.segments),
            refreshed=self.published,
            failed=self.failed,
            metadata_bytes={
                id: sum(segment.metadata_bytes(column) for segment in self.segments)
                for id, column in self.columns.items()
            },
        )

    def to_bytes(self) -> bytes:
        data: dict[str, Any] = {
            "format": FORMAT_VERSION,
            "number": self.number,
            "token": self.token,
            "published": self.published,
            "definition": None if self.definition is None else definition_to_data(self.definition),
            "columns": dict(self.columns),
            "segments": [_segment_to_data(segment) for segment in self.segments],
            "failed": [list(pair) for pair in self.failed],
            "retired": [[one.number, one.since, list(one.files)] for one in self.retired],
            "lineage": [list(one) for one in self.lineage],
        }
        line = json.dumps(data, ensure_ascii=True, separators=(",", ":"), allow_nan=False).encode("ascii")
        return line + b"\n" + digest(line).encode("ascii") + b"\n"

    @classmethod
    def from_bytes(cls, data: bytes, where: str) -> Manifest:
        """Read the bytes that `to_bytes` wrote.

        Raises
        ------
        StoreFormatError
            A newer version wrote it.
        TornManifest
            The manifest's end is missing.
        StoreError
            The bytes were altered, or are not a manifest.
        """
        line, _, rest = data.partition(b"\n")
        try:
            read = json.loads(line)
        except (ValueError, RecursionError):
            read = None
        if isinstance(read, dict):
            check_format(read, where)
        beginning = data[: len(_BEGINNING)]
        if data.count(b"\n") < 2 and _BEGINNING.startswith(beginning):  # the second newline is the last byte
            raise TornManifest(
                f"{where} is empty or cut off: a writer was stopped while it published, or still publishes"
            )
        if not isinstance(read, dict):
            raise StoreError(f"{where} is damaged: it is not a manifest. {REMEDY}")
        if rest != digest(line).encode("ascii") + b"\n":
            raise StoreError(f"{where} is damaged: its digest does not match its content. {REMEDY}")
        try:
            definition = read["definition"]
            return cls(
                number=read["number"],
                token=read["token"],
                published=read["published"],
                definition=None if definition is None else definition_from_data(definition),
                columns=read["columns"],
                segments=tuple(_segment_from_data(segment) for segment in read["segments"]),
                failed=tuple((path, reason) for path, reason in read["failed"]),
                retired=tuple(Retired(number, since, tuple(files)) for number, since, files in read["retired"]),
                lineage=tuple((number, token) for number, token in read.get("lineage", ())),
            )
        except (KeyError, TypeError, ValueError, zlib.error) as error:
            raise StoreError(f"{where} is damaged: {type(error).__name__}: {error}. {REMEDY}") from error


def _segment_to_data(segment: Segment) -> dict[str, Any]:
    data = {
        "file": segment.file,
        "size": segment.size,
        "rows": segment.rows,
        "live": segment.live,
        "bytes": segment.bytes,
        "footer": [segment.footer.offset, segment.footer.length, segment.footer.digest],
        "columns": {name: [one.offset, one.length, one.digest] for name, one in segment.columns.items()},
    }
    if segment.dead:
        data["dead"] = base64.b64encode(zlib.compress(segment.dead)).decode("ascii")
    return data


def _segment_from_data(data: Mapping[str, Any]) -> Segment:
    return Segment(
        file=data["file"],
        size=data["size"],
        rows=data["rows"],
        live=data["live"],
        bytes=data["bytes"],
        footer=Stretch(*data["footer"]),
        columns={name: Stretch(*one) for name, one in data["columns"].items()},
        dead=zlib.decompress(base64.b64decode(data["dead"])) if "dead" in data else b"",
    )


def usable_indexes(manifest: Manifest, asked: DatasetDefinition) -> UsableIndexes:
    """The indexes that still have the definition that the reader knows, with their columns.

    Indexes are compared one by one; the rest of the definition says how their values were read.
    """
    if manifest.definition is None or replace(manifest.definition, indexes=()) != replace(asked, indexes=()):
        return {}
    believed = {index.id: index for index in asked.indexes}
    return {
        index.id: (index, manifest.columns[index.id])
        for index in manifest.definition.understood
        if believed.get(index.id) == index
    }


class ComparedDefinitions:
    """The `usable_indexes` of definitions that were compared before: definitions and snapshots do not change."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[str, DatasetDefinition, UsableIndexes]] = {}

    def usable(self, manifest: Manifest, asked: DatasetDefinition) -> UsableIndexes:
        """The usable indexes. Only the last definition and snapshot of a dataset are remembered."""
        known = self._known.get(asked.id)
        if known is not None and known[0] == manifest.snapshot and known[1] is asked:
            return known[2]
        usable = usable_indexes(manifest, asked)
        if len(self._known) >= _MAX_COMPARED:
            self._known.clear()
        self._known[asked.id] = (manifest.snapshot, asked, usable)
        return usable

    def clear(self) -> None:
        self._known.clear()
