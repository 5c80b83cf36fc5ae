"""Plan many predicates through the real optimiser and judge each verdict by what the rows say.

A predicate's *verdict* is the set of objects that Spark's file listing still holds once the shim has answered; nothing is
executed for it. The rows are judged by one aggregation for a batch of predicates: an object that holds a row for which
the predicate is true, and that the verdict lacks, is a lost row.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tests.soundness.sql import random_predicate

__all__ = ["Outcome", "objects_planned", "soundness_of"]

_PATH = re.compile(r"path=([^;]+);")


def objects_planned(spark: SparkSession, sql: str) -> set[str] | None:
    """File names that the one scan of a query would open; None where the optimiser left no scan."""
    plan = spark.sql(sql)._jdf.queryExecution().executedPlan()
    leaves = plan.collectLeaves()
    names: set[str] | None = None
    for i in range(leaves.size()):
        leaf = leaves.apply(i)
        if leaf.getClass().getSimpleName() != "FileSourceScanExec":
            continue
        listed = leaf.relation().location().listFiles(leaf.partitionFilters(), leaf.dataFilters()).mkString("\n")
        names = (names or set()) | {path.rpartition("/")[2] for path in _PATH.findall(listed)}
    return names


@dataclass
class Outcome:
    """What a run found. ``lost`` names each (predicate, object) whose rows would have been lost."""

    predicates: int = 0
    verdicts: int = 0
    skipped: int = 0
    could_skip: int = 0
    no_scan: int = 0
    errors: int = 0
    lost: list[tuple[str, str]] = field(default_factory=list)

    def __str__(self) -> str:
        return (
            f"{self.predicates} predicates planned, {self.verdicts} verdicts, {self.skipped} of {self.could_skip} skippable "
            f"objects skipped, {self.no_scan} without a scan, {self.errors} that Spark refuses, {len(self.lost)} lost"
        )


def soundness_of(
    on: SparkSession,
    off: SparkSession,
    view: str,
    source: str,
    names: Iterable[str],
    seed: int,
    count: int,
    batch: int = 100,
) -> Outcome:
    """Plan ``count`` random predicates over a relation in a session with skipping and judge them in one without.

    Parameters
    ----------
    on, off
        Two sessions.
    view
        Its name in the session that skips (planned from there, so that its schema is read once).
    source
        The same relation as a path, for the judge: views hide ``_metadata``.
    names
        The file names of all its objects.
    seed
        Of the predicates; a failing one is found again by it.
    """
    rng = random.Random(seed)
    outcome = Outcome()
    everything = set(names)
    while outcome.predicates < count:
        planned: list[tuple[str, set[str]]] = []
        for _ in range(min(batch, count - outcome.predicates)):
            predicate = random_predicate(rng)
            outcome.predicates += 1
            try:
                kept = objects_planned(on, f"SELECT id FROM {view} WHERE {predicate}")
            except PySparkException:
                outcome.errors += 1
                continue
            if kept is None:
                outcome.no_scan += 1
            planned.append((predicate, kept if kept is not None else set()))
        for (predicate, kept), matching in zip(planned, _matching(off, source, [p for p, _ in planned]), strict=True):
            if matching is None:
                outcome.errors += 1
                continue
            outcome.verdicts += len(everything)
            outcome.skipped += len(everything - kept)
            outcome.could_skip += len(everything - matching)
            outcome.lost.extend((predicate, name) for name in sorted(matching - kept))
    return outcome


def _matching(off: SparkSession, source: str, predicates: Sequence[str]) -> list[set[str] | None]:
    """For each predicate the names of the objects with a row of which it is true; None where Spark refuses it."""
    if not predicates:
        return []
    columns = ", ".join(f"max(coalesce({predicate}, false)) AS p{i}" for i, predicate in enumerate(predicates))
    try:
        rows: list[Any] = off.sql(
            f"SELECT _metadata.file_name AS f, {columns} FROM {source} GROUP BY _metadata.file_name"
        ).collect()
    except Exception:
        if len(predicates) == 1:
            return [None]
        half = len(predicates) // 2
        return _matching(off, source, predicates[:half]) + _matching(off, source, predicates[half:])
    return [{row["f"] for row in rows if row[f"p{i}"]} for i in range(len(predicates))]
