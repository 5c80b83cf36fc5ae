"""`GeoBox`: where the points of each object lie."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import product
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeAlias

from es_skipping.clauses.clause import Clause, conjunction, disjunction
from es_skipping.clauses.metadata import Kind
from es_skipping.clauses.questions import Meets, Range
from es_skipping.indexes.base import Collector, Index, Target
from es_skipping.indexes.toolkit.arguments import require_column, require_positive, require_supported
from es_skipping.indexes.toolkit.boxes import BoxCollector
from es_skipping.indexes.toolkit.halfplanes import half_planes, region
from es_skipping.indexes.toolkit.sedona import coordinates_of, region_of
from es_skipping.indexes.toolkit.shapes import region_clause
from es_skipping.predicates.tree import And, Cast, Operand, Predicate
from es_skipping.predicates.types import DataType, Value
from es_skipping.predicates.value_sets import ValueSet, at_most

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column as SparkColumn

    from es_skipping.indexes.toolkit.cover import Cells

__all__ = ["GeoBox"]

_NUMBERS: Final = ("tinyint", "smallint", "int", "bigint", "float", "double", "decimal")
_INEXACT: Final = ("bigint", "decimal")
"""Types with values that are no double."""

_MAX_PIECES: Final = 32
"""A filter that asks for more boxes than this asks for a few larger ones instead."""

Stretch: TypeAlias = tuple[float, float]
"""Closed, on one axis. NaN lies at +infinity, as Spark orders it above every number."""


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

    def collected_arrays(self, columns: Sequence[pa.Array]) -> list[pa.Array]:
        import pyarrow as pa

        # Arrow rounds a decimal twice; its text is read as the nearest double, as Spark does.
        plain = [column.cast(pa.string()) if pa.types.is_decimal(column.type) else column for column in columns]
        return [column.cast(pa.float64(), safe=False) for column in plain]

    def value_type(self, types: Sequence[DataType]) -> DataType:
        return DataType("double")

    def collector(self, types: Sequence[DataType]) -> Collector[Cells]:
        return BoxCollector(self.boxes, widen=any(type_.name in _INEXACT for type_ in types))

    def label(self, node: Predicate, target: Target) -> Clause | None:
        if not isinstance(node, And):
            region = region_of(node, lambda point: _is_point_of(point, target))
            return None if region is None else region_clause(target, region)
        axes = [at_most(node, coordinate) for coordinate in target.operands]
        within = _linear_region(node, target, axes)
        if any(axis.null for axis in axes):
            return within  # without linear conditions a row with a null coordinate may satisfy it, and is in no box
        if within is not None and all(len(axis.stretches) <= 1 for axis in axes):
            return within
        asked = self._asked(axes, target)
        return asked if within is None else conjunction([within, asked])

    def _asked(self, axes: Sequence[ValueSet], target: Target) -> Clause:
        known = list(map(_stretches, axes))
        while math.prod(map(len, known)) > _MAX_PIECES:
            known[:] = [axis if len(axis) < max(map(len, known)) else _coarser(axis) for axis in known]
        return disjunction(target.ask(Meets(tuple(_range(*stretch) for stretch in box))) for box in product(*known))


def _linear_region(node: And, target: Target, axes: Sequence[ValueSet]) -> Clause | None:
    """Where the linear conditions of a conjunction can all be true; None if there are none.

    Such a condition is null, and so not true, where a coordinate is.
    """
    lat, lon = target.operands
    lines = half_planes(node.children, lambda one: _is_same(one, lon), lambda one: _is_same(one, lat))
    if not lines:
        return None
    y, x = (_extent(axis) for axis in axes)
    rectangles = region(lines, x, y)
    return None if rectangles is None else region_clause(target, rectangles)


def _extent(values: ValueSet) -> Stretch:
    """The least stretch that holds all numbers of a set."""
    stretches = _stretches(values)
    return (stretches[0][0], stretches[-1][1]) if stretches else (-math.inf, math.inf)


def _is_point_of(operand: Operand, target: Target) -> bool:
    lat, lon = target.operands
    x_y = coordinates_of(operand)
    return x_y is not None and _is_same(x_y[0], lon) and _is_same(x_y[1], lat)


def _is_same(argument: Operand, coordinate: Operand) -> bool:
    """A cast to double is what Spark puts around other numbers, and what was collected."""
    cast = argument.child if isinstance(argument, Cast) and argument.type.name == "double" else argument
    return coordinate in (argument, cast)


# --- where a predicate can be true --------------------------------------------------------------------------------


def _stretches(values: ValueSet) -> list[Stretch]:
    """The doubles that numbers of a set can be nearest to: closed, sorted and disjoint."""
    ends = [(_below(low), _above(high)) for low, _, high, _ in values.stretches]
    found: list[Stretch] = []
    for low, high in [*ends, *([(math.inf, math.inf)] if values.nan else [])]:
        if found and low <= found[-1][1]:
            found[-1] = (found[-1][0], high)
        else:
            found.append((low, high))
    return found


def _below(value: Value | None) -> float:
    """The greatest double that is not above a number; without one -infinity."""
    if value is None:
        return -math.inf
    assert isinstance(value, int | float | Decimal)
    nearest = float(value)
    return math.nextafter(nearest, -math.inf) if nearest > value else nearest


def _above(value: Value | None) -> float:
    """The least double that is not below a number; without one infinity."""
    if value is None:
        return math.inf
    assert isinstance(value, int | float | Decimal)
    nearest = float(value)
    return math.nextafter(nearest, math.inf) if nearest < value else nearest


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
