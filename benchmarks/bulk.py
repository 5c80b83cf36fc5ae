"""How fast documents get into Elasticsearch, against the client's own ``helpers.parallel_bulk``.

Run it with a server that may be written to; ``--page`` puts the figures into docs/benchmarks/million.md::

    python -m benchmarks.bulk --store http://localhost:9200 --objects 100000 --page

The same documents (those of benchmarks/lookup.py) into an index of the same mapping: by ``parallel_bulk`` as it is by
default, four threads and 500 documents a request, its documents made beforehand; by this package's `BulkWriter`, its
documents made beforehand as well; and by a build, which makes them from metadata, hands out ordinals and publishes.
Each in turn, the best of so many rounds.
"""

from __future__ import annotations

import argparse
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from typing import Any, Final

from elasticsearch import Elasticsearch, helpers

from benchmarks.lookup import definition, objects
from benchmarks.pages import fill, recorded
from es_skipping.settings import Settings
from es_skipping.stores.elasticsearch.bulk import BulkWriter, Write
from es_skipping.stores.elasticsearch.store import ElasticsearchStore

ID: Final = "bench-bulk"


@contextmanager
def empty_index(client: Elasticsearch, like: str) -> Iterator[str]:
    """An index with the mapping and the settings of another."""
    name = "es-skipping-bench-bulk"
    client.options(ignore_status=404).indices.delete(index=name)
    mapping = client.indices.get_mapping(index=like)[like]["mappings"]
    settings = {"index.refresh_interval": "-1", "index.number_of_replicas": 0}
    found = client.indices.get_settings(index=like)[like]["settings"]["index"]
    if "sort" in found:
        settings["index.sort"] = found["sort"]
    client.indices.create(index=name, mappings=mapping, settings=settings)
    yield name
    client.indices.delete(index=name)


def rate(count: int, work: Callable[[], None]) -> float:
    begun = time.perf_counter()
    work()
    return count / (time.perf_counter() - begun)


def build(store: ElasticsearchStore, count: int) -> float:
    """Seconds that it took, the metadata made beforehand."""
    listed = list(objects(count))
    with store.change(replace(definition(count), id=ID), fresh=True) as change:
        begun = time.perf_counter()
        change.put(listed)
        change.publish()
    return time.perf_counter() - begun


def measured(store: ElasticsearchStore, count: int) -> dict[str, float]:
    client = store._cluster.builder
    whole = count / build(store, count)
    entry = store.dataset(ID)
    assert entry is not None
    generation = entry.snapshot.rpartition("@")[0]
    client.indices.refresh(index=generation)
    documents = [(hit["_id"], hit["_source"]) for hit in store._cluster.scan(generation, None, "ordinal")]
    assert len(documents) == count

    def by_helper(index: str) -> None:
        actions = ({"_index": index, "_id": id, "_source": source} for id, source in documents)
        deque(helpers.parallel_bulk(client, actions), maxlen=0)
        client.indices.refresh(index=index)

    def by_writer(index: str) -> None:
        writer = BulkWriter(client, index, store.url)
        waiting = iter(documents)
        while part := list(islice(waiting, 500)):
            writer.write(Write.of(id, source) for id, source in part)
        writer.flush()
        client.indices.refresh(index=index)

    found = {"build": whole}
    for name, work in (("parallel_bulk", by_helper), ("BulkWriter", by_writer)):
        with empty_index(client, generation) as index:
            found[name] = rate(count, lambda: work(index))  # noqa: B023
    store.drop(ID)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", required=True, help="URL of an Elasticsearch")
    parser.add_argument("--objects", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--page", action="store_true", help="put the figures into docs/benchmarks/million.md")
    given = parser.parse_args()
    store = ElasticsearchStore(given.store, Settings({"spark.es_skipping.store.timeout": "60s"}))
    rounds: list[dict[str, Any]] = []
    for _ in range(given.rounds):
        rounds.append(measured(store, given.objects))
        print({name: round(found) for name, found in rounds[-1].items()}, flush=True)
    best = {name: max(one[name] for one in rounds) for name in ("parallel_bulk", "BulkWriter", "build")}
    lines = ["| | documents a second | share |", "|---|--:|--:|"]
    lines += [f"| {name} | {found:,.0f} | {found / best['parallel_bulk']:.0%} |" for name, found in best.items()]
    print("\n".join(lines))
    if given.page:
        recorded(
            "bulk", "Elasticsearch", {"objects": given.objects, **{name: round(one) for name, one in best.items()}}
        )
        fill("bulk", "\n".join(lines))


if __name__ == "__main__":
    main()
