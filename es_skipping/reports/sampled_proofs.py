"""Collects candidate indexes of a sample of objects, and asks them about the parts of filters.

The sample's metadata goes through a build's own steps into a store that lives in this process only. The dataset's
metadata stays as it is.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from es_skipping.build.collect import Collection
from es_skipping.build.definitions import defined, defined_dataset, same_index
from es_skipping.build.shipping import ship_package
from es_skipping.catalog import DatasetEntry, IndexDefinition
from es_skipping.clauses.clause import KEEP, Clause
from es_skipping.errors import EsSkippingError
from es_skipping.indexes.base import Index
from es_skipping.lookup.registry import IndexedDataset
from es_skipping.lookup.request import ScanRequest
from es_skipping.lookup.verdict import clause_for
from es_skipping.predicates.tree import Predicate
from es_skipping.stores.base import KEY_BYTES
from es_skipping.stores.memory.files import MemoryFiles
from es_skipping.stores.parquet.store import ParquetStore
from es_skipping.stores.protection.tokens import only_equality
from es_skipping.workload.proofs import Proofs, proofs_of

if TYPE_CHECKING:
    from es_skipping.build.collect import Progress
    from es_skipping.build.source import Source
    from es_skipping.catalog import DatasetDefinition, ObjectId, ObjectMetadata
    from es_skipping.clauses.merge import Trace
    from es_skipping.predicates.tree import Operand
    from es_skipping.stores.base import MetadataStore

__all__ = ["Sample", "SampledProofs", "collected", "stratified", "understood"]

_ID: Final = "sample"


@dataclass(frozen=True, slots=True)
class Sample:
    """Some of a dataset's objects.

    Parameters
    ----------
    objects
        The sampled ones.
    sizes
        The bytes that each stands for; their sum is the dataset's size.
    total
        Number of the dataset's objects.

    Examples
    --------
    >>> Sample((), (), 0).share
    1.0
    """

    objects: tuple[ObjectId, ...]
    sizes: tuple[float, ...]
    total: int

    @property
    def share(self) -> float:
        """The sampled objects' share in the dataset's."""
        return len(self.objects) / self.total if self.total else 1.0


def stratified(objects: Iterable[ObjectId], most: int) -> Sample:
    """Draw objects by size: of as many strata of equal count as there are draws, one object each.

    The draw is random and always the same for the same objects.

    Examples
    --------
    >>> from es_skipping.catalog import ObjectId
    >>> sample = stratified([ObjectId(f"file:/{size}", size, 1) for size in (30, 1, 2, 40)], 2)
    >>> len(sample.objects), sample.sizes, sample.total
    (2, (3.0, 70.0), 4)
    """
    by_size = sorted(objects, key=lambda one: (one.length, one.path))
    count = min(most, len(by_size))
    dice = random.Random(len(by_size))  # noqa: S311 - not a secret
    drawn, sizes = [], []
    for at in range(count):
        stratum = by_size[at * len(by_size) // count : (at + 1) * len(by_size) // count]
        drawn.append(dice.choice(stratum))
        sizes.append(float(sum(one.length for one in stratum)))
    return Sample(tuple(drawn), tuple(sizes), len(by_size))


def understood(
    source: Source, existing: Sequence[Index], candidates: Iterable[Index], predicates: Sequence[Predicate], most: int
) -> list[Index]:
    """The indexes that can be built and that label a part of some filter; no object is read.

    Parameters
    ----------
    existing
        The dataset's indexes. They come first, and are returned even if they label nothing.
    candidates
        The most wanted first.
    most
        Most candidates to return besides the existing indexes.
    """
    kept = _definable(source, existing, [])
    new = _definable(source, candidates, kept)
    labelled: set[str] = set()
    definition = defined_dataset(source, _ID, None, [index for _, index in new], ensure=True).definition
    dataset, request = _dataset(source, definition), _request(source)
    for predicate in predicates:
        trace = _trace(dataset, predicate, request)
        if trace is not None:
            labelled.update(_labels(trace))
    helpful = [index for one, index in new if one.id in labelled]
    return [*(index for _, index in kept), *helpful[:most]]


def _definable(
    source: Source, indexes: Iterable[Index], known: Sequence[tuple[IndexDefinition, Index]]
) -> list[tuple[IndexDefinition, Index]]:
    """The indexes that the dataset's columns can carry, without those that are known."""
    found: list[tuple[IndexDefinition, Index]] = []
    for index in indexes:
        with suppress(EsSkippingError):
            definition, _ = defined(source, index)
            if not any(same_index(one, definition) for one, _ in (*known, *found)):
                found.append((definition, index))
    return found


def _labels(trace: Trace) -> Iterator[str]:
    yield from (id for id, _ in trace.labels)
    for child in trace.children:
        yield from _labels(child)


