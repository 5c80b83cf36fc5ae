"""Datasets, objects and clauses that the tests of stores share, and short ways to write and to ask."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from es_skipping.catalog import DatasetDefinition, DatasetEntry, IndexDefinition, ObjectId, ObjectMetadata
from es_skipping.clauses.clause import Ask, Clause, Conjunction, Disjunction
from es_skipping.clauses.metadata import Intervals, Metadata
from es_skipping.clauses.questions import Overlaps, Range
from es_skipping.predicates.types import parse_type
from es_skipping.stores.base import KEY_BYTES, MetadataStore
from tests.stores import strategies

__all__ = [
    "BOX",
    "DOUBLE",
    "INT",
    "LIST",
    "MINMAX",
    "ODD_PATHS",
    "STRING",
    "asks",
    "between",
    "dataset_definition",
    "entry_of",
    "keys",
    "minmax",
    "object_id",
    "object_metadata",
    "skipped",
    "stored",
    "write",
]

INT = parse_type("int")
STRING = parse_type("string")
DOUBLE = parse_type("double")

MINMAX = strategies.index("intervals", INT)
LIST = strategies.index("values", STRING)
BOX = strategies.index("boxes", DOUBLE, 2)

ODD_PATHS = (
    "file:/data/a b.parquet",
    "file:/data/a%20b.parquet",
    "file:/data/year=2024/é ü/x#1?.parquet",
    "s3a://bucket/quote'\"and\\backslash.parquet",
    "hdfs://nn:8020/*?[a-z]{x,y}/,;&=+$@!~.csv",
    "file:/data/\U0001f600/\uff01/e\u0301",
    "file:/data/new\nline\ttab",
    "file:/" + "long/" * 300 + "x",
)


def dataset_definition(*indexes: IndexDefinition, id: str = "events") -> DatasetDefinition:
    return DatasetDefinition(id, (f"file:/data/{id}",), "parquet", indexes, options={"header": "true"})


def object_id(n: int, mtime: int = 1_700_000_000_000) -> ObjectId:
    return ObjectId(f"file:/data/events/part-{n:05}.parquet", 1000 + n, mtime)


def object_metadata(n: int, mtime: int = 1_700_000_000_000, **metadata: Metadata) -> ObjectMetadata:
    """Object n; keywords ``minmax``, ``list`` and ``box`` give the metadata of the three usual indexes."""
    ids = {"minmax": MINMAX.id, "list": LIST.id, "box": BOX.id}
    return ObjectMetadata(object_id(n, mtime), n, {ids[name]: one for name, one in metadata.items()})


def minmax(low: int, high: int, nulls: int | None = 0) -> Intervals:
    return Intervals(((low, high),), nulls)


def between(low: int, high: int) -> Clause:
    return Ask(MINMAX.id, Overlaps((Range(low, high),)))


def write(
    store: MetadataStore,
    definition: DatasetDefinition,
    objects: Iterable[ObjectMetadata] = (),
    *,
    remove: Iterable[ObjectId] = (),
    fresh: bool = False,
) -> DatasetEntry:
    with store.change(definition, fresh=fresh) as change:
        change.remove(remove)
        change.put(objects)
        return change.publish()


def entry_of(store: MetadataStore, id: str = "events") -> DatasetEntry:
    entry = store.dataset(id)
    assert entry is not None
    return entry


def keys(packed: bytes) -> set[bytes]:
    found = [packed[i : i + KEY_BYTES] for i in range(0, len(packed), KEY_BYTES)]
    assert len(set(found)) == len(found), "an object is named twice"
    return set(found)


def skipped(store: MetadataStore, entry: DatasetEntry, clause: Clause) -> set[bytes]:
    return keys(store.lookup(entry, clause).skip)


def stored(store: MetadataStore, id: str = "events") -> dict[ObjectId, ObjectMetadata]:
    found = list(store.metadata(id))
    assert len({one.id for one in found}) == len(found)
    return {one.id: one for one in found}


def asks(clause: Clause) -> Iterator[Ask]:
    match clause:
        case Ask():
            yield clause
        case Conjunction(parts) | Disjunction(parts):
            for part in parts:
                yield from asks(part)
