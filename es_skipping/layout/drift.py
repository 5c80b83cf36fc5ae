"""Decides when to lay a dataset out again, by later additions and by the current workload (section 3.6)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from es_skipping.clauses.clause import KEEP
from es_skipping.clauses.merge import merge_clause
from es_skipping.errors import DatasetError
from es_skipping.indexes.features import Features
from es_skipping.indexes.minmax import MinMax
from es_skipping.layout.features.helping import Helping
from es_skipping.layout.groups.status import GroupStatus, group_status
from es_skipping.layout.groups.stored import is_grouped, place_of
from es_skipping.layout.records import APPENDED, LayoutRecord, read_record
from es_skipping.layout.target import names
from es_skipping.layout.workload.log import QueryLog
from es_skipping.lookup.registry import IndexedDataset
from es_skipping.predicates.tree import Predicate
from es_skipping.predicates.truth import predicate_of
from es_skipping.workload.mining import Feature

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from es_skipping.build.dataset import Dataset
    from es_skipping.build.source import Source

__all__ = ["Status", "layout_status", "status"]

_BACKLOG: Final = 50.0
"""Blocks' worth of added rows that justify a new run, according to the dissertation."""
_ADDED: Final = 0.2
_DRIFT: Final = 0.7
_WORSE: Final = 1.3
_READ_MORE: Final = 0.05
"""Queries may read this factor, and this share of all objects, more than predicted before a new run is due."""


