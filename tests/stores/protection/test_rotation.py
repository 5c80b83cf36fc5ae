"""New keys under load: readers of the old and the new key skip at every moment what they skipped before."""

from __future__ import annotations

import logging
import threading
import time

import pytest

from es_skipping.clauses.clause import Conjunction
from es_skipping.errors import DatasetError, ProtectionError, StoreConflict
from es_skipping.stores.protection.rotation import rotate_sealed, with_new_key
from es_skipping.stores.protection.store import ProtectedStore
from tests.stores.contract.examples import dataset_definition, entry_of, keys, write
from tests.stores.protection.conftest import hashed, reopened, sealed, sealed_files
from tests.stores.protection.test_keys import BUT_2, CITY, DAY, OBJECTS, ONLY_2, PAY

ASKED = [*ONLY_2.values(), Conjunction(tuple(ONLY_2.values()))]


@pytest.fixture(autouse=True)
def new_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEW_KEY", "44" * 32)
    monkeypatch.setenv("THIRD_KEY", "55" * 32)


class Reader(threading.Thread):
    """Looks up all the time, with an entry that it reads again only now and then, as a session does."""

    def __init__(self, store: ProtectedStore, again: float) -> None:
        super().__init__(daemon=True)
        self._store, self._again = store, again
        self._ended = threading.Event()
        self.looked_up, self.less = 0, 0
        self.entry = entry_of(store)

    def run(self) -> None:
        read = time.monotonic()
        while not self._ended.is_set():
            if time.monotonic() - read > self._again:
                self.entry, read = entry_of(self._store), time.monotonic()
            for clause in ASKED:
                self.less += keys(self._store.lookup(self.entry, clause).skip) != BUT_2
                self.looked_up += 1

    def stop(self) -> None:
        self._ended.set()
        self.join(60)
        assert not self.is_alive()


def test_readers_never_skip_less(store: ProtectedStore) -> None:
    write(store, dataset_definition(sealed(PAY), hashed(CITY), DAY), OBJECTS)
    readers = [Reader(store, 0.0), Reader(reopened(store), 0.05), Reader(reopened(store), 3600.0)]
    for reader in readers:
        reader.start()
    time.sleep(0.2)
    done = rotate_sealed(store, "events", "env:NEW_KEY", from_key="env:PAY_KEY")
    assert done.rotated == (PAY.id,)
    assert len(done.superseded) == 1
    time.sleep(0.1)
    store.drop_superseded("events")
    assert store.superseded("events") == []
    time.sleep(0.1)
    # As a build rotates hashed indexes: all metadata anew, under the new keys.
    with store.change(with_new_key(entry_of(store).definition, "env:THIRD_KEY"), fresh=True, name="rotation") as change:
        change.put(OBJECTS)
        change.publish()
    time.sleep(0.1)
    for reader in readers:
        reader.stop()
    assert [reader.less for reader in readers] == [0, 0, 0]
    assert all(reader.looked_up > 4 for reader in readers)
    store.drop_superseded("events")
    for reader in readers:  # one of them still has the first entry
        assert keys(store.lookup(reader.entry, ASKED[-1]).skip) == BUT_2
    last = entry_of(store).definition
    assert {index.protection.key for index in last.indexes if index.protection} == {"env:THIRD_KEY"}
    assert last.index(DAY.id) == DAY


