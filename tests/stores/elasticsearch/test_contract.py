"""The contract of every store, on a real Elasticsearch."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pytest

from es_skipping.clauses.clause import Clause
from es_skipping.clauses.questions import AnyOf, OtherThan, Overlaps, Question
from es_skipping.stores.base import KEY_BYTES, DatasetEntry, IndexDefinition, MetadataStore
from es_skipping.stores.elasticsearch.answers import PAGE, Deadline, request_body, whole
from es_skipping.stores.elasticsearch.store import ElasticsearchStore
from tests.stores.contract import StoreContract
from tests.stores.elasticsearch.conftest import make_store


class TestElasticsearchStore(StoreContract):
    """One node for all, emptied after each test."""

    examples = 40
    steps = 60

    @pytest.fixture
    def store(self, elasticsearch_store: ElasticsearchStore) -> ElasticsearchStore:
        return elasticsearch_store

    def reopen(self, store: MetadataStore) -> MetadataStore:
        assert isinstance(store, ElasticsearchStore)
        return make_store(store.url, store._cluster.names.prefix)

    def tamper_version(self, store: MetadataStore, dataset: str, version: int) -> None:
        assert isinstance(store, ElasticsearchStore)
        cluster = store._cluster
        cluster.builder.update(index=cluster.names.datasets, id=dataset, doc={"format": version}, refresh=True)

    def ask_all(self, store: MetadataStore, entry: DatasetEntry, clauses: Sequence[Clause]) -> Iterable[set[bytes]]:
        """One ``_msearch`` for many clauses: their queries are the store's own, and so is the reading of a reply."""
        assert isinstance(store, ElasticsearchStore)
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

    def exact(self, index: IndexDefinition, question: Question) -> bool:
        """Intervals of strings are told apart by 16 bytes, then by the least and the greatest of all of them."""
        textual = index.value_type.name in ("string", "binary")
        spans = index.kind in ("intervals", "fingerprints")  # of which an object may be remembered by intervals
        return not (spans and textual and isinstance(question, (AnyOf, OtherThan, Overlaps)))
