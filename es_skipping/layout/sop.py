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
from es_skipping.indexes.foreignkey import ForeignKey
from es_skipping.layout.drift import Status, layout_status
from es_skipping.layout.features.conditions import Rank
from es_skipping.layout.histogram import Histogram
from es_skipping.layout.maker import LayoutMaker, dataset_of, refuse_unknown
from es_skipping.layout.passes import blocked, histogram
from es_skipping.layout.plan import Plan, predict
from es_skipping.layout.records import LayoutRecord, write_record
from es_skipping.layout.star import Star, StarFeature
from es_skipping.layout.workload.log import QueryLog
from es_skipping.workload.mining import Feature

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from es_skipping.build.collect import Progress
    from es_skipping.build.dataset import Dataset
    from es_skipping.build.results import RefreshResult

__all__ = ["SOP", "Written"]

_FEATURE_COUNTS: Final = (5, 10, 15, 20, 30, 40, 60)
"""Numbers of features that cross-validation tries."""
_TOLERATED_READ_FACTOR: Final = 1.03
"""A smaller number of features is preferred if it reads at most this factor more."""


@dataclass(frozen=True, slots=True)
class Written:
    """The result of writing a layout.

    Parameters
    ----------
    place
        The path or table.
    blocks, rows
        Number of planned blocks, and of their rows.
    indexed
        The result of building the index of features.
    seconds
        Duration by step.
    """

    place: str
    blocks: int
    rows: int
    indexed: RefreshResult
    seconds: Mapping[str, float] = field(default_factory=dict)


