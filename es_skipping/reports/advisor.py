"""`advise`: the indexes that save a workload most bytes under a budget."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from es_skipping.errors import DatasetError, IndexDefinitionError
from es_skipping.indexes.base import Index
from es_skipping.indexes.gaplist import GapList
from es_skipping.indexes.registry import from_definition
from es_skipping.lookup.given_protection import GivenProtection
from es_skipping.reports.asked_queries import AskedQueries, asked_queries
from es_skipping.reports.candidates import ALL, for_dataset, index_candidates
from es_skipping.reports.doubtful import doubtful_indexes, gaining
from es_skipping.reports.render import Cell, Rendered, Table, one_line
from es_skipping.reports.resampled import Interval, interval_of
from es_skipping.reports.snapshots import of_snapshot
from es_skipping.reports.units import human_bytes, share
from es_skipping.workload.proofs import Asked, Workload, members
from es_skipping.workload.under_budget import best_indexes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from es_skipping.build.dataset import Dataset
    from es_skipping.build.results import RefreshResult
    from es_skipping.build.source import Source
    from es_skipping.catalog import DatasetEntry
    from es_skipping.reports.sampled_proofs import SampledProofs
    from es_skipping.workload.queries import Query

__all__ = ["AdvisedIndex", "Advice", "CurvePoint", "advise"]

_SAMPLED_OBJECTS: Final = 256
_MAX_CANDIDATES: Final = 96
_CURVE: Final = (0.01, 0.05, 0.10, 0.25, 0.50, 1.0)
"""Budgets of the curve, as shares of the bytes of all candidates."""
_PRUNINGS: Final = (False, False, False, True, True, True)
"""Whether each choice is improved until nothing helps. Quick ones find the indexes whose gain may be luck."""
_NEGLIGIBLE: Final = 0.01
"""If all candidates together save less than this share of the bytes, no index helps."""


@dataclass(frozen=True, slots=True)
class AdvisedIndex:
    """An index of the advice.

    Parameters
    ----------
    index
        Pass it to `Dataset.create_indexes`, or to `Dataset.drop_indexes`.
    action
        What to do with it.
    bytes
        Its metadata of all objects: measured if it exists, otherwise estimated from the sample.
    gain
        The share of all bytes that the queries read less because of it, beside the other indexes.
    """

    index: Index
    action: Literal["create", "keep", "drop"]
    bytes: int
    gain: Interval


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """What a budget buys: bytes of metadata, and the share of the queries' bytes that they save."""

    bytes: int
    saved: float


_NOTHING: Final = Interval(0.0, 0.0, 0.0)


class Advice(Rendered):
    """The result of `es_skipping.advise`.

    Attributes
    ----------
    table : tuple of AdvisedIndex
        The indexes to create, to keep and to drop, each group by gain.
    curve : tuple of CurvePoint
        What other budgets would buy.
    expected : Interval
        The share of the queries' bytes that the indexes to create and to keep save together. It is judged by the
        held-out queries; by all, if no held-out query needs an advised index.
    now : float
        The share that the dataset's indexes save now.
    reason : str or None
        Why no index is advised; None if one is.
    """

    def __init__(
        self,
        dataset: Dataset,
        judged: str,
        table: tuple[AdvisedIndex, ...],
        curve: tuple[CurvePoint, ...] = (),
        expected: Interval = _NOTHING,
        now: float = 0.0,
        reason: str | None = None,
    ) -> None:
        self._dataset = dataset
        self._judged = judged
        self.table = table
        self.curve = curve
        self.expected = expected
        self.now = now
        self.reason = reason

    @property
    def create(self) -> tuple[Index, ...]:
        """The indexes to create."""
        return self._of("create")

    @property
    def keep(self) -> tuple[Index, ...]:
        """The dataset's indexes that help."""
        return self._of("keep")

    @property
    def drop(self) -> tuple[Index, ...]:
        """The dataset's indexes that no query needs, or that the budget has no room for."""
        return self._of("drop")

    def _of(self, action: str) -> tuple[Index, ...]:
        return tuple(one.index for one in self.table if one.action == action)

    @property
    def bytes(self) -> int:
        """Bytes of the indexes to create and to keep."""
        return sum(one.bytes for one in self.table if one.action != "drop")

    def apply(self, *, drop: bool = False) -> RefreshResult | None:
        """Create the advised indexes in one pass over the data.

        Parameters
        ----------
        drop
            Whether to drop the indexes of `drop` too, after the others are there.

        Returns
        -------
        RefreshResult or None
            As of `Dataset.create_indexes`; None if there is nothing to create.
        """
        result = self._dataset.ensure_indexes(*self.create) if self.create else None
        if drop and self.drop:
            self._dataset.drop_indexes(*self.drop)
        return result

    def __repr__(self) -> str:
        return f"Advice(create={list(map(str, self.create))}, keep={list(map(str, self.keep))})"

    def parts(self) -> Iterator[str | Table]:
        yield self._judged
        if self.table:
            rows = [
                [
                    Cell(one.action),
                    Cell(_brief(one.index)),
                    Cell(human_bytes(one.bytes), number=True),
                    Cell(share(one.gain.share, 1), number=True),
                    Cell(_interval(one.gain)),
                ]
                for one in self.table
            ]
            yield Table(("", "index", "metadata", "saves", "95 % interval"), rows)
        if self.reason:
            yield self.reason
        if self.table:
            yield (
                f"Together they save {share(self.expected.share, 1)} of the bytes ({_interval(self.expected)}); "
                f"the indexes that exist save {share(self.now, 1)}."
            )
        if self.curve:
            points = [
                [Cell(human_bytes(one.bytes), number=True), Cell(share(one.saved, 1), number=True)]
                for one in self.curve
            ]
            yield Table(("budget", "saves"), points)


