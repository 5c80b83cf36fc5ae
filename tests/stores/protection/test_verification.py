"""``verify=mac``: whoever writes to a store without the key can make queries skip less, and never a row more.

``ES_SKIPPING_MUTATIONS`` says how many random changes of each kind (a record took 10,000), ``ES_SKIPPING_SEED`` which.
"""

from __future__ import annotations

import logging
import os
import random
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from es_skipping.catalog import DatasetEntry, ObjectMetadata
from es_skipping.clauses.clause import KEEP, Ask, Clause, Conjunction, Disjunction
from es_skipping.clauses.metadata import Intervals, Values
from es_skipping.clauses.questions import AnyOf, Overlaps, Range
from es_skipping.errors import EsSkippingError, ProtectionError, StoreError
from es_skipping.stores.base import Answer, MetadataStore
from es_skipping.stores.elasticsearch.store import ElasticsearchStore
from es_skipping.stores.guarantors import Ordering
from es_skipping.stores.memory.files import MemoryFiles
from es_skipping.stores.memory.store import MemoryStore
from es_skipping.stores.parquet.evaluate import only
from es_skipping.stores.parquet.store import ParquetStore
from es_skipping.stores.protection.store import ProtectedStore
from es_skipping.stores.reindex import reindex
from tests.stores.contract.examples import LIST, MINMAX, dataset_definition, entry_of, keys, object_id, write
from tests.stores.protection.conftest import hashed, in_clear, reopened, sealed, sealed_files
from tests.stores.random_clauses import Draw

GIVEN = os.environ.get("ES_SKIPPING_MUTATIONS")
COUNT = int(GIVEN or "200")
SEED = int(os.environ.get("ES_SKIPPING_SEED", "25"))
KEY = "env:MAC_KEY"
DEFINITION = dataset_definition(MINMAX, LIST)
ASKED: tuple[Clause, ...] = (
    Ask(MINMAX.id, Overlaps((Range(2, 2),))),
    Ask(LIST.id, AnyOf(("v2",))),
    Conjunction((Ask(MINMAX.id, Overlaps((Range(2, 2),))), Ask(LIST.id, AnyOf(("v3",))))),
    Disjunction((Ask(MINMAX.id, Overlaps((Range(2, 2),))), Ask(LIST.id, AnyOf(("v3",))))),
)


@pytest.fixture(autouse=True)
def mac_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAC_KEY", "77" * 32)
    monkeypatch.setenv("OTHER_KEY", "88" * 32)


def verified(store: ProtectedStore, key: str = KEY) -> ProtectedStore:
    """The same store as a process with ``verify=mac`` has it."""
    return ProtectedStore(reopened(store).unprotected, key)


def _object(n: int, value: int, rows: int = 1) -> ObjectMetadata:
    metadata = {MINMAX.id: Intervals(((value, value),), 0, 0), LIST.id: Values(frozenset({f"v{value}"}), 0)}
    return ObjectMetadata(object_id(n), rows, metadata)


OBJECTS = [_object(n, n) for n in range(6)]


def _skipped(store: MetadataStore, entry: DatasetEntry | None = None) -> list[set[bytes]]:
    entry = entry_of(store) if entry is None else entry
    return [keys(store.lookup(entry, clause).skip) for clause in ASKED]


def _right(objects: list[ObjectMetadata] = OBJECTS) -> list[set[bytes]]:
    plain = ParquetStore("memory", MemoryFiles())
    return _skipped(plain, write(plain, DEFINITION, objects))


def _counts(answer: Answer) -> dict[str, int]:
    """How many objects each index skips alone; a store may leave out those that skip nothing."""
    return {id: count for id, count in answer.by_index.items() if count}


def _forge(store: ProtectedStore, objects: list[ObjectMetadata]) -> DatasetEntry:
    """What somebody writes who can write to the store and lacks the key."""
    return write(reopened(store), DEFINITION, objects)


