"""A change adds, merges, replaces and removes what it says, and nothing else."""

from __future__ import annotations

import dataclasses

import pytest

from es_skipping.catalog import ObjectId, ObjectMetadata
from es_skipping.clauses.clause import KEEP, SKIP, Ask, Conjunction
from es_skipping.clauses.metadata import Values
from es_skipping.clauses.questions import AnyOf, OtherThan
from es_skipping.errors import StoreFormatError
from es_skipping.stores.base import MetadataStore
from tests.stores.contract.base import StoreTests
from tests.stores.contract.examples import (
    LIST,
    MINMAX,
    between,
    dataset_definition,
    entry_of,
    keys,
    minmax,
    object_id,
    object_metadata,
    skipped,
    stored,
    write,
)

__all__ = ["Changes"]


class Changes(StoreTests):
    """A change adds, merges, replaces and removes what it says, and nothing else."""

    def test_an_index_added_later_is_merged(self, store: MetadataStore) -> None:
        write(store, dataset_definition(MINMAX), [object_metadata(n, minmax=minmax(n, n)) for n in range(5)])
        added = [object_metadata(n, list=Values(frozenset({f"v{n}"}), 0)) for n in range(4)]
        entry = write(store, dataset_definition(MINMAX, LIST), added)
        assert dict(store.objects("events")) == {
            object_id(n): frozenset({MINMAX.id, LIST.id} if n < 4 else {MINMAX.id}) for n in range(5)
        }
        merged = stored(store)
        assert merged[object_id(3)].metadata == {MINMAX.id: minmax(3, 3), LIST.id: Values(frozenset({"v3"}), 0)}
        assert merged[object_id(3)].rows == 3
        both = Conjunction((between(0, 3), Ask(LIST.id, AnyOf(("v1",)))))
        assert skipped(store, entry, both) == {object_id(n).key for n in (0, 2, 3, 4)}
        assert skipped(store, entry, Ask(LIST.id, AnyOf(("v1",)))) == {object_id(n).key for n in (0, 2, 3)}

    def test_metadata_given_again_replaces(self, store: MetadataStore) -> None:
        write(store, dataset_definition(MINMAX), [object_metadata(1, minmax=minmax(1, 1))])
        entry = write(store, dataset_definition(MINMAX), [object_metadata(1, minmax=minmax(5, 6))])
        assert stored(store) == {object_id(1): object_metadata(1, minmax=minmax(5, 6))}
        assert skipped(store, entry, between(1, 1)) == {object_id(1).key}
        assert (entry.objects, entry.bytes) == (1, 1001)

    def test_put_twice_in_one_change(self, store: MetadataStore) -> None:
        with store.change(dataset_definition(MINMAX, LIST)) as change:
            change.put([object_metadata(1, minmax=minmax(1, 1))])
            change.put([object_metadata(1, list=Values(frozenset("x"), 0)), object_metadata(2, minmax=minmax(2, 2))])
            change.put([object_metadata(2, mtime=5, minmax=minmax(3, 3))])
            change.remove([object_id(2)])
            entry = change.publish()
        assert stored(store) == {
            object_id(1): object_metadata(1, minmax=minmax(1, 1), list=Values(frozenset("x"), 0)),
            object_id(2, 5): object_metadata(2, mtime=5, minmax=minmax(3, 3)),
        }
        assert entry.objects == 2

    def test_an_index_that_comes_later_in_one_change_has_its_bytes(self, store: MetadataStore) -> None:
        values = [Values(frozenset(f"{n}-{k}" for k in range(20)), 0) for n in range(50)]
        lists = [object_metadata(n, list=one) for n, one in enumerate(values)]
        once = write(store, dataset_definition(LIST), lists).metadata_bytes[LIST.id]
        with store.change(dataset_definition(MINMAX, LIST), fresh=True) as change:
            change.put(object_metadata(n, minmax=minmax(n, n)) for n in range(50))
            change.put(lists)
            twice = change.publish().metadata_bytes
        assert twice[LIST.id] == pytest.approx(once, rel=0.1)
        assert 0 < twice[MINMAX.id] < twice[LIST.id]

    def test_another_identity_of_a_path_replaces(self, store: MetadataStore) -> None:
        first = write(
            store, dataset_definition(MINMAX, LIST), [object_metadata(1, minmax=minmax(1, 1)), object_metadata(2)]
        )
        new = object_metadata(1, mtime=5, list=Values(frozenset("x"), 0))
        entry = write(store, dataset_definition(MINMAX, LIST), [new])
        assert stored(store) == {object_id(1, 5): new, object_id(2): object_metadata(2)}, (
            "nothing of the old file is merged"
        )
        assert entry.objects == 2
        assert skipped(store, entry, between(100, 200)) == set(), "the new file's minimum is unknown"
        assert entry.snapshot != first.snapshot

    def test_remove(self, store: MetadataStore) -> None:
        write(store, dataset_definition(MINMAX), [object_metadata(n, minmax=minmax(n, n)) for n in range(6)])
        gone = [object_id(1), object_id(4), object_id(77), object_id(2, mtime=1)]
        entry = write(store, dataset_definition(MINMAX), remove=gone)
        assert set(stored(store)) == {object_id(n) for n in (0, 2, 3, 5)}
        assert (entry.objects, entry.bytes) == (4, 4010)
        assert skipped(store, entry, between(0, 0)) == {object_id(n).key for n in (2, 3, 5)}
        again = write(store, dataset_definition(MINMAX), [object_metadata(1, minmax=minmax(0, 0))])
        assert again.objects == 5

    def test_objects_at_or_below_some_paths(self, store: MetadataStore) -> None:
        paths = ["file:/d/p=1/a", "file:/d/p=1/b", "file:/d/p=10/a", "file:/d/p=1", "file:/d/p=2/a b*"]
        put = [ObjectMetadata(ObjectId(path, 1, 1), 1, {MINMAX.id: minmax(1, 1)}) for path in paths]
        write(store, dataset_definition(MINMAX), put)
        for under, expected in (
            (["file:/d/p=1"], {0, 1, 3}),
            (["file:/d/p=2/a b*", "file:/d/p=10"], {2, 4}),
            (["file:/d/p=2/a"], set()),
            (["file:/"], set()),
            ([], set()),
            (None, {0, 1, 2, 3, 4}),
        ):
            found = {id.path for id, known in store.objects("events", under=under) if known == {MINMAX.id}}
            assert found == {paths[n] for n in expected}, under

    def test_keys(self, store: MetadataStore) -> None:
        assert store.keys("events") == b""
        assert list(store.objects("events", keys=object_id(1).key)) == []
        definition = dataset_definition(MINMAX)
        write(store, definition, [object_metadata(n, minmax=minmax(n, n)) for n in range(6)])
        again = [object_metadata(n, minmax=minmax(7, 7)) for n in (2, 3)]
        write(store, definition, [*again, object_metadata(4, mtime=9)], remove=[object_id(0)])
        now = {object_id(n): frozenset({MINMAX.id}) for n in (1, 2, 3, 5)} | {object_id(4, mtime=9): frozenset()}
        assert keys(store.keys("events")) == {id.key for id in now}
        asked = [object_id(n) for n in (0, 1, 3, 4, 99)] + [object_id(4, mtime=9)]
        found = dict(store.objects("events", keys=b"".join(id.key for id in asked)))
        assert found == {id: now[id] for id in asked if id in now}
        assert list(store.objects("events", keys=b"")) == []

    def test_an_index_that_is_left_out_is_dropped(self, store: MetadataStore) -> None:
        both = [object_metadata(n, minmax=minmax(n, n), list=Values(frozenset("x"), 0)) for n in range(3)]
        write(store, dataset_definition(MINMAX, LIST), both)
        entry = write(store, dataset_definition(LIST))
        assert all(one.metadata.keys() == {LIST.id} for one in store.metadata("events"))
        assert entry.metadata_bytes.keys() == {LIST.id}
        again = write(store, dataset_definition(MINMAX, LIST))
        assert dict(store.objects("events")) == {object_id(n): frozenset({LIST.id}) for n in range(3)}
        assert skipped(store, again, between(100, 100)) == set(), "what was dropped does not come back"

    def test_an_index_defined_anew_under_its_id_is_unknown(self, store: MetadataStore) -> None:
        """What was collected under the old definition, in another time zone for instance, proves nothing under it."""
        write(store, dataset_definition(MINMAX), [object_metadata(1, minmax=minmax(1, 1))])
        anew = dataclasses.replace(MINMAX, built_with={"spark.sql.session.timeZone": "Asia/Tokyo"})
        entry = write(store, dataset_definition(anew))
        assert skipped(store, entry, between(1000, 1000)) == set()
        assert stored(store) == {object_id(1): object_metadata(1)}

    def test_an_index_that_needs_what_is_not_understood_is_refused(self, store: MetadataStore) -> None:
        """`check_understood`, before anything is written."""
        needy = dataclasses.replace(MINMAX, needs=("a later version",))
        with pytest.raises(StoreFormatError, match="a later version"):
            write(store, dataset_definition(needy), [object_metadata(1, minmax=minmax(1, 1))])
        assert store.dataset("events") is None

    def test_metadata_of_indexes_that_are_not_defined_is_not_kept(self, store: MetadataStore) -> None:
        write(
            store, dataset_definition(LIST), [object_metadata(1, minmax=minmax(1, 1), list=Values(frozenset("x"), 0))]
        )
        assert dict(store.objects("events")) == {object_id(1): frozenset({LIST.id})}

    def test_many_objects(self, store: MetadataStore) -> None:
        count = 3000
        entry = write(
            store,
            dataset_definition(MINMAX, LIST),
            (
                object_metadata(n, minmax=minmax(10 * n, 10 * n + 9), list=Values(frozenset({f"v{n % 7}"}), 0))
                for n in range(count)
            ),
        )
        assert entry.objects == count
        assert entry.bytes == sum(1000 + n for n in range(count))
        everything = {object_id(n).key: n for n in range(count)}
        assert len(dict(store.objects("events"))) == count
        kept = everything.keys() - skipped(store, entry, between(105, 121))
        assert {everything[key] for key in kept} == {10, 11, 12}
        few = skipped(store, entry, Ask(LIST.id, OtherThan(("v3",))))
        assert {everything[key] for key in few} == {n for n in range(count) if n % 7 == 3}
        assert skipped(store, entry, SKIP) == everything.keys()
        assert skipped(store, entry, KEEP) == set()
        entry = write(store, dataset_definition(MINMAX, LIST), remove=[object_id(n) for n in range(0, count, 3)])
        assert entry.objects == 2000
        assert len(skipped(store, entry, between(105, 121))) == 1998

    def test_many_small_changes_and_optimize(self, store: MetadataStore) -> None:
        for n in range(12):
            write(
                store, dataset_definition(MINMAX), [object_metadata(n, minmax=minmax(n, n))], remove=[object_id(n - 3)]
            )
        before = stored(store)
        reader, entry = self.reopen(store), entry_of(store)
        expected = skipped(reader, entry, between(11, 11))
        assert set(before) == {object_id(n) for n in (9, 10, 11)}
        store.optimize("events")
        assert stored(store) == before
        assert skipped(reader, entry, between(11, 11)) == expected
        assert skipped(store, entry_of(store), between(11, 11)) == expected == {object_id(9).key, object_id(10).key}
