"""A cache of the indexed datasets, with a stated lifetime.

A stale cache only skips less: a look-up compares identities, whatever the registry says. A scan that is not indexed
costs no round trip to the store, and no second call to Python. This process's own builds clear both caches.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from es_skipping.catalog import DatasetEntry, IndexDefinition
from es_skipping.clauses.merge import Labeller
from es_skipping.indexes.base import Target
from es_skipping.indexes.filters import filters_of
from es_skipping.indexes.registry import from_definition
from es_skipping.predicates.asked_often import Operands
from es_skipping.predicates.codec import operand_from_data
from es_skipping.row_groups import row_groups_of
from es_skipping.stores.base import MetadataStore

__all__ = ["IndexedDataset", "Registry"]


@dataclass(frozen=True, slots=True)
class IndexedDataset:
    """A dataset of a store, ready to label filters."""

    store: MetadataStore
    entry: DatasetEntry
    labellers: tuple[tuple[IndexDefinition, Labeller], ...]
    unusable: tuple[tuple[str, str], ...] = ()
    row_groups: IndexedDataset | None = None
    """The dataset of its files' row groups; None if it has none."""

    @classmethod
    def of(cls, store: MetadataStore, entry: DatasetEntry) -> IndexedDataset:
        """Make index objects from the definition; leave out one that cannot be made, with its reason."""
        labellers: list[tuple[IndexDefinition, Labeller]] = []
        unusable: list[tuple[str, str]] = []
        for definition in entry.definition.indexes:
            if lacking := entry.definition.not_understood(definition):
                unusable.append((definition.id, f"it needs {', '.join(lacking)}: upgrade es_skipping here"))
                continue
            try:
                operands = Operands(operand_from_data(data) for data in definition.operands)
                target = Target(definition.id, operands, definition.column_types)
                index = from_definition(definition)
                labellers.append((definition, Labeller(index, target, filters_of(type(index)))))
            except Exception as error:  # a plug-in that is missing here or fails: the other indexes still skip
                unusable.append((definition.id, f"{type(error).__name__}: {error}"))
        return cls(store, entry, tuple(labellers), tuple(unusable))


@dataclass(slots=True)
class _Belief:
    read: float
    by_root: dict[str, list[IndexedDataset]] = field(default_factory=dict)
    by_table: dict[str, IndexedDataset] = field(default_factory=dict)


class Registry:
    """Caches the indexed datasets of each store. Safe to use from several threads.

    Parameters
    ----------
    forget_unindexed
        Called after a build; drops the shim's cache of roots that are not indexed.
    """

    def __init__(self, forget_unindexed: Callable[[], None]) -> None:
        self._forget_unindexed = forget_unindexed
        self._beliefs: dict[MetadataStore, _Belief] = {}
        self._lock = threading.Lock()
        self._epoch = 0

    def forget(self) -> None:
        """Read the store again at the next look-up, after a build, a refresh or a drop."""
        with self._lock:
            self._epoch += 1
            self._beliefs.clear()
        self._forget_unindexed()

    def find(
        self,
        store: MetadataStore,
        roots: Iterable[str],
        table: str | None,
        lifetime: float,
        timeout: float | None = None,
        format: str | None = None,
    ) -> list[IndexedDataset]:
        """The datasets that contain these roots.

        Parameters
        ----------
        store
            The store to look in.
        roots
            The scan's roots as Hadoop prints them; each belongs to the dataset of its longest indexed ancestor.
        table
            The scan's table; a dataset of that name is preferred to one at the same place.
        lifetime
            Seconds for which an earlier reading is valid.
        timeout
            Time limit of reading the store, in seconds; None takes a build's limit.
        format
            The scan's format: plain files and a table may be indexed at the same place.

        Raises
        ------
        StoreError
            The store had to be read and failed.
        """
        belief = self._belief(store, lifetime, timeout)
        if table is not None and table in belief.by_table:
            return [belief.by_table[table]]
        if not belief.by_root:
            return []
        found: dict[str, IndexedDataset] = {}
        for root in roots:
            there = _longest_ancestor(belief.by_root, root)
            for dataset in [one for one in there if one.entry.definition.format == format] or there:
                found[dataset.entry.definition.id] = dataset
                break
        return list(found.values())

    def remains(self, store: MetadataStore, lifetime: float) -> float:
        """Seconds for which the cached reading of a store remains valid."""
        with self._lock:
            belief = self._beliefs.get(store)
        return 0.0 if belief is None else belief.read + lifetime - time.monotonic()

    def last_read(self, store: MetadataStore) -> list[IndexedDataset] | None:
        """The datasets of a store when it was read last, however long ago; None if it was not, or changed since."""
        with self._lock:
            belief = self._beliefs.get(store)
        return (
            None
            if belief is None
            else [*belief.by_table.values(), *(one for many in belief.by_root.values() for one in many)]
        )

    def _belief(self, store: MetadataStore, lifetime: float, timeout: float | None) -> _Belief:
        with self._lock:
            belief, epoch = self._beliefs.get(store), self._epoch
        if belief is not None and time.monotonic() - belief.read < lifetime:
            return belief
        fresh = _Belief(time.monotonic())
        entries = {entry.definition.id: entry for entry in store.datasets(timeout=timeout)}
        for entry in entries.values():
            if entry.definition.is_of_row_groups:
                continue
            dataset = IndexedDataset.of(store, entry)
            groups = entries.get(row_groups_of(entry.definition.id))
            if groups is not None and groups.definition.is_of_row_groups:
                dataset = replace(dataset, row_groups=IndexedDataset.of(store, groups))
            if entry.definition.table is not None:
                fresh.by_table[entry.definition.table] = dataset
            for root in entry.definition.roots:
                fresh.by_root.setdefault(root.rstrip("/"), []).append(dataset)
        with self._lock:
            if self._epoch == epoch:  # else a build finished while we read: the next look-up reads again
                self._beliefs[store] = fresh
        return fresh


def _longest_ancestor(by_root: dict[str, list[IndexedDataset]], path: str) -> list[IndexedDataset]:
    path = path.rstrip("/")
    while path:
        if path in by_root:
            return by_root[path]
        parent, separator, _ = path.rpartition("/")
        if not separator:
            break
        path = parent
    return []
