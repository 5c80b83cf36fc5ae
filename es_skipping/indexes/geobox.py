"""`GeoBox`: where the points of each object lie."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import product
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeAlias

from es_skipping.clauses.clause import Clause, disjunction
from es_skipping.clauses.metadata import Boxes, Kind
from es_skipping.clauses.questions import Meets, Range
from es_skipping.indexes.base import Collector, Index, Target
from es_skipping.indexes.labels import (
    IsNull,
    IsOneOf,
    Leaf,
    NotNull,
    Text,
    Within,
    leaf_of,
)
from es_skipping.indexes.toolkit.arguments import (
    require_column,
    require_positive,
    require_supported,
)
from es_skipping.indexes.toolkit.cover import compact, small_cover
from es_skipping.indexes.toolkit.sedona import coordinates_of, region_of
from es_skipping.indexes.toolkit.shapes import region_clause
from es_skipping.predicates.tree import And, Cast, Operand, Or, Predicate
from es_skipping.predicates.types import DataType, Value

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column as SparkColumn

    from es_skipping.indexes.toolkit.cover import Cells

__all__ = ["BoxCollector", "GeoBox"]

_NUMBERS: Final = ("tinyint", "smallint", "int", "bigint", "float", "double", "decimal")
_INEXACT: Final = ("bigint", "decimal")
"""Types with values that are no double."""

_ROUNDED_BY: Final = 4
"""Doubles by which a cast may have missed the number: Spark's misses it by one, Arrow's of a decimal by three."""

_CELLS: Final = 1024
"""A partial that grew past four times as many boxes is brought back to this number."""

_MOST_QUERIES: Final = 32
"""A filter that asks for more boxes than this asks for a few larger ones instead."""

Stretch: TypeAlias = tuple[float, float]
"""Closed, on one axis. NaN lies at +infinity, as Spark orders it above every number."""

_EVERYWHERE: Final[Stretch] = (-math.inf, math.inf)


@dataclass(frozen=True)
class GeoBox(Index):
    """A few boxes that together cover the points of each object.

    For filters that bound both coordinates. Two `MinMax` compare one bounding box per object with the query's;
    ``boxes=4`` distinguishes an object with points in Paris and Tokyo from one with points in between. Points with a
    null coordinate are in no box, because no filter on both coordinates is true for them. So other indexes serve
    filters on one coordinate alone.

    Parameters
    ----------
    lat, lon
        Names, SQL expressions or Spark Columns of numeric type. Any two coordinates in any system will do.
    boxes
        Most boxes per object.

    Examples
    --------
    >>> GeoBox("lat", "lon", boxes=4)
    GeoBox(lat='lat', lon='lon', boxes=4)
    """

    lat: Any
    lon: Any
    boxes: int = 1

    kind: ClassVar[Kind] = "boxes"

    def __post_init__(self) -> None:
        require_column(self, "lat", self.lat)
        require_column(self, "lon", self.lon)
        require_positive(self, "boxes", self.boxes)

    @property
    def columns(self) -> tuple[Any, ...]:
        return (self.lat, self.lon)

    @property
    def parameters(self) -> dict[str, int | float | str]:
        return {"boxes": self.boxes}

    def check(self, types: Sequence[DataType]) -> None:
        require_supported(self, types, "two numbers", *_NUMBERS)

    def collected(self, columns: Sequence[SparkColumn]) -> list[SparkColumn]:
        return [column.cast("double") for column in columns]

    def value_type(self, types: Sequence[DataType]) -> DataType:
        return DataType("double")

    def collector(self, types: Sequence[DataType]) -> Collector[Cells]:
        return BoxCollector(self.boxes, widen=any(type_.name in _INEXACT for type_ in types))

    def label(self, node: Predicate, target: Target) -> Clause | None:
        if not isinstance(node, And):
            region = region_of(node, lambda point: _is_point_of(point, target))
            return None if region is None else region_clause(target, region)
        axes = [_stretches(node, *axis) for axis in zip(target.operands, target.types, strict=True)]
        known = [axis for axis in axes if axis is not None]
        if len(known) < len(axes):
            return None  # a row with a null coordinate may satisfy it, and is in no box
        while math.prod(map(len, known)) > _MOST_QUERIES:
            known[:] = [axis if len(axis) < max(map(len, known)) else _coarser(axis) for axis in known]
        return disjunction(target.ask(Meets(tuple(_range(*stretch) for stretch in box))) for box in product(*known))


def _is_point_of(operand: Operand, target: Target) -> bool:
    lat, lon = target.operands
    x_y = coordinates_of(operand)
    return x_y is not None and _is_same(x_y[0], lon) and _is_same(x_y[1], lat)


def _is_same(argument: Operand, coordinate: Operand) -> bool:
    """A cast to double is what Spark puts around other numbers, and what was collected."""
    cast = argument.child if isinstance(argument, Cast) and argument.type.name == "double" else argument
    return coordinate in (argument, cast)


# --- where a predicate can be true --------------------------------------------------------------------------------


def _stretches(node: Predicate, operand: Operand, type: DataType) -> list[Stretch] | None:
    """Where the coordinate lies, sorted and disjoint, in every row that satisfies the predicate; None where it may also
    be null."""
    if isinstance(node, And | Or):
        children = [_stretches(child, operand, type) for child in node.children]
        known = [child for child in children if child is not None]
        if not known or (isinstance(node, Or) and len(known) < len(children)):
            return None
        if isinstance(node, Or):
            return _union([stretch for child in known for stretch in child])
        common = known[0]
        for child in known[1:]:
            common = _intersection(common, child)
        return common
    leaf = leaf_of(node, operand, type)
    return None if leaf is None else _leaf_stretches(leaf)


def _leaf_stretches(leaf: Leaf) -> list[Stretch] | None:
    nan: list[Stretch] = [(math.inf, math.inf)] if isinstance(leaf, IsOneOf | Within) and leaf.nan else []
    match leaf:
        case IsNull():
            return None
        case IsOneOf(values, negated=False):
            return _union([(_below(value), _above(value)) for value in values] + nan)
        case Within(ranges):
            return _union([(_below(r.low, -math.inf), _above(r.high, math.inf)) for r in ranges] + nan)
        case IsOneOf() | NotNull() | Text():
            return [_EVERYWHERE]


def _below(value: Value | None, otherwise: float = -math.inf) -> float:
    """The greatest double that is not above a number."""
    if value is None:
        return otherwise
    assert isinstance(value, int | float | Decimal)
    nearest = float(value)
    return math.nextafter(nearest, -math.inf) if nearest > value else nearest


def _above(value: Value | None, otherwise: float = math.inf) -> float:
    """The least double that is not below a number."""
    if value is None:
        return otherwise
    assert isinstance(value, int | float | Decimal)
    nearest = float(value)
    return math.nextafter(nearest, math.inf) if nearest < value else nearest


def _union(stretches: list[Stretch]) -> list[Stretch]:
    union: list[Stretch] = []
    for low, high in sorted(stretches):
        if union and low <= union[-1][1]:
            union[-1] = (union[-1][0], max(union[-1][1], high))
        else:
            union.append((low, high))
    return union


def _intersection(first: list[Stretch], second: list[Stretch]) -> list[Stretch]:
    common: list[Stretch] = []
    one = other = 0
    while one < len(first) and other < len(second):
        low, high = (
            max(first[one][0], second[other][0]),
            min(first[one][1], second[other][1]),
        )
        if low <= high:
            common.append((low, high))
        if first[one][1] < second[other][1]:
            one += 1
        else:
            other += 1
    return common


def _coarser(stretches: list[Stretch]) -> list[Stretch]:
    """About half as many, the narrowest gaps closed."""
    gaps = sorted(range(1, len(stretches)), key=lambda at: stretches[at][0] - stretches[at - 1][1])
    closed = set(gaps[: (len(stretches) + 1) // 2])
    coarser: list[Stretch] = []
    for at, (low, high) in enumerate(stretches):
        if at in closed:
            coarser[-1] = (coarser[-1][0], high)
        else:
            coarser.append((low, high))
    return coarser


def _range(low: float, high: float) -> Range:
    return Range(None if low == -math.inf else low, None if high == math.inf else high)


# --- collecting ---------------------------------------------------------------------------------------------------


class BoxCollector(Collector["Cells"]):
    """Points as boxes without extent, brought together where they become many."""

    def __init__(self, boxes: int, *, widen: bool) -> None:
        self._boxes = boxes
        self._widen = widen
        self._most = 1 if boxes == 1 else max(_CELLS, 4 * boxes)

    def partial(self, columns: Sequence[pa.Array]) -> Cells:
        return self._bounded(self.cells(columns))

    def cells(self, columns: Sequence[pa.Array]) -> Cells:
        """The points of a batch, as boxes."""
        import numpy as np
        import pyarrow as pa
        import pyarrow.compute as pc

        present = pc.and_(pc.is_valid(columns[0]), pc.is_valid(columns[1]))
        cells = np.empty((pc.sum(present).as_py() or 0, 4))
        for axis, column in enumerate(columns):
            values = column.filter(present).cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
            cells[:, 2 * axis] = np.where(np.isnan(values), np.inf, values)
            cells[:, 2 * axis + 1] = cells[:, 2 * axis]
        return cells

    def merge(self, first: Cells, second: Cells) -> Cells:
        import numpy as np

        return self._bounded(np.concatenate([first, second]))

    def _bounded(self, cells: Cells) -> Cells:
        return compact(cells, self._most) if len(cells) > 4 * self._most else cells

    def finish(self, partial: Cells) -> Boxes:
        import numpy as np

        cells = small_cover(compact(partial, self._most), self._boxes) + 0.0  # no -0.0
        if self._widen:
            for _ in range(_ROUNDED_BY):
                cells[:, ::2] = np.nextafter(cells[:, ::2], -np.inf)
                cells[:, 1::2] = np.nextafter(cells[:, 1::2], np.inf)
        return Boxes(tuple(((a, b), (c, d)) for a, b, c, d in cells.tolist()))