def test_what_nobody_changed_skips_the_same(store: ProtectedStore, caplog: pytest.LogCaptureFixture) -> None:
    """Random metadata of every kind, in clear, hashed and sealed."""
    rng = random.Random(SEED)
    checked = verified(store)
    skipped = 0
    exact = isinstance(store.unprotected, MemoryStore)  # the copy rounds outward, as a Parquet store does
    for number in range(2 if isinstance(store.unprotected, ElasticsearchStore) else 4):
        draw = Draw(rng)
        objects = [ObjectMetadata(object_id(n), n, draw.metadata()) for n in range(16)]
        protect = {"values": hashed, "fingerprints": sealed} if number % 2 else {}
        indexes = [protect.get(one.kind, in_clear)(one) for one in draw.indexes]
        entry = write(checked, dataset_definition(*indexes, id="random"), objects, fresh=True)
        for at, clause in enumerate(draw.clause() for _ in range(30)):
            answer = checked.lookup(entry, clause)
            trusted = store.lookup(entry, clause)
            assert keys(answer.skip) <= keys(trusted.skip), clause
            if not exact:
                assert keys(answer.skip) == keys(trusted.skip), clause
                assert answer.unusable == trusted.unusable
            decided = only(clause, ()) != KEEP  # whatever metadata says: then stores name different indexes, or none
            if at % 5 == 0 and not exact and not decided:
                assert _counts(checked.lookup(entry, clause, detail=True)) == _counts(
                    store.lookup(entry, clause, detail=True)
                ), clause
            skipped += answer.skipped
    assert skipped > 100
    assert exact or not caplog.records


def test_changes_reach_the_copy(store: ProtectedStore) -> None:
    checked = verified(store)
    write(checked, DEFINITION, OBJECTS[:3])
    write(checked, DEFINITION, OBJECTS[3:], remove=[object_id(0)])
    assert _skipped(checked) == _right(OBJECTS[1:])
    write(checked, replace(DEFINITION, indexes=(MINMAX,)), [_object(1, 1)])
    assert not checked.must_rebuild(entry_of(checked), entry_of(checked).definition)
    assert keys(checked.lookup(entry_of(checked), ASKED[0]).skip) == _right(OBJECTS[1:])[0]
    entry = write(checked, DEFINITION, OBJECTS, fresh=True)
    assert _skipped(checked) == _right()
    moved = replace(OBJECTS[1], id=object_id(1, mtime=5))
    write(checked, DEFINITION, [moved])
    assert _skipped(checked) == _right([OBJECTS[0], moved, *OBJECTS[2:]])
    assert {one.key for one, _ in checked.objects("events")} == keys(checked.keys("events"))
    assert entry.objects == 6
    assert sealed_files(store)
    checked.optimize("events")
    assert _skipped(verified(store)) == _right([OBJECTS[0], moved, *OBJECTS[2:]])
    checked.drop("events")
    assert not sealed_files(store)


def test_an_edited_bound_hides_no_row(store: ProtectedStore, caplog: pytest.LogCaptureFixture) -> None:
    """Object 2 has the rows that are asked for. Somebody gives it the metadata of another."""
    checked = verified(store)
    write(checked, DEFINITION, OBJECTS)
    edited = _forge(store, [replace(_object(2, 4), id=object_id(2))])
    assert all(object_id(2).key in keys(reopened(store).lookup(edited, ASKED[n]).skip) for n in (0, 1))
    checked = verified(store)
    for n, clause in enumerate(ASKED[:2]):
        for _ in range(3):
            answer = checked.lookup(edited, clause)
            assert keys(answer.skip) == _right()[n]
            ((id, why),) = answer.unusable
            assert id == (MINMAX, LIST)[n].id
            assert "its authenticated metadata keeps" in why
    assert len(caplog.records) == 1
    assert all(found <= right for found, right in zip(_skipped(checked), _right(), strict=True))