def _brief(index: Index) -> str:
    """An index in a table: of the ranges of a `GapList` only the number."""
    if not isinstance(index, GapList) or not index.asked:
        return str(index)
    return f"GapList({index.column}, gaps={index.gaps}, asked: {len(index.asked)} ranges)"


def _interval(one: Interval) -> str:
    return f"{share(one.low, 1)} to {share(one.high, 1)}"


def advise(
    spark: SparkSession,
    dataset: Dataset | str,
    *,
    budget: str | int,
    log: Iterable[Query | str] | None = None,
    objects: int = _SAMPLED_OBJECTS,
) -> Advice:
    """Choose the indexes that save a workload most bytes, within a budget for their metadata.

    It collects many candidate indexes from a sample of the objects, once, and evaluates sets of them for all queries
    together. It changes nothing; `Advice.apply` creates what it advises. On a column of a protected index it advises
    sealed indexes with the same key.

    Parameters
    ----------
    spark
        A classic session.
    dataset
        The dataset, or its path.
    budget
        Bytes of metadata of all the dataset's indexes together, such as ``"50 MB"``.
    log
        The workload: filters as SQL, or a `layout.QueryLog`. By default the dataset's queries in the query log, where a
        query counts by the bytes that it listed and half as much for each month of age. With 20 or more queries a
        fifth is held out, to judge what was chosen by the others: the newest, or every fifth of a given log.
    objects
        Reads at most this many objects.

    Returns
    -------
    Advice
        Prints as a table.

    Raises
    ------
    DatasetError
        The dataset cannot be read, or there is no query on it.
    StoreError
        The store cannot be read.

    Examples
    --------
    >>> advice = esk.advise(spark, "/lake/events", budget="50 MB")                    # doctest: +SKIP
    >>> advice.create                                                                 # doctest: +SKIP
    (MinMax(column='ts'), ValueList(column='city'))
    >>> advice.apply()                                                                # doctest: +SKIP
    RefreshResult(24 added, 0 updated, 0 removed, 0 unchanged, 0 failed, in 1.34 s)
    """
    from es_skipping.build.dataset import Dataset
    from es_skipping.build.source import Source
    from es_skipping.settings import PREFIX, Settings

    limit = Settings({f"{PREFIX}remember.budget": str(budget)})["remember.budget"]
    opened = dataset if isinstance(dataset, Dataset) else Dataset(spark, dataset)
    entry = opened._store().dataset(opened.id)
    source = Source.open(opened._spark, opened._reading(entry))
    with closing(source.origin):
        queries = asked_queries(opened, source, log)
        proofs = _proofs(opened, source, entry, queries, objects)
        return _advised(opened, source, entry, queries, proofs, limit)


def _proofs(
    dataset: Dataset, source: Source, entry: DatasetEntry | None, queries: AskedQueries, objects: int
) -> SampledProofs:
    from es_skipping.reports.sampled_proofs import collected, stratified, understood

    sample = stratified(source.objects(), objects)
    if not sample.objects:
        raise DatasetError("the dataset has no objects: there is nothing to index")
    existing: list[Index] = []
    for definition in () if entry is None else entry.definition.indexes:
        with suppress(IndexDefinitionError):  # a type that is not installed here
            # The sample is in clear: this process collects it for itself.
            existing.append(from_definition(definition).protected(None, None))
    predicates = list(queries.distinct)
    ranks: dict[str, float] = {}
    candidates: dict[str, Index] = {}
    given, plain = GivenProtection(None if entry is None else entry.definition), dataset._protection[0] == "plain"
    grid = for_dataset(
        ALL,
        sum(sample.sizes) / sample.total,
        queries.training,
        plain=lambda operand: plain and not given.of([operand]),
    )
    for predicate, weight in queries.distinct.items():
        for index in index_candidates(predicate, grid):
            candidates.setdefault(str(index), index)
            ranks[str(index)] = ranks.get(str(index), 0.0) + weight
    wanted = [candidates[name] for name in sorted(ranks, key=lambda name: -ranks[name])]
    indexes = understood(source, existing, wanted[: 2 * _MAX_CANDIDATES], predicates, _MAX_CANDIDATES)
    hashed = frozenset(() if entry is None else (one.id for one in entry.definition.indexes if one.mode == "hashed"))
    known = {} if entry is None else entry.metadata_bytes
    return collected(source, indexes, sample, dataset._store(), known, hashed=hashed)


