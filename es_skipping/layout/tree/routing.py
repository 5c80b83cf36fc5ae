"""A query tree as a Spark expression: the leaf of each row; and the counts of each leaf's rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from es_skipping.indexes.features import WORD_BITS
from es_skipping.layout.bounds import Bounds, held_column, held_values
from es_skipping.layout.histogram import Group, Histogram, Words, unpacked
from es_skipping.layout.passes import coarse, key_of, words_of
from es_skipping.layout.tree.growing import Tree
from es_skipping.predicates.tree import Operand

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["Leaves", "RoutedTree", "counted_leaves"]

_NO_LEAF: Final = -1
"""The leaf of rows in a coarse partition that the tree has no root for."""


@dataclass(frozen=True, slots=True)
class RoutedTree:
    """A tree over a dataset's rows.

    Parameters
    ----------
    tree
        Its cuts are the numbers of conditions.
    conditions
        SQL, at least one.
    partitions
        The number of the coarse partition of each root, in ascending order.
    within
        The expressions that define coarse partitions.
    """

    tree: Tree
    conditions: tuple[str, ...]
    partitions: Words
    within: tuple[str, ...]

    def leaf(self) -> Column:
        """The leaf of each row, as a whole number."""
        return self.routed()["leaf"]

    def routed(self) -> Column:
        """The leaf of each row and the words of its conditions, as a struct: ``leaf``, ``w0``, ``w1`` ..."""
        from es_skipping.spark.classic import functions as F

        words = -(-len(self.conditions) // WORD_BITS)

        def both(held: Column) -> Column:
            leaf = F.coalesce(self._leaf(held), F.lit(_NO_LEAF)).cast("bigint").alias("leaf")
            return F.struct(leaf, *(F.get(held, F.lit(at)).alias(f"w{at}") for at in range(words)))

        # The words are the argument of a function, so that Spark computes them once and not for each step.
        return F.get(F.transform(F.array(F.array(*words_of(self.conditions))), both), F.lit(0))

    def _leaf(self, words: Column) -> Column:
        from es_skipping.spark.classic import functions as F

        root = self._root()
        if not self.tree.depth:
            return root
        word_of, bit_of = (_array(some) for some in np.divmod(np.maximum(self.tree.cuts, 0), WORD_BITS))
        following = _array(np.stack([self.tree.no, self.tree.yes], axis=1).ravel())

        def following_node(node: Column, step: Column) -> Column:
            satisfied = F.call_function("getbit", F.get(words, F.get(word_of, node)), F.get(bit_of, node))
            return F.get(following, node * 2 + satisfied.cast("int"))

        return F.aggregate(F.sequence(F.lit(1), F.lit(self.tree.depth)), root, following_node)

    def _root(self) -> Column:
        """The root of a row's coarse partition, found by binary search; null if there is none."""
        from es_skipping.spark.classic import functions as F

        if not self.within:
            return F.lit(int(self.tree.roots[0])).cast("int")
        known, roots = _array(self.partitions, "bigint"), _array(self.tree.roots)
        steps = _array([1 << at for at in reversed(range(len(self.partitions).bit_length()))])

        def find(number: Column) -> Column:
            def passed(place: Column, step: Column) -> Column:
                return F.when(F.get(known, place + step - 1) <= number, place + step).otherwise(place)

            return F.aggregate(steps, F.lit(0), passed)

        def root(number: Column) -> Column:
            place = find(number) - 1
            return F.when(F.get(known, place) == number, F.get(roots, place))

        return F.get(F.transform(F.array(coarse(self.within)), root), F.lit(0))


@dataclass(frozen=True, slots=True)
class Leaves:
    """The leaves of a dataset's coarse partitions, each as one vector of a histogram.

    Parameters
    ----------
    histogram
        The vectors are unions of the bits of a leaf's rows, one for each condition of the tree.
    bounds
        For each group of the histogram, the bounds of its leaves.
    """

    histogram: Histogram
    bounds: tuple[Bounds, ...]


def counted_leaves(df: DataFrame, routed: RoutedTree, operands: Sequence[Operand]) -> Leaves:
    """Count the rows of each leaf: one pass over the data.

    Parameters
    ----------
    operands
        The operands to take the bounds of.
    """
    from es_skipping.spark.classic import functions as F

    held = {operand: column for operand in operands if (column := held_column(operand)) is not None}
    words = range(-(-len(routed.conditions) // WORD_BITS))
    rows = df.select(
        coarse(routed.within).alias("coarse"),
        routed.routed().alias("routed"),
        *(column.alias(f"v{at}") for at, column in enumerate(held.values())),
    )
    counted = rows.groupBy("coarse", F.col("routed.leaf").alias("leaf")).agg(
        F.count(F.lit(1)).alias("rows"),
        *(F.bit_or(F.col(f"routed.w{at}")).alias(f"w{at}") for at in words),
        *(F.min(f"v{at}").alias(f"low{at}") for at in range(len(held))),
        *(F.max(f"v{at}").alias(f"high{at}") for at in range(len(held))),
    )
    keyed = counted.select("*", key_of(F.col("coarse"), [F.col("leaf")]).alias("key"))
    found = keyed.toArrow().sort_by([("coarse", "ascending"), ("leaf", "ascending")])
    number = found["coarse"].to_numpy()
    keys, counts = found["key"].to_numpy(), found["rows"].to_numpy()
    columns = np.array([found[f"w{at}"].to_numpy() for at in words], np.int64)
    vectors = unpacked(columns.T, len(routed.conditions))
    groups, bounds = [], []
    low, high = (
        {operand: held_values(found[f"{side}{at}"]) for at, operand in enumerate(held)} for side in ("low", "high")
    )
    for one in np.unique(number):
        some = np.flatnonzero(number == one)
        groups.append(Group(int(one), keys[some], vectors[some], counts[some]))
        bounds.append(
            Bounds(
                {operand: values[some] for operand, values in low.items()},
                {operand: values[some] for operand, values in high.items()},
            )
        )
    return Leaves(Histogram(tuple(groups), len(routed.conditions)), tuple(bounds))


def _array(values: Any, type: str = "int") -> Column:
    """An array that Spark computes once, while it plans: as one text it costs no node for each value."""
    from es_skipping.spark.classic import functions as F

    return F.split(F.lit(",".join(str(int(value)) for value in values)), ",").cast(f"array<{type}>")
