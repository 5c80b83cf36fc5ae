"""Values of a column as ranks among its distinct values: whole numbers order rows, and bound blocks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from es_skipping.layout.bounds import Values, held_values, meets
from es_skipping.layout.clustering import Bits, Counts
from es_skipping.predicates.value_sets import ValueSet

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Ranks", "ranked"]


@dataclass(frozen=True, slots=True)
class Ranks:
    """A column of a sample.

    Parameters
    ----------
    ranks
        Per row, the position of its value in ``values``; -1 for null.
    values
        The distinct values in ascending order, NaN last.
    """

    ranks: Counts
    values: Values

    def allowed(self, wanted: ValueSet) -> Counts:
        """How many of the values before each position a set has: two of these tell whether a range has any.

        Examples
        --------
        >>> from es_skipping.predicates.tree import Column, Comparison, Literal
        >>> from es_skipping.predicates.types import DataType
        >>> from es_skipping.predicates.value_sets import at_most
        >>> x = Column(("x",), DataType("int"))
        >>> wanted = at_most(Comparison("<", x, Literal(3, x.type)), x)
        >>> Ranks(np.array([0, 1]), np.array([1, 5], object)).allowed(wanted).tolist()
        [0, 1, 1]
        """
        members: Bits = meets(wanted, self.values, self.values)
        return np.concatenate([[0], np.cumsum(members)]).astype(np.int64)

    def bits(self, count: int) -> Counts:
        """The rows' quantiles as numbers of this many bits; null is least."""
        order = np.argsort(self.ranks, kind="stable")
        ordered = self.ranks[order]
        first = np.concatenate([[True], ordered[1:] != ordered[:-1]])[: len(ordered)]
        place = np.maximum.accumulate(np.where(first, np.arange(len(ordered)), 0))
        found = np.empty(len(ordered), np.int64)
        found[order] = place * (1 << count) // max(1, len(ordered))
        return found


def ranked(column: pa.ChunkedArray) -> Ranks:
    """The ranks of a column's values; -0.0 is 0.0, and NaN the greatest."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_floating(column.type):
        column = pc.add(column, pa.scalar(0.0, column.type))  # -0.0 + 0.0 is 0.0
    distinct = pc.unique(column).drop_null()
    order: Any = pc.array_sort_indices(distinct)  # binary order for strings; NaN comes last
    ordered = distinct.take(order)
    places = np.asarray(pc.index_in(column, ordered).fill_null(-1).combine_chunks(), np.int64)
    return Ranks(places, held_values(ordered))
