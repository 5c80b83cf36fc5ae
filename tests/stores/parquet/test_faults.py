"""A crash at any operation, damage to any byte: the previous state or the new one, or a clear error, never a mix."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from es_skipping.catalog import ObjectId, ObjectMetadata
from es_skipping.clauses.clause import Ask
from es_skipping.clauses.metadata import Values
from es_skipping.clauses.questions import AnyOf
from es_skipping.errors import EsSkippingError, StoreConflict, StoreError, StoreFormatError
from es_skipping.stores.parquet import snapshots
from es_skipping.stores.parquet.files import LocalFiles
from es_skipping.stores.parquet.store import ParquetStore
from tests.stores.contract import (
    LIST,
    MINMAX,
    between,
    dataset_definition,
    entry_of,
    keys,
    minmax,
    object_id,
    object_metadata,
    stored,
    write,
)
from tests.stores.parquet.doubles import CrashingFiles, Mode, ReadOnlyFiles

BOTH = dataset_definition(MINMAX, LIST)


def words(n: int) -> Values:
    return Values(frozenset({f"v{n}"}), 0)


def refresh(store: ParquetStore) -> None:
    """New, changed, merged and removed objects; with ten small segments it also compacts."""
    with store.change(BOTH) as change:
        change.remove([object_id(0), object_id(5)])
        change.put([object_metadata(3, list=words(3)), object_metadata(2, mtime=9, minmax=minmax(50, 50))])
        change.put([object_metadata(20, minmax=minmax(20, 20), list=words(20))])
        change.publish([("file:/data/events/bad", "unreadable")])


def rebuild(store: ParquetStore) -> None:
    with store.change(BOTH, fresh=True) as change:
        change.put(object_metadata(n, minmax=minmax(n, n), list=words(n)) for n in range(4))
        change.publish()


def optimize(store: ParquetStore) -> None:
    store.optimize("events")


def drop(store: ParquetStore) -> None:
    store.drop("events")


State = tuple[dict[ObjectId, ObjectMetadata], tuple[tuple[str, str], ...], int] | None


def state(root: Path) -> State:
    store = ParquetStore(str(root))
    entry = store.dataset("events")
    if entry is None:
        return None
    # A look-up reads other columns than a listing does, so it is part of the state that must be whole.
    expected = {one.id.key for one in store.metadata("events") if holds_no_99(one)}
    assert keys(store.lookup(entry, between(99, 99)).skip) == expected
    return stored(store), entry.failed, entry.objects


def holds_no_99(one: ObjectMetadata) -> bool:
    return MINMAX.id in one.metadata


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("base") / "store"
    store = ParquetStore(str(root))
    write(store, dataset_definition(MINMAX), [object_metadata(n, minmax=minmax(n, n)) for n in range(6)])
    for n in range(6, 13):
        write(store, dataset_definition(MINMAX), [object_metadata(n, minmax=minmax(n, n))])
    return root


@pytest.mark.every(3)
@pytest.mark.parametrize("once", [False, True], ids=["gone", "hiccup"])
@pytest.mark.parametrize("mode", ["before", "after", "torn"])
@pytest.mark.parametrize("run", [refresh, rebuild, optimize, drop], ids=lambda run: run.__name__)
def test_a_crash_at_any_operation(
    base: Path, tmp_path: Path, run: Callable[[ParquetStore], None], mode: Mode, once: bool
) -> None:
    whole = tmp_path / "whole"
    shutil.copytree(base, whole)
    before = state(whole)
    run(ParquetStore(str(whole)))
    after = state(whole)
    assert (before == after) == (run is optimize)
    for operation in range(1000):
        root = tmp_path / f"at-{operation}"
        shutil.copytree(base, root)
        files = CrashingFiles(LocalFiles(root), operation, mode, once)
        try:
            run(ParquetStore(str(root), files))
        except EsSkippingError:
            assert state(root) in (before, after), operation
        else:
            assert state(root) == after, "it said that it was done"
        run(ParquetStore(str(root)))
        assert state(root) == after, f"running it again after a crash at operation {operation}"
        if not files.crashed:
            break
        shutil.rmtree(root)
    else:
        pytest.fail("it never came to an end")
    assert operation > 4, "the crash never hit anything"


def test_every_damaged_byte_is_an_error_or_harmless(tmp_path: Path) -> None:
    root = tmp_path / "store"
    objects = [object_metadata(n, minmax=minmax(n, n), list=words(n)) for n in range(40)]
    entry = write(ParquetStore(str(root)), BOTH, objects)
    clauses = [between(7, 9), Ask(LIST.id, AnyOf(("v11",)))]
    right = [keys(ParquetStore(str(root)).lookup(entry, clause).skip) for clause in clauses]
    assert [len(skip) for skip in right] == [37, 39]
    refused = 0
    for path in sorted(root.rglob("*.*")):
        data = path.read_bytes()
        for position in [*range(0, len(data), 23), *range(max(0, len(data) - 12), len(data))]:
            path.write_bytes(data[:position] + bytes([data[position] ^ 0x41]) + data[position + 1 :])
            for clause, expected in zip(clauses, right, strict=True):
                try:
                    assert keys(ParquetStore(str(root)).lookup(entry, clause).skip) == expected
                except StoreError:
                    refused += 1
        for length in (0, 1, len(data) // 2, len(data) - 1):
            path.write_bytes(data[:length])
            for clause, expected in zip(clauses, right, strict=True):
                try:
                    assert keys(ParquetStore(str(root)).lookup(entry, clause).skip) == expected
                except StoreError:
                    refused += 1
        path.write_bytes(data)
    assert refused > 50
    assert state(root) is not None


TORN = [b"", b"{", b'{"form', b'{"format":1', b'{"format":1}\nabc']


@pytest.mark.parametrize("torn", TORN)
def test_a_publication_that_never_ended_is_passed_over(
    tmp_path: Path, torn: bytes, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A writer was killed, or had no room, in a file system where a file is seen before it is finished."""
    monkeypatch.setattr(snapshots, "_UNFINISHED_SECONDS", 0.01)
    store = ParquetStore(str(tmp_path))
    write(store, BOTH, [object_metadata(1, minmax=minmax(1, 1))])
    entry = entry_of(store)
    manifest = tmp_path / "events/manifests/000000000002.json"
    manifest.write_bytes(torn)
    for reader in (store, ParquetStore(str(tmp_path))):
        assert entry_of(reader) == entry
        assert reader.lookup(entry, between(5, 5)).skipped == 1
    assert caplog.text.count("000000000002.json is empty or cut off") == 2, "once in each"
    after = write(store, BOTH, [object_metadata(2, minmax=minmax(2, 2))])
    assert after.snapshot.startswith("3-")
    assert set(stored(ParquetStore(str(tmp_path)))) == {object_id(1), object_id(2)}
    assert not manifest.exists()


