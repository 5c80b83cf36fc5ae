"""A sample of a dataset's rows: their coarse partitions, and the conditions that they satisfy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from es_skipping.layout.bounds import held_column
from es_skipping.layout.clustering import Bits, Counts
from es_skipping.layout.histogram import Words, unpacked
from es_skipping.layout.passes import coarse, words_of
from es_skipping.layout.ranks import Ranks, ranked
from es_skipping.predicates.tree import Operand

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["RowSample", "sampled"]


@dataclass(frozen=True, slots=True)
class RowSample:
    """Some rows.

    Parameters
    ----------
    bits
        A row per row, a column per condition.
    partitions
        The coarse partition of each row, as a position in ``numbers``.
    numbers
        The numbers of the coarse partitions, in ascending order.
    share
        The sampled share of all rows.
    values
        The values of operands, as ranks.
    """

    bits: Bits
    partitions: Counts
    numbers: Words
    share: float
    values: dict[Operand, Ranks] = field(default_factory=dict)

    def least(self, rows: int) -> int:
        """The rows of the sample that surely stand for at least this many rows: a little more than on average."""
        average = rows * self.share
        return rows if self.share == 1 else max(1, round(average + average**0.5))


def sampled(
    df: DataFrame, conditions: Sequence[str], within: Sequence[str], rows: int, operands: Sequence[Operand] = ()
) -> RowSample:
    """Draw rows; the same ones from the same files.

    Parameters
    ----------
    conditions
        SQL conditions.
    within
        SQL expressions whose values define coarse partitions.
    rows
        About how many; all, if there are not many more.
    operands
        Whose values to take too, where they can be ordered.
    """
    from es_skipping.spark.classic import functions as F

    total = df.count()
    share = 1.0 if total <= 1.25 * rows else rows / total
    some = df if share == 1 else df.sample(fraction=share, seed=1)
    held = {operand: column for operand in operands if (column := held_column(operand)) is not None}
    found = some.select(
        coarse(within).alias("coarse"),
        *([F.array(*words_of(conditions)).alias("words")] if conditions else []),
        *(column.alias(f"v{at}") for at, column in enumerate(held.values())),
    ).toArrow()
    bits = np.zeros((found.num_rows, 0), bool)
    if conditions:
        words = found["words"].combine_chunks().flatten().to_numpy()
        bits = unpacked(words.reshape(found.num_rows, -1), len(conditions))
    numbers, partitions = np.unique(found["coarse"].to_numpy(), return_inverse=True)
    values = {operand: ranked(found[f"v{at}"]) for at, operand in enumerate(held)}
    drawn = found.num_rows / total if total and share < 1 else 1.0
    return RowSample(bits, partitions.astype(np.int64), numbers, drawn, values)
