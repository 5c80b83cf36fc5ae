"""``verify=mac``: a store's answers count only as far as authenticated metadata proves them too.

Who can write to a store can edit a bound, and so hide rows from every query. So a builder with the key keeps an
authenticated copy of the metadata that is in clear or hashed: a Parquet store in files encrypted with AES-GCM
(`es_skipping.stores.protection.files`), as a sealed index has one. A look-up evaluates its clause a second time on that
copy, for all objects, and skips what both answers skip.

What is bound, and what a copy of an earlier state can do, is as for sealed indexes (``docs/decisions/0036``).
"""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Final

import numpy as np

from es_skipping.catalog import DatasetDefinition, DatasetEntry, ObjectMetadata
from es_skipping.clauses.clause import Clause, indexes_of
from es_skipping.clauses.metadata import Metadata
from es_skipping.errors import EsSkippingError, StoreError
from es_skipping.row_groups import files_of
from es_skipping.stores.base import KEY_BYTES, Answer, Check, MetadataStore
from es_skipping.stores.covering import covers
from es_skipping.stores.guarantors import Guarantor, Ordering
from es_skipping.stores.object_list import Keys, as_keys, is_among
from es_skipping.stores.protection.agreement import Agreement
from es_skipping.stores.protection.companions import Companions
from es_skipping.stores.selection import Selection, Selections

__all__ = ["Verification", "is_read_otherwise", "own_part"]

_MAX_CHECKED_OBJECTS: Final = 100_000
"""`Verification.checks` compares all objects of a smaller dataset, and about this many of a larger one."""

_log = logging.getLogger("es_skipping")


def own_part(definition: DatasetDefinition) -> DatasetDefinition:
    """A dataset's definition as its authenticated copy holds it: without sealed indexes, which need no copy."""
    indexes = (one for one in definition.indexes if one.mode != "sealed")
    return replace(definition, indexes=tuple(indexes), covered=None)


def is_read_otherwise(before: DatasetDefinition, now: DatasetDefinition) -> bool:
    """Whether anything but its indexes differs between two definitions of a dataset.

    An authenticated copy is begun anew then: the definition may come from the store, where others can write.
    """
    return replace(before, indexes=(), covered=None) != replace(now, indexes=(), covered=None)


