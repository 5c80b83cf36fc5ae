"""A writer whose process is killed (SIGKILL) at a named point: the state before or the new one, whole."""

from __future__ import annotations

import pytest
from elasticsearch import Elasticsearch

from es_skipping.catalog import ObjectId
from es_skipping.stores.elasticsearch.store import ElasticsearchStore
from tests.processes import kill_python
from tests.stores.contract import (
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

DEFINITION = dataset_definition(MINMAX)

WRITER = """
import sys
from es_skipping.settings import Settings
from es_skipping.stores.elasticsearch.change import ElasticsearchChange
from es_skipping.stores.elasticsearch.cluster import Cluster
from es_skipping.stores.elasticsearch.store import ElasticsearchStore
from tests.stores.elasticsearch.test_killed import DEFINITION, REFRESHED, GONE

url, prefix, name, fresh = sys.argv[1:]
owner = ElasticsearchChange if hasattr(ElasticsearchChange, name) and name != "publish" else Cluster
original = getattr(owner, name)

def stop(*arguments, **named):
    if name == "put":
        original(*arguments, **named)
        arguments[0]._writer.flush()
    print("here", flush=True)
    sys.stdin.read()

setattr(owner, name, stop)
store = ElasticsearchStore(url, Settings({"spark.es_skipping.store.timeout": "30s"}), prefix=prefix)
with store.change(DEFINITION, fresh=fresh == "fresh") as change:
    change.put(REFRESHED)
    change.remove(GONE)
    change.publish()
"""

OBJECTS = [object_metadata(n, minmax=minmax(n, n)) for n in range(6)]
REFRESHED = [object_metadata(n, mtime=9, minmax=minmax(50, 50)) for n in range(3, 8)]
GONE = [OBJECTS[0].id]


@pytest.mark.parametrize(
    ("name", "fresh", "published"),
    [("put", "added", False), ("write_segments", "fresh", False), ("sweep", "added", True), ("swap", "fresh", True)],
)
def test_a_writer_is_killed(
    elasticsearch_store: ElasticsearchStore,
    prefix: str,
    client: Elasticsearch,
    name: str,
    fresh: str,
    published: bool,
) -> None:
    before = write(elasticsearch_store, DEFINITION, OBJECTS)
    kill_python(WRITER, elasticsearch_store.url, prefix, name, fresh)
    left = {one.id for one in OBJECTS[1:3]} if fresh == "added" else set[ObjectId]()
    new = left | {one.id for one in REFRESHED}
    entry = entry_of(elasticsearch_store)
    # What was removed may be listed still, by documents that are true of what they name, until the next refresh.
    assert set(stored(elasticsearch_store)) - set(GONE) == (new if published else {one.id for one in OBJECTS[1:]})
    assert (entry.snapshot == before.snapshot) != published
    for seen in (before, entry):  # as readers have it cached, and afresh: never an object that may hold it
        keys = skipped(elasticsearch_store, seen, between(50, 50))
        assert not keys & {one.id.key for one in REFRESHED}
        assert keys <= {one.id.key for one in OBJECTS}
    after = write(elasticsearch_store, DEFINITION, REFRESHED, remove=GONE)
    expected = ({one.id for one in OBJECTS[1:3]} if fresh == "added" or not published else set()) | {
        one.id for one in REFRESHED
    }
    assert set(stored(elasticsearch_store)) == expected
    assert after.objects == len(expected), "what outlived its removal is subtracted once"
    assert after.bytes == sum(one.length for one in expected)
    assert len(skipped(elasticsearch_store, after, between(50, 50))) == len(expected) - len(REFRESHED)
    index = after.snapshot.rpartition("@")[0]
    client.indices.refresh(index=index)
    assert client.count(index=index)["count"] == len(expected), "no trace of the killed writer"
    alias = f"{prefix}-objects-events"
    assert list(client.indices.get_alias(name=alias).body) == [index]
