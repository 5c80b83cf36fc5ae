"""Copies between stores: whole, verified before anybody sees them, and continued where a run was killed."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from elasticsearch import Elasticsearch

from es_skipping.catalog import CoveredSnapshot, ObjectId, ObjectMetadata
from es_skipping.clauses.clause import Ask
from es_skipping.clauses.metadata import Boxes, Intervals, Values
from es_skipping.clauses.questions import AnyOf
from es_skipping.cli import main
from es_skipping.errors import DatasetError, SettingError, StoreConflict, StoreError, StoreFormatError
from es_skipping.stores.base import Change, MetadataStore
from es_skipping.stores.covering import covers
from es_skipping.stores.elasticsearch.store import ElasticsearchStore
from es_skipping.stores.parquet.manifest import manifest_path
from es_skipping.stores.parquet.store import ParquetStore
from es_skipping.stores.reindex import reindex
from tests.processes import kill_python
from tests.stores.contract import (
    BOX,
    LIST,
    MINMAX,
    between,
    dataset_definition,
    entry_of,
    minmax,
    object_metadata,
    skipped,
    stored,
    write,
)
from tests.stores.elasticsearch.conftest import client, elasticsearch_store, make_store, prefix

__all__ = ["client", "elasticsearch_store", "prefix"]

DEFINITION = dataset_definition(MINMAX, LIST, BOX)


def objects(count: int) -> list[ObjectMetadata]:
    """Objects of which some are unknown in part."""
    made = []
    for n in range(count):
        one = object_metadata(
            n,
            minmax=minmax(n, n + 3, None if n % 7 == 0 else n),
            list=Values(frozenset({f"city {n % 11}", f"é{n}"}), 0),
            box=Boxes((((n / 10, n / 10 + 1), (0.0, float(n))),)),
        )
        made.append(replace(one, metadata={k: v for k, v in one.metadata.items() if n % 5 or k != LIST.id}))
    return made


@pytest.fixture
def parquet(tmp_path: Path) -> ParquetStore:
    return ParquetStore(str(tmp_path / "store"))


@pytest.fixture
def other(tmp_path: Path) -> ParquetStore:
    return ParquetStore(str(tmp_path / "other"))


def check_same(source: MetadataStore, target: MetadataStore, id: str = "events") -> None:
    """The same definition, metadata and answers."""
    assert stored(target, id) == stored(source)
    there, here = entry_of(target, id), entry_of(source)
    assert replace(there.definition, id="events") == here.definition
    assert (there.objects, there.bytes, there.failed) == (here.objects, here.bytes, here.failed)
    for clause in (between(0, 1), Ask(LIST.id, AnyOf(("city 0",)))):
        assert skipped(target, there, clause) == skipped(source, here, clause) != set()


def test_parquet_to_elasticsearch_and_back(
    parquet: ParquetStore, other: ParquetStore, elasticsearch_store: ElasticsearchStore
) -> None:
    with parquet.change(DEFINITION) as change:
        change.put(objects(700))
        change.publish([("file:/bad", "no Parquet")])
    there = reindex(parquet, elasticsearch_store, "events")
    assert (there.objects, there.copied, there.resumed, there.sampled, there.forgotten) == (700, 700, 0, 700, {})
    check_same(parquet, elasticsearch_store)
    back = reindex(elasticsearch_store, other, "events", into="copy", sample=50)
    assert (back.dataset, back.copied, back.sampled) == ("copy", 700, 50)
    check_same(parquet, other, "copy")


def test_another_number_of_shards_on_the_same_cluster(
    elasticsearch_store: ElasticsearchStore, client: Elasticsearch, prefix: str
) -> None:
    before = write(elasticsearch_store, DEFINITION, objects(300))
    expected = stored(elasticsearch_store)
    old = before.snapshot.rpartition("@")[0]
    seen: list[str] = []

    def progress(done: int, total: int, phase: str) -> None:
        seen.append(phase)
        if phase == "verify":  # until it is verified, everybody reads the old generation
            assert list(client.indices.get_alias(name=f"{prefix}-objects-events").body) == [old]
            assert entry_of(elasticsearch_store).snapshot == before.snapshot

    done = reindex(
        elasticsearch_store,
        elasticsearch_store,
        "events",
        index_settings={"number_of_shards": 3},
        progress=progress,
    )
    assert seen == ["resume", "verify", "publish"]
    entry = entry_of(elasticsearch_store)
    new = entry.snapshot.rpartition("@")[0]
    settings = client.indices.get_settings(index=new).body[new]["settings"]["index"]
    assert (settings["number_of_shards"], new != old) == ("3", True)
    assert list(client.indices.get_alias(name=f"{prefix}-objects-events").body) == [new]
    assert stored(elasticsearch_store) == expected
    assert skipped(elasticsearch_store, before, between(3, 9)) == skipped(elasticsearch_store, entry, between(3, 9))

    # What was replaced is kept until it is told to go; a second copy is another one.
    assert done.superseded == (old,)
    assert client.indices.exists(index=old)
    again = reindex(elasticsearch_store, elasticsearch_store, "events", index_settings={"number_of_shards": 3})
    assert again.copied == 300
    assert set(elasticsearch_store.drop_superseded("events")) == {old, new}
    assert elasticsearch_store.superseded("events") == []
    assert stored(elasticsearch_store) == expected


def test_a_refresh_after_a_copy_goes_on_from_it(parquet: ParquetStore, elasticsearch_store: ElasticsearchStore) -> None:
    write(parquet, DEFINITION, objects(20))
    reindex(parquet, elasticsearch_store, "events")
    for store in (parquet, elasticsearch_store):
        write(store, DEFINITION, [object_metadata(3, mtime=9, minmax=minmax(50, 60)), *objects(22)[20:]])
    check_same(parquet, elasticsearch_store)


@pytest.mark.parametrize("format", ["delta", "iceberg"])
def test_a_copy_covers_the_snapshot_of_its_source(
    parquet: ParquetStore, other: ParquetStore, elasticsearch_store: ElasticsearchStore, format: str
) -> None:
    covered = CoveredSnapshot("7", "a stamp", retained=format == "iceberg")
    write(parquet, replace(DEFINITION, format=format, covered=covered), objects(3))
    stores: list[MetadataStore] = [parquet, parquet, elasticsearch_store, elasticsearch_store, other]
    for source, target in pairwise(stores):
        planned, done = (reindex(source, target, "events", dry_run=dry) for dry in (True, False))
        assert (planned.format, planned.snapshot) == (done.format, done.snapshot) == (format, "7")
        assert entry_of(target).definition.covered == covered
    write(parquet, dataset_definition(MINMAX, id="files"), objects(1))
    files = reindex(parquet, other, "files")
    assert (files.format, files.snapshot) == ("parquet", None)


class Interrupted(Exception):
    """What the tests stop a copy with."""


class Stopping(ParquetStore):
    """A source that fails after so many objects."""

    def __init__(self, store: ParquetStore, after: int) -> None:
        super().__init__(store.url)
        self._after = after

    def metadata(self, id: str) -> Iterator[ObjectMetadata]:
        for n, one in enumerate(super().metadata(id)):
            if n == self._after:
                raise Interrupted
            yield one


@pytest.mark.parametrize("target_kind", ["parquet", "elasticsearch"])
def test_a_copy_that_failed_is_continued(
    parquet: ParquetStore, other: ParquetStore, elasticsearch_store: ElasticsearchStore, target_kind: str
) -> None:
    target: MetadataStore = other if target_kind == "parquet" else elasticsearch_store
    write(target, DEFINITION, objects(2))
    write(parquet, DEFINITION, objects(1500))
    before = entry_of(target)
    with pytest.raises(Interrupted):
        reindex(Stopping(parquet, 1200), target, "events")
    assert entry_of(target) == before, "nothing is seen of half a copy"
    assert target.superseded("events"), "and nothing of it is lost"
    # Meanwhile one object was removed, and one changed: what was copied of them does not count.
    changed = object_metadata(5, mtime=77, minmax=minmax(1, 2))
    write(parquet, DEFINITION, [changed], remove=[objects(1)[0].id])
    done = reindex(parquet, target, "events")
    assert done.resumed >= (900 if target_kind == "elasticsearch" else 0)
    assert (done.copied + done.resumed, done.objects) == (1499, 1499)
    check_same(parquet, target)


KILLED = """
import sys
import time
from elasticsearch import Elasticsearch
from es_skipping.settings import Settings
from es_skipping.stores.elasticsearch.store import ElasticsearchStore
from es_skipping.stores.parquet.store import ParquetStore
from es_skipping.stores.reindex import reindex
source, url, prefix = sys.argv[1:]
settings = Settings({"spark.es_skipping.store.timeout": "30s"})
target = ElasticsearchStore(url, settings, prefix=prefix)
client = Elasticsearch(url)
def arrived():  # requests are sent by other threads
    client.indices.refresh(index=prefix + "-objects-*")
    return client.count(index=prefix + "-objects-*")["count"]