def test_readers_with_one_of_the_two_keys(
    store: ProtectedStore, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(store, dataset_definition(sealed(PAY), hashed(CITY), DAY), OBJECTS)
    old = entry_of(store)
    rotate_sealed(store, "events", "env:NEW_KEY", from_key="env:PAY_KEY")
    new = entry_of(store)
    assert old.definition != new.definition
    clause = ONLY_2[PAY.id]
    with pytest.MonkeyPatch.context() as patch, caplog.at_level(logging.WARNING, "es_skipping"):
        patch.delenv("NEW_KEY")
        user = reopened(store)
        assert keys(user.lookup(old, clause).skip) == BUT_2  # until its entry is read again
        for _ in range(2):
            answer = user.lookup(new, clause)
            assert (answer.skipped, [id for id, _ in answer.unusable]) == (0, [PAY.id])
        assert keys(user.lookup(new, ONLY_2[CITY.id]).skip) == BUT_2
    warned = [one.getMessage() for one in caplog.records]
    assert len(warned) == 1
    assert "the key env:NEW_KEY is missing" in warned[0]
    monkeypatch.delenv("PAY_KEY")
    assert keys(reopened(store).lookup(new, clause).skip) == BUT_2
    assert store.drop_superseded("events")
    monkeypatch.setenv("PAY_KEY", "22" * 32)
    assert keys(reopened(store).lookup(old, clause).skip) == BUT_2  # asked again of what is there now
    write(store, new.definition, OBJECTS[:2])  # the next refresh
    assert keys(store.lookup(entry_of(store), clause).skip) == BUT_2
    store.drop("events")
    assert not sealed_files(store)


@pytest.mark.parametrize("spoilt", ["missing", "wrong", "truncated", "not a key", "empty"])
@pytest.mark.parametrize("which", ["PAY_KEY", "NEW_KEY"])
def test_without_the_old_or_the_new_key_nothing_changes(spoilt: str, which: str) -> None:
    from es_skipping.stores.memory.store import MemoryStore
    from tests.stores.protection.test_keys import SPOILT

    store = ProtectedStore(MemoryStore(f"memory://rotation-{spoilt}-{which}"))
    before = write(store, dataset_definition(sealed(PAY), DAY), OBJECTS)
    files = sealed_files(store)
    with pytest.MonkeyPatch.context() as patch:
        SPOILT[spoilt](patch, which)
        if (spoilt, which) != ("wrong", "NEW_KEY"):  # any key will do as the new one
            with pytest.raises(ProtectionError, match=f"env:{which} "):
                rotate_sealed(store, "events", "env:NEW_KEY")
    assert entry_of(store) == before
    assert sealed_files(store) == files
    store.drop("events")


def test_what_a_rotation_refuses(store: ProtectedStore, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DatasetError, match="no dataset 'events'"):
        rotate_sealed(store, "events", "env:NEW_KEY")
    definition = dataset_definition(sealed(PAY), hashed(CITY), DAY)
    before = write(store, definition, OBJECTS)
    with pytest.raises(ProtectionError, match="cannot be rotated without the data"):
        rotate_sealed(store, "events", "env:NEW_KEY")
    assert rotate_sealed(store, "events", "env:PAY_KEY", from_key="env:PAY_KEY").rotated == ()  # it has that key
    assert rotate_sealed(store, "events", "env:NEW_KEY", from_key="env:PAY_KEY", dry_run=True).rotated == (PAY.id,)
    assert entry_of(store).snapshot == before.snapshot
    monkeypatch.setenv("PAY_KEY", "66" * 32)
    with pytest.raises(ProtectionError, match="give the new key a reference of its own"):
        rotate_sealed(store, "events", "env:PAY_KEY", from_key="env:PAY_KEY")
    monkeypatch.setenv("PAY_KEY", "22" * 32)

    class Meanwhile:
        """A refresh by another writer while the index is encrypted."""

        def __call__(self, done: int, total: int, phase: str) -> None:
            write(reopened(store), definition, OBJECTS[:1])

    with pytest.raises(StoreConflict):
        rotate_sealed(store, "events", "env:NEW_KEY", from_key="env:PAY_KEY", progress=Meanwhile())
    assert keys(store.lookup(entry_of(store), ONLY_2[PAY.id]).skip) == BUT_2
    assert rotate_sealed(store, "events", "env:NEW_KEY", from_key="env:PAY_KEY").rotated == (PAY.id,)  # goes on
    assert keys(store.lookup(entry_of(store), ONLY_2[PAY.id]).skip) == BUT_2
