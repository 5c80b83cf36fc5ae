"""`ProtectedStore`: any metadata store, with hashed and sealed indexes."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any

from es_skipping.catalog import DatasetDefinition, DatasetEntry, IndexDefinition, ObjectId, ObjectMetadata
from es_skipping.clauses.clause import KEEP, Clause, indexes_of
from es_skipping.clauses.metadata import Metadata
from es_skipping.errors import EsSkippingError, ProtectionError, StoreError
from es_skipping.row_groups import files_of
from es_skipping.stores.base import Answer, Change, Check, MetadataStore, StoreQuery
from es_skipping.stores.guarantors import Guarantor, Ordering
from es_skipping.stores.parquet.evaluate import only
from es_skipping.stores.protection.change import ProtectedChange, marked
from es_skipping.stores.protection.companions import Companions, own_definition
from es_skipping.stores.protection.evaluate import evaluated
from es_skipping.stores.protection.keys import key_of
from es_skipping.stores.protection.tokens import Tokenizer, rewritten
from es_skipping.stores.protection.verification import Verification, is_read_otherwise, own_part
from es_skipping.stores.query_log import LoggedQuery

__all__ = ["ProtectedStore", "unprotected"]

_log = logging.getLogger("es_skipping")


class ProtectedStore(MetadataStore):
    """A store whose indexes may be protected. Datasets without a protected index are left to the store as they are.

    Parameters
    ----------
    store
        Keeps all that is in clear, tokens included.
    verify
        The reference of the key with which metadata is authenticated (``verify=mac``); None trusts the store.

    Examples
    --------
    >>> from es_skipping.stores.memory.store import MemoryStore
    >>> ProtectedStore(MemoryStore("memory://scratch")).datasets()
    []
    """

    def __init__(self, store: MetadataStore, verify: str | None = None) -> None:
        self._store = store
        self._companions = Companions(store.files, store.url)
        self._verify = verify
        self._verification = None if verify is None else Verification(verify, self._companions)
        self._lock = threading.Lock()
        self._warned: set[tuple[str, str, str]] = set()

    def __repr__(self) -> str:
        return repr(self._store)

    @property
    def unprotected(self) -> MetadataStore:
        """The store itself."""
        return self._store

    @property
    def url(self) -> str:
        return self._store.url

    # --- datasets and changes --------------------------------------------------------------------------------------

    def datasets(self, *, timeout: float | None = None) -> list[DatasetEntry]:
        return self._store.datasets(timeout=timeout)

    def dataset(self, id: str) -> DatasetEntry | None:
        return self._store.dataset(id)

    @contextmanager
    def change(
        self, definition: DatasetDefinition, *, fresh: bool = False, name: str | None = None
    ) -> Iterator[Change]:
        with ExitStack() as context:
            change = context.enter_context(self._store.change(definition, fresh=fresh, name=name))
            yield self._change(change, definition, fresh, name, context)

    @contextmanager
    def change_with(
        self, definition: DatasetDefinition, name: str, index_settings: Mapping[str, Any]
    ) -> Iterator[Change]:
        with ExitStack() as context:
            change = context.enter_context(self._store.change_with(definition, name, index_settings))
            yield self._change(change, definition, True, name, context)

    @contextmanager
    def change_protection(self, definition: DatasetDefinition) -> Iterator[ProtectedChange]:
        """A change that leaves all metadata as it is, but for what `ProtectedChange.seal` is given."""
        with self.change(definition) as change:
            assert isinstance(change, ProtectedChange)
            yield change

    def sealed_metadata(self, entry: DatasetEntry, index: IndexDefinition) -> Iterator[ObjectMetadata]:
        """The metadata of one sealed index, decrypted.

        Raises
        ------
        ProtectionError
            The key cannot be had.
        """
        return self._companions.of(entry.definition.id, index).metadata(entry.definition.id)

    def _change(
        self, change: Change, definition: DatasetDefinition, fresh: bool, name: str | None, context: ExitStack
    ) -> Change:
        before, verification = self._before(definition.id), self._verification
        if verification is not None:
            verification.copy(definition.id)  # without the key nothing is written
        elif not _protected(definition) and (before is None or not _protected(before)):
            return change
        return ProtectedChange(change, definition, self._companions, fresh, name, context, before, verification)

    def _before(self, id: str) -> DatasetDefinition | None:
        try:
            before = self._store.dataset(id)
        except StoreError:  # damaged: then nothing is left to clean up after it
            return None
        return None if before is None else before.definition

    def must_rebuild(self, entry: DatasetEntry, definition: DatasetDefinition) -> bool:
        if self._store.must_rebuild(entry, definition):
            return True
        if self._verification is None:
            return False
        if is_read_otherwise(own_part(entry.definition), definition):
            return True
        return self._verification.lacks(entry.definition, self._store.keys(entry.definition.id))

    def drop(self, id: str) -> None:
        self._store.drop(id)
        self._companions.delete(self._companions.unused(id, None))

    def superseded(self, id: str) -> list[str]:
        return [*self._store.superseded(id), *self._unused(id)]

    def drop_superseded(self, id: str) -> list[str]:
        unused = self._unused(id)
        self._companions.delete(unused)
        return [*self._store.drop_superseded(id), *unused]

    def _unused(self, id: str) -> list[str]:
        entry = self._store.dataset(id)
        return self._companions.unused(id, None if entry is None else entry.definition, self._verify)

    def log_queries(self, queries: Sequence[LoggedQuery], retention: float) -> None:
        self._store.log_queries(queries, retention)

    def logged_queries(self, dataset: str | None = None, since: int = 0) -> Iterator[LoggedQuery]:
        return self._store.logged_queries(dataset, since)

    def metadata_size(self, index: IndexDefinition, metadata: Metadata) -> int | None:
        return None if index.protection is not None else self._store.metadata_size(index, metadata)

    def checks(self, stale_days: float) -> Iterator[Check]:
        yield from self._store.checks(stale_days)
        for entry in self._store.datasets():
            _, unusable = self._usable(entry, [index.id for index in entry.definition.indexes])
            for index, reason in unusable:
                yield Check(f"key of {index} of {entry.definition.id}", "note", reason)
            if self._verification is not None:
                yield from self._verification.checks(entry, self._store.metadata(entry.definition.id))

    def optimize(self, id: str) -> None:
        self._store.optimize(id)
        for _, companion in self._sealed(id):
            companion.optimize(id)
        if self._verification is not None:
            self._verification.copy(id).optimize(id)

    def close(self) -> None:
        self._companions.close()
        self._store.close()

    # --- reading ---------------------------------------------------------------------------------------------------

    def keys(self, id: str) -> bytes:
        return self._store.keys(id)

    def objects(
        self, id: str, *, under: Collection[str] | None = None, keys: bytes | None = None
    ) -> Iterator[tuple[ObjectId, frozenset[str]]]:
        known = {
            index: {one.key for one, ids in companion.objects(id, under=under, keys=keys) if ids}
            for index, companion in self._sealed(id)
        }
        for one, ids in self._store.objects(id, under=under, keys=keys):
            yield one, ids.union(index for index, keys_of in known.items() if one.key in keys_of) if known else ids

    def metadata(self, id: str) -> Iterator[ObjectMetadata]:
        sealed: dict[ObjectId, dict[str, Metadata]] = {}
        for _, companion in self._sealed(id):
            for one in companion.metadata(id):
                sealed.setdefault(one.id, {}).update(one.metadata)
        entry = self._store.dataset(id)
        hashed = [] if entry is None else [index.id for index in entry.definition.indexes if "hashed" in index.needs]
        stored = self._store.metadata(id)
        if self._verification is not None and entry is not None:  # a copy of altered metadata would be authenticated
            stored = self._verification.metadata(entry.definition, self._store.keys(id))
        for one in stored:
            yield marked(one, hashed, sealed.get(one.id, {})) if hashed or sealed else one

    def _sealed(self, id: str) -> list[tuple[str, MetadataStore]]:
        """The sealed indexes of a dataset that this process can read, with their companions."""
        entry = self._store.dataset(id)
        if entry is None or not _protected(entry.definition):
            return []
        found = []
        for index in _protected(entry.definition).values():
            if index.protection is not None and index.protection.mode == "sealed":
                try:
                    companion = self._companions.of(id, index)
                except ProtectionError as error:
                    self._warn(id, index.id, str(error))
                    continue
                found.append((index.id, companion))
        return found

    # --- look-ups --------------------------------------------------------------------------------------------------

    def lookup(
        self, entry: DatasetEntry, clause: Clause, *, timeout: float | None = None, detail: bool = False
    ) -> Answer:
        if self._verification is None and not _protected(entry.definition).keys() & set(indexes_of(clause)):
            return self._store.lookup(entry, clause, timeout=timeout, detail=detail)
        deadline = None if timeout is None else time.monotonic() + timeout
        answer, failures, gone = self._answer(entry, clause, deadline, detail)
        if gone and (now := self._with_other_keys(entry, _left(deadline))) is not None:
            answer, failures, _ = self._answer(now, clause, deadline, detail)
        for index, reason in failures:
            self._warn(entry.definition.id, index, reason)
        return answer

    def _answer(
        self, entry: DatasetEntry, clause: Clause, deadline: float | None, detail: bool
    ) -> tuple[Answer, list[tuple[str, str]], bool]:
        """The answer, why companions could not be read, and whether metadata of the entry is gone."""
        asked, sealed, unusable = self._asked(entry, clause)
        failures: list[tuple[str, str]] = []
        gone = False

        def in_store(part: Clause, detail: bool) -> Answer:
            nonlocal gone
            answer = self._store.lookup(entry, part, timeout=_left(deadline), detail=detail)
            gone = gone or (answer.known == 0 and entry.objects > 0)
            if self._verification is not None:
                answer = self._verification.checked(entry, part, answer, timeout=_left(deadline), detail=detail)
            return answer

        def in_companion(index: str, part: Clause) -> Answer | None:
            nonlocal gone
            defined = entry.definition.index(index)
            try:
                beside = self._companions.entry(sealed[index], entry, _salt(defined))
                if beside is None:
                    gone = True
                    return None
                beside = replace(beside, definition=own_definition(entry.definition, defined))
                return sealed[index].lookup(beside, part, timeout=_left(deadline))
            except EsSkippingError as error:
                gone = True
                unusable.append((index, f"its sealed metadata cannot be read: {error}"))
                failures.append((index, str(error)))
                return None

        answer = evaluated(asked, sealed.keys(), in_store, in_companion, entry.objects, detail=detail)
        return replace(answer, unusable=tuple(dict.fromkeys((*answer.unusable, *unusable)))), failures, gone

    def _with_other_keys(self, entry: DatasetEntry, timeout: float | None) -> DatasetEntry | None:
        """The dataset as it is now, if only its keys are others: a clause about values means the same there."""
        try:
            found = [one for one in self._store.datasets(timeout=timeout) if one.definition.id == entry.definition.id]
        except StoreError:
            return None
        alike = [one for one in found if _without_keys(one.definition) == _without_keys(entry.definition)]
        return next((one for one in alike if one.snapshot != entry.snapshot), None)

    def _asked(
        self, entry: DatasetEntry, clause: Clause
    ) -> tuple[Clause, dict[str, MetadataStore], list[tuple[str, str]]]:
        """The clause as stores answer it, the companions that it asks, and which indexes cannot be used, and why."""
        usable, unusable = self._usable(entry, indexes_of(clause))
        asked = only(clause, usable)
        tokenizers = {id: one for id, one in usable.items() if isinstance(one, Tokenizer)}
        companions = {id: one for id, one in usable.items() if isinstance(one, MetadataStore)}
        return rewritten(asked, tokenizers.get), companions, unusable

    def _usable(
        self, entry: DatasetEntry, ids: Sequence[str]
    ) -> tuple[dict[str, Tokenizer | MetadataStore | None], list[tuple[str, str]]]:
        protected = _protected(entry.definition)
        usable: dict[str, Tokenizer | MetadataStore | None] = {}
        unusable: list[tuple[str, str]] = []
        for id in ids:
            index = protected.get(id)
            if index is None or index.protection is None:
                usable[id] = None
                continue
            try:
                if index.protection.mode == "sealed":
                    usable[id] = self._companions.of(entry.definition.id, index)
                else:
                    usable[id] = Tokenizer(index, key_of(index.protection))
            except ProtectionError as error:
                unusable.append((id, str(error)))
                self._warn(entry.definition.id, id, str(error))
        return usable, unusable

    def _warn(self, dataset: str, index: str, reason: str) -> None:
        dataset = files_of(dataset)  # an index of files and row groups is told once
        with self._lock:
            if (dataset, index, reason) in self._warned:
                return
            self._warned.add((dataset, index, reason))
        _log.warning("index %s of %s is not used, and skips nothing: %s", index, dataset, reason)

    def guarantors(
        self,
        entry: DatasetEntry,
        clause: Clause,
        k: int,
        ordering: Ordering | None = None,
        *,
        under: Collection[str] | None = None,
        timeout: float | None = None,
    ) -> tuple[Guarantor, ...]:
        protected = _protected(entry.definition)
        if ordering is not None and ordering.index in protected:
            return ()
        in_clear = only(clause, set(indexes_of(clause)) - protected.keys())
        if self._verification is not None:
            return self._verification.guarantors(entry, in_clear, k, ordering, under=under, timeout=timeout)
        return self._store.guarantors(entry, in_clear, k, ordering, under=under, timeout=timeout)

    def metadata_by_key(
        self, entry: DatasetEntry, index: str, *, timeout: float | None = None
    ) -> Mapping[bytes, Metadata | None]:
        if self._verification is not None or index in _protected(entry.definition):
            return {}  # what is read here is neither authenticated nor decrypted
        return self._store.metadata_by_key(entry, index, timeout=timeout)

    def explain(self, entry: DatasetEntry, clause: Clause) -> StoreQuery:
        if self._verification is None and not _protected(entry.definition).keys() & set(indexes_of(clause)):
            return self._store.explain(entry, clause)
        asked, sealed, unusable = self._asked(entry, clause)
        in_store = only(asked, set(indexes_of(asked)) - sealed.keys())
        query = self._store.explain(entry, in_store) if in_store != KEEP else StoreQuery("-- nothing is asked in clear")
        notes = [f"{id} is sealed: this process decrypts and evaluates it" for id in sealed]
        notes += [f"{id} is not used: {reason}" for id, reason in unusable]
        if self._verification is not None:
            notes.append("verify=mac: this process evaluates the clause again on authenticated metadata")
        return replace(query, notes=(*query.notes, *notes))


def unprotected(store: MetadataStore) -> MetadataStore:
    """The store that a `ProtectedStore` protects; any other store as it is."""
    return store.unprotected if isinstance(store, ProtectedStore) else store


def _salt(index: IndexDefinition) -> str:
    assert index.protection is not None
    return index.protection.salt


def _left(deadline: float | None) -> float | None:
    return None if deadline is None else max(deadline - time.monotonic(), 0.001)


def _without_keys(definition: DatasetDefinition) -> DatasetDefinition:
    """The definition but for keys; the modes are among the needs."""
    return replace(definition, covered=None, indexes=tuple(replace(one, protection=None) for one in definition.indexes))


def _protected(definition: DatasetDefinition) -> dict[str, IndexDefinition]:
    return {index.id: index for index in definition.indexes if index.protection is not None}
