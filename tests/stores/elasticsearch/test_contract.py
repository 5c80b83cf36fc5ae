"""The contract of every store, on a real Elasticsearch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pytest
from elasticsearch import Elasticsearch

from es_skipping.catalog import DatasetEntry, IndexDefinition
from es_skipping.clauses.clause import Clause
from es_skipping.clauses.questions import AnyOf, OtherThan, Overlaps, Question
from es_skipping.predicates.types import DataType
from es_skipping.stores.base import MetadataStore
from es_skipping.stores.elasticsearch.store import ElasticsearchStore
from tests.stores.contract import StoreContract
from tests.stores.contract.queries import Queries
from tests.stores.elasticsearch.conftest import make_store, remove_query_log
from tests.stores.elasticsearch.together import ask_together


class TestElasticsearchStore(Queries, StoreContract):
    """One node for all, emptied after each test."""

    examples = 40
    steps = 60

    @pytest.fixture
    def store(self, elasticsearch_store: ElasticsearchStore, client: Elasticsearch) -> Iterator[ElasticsearchStore]:
        yield elasticsearch_store
        remove_query_log(client, elasticsearch_store._cluster.names.prefix)

    def reopen(self, store: MetadataStore) -> MetadataStore:
        assert isinstance(store, ElasticsearchStore)
        return make_store(store.url, store._cluster.names.prefix)

    def tamper_version(self, store: MetadataStore, dataset: str, version: int) -> None:
        assert isinstance(store, ElasticsearchStore)
        cluster = store._cluster
        cluster.builder.update(index=cluster.names.datasets, id=dataset, doc={"format": version}, refresh=True)

    def settle(self, store: MetadataStore) -> None:
        assert isinstance(store, ElasticsearchStore)
        cluster = store._cluster
        cluster.builder.indices.refresh(index=f"{cluster.names.queries}-*")

    def ask_all(self, store: MetadataStore, entry: DatasetEntry, clauses: Sequence[Clause]) -> Iterable[set[bytes]]:
        assert isinstance(store, ElasticsearchStore)
        return ask_together(store, entry, clauses)

    def exact(self, index: IndexDefinition, question: Question) -> bool:
        """Intervals of strings are told apart by 16 bytes, then by the least and the greatest of all of them."""
        textual = index.value_type.name in ("string", "binary")
        spans = index.kind in ("intervals", "fingerprints")  # of which an object may be remembered by intervals
        return not (spans and textual and isinstance(question, (AnyOf, OtherThan, Overlaps)))

    def rounds(self, type: DataType) -> bool:
        """The server sorts dates by the millisecond, infinities last, and strings as they are cut."""
        return True
