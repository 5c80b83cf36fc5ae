"""Writers that are slow: others publish, clean up, drop and go on while they are at work, at any moment of it.

A slow writer publishes onto the snapshot it began from or meets a conflict. It never publishes into the past, never
deletes what a later snapshot uses, and never publishes a snapshot of files that are gone.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from es_skipping.errors import StoreConflict, StoreError
from es_skipping.stores.parquet import change as change_module
from es_skipping.stores.parquet import snapshots
from es_skipping.stores.parquet import store as store_module
from es_skipping.stores.parquet.change import ParquetChange
from es_skipping.stores.parquet.files import LocalFiles
from es_skipping.stores.parquet.manifest import Manifest, digest
from es_skipping.stores.parquet.segment import segment_age
from es_skipping.stores.parquet.snapshots import Snapshots, UnclearConflict
from es_skipping.stores.parquet.store import ParquetStore
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
from tests.stores.parquet.doubles import CrashingFiles, InterruptedFiles

ONE = dataset_definition(MINMAX)
SECOND, MINUTE, HOUR = 1000, 60_000, 3_600_000
MINE = object_id(100)
"""What the slow writer adds."""


class Clock:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1_800_000_000_000
        for module in (change_module, store_module):
            monkeypatch.setattr(module, "now_ms", self.tick)

    def tick(self) -> int:
        self.now += 1
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def put(store: ParquetStore, n: int) -> None:
    write(store, ONE, [object_metadata(n, minmax=minmax(n, n))])


def begun(store: ParquetStore, *, fresh: bool = False, name: str | None = None) -> ParquetChange:
    """A change that has written a segment, as by a writer of whom nothing is heard for a while."""
    context = store.change(ONE, fresh=fresh, name=name)
    change = context.__enter__()
    change._context = context  # type: ignore[attr-defined]  # or it is left when nobody has it any more
    change.put([object_metadata(100, minmax=minmax(100, 100))])
    change._flush()
    return change


def whole(store: ParquetStore) -> set[int]:
    """The objects of the latest snapshot, every file of which is read."""
    reader = ParquetStore(store.url)
    found = stored(reader)
    entry = entry_of(reader)
    assert skipped(reader, entry, between(-1, -1)) == {id.key for id in found}
    assert entry.objects == len(found)
    return {int(re.findall(r"\d+", id.path)[-1]) for id in found}


def number(store: ParquetStore) -> int:
    return int(entry_of(store).snapshot.partition("-")[0])


# --- one moment -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fresh", [False, True])
def test_sixty_quick_changes_during_one_build(tmp_path: Path, fresh: bool) -> None:
    store = ParquetStore(str(tmp_path))
    put(store, 1)
    slow = begun(ParquetStore(store.url), fresh=fresh)
    for n in range(60):
        put(store, n)
    assert not (tmp_path / "events/manifests/000000000002.json").exists(), "its number is free again"
    with pytest.raises(StoreConflict, match="another writer changed dataset 'events'"):
        slow.publish()
    slow.discard()
    assert whole(store) == set(range(60))
    assert number(store) == 61
    put(store, 60)
    assert whole(store) == set(range(61))


def test_a_build_of_hours_beside_a_refresh_every_ten_minutes(tmp_path: Path, clock: Clock) -> None:
    refreshed = ParquetStore(str(tmp_path), grace=3600)
    put(refreshed, 0)
    slow = begun(ParquetStore(refreshed.url, grace=3600))
    for n in range(1, 31):  # five hours
        clock.now += 10 * MINUTE
        put(refreshed, n)
        slow.put([object_metadata(100 + n, minmax=minmax(n, n))])
        if n % 10 == 0:
            slow._flush()  # the base's segments are gone by now, which would say what to add to
    with pytest.raises(StoreConflict):
        slow.publish()
    assert whole(refreshed) == set(range(31))
    keys = b"".join(sorted(object_id(n).key for n in range(100, 200)))
    collected = list(slow.collected(keys))
    assert sorted(one.id.path for one in collected) == sorted(object_id(n).path for n in range(100, 131))
    assert object_metadata(107, minmax=minmax(7, 7)) in collected
    write(refreshed, ONE, slow.collected(keys))
    slow.discard()
    assert whole(refreshed) == {*range(31), *range(100, 131)}
    clock.now += 10 * MINUTE
    put(refreshed, 31)
    assert whole(refreshed) == {*range(32), *range(100, 131)}


def test_a_first_build_of_hours_beside_others(tmp_path: Path, clock: Clock) -> None:
    """Nothing was published when it began, so that its number is the first one."""
    store = ParquetStore(str(tmp_path), grace=60)
    slow = begun(ParquetStore(store.url, grace=60), fresh=True)
    for n in range(5):
        clock.now += 10 * MINUTE
        put(store, n)
    assert not (tmp_path / "events/manifests/000000000001.json").exists()
    with pytest.raises(StoreConflict):
        slow.publish()
    assert whole(store) == set(range(5))


def test_a_slow_writer_of_an_earlier_version_deletes_no_segments(tmp_path: Path, clock: Clock) -> None:
    """It publishes into the past, and deletes every segment that it does not know and whose name begins with an
    earlier time."""
    store = ParquetStore(str(tmp_path), grace=60)
    put(store, 1)
    base = store._latest("events")
    assert base is not None
    for n in range(5):
        clock.now += HOUR
        put(store, n)
    files = LocalFiles(tmp_path)
    past = Manifest(base.number + 1, "old", clock.now, ONE, base.columns, base.segments)
    assert files.create_if_absent(f"events/manifests/{past.number:012}.json", past.to_bytes())
    deleted = [file for file in files.list("events/segments") if re.fullmatch(r"\d+-.*\.parquet", file)]
    assert not deleted, "what it takes for left behind"
    assert whole(store) == set(range(5))
    put(store, 5)
    assert whole(store) == set(range(6))
    assert not (tmp_path / f"events/manifests/{past.number:012}.json").exists(), "it is cleaned up"


def test_segments_of_earlier_versions_are_cleaned_up_as_well() -> None:
    assert segment_age("01795247138638-cdc8.parquet") == segment_age("s01795247138638-cdc8.parquet") == 1795247138638
    assert segment_age("s01795247138638-cdc8.txt") is None
    assert segment_age("ss01795247138638-cdc8.parquet") is None


def test_a_manifest_of_an_earlier_version_has_no_lineage(tmp_path: Path) -> None:
    store = ParquetStore(str(tmp_path))
    put(store, 1)
    put(store, 2)
    first, second = (Snapshots(LocalFiles(tmp_path), "", 0).read("events", n) for n in (1, 2))
    assert first is not None and second is not None
    assert second.descends_from(first)
    data = second.to_bytes().partition(b"\n")[0]
    old = re.sub(rb',"lineage":\[.*?\]\]', b"", data)
    assert old != data
    read = Manifest.from_bytes(old + b"\n" + digest(old).encode() + b"\n", "here")
    assert read.segments == second.segments
    assert read.descends_from(first) is None


def test_the_lineage_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshots, "MAX_LINEAGE", 3)
    store = ParquetStore(str(tmp_path))
    read = []
    for n in range(6):
        put(store, n)
        read.append(store._latest("events"))
    latest = read[-1]
    assert latest is not None
    assert [number for number, _ in latest.lineage] == [3, 4, 5]
    assert [one and latest.descends_from(one) for one in read[:5]] == [None, None, True, True, True]


# --- files that are gone ---------------------------------------------------------------------------------------------


def test_a_change_whose_own_segments_are_gone_is_a_conflict(tmp_path: Path) -> None:
    store = ParquetStore(str(tmp_path))
    put(store, 1)
    slow = begun(ParquetStore(store.url))
    assert len(store.drop_superseded("events")) == 1, "somebody takes it for left behind"
    with pytest.raises(StoreConflict, match="which this change wrote: another program deleted them"):
        slow.publish()
    assert whole(store) == {1}
    assert number(store) == 1


def test_a_snapshot_whose_segments_are_gone_is_not_continued(tmp_path: Path) -> None:
    store = ParquetStore(str(tmp_path))
    put(store, 1)
    for path in tmp_path.rglob("*.parquet"):
        path.unlink()
    with store.change(dataset_definition(MINMAX, LIST)) as change, pytest.raises(StoreError, match="create them again"):
        change.publish()
    assert number(store) == 1
    write(store, ONE, [object_metadata(1, minmax=minmax(1, 1))], fresh=True)
    assert whole(store) == {1}


def test_a_change_of_the_same_name_deletes_nothing_that_is_being_written(tmp_path: Path) -> None:
    store = ParquetStore(str(tmp_path))
    put(store, 1)
    slow = begun(ParquetStore(store.url), fresh=True, name="copy")
    (segment,) = (path for path in tmp_path.rglob("*.parquet") if "-copy-" in path.name)
    data = segment.read_bytes()
    segment.write_bytes(data[: len(data) // 2])  # as it is seen while it is written
    with store.change(ONE, fresh=True, name="copy") as other:
        assert list(other.written()) == []
    segment.write_bytes(data)
    slow.publish()
    assert whole(store) == {100}


def test_a_change_of_the_same_name_takes_nothing_up_that_may_be_deleted(tmp_path: Path, clock: Clock) -> None:
    """What is older than the base is in no snapshot, so that every writer may delete it."""
    store = ParquetStore(str(tmp_path), grace=60)
    put(store, 1)
    with store.change(ONE, fresh=True, name="copy") as change:
        change.put([object_metadata(7, minmax=minmax(7, 7))])
    with store.change(ONE, fresh=True, name="copy") as again:
        assert list(again.written()) == [object_id(7)], "what is younger is"
    write(store, ONE, [object_metadata(2, minmax=minmax(2, 2))], fresh=True)
    with store.change(ONE, fresh=True, name="copy") as change:
        assert list(change.written()) == []
        change.put([object_metadata(8, minmax=minmax(8, 8))])
        clock.now += 48 * HOUR
        ParquetStore(store.url, grace=60).optimize("events")  # there is nothing to compact: it only cleans up
        change.publish()
    assert whole(store) == {8}


def test_what_a_writer_at_work_has_written_stays_for_a_day(tmp_path: Path, clock: Clock) -> None:
    """It will meet a conflict, and then use what it has collected again."""
    store = ParquetStore(str(tmp_path), grace=60)
    put(store, 1)
    slow = begun(ParquetStore(store.url, grace=60))
    (mine,) = (one.segment.file for one in slow._held if one.mine)
    for hours in range(1, 30):
        clock.now += HOUR
        put(store, hours)
        assert (mine in LocalFiles(tmp_path).list("events/segments")) == (hours < 24)


# --- every moment ----------------------------------------------------------------------------------------------------


def _one_change(store: ParquetStore) -> None:
    put(store, 50)


def _changes(store: ParquetStore) -> None:
    for n in range(50, 54):
        put(store, n)


def _rebuild(store: ParquetStore) -> None:
    write(store, ONE, [object_metadata(50, minmax=minmax(50, 50))], fresh=True)


def _drop_and_create(store: ParquetStore) -> None:
    store.drop("events")
    put(store, 50)


def _compact(store: ParquetStore) -> None:
    store.optimize("events")
    put(store, 50)
    store.optimize("events")


def _deleted_by_hand(store: ParquetStore) -> None:
    shutil.rmtree(Path(store.url) / "events")
    put(store, 50)


OTHERS = [_one_change, _changes, _rebuild, _drop_and_create, _compact, _deleted_by_hand]


@pytest.mark.parametrize("grace", [0.0, 3600.0], ids=["cleaned-at-once", "kept-an-hour"])
@pytest.mark.parametrize("others", OTHERS, ids=lambda one: one.__name__.strip("_"))
def test_others_at_every_moment_of_a_publication(
    tmp_path: Path, clock: Clock, others: Callable[[ParquetStore], None], grace: float
) -> None:
    before = tmp_path / "before"
    store = ParquetStore(str(before), grace=grace)
    for n in range(3):
        put(store, n)
    outcomes = set()
    for moment in range(200):
        root = tmp_path / f"at-{moment}"
        shutil.copytree(before, root)
        another = ParquetStore(str(root), grace=grace)
        files = InterruptedFiles(LocalFiles(root), moment, lambda store=another: others(store))  # type: ignore[misc]
        slow = begun(ParquetStore(str(root), files, grace=grace))
        clock.now += 2 * HOUR
        files.armed = True
        try:
            slow.publish()
            outcome: type[Exception] | None = None
        except StoreError as error:
            outcome = type(error)
        slow.discard()
        outcomes.add(outcome)
        if others is _deleted_by_hand and another.dataset("events") is None:
            shutil.rmtree(root)
            continue  # the last clean-up met a manifest of the number of one that it knew: nothing is indexed then
        found = whole(another)
        assert 50 in found or not files.happened, moment
        assert outcome in (None, StoreConflict) or others is _deleted_by_hand, (moment, outcome)
        if others in (_one_change, _changes, _compact):
            assert (100 in found) == (outcome is None), (moment, outcome)
            assert {0, 1, 2} <= found, moment
        elif outcome is not None:
            assert 100 not in found, moment
        for n in (60, 61):
            clock.now += 48 * HOUR
            put(another, n)
        assert whole(another) == found | {60, 61}, moment
        assert number(another) - int(LocalFiles(root).list("events/manifests")[0][:12]) <= 1, "all else is cleaned up"
        shutil.rmtree(root)
        if not files.happened:
            break
    else:
        pytest.fail("it never came to an end")
    assert {None, StoreConflict} <= outcomes
    assert UnclearConflict not in outcomes or others is _deleted_by_hand


def sleep_over(slow: ParquetChange, files: CrashingFiles, operation: int, others: ParquetStore, clock: Clock) -> None:
    """The slow writer has looked, sleeps while others publish, takes its number and crashes some operations later."""
    look = slow._snapshots._check_segments

    def late(dataset: str, manifest: Manifest, base: Manifest | None) -> None:
        look(dataset, manifest, base)
        for n in range(2, 6):
            clock.now += HOUR
            put(others, n)
        files._left = operation

    slow._snapshots._check_segments = late  # type: ignore[method-assign]


@pytest.mark.parametrize("mode", ["before", "after"])
def test_a_slow_writer_that_crashes_at_any_operation_disturbs_nobody(tmp_path: Path, clock: Clock, mode: str) -> None:
    for operation in range(200):
        root = tmp_path / f"at-{operation}"
        store = ParquetStore(str(root), grace=60)
        put(store, 1)
        files = CrashingFiles(LocalFiles(root), 10_000, mode)  # type: ignore[arg-type]
        slow = begun(ParquetStore(str(root), files, grace=60))
        sleep_over(slow, files, operation, store, clock)
        with pytest.raises(StoreError):
            slow.publish()
        slow.discard()
        assert whole(store) == {1, 2, 3, 4, 5}, operation
        put(store, 6)
        assert whole(store) == {1, 2, 3, 4, 5, 6}, operation
        if not files.crashed:
            break
    else:
        pytest.fail("it never came to an end")
    assert operation > 4
