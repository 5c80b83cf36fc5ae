"""A change of a dataset with protected indexes: tokens go to the store, sealed metadata to companions.

Companions are published first. If the store's own publication then fails, a companion knows more objects than the
store; they are objects all the same, and the next change puts them again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from typing import Final

from es_skipping.catalog import DatasetDefinition, DatasetEntry, IndexDefinition, ObjectId, ObjectMetadata
from es_skipping.clauses.metadata import Metadata, Values
from es_skipping.errors import ProtectionError, StoreError
from es_skipping.stores.base import Change, MetadataStore
from es_skipping.stores.protection.companions import Companions, directory_of, own_definition
from es_skipping.stores.protection.keys import key_of
from es_skipping.stores.protection.tokens import Tokenizer, Tokens
from es_skipping.stores.protection.verification import Verification, is_read_otherwise, own_part

__all__ = ["ProtectedChange", "marked"]

_BATCH: Final = 1_000

_COPY: Final = ""
"""Stands for the authenticated copy among the ids of sealed indexes."""


class ProtectedChange(Change):
    """A change whose objects have protected metadata.

    Parameters
    ----------
    change
        Of the store itself.
    definition
        The dataset's.
    companions
        The store's.
    fresh, name
        As of `MetadataStore.change`.
    before
        The definition that the change began with.
    context
        Ends with the change.
    verification
        Keeps an authenticated copy of all that is not sealed; None for no copy.
    """

    def __init__(
        self,
        change: Change,
        definition: DatasetDefinition,
        companions: Companions,
        fresh: bool,
        name: str | None,
        context: ExitStack,
        before: DatasetDefinition | None = None,
        verification: Verification | None = None,
    ) -> None:
        self._change = change
        self._definition = definition
        self._companions = companions
        self._fresh, self._name = fresh, name
        self._context = context
        self._before = before
        self._verification = verification
        self._sealed = {one.id: one for one in definition.indexes if _mode(one) == "sealed"}
        self._hashed = {one.id: one for one in definition.indexes if _mode(one) == "hashed"}
        self._tokenizers: dict[str, Tokenizer] = {}
        self._changes: dict[str, Change] = {}

    def put(self, objects: Iterable[ObjectMetadata]) -> None:
        waiting: dict[str, list[ObjectMetadata]] = {}

        def add(id: str, one: ObjectMetadata) -> None:
            batch = waiting.setdefault(id, [])
            batch.append(one)
            if len(batch) >= _BATCH:
                self._of(id).put(batch)
                batch.clear()

        def split() -> Iterator[ObjectMetadata]:
            for one in objects:
                for id in self._sealed.keys() & one.metadata.keys():
                    add(id, replace(one, metadata={id: one.metadata[id]}))
                in_clear = replace(one, metadata=self._in_clear(one))
                if self._verification is not None:
                    add(_COPY, in_clear)
                yield in_clear

        self._change.put(split())
        for id, batch in waiting.items():
            self._of(id).put(batch)

    def seal(self, id: str, objects: Iterable[ObjectMetadata]) -> None:
        """Put metadata of a sealed index, and nothing into the store itself."""
        self._of(id).put(objects)

    def _in_clear(self, one: ObjectMetadata) -> dict[str, Metadata]:
        """What the store itself gets of an object: nothing that is sealed, tokens of what is hashed."""
        kept: dict[str, Metadata] = {}
        for id, metadata in one.metadata.items():
            if id in self._hashed:
                hashed = isinstance(metadata, Tokens)  # as another store returned it: that takes no key
                tokens = metadata if hashed else self._tokenizer(id).metadata(metadata, one.id.key)
                if isinstance(tokens, Values):
                    kept[id] = Values(tokens.values, tokens.nulls, tokens.nans)
            elif id not in self._sealed:
                kept[id] = metadata
        return kept

    def _tokenizer(self, id: str) -> Tokenizer:
        if id not in self._tokenizers:
            index = self._hashed[id]
            assert index.protection is not None
            self._tokenizers[id] = Tokenizer(index, key_of(index.protection))
        return self._tokenizers[id]

    def _companion(self, id: str) -> tuple[MetadataStore, DatasetDefinition]:
        """A companion, and the definition that it gets."""
        if id == _COPY:
            assert self._verification is not None
            return self._verification.copy(self._definition.id), own_part(self._definition)
        index = self._sealed[id]
        return self._companions.of(self._definition.id, index), own_definition(self._definition, index)

    def _of(self, id: str) -> Change:
        """The change of a companion, begun when it is needed: to drop another index takes no key."""
        if id not in self._changes:
            companion, own = self._companion(id)
            other = _is_other_copy if id == _COPY else _is_of_other_values
            fresh = self._fresh or other(companion, own)
            begun = companion.change(own, fresh=fresh, name=self._name)
            self._changes[id] = self._context.enter_context(begun)
        return self._changes[id]

    def remove(self, objects: Iterable[ObjectId]) -> None:
        gone = list(objects)
        self._change.remove(gone)
        for id in self._readable() if gone else ():
            self._of(id).remove(gone)

    def _readable(self) -> Iterator[str]:
        """The companions whose key is here. Without the key of the authenticated copy there is no change."""
        if self._verification is not None:
            yield _COPY
        for id, index in self._sealed.items():
            try:
                self._companions.of(self._definition.id, index)
            except ProtectionError:
                continue
            yield id

    def publish(self, failed: Iterable[tuple[str, str]] = ()) -> DatasetEntry:
        for id in self._readable():
            if id not in self._changes and not self._fresh:
                companion, own = self._companion(id)
                if not (id == _COPY and _is_other_copy(companion, own)) and _is_of(companion, own):
                    continue
            self._of(id).publish()
        published = self._change.publish(failed)
        self._companions.delete(self._dropped())
        return published

    def _dropped(self) -> list[str]:
        """The companions of indexes that the change drops. One with another key stays for readers of the old key."""
        gone = () if self._before is None else (one for one in self._before.indexes if one.id not in self._sealed)
        salts = [one.protection.salt for one in gone if one.protection is not None and _mode(one) == "sealed"]
        return [directory_of(self._definition.id, salt) for salt in salts]

    def written(self) -> Iterator[ObjectId]:
        if self._verification is None:
            return self._change.written()
        copied = {one.key for one in self._of(_COPY).written()}
        return (one for one in self._change.written() if one.key in copied)

    def read(self, objects: Iterable[ObjectId]) -> Iterator[ObjectMetadata]:
        wanted = list(objects)
        sealed: dict[ObjectId, dict[str, Metadata]] = {}
        for id in self._readable():
            for one in self._of(id).read(wanted) if id != _COPY else ():
                sealed.setdefault(one.id, {}).update(one.metadata)
        for one in self._change.read(wanted):
            yield marked(one, self._hashed, sealed.get(one.id, {}))


def _is_of(companion: MetadataStore, own: DatasetDefinition) -> bool:
    """Whether a companion has this definition."""
    entry = companion.dataset(own.id)
    return entry is not None and entry.definition == own


def _is_of_other_values(companion: MetadataStore, own: DatasetDefinition) -> bool:
    """Whether a companion has metadata of files that were read in another way: a change that died has left it there."""
    before = companion.dataset(own.id)
    return before is not None and (before.definition.format, before.definition.built_with) != (
        own.format,
        own.built_with,
    )


def _is_other_copy(companion: MetadataStore, own: DatasetDefinition) -> bool:
    """Whether an authenticated copy was altered, or made of files that were read in another way."""
    try:
        before = companion.dataset(own.id)
    except StoreError:
        return True
    return before is not None and is_read_otherwise(before.definition, own)


def marked(one: ObjectMetadata, hashed: Iterable[str], sealed: dict[str, Metadata]) -> ObjectMetadata:
    """An object as a store returned it: its tokens marked as such, and with its sealed metadata."""
    known = {**one.metadata, **sealed}
    for id in hashed:
        found = known.get(id)
        if isinstance(found, Values):
            known[id] = Tokens(found.values, found.nulls, found.nans)
    return replace(one, metadata=known)


def _mode(index: IndexDefinition) -> str:
    return "plain" if index.protection is None else index.protection.mode
