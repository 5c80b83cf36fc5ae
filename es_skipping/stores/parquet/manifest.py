"""A manifest: all of one snapshot of one dataset, in one small text file.

It is published under the next number by create-if-absent and never changed. Its first line is JSON, its second the
digest of the first, so that a torn or foreign file is told from a manifest.
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

from es_skipping.catalog import DatasetDefinition, DatasetEntry
from es_skipping.errors import StoreError
from es_skipping.stores.base import FORMAT_VERSION
from es_skipping.stores.codec import check_format, definition_from_data, definition_to_data

__all__ = [
    "MAX_LINEAGE",
    "REMEDY",
    "Manifest",
    "Retired",
    "Segment",
    "Stretch",
    "TornManifest",
    "digest",
    "manifest_number",
    "manifest_path",
    "manifests_directory",
    "segment_path",
    "segments_directory",
]

Bits: TypeAlias = bytes

_BEGINNING: Final = b'{"format":'
"""How every manifest begins: a file that begins otherwise was not cut off, it is damaged."""


class TornManifest(StoreError):
    """A manifest that is empty or cut off: its publication never came to an end."""


REMEDY: Final = "Drop the dataset's indexes and create them again, or delete its directory in the store"

MAX_LINEAGE: Final = 100
"""How many snapshots before it a manifest names."""

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
    """The number of a manifest's file name; None for other files, such as one half written beside."""
    match = _NAME.fullmatch(name)
    return int(match[1]) if match else None


def digest(data: bytes) -> str:
    """What tells torn or altered bytes."""
    return hashlib.blake2b(data, digest_size=16).hexdigest()


@dataclass(frozen=True, slots=True)
class Stretch:
    """Some bytes of a file, and their digest."""

    offset: int
    length: int
    digest: str


@dataclass(frozen=True, slots=True)
class Segment:
    """One immutable Parquet file of a snapshot.

    Parameters
    ----------
    columns
        The bytes of each column that may be read; a column that is not here (its index was dropped) is not read,
        though it may be in the file.
    dead
        Rows that were removed or replaced since it was written, as bits packed in bytes; empty where all are live.
    live, bytes
        How many rows are live, and the sum of these objects' lengths.
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
        """The segment with these rows dead; ``lengths`` are the objects' lengths."""
        live = ~dead
        packed = np.packbits(dead).tobytes() if dead.any() else b""
        total = sum(lengths[live].tolist())  # Python's integers: the sum of many lengths may pass 2^63
        return replace(self, dead=packed, live=int(live.sum()), bytes=total)

    def metadata_bytes(self, column: str) -> int:
        return self.columns[column].length if column in self.columns else 0


@dataclass(frozen=True, slots=True)
class Retired:
    """An earlier snapshot whose files are kept for readers that are still on it."""

    number: int
    since: int
    files: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Manifest:
    """One snapshot.

    Parameters
    ----------
    token
        Random: two snapshots of equal number, the directory deleted in between by hand, are not mistaken.
    definition
        None is a dropped dataset: the number stays taken, so that a writer that began before meets a conflict.
    columns
        Column name in the segments by index id.
    lineage
        Number and token of the snapshots it was made from, the oldest first: the last `MAX_LINEAGE` of them.
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
        """Whether it was made from another snapshot, directly or not; None where its lineage does not reach that far.

        Earlier versions of this package wrote no lineage.
        """
        tokens = dict(self.lineage)
        if other.number in tokens:
            return tokens[other.number] == other.token
        return False if tokens and min(tokens) < other.number else None

    def entry(self) -> DatasetEntry | None:
        """As readers see it; None where the dataset was dropped."""
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
        """Read `to_bytes`.

        Raises
        ------
        StoreFormatError
            A newer version wrote it.
        TornManifest
            Its end is missing.
        StoreError
            It was altered, or is not a manifest.
        """
        line, _, rest = data.partition(b"\n")
        try:
            read = json.loads(line)
        except (ValueError, RecursionError):
            read = None
        if isinstance(read, dict):
            check_format(read, where)
        beginning = data[: len(_BEGINNING)]
        if data.count(b"\n") < 2 and _BEGINNING.startswith(beginning):  # the second newline is its last byte
            raise TornManifest(
                f"{where} is empty or cut off: a writer was stopped while it published, or is still at it"
            )
        if not isinstance(read, dict):
            raise StoreError(f"{where} is damaged: it is not the text of a manifest. {REMEDY}")
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
