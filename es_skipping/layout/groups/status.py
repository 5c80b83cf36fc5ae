"""Checks written column groups: their index, and their fit to a newer workload."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

from es_skipping.layout.groups.demands import Demand, demands_of, helped_share
from es_skipping.layout.groups.indexing import differing, evaluation
from es_skipping.layout.groups.manifest import GroupManifest
from es_skipping.layout.groups.query_bits import QueryBits
from es_skipping.layout.groups.retrieval import Offer, path_cost, retrieval_path
from es_skipping.layout.groups.stored import blocks_of, manifest_at
from es_skipping.layout.workload.log import QueryLog
from es_skipping.predicates.truth import predicate_of
from es_skipping.workload.mining import Feature

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


__all__ = ["GroupStatus", "group_status", "read_share", "storage"]

_DRIFT: Final = 0.7


@dataclass(frozen=True, slots=True)
class GroupStatus:
    """How well a table in column groups still fits its workload.

    Parameters
    ----------
    groups, blocks, partitions, rows
        The table's numbers of groups, blocks, coarse partitions and rows.
    storage
        Stored cells, relative to the table's: above 1 if some are stored twice.
    features
        Number of features of its blocks.
    unindexed
        Blocks without features in the session's store: queries read them until `es_skipping.layout.index_groups` runs.
    elsewhere
        Number of blocks, by reason, whose features this session evaluates differently. This session never skips them;
        sessions like their writer's do. To skip them everywhere, write the table again.
    designed_for
        The share of the design's queries that a feature helps; None if the groups were made by hand.
    helped
        The share of a newer workload's queries that a feature helps; None without a newer workload.
    read
        Cells and ids that these queries read, as a share of the cells of their columns.
    """

    groups: int
    blocks: int
    partitions: int
    rows: int
    storage: float
    features: int
    unindexed: int
    designed_for: float | None = None
    helped: float | None = None
    read: float | None = None
    elsewhere: Mapping[str, int] = field(default_factory=dict)

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why it is time to design the groups again; empty if it is not. Answers are right either way."""
        if self.helped is None or self.designed_for is None or self.helped >= _DRIFT * self.designed_for:
            return ()
        before = f"formerly {self.designed_for:.0%}"
        return (f"the workload has changed: features help {self.helped:.0%} of the queries, {before}",)

    def counts(self) -> dict[str, float | None]:
        """The same facts for programs."""
        return {
            "groups": self.groups,
            "blocks": self.blocks,
            "unindexed": self.unindexed,
            "elsewhere": sum(self.elsewhere.values()),
            "storage": round(self.storage, 3),
            "read": self.read,
        }

    @property
    def run_again(self) -> bool:
        """Whether new groups are due."""
        return bool(self.reasons)

    def __str__(self) -> str:
        there = f"{self.rows:,} rows in {self.groups} column groups of {self.blocks:,} blocks"
        stored = f"{self.storage:.2f} times the table's cells, by {self.features} features"
        lines = [f"{there}, in {self.partitions:,} partitions: {stored}"]
        if self.unindexed:
            lines.append(f"{self.unindexed:,} blocks are not indexed: call es_skipping.layout.index_groups")
        for why, blocks in self.elsewhere.items():
            lines.append(f"{blocks:,} blocks are never skipped by this session: {why}")
        if self.helped is not None:
            before = "" if self.designed_for is None else f" ({self.designed_for:.0%} when they were made)"
            lines.append(f"features help {self.helped:.0%} of the queries{before}")
        if self.read is not None:
            lines.append(f"they read {self.read:.1%} of the cells of their columns, ids included")
        lines.append("make them again: " + "; ".join(self.reasons) if self.run_again else "they need not be made again")
        return "\n".join(lines)


def group_status(spark: SparkSession, path: str, log: QueryLog | None = None) -> GroupStatus:
    """Check how well the column groups at a path fit; `es_skipping.layout.status` calls it for column groups.

    Parameters
    ----------
    path
        The target of `write_groups`, `GSOP.write` or `GSOPR.write`.
    log
        Recent queries, to check the features' help and the cells read.

    Raises
    ------
    DatasetError
        No column groups were written there.
    """
    from es_skipping.build.columns import resolve
    from es_skipping.build.dataset import Dataset

    root, manifest = manifest_at(spark, path)
    source = blocks_of(spark, root, manifest)
    unindexed = 0
    elsewhere: Counter[str] = Counter()
    if manifest.conditions:
        dataset = Dataset(spark, path)
        store = dataset._store()
        stored = store.objects(dataset.id) if store.dataset(dataset.id) else ()
        known = {object.path for object, features in stored if features}
        here = evaluation(source, manifest.conditions)
        for partition in manifest.partitions:
            paths = {f"{root}/{name}" for name, _ in manifest.blocks_in(partition)}
            if partition.built_with == here:
                unindexed += len(paths - known)
            else:
                elsewhere[differing(partition.built_with, here)] += len(paths)
    helped = read = None
    if log is not None:
        found = [Feature((predicate_of(resolve(source, text).operand),)) for text in manifest.conditions]
        demands = demands_of(log, found, [str(field["name"]) for field in manifest.schema["fields"]])
        helped = helped_share(demands)
        read = read_share(manifest, demands)
    return GroupStatus(
        groups=len(manifest.groups),
        blocks=len(manifest.blocks),
        partitions=len(manifest.partitions),
        rows=manifest.rows,
        storage=storage(manifest),
        features=len(manifest.conditions),
        unindexed=unindexed,
        designed_for=manifest.helped,
        helped=helped,
        read=read,
        elsewhere=dict(elsewhere),
    )


def storage(manifest: GroupManifest) -> float:
    """Cells stored, relative to the table's (5.2)."""
    columns = len(manifest.schema["fields"])
    cells = sum(
        block.rows * len(group.columns if block.whole else group.masters)
        for partition in manifest.partitions
        for group, own in zip(manifest.groups, partition.blocks, strict=True)
        for block in own
    )
    return cells / max(1, manifest.rows * columns)


def read_share(manifest: GroupManifest, demands: Sequence[Demand]) -> float:
    """Cells and ids that queries read, as a share of the cells of their columns.

    Parameters
    ----------
    demands
        The queries' demands; features are positions of conditions.
    """
    asked = QueryBits.of(demands, range(len(manifest.conditions)))
    rows, whole, left = [], [], []
    for at in range(len(manifest.groups)):
        own = [block for partition in manifest.partitions for block in partition.blocks[at]]
        union = np.zeros((len(own), len(manifest.conditions)), bool)
        for number, block in enumerate(own):
            union[number, list(block.features)] = True
        seen = asked.seen(union)
        left.append([seen[:, bits].all(axis=1) for bits in asked.wanted])
        rows.append(np.array([block.rows for block in own], np.float64))
        whole.append(np.array([block.whole for block in own], bool))
    cells = wanted = 0.0
    for number, demand in enumerate(demands):
        offers = []
        for at, group in enumerate(manifest.groups):
            kept = left[at][number]
            # Like the reader: if only whole blocks remain, the layout can provide all its columns.
            serves = group.columns if whole[at][kept].all() else group.masters
            offers.append(Offer(demand.columns.intersection(serves), float(rows[at][kept].sum())))
        cells += demand.count * path_cost(retrieval_path(demand.columns, offers), offers)
        wanted += demand.count * manifest.rows * len(demand.columns)
    return cells / wanted if wanted else 0.0