def progress(done, total, phase):
    if (done, phase) == (4000, "copy"):
        ends = time.monotonic() + 60
        while arrived() < 1000 and time.monotonic() < ends:
            time.sleep(0.05)
        print("here", flush=True)
        sys.stdin.read()
reindex(ParquetStore(source), target, "events", progress=progress)
"""


def test_a_copy_whose_process_was_killed_is_continued(
    parquet: ParquetStore, elasticsearch_store: ElasticsearchStore, prefix: str
) -> None:
    write(parquet, DEFINITION, objects(5000))
    kill_python(KILLED, parquet.url, elasticsearch_store.url, prefix)
    assert elasticsearch_store.dataset("events") is None
    done = reindex(parquet, elasticsearch_store, "events")
    assert 1000 <= done.resumed <= 4000, "what had arrived was not written again"
    assert done.copied + done.resumed == 5000
    check_same(parquet, elasticsearch_store)


def test_a_source_that_is_refreshed_meanwhile_is_a_conflict(parquet: ParquetStore, other: ParquetStore) -> None:
    write(parquet, DEFINITION, objects(10))

    class Refreshed(ParquetStore):
        def metadata(self, id: str) -> Iterator[ObjectMetadata]:
            yield from super().metadata(id)
            write(parquet, DEFINITION, objects(12)[10:])

    with pytest.raises(StoreConflict, match="while it was copied"):
        reindex(Refreshed(parquet.url), other, "events")
    assert other.dataset("events") is None
    assert reindex(parquet, other, "events").resumed == 10
    check_same(parquet, other)


class Lying(ParquetStore):
    """A target that writes something else than it was given."""

    def __init__(self, url: str, lie: Any) -> None:
        super().__init__(url)
        self._lie = lie

    @contextmanager
    def change(self, *args: Any, **options: Any) -> Iterator[Any]:
        with super().change(*args, **options) as change:
            put = change.put

            def lying(objects: Iterable[ObjectMetadata]) -> None:
                put(found for one in objects if (found := self._lie(one)) is not None)

            change.put = lying  # type: ignore[method-assign]
            yield change


@pytest.mark.parametrize(
    ("lie", "words"),
    [
        (lambda one: None if one.id.path.endswith("00007.parquet") else one, "9 objects, its source 10"),
        (lambda one: replace(one, metadata={**one.metadata, MINMAX.id: minmax(0, 0)}), "narrower"),
        (lambda one: replace(one, id=replace(one.id, mtime=5)), "is missing"),
    ],
    ids=["an object less", "narrower metadata", "another identity"],
)
def test_a_copy_that_is_wrong_is_not_published(parquet: ParquetStore, tmp_path: Path, lie: Any, words: str) -> None:
    write(parquet, DEFINITION, objects(10))
    target = Lying(str(tmp_path / "lying"), lie)
    with pytest.raises(StoreError, match=words):
        reindex(parquet, target, "events")
    assert target.dataset("events") is None


def test_what_the_target_cannot_hold_is_forgotten_and_told(
    parquet: ParquetStore, elasticsearch_store: ElasticsearchStore
) -> None:
    long = Values(frozenset({"x" * 40_000}), 0)
    write(parquet, DEFINITION, [*objects(5), object_metadata(9, minmax=minmax(9, 9), list=long)])
    done = reindex(parquet, elasticsearch_store, "events")
    assert done.forgotten == {LIST.id: 1}
    assert skipped(elasticsearch_store, entry_of(elasticsearch_store), Ask(LIST.id, AnyOf(("none",)))) == {
        one.id.key for one in objects(5) if LIST.id in one.metadata
    }


def test_a_dry_run_changes_nothing(parquet: ParquetStore, other: ParquetStore) -> None:
    write(parquet, DEFINITION, objects(10))
    done = reindex(parquet, other, "events", dry_run=True)
    assert (done.objects, done.copied, done.replaced) == (10, 0, None)
    assert other.datasets() == []
    assert not Path(other.url).exists()


def test_a_throttled_copy_takes_its_time(parquet: ParquetStore, other: ParquetStore) -> None:
    write(parquet, DEFINITION, objects(30))
    began = time.monotonic()
    reindex(parquet, other, "events", throttle=60)
    assert time.monotonic() - began > 0.4


def test_what_cannot_be_reindexed(parquet: ParquetStore, other: ParquetStore) -> None:
    with pytest.raises(DatasetError, match="no dataset 'events'"):
        reindex(parquet, other, "events")
    write(parquet, DEFINITION, objects(3))
    with pytest.raises(SettingError, match="not Elasticsearch"):
        reindex(parquet, other, "events", index_settings={"number_of_shards": 2})
    manifest = Path(parquet.url) / manifest_path("events", 1)
    manifest.write_bytes(manifest.read_bytes().replace(b'"format":2', b'"format":3', 1))
    with pytest.raises(StoreFormatError, match="in format 3, this version of es_skipping reads up to 2"):
        reindex(ParquetStore(parquet.url), other, "events")


def test_named_changes_of_another_definition_are_told_apart(elasticsearch_store: ElasticsearchStore) -> None:
    with elasticsearch_store.change(DEFINITION, fresh=True, name="one") as change:
        change.put(objects(3))
    with pytest.raises(StoreError, match="another definition"):
        with elasticsearch_store.change(dataset_definition(MINMAX), fresh=True, name="one"):
            pass
    with elasticsearch_store.change(DEFINITION, fresh=True, name="one") as change:
        assert {id.path for id in change.written()} == {one.id.path for one in objects(3)}
        change.remove([objects(1)[0].id])
        change.put([object_metadata(1, minmax=minmax(7, 7))])
        change.publish()
    kept = stored(elasticsearch_store)
    assert kept.keys() == {one.id for one in objects(3)[1:]}
    assert kept[objects(2)[1].id].metadata[MINMAX.id] == minmax(7, 7)
    with pytest.raises(StoreError, match="published already"):
        with elasticsearch_store.change(DEFINITION, fresh=True, name="one"):
            pass


def test_two_of_one_name_at_once_never_share_an_ordinal(elasticsearch_store: ElasticsearchStore) -> None:
    with elasticsearch_store.change(DEFINITION, fresh=True, name="twice") as one:
        one.put(objects(3))
        assert len(list(one.written())) == 3
        with elasticsearch_store.change(DEFINITION, fresh=True, name="twice") as other:
            other.put([object_metadata(n, minmax=minmax(0, 10_000)) for n in range(3, 6)])
            one.put([object_metadata(n, minmax=minmax(n, n)) for n in range(6, 9)])
            assert len(list(other.written())) == 6
            entry = other.publish()
        with pytest.raises(StoreConflict):
            one.publish()
    assert stored(elasticsearch_store).keys() == {object_metadata(n).id for n in range(6)}
    assert skipped(elasticsearch_store, entry, between(5000, 5000)) == {one.id.key for one in objects(3)}


def test_what_a_continued_change_replaces_counts_once(elasticsearch_store: ElasticsearchStore) -> None:
    """Its documents were weighed in another process."""
    values = [Values(frozenset(f"{n}-{k}" for k in range(20)), 0) for n in range(30)]
    with elasticsearch_store.change(dataset_definition(LIST), fresh=True) as change:
        change.put(object_metadata(n, list=one) for n, one in enumerate(values))
        once = change.publish().metadata_bytes[LIST.id]
    with elasticsearch_store.change(dataset_definition(LIST), fresh=True, name="again") as change:
        change.put(object_metadata(n, list=one) for n, one in enumerate(values))
    with elasticsearch_store.change(dataset_definition(LIST), fresh=True, name="again") as change:
        change.put(object_metadata(n, mtime=9, list=one) for n, one in enumerate(values))
        assert change.publish().metadata_bytes[LIST.id] == pytest.approx(once, rel=0.1)


def test_what_arrives_late_from_a_killed_writer_is_nobody(
    elasticsearch_store: ElasticsearchStore, client: Elasticsearch, prefix: str
) -> None:
    """Its document must not share an ordinal with another object's: that one would be skipped in its place."""
    with elasticsearch_store.change(DEFINITION, fresh=True, name="late") as change:
        change.put(objects(3))
        assert len(list(change.written())) == 3
    index = f"{prefix}-objects-events.late"
    stray = client.search(index=index, query={"term": {"ordinal": 2}})["hits"]["hits"][0]["_source"]
    with elasticsearch_store.change(DEFINITION, fresh=True, name="late") as change:
        for n in range(3, 8):  # what the killed one had under way, with the ordinals it had given out
            one = object_metadata(n + 100)
            late = stray | {"path": one.id.path, "size": one.id.length, "modified": one.id.mtime, "ordinal": n}
            client.index(index=index, id=f"{one.id.key.hex()}.late", document=late, refresh=True)
        wide = [object_metadata(n, minmax=minmax(0, 10_000)) for n in range(3, 8)]
        change.put(wide)
        assert len(list(change.written())) == 8
        entry = change.publish()
    assert skipped(elasticsearch_store, entry, between(5000, 5000)) == {one.id.key for one in objects(3)}
    assert client.count(index=index)["count"] == 8, "nothing of the late ones is left"