class Verification:
    """The authenticated copies of a store's datasets. Safe to use from several threads.

    Parameters
    ----------
    reference
        Of the key (`es_skipping.stores.protection.keys`).
    companions
        The store's.
    """

    def __init__(self, reference: str, companions: Companions) -> None:
        self._reference = reference
        self._companions = companions
        self._lock = threading.Lock()
        self._warned: set[tuple[str, str]] = set()
        self._agreement = Agreement()

    def copy(self, dataset: str) -> MetadataStore:
        """The authenticated copy of a dataset.

        Raises
        ------
        ProtectionError
            The key or a library is missing, or the store keeps no files.
        """
        return self._companions.authentic(dataset, self._reference)[0]

    # --- look-ups --------------------------------------------------------------------------------------------------

    def checked(
        self, entry: DatasetEntry, clause: Clause, answer: Answer, *, timeout: float | None = None, detail: bool = False
    ) -> Answer:
        """A store's answer to a clause, without the objects that the copy does not prove.

        Parameters
        ----------
        clause
            As the store was asked: about tokens, if an index is hashed.
        """
        if not answer.skipped and not any(answer.by_index.values()):
            return answer
        deadline = None if timeout is None else time.monotonic() + timeout
        try:
            copy, beside = self._beside(entry)
            if beside is None:
                return self._refused(entry, clause, answer, "it was built without spark.es_skipping.verify=mac")
            left = None if deadline is None else max(deadline - time.monotonic(), 0.001)
            proved = copy.lookup(beside, clause, timeout=left, detail=detail)
            by_index = {id: min(count, proved.by_index.get(id, 0)) for id, count in answer.by_index.items()}
            if not answer.skipped:
                return replace(answer, by_index=by_index)
            both = replace(answer, found=self._agreement.both(answer.found, proved.found), by_index=by_index)
            if both.skipped == answer.skipped:
                return both
            claimed = as_keys(answer.skip)
            reason = self._why(copy, entry, beside, claimed[~is_among(claimed, np.sort(as_keys(both.skip)))])
        except EsSkippingError as error:
            return self._refused(entry, clause, answer, f"its authenticated metadata cannot be read: {error}")
        return self._refused(entry, clause, both, reason, both.found)

    def _beside(self, entry: DatasetEntry) -> tuple[MetadataStore, DatasetEntry | None]:
        copy, name = self._companions.authentic(entry.definition.id, self._reference)
        found = self._companions.entry(copy, entry, name)
        return copy, None if found is None else replace(found, definition=own_part(entry.definition))

    def _why(self, copy: MetadataStore, entry: DatasetEntry, beside: DatasetEntry, left: Keys) -> str:
        """Why objects are not proved, for people."""
        found = copy.dataset(entry.definition.id)
        if found is not None and found.definition != beside.definition:
            return "its definition is not the authenticated one"
        if not is_among(left, np.sort(as_keys(copy.keys(entry.definition.id)))).any():
            return "some objects have no authenticated metadata"
        return "what the store holds of it would skip objects that its authenticated metadata keeps"

    def _refused(
        self,
        entry: DatasetEntry,
        clause: Clause,
        answer: Answer,
        reason: str,
        proved: bytes | Selection | Selections = b"",
    ) -> Answer:
        dataset, text = files_of(entry.definition.id), f"verify=mac: {reason}"  # files and row groups are told once
        with self._lock:
            new = (dataset, text) not in self._warned
            self._warned.add((dataset, text))
        if new:
            indexes = ", ".join(dict.fromkeys(indexes_of(clause)))
            _log.warning("%s of %s skips nothing, or less than it could: %s", indexes, dataset, text)
        unusable = tuple((id, text) for id in dict.fromkeys(indexes_of(clause)))
        by_index = answer.by_index if proved != b"" else dict.fromkeys(answer.by_index, 0)
        return replace(answer, found=proved, by_index=by_index, unusable=(*answer.unusable, *unusable))

    def guarantors(
        self,
        entry: DatasetEntry,
        clause: Clause,
        k: int,
        ordering: Ordering | None,
        *,
        under: Collection[str] | None,
        timeout: float | None,
    ) -> tuple[Guarantor, ...]:
        """What the copy guarantees; the store's own word proves nothing."""
        try:
            copy, beside = self._beside(entry)
            if beside is None:
                return ()
            return copy.guarantors(beside, clause, k, ordering, under=under, timeout=timeout)
        except EsSkippingError:
            return ()  # the look-up of the filter says why

    # --- builds ----------------------------------------------------------------------------------------------------

    def lacks(self, definition: DatasetDefinition, keys: bytes) -> bool:
        """Whether the copy lacks metadata of some of these objects, or is of another definition, or was altered."""
        copy = self.copy(definition.id)
        try:
            found = copy.dataset(definition.id)
            if found is None or found.definition != own_part(definition):
                return True
            return not bool(is_among(as_keys(keys), np.sort(as_keys(copy.keys(definition.id)))).all())
        except StoreError:
            return True

    def metadata(self, definition: DatasetDefinition, keys: bytes) -> Iterator[ObjectMetadata]:
        """The authenticated metadata of the objects with these keys.

        Raises
        ------
        StoreError
            The copy lacks some of it.
        """
        if self.lacks(definition, keys):
            raise StoreError(
                f"verify=mac: the authenticated metadata of dataset {definition.id!r} is incomplete or was altered: "
                "refresh the dataset first"
            )
        wanted = np.sort(as_keys(keys))
        for one in self.copy(definition.id).metadata(definition.id):
            if is_among(as_keys(one.id.key), wanted)[0]:
                yield one

    # --- doctor ----------------------------------------------------------------------------------------------------

    def checks(self, entry: DatasetEntry, stored: Iterable[ObjectMetadata]) -> Iterator[Check]:
        """Compares what the store holds with the authenticated metadata.

        Parameters
        ----------
        stored
            The store's own metadata of the dataset.
        """
        definition = entry.definition
        name = f"authenticity of {definition.id}"
        try:
            copy = self.copy(definition.id)
            found = copy.dataset(definition.id)
            if found is None:
                yield Check(name, "note", "it was built without spark.es_skipping.verify=mac: refresh it")
                return
            if found.definition != own_part(definition):
                yield Check(name, "bad", "its definition is not the authenticated one: refresh it, and see who wrote")
                return
            chosen = _Chosen(found.objects)
            authentic = {one.id.key: one for one in copy.metadata(definition.id) if chosen.has(one.id.key)}
            yield _compared(name, {index.id for index in found.definition.indexes}, chosen, authentic, stored)
        except EsSkippingError as error:
            yield Check(name, "bad", f"its authenticated metadata cannot be read: {error}")


class _Chosen:
    """The objects that are compared: nobody who writes to the store can know which."""

    def __init__(self, objects: int) -> None:
        self.share = min(1.0, _MAX_CHECKED_OBJECTS / max(1, objects))
        self._mask = int.from_bytes(secrets.token_bytes(KEY_BYTES), "big")

    def has(self, key: bytes) -> bool:
        if self.share == 1.0:
            return True
        mixed = int.from_bytes(key, "big") ^ self._mask  # keys are digests
        return mixed < self.share * (1 << 8 * KEY_BYTES)


def _compared(
    name: str,
    indexes: set[str],
    chosen: _Chosen,
    authentic: Mapping[bytes, ObjectMetadata],
    stored: Iterable[ObjectMetadata],
) -> Check:
    count = altered = missing = 0
    example = ""
    for one in stored:
        if not chosen.has(one.id.key):
            continue
        count += 1
        if (known := authentic.get(one.id.key)) is None:
            missing += 1
            continue
        ids = sorted(indexes & one.metadata.keys())
        wrong = [id for id in ids if not _allows(one.metadata[id], known.metadata.get(id))]
        if wrong or one.rows not in (None, known.rows):
            altered += 1
            example = example or f"{', '.join(wrong) or 'the number of rows'} of {one.id.path}"
    sampled = "" if chosen.share == 1.0 else f" (a sample of {100 * chosen.share:.0f} %)"
    if altered:
        return Check(name, "bad", f"{altered} of {count} objects differ{sampled}; the first: {example}")
    if missing:
        return Check(name, "note", f"{missing} of {count} objects have no authenticated metadata{sampled}: refresh")
    return Check(name, "good", f"{count} objects are as they were built{sampled}")


def _allows(stored: Metadata, authentic: Metadata | None) -> bool:
    return authentic is not None and covers(stored, authentic)
