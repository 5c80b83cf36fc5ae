"""Brings a dataset's metadata up to date; create, ensure and refresh share this."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from es_skipping.build.budget import Budget
from es_skipping.build.collect import Collection, Progress
from es_skipping.build.collected import Collected, Put
from es_skipping.build.definitions import Defined, defined_dataset, only_schema_differs
from es_skipping.build.dimensions import refuse_protected
from es_skipping.build.effectiveness import Effectiveness
from es_skipping.build.executor_writing import LEARNED, ExecutorWriting
from es_skipping.build.listing import Listing, Restriction, changed_since, settled
from es_skipping.build.narrowing import has_glob, narrowed
from es_skipping.build.open_files import open_among
from es_skipping.build.results import RefreshResult
from es_skipping.build.row_groups import RowGroupsUpdate
from es_skipping.build.shipping import ship_package
from es_skipping.build.source import Source
from es_skipping.build.table_formats import refuse_table_formats
from es_skipping.build.wanted import Wanted
from es_skipping.catalog import DatasetDefinition, ObjectId, ObjectMetadata
from es_skipping.errors import DatasetError, StoreConflict
from es_skipping.indexes.base import Index
from es_skipping.indexes.induced import Induced
from es_skipping.spark.formats import TABLES
from es_skipping.spark.relations import existing_files
from es_skipping.stores.base import check_understood
from es_skipping.stores.object_list import Keys, ObjectList, as_keys, is_among
from es_skipping.stores.protection.rotation import with_new_key

if TYPE_CHECKING:
    import numpy.typing as npt
    from pyspark.sql import SparkSession

    from es_skipping.build.origin import Changes
    from es_skipping.build.source import Reading
    from es_skipping.catalog import DatasetEntry
    from es_skipping.stores.base import Change, MetadataStore

__all__ = ["Rebuild", "Update"]

Rebuild: TypeAlias = Literal["always", "schema", "never"]


@dataclass(frozen=True, slots=True)
class _Plan:
    """The work that leads from the stored metadata to the wanted metadata."""

    definition: DatasetDefinition
    wanted: tuple[Wanted, ...]
    fresh: bool
    all_indexes: ObjectList
    """Objects without metadata."""
    new_indexes: ObjectList
    """Objects that lack the indexes ``new``."""
    new: frozenset[str]
    gone: tuple[ObjectId, ...]
    removed: int
    """Number of paths without an object now."""
    known: Keys
    """The stored objects' keys, sorted."""
    known_paths: frozenset[str]
    """The paths of stored objects that have changed or disappeared."""
    unchanged: int

    def without(self, left: Iterable[ObjectId]) -> _Plan:
        """The same plan without these objects."""
        keys = np.sort(ObjectList(left).keys)
        every, new = (part.those(~is_among(part.keys, keys)) for part in (self.all_indexes, self.new_indexes))
        return replace(self, all_indexes=every, new_indexes=new)