@pytest.mark.parametrize(("fresh", "name"), [(False, "one"), (True, "One"), (True, ""), (True, "a" * 33)])
def test_names_of_changes(parquet: ParquetStore, fresh: bool, name: str) -> None:
    with pytest.raises(ValueError, match="with the name"):
        with parquet.change(DEFINITION, fresh=fresh, name=name):
            pass


def test_a_torn_segment_of_a_killed_copy_is_written_again(parquet: ParquetStore, other: ParquetStore) -> None:
    write(parquet, DEFINITION, objects(8))
    with pytest.raises(Interrupted):
        reindex(Stopping(parquet, 4), other, "events")
    with other.change(DEFINITION, fresh=True, name="r1") as change:
        change.put(objects(4))
        assert len(list(change.written())) == 4
    (segment,) = (Path(other.url) / "events" / "segments").glob("*-r1-*.parquet")
    segment.write_bytes(segment.read_bytes()[:-30])
    with other.change(DEFINITION, fresh=True, name="r1") as change:
        assert list(change.written()) == []
        change.put(objects(8))
        change.publish()
    check_same(parquet, other)


# --- the command ----------------------------------------------------------------------------------------------------


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, Any, str]:
    code = main(["reindex", *arguments, "--output", "json"])
    out, err = capsys.readouterr()
    return code, json.loads(out) if out else None, err


