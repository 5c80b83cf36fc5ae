"""What people see of the documents in Kibana."""

from __future__ import annotations

import json
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any

import pytest
from elasticsearch import Elasticsearch

from es_skipping.catalog import DatasetDefinition, IndexDefinition, ObjectMetadata
from es_skipping.clauses.clause import Ask
from es_skipping.clauses.evaluate import holds
from es_skipping.clauses.metadata import Boxes, Intervals, Values
from es_skipping.clauses.questions import AnyOf, HasNotNull, Meets, Range
from es_skipping.predicates.types import parse_type
from es_skipping.stores.elasticsearch import store as store_module
from es_skipping.stores.elasticsearch.kibana import saved_objects
from es_skipping.stores.elasticsearch.names import column_of
from es_skipping.stores.elasticsearch.state import State
from es_skipping.stores.elasticsearch.store import ElasticsearchStore
from tests.stores.contract import entry_of, object_id, skipped, stored, write
from tests.stores.elasticsearch.conftest import make_store
from tests.stores.strategies import fingerprints

DOUBLE, STRING, INT = map(parse_type, ("double", "string", "int"))


def boxes(*columns: str) -> IndexDefinition:
    return IndexDefinition(f"geobox({','.join(columns)})", "GeoBox", columns, "boxes", DOUBLE)


BLOOM = IndexDefinition("bloomfilter(id)", "BloomFilter", ("id",), "fingerprints", STRING)
NUMBERS = IndexDefinition("minmax(n)", "MinMax", ("n",), "intervals", INT)
NAMED = {
    ("lat", "lon"): ["lat", "lon"],
    ("a.b", "Größe ~ x"): ["a~2e~b", "Größe~20~~7e~~20~x"],
    ("_id", "type"): ["_id", "type"],
    ("properties", "enabled"): ["properties", "enabled"],
    ("x", "x"): ["axis_0", "axis_1"],
}


def source_of(store: ElasticsearchStore, index: str) -> dict[str, Any]:
    """The first object's fields of an index."""
    state = store._cluster.state("events")
    assert state is not None
    hit = next(iter(store._cluster.published(state, None, None)))
    found: dict[str, Any] = hit["_source"]
    return found[state.groups[index].name] if index in state.groups else found


