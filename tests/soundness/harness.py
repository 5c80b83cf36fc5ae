"""Plan many predicates through the real optimiser and judge each verdict by what the rows say.

A predicate's *verdict* is the set of objects that Spark's file listing still holds once the shim has answered; nothing is
executed for it. The rows are judged by one aggregation for a batch of predicates: an object that holds a row for which
the predicate is true, and that the verdict lacks, is a lost row.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from typing import Any, Final

import pyarrow.parquet as pq
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from es_skipping.catalog import DatasetEntry
from es_skipping.clauses.clause import Clause
from es_skipping.clauses.evaluate import holds
from es_skipping.stores.base import KEY_BYTES, Answer, MetadataStore
from tests.soundness.sql import Node, random_predicate

__all__ = [
    "Outcome",
    "answers_of",
    "objects_planned",
    "objects_planned_by_iceberg",
    "row_group_name",
    "row_groups_by_name",
    "soundness_of",
]

_PATH = re.compile(r"path=([^;]+);[^}]*\}(?:,Map\(es_skipping\.skippedRows -> \[([\d, ]+)\]\))?")
_TASK_FILE = re.compile(r"\bfile=([^,}]+)")
"""In the text of a group of Iceberg's tasks: to ask each task costs more than to plan a query."""
FILE_NAME: Final = "_metadata.file_name"
ICEBERG_FILE_NAME: Final = "substring_index(_file, '/', -1)"


def objects_planned(
    spark: SparkSession, sql: str, groups: Mapping[str, Sequence[int]] | None = None
) -> set[str] | None:
    """File names that the one scan of a query would open; None where the optimiser left no scan.

    Adaptive execution must be off: with it the rule comes when a stage is run.

    Parameters
    ----------
    groups
        By file name the first rows of its row groups: then those that the scan would read, as ``file@first row``.
    """
    plan = spark.sql(sql)._jdf.queryExecution().executedPlan()
    leaves = plan.collectLeaves()
    names: set[str] | None = None
    for i in range(leaves.size()):
        leaf = leaves.apply(i)
        if leaf.getClass().getSimpleName() != "FileSourceScanExec":
            continue
        listed = leaf.relation().location().listFiles(leaf.partitionFilters(), leaf.dataFilters()).mkString("\n")
        names = names or set()
        for path, rows in _PATH.findall(listed):
            name = path.rpartition("/")[2]
            skipped = {int(row) for row in rows.split(",")} if rows else set()
            names |= {name} if groups is None else {f"{name}@{row}" for row in groups[name] if row not in skipped}
    return names


def row_groups_by_name(folder: Path) -> dict[str, list[int]]:
    """The first rows of the row groups of each Parquet file below a folder, by the file's name."""
    found = {}
    for path in folder.rglob("*.parquet"):
        footer = pq.ParquetFile(path).metadata
        rows = [footer.row_group(at).num_rows for at in range(footer.num_row_groups)]
        found[path.name] = [first for first, count in zip(accumulate([0, *rows]), rows, strict=False) if count]
    return found


def row_group_name(groups: Mapping[str, Sequence[int]]) -> str:
    """The name of a row's row group as `objects_planned` writes it, as SQL."""
    cases = " ".join(
        f"WHEN '{name}' THEN array_max(filter(array({', '.join(map(str, rows))}), r -> r <= _metadata.row_index))"
        for name, rows in groups.items()
        if len(rows) > 1
    )
    return f"concat({FILE_NAME}, '@', CASE {FILE_NAME} {cases} ELSE 0 END)"


def objects_planned_by_iceberg(spark: SparkSession, sql: str) -> set[str] | None:
    """The same of a scan of an Iceberg table, whose tasks name their files."""
    leaves = spark.sql(sql)._jdf.queryExecution().executedPlan().collectLeaves()
    names: set[str] | None = None
    for i in range(leaves.size()):
        if leaves.apply(i).getClass().getSimpleName() != "BatchScanExec":
            continue
        names = names or set()
        partitions = leaves.apply(i).inputPartitions()
        for j in range(partitions.size()):
            tasks = partitions.apply(j).taskGroup()
            found = _TASK_FILE.findall(tasks.toString()) or [
                str(one.file().location()) for one in tasks.tasks().toArray()
            ]
            names |= {name.rpartition("/")[2] for name in found}
    return names