def test_the_command(parquet: ParquetStore, other: ParquetStore, capsys: pytest.CaptureFixture[str]) -> None:
    write(parquet, DEFINITION, objects(10))
    write(parquet, dataset_definition(MINMAX, id="more"), objects(2))
    places = ["--store", parquet.url, "--to", other.url]
    code, rows, _ = run(capsys, "events", *places, "--dry-run")
    assert (code, rows[0]["objects"], rows[0]["copied"]) == (0, 10, 0)
    assert (rows[0]["format"], rows[0]["snapshot"]) == ("parquet", None)
    code, rows, err = run(capsys, "--all", *places)
    assert (code, [(row["dataset"], row["copied"]) for row in rows]) == (0, [("events", 10), ("more", 2)])
    assert "reindexing events in" in err
    check_same(parquet, other)
    code, rows, _ = run(capsys, "file:/data/events/", *places, "--into", "again", "--throttle", "1000")
    assert (code, rows[0]["dataset"]) == (0, "again")
    with pytest.raises(Interrupted):
        reindex(Stopping(parquet, 4), other, "events")
    with other.change(DEFINITION, fresh=True, name="left") as change:
        change.put(objects(4))
        assert list(change.written())
    code, rows, _ = run(capsys, "events", *places, "--drop-old", "--dry-run")
    assert code == 0 and rows and not rows[0]["dropped"]
    code, dropped, _ = run(capsys, "events", *places, "--drop-old")
    assert [row["superseded"] for row in dropped] == [row["superseded"] for row in rows]
    assert other.superseded("events") == []
    for wrong, words in (
        (["nobody", *places], "events, more"),
        ([*places], "--all"),
        (["events", "more", "--into", "x", *places], "--into"),
        (["events", *places, "--shards", "2"], "not Elasticsearch"),
        (["events"], "pass --store"),
    ):
        code, rows, err = run(capsys, *wrong)
        assert (code, rows) == (1, None)
        assert words in err


