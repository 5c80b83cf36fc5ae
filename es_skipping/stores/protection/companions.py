"""Sealed indexes: each has a Parquet store of its own, in encrypted files beside the dataset's other metadata.

Such a *companion* holds its own snapshots, whose definition and identities are authenticated with everything else.
Whoever can write to the files can take metadata away, or bring an earlier snapshot back. Neither skips wrongly, because
metadata is about an object's identity.
"""

from __future__ import annotations

import contextlib
import threading
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from es_skipping.catalog import DatasetDefinition, DatasetEntry, IndexDefinition
from es_skipping.errors import ProtectionError, StoreError
from es_skipping.stores.base import MetadataStore
from es_skipping.stores.files import Files
from es_skipping.stores.protection.files import Below, SealedFiles
from es_skipping.stores.protection.keys import key_of, load_key

__all__ = ["SEALED", "Companions", "directory_of", "own_definition"]

SEALED: Final = ".sealed"
"""The directory of all companions; no dataset's id begins with a dot."""

_AUTHENTIC: Final = "authentic-"
"""Begins the names of authenticated copies (`es_skipping.stores.protection.verification`); a salt has no hyphen."""

_MAX_OPEN: Final = 256


def own_definition(definition: DatasetDefinition, index: IndexDefinition) -> DatasetDefinition:
    """A dataset's definition as the companion of one of its indexes holds it."""
    return replace(definition, indexes=(index,), covered=None)


def directory_of(dataset: str, salt: str) -> str:
    """Where the companion of one index lies, below the store's files."""
    return f"{SEALED}/{dataset}/{salt}"


class Companions:
    """The companions of the datasets of one store. Safe to use from several threads.

    Parameters
    ----------
    files
        Where the store keeps files beside its metadata; None if it cannot.
    url
        The store's URL in messages.
    """

    def __init__(self, files: Files | None, url: str) -> None:
        self._files = files
        self._url = url
        self._lock = threading.Lock()
        self._open: OrderedDict[tuple[str, str], tuple[bytes, MetadataStore]] = OrderedDict()
        self._entries: OrderedDict[tuple[str, str, str], DatasetEntry | None] = OrderedDict()

    def of(self, dataset: str, index: IndexDefinition) -> MetadataStore:
        """The companion of a sealed index.

        Raises
        ------
        ProtectionError
            Its key or a library is missing, the key is another, or the store keeps no files.
        """
        protection = index.protection
        assert protection is not None
        if self._files is None:
            raise ProtectionError(f"{self._url} keeps no sealed indexes: that takes Elasticsearch or a Parquet store")
        secret = key_of(protection).derived("seal", protection.salt, dataset, index.id)
        return self._opened(self._files, dataset, protection.salt, secret)

    def authentic(self, dataset: str, reference: str) -> tuple[MetadataStore, str]:
        """The authenticated copy of a dataset under the key with this reference, and its name.

        Each key has a copy of its own.

        Raises
        ------
        ProtectionError
            The key or a library is missing, or the store keeps no files.
        """
        if self._files is None:
            raise ProtectionError(f"{self._url} cannot verify metadata: that takes Elasticsearch or a Parquet store")
        key = load_key(reference)
        name = _AUTHENTIC + key.derived("verify name", dataset)[:16].hex()
        return self._opened(self._files, dataset, name, key.derived("verify", dataset)), name

    def _opened(self, files: Files, dataset: str, name: str, secret: bytes) -> MetadataStore:
        from es_skipping.stores.parquet.store import ParquetStore

        at = (dataset, name)
        with self._lock:
            held = self._open.get(at)
            if held is None or held[0] != secret:
                directory = directory_of(dataset, name)
                sealed = SealedFiles(Below(files, directory), secret)
                held = self._open[at] = secret, ParquetStore(f"{self._url}/{directory}", sealed)
            self._open.move_to_end(at)
            while len(self._open) > _MAX_OPEN:
                self._open.popitem(last=False)
        return held[1]

    def entry(self, companion: MetadataStore, entry: DatasetEntry, name: str) -> DatasetEntry | None:
        """The companion's dataset as it is read beside a snapshot of the store; None if nothing was ever published.

        Parameters
        ----------
        name
            The companion's: an index's salt, or as `authentic` returns it.
        """
        at = (entry.definition.id, name, entry.snapshot)
        with self._lock:
            if at in self._entries:
                self._entries.move_to_end(at)
                return self._entries[at]
        found = companion.dataset(entry.definition.id)
        with self._lock:
            self._entries[at] = found
            while len(self._entries) > _MAX_OPEN:
                self._entries.popitem(last=False)
        return found

    def unused(self, dataset: str, definition: DatasetDefinition | None, reference: str | None = None) -> list[str]:
        """The directories of a dataset's companions that belong to none of these indexes.

        Authenticated copies are among them only if no index is left, or if a key is given that they are not of.
        """
        protections = () if definition is None else (index.protection for index in definition.indexes)
        used = {protection.salt for protection in protections if protection is not None}
        if definition is not None and reference is not None:
            used.add(self.authentic(dataset, reference)[1])
        with contextlib.suppress(OSError, StoreError):
            names = [] if self._files is None else self._files.list(f"{SEALED}/{dataset}")
            if definition is not None and reference is None:
                used.update(name for name in names if name.startswith(_AUTHENTIC))
            there = [directory_of(dataset, name) for name in sorted(names) if name not in used]
            return [directory for directory in there if self._holds_files(f"{directory}/{dataset}")]
        return []

    def _holds_files(self, directory: str) -> bool:
        """Whether a companion's directory holds anything; on some file systems empty directories stay."""
        assert self._files is not None
        return any(self._files.list(f"{directory}/{part}") for part in ("manifests", "segments"))

    def delete(self, directories: Iterable[str]) -> None:
        """Delete companions; no key is needed. What cannot be deleted stays."""
        if self._files is not None:
            with contextlib.suppress(OSError, StoreError):
                for directory in directories:
                    _delete_all(self._files, directory)

    def close(self) -> None:
        with self._lock:
            companions = [companion for _, companion in self._open.values()]
            self._open.clear()
            self._entries.clear()
        for companion in companions:
            companion.close()


def _delete_all(files: Files, path: str) -> None:
    names = files.list(path)
    for name in names:
        _delete_all(files, f"{path}/{name}")
    with contextlib.suppress(OSError):  # directories vanish by themselves, or stay empty
        files.delete(path)