def _advised(
    dataset: Dataset,
    source: Source,
    entry: DatasetEntry | None,
    queries: AskedQueries,
    proofs: SampledProofs,
    budget: int,
) -> Advice:
    judged = {predicate: proofs.of(predicate) for predicate in queries.distinct}
    training = [Asked(judged[one.predicate], one.weight) for one in queries.training]
    held_out = [Asked(judged[one.predicate], one.weight) for one in queries.held_out]
    sizes = proofs.sample.sizes
    train = Workload(training, sizes)
    there_ids = set() if entry is None else {one.id for one in entry.definition.indexes}
    there = sum(1 << at for at, id in enumerate(proofs.ids) if id in there_ids)
    banned = 0
    for thorough in _PRUNINGS:
        chosen = best_indexes(train, proofs.costs, budget, banned=banned, there=there, thorough=thorough)
        doubtful = doubtful_indexes(training, held_out, sizes, chosen, there)
        banned |= doubtful
        if thorough and not doubtful:
            break
    chosen &= ~banned
    asked = held_out or training
    if held_out and any(not gaining(held_out, chosen, chosen & ~(1 << at)) for at in members(chosen & ~there)):
        asked = [*training, *held_out]  # so few are held out that they do not stand for all
    test = Workload(asked, sizes)

    def gain(indexes: int, without: int) -> Interval:
        return interval_of(asked, sizes, indexes, without, queries_vary=bool(held_out))

    definition = None if entry is None else entry.definition
    given = GivenProtection(definition)

    def advised(at: int) -> Index:
        """The index as it is in the store; a new one as it may be there."""
        if definition is not None and proofs.ids[at] in there_ids:
            return from_definition(definition.index(proofs.ids[at]))
        return given.given(proofs.indexes[at], proofs.operands[at])

    found = [
        AdvisedIndex(
            advised(at),
            "create" if not there >> at & 1 else "keep" if chosen >> at & 1 else "drop",
            round(proofs.costs[at]),
            gain(chosen | 1 << at, chosen & ~(1 << at)),
        )
        for at in members(chosen | there)
    ]
    order = ("create", "keep", "drop")
    found.sort(key=lambda one: (order.index(one.action), -one.gain.share))
    everything = (1 << len(proofs.ids)) - 1
    whole = test.saved(everything) / test.total if test.total else 0.0
    curve = _curve(train, test, proofs.costs)
    reason = None
    if not chosen:
        reason = _why_nothing(whole, len(proofs.ids), budget)
    return Advice(
        dataset,
        _judged(dataset, source, queries, proofs, budget),
        tuple(found),
        curve if whole >= _NEGLIGIBLE else (),
        gain(chosen, 0),
        test.saved(there) / test.total if test.total else 0.0,
        reason,
    )


def _curve(train: Workload, test: Workload, costs: Sequence[float]) -> tuple[CurvePoint, ...]:
    total = sum(costs)
    points = []
    for part in _CURVE:
        chosen = best_indexes(train, costs, part * total, thorough=False)
        points.append(CurvePoint(round(part * total), test.saved(chosen) / test.total if test.total else 0.0))
    return tuple(points)


def _why_nothing(whole: float, candidates: int, budget: int) -> str:
    if not candidates:
        return "No index type understands any part of these filters."
    if whole < _NEGLIGIBLE:
        return (
            f"No index helps: all {candidates} candidates together save {share(whole, 1)} of the bytes, because nearly "
            "every object holds values that the filters ask for. Lay the data out by es_skipping.layout."
        )
    return (
        f"No index that fits into {human_bytes(budget)} surely helps; all candidates together save {share(whole, 1)}."
    )


def _judged(dataset: Dataset, source: Source, queries: AskedQueries, proofs: SampledProofs, budget: int) -> str:
    held = f", {len(queries.held_out):,} of them held out" if queries.held_out else ""
    sample, snapshot = proofs.sample, source.origin.snapshot
    name = of_snapshot(one_line(str(dataset)), source.format, None if snapshot is None else snapshot.id)
    return (
        f"{name}: indexes within {human_bytes(budget)}, judged from {len(sample.objects):,} of "
        f"{sample.total:,} objects and {len(queries.training) + len(queries.held_out):,} queries{held}; "
        f"{len(proofs.ids):,} candidates."
    )
