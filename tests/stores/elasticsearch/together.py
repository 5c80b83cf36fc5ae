"""Many clauses in one request: for tests of thousands of them, each of which would otherwise wait for the server."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from es_skipping.catalog import DatasetEntry
from es_skipping.clauses.clause import Clause
from es_skipping.stores.base import KEY_BYTES
from es_skipping.stores.elasticsearch.answers import PAGE, Deadline, request_body, whole
from es_skipping.stores.elasticsearch.store import ElasticsearchStore

__all__ = ["ask_together"]


def ask_together(store: ElasticsearchStore, entry: DatasetEntry, clauses: Sequence[Clause]) -> Iterator[set[bytes]]:
    """The keys that each clause lets skip, by one ``_msearch``: the queries are the store's own, and so is the reading
    of a reply."""
    cluster, deadline = store._cluster, Deadline(120.0)
    state = cluster.state(entry.definition.id, deadline.left())
    assert state is not None
    packed = cluster.answers.keys(state, deadline)
    queries = [store._query(state, clause, deadline, True) for clause in clauses]
    asked: list[dict[str, object]] = []
    for query in queries:
        if query is not None:
            asked += [{"index": state.generation}, request_body(query, 0, PAGE)]
    replies = iter(cluster.builder.msearch(searches=asked).body["responses"] if asked else ())
    for query in queries:
        buckets = [] if query is None else whole(next(replies))["aggregations"]["ordinals"]["buckets"]
        ordinals = [KEY_BYTES * int(bucket["key"]) for bucket in buckets]
        yield {bytes(packed[at : at + KEY_BYTES]) for at in ordinals}