def test_random_forgeries(store: ProtectedStore) -> None:
    """Random metadata under real and other identities, other definitions, removals and whole generations."""
    rng = random.Random(SEED)
    checked = verified(store)
    count = COUNT if GIVEN else {ElasticsearchStore: 10, ParquetStore: 40}.get(type(store.unprotected), COUNT)  # type: ignore[call-overload]
    right, less = _right(), 0
    for number in range(count):
        if number % 10 == 0:
            write(checked, DEFINITION, OBJECTS, fresh=True)
        forged = [_object(rng.randrange(6), rng.randrange(6), rng.randrange(99)) for _ in range(rng.randint(1, 6))]
        forged = list({one.id: one for one in forged}.values())
        indexes = rng.choice([(MINMAX, LIST), (replace(MINMAX, columns=("z",)), LIST), (LIST, MINMAX)])
        entry = write(
            reopened(store),
            replace(DEFINITION, indexes=indexes, schema=rng.choice(["{}", "{}", '{"a": 1}'])),
            forged,
            remove=[object_id(rng.randrange(6))],
            fresh=rng.random() < 0.2,
        )
        found = _skipped(verified(store), entry)
        assert all(one <= of for one, of in zip(found, right, strict=True)), number
        less += found != right
    assert less > count // 3


def test_random_changes_of_documents(elasticsearch_store: ElasticsearchStore) -> None:
    """Fields of documents in Elasticsearch, set to what other documents hold or to random values."""
    rng = random.Random(SEED)
    checked = ProtectedStore(elasticsearch_store, KEY)
    entry = write(checked, DEFINITION, OBJECTS)
    client: Any = elasticsearch_store._cluster.builder
    alias = elasticsearch_store._cluster.names.objects("events")

    def documents() -> dict[str, tuple[str, dict[str, Any]]]:
        client.indices.refresh(index=alias)
        found = client.search(index=alias, size=100, query={"match_all": {}}).body["hits"]["hits"]
        return {one["_id"]: (one["_index"], one["_source"]) for one in found}

    written = documents()
    assert len(written) == 6
    right, skipped, altered = _right(), 0, 0
    for _ in range(COUNT if GIVEN else 25):
        changed: dict[str, dict[str, Any]] = {}
        for _ in range(rng.randint(1, 3)):
            id, other = rng.choice(list(written)), rng.choice(list(written))
            changed[id] = _mutated(written[id][1], written[other][1], rng)
        _put(client, {id: (written[id][0], source) for id, source in changed.items()})  # a mapping refuses some values
        for clause, of in zip(ASKED, right, strict=True):
            try:
                found = keys(checked.lookup(entry, clause).skip)
            except EsSkippingError:  # the store noticed something itself: nothing is skipped
                continue
            assert found <= of
            skipped += len(found)
            altered += found != of
        assert not _put(client, {id: written[id] for id in changed})
    assert skipped
    assert altered


def _put(client: Any, documents: Mapping[str, tuple[str, dict[str, Any]]]) -> list[str]:
    """Write documents in one request; returns the ids of those that were refused."""
    lines: list[dict[str, Any]] = []
    for id, (index, source) in documents.items():
        lines += [{"index": {"_index": index, "_id": id}}, source]
    items = client.bulk(operations=lines, refresh=True).body["items"]
    refused = {one["index"]["_id"]: one["index"]["error"]["type"] for one in items if "error" in one["index"]}
    assert set(refused.values()) <= {"document_parsing_exception", "mapper_parsing_exception"}
    return list(refused)


def _mutated(source: Mapping[str, Any], other: Mapping[str, Any], rng: random.Random) -> dict[str, Any]:
    """A document with one of its leaves replaced, dropped, or taken from another document."""
    made = {name: dict(one) if isinstance(one, dict) else one for name, one in source.items()}
    inner = [name for name, one in made.items() if isinstance(one, dict)]
    name = rng.choice(inner) if inner and rng.random() < 0.8 else None
    part: dict[str, Any] = made if name is None else made[name]
    of = other if name is None else other.get(name) or {}
    field = rng.choice(list(part))
    what = rng.randrange(4)
    if what == 0:
        del part[field]
    elif what == 1 and field in of:
        part[field] = of[field]
    elif what == 2 and isinstance(part[field], int):
        part[field] += rng.choice((-1, 1, 7))
    elif name is not None:
        made[name] = dict(of)
    return made