@pytest.mark.parametrize("torn", TORN)
def test_a_first_publication_that_never_ended_was_none(
    tmp_path: Path, torn: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshots, "_UNFINISHED_SECONDS", 0.01)
    (tmp_path / "events/manifests").mkdir(parents=True)
    (tmp_path / "events/manifests/000000000001.json").write_bytes(torn)
    store = ParquetStore(str(tmp_path))
    assert store.datasets() == []
    write(store, BOTH, [object_metadata(2, minmax=minmax(2, 2))])
    assert set(stored(ParquetStore(str(tmp_path)))) == {object_id(2)}


@pytest.mark.parametrize("how", ["change", "fresh", "drop"])
def test_the_only_manifest_is_cut_off(tmp_path: Path, how: str) -> None:
    """It was in use: others were cleaned away because of it."""
    store = ParquetStore(str(tmp_path), grace=0)
    for n in range(3):
        write(store, BOTH, [object_metadata(n, minmax=minmax(n, n))])
    (manifest,) = tmp_path.rglob("*.json")
    manifest.write_bytes(manifest.read_bytes()[:-1])
    with pytest.raises(StoreError, match=r"cut off.* there is no other manifest\. Drop the dataset's indexes"):
        store.dataset("events")
    if how == "change":
        with pytest.raises(StoreError, match="cut off"), store.change(BOTH):
            pass
    elif how == "fresh":
        write(store, BOTH, [object_metadata(7, minmax=minmax(7, 7))], fresh=True)
        assert set(stored(ParquetStore(str(tmp_path)))) == {object_id(7)}
    else:
        store.drop("events")
        assert store.datasets() == []


def test_a_publication_of_a_newer_version_is_not_passed_over(tmp_path: Path) -> None:
    store = ParquetStore(str(tmp_path))
    write(store, BOTH, [object_metadata(1, minmax=minmax(1, 1))])
    (tmp_path / "events/manifests/000000000002.json").write_bytes(b'{"format":99}')
    with pytest.raises(StoreFormatError, match="99"):
        store.dataset("events")


