"""What is published reads back, from every handle: definitions, counts, failures; a newer format is refused."""

from __future__ import annotations

import dataclasses
import time

import pytest

from es_skipping.catalog import DatasetDefinition, ObjectId, ObjectMetadata
from es_skipping.clauses.clause import KEEP, SKIP, Ask
from es_skipping.clauses.metadata import Values
from es_skipping.clauses.questions import HasNotNull, Overlaps, Range
from es_skipping.errors import StoreConflict, StoreError, StoreFormatError
from es_skipping.stores.base import MetadataStore
from tests.stores.contract.base import StoreTests
from tests.stores.contract.examples import (
    BOX,
    LIST,
    MINMAX,
    ODD_PATHS,
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

__all__ = ["Datasets"]


class Datasets(StoreTests):
    """What is published reads back, from every handle: definitions, counts, failures; a newer format is refused."""

    def test_an_empty_store_has_no_datasets(self, store: MetadataStore) -> None:
        assert store.datasets() == []
        assert store.dataset("events") is None
        store.drop("events")

    def test_a_published_dataset_reads_back(self, store: MetadataStore) -> None:
        index = dataclasses.replace(
            MINMAX,
            operands=({"column": ["a", "b.c"], "type": "int"}, ["x", 1, 2.5, None, True]),
            parameters={"length": 15, "fpp": 0.01, "transform": 'quote " and \\'},
            built_with={"spark.sql.session.timeZone": "Europe/Zürich", "ansi": "true"},
        )
        definition = DatasetDefinition(
            "events-2_x",
            ("file:/data/a b", "s3a://bucket/ü"),
            "csv",
            (index, LIST, BOX),
            table="spark_catalog.db.events",
            options={"header": "true", "sep": "\t"},
            schema='{"type":"struct","fields":[]}',
            built_with={"partition": "p int"},
        )
        written = write(store, definition, [object_metadata(1, minmax=minmax(1, 2))])
        for handle in (store, self.reopen(store)):
            read = handle.dataset("events-2_x")
            assert read == written
            assert read is not None
            assert read.definition == definition
            assert (read.objects, read.bytes) == (1, 1001)
            assert [entry.definition.id for entry in handle.datasets()] == ["events-2_x"]
        assert abs(written.refreshed - time.time() * 1000) < 120_000

    def test_indexes_of_elements_are_kept_apart_from_those_of_columns(self, store: MetadataStore) -> None:
        """Their names hold brackets, and an object may have more null elements than rows."""
        names = ("tags", "tags[]", "tags[][]", "`tags[]`", "r[].`b c`", "map_keys(m)[]")
        indexes = [
            dataclasses.replace(
                MINMAX, id=f"minmax({name})", columns=(name,), needs=("elements",) if "[]" in name else ()
            )
            for name in names
        ]
        objects = [
            ObjectMetadata(object_id(n), 1, {one.id: minmax(at, at + n, 100) for at, one in enumerate(indexes)})
            for n in range(1, 3)
        ]
        written = write(store, dataset_definition(*indexes), objects)
        for handle in (store, self.reopen(store)):
            assert entry_of(handle).definition == written.definition
            assert stored(handle) == {one.id: one for one in objects}
            for at, one in enumerate(indexes):
                beyond_the_first = Ask(one.id, Overlaps((Range(at + 2, None),)))
                assert skipped(handle, written, beyond_the_first) == {objects[0].id.key}
                assert skipped(handle, written, Ask(one.id, HasNotNull())) == set()

    def test_several_datasets_do_not_mix(self, store: MetadataStore) -> None:
        for n, id in enumerate(("a", "a-b", "a_b", "b")):
            write(store, dataset_definition(MINMAX, id=id), [object_metadata(n, minmax=minmax(n, n))])
        assert sorted(entry.definition.id for entry in store.datasets()) == ["a", "a-b", "a_b", "b"]
        store.drop("a")
        assert sorted(entry.definition.id for entry in store.datasets()) == ["a-b", "a_b", "b"]
        assert stored(store, "a-b").keys() == {object_id(1)}
        assert store.dataset("a") is None

    def test_drop_and_build_again(self, store: MetadataStore) -> None:
        old = write(store, dataset_definition(MINMAX), [object_metadata(n, minmax=minmax(n, n)) for n in range(3)])
        store.drop("events")
        assert store.dataset("events") is None
        assert list(store.objects("events")) == []
        assert list(store.metadata("events")) == []
        new = write(store, dataset_definition(LIST), [object_metadata(7, list=Values(frozenset("x"), 0))])
        assert new.snapshot != old.snapshot
        assert stored(store).keys() == {object_id(7)}

    def test_a_dataset_without_objects(self, store: MetadataStore) -> None:
        entry = write(store, dataset_definition(MINMAX))
        assert (entry.objects, entry.bytes) == (0, 0)
        answer = store.lookup(entry, SKIP)
        assert (answer.skip, answer.known) == (b"", 0)
        assert store.lookup(entry, between(0, 1)).skip == b""
        assert list(store.objects("events")) == []

    def test_a_dataset_without_indexes(self, store: MetadataStore) -> None:
        entry = write(store, dataset_definition(), [object_metadata(1)])
        assert store.lookup(entry, KEEP).skip == b""
        assert dict(store.objects("events")) == {object_id(1): frozenset()}

    def test_failed_objects_are_remembered(self, store: MetadataStore) -> None:
        failed = (("file:/data/events/bad 1.parquet", 'not Parquet: "PAR0"'), ("file:/data/\U0001f600", "denied"))
        with store.change(dataset_definition(MINMAX)) as change:
            change.put([object_metadata(1, minmax=minmax(1, 1))])
            assert change.publish(failed).failed == failed
        assert entry_of(self.reopen(store)).failed == failed
        assert write(store, dataset_definition(MINMAX)).failed == ()

    def test_metadata_bytes_by_index(self, store: MetadataStore) -> None:
        values = [Values(frozenset(f"{n}-{k}-some text" for k in range(50)), 0) for n in range(200)]
        entry = write(
            store,
            dataset_definition(MINMAX, LIST),
            [object_metadata(n, minmax=minmax(n, n), list=one) for n, one in enumerate(values)],
        )
        assert entry.metadata_bytes.keys() == {MINMAX.id, LIST.id}
        assert entry.metadata_bytes[LIST.id] > entry.metadata_bytes[MINMAX.id] > 0
        assert entry_of(store).metadata_bytes == entry.metadata_bytes

    def test_the_url_shows_no_secret(self, store: MetadataStore) -> None:
        assert store.url
        assert "@" not in store.url.partition("://")[2].partition("/")[0]

    def test_odd_paths(self, store: MetadataStore) -> None:
        objects = [
            ObjectMetadata(ObjectId(path, n * 2**40, n), 2**40 + n, {MINMAX.id: minmax(n, n)})
            for n, path in enumerate(ODD_PATHS)
        ]
        entry = write(store, dataset_definition(MINMAX), objects)
        assert stored(self.reopen(store)) == {one.id: one for one in objects}
        assert skipped(store, entry, between(2, 2)) == {one.id.key for one in objects} - {objects[2].id.key}
        write(store, dataset_definition(MINMAX), remove=[objects[0].id])
        assert set(stored(store)) == {one.id for one in objects[1:]}, "a space and %20 are different paths"

    def test_a_newer_format_is_refused(self, store: MetadataStore) -> None:
        write(store, dataset_definition(MINMAX), [object_metadata(1, minmax=minmax(1, 1))])
        self.tamper_version(store, "events", 99)
        handle = self.reopen(store)
        with pytest.raises(StoreFormatError, match="99"):
            handle.dataset("events")
        with pytest.raises(StoreFormatError, match="99"), handle.change(dataset_definition(MINMAX)) as change:  # noqa: PT012
            change.put([object_metadata(2, minmax=minmax(2, 2))])
            change.publish()

    def test_errors_are_the_package_s_own(self) -> None:
        assert issubclass(StoreConflict, StoreError)
        assert issubclass(StoreFormatError, StoreError)
