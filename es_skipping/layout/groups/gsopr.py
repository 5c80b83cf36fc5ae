"""`GSOPR`: column groups with some columns stored twice (*Skipping-oriented Data Design*, chapter 5)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from es_skipping.layout.groups.design import GroupDesign, design_layouts
from es_skipping.layout.groups.gsop import GSOP
from es_skipping.layout.histogram import Histogram
from es_skipping.layout.maker import dataset_of
from es_skipping.layout.workload.log import QueryLog
from es_skipping.workload.mining import Feature

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from es_skipping.build.dataset import Dataset

__all__ = ["GSOPR"]


class GSOPR(GSOP):
    """Like `GSOP`, but stores some columns twice: some rows also in the order that their queries want.

    Parameters
    ----------
    dataset
        As `GSOP` takes it, and all its other arguments.
    storage_budget
        Most stored cells, relative to the table's: 1.2 is a fifth more.

    Raises
    ------
    DatasetError
        The dataset cannot be opened, or its session is of Spark Connect.

    Examples
    --------
    >>> gsopr = GSOPR(esk.Dataset(spark, "/lake/sales"), storage_budget=1.2)             # doctest: +SKIP
    >>> print(gsopr.fit(QueryLog.from_file(gsopr.df, "queries.sql")))                    # doctest: +SKIP
    >>> gsopr.write("/lake/sales_in_layouts")                                            # doctest: +SKIP
    """

    def __init__(
        self,
        dataset: Dataset | SparkSession,
        path: str | Sequence[str] | None = None,
        *,
        storage_budget: float = 1.2,
        **more: Any,
    ) -> None:
        if storage_budget < 1:
            raise ValueError(f"storage_budget is {storage_budget}; give 1 or more: the table itself is 1")
        super().__init__(dataset_of(dataset, path, more), **more)
        self._budget = storage_budget

    def _designed(
        self, counted: Histogram, features: Sequence[Feature], train: QueryLog, test: QueryLog
    ) -> GroupDesign:
        return design_layouts(
            self.df.columns,
            features,
            train,
            test,
            counted,
            self._min_rows,
            storage_budget=self._budget,
            opening=self._opening,
        )
