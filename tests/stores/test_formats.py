"""Every format version that was ever written is read, looked up in, refreshed and brought to another store.

What documents of format 1 in Elasticsearch say proves nothing (a user may not have seen all that was copied into them),
until the dataset is copied. Of an object without values they have one proof: as many rows as nulls and NaNs.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from elasticsearch import Elasticsearch

from es_skipping.catalog import ObjectId, ObjectMetadata
from es_skipping.clauses.clause import Ask
from es_skipping.clauses.evaluate import holds
from es_skipping.clauses.metadata import Intervals
from es_skipping.clauses.questions import AnyOf, Meets, Overlaps, Range
from es_skipping.stores.base import FORMAT_VERSION, MetadataStore
from es_skipping.stores.elasticsearch.store import ElasticsearchStore
from es_skipping.stores.parquet.store import ParquetStore
from es_skipping.stores.reindex import reindex
from tests.stores.contract import entry_of, keys, skipped, stored, write
from tests.stores.elasticsearch.conftest import client, make_store, remove_all
from tests.stores.samples import kinds
from tests.stores.samples.make import DEFINITION, FAILED, FOLDER, PREFIX, objects

__all__ = ["client"]

VERSIONS = range(1, FORMAT_VERSION + 1)
CLAUSES = [
    Ask("minmax(n)", Overlaps((Range(0, 3),))),
    Ask("minmax(name)", Overlaps((Range("a5", "a7"),))),
    Ask("minmax(x)", Overlaps((Range(None, -20.0),))),
    Ask("valuelist(name)", AnyOf(("a1", "ü2"))),
    Ask("prefix(name,length=2)", AnyOf(("ü9",))),
    Ask("geobox(lat,lon,boxes=2)", Meets((Range(-5.0, -4.5), Range(-10.0, 0.0)))),
]


@pytest.fixture(params=VERSIONS)
def version(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.fixture
def in_parquet(version: int, tmp_path: Path) -> ParquetStore:
    shutil.copytree(FOLDER / f"format-{version}" / "parquet", tmp_path / "sample")
    return ParquetStore(str(tmp_path / "sample"))


@pytest.fixture
def in_elasticsearch(version: int, elasticsearch_url: str, client: Elasticsearch) -> Iterator[ElasticsearchStore]:
    yield from loaded(FOLDER / f"format-{version}", f"es-skipping-test-format{version}", elasticsearch_url, client)


def loaded(folder: Path, prefix: str, url: str, client: Elasticsearch) -> Iterator[ElasticsearchStore]:
    """The documents of a sample, as their ``_source`` says them."""
    text = (folder / "elasticsearch.ndjson").read_text(encoding="utf-8")
    remove_all(client, prefix)
    for line in text.replace(PREFIX, prefix).splitlines():
        index = json.loads(line)
        client.indices.create(index=index["index"], mappings=index["mappings"], aliases=index["aliases"])
        operations = [part for id, source in index["documents"] for part in ({"index": {"_id": id}}, source)]
        assert not client.bulk(index=index["index"], operations=operations, refresh=True)["errors"]
    yield make_store(url, prefix)
    remove_all(client, prefix)


def said_in(version: int) -> list[ObjectMetadata]:
    """What documents of this format say of the objects; of some rows no value was seen, which they cannot explain."""
    if version > 1:
        return objects()
    made = []
    for one in objects():
        x = one.metadata["minmax(x)"]
        assert isinstance(x, Intervals)
        if x.ranges == () and one.rows != (x.nulls or 0) + (x.nans or 0):
            one = replace(one, metadata={**one.metadata, "minmax(x)": replace(x, ranges=None)})
        made.append(one)
    assert sum(one != other for one, other in zip(made, objects(), strict=True)) == 3
    return made


def check(store: MetadataStore, expected: list[ObjectMetadata], *, proves: bool = True) -> None:
    entry = entry_of(store, DEFINITION.id)
    assert (entry.definition, entry.failed) == (DEFINITION, FAILED)
    assert (entry.objects, entry.bytes) == (12, sum(one.id.length for one in expected))
    assert stored(store, DEFINITION.id) == {one.id: one for one in expected}
    for clause in CLAUSES:
        found = skipped(store, entry, clause)
        false = {one.id.key for one in expected if holds(clause, one.metadata) is False}
        assert false
        assert found == (false if proves else set()), str(clause)


def check_refresh(store: MetadataStore) -> None:
    changed = replace(objects()[0], id=replace(objects()[0].id, mtime=1))
    write(store, DEFINITION, [changed], remove=[objects()[1].id])
    assert stored(store, DEFINITION.id).keys() == {changed.id, *(one.id for one in objects()[2:])}


def test_parquet(in_parquet: ParquetStore, tmp_path: Path) -> None:
    check(in_parquet, objects())
    there = ParquetStore(str(tmp_path / "there"))
    reindex(in_parquet, there, DEFINITION.id)
    check(there, objects())
    check_refresh(in_parquet)


def test_elasticsearch(
    in_elasticsearch: ElasticsearchStore, version: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    expected = said_in(version)
    check(in_elasticsearch, expected, proves=version > 1)
    command = f"run once: es-skipping reindex {DEFINITION.id} --store {in_elasticsearch.url}"
    assert [command in record.message for record in caplog.records] == [True] * (version == 1)
    notes = [check.found for check in in_elasticsearch.checks() if check.state == "note"]
    assert any(command in note for note in notes) == (version == 1)
    there = ParquetStore(str(tmp_path / "there"))
    reindex(in_elasticsearch, there, DEFINITION.id)
    check(there, expected)
    reindex(in_elasticsearch, in_elasticsearch, DEFINITION.id)
    check(in_elasticsearch, expected)
    assert not any(command in check.found for check in in_elasticsearch.checks())
    check_refresh(in_elasticsearch)


def test_what_is_refreshed_in_place_proves_again(in_elasticsearch: ElasticsearchStore, version: int) -> None:
    """Object by object; the rest of the dataset still waits for a copy."""
    expected = said_in(version)
    write(in_elasticsearch, DEFINITION, [replace(one, metadata={}) for one in expected[:5]])
    entry = entry_of(in_elasticsearch, DEFINITION.id)
    assert stored(in_elasticsearch, DEFINITION.id) == {one.id: one for one in expected}
    proving = expected[:5] if version == 1 else expected
    for clause in CLAUSES:
        answer = in_elasticsearch.lookup(entry, clause)
        assert keys(answer.skip) == {one.id.key for one in proving if holds(clause, one.metadata) is False}
        assert bool(answer.unusable) == (version == 1)
    write(in_elasticsearch, DEFINITION, [replace(one, metadata={}) for one in expected[5:]])
    entry = entry_of(in_elasticsearch, DEFINITION.id)
    for clause in CLAUSES:
        answer = in_elasticsearch.lookup(entry, clause)
        assert keys(answer.skip) == {one.id.key for one in expected if holds(clause, one.metadata) is False}
        assert answer.unusable == ()


def test_what_is_read_is_in_the_format_it_says() -> None:
    for version in VERSIONS:
        folder = FOLDER / f"format-{version}"
        texts = [(folder / "elasticsearch.ndjson").read_text(encoding="utf-8")]
        texts += [path.read_text(encoding="ascii") for path in (folder / "parquet").rglob("*.json")]
        for text in texts:
            assert set(re.findall(r'"format": ?(\d+)', text)) == {str(version)}


def unread(store: MetadataStore, expected: dict[ObjectId, ObjectMetadata]) -> set[str]:
    """The indexes of the sample of all kinds of which some object that a clause excludes is not skipped; wrong skips
    fail."""
    entry = entry_of(store, kinds.DEFINITION.id)
    missed = set()
    for clause in kinds.CLAUSES:
        false = {id.key for id, one in expected.items() if holds(clause, one.metadata) is False}
        found = skipped(store, entry, clause)
        assert found <= false, str(clause)
        missed |= {clause.index} if found < false else set()
    return missed


def test_every_kind_in_parquet(tmp_path: Path) -> None:
    shutil.copytree(kinds.PLACE / "parquet", tmp_path / "sample")
    store, expected = ParquetStore(str(tmp_path / "sample")), {one.id: one for one in kinds.objects()}
    assert stored(store, kinds.DEFINITION.id) == expected
    assert unread(store, expected) == set()


def test_every_kind_in_elasticsearch(elasticsearch_url: str, client: Elasticsearch) -> None:
    """A sample is what ``_source`` says, so fingerprints prove nothing until the dataset is copied."""
    expected = {one.id: one for one in kinds.objects()}
    for store in loaded(kinds.PLACE, "es-skipping-test-kinds", elasticsearch_url, client):
        assert stored(store, kinds.DEFINITION.id) == expected
        by_prefix = ("string", "binary")  # whose order is asked by 16 bytes
        exact = {one.id for one in kinds.INDEXES if one.kind in ("intervals", "boxes")}
        exact -= {one.id for one in kinds.INDEXES if str(one.value_type) in by_prefix}
        assert not unread(store, expected) & exact
        before = len(unread(store, expected))
        reindex(store, store, kinds.DEFINITION.id)
        assert stored(store, kinds.DEFINITION.id) == expected
        assert len(unread(store, expected)) < before