@dataclass
class Outcome:
    """What a run found.

    Attributes
    ----------
    lost
        Each (predicate, object) whose rows would have been lost.
    useless
        (clause, objects) that a store kept though the clause is false of their metadata, as plain Python has it.
    kept, needless
        Of the look-ups that were looked at again: objects the store kept, and those of them that were kept needlessly.
    relevant, in_relevant, scanned, rows
        Rows: that satisfy, of the objects which hold one such, of the objects that are read, and all; over all predicates.
    """

    predicates: int = 0
    verdicts: int = 0
    skipped: int = 0
    could_skip: int = 0
    no_scan: int = 0
    errors: int = 0
    lost: list[tuple[Node, str]] = field(default_factory=list)
    useless: list[tuple[Clause, list[str]]] = field(default_factory=list)
    kept: int = 0
    needless: int = 0
    relevant: int = 0
    in_relevant: int = 0
    scanned: int = 0
    rows: int = 0

    def __str__(self) -> str:
        return (
            f"{self.predicates} predicates planned, {self.verdicts} verdicts, {self.skipped} of {self.could_skip} skippable "
            f"objects skipped, {self.no_scan} without a scan, {self.errors} that Spark refuses, {len(self.lost)} lost; "
            f"level 1: {self.needless} of {self.kept} objects kept needlessly by the store; level 2: {self.factors}"
        )

    @property
    def factors(self) -> str:
        """The scanning, layout and metadata factor (*Extensible Data Skipping*, section 3) over all predicates."""
        named = (
            ("psi", self.scanned, self.rows),
            ("lambda", self.relevant, self.in_relevant),
            ("mu", self.in_relevant, self.scanned),
        )
        return ", ".join(f"{name} {part / whole:.3f}" if whole else f"{name} -" for name, part, whole in named)

    def add(self, other: Outcome) -> None:
        """Take in what another run found."""
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) + value)


@contextmanager
def answers_of(store: MetadataStore) -> Iterator[list[tuple[DatasetEntry, Clause, Answer]]]:
    """Every look-up in stores of this one's kind, while the context lasts."""
    seen: list[tuple[DatasetEntry, Clause, Answer]] = []
    plain: Callable[..., Answer] = type(store).lookup

    def recorded(self: MetadataStore, entry: DatasetEntry, clause: Clause, **options: Any) -> Answer:
        answer = plain(self, entry, clause, **options)
        seen.append((entry, clause, answer))
        return answer

    type(store).lookup = recorded  # type: ignore[method-assign,assignment]
    try:
        yield seen
    finally:
        type(store).lookup = plain  # type: ignore[method-assign]


