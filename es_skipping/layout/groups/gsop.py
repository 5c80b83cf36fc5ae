"""`GSOP`: column groups, each laid out by its own features (*Skipping-oriented Data Design*, chapter 4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from es_skipping.errors import DatasetError
from es_skipping.layout.features.conditions import FeatureFinder, Rank
from es_skipping.layout.features.mining import Feature
from es_skipping.layout.groups.demands import demands_of, helped_share
from es_skipping.layout.groups.design import GroupDesign, design_groups
from es_skipping.layout.groups.group import ColumnGroup
from es_skipping.layout.groups.picture import group_chart
from es_skipping.layout.groups.status import GroupStatus, group_status
from es_skipping.layout.groups.table import WrittenGroups, write_groups
from es_skipping.layout.histogram import Histogram
from es_skipping.layout.passes import histogram
from es_skipping.layout.workload.log import QueryLog
from es_skipping.predicates.show import quoted_name, show

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

__all__ = ["GSOP", "GroupPlan"]

_FEATURES: Final = 40


@dataclass(frozen=True)
class GroupPlan:
    """Column groups that `write` would write.

    Parameters
    ----------
    groups
        The groups, in the table's order of columns.
    features, conditions
        The features of all groups, and their SQL.
    rows
        The table's number of rows.
    read
        For several kinds of column groups, including ``"these groups"``: the cells and ids that the held-out queries
        (or, if there are none, all queries) would read, as a share of the cells of their columns.
    storage
        Stored cells, relative to the table's.
    satisfied
        Per group, the share of the rows that satisfy one of its features; a replica holds only these rows.
    helped
        The share of the design's queries that a feature helps.
    refused
        ``(feature, reason)`` of wanted features that cannot be evaluated or stored.
    """

    groups: tuple[ColumnGroup, ...]
    features: tuple[Feature, ...]
    conditions: tuple[str, ...]
    rows: int
    read: Mapping[str, float]
    storage: float = 1.0
    satisfied: tuple[float, ...] = ()
    helped: float = 1.0
    refused: tuple[tuple[str, str], ...] = ()

    def chart(self) -> str:
        """Groups, layouts and features as an SVG picture; see `es_skipping.layout.groups.picture`."""
        title = f"{self.rows:,} rows in {len(self.groups)} column groups, {self.storage:.2f} times the table's cells"
        return group_chart(self.groups, self.satisfied, self.read, title)

    def __str__(self) -> str:
        lines = [
            f"{self.rows:,} rows in {len(self.groups)} column groups, {self.storage:.2f} times the table's cells",
            "share of cells and ids that queries read:",
        ]
        lines += [f"{share:>8.1%}  {kind}" for kind, share in self.read.items()]
        replicated = any(group.masters for group in self.groups)
        for number, group in enumerate(self.groups):
            names = [name if name in group.masters or not replicated else f"({name})" for name in group.columns]
            lines += ["", f"group {number}: {', '.join(names)}"]
            lines += [f"{feature.weight:>8}  {show(feature.predicate)}" for feature in group.features]
        lines += [f"not used: {text}: {reason}" for text, reason in self.refused]
        return "\n".join(lines)


class GSOP:
    """Lays a dataset out in column groups, each with its own order of rows.

    The columns that queries read together form a group. The queries' filters become the features that put a group's
    rows into blocks, so columns with different filters need not share an order. Queries read the result as a table
    (`es_skipping.layout.write_groups`). The dataset itself stays untouched.

    Parameters
    ----------
    spark
        A classic session.
    path, table, format, options, schema
        The dataset, as `es_skipping.Dataset` takes it.
    min_rows
        Fewest rows of a block.
    features
        Most features over all groups. If lists of values differ from query to query, each value counts as a feature,
        and all values of the lists are taken or none.
    min_support, rank
        As for `es_skipping.layout.SOP`.
    within
        SQL expressions; rows with different values never share a coarse partition. Partition columns count too.
    partition_rows
        Approximate number of rows that one task joins.

    Raises
    ------
    DatasetError
        Both path and table are given, or neither.

    Examples
    --------
    >>> gsop = GSOP(spark, "/lake/sales", min_rows=50_000)                              # doctest: +SKIP
    >>> print(gsop.fit(QueryLog.from_file(gsop.df, "queries.sql")))                      # doctest: +SKIP
    >>> gsop.write("/lake/sales_in_groups")                                              # doctest: +SKIP
    >>> spark.read.format("es_skipping_groups").load("/lake/sales_in_groups")            # doctest: +SKIP
    """

    def __init__(
        self,
        spark: SparkSession,
        path: str | Sequence[str] | None = None,
        *,
        table: str | None = None,
        format: str | None = None,
        options: Mapping[str, Any] | None = None,
        schema: str | StructType | None = None,
        min_rows: int = 50_000,
        features: int = _FEATURES,
        min_support: int | None = None,
        rank: Rank = "savings",
        within: Sequence[str] = (),
        partition_rows: int = 1_000_000,
    ) -> None:
        from es_skipping.build.dataset import Dataset
        from es_skipping.build.source import Source

        if not hasattr(spark, "_jsparkSession"):
            raise DatasetError("column groups need a classic session; this is a Spark Connect session")
        if min_rows < 1 or features < 1:
            raise ValueError(
                f"min_rows is {min_rows} and features {features}; both must be whole numbers of at least 1"
            )
        dataset = Dataset(spark, path, table=table, format=format, options=options, schema=schema)
        self._name = repr(dataset)
        self._min_rows, self._count, self._partition_rows = min_rows, features, partition_rows
        self._source = Source.open(spark, dataset._as_given)
        self._finder = FeatureFinder(self._source, rank, min_support, families=True)
        self._within = (*map(quoted_name, self._source.partition_columns), *within)
        self._plan: GroupPlan | None = None

    @property
    def df(self) -> DataFrame:
        """Reads the dataset; pass it to `QueryLog.from_sql` and similar methods."""
        return self._source.df

    @property
    def plan(self) -> GroupPlan:
        """The result of `fit`.

        Raises
        ------
        DatasetError
            `fit` was not called.
        """
        if self._plan is None:
            raise DatasetError(f"{self._name} has no column groups yet: call fit with a workload first")
        return self._plan

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._name}, min_rows={self._min_rows})"

    def fit(self, log: QueryLog | Sequence[str], *, holdout: float = 0.2) -> GroupPlan:
        """Find features and column groups, and predict what held-out queries would read.

        Reads the dataset once, and writes nothing.

        Parameters
        ----------
        log
            The workload; for SQL texts see `QueryLog.from_sql`. Pass whole queries: a bare condition counts as a query
            that reads all columns.
        holdout
            The share of the newest queries to predict on; 0 uses all queries for the design.

        Raises
        ------
        DatasetError
            The workload yields no feature, or the dataset cannot be read.
        """
        if not isinstance(log, QueryLog):
            log = QueryLog.from_sql(self.df, log)
        train, test = log.split(holdout) if holdout and len(log) > 1 else (log, log)
        features, conditions, refused = self._finder.features(train, self._count)
        counted = histogram(self.df, conditions, self._within)
        found = self._designed(counted, features, train, test)
        place = {feature.predicates: at for at, feature in enumerate(features)}
        own = [[place[feature.predicates] for feature in group.features] for group in found.groups]
        helped = helped_share(demands_of(train, features, self.df.columns))
        self._plan = GroupPlan(
            found.groups,
            features,
            conditions,
            counted.rows,
            found.read,
            found.storage,
            tuple(counted.satisfied(some) for some in own),
            helped,
            refused,
        )
        return self._plan

    def _designed(
        self, counted: Histogram, features: Sequence[Feature], train: QueryLog, test: QueryLog
    ) -> GroupDesign:
        return design_groups(self.df.columns, features, train, test, counted, self._min_rows)

    def explain(self) -> str:
        """The plan as text: the groups, their features, and the dry run; ``plan.chart()`` is a picture."""
        return str(self.plan)

    def write(self, path: str) -> WrittenGroups:
        """Write the groups to a new or empty path; see `es_skipping.layout.write_groups`.

        Raises
        ------
        DatasetError
            The path is not empty, or lies in the dataset itself.
        """
        return write_groups(
            self.df,
            self.plan.groups,
            path,
            min_rows=self._min_rows,
            within=self._within,
            partition_rows=self._partition_rows,
            helped=self.plan.helped,
        )

    def status(self, path: str, log: QueryLog | None = None) -> GroupStatus:
        """Check how well the groups at a path still fit; see `es_skipping.layout.status`."""
        return group_status(self._source.df.sparkSession, path, log)
