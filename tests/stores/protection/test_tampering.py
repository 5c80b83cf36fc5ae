"""Sealed metadata that somebody changed, cut, swapped or brought back proves nothing that was not true.

``ES_SKIPPING_MUTATIONS`` says how many (a record took 10,000), ``ES_SKIPPING_SEED`` which.
"""

from __future__ import annotations

import base64
import os
import random
from typing import Any

import pytest

from es_skipping.catalog import ObjectMetadata
from es_skipping.clauses.clause import Ask
from es_skipping.clauses.metadata import Intervals
from es_skipping.clauses.questions import Overlaps, Range
from es_skipping.errors import StoreError
from es_skipping.stores.elasticsearch.store import ElasticsearchStore
from es_skipping.stores.memory.files import MemoryFiles
from es_skipping.stores.parquet.store import ParquetStore
from es_skipping.stores.protection.files import SealedFiles
from es_skipping.stores.protection.store import ProtectedStore
from tests.stores.contract.examples import MINMAX, dataset_definition, entry_of, keys, object_id, write
from tests.stores.protection.conftest import sealed, sealed_files

GIVEN = os.environ.get("ES_SKIPPING_MUTATIONS")
COUNT = int(GIVEN or "300")
SEED = int(os.environ.get("ES_SKIPPING_SEED", "25"))
ASKED = Ask(MINMAX.id, Overlaps((Range(2, 2),)))


def _object(n: int, value: int) -> ObjectMetadata:
    return ObjectMetadata(object_id(n), n, {MINMAX.id: Intervals(((value, value),), 0)})


RIGHT = {object_id(n).key for n in (0, 1, 3, 4)}
"""What may be skipped in the dataset ``events``."""


def _fill(store: ProtectedStore) -> None:
    """Two datasets with a sealed index each."""
    definition = dataset_definition(sealed(MINMAX))
    write(store, definition, [_object(n, n) for n in range(3)])
    write(store, definition, [_object(n, n) for n in range(3, 6)])
    other = dataset_definition(sealed(MINMAX), id="other")
    write(store, other, [_object(n, 9) for n in range(6)])  # of the same objects: all of them would be skipped
    with store.change(definition) as change:
        change.remove([object_id(5)])
        change.publish()