@dataclass(frozen=True, slots=True)
class Status:
    """How well a layout still fits its data and its workload.

    Parameters
    ----------
    record
        The layout as written.
    objects, added
        Number of objects, and of those added later.
    backlog
        The added objects' bytes, in blocks of the layout's average size.
    unindexed
        Objects with an unknown union vector: queries read them until the next `Dataset.refresh`.
    helped
        Share of a newer workload's queries that a feature helps; None without a newer workload.
    read
        Share of the objects that a query of it reads on average, by the indexes that the dry run counted: the
        features, and for a `QueryTree` its bounds; None also for a layout with joins.
    """

    record: LayoutRecord
    objects: int
    added: int
    backlog: float
    unindexed: int
    helped: float | None = None
    read: float | None = None

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why it is time to lay the dataset out again; empty if it is not. Answers are right either way."""
        found = []
        if self.backlog >= _BACKLOG or self.backlog > _ADDED * self.record.blocks:
            found.append(f"{self.added} objects were added since, worth {self.backlog:.0f} blocks")
        if self.helped is not None and self.helped < _DRIFT * self.record.helped:
            found.append(
                f"the workload has changed: the features help {self.helped:.0%} of the queries, "
                f"formerly {self.record.helped:.0%}"
            )
        if self.read is not None and self.read > max(_WORSE * self.record.share, self.record.share + _READ_MORE):
            found.append(
                f"a query reads {self.read:.1%} of the objects, and {self.record.share:.1%} were "
                f"predicted when the layout was made: a new layout would save about "
                f"{self.read - self.record.share:.1%} of the reads"
            )
        return tuple(found)

    def counts(self) -> dict[str, int]:
        """The same facts for programs."""
        return {"objects": self.objects, "added": self.added, "unindexed": self.unindexed}

    @property
    def run_again(self) -> bool:
        """Whether a new layout is due."""
        return bool(self.reasons)

    def __str__(self) -> str:
        record = self.record
        laid_out = (
            f"{record.rows:,} rows were laid out in {record.blocks:,} blocks by {len(record.conditions)} features"
        )
        lines = [f"{laid_out}; {self.objects:,} objects now, {self.added:,} added since"]
        if self.unindexed:
            lines.append(f"{self.unindexed:,} objects are not indexed: refresh the dataset")
        if self.helped is not None:
            lines.append(
                f"its features help {self.helped:.0%} of the queries ({self.record.helped:.0%} when it was made)"
            )
        if self.read is not None:
            lines.append(f"a query reads {self.read:.1%} of the objects ({self.record.share:.1%} was predicted)")
        lines.append(
            "lay it out again: " + "; ".join(self.reasons) if self.run_again else "it need not be laid out again"
        )
        return "\n".join(lines)


def status(
    spark: SparkSession, path: str | None = None, *, table: str | None = None, log: QueryLog | None = None
) -> Status | GroupStatus:
    """Check how well the layout at a path or in a table still fits.

    Returns
    -------
    Status | GroupStatus
        A GroupStatus for column groups. Both have `run_again` and its `reasons`.

    Parameters
    ----------
    path, table
        The target of `SOP.write`, `GSOP.write` or `GSOPR.write`.
    log
        Recent queries, to check whether the features still help them.

    Raises
    ------
    DatasetError
        No layout was written there.
    """
    from es_skipping.spark.classic import classic_session

    classic = classic_session(spark)
    place = path
    if table is not None:
        place = place_of(classic, table) if path is None else None
    if place is not None and is_grouped(classic, place):
        return group_status(classic, place, log)
    return layout_status(spark, path, table=table, log=log)


def layout_status(
    spark: SparkSession, path: str | None = None, *, table: str | None = None, log: QueryLog | None = None
) -> Status:
    """`status` of what `SOP.write` wrote."""
    from es_skipping.build.dataset import Dataset, source_of

    dataset = Dataset(spark, path, table=table)
    source = source_of(dataset)
    record = read_record(source.roots[0])
    if record is None:
        raise DatasetError(f"{path or table} has no record of a layout")
    objects = source.objects()
    helped = None if log is None else _helped(_features(source, record), log)
    notes = names(source.df.sparkSession, source.roots[0])
    writes = {name.removeprefix(APPENDED) for name in notes if name.startswith(APPENDED)}
    laid_out = [object.mtime <= record.written or _is_of(object.path, writes) for object in objects]
    added = [object for object, own in zip(objects, laid_out, strict=True) if not own]
    own = [object.length for object, own in zip(objects, laid_out, strict=True) if own]
    size = sum(own) / len(own) if own else 1.0
    health = dataset.health()
    return Status(
        record,
        len(objects),
        len(added),
        sum(object.length for object in added) / max(size, 1.0),
        health.missing + health.stale,
        helped,
        None if log is None or record.joins else _read(dataset, record, len(objects), log),
    )


def _is_of(path: str, writes: Collection[str]) -> bool:
    """Whether an object is of one of these writes."""
    return any(write in path.rsplit("/", 1)[-1] for write in writes)


def _read(dataset: Dataset, record: LayoutRecord, objects: int, log: QueryLog) -> float | None:
    """The share of the objects that a query of the log would read now, by the indexes that the dry run counted."""
    store = dataset._store()
    entry = store.dataset(dataset.id)
    if entry is None or not objects or not len(log):
        return None
    known = IndexedDataset.of(store, entry).labellers
    counted = (Features, MinMax) if record.bounded else Features
    labellers = [labeller for _, labeller in known if isinstance(labeller.index, counted)]
    shares: dict[Predicate, float] = {}
    for query in log:
        if query.predicate not in shares:
            clause = merge_clause(query.predicate, labellers)
            skipped = 0 if clause == KEEP else len(store.lookup(entry, clause).skip) // 16
            shares[query.predicate] = max(0.0, 1.0 - skipped / objects)
    return sum(shares[query.predicate] for query in log) / len(log)


def _features(source: Source, record: LayoutRecord) -> list[Feature]:
    from es_skipping.build.columns import resolve

    return [Feature((predicate_of(resolve(source, text).operand),)) for text in record.own_conditions]


def _helped(features: Sequence[Feature], log: QueryLog) -> float:
    return sum(map(bool, map(Helping(features).help, log))) / len(log) if len(log) else 0.0
