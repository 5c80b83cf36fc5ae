"""`SOP`: skipping-oriented partitioning (Sun, *Skipping-oriented Data Design for Large-Scale Analytics*, chapter 3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from es_skipping.indexes.base import Index
from es_skipping.indexes.features import Features
from es_skipping.indexes.foreignkey import ForeignKey
from es_skipping.layout.features.conditions import Rank
from es_skipping.layout.features.unevaluable import unevaluable
from es_skipping.layout.histogram import Histogram
from es_skipping.layout.maker import dataset_of, refuse_unknown
from es_skipping.layout.passes import blocked, histogram, words_of
from es_skipping.layout.plan import Plan, predict
from es_skipping.layout.row_layout import Clock, RowLayout
from es_skipping.layout.star import Star, StarFeature
from es_skipping.layout.workload.log import QueryLog
from es_skipping.predicates.tree import Operand
from es_skipping.workload.mining import Feature

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from es_skipping.build.collect import Progress
    from es_skipping.build.dataset import Dataset

__all__ = ["SOP"]

_FEATURE_COUNTS: Final = (5, 10, 15, 20, 30, 40, 60)
"""Numbers of features that cross-validation tries."""
_TOLERATED_READ_FACTOR: Final = 1.03
"""A smaller number of features is preferred if it reads at most this factor more."""


class SOP(RowLayout[Plan]):
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
    refine
        Whether to try a feature for each arm of an OR, and for each window of values that queries ask for, in place of
        looser features. They are taken if a dry run with blocks of ``min_rows`` reads less, and may be more than
        ``features``.

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
        refine: bool = False,
        **deprecated: Any,
    ) -> None:
        dataset = dataset_of(dataset, path, deprecated)
        refuse_unknown(deprecated)
        super().__init__(
            dataset, min_rows=min_rows, features=features, min_support=min_support, rank=rank, within=within
        )
        self._count = features
        self._refine = refine
        self._star = Star(self._source, joins) if joins else None
        self._star_features: list[StarFeature] = []
        if refine and joins:
            raise ValueError("refine=True and joins exclude each other: features of dimensions are not refined")

    def fit(self, log: QueryLog | Sequence[str], *, holdout: float = 0.2, progress: Progress | None = None) -> Plan:
        """Find features and blocks, and predict what held-out queries would read.

        Reads the dataset once, or twice if some filter can fail for a row, and writes nothing.

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
        clock = Clock(progress)
        train, test = self._parts(log, holdout)
        most = self._count or max(_FEATURE_COUNTS)
        rows = self.df
        with clock.step("mine"):
            failing = unevaluable(self.df, train) if self._star is None else {}
            if self._star is None:
                features, conditions, refused = self._finder.features(train, most, failing)
            else:
                rows = self._star.joined(self.df)
                finder = self._finder
                self._star_features, refused = self._star.features(train, most, finder.rank, finder.min_support)
                train, test = self._star.whole(train), self._star.whole(test)
                features = tuple(one.feature for one in self._star_features)
                conditions = tuple(one.condition for one in self._star_features)
        with clock.step("count"):
            counted = histogram(rows, conditions, self._within)
        if self._count is None:
            with clock.step("choose"):
                best = self._best_count(counted, features, train)
            features, conditions = features[:best], conditions[:best]
            self._star_features = self._star_features[:best]
            with clock.step("count"):
                counted = histogram(rows, conditions, self._within)
        if self._refine:
            with clock.step("refine"):
                refined = self._refined(features, conditions, train, failing)
            if tuple(refined) != features:
                features, conditions = tuple(refined), tuple(refined.values())
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
            own=None if self._star is None else sum(one.chain is None for one in self._star_features),
            joins=() if self._star is None else self._star.joins,
        )
        return self._plan

    def _refined(
        self,
        features: Sequence[Feature],
        conditions: Sequence[str],
        log: QueryLog,
        failing: Mapping[Operand, str | None],
    ) -> dict[Feature, str]:
        """The set of features whose blocks the workload reads least of; the first one, unless another is better."""
        sets = self._finder.refinements(log, features, conditions, failing)
        if len(sets) == 1:
            return sets[0]
        every = {feature: text for some in sets for feature, text in some.items()}
        counted = histogram(self.df, list(every.values()), self._within)
        place = {feature: at for at, feature in enumerate(every)}
        shares = []
        for some in sets:
            narrowed = counted.only([place[feature] for feature in some])
            clustered = narrowed.cluster([feature.weight for feature in some], self._min_rows)
            shares.append(predict(log, list(some), clustered).share)
        return sets[shares.index(min(shares))]

    def _best_count(self, counted: Histogram, features: Sequence[Feature], log: QueryLog) -> int:
        """Choose the number of features by cross-validation, on queries that did not weigh the features."""
        train, test = log.split(0.25) if len(log) > 3 else (log, log)
        weights = [sum(feature.subsumes(query) for query in train) for feature in features]
        shares: dict[int, float] = {}
        for count in sorted({min(count, len(features)) for count in _FEATURE_COUNTS}):
            clustered = counted.only(range(count)).cluster(weights[:count], self._min_rows)
            shares[count] = predict(test, features[:count], clustered).share
        best = min(shares.values())
        return min(count for count, share in shares.items() if share <= _TOLERATED_READ_FACTOR * best)

    def _blocked(self, plan: Plan) -> DataFrame:
        rows = self.df if self._star is None else self._star.joined(self.df)
        return blocked(rows, words_of(plan.conditions), self._within, plan.clustered, self.df.columns)

    def _indexes(self, plan: Plan) -> list[Index]:
        own = plan.conditions[: plan.own]
        induced = [] if self._star is None else self._star.indexes(self._star_features)
        return [*([Features(*own)] if own else []), *induced]
