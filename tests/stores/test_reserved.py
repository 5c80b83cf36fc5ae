"""Room that format 2 reserves (docs/decisions/0012): what a later version writes there is unknown to this one.

A later version is this one, told that it understands more (`UNDERSTOOD`), or documents and segments to which what it
would add was added.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from elasticsearch import Elasticsearch

from es_skipping import catalog
from es_skipping.catalog import DatasetDefinition, IndexDefinition, ObjectMetadata
from es_skipping.clauses.clause import Ask, Conjunction, Disjunction
from es_skipping.clauses.evaluate import holds
from es_skipping.clauses.metadata import Intervals, Values
from es_skipping.clauses.questions import AnyOf, HasNotNull, HasNull, Meets, OtherThan, Overlaps, Range
from es_skipping.errors import StoreFormatError
from es_skipping.lookup.registry import IndexedDataset
from es_skipping.predicates.types import parse_type
from es_skipping.stores.base import FORMAT_VERSION, MetadataStore
from es_skipping.stores.elasticsearch import store as store_module
from es_skipping.stores.elasticsearch.store import ElasticsearchStore
from es_skipping.stores.files import Files
from es_skipping.stores.memory.store import MemoryStore
from es_skipping.stores.parquet import change as change_module
from es_skipping.stores.parquet.manifest import Segment
from es_skipping.stores.parquet.store import ParquetStore
from es_skipping.stores.reindex import reindex
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
from tests.stores.strategies import index as index_of_kind

__all__ = ["client", "elasticsearch_store", "prefix"]

OBJECTS = [object_metadata(n, minmax=minmax(n, n), list=Values(frozenset({f"v{n % 3}"}), 0)) for n in range(9)]
NOWHERE = between(1000, 1000)
LISTED = Ask(LIST.id, AnyOf(("v1",)))
NOT_V1 = {one.id.key for n, one in enumerate(OBJECTS) if n % 3 != 1}
EVERY = {one.id.key for one in OBJECTS}


@pytest.fixture(params=["parquet", "elasticsearch"])
def again(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], MetadataStore]:
    """Opens the store anew: a handle that remembers nothing."""
    if request.param == "parquet":
        return lambda: ParquetStore(str(tmp_path / "store"))
    store: ElasticsearchStore = request.getfixturevalue("elasticsearch_store")
    return lambda: make_store(store.url, store._cluster.names.prefix)


@contextmanager
def later_version() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(catalog, "UNDERSTOOD", frozenset({*catalog.UNDERSTOOD, "later", "much later"}))
        yield


@pytest.mark.parametrize("needs", ["later", "much later"])
def test_an_index_that_needs_what_is_not_understood_is_unknown(
    again: Callable[[], MetadataStore], needs: str, tmp_path: Path
) -> None:
    definition = dataset_definition(replace(MINMAX, needs=(needs,)), LIST)
    with later_version():
        entry = write(again(), definition, OBJECTS)
        assert skipped(again(), entry, NOWHERE) == EVERY
    store = again()
    entry = entry_of(store)
    assert entry.definition == definition
    assert skipped(store, entry, NOWHERE) == set()
    assert skipped(store, entry, Ask(MINMAX.id, HasNull())) == set()
    assert skipped(store, entry, LISTED) == NOT_V1
    assert skipped(store, entry, Conjunction((NOWHERE, LISTED))) == NOT_V1
    assert skipped(store, entry, Disjunction((NOWHERE, LISTED))) == set()
    assert store.explain(entry, Conjunction((NOWHERE, LISTED))).text
    assert {ids for _, ids in store.objects("events")} == {frozenset({LIST.id})}
    assert stored(store) == {one.id: replace(one, metadata={LIST.id: one.metadata[LIST.id]}) for one in OBJECTS}
    dataset = IndexedDataset.of(store, entry)
    assert [index.id for index, _ in dataset.labellers] == [LIST.id]
    assert dataset.unusable == ((MINMAX.id, f"it needs {needs}: upgrade es_skipping here"),)
    with pytest.raises(StoreFormatError, match=f"{needs}, which this version"):
        write(store, definition, OBJECTS[:1])
    with pytest.raises(StoreFormatError, match=needs):
        reindex(store, MemoryStore(f"memory://{tmp_path}"), "events")
    if isinstance(store, ParquetStore):
        with pytest.raises(StoreFormatError, match=needs):
            store.optimize("events")
    with later_version():
        assert skipped(again(), entry, NOWHERE) == EVERY
        assert stored(again()) == {one.id: one for one in OBJECTS}
    # The index can be dropped, and given anew, without its need, to which the old metadata does not belong.
    entry = write(store, dataset_definition(LIST))
    assert skipped(store, entry, LISTED) == NOT_V1
    entry = write(store, dataset_definition(MINMAX, LIST), OBJECTS[:4])
    assert skipped(store, entry, NOWHERE) == {one.id.key for one in OBJECTS[:4]}
    assert skipped(store, entry, LISTED) == NOT_V1


def test_a_dataset_that_needs_what_is_not_understood_is_unknown(again: Callable[[], MetadataStore]) -> None:
    definition = replace(dataset_definition(MINMAX, LIST), needs=("later",))
    with later_version():
        write(again(), definition, OBJECTS)
        write(again(), dataset_definition(MINMAX, id="other"), OBJECTS)
    store = again()
    entry = entry_of(store)
    assert entry.definition == definition
    assert all(skipped(store, entry, clause) == set() for clause in (NOWHERE, LISTED))
    assert skipped(store, entry_of(store, "other"), NOWHERE) == EVERY, "other datasets are not affected"
    assert IndexedDataset.of(store, entry).labellers == ()
    for other in (definition, replace(definition, needs=()), replace(definition, needs=(), indexes=())):
        with pytest.raises(StoreFormatError, match="later"):
            write(store, other, OBJECTS[:1])
    assert entry_of(store).snapshot == entry.snapshot
    entry = write(store, replace(definition, needs=()), OBJECTS[:2], fresh=True)
    assert skipped(store, entry, NOWHERE) == {one.id.key for one in OBJECTS[:2]}
    store.drop("events")
    assert store.dataset("events") is None


def test_the_store_in_memory_refuses_it_too(tmp_path: Path) -> None:
    store, definition = (
        MemoryStore(f"memory://{tmp_path}"),
        dataset_definition(MINMAX, replace(LIST, needs=("later",))),
    )
    with pytest.raises(StoreFormatError, match="later"):
        write(store, definition, OBJECTS)
    assert store.datasets() == []


def test_a_kind_that_is_not_known_is_not_understood() -> None:
    index = IndexDefinition("i", "Spheres", ("a",), "spheres", parse_type("double"))  # type: ignore[arg-type]
    definition = DatasetDefinition("d", ("file:/d",), "parquet", (index, LIST))
    assert definition.not_understood(index) == ("the kind 'spheres'",)
    assert definition.understood == (LIST,)


# --- documents ------------------------------------------------------------------------------------------------------


@pytest.fixture(params=[False, True], ids=["direct", "view"])
def views(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "LARGE", 0 if request.param else 4_096)


def changed(client: Elasticsearch, generation: str, change: Callable[[dict[str, Any]], None], **fields: Any) -> None:
    """Every document as a later version might have written it; ``fields`` are added to the mapping."""
    client.indices.put_mapping(index=generation, properties=fields)
    for hit in client.search(index=generation, size=100)["hits"]["hits"]:
        source = hit["_source"]
        change(source)
        client.index(index=generation, id=hit["_id"], document=source)
    client.indices.refresh(index=generation)


@pytest.mark.usefixtures("views")
def test_an_object_in_a_form_that_is_not_known(
    elasticsearch_store: ElasticsearchStore, prefix: str, client: Elasticsearch
) -> None:
    """Whatever lies in the fields, the form says how to read it."""
    other = index_of_kind("intervals", parse_type("bigint"))
    definition = dataset_definition(MINMAX, LIST, BOX, other)
    boxes = [replace(one, metadata={**one.metadata, other.id: Intervals((), 1)}) for one in OBJECTS]
    entry = write(elasticsearch_store, definition, boxes)

    def later(source: dict[str, Any]) -> None:
        if source["ordinal"] % 2:
            source["known"] = [f"{form}.rowgroups" for form in source["known"]]
            source["empty"] = [f"{form}.rowgroups" for form in source.get("empty", ())]

    changed(client, entry.snapshot.rpartition("@")[0], later)
    store = make_store(elasticsearch_store.url, prefix)
    understood = {one.id.key for one in OBJECTS[::2]}
    for clause in (
        NOWHERE,
        Ask(MINMAX.id, AnyOf((77,))),
        Ask(LIST.id, AnyOf(("nowhere",))),
        Ask(LIST.id, OtherThan(("v0", "v1", "v2"))),
        Ask(other.id, Overlaps((Range(1, 2),))),
        Ask(other.id, HasNotNull()),
    ):
        assert skipped(store, entry, clause) == understood, str(clause)
    assert skipped(store, entry, Ask(MINMAX.id, HasNull())) == EVERY, "counts mean the same in every form"
    assert {one.id.key for one in store.metadata("events") if one.metadata} == understood
    assert {id.key for id, ids in store.objects("events") if ids} == understood
    # Nor is it taken over into a document that says otherwise.
    entry = write(store, replace(definition, indexes=(*definition.indexes, BOX_LATER)), [])
    write(store, entry.definition, [ObjectMetadata(one.id, one.rows, {}) for one in OBJECTS])
    assert skipped(store, entry_of(store), NOWHERE) == understood


BOX_LATER = replace(BOX, id="later")


@pytest.mark.usefixtures("views")
def test_row_groups_beside_the_summary_of_the_object(
    elasticsearch_store: ElasticsearchStore, prefix: str, client: Elasticsearch
) -> None:
    """They change nothing for who does not read them: the groups of a document are about the whole object."""
    entry = write(elasticsearch_store, dataset_definition(MINMAX, LIST), OBJECTS)
    state = elasticsearch_store._cluster.state("events")
    assert state is not None
    name = state.groups[MINMAX.id].name

    def later(source: dict[str, Any]) -> None:
        ends = [{"gte": 500, "lte": 600}, {"gte": 700, "lte": 800}]
        source["rowgroups"] = {"count": 2, "offsets": [4, 1000], name: {"range": ends}}
        source["mac"] = "00ff"
        source["known"].append(f"{name}.rowgroups")
        source[name]["tokens"] = ["abc"]

    changed(
        client,
        state.generation,
        later,
        rowgroups={"properties": {name: {"properties": {"range": {"type": "long_range"}}}}, "dynamic": True},
        mac={"type": "keyword"},
        **{name: {"properties": {"tokens": {"type": "keyword"}}}},
    )
    store = make_store(elasticsearch_store.url, prefix)
    for clause in (between(4, 4), between(500, 800), LISTED, Ask(MINMAX.id, HasNull())):
        assert skipped(store, entry, clause) == {
            one.id.key for one in OBJECTS if holds(clause, one.metadata) is False
        }, str(clause)
    assert stored(store) == {one.id: one for one in OBJECTS}
    assert not any(check.state == "bad" for check in store.checks() if check.name == "mappings")
    entry = write(store, dataset_definition(MINMAX, LIST, BOX), [ObjectMetadata(one.id, None, {}) for one in OBJECTS])
    assert skipped(store, entry, between(4, 4)) == EVERY - {OBJECTS[4].id.key}


@pytest.mark.usefixtures("views")
def test_documents_of_a_later_format_prove_nothing(
    elasticsearch_store: ElasticsearchStore, prefix: str, client: Elasticsearch
) -> None:
    entry = write(elasticsearch_store, dataset_definition(MINMAX, LIST), OBJECTS)

    def later(source: dict[str, Any]) -> None:
        source["format"] += source["ordinal"] % 2

    changed(client, entry.snapshot.rpartition("@")[0], later)
    store = make_store(elasticsearch_store.url, prefix)
    assert skipped(store, entry, NOWHERE) == {one.id.key for one in OBJECTS[::2]}
    assert FORMAT_VERSION == 2, "what is reserved for it may be used, or not, by the next one: say so in decision 0012"


# --- segments -------------------------------------------------------------------------------------------------------


def test_a_segment_with_more_than_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another form of an index's metadata is a field more of its column; row groups are columns more of the segment."""
    write_segment = change_module.write_segment

    def later(table: pa.Table) -> pa.Table:
        for name in table.column_names:
            column = table[name].combine_chunks()
            if not pa.types.is_struct(column.type):
                continue
            odd = pa.array([n % 2 == 1 for n in range(len(column))])
            parts = [pa.compute.if_else(odd, pa.scalar(None, part.type), part) for part in column.flatten()]
            sealed = pa.array([bytes([n]) for n in range(len(column))], pa.binary())
            fields = [*column.type, pa.field("sealed", pa.binary())]
            made = pa.StructArray.from_arrays([*parts, sealed], fields=fields, mask=column.is_null())
            table = table.set_column(table.schema.get_field_index(name), name, made)
            groups = pa.array([[{"offset": 4, "low": 500, "high": 600}]] * len(column))
            table = table.append_column(f"{name}~rowgroups", groups)
        return table

    def write_later(files: Files, dataset: str, table: pa.Table, *rest: Any) -> Segment:
        return write_segment(files, dataset, later(table), *rest)

    with monkeypatch.context() as patch:
        patch.setattr(change_module, "write_segment", write_later)
        write(ParquetStore(str(tmp_path)), dataset_definition(MINMAX, LIST, BOX), OBJECTS)
    store = ParquetStore(str(tmp_path))
    entry = entry_of(store)
    understood = {one.id.key for one in OBJECTS[::2]}
    everywhere = Ask(BOX.id, Meets((Range(), Range())))
    for clause in (NOWHERE, Ask(MINMAX.id, HasNull()), Ask(LIST.id, AnyOf(("nowhere",))), Ask(LIST.id, HasNotNull())):
        false = {one.id.key for one in OBJECTS if holds(clause, one.metadata) is False}
        assert skipped(store, entry, clause) == false & understood, str(clause)
    assert skipped(store, entry, everywhere) == set()
    for n, one in enumerate(OBJECTS):
        found = stored(store)[one.id].metadata
        assert found == (one.metadata if n % 2 == 0 else {id: Intervals(None, None, None) for id in found})
    entry = write(store, dataset_definition(MINMAX, LIST, BOX), [object_metadata(20, minmax=minmax(1000, 1000))])
    store.optimize("events")
    assert skipped(store, entry_of(store), NOWHERE) == understood
