"""The store in memory keeps the contract of every store, all answers exact."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import pytest

from es_skipping.stores.base import MetadataStore
from es_skipping.stores.memory.store import MemoryStore
from tests.stores.contract import StoreContract

_names = count()


class TestMemoryStore(StoreContract):
    examples = 100

    @pytest.fixture
    def store(self) -> Iterator[MetadataStore]:
        store = MemoryStore(f"memory://contract-{next(_names)}")
        yield store
        for entry in store.datasets():
            store.drop(entry.definition.id)

    def reopen(self, store: MetadataStore) -> MetadataStore:
        return MemoryStore(store.url)

    def tamper_version(self, store: MetadataStore, dataset: str, version: int) -> None:
        raise NotImplementedError

    test_a_newer_format_is_refused = None  # type: ignore[assignment]
    """What lies in this process was written by this process: there is no other version."""
