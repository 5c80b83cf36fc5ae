"""`GeometryBox`: where the geometries of each object lie."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from es_skipping.clauses.clause import Clause
from es_skipping.clauses.metadata import Boxes, Kind
from es_skipping.indexes.base import Collector, Index, Target
from es_skipping.indexes.toolkit.arguments import require_column, require_positive, require_supported
from es_skipping.indexes.toolkit.boxes import BoxCollector
from es_skipping.indexes.toolkit.sedona import region_of
from es_skipping.indexes.toolkit.shapes import region_clause
from es_skipping.predicates.tree import Predicate
from es_skipping.predicates.types import DataType

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column as SparkColumn

    from es_skipping.indexes.toolkit.cover import Cells

__all__ = ["GeometryBox"]


@dataclass(frozen=True)
class GeometryBox(Index):
    """A few boxes that together cover the geometries of each object: a column of Apache Sedona's type ``geometry``.

    For filters that relate the column to a constant geometry: ``ST_Intersects``, ``ST_Contains``, ``ST_Within``,
    ``ST_DWithin``, ``ST_Distance(...) < r`` and their like.

    Parameters
    ----------
    geometry
        Name, SQL expression (such as ``"ST_GeomFromWKB(shape)"``) or Spark ``Column`` of type geometry; the session
        needs Sedona's functions when the index is built.
    boxes
        Most boxes per object.

    Examples
    --------
    >>> GeometryBox("shape", boxes=4)
    GeometryBox(geometry='shape', boxes=4)
    """

    geometry: Any
    boxes: int = 1

    kind: ClassVar[Kind] = "boxes"

    def __post_init__(self) -> None:
        require_column(self, "geometry", self.geometry)
        require_positive(self, "boxes", self.boxes)

    @property
    def columns(self) -> tuple[Any, ...]:
        return (self.geometry,)

    @property
    def parameters(self) -> dict[str, int | float | str]:
        return {"boxes": self.boxes}

    def check(self, types: Sequence[DataType]) -> None:
        require_supported(self, types, "a geometry of Sedona's, which Spark keeps as a binary", "binary")

    def collected(self, columns: Sequence[SparkColumn]) -> list[SparkColumn]:
        from pyspark.sql import functions as F

        (geometry,) = columns
        ends = [F.call_function(f"ST_{end}", geometry) for end in ("YMin", "YMax", "XMin", "XMax")]
        return [*ends, geometry.isNotNull()]

    def value_type(self, types: Sequence[DataType]) -> DataType:
        return DataType("double")

    def collector(self, types: Sequence[DataType]) -> Collector[Cells]:
        return _ExtentCollector(self.boxes, widen=False)

    def label(self, node: Predicate, target: Target) -> Clause | None:
        region = region_of(node, lambda operand: operand == target.operands[0])
        return None if region is None else region_clause(target, region)


class _ExtentCollector(BoxCollector):
    """Extents of geometries, each a cell. An empty geometry has none: what a distance to it is cannot be told from
    where it lies, so it lies everywhere."""

    def cells(self, columns: Sequence[pa.Array]) -> Cells:
        import numpy as np
        import pyarrow.compute as pc

        *ends, present = columns
        cells = np.stack(
            [pc.fill_null(end.filter(present), np.nan).to_numpy(zero_copy_only=False) for end in ends], axis=1
        )
        extents = (cells[:, 0] <= cells[:, 1]) & (cells[:, 2] <= cells[:, 3])
        cells[~extents] = (-np.inf, np.inf, -np.inf, np.inf)
        return cells

    def finish(self, partial: Cells) -> Boxes:
        import numpy as np

        everywhere = np.isinf(partial).any(axis=1)
        if everywhere.any():
            return Boxes((((-np.inf, np.inf), (-np.inf, np.inf)),))
        return super().finish(partial)
