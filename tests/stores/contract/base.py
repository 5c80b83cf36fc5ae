"""What the parts of the contract ask of a store's test module."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar

import pytest

from es_skipping.catalog import DatasetEntry, IndexDefinition, ObjectMetadata
from es_skipping.clauses.clause import Clause
from es_skipping.clauses.evaluate import holds
from es_skipping.clauses.metadata import Metadata
from es_skipping.clauses.questions import Question
from es_skipping.stores.base import MetadataStore
from tests.stores.contract.examples import asks, keys

__all__ = ["StoreTests"]


class StoreTests:
    """What a store's test module gives to the contract, and how a look-up is judged."""

    examples: ClassVar[int] = 60
    """How many random datasets the differential test makes."""

    @pytest.fixture
    @abstractmethod
    def store(self) -> MetadataStore | Iterator[MetadataStore]:
        """An empty store of its own."""
        raise NotImplementedError

    @abstractmethod
    def reopen(self, store: MetadataStore) -> MetadataStore:
        """An independent second handle to the same store, as another process would have it."""

    @abstractmethod
    def tamper_version(self, store: MetadataStore, dataset: str, version: int) -> None:
        """Make the stored dataset claim to be written in this format version."""

    def exact(self, index: IndexDefinition, question: Question) -> bool:
        """Whether this store documents an exact answer here; where it rounds outward it may keep more."""
        return True

    def same_metadata(self, index: IndexDefinition, put: Metadata, read: Metadata) -> bool:
        """Whether metadata came back as it was put, up to what the store documents."""
        return put == read

    clauses_at_once: ClassVar[int] = 500
    steps: ClassVar[int] = 200
    """Of a dataset's life."""

    def ask_all(self, store: MetadataStore, entry: DatasetEntry, clauses: Sequence[Clause]) -> Iterable[set[bytes]]:
        """The keys to skip by each clause; a store that can be asked in batches overrides this."""
        return (keys(store.lookup(entry, clause).skip) for clause in clauses)

    def check(
        self, store: MetadataStore, entry: DatasetEntry, objects: Iterable[ObjectMetadata], clause: Clause
    ) -> int:
        """Compare a look-up with the oracle object by object; returns how many are skipped."""
        answer = store.lookup(entry, clause)
        skip = keys(answer.skip)
        by_key = {one.id.key: one for one in objects}
        assert answer.known == len(by_key)
        assert skip <= by_key.keys(), "an object that was never put is skipped"
        indexes = {index.id: index for index in entry.definition.indexes}
        exact = all(self.exact(indexes[ask.index], ask.question) for ask in asks(clause))
        for key, one in by_key.items():
            verdict = holds(clause, one.metadata)
            if key in skip:
                assert verdict is False, f"unsound: {clause} is {verdict} of {one}"
            elif exact:
                assert verdict is not False, f"kept without need: {clause} is false of {one}"
        return len(skip)
