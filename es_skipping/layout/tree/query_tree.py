"""`QueryTree`: a greedy Qd-tree (Yang et al., *Qd-tree: Learning Data Layouts for Big Data Analytics*, SIGMOD 2020)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from es_skipping.build.conditions import Condition, condition_of, is_usable
from es_skipping.errors import DatasetError, IndexDefinitionError
from es_skipping.indexes.base import Index
from es_skipping.indexes.features import Features
from es_skipping.indexes.minmax import MinMax
from es_skipping.layout.bounds import Bounds, held_column
from es_skipping.layout.features.unevaluable import unevaluable
from es_skipping.layout.histogram import GroupBlocks
from es_skipping.layout.passes import blocked
from es_skipping.layout.plan import predict
from es_skipping.layout.row_layout import Clock, RowLayout
from es_skipping.layout.sample import sampled
from es_skipping.layout.tree.candidates import bound_of, cut_conditions, proposed_cuts
from es_skipping.layout.tree.effects import Effects, effects_of
from es_skipping.layout.tree.growing import grow
from es_skipping.layout.tree.plan import TreePlan
from es_skipping.layout.tree.routing import RoutedTree, counted_leaves
from es_skipping.layout.workload.log import QueryLog
from es_skipping.lookup.built_with import columns_of
from es_skipping.predicates.tree import Comparison, IsIn, Literal, Matches, Operand, Predicate, leaves_of
from es_skipping.predicates.truth import sql_of_operand
from es_skipping.workload.mining import Feature

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from es_skipping.build.collect import Progress
    from es_skipping.build.dataset import Dataset
    from es_skipping.build.source import Source

__all__ = ["QueryTree", "filtered_operands"]

_MINED_FEATURES: Final = 15
_SAMPLE_ROWS: Final = 600_000


class QueryTree(RowLayout[TreePlan]):
    """Lays the rows of a dataset out by a tree of conditions that the queries of a workload ask for.

    The tree starts with all rows, and divides them again and again by the condition that lets the workload skip most:
    a feature, as `SOP` mines them, an equality, a test of a string, or a bound of any filtered column, dates too. The
    rows at each leaf become objects. `write` makes an index of the features and `MinMax` indexes of the filtered
    columns, and queries need no change.

    A tree over all rows reads least, but new rows may belong to any of its objects, so a new month means to lay out
    everything again. With ``within=["trunc(day, 'MM')"]`` no object holds rows of two months, and a month can be added
    or dropped alone.

    Parameters
    ----------
    dataset
        What to lay out, read as its arguments say.
    min_rows
        Fewest rows of an object; each has less than twice as many.
    within
        SQL expressions; rows with different values never share an object. Partition columns of the dataset count too.

    Raises
    ------
    DatasetError
        The dataset cannot be opened.

    Examples
    --------
    >>> tree = layout.QueryTree(esk.Dataset(spark, "/lake/sales"), min_rows=50_000)             # doctest: +SKIP
    >>> print(tree.fit(layout.QueryLog.from_file(tree.df, "queries.sql")))                      # doctest: +SKIP
    >>> tree.write("/lake/sales_laid_out")                                                      # doctest: +SKIP
    """

    def __init__(self, dataset: Dataset, *, min_rows: int, within: Sequence[str] = ()) -> None:
        super().__init__(dataset, min_rows=min_rows, within=within)

    def fit(self, log: QueryLog | Sequence[str], *, holdout: float = 0.2, progress: Progress | None = None) -> TreePlan:
        """Grow the tree on a sample, count its leaves' rows, and predict what held-out queries would read.

        Reads the dataset twice, or three times if some filter can fail for a row, and writes nothing.

        Parameters
        ----------
        log
            The workload; for SQL texts see `QueryLog.from_sql`.
        holdout
            The share of the newest queries to predict on; 0 uses all queries for the tree.
        progress
            Called with ``(done, total, phase)`` during the work.

        Raises
        ------
        DatasetError
            No filter of the workload divides the rows, or the dataset cannot be read.
        """
        clock = Clock(progress)
        train, test = self._parts(log, holdout)
        with clock.step("mine"):
            failing = unevaluable(self.df, train)
            mined, _, refused = self._finder.found(train, _MINED_FEATURES, failing)
            cuts = cut_conditions(self.df, proposed_cuts(train, [feature.predicate for feature in mined], failing))
            if not cuts:
                raise DatasetError(f"these {len(train)} queries have no condition to divide the rows by")
        with clock.step("sample"):
            sample = sampled(self.df, list(cuts.values()), self._within, _SAMPLE_ROWS)
        with clock.step("grow"):
            effects = effects_of(list(cuts), train)
            tree = grow(sample.bits, sample.partitions, effects, sample.least(self._min_rows))
        bounded = filtered_operands(self._source, train, failing)
        features = self._kept([feature.predicate for feature in mined], list(cuts), tree.used, bounded, effects)
        with clock.step("count"):
            numbers = [*features, *(number for number in tree.used if number not in features)]
            texts = list(cuts.values())
            routed = RoutedTree(
                tree.renumbered(numbers), tuple(texts[number] for number in numbers), sample.numbers, self._within
            )
            leaves = counted_leaves(self.df, routed, bounded)
        with clock.step("cluster"):
            weights = effects.skip_no[numbers] @ effects.weights
            clustered = tuple(leaves.histogram.cluster(weights.tolist(), self._min_rows))
        with clock.step("predict"):
            bounds = [_of_blocks(some, one) for some, one in zip(leaves.bounds, clustered, strict=True)]
            trained, tested = (predict(part, list(features.values()), clustered, bounds) for part in (train, test))
        self._plan = TreePlan(
            features=tuple(features.values()),
            conditions=tuple(texts[number] for number in features),
            min_rows=self._min_rows,
            within=self._within,
            histogram=leaves.histogram,
            clustered=clustered,
            trained=trained,
            tested=tested,
            refused=refused,
            seconds=clock.seconds,
            routed=routed,
            bounded=bounded,
            satisfied=tuple(float(share) for share in sample.bits[:, list(features)].mean(axis=0)),
        )
        return self._plan

    def _kept(
        self,
        mined: Sequence[Predicate],
        cuts: Sequence[Predicate],
        used: Sequence[int],
        bounded: Sequence[Operand],
        effects: Effects,
    ) -> dict[int, Feature]:
        """The cuts that the index of features will hold, by number: those that bounds do not tell apart."""
        written = replace(self._source, format="parquet")
        found: dict[int, Feature] = {}
        for number in [number for number, cut in enumerate(cuts) if cut in mined or number in used]:
            if bound_of(cuts[number]) in bounded or not is_usable(self._source, cuts[number]):
                continue
            condition = condition_of(written, cuts[number])
            if isinstance(condition, Condition):
                weight = int(effects.skip_no[number] @ effects.weights)
                found[number] = Feature((condition.predicate,), weight, weight)
        return found

    def _blocked(self, plan: TreePlan) -> DataFrame:
        return blocked(self.df, [plan.routed.leaf()], self._within, plan.clustered)

    def _indexes(self, plan: TreePlan) -> list[Index]:
        texts = (sql_of_operand(operand) for operand in plan.bounded)
        made: list[Index] = [MinMax(text) for text in texts if text is not None]
        return [Features(*plan.conditions), *made] if plan.conditions else made


def filtered_operands(
    source: Source, log: Sequence[Predicate] | QueryLog, failing: Collection[Operand]
) -> tuple[Operand, ...]:
    """The operands of a workload's filters that `MinMax` can bound, the most used first; no partition columns, and none
    of ``failing``."""
    uses: dict[Operand, int] = {}
    for query in log:
        predicate = query.predicate if hasattr(query, "predicate") else query
        operands = (_compared(leaf) for leaf in leaves_of(predicate))
        for operand in {operand for operand in operands if operand is not None}:
            uses[operand] = uses.get(operand, 0) + 1
    ranked = sorted(uses, key=lambda operand: -uses[operand])
    return tuple(operand for operand in ranked if operand not in failing and _can_be_bounded(source, operand))


def _compared(leaf: Predicate) -> Operand | None:
    match leaf:
        case Comparison(_, operand, Literal()) | IsIn(operand) | Matches("starts" | "like", operand):
            return operand
    return None


def _can_be_bounded(source: Source, operand: Operand) -> bool:
    from es_skipping.build.definitions import defined

    text = sql_of_operand(operand)
    if text is None or held_column(operand) is None:
        return False
    if any(column.path[0] in source.partition_columns for column in columns_of([operand])):
        return False
    try:
        _, wanted = defined(replace(source, format="parquet"), MinMax(text))
    except (IndexDefinitionError, DatasetError):
        return False
    return wanted.operands == (operand,)


def _of_blocks(leaves: Bounds, clustered: GroupBlocks) -> Bounds:
    """The bounds of blocks, from those of the leaves in them."""
    blocks = clustered.blocks
    members: list[list[int]] = [[] for _ in blocks.rows]
    for leaf, (first, pieces) in enumerate(zip(blocks.first.tolist(), blocks.pieces.tolist(), strict=True)):
        for block in range(first, first + pieces):
            members[block].append(leaf)
    return leaves.joined(members)
