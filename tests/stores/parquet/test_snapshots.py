"""Snapshots over time: readers on old ones, cleaning up, compaction, what is read from disk."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from es_skipping.catalog import ObjectId, ObjectMetadata
from es_skipping.clauses.clause import Ask
from es_skipping.clauses.metadata import Intervals, Values
from es_skipping.clauses.questions import AnyOf, OtherThan
from es_skipping.errors import StoreError, StoreUnavailable
from es_skipping.predicates.types import parse_type
from es_skipping.stores.parquet import change as change_module
from es_skipping.stores.parquet import compact, snapshots
from es_skipping.stores.parquet import store as store_module
from es_skipping.stores.parquet.files import LocalFiles
from es_skipping.stores.parquet.store import ParquetStore
from tests.stores import strategies
from tests.stores.contract import (
    LIST,
    MINMAX,
    between,
    dataset_definition,
    entry_of,
    minmax,
    object_id,
    object_metadata,
    skipped,
    stored,
    write,
)
from tests.stores.parquet.doubles import CountingFiles

ONE = dataset_definition(MINMAX)


class Clock:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1_800_000_000_000
        for module in (change_module, store_module):
            monkeypatch.setattr(module, "now_ms", lambda: self.now)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def segments(root: Path) -> set[str]:
    return {path.name for path in root.rglob("*.parquet")}


def manifests(root: Path) -> list[int]:
    return sorted(int(path.stem) for path in root.rglob("*.json"))


def test_a_reader_keeps_its_snapshot_for_the_grace_time(tmp_path: Path, clock: Clock) -> None:
    store = ParquetStore(str(tmp_path), grace=60)
    old = write(store, ONE, [object_metadata(n, minmax=minmax(n, n)) for n in range(4)])
    clock.now += 1000
    write(store, ONE, [object_metadata(1, mtime=5, minmax=minmax(9, 9))], fresh=True)
    clock.now += 59_000
    store.optimize("events")
    assert manifests(tmp_path) == [1, 2]
    assert len(skipped(ParquetStore(str(tmp_path)), old, between(0, 0))) == 3, "the old snapshot is whole"
    clock.now += 2000
    store.optimize("events")
    assert manifests(tmp_path) == [2]
    assert len(segments(tmp_path)) == 1
    assert skipped(ParquetStore(str(tmp_path)), old, between(0, 0)) == {object_id(1, 5).key}, "the latest answers"
    assert skipped(store, old, between(0, 0)) == {object_id(1, 5).key}, "also where the old one is remembered"


def test_the_latest_snapshot_answers_for_an_old_one_only_by_indexes_that_did_not_change(
    tmp_path: Path, clock: Clock
) -> None:
    store = ParquetStore(str(tmp_path), grace=60)
    old = write(store, ONE, [object_metadata(n, minmax=minmax(n, n)) for n in range(4)])
    changed = dataclasses.replace(MINMAX, built_with={"zone": "other"})
    again = [object_metadata(n, minmax=minmax(50, 50)) for n in range(4)]
    clock.now += 1000
    entry = write(store, dataset_definition(changed), again, fresh=True)
    clock.now += 61_000
    store.optimize("events")
    assert manifests(tmp_path) == [2], "the old one is gone"
    for reader in (store, ParquetStore(str(tmp_path))):
        assert skipped(reader, old, between(1, 1)) == set(), "judged by values of another zone"
        assert len(skipped(reader, entry, between(1, 1))) == 4


def test_segments_of_a_crashed_writer_are_cleaned_up(tmp_path: Path, clock: Clock) -> None:
    store = ParquetStore(str(tmp_path), grace=60)
    write(store, ONE, [object_metadata(1, minmax=minmax(1, 1))])
    context = store.change(ONE)  # never left, as by a process that was killed
    abandoned = context.__enter__()
    abandoned.put([object_metadata(2, minmax=minmax(2, 2))])
    abandoned._flush()
    assert len(segments(tmp_path)) == 2
    clock.now += 1000
    write(store, ONE, [object_metadata(3, minmax=minmax(3, 3))])
    assert len(segments(tmp_path)) == 3
    clock.now += 61_000
    write(store, ONE)
    assert len(segments(tmp_path)) == 3, "its writer may still be at work"
    clock.now += 24 * 3600 * 1000
    write(store, ONE)
    assert len(segments(tmp_path)) == 2
    assert set(stored(store)) == {object_id(1), object_id(3)}


def test_a_slow_writer_s_segments_outlive_every_clean_up(tmp_path: Path, clock: Clock) -> None:
    store = ParquetStore(str(tmp_path), grace=60)
    write(store, ONE, [object_metadata(1, minmax=minmax(1, 1))])
    clock.now -= 30_000  # the writer's clock is behind
    with store.change(ONE) as slow:
        slow.put([object_metadata(2, minmax=minmax(2, 2))])
        slow._flush()
        clock.now += 86_400_000
        ParquetStore(str(tmp_path), grace=60).optimize("events")
        entry = slow.publish()
    assert entry.objects == 2
    assert len(skipped(ParquetStore(str(tmp_path)), entry, between(9, 9))) == 2


def test_dropping_leaves_only_the_number(tmp_path: Path) -> None:
    store = ParquetStore(str(tmp_path))
    for n in range(3):
        write(store, ONE, [object_metadata(n, minmax=minmax(n, n))])
    store.drop("events")
    store.drop("events")
    assert segments(tmp_path) == set()
    assert manifests(tmp_path) == [4]
    assert write(store, ONE).snapshot.startswith("5-")


def test_the_directory_deleted_by_hand(tmp_path: Path) -> None:
    import shutil

    store = ParquetStore(str(tmp_path / "store"))
    old = write(store, ONE, [object_metadata(n, minmax=minmax(n, n)) for n in range(3)])
    shutil.rmtree(tmp_path / "store")
    assert store.datasets() == []
    new = write(store, ONE, [object_metadata(1, minmax=minmax(7, 7))])
    assert new.snapshot != old.snapshot, "equal numbers are not equal snapshots"
    assert skipped(ParquetStore(str(tmp_path / "store")), new, between(1, 1)) == {object_id(1).key}


def test_small_segments_are_compacted_as_they_pile_up(tmp_path: Path) -> None:
    store = ParquetStore(str(tmp_path), grace=0.0)
    for n in range(40):
        write(store, ONE, [object_metadata(n, minmax=minmax(n, n))])
        assert len(entry_segments(store)) <= 9
    assert len(stored(store)) == 40
    assert len(skipped(store, entry_of(store), between(3, 5))) == 37
    store.optimize("events")
    assert entry_segments(store) == [40]
    write(store, ONE, remove=[object_id(n) for n in range(10)])
    assert entry_segments(store) == [40]
    store.optimize("events")
    assert entry_segments(store) == [30]
    write(store, ONE, remove=[object_id(n) for n in range(10, 39)])
    assert entry_segments(store) == [1], "mostly dead rows are not carried along"
    write(store, ONE, remove=[object_id(39)])
    assert entry_segments(store) == []


def entry_segments(store: ParquetStore) -> list[int]:
    manifest = store._latest("events")
    assert manifest is not None
    return [segment.rows for segment in manifest.segments]


def test_segments_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (change_module, compact):
        monkeypatch.setattr(module, "MAX_ROWS", 10)
    monkeypatch.setattr(compact, "_SMALL_ROWS", 5)
    store = ParquetStore(str(tmp_path))
    entry = write(store, ONE, (object_metadata(n, minmax=minmax(n, n)) for n in range(95)))
    assert entry_segments(store) == [10] * 9 + [5]
    assert len(skipped(store, entry, between(12, 13))) == 93
    added = (object_metadata(n, list=Values(frozenset({f"v{n}"}), 0)) for n in reversed(range(95)))
    entry = write(store, dataset_definition(MINMAX, LIST), added)
    assert entry.objects == 95
    assert stored(store)[object_id(42)].metadata.keys() == {MINMAX.id, LIST.id}
    assert len(skipped(store, entry, between(12, 13))) == 93
    assert len(skipped(store, entry, Ask(LIST.id, AnyOf(("v7", "v94"))))) == 93
    store.optimize("events")
    assert max(entry_segments(store)) <= 10
    assert len(stored(store)) == 95


def test_wide_merges_are_split(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(change_module, "MAX_BYTES", 4000)
    store = ParquetStore(str(tmp_path))
    lists = [Values(frozenset(f"{n}-{k}" for k in range(50)), 0) for n in range(40)]
    write(store, dataset_definition(LIST), (object_metadata(n, list=one) for n, one in enumerate(lists)))
    monkeypatch.setattr(change_module, "MAX_BYTES", 2000)
    write(store, dataset_definition(LIST, MINMAX), [object_metadata(n, minmax=minmax(n, n)) for n in range(40)])
    assert stored(store) == {
        object_id(n): object_metadata(n, list=one, minmax=minmax(n, n)) for n, one in enumerate(lists)
    }


def test_metadata_too_large_is_unknown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(change_module, "_MAX_OBJECT_BYTES", 10_000)
    store = ParquetStore(str(tmp_path))
    huge = Values(frozenset(f"value {k}" for k in range(2000)), 0)
    entry = write(store, dataset_definition(MINMAX, LIST), [object_metadata(1, minmax=minmax(1, 1), list=huge)])
    assert stored(store) == {object_id(1): object_metadata(1, minmax=minmax(1, 1))}
    assert skipped(store, entry, between(5, 5)) == {object_id(1).key}


def test_metadata_that_does_not_fit_its_type_is_unknown(tmp_path: Path) -> None:
    store = ParquetStore(str(tmp_path))
    tiny = strategies.index("intervals", parse_type("tinyint"))
    double = strategies.index("values", parse_type("double"))
    money = strategies.index("intervals", parse_type("decimal(10,2)"))
    from decimal import Decimal

    bad = [
        {tiny.id: Intervals(((0, 128),), 0)},
        {tiny.id: Intervals((("a", "b"),), 0)},
        {tiny.id: Values(frozenset({1}), 0)},
        {tiny.id: Intervals(((0, 1),), -1)},
        {double.id: Values(frozenset({float("nan")}), 0)},
        {double.id: Values(frozenset({2**53 + 1}), 0)},
        {money.id: Intervals(((Decimal("0.001"), Decimal("0.002")),), 0)},
    ]
    good = {tiny.id: Intervals(((0, 127),), 0)}
    objects = [ObjectMetadata(object_id(n), 1, one) for n, one in enumerate([*bad, good])]
    write(store, dataset_definition(tiny, double, money), objects)
    assert [one.metadata for one in sorted(store.metadata("events"), key=lambda one: one.id)] == [{}] * len(bad) + [
        good
    ]


def test_a_path_that_is_no_text_stays_unknown(tmp_path: Path) -> None:
    store = ParquetStore(str(tmp_path))
    odd = ObjectMetadata(ObjectId("file:/data/\udcff", 1, 1), 1, {MINMAX.id: minmax(1, 1)})
    entry = write(store, ONE, [odd, object_metadata(2, minmax=minmax(2, 2))])
    assert skipped(store, entry, between(9, 9)) == {object_id(2).key}


def test_a_changed_definition_of_the_same_id_forgets_its_metadata(tmp_path: Path) -> None:
    store = ParquetStore(str(tmp_path))
    write(store, ONE, [object_metadata(n, minmax=minmax(n, n)) for n in range(3)])
    zoned = dataclasses.replace(MINMAX, built_with={"zone": "Asia/Tokyo"})
    entry = write(store, dataset_definition(zoned), [object_metadata(7, minmax=minmax(7, 7))])
    assert entry.objects == 4
    assert skipped(store, entry, between(99, 99)) == {object_id(7).key}
    text = strategies.index("intervals", parse_type("string"))
    retyped = dataclasses.replace(text, id=MINMAX.id)
    entry = write(store, dataset_definition(retyped))
    assert skipped(store, entry, Ask(MINMAX.id, OtherThan(("x",)))) == set()


def test_only_the_columns_asked_for_are_read(tmp_path: Path) -> None:
    definition = dataset_definition(MINMAX, LIST)
    big = [Values(frozenset(f"{n}:{k}:{n * k * 7919}" for k in range(300)), 0) for n in range(300)]
    entry = write(
        ParquetStore(str(tmp_path)),
        definition,
        [object_metadata(n, minmax=minmax(n, n), list=one) for n, one in enumerate(big)],
    )
    files = CountingFiles(LocalFiles(tmp_path))
    store = ParquetStore(str(tmp_path), files)
    assert store.lookup(entry, between(5, 5)).skipped == 299
    assert sum(size for _, size in files.reads) < entry.metadata_bytes[LIST.id] / 4
    files.reads.clear()
    assert store.lookup(entry, between(6, 6)).skipped == 299
    assert files.reads == [], "a warm look-up reads nothing"


def test_a_small_cache_answers_the_same(tmp_path: Path) -> None:
    entry = write(ParquetStore(str(tmp_path)), ONE, [object_metadata(n, minmax=minmax(n, n)) for n in range(500)])
    store = ParquetStore(str(tmp_path), cache_bytes=100)
    for _ in range(3):
        assert store.lookup(entry, between(5, 5)).skipped == 499
    assert store._loaded.nbytes <= 100
    store.close()
    assert store.lookup(entry, between(5, 5)).skipped == 499


def test_a_look_up_past_its_time_is_given_up(tmp_path: Path) -> None:
    store = ParquetStore(str(tmp_path))
    entry = write(store, ONE, [object_metadata(1, minmax=minmax(1, 1))])
    with pytest.raises(StoreUnavailable, match="exceeded spark"):
        store.lookup(entry, between(5, 5), timeout=0.0)
    with pytest.raises(StoreUnavailable, match="exceeded spark"):
        store.metadata_by_key(entry, MINMAX.id, timeout=0.0)
    assert store.lookup(entry, between(5, 5), timeout=30).skipped == 1
    assert len(store.metadata_by_key(entry, MINMAX.id, timeout=30)) == 1


def test_an_impossible_dataset_id_is_refused(tmp_path: Path) -> None:
    store = ParquetStore(str(tmp_path))
    for id in ("", "../x", "A", "x" * 81, "a/b", "a\n"):
        with pytest.raises(StoreError, match="dataset id"):
            write(store, dataset_definition(MINMAX, id=id))


def test_other_files_in_the_directory_do_not_disturb(tmp_path: Path) -> None:
    (tmp_path / "some_table").mkdir()
    (tmp_path / "README.txt").write_text("not ours")
    (tmp_path / "lower").write_text("a file named like a dataset")
    store = ParquetStore(str(tmp_path))
    assert store.datasets() == []
    write(store, ONE, [object_metadata(1, minmax=minmax(1, 1))])
    (tmp_path / "events/manifests/000000000009.json.tmp").write_text("half")
    (tmp_path / "events/segments/notes.txt").write_text("kept")
    assert len(store.datasets()) == 1
    assert snapshots.segment_age("notes.txt") is None
    store.optimize("events")
    assert (tmp_path / "events/segments/notes.txt").exists()


def test_a_definition_is_compared_again_if_it_is_another_one(tmp_path: Path) -> None:
    """A reader with an old entry comes after one with the entry of now, and the other way round."""
    store = ParquetStore(str(tmp_path))
    write(store, ONE, [object_metadata(n, minmax=minmax(n, n)) for n in range(3)])
    entry = entry_of(store)
    clause = between(1, 1)
    for _ in range(2):
        assert store.lookup(entry, clause).skipped == 2
        for other in (
            dataclasses.replace(ONE, options={"header": "no"}),
            dataclasses.replace(ONE, indexes=(dataclasses.replace(MINMAX, columns=("other",)),)),
        ):
            assert store.lookup(dataclasses.replace(entry, definition=other), clause).skipped == 0
    other = dataclasses.replace(ONE, indexes=(dataclasses.replace(MINMAX, built_with={"version": "2"}),))
    write(store, other, [object_metadata(n, minmax=minmax(n + 1, n + 1)) for n in range(3)], fresh=True)
    assert store.lookup(dataclasses.replace(entry_of(store), definition=entry.definition), clause).skipped == 0
    assert store.lookup(entry_of(store), clause).skipped == 2