def test_the_command_between_stores_with_other_settings(
    parquet: ParquetStore, elasticsearch_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """``--to-conf`` is of the target only: a wrong password there is told, and not shown."""
    write(parquet, DEFINITION, objects(3))
    token = "spark.es_skipping.store.token=not a key"
    code, _, err = run(capsys, "events", "--store", parquet.url, "--to", elasticsearch_url, "--to-conf", token)
    assert code == 1
    assert "store.token" in err
    assert "not a key" not in err


# --- what a copy may be ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("copy", "original", "covered"),
    [
        (Intervals(None, None, None), Intervals(((1, 2),), 0), True),
        (Intervals((), 0), Intervals(None, 0), False),
        (Intervals(((0, 9),), 0), Intervals(None, 0), False),
        (Intervals(((0, 9),), 0), Intervals(((1, 2), (3, 9)), 0), True),
        (Intervals(((0, 2), (3, 9)), 0), Intervals(((1, 5),), 0), False),
        (Intervals(((0, 9),), 0), Intervals(((1, 2),), 1), False),
        (Intervals(((0, 9),), 0, 0), Intervals(((1, 2),), 0, 2), False),
        (Values(frozenset("ab"), None), Values(frozenset("a"), 3), True),
        (Values(frozenset("a"), 0), Values(frozenset("ab"), 0), False),
        (Values(frozenset("a"), 0), Intervals((("a", "a"),), 0), False),
        (Boxes((((0, 9), (0, 9)),)), Boxes((((1, 2), (3, 4)), ((5, 6), (7, 9)))), True),
        (Boxes((((0, 9), (0, 9)),)), Boxes((((1, 2), (3, 10)),)), False),
        (Boxes((((0, 9),),)), Boxes((((1, 2), (3, 4)),)), False),
    ],
)
def test_covering(copy: Any, original: Any, covered: bool) -> None:
    assert covers(copy, original) is covered
    assert covers(original, original) and covers(copy, copy)