class SOP(LayoutMaker[Plan]):
    """Lays the rows of a dataset out so that the filters of a workload skip most of its objects.

    Conditions that the workload repeats become features. Rows that satisfy the same features go to the same objects of
    at least ``min_rows`` rows each. An index (`es_skipping.indexes.features.Features`) holds each object's features.
    Queries need no change. Only `write` writes, and to another location: the dataset itself stays untouched.

    Parameters
    ----------
    dataset
        What to lay out, read as its arguments say. A session in its place, followed by the other arguments of
        `es_skipping.Dataset`, is deprecated.
    min_rows
        Fewest rows of an object; each has less than twice as many.
    features
        Most features; None chooses the number by cross-validation on the workload.
    min_support
        Fewest queries that a feature must help and no stricter feature helps; see `mine_features`.
    rank
        ``"savings"`` ranks features by the rows that they save on a sample of the data; ``"queries"``, as in the
        dissertation, by the queries that each helps and no stricter one helps.
    within
        SQL expressions; rows with different values never share an object. Partition columns of the dataset count too.
    joins
        Foreign keys to dimensions. Filters on the dimensions then become features too, if the workload is whole
        queries (`QueryLog.from_sql`), and `write` builds an `Induced` index for each dimension with features.

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
        joins: Sequence[ForeignKey] = (),
        **deprecated: Any,
    ) -> None:
        dataset = dataset_of(dataset, path, deprecated)
        refuse_unknown(deprecated)
        super().__init__(
            dataset, min_rows=min_rows, features=features, min_support=min_support, rank=rank, within=within
        )
        self._count = features
        self._star = Star(self._source, joins) if joins else None
        self._star_features: list[StarFeature] = []
        self._min_support, self._rank = min_support, rank
        self._written: tuple[str | None, str | None] | None = None

    # --- fit ------------------------------------------------------------------------------------------------------

    def fit(self, log: QueryLog | Sequence[str], *, holdout: float = 0.2, progress: Progress | None = None) -> Plan:
        """Find features and blocks, and predict what held-out queries would read.

        Reads the dataset once, and writes nothing.

        Parameters
        ----------
        log
            The workload; for SQL texts see `QueryLog.from_sql`.
        holdout
            The share of the newest queries to predict on; 0 uses all queries for the features.
        progress
            Called with ``(done, total, phase)`` during the work.

        Raises
        ------
        DatasetError
            The workload yields no feature, or the dataset cannot be read.
        """
        clock = _Clock(progress)
        train, test = self._parts(log, holdout)
        most = self._count or max(_FEATURE_COUNTS)
        rows = self.df
        with clock.step("mine"):
            if self._star is None:
                features, conditions, refused = self._finder.features(train, most)
            else:
                rows = self._star.joined(self.df)
                self._star_features = self._star.features(train, most, self._rank, self._min_support)
                train, test = self._star.whole(train), self._star.whole(test)
                features = tuple(one.feature for one in self._star_features)
                conditions, refused = tuple(one.condition for one in self._star_features), ()
        with clock.step("count"):
            counted = histogram(rows, conditions, self._within)
        if self._count is None:
            with clock.step("choose"):
                best = self._best_count(counted, features, train)
            features, conditions = features[:best], conditions[:best]
            self._star_features = self._star_features[:best]
            with clock.step("count"):
                counted = histogram(rows, conditions, self._within)
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
            own=None if self._star is None else sum(one.chain is None for one in self._star_features),
            joins=() if self._star is None else self._star.joins,
        )
        return self._plan

    def _best_count(self, counted: Histogram, features: Sequence[Feature], log: QueryLog) -> int:
        """Choose the number of features by cross-validation, on queries that did not weigh the features."""
        train, test = log.split(0.25) if len(log) > 3 else (log, log)
        weights = [sum(feature.subsumes(query) for query in train) for feature in features]
        shares: dict[int, float] = {}
        for count in sorted({min(count, len(features)) for count in _FEATURE_COUNTS}):
            clustered = counted.first(count).cluster(weights[:count], self._min_rows)
            shares[count] = predict(test, features[:count], clustered).share
        best = min(shares.values())
        return min(count for count, share in shares.items() if share <= _TOLERATED_READ_FACTOR * best)

    # --- what comes of it -----------------------------------------------------------------------------------------

    def explain(self) -> str:
        """The plan as text: the features, the queries they help, and the dry run."""
        return str(self.plan)

    def write(
        self,
        path: str | None = None,
        *,
        table: str | None = None,
        indexes: Sequence[Index] = (),
        progress: Progress | None = None,
    ) -> Written:
        """Write each block of rows as one Parquet object, and index the objects.

        If anything fails, even the driver, the dataset is unchanged. The target may then hold some objects without a
        record of a layout, so let readers use it only after this method returns. Writing there again replaces an
        unfinished layout.

        Parameters
        ----------
        path
            A new or empty directory.
        table
            A new table, instead of a path.
        indexes
            More indexes to build in the same pass, such as `MinMax` of the dates.
        progress
            Called with ``(done, total, phase)`` during the work.

        Raises
        ------
        DatasetError
            Both path and table are given, or neither; or the target exists, or lies in the dataset itself.
        """
        from es_skipping.build.dataset import Dataset, session_of
        from es_skipping.layout.target import finished, write_blocks

        plan = self.plan
        if (path is None) == (table is None):
            raise DatasetError(f"pass either a path or a table to write to, not path={path!r} and table={table!r}")
        clock = _Clock(progress)
        with clock.step("write"):
            rows = self.df if self._star is None else self._star.joined(self.df)
            rows = blocked(rows, plan.conditions, self._within, plan.clustered, self.df.columns)
            root = write_blocks(self._source, rows, path, table)
        with clock.step("index"):
            dataset = Dataset(session_of(self._dataset), path, table=table)
            indexed = dataset.ensure_indexes(*self._feature_indexes(), *indexes, progress=progress)
        write_record(root, LayoutRecord.of(plan))
        finished(root)
        self._written = (path, table)
        return Written(path or table or "", plan.blocks, plan.rows, indexed, clock.seconds)

    def _feature_indexes(self) -> list[Index]:
        own = self.plan.conditions[: self.plan.own]
        induced = [] if self._star is None else self._star.indexes(self._star_features)
        return [*([Features(*own)] if own else []), *induced]

    def status(self, log: QueryLog | None = None) -> Status:
        """Check how well the written layout still fits; see `es_skipping.layout.status`."""
        if self._written is None:
            raise DatasetError(f"{self!r} has written nothing; call write, or es_skipping.layout.status of a place")
        from es_skipping.build.dataset import session_of

        path, table = self._written
        return layout_status(session_of(self._dataset), path, table=table, log=log)


@dataclass
class _Clock:
    """Measures steps, and reports them."""

    progress: Progress | None
    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def step(self, phase: str) -> Iterator[None]:
        if self.progress is not None:
            self.progress(0, 0, phase)
        before = time.perf_counter()
        yield
        self.seconds[phase] = self.seconds.get(phase, 0.0) + time.perf_counter() - before