def _image(protect: bool) -> tuple[dict[str, bytes], list[set[bytes]]]:
    """The files of two datasets with authenticated copies."""
    files = MemoryFiles()
    store = ProtectedStore(ParquetStore("memory", files), KEY)
    definition = replace(DEFINITION, indexes=(MINMAX, hashed(LIST))) if protect else DEFINITION
    write(store, definition, OBJECTS[:3])
    write(store, definition, OBJECTS[3:])
    write(store, replace(definition, id="other"), [_object(n, 5) for n in range(6)])
    return _all_files(files), _skipped(store)


def _all_files(files: MemoryFiles, directory: str = "") -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    for name in files.list(directory):
        path = f"{directory}/{name}" if directory else name
        below = _all_files(files, path)
        found.update(below or {path: files.read(path)})
    return found


def _opened(image: Mapping[str, bytes], key: str = KEY) -> ProtectedStore:
    files = MemoryFiles()
    for path, data in image.items():
        files.write(path, data)
    return ProtectedStore(ParquetStore("memory", files), key)


@pytest.mark.parametrize("protect", [False, True], ids=["plain", "hashed"])
def test_random_bytes(protect: bool) -> None:
    """Any stored byte: of the store's own files, of the copy's, or of both; files swapped, cut, replaced and gone."""
    written, right = _image(protect)
    assert right[0] and right[1]
    rng = random.Random(SEED)
    own = sorted(path for path in written if "events/" in path)
    copied = [path for path in own if path.startswith(".sealed")]
    assert copied and len(copied) < len(own)
    kept = 0
    for number in range(COUNT):
        changed = dict(written)
        for path in rng.sample(own, rng.randint(1, 2)):
            what = (number + len(path)) % 5
            data = bytearray(changed[path])
            if what == 0:
                data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
                changed[path] = bytes(data)
            elif what == 1:
                changed[path] = changed[path][: rng.randrange(len(data))]
            elif what == 2:  # the file of the same place in the other dataset, or any other file
                twin = path.replace("events/", "other/")
                changed[path] = written.get(twin) or written[rng.choice(sorted(written))]
            elif what == 3:
                changed.pop(path, None)
            else:
                source, start = written[rng.choice(sorted(written))], rng.randrange(len(data))
                data[start : start + 16] = source[start : start + 16]
                changed[path] = bytes(data)
        try:
            store = _opened(changed)
            entry = store.dataset("events")
            found = [set() for _ in ASKED] if entry is None else _skipped(store, entry)
        except EsSkippingError:  # nothing is skipped
            found = [set() for _ in ASKED]
        assert all(one <= of for one, of in zip(found, right, strict=True)), number
        kept += found != right
    assert kept > COUNT // 3


def test_an_earlier_state_says_what_was_true() -> None:
    """The whole store as it was, or its copy alone, under a definition that reads files in another way."""
    files = MemoryFiles()
    store = ProtectedStore(ParquetStore("memory", files), KEY)
    write(store, DEFINITION, OBJECTS)
    before = _all_files(files)
    moved = [replace(one, id=object_id(n, mtime=9)) for n, one in enumerate(OBJECTS)]
    other_way = replace(DEFINITION, options={"header": "false"}, built_with={"zone": "UTC"})
    write(store, other_way, moved, remove=[one.id for one in OBJECTS], fresh=True)
    after = _all_files(files)
    assert _skipped(store) != _right()

    assert _skipped(_opened(before)) == _right()  # of objects that no listing has any more
    copy_of_then = {path: data for path, data in after.items() if not path.startswith(".sealed")}
    copy_of_then |= {path: data for path, data in before.items() if path.startswith(".sealed")}
    assert not any(_skipped(_opened(copy_of_then)))
    store_of_then = {path: data for path, data in before.items() if not path.startswith(".sealed")}
    store_of_then |= {path: data for path, data in after.items() if path.startswith(".sealed")}
    assert not any(_skipped(_opened(store_of_then)))
    of_another = {path: data for path, data in before.items() if "other" not in path}
    files = MemoryFiles()
    write(ProtectedStore(ParquetStore("memory", files), KEY), replace(DEFINITION, id="other"), [_object(2, 9)])
    for path, data in _all_files(files).items():
        if path.startswith(".sealed"):
            (there,) = {one.split("/")[2] for one in before if one.startswith(".sealed/events/")}
            of_another[path.replace(path.split("/")[2], there).replace("other/", "events/")] = data
    assert not any(_skipped(_opened(of_another)))