def test_a_writer_that_was_passed_over_and_finishes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Either it is seen, and the other one gives way, or it finds itself passed over, and gives way."""
    store = ParquetStore(str(tmp_path))
    write(store, BOTH, [object_metadata(1, minmax=minmax(1, 1))])
    with ParquetStore(str(tmp_path)).change(BOTH) as first, ParquetStore(str(tmp_path)).change(BOTH) as second:
        first.put([object_metadata(2, minmax=minmax(2, 2))])
        second.put([object_metadata(3, minmax=minmax(3, 3))])
        path = "events/manifests/000000000002.json"
        unfinished: list[bytes] = []

        def begins(self: LocalFiles, name: str, data: bytes) -> bool:
            assert name == path
            unfinished.append(data)
            (tmp_path / path).write_bytes(data[: len(data) // 2])
            return True

        with monkeypatch.context() as patched:
            patched.setattr(LocalFiles, "create_if_absent", begins)
            patched.setattr(first._snapshots, "_confirm", lambda *given: None)
            first.publish()
        create = LocalFiles.create_if_absent

        def finishes(self: LocalFiles, name: str, data: bytes) -> bool:
            (tmp_path / path).write_bytes(unfinished[0])
            return create(self, name, data)

        with monkeypatch.context() as patched:
            patched.setattr(LocalFiles, "create_if_absent", finishes)
            with pytest.raises(StoreConflict):
                second.publish()
    assert set(stored(ParquetStore(str(tmp_path)))) == {object_id(1), object_id(2)}
    assert entry_of(store).snapshot.startswith("2-")


@pytest.mark.parametrize(
    "garbage",
    [
        b"[]\n\n",
        b"null\nabc\n",
        b"\xff\x00\n\n",
        b'{"format":1}\nabc\n',
        b"[]\n",
        b"null",
        b"\xff\x00",
        b'garbage{"format"',
    ],
)
def test_a_damaged_manifest_is_an_error_and_can_be_replaced(tmp_path: Path, garbage: bytes) -> None:
    store = ParquetStore(str(tmp_path))
    write(store, BOTH, [object_metadata(1, minmax=minmax(1, 1))])
    (tmp_path / "events/manifests/000000000002.json").write_bytes(garbage)
    with pytest.raises(StoreError, match=r"000000000002\.json is damaged|no format version"):
        store.dataset("events")
    with pytest.raises(StoreError), store.change(BOTH):
        pass
    entry = write(store, BOTH, [object_metadata(2, minmax=minmax(2, 2))], fresh=True)
    assert entry_of(store) == entry
    assert set(stored(store)) == {object_id(2)}


def test_a_damaged_dataset_can_be_dropped(tmp_path: Path) -> None:
    store = ParquetStore(str(tmp_path))
    write(store, BOTH, [object_metadata(1, minmax=minmax(1, 1))])
    (tmp_path / "events/manifests/000000000002.json").write_bytes(b"altered\n\n")
    store.drop("events")
    assert store.datasets() == []
    write(store, BOTH, [object_metadata(2)])
    assert set(stored(store)) == {object_id(2)}


def test_a_missing_segment_is_an_error(tmp_path: Path) -> None:
    entry = write(ParquetStore(str(tmp_path)), BOTH, [object_metadata(1, minmax=minmax(1, 1))])
    for path in tmp_path.rglob("*.parquet"):
        path.unlink()
    with pytest.raises(StoreError, match=r"reading .*segments/.*\.parquet failed: FileNotFoundError"):
        ParquetStore(str(tmp_path)).lookup(entry, between(5, 5))


def test_a_read_only_store_is_read_and_refuses_writing(tmp_path: Path) -> None:
    entry = write(ParquetStore(str(tmp_path)), BOTH, [object_metadata(1, minmax=minmax(1, 1))])
    store = ParquetStore(str(tmp_path), ReadOnlyFiles(LocalFiles(tmp_path)))
    assert entry_of(store) == entry
    assert store.lookup(entry, between(5, 5)).skipped == 1
    with pytest.raises(StoreError, match=r"not permitted .*spark\.es_skipping\.store\.url"):
        write(store, BOTH, [object_metadata(2, minmax=minmax(2, 2))])
    with pytest.raises(StoreError, match="not permitted"):
        store.drop("events")
    assert entry_of(store) == entry


def test_a_finished_change_cannot_be_used(tmp_path: Path) -> None:
    store = ParquetStore(str(tmp_path))
    with store.change(BOTH) as change:
        change.publish()
        with pytest.raises(StoreError, match="finished"):
            change.put([object_metadata(1)])
        with pytest.raises(StoreError, match="finished"):
            change.publish()


def test_discarding_leaves_no_files(tmp_path: Path) -> None:
    store = ParquetStore(str(tmp_path))
    write(store, BOTH, [object_metadata(1, minmax=minmax(1, 1))])
    files = sorted(tmp_path.rglob("*"))
    with store.change(BOTH) as change:
        change.put([object_metadata(2, minmax=minmax(2, 2))])
        change._flush()  # as after 50,000 objects
        assert sorted(tmp_path.rglob("*")) != files
    assert sorted(tmp_path.rglob("*")) == files
