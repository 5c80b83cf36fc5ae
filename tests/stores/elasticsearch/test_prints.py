"""Fingerprints in the inverted index: what the documents hold, and what a copy of them may prove."""

from __future__ import annotations

import pytest

from es_skipping.catalog import ObjectMetadata
from es_skipping.clauses.clause import Ask
from es_skipping.clauses.evaluate import holds
from es_skipping.clauses.questions import AnyOf
from es_skipping.predicates.types import parse_type
from es_skipping.stores.elasticsearch.prints import holds_none, terms_of
from es_skipping.stores.elasticsearch.store import ElasticsearchStore
from tests.stores import strategies
from tests.stores.contract import dataset_definition, object_id, skipped, write

BLOOM = strategies.index("fingerprints", parse_type("string"))
OBJECTS = [
    ObjectMetadata(object_id(n), 1, {BLOOM.id: strategies.fingerprints([f"v{n}", f"w{n}"], 6400 if n % 2 else 102_400)})
    for n in range(10)
]
ASKED = Ask(BLOOM.id, AnyOf(("v3", "w4")))
PROVED = {one.id.key for one in OBJECTS if holds(ASKED, one.metadata) is False}


def test_terms_of_different_spaces_never_meet() -> None:
    terms: dict[str, int] = {}
    for space in (*strategies.SPACES, 645, 6400, 64, 63, 65, 4096, 4097, 262_144):
        every = [strategies.fingerprints([value], space) for value in range(300)]
        for term in {term for one in every for term in terms_of(one)}:
            assert terms.setdefault(term, space) == space


def test_the_source_has_the_packed_form_alone(elasticsearch_store: ElasticsearchStore) -> None:
    write(elasticsearch_store, dataset_definition(BLOOM), OBJECTS)
    cluster = elasticsearch_store._cluster
    state = cluster.state("events")
    assert state is not None
    for hit in cluster.published(state, None, None):
        fields = hit["_source"][state.groups[BLOOM.id].name]
        assert fields.keys() == {"packed", "space", "cells", "nulls", "nans"}


def test_a_copy_by_the_source_alone_proves_nothing(elasticsearch_store: ElasticsearchStore) -> None:
    """As `_reindex` makes it: the documents are there, the fingerprints are not."""
    entry = write(elasticsearch_store, dataset_definition(BLOOM), OBJECTS)
    assert skipped(elasticsearch_store, entry, ASKED) == PROVED
    assert len(PROVED) == 8
    client, state = elasticsearch_store._cluster.builder, elasticsearch_store._cluster.state("events")
    assert state is not None
    group = state.groups[BLOOM.id]
    query = holds_none(f"{group.name}.prints", group.spaces, ("v3", "w4"), 100)
    copy = f"{state.generation}-copy"
    mappings = client.indices.get_mapping(index=state.generation)[state.generation]["mappings"]
    client.indices.create(index=copy, mappings=mappings)
    try:
        hits = elasticsearch_store._cluster.published(state, None, None)  # what `_reindex` reads; it is a module apart
        operations = [part for hit in hits for part in ({"index": {"_id": hit["_id"]}}, hit["_source"])]
        assert not client.bulk(index=copy, operations=operations, refresh=True)["errors"]
        assert client.count(index=copy)["count"] == len(OBJECTS)
        assert client.count(index=state.generation, query=query)["count"] == len(PROVED)
        assert client.count(index=copy, query=query)["count"] == 0
    finally:
        client.indices.delete(index=copy)


@pytest.mark.parametrize("values", [1, 30_000])
def test_many_values(elasticsearch_store: ElasticsearchStore, values: int) -> None:
    entry = write(elasticsearch_store, dataset_definition(BLOOM), OBJECTS)
    asked = Ask(BLOOM.id, AnyOf((*(f"x{n}" for n in range(values)), "v3", "w4")))
    found = skipped(elasticsearch_store, entry, asked)
    assert found == {one.id.key for one in OBJECTS if holds(asked, one.metadata) is False}
    assert found