@dataclass(frozen=True)
class Update:
    """One run of create, ensure or refresh.

    Parameters
    ----------
    spark
        A classic session.
    store, id, reading
        The metadata store, the dataset's id, and how to read the dataset.
    add
        Indexes to add.
    ensure
        Whether an index that exists already is accepted.
    must_exist
        Whether the dataset must have an index already, as for a refresh.
    budget
        Limit of one object's metadata in bytes; None for no limit.
    writers
        Number of executor tasks that write metadata at the same time; None if the driver writes.
    collected
        The metadata of earlier attempts at this update; a conflict adds this attempt's.
    retain_removed
        Whether metadata of objects that a table removed is kept while their files exist.
    granularity
        Whether row groups get metadata of their own; None keeps what the dataset has.
    new_key
        ``(to_key, from_key)`` of `es_skipping.stores.protection.rotation.with_new_key`: all metadata is built anew.
    rebuild
        Whether all metadata may be built anew, because this session reads the dataset otherwise than the last build:
        ``always``, only if it is a table whose own ``schema`` has changed, or ``never``.
    """

    spark: SparkSession
    store: MetadataStore
    id: str
    reading: Reading
    add: Sequence[Index] = ()
    ensure: bool = False
    must_exist: bool = False
    paths: Any = None
    partitions: Any = None
    progress: Progress | None = None
    budget: int | None = None
    writers: int | None = None
    collected: Collected | None = None
    retain_removed: bool = False
    granularity: str | None = None
    new_key: tuple[str, str | None] | None = None
    rebuild: Rebuild = "always"

    def run(self) -> RefreshResult:
        """List the dataset, compare, collect the new metadata, and publish all of it at once.

        Raises
        ------
        EsSkippingError
            The update failed and changed nothing.
        """
        self._tell(0, 0, "list")
        entry = self.store.dataset(self.id)
        if self.must_exist and (entry is None or not entry.definition.indexes):
            raise DatasetError(
                f"{self.reading.name} has no index to refresh in the store {self.store.url}; create one with "
                "create_indexes, or set spark.es_skipping.store.url to the store that has it"
            )
        if self.reading.format not in TABLES:
            refuse_table_formats(self.spark, self.reading.paths, self.reading.name)
        part = None
        if entry is not None and not self.add and (self.paths is None) != (self.partitions is None):
            part = narrowed(self.spark, self.reading, entry.definition, self.paths, self.partitions)
        reading = self.reading if part is None else part.reading
        source = Source.open(self.spark, reading)
        with closing(source.origin):
            if source.is_table:
                return self._of_table(entry, source)
            listing = settled(self.spark, reading, source, *([] if part is None else [part.restored]))
            refuse_table_formats(self.spark, set(listing.source.roots) - set(self.reading.paths), self.reading.name)
            restriction = self._restriction(entry, listing.source)
            defined = self._defined(entry, listing.source, restriction)
            result = self._run(entry, listing, reading, defined, restriction, None if part is None else part.paths)
            self._row_groups(reading).run(listing, defined, restriction, partly=part is not None)
            return result

    def _row_groups(self, reading: Reading) -> RowGroupsUpdate:
        return RowGroupsUpdate(self.spark, self.store, self.id, reading, self.granularity, self.budget, self.progress)

    def _of_table(self, entry: DatasetEntry | None, source: Source) -> RefreshResult:
        if self.partitions is not None:
            raise DatasetError(
                f"{self.reading.name} is a {source.format} table, whose paths do not tell partitions: refresh "
                "without partitions, which reads the table's log and not its directories"
            )
        restriction = self._restriction(entry, source)
        defined = self._defined(entry, source, restriction)
        self._row_groups(self.reading).refuse()
        changes = self._changes(entry, source, defined, restriction)
        if changes is None:
            return self._run(entry, Listing(source, source.objects(), {}), self.reading, defined, restriction, None)
        with closing(changes.origin):
            source = replace(source, origin=changes.origin)
            listing = Listing(source, source.objects(), {}, changes.removed)
            touched = changes.removed.union(object.path for object in listing.objects)
            return self._run(entry, listing, self.reading, defined, restriction, touched)

    def _changes(
        self, entry: DatasetEntry | None, source: Source, defined: Defined, restriction: Restriction
    ) -> Changes | None:
        """What the table changed since the metadata's snapshot; None if all of its objects are needed, or unknown."""
        covered = None if entry is None else entry.definition.covered
        if entry is None or covered is None or covered.retained or self.retain_removed:
            return None
        if defined.fresh or defined.new or entry.failed or not restriction.everything:
            return None
        return source.origin.changes_since(covered)

    def _restriction(self, entry: DatasetEntry | None, source: Source) -> Restriction:
        restriction = Restriction(self.spark, self.paths, self.partitions, source.partition_columns)
        if self.reading.table is None and not any(has_glob(path) for path in self.reading.paths):
            known = entry.definition.roots if entry is not None else ()
            restriction.refuse_elsewhere(self.reading.name, (*source.roots, *known))
        return restriction

    def _defined(self, entry: DatasetEntry | None, source: Source, restriction: Restriction) -> Defined:
        stored = entry.definition if entry is not None else None
        if stored is not None:  # an index made again lacks its needs: of a protected one all would be in clear
            check_understood(stored)
        rotated = stored if stored is None or self.new_key is None else with_new_key(stored, *self.new_key)
        defined = defined_dataset(source, self.id, rotated, self.add, ensure=self.ensure)
        there = () if stored is None else {one.id for one in stored.indexes}
        for one in defined.wanted:
            if isinstance(one.index, Induced) and one.index.protect is None and one.id not in there:
                refuse_protected(source, one.index, self.store)
        if rotated != stored:  # stored tokens are of the old key
            defined = replace(defined, fresh=True)
        if (
            stored is not None
            and defined.fresh
            and not (restriction.everything and self._may_rebuild(source, stored, defined.definition))
        ):
            raise DatasetError(
                f"{self.reading.name} has another schema, other options or other settings than when it was indexed: "
                "call refresh() without paths and partitions to index all of it again"
            )
        whole = self.rebuild == "always" and restriction.everything and not defined.fresh
        if entry is not None and whole and self.store.must_rebuild(entry, defined.definition):
            defined = replace(defined, fresh=True)
        if stored is not None and not restriction.everything:  # the other objects still await their refresh
            definition = defined.definition
            before = {index.id: index.parameters for index in stored.indexes}
            kept = tuple(replace(one, parameters=before.get(one.id, one.parameters)) for one in definition.indexes)
            defined = replace(defined, definition=replace(definition, indexes=kept))
        return defined

    def _may_rebuild(self, source: Source, stored: DatasetDefinition, now: DatasetDefinition) -> bool:
        if self.rebuild == "schema":  # no session chooses the schema of a table
            return (source.is_table or source.table is not None) and only_schema_differs(stored, now)
        return self.rebuild == "always"

    def _run(
        self,
        entry: DatasetEntry | None,
        listing: Listing,
        reading: Reading,
        defined: Defined,
        restriction: Restriction,
        under: Sequence[str] | frozenset[str] | None,
    ) -> RefreshResult:
        plan = self._plan(entry, listing, defined, restriction, under)
        unsettled = {object: why for object, why in listing.unsettled.items() if restriction.holds(object.path)}
        unsettled |= (written := open_among(listing.source, chain(plan.all_indexes, plan.new_indexes)))
        plan = plan.without(written)
        elsewhere = tuple(
            failure
            for failure in (entry.failed if entry and not plan.fresh else ())
            if not restriction.holds(failure[0])
        )
        nothing_to_do = not (plan.fresh or len(plan.all_indexes) or len(plan.new_indexes) or plan.gone)
        if entry is not None and nothing_to_do and plan.definition == entry.definition:
            before = {path for path, _ in entry.failed}
            if before == {object.path for object in unsettled} | {path for path, _ in elsewhere}:
                return RefreshResult(unchanged=plan.unchanged, failed=_failures(unsettled))
        ship_package(self.spark)
        hidden = any(one.is_protected for one in plan.wanted)
        collection = Collection(listing.source, self.progress, withheld=hidden)
        with ExitStack() as context:
            # With a name, the store keeps what the change replaces: readers may lack the new key.
            name = None if self.new_key is None or not plan.fresh else secrets.token_hex(8)
            change = context.enter_context(self.store.change(plan.definition, fresh=plan.fresh, name=name))
            if listing.removed is not None and _snapshot(self.store.dataset(self.id)) != _snapshot(entry):
                raise StoreConflict(f"another writer changed dataset {self.id!r} at the same time: run it again")
            budget = Budget.of_build(self.budget, entry, adds=bool(plan.new_indexes))
            put = Put(plan.known_paths)
            effectiveness = Effectiveness(_created(entry, plan))
            writing = None
            if self.writers is not None and budget is None:  # only one place applies and counts a budget
                writing = ExecutorWriting(self.spark, change, self.writers, put.note)
            try:
                self._put(change, collection, plan, listing, budget, writing, put, effectiveness)
                self._tell(0, 0, "check")
                changed = set(changed_since(self.spark, reading, listing, plan.all_indexes, plan.new_indexes))
                change.remove([*plan.gone, *changed])
                failed = {object: why for object, why in collection.failed.items() if object not in changed}
                failed.update(dict.fromkeys(changed, "changed while it was read; the next refresh indexes it"))
                failed.update(unsettled)
                self._tell(0, 0, "publish")
                change.publish((*_failures(failed), *elsewhere))
            except StoreConflict:
                if self.collected is not None and change.outlives_conflict:
                    parts = put.parts(collection.failed)
                    self.collected.keep(context.pop_all(), change, plan.definition, parts, collection.unknown, budget)
                raise
        added, updated = put.counts(failed, plan.known)
        return RefreshResult(
            added=added,
            updated=updated,
            removed=plan.removed,
            unchanged=plan.unchanged,
            failed=_failures(failed),
            unknown=tuple(sorted(collection.unknown.items())),
            degraded=budget.reported() if budget is not None else (),
            by_executors=writing.written if writing is not None else 0,
            effectiveness=effectiveness.measured(),
        )

    def _put(
        self,
        change: Change,
        collection: Collection,
        plan: _Plan,
        listing: Listing,
        budget: Budget | None,
        writing: ExecutorWriting | None,
        put: Put,
        effectiveness: Effectiveness,
    ) -> None:
        def noted(found: Iterator[ObjectMetadata]) -> Iterator[ObjectMetadata]:
            for one in effectiveness.watched(found):
                put.note(one.id)
                yield one

        everything = len(listing.objects) + len(listing.unsettled)
        new = tuple(wanted for wanted in plan.wanted if wanted.id in plan.new)
        # The first objects show the store which fields to create, and executors need these fields.
        first = LEARNED if writing is not None else len(plan.all_indexes)
        places = np.arange(len(plan.all_indexes))
        parts = (
            (plan.wanted, plan.all_indexes.those(places < first), None, False),
            (plan.wanted, plan.all_indexes.those(places >= first), writing, False),
            (new, plan.new_indexes, None, True),
        )
        for wanted, objects, by, added in parts:
            if wanted and len(objects):
                rest = objects
                with put.part(frozenset(one.id for one in wanted)) as part:
                    if self.collected is not None:
                        earlier = self.collected.read(
                            plan.definition, part.indexes, objects, collection.unknown, budget
                        )
                        change.put(noted(earlier))
                        rest = objects.those(~is_among(objects.keys, part.sorted()))
                    if len(rest):
                        found = collection.metadata(wanted, rest, all_objects=len(rest) == everything, writing=by)
                        change.put(noted(found if budget is None else budget.kept(found, len(wanted), added=added)))

    def _plan(
        self,
        entry: DatasetEntry | None,
        listing: Listing,
        defined: Defined,
        restriction: Restriction,
        under: Sequence[str] | frozenset[str] | None,
    ) -> _Plan:
        fresh, new, wanted = defined.fresh, defined.new, defined.wanted
        found = None
        if not fresh and under is not None:
            found = ObjectList(id for id, _ in self.store.objects(self.id, under=under)) if under else ObjectList()
        if fresh:
            known = as_keys(b"")
        else:  # a part has few objects; of the whole dataset only the keys are kept in memory
            known = np.sort(as_keys(self.store.keys(self.id)) if found is None else found.keys)
        listed = listing.objects
        current = np.sort(np.concatenate([listed.keys, ObjectList(listing.unsettled).keys]))
        left = known[~is_among(known, current)]
        old = self._stored(left) if found is None else list(found.those(is_among(found.keys, left)))
        gone = tuple(object for object in old if restriction.holds(object.path))
        retained = self._retained(gone, listing) if self.retain_removed else frozenset()
        gone = tuple(object for object in gone if object not in retained)
        within = np.ones(len(listed), np.bool_)
        if not restriction.everything:
            within = np.fromiter((restriction.holds(object.path) for object in listed), np.bool_, len(listed))
        there = is_among(listed.keys, known)
        again = self._incomplete(entry, listed, there, frozenset(one.id for one in wanted) - new)
        rest = within & there & ~again
        covered = listing.source.origin.snapshot
        if covered is not None and retained:
            covered = replace(covered, retained=True)
        if not restriction.everything:  # the other parts are as they were
            covered = entry.definition.covered if entry is not None else None
        untouched = entry.objects - len(known) if entry is not None and listing.removed is not None else 0
        return _Plan(
            replace(defined.definition, covered=covered),
            wanted,
            fresh,
            all_indexes=listed.those(within & ~(there & ~again)),
            new_indexes=listed.those(rest) if new else ObjectList(),
            new=new,
            gone=gone,
            removed=_paths_without(gone, (listed.those(within & ~there), listing.unsettled, listed)),
            known=known,
            known_paths=frozenset(object.path for object in old),
            unchanged=0 if new else int(rest.sum()) + untouched,
        )

    def _retained(self, gone: Sequence[ObjectId], listing: Listing) -> frozenset[ObjectId]:
        """Those that older snapshots of a table can still read: the file exists, under no new identity."""
        if not listing.source.is_table or not gone:
            return frozenset()
        paths = {object.path for object in gone}
        paths.difference_update(object.path for object in listing.objects)
        left = [object for object in gone if object.path in paths]
        exist = existing_files(self.spark, [object.path for object in left])
        return frozenset(object for object, exists in zip(left, exist, strict=True) if exists)

    def _stored(self, keys: Keys) -> list[ObjectId]:
        return list({id: None for id, _ in self.store.objects(self.id, keys=keys.tobytes())}) if len(keys) else []

    def _incomplete(
        self, entry: DatasetEntry | None, listed: ObjectList, there: npt.NDArray[np.bool_], complete: frozenset[str]
    ) -> npt.NDArray[np.bool_]:
        """The listed objects that failed last time and lack one of these indexes, to try again."""
        again = np.zeros(len(listed), np.bool_)
        failed = {path for path, _ in entry.failed} if entry is not None else set()
        if failed and there.any():
            once = np.fromiter((object.path in failed for object in listed), np.bool_, len(listed)) & there
            stored = self.store.objects(self.id, keys=listed.keys[once].tobytes()) if once.any() else ()
            lacking = ObjectList(id for id, indexes in stored if not complete <= indexes)
            again = once & is_among(listed.keys, np.sort(lacking.keys))
        return again

    def _tell(self, done: int, total: int, phase: str) -> None:
        if self.progress is not None:
            self.progress(done, total, phase)


def _created(entry: DatasetEntry | None, plan: _Plan) -> list[str]:
    """The ids of the indexes that the dataset did not have."""
    had = {index.id for index in entry.definition.indexes} if entry is not None else set()
    return [wanted.id for wanted in plan.wanted if wanted.id not in had]


def _snapshot(entry: DatasetEntry | None) -> str | None:
    return None if entry is None else entry.snapshot


def _paths_without(objects: Sequence[ObjectId], others: Sequence[Iterable[ObjectId]]) -> int:
    """The number of these objects' paths that none of the others has."""
    paths = {object.path for object in objects}
    for listed in others:
        if paths:
            paths.difference_update(object.path for object in listed)
    return len(paths)


def _failures(failed: Mapping[ObjectId, str]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((object.path, why) for object, why in failed.items()))
