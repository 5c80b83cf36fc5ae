"""Points and extents as a few boxes: what `GeoBox` and `GeometryBox` collect."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from es_skipping.clauses.metadata import Boxes
from es_skipping.indexes.base import Collector
from es_skipping.indexes.toolkit.cover import compact, small_cover

if TYPE_CHECKING:
    import pyarrow as pa

    from es_skipping.indexes.toolkit.cover import Cells

__all__ = ["BoxCollector"]

_ROUNDED_BY: Final = 4
"""How many doubles a cast may be off: Spark's cast is off by one, Arrow's cast of a decimal by three."""

_CELLS: Final = 1024
"""A partial result that grows past four times this number of boxes is reduced to it."""


class BoxCollector(Collector["Cells"]):
    """Points as boxes without extent, merged when there are many."""

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
