"""`design`: which layout suits a workload, by dry runs on a sample."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from es_skipping.errors import DatasetError
from es_skipping.layout.designing.study import Forecast, Study
from es_skipping.layout.sop import SOP
from es_skipping.layout.tree.query_tree import QueryTree
from es_skipping.layout.workload.log import QueryLog
from es_skipping.predicates.show import quoted_name
from es_skipping.reports.render import Cell, Rendered, Table
from es_skipping.reports.units import share

if TYPE_CHECKING:
    from es_skipping.build.dataset import Dataset

__all__ = ["ROWS_PER_SAMPLED_BLOCK", "SAMPLE_ROWS", "Design", "design", "study_of"]

SAMPLE_ROWS: Final = 200_000
_FEATURES: Final = 15
_WORTH_WHILE: Final = 0.8
"""A layout whose queries read more of the rows than this is not recommended."""
ROWS_PER_SAMPLED_BLOCK: Final = 20
"""With fewer rows of the sample in a block, the dry run takes bounds for narrower than they will be."""


@dataclass(frozen=True)
class Design(Rendered):
    """The result of `es_skipping.layout.design`; prints as a table.

    Parameters
    ----------
    dataset
        What was designed for.
    table
        A forecast for each layout, the best first.
    queries, held_out
        Number of queries that the layouts were made from, and number of those that judge them.
    matching
        The average share of the rows that match a held-out query, if it could be counted.
    min_rows, within
        As given.
    sampled
        The sampled share of the rows.
    recommended
        The layout to use; None if none pays.
    """

    dataset: Dataset
    table: tuple[Forecast, ...]
    queries: int
    held_out: int
    matching: float | None
    min_rows: int
    within: tuple[str, ...]
    sampled: float
    recommended: Forecast | None

    @property
    def maker(self) -> SOP | QueryTree | None:
        """The recommended layout, ready for `fit` and `write`; None for a curve, which Delta Lake or Iceberg makes."""
        best = self.recommended
        if best is None or best.name not in ("SOP", "QueryTree"):
            return None
        if best.name == "SOP":
            return SOP(self.dataset, min_rows=self.min_rows, features=_FEATURES, within=self.within)
        across = best.detail.endswith("across")
        return QueryTree(self.dataset, min_rows=self.min_rows, within=() if across else self.within)

    def __repr__(self) -> str:
        best = self.recommended
        return f"Design({best.name if best else None}, {share(best.share, 1)} of the rows)" if best else "Design(None)"

    def parts(self) -> Iterator[str | Table]:
        yield (
            f"{self.dataset}: blocks of at least {self.min_rows:,} rows, judged on {share(self.sampled, 1)} of the "
            f"rows by {self.held_out:,} held-out queries; {self.queries:,} others made the layouts."
        )
        rows = [
            [
                Cell(f"{one.name}, {one.detail}" if one.detail else one.name),
                Cell(f"{one.blocks:,}", number=True),
                Cell(share(one.share, 1), number=True),
                Cell(share(one.trained, 1), number=True),
            ]
            for one in self.table
        ]
        yield Table(("layout", "blocks", "held-out queries read", "other queries read"), rows)
        if self.min_rows * self.sampled < ROWS_PER_SAMPLED_BLOCK:
            yield "The sample has few rows of each block, so blocks look better than they will be: sample more rows."
        if self.matching is not None:
            yield f"{share(self.matching, 1)} of the rows match a held-out query."
        yield self._advice()

    def _advice(self) -> str:
        best = self.recommended
        if best is None:
            return "No layout pays: these queries read most rows whichever way they lie."
        if self.maker is None:
            return f"Recommended: {best.name} over {best.detail}, by Delta Lake or Iceberg, with MinMax indexes."
        if best.detail.endswith("across"):
            return f"Recommended: QueryTree across {', '.join(self.within)}. New rows mean to lay everything out again."
        return f"Recommended: {best.name}. Continue with .maker.fit(log)."


def design(
    dataset: Dataset,
    log: QueryLog | Sequence[str],
    *,
    min_rows: int = 50_000,
    within: Sequence[str] = (),
    holdout: float = 0.2,
    rows: int = SAMPLE_ROWS,
) -> Design:
    """Run layouts dry on a sample, and recommend one.

    It tries `SOP`, `QueryTree`, Z-order and the Hilbert curve, with blocks of the same size and least and greatest
    values of the same columns. The newest queries, held out, judge them. It writes nothing.

    Parameters
    ----------
    dataset
        The dataset.
    log
        The workload, as `SOP.fit` takes it.
    min_rows
        Fewest rows of a block.
    within
        SQL expressions; rows with different values never share a block. `QueryTree` is also tried without them.
    holdout
        The share of the newest queries to judge by.
    rows
        Most rows to sample.

    Raises
    ------
    DatasetError
        The dataset has no rows, or the log has fewer than two queries.

    Examples
    --------
    >>> found = layout.design(dataset, log, min_rows=50_000)                                    # doctest: +SKIP
    >>> print(found)                                                                            # doctest: +SKIP
    >>> found.maker.fit(log)                                                                    # doctest: +SKIP
    """
    study = study_of(dataset, log, within=within, holdout=holdout, rows=rows)
    tried = [study.sop(min_rows, _FEATURES), study.tree(min_rows), *study.curves(min_rows)]
    if within and not study.partitioned:
        across = study.tree(min_rows, across=True)
        tried.append(across)
    table = sorted((one for one in tried if one is not None), key=lambda one: one.share)
    best = table[0] if table and table[0].share <= _WORTH_WHILE else None
    return Design(
        dataset,
        tuple(table),
        len(study.train),
        len(study.test),
        study.matching,
        min_rows,
        tuple(within),
        study.sample.share,
        best,
    )


def study_of(
    dataset: Dataset, log: QueryLog | Sequence[str], *, within: Sequence[str], holdout: float, rows: int
) -> Study:
    """Split the workload, and draw the sample.

    Raises
    ------
    DatasetError
        The dataset has no rows, or the log has fewer than two queries.
    """
    from es_skipping.build.dataset import source_of

    source = source_of(dataset)
    if not isinstance(log, QueryLog):
        log = QueryLog.from_sql(source.df, log)
    if len(log) < 2:
        raise DatasetError(f"the log has {len(log)} queries: pass at least two, because one is held out")
    train, test = log.split(holdout)
    partitioned = (*map(quoted_name, source.partition_columns), *within)
    study = Study(source, train, test, partitioned, rows)
    if not len(study.sample.partitions):
        raise DatasetError(f"{dataset} has no rows to lay out")
    return study