def test_the_definition_is_authenticated(store: ProtectedStore) -> None:
    checked = verified(store)
    entry = write(checked, DEFINITION, OBJECTS)
    assert checked.lookup(entry, ASKED[0]).skipped
    index = replace(MINMAX, columns=("other",), operands=("other",))
    for forged in (
        replace(DEFINITION, indexes=(index, LIST)),
        replace(DEFINITION, schema='{"renamed": 1}'),
        replace(DEFINITION, format="csv"),
        replace(DEFINITION, built_with={"x": "y"}),
    ):
        entry = write(reopened(store), forged, OBJECTS, fresh=True)
        assert store.lookup(entry, ASKED[0]).skipped == 5
        answer = checked.lookup(entry, ASKED[0])
        assert not answer.skipped
        assert "its definition is not the authenticated one" in answer.unusable[0][1]


def test_without_the_key_nothing_is_skipped_or_written(
    store: ProtectedStore, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    checked = verified(store)
    entry = write(checked, DEFINITION, OBJECTS)
    monkeypatch.delenv("MAC_KEY")
    for one in (checked, verified(store)):
        caplog.clear()
        for _ in range(2):
            answer = one.lookup(entry, ASKED[0])
            assert not answer.skipped
            assert "env:MAC_KEY is missing" in answer.unusable[0][1]
            assert not one.guarantors(entry, ASKED[0], 1)
        assert len(caplog.records) == 1
        with pytest.raises(ProtectionError, match="MAC_KEY"):
            write(one, DEFINITION, OBJECTS)
        with pytest.raises(ProtectionError, match="MAC_KEY"):
            one.must_rebuild(entry, entry.definition)
    monkeypatch.setenv("MAC_KEY", "99" * 32)
    assert not checked.lookup(entry, ASKED[0]).skipped
    assert checked.must_rebuild(entry, entry.definition)
    assert "88" * 32 not in caplog.text


def test_a_new_key(store: ProtectedStore) -> None:
    """Each key has a copy of its own, so that readers of both skip until the old one is dropped."""
    old, new = verified(store), verified(store, "env:OTHER_KEY")
    entry = write(old, DEFINITION, OBJECTS)
    assert not any(_skipped(new, entry))
    assert new.must_rebuild(entry, entry.definition)
    write(new, DEFINITION, OBJECTS, fresh=True)
    assert _skipped(old) == _skipped(new) == _right()
    assert store.superseded("events") == []
    (left,) = new.superseded("events")
    assert new.drop_superseded("events") == [left]
    assert _skipped(new) == _right()
    assert not any(_skipped(verified(store)))


def test_what_was_built_without_it(store: ProtectedStore) -> None:
    checked = verified(store)
    entry = write(store, DEFINITION, OBJECTS)
    answer = checked.lookup(entry, ASKED[0])
    assert not answer.skipped
    assert "built without" in answer.unusable[0][1]
    assert checked.must_rebuild(entry, entry.definition)
    with pytest.raises(StoreError, match="refresh the dataset first"):
        list(checked.metadata("events"))
    entry = write(checked, DEFINITION, OBJECTS[:5], fresh=True)
    assert not checked.must_rebuild(entry, entry.definition)
    entry = write(store, DEFINITION, OBJECTS[5:])
    assert checked.must_rebuild(entry, entry.definition)
    checked = verified(store)
    assert keys(checked.lookup(entry, ASKED[0]).skip) == _right(OBJECTS[:5])[0]
    assert "no authenticated metadata" in checked.lookup(entry, ASKED[0]).unusable[0][1]
    assert not store.must_rebuild(entry, entry.definition)


def test_a_forged_definition_gets_no_seal(store: ProtectedStore) -> None:
    """Somebody says how the files were read, or what an index is of; a change keeps the rest of the definition."""
    for forged in (replace(DEFINITION, schema='{"renamed": 1}'), replace(DEFINITION, options={"mode": "x"})):
        checked = verified(store)
        write(checked, DEFINITION, OBJECTS, fresh=True)
        entry = write(reopened(store), forged, OBJECTS)
        assert checked.must_rebuild(entry, DEFINITION)
        entry = write(checked, replace(forged, indexes=(MINMAX,)), [_object(0, 0)])
        assert keys(checked.lookup(entry, ASKED[0]).skip) == {object_id(0).key}
    checked = verified(store)
    entry = write(checked, DEFINITION, OBJECTS, fresh=True)
    assert checked.must_rebuild(entry, replace(DEFINITION, schema='{"a": 1}'))
    assert not checked.must_rebuild(entry, replace(DEFINITION, indexes=(MINMAX,)))
    other = replace(DEFINITION, indexes=(replace(MINMAX, columns=("z",)), LIST))
    write(reopened(store), other, OBJECTS)
    entry = write(checked, other, [_object(0, 0)])
    assert keys(checked.lookup(entry, ASKED[0]).skip) == {object_id(0).key}
    assert keys(checked.lookup(entry, ASKED[1]).skip) == _right()[1]


def test_guarantors_are_authenticated(store: ProtectedStore) -> None:
    """Who says that an object holds many rows of an order decides which others are read."""
    checked = verified(store)
    write(checked, DEFINITION, OBJECTS)
    ordering = Ordering(MINMAX.id, descending=True, nulls_first=False)
    everything = Ask(MINMAX.id, Overlaps((Range(100, None),)))
    entry = _forge(store, [_object(0, 50, rows=1_000)])
    (first,) = checked.guarantors(entry, everything, 1, ordering)
    assert (first.key, first.rows, first.bound) == (object_id(5).key, 1, 5)
    (forged,) = store.guarantors(entry, everything, 1, ordering)
    assert (forged.key, forged.rows) == (object_id(0).key, 1_000)


def test_a_copy_elsewhere_takes_what_is_authenticated(store: ProtectedStore) -> None:
    """`reindex` would give altered metadata a seal of its own."""
    checked = verified(store)
    write(checked, DEFINITION, OBJECTS)
    _forge(store, [_object(2, 4)])
    target = ProtectedStore(ParquetStore("memory", MemoryFiles()), KEY)
    assert reindex(checked, target, "events").objects == 6
    assert _skipped(target) == _right()


def test_doctor_finds_what_was_altered(store: ProtectedStore, monkeypatch: pytest.MonkeyPatch) -> None:
    def found() -> list[tuple[str, str]]:
        checks = verified(store).checks(30.0)
        return [(one.state, one.found) for one in checks if one.name.startswith("authenticity")]

    write(store, DEFINITION, OBJECTS)
    assert found() == [("note", "it was built without spark.es_skipping.verify=mac: refresh it")]
    write(verified(store), DEFINITION, OBJECTS, fresh=True)
    assert found() == [("good", "6 objects are as they were built")]
    write(store, DEFINITION, [_object(7, 7)])
    assert found() == [("note", "1 of 7 objects have no authenticated metadata: refresh")]
    _forge(store, [_object(2, 4)])
    ((state, text),) = found()
    assert (state, text.partition(" of file:")[0]) == (
        "bad",
        f"1 of 7 objects differ; the first: {MINMAX.id}, {LIST.id}",
    )
    monkeypatch.setattr("es_skipping.stores.protection.verification._MAX_CHECKED_OBJECTS", 1)
    assert "a sample of 17 %" in found()[0][1]
    write(reopened(store), replace(DEFINITION, format="csv"), OBJECTS, fresh=True)
    assert "not the authenticated one" in found()[0][1]
    monkeypatch.delenv("MAC_KEY")
    assert "cannot be read" in found()[0][1]


def test_logging_goes_to_the_package(caplog: pytest.LogCaptureFixture) -> None:
    store = ProtectedStore(ParquetStore("memory", MemoryFiles()))
    entry = write(store, DEFINITION, OBJECTS)
    with caplog.at_level(logging.WARNING, "es_skipping"):
        verified_store = ProtectedStore(store.unprotected, KEY)
        assert not verified_store.lookup(entry, ASKED[0]).skipped
    (record,) = caplog.records
    assert record.name == "es_skipping"
    assert "minmax" in record.getMessage() or MINMAX.id in record.getMessage()