def soundness_of(
    on: SparkSession,
    off: SparkSession,
    view: str,
    source: str,
    names: Iterable[str],
    seed: int,
    count: int,
    batch: int = 100,
    draw: Callable[[random.Random], Node] = random_predicate,
    dataset: Any = None,
    planned_by: Callable[[SparkSession, str], set[str] | None] = objects_planned,
    file_name: str = FILE_NAME,
) -> Outcome:
    """Plan ``count`` random predicates over a relation in a session with skipping and judge them in one without.

    Parameters
    ----------
    on, off
        Two sessions.
    view
        Its name in the session that skips (planned from there, so that its schema is read once).
    source
        The same relation for the judge, who asks for ``_metadata``; a view that has it will do.
    names
        The file names of all its objects.
    seed
        Of the predicates; a failing one is found again by it.
    draw
        Makes one predicate.
    dataset
        `es_skipping.Dataset`; given one, each look-up is held against its metadata too.
    planned_by
        Tells the file names that a query would open.
    file_name
        The name of a row's file, as SQL.
    """
    rng = random.Random(seed)
    outcome = Outcome()
    everything = set(names)
    while outcome.predicates < count:
        planned: list[tuple[Node, set[str]]] = []
        with answers_of(dataset._store()) if dataset is not None else nullcontext([]) as answers:
            for _ in range(min(batch, count - outcome.predicates)):
                predicate = draw(rng)
                outcome.predicates += 1
                try:
                    kept = planned_by(on, f"SELECT id FROM {view} WHERE {predicate}")
                except (PySparkException, Py4JJavaError) as error:  # the latter of an assertion in Spark's optimiser
                    if isinstance(error, Py4JJavaError) and _can_be_planned(off, source, predicate):
                        raise
                    outcome.errors += 1
                    continue
                if kept is None:
                    outcome.no_scan += 1
                planned.append((predicate, kept if kept is not None else set()))
        if dataset is not None and answers:
            _judge_answers(outcome, answers, dataset)
        rows, judged = _matching(off, source, [str(p) for p, _ in planned], file_name)
        for (predicate, kept), matching in zip(planned, judged, strict=True):
            if matching is None:
                outcome.errors += 1
                continue
            outcome.verdicts += len(everything)
            outcome.skipped += len(everything - kept)
            outcome.could_skip += len(everything - matching.keys())
            outcome.lost.extend((predicate, name) for name in sorted(matching.keys() - kept))
            if matching:  # the factors are not defined where no row satisfies
                outcome.relevant += sum(matching.values())
                outcome.in_relevant += sum(rows[name] for name in matching)
                outcome.scanned += sum(rows.get(name, 0) for name in kept)
                outcome.rows += sum(rows.values())
    return outcome


def _can_be_planned(off: SparkSession, source: str, predicate: Node) -> bool:
    try:
        off.sql(f"SELECT * FROM {source} WHERE {predicate}")._jdf.queryExecution().executedPlan()
    except Py4JJavaError:
        return False
    return True


def _judge_answers(outcome: Outcome, answers: Sequence[tuple[DatasetEntry, Clause, Answer]], dataset: Any) -> None:
    """Level 1: does the store keep what plain Python keeps of the same clause? Never may it keep less."""
    store, id = dataset._store(), answers[-1][0].definition.id
    objects = list(store.metadata(id))
    for entry, clause, answer in answers:
        if entry.definition.id != id:
            continue
        skip = {answer.skip[at : at + KEY_BYTES] for at in range(0, len(answer.skip), KEY_BYTES)}
        needless = []
        for one in objects:
            verdict = holds(clause, one.metadata)
            if one.id.key in skip:
                assert verdict is False, f"the store skips {one}, of which {clause} is {verdict}"
            else:
                outcome.kept += 1
                if verdict is False:
                    needless.append(one.id.path)
        if needless:
            outcome.needless += len(needless)
            outcome.useless.append((clause, needless))


def _matching(
    off: SparkSession, source: str, predicates: Sequence[str], file_name: str
) -> tuple[dict[str, int], list[dict[str, int] | None]]:
    """Rows by object, and of each predicate those of which it is true (no zeros); None where Spark refuses it."""
    if not predicates:
        return {}, []
    columns = ", ".join(f"count_if({predicate}) AS p{i}" for i, predicate in enumerate(predicates))
    try:
        rows: list[Any] = off.sql(
            f"SELECT {file_name} AS f, count(*) AS n, {columns} FROM {source} GROUP BY {file_name}"
        ).collect()
    except Exception:
        if len(predicates) == 1:
            return {}, [None]
        half = len(predicates) // 2
        first, second = (_matching(off, source, part, file_name) for part in (predicates[:half], predicates[half:]))
        return {**first[0], **second[0]}, first[1] + second[1]
    counts = {row["f"]: row["n"] for row in rows}
    return counts, [{row["f"]: row[f"p{i}"] for row in rows if row[f"p{i}"]} for i in range(len(predicates))]