def test_a_change_reads_back_what_it_wrote(parquet: ParquetStore, elasticsearch_store: ElasticsearchStore) -> None:
    for store in (parquet, elasticsearch_store):
        write(store, DEFINITION, objects(4))
        with store.change(DEFINITION, fresh=True) as change:
            change.put(objects(700))
            change.put([object_metadata(1, mtime=6, minmax=minmax(1, 1))])
            change.remove([objects(3)[2].id])
            assert read_back(change) == {one.id: one for one in expected()}
        assert len(stored(store)) == 4


def expected() -> list[ObjectMetadata]:
    kept = [one for n, one in enumerate(objects(700)) if n not in (1, 2)]
    return [*kept, object_metadata(1, mtime=6, minmax=minmax(1, 1))]


def read_back(change: Change) -> dict[ObjectId, ObjectMetadata]:
    ids = list(change.written())
    assert len(set(ids)) == len(ids)
    nobody = ObjectId("file:/nobody", 1, 1)
    return {one.id: one for one in change.read([*ids, nobody])}


def test_two_handles_of_one_elasticsearch_are_one(elasticsearch_store: ElasticsearchStore, prefix: str) -> None:
    write(elasticsearch_store, DEFINITION, objects(5))
    expected = stored(elasticsearch_store)
    assert reindex(make_store(elasticsearch_store.url, prefix), elasticsearch_store, "events").copied == 5
    assert stored(elasticsearch_store) == expected
