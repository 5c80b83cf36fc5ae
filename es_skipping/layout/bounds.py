"""Least and greatest values of a layout's blocks, for its dry run: by these, `MinMax` will skip."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from es_skipping.layout.clustering import Bits
from es_skipping.predicates.tree import Operand, Predicate, operands_of
from es_skipping.predicates.truth import sql_of_operand
from es_skipping.predicates.value_sets import ValueSet, at_most

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column

__all__ = ["Bounds", "Values", "held_column", "held_values", "meets"]

Values = npt.NDArray[np.object_]

_HELD: Final = {"date": "unix_date({})", "timestamp": "unix_micros({})", "string": "cast({} AS binary)"}
"""SQL of values that Arrow would not return as predicates hold them. A string may hold bytes that are not UTF-8."""
_KEPT: Final = frozenset({"float", "double", "decimal"})


@dataclass(frozen=True, slots=True)
class Bounds:
    """The bounds of some operands over some blocks.

    Parameters
    ----------
    low, high
        Per operand, the least and the greatest value of each block; None where all values are null.
    """

    low: dict[Operand, Values]
    high: dict[Operand, Values]

    def kept(self, predicate: Predicate, blocks: int) -> Bits:
        """The blocks whose bounds meet a predicate."""
        found = np.ones(blocks, bool)
        for operand in dict.fromkeys(operands_of(predicate)):
            if operand in self.low:
                wanted = at_most(predicate, operand)
                if not wanted.everything:
                    found &= meets(wanted, self.low[operand], self.high[operand])
        return found

    def joined(self, blocks: Sequence[Sequence[int]]) -> Bounds:
        """The bounds of blocks that each consist of some of these blocks."""

        def over(values: Values, some: Sequence[int], best: Any) -> Any:
            return best((values[at] for at in some if values[at] is not None), default=None)

        low = {operand: _objects([over(values, some, min) for some in blocks]) for operand, values in self.low.items()}
        high = {
            operand: _objects([over(values, some, max) for some in blocks]) for operand, values in self.high.items()
        }
        return Bounds(low, high)


def held_column(operand: Operand) -> Column | None:
    """An operand as predicates hold its values; None if it cannot be said, or its type has no such bounds."""
    from es_skipping.spark.classic import functions as F

    text, name = sql_of_operand(operand), operand.type.name
    if text is None or not (name in _HELD or name in _KEPT or operand.type.is_integer):
        return None
    return F.expr(_HELD.get(name, "{}").format(text))


def held_values(column: pa.ChunkedArray | pa.Array) -> Values:
    """The values of a column that `held_column` made, as predicates hold them."""
    values: list[Any] = column.to_pylist()
    return _objects([one.decode("utf-8", "replace") if isinstance(one, bytes) else one for one in values])


def meets(wanted: ValueSet, low: Values, high: Values) -> Bits:
    """The blocks whose bounds meet a set of values.

    NaN counts as greatest, as in Spark; a block may hold null.

    Examples
    --------
    >>> from es_skipping.predicates.tree import Column, Comparison, Literal
    >>> from es_skipping.predicates.types import DataType
    >>> x = Column(("x",), DataType("int"))
    >>> wanted = at_most(Comparison("<", x, Literal(3, x.type)), x)
    >>> meets(wanted, np.array([1, 3, None], object), np.array([9, 9, None], object)).tolist()
    [True, False, False]
    """
    if wanted.null:
        return np.ones(len(low), bool)
    kept = np.zeros(len(low), bool)
    known = np.array([value is not None for value in low], bool)
    least, most = low[known], high[known]
    nan = np.array([isinstance(value, float) and math.isnan(value) for value in most], bool)
    found = nan & wanted.nan
    with np.errstate(invalid="ignore"):  # NaN is not below anything, and above all
        for stretch in wanted.stretches:
            one = np.ones(len(least), bool)
            if stretch.low is not None:
                beyond = (most > stretch.low) if stretch.low_open else (most >= stretch.low)
                one &= beyond.astype(bool) | nan
            if stretch.high is not None:
                below = (least < stretch.high) if stretch.high_open else (least <= stretch.high)
                one &= below.astype(bool)
            found |= one
    kept[known] = found
    return kept


def _objects(values: Sequence[Any]) -> Values:
    found = np.empty(len(values), object)
    found[:] = values
    return found