def _dataset(source: Source, definition: DatasetDefinition, store: MetadataStore | None = None) -> IndexedDataset:
    store = store or ParquetStore("memory:", MemoryFiles())
    entry = store.dataset(_ID) or DatasetEntry(definition, "none", 0, 0, 0)
    return IndexedDataset.of(store, entry)


def _request(source: Source) -> ScanRequest:
    """A scan of the dataset as its build reads it, so that every index fits."""
    return ScanRequest(
        _ID,
        source.roots,
        source.format,
        table=source.table,
        options=source.options,
        data_schema=source.schema,
        settings={name: value for name, value in source.settings.items() if value is not None},
    )


def _trace(dataset: IndexedDataset, predicate: Predicate, request: ScanRequest) -> Trace | None:
    return clause_for(dataset, predicate, request, traced=True).trace


@dataclass(slots=True)
class SampledProofs:
    """The sample's metadata, ready to be asked.

    Parameters
    ----------
    sample
        The objects.
    ids, indexes
        The indexes' ids by number, and the indexes.
    costs
        The bytes that each index takes over all of the dataset's objects.
    hashed
        The ids of hashed indexes: only equality is asked of them.
    operands
        What each index reads.
    """

    sample: Sample
    ids: tuple[str, ...]
    indexes: tuple[Index, ...]
    costs: tuple[float, ...]
    _dataset: IndexedDataset
    _request: ScanRequest
    hashed: frozenset[str] = frozenset()
    operands: tuple[tuple[Operand, ...], ...] = ()
    _answers: dict[Clause, int] = field(default_factory=dict)
    _places: dict[bytes, int] = field(default_factory=dict)

    def of(self, predicate: Predicate) -> Proofs:
        """What each index proves of each part of a filter."""
        trace = _trace(self._dataset, predicate, self._request)
        if trace is None:
            return Proofs()
        numbers = {id: at for at, id in enumerate(self.ids)}
        return proofs_of(trace, numbers, self._refuted, (1 << len(self.sample.objects)) - 1)

    def _refuted(self, clause: Clause) -> int:
        clause = only_equality(clause, self.hashed)
        if clause == KEEP:
            return 0
        known = self._answers.get(clause)
        if known is None:
            keys = self._dataset.store.lookup(self._dataset.entry, clause).skip
            known = 0
            for at in range(0, len(keys), KEY_BYTES):
                known |= 1 << self._places[keys[at : at + KEY_BYTES]]
            self._answers[clause] = known
        return known


@dataclass(slots=True)
class _Sizes:
    """Adds up the bytes that the dataset's store estimates for metadata that passes by."""

    store: MetadataStore
    definitions: Mapping[str, IndexDefinition]
    by_index: dict[str, int] = field(default_factory=dict)

    def noted(self, found: Iterable[ObjectMetadata]) -> Iterator[ObjectMetadata]:
        for one in found:
            for id, metadata in one.metadata.items():
                size = self.store.metadata_size(self.definitions[id], metadata)
                if size is not None:
                    self.by_index[id] = self.by_index.get(id, 0) + size
            yield one


def collected(
    source: Source,
    indexes: Sequence[Index],
    sample: Sample,
    store: MetadataStore,
    known: Mapping[str, float],
    progress: Progress | None = None,
    *,
    hashed: frozenset[str] = frozenset(),
) -> SampledProofs:
    """Collect the metadata of all these indexes from the sampled objects, in one pass over each.

    Parameters
    ----------
    store
        The dataset's; it is only asked how many bytes metadata would take.
    known
        By index id the measured bytes of existing indexes, in place of an estimate.
    hashed
        The ids of existing indexes that are hashed: the sample has their values, and only equality is asked of them.

    Raises
    ------
    DatasetError
        Nothing can be read.
    """
    asked = defined_dataset(source, _ID, None, indexes, ensure=True)
    own = ParquetStore("memory:", MemoryFiles())
    ship_package(source.df.sparkSession)
    sizes = _Sizes(store, {index.id: index for index in asked.definition.indexes})
    with own.change(asked.definition, fresh=True) as change:
        if sample.objects:
            whole = len(sample.objects) == sample.total
            found = Collection(source, progress).metadata(asked.wanted, sample.objects, all_objects=whole)
            change.put(sizes.noted(found))
        entry = change.publish()
    ids = tuple(index.id for index in asked.definition.indexes)
    made = tuple(wanted.index for wanted in asked.wanted)
    factor = 1 / sample.share if sample.objects else 1.0
    estimated = {**entry.metadata_bytes, **sizes.by_index}
    costs = tuple(known.get(id, float(math.ceil(estimated.get(id, 0) * factor))) for id in ids)
    places = {one.key: at for at, one in enumerate(sample.objects)}
    return SampledProofs(
        sample,
        ids,
        made,
        costs,
        _dataset(source, asked.definition, own),
        _request(source),
        hashed,
        tuple(wanted.operands for wanted in asked.wanted),
        _places=places,
    )
