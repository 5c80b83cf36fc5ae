"""`MetricDistance`: the distances of each object's points from one point."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Final

from es_skipping.clauses.clause import Clause, disjunction
from es_skipping.clauses.metadata import Kind
from es_skipping.clauses.questions import HasNaN, HasNotNull, HasNull, Overlaps, Range
from es_skipping.errors import IndexDefinitionError
from es_skipping.indexes.base import Collector, Index, Target
from es_skipping.indexes.minmax import Extent, MinMax
from es_skipping.indexes.toolkit.arguments import require_column, require_supported
from es_skipping.indexes.toolkit.column import only
from es_skipping.indexes.toolkit.metrics import METRICS, Metric, called_sql, declared_points, points_of
from es_skipping.predicates.tree import Comparison, Literal, NullTest, Operand, Predicate
from es_skipping.predicates.types import DataType

__all__ = ["MetricDistance"]

_DOUBLE: Final = DataType("double")
_LARGEST: Final = 1e150
"""Squares of larger distances overflow, and then they are no distances any more."""
_RELATIVE: Final = 1e-6
_ABSOLUTE: Final = 1e-9
"""How far computed distances may be off, together; both are far above what double precision does to the metrics."""


@dataclass(frozen=True)
class MetricDistance(Index):
    """The least and the greatest distance of each object's points from one point, the origin.

    For filters on the distance from *any* point: by the triangle inequality, points within r of p are between d(p,
    origin) - r and d(p, origin) + r from the origin. It helps if each object's points lie on a thin ring around the
    origin, for example after sorting by that distance, or if they are near each other.

    Parameters
    ----------
    columns
        Names, SQL expressions or Spark Columns of numbers: two of them for ``haversine`` (latitude and longitude in
        degrees), any number for ``euclidean``.
    origin
        One number per column.
    metric
        ``"euclidean"``, or ``"haversine"``: great-circle distance in kilometres on a sphere of radius 6371.0088. Or the
        name of a function that the session declared to be a metric (`esk.declare_function`).

    References
    ----------
    *Extensible Data Skipping* (Ta-Shma, Khazma, Lushi, Feder), Table I.

    Examples
    --------
    >>> index = MetricDistance(["x", "y"], origin=[0, 0])
    >>> index.distance([3, 4])
    'sqrt(power(CAST(x AS DOUBLE) - 3.0D, 2) + power(CAST(y AS DOUBLE) - 4.0D, 2))'
    """

    columns_: tuple[Any, ...]
    origin: tuple[float, ...]
    metric: str = "euclidean"

    kind: ClassVar[Kind] = "intervals"

    def __init__(
        self,
        columns: Sequence[Any],
        origin: Sequence[float],
        metric: str = "euclidean",
        *,
        protect: str | None = None,
        key: str | None = None,
    ) -> None:
        if isinstance(columns, str) or not columns:
            raise IndexDefinitionError(f"MetricDistance: columns are {columns!r}; pass a list such as ['x', 'y']")
        for column in columns:
            require_column(self, "a column", column)
        if not isinstance(metric, str) or not metric.isidentifier():
            raise IndexDefinitionError(
                f"MetricDistance: metric is {metric!r}; pass one of {', '.join(METRICS)}, or the name of a function"
            )
        axes = METRICS[metric].axes if metric in METRICS else None
        if axes is not None and len(columns) != axes:
            raise IndexDefinitionError(f"MetricDistance: {metric} needs {axes} columns, not {len(columns)}")
        super().__init__(protect=protect, key=key)
        object.__setattr__(self, "columns_", tuple(columns))
        object.__setattr__(self, "origin", _point(origin, len(columns), "origin"))
        object.__setattr__(self, "metric", metric)

    def __repr__(self) -> str:
        return f"MetricDistance({list(self.columns_)!r}, origin={list(self.origin)!r}, metric={self.metric!r})"

    @property
    def columns(self) -> tuple[Any, ...]:
        return self.columns_

    @property
    def parameters(self) -> dict[str, int | float | str]:
        return {"origin": json.dumps(self.origin), "metric": self.metric}

    @classmethod
    def from_definition(cls, columns: Sequence[Any], parameters: Any) -> MetricDistance:
        return cls(columns, json.loads(parameters["origin"]), parameters["metric"])

    def distance(self, point: Sequence[float]) -> str:
        """SQL for the distance of the columns from a point, as filters are recognised by."""
        texts = [column if isinstance(column, str) else str(column) for column in self.columns_]
        return self._sql(texts, _point(point, len(texts), "point"))

    def _sql(self, columns: Sequence[str], point: Sequence[float]) -> str:
        if self.metric in METRICS:
            return METRICS[self.metric].sql(columns, point)
        return called_sql(self.metric, columns, point)

    def summarised(self, columns: Sequence[str]) -> list[str]:
        return [self._sql(columns, self.origin)]

    def check(self, types: Sequence[DataType]) -> None:
        require_supported(self, types, "numbers", "double")

    def value_type(self, types: Sequence[DataType]) -> DataType:
        return _DOUBLE

    def collector(self, types: Sequence[DataType]) -> Collector[Extent]:
        return MinMax("distance").collector([_DOUBLE])

    def label(self, node: Predicate, target: Target) -> Clause | None:
        indexed = only(target.operands)
        if isinstance(node, NullTest):
            known = self.metric in METRICS and self._points(node.operand, indexed) is not None
            if node.operand != indexed and not known:
                return None
            return target.ask(HasNotNull() if node.negated else HasNull())
        if not (isinstance(node, Comparison) and isinstance(node.right, Literal)):
            return None
        radius = _radius(node.right)
        between = self._between(node.left, target)
        if between is None or radius is None:
            return None
        # Beyond the poles rounding makes NaN of some distances of this one, which is greater than any.
        beyond = self.metric == "haversine" and node.comparator in (">", ">=")
        wanted = None if beyond else _ring(node.comparator, between, radius)
        if wanted is None:
            return target.ask(HasNotNull())
        near = [target.ask(Overlaps((wanted,))), target.ask(HasNaN())]
        if self.metric not in METRICS:
            # A Python function that gives an int at some points gives Spark a null there: no distance from the origin,
            # though from another point there may be one.
            near.append(target.ask(HasNull()))
        return disjunction(near)

    def _points(self, asked: Operand, indexed: Operand) -> tuple[tuple[float, ...], tuple[float, ...]] | None:
        """The point that a distance is asked from, and the origin, where both are distances of the same columns."""
        pairs = points_of(asked, indexed)
        if pairs is None:
            return None
        shape: Metric = METRICS[self.metric]
        point, origin = (shape.point([pair[side] for pair in pairs]) for side in (0, 1))
        # numbers in the columns themselves are no coordinates
        if point is None or origin is None or len(point) != len(self.origin):
            return None
        return point, origin

    def _between(self, asked: Operand, target: Target) -> float | None:
        """How far the point that a distance is asked from is from the origin; None where it is another distance."""
        if self.metric in METRICS:
            found = self._points(asked, only(target.operands))
            measure: Any = None if found is None else partial(METRICS[self.metric].measure, *found)
        else:
            declared = declared_points(asked, only(target.operands), target.functions)
            measure = None if declared is None else partial(declared[2], *declared[0], *declared[1])
        if measure is None:
            return None
        try:
            between = float(measure())
        except Exception:  # overflow; a function of the user's may do anything
            return None
        return between if between >= 0 else None


def _radius(literal: Literal) -> float | None:
    value = literal.value
    return value if isinstance(value, float) and abs(value) < _LARGEST else None


def _ring(comparator: str, between: float, radius: float) -> Range | None:
    """The range of distances from the origin that can pass; None if any distance can."""
    if not between < _LARGEST:
        return None
    slack = _RELATIVE * (between + abs(radius)) + _ABSOLUTE
    if comparator in ("<", "<="):
        return Range(between - radius - slack, between + radius + slack)
    if comparator == "=":
        return Range(abs(between - radius) - slack, between + radius + slack)
    return Range(radius - between - slack, None) if comparator in (">", ">=") else None


def _point(given: Sequence[float], axes: int, name: str) -> tuple[float, ...]:
    numbers = isinstance(given, Sequence) and all(
        isinstance(one, int | float) and not isinstance(one, bool) and math.isfinite(one) and abs(one) < _LARGEST
        for one in given
    )
    if isinstance(given, str) or not numbers or len(given) != axes:
        raise IndexDefinitionError(f"MetricDistance: {name} is {given!r}; pass {axes} finite numbers")
    return tuple(float(one) for one in given)