@pytest.mark.parametrize("views", [False, True], ids=["direct", "view"])
@pytest.mark.parametrize("columns", NAMED, ids=", ".join)
def test_a_box_shows_its_columns(
    elasticsearch_store: ElasticsearchStore,
    columns: tuple[str, ...],
    views: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(store_module, "LARGE", 0 if views else 4_096)
    index, sides = boxes(*columns), NAMED[columns]
    made = [Boxes((((float(n), n + 0.5), (10.0 * n, 10.0 * n + 5)),)) for n in range(6)]
    made += [Boxes((((0.0, 0.5), (0.0, 0.5)), ((5.0, 5.5), (0.0, 60.0)))), Boxes(())]
    objects = [ObjectMetadata(object_id(n), 1, {index.id: one}) for n, one in enumerate(made)]
    entry = write(elasticsearch_store, DatasetDefinition("events", ("file:/e",), "parquet", (index,)), objects)
    fields = source_of(elasticsearch_store, index.id)
    assert fields["box_0"] == {sides[0]: {"gte": 0, "lte": 0.5}, sides[1]: {"gte": 0, "lte": 5}}
    assert columns == ("x", "x") or set(map(column_of, fields["box_0"])) == set(columns)
    for box in ((Range(0.0, 1.0), Range()), (Range(), Range(0.0, 1.0)), (Range(5.2, 5.3), Range(51.0, 52.0))):
        clause = Ask(index.id, Meets(box))
        false = {one.id.key for one in objects if holds(clause, one.metadata) is False}
        assert false
        assert skipped(elasticsearch_store, entry, clause) == false
    assert skipped(elasticsearch_store, entry, Ask(index.id, HasNotNull())) == {objects[-1].id.key}
    assert stored(elasticsearch_store) == {one.id: one for one in objects}


def test_one_list_says_what_is_known_and_how(elasticsearch_store: ElasticsearchStore) -> None:
    metadata = {BLOOM.id: fingerprints(["a", "b"], 640), NUMBERS.id: Intervals(None, 3)}
    one = ObjectMetadata(object_id(0), 1, metadata)
    write(elasticsearch_store, DatasetDefinition("events", ("file:/e",), "parquet", (BLOOM, NUMBERS)), [one])
    document = source_of(elasticsearch_store, "")
    assert document["known"] == ["bloomfilter_id.prints", "minmax_n.counts"]
    assert "indexed" not in document
    assert list(elasticsearch_store.objects("events")) == [(one.id, frozenset(metadata))]


def test_discover_does_not_show_what_is_packed(elasticsearch_store: ElasticsearchStore, client: Elasticsearch) -> None:
    """Kibana's field filters leave fields out of `_source`, and out of the list of fields that Discover asks for."""
    (view,) = [one for one in map(json.loads, saved_objects().splitlines()) if one["id"] == "es-skipping-objects"]
    excluded = [one["value"] for one in json.loads(view["attributes"]["sourceFilters"])]
    objects = [
        ObjectMetadata(object_id(0), 1, {BLOOM.id: fingerprints(["a"], 640)}),
        ObjectMetadata(object_id(1), 1, {BLOOM.id: Values(frozenset({"b"}), 0)}),
        ObjectMetadata(object_id(2), 1, {BLOOM.id: Intervals((("c", "d"),), 0)}),
    ]
    entry = write(elasticsearch_store, DatasetDefinition("events", ("file:/e",), "parquet", (BLOOM,)), objects)
    generation = entry.snapshot.rpartition("@")[0]
    whole = client.search(index=generation, size=9, sort="ordinal")["hits"]["hits"]
    shown = client.search(index=generation, size=9, sort="ordinal", source={"excludes": excluded})["hits"]["hits"]
    assert "packed" in whole[0]["_source"]["bloomfilter_id"]
    for one, other in zip(whole, shown, strict=True):
        one["_source"]["bloomfilter_id"].pop("packed", None)
        assert one["_source"] == other["_source"]
    fields = client.field_caps(index=generation, fields="*")["fields"]
    hidden = {name for name in fields if any(fnmatchcase(name, pattern) for pattern in excluded)}
    assert hidden == {"bloomfilter_id.packed"}
    assert skipped(elasticsearch_store, entry, Ask(BLOOM.id, AnyOf(("z",)))) == {one.id.key for one in objects}


def test_the_details_of_a_dataset_are_an_object_that_nobody_indexes(
    elasticsearch_store: ElasticsearchStore, client: Elasticsearch, prefix: str
) -> None:
    odd = {"": "a", " ": "b", ".": "c", "a..b": "d", "a": "e", "a.b": "f", "spark.sql.x": "\x00"}
    index = replace(NUMBERS, operands=({"field": ["n"]}, ("t", -0.0, b"\xff")), parameters={"fpp": 5e-324, "n": 2**63})
    definition = DatasetDefinition("events", ("file:/e",), "csv", (index,), options=odd, built_with=odd)
    failed = (("file:/a b", "no\ufffe\U0001f600"),)
    with elasticsearch_store.change(definition) as change:
        change.put([ObjectMetadata(object_id(0), 1, {index.id: Intervals(((1, 2),), 0)})])
        change.publish(failed)
    for store in (elasticsearch_store, make_store(elasticsearch_store.url, prefix)):
        for entry in (entry_of(store), *store.datasets()):
            assert (entry.definition, entry.failed) == (definition, failed)
    found = client.get(index=f"{prefix}-datasets", id="events")["_source"]
    assert "state" not in found
    assert found["details"]["definition"]["indexes"][0]["columns"] == ["n"]
    assert found["details"]["groups"][0]["name"] == "minmax_n"
    assert client.get(index=f"{prefix}-datasets", id="events", source=["details.used"])["_source"] == {
        "details": {"used": ["minmax_n"]}
    }
    fields = client.field_caps(index=f"{prefix}-datasets", fields="*")["fields"]
    assert not [name for name in fields if name.startswith("details.")]
    assert client.count(index=f"{prefix}-datasets", query={"exists": {"field": "details.used"}})["count"] == 0
    # A publication is known again by its document, whatever is in it.
    state = elasticsearch_store._cluster.state("events")
    assert state is not None
    assert State.from_document(found).to_document() == found
    write(elasticsearch_store, definition, [ObjectMetadata(object_id(1), 1, {})])
    assert entry_of(elasticsearch_store).objects == 2


def levels(count: int) -> Any:
    nested: Any = "end"
    for _ in range(count):
        nested = {"field": [nested]}
    return nested


@pytest.mark.parametrize(
    ("operand", "path", "readable"),
    [
        (levels(50), "file:/e", True),
        (levels(200), "file:/e", False),
        (10**40, "file:/e", False),
        ("x", "file:/half\ud800pair", False),
    ],
    ids=["levels", "many levels", "a number of 40 digits", "half a pair"],
)
def test_details_that_the_client_would_not_read_back_are_text(
    elasticsearch_store: ElasticsearchStore, prefix: str, operand: Any, path: str, readable: bool
) -> None:
    definition = DatasetDefinition("events", ("file:/e",), "csv", (replace(NUMBERS, operands=(operand,)),))
    one = ObjectMetadata(object_id(0), 1, {NUMBERS.id: Intervals(((1, 2),), 0)})
    for _ in range(2):
        with elasticsearch_store.change(definition) as change:
            change.put([one])
            change.publish([(path, "no")])
    store = make_store(elasticsearch_store.url, prefix)
    for entry in (entry_of(store), *store.datasets()):
        assert (entry.definition, entry.failed, entry.objects) == (definition, ((path, "no"),), 1)
    found = store._cluster.registered("events")
    assert found is not None
    assert ("text" not in found["_source"]["details"]) == readable
