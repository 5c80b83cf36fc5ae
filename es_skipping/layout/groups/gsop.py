"""`GSOP`: column groups, each laid out by its own features (*Skipping-oriented Data Design*, chapter 4)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from es_skipping.errors import DatasetError
from es_skipping.layout.chart import group_chart
from es_skipping.layout.features.conditions import Rank
from es_skipping.layout.features.unevaluable import unevaluable
from es_skipping.layout.groups.demands import demands_of, helped_share
from es_skipping.layout.groups.design import GroupDesign, design_groups
from es_skipping.layout.groups.group import ColumnGroup
from es_skipping.layout.groups.openings import OPENING
from es_skipping.layout.groups.status import GroupStatus, group_status
from es_skipping.layout.groups.table import WrittenGroups, write_groups
from es_skipping.layout.histogram import Histogram
from es_skipping.layout.maker import LayoutMaker, dataset_of, refuse_unknown
from es_skipping.layout.passes import histogram
from es_skipping.layout.target import refuse_protected
from es_skipping.layout.workload.log import QueryLog
from es_skipping.predicates.show import show
from es_skipping.workload.mining import Feature

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from es_skipping.build.dataset import Dataset

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
        """Groups, layouts and features as an SVG picture; see `es_skipping.layout.chart`."""
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


class GSOP(LayoutMaker[GroupPlan]):
    """Lays a dataset out in column groups, each with an order of rows of its own.

    The columns that queries read together form a group. The queries' filters become the features that put a group's
    rows into blocks, so columns with different filters need not share an order. Queries read the result as a table
    (`es_skipping.layout.write_groups`). The dataset itself stays untouched.

    Parameters
    ----------
    dataset
        What to lay out, read as its arguments say; its session is a classic one. A session in its place, followed by
        the other arguments of `es_skipping.Dataset`, is deprecated.
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
    opening
        What each needed block of joined groups costs, and each file of a query's only group, in cells: 22,000 on a
        local disk. Where opening takes longer, as on an object store, give more. With 0, as in the dissertation, groups
        are chosen by cells alone.

    Raises
    ------
    DatasetError
        The dataset cannot be opened, or its session is of Spark Connect.

    Examples
    --------
    >>> gsop = GSOP(esk.Dataset(spark, "/lake/sales"), min_rows=50_000)                  # doctest: +SKIP
    >>> print(gsop.fit(QueryLog.from_file(gsop.df, "queries.sql")))                      # doctest: +SKIP
    >>> gsop.write("/lake/sales_in_groups")                                              # doctest: +SKIP
    >>> spark.read.format("es_skipping_groups").load("/lake/sales_in_groups")            # doctest: +SKIP
    """

    def __init__(
        self,
        dataset: Dataset | SparkSession,
        path: str | Sequence[str] | None = None,
        *,
        min_rows: int = 50_000,
        features: int = _FEATURES,
        min_support: int | None = None,
        rank: Rank = "savings",
        within: Sequence[str] = (),
        partition_rows: int = 1_000_000,
        opening: float = OPENING,
        **deprecated: Any,
    ) -> None:
        from es_skipping.build.dataset import session_of

        dataset = dataset_of(dataset, path, deprecated)
        refuse_unknown(deprecated)
        if not 0 <= opening < math.inf:
            raise ValueError(f"opening is {opening}; give the cost of a reader in cells, 0 or more")
        if not hasattr(session_of(dataset), "_jsparkSession"):
            raise DatasetError("column groups are made by a classic session; this one is of Spark Connect")
        super().__init__(
            dataset,
            min_rows=min_rows,
            features=features,
            min_support=min_support,
            rank=rank,
            within=within,
            families=True,
        )
        self._count, self._partition_rows, self._opening = features, partition_rows, opening

    def fit(self, log: QueryLog | Sequence[str], *, holdout: float = 0.2) -> GroupPlan:
        """Find features and column groups, and predict what held-out queries would read.

        Reads the dataset once, or twice if some filter can fail for a row, and writes nothing.

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
        train, test = self._parts(log, holdout)
        features, conditions, refused = self._finder.features(train, self._count, unevaluable(self.df, train))
        counted = histogram(self.df, conditions, self._within)
        found = self._designed(counted, features, train, test or train)
        place = {feature.predicates: at for at, feature in enumerate(features)}
        own = [[place[feature.predicates] for feature in group.features] for group in found.groups]
        helped = helped_share(demands_of(train, features, self.df.columns))
        self._plan = GroupPlan(
            groups=found.groups,
            features=features,
            conditions=conditions,
            rows=counted.rows,
            read=found.read,
            storage=found.storage,
            satisfied=tuple(counted.satisfied(some) for some in own),
            helped=helped,
            refused=refused,
        )
        return self._plan

    def _designed(
        self, counted: Histogram, features: Sequence[Feature], train: QueryLog, test: QueryLog
    ) -> GroupDesign:
        return design_groups(self.df.columns, features, train, test, counted, self._min_rows, opening=self._opening)

    def explain(self) -> str:
        """The plan as text: the groups, their features, and the dry run; ``plan.chart()`` is a picture."""
        return str(self.plan)

    def write(self, path: str, *, packed: bool = True) -> WrittenGroups:
        """Write the groups to a new or empty path; see `es_skipping.layout.write_groups`.

        Parameters
        ----------
        packed
            Whether the blocks of each group and coarse partition share a file.

        Raises
        ------
        DatasetError
            The path is not empty, or lies in the dataset itself.
        """
        refuse_protected(self._dataset)
        return write_groups(
            self.df,
            self.plan.groups,
            path,
            min_rows=self._min_rows,
            within=self._within,
            partition_rows=self._partition_rows,
            helped=self.plan.helped,
            packed=packed,
        )

    def status(self, path: str, log: QueryLog | None = None) -> GroupStatus:
        """How well what was written to a path still fits; see `es_skipping.layout.status`."""
        return group_status(self.df.sparkSession, path, log)
