"""`SOP`: skipping-oriented partitioning (Sun, *Skipping-oriented Data Design for Large-Scale Analytics*, chapter 3)."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from es_skipping.errors import DatasetError
from es_skipping.indexes.base import Index
from es_skipping.indexes.features import Features
from es_skipping.layout.drift import Status, layout_status
from es_skipping.layout.features.conditions import Rank
from es_skipping.layout.features.mining import Feature
from es_skipping.layout.histogram import Histogram
from es_skipping.layout.maker import LayoutMaker, dataset_of, refuse_unknown
from es_skipping.layout.passes import blocked, histogram
from es_skipping.layout.plan import Plan, predict
from es_skipping.layout.records import LayoutRecord, write_record
from es_skipping.layout.workload.log import QueryLog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from es_skipping.build.collect import Progress
    from es_skipping.build.dataset import Dataset
    from es_skipping.build.results import RefreshResult

__all__ = ["SOP", "Written"]

_COUNTS: Final = (5, 10, 15, 20, 30, 40, 60)
"""Numbers of features that cross-validation tries."""
_NEARLY: Final = 1.03
"""A smaller number of features is preferred where it reads at most so much more."""


@dataclass(frozen=True, slots=True)
class Written:
    """A layout that was written.

    Parameters
    ----------
    place
        The path or table.
    blocks, rows
        How many blocks were planned, of how many rows.
    indexed
        What building the index of features did.
    seconds
        By step.
    """

    place: str
    blocks: int
    rows: int
    indexed: RefreshResult
    seconds: Mapping[str, float] = field(default_factory=dict)


class SOP(LayoutMaker[Plan]):
    """Lays the rows of a dataset out so that the filters of a workload skip most of its objects.

    The conditions that the workload repeats become features; rows that satisfy the same features go to the same
    objects, each of at least ``min_rows`` rows, and an index (`es_skipping.indexes.features.Features`) says which
    features an object has. Queries need no change. Nothing is written before `write`, and then to another place: the
    dataset itself is never touched.

    Parameters
    ----------
    dataset
        What to lay out, read as its arguments say. A session in its place, followed by the other arguments of
        `es_skipping.Dataset`, is deprecated.
    min_rows
        Rows of an object: at least so many, and less than twice as many.
    features
        How many features at most; None chooses the number by cross-validation on the workload.
    min_support
        How many queries a feature must help that no stricter feature helps; see `mine_features`.
    rank
        How features are chosen: ``"savings"`` by the rows that they save on a sample of the data, ``"queries"`` by how
        many queries each helps that no stricter one does, as the dissertation has it.
    within
        SQL expressions; rows with different values never share an object. Partition columns of the dataset count too.

    Raises
    ------
    DatasetError
        The dataset cannot be opened.

    Examples
    --------
    >>> sales = esk.Dataset(spark, "/lake/sales")                                               # doctest: +SKIP
    >>> sop = SOP(sales, min_rows=50_000, within=["trunc(order_date, 'MM')"])                   # doctest: +SKIP
    >>> print(sop.fit(QueryLog.from_file(sop.df, "queries.sql")))                               # doctest: +SKIP
    >>> sop.write("/lake/sales_laid_out", indexes=[esk.MinMax("order_date")])                   # doctest: +SKIP
    """

    def __init__(
        self,
        dataset: Dataset | SparkSession,
        path: str | Sequence[str] | None = None,
        *,
        min_rows: int = 50_000,
        features: int | None = 15,
        min_support: int | None = None,
        rank: Rank = "savings",
        within: Sequence[str] = (),
        **deprecated: Any,
    ) -> None:
        dataset = dataset_of(dataset, path, deprecated)
        refuse_unknown(deprecated)
        super().__init__(
            dataset, min_rows=min_rows, features=features, min_support=min_support, rank=rank, within=within
        )
        self._count = features
        self._written: tuple[str | None, str | None] | None = None

    # --- fit ------------------------------------------------------------------------------------------------------

    def fit(self, log: QueryLog | Sequence[str], *, holdout: float = 0.2, progress: Progress | None = None) -> Plan:
        """Find features and blocks, and predict on queries that had no part in it what they would read.

        Reads the dataset once, and writes nothing.

        Parameters
        ----------
        log
            The workload; SQL texts are read as `QueryLog.from_sql` does.
        holdout
            The share of the queries, the newest, that the prediction is made on; 0 uses all for the features.
        progress
            Called with ``(done, total, phase)`` as the work goes on.

        Raises
        ------
        DatasetError
            No feature comes of the workload, or the dataset cannot be read.
        """
        clock = _Clock(progress)
        train, test = self._parts(log, holdout)
        with clock.step("mine"):
            features, conditions, refused = self._finder.features(train, self._count or max(_COUNTS))
        with clock.step("count"):
            counted = histogram(self.df, conditions, self._within)
        if self._count is None:
            with clock.step("choose"):
                best = self._best_count(counted, features, train)
            features, conditions = features[:best], conditions[:best]
            with clock.step("count"):
                counted = histogram(self.df, conditions, self._within)
        with clock.step("cluster"):
            clustered = tuple(counted.cluster([feature.weight for feature in features], self._min_rows))
        with clock.step("predict"):
            trained, tested = (predict(part, features, clustered) for part in (train, test))
        self._plan = Plan(
            features=features,
            conditions=conditions,
            min_rows=self._min_rows,
            within=self._within,
            histogram=counted,
            clustered=clustered,
            trained=trained,
            tested=tested,
            refused=refused,
            seconds=clock.seconds,
        )
        return self._plan

    def _best_count(self, counted: Histogram, features: Sequence[Feature], log: QueryLog) -> int:
        """The number of features by cross-validation: each is tried on queries that did not weigh the features."""
        train, test = log.split(0.25) if len(log) > 3 else (log, log)
        weights = [sum(feature.subsumes(query) for query in train) for feature in features]
        shares: dict[int, float] = {}
        for count in sorted({min(count, len(features)) for count in _COUNTS}):
            clustered = counted.first(count).cluster(weights[:count], self._min_rows)
            shares[count] = predict(test, features[:count], clustered).share
        best = min(shares.values())
        return min(count for count, share in shares.items() if share <= _NEARLY * best)

    # --- what comes of it -----------------------------------------------------------------------------------------

    def explain(self) -> str:
        """The plan as text: the features, what they help, and the dry run."""
        return str(self.plan)

    def write(
        self,
        path: str | None = None,
        *,
        table: str | None = None,
        indexes: Sequence[Index] = (),
        progress: Progress | None = None,
    ) -> Written:
        """Write the rows in their blocks, one Parquet object each, and index them.

        Where anything fails, and if the driver dies, the dataset is as it was. The place may hold some of the objects
        then, and no record of a layout: point readers to it when this method has returned. Writing there again
        replaces what is unfinished.

        Parameters
        ----------
        path
            A place that is not there, or empty.
        table
            Instead of a path: a table that is not there.
        indexes
            More indexes to build in the same pass, such as `MinMax` of the dates.
        progress
            Called with ``(done, total, phase)`` as the work goes on.

        Raises
        ------
        DatasetError
            Neither or both of path and table are given, there is something already, or it lies in the dataset itself.
        """
        from es_skipping.build.dataset import Dataset, session_of
        from es_skipping.layout.target import finished, write_blocks

        plan = self.plan
        if (path is None) == (table is None):
            raise DatasetError(f"give either a path or a table to write to, not path={path!r} and table={table!r}")
        clock = _Clock(progress)
        with clock.step("write"):
            rows = blocked(self.df, plan.conditions, self._within, plan.clustered)
            root = write_blocks(self._source, rows, path, table)
        with clock.step("index"):
            dataset = Dataset(session_of(self._dataset), path, table=table)
            indexed = dataset.ensure_indexes(Features(*plan.conditions), *indexes, progress=progress)
        write_record(root, LayoutRecord.of(plan))
        finished(root)
        self._written = (path, table)
        return Written(path or table or "", plan.blocks, plan.rows, indexed, clock.seconds)

    def status(self, log: QueryLog | None = None) -> Status:
        """How well what `write` wrote still fits; see `es_skipping.layout.status`."""
        if self._written is None:
            raise DatasetError(f"{self!r} has written nothing; call write, or es_skipping.layout.status of a place")
        from es_skipping.build.dataset import session_of

        path, table = self._written
        return layout_status(session_of(self._dataset), path, table=table, log=log)


@dataclass
class _Clock:
    """Times steps, and tells of them."""

    progress: Progress | None
    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def step(self, phase: str) -> Iterator[None]:
        if self.progress is not None:
            self.progress(0, 0, phase)
        before = time.perf_counter()
        yield
        self.seconds[phase] = self.seconds.get(phase, 0.0) + time.perf_counter() - before
