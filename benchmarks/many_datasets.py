"""How many small datasets fit a cluster, and what a look-up costs among them.

Run it with a server that may be written to; it stops where the server takes no more, and says so::

    python -m benchmarks.many_datasets --store http://localhost:9200 --datasets 2000

Each dataset has a few objects and is one index of one shard; a default cluster takes 1,000 for each data node. Timed
are the making of a dataset, the listing of all of them (which a session does once in ``registry.lifetime``) and a
look-up of one by a reader that knows nothing.
"""

from __future__ import annotations

import argparse
import statistics
import time
from typing import Final

from elasticsearch import Elasticsearch

from benchmarks.pages import stamp
from es_skipping.catalog import DatasetDefinition, IndexDefinition, ObjectId, ObjectMetadata
from es_skipping.clauses.clause import Ask
from es_skipping.clauses.metadata import Intervals
from es_skipping.clauses.questions import Overlaps, Range
from es_skipping.errors import StoreError
from es_skipping.predicates.types import parse_type
from es_skipping.settings import Settings
from es_skipping.stores.elasticsearch.store import ElasticsearchStore

PREFIX: Final = "es-skipping-many"
OBJECTS: Final = 10
INDEX: Final = IndexDefinition("minmax(ts)", "MinMax", ("ts",), "intervals", parse_type("bigint"))


def definition(n: int) -> DatasetDefinition:
    return DatasetDefinition(f"small-{n:05}", (f"file:/lake/small-{n:05}",), "parquet", (INDEX,))


def objects(n: int) -> list[ObjectMetadata]:
    return [
        ObjectMetadata(
            ObjectId(f"file:/lake/small-{n:05}/part-{part}.parquet", 1000, 1_700_000_000_000),
            100,
            {INDEX.id: Intervals(((100 * part, 100 * part + 99),), 0)},
        )
        for part in range(OBJECTS)
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", required=True, help="URL of the store")
    parser.add_argument("--datasets", type=int, default=2000)
    given = parser.parse_args()
    settings = Settings({})  # as a session has it: a look-up may take two seconds
    store = ElasticsearchStore(given.store, settings, prefix=PREFIX)
    made, seconds = 0, []
    while made < given.datasets:
        begun = time.perf_counter()
        try:
            with store.change(definition(made)) as change:
                change.put(objects(made))
                change.publish()
        except StoreError as error:
            print(f"dataset {made + 1} was refused: {error}")
            break
        seconds.append(time.perf_counter() - begun)
        made += 1
        if made % 100 == 0:
            print(f"{made} datasets, the last hundred {statistics.median(seconds[-100:]):.2f} s each", flush=True)
    with Elasticsearch(given.store, request_timeout=60) as server:
        health = server.cluster.health()
    print(f"{health['number_of_data_nodes']} data nodes, {health['active_shards']} shards, {health['status']}")
    begun = time.perf_counter()
    entries = store.datasets()
    print(f"{len(entries)} datasets listed in {time.perf_counter() - begun:.2f} s")
    assert len(entries) == made
    times = []
    for entry in entries[:: max(1, made // 200)]:
        reader = ElasticsearchStore(given.store, settings, prefix=PREFIX)
        begun = time.perf_counter()
        answer = reader.lookup(entry, Ask(INDEX.id, Overlaps((Range(250, 260),))))
        times.append(time.perf_counter() - begun)
        assert answer.skipped == OBJECTS - 1
        reader.close()
    print(f"{len(times)} look-ups: median {1000 * statistics.median(times):.0f} ms, most {1000 * max(times):.0f} ms")
    for entry in entries:
        store.drop(entry.definition.id)
    store.close()


if __name__ == "__main__":
    main()
    print(stamp())