@pytest.fixture(scope="module")
def image() -> tuple[dict[str, bytes], set[bytes]]:
    """The files of `_fill`, and what may be skipped."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PAY_KEY", "22" * 32)
        files = MemoryFiles()
        store = ProtectedStore(ParquetStore("memory", files))
        _fill(store)
        manifests = {f"{id}/manifests/{name}" for id in ("events", "other") for name in files.list(f"{id}/manifests")}
        segments = {f"{id}/segments/{name}" for id in ("events", "other") for name in files.list(f"{id}/segments")}
        in_clear = {path: files.read(path) for path in manifests | segments}
        return in_clear | sealed_files(store), RIGHT


def _store(image: dict[str, bytes]) -> ProtectedStore:
    files = MemoryFiles()
    for path, data in image.items():
        files.write(path, data)
    return ProtectedStore(ParquetStore("memory", files))


def _skipped(image: dict[str, bytes]) -> set[bytes]:
    store = _store(image)
    entry = store.dataset("events")
    assert entry is not None
    return keys(store.lookup(entry, ASKED).skip)


def test_what_is_as_it_was_written_skips(image: tuple[dict[str, bytes], set[bytes]]) -> None:
    assert _skipped(image[0]) == image[1]


def test_flipped_cut_and_swapped(image: tuple[dict[str, bytes], set[bytes]]) -> None:
    written, right = image
    rng = random.Random(SEED)
    sealed_files = sorted(path for path in written if path.startswith(".sealed"))
    own = [path for path in sealed_files if "/events/" in path]
    kept = 0
    for number in range(COUNT):
        changed = dict(written)
        path = rng.choice(own)
        what = number % 5
        if what == 0:  # a flipped bit
            data = bytearray(changed[path])
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
            changed[path] = bytes(data)
        elif what == 1:  # cut off
            changed[path] = changed[path][: rng.randrange(len(changed[path]))]
        elif what == 2:  # the content of another file, of this index or of another's
            changed[path] = written[rng.choice([one for one in sealed_files if one != path])]
        elif what == 3:  # gone
            del changed[path]
        else:  # some bytes of another file
            data, source = bytearray(changed[path]), written[rng.choice(sealed_files)]
            start = rng.randrange(len(data))
            data[start : start + 16] = source[start : start + 16]
            changed[path] = bytes(data)
        skip = _skipped(changed)
        assert skip <= right | {object_id(5).key}, (what, path)
        kept += skip != right
    assert kept > COUNT // 3


def test_documents_flipped_cut_and_swapped(elasticsearch_store: ElasticsearchStore) -> None:
    """The same in Elasticsearch, where a file is a document: its other fields are changed too."""
    store = ProtectedStore(elasticsearch_store)
    _fill(store)
    entry = entry_of(store)
    client: Any = elasticsearch_store._cluster.builder
    index = elasticsearch_store._cluster.names.sealed
    client.indices.refresh(index=index)
    hits = client.search(index=index, size=1_000, query={"match_all": {}}).body["hits"]["hits"]
    written: dict[str, dict[str, Any]] = {hit["_id"]: hit["_source"] for hit in hits}
    own = sorted(id for id, one in written.items() if one["path"].startswith(".sealed/events/"))
    assert 3 < len(own) < len(written)
    assert keys(ProtectedStore(elasticsearch_store).lookup(entry, ASKED).skip) == RIGHT
    rng = random.Random(SEED)
    kept = 0
    for number in range(COUNT if GIVEN else 30):
        id, other = rng.choice(own), rng.choice(sorted(written))
        changed = _changed(written[id], written[other], number % 6, rng)
        if changed is None:
            client.delete(index=index, id=id, refresh=True)
        else:
            client.index(index=index, id=id, document=changed, refresh=True)
        skip = keys(ProtectedStore(elasticsearch_store).lookup(entry, ASKED).skip)
        assert skip <= RIGHT | {object_id(5).key}, (number, id)
        kept += skip != RIGHT
        client.index(index=index, id=id, document=written[id], refresh=True)
    assert kept > 5
    assert keys(ProtectedStore(elasticsearch_store).lookup(entry, ASKED).skip) == RIGHT
    for one in ("events", "other"):
        store.drop(one)


def _changed(document: dict[str, Any], other: dict[str, Any], what: int, rng: random.Random) -> dict[str, Any] | None:
    """A document of a file with another content or other fields; None for no document."""
    if what == 0:
        return None
    if what == 1:
        return dict(other)
    if what == 2:  # a field less, or of another document
        name = rng.choice(sorted(document))
        return {field: one for field, one in document.items() if field != name} | rng.choice(({}, {name: other[name]}))
    if what == 3:
        return document | rng.choice(({"parts": rng.choice((-1, 0, 2, 1_000_000))}, {"ordinal": 1}, {"data": None}))
    data = bytearray(base64.b64decode(document["data"]))
    if what == 4:
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    else:
        del data[rng.randrange(len(data)) :]
    return document | {"data": base64.b64encode(bytes(data)).decode()}


def test_a_file_in_another_place_is_refused() -> None:
    files = SealedFiles(MemoryFiles(), bytes(32))
    files.write("a", b"planted")
    assert files.read("a") == b"planted"
    assert (files.read("a", 2, 3), files.read("a", 5)) == (b"ant", b"ed")
    raw = files._files.read("a")
    files._files.write("b", raw)
    with pytest.raises(StoreError, match="b was altered, or belongs elsewhere"):
        files.read("b")
    for cut in range(len(raw)):
        files._files.write("c", raw[:cut])
        assert files.read("c") == b""
    with pytest.raises(StoreError, match="altered"):
        SealedFiles(files._files, bytes(31) + b"1").read("a")


def test_the_definition_that_others_can_write_is_compared(
    image: tuple[dict[str, bytes], set[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who can write to the store can say that the index is about another column: then it is unknown."""
    from dataclasses import replace

    store = _store(image[0])
    entry = store.dataset("events")
    assert entry is not None
    (index,) = entry.definition.indexes
    for forged in (
        replace(index, columns=("other",)),
        replace(index, operands=("other",)),
        replace(index, built_with={"x": "y"}),
    ):
        lied = replace(entry, definition=replace(entry.definition, indexes=(forged,)))
        assert not store.lookup(lied, ASKED).skipped
    assert not store.lookup(replace(entry, definition=replace(entry.definition, format="csv")), ASKED).skipped
    assert store.lookup(entry, ASKED).skipped
